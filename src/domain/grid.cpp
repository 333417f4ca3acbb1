#include "domain/grid.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

/// Gauss-Legendre nodes and weights on [-1, 1], eight of the sixteen: the rule is symmetric.
/// Source: Abramowitz and Stegun, table 25.4, n = 16.
constexpr std::array<double, 8> nodes = {0.0950125098376374402, 0.2816035507792589132, 0.4580167776572273863,
                                         0.6178762444026437484, 0.7554044083550030339, 0.8656312023878317439,
                                         0.9445750230732325761, 0.9894009349916499326};
constexpr std::array<double, 8> weights = {
    0.1894506104550684963, 0.1826034150449235889, 0.1691565193950025382, 0.1495959888165767321,
    0.1246289712555338721, 0.0951585116824927848, 0.0622535239386478929, 0.0271524594117540949};

template <class Function>
double integral(double from, double to, const Function& f) {
  const double middle = 0.5 * (from + to);
  const double half = 0.5 * (to - from);
  double sum = 0.0;
  for (std::size_t k = 0; k < nodes.size(); ++k)
    sum += weights[k] * (f(middle - half * nodes[k]) + f(middle + half * nodes[k]));
  return half * sum;
}

/// Area of {x^2 + y^2 <= radius^2} in [x0, x1] x [y0, y1], 0 <= x0 < x1, 0 <= y0 < y1.
/// x = radius sin(angle) makes the integrand smooth up to the pole; no difference of large areas is formed.
double quarter_disc_area(double radius, double x0, double x1, double y0, double y1) {
  const auto crossing = [&](double y) { return std::sqrt(std::max(0.0, (radius - y) * (radius + y))); };
  const double whole_until = y1 < radius ? std::clamp(crossing(y1), x0, x1) : x0;
  const double cut_until = y0 < radius ? std::clamp(crossing(y0), x0, x1) : x0;
  double area = (whole_until - x0) * (y1 - y0);
  if (cut_until > whole_until) {
    const auto angle = [&](double x) { return std::asin(std::min(1.0, x / radius)); };
    area += integral(angle(whole_until), angle(cut_until), [&](double t) {
      const double height = radius * std::cos(t);
      return (height - y0) * height;
    });
  }
  return area;
}

/// Volume of the ball of `radius` about the origin in the cuboid lower..upper of the positive orthant; d = 1,
/// 2, 3.
double orthant_ball_volume(double radius, std::span<const double> lower, std::span<const double> upper) {
  if (lower.size() == 1) return std::max(0.0, std::min(upper[0], radius) - lower[0]);
  if (lower.size() == 2) return quarter_disc_area(radius, lower[0], upper[0], lower[1], upper[1]);
  // Slices of constant z; the area of a slice has half-integer powers where its circle meets an edge or a
  // corner. The map z = a + (b - a) u^2 (3 - 2u) turns those into analytic functions of u.
  std::vector<double> breaks{lower[2], upper[2]};
  for (const double x : {0.0, lower[0], upper[0]})
    for (const double y : {0.0, lower[1], upper[1]}) {
      const double squared_height = radius * radius - x * x - y * y;
      if (squared_height > 0.0) breaks.push_back(std::clamp(std::sqrt(squared_height), lower[2], upper[2]));
    }
  std::sort(breaks.begin(), breaks.end());
  double sum = 0.0;
  for (std::size_t k = 0; k + 1 < breaks.size(); ++k) {
    const double from = breaks[k];
    const double length = breaks[k + 1] - from;
    if (length <= 0.0 || from >= radius) continue;
    sum += integral(0.0, 1.0, [&](double u) {
      const double z = from + length * u * u * (3.0 - 2.0 * u);
      const double slice = std::sqrt(std::max(0.0, (radius - z) * (radius + z)));
      return 6.0 * u * (1.0 - u) * length * quarter_disc_area(slice, lower[0], upper[0], lower[1], upper[1]);
    });
  }
  return sum;
}

