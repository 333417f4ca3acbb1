#include "analysis/entropy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <variant>

#include "analysis/neighbour_tree.hpp"
#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double pi = std::numbers::pi;

/// Volume of the intersection of two Euclidean balls of radii r and R, their centres a distance s <= R apart.
double lens_volume(std::size_t dimension, double r, double R, double s) {
  expects(dimension == 2 || dimension == 3, "the entropy in a ball exists for d <= 3");
  if (r >= R + s) r = R, s = 0.0;
  const bool inside = r + s <= R;
  if (dimension == 3)
    return inside ? 4.0 / 3.0 * pi * r * r * r
                  : pi * (R + r - s) * (R + r - s) * (s * s + 2.0 * s * (R + r) - 3.0 * (R - r) * (R - r)) /
                        (12.0 * s);
  if (inside) return pi * r * r;
  const double near =
      (s * s + r * r - R * R) / (2.0 * s);  // signed distance of the chord from the small centre
  const double far = s - near;
  const double half_chord = std::sqrt(std::max(0.0, (r - near) * (r + near)));
  return r * r * std::atan2(half_chord, near) + R * R * std::atan2(half_chord, far) - s * half_chord;
}

/// The domain as the estimator sees it: which norm, in which units, and the volume of a ball cut with it.
struct Geometry {
  NeighbourTree::Norm norm = NeighbourTree::Norm::Maximum;
  std::vector<double> unit;    ///< (dimension) length of one unit of each axis
  std::vector<double> period;  ///< (dimension) in units; 0: not periodic
  std::vector<double> lower;   ///< (dimension) in units; empty: no walls
  std::vector<double> upper;   ///< (dimension)
  std::vector<double> center;  ///< (dimension) of the ball
  double radius = 0.0;

  double log_unit_volume() const {
    double sum = 0.0;
    for (double length : unit) sum += std::log(length);
    return sum;
  }

  /// log |B(x, distance) cut with the domain|, x in units.
  double log_volume(const double* x, double distance) const {
    const std::size_t dimension = unit.size();
    if (norm == NeighbourTree::Norm::Euclidean) {
      double squared = 0.0;
      for (std::size_t axis = 0; axis < dimension; ++axis)
        squared += (x[axis] - center[axis]) * (x[axis] - center[axis]);
      return std::log(lens_volume(dimension, distance, radius, std::min(std::sqrt(squared), radius)));
    }
    double volume = 1.0;
    for (std::size_t axis = 0; axis < dimension; ++axis) {
      if (!lower.empty())
        volume *= std::min(x[axis] + distance, upper[axis]) - std::max(x[axis] - distance, lower[axis]);
      else if (period[axis] > 0.0)
        volume *= std::min(2.0 * distance, period[axis]);
      else
        volume *= 2.0 * distance;
    }
    return std::log(volume);
  }
};

/// Standard deviation of one coordinate over all particles; 1 where it vanishes.
double axis_spread(const ParticleEnsemble& ensemble, std::size_t axis) {
  const std::size_t dimension = ensemble.dimension, count = ensemble.positions.size() / dimension;
  CompensatedSum sum, squares;
  for (std::size_t i = 0; i < count; ++i) sum.add(ensemble.positions[i * dimension + axis]);
  const double mean = sum.value() / static_cast<double>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double deviation = ensemble.positions[i * dimension + axis] - mean;
    squares.add(deviation * deviation);
  }
  const double spread = std::sqrt(squares.value() / static_cast<double>(count));
  return spread > 0.0 ? spread : 1.0;
}

Geometry geometry(const ParticleEnsemble& ensemble, const Domain& domain) {
  const std::size_t dimension = ensemble.dimension;
  Geometry result;
  result.unit.assign(dimension, 1.0);
  result.period.assign(dimension, 0.0);
  if (const Ball* ball = std::get_if<Ball>(&domain)) {
    if (dimension == 1) {
      result.lower = {ball->center[0] - ball->radius};
      result.upper = {ball->center[0] + ball->radius};
      return result;
    }
    result.norm = NeighbourTree::Norm::Euclidean;
    result.center = ball->center;
    result.radius = ball->radius;
    return result;
  }
  for (std::size_t axis = 0; axis < dimension; ++axis) {
    if (const Torus* torus = std::get_if<Torus>(&domain)) {
      result.unit[axis] = torus->upper[axis] - torus->lower[axis];
      result.period[axis] = 1.0;
      continue;
    }
    result.unit[axis] = axis_spread(ensemble, axis);
    if (const Box* box = std::get_if<Box>(&domain)) {
      result.lower.push_back(box->lower[axis] / result.unit[axis]);
      result.upper.push_back(box->upper[axis] / result.unit[axis]);
    }
  }
  return result;
}

/// Different positions of the particles, each with the number of particles there.
struct Locations {
  std::vector<double> positions;    ///< (location, dimension), in units
  std::vector<std::size_t> counts;  ///< (location)
};

Locations locations(std::span<const double> positions, const Geometry& shape) {
  const std::size_t dimension = shape.unit.size(), particles = positions.size() / dimension;
  const double* x = positions.data();
  std::vector<std::size_t> order(particles);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::lexicographical_compare(x + a * dimension, x + (a + 1) * dimension, x + b * dimension,
                                        x + (b + 1) * dimension);
  });
  Locations result;
  for (std::size_t place = 0; place < particles; ++place) {
    const double* position = x + order[place] * dimension;
    if (place > 0 && std::equal(position, position + dimension, x + order[place - 1] * dimension)) {
      ++result.counts.back();
      continue;
    }
    result.counts.push_back(1);
    for (std::size_t axis = 0; axis < dimension; ++axis)
      result.positions.push_back(position[axis] / shape.unit[axis]);
  }
  return result;
}

