#include "solvers/stationary/self_consistency.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"
#include "solvers/stationary/landscape.hpp"
#include "solvers/stationary/zero_temperature.hpp"

namespace rieszflow::stationary {
namespace {

/// A positive density through its potential: rho = exp(-beta phi) / Z, with what (5) and (7) say about it.
struct Point {
  std::vector<double> phi;       ///< effective potential that defines rho
  std::vector<double> averages;  ///< rho
  std::vector<double> residual;  ///< V + W*rho - phi, its rho-mean removed
  FreeEnergy energy;
  double distance = 0.0;  ///< L1 distance of rho to Z^-1 exp(-beta (V + W*rho))
};

/// The self-consistency map on one grid.
class Map {
 public:
  explicit Map(const Landscape& landscape)
      : landscape_(landscape), beta_(landscape.inverse_temperature()), work_(landscape.size()) {}

  /// out = exp(-beta potential) / Z; cells outside the domain hold 0.
  void gibbs(std::span<const double> potential, std::span<double> out) const {
    const std::vector<double>& volumes = landscape_.volumes();
    double lowest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (volumes[i] > 0.0) lowest = std::min(lowest, potential[i]);
    }
    CompensatedSum sum;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = volumes[i] > 0.0 ? std::exp(-beta_ * (potential[i] - lowest)) : 0.0;
      sum.add(out[i] * volumes[i]);
    }
    const double normalisation = 1.0 / sum.value();
    for (double& value : out) value *= normalisation;
  }

  /// Everything that follows from point.phi.
  void evaluate(Point& point) {
    const std::vector<double>& volumes = landscape_.volumes();
    const std::size_t size = point.phi.size();
    point.averages.resize(size);
    point.residual.resize(size);
    gibbs(point.phi, point.averages);
    const double interaction_energy = landscape_.effective_potential(point.averages, point.residual);
    point.energy = landscape_.energy(point.averages, interaction_energy);
    gibbs(point.residual, work_);
    CompensatedSum distance, mean;
    for (std::size_t i = 0; i < size; ++i) {
      distance.add(std::abs(work_[i] - point.averages[i]) * volumes[i]);
      point.residual[i] -= point.phi[i];
      mean.add(point.residual[i] * point.averages[i] * volumes[i]);
    }
    for (double& value : point.residual) value -= mean.value();
    point.distance = distance.value();
  }

 private:
  const Landscape& landscape_;
  double beta_;
  std::vector<double> work_;
};

/// The root of V + W*rho(phi) - phi, linearised at a point: a change of phi changes rho by
/// drho = -beta rho (dphi - <dphi>), so that with s = sqrt(mass) and P the projection orthogonal to s
///     (I + beta P s W s P) y = P s residual,   dphi = residual - beta W (s y),
/// a symmetric system of the second variation of F (linearisation.hpp).
class NewtonStep {
 public:
  explicit NewtonStep(const Landscape& landscape) : landscape_(landscape) {}

  /// Conjugate gradients to a relative residual of `tolerance`: where the system is positive definite the
  /// step decreases F; else the iteration stops at the first direction of negative curvature (Steihaug 1983)
  /// and what has been found still decreases F. step: (cell), overwritten. Returns the slope of F along it.
  double descending(const Point& point, double tolerance, std::vector<double>& step) {
    const std::vector<double> right = right_side(point);
    std::vector<double> y(right.size(), 0.0), r = right, p = right, image(right.size());
    const double first = dot(r, r);
    double squared = first;
    for (int k = 0; k < most_products && squared > tolerance * tolerance * first; ++k) {
      product(point, p, image);
      const double curvature = dot(p, image);
      if (!(curvature > 0.0)) {
        if (k == 0) y = right;
        break;
      }
      add(squared / curvature, p, y);
      add(-squared / curvature, image, r);
      const double next = dot(r, r);
      for (std::size_t i = 0; i < p.size(); ++i) p[i] = r[i] + next / squared * p[i];
      squared = next;
    }
    potential_step(point, y, step);
    return -landscape_.inverse_temperature() * dot(right, y);
  }

