#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "model/density.hpp"

namespace rieszflow {

/// A probability law on a line with a piecewise constant density: its distribution function is linear between
/// edges. Everything one-dimensional about a grid density (quantiles, transport, samples, projections) is
/// exact for it.
struct LineLaw {
  std::vector<double> edges;       ///< (cell + 1), increasing
  std::vector<double> cumulative;  ///< (cell + 1), from 0 to 1, non-decreasing

  std::size_t cell_count() const { return edges.size() - 1; }
};

/// The law of a one-dimensional grid density, its mass scaled to 1.
LineLaw line_law(const Density& density);

/// The law of direction . x for x of law `density`, |direction| = 1, d = 2 or 3, not periodic: masses of bins
/// of `resolution` bins per smallest cell width are exact (a cell projects to the convolution of d uniform
/// laws); inside a bin they are spread evenly. So no transport distance is off by more than a bin width.
LineLaw projected_law(const Density& density, std::span<const double> direction, std::size_t resolution);

/// W_p^p between n equal atoms and the law, p = 1 or 2: integral_0^1 |X(u) - Q(u)|^p du with both quantile
/// functions; X is constant and Q linear between merged breakpoints, so the integral is exact to round-off.
/// sorted_atoms: increasing.
double transport_cost(const LineLaw& law, std::span<const double> sorted_atoms, int power);

/// The same on the circle of length law.edges.back() - law.edges.front(): the least cost over all shifts of
/// one quantile function against the other, which is convex in the shift. Atoms in [front, back). Source: J.
/// Delon, J. Salomon, A. Sobolevskii, SIAM J. Appl. Math. 70 (2010) 2239-2258.
double circular_transport_cost(const LineLaw& law, std::span<const double> sorted_atoms, int power);

/// E W_1 of n independent samples of the law against the law: integral E|B/n - F(x)| dx with B binomial(n,
/// F(x)), its mean absolute deviation in de Moivre's closed form.
double expected_transport_cost_1(const LineLaw& law, std::size_t n);

/// E W_2^2 of n independent samples of the law against the law. With Q the quantile function and
/// L(p) = integral_0^p Q, E W_2^2 = 2 integral x^2 rho - 2 (upper edge . mean - integral E L(B/n) dx), B as
/// above.
double expected_transport_cost_2(const LineLaw& law, std::size_t n);

}  // namespace rieszflow
