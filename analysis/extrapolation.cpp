#include "analysis/extrapolation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double lowest_order = 0.05, highest_order = 20.0;  ///< beyond them nothing is called an order
constexpr double slowest_ratio = 0.9;                        ///< of differences that still shrink

/// The order of value = limit + c scale^p through three values, finest first; NaN where there is none.
double order_of(const RefinedValue* f) {
  const double ratio = (f[2].value - f[1].value) / (f[1].value - f[0].value);
  const auto excess = [&](double p) {  // grows with p
    return (std::pow(f[2].scale / f[1].scale, p) - 1.0) / (1.0 - std::pow(f[0].scale / f[1].scale, p)) -
           ratio;
  };
  double low = lowest_order, high = highest_order;
  if (!(excess(low) < 0.0 && excess(high) > 0.0)) return not_a_number;
  for (int k = 0; k < 100; ++k) {
    const double middle = 0.5 * (low + high);
    (excess(middle) < 0.0 ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

/// From the two finest values.
double limit_of(const RefinedValue* f, double order) {
  return f[0].value + (f[0].value - f[1].value) / (std::pow(f[1].scale / f[0].scale, order) - 1.0);
}

}  // namespace

Extrapolation extrapolated(std::span<const RefinedValue> values, std::optional<double> order) {
  expects(values.size() >= 3, "three scales");
  expects(!order || *order > 0.0, "a positive order");
  std::vector<RefinedValue> f(values.begin(), values.end());
  std::sort(f.begin(), f.end(), [](const auto& a, const auto& b) { return a.scale < b.scale; });
  double largest = 0.0;
  for (std::size_t k = 0; k < f.size(); ++k) {
    expects(f[k].scale > 0.0 && std::isfinite(f[k].value), "positive scales and finite values");
    expects(k == 0 || f[k].scale > f[k - 1].scale, "different scales");
    largest = std::max(largest, std::abs(f[k].value));
  }
  const double last = f[0].value - f[1].value, before = f[1].value - f[2].value;
  const double round_off = 64.0 * std::numeric_limits<double>::epsilon() * largest;
  Extrapolation result{.order = not_a_number, .limit = f[0].value};
  const auto bars = [&](Extrapolation::Kind kind, double error) {
    result.kind = kind;
    result.limit_error = result.finest_error = error;
    return result;
  };
  if (std::abs(last) <= round_off) return bars(Extrapolation::Kind::RoundOff, round_off);
  if (last * before < 0.0 && std::abs(last) < std::abs(before)) {
    return bars(Extrapolation::Kind::Oscillating, std::abs(before));
  }
  result.order = order_of(f.data());
  if (std::isnan(result.order)) return bars(Extrapolation::Kind::Diverging, infinity);
  result.limit = limit_of(f.data(), order.value_or(result.order));
  const double correction = std::abs(result.limit - f[0].value);
  const double coarser_order = order ? *order : f.size() > 3 ? order_of(f.data() + 1) : not_a_number;
  // A coarser triple without an order leaves the whole correction in doubt.
  result.limit_error = std::isnan(coarser_order)
                           ? correction
                           : 2.0 * std::abs(result.limit - limit_of(f.data() + 1, coarser_order));
  result.limit_error = std::max(result.limit_error, round_off);
  result.finest_error = correction + result.limit_error;
  return result;
}

Accelerated accelerated(std::span<const double> values) {
  expects(!values.empty(), "at least one value");
  std::vector<double> f(values.begin(), values.end());
  Accelerated result{f.back(), f.size() > 1 ? std::abs(f.back() - f[f.size() - 2]) : not_a_number};
  while (f.size() >= 3) {
    std::vector<double> next;
    for (std::size_t k = 0; k + 2 < f.size(); ++k) {
      const double last = f[k + 2] - f[k + 1], ratio = last / (f[k + 1] - f[k]);
      if (!(ratio > 0.0 && ratio < slowest_ratio)) return result;
      next.push_back(f[k + 2] + last * ratio / (1.0 - ratio));
    }
    result = {next.back(), std::abs(next.back() - result.limit)};
    f = std::move(next);
  }
  return result;
}

Density coarsened(const Density& density, std::size_t factor) {
  const Grid& fine = density.grid;
  const std::size_t d = fine.dimension();
  expects(density.averages.size() == fine.cell_count() && factor >= 1, "one value per cell");
  Density result{fine, {}};
  for (std::size_t axis = 0; axis < d; ++axis) {
    expects(fine.cells[axis] % factor == 0, "counts of cells that are multiples of the factor");
    result.grid.cells[axis] /= factor;
  }
  const std::size_t count = result.grid.cell_count();
  std::vector<double> mass(count, 0.0), volume(count, 0.0);  // in cells of the fine grid
  for (std::size_t cell = 0; cell < fine.cell_count(); ++cell) {
    std::size_t rest = cell, block = 0, stride = 1;
    for (std::size_t axis = d; axis-- > 0; rest /= fine.cells[axis]) {
      block += stride * (rest % fine.cells[axis] / factor);
      stride *= result.grid.cells[axis];
    }
    const double fraction = fine.volume_fractions.empty() ? 1.0 : fine.volume_fractions[cell];
    mass[block] += density.averages[cell] * fraction;
    volume[block] += fraction;
  }
  result.averages.resize(count);
  const double per_block = std::pow(static_cast<double>(factor), static_cast<double>(d));
  for (std::size_t block = 0; block < count; ++block) {
    result.averages[block] = volume[block] > 0.0 ? mass[block] / volume[block] : 0.0;
    if (!fine.volume_fractions.empty()) result.grid.volume_fractions[block] = volume[block] / per_block;
  }
  if (!fine.volume_fractions.empty()) result.grid.volume_fractions.resize(count);
  return result;
}

double l1_difference(const Density& a, const Density& b) {
  if (a.averages.size() < b.averages.size()) return l1_difference(b, a);
  expects(a.grid.dimension() == b.grid.dimension() && b.grid.cells[0] > 0, "two densities of one domain");
  const Density coarse = coarsened(a, a.grid.cells[0] / b.grid.cells[0]);
  expects(coarse.grid.cells == b.grid.cells, "grids of which one refines the other");
  CompensatedSum sum;
  for (std::size_t cell = 0; cell < b.averages.size(); ++cell) {
    const double fraction = b.grid.volume_fractions.empty() ? 1.0 : b.grid.volume_fractions[cell];
    sum.add(std::abs(coarse.averages[cell] - b.averages[cell]) * fraction);
  }
  return sum.value() * b.grid.cell_volume();
}

}  // namespace rieszflow
