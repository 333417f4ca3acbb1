#include "analysis/histogram.hpp"

#include <algorithm>
#include <cmath>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow {
namespace {

double cell_volume(const Grid& grid, std::size_t cell) {
  return grid.cell_volume() * (grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell]);
}

/// Amounts per cell shared out among the cells of another grid of the same box by overlap, along one axis.
std::vector<double> shared_out(const std::vector<double>& amounts, const std::vector<std::size_t>& shape,
                               std::size_t axis, std::size_t new_cells) {
  std::size_t inner = 1, outer = 1;
  for (std::size_t a = 0; a < axis; ++a) outer *= shape[a];
  for (std::size_t a = axis + 1; a < shape.size(); ++a) inner *= shape[a];
  const std::size_t cells = shape[axis];
  std::vector<double> result(outer * new_cells * inner, 0.0);
  // In units of 1 / (cells new_cells) every face is a whole number: no rounding decides an overlap.
  for (std::size_t i = 0; i < cells; ++i)
    for (std::size_t j = i * new_cells / cells; j < new_cells && j * cells < (i + 1) * new_cells; ++j) {
      const std::size_t begin = std::max(i * new_cells, j * cells),
                        end = std::min((i + 1) * new_cells, (j + 1) * cells);
      if (end <= begin) continue;
      const double share = static_cast<double>(end - begin) / static_cast<double>(new_cells);
      for (std::size_t o = 0; o < outer; ++o)
        for (std::size_t k = 0; k < inner; ++k)
          result[(o * new_cells + j) * inner + k] += share * amounts[(o * cells + i) * inner + k];
    }
  return result;
}

void count(std::span<const double> positions, const Grid& grid, double weight,
           std::vector<double>& averages) {
  const std::size_t dimension = grid.dimension();
  for (std::size_t i = 0; i < positions.size() / dimension; ++i)
    averages[grid.cell_of(positions.subspan(i * dimension, dimension))] += weight;
}

Density per_volume(Grid grid, std::vector<double> masses) {
  Density density{std::move(grid), std::move(masses)};
  for (std::size_t cell = 0; cell < density.averages.size(); ++cell) {
    const double volume = cell_volume(density.grid, cell);
    density.averages[cell] = volume > 0.0 ? density.averages[cell] / volume : 0.0;
  }
  return density;
}

}  // namespace

Density histogram(const ParticleEnsemble& ensemble, const Grid& grid) {
  expects(ensemble.dimension == grid.dimension(), "particles and grid live in one space");
  const std::size_t particles = ensemble.replica_count * ensemble.particle_count;
  expects(particles > 0, "a histogram needs a particle");
  std::vector<double> masses(grid.cell_count(), 0.0);
  count(ensemble.positions, grid, 1.0, masses);
  for (double& value : masses) value /= static_cast<double>(particles);
  return per_volume(grid, std::move(masses));
}

Density rebinned(const Density& density, const std::vector<std::size_t>& cells) {
  const Grid& grid = density.grid;
  expects(cells.size() == grid.dimension(), "one number of cells per axis");
  std::vector<double> masses(density.averages.size()), volumes(masses.size());
  for (std::size_t cell = 0; cell < masses.size(); ++cell) {
    volumes[cell] = cell_volume(grid, cell);
    masses[cell] = density.averages[cell] * volumes[cell];
  }
  std::vector<std::size_t> shape = grid.cells;
  for (std::size_t axis = 0; axis < cells.size(); ++axis) {
    expects(cells[axis] > 0, "a grid has a cell");
    masses = shared_out(masses, shape, axis, cells[axis]);
    volumes = shared_out(volumes, shape, axis, cells[axis]);
    shape[axis] = cells[axis];
  }
  Grid coarse{grid.lower, grid.upper, cells, grid.periodic, {}};
  if (!grid.volume_fractions.empty())
    for (double volume : volumes)
      coarse.volume_fractions.push_back(std::min(1.0, volume / coarse.cell_volume()));
  return per_volume(std::move(coarse), std::move(masses));
}

Density marginal(const Density& density, std::size_t axis) {
  const Grid& grid = density.grid;
  expects(axis < grid.dimension(), "the axis exists");
  std::vector<std::size_t> cells(grid.dimension(), 1);
  cells[axis] = grid.cells[axis];
  const Density collapsed = rebinned(density, cells);
  Density result{{{grid.lower[axis]}, {grid.upper[axis]}, {grid.cells[axis]}, grid.periodic, {}}, {}};
  for (std::size_t cell = 0; cell < collapsed.averages.size(); ++cell)
    result.averages.push_back(collapsed.averages[cell] * cell_volume(collapsed.grid, cell) /
                              result.grid.spacing(0));
  return result;
}

double squared_l2_distance(const Density& a, const Density& b) {
  expects(a.grid.cells == b.grid.cells && a.averages.size() == b.averages.size(),
          "both densities on one grid");
  CompensatedSum sum;
  for (std::size_t cell = 0; cell < a.averages.size(); ++cell) {
    const double difference = a.averages[cell] - b.averages[cell];
    sum.add(difference * difference * cell_volume(a.grid, cell));
  }
  return sum.value();
}

std::vector<double> squared_l2_distances(const ParticleEnsemble& ensemble, const Density& density) {
  expects(ensemble.dimension == density.grid.dimension(), "particles and grid live in one space");
  std::vector<double> result;
  for (std::size_t replica = 0; replica < ensemble.replica_count; ++replica) {
    std::vector<double> masses(density.grid.cell_count(), 0.0);
    count(ensemble.replica(replica), density.grid, 1.0 / static_cast<double>(ensemble.particle_count),
          masses);
    result.push_back(squared_l2_distance(per_volume(density.grid, std::move(masses)), density));
  }
  return result;
}

double expected_squared_l2_distance(const Density& density, std::size_t particle_count) {
  CompensatedSum sum;
  for (std::size_t cell = 0; cell < density.averages.size(); ++cell) {
    const double mass = density.averages[cell] * cell_volume(density.grid, cell);
    sum.add(density.averages[cell] * (1.0 - mass));
  }
  return sum.value() / static_cast<double>(particle_count);
}

std::vector<double> means(const ParticleEnsemble& ensemble, std::size_t axis) {
  std::vector<double> result;
  for (std::size_t replica = 0; replica < ensemble.replica_count; ++replica) {
    const std::span<const double> positions = ensemble.replica(replica);
    CompensatedSum sum;
    for (std::size_t i = axis; i < positions.size(); i += ensemble.dimension) sum.add(positions[i]);
    result.push_back(sum.value() / static_cast<double>(ensemble.particle_count));
  }
  return result;
}

std::vector<double> second_moments(const ParticleEnsemble& ensemble) {
  std::vector<double> result;
  for (std::size_t replica = 0; replica < ensemble.replica_count; ++replica) {
    CompensatedSum sum;
    for (double x : ensemble.replica(replica)) sum.add(x * x);
    result.push_back(sum.value() / static_cast<double>(ensemble.particle_count));
  }
  return result;
}

}  // namespace rieszflow
