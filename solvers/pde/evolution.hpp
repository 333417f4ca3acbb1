#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "model/density.hpp"
#include "model/mean_field.hpp"
#include "solvers/observer.hpp"

/// The McKean-Vlasov equation on a grid, theory.md (4)-(6).
namespace rieszflow::pde {

/// The first two share the Scharfetter-Gummel semi-discretisation (scharfetter_gummel.hpp).
enum class Scheme {
  SemiImplicit,      ///< implicit in rho, Phi = V + W*rho frozen; two half steps against one, extrapolated
  MethodOfLines,     ///< explicit Dormand-Prince of Boost.Odeint: independent, accurate, slow on fine grids
  SecondOrderUpwind  ///< beta = infinity only: upwind.hpp with Heun's method, fronts over two or three cells
};

/// Name in config files and in `rieszflow list`.
std::string_view name(Scheme scheme);
/// One line on a scheme, for `rieszflow list`.
std::string_view description(Scheme scheme);
/// All of them.
std::span<const Scheme> schemes();
/// What `auto` means for a model: SecondOrderUpwind at beta = infinity, else SemiImplicit.
Scheme automatic_scheme(const Model& model);

/// Order of convergence in the timestep on smooth solutions; measured by tests/pde.
constexpr double order(Scheme scheme) { return scheme == Scheme::MethodOfLines ? 5.0 : 2.0; }

struct Options {
  Scheme scheme = Scheme::SemiImplicit;
  double timestep =
      0.0;  ///< > 0: an output interval is divided into equal steps no longer than this; 0: adaptive
  double tolerance = 1e-5;  ///< adaptive: aimed-at L1 error per unit time
};

/// What an observer sees beside the density.
struct Diagnostics {
  FreeEnergy energy;
  double dissipation = 0.0;  ///< (6), >= 0: -dF/dt of the semi-discretisation; infinite beside empty cells
};

/// Everything a resumed run needs to continue bitwise.
struct State {
  Density density{};
  Clock clock{};
  double next_timestep = 0.0;  ///< 0: choose
  Diagnostics diagnostics{};   ///< of the density; set whenever an observer is called and at the end of a run
};

struct Statistics {
  std::int64_t accepted = 0;
  std::int64_t rejected_error = 0;   ///< error above the tolerance
  std::int64_t rejected_energy = 0;  ///< the free energy would have grown
  std::int64_t rejected_state = 0;   ///< the new state was not finite or not positive
  double seconds = 0.0;
};

struct Result : RunResult {
  Statistics statistics;
};

/// Moves `state` from its clock to the end of the schedule. Each accepted step keeps the mass to round-off,
/// rho >= 0 without clamping, and F(new) <= F(old) up to round-off. `observe` is called exactly at each
/// scheduled time after the clock (and at the clock itself when no step has been made yet), `stop` after
/// every step.
///
/// Ends with NotFinite or LostPositivity when no step above 1e-12 of the run gives a finite, positive state,
/// with NotConverged when none decreases F or meets the tolerance, with Concentrated when an attractive
/// singular interaction has drawn more than 2^-(d+1) of the mass into one cell: the grid no longer resolves
/// the solution. `state` is then the last good one.
Result run(const MeanField& field, State& state, const Options& options, const Schedule& schedule,
           const Observer<State>& observe, const StopRule& stop);

}  // namespace rieszflow::pde
