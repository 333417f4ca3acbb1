#include "solvers/stationary/rate_function.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"
#include "model/quadrature.hpp"

namespace rieszflow::stationary {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double volume_of(const Grid& grid, std::size_t cell) {
  return grid.volume_fractions.empty() ? grid.cell_volume()
                                       : grid.cell_volume() * grid.volume_fractions[cell];
}

std::vector<double> component_integrals(const Observable& observable, const Grid& grid,
                                        std::span<const double> averages) {
  std::vector<double> integrals;
  for (const std::vector<double>& f : observable.components) {
    CompensatedSum sum;
    for (std::size_t i = 0; i < averages.size(); ++i) {
      if (averages[i] > 0.0) sum.add(f[i] * averages[i] * volume_of(grid, i));
    }
    integrals.push_back(sum.value());
  }
  return integrals;
}

double value_of(const Observable& observable, std::span<const double> integrals) {
  if (observable.kind == Observable::Kind::Mean) return integrals[0];
  double sum = 0.0;
  for (std::size_t k = 0; k < integrals.size(); ++k) {
    sum += observable.weights[k] * std::pow(integrals[k] - observable.target[k], 2);
  }
  return std::sqrt(sum);
}

/// (stiffness/2)(g - level)^2 - tilt g.
class Constraint final : public GridFunctional {
 public:
  Constraint(const Observable& observable, const Grid& grid, double level)
      : observable_(observable), grid_(grid), level_(level) {}
  double tilt = 0.0;  ///< energy per unit of g
  double stiffness = 0.0;

  double value(std::span<const double> averages, std::span<double> first_variation) const override {
    const std::vector<double> integrals = component_integrals(observable_, grid_, averages);
    const double g = value_of(observable_, integrals);
    const double pull = stiffness * (g - level_) - tilt;
    std::fill(first_variation.begin(), first_variation.end(), 0.0);
    for (std::size_t k = 0; k < integrals.size(); ++k) {
      double slope = 1.0;  // dg/dc_k; zero at the cone's tip, where it has no direction
      if (observable_.kind == Observable::Kind::Distance) {
        slope = g > 0.0 ? observable_.weights[k] * (integrals[k] - observable_.target[k]) / g : 0.0;
      }
      for (std::size_t i = 0; i < averages.size(); ++i)
        first_variation[i] += pull * slope * observable_.components[k][i];
    }
    return 0.5 * stiffness * (g - level_) * (g - level_) - tilt * g;
  }

 private:
  const Observable& observable_;
  const Grid& grid_;
  double level_;
};

double deviation_of(const std::vector<double>& f, const Density& density) {
  CompensatedSum first, second;
  for (std::size_t i = 0; i < f.size(); ++i) {
    if (density.averages[i] <= 0.0) continue;
    const double mass = density.averages[i] * volume_of(density.grid, i);
    first.add(mass * f[i]);
    second.add(mass * f[i] * f[i]);
  }
  return std::sqrt(std::max(second.value() - first.value() * first.value(), 0.0));
}

/// Of the components together: the scale on which g moves.
double scale_of(const Observable& observable, const Density& density) {
  double scale = 0.0;
  for (std::size_t k = 0; k < observable.components.size(); ++k) {
    const double weight = observable.kind == Observable::Kind::Distance ? observable.weights[k] : 1.0;
    scale += weight * std::pow(deviation_of(observable.components[k], density), 2);
  }
  return std::sqrt(scale);
}

Density tilted_by(const Density& density, const std::vector<double>& f, double factor) {
  Density result = density;
  double highest = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < f.size(); ++i) {
    if (density.averages[i] > 0.0) highest = std::max(highest, factor * f[i]);
  }
  CompensatedSum mass;
  for (std::size_t i = 0; i < f.size(); ++i) {
    if (result.averages[i] > 0.0) result.averages[i] *= std::exp(factor * f[i] - highest);
    mass.add(result.averages[i] * volume_of(result.grid, i));
  }
  for (double& value : result.averages) value /= mass.value();
  return result;
}

double free_energy_of(const MeanField& field, const Density& density) {
  return field.free_energy(density).free_energy;
}

