#include "experiments/study.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../io/scratch.hpp"
#include "analysis/exact.hpp"
#include "config/document.hpp"
#include "experiments/exact_tails.hpp"

namespace rieszflow {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const char* const curie_weiss = R"([model]
inverse_temperature = 2.0
[model.domain]
type = "box"
lower = [-1.0]
upper = [1.0]
[[model.potential]]
type = "quadratic"
stiffness = -1.0
[[model.interaction]]
type = "quadratic"
strength = 1.0
[study]
type = "large_deviations"
levels = [0.6]
counts = [8, 16, 32, 64]
sweeps = 1500
cells = [500]
[study.statistic]
type = "mean"
)";

fs::path written(const Scratch& folder, const std::string& text) {
  std::ofstream(folder.path() / "study.toml") << text;
  return folder.path() / "study.toml";
}

study::Assembly assembled(const Scratch& folder, const std::string& text,
                          std::vector<std::string> overrides = {}) {
  return study::assemble({.config = written(folder, text), .overrides = std::move(overrides), .threads = 2});
}

Json summary_of(const study::Assembly& assembly, const fs::path& out, bool resume = false,
                std::function<bool()> interrupted = {}) {
  fs::create_directories(out);
  const auto outcome = large_deviations::run(std::get<large_deviations::Question>(assembly.question),
                                             {.directory = out,
                                              .resolved_config = assembly.resolved,
                                              .resume = resume,
                                              .interrupted = std::move(interrupted)});
  return Json::parse(outcome.summary);
}

