#include "experiments/study.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "../io/scratch.hpp"
#include "analysis/exact.hpp"
#include "config/document.hpp"
#include "experiments/catalogue.hpp"

namespace rieszflow {
namespace {

namespace fs = std::filesystem;
using sweep::Json;

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The ready study of the Gaussian model, smaller.
std::string gaussian_study() {
  std::ifstream file(fs::path(RIESZFLOW_SOURCE_DIR) / "experiments" / "convergence" / "gaussian_mmd.toml");
  std::string text(std::istreambuf_iterator<char>(file), {});
  text = changed(text, "replicas = 10000", "replicas = 400");
  text = changed(text, "timestep = 2.5e-3\nseed = 1", "timestep = 5e-3");
  text = changed(text, "cells = [512]", "cells = [256]");
  return changed(text, "values = [10, 20, 40, 80, 160, 320]", "values = [10, 20, 40, 80]");
}

study::Assembly assembled(const Scratch& folder, const std::string& text,
                          std::vector<std::string> overrides = {}) {
  std::ofstream(folder.path() / "study.toml") << text;
  return study::assemble({.config = folder.path() / "study.toml", .overrides = std::move(overrides)});
}

Json summary_of(const study::Assembly& assembly, const fs::path& out, int threads = 1, bool resume = false,
                std::function<bool()> interrupted = {}) {
  fs::create_directories(out);
  const auto outcome =
      sweep::run(std::get<study::Sweep>(assembly.question).study, {.directory = out,
                                                                   .resolved_config = assembly.resolved,
                                                                   .resume = resume,
                                                                   .threads = threads,
                                                                   .interrupted = std::move(interrupted)});
  return Json::parse(outcome.summary);
}

std::string problems_of(const Scratch& folder, const std::string& text,
                        std::vector<std::string> overrides = {}) {
  try {
    assembled(folder, text, std::move(overrides));
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "";
}

void expect_theory(const Json& summary, double standard_errors) {
  ASSERT_EQ(summary.at("status"), "completed");
  for (const Json& row : summary.at("rows")) {
    ASSERT_TRUE(row.contains("theory")) << row.dump();
    EXPECT_LT(std::abs(row.at("z").get<double>()), standard_errors) << row.dump();
  }
}

TEST(ParticleNumber, DiscrepancyOfTheGaussianModelFallsLikeOneOverN) {
  const Scratch folder;
  const Json summary = summary_of(assembled(folder, gaussian_study()), folder.path() / "out");
  expect_theory(summary, 4.0);
  EXPECT_NEAR(summary.at("rows")[0].at("theory").get<double>(), 2.873101961583e-2, 1e-12);
  EXPECT_NEAR(summary.at("fit").at("exponent").get<double>(), -1.0,
              4.0 * summary.at("fit").at("standard_error").get<double>());
  EXPECT_TRUE(summary.at("fit").at("passed").get<bool>());
  for (const char* file : {"config.toml", "summary.json", "rows.json", "report.html", "figures/rate_1.svg"})
    EXPECT_TRUE(fs::exists(folder.path() / "out" / file)) << file;
}

TEST(ParticleNumber, MeanAndWassersteinDistanceOfTheGaussianModelAreExact) {
  const Scratch folder;
  expect_theory(
      summary_of(assembled(folder, gaussian_study(), {"study.statistic=mean"}), folder.path() / "mean"), 4.0);
  const Json transport =
      summary_of(assembled(folder, gaussian_study(), {"study.statistic=wasserstein_2_squared"}),
                 folder.path() / "transport");
  expect_theory(transport, 4.0);
}

TEST(ParticleNumber, LawOfOneParticleApproachesTheDensityAtTheSquareOfTheRate) {
  const Scratch folder;
  const Json summary = summary_of(assembled(folder, gaussian_study(),
                                            {"study.statistic=marginal_squared", "study.values=[5, 10, 20]",
                                             "particles.replicas=4000", "particles.timestep=0.01"}),
                                  folder.path() / "out");
  expect_theory(summary, 4.0);
  EXPECT_TRUE(summary.at("fit").at("passed").get<bool>()) << summary.at("fit").dump();
}

TEST(Sweep, RowsDependOnNothingButThemselves) {
  const Scratch folder;
  const std::vector<std::string> small = {"particles.replicas=20", "study.values=[10, 20, 40]"};
  const Json whole = summary_of(assembled(folder, gaussian_study(), small), folder.path() / "whole");
  const Json other =
      summary_of(assembled(folder, gaussian_study(), {"particles.replicas=20", "study.values=[40, 10]"}),
                 folder.path() / "other", 2);
  EXPECT_EQ(whole.at("rows")[0].at("error"), other.at("rows")[1].at("error"));
  EXPECT_EQ(whole.at("rows")[2].at("error"), other.at("rows")[0].at("error"));
}

TEST(Sweep, ResumesRowByRow) {
  const Scratch folder;
  const study::Assembly assembly =
      assembled(folder, gaussian_study(), {"particles.replicas=20", "study.values=[10, 20, 40]"});
  const Json whole = summary_of(assembly, folder.path() / "whole");
  const fs::path out = folder.path() / "parts";
  const Json part = summary_of(assembly, out, 1, false, [&] { return fs::exists(out / "rows.json"); });
  EXPECT_EQ(part.at("status"), "interrupted");
  ASSERT_EQ(part.at("rows").size(), 1U);
  const Json resumed = summary_of(assembly, out, 1, true);
  ASSERT_EQ(resumed.at("rows").size(), 3U);
  for (std::size_t row = 0; row < 3; ++row)
    EXPECT_EQ(resumed.at("rows")[row].at("error"), whole.at("rows")[row].at("error"));
}

TEST(Sweep, OfErrorsThatFlattenGivesNoRate) {
  // Against a value that is wrong by 0.005 the error of the grid levels off.
  const Scratch folder;
  const std::string text = changed(
      gaussian_study(),
      "type = \"particle_number\"\nvalues = [10, 20, 40, 80]\nstatistic = \"mmd_squared\"\nlength = 1.0",
      "type = \"grid\"\nvalues = [32, 64, 128, 256, 512]\nstatistic = \"second_moment\"");
  const exact::OrnsteinUhlenbeck law{1.0, 2.0, 2.0, 0.7, 0.25};
  const double m2 = law.variance(0.5) + law.mean(0.5) * law.mean(0.5);
  const std::string alone = changed(text, "[particles]\nreplicas = 400\ntimestep = 5e-3\n", "");
  const Json good =
      summary_of(assembled(folder, alone, {"study.exact=" + std::to_string(m2), "density.tolerance=1e-8"}),
                 folder.path() / "good");
  EXPECT_NEAR(good.at("fit").at("exponent").get<double>(), 2.0, 0.1) << good.at("fit").dump();
  const Json wrong = summary_of(
      assembled(folder, alone, {"study.exact=" + std::to_string(m2 - 0.005), "density.tolerance=1e-8"}),
      folder.path() / "wrong");
  EXPECT_FALSE(wrong.at("fit").at("passed").get<bool>()) << wrong.at("fit").dump();
  EXPECT_TRUE(wrong.at("fit").at("plateau").get<bool>()) << wrong.at("fit").dump();
  EXPECT_TRUE(wrong.at("fit").at("warning").is_string());
}

TEST(Grid, IsComparedWithTheNextFinerRowWhereNothingIsKnown) {
  const Scratch folder;
  std::string text = changed(
      gaussian_study(),
      "type = \"particle_number\"\nvalues = [10, 20, 40, 80]\nstatistic = \"mmd_squared\"\nlength = 1.0",
      "type = \"grid\"\nvalues = [64, 128, 256, 512]\nstatistic = \"free_energy\"");
  text = changed(text, "[particles]\nreplicas = 400\ntimestep = 5e-3\n", "");
  const Json summary = summary_of(assembled(folder, text, {"density.tolerance=1e-8"}), folder.path() / "out");
  EXPECT_NEAR(summary.at("fit").at("exponent").get<double>(), 2.0, 0.1) << summary.dump(1);
  EXPECT_NEAR(summary.at("extrapolation").at("order").get<double>(), 2.0, 0.1);
  EXPECT_TRUE(summary.at("rows").back().at("error").is_null());
}

TEST(InverseTemperature, FluctuationsOfAHarmonicWellFallLikeOneOverBeta) {
  const Scratch folder;
  std::string text = changed(
      gaussian_study(),
      "type = \"particle_number\"\nvalues = [10, 20, 40, 80]\nstatistic = \"mmd_squared\"\nlength = 1.0",
      "type = \"inverse_temperature\"\nvalues = [2, 4, 8]\nstatistic = \"mean\"\nerror = \"mean_square\"\n"
      "expected = -1.0");
  text = changed(text, "timestep = 5e-3", "timestep = 5e-3\ncount = 10");
  const Json summary =
      summary_of(assembled(folder, changed(text, "end = 0.5", "end = 4.0")), folder.path() / "out");
  expect_theory(summary, 4.0);
  EXPECT_TRUE(summary.at("fit").at("passed").get<bool>()) << summary.at("fit").dump();
}

const char* const wall = R"([model]
inverse_temperature = 2.0
[model.domain]
type = "box"
lower = [-1.0]
upper = [1.0]
[[model.potential]]
type = "expression"
value = "x"
[initial]
type = "uniform"
[time]
end = 8.0
output_every = 0.2
[particles]
count = 100
replicas = 40
timestep = 0.04
[study]
type = "boundary"
values = [0.04, 0.02, 0.01]
function = "x"
average_from = 5.0
)";

TEST(Boundary, OrdersAndConstantAreThoseOfTheory) {
  const Scratch folder;
  const Json summary = summary_of(assembled(folder, wall), folder.path() / "out", 2);
  ASSERT_EQ(summary.at("status"), "completed");
  // E x under exp(-2x) on [-1, 1], and 0.5826 sqrt(2/beta) times the wall sum.
  EXPECT_NEAR(summary.at("exact").get<double>(), 0.5 - 1.0 / std::tanh(2.0), 1e-10);
  EXPECT_NEAR(summary.at("projection_constant").get<double>(), -0.51576, 1e-5);
  const std::map<std::pair<std::string, double>, double> bias{{{"projected", 0.04}, -9.551675138e-2},
                                                              {{"projected", 0.01}, -4.964845051e-2},
                                                              {{"reflected", 0.04}, 1.959130603e-2},
                                                              {{"reflected", 0.01}, 4.949434026e-3},
                                                              {{"mala", 0.04}, 0.0},
                                                              {{"mala", 0.01}, 0.0}};
  for (const Json& row : summary.at("rows")) {
    const auto known = bias.find({row.at("quantity"), row.at("value")});
    if (known == bias.end()) continue;
    EXPECT_NEAR(row.at("signed_error").get<double>(), known->second,
                4.0 * row.at("standard_error").get<double>())
        << row.dump();
  }
  EXPECT_TRUE(summary.at("fits")[0].at("passed").get<bool>()) << summary.at("fits")[0].dump();
  EXPECT_TRUE(summary.at("fits")[1].at("passed").get<bool>()) << summary.at("fits")[1].dump();
  for (const Json& verdict : summary.at("verdicts"))
    EXPECT_TRUE(verdict.at("passed").get<bool>()) << verdict.dump();
}

TEST(Boundary, ConstantInADiscIsThatOfItsCircumference) {
  const Scratch folder;
  std::string text = changed(wall, "type = \"box\"\nlower = [-1.0]\nupper = [1.0]",
                             "type = \"ball\"\ncenter = [0.0, 0.0]\nradius = 1.0");
  text = changed(text, "[[model.potential]]\ntype = \"expression\"\nvalue = \"x\"\n", "");
  text = changed(text, "function = \"x\"", "function = \"x^2 + y^2\"");
  const Json summary = summary_of(
      assembled(folder, text, {"study.values=[0.02, 0.01]", "particles.count=40"}), folder.path() / "out", 2);
  EXPECT_NEAR(summary.at("exact").get<double>(), 0.5, 1e-10);
  EXPECT_NEAR(summary.at("projection_constant").get<double>(), 0.5825971579, 1e-9);
  const Json& row = summary.at("rows")[3];
  ASSERT_EQ(row.at("value"), 0.01);
  EXPECT_NEAR(row.at("signed_error").get<double>(), 5.510373570e-2,
              4.0 * row.at("standard_error").get<double>());
}

const char* const log_gas = R"([model]
inverse_temperature = 2.0
[model.domain]
type = "box"
lower = [-1.0]
upper = [1.0]
[[model.interaction]]
type = "log"
strength = 1.0
[initial]
type = "uniform"
[time]
end = 8.0
output_every = 0.1
[particles]
replicas = 100
timestep = 2e-2
scheme = "mala"
[study]
type = "identities"
values = [10]
)";

TEST(Identities, HoldForMetropolisAndFailForACoarseStep) {
  const Scratch folder;
  const Json exact = summary_of(assembled(folder, log_gas), folder.path() / "exact");
  ASSERT_EQ(exact.at("rows").size(), 3U);
  EXPECT_TRUE(exact.at("fit").at("passed").get<bool>()) << exact.at("verdicts").dump(1);
  std::string text = changed(wall, "type = \"boundary\"\nvalues = [0.04, 0.02, 0.01]\nfunction = \"x\"",
                             "type = \"identities\"\nvalues = [100]");
  text = changed(text, "count = 100\n", "scheme = \"projected\"\n");
  const Json projected = summary_of(assembled(folder, text), folder.path() / "projected");
  EXPECT_FALSE(projected.at("fit").at("passed").get<bool>()) << projected.at("verdicts").dump(1);
  const Json mala = summary_of(assembled(folder, text, {"particles.scheme=mala"}), folder.path() / "mala");
  EXPECT_TRUE(mala.at("fit").at("passed").get<bool>()) << mala.at("verdicts").dump(1);
}

TEST(Fluctuations, OfTheLogGasAreSelbergs) {
  const Scratch folder;
  const std::string text =
      changed(changed(log_gas, "type = \"identities\"\nvalues = [10]",
                      "type = \"fluctuations\"\nvalues = [5, 20]\nfunction = \"x\"\nexact = 0.15\n"
                      "second_function = \"2*x\""),
              "end = 8.0", "end = 20.0");
  const Json summary = summary_of(assembled(folder, text), folder.path() / "out", 2);
  for (const Json& row : summary.at("rows")) {
    // g = 2 f: their covariance is twice, its own variance four times that of f.
    const double factor = row.at("quantity") == "variance"     ? 1.0
                          : row.at("quantity") == "covariance" ? 2.0
                                                               : 4.0;
    EXPECT_NEAR(row.at("scaled_covariance").get<double>(),
                factor * exact::log_gas_on_interval_mean_variance(row.at("value"), 2.0),
                4.0 * row.at("standard_error").get<double>());
    EXPECT_NEAR(row.at("limit").get<double>(), factor * 0.15, factor * 2e-4);
  }
  EXPECT_EQ(summary.at("rows").size(), 6U);
  EXPECT_NEAR(summary.at("limit").get<double>(), 0.15, 2e-4);
  for (const Json& verdict : summary.at("verdicts"))
    EXPECT_TRUE(verdict.at("passed").get<bool>()) << verdict.dump();
}

TEST(Chaos, OfTheGaussianModelIsExact) {
  const Scratch folder;
  const std::string text =
      changed(changed(gaussian_study(),
                      "type = \"particle_number\"\nvalues = [10, 20, 40, 80]\nstatistic = \"mmd_squared\"",
                      "type = \"chaos\"\nvalues = [8, 16, 32]"),
              "end = 0.5", "end = 0.5\noutput_every = 0.01");
  const Json summary =
      summary_of(assembled(folder, text, {"particles.replicas=1000"}), folder.path() / "out", 2);
  ASSERT_EQ(summary.at("status"), "completed");
  std::size_t exact_rows = 0;
  for (const Json& row : summary.at("rows")) {
    if (!row.contains("theory")) continue;
    ++exact_rows;
    EXPECT_LT(std::abs(row.at("z").get<double>()), 4.0) << row.dump();
  }
  EXPECT_EQ(exact_rows, 15U);
  EXPECT_TRUE(summary.at("fit").at("passed").get<bool>()) << summary.at("fit").dump();
}

TEST(Fit, LeavesOutWhatTheNoiseHidesAndSaysSo) {
  const sweep::Curve curve{
      .quantity = "q", .description = "", .scale_label = "", .expected = -1.0, .reference = ""};
  const auto row = [](double scale, double error, double standard_error) {
    return Json{{"quantity", "q"},       {"value", scale}, {"scale", scale},
                {"status", "completed"}, {"error", error}, {"standard_error", standard_error},
                {"samples", 100}};
  };
  const std::vector<Json> half{row(10, 0.1, 0.001), row(20, 0.05, 0.001), row(40, 0.001, 0.001)};
  const Json seen = sweep::fit(curve, half);
  EXPECT_EQ(seen.at("points"), 2);
  EXPECT_EQ(seen.at("rows_within_noise"), 1);
  EXPECT_TRUE(seen.at("passed").get<bool>());
  const std::vector<Json> none{row(10, 0.001, 0.001), row(20, 0.001, 0.001)};
  const Json hidden = sweep::fit(curve, none);
  EXPECT_TRUE(hidden.at("exponent").is_null());
  EXPECT_FALSE(hidden.at("passed").get<bool>());
  EXPECT_TRUE(hidden.at("warning").is_string());
}

TEST(Fit, OfErrorsThatScatterHasNotPassed) {
  const sweep::Curve curve{
      .quantity = "q", .description = "", .scale_label = "", .expected = -1.0, .reference = ""};
  std::vector<Json> rows;
  for (int k = 0; k < 8; ++k) {
    const double scale = 10.0 * std::pow(2.0, k), error = (k % 2 == 0 ? 1.05 : 0.95) / scale;
    rows.push_back({{"quantity", "q"},
                    {"value", scale},
                    {"scale", scale},
                    {"status", "completed"},
                    {"error", error},
                    {"standard_error", 0.005 * error},
                    {"samples", 1000}});
  }
  const Json fit = sweep::fit(curve, rows);
  EXPECT_LT(fit.at("chi_squared_probability").get<double>(), 1e-6);
  EXPECT_FALSE(fit.at("passed").get<bool>());
}

TEST(Study, RefusesWhatItCannotAnswer) {
  const Scratch folder;
  const auto refused = [&](std::vector<std::string> overrides, const std::string& sentence) {
    EXPECT_NE(problems_of(folder, gaussian_study(), std::move(overrides)).find(sentence), std::string::npos)
        << sentence << "\n"
        << problems_of(folder, gaussian_study(), {});
  };
  refused({"study.values=[10, 10]"}, "different");
  refused({"study.values=[10.5, 20]"}, "whole numbers");
  refused({"particles.count=50"}, "--set: particles.count: is swept by this study");
  refused({"study.values=[10]"}, "study.values");
  refused({"study.statistic=\"mmd\""}, "mmd_squared");
  refused({"study.statistic=\"linear\""}, "study.function");
  refused({"study.error=\"mean_square\""}, "distance");
  refused({"study.statistic=\"sliced_wasserstein_2_squared\""}, "dimension 2 or 3");
  refused({"study.reference=\"exact\"", "study.statistic=\"mean\""}, "study.exact");
  refused({"study.average_from=2.0"}, "time.end");
  refused({"study.valeus=[10]"}, "did you mean");
  EXPECT_NE(problems_of(folder, changed(wall, "type = \"box\"", "type = \"torus\""),
                        {"model.potential.0.value=cos(pi*x)"})
                .find("must be a box or a ball"),
            std::string::npos);
  EXPECT_NE(problems_of(folder, wall, {"study.values=[0.04, 0.03]"}).find("holds 0.03, must divide"),
            std::string::npos);
  EXPECT_NE(problems_of(folder, wall, {"particles.replicas=2"}).find("must be >= 8"), std::string::npos);
  EXPECT_NE(problems_of(folder, changed(log_gas, "\"identities\"", "\"chaos\"") + "[density]\ncells = [64]\n")
                .find("softening > 0"),
            std::string::npos);
  const std::string grid = changed(gaussian_study(), "type = \"particle_number\"", "type = \"grid\"");
  EXPECT_NE(problems_of(folder, grid).find("study.toml:32: particles.timestep: is not read"),
            std::string::npos)
      << problems_of(folder, grid);
  EXPECT_NE(problems_of(folder, changed(gaussian_study(), "[time]\nend = 0.5", "")).find("time: is missing"),
            std::string::npos);
  EXPECT_NE(problems_of(folder, changed(gaussian_study(), "timestep = 5e-3", ""))
                .find("particles.timestep: is missing"),
            std::string::npos);
}

TEST(Study, EveryReadyConfigAndEverySampleAssemblesAndPlans) {
  std::size_t count = 0;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::path(RIESZFLOW_SOURCE_DIR) / "experiments" / "convergence")) {
    if (entry.path().extension() != ".toml") continue;
    ++count;
    const study::Assembly assembly = study::assemble({.config = entry.path()});
    EXPECT_NE(study::plan(assembly.question).find("rows"), std::string::npos) << entry.path();
  }
  EXPECT_GE(count, 1U);
  const Scratch folder;
  for (const std::string& type : catalogue::study_types()) {
    const std::string text = catalogue::study_sample(type);
    EXPECT_EQ(problems_of(folder, text), "") << text;
  }
}

TEST(Study, ResolvedConfigMeansTheSame) {
  const Scratch folder;
  const study::Assembly first = assembled(folder, gaussian_study());
  EXPECT_EQ(assembled(folder, first.resolved).resolved, first.resolved);
}

}  // namespace
}  // namespace rieszflow
