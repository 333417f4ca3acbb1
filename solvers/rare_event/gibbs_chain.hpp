#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/noise.hpp"
#include "model/model.hpp"
#include "solvers/rare_event/interaction_field.hpp"
#include "solvers/rare_event/proposal.hpp"
#include "solvers/rare_event/statistic.hpp"

namespace rieszflow::rare_event {

/// Weight exp(-u(g)) put on the Gibbs law, u(g) = N (-tilt g + stiffness (g - center)^2 / 2).
struct Bias {
  double tilt = 0.0;
  double stiffness = 0.0;  ///< >= 0
  double center = 0.0;

  double energy(double g, double particle_count) const {
    double u = 0.0;  // a tilt of zero leaves alone a statistic that is infinite
    if (tilt != 0.0) u -= tilt * g;
    if (stiffness != 0.0) u += 0.5 * stiffness * (g - center) * (g - center);
    return particle_count * u;
  }
};

/// Metropolis chain on the Gibbs law of theory.md (3), without a time step and so without a step bias:
///
///     target   exp( -beta (sum_i V(x_i) + N coupling (E_W + A)(x)) - u(g(x)) ),   depth(g) > floor where an
///     event is set, move     x_i <- x_i + uniform in [-step, step]^d, folded at the walls of a box (a
///     symmetric proposal there),
///              wrapped on a torus, rejected outside a ball; particles in turn, so that a sweep is N moves;
///              with a proposal q three sweeps of four draw x_i from q instead, accepted with the ratio
///              q(old)/q(new) besides (Hastings),
///     order    none: the target is stationary for every step and every q.
///
/// Sources: N. Metropolis et al., J. Chem. Phys. 21 (1953) 1087-1092; W. K. Hastings, Biometrika 57 (1970)
/// 97-109. Randomness is keyed by (seed, stream,
/// sweep, particle). A functional of the whole law costs one evaluation of it per move.
class GibbsChain {
 public:
  /// `statistic` may be null (g = 0) and must outlive the chain, as must the model.
  GibbsChain(const Model& model, std::size_t particle_count, const Statistic* statistic, std::uint64_t seed,
             std::uint64_t stream);

  /// Independent uniform positions (whole space: standard Gaussians).
  void scatter();
  const Model& model() const { return model_; }
  std::size_t particle_count() const { return particle_count_; }

  /// positions: (particle, dimension), row-major, inside the domain.
  void assign(std::span<const double> positions);
  std::span<const double> positions() const { return positions_; }

  Bias bias{};
  double coupling = 1.0;  ///< factor of W and of the functionals
  /// Only states with event->depth(g) > floor are visited; the start must be one.
  std::optional<Event> event{};
  double floor = 0.0;

  /// Draws from this density, or from none; it must not depend on the present state.
  void set_proposal(std::shared_ptr<const Proposal> proposal);
  const std::shared_ptr<const Proposal>& proposal() const { return proposal_; }

  /// N moves.
  void sweep();
  /// g of the present state.
  double statistic_value() const { return g_; }
  /// (1/(2N^2)) sum W + functionals, of the present state (at coupling one).
  double interaction_energy() const { return energy_; }

  double step() const { return step_; }
  void set_step(double step) { step_ = step < largest_step_ ? step : largest_step_; }
  /// Fraction of accepted moves since the last call of `forget_acceptance` or `tune`.
  double acceptance() const;
  void forget_acceptance() { accepted_ = attempted_ = 0; }
  /// Moves the step towards an acceptance of one half. Only before a measurement: it breaks stationarity.
  void tune();
  std::int64_t moves() const { return moves_; }
  bool finite() const;

 private:
  void refresh();
  double log_density(std::size_t particle) const;
  double functional_energy(std::span<const double> positions) const;

  const Model& model_;
  std::size_t particle_count_;
  std::size_t dimension_;
  const Statistic* statistic_;
  NoiseStream noise_;
  std::uint64_t stream_;
  std::uint64_t sweep_ = 0;
  InteractionField field_;
  std::vector<double> positions_;   ///< (particle, dimension)
  std::vector<double> potential_;   ///< (particle): V(x_i)
  std::vector<double> components_;  ///< (particle, component)
  std::vector<double> sums_;        ///< (component)
  std::vector<double> uniforms_, trial_, trial_components_, trial_sums_;
  mutable std::vector<double> forces_;  ///< scratch of functionals
  std::shared_ptr<const Proposal> proposal_;
  std::vector<double> log_densities_;  ///< (particle) log q(x_i)
  double g_ = 0.0;
  double energy_ = 0.0;
  double functional_ = 0.0;
  double step_ = 1.0;
  double largest_step_ = 1.0;
  std::int64_t accepted_ = 0, attempted_ = 0, moves_ = 0;
};

}  // namespace rieszflow::rare_event
