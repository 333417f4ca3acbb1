#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace rieszflow {

/// What random numbers are for. Two purposes never share a number, so adding a draw to one changes no other.
enum class NoisePurpose : std::uint32_t {
  InitialPosition = 1,
  LangevinIncrement = 2,
  MetropolisAcceptance = 3,
  ReferenceSample = 4,
  ProjectionDirection = 5,
  Bootstrap = 6,
  BrownianBridge = 7,
  MiniBatch = 16,
  DataSplit = 17,
  SyntheticData = 18,
  GibbsMove = 32,
  SplittingChoice = 33,
  PathIncrement = 34,
  AttentionFeature = 48,
  SelectionTask = 49,
  TextCorruption = 50,
  CalibrationFloor = 51,
  WeightInitialisation = 64,
  TrainingOrder = 65,
  Dropout = 66,
  WordDropout = 67,
  LabelShuffle = 68,
};

/// Counter-based random numbers: each draw is a pure function of (seed, purpose, replica, step, particle), so
/// a run is bitwise the same for any number of threads, in any order, and after a resume. Generator: Philox
/// 4x64-10 of Random123 (Salmon, Moraes, Dror, Shaw, SC 2011) with key (seed, purpose) and counter (block of
/// four draws, particle, step, replica); Gaussians by Box-Muller, the same bits on every processor.
class NoiseStream {
 public:
  NoiseStream(std::uint64_t seed, NoisePurpose purpose) : seed_(seed), purpose_(purpose) {}

  /// Fills `out` with independent standard Gaussians that belong to one particle at one step.
  void gaussians(std::uint64_t replica, std::uint64_t step, std::uint64_t particle,
                 std::span<double> out) const;

  /// Fills `out` with independent uniforms in the open interval (0, 1).
  void uniforms(std::uint64_t replica, std::uint64_t step, std::uint64_t particle,
                std::span<double> out) const;

  /// Gaussians of particles 0..particle_count-1 at one step; out: (particle, dimension), row-major.
  /// The same numbers as `gaussians` particle by particle, drawn in one vectorised sweep.
  void gaussian_block(std::uint64_t replica, std::uint64_t step, std::size_t particle_count,
                      std::size_t dimension, std::span<double> out) const;
  /// The same for particles first_particle, first_particle + 1, ...
  void gaussian_block(std::uint64_t replica, std::uint64_t step, std::uint64_t first_particle,
                      std::size_t particle_count, std::size_t dimension, std::span<double> out) const;

 private:
  std::uint64_t seed_;
  NoisePurpose purpose_;
};

}  // namespace rieszflow
