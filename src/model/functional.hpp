#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "domain/grid.hpp"

namespace rieszflow {

/// A functional A[mu] prepared on one grid.
class GridFunctional {
 public:
  virtual ~GridFunctional() = default;
  /// A[rho] for cell averages rho; first_variation: (cell), overwritten with delta A / delta rho, the potential that
  /// joins V + W*rho in theory.md (4).
  virtual double value(std::span<const double> averages, std::span<double> first_variation) const = 0;
};

/// A term of the energy that is neither V nor W but a functional A[mu] of the whole law:
///
///     H_N += A(mu_N),   drift_i += -N grad_i A(mu_N),   F[rho] += A[rho],   V + W*rho += delta A / delta rho.
///
/// It may be nonlinear in mu, unlike (1). Kernel alignment, theory.md (8)-(10), is of this kind. Immutable and safe to
/// evaluate from several threads; the same bits for every number of threads.
class Functional {
 public:
  virtual ~Functional() = default;

  /// One line in words and formulas, for reports.
  virtual std::string description() const = 0;

  /// A(mu_N) of one replica, and forces += -N grad_i A(mu_N). positions, forces: (particle, dimension), row-major.
  /// `replica` and `step` key the mini-batch of a stochastic functional; others ignore them.
  virtual double add_forces(std::span<const double> positions, std::size_t particle_count, std::uint64_t replica,
                            std::uint64_t step, std::span<double> forces) const = 0;

  /// True when add_forces is an unbiased estimate on a random batch; such a functional cannot be Metropolised.
  virtual bool is_stochastic() const { return false; }

  /// The same functional for densities on `grid`.
  virtual std::unique_ptr<GridFunctional> on_grid(const Grid& grid) const = 0;
};

}  // namespace rieszflow
