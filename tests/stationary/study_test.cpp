#include "experiments/study.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "config/document.hpp"
#include "experiments/report.hpp"
#include "io/files.hpp"
#include "io/run_file.hpp"

/// `rieszflow study` of type "stationary", through its config.
namespace rieszflow {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Folder {
  fs::path path =
      fs::temp_directory_path() /
      ("rieszflow_stationary_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
  Folder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
};

study::Assembly assembled(const std::string& name, std::vector<std::string> overrides) {
  return study::assemble({.config = fs::path(RIESZFLOW_SOURCE_DIR) / "experiments/stationary" / name,
                          .overrides = std::move(overrides)});
}

Json summary_of(const std::string& name, const Folder& folder, std::vector<std::string> overrides = {}) {
  const study::Assembly assembly = assembled(name, std::move(overrides));
  const auto outcome =
      stationary_states::run(std::get<stationary_states::Question>(assembly.question),
                             {.directory = folder.path, .resolved_config = assembly.resolved});
  EXPECT_EQ(outcome.status, RunStatus::Completed) << outcome.message;
  EXPECT_EQ(Json::parse(io::read_text(folder.path / "summary.json")), Json::parse(outcome.summary));
  EXPECT_TRUE(fs::exists(folder.path / "report.html"));
  return Json::parse(outcome.summary);
}

TEST(StationaryStudy, FindsThePhaseTransitionOfTheDesaiZwanzigModel) {
  const Folder folder;
  const Json summary = summary_of("desai_zwanzig.toml", folder);
  std::size_t count = 0;
  double rate_before = 1e9;
  for (const Json& row : summary.at("rows")) {
    const double beta = row.at("inverse_temperature"), m = row.at("mean").at(0);
    EXPECT_LE(row.at("residual").get<double>(), 1e-12);
    EXPECT_EQ(row.at("stability"), beta > 2.18844 && std::abs(m) < 1e-3 ? "unstable" : "stable")
        << beta << " " << m;
    // The gap closes at the transition and is a growth rate on the unstable branch.
    const double rate = row.at("rates").at(0);
    EXPECT_EQ(rate < 0.0, row.at("stability") == "unstable");
    if (beta < 2.18) {
      EXPECT_LT(rate, rate_before);
      rate_before = rate;
    }
    ++count;
  }
  EXPECT_EQ(count, 7U + 3U * 8U);
  EXPECT_LT(rate_before, 0.03);
  const Json& last = summary.at("rows").back();  // beta = 4, highest F
  EXPECT_NEAR(last.at("free_energy").get<double>(), -0.1487188360345, 3e-5);
  const Json& first = summary.at("rows").at(count - 3);
  EXPECT_NEAR(std::abs(first.at("mean").at(0).get<double>()), 0.78755040684382, 1e-4);
  EXPECT_NEAR(first.at("free_energy").get<double>(), -0.1935013190586, 3e-5);
  // The report is made again from the files alone.
  const std::string page = io::read_text(folder.path / "report.html");
  fs::remove(folder.path / "report.html");
  write_report(folder.path);
  EXPECT_EQ(io::read_text(folder.path / "report.html"), page);
  // The densities are snapshots in the order of the rows.
  const io::RunReader run(folder.path / "run.h5");
  ASSERT_EQ(run.density_clocks().size(), count);
  EXPECT_NEAR(mean(run.density(count - 3))[0], first.at("mean").at(0).get<double>(), 1e-12);
  EXPECT_EQ(run.series("stationary/free_energy").value.back(), last.at("free_energy").get<double>());
}

TEST(StationaryStudy, CoolsTheLogGasToTheSemicircle) {
  const Folder folder;
  const Json summary =
      summary_of("log_gas_cold.toml", folder, {"study.random_starts=0", "study.cells=[250]"});
  ASSERT_EQ(summary.at("rows").size(), 4U);
  for (const Json& row : summary.at("rows")) EXPECT_EQ(row.at("branch"), 0);
  const Json& cold = summary.at("rows").back();
  EXPECT_EQ(cold.at("inverse_temperature"), "inf");
  EXPECT_NEAR(cold.at("free_energy").get<double>(), 0.548286795140, 1e-6);
  EXPECT_NEAR(cold.at("chemical_potential").get<double>(), 0.846573590280, 5e-5);
  EXPECT_NEAR(cold.at("support_upper").at(0).get<double>(), std::sqrt(2.0), 0.03);
  EXPECT_TRUE(cold.at("rates").empty());
}

TEST(StationaryStudy, KnowsTheGapsOfTheDoubleWell) {
  const Folder folder;
  const Json summary = summary_of("double_well_gap.toml", folder);
  ASSERT_EQ(summary.at("rows").size(), 4U);
  EXPECT_NEAR(summary.at("rows").at(2).at("rates").at(0).get<double>(), 0.0297795933, 1e-5);
  EXPECT_NEAR(summary.at("rows").at(3).at("rates").at(0).get<double>(), 0.0005718689, 1e-6);
  EXPECT_EQ(summary.at("rows").at(3).at("rates").size(), 4U);
}

TEST(StationaryStudy, ContinuesInTheStrength) {
  const Folder folder;
  const Json summary =
      summary_of("desai_zwanzig.toml", folder,
                 {"study.parameter=strength", "study.values=[0.2, 0.5, 1.0]", "study.cells=[200]"});
  // At beta = 4 the critical strength lies between 0.2 and 0.5.
  EXPECT_EQ(summary.at("rows").size(), 1U + 3U + 3U);
  EXPECT_EQ(summary.at("rows").at(0).at("strength"), 0.2);
}

TEST(StationaryStudy, KnowsThatRotatorsOrderAtStrengthTwo) {
  const Folder folder;
  const Json summary = summary_of("kuramoto.toml", folder);
  for (const Json& row : summary.at("rows")) {
    const double strength = row.at("strength"), rate = row.at("rates").at(0);
    const bool uniform = std::abs(row.at("free_energy").get<double>() + 1.837877066409) < 1e-9;
    if (std::abs(strength - 2.0) < 0.05) continue;  // the transition of the grid is at 2 + O(h^2)
    if (uniform) {
      EXPECT_NEAR(rate, 1.0 - 0.5 * strength, 1e-3);
      EXPECT_EQ(row.at("stability"), strength < 2.0 ? "stable" : "unstable");
    } else {
      EXPECT_GT(strength, 2.0);
      EXPECT_EQ(row.at("stability"), "neutral");
      EXPECT_NEAR(rate, 0.0, 1e-9);
    }
  }
  EXPECT_NEAR(summary.at("rows").at(summary.at("rows").size() - 2).at("free_energy").get<double>(),
              -2.308092508741, 2e-4);
}

TEST(StationaryStudy, RefusesWhatHasNoGrid) {
  const auto refused = [](std::vector<std::string> overrides, const std::string& words) {
    try {
      assembled("desai_zwanzig.toml", std::move(overrides));
      ADD_FAILURE() << words;
    } catch (const config::ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  refused({"study.cells=[20, 20]"}, "study.cells: has 2 entries");
  refused({"study.values=[0.0]"}, "study.values");
  refused({"study.parameter=strength", "study.values=[inf]"}, "finite factors");
  refused({"study.weights=point"}, "cell_average");
}

}  // namespace
}  // namespace rieszflow