/// Newton in the tilt, bracketed. Nothing when the level jumps over or is not reached.
std::optional<RatePoint> by_tilt(const MeanField& field, const Observable& observable, double level,
                                 const Result& minimum, double scale, const RateOptions& options) {
  const double beta = field.model().inverse_temperature;
  Constraint constraint(observable, field.grid(), level);
  RatePoint point{.level = level, .density = minimum.density};
  const auto g_of = [&](const Density& density) {
    return stationary::value(observable, density.grid, density.averages);
  };
  double t = 0.0, g = g_of(point.density);
  const double start = g;
  double inner_t = 0.0;          // last tilt on the near side of the level
  std::optional<double> outer;   // last tilt beyond it
  double slope = scale * scale;  // dg/dt, of independent particles
  for (int k = 0; k < options.iterations; ++k) {
    if (std::abs(g - level) <= options.tolerance * scale) {
      point.tilt = t;
      point.rate = beta * (free_energy_of(field, point.density) - minimum.energy.free_energy);
      return point;
    }
    double next = t + (level - g) / slope;
    const double reach = 4.0 / scale;  // a longer step leaves the basin of the last density
    next = std::clamp(next, t - reach, t + reach);
    if (outer && !((next - inner_t) * (next - *outer) < 0.0)) next = 0.5 * (inner_t + *outer);
    if (outer && std::abs(*outer - inner_t) < 1e-13 * (1.0 + std::abs(inner_t)))
      return {};  // g jumps over the level
    constraint.tilt = next / beta;
    const Result solved = solve(field, point.density, options.solve, constraint);
    if (solved.status != RunStatus::Completed) return {};
    const double next_g = g_of(solved.density);
    const double secant = (next_g - g) / (next - t);
    if (secant > 0.0 && std::isfinite(secant)) slope = secant;
    point.density = solved.density;
    t = next;
    g = next_g;
    if ((g - level) * (start - level) > 0.0) {
      inner_t = t;
    } else {
      outer = t;
    }
  }
  return {};
}

/// Augmented Lagrangian from one start.
std::optional<RatePoint> by_constraint(const MeanField& field, const Observable& observable, double level,
                                       const Density& start, double lowest, double scale,
                                       const RateOptions& options) {
  const double beta = field.model().inverse_temperature;
  double factor = 4.0;  // over the curvature of independent particles
  for (int attempt = 0; attempt < 6; ++attempt, factor *= 4.0) {
    Constraint constraint(observable, field.grid(), level);
    constraint.stiffness = factor / (beta * scale * scale);
    Density density = start;
    double last = std::numeric_limits<double>::infinity();
    for (int k = 0; k < 4 * options.iterations; ++k) {
      const Result solved = solve(field, density, options.solve, constraint);
      if (solved.status != RunStatus::Completed) break;
      density = solved.density;
      const double g = stationary::value(observable, density.grid, density.averages);
      const double violation = std::abs(g - level);
      if (violation <= options.tolerance * scale) {
        return RatePoint{.level = level,
                         .rate = beta * (free_energy_of(field, density) - lowest),
                         .tilt = beta * constraint.tilt,
                         .constrained = true,
                         .density = density};
      }
      if (k > 2 && violation > 0.95 * last) break;  // not convexified yet
      last = violation;
      constraint.tilt -= constraint.stiffness * (g - level);
    }
  }
  return {};
}

Eigen::VectorXd masses_of(const Density& density) {
  Eigen::VectorXd masses(static_cast<Eigen::Index>(density.averages.size()));
  for (std::size_t i = 0; i < density.averages.size(); ++i) {
    masses(static_cast<Eigen::Index>(i)) = density.averages[i] * volume_of(density.grid, i);
  }
  return masses;
}