  /// MINRES (C. Paige and M. Saunders, SIAM J. Numer. Anal. 12 (1975) 617-629) to a relative residual of
  /// `tolerance`: towards a stationary state of any kind.
  void to_nearest(const Point& point, double tolerance, std::vector<double>& step) {
    const std::vector<double> right = right_side(point);
    const std::size_t size = right.size();
    std::vector<double> y(size, 0.0), v = right, last_v(size, 0.0), w(size, 0.0), last_w(size, 0.0),
                                      image(size);
    double coupling = std::sqrt(dot(v, v)), residual = coupling;
    const double first = coupling;
    double cosine = 1.0, last_cosine = 1.0, sine = 0.0, last_sine = 0.0;
    for (double& value : v) value /= coupling;
    for (int k = 0; k < most_products && std::abs(residual) > tolerance * first; ++k) {
      product(point, v, image);
      const double diagonal = dot(v, image);
      for (std::size_t i = 0; i < size; ++i)
        image[i] -= diagonal * v[i] + (k > 0 ? coupling * last_v[i] : 0.0);
      const double next_coupling = std::sqrt(dot(image, image));
      const double a0 = cosine * diagonal - (k > 0 ? last_cosine * sine * coupling : 0.0);
      const double a1 = std::hypot(a0, next_coupling);
      const double a2 = sine * diagonal + (k > 0 ? last_cosine * cosine * coupling : 0.0);
      const double a3 = k > 0 ? last_sine * coupling : 0.0;
      if (!(a1 > 0.0)) break;  // singular along this direction
      for (std::size_t i = 0; i < size; ++i) {
        const double next = (v[i] - a3 * last_w[i] - a2 * w[i]) / a1;
        last_w[i] = w[i];
        w[i] = next;
      }
      last_cosine = cosine;
      last_sine = sine;
      cosine = a0 / a1;
      sine = next_coupling / a1;
      add(cosine * residual, w, y);
      residual *= -sine;
      if (!(next_coupling > 1e-14 * first)) break;
      last_v = v;
      for (std::size_t i = 0; i < size; ++i) v[i] = image[i] / next_coupling;
      coupling = next_coupling;
    }
    potential_step(point, y, step);
  }

 private:
  static constexpr int most_products = 1000;

  std::vector<double> right_side(const Point& point) {
    const std::vector<double>& volumes = landscape_.volumes();
    std::vector<double> right(point.phi.size());
    root_.resize(right.size());
    for (std::size_t i = 0; i < right.size(); ++i) {
      root_[i] = std::sqrt(point.averages[i] * volumes[i]);
      right[i] = root_[i] * point.residual[i];
    }
    project(right);
    return right;
  }
  void potential_step(const Point& point, const std::vector<double>& y, std::vector<double>& step) {
    scaled(y);
    step.resize(y.size());
    landscape_.potential_change(point.averages, direction_, step);
    for (std::size_t i = 0; i < y.size(); ++i)
      step[i] = point.residual[i] - landscape_.inverse_temperature() * step[i];
  }
  static void add(double factor, const std::vector<double>& x, std::vector<double>& to) {
    for (std::size_t i = 0; i < x.size(); ++i) to[i] += factor * x[i];
  }
  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  }
  void project(std::vector<double>& x) const {
    const double along = dot(root_, x);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= along * root_[i];
  }
  /// direction_ = the change of the averages that y stands for.
  void scaled(const std::vector<double>& y) {
    direction_.resize(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      direction_[i] = root_[i] > 0.0 ? root_[i] * y[i] / landscape_.volumes()[i] : 0.0;
    }
  }
  void product(const Point& point, const std::vector<double>& x, std::vector<double>& out) {
    const double beta = landscape_.inverse_temperature();
    scaled(x);
    landscape_.potential_change(point.averages, direction_, out);
    for (std::size_t i = 0; i < x.size(); ++i) out[i] *= beta * root_[i];
    project(out);
    for (std::size_t i = 0; i < x.size(); ++i) out[i] += x[i];
  }

  const Landscape& landscape_;
  std::vector<double> root_, direction_;
};

