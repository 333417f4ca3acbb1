#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/setting.hpp"
#include "model/model.hpp"
#include "solvers/stationary/branches.hpp"

/// The stationary states of a model, several where there are several, along a path in the inverse temperature
/// or the strength of the interaction: residual, F, stability and relaxation rates of each.
namespace rieszflow::stationary_states {

enum class Parameter { InverseTemperature, Strength };

struct Question {
  std::string name;
  Model model;
  Parameter parameter = Parameter::InverseTemperature;
  std::vector<double> values;  ///< of the parameter; the strength is a factor of W
  std::vector<std::size_t> cells;
  stationary::SearchOptions search{};
  int rates = 0;  ///< how many relaxation rates of each state
  CellWeights weights = CellWeights::Galerkin;
  int threads = 1;
};

using study::Outcome;  ///< NotConverged: no state was found at some value
using study::Setting;

/// Writes config.toml, summary.json (one row a state), run.h5 (the densities as snapshots 0, 1, ... in the
/// order of the rows, their numbers as series) and the report. All at once at the end: it takes seconds.
Outcome run(const Question& question, const Setting& setting);

/// The report of a result folder, from its summary.json and run.h5. Errors: io::FileError.
void write_report(const std::filesystem::path& directory);

/// What it will do, in words.
std::string plan(const Question& question);

}  // namespace rieszflow::stationary_states