/// sum_k weight_k S_k: which neighbours enter, and with which weights.
struct Combination {
  std::vector<std::size_t> rank;  ///< increasing
  std::vector<double> weight;     ///< sum 1
};

/// Weights of S_k and S_2k without the term Gamma(k + 2/d) / Gamma(k) n^(-2/d) of the bias.
Combination combination(std::size_t k, std::size_t dimension, std::size_t largest_rank) {
  k = std::min(k, largest_rank / 2);
  if (k == 0) return {{1}, {1.0}};
  const double power = 2.0 / static_cast<double>(dimension);
  const auto bias = [&](double rank) { return std::exp(std::lgamma(rank + power) - std::lgamma(rank)); };
  const double ratio = bias(2.0 * static_cast<double>(k)) / bias(static_cast<double>(k));
  return {{k, 2 * k}, {ratio / (ratio - 1.0), -1.0 / (ratio - 1.0)}};
}

/// psi(1), ..., psi(count) at [1..count].
std::vector<double> digamma_table(std::size_t count) {
  std::vector<double> psi(count + 1, not_a_number);
  psi[1] = -std::numbers::egamma;
  for (std::size_t n = 1; n < count; ++n) psi[n + 1] = psi[n] + 1.0 / static_cast<double>(n);
  return psi;
}

/// k from measured errors (tests/analysis/entropy_test.cpp): n^(1/3) up to a limit that falls with the
/// dimension. So the bias of Gaussian, exponential-at-a-wall and log-gas laws is below the standard deviation
/// from 10 to 32,000 particles.
std::size_t default_neighbours(std::size_t dimension, std::size_t particles) {
  const std::size_t limit = dimension == 1 ? 8 : dimension == 2 ? 5 : 4;
  const auto growing = static_cast<std::size_t>(std::lround(std::cbrt(static_cast<double>(particles))));
  return std::clamp<std::size_t>(growing, 1, limit);
}

struct PooledEntropy {
  double value = 0.0;
  std::size_t coincident_particles = 0;
};

/// Entropy of the law of one sample of particles, all of them taken as independent.
PooledEntropy pooled_entropy(std::span<const double> positions, const Geometry& shape,
                             std::size_t neighbours) {
  const std::size_t dimension = shape.unit.size(), particles = positions.size() / dimension;
  if (particles < 2) return {not_a_number, 0};
  const Locations sites = locations(positions, shape);
  PooledEntropy result;
  for (std::size_t count : sites.counts)
    if (count > 1) result.coincident_particles += count;
  if (sites.counts.size() == 1) return {-infinity, result.coincident_particles};

  const std::size_t k = neighbours > 0 ? neighbours : default_neighbours(dimension, particles);
  const Combination combined = combination(k, dimension, particles - 1);
  const std::vector<double> psi = digamma_table(particles);
  const NeighbourTree tree(sites.positions, shape.period, shape.norm);
  std::vector<NeighbourTree::Neighbour> nearest;
  CompensatedSum sum;
  for (std::size_t site = 0; site < sites.counts.size(); ++site) {
    // One location holds at least one particle, so these are enough locations for every rank.
    tree.nearest(site, combined.rank.back(), nearest);
    std::size_t met = sites.counts[site] - 1, next = 0;
    double term = 0.0;
    for (const NeighbourTree::Neighbour& neighbour : nearest) {
      met += sites.counts[neighbour.point];
      if (met < combined.rank[next]) continue;
      const double here = shape.log_volume(&sites.positions[site * dimension], neighbour.distance) - psi[met];
      while (next < combined.rank.size() && combined.rank[next] <= met)
        term += combined.weight[next++] * here;
      if (next == combined.rank.size()) break;
    }
    sum.add(static_cast<double>(sites.counts[site]) * term);
  }
  result.value = psi[particles] + sum.value() / static_cast<double>(particles) + shape.log_unit_volume();
  return result;
}

}  // namespace

EntropyEstimate entropy(const ParticleEnsemble& ensemble, const Domain& domain, EntropyOptions options) {
  const std::size_t replicas = ensemble.replica_count;
  expects(ensemble.dimension == dimension(domain), "the ensemble lives in the domain");
  expects(ensemble.positions.size() == replicas * ensemble.particle_count * ensemble.dimension,
          "positions are (replica, particle, dimension)");
  const Geometry shape = geometry(ensemble, domain);
  const PooledEntropy pooled = pooled_entropy(ensemble.positions, shape, options.neighbours);
  EntropyEstimate result{{pooled.value, not_a_number, std::isnan(pooled.value) ? 0 : replicas},
                         std::vector<double>(replicas, pooled.value),
                         pooled.coincident_particles};
  if (replicas < 2 || !std::isfinite(pooled.value)) return result;

  for (std::size_t replica = 0; replica < replicas; ++replica)
    result.replica_values[replica] =
        pooled_entropy(ensemble.replica(replica), shape, options.neighbours).value;
  const Estimate alone = mean_estimate(result.replica_values);
  if (!std::isfinite(alone.value)) {
    result.replica_values.assign(replicas, pooled.value);
    return result;
  }
  for (double& value : result.replica_values) value += pooled.value - alone.value;
  result.estimate.standard_error = alone.standard_error;
  return result;
}

double mean_field_interaction_energy(double pair_sum_energy, std::size_t particle_count) {
  expects(particle_count >= 2, "one particle has no pair");
  const double n = static_cast<double>(particle_count);
  return pair_sum_energy * n / (n - 1.0);
}

}  // namespace rieszflow
