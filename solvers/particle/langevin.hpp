#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/ensemble.hpp"
#include "model/model.hpp"
#include "solvers/observer.hpp"
#include "summation/pair_sum.hpp"

/// Overdamped Langevin dynamics of N interacting particles, theory.md (2), (3).
namespace rieszflow::particle {

enum class Scheme { Projected, Reflected, Mala };

std::string_view name(Scheme scheme);

struct Options {
  Scheme scheme = Scheme::Reflected;
  double timestep = 0.0;   ///< largest step; an output interval is divided into equal steps no longer than this
  std::uint64_t seed = 0;
  PairSum::Options summation{};
};

/// Everything a resumed run needs to continue bitwise.
struct State {
  ParticleEnsemble ensemble;
  Clock clock;
};

/// Sums over the whole run so far, for reports.
struct Statistics {
  double acceptance = 1.0;               ///< MALA: mean acceptance; else 1
  std::int64_t substeps = 0;             ///< extra steps taken near close pairs
  std::int64_t force_evaluations = 0;
  double seconds = 0.0;
};

struct Result : RunResult {
  Statistics statistics;
};

/// Moves `state` from its clock to the end of the schedule; calls `observe` at each scheduled time from the clock on (the
/// start included, unless `state` was restored from a later clock) and `stop` after every step.
Result run(const Model& model, State& state, const Options& options, const Schedule& schedule,
           const Observer<State>& observe, const StopRule& stop);

}  // namespace rieszflow::particle
