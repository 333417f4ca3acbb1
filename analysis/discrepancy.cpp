#include "analysis/discrepancy.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <numbers>
#include <span>

#include "analysis/line_law.hpp"
#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow {
namespace {

/// One axis of the Gaussian kernel, periodised with `period` unless that is 0.
struct AxisKernel {
  double length = 1.0;
  double period = 0.0;

  /// exp(-40) is 4e-18: farther images do not reach a double.
  long images() const {
    return period > 0.0 ? static_cast<long>(std::ceil(std::sqrt(80.0) * length / period)) + 1 : 0;
  }
  template <class Function>
  double periodised(double distance, const Function& f) const {
    if (period > 0.0) distance -= period * std::round(distance / period);
    double sum = f(distance);
    for (long image = 1, last = images(); image <= last; ++image)
      sum += f(distance + period * static_cast<double>(image)) +
             f(distance - period * static_cast<double>(image));
    return sum;
  }
  double value(double distance) const {
    return periodised(distance, [this](double r) { return std::exp(-0.5 * r * r / (length * length)); });
  }
  /// Mean over a cell of width h whose centre is `distance` away.
  double cell_mean(double distance, double h) const {
    return periodised(distance, [&](double r) {
      const double scale = 1.0 / (std::numbers::sqrt2 * length);
      const double a = (std::abs(r) - h / 2.0) * scale, b = (std::abs(r) + h / 2.0) * scale;
      // erfc keeps the digits of the difference far out.
      const double difference = a > 0.5 ? std::erfc(a) - std::erfc(b) : std::erf(b) - std::erf(a);
      return difference / (h * scale) * std::sqrt(std::numbers::pi) / 2.0;
    });
  }
  /// Mean over two cells of width h, `offset` apart: (1/h^2) integral_{-h}^{h} (h - |t|) k(offset + t) dt.
  double cell_cell_mean(double offset, double h) const {
    return periodised(offset, [&](double r) {
      const auto pieces = static_cast<long>(std::ceil(h / length));
      const double piece = h / static_cast<double>(pieces);
      double sum = 0.0;
      for (long k = 0; k < pieces; ++k)
        sum += boost::math::quadrature::gauss<double, 15>::integrate(
            [&](double t) {
              return (h - t) * (std::exp(-0.5 * (r + t) * (r + t) / (length * length)) +
                                std::exp(-0.5 * (r - t) * (r - t) / (length * length)));
            },
            static_cast<double>(k) * piece, static_cast<double>(k + 1) * piece);
      return sum / (h * h);
    });
  }
};

AxisKernel axis_kernel(const GaussianKernel& kernel, const Grid& grid, std::size_t axis) {
  return {kernel.length, grid.periodic ? grid.upper[axis] - grid.lower[axis] : 0.0};
}

/// double-integral k rho rho: the kernel's cell-cell means applied axis by axis.
double gaussian_self_term(const GaussianKernel& kernel, const Grid& grid, const std::vector<double>& masses) {
  std::vector<double> field = masses, next(masses.size());
  std::size_t stride = masses.size();
  for (std::size_t axis = 0; axis < grid.dimension(); ++axis) {
    const std::size_t cells = grid.cells[axis];
    stride /= cells;
    const double h = grid.spacing(axis);
    const AxisKernel along = axis_kernel(kernel, grid, axis);
    std::vector<double> weight(cells);
    std::size_t reach = 0;
    for (std::size_t k = 0; k < cells; ++k) {
      weight[k] = along.cell_cell_mean(static_cast<double>(k) * h, h);
      if (weight[k] > 1e-18 * weight[0]) reach = k;
    }
    std::fill(next.begin(), next.end(), 0.0);
    for (std::size_t outer = 0; outer < masses.size(); outer += cells * stride)
      for (std::size_t i = 0; i < cells; ++i) {
        const std::size_t last = std::min(cells - 1, i + reach);
        for (std::size_t j = i > reach ? i - reach : 0; j <= last; ++j) {
          const double w = weight[i > j ? i - j : j - i];
          double* to = &next[outer + i * stride];
          const double* from = &field[outer + j * stride];
          for (std::size_t inner = 0; inner < stride; ++inner) to[inner] += w * from[inner];
        }
      }
    field.swap(next);
  }
  CompensatedSum sum;
  for (std::size_t cell = 0; cell < masses.size(); ++cell) sum.add(masses[cell] * field[cell]);
  return sum.value();
}

}  // namespace

