#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/density.hpp"
#include "model/mean_field.hpp"
#include "solvers/observer.hpp"

/// The McKean-Vlasov equation on a grid, theory.md (4)-(6).
namespace rieszflow::pde {

/// Time schemes. All but the last share the Scharfetter-Gummel semi-discretisation (scharfetter_gummel.hpp).
enum class Scheme {
  SemiImplicit,         ///< implicit in rho, Phi = V + W*rho frozen; two half steps against one, extrapolated
  LimitedSemiImplicit,  ///< the same with fluxes that are of second order at large cell Peclet numbers too
  EnergyStable,         ///< implicit in rho and in W*rho, taken at the middle of the step
  StabilisedExplicit,   ///< Runge-Kutta-Chebyshev of second order; beta finite
  MethodOfLines,     ///< explicit Dormand-Prince of Boost.Odeint: independent, accurate, slow on fine grids
  SecondOrderUpwind  ///< beta = infinity only: upwind.hpp with Heun's method, fronts over two or three cells
};

/// Name in config files and in `rieszflow list`.
std::string_view name(Scheme scheme);
/// One line on a scheme, for `rieszflow list`.
std::string_view description(Scheme scheme);
/// All of them.
std::span<const Scheme> schemes();

/// What a scheme does; tests/pde measures each of these. Every scheme keeps the mass to round-off. What does
/// not hold at every timestep holds at every accepted one: the step is refused and made shorter.
struct Properties {
  double order;                 ///< of convergence in the timestep on smooth solutions
  bool positive_at_every_step;  ///< rho >= 0 whatever the timestep
  bool decays_at_every_step;    ///< F does not grow whatever the timestep and the pair interaction
  bool keeps_gibbs_states;      ///< exp(-beta V) without interaction does not move (round-off)
};
constexpr Properties properties(Scheme scheme) {
  switch (scheme) {
    case Scheme::SemiImplicit:
    case Scheme::LimitedSemiImplicit:
      return {2.0, true, false, true};
    case Scheme::EnergyStable:
      return {1.0, true, true, true};
    case Scheme::StabilisedExplicit:
      return {2.0, false, false, true};
    case Scheme::MethodOfLines:
      return {5.0, false, false, true};
    case Scheme::SecondOrderUpwind:
      return {2.0, false, false, false};
  }
  return {};
}
constexpr double order(Scheme scheme) { return properties(scheme).order; }

struct Options {
  /// Absent: SecondOrderUpwind at beta = infinity; else SemiImplicit, with limited fluxes in the steps that
  /// begin with a mean cell Peclet number above 2 (ScharfetterGummel::mean_peclet_number).
  std::optional<Scheme> scheme{};
  double timestep =
      0.0;  ///< > 0: an output interval is divided into equal steps no longer than this; 0: adaptive
  double tolerance = 1e-5;  ///< adaptive: aimed-at L1 error, per unit time or at times of order one
};

/// What an observer sees beside the density.
struct Diagnostics {
  FreeEnergy energy;
  double dissipation =
      0.0;  ///< (6), >= 0: -dF/dt of the semi-discretisation (at empty cells: ScharfetterGummel)
};

/// Everything a resumed run needs to continue bitwise.
struct State {
  Density density{};
  Clock clock{};
  double next_timestep = 0.0;  ///< 0: choose
  /// F(t) - F(0) + integral of the dissipation, trapezoidal rule over the accepted steps: zero up to the
  /// error in time.
  double energy_defect = 0.0;
  Diagnostics diagnostics{};  ///< of the density; set from the start of a run on
};

struct Statistics {
  std::int64_t accepted = 0;
  std::int64_t rejected_error = 0;   ///< error above the tolerance
  std::int64_t rejected_energy = 0;  ///< the free energy would have grown
  std::int64_t rejected_state = 0;   ///< the new state was not finite or not positive
  std::int64_t rejected_solve = 0;   ///< the implicit equation was not solved
  std::int64_t limited = 0;          ///< accepted steps with limited fluxes
  double seconds = 0.0;
};

struct Result : RunResult {
  Statistics statistics;
};

/// Moves `state` from its clock to the end of the schedule. Each accepted step keeps the mass to round-off,
/// rho >= 0 without clamping, and F(new) <= F(old) up to round-off. `observe` is called exactly at each
/// scheduled time after the clock (and at the clock itself when no step has been made yet), `stop` after
/// every step. With several ranks (those of the field) all call this with the same state; the first one's
/// `observe` and `stop` count, the others have none.
///
/// Ends with NotFinite or LostPositivity when no step above 1e-12 of the run gives a finite, positive state,
/// with NotConverged when none decreases F, meets the tolerance or is solved, with Concentrated when an
/// attractive singular interaction has drawn more than 2^-(d+1) of the mass into one cell: the grid no longer
/// resolves the solution. `state` is then the last good one.
Result run(const MeanField& field, State& state, const Options& options, const Schedule& schedule,
           const Observer<State>& observe, const StopRule& stop);

}  // namespace rieszflow::pde