/// Volume of the ball about the origin in a cuboid anywhere: mirrored into the positive orthant, split at the
/// planes.
double ball_volume_in(double radius, std::vector<double>& lower, std::vector<double>& upper,
                      std::size_t axis = 0) {
  if (axis == lower.size()) return orthant_ball_volume(radius, lower, upper);
  const double a = lower[axis];
  const double b = upper[axis];
  const auto part = [&](double from, double to) {
    lower[axis] = from;
    upper[axis] = to;
    const double result = ball_volume_in(radius, lower, upper, axis + 1);
    lower[axis] = a;
    upper[axis] = b;
    return result;
  };
  if (a >= 0.0) return part(a, b);
  if (b <= 0.0) return part(-b, -a);
  return part(0.0, -a) + part(0.0, b);
}

/// One fraction per cell. The grid on the bounding box is symmetric about the centre: one orthant is
/// computed, the others are its mirror images, so that the fractions have the symmetry exactly.
std::vector<double> ball_fractions(const Ball& ball, const Grid& grid) {
  const std::size_t dimension = grid.dimension();
  std::vector<double> fractions(grid.cell_count());
  std::vector<std::size_t> index(dimension);
  std::vector<double> lower(dimension);
  std::vector<double> upper(dimension);
  for (std::size_t cell = 0; cell < fractions.size(); ++cell) {
    std::size_t rest = cell;
    for (std::size_t k = dimension; k-- > 0;) {
      index[k] = rest % grid.cells[k];
      rest /= grid.cells[k];
    }
    std::size_t mirror = 0;
    double nearest = 0.0;
    double farthest = 0.0;
    for (std::size_t k = 0; k < dimension; ++k) {
      mirror = mirror * grid.cells[k] + std::min(index[k], grid.cells[k] - 1 - index[k]);
      const double cells = static_cast<double>(grid.cells[k]);
      lower[k] = ball.radius * (2.0 * static_cast<double>(index[k]) / cells - 1.0);
      upper[k] = ball.radius * (2.0 * static_cast<double>(index[k] + 1) / cells - 1.0);
      const double near = std::max({0.0, lower[k], -upper[k]});
      const double far = std::max(std::abs(lower[k]), std::abs(upper[k]));
      nearest += near * near;
      farthest += far * far;
    }
    const double squared_radius = ball.radius * ball.radius;
    if (mirror != cell) {
      fractions[cell] = fractions[mirror];  // the mirror image has every index lower, so it is done
    } else if (farthest <= squared_radius) {
      fractions[cell] = 1.0;
    } else if (nearest < squared_radius) {
      fractions[cell] = std::min(1.0, ball_volume_in(ball.radius, lower, upper) / grid.cell_volume());
    }
  }
  return fractions;
}

}  // namespace

std::size_t Grid::cell_count() const {
  std::size_t count = 1;
  for (const std::size_t n : cells) count *= n;
  return count;
}

double Grid::cell_volume() const {
  double result = 1.0;
  for (std::size_t k = 0; k < dimension(); ++k) result *= spacing(k);
  return result;
}

void Grid::cell_center(std::size_t cell, std::span<double> out) const {
  expects(out.size() == dimension() && cell < cell_count(), "a cell of this grid, a point of its dimension");
  for (std::size_t k = dimension(); k-- > 0;) {
    out[k] = center(k, cell % cells[k]);
    cell /= cells[k];
  }
}

std::size_t Grid::cell_of(std::span<const double> point) const {
  expects(point.size() == dimension(), "a point has the dimension of its grid");
  std::size_t cell = 0;
  for (std::size_t k = 0; k < dimension(); ++k) {
    expects(std::isfinite(point[k]), "a cell is asked for a finite point");
    const double position = std::floor((point[k] - lower[k]) / spacing(k));
    const double last = static_cast<double>(cells[k] - 1);
    cell = cell * cells[k] + static_cast<std::size_t>(std::clamp(position, 0.0, last));
  }
  return cell;
}

Grid grid_on(const Domain& domain, std::vector<std::size_t> cells) {
  expects(cells.size() == dimension(domain), "one number of cells per axis");
  expects(std::all_of(cells.begin(), cells.end(), [](std::size_t n) { return n >= 1; }),
          "at least one cell per axis");
  const Box box = bounding_box(domain);
  Grid grid{box.lower, box.upper, std::move(cells), std::holds_alternative<Torus>(domain), {}};
  if (const auto* ball = std::get_if<Ball>(&domain); ball && grid.dimension() > 1) {
    expects(grid.dimension() <= 3, "grids on balls exist for d <= 3");
    grid.volume_fractions = ball_fractions(*ball, grid);
  }
  return grid;
}

}  // namespace rieszflow
