#include "experiments/free_energies.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../io/scratch.hpp"
#include "analysis/exact.hpp"
#include "config/document.hpp"
#include "experiments/study.hpp"

namespace rieszflow {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const char* const log_gas = R"([model]
inverse_temperature = 2.0
[model.domain]
type = "box"
lower = [-1.0]
upper = [1.0]
[[model.interaction]]
type = "log"
strength = 1.0
[study]
type = "partition_function"
counts = [8, 16, 32]
sweeps = 300
cells = [200]
)";

const char* const flock = R"([model]
inverse_temperature = 2.0
[model.domain]
type = "whole_space"
dimension = 1
[[model.potential]]
type = "quadratic"
stiffness = 1.0
[[model.interaction]]
type = "quadratic"
strength = 2.0
[study]
type = "path_probability"
function = "x"
levels = [0.8]
counts = [5, 10, 20]
end = 1.0
timestep = 0.05
start = [0.0]
paths = 100
learning_paths = 100
)";

study::Assembly assembled(const Scratch& folder, const std::string& text,
                          std::vector<std::string> overrides = {}) {
  const fs::path file = folder.path() / "study.toml";
  std::ofstream(file) << text;
  return study::assemble({.config = file, .overrides = std::move(overrides), .threads = 2});
}

Json summary_of(const study::Assembly& assembly, const Scratch& folder) {
  const fs::path out = folder.path() / "out";
  fs::create_directories(out);
  const auto outcome = sweep::run(std::get<study::Sweep>(assembly.question).study,
                                  {.directory = out, .resolved_config = assembly.resolved, .threads = 2});
  EXPECT_EQ(outcome.status, RunStatus::Completed) << outcome.message;
  return Json::parse(outcome.summary);
}

TEST(PartitionStudy, MeasuresSelbergsIntegralAndItsLimit) {
  const Scratch folder;
  const Json summary = summary_of(assembled(folder, log_gas), folder);
  ASSERT_EQ(summary.at("rows").size(), 3U);
  for (const Json& row : summary.at("rows")) {
    const std::size_t count = row.at("count");
    const exact::Partition z = exact::log_gas_on_interval(count, 2.0);
    const double error = row.at("standard_error");
    EXPECT_NEAR(row.at("log_partition_per_particle").get<double>(), z.log_z / static_cast<double>(count),
                4.0 * error);
    EXPECT_LT(error, 3e-3);
    EXPECT_NEAR(row.at("limit").get<double>(), z.limit, 1e-4);
  }
  const Json& limit = summary.at("limits")[0];
  EXPECT_LT(std::abs(limit.at("z").get<double>()), 4.0);
  EXPECT_NEAR(limit.at("correction_theory").get<double>(), 1.531986917, 0.02 * 1.53);
  EXPECT_NEAR(limit.at("correction").get<double>(), limit.at("correction_theory").get<double>(), 0.15);
  EXPECT_EQ(summary.at("fit").at("expected"), -1.0);
}

TEST(PathStudy, MeasuresTheGaussianTailOfAFlock) {
  const Scratch folder;
  const Json summary = summary_of(assembled(folder, flock), folder);
  double variance = 0.0;  // N times that of the mean after 20 Euler steps
  for (int step = 0; step < 20; ++step) variance = 0.95 * 0.95 * variance + 0.05;
  ASSERT_EQ(summary.at("rows").size(), 3U);
  for (const Json& row : summary.at("rows")) {
    const double exact =
        std::log(0.5 * std::erfc(0.8 * std::sqrt(row.at("count").get<double>() / (2.0 * variance))));
    EXPECT_NEAR(row.at("log_probability").get<double>(), exact, 4.0 * row.at("standard_error").get<double>());
  }
  const Json& tail = summary.at("tails")[0];
  EXPECT_NEAR(tail.at("rate").get<double>(), 0.5 * 0.64 / variance,
              4.0 * tail.at("standard_error").get<double>());
}

TEST(PathStudy, StartsWhereTheInteractionIsFinite) {
  const Scratch folder;
  const auto problem = [&](const char* text, std::vector<std::string> overrides) -> std::string {
    try {
      assembled(folder, text, std::move(overrides));
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(problem(flock, {"model.interaction[0].type=\"log\""}).find("spread"), std::string::npos);
  EXPECT_EQ(problem(flock, {"model.interaction[0].type=\"log\"", "study.spread=0.5"}), "");
  EXPECT_NE(problem(flock, {"study.start=[0.0, 1.0]"}).find("must have 1"), std::string::npos);
  EXPECT_NE(problem(flock, {"study.function=\"x+\""}).find("no function"), std::string::npos);
  EXPECT_NE(problem(log_gas, {"study.cells=[10, 10]"}).find("must have 1"), std::string::npos);
}

}  // namespace
}  // namespace rieszflow
