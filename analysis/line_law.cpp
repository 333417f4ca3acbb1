#include "analysis/line_law.hpp"

#include <algorithm>
#include <array>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>

#include "analysis/binomial.hpp"
#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow {
namespace {

/// |x|^power integrated over a segment of length du on which x goes linearly from a to b.
double segment_cost(double a, double b, double du, int power) {
  if (power == 2) return du * (a * a + a * b + b * b) / 3.0;
  if ((a >= 0.0) == (b >= 0.0)) return du * std::abs(a + b) / 2.0;
  return du * (a * a + b * b) / (2.0 * (std::abs(a) + std::abs(b)));
}

/// Cost of the plan that couples Q(u) with X(u - shift), X(u + 1) = X(u) + period.
double shifted_cost(const LineLaw& law, std::span<const double> atoms, int power, double shift,
                    double period) {
  const double n = static_cast<double>(atoms.size());
  // Atom k (any integer) holds u in [k/n + shift, (k+1)/n + shift).
  long atom = static_cast<long>(std::floor(-shift * n));
  const auto position = [&](long k) {
    const long size = static_cast<long>(atoms.size());
    const long turn = k >= 0 ? k / size : -((size - 1 - k) / size);
    return atoms[static_cast<std::size_t>(k - turn * size)] + static_cast<double>(turn) * period;
  };
  CompensatedSum cost;
  double u = 0.0;
  for (std::size_t cell = 0; cell < law.cell_count(); ++cell) {
    const double begin = law.cumulative[cell], mass = law.cumulative[cell + 1] - begin;
    if (!(mass > 0.0)) continue;
    const double lower = law.edges[cell], width = law.edges[cell + 1] - lower;
    while (u < law.cumulative[cell + 1]) {
      double end = law.cumulative[cell + 1];
      const double atom_end = static_cast<double>(atom + 1) / n + shift;
      const bool atom_ends = atom_end <= end && !(atom_end >= 1.0);
      if (atom_ends) end = std::max(atom_end, u);
      const double x = position(atom);
      const double from = lower + width * (u - begin) / mass, to = lower + width * (end - begin) / mass;
      cost.add(segment_cost(from - x, to - x, end - u, power));
      u = end;
      if (atom_ends) ++atom;
    }
  }
  return cost.value();
}

/// E|B/n - p| for B binomial(n, p): 2 nu/n C(n, nu) p^nu (1-p)^(n-nu+1), nu = floor(np) + 1 (de Moivre).
double mean_absolute_deviation(double n, double p) {
  if (!(p > 0.0 && p < 1.0)) return 0.0;
  const double nu = std::floor(n * p) + 1.0;
  return 2.0 / n *
         std::exp(std::lgamma(n + 1.0) - std::lgamma(nu) - std::lgamma(n - nu + 1.0) + nu * std::log(p) +
                  (n - nu + 1.0) * std::log1p(-p));
}

/// P(U <= t) for U the sum of independent uniforms on [-w_a/2, w_a/2]: the sum over corners of truncated
/// powers, 1/(d! prod w) sum_corners (-1)^|corner| (t + sum w/2 - corner)_+^d.
double uniform_sum_distribution(std::span<const double> widths, double t) {
  double half = 0.0, product = 1.0, factorial = 1.0;
  const std::size_t d = widths.size();
  for (std::size_t a = 0; a < d; ++a) {
    half += widths[a] / 2.0;
    product *= widths[a];
    factorial *= static_cast<double>(a + 1);
  }
  if (t <= -half) return 0.0;
  if (t >= half) return 1.0;
  if (t > 0.0) return 1.0 - uniform_sum_distribution(widths, -t);
  double sum = 0.0;
  for (std::size_t corner = 0; corner < (std::size_t{1} << d); ++corner) {
    double reach = t + half, sign = 1.0;
    for (std::size_t a = 0; a < d; ++a)
      if (corner >> a & 1u) reach -= widths[a], sign = -sign;
    if (reach > 0.0) sum += sign * (d == 1 ? reach : d == 2 ? reach * reach : reach * reach * reach);
  }
  return sum / (factorial * product);
}

void normalise(LineLaw& law) {
  const double total = law.cumulative.back();
  expects(total > 0.0, "a law has positive mass");
  for (double& value : law.cumulative) value /= total;
  law.cumulative.back() = 1.0;
}

double cell_mass(const Density& density, std::size_t cell) {
  const double fraction = density.grid.volume_fractions.empty() ? 1.0 : density.grid.volume_fractions[cell];
  return density.averages[cell] * density.grid.cell_volume() * fraction;
}

}  // namespace

