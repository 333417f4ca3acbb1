#include "analysis/distance.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "analysis/line_law.hpp"
#include "core/expects.hpp"

namespace rieszflow {
namespace {

constexpr double pi = std::numbers::pi;

std::vector<double> costs_on_a_line(const ParticleEnsemble& ensemble, const Density& density, int power) {
  expects(ensemble.dimension == 1, "this distance is one-dimensional");
  const LineLaw law = line_law(density);
  std::vector<double> costs, atoms;
  for (std::size_t replica = 0; replica < ensemble.replica_count; ++replica) {
    const std::span<const double> positions = ensemble.replica(replica);
    atoms.assign(positions.begin(), positions.end());
    std::sort(atoms.begin(), atoms.end());
    costs.push_back(density.grid.periodic ? circular_transport_cost(law, atoms, power)
                                          : transport_cost(law, atoms, power));
  }
  return costs;
}

}  // namespace

std::vector<double> wasserstein1(const ParticleEnsemble& ensemble, const Density& density) {
  return costs_on_a_line(ensemble, density, 1);
}

std::vector<double> wasserstein2(const ParticleEnsemble& ensemble, const Density& density) {
  std::vector<double> distances = costs_on_a_line(ensemble, density, 2);
  for (double& distance : distances) distance = std::sqrt(distance);
  return distances;
}

std::vector<double> sliced_directions(std::size_t dimension, std::size_t count) {
  expects(dimension == 2 || dimension == 3, "directions exist for d = 2, 3");
  expects(count > 0, "a sliced distance needs a direction");
  std::vector<double> directions;
  const double n = static_cast<double>(count);
  for (std::size_t j = 0; j < count; ++j) {
    const double place = static_cast<double>(j) + 0.5;
    if (dimension == 2) {
      directions.insert(directions.end(), {std::cos(pi * place / n), std::sin(pi * place / n)});
      continue;
    }
    const double z = place / n, turn = 2.0 * pi * place / std::numbers::phi;
    const double rho = std::sqrt(1.0 - z * z);
    directions.insert(directions.end(), {rho * std::cos(turn), rho * std::sin(turn), z});
  }
  return directions;
}

std::vector<double> sliced_wasserstein2(const ParticleEnsemble& ensemble, const Density& density,
                                        SlicedOptions options) {
  const std::size_t dimension = ensemble.dimension;
  expects(dimension == density.grid.dimension(), "particles and density live in one space");
  const std::vector<double> directions = sliced_directions(dimension, options.directions);
  std::vector<double> squares(ensemble.replica_count, 0.0), atoms(ensemble.particle_count);
  for (std::size_t j = 0; j < options.directions; ++j) {
    const std::span<const double> direction(&directions[j * dimension], dimension);
    const LineLaw law = projected_law(density, direction, options.resolution);
    for (std::size_t replica = 0; replica < ensemble.replica_count; ++replica) {
      const std::span<const double> positions = ensemble.replica(replica);
      for (std::size_t i = 0; i < atoms.size(); ++i) {
        atoms[i] = 0.0;
        for (std::size_t axis = 0; axis < dimension; ++axis)
          atoms[i] += direction[axis] * positions[i * dimension + axis];
      }
      std::sort(atoms.begin(), atoms.end());
      squares[replica] += transport_cost(law, atoms, 2) / static_cast<double>(options.directions);
    }
  }
  for (double& square : squares) square = std::sqrt(square);
  return squares;
}

double expected_wasserstein1(const Density& density, std::size_t particle_count) {
  expects(!density.grid.periodic, "the expected distance is for the line");
  return expected_transport_cost_1(line_law(density), particle_count);
}

double expected_squared_wasserstein2(const Density& density, std::size_t particle_count) {
  expects(!density.grid.periodic, "the expected distance is for the line");
  return expected_transport_cost_2(line_law(density), particle_count);
}

double expected_squared_sliced_wasserstein2(const Density& density, std::size_t particle_count,
                                            SlicedOptions options) {
  const std::size_t dimension = density.grid.dimension();
  const std::vector<double> directions = sliced_directions(dimension, options.directions);
  double sum = 0.0;
  for (std::size_t j = 0; j < options.directions; ++j)
    sum += expected_transport_cost_2(
        projected_law(density, {&directions[j * dimension], dimension}, options.resolution), particle_count);
  return sum / static_cast<double>(options.directions);
}

}  // namespace rieszflow
