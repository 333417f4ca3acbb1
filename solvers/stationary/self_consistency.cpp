#include "solvers/stationary/self_consistency.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

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
  Map(const MeanField& field, const GridFunctional* extra)
      : field_(field), extra_(extra), beta_(field.model().inverse_temperature), work_(field.grid().cell_count()) {
    const std::span<const double> volumes = field.volumes();
    volumes_.assign(volumes.begin(), volumes.end());
    if (volumes_.empty()) volumes_.assign(work_.size(), field.grid().cell_volume());
  }

  const std::vector<double>& volumes() const { return volumes_; }

  /// out = exp(-beta potential) / Z; cells outside the domain hold 0.
  void gibbs(std::span<const double> potential, std::span<double> out) const {
    double lowest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (volumes_[i] > 0.0) lowest = std::min(lowest, potential[i]);
    }
    CompensatedSum sum;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = volumes_[i] > 0.0 ? std::exp(-beta_ * (potential[i] - lowest)) : 0.0;
      sum.add(out[i] * volumes_[i]);
    }
    const double normalisation = 1.0 / sum.value();
    for (double& value : out) value *= normalisation;
  }

  /// V + W*rho; returns the interaction energy.
  double effective_potential(std::span<const double> averages, std::span<double> out) const {
    double energy = field_.interaction_potential(averages, out);
    if (extra_ != nullptr) {
      variation_.resize(out.size());
      energy += extra_->value(averages, variation_);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += variation_[i];
    }
    const std::span<const double> external = field_.external_potential();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += external[i];
    return energy;
  }

  /// Everything that follows from point.phi.
  void evaluate(Point& point) {
    const std::size_t size = point.phi.size();
    point.averages.resize(size);
    point.residual.resize(size);
    gibbs(point.phi, point.averages);
    const double interaction_energy = effective_potential(point.averages, point.residual);
    point.energy = field_.free_energy(point.averages, interaction_energy);
    gibbs(point.residual, work_);
    CompensatedSum distance, mean;
    for (std::size_t i = 0; i < size; ++i) {
      distance.add(std::abs(work_[i] - point.averages[i]) * volumes_[i]);
      point.residual[i] -= point.phi[i];
      mean.add(point.residual[i] * point.averages[i] * volumes_[i]);
    }
    for (double& value : point.residual) value -= mean.value();
    point.distance = distance.value();
  }

 private:
  const MeanField& field_;
  const GridFunctional* extra_;
  mutable std::vector<double> variation_;
  double beta_;
  std::vector<double> volumes_;
  std::vector<double> work_;
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

Result solved(const MeanField& field, const Density& start, const Options& options, const GridFunctional* extra) {
  expects(start.averages.size() == field.grid().cell_count(), "the start lives on the grid of the field");
  const double beta = field.model().inverse_temperature;
  expects(std::isfinite(beta), "a finite inverse temperature");
  Map map(field, extra);
  const std::vector<double>& volumes = map.volumes();
  const std::size_t size = start.averages.size();

  Point point, trial;
  point.phi.resize(size);
  map.effective_potential(start.averages, point.phi);
  map.evaluate(point);
  std::deque<Difference> history;
  double damping = 1.0;

  Result result;
  result.density.grid = field.grid();
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
    if (!history.empty()) {
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
  map.effective_potential(point.averages, potential);
  for (std::size_t i = 0; i < size; ++i) {
    if (point.averages[i] > 0.0) {
      sum.add((potential[i] + std::log(point.averages[i]) / beta) * point.averages[i] * volumes[i]);
    }
  }
  result.chemical_potential = sum.value();
  return result;
}

}  // namespace

Result solve(const MeanField& field, const Density& start, const Options& options) {
  return solved(field, start, options, nullptr);
}

Result solve(const MeanField& field, const Density& start, const Options& options, const GridFunctional& extra) {
  return solved(field, start, options, &extra);
}

}  // namespace rieszflow::stationary
