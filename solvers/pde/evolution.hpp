#pragma once
#include <cstdint>
#include <string_view>

#include "model/density.hpp"
#include "model/mean_field.hpp"
#include "solvers/observer.hpp"

/// The McKean-Vlasov equation on a grid, theory.md (4)-(6).
namespace rieszflow::pde {

/// Names in config files: see `rieszflow list`.
enum class Scheme { SemiImplicit, MethodOfLines };

struct Options {
  Scheme scheme = Scheme::SemiImplicit;
  double timestep = 0.0;      ///< 0: adaptive
  double tolerance = 1e-5;    ///< L1 error per unit time, adaptive
};

/// What each accepted step knows about the state.
struct Diagnostics {
  FreeEnergy energy;
  double dissipation = 0.0;  ///< (6), >= 0: -dF/dt
};

/// Everything a resumed run needs to continue bitwise.
struct State {
  Density density;
  Clock clock;
  double next_timestep = 0.0;  ///< 0: choose
  Diagnostics diagnostics{};
};

struct Statistics {
  std::int64_t accepted = 0;
  std::int64_t rejected_error = 0;   ///< error above the tolerance
  std::int64_t rejected_energy = 0;  ///< the free energy would have grown
  double seconds = 0.0;
};

struct Result : RunResult {
  Statistics statistics;
};

/// As particle::run.
Result run(const MeanField& field, State& state, const Options& options, const Schedule& schedule,
           const Observer<State>& observe, const StopRule& stop);

}  // namespace rieszflow::pde