MeanDiscrepancy::MeanDiscrepancy(Density density, DiscrepancyKernel kernel)
    : density_(std::move(density)), kernel_(kernel) {
  const Grid& grid = density_.grid;
  CompensatedSum total;
  for (std::size_t cell = 0; cell < density_.averages.size(); ++cell) {
    masses_.push_back(density_.averages[cell] *
                      (grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell]));
    total.add(masses_.back());
  }
  expects(total.value() > 0.0, "a law has positive mass");
  for (double& mass : masses_) mass /= total.value();

  if (const GaussianKernel* gauss = std::get_if<GaussianKernel>(&kernel_)) {
    expects(gauss->length > 0.0, "a bandwidth is positive");
    diagonal_ = 1.0;
    for (std::size_t axis = 0; axis < grid.dimension(); ++axis)
      diagonal_ *= axis_kernel(*gauss, grid, axis).value(0.0);
    self_ = gaussian_self_term(*gauss, grid, masses_);
    return;
  }
  expects(grid.dimension() == 1 && !grid.periodic, "the energy kernel is for d = 1, not periodic");
  // E|X - X'| = 2 integral F (1 - F); F is linear on each cell.
  const LineLaw law = line_law(density_);
  CompensatedSum sum;
  for (std::size_t cell = 0; cell < law.cell_count(); ++cell) {
    const double a = law.cumulative[cell], b = law.cumulative[cell + 1];
    sum.add((law.edges[cell + 1] - law.edges[cell]) * ((a + b) / 2.0 - (a * a + a * b + b * b) / 3.0));
  }
  self_ = -2.0 * sum.value();
}

double MeanDiscrepancy::expected_biased(std::size_t particle_count) const {
  return (diagonal_ - self_) / static_cast<double>(particle_count);
}

std::vector<SquaredDiscrepancy> MeanDiscrepancy::operator()(const ParticleEnsemble& ensemble) const {
  expects(ensemble.dimension == density_.grid.dimension(), "particles and density live in one space");
  expects(ensemble.particle_count > 0, "an empirical law needs an atom");
  std::vector<SquaredDiscrepancy> result(ensemble.replica_count);
  for (std::size_t replica = 0; replica < ensemble.replica_count; ++replica)
    result[replica] = std::holds_alternative<GaussianKernel>(kernel_) ? gaussian(ensemble.replica(replica))
                                                                      : energy(ensemble.replica(replica));
  return result;
}

