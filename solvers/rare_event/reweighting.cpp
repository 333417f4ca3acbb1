#include "solvers/rare_event/reweighting.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow::rare_event {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double largest_residual = 1e-9;
constexpr int most_iterations = 200;

/// 1 / (1 + exp(x)) for any x.
double fermi(double x) { return x > 0.0 ? std::exp(-x) / (1.0 + std::exp(-x)) : 1.0 / (1.0 + std::exp(x)); }

/// A(f), its gradient and its Hessian.
struct Objective {
  double value = 0.0;
  Eigen::VectorXd gradient;
  Eigen::MatrixXd hessian;  ///< its lower half, which Eigen's LDLT reads
};

/// All samples, with the biases of all windows.
struct Pool {
  std::span<const BiasedSamples> windows;
  double particle_count = 0.0;
  Eigen::VectorXd counts;  ///< (window)
  std::size_t window_count() const { return windows.size(); }
  std::size_t size() const {
    std::size_t sum = 0;
    for (const BiasedSamples& window : windows) sum += window.values.size();
    return sum;
  }
  /// Calls f(g) for every sample in the order of the windows.
  template <class Function>
  void for_each(const Function& f) const {
    for (const BiasedSamples& window : windows) {
      for (const double g : window.values) f(g);
    }
  }
};

Pool pooled(std::span<const BiasedSamples> windows, double particle_count) {
  Pool pool{windows, particle_count, Eigen::VectorXd(static_cast<Eigen::Index>(windows.size()))};
  for (std::size_t k = 0; k < windows.size(); ++k)
    pool.counts(static_cast<Eigen::Index>(k)) = static_cast<double>(windows[k].values.size());
  return pool;
}

/// n_k W_nk of one sample. Windows whose share is below round-off are zero; the others are in [first, last).
struct Memberships {
  double log_sum = 0.0;  ///< log sum_k n_k exp(f_k - u_k)
  std::size_t first = 0, last = 0;
};

Memberships memberships(const Pool& pool, double g, const Eigen::VectorXd& f, std::span<double> out) {
  constexpr double round_off = 40.0;  ///< exp(-40) = 4e-18
  double largest = -infinity;
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k] = f(static_cast<Eigen::Index>(k)) - pool.windows[k].bias.energy(g, pool.particle_count);
    largest = std::max(largest, out[k]);
  }
  Memberships result{.first = out.size()};
  double sum = 0.0;
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (out[k] < largest - round_off) {
      out[k] = 0.0;
      continue;
    }
    out[k] = pool.counts(static_cast<Eigen::Index>(k)) * std::exp(out[k] - largest);
    sum += out[k];
    result.first = std::min(result.first, k);
    result.last = k + 1;
  }
  for (std::size_t k = result.first; k < result.last; ++k) out[k] /= sum;
  result.log_sum = largest + std::log(sum);
  return result;
}

/// A sample touches few windows.
Objective objective(const Pool& pool, const Eigen::VectorXd& f) {
  const auto windows = static_cast<Eigen::Index>(pool.window_count());
  Objective result{.gradient = -pool.counts, .hessian = Eigen::MatrixXd::Zero(windows, windows)};
  Eigen::VectorXd membership(windows);
  CompensatedSum sum;
  pool.for_each([&](double g) {
    const Memberships own = memberships(pool, g, f, {membership.data(), pool.window_count()});
    sum.add(own.log_sum);
    const auto last = static_cast<Eigen::Index>(own.last);
    for (auto a = static_cast<Eigen::Index>(own.first); a < last; ++a) {
      const double share = membership(a);
      result.gradient(a) += share;
      result.hessian(a, a) += share;
      for (Eigen::Index b = a; b < last; ++b) result.hessian(b, a) -= share * membership(b);
    }
  });
  result.value = sum.value() - pool.counts.dot(f);
  return result;
}

}  // namespace

double log_sum_exp(std::span<const double> values) {
  double largest = -infinity;
  for (const double value : values) largest = std::max(largest, value);
  if (!std::isfinite(largest)) return largest;
  CompensatedSum sum;
  for (const double value : values) sum.add(std::exp(value - largest));
  return largest + std::log(sum.value());
}

double bennett_ratio(std::span<const double> forward, std::span<const double> backward) {
  expects(!forward.empty() && !backward.empty(), "samples of both laws");
  const double shift = std::log(static_cast<double>(forward.size()) / static_cast<double>(backward.size()));
  // sum_a fermi(forward - x + shift) grows with x, sum_b fermi(backward + x - shift) falls: one root.
  const auto excess = [&](double x) {
    CompensatedSum sum;
    for (const double u : forward) sum.add(fermi(u - x + shift));
    for (const double u : backward) sum.add(-fermi(u + x - shift));
    return sum.value();
  };
  double low = infinity, high = -infinity;
  for (const double u : forward) low = std::min(low, u), high = std::max(high, u);
  for (const double u : backward) low = std::min(low, -u), high = std::max(high, -u);
  low -= 50.0 + std::abs(shift);
  high += 50.0 + std::abs(shift);
  std::uintmax_t evaluations = 200;
  const auto [left, right] = boost::math::tools::toms748_solve(
      excess, low, high, boost::math::tools::eps_tolerance<double>(50), evaluations);
  return 0.5 * (left + right);
}

