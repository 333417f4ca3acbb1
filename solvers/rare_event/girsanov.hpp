#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "solvers/observer.hpp"
#include "solvers/rare_event/statistic.hpp"

namespace rieszflow::rare_event {

/// A statistic with the gradient of its function f.
struct SmoothStatistic {
  Statistic statistic;  ///< of kind Mean
  std::function<void(std::span<const double> point, std::span<double> out)>
      gradient;  ///< out = grad f(point)
};

struct PathOptions {
  double end = 1.0;  ///< time T
  double timestep =
      0.01;  ///< the probability is that of the Euler chain at this step: theory.md section 3, item 4
  std::size_t paths = 4000;  ///< per replicate, of the measurement
  std::size_t replicates = 8;
  std::size_t intervals = 10;        ///< on which the control's strength is constant
  std::size_t learning_paths = 500;  ///< per round of learning the control
  std::uint64_t seed = 0;
  int threads = 1;
  std::function<bool()> interrupted{};
};

struct PathProbability {
  RunStatus status = RunStatus::Completed;
  std::string message;
  double log_probability = 0.0;  ///< log P(g(mu_N(T)) in event)
  double standard_error = 0.0;
  double relative_variance = 0.0;        ///< Var(weight) / P^2 of one path; direct sampling has 1/P
  std::vector<double> control;           ///< (interval) strength a
  int rounds = 0;                        ///< of learning
  std::vector<double> replicate_values;  ///< (replicate) log probability
};

/// Probability of an event at the end of the dynamics (2), by importance sampling of paths:
///
///     law       dX_i = [drift_i + a(t) grad f(X_i)] dt + sqrt(2/beta) dB_i, Euler steps, reflected at the
///     walls, weight    exp( -sum theta.xi - |theta|^2/2 ), theta = a(t) grad f sqrt(h beta/2): Girsanov's,
///     exact for the discrete
///               chain at any h because it is that of its Gaussian increments,
///     control   one strength per interval, the same for all particles (mean-field), learnt by the
///     cross-entropy method:
///               a <- sum w (grad f.dX - ...) / sum w |grad f|^2 dt over the deepest tenth of the paths,
///               until the event itself is common. For mean-field Ornstein-Uhlenbeck and f = x, and for the
///               confined log gas and f = |x|^2, the optimal control of the limit has this form; elsewhere it
///               is a good direction and the weights stay exact.
///
/// `starts`: (particle, dimension), the deterministic start of every path. Source of the method: P. Dupuis,
/// H. Wang, Stochastics 76 (2004) 481-508; R. Rubinstein, D. Kroese, The Cross-Entropy Method (2004).
PathProbability path_probability(const Model& model, std::span<const double> start,
                                 const SmoothStatistic& statistic, const Event& event,
                                 const PathOptions& options);

}  // namespace rieszflow::rare_event