SquaredDiscrepancy MeanDiscrepancy::gaussian(std::span<const double> positions) const {
  const GaussianKernel& kernel = std::get<GaussianKernel>(kernel_);
  const Grid& grid = density_.grid;
  const std::size_t dimension = grid.dimension(), particles = positions.size() / dimension;
  const double n = static_cast<double>(particles);

  CompensatedSum pairs;  // i < j
  for (std::size_t i = 0; i < particles; ++i) {
    double row = 0.0;
    for (std::size_t j = i + 1; j < particles; ++j) {
      if (grid.periodic) {
        double product = 1.0;
        for (std::size_t axis = 0; axis < dimension; ++axis)
          product *= axis_kernel(kernel, grid, axis)
                         .value(positions[i * dimension + axis] - positions[j * dimension + axis]);
        row += product;
        continue;
      }
      double squared = 0.0;
      for (std::size_t axis = 0; axis < dimension; ++axis) {
        const double gap = positions[i * dimension + axis] - positions[j * dimension + axis];
        squared += gap * gap;
      }
      row += std::exp(-0.5 * squared / (kernel.length * kernel.length));
    }
    pairs.add(row);
  }

  CompensatedSum cross;
  std::vector<std::vector<double>> means(dimension);
  std::vector<double> field;
  for (std::size_t axis = 0; axis < dimension; ++axis) means[axis].resize(grid.cells[axis]);
  for (std::size_t i = 0; i < particles; ++i) {
    for (std::size_t axis = 0; axis < dimension; ++axis) {
      const AxisKernel along = axis_kernel(kernel, grid, axis);
      for (std::size_t index = 0; index < grid.cells[axis]; ++index)
        means[axis][index] =
            along.cell_mean(positions[i * dimension + axis] - grid.center(axis, index), grid.spacing(axis));
    }
    // Contract the last axis first: masses . means, one axis after the other.
    const std::vector<double>* from = &masses_;
    std::vector<double> reduced;
    for (std::size_t axis = dimension; axis-- > 0;) {
      const std::size_t cells = grid.cells[axis], rows = from->size() / cells;
      reduced.assign(rows, 0.0);
      for (std::size_t row = 0; row < rows; ++row) {
        double sum = 0.0;
        for (std::size_t index = 0; index < cells; ++index)
          sum += (*from)[row * cells + index] * means[axis][index];
        reduced[row] = sum;
      }
      field.swap(reduced);
      from = &field;
    }
    cross.add(field[0]);
  }
  const double common = self_ - 2.0 * cross.value() / n;
  return {common + (2.0 * pairs.value() + n * diagonal_) / (n * n),
          particles > 1 ? common + 2.0 * pairs.value() / (n * (n - 1.0)) : common};
}

SquaredDiscrepancy MeanDiscrepancy::energy(std::span<const double> positions) const {
  const LineLaw law = line_law(density_);
  std::vector<double> atoms(positions.begin(), positions.end());
  std::sort(atoms.begin(), atoms.end());
  const double n = static_cast<double>(atoms.size());
  // 2 integral (F_N - F)^2: F_N constant, F linear between merged breakpoints; beyond the grid F is 0 or 1.
  std::vector<double> breaks(atoms);
  breaks.insert(breaks.end(), law.edges.begin(), law.edges.end());
  std::sort(breaks.begin(), breaks.end());
  CompensatedSum sum;
  std::size_t cell = 0, below = 0;
  for (std::size_t k = 0; k + 1 < breaks.size(); ++k) {
    const double from = breaks[k], to = breaks[k + 1];
    if (!(to > from)) continue;
    while (below < atoms.size() && atoms[below] <= from) ++below;
    while (cell + 1 < law.cell_count() && law.edges[cell + 1] <= from) ++cell;
    const auto distribution = [&](double x) {
      if (x <= law.edges.front()) return 0.0;
      if (x >= law.edges.back()) return 1.0;
      const double fraction = (x - law.edges[cell]) / (law.edges[cell + 1] - law.edges[cell]);
      return law.cumulative[cell] + fraction * (law.cumulative[cell + 1] - law.cumulative[cell]);
    };
    const double step = static_cast<double>(below) / n;
    const double a = step - distribution(from), b = step - distribution(to);
    sum.add((to - from) * (a * a + a * b + b * b) / 3.0);
  }
  // sum_{i,j} |x_i - x_j| = 2 sum_i (2i + 1 - n) x_(i).
  CompensatedSum distances;
  for (std::size_t i = 0; i < atoms.size(); ++i)
    distances.add(2.0 * (2.0 * static_cast<double>(i) + 1.0 - n) * atoms[i]);
  const double biased = 2.0 * sum.value();
  return {biased, atoms.size() > 1 ? biased - distances.value() / (n * n * (n - 1.0)) : biased};
}

double typical_distance(const Density& density) {
  double variance = second_moment(density);
  for (double coordinate : mean(density)) variance -= coordinate * coordinate;
  return std::sqrt(2.0 * variance);
}

}  // namespace rieszflow
