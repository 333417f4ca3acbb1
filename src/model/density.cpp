#include "model/density.hpp"

#include "core/compensated_sum.hpp"

namespace rieszflow {
namespace {

/// integral of f over the piecewise constant density, where f(cell) is the mean of f over the cell.
template <class Mean>
double integral(const Density& density, const Mean& cell_mean) {
  const Grid& grid = density.grid;
  const double volume = grid.cell_volume();
  CompensatedSum sum;
  for (std::size_t cell = 0; cell < density.averages.size(); ++cell) {
    const double fraction = grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell];
    sum.add(density.averages[cell] * fraction * volume * cell_mean(cell));
  }
  return sum.value();
}

}  // namespace

double mass(const Density& density) {
  return integral(density, [](std::size_t) { return 1.0; });
}

std::vector<double> mean(const Density& density) {
  const std::size_t dimension = density.grid.dimension();
  std::vector<double> result(dimension);
  std::vector<double> center(dimension);
  for (std::size_t axis = 0; axis < dimension; ++axis)
    result[axis] = integral(density, [&](std::size_t cell) {
      density.grid.cell_center(cell, center);
      return center[axis];
    });
  return result;
}

double second_moment(const Density& density) {
  const std::size_t dimension = density.grid.dimension();
  std::vector<double> center(dimension);
  double within_cell = 0.0;
  for (std::size_t axis = 0; axis < dimension; ++axis)
    within_cell += density.grid.spacing(axis) * density.grid.spacing(axis) / 12.0;
  return integral(density, [&](std::size_t cell) {
    density.grid.cell_center(cell, center);
    double squared = within_cell;
    for (const double x : center) squared += x * x;
    return squared;
  });
}

}  // namespace rieszflow
