#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "core/noise.hpp"
#include "model/model.hpp"
#include "solvers/particle/fault.hpp"
#include "summation/one_particle_sum.hpp"
#include "summation/pair_sum.hpp"

namespace rieszflow::particle {

/// log of the density at `point` of mirror_K(mean + deviation xi), xi standard Gaussian: the sum over all
/// points that `reflect` (torus: wrapping) sends to `point`, with the Jacobian of the fold in a ball. With
/// this density the reflected proposal may be Metropolised exactly.
double log_folded_gaussian(const Domain& domain, std::span<const double> point, std::span<const double> mean,
                           double deviation);

/// One time step of Metropolis-adjusted Langevin moves, theory.md (3):
///
///     y = mirror(x + h F_c(x) + sqrt(2 h / beta) xi),   F_c = F / sqrt(1 + h beta |F|^2 / 2),
///     accepted with probability min(1, exp(-beta N (H_N(y) - H_N(x))) q(y -> x) / q(x -> y)),
///
/// with q of log_folded_gaussian. The cap keeps a singular force from throwing the proposal further than the
/// noise does; it changes the drift by O(h). Particle by particle in a fixed order, so that acceptance does
/// not fall with N; each move costs two sums over N. Models with terms A(mu_N) move all particles of a
/// replica at once.
class Metropolis {
 public:
  Metropolis(const Model& model, std::size_t particle_count, std::uint64_t seed);
  ~Metropolis();
  Metropolis(Metropolis&&) noexcept;
  Metropolis& operator=(Metropolis&&) noexcept;

  /// Length of the steps that follow.
  void set_timestep(double timestep);

  /// One sweep of one replica. positions: (particle, dimension), overwritten unless there is a fault;
  /// accepted: number of accepted moves, overwritten. Not for concurrent calls on one object.
  StepOutcome sweep(std::uint64_t replica, std::uint64_t step, std::span<double> positions,
                    std::int64_t& accepted);

  /// Moves proposed in one sweep.
  std::int64_t moves() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rieszflow::particle
