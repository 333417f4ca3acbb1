#include "analysis/discrepancy.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow {
namespace {

/// exp(-reach^2 / 2) = 4e-17: farther than `reach` lengths (or 1 / lengths in frequency) nothing is left in a
/// double.
constexpr double reach = 8.7;

/// target[o, m] += outer[o] last[m], complex.
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void add_outer_product(
    const double* outer_real, const double* outer_imaginary, std::size_t outer_count, const double* last_real,
    const double* last_imaginary, std::size_t last_count, double* real, double* imaginary) {
  for (std::size_t o = 0; o < outer_count; ++o) {
    const double a = outer_real[o], b = outer_imaginary[o];
    double* to_real = real + o * last_count;
    double* to_imaginary = imaginary + o * last_count;
    for (std::size_t m = 0; m < last_count; ++m) {
      to_real[m] += a * last_real[m] - b * last_imaginary[m];
      to_imaginary[m] += a * last_imaginary[m] + b * last_real[m];
    }
  }
}

/// Along one axis of (outer, cells, inner): cells to modes lowest..highest, each cell with the mean of exp(i
/// omega x) over it.
std::vector<std::complex<double>> axis_transform(const std::vector<std::complex<double>>& amounts,
                                                 std::size_t outer, std::size_t inner, const Grid& grid,
                                                 std::size_t axis, double origin, double frequency,
                                                 long lowest, long highest) {
  const std::size_t cells = grid.cells[axis], modes = static_cast<std::size_t>(highest - lowest + 1);
  std::vector<std::complex<double>> result(outer * modes * inner, 0.0);
  for (std::size_t mode = 0; mode < modes; ++mode) {
    const double omega = frequency * static_cast<double>(lowest + static_cast<long>(mode));
    const double half = 0.5 * omega * grid.spacing(axis);
    const double spread = half == 0.0 ? 1.0 : std::sin(half) / half;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const std::complex<double> factor =
          std::polar(1.0, omega * (grid.center(axis, cell) - origin)) * spread;
      for (std::size_t o = 0; o < outer; ++o)
        for (std::size_t k = 0; k < inner; ++k)
          result[(o * modes + mode) * inner + k] += factor * amounts[(o * cells + cell) * inner + k];
    }
  }
  return result;
}

}  // namespace

MeanDiscrepancy::MeanDiscrepancy(const Density& density, DiscrepancyKernel kernel)
    : dimension_(density.grid.dimension()), kernel_(kernel) {
  const Grid& grid = density.grid;
  const GaussianKernel* gauss = std::get_if<GaussianKernel>(&kernel_);
  if (gauss == nullptr) {
    expects(dimension_ == 1 && !grid.periodic, "the energy kernel is for d = 1, not periodic");
    // E|X - X'| = 2 integral F (1 - F); F is linear on each cell.
    law_ = line_law(density);
    CompensatedSum sum;
    for (std::size_t cell = 0; cell < law_.cell_count(); ++cell) {
      const double a = law_.cumulative[cell], b = law_.cumulative[cell + 1];
      sum.add((law_.edges[cell + 1] - law_.edges[cell]) * ((a + b) / 2.0 - (a * a + a * b + b * b) / 3.0));
    }
    self_ = -2.0 * sum.value();
    return;
  }

  expects(gauss->length > 0.0, "a bandwidth is positive");
  std::vector<std::complex<double>> field;
  CompensatedSum total;
  for (std::size_t cell = 0; cell < density.averages.size(); ++cell) {
    const double fraction = grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell];
    field.emplace_back(density.averages[cell] * fraction);
    total.add(field.back().real());
  }
  expects(total.value() > 0.0, "a law has positive mass");
  for (std::complex<double>& amount : field) amount /= total.value();

  std::size_t inner = 1;
  axes_.resize(dimension_);
  weights_ = {1.0};
  for (std::size_t axis = dimension_; axis-- > 0;) {
    const double extent = grid.upper[axis] - grid.lower[axis];
    const double period = grid.periodic ? extent : extent + reach * gauss->length;
    const double frequency = 2.0 * std::numbers::pi / period;
    const auto highest = static_cast<long>(std::ceil(reach / (frequency * gauss->length)));
    const bool last = axis + 1 == dimension_;
    axes_[axis] = {0.5 * (grid.lower[axis] + grid.upper[axis]), frequency, static_cast<std::size_t>(highest)};
    const long lowest = last ? 0 : -highest;
    const std::size_t outer = field.size() / (grid.cells[axis] * inner);
    field = axis_transform(field, outer, inner, grid, axis, axes_[axis].origin, frequency, lowest, highest);
    inner *= static_cast<std::size_t>(highest - lowest + 1);

    std::vector<double> products;
    for (long mode = lowest; mode <= highest; ++mode) {
      const double scaled = frequency * static_cast<double>(mode) * gauss->length;
      const double a =
          std::sqrt(2.0 * std::numbers::pi) * gauss->length / period * std::exp(-0.5 * scaled * scaled);
      for (double weight : weights_) products.push_back((last && mode > 0 ? 2.0 : 1.0) * a * weight);
    }
    weights_.swap(products);
  }
  for (const std::complex<double>& value : field) {
    density_.real.push_back(value.real());
    density_.imaginary.push_back(value.imag());
  }
  CompensatedSum diagonal, self;
  for (std::size_t mode = 0; mode < weights_.size(); ++mode) {
    diagonal.add(weights_[mode]);
    self.add(weights_[mode] * std::norm(field[mode]));
  }
  diagonal_ = diagonal.value();
  self_ = self.value();
}

