#include "solvers/pde/upwind.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/compensated_sum.hpp"
#include "solvers/pde/apertures.hpp"

namespace rieszflow::pde {
namespace {

/// Generalised minmod of the three slopes, theta = 2: zero at extrema, at most twice a one-sided difference.
double limited_slope(double left, double middle, double right) {
  const double a = 2.0 * (middle - left), b = 0.5 * (right - left), c = 2.0 * (right - middle);
  if (a > 0.0 && b > 0.0 && c > 0.0) return std::min({a, b, c});
  if (a < 0.0 && b < 0.0 && c < 0.0) return std::max({a, b, c});
  return 0.0;
}

}  // namespace

SecondOrderUpwind::SecondOrderUpwind(const Grid& grid)
    : fractions_(grid.volume_fractions),
      periodic_(grid.periodic),
      cell_volume_(grid.cell_volume()),
      outflow_(grid.cell_count()) {
  std::size_t inner = 1;
  for (std::size_t axis = grid.dimension(); axis-- > 0;) {
    const std::size_t count = grid.cells[axis];
    axes_.push_back({count, inner, grid.cell_count() / (inner * count), grid.spacing(axis), {}});
    if (!fractions_.empty()) axes_.back().apertures = face_apertures(grid, axis);
    inner *= count;
  }
}

double SecondOrderUpwind::rate_of_change(std::span<const double> potential, std::span<const double> averages,
                                         std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  CompensatedSum dissipation;
  for (const Axis& axis : axes_) {
    const std::size_t stride = axis.inner, count = axis.count;
    for (std::size_t line = 0; line < axis.inner * axis.outer; ++line) {
      const std::size_t first = line / stride * count * stride + line % stride;
      const auto cell = [&](std::size_t i) { return first + i % count * stride; };
      const auto open = [&](std::size_t i) { return axis.apertures.empty() ? 1.0 : axis.apertures[cell(i)]; };
      const auto slope = [&](std::size_t i) {  // 0 beside a wall
        if (!periodic_ && (i == 0 || i + 1 == count || open(i) == 0.0 || open(i - 1) == 0.0)) return 0.0;
        return limited_slope(averages[cell(i + count - 1)], averages[cell(i)], averages[cell(i + 1)]);
      };
      const std::size_t faces = periodic_ ? (count > 1 ? count : 0) : count - 1;
      double line_sum = 0.0, slope_here = faces > 0 ? slope(0) : 0.0;
      for (std::size_t i = 0; i < faces; ++i) {
        const std::size_t below = cell(i), above = cell(i + 1);
        const double slope_above = slope((i + 1) % count);
        const double velocity = (potential[below] - potential[above]) / axis.spacing;
        const double carried =
            velocity > 0.0 ? averages[below] + 0.5 * slope_here : averages[above] - 0.5 * slope_above;
        slope_here = slope_above;
        const double aperture = open(i);
        if (aperture == 0.0) continue;
        const double flow = aperture * velocity * carried / axis.spacing;
        out[below] -= fractions_.empty() ? flow : flow / fractions_[below];
        out[above] += fractions_.empty() ? flow : flow / fractions_[above];
        line_sum += flow * velocity * axis.spacing;
      }
      dissipation.add(line_sum);
    }
  }
  return dissipation.value() * cell_volume_;
}

double SecondOrderUpwind::stable_timestep(std::span<const double> potential) const {
  // A face carries at most twice the average of its upwind cell, rho + slope/2 <= 2 rho; both faces of an
  // axis together carry rho+ + rho- = 2 rho when both velocities are equal: the larger velocity counts twice.
  std::fill(outflow_.begin(), outflow_.end(), 0.0);
  for (const Axis& axis : axes_) {
    for (std::size_t line = 0; line < axis.inner * axis.outer; ++line) {
      const std::size_t first = line / axis.inner * axis.count * axis.inner + line % axis.inner;
      const std::size_t faces = periodic_ ? (axis.count > 1 ? axis.count : 0) : axis.count - 1;
      double before = 0.0;
      if (periodic_ && faces > 0) {
        const std::size_t last = first + (axis.count - 1) * axis.inner;
        before = std::max(0.0, potential[first] - potential[last]);
      }
      for (std::size_t i = 0; i < axis.count; ++i) {
        const std::size_t cell = first + i * axis.inner, next = first + (i + 1) % axis.count * axis.inner;
        const double aperture = axis.apertures.empty() ? 1.0 : axis.apertures[cell];
        const double rise = i < faces ? aperture * (potential[next] - potential[cell]) : 0.0;
        // before: speed out through the lower face; -rise: through the upper one.
        outflow_[cell] += 2.0 * std::max(before, std::max(0.0, -rise)) / (axis.spacing * axis.spacing);
        before = std::max(0.0, rise);
      }
    }
  }
  double fastest = 0.0;
  for (std::size_t i = 0; i < outflow_.size(); ++i) {
    const double fraction = fractions_.empty() ? 1.0 : fractions_[i];
    if (fraction > 0.0) fastest = std::max(fastest, outflow_[i] / fraction);
  }
  return fastest > 0.0 ? 1.0 / fastest : std::numeric_limits<double>::infinity();
}

}  // namespace rieszflow::pde