/// Differences of the last iterates and of their residuals.
struct Difference {
  std::vector<double> phi, residual;
};

/// Anderson mixing: phi + f - sum_k c_k (dphi_k + df_k) with c minimising |f - sum c_k df_k| in L2(rho).
/// Reference: H. F. Walker and P. Ni, SIAM J. Numer. Anal. 49 (2011), "Type II".
std::vector<double> accelerated(const Point& point, const std::deque<Difference>& history,
                                const std::vector<double>& volumes) {
  const auto depth = static_cast<Eigen::Index>(history.size());
  const std::size_t size = point.phi.size();
  Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(depth, depth);
  Eigen::VectorXd right = Eigen::VectorXd::Zero(depth);
  for (Eigen::Index a = 0; a < depth; ++a) {
    const auto& fa = history[static_cast<std::size_t>(a)].residual;
    for (Eigen::Index b = 0; b <= a; ++b) {
      const auto& fb = history[static_cast<std::size_t>(b)].residual;
      double sum = 0.0;
      for (std::size_t i = 0; i < size; ++i) sum += fa[i] * fb[i] * point.averages[i] * volumes[i];
      gram(a, b) = gram(b, a) = sum;
    }
    for (std::size_t i = 0; i < size; ++i)
      right(a) += fa[i] * point.residual[i] * point.averages[i] * volumes[i];
  }
  // Unit diagonal, then a tiny ridge: old differences may be nearly parallel.
  const Eigen::VectorXd scale = gram.diagonal().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
  gram = scale.asDiagonal() * gram * scale.asDiagonal();
  gram.diagonal().array() += 1e-14;
  const Eigen::VectorXd coefficients = scale.asDiagonal() * gram.ldlt().solve(scale.cwiseProduct(right));
  std::vector<double> next(size);
  for (std::size_t i = 0; i < size; ++i) next[i] = point.phi[i] + point.residual[i];
  for (Eigen::Index a = 0; a < depth; ++a) {
    const Difference& difference = history[static_cast<std::size_t>(a)];
    for (std::size_t i = 0; i < size; ++i) {
      next[i] -= coefficients(a) * (difference.phi[i] + difference.residual[i]);
    }
  }
  return next;
}

constexpr int patience = 20;  ///< iterations in which mixing must gain a digit

}  // namespace

