// A study of one's own: with which power of N does the mean of N particles approach the mean of their law?
// Units are independent, so they run side by side and after an interruption; fit, table and report come with
// it.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "experiments/sweep.hpp"
#include "model/initial_law.hpp"

using namespace rieszflow;
using sweep::Json;

Json row_of(std::size_t count, std::uint64_t seed) {
  constexpr std::size_t replicas = 4000;
  const InitialLaw law = GaussianLaw{.mean = {0.0}, .standard_deviation = {1.0}};
  const ParticleEnsemble ensemble = sample(law, WholeSpace{1}, replicas, count, seed);
  double sum = 0.0, squares = 0.0;  // of (mean of a replica)^2
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    double mean = 0.0;
    for (const double x : ensemble.replica(replica)) mean += x / static_cast<double>(count);
    sum += mean * mean;
    squares += mean * mean * mean * mean;
  }
  const double error = sum / replicas;
  return {{"quantity", "mean"},
          {"value", count},
          {"status", "completed"},
          {"scale", count},
          {"error", error},
          {"standard_error", std::sqrt((squares / replicas - error * error) / (replicas - 1))},
          {"theory", 1.0 / static_cast<double>(count)}};
}

int main() {
  sweep::Study study{.type = "mine",
                     .name = "law_of_large_numbers",
                     .model = "N independent standard normal particles",
                     .question = "How fast does the square of their mean fall with N?",
                     .units = {},
                     .curves = {{.quantity = "mean",
                                 .description = "mean square of the mean",
                                 .scale_label = "N",
                                 .expected = -1.0,
                                 .reference = "law of large numbers, variance 1/N"}}};
  for (const std::size_t count : {10, 20, 40, 80}) {
    const double number = static_cast<double>(count);
    study.units.push_back(
        {.name = "N = " + std::to_string(count), .cost = number, .measure = [=](const sweep::Workplace&) {
           return std::vector<Json>{row_of(count, sweep::seed_of(1, std::span(&number, 1)))};
         }});
  }
  const std::filesystem::path folder = "law_of_large_numbers";
  std::filesystem::create_directories(folder);
  const sweep::Outcome outcome =
      sweep::run(study, {.directory = folder, .resolved_config = "", .threads = 2});
  const Json fit = Json::parse(outcome.summary).at("fit");
  std::printf("exponent %.3f, 95 %% interval %.3f to %.3f: %s/report.html\n",
              fit.at("exponent").get<double>(), fit.at("low").get<double>(), fit.at("high").get<double>(),
              folder.c_str());
  return fit.at("passed").get<bool>() ? 0 : 1;
}
