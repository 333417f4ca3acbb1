#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/ranks.hpp"
#include "model/ensemble.hpp"
#include "model/model.hpp"
#include "solvers/observer.hpp"
#include "summation/pair_sum.hpp"

/// Overdamped Langevin dynamics of N interacting particles, theory.md (2), (3).
namespace rieszflow::particle {

enum class Scheme { Projected, Reflected, Mala };

std::string_view name(Scheme scheme);

/// Equation: theory.md (2). Update: x <- Proj_K(x + h force(x) + sqrt(2 h / beta) xi).
/// Order: weak 1/2 at a wall; E_h f - E f = 0.5825971579 sqrt(2 h / beta) * boundary integral of rho (f - E
/// f). An atom of weight rho sqrt(h / beta) per unit area sits on the wall; an unsoftened singular W ends the
/// run there. Asmussen, Glynn, Pitman, Ann. Appl. Probab. 5 (1995) 875, for the constant -zeta(1/2) / sqrt(2
/// pi).
struct Projected {
  static constexpr double weak_order = 0.5;  ///< at a wall; 1 where no wall is reached
};

/// Equation: theory.md (2). Update: x <- mirror_K(x + h force(x) + sqrt(2 h / beta) xi), folded for any
/// length of step. Order: weak 1, walls included; exact for V = W = 0 in a box. Where a singular or barely
/// softened W is not resolved by h, the pairs concerned take smaller steps of their own: close_pairs.hpp.
/// Bossy, Gobet, Talay, J. Appl. Probab. 41 (2004) 877.
struct Reflected {
  static constexpr double weak_order = 1.0;
};

/// Equation: (3). Update: one sweep of single-particle moves with the proposal of Reflected (its force capped
/// at the length of the noise), each accepted by Metropolis and Hastings: metropolis.hpp. Preserves (3)
/// exactly at every step size, walls and singular W included. One sweep advances time by h: towards (2) as h
/// -> 0. Needs a finite beta. Roberts and Tweedie, Bernoulli 2 (1996) 341; Bou-Rabee and Vanden-Eijnden,
/// Comm. Pure Appl. Math. 63 (2010) 655.
struct Mala {
  static constexpr double weak_order =
      1.0;  ///< of averages at finite times; stationary averages have no bias
};

struct Options {
  Scheme scheme = Scheme::Reflected;
  double timestep =
      0.0;  ///< largest step; an output interval is divided into equal steps no longer than this
  std::uint64_t seed = 0;
  PairSum::Options summation{};
  /// One that exists already, of the same model, number of particles and summation: whoever observes the run
  /// can share its mesh. Null: the run makes its own.
  std::shared_ptr<const PairSum> pair_sum{};
  /// Each moves its part of the replicas; where there are fewer replicas than ranks, all move every replica
  /// and share its pairs (PairSum::Options::ranks).
  Ranks ranks{};
};

/// Everything a resumed run needs to continue bitwise.
struct State {
  ParticleEnsemble ensemble;
  Clock clock;
};

/// Sums over this call of `run`, for reports.
struct Statistics {
  std::int64_t accepted = 0, proposed = 0;  ///< moves of MALA
  std::int64_t substeps = 0;     ///< particle steps taken near close pairs, beyond one per particle and step
  std::int64_t close_pairs = 0;  ///< forces of pairs taken for these substeps
  std::int64_t force_evaluations = 0;  ///< of all replicas at once
  double seconds = 0.0;
  /// Mean acceptance of MALA; 1 for the others.
  double acceptance() const {
    return proposed > 0 ? static_cast<double>(accepted) / static_cast<double>(proposed) : 1.0;
  }
};

struct Result : RunResult {
  Statistics statistics;
};

/// Moves `state` from its clock to the end of the schedule. `observe` is called at the start of a fresh run
/// (clock at the first scheduled time) and on reaching each later scheduled time; `stop` is asked after every
/// step, after `observe`: what was observed before an interruption is not observed again by the resumed run.
/// An empty `observe` or `stop` is never called. Positions outside the closed domain are the caller's fault.
///
/// With several ranks all call this with the same state; the first one's `observe` and `stop` count, the
/// others have none. `stop` is then asked after outputs and about every 50 ms: whenever the whole state has
/// been gathered. The steps are the same as with one rank, bit for bit.
Result run(const Model& model, State& state, const Options& options, const Schedule& schedule,
           const Observer<State>& observe, const StopRule& stop);

}  // namespace rieszflow::particle
