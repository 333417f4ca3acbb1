#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/side_by_side.hpp"
#include "experiments/sweep.hpp"
#include "potentials/expression.hpp"

/// Studies of the Gibbs law (3) by time averages of a Langevin scheme: exact identities, the bias of walls,
/// fluctuations.
namespace rieszflow::equilibrium {

/// What the three share. Averages are over the outputs from `average_from` on, errors over replicas.
struct Sampling {
  std::string name;
  side_by_side::Question base;  ///< model, start, times, particles
  double average_from = 0.0;
};

/// Do contact theorem and Schwinger-Dyson identities hold (summation/identities.hpp)? One unit a particle
/// number.
struct Identities {
  Sampling sampling;
  std::vector<std::size_t> counts;
};
sweep::Study study(const Identities& question);

/// Bias of E f by timestep for independent particles: projected, reflected and mala with the same noise, one
/// unit a timestep. The bias of the first two is measured against mala, which has none: the paths stay close,
/// so the variance of the difference is of the order of the timestep. Expected: order 1/2 with
///
///     E_h f - E f = 0.5825971579 sqrt(2h/beta) * wall integral of rho (f - E f) + O(h)
///
/// (projected; the constant is checked by extrapolation to h = 0), order 1 (reflected; no bias without
/// potential in a box), none (mala). exact E f and the wall integral by Gauss-Legendre quadrature. Source:
/// theory.md section 1; S. Asmussen, P. Glynn, J. Pitman, Ann. Appl. Probab. 5 (1995) 875-896; M. Bossy, E.
/// Gobet, D. Talay, J. Appl. Probab. 41 (2004) 877-889.
struct Boundary {
  Sampling sampling;
  std::vector<double> timesteps;
  std::shared_ptr<const ExpressionFunction> function;  ///< f
};
sweep::Study study(const Boundary& question);

/// Why a model has no boundary study, as a sentence for the user.
std::optional<std::string> boundary_refusal(const Model& model);

/// N Var((1/N) sum f) at finite N against the limit <f, (I + beta C W)^-1 C f> of the grid, theory.md section
/// 3, item 7. One unit a particle number. The error |N Var - limit| falls like 1/N where W is square
/// integrable and the minimiser is not degenerate.
struct Fluctuations {
  Sampling sampling;
  std::vector<std::size_t> counts;
  std::vector<std::size_t> cells;
  std::shared_ptr<const ExpressionFunction> function;           ///< f
  std::optional<double> exact;                                  ///< limit of N Var(f) in closed form
  std::shared_ptr<const ExpressionFunction> second_function{};  ///< g; may be null
};
sweep::Study study(const Fluctuations& question);

/// Steps and estimated cost of a sampling run with these particle numbers or timesteps, in words.
std::string plan(const Sampling& sampling, const std::vector<side_by_side::Question>& rows, double schemes);

}  // namespace rieszflow::equilibrium