std::string problems_of(const Scratch& folder, const std::string& text, std::vector<std::string> overrides) {
  try {
    assembled(folder, text, std::move(overrides));
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(LargeDeviationStudy, MeasuresCurieWeissAndFindsTheRateOfItsDensity) {
  const Scratch folder;
  const Json summary = summary_of(assembled(folder, curie_weiss), folder.path() / "out");
  ASSERT_EQ(summary.at("status"), "completed");
  ASSERT_EQ(summary.at("rows").size(), 4U);
  for (const Json& row : summary.at("rows")) {
    const exact::Tail tail = exact::curie_weiss_tail(row.at("count"), 2.0, 0.6);
    EXPECT_NEAR(row.at("log_probability").get<double>(), tail.log_probability,
                4.0 * row.at("standard_error").get<double>());
    EXPECT_DOUBLE_EQ(row.at("exact_log_probability").get<double>(), tail.log_probability);
    EXPECT_NEAR(row.at("rate_theory").get<double>(), tail.rate, 1e-3 * tail.rate);
    EXPECT_DOUBLE_EQ(row.at("rate").get<double>(),
                     -row.at("log_probability").get<double>() / row.at("count").get<double>());
    EXPECT_GT(row.at("autocorrelation_time").get<double>(), 1.0);
    EXPECT_GT(row.at("least_overlap").get<double>(), 0.03);
  }
  const Json& fit = summary.at("fit");
  EXPECT_LT(std::abs(fit.at("z").get<double>()), 3.5);
  EXPECT_LT(std::abs(fit.at("relative_error").get<double>()), 0.05);
  for (const char* file : {"config.toml", "summary.json", "rows.json", "report.html"})
    EXPECT_TRUE(fs::exists(folder.path() / "out" / file)) << file;
}

TEST(LargeDeviationStudy, TheDensityKnowsTheRateOfAConfinedGas) {
  // All particles of a log gas inside [-1/2, 1/2]: I = (1 + beta/2) log 2 by scaling.
  const Scratch folder;
  const std::string text = R"toml([model]
inverse_temperature = 2.0
[model.domain]
type = "box"
lower = [-1.0]
upper = [1.0]
[[model.interaction]]
type = "log"
strength = 1.0
[study]
type = "large_deviations"
levels = [0.5]
event = "below"
counts = [2, 3]
sweeps = 50
cells = [400]
[study.statistic]
type = "largest"
value = "abs(x)"
)toml";
  const Json summary = summary_of(assembled(folder, text), folder.path() / "out");
  ASSERT_TRUE(summary.at("fit").at("rate_theory").is_number());
  EXPECT_NEAR(summary.at("fit").at("rate_theory").get<double>(), 2.0 * std::log(2.0), 5e-3);
}

TEST(LargeDeviationStudy, TheFitAcrossCountsKnowsBothWellsFromEither) {
  // Exact probabilities beyond the right one of two wells; which of them the density solver calls the first
  // depends on the grid.
  for (const int cells : {500, 512}) {
    const Scratch folder;
    Json rows = Json::array();
    for (const std::size_t count : {10u, 20u, 40u, 80u, 160u}) {
      rows.push_back({{"count", count},
                      {"inverse_temperature", 4.5},
                      {"level", 0.9},
                      {"status", "completed"},
                      {"log_probability", exact::curie_weiss_tail(count, 4.5, 0.9).log_probability},
                      {"standard_error", 0.01},
                      {"rate", nullptr},
                      {"replicates", std::vector<double>(32)},
                      {"windows", Json::array()}});
    }
    fs::create_directories(folder.path() / "out");
    std::ofstream(folder.path() / "out" / "rows.json") << rows.dump();
    const Json summary = summary_of(
        assembled(folder, curie_weiss,
                  {"model.inverse_temperature=4.5", "study.levels=[0.9]", "study.counts=[10,20,40,80,160]",
                   "study.cells=[" + std::to_string(cells) + "]"}),
        folder.path() / "out", true);
    EXPECT_LT(std::abs(summary.at("fit").at("relative_error").get<double>()), 2e-3) << cells;
  }
}

TEST(LargeDeviationStudy, RowsDependOnNothingButThemselves) {
  const Scratch folder;
  const std::vector<std::string> small = {"study.sweeps=100", "study.counts=[8, 16]"};
  const Json whole = summary_of(assembled(folder, curie_weiss, small), folder.path() / "whole");
  const Json backwards = summary_of(
      assembled(folder, curie_weiss, {"study.sweeps=100", "study.counts=[16, 8]", "study.levels=[0.5, 0.6]"}),
      folder.path() / "backwards");
  const auto value_of = [](const Json& summary, int count) {
    for (const Json& row : summary.at("rows")) {
      if (row.at("count") == count && row.at("level") == 0.6) return row.at("log_probability").get<double>();
    }
    return 0.0;
  };
  EXPECT_EQ(value_of(whole, 8), value_of(backwards, 8));
  EXPECT_EQ(value_of(whole, 16), value_of(backwards, 16));
}

TEST(LargeDeviationStudy, ResumesRowByRow) {
  const Scratch folder;
  const study::Assembly assembly =
      assembled(folder, curie_weiss, {"study.sweeps=300", "study.counts=[8, 16]"});
  const Json whole = summary_of(assembly, folder.path() / "whole");
  // Interrupted once the first row is on disk.
  const fs::path out = folder.path() / "parts";
  const Json part = summary_of(assembly, out, false, [&] { return fs::exists(out / "rows.json"); });
  EXPECT_EQ(part.at("status"), "interrupted");
  ASSERT_EQ(part.at("rows").size(), 1U);
  const Json resumed = summary_of(assembly, out, true);
  ASSERT_EQ(resumed.at("rows").size(), 2U);
  for (std::size_t row = 0; row < 2; ++row)
    EXPECT_EQ(resumed.at("rows")[row].at("replicates"), whole.at("rows")[row].at("replicates"));
}

TEST(LargeDeviationStudy, KnowsTheExactValueOfEveryReadyQuestionThatHasOne) {
  const auto question = [](const char* name) {
    return std::get<large_deviations::Question>(
        study::assemble({.config = fs::path(RIESZFLOW_SOURCE_DIR) / "experiments/large_deviations" /
                                   (std::string(name) + ".toml")})
            .question);
  };
  const auto known = [&](const char* name) {
    const large_deviations::Question q = question(name);
    return large_deviations::exact_log_probability(q, 20, q.inverse_temperatures[0], q.levels[0]);
  };
  EXPECT_EQ(known("curie_weiss"), exact::curie_weiss_tail(20, 1.5, 0.5).log_probability);
  EXPECT_EQ(known("barrier"), exact::curie_weiss_window(20, 4.5, 0.1).log_probability);
  EXPECT_EQ(known("log_gas"),
            exact::log_gas_on_interval_tail(20, 2.0, -0.6, exact::Side::Above).log_probability);
  EXPECT_EQ(known("circle_below"),
            exact::log_gas_on_circle_tail(20, 2.0, -0.5, exact::Side::Below).log_probability);
  EXPECT_EQ(known("gamma_law"), exact::log_gas_radius_tail(2, 20, 4.0, 1.0, 1.5).log_probability);
  EXPECT_EQ(known("scaling_law"), exact::scaling_tail(1, 20, 2.0, 0.5).log_probability);
  EXPECT_EQ(known("learned_kernel"), exact::learned_kernel_tail(20, 2.0, -0.2).log_probability);
  EXPECT_EQ(known("cold"), exact::harmonic_mean_tail(20, 1.0, 1.0, 1.0).log_probability);
  EXPECT_EQ(known("kernel_distance"), std::nullopt);
  // Another statistic, another wall: nothing is known.
  large_deviations::Question other = question("log_gas");
  std::get<Box>(other.model.domain).upper[0] = 1.1;
  EXPECT_EQ(large_deviations::exact_log_probability(other, 20, 2.0, -0.6), std::nullopt);
  other = question("curie_weiss");
  other.statistic.kind = large_deviations::StatisticChoice::Kind::Moment;
  EXPECT_EQ(large_deviations::exact_log_probability(other, 20, 1.5, 0.5), std::nullopt);
}

TEST(LargeDeviationStudy, ResolvedConfigAssemblesToItself) {
  const Scratch folder;
  const study::Assembly first = assembled(folder, curie_weiss);
  EXPECT_EQ(assembled(folder, first.resolved).resolved, first.resolved);
}

TEST(LargeDeviationStudy, SaysWhatIsWrongWithTheQuestion) {
  const Scratch folder;
  EXPECT_NE(problems_of(folder, curie_weiss, {"study.statistic.axis=1"}).find("dimension"),
            std::string::npos);
  EXPECT_NE(problems_of(folder, curie_weiss, {"study.event=within", "study.levels=[-0.1]"}).find("positive"),
            std::string::npos);
  EXPECT_NE(problems_of(folder, curie_weiss, {"study.type=\"large\""}).find("large_deviations"),
            std::string::npos);
  EXPECT_NE(
      problems_of(folder, curie_weiss, {"study.statistic.type=\"linear\"", "study.statistic.value=\"x+\""})
          .find("value"),
      std::string::npos);
  EXPECT_NE(problems_of(folder, curie_weiss, {"model.inverse_temperature=inf"}).find("finite"),
            std::string::npos);
  EXPECT_NE(problems_of(folder, curie_weiss, {"study.cells=[8, 8]"}).find("one for each coordinate"),
            std::string::npos);
  EXPECT_EQ(problems_of(folder, curie_weiss, {}), "");
}

TEST(LargeDeviationStudy, ReadyConfigsAssemble) {
  std::size_t count = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(RIESZFLOW_SOURCE_DIR) / "experiments/large_deviations")) {
    if (entry.path().extension() != ".toml") continue;
    ++count;
    try {
      study::assemble({.config = entry.path()});
    } catch (const config::ConfigError& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GE(count, 10U);
}

}  // namespace
}  // namespace rieszflow