Reweighting reweight(std::span<const BiasedSamples> windows, double particle_count,
                     std::span<const double> start) {
  expects(!windows.empty(), "at least one window");
  Reweighting result;
  for (const BiasedSamples& window : windows) {
    expects(!window.values.empty(), "samples in every window");
    for (const double g : window.values) {
      if (!std::isfinite(window.bias.energy(g, particle_count))) {
        result.status = RunStatus::NotFinite;
        result.message = "a sample of the statistic is not finite";
        return result;
      }
    }
  }
  const Pool pool = pooled(windows, particle_count);
  const auto count = static_cast<Eigen::Index>(windows.size());

  Eigen::VectorXd f = Eigen::VectorXd::Zero(count);
  if (!start.empty()) f = Eigen::Map<const Eigen::VectorXd>(start.data(), count);
  for (std::size_t k = 0; start.empty() && k + 1 < windows.size(); ++k) {
    std::vector<double> forward, backward;
    const Bias &a = windows[k].bias, &b = windows[k + 1].bias;
    for (const double g : windows[k].values)
      forward.push_back(b.energy(g, particle_count) - a.energy(g, particle_count));
    for (const double g : windows[k + 1].values)
      backward.push_back(a.energy(g, particle_count) - b.energy(g, particle_count));
    f(static_cast<Eigen::Index>(k) + 1) = f(static_cast<Eigen::Index>(k)) + bennett_ratio(forward, backward);
  }

  const auto residual_of = [&](const Objective& o) {
    return (o.gradient.array() / pool.counts.array()).abs().maxCoeff();
  };
  Objective here = objective(pool, f);
  for (; result.iterations < most_iterations && residual_of(here) > 0.01 * largest_residual;
       ++result.iterations) {
    // A is constant along (1, ..., 1): the first window stays at zero.
    Eigen::VectorXd direction = Eigen::VectorXd::Zero(count);
    if (count > 1) {
      Eigen::MatrixXd reduced = here.hessian.bottomRightCorner(count - 1, count - 1);
      reduced.diagonal() *= 1.0 + 1e-13;
      direction.tail(count - 1) = -reduced.ldlt().solve(here.gradient.tail(count - 1));
    }
    const double slope = direction.dot(here.gradient);
    if (!direction.allFinite() || !(slope < 0.0)) break;
    double length = 1.0;
    bool accepted = false;
    // Near the minimum A is flat to round-off: there a smaller residual decides.
    const double noise = 1e-12 * (1.0 + std::abs(here.value));
    for (int halvings = 0; halvings < 60 && !accepted; ++halvings, length *= 0.5) {
      const Eigen::VectorXd trial_f = f + length * direction;
      Objective trial = objective(pool, trial_f);
      accepted = trial.value < here.value - noise + 1e-4 * length * slope ||
                 (std::abs(trial.value - here.value) <= noise && residual_of(trial) < residual_of(here));
      if (accepted) {
        f = trial_f;
        here = std::move(trial);
      } else if (residual_of(here) <= largest_residual) {
        break;  // solved; what is left of the residual is round-off, and no shorter step lowers it
      }
    }
    if (!accepted) break;
  }
  result.residual = residual_of(here);
  if (!(result.residual <= largest_residual)) {
    result.status = RunStatus::NotConverged;
    result.message = "reweighting did not converge: neighbouring windows do not overlap";
    return result;
  }

  result.free_energies.assign(f.data(), f.data() + f.size());
  result.overlaps.assign(windows.size() > 1 ? windows.size() - 1 : 0, 0.0);
  result.log_weights.resize(pool.size());
  std::vector<double> membership(windows.size());
  std::size_t n = 0;
  pool.for_each([&](double g) {
    result.log_weights[n++] = -memberships(pool, g, f, membership).log_sum;
    for (std::size_t k = 0; k + 1 < windows.size(); ++k) {
      result.overlaps[k] += membership[k] * membership[k + 1] / pool.counts(static_cast<Eigen::Index>(k));
    }
  });
  const double normalisation = log_sum_exp(result.log_weights);
  for (double& weight : result.log_weights) weight -= normalisation;
  return result;
}

namespace {
std::vector<double> log_weights_inside(const Reweighting& reweighting, std::span<const BiasedSamples> windows,
                                       const std::function<bool(double g)>& inside) {
  std::vector<double> selected;
  std::size_t n = 0;
  for (const BiasedSamples& window : windows) {
    for (const double g : window.values) {
      if (inside(g)) selected.push_back(reweighting.log_weights[n]);
      ++n;
    }
  }
  return selected;
}
}  // namespace

double log_probability(const Reweighting& reweighting, std::span<const BiasedSamples> windows,
                       const std::function<bool(double g)>& inside) {
  return log_sum_exp(log_weights_inside(reweighting, windows, inside));
}

double effective_sample_size(const Reweighting& reweighting, std::span<const BiasedSamples> windows,
                             const std::function<bool(double g)>& inside) {
  std::vector<double> weights = log_weights_inside(reweighting, windows, inside);
  const double total = log_sum_exp(weights);
  if (!std::isfinite(total)) return 0.0;
  for (double& weight : weights) weight *= 2.0;
  return std::exp(2.0 * total - log_sum_exp(weights));
}

}  // namespace rieszflow::rare_event