double MeanDiscrepancy::expected_biased(std::size_t particle_count) const {
  return (diagonal_ - self_) / static_cast<double>(particle_count);
}

std::vector<SquaredDiscrepancy> MeanDiscrepancy::operator()(const ParticleEnsemble& ensemble) const {
  expects(ensemble.dimension == dimension_, "particles and density live in one space");
  expects(ensemble.particle_count > 0, "an empirical law needs an atom");
  std::vector<SquaredDiscrepancy> result(ensemble.replica_count);
  for (std::size_t replica = 0; replica < ensemble.replica_count; ++replica)
    result[replica] = std::holds_alternative<GaussianKernel>(kernel_) ? gaussian(ensemble.replica(replica))
                                                                      : energy(ensemble.replica(replica));
  return result;
}

MeanDiscrepancy::Transform MeanDiscrepancy::transform(std::span<const double> positions) const {
  const std::size_t particles = positions.size() / dimension_;
  Transform result{std::vector<double>(weights_.size(), 0.0), std::vector<double>(weights_.size(), 0.0)};
  // Powers of exp(i frequency (x - origin)), axis by axis, and the products of all axes but the last.
  std::vector<double> outer_real, outer_imaginary, real, imaginary, next_real, next_imaginary;
  for (std::size_t particle = 0; particle < particles; ++particle) {
    outer_real.assign(1, 1.0);
    outer_imaginary.assign(1, 0.0);
    for (std::size_t axis = 0; axis < dimension_; ++axis) {
      const Axis& along = axes_[axis];
      const double angle = along.frequency * (positions[particle * dimension_ + axis] - along.origin);
      const double cosine = std::cos(angle), sine = std::sin(angle);
      const bool last = axis + 1 == dimension_;
      const std::size_t zero = last ? 0 : along.highest;
      real.resize(zero + along.highest + 1);
      imaginary.resize(real.size());
      real[zero] = 1.0;
      imaginary[zero] = 0.0;
      for (std::size_t m = 1; m <= along.highest; ++m) {
        real[zero + m] = real[zero + m - 1] * cosine - imaginary[zero + m - 1] * sine;
        imaginary[zero + m] = real[zero + m - 1] * sine + imaginary[zero + m - 1] * cosine;
        if (last) continue;
        real[zero - m] = real[zero + m];
        imaginary[zero - m] = -imaginary[zero + m];
      }
      if (last) break;
      next_real.assign(outer_real.size() * real.size(), 0.0);
      next_imaginary.assign(next_real.size(), 0.0);
      add_outer_product(outer_real.data(), outer_imaginary.data(), outer_real.size(), real.data(),
                        imaginary.data(), real.size(), next_real.data(), next_imaginary.data());
      outer_real.swap(next_real);
      outer_imaginary.swap(next_imaginary);
    }
    add_outer_product(outer_real.data(), outer_imaginary.data(), outer_real.size(), real.data(),
                      imaginary.data(), real.size(), result.real.data(), result.imaginary.data());
  }
  for (double& value : result.real) value /= static_cast<double>(particles);
  for (double& value : result.imaginary) value /= static_cast<double>(particles);
  return result;
}

SquaredDiscrepancy MeanDiscrepancy::gaussian(std::span<const double> positions) const {
  const Transform atoms = transform(positions);
  CompensatedSum biased, pairs;  // pairs: (1/N^2) sum over all i, j
  for (std::size_t mode = 0; mode < weights_.size(); ++mode) {
    const double real = atoms.real[mode], imaginary = atoms.imaginary[mode];
    const double from_real = real - density_.real[mode],
                 from_imaginary = imaginary - density_.imaginary[mode];
    biased.add(weights_[mode] * (from_real * from_real + from_imaginary * from_imaginary));
    pairs.add(weights_[mode] * (real * real + imaginary * imaginary));
  }
  const std::size_t particles = positions.size() / dimension_;
  if (particles == 1) return {biased.value(), biased.value()};
  const double without_diagonal = (pairs.value() - diagonal_) / static_cast<double>(particles - 1);
  return {biased.value(), biased.value() + without_diagonal};
}

SquaredDiscrepancy MeanDiscrepancy::energy(std::span<const double> positions) const {
  const LineLaw& law = law_;
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
