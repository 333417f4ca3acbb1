#pragma once
#include <string>

#include "model/density.hpp"
#include "model/functional.hpp"
#include "model/mean_field.hpp"
#include "solvers/observer.hpp"

/// Stationary states of (4): the self-consistency equation theory.md (7).
namespace rieszflow::stationary {

struct Options {
  double tolerance = 1e-12;  ///< L1 distance between rho and Z^-1 exp(-beta (V + W*rho))
  int iterations = 10000;
  int memory = 8;  ///< Anderson depth
};

struct Result {
  RunStatus status = RunStatus::Completed;
  Density density;
  FreeEnergy energy;
  double residual = 0.0;            ///< L1
  double chemical_potential = 0.0;  ///< V + W*rho + (1/beta) log rho, constant on the support
  int iterations = 0;
};

/// Fixed point of (7) by Anderson-accelerated damped iteration from `start`.
Result solve(const MeanField& field, const Density& start, const Options& options);
/// The same for F plus a functional of the density, prepared on the field's grid: a tilt or a constraint. `energy` and
/// `chemical_potential` then include it.
Result solve(const MeanField& field, const Density& start, const Options& options, const GridFunctional& extra);

}  // namespace rieszflow::stationary
