#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ranks.hpp"
#include "model/cell_kernel.hpp"
#include "model/initial_law.hpp"
#include "model/model.hpp"
#include "solvers/particle/langevin.hpp"
#include "solvers/pde/evolution.hpp"

/// The main question of the project: N particles and the mean-field density of one model, side by side.
namespace rieszflow::side_by_side {

struct ParticleSide {
  std::size_t count = 0;  ///< N
  std::size_t replicas = 1;
  particle::Options options{};
};

struct DensitySide {
  std::vector<std::size_t> cells;  ///< (dimension)
  pde::Options options{};
  CellWeights weights = CellWeights::Galerkin;  ///< of W between cells
};

/// What to run. Made by experiments/assemble from a config, or by hand.
struct Question {
  std::string name;  ///< of the config file, without its ending
  Model model;
  InitialLaw initial;
  double end = 0.0;              ///< time >= 0
  double output_every = 0.0;     ///< interval of the series
  double snapshots_every = 0.0;  ///< interval of positions and densities; a multiple of output_every
  std::optional<ParticleSide> particles;
  std::optional<DensitySide> density;
  std::size_t comparison_bins = 64;  ///< histogram bins per axis of the figures
  bool compare = true;               ///< when both sides run
  int threads = 1;
  std::uint64_t seed = 0;
};

struct Progress {
  std::string part;   ///< "density", "particles", "report"
  double time = 0.0;  ///< of the model
  double end = 0.0;
  double seconds_left = 0.0;  ///< NaN when unknown
};

/// Where and how to run it.
struct Setting {
  std::filesystem::path directory;  ///< result folder; exists
  std::string resolved_config;      ///< text of DIR/config.toml
  std::map<std::string, std::string>
      provenance{};  ///< version, commit, compiler, command_line: attributes of run.h5
  bool resume = false;
  Ranks ranks{};  ///< do the run together: replicas, or pairs and slabs, are spread; the first one writes
  std::function<void(const Progress&)> progress{};  ///< may be empty
  std::function<bool()> interrupted{};              ///< asked after every step; may be empty
};

struct Outcome {
  RunStatus status = RunStatus::Completed;
  std::string message;
  std::string summary;  ///< text of DIR/summary.json
};

/// What the question can be seen to do wrong before it runs, a sentence each; kept with the results.
std::vector<std::string> warnings(const Question& question);

/// Runs both sides, writes run.h5, summary.json, config.toml and the report into the folder. The outcome of a
/// rank that is not the first has no texts.
Outcome run(const Question& question, const Setting& setting);

}  // namespace rieszflow::side_by_side