Result solve(const Landscape& landscape, const Density& start, const Options& options) {
  expects(start.averages.size() == landscape.size(), "the start lives on the grid of the field");
  if (!std::isfinite(landscape.inverse_temperature())) return at_zero_temperature(landscape, start, options);
  const double beta = landscape.inverse_temperature();
  Map map(landscape);
  NewtonStep newton_step(landscape);
  const std::vector<double>& volumes = landscape.volumes();
  const std::size_t size = start.averages.size();

  Point point, trial;
  point.phi.resize(size);
  // The potential that defines the start itself, so that F only falls from there; one with empty cells has
  // none.
  bool positive = true;
  for (std::size_t i = 0; i < size; ++i)
    positive = positive && (volumes[i] == 0.0 || start.averages[i] > 0.0);
  if (positive) {
    for (std::size_t i = 0; i < size; ++i)
      point.phi[i] = volumes[i] > 0.0 ? -std::log(start.averages[i]) / beta : 0.0;
  } else {
    landscape.effective_potential(start.averages, point.phi);
  }
  map.evaluate(point);
  std::deque<Difference> history;
  double damping = 1.0;
  bool use_newton = false;       // once mixing has become slow
  double mark = point.distance;  // residual at the last check of its speed
  std::vector<double> step;

  Result result;
  result.density.grid = landscape.grid();
  result.status = RunStatus::NotConverged;
  int iteration = 0;
  for (; iteration < options.iterations; ++iteration) {
    if (!std::isfinite(point.energy.free_energy) || !std::isfinite(point.distance)) {
      result.status = RunStatus::NotFinite;
      break;
    }
    double largest = 0.0;
    for (std::size_t i = 0; i < size; ++i) {
      if (volumes[i] > 0.0 && point.averages[i] > 1e-6) largest = std::max(largest, std::abs(point.phi[i]));
    }
    // The residual cannot fall below the round-off of beta phi.
    const double reachable = 16.0 * std::numeric_limits<double>::epsilon() * (1.0 + beta * largest);
    if (point.distance <= std::max(options.tolerance, reachable)) {
      result.status = RunStatus::Completed;
      break;
    }
    const double highest_energy =
        point.energy.free_energy +
        1e-13 * (1.0 + std::abs(point.energy.potential_energy) + std::abs(point.energy.interaction_energy) +
                 std::abs(point.energy.entropy / beta));
    bool accepted = false;
    if (options.target == Target::NearestState) {
      newton_step.to_nearest(point, std::clamp(point.distance, 1e-8, 1e-2), step);
      trial.phi.resize(size);
      for (double length = 1.0; !accepted && length > 1e-4; length *= 0.5) {
        for (std::size_t i = 0; i < size; ++i) trial.phi[i] = point.phi[i] + length * step[i];
        map.evaluate(trial);
        accepted = trial.distance < (1.0 - 0.1 * length) * point.distance;
      }
      if (!accepted) break;
      std::swap(point, trial);
      continue;
    }
    if (iteration % patience == patience - 1) {
      use_newton = use_newton || point.distance > 0.1 * mark;
      mark = point.distance;
    }
    if (use_newton) {
      const double slope = newton_step.descending(point, std::clamp(point.distance, 1e-6, 0.1), step);
      trial.phi.resize(size);
      for (double length = 1.0; !accepted && length > 1e-3; length *= 0.5) {
        for (std::size_t i = 0; i < size; ++i) trial.phi[i] = point.phi[i] + length * step[i];
        map.evaluate(trial);
        accepted = trial.energy.free_energy <= highest_energy + 1e-4 * length * slope;
      }
      history.clear();
    } else if (!history.empty()) {
      trial.phi = accelerated(point, history, volumes);
      map.evaluate(trial);
      accepted = trial.energy.free_energy <= highest_energy && trial.distance < 2.0 * point.distance;
      if (!accepted) history.clear();
    }
    // Without acceleration: phi moves towards V + W*rho, a descent direction of F (its slope is
    // -beta times the variance of the residual), by a step that makes F decrease.
    while (!accepted && damping > 1e-10) {
      trial.phi.resize(size);
      for (std::size_t i = 0; i < size; ++i) trial.phi[i] = point.phi[i] + damping * point.residual[i];
      map.evaluate(trial);
      accepted = trial.energy.free_energy <= highest_energy;
      damping = accepted ? std::min(1.0, 2.0 * damping) : 0.5 * damping;
    }
    if (!accepted) break;
    Difference difference{std::vector<double>(size), std::vector<double>(size)};
    for (std::size_t i = 0; i < size; ++i) {
      difference.phi[i] = trial.phi[i] - point.phi[i];
      difference.residual[i] = trial.residual[i] - point.residual[i];
    }
    history.push_back(std::move(difference));
    if (history.size() > static_cast<std::size_t>(std::max(0, options.memory))) history.pop_front();
    std::swap(point, trial);
  }

  result.density.averages = point.averages;
  result.energy = point.energy;
  result.residual = point.distance;
  result.iterations = iteration;
  CompensatedSum sum;
  std::vector<double> potential(size);
  landscape.effective_potential(point.averages, potential);
  for (std::size_t i = 0; i < size; ++i) {
    if (point.averages[i] > 0.0) {
      sum.add((potential[i] + std::log(point.averages[i]) / beta) * point.averages[i] * volumes[i]);
    }
  }
  result.chemical_potential = sum.value();
  return result;
}

Result solve(const MeanField& field, const Density& start, const Options& options) {
  return solve(Landscape(field), start, options);
}

Result solve(const MeanField& field, const Density& start, const Options& options,
             const GridFunctional& extra) {
  return solve(Landscape(field, &extra), start, options);
}

}  // namespace rieszflow::stationary
