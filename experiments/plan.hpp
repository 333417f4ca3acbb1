#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "experiments/side_by_side.hpp"

/// What a run will need, told before it starts.
namespace rieszflow {

/// Sizes are exact counts of what is stored; bytes and seconds are estimates. Real numbers throughout: a plan
/// may ask for more than an integer holds.
struct Plan {
  double coordinates = 0.0;     ///< replicas * particles * dimension
  double particle_steps = 0.0;  ///< time steps of the particles
  double cells = 0.0;           ///< of the density
  double output_times = 0.0;    ///< rows of a series
  double snapshots = 0.0;
  double memory_bytes = 0.0;  ///< at most, at one time
  double disk_bytes = 0.0;    ///< result folder
  /// Without the shorter steps that the schemes take near close pairs of a singular interaction: nobody can
  /// know them.
  double particle_seconds = 0.0;          ///< order of magnitude, on one core of 2024 per thread
  double density_seconds_per_step = 0.0;  ///< the same; the number of adaptive steps is not known in advance
};

Plan plan(const side_by_side::Question& question);

/// The plan in words, a line for each side.
std::string text(const Plan& plan, const side_by_side::Question& question);

/// "1.5 GiB", "3.2 s", "2 h 10 min".
std::string bytes_text(double bytes);
std::string duration_text(double seconds);

/// What this machine offers; nothing where it does not say.
std::optional<double> available_memory();
std::optional<double> available_disk(const std::filesystem::path& folder);

/// Why the plan cannot be carried out here, with the numbers; nothing when it can. `folder` need not exist
/// yet.
std::optional<std::string> obstacle(const Plan& plan, const std::filesystem::path& folder);

}  // namespace rieszflow