LineLaw line_law(const Density& density) {
  expects(density.grid.dimension() == 1, "a law on a line is one-dimensional");
  LineLaw law;
  CompensatedSum sum;
  law.cumulative.push_back(0.0);
  for (std::size_t cell = 0; cell < density.averages.size(); ++cell) {
    sum.add(cell_mass(density, cell));
    law.cumulative.push_back(std::max(sum.value(), law.cumulative.back()));
  }
  for (std::size_t face = 0; face <= density.grid.cells[0]; ++face)
    law.edges.push_back(density.grid.face(0, face));
  normalise(law);
  return law;
}

LineLaw projected_law(const Density& density, std::span<const double> direction, std::size_t resolution) {
  const Grid& grid = density.grid;
  const std::size_t dimension = grid.dimension();
  expects(dimension == direction.size() && dimension > 1, "a projection needs d >= 2");
  expects(!grid.periodic, "a torus has no projections");
  expects(resolution > 0, "bins per cell width");
  double lower = 0.0, upper = 0.0, smallest = grid.spacing(0), widest = 0.0;
  for (std::size_t axis = 0; axis < dimension; ++axis) {
    const double at_lower = direction[axis] * grid.lower[axis], at_upper = direction[axis] * grid.upper[axis];
    lower += std::min(at_lower, at_upper);
    upper += std::max(at_lower, at_upper);
    smallest = std::min(smallest, grid.spacing(axis));
    widest = std::max(widest, std::abs(direction[axis]) * grid.spacing(axis));
  }
  // A width far below the widest one moves nothing that a bin resolves, and its reciprocal would amplify
  // round-off.
  std::vector<double> widths;
  double support = 0.0;
  for (std::size_t axis = 0; axis < dimension; ++axis) {
    const double width = std::abs(direction[axis]) * grid.spacing(axis);
    if (width > 1e-4 * widest) widths.push_back(width), support += width;
  }
  const auto bins =
      static_cast<std::size_t>(std::ceil((upper - lower) / smallest * static_cast<double>(resolution)));
  const double bin = (upper - lower) / static_cast<double>(bins);
  std::vector<double> masses(bins, 0.0), center(dimension);
  for (std::size_t cell = 0; cell < density.averages.size(); ++cell) {
    const double mass = cell_mass(density, cell);
    if (!(mass > 0.0)) continue;
    grid.cell_center(cell, center);
    double middle = -lower;
    for (std::size_t axis = 0; axis < dimension; ++axis) middle += direction[axis] * center[axis];
    const auto first = static_cast<std::size_t>(std::max(0.0, std::floor((middle - support / 2.0) / bin)));
    double below = 0.0;
    for (std::size_t k = std::min(first, bins - 1); k < bins; ++k) {
      const double edge = k + 1 == bins ? support : static_cast<double>(k + 1) * bin - middle;
      const double above = uniform_sum_distribution(widths, edge);
      masses[k] += mass * (above - below);
      if (above >= 1.0) break;
      below = above;
    }
  }
  LineLaw law;
  law.cumulative.assign(bins + 1, 0.0);
  for (std::size_t k = 0; k < bins; ++k) {
    law.edges.push_back(lower + static_cast<double>(k) * bin);
    law.cumulative[k + 1] = law.cumulative[k] + std::max(0.0, masses[k]);
  }
  law.edges.push_back(upper);
  normalise(law);
  return law;
}

double transport_cost(const LineLaw& law, std::span<const double> sorted_atoms, int power) {
  expects(!sorted_atoms.empty(), "an empirical law needs an atom");
  return shifted_cost(law, sorted_atoms, power, 0.0, 0.0);
}

double circular_transport_cost(const LineLaw& law, std::span<const double> sorted_atoms, int power) {
  expects(!sorted_atoms.empty(), "an empirical law needs an atom");
  const double period = law.edges.back() - law.edges.front();
  const auto cost = [&](double shift) { return shifted_cost(law, sorted_atoms, power, shift, period); };
  // Golden section on a convex function. The best shift lies within one turn; 70 steps leave an interval of
  // 4e-15.
  constexpr double golden = 0.61803398874989484820;
  double from = -1.0, to = 1.0;
  double a = to - golden * (to - from), b = from + golden * (to - from);
  double at_a = cost(a), at_b = cost(b);
  for (int step = 0; step < 70; ++step) {
    if (at_a <= at_b) {
      to = b, b = a, at_b = at_a;
      at_a = cost(a = to - golden * (to - from));
    } else {
      from = a, a = b, at_a = at_b;
      at_b = cost(b = from + golden * (to - from));
    }
  }
  return std::min(at_a, at_b);
}