/// W between cells: potential of a unit mass spread over a cell.
Eigen::MatrixXd interaction_matrix(const MeanField& field) {
  const std::size_t n = field.grid().cell_count();
  Eigen::MatrixXd w(static_cast<Eigen::Index>(n), static_cast<Eigen::Index>(n));
  std::vector<double> unit(n, 0.0), out(n);
  for (std::size_t j = 0; j < n; ++j) {
    const double volume = volume_of(field.grid(), j);
    unit[j] = volume > 0.0 ? 1.0 / volume : 0.0;
    field.interaction_potential(unit, out);
    unit[j] = 0.0;
    w.col(static_cast<Eigen::Index>(j)) =
        Eigen::Map<const Eigen::VectorXd>(out.data(), static_cast<Eigen::Index>(n));
  }
  return 0.5 * (w + w.transpose());
}

}  // namespace

std::vector<double> cell_averages(const Grid& grid,
                                  const std::function<double(std::span<const double> point)>& function) {
  const std::size_t d = grid.dimension();
  const QuadratureRule rule = gauss_legendre(d == 1 ? 12 : 5);
  const std::size_t nodes = rule.nodes.size();
  std::size_t tensor = 1;
  for (std::size_t k = 0; k < d; ++k) tensor *= nodes;
  std::vector<double> averages(grid.cell_count()), center(d), point(d);
  for (std::size_t cell = 0; cell < averages.size(); ++cell) {
    grid.cell_center(cell, center);
    double sum = 0.0;
    for (std::size_t q = 0; q < tensor; ++q) {
      double weight = 1.0;
      std::size_t rest = q;
      for (std::size_t k = 0; k < d; ++k, rest /= nodes) {
        weight *= rule.weights[rest % nodes];
        point[k] = center[k] + (rule.nodes[rest % nodes] - 0.5) * grid.spacing(k);
      }
      sum += weight * function(point);
    }
    averages[cell] = sum;
  }
  return averages;
}

double value(const Observable& observable, const Grid& grid, std::span<const double> averages) {
  return value_of(observable, component_integrals(observable, grid, averages));
}

std::vector<Result> minimisers(const MeanField& field, const Observable& observable,
                               const RateOptions& options) {
  const Grid& grid = field.grid();
  Density uniform{.grid = grid, .averages = std::vector<double>(grid.cell_count(), 1.0)};
  double total = 0.0;
  for (std::size_t i = 0; i < uniform.averages.size(); ++i) {
    const double volume = volume_of(grid, i);
    if (volume <= 0.0) uniform.averages[i] = 0.0;
    total += volume;
  }
  for (double& average : uniform.averages) average /= total;
  std::vector<Density> starts{uniform};
  for (const std::vector<double>& f : observable.components) {
    const double deviation = deviation_of(f, uniform);
    if (!(deviation > 0.0)) continue;
    for (const double sign : {-1.0, 1.0}) starts.push_back(tilted_by(uniform, f, sign * 2.0 / deviation));
  }
  std::vector<Result> found;
  for (const Density& start : starts) {
    const Result result = solve(field, start, options.solve);
    if (result.status != RunStatus::Completed) continue;
    const bool known = std::any_of(found.begin(), found.end(), [&](const Result& other) {
      CompensatedSum distance;
      for (std::size_t i = 0; i < other.density.averages.size(); ++i) {
        distance.add(std::abs(other.density.averages[i] - result.density.averages[i]) * volume_of(grid, i));
      }
      return distance.value() < 1e-4;
    });
    if (!known) found.push_back(result);
  }
  std::stable_sort(found.begin(), found.end(), [](const Result& a, const Result& b) {
    return a.energy.free_energy < b.energy.free_energy;
  });
  return found;
}

