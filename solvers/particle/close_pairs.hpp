#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/noise.hpp"
#include "model/model.hpp"

namespace rieszflow::particle {

/// Local steps for pairs that a step h does not resolve.
///
/// A pair at distance r is close at step h when its own kick 2 h |W'(r)| / N exceeds a tenth of
/// max(r, sqrt(4 h / beta)), the distance and the relative noise. Clusters of close pairs take two steps of
/// h/2 on a Brownian bridge of the same noise, all other forces frozen, and so on recursively down to h /
/// 2^4; there the kick of each remaining close pair is taken implicitly, r' = r + 2 h |W'(r')| / N, which is
/// finite for any r. In d = 1 with W = -log r and beta < N particles do meet, and the plain step has a force
/// of infinite variance. Block steps: cf. Aarseth, Gravitational N-Body Simulations (2003), chapter 2.
class ClosePairs {
 public:
  static constexpr int deepest_level = 4;
  static constexpr double resolution = 0.1;  ///< largest kick of a resolved pair, in units of max(r, noise)

  ClosePairs(const Model& model, std::size_t particle_count, std::uint64_t seed);

  /// Length of the steps that follow.
  void set_timestep(double timestep);

  /// False when no distance is close at this step size, so that the plain step is the whole step.
  bool possible() const { return reach_[0] > 0.0; }

  /// Mean number of particles closer than the reach of this step to one of a uniform cloud in `volume`: with
  /// more than a few, clusters of close pairs grow to the whole cloud.
  double crowding(double timestep, double volume) const;

  struct Work {
    std::int64_t particle_steps = 0;  ///< beyond one per particle
    std::int64_t pairs = 0;           ///< forces of pairs taken for them
  };
  /// One whole step of one replica: next = mirror(x + h force + noise), with substeps where pairs are close.
  /// positions, forces, gaussians, next: (particle, dimension).
  Work advance(std::uint64_t replica, std::uint64_t step, std::span<const double> positions,
               std::span<const double> forces, std::span<const double> gaussians,
               std::span<double> next) const;

 private:
  struct Recursion;
  Domain domain_;
  std::vector<Interaction> stiff_;  ///< the terms whose force grows without a bound set by h
  std::size_t particle_count_, dimension_;
  double noise_variance_;  ///< 2 / beta
  double timestep_ = 0.0;
  NoiseStream bridge_;
  std::array<double, deepest_level + 1> reach_{};  ///< (level) pairs closer than this are close; 0: none

  double force_over_r(double squared_distance) const;
  double reach(double timestep) const;
  /// r' - r of the implicit pair step.
  double implicit_kick(double r, double timestep) const;
};

}  // namespace rieszflow::particle