double expected_transport_cost_1(const LineLaw& law, std::size_t n) {
  expects(n > 0, "an empirical law needs an atom");
  const double count = static_cast<double>(n);
  CompensatedSum sum;
  for (std::size_t cell = 0; cell < law.cell_count(); ++cell) {
    const double width = law.edges[cell + 1] - law.edges[cell];
    const double begin = law.cumulative[cell], end = law.cumulative[cell + 1];
    if (!(end > begin)) {
      sum.add(width * mean_absolute_deviation(count, begin));
      continue;
    }
    // The deviation is smooth in p between multiples of 1/n.
    for (double from = begin; from < end;) {
      const double to = std::min(end, (std::floor(from * count * (1.0 + 1e-15)) + 1.0) / count);
      const double middle = 0.5 * (from + to);
      if (!(to > from)) break;
      const double nu = std::floor(count * middle) + 1.0;
      const auto deviation = [&](double p) {
        return p > 0.0 && p < 1.0
                   ? 2.0 / count *
                         std::exp(std::lgamma(count + 1.0) - std::lgamma(nu) - std::lgamma(count - nu + 1.0) +
                                  nu * std::log(p) + (count - nu + 1.0) * std::log1p(-p))
                   : 0.0;
      };
      sum.add(width / (end - begin) *
              boost::math::quadrature::gauss<double, 10>::integrate(deviation, from, to));
      from = to;
    }
  }
  return sum.value();
}

double expected_transport_cost_2(const LineLaw& law, std::size_t n) {
  expects(n > 0, "an empirical law needs an atom");
  const double count = static_cast<double>(n);
  const std::size_t cells = law.cell_count();
  // Measured from the middle of the line: fewer digits cancel.
  const double origin = 0.5 * (law.edges.front() + law.edges.back());
  double mean = 0.0, second = 0.0;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const double mass = law.cumulative[cell + 1] - law.cumulative[cell];
    const double a = law.edges[cell] - origin, b = law.edges[cell + 1] - origin;
    mean += mass * (a + b) / 2.0;
    second += mass * (a * a + a * b + b * b) / 3.0;
  }
  // L(k/n) for k = 0..n.
  std::vector<double> lorenz(n + 1, 0.0);
  double whole = 0.0;  // L at the lower edge of the cell
  std::size_t k = 1;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const double begin = law.cumulative[cell], mass = law.cumulative[cell + 1] - begin;
    const double a = law.edges[cell] - origin, width = law.edges[cell + 1] - law.edges[cell];
    if (!(mass > 0.0)) continue;
    for (; k <= n && static_cast<double>(k) / count <= law.cumulative[cell + 1]; ++k) {
      const double du = static_cast<double>(k) / count - begin;
      lorenz[k] = whole + du * (a + 0.5 * width * du / mass);
    }
    whole += mass * (a + 0.5 * width);
  }
  for (; k <= n; ++k) lorenz[k] = whole;
  const auto mean_lorenz = [&](double p) {
    return binomial_mean(n, p, [&](std::size_t j) { return lorenz[j]; });
  };

  CompensatedSum integral;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const double width = law.edges[cell + 1] - law.edges[cell];
    const double begin = law.cumulative[cell], mass = law.cumulative[cell + 1] - begin;
    if (!(mass > 0.0)) {
      integral.add(width * mean_lorenz(begin));
      continue;
    }
    // E L(B/n) varies over the spread of B/n.
    for (double from = begin; from < law.cumulative[cell + 1];) {
      const double scale = std::sqrt((from * (1.0 - from) + 1.0 / count) / count);
      double to = from + scale;
      if (to > law.cumulative[cell + 1] - 0.1 * scale) to = law.cumulative[cell + 1];
      integral.add(width / mass *
                   boost::math::quadrature::gauss<double, 10>::integrate(mean_lorenz, from, to));
      from = to;
    }
  }
  const double upper = law.edges.back() - origin;
  return 2.0 * second - 2.0 * (upper * mean - integral.value());
}

}  // namespace rieszflow