RatePoint rate(const MeanField& field, const Observable& observable, double level,
               const std::vector<Result>& minima, const RateOptions& options) {
  expects(!minima.empty(), "the minimisers of F");
  const double lowest = minima.front().energy.free_energy;
  const double scale = scale_of(observable, minima.front().density);
  RatePoint best{.status = RunStatus::NotConverged,
                 .message = "no density with this value of the statistic was found",
                 .level = level,
                 .rate = not_a_number,
                 .tilt = not_a_number};
  if (!(scale > 0.0) || !std::isfinite(scale)) return best;
  const auto keep = [&](std::optional<RatePoint> point) {
    if (point && std::isfinite(point->rate) && !(best.rate <= point->rate)) best = std::move(*point);
  };
  if (observable.kind == Observable::Kind::Mean) {
    for (const Result& minimum : minima) {
      if (minimum.energy.free_energy > lowest + 1e-9 * (1.0 + std::abs(lowest))) continue;
      keep(by_tilt(field, observable, level, minimum, scale, options));
    }
    if (best.status == RunStatus::Completed && minima.size() == 1) return best;
    for (const Result& minimum : minima) {
      keep(by_constraint(field, observable, level, minimum.density, lowest, scale, options));
    }
    return best;
  }
  // A distance may be reached along every direction: start a little to both sides along each component.
  for (const std::vector<double>& f : observable.components) {
    const double deviation = deviation_of(f, minima.front().density);
    if (!(deviation > 0.0)) continue;
    for (const double sign : {-1.0, 1.0}) {
      const Density start = tilted_by(minima.front().density, f, sign * 0.5 / deviation);
      keep(by_constraint(field, observable, level, start, lowest, scale, options));
    }
  }
  return best;
}

RatePoint rate_of_event(const MeanField& field, const Observable& observable, double lower, double upper,
                        const std::vector<Result>& minima, const RateOptions& options) {
  expects(!minima.empty() && lower < upper, "minimisers and an event");
  const double lowest = minima.front().energy.free_energy;
  for (const Result& minimum : minima) {
    const double g = value(observable, field.grid(), minimum.density.averages);
    if (g > lower && g < upper && minimum.energy.free_energy <= lowest + 1e-9 * (1.0 + std::abs(lowest))) {
      return {.level = g, .rate = 0.0, .density = minimum.density};
    }
  }
  RatePoint best;
  bool first = true;
  for (const double end : {lower, upper}) {
    if (!std::isfinite(end)) continue;
    RatePoint point = rate(field, observable, end, minima, options);
    if (first || (point.status == RunStatus::Completed && !(best.rate <= point.rate)))
      best = std::move(point);
    first = false;
  }
  return best;
}

double limit_covariance(const MeanField& field, const Density& density, std::span<const double> f,
                        std::span<const double> g) {
  expects(field.model().functionals.empty(), "an interaction that is linear in rho");
  const auto n = static_cast<Eigen::Index>(density.averages.size());
  const Eigen::VectorXd m = masses_of(density);
  const Eigen::Map<const Eigen::VectorXd> left(f.data(), n), right(g.data(), n);
  // C a = m (a - <m, a>)
  const Eigen::MatrixXd w = interaction_matrix(field);
  const Eigen::RowVectorXd mean_w = m.transpose() * w;
  Eigen::MatrixXd hessian = field.model().inverse_temperature * (m.asDiagonal() * (w.rowwise() - mean_w));
  hessian.diagonal().array() += 1.0;
  const Eigen::VectorXd source = m.cwiseProduct((right.array() - m.dot(right)).matrix());
  return left.dot(hessian.partialPivLu().solve(source));
}

double partition_correction(const MeanField& field, const Density& density) {
  expects(field.model().functionals.empty(), "an interaction that is linear in rho");
  const double beta = field.model().inverse_temperature;
  const Eigen::VectorXd root = masses_of(density).cwiseSqrt();
  // C^(1/2) W C^(1/2) has the spectrum of P D W D P with D = sqrt(m), P = 1 - sqrt(m) sqrt(m)^T.
  Eigen::MatrixXd matrix = beta * (root.asDiagonal() * interaction_matrix(field) * root.asDiagonal());
  const Eigen::VectorXd column = matrix * root;
  const double corner = root.dot(column);
  matrix += corner * root * root.transpose() - root * column.transpose() - column * root.transpose();
  const Eigen::VectorXd eigenvalues =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(matrix, Eigen::EigenvaluesOnly).eigenvalues();
  CompensatedSum sum;
  for (const double lambda : eigenvalues) {
    if (!(lambda > -1.0)) return not_a_number;
    sum.add(-0.5 * (std::log1p(lambda) - lambda));
  }
  std::vector<double> potential(density.averages.size());
  return sum.value() + beta * field.interaction_potential(density.averages, potential);
}

}  // namespace rieszflow::stationary
