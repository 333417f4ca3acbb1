#pragma once
#include <string>

#include "model/density.hpp"
#include "model/functional.hpp"
#include "model/mean_field.hpp"
#include "solvers/observer.hpp"
#include "solvers/stationary/landscape.hpp"

/// Stationary states of (4): the self-consistency equation theory.md (7).
namespace rieszflow::stationary {

/// What is looked for.
enum class Target {
  Minimum,       ///< F falls from the start on: a local minimum, or a saddle that the start's symmetry holds
  NearestState,  ///< Newton's method to a stationary state of any kind near the start: unstable branches
};

struct Options {
  double tolerance = 1e-12;  ///< of Result::residual
  int iterations = 10000;
  int memory = 8;  ///< Anderson depth
  Target target = Target::Minimum;
};

struct Result {
  RunStatus status = RunStatus::Completed;
  Density density;
  FreeEnergy energy;
  /// L1 distance between rho and Z^-1 exp(-beta (V + W*rho)); at beta = infinity the largest violation of
  /// Frostman's conditions over the largest |Phi|.
  double residual = 0.0;
  double chemical_potential = 0.0;  ///< V + W*rho + (1/beta) log rho, constant on the support
  int iterations = 0;
};

/// A solution of (7) from `start`.
///
/// Target::Minimum: phi = V + W*rho by Anderson mixing; a step that lets F grow is replaced by a damped one,
/// a descent direction of F. When mixing gains less than a digit in 20 steps, Newton's method with conjugate
/// gradients and a line search on F takes over. At beta = infinity: zero_temperature.hpp.
/// Target::NearestState (finite beta): Newton's method with MINRES on the residual, halved until the residual
/// falls.
Result solve(const Landscape& landscape, const Density& start, const Options& options);
/// Of the field's own model.
Result solve(const MeanField& field, const Density& start, const Options& options);
/// The same for F plus a functional of the density, prepared on the field's grid: a tilt or a constraint.
/// `energy` and `chemical_potential` then include it.
Result solve(const MeanField& field, const Density& start, const Options& options,
             const GridFunctional& extra);

}  // namespace rieszflow::stationary
