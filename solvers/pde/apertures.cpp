#include "solvers/pde/apertures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/expects.hpp"
#include "model/quadrature.hpp"

namespace rieszflow::pde {
namespace {

/// Length of [low, high] inside [-half, half].
double chord(double low, double high, double half) {
  return std::max(0.0, std::min(high, half) - std::max(low, -half));
}

/// Area of [x0, x1] x [y0, y1] inside the disc of this radius around the origin: chords at y = radius
/// sin(angle), where the integrand is smooth up to the poles.
double area_in_disc(double x0, double x1, double y0, double y1, double radius, const QuadratureRule& rule) {
  std::array<double, 8> breaks{y0, y1};
  std::size_t count = 2;
  for (const double x : {x0, x1}) {
    if (std::abs(x) < radius) {
      const double height = std::sqrt((radius - x) * (radius + x));
      breaks[count++] = height;
      breaks[count++] = -height;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    breaks[i] = std::asin(std::clamp(std::clamp(breaks[i], y0, y1) / radius, -1.0, 1.0));
  }
  std::sort(breaks.begin(), breaks.begin() + count);
  double area = 0.0;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const double width = breaks[i + 1] - breaks[i];
    if (width <= 0.0) continue;
    for (std::size_t q = 0; q < rule.nodes.size(); ++q) {
      const double half = radius * std::cos(breaks[i] + width * rule.nodes[q]);
      area += width * rule.weights[q] * half * chord(x0, x1, half);
    }
  }
  return area;
}

}  // namespace

std::vector<double> face_apertures(const Grid& grid, std::size_t axis) {
  const std::size_t dimension = grid.dimension();
  expects(grid.volume_fractions.size() == grid.cell_count() && (dimension == 2 || dimension == 3),
          "apertures belong to grids on discs and balls");
  const QuadratureRule rule = gauss_legendre(12);
  const double radius = 0.5 * (grid.upper[0] - grid.lower[0]);
  std::vector<double> apertures(grid.cell_count(), 0.0);
  std::size_t stride = 1;
  for (std::size_t k = axis + 1; k < dimension; ++k) stride *= grid.cells[k];
  std::array<std::size_t, 3> index{};
  for (std::size_t cell = 0; cell < apertures.size(); ++cell) {
    std::size_t rest = cell;
    for (std::size_t k = dimension; k-- > 0; rest /= grid.cells[k]) index[k] = rest % grid.cells[k];
    if (index[axis] + 1 == grid.cells[axis]) continue;
    if (grid.volume_fractions[cell] == 0.0 || grid.volume_fractions[cell + stride] == 0.0) continue;
    const auto from_centre = [&](std::size_t k, std::size_t face) {
      return grid.face(k, face) - 0.5 * (grid.lower[k] + grid.upper[k]);
    };
    const double height = from_centre(axis, index[axis] + 1);
    const double squared = (radius - height) * (radius + height);
    if (squared <= 0.0) continue;
    std::array<double, 2> low{}, high{};
    std::size_t other = 0;
    double area = 1.0;
    for (std::size_t k = 0; k < dimension; ++k) {
      if (k == axis) continue;
      low[other] = from_centre(k, index[k]);
      high[other] = from_centre(k, index[k] + 1);
      area *= high[other] - low[other];
      ++other;
    }
    const double slice = std::sqrt(squared);
    const double open = dimension == 2 ? chord(low[0], high[0], slice)
                                       : area_in_disc(low[0], high[0], low[1], high[1], slice, rule);
    apertures[cell] = std::clamp(open / area, 0.0, 1.0);
  }
  return apertures;
}

}  // namespace rieszflow::pde
