#include "model/mean_field.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"
#include "model/cell_kernel.hpp"
#include "model/convolution.hpp"
#include "model/elementary.hpp"
#include "model/periodic_kernel.hpp"
#include "model/quadrature.hpp"
#include "potentials/expression.hpp"

namespace rieszflow {
namespace {

constexpr std::size_t block_size = 2048;  ///< cells summed plainly; blocks are added with compensation

/// sum of f g v; v = null: 1.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
double
block_product(const double* f, const double* g, const double* v, std::size_t count) {
  double sum = 0.0;
  if (v == nullptr) {
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < count; ++i) sum += f[i] * g[i];
  } else {
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < count; ++i) sum += f[i] * g[i] * v[i];
  }
  return sum;
}

/// sum of f log f v with 0 log 0 = 0.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
double
block_f_log_f(const double* f, const double* v, std::size_t count) {
  constexpr double smallest = 0x1p-1022;
  double sum = 0.0;
  if (v == nullptr) {
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < count; ++i) {
      sum += f[i] * elementary::logarithm(f[i] < smallest ? smallest : f[i]);
    }
  } else {
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < count; ++i) {
      sum += f[i] * elementary::logarithm(f[i] < smallest ? smallest : f[i]) * v[i];
    }
  }
  return sum;
}

template <class Block>
double blocked(std::size_t count, const Block& block) {
  CompensatedSum sum;
  for (std::size_t first = 0; first < count; first += block_size) {
    sum.add(block(first, std::min(block_size, count - first)));
  }
  return sum.value();
}

/// Averages over cells of a function given for batches of points, `function(points, values)`, by a tensor
/// Gauss rule (degree 9 in one dimension, 7 in two, 5 in three). Where a cell sticks out of a ball and the
/// function is not finite there, it is taken at the nearest point of the ball.
template <class Function>
std::vector<double> averages_on(const Domain& domain, const Grid& grid, const Function& function) {
  const std::size_t dimension = grid.dimension();
  const QuadratureRule rule = gauss_legendre(dimension == 1 ? 5 : dimension == 2 ? 4 : 3);
  const std::size_t order = rule.nodes.size(), row = grid.cells.back();
  std::size_t points_per_cell = 1;
  for (std::size_t axis = 0; axis < dimension; ++axis) points_per_cell *= order;
  std::vector<double> result(grid.cell_count(), 0.0);
  std::vector<double> points(row * points_per_cell * dimension), values(row * points_per_cell);
  std::vector<double> weights(points_per_cell);
  std::vector<std::size_t> index(dimension);
  for (std::size_t first = 0; first < result.size(); first += row) {
    std::size_t rest = first;
    for (std::size_t axis = dimension; axis-- > 0; rest /= grid.cells[axis])
      index[axis] = rest % grid.cells[axis];
    double* coordinate = points.data();
    for (index.back() = 0; index.back() < row; ++index.back()) {
      for (std::size_t q = 0; q < points_per_cell; ++q) {
        std::size_t digits = q;
        weights[q] = 1.0;
        for (std::size_t axis = 0; axis < dimension; ++axis, digits /= order) {
          weights[q] *= rule.weights[digits % order];
          *coordinate++ =
              grid.center(axis, index[axis]) + (rule.nodes[digits % order] - 0.5) * grid.spacing(axis);
        }
      }
    }
    function(std::span<const double>(points), std::span<double>(values));
    for (std::size_t p = 0; p < values.size(); ++p) {
      const std::span<double> point(points.data() + p * dimension, dimension);
      if (!std::isfinite(values[p]) && !contains(domain, point)) {
        project(domain, point);
        function(std::span<const double>(point), std::span<double>(&values[p], 1));
      }
      result[first + p / points_per_cell] += weights[p % points_per_cell] * values[p];
    }
  }
  return result;
}

}  // namespace

struct MeanField::Implementation {
  Model model;
  Grid grid;
  int threads = 1;
  Ranks ranks;
  std::vector<double> external;
  std::vector<double> volumes;  ///< (cell) or empty
  double cell_volume = 0.0;

  std::optional<EvenConvolution> convolution;  ///< weights times cell volume
  double quadratic_strength = 0.0;
  double cosine_strength = 0.0;
  int cells_averaged = 2;  ///< of a pair
  struct LowRankTerm {
    double strength;
    std::vector<double> function;  ///< (cell)
  };
  std::vector<LowRankTerm> low_rank;
  std::vector<std::unique_ptr<GridFunctional>> functionals;

  mutable std::vector<double> masses;     ///< (cell) work: rho times volume fraction
  mutable std::vector<double> variation;  ///< (cell) work for functionals
  mutable std::array<std::vector<double>, 3>
      marginal;  ///< (axis)(index) work: mass per slab, then potential per slab

  void add_through_marginals(std::span<const double> averages, std::span<double> out) const;
  double integral(const double* f, const double* g) const {
    const double* v = volumes.empty() ? nullptr : volumes.data();
    const double sum = blocked(grid.cell_count(), [&](std::size_t first, std::size_t count) {
      return block_product(f + first, g + first, v == nullptr ? nullptr : v + first, count);
    });
    return v == nullptr ? sum * cell_volume : sum;
  }
};

MeanField::MeanField(const Model& model, const Grid& grid, Options options)
    : implementation_(std::make_unique<Implementation>()) {
  Implementation& self = *implementation_;
  self.model = model;
  self.grid = grid;
  self.threads = std::max(1, options.threads);
  self.ranks = options.ranks;
  self.cells_averaged = options.weights == CellWeights::Galerkin ? 2 : 1;
  const std::size_t dimension = grid.dimension(), size = grid.cell_count();
  expects(dimension >= 1 && dimension <= 3, "densities live in one, two or three dimensions");
  expects(rieszflow::dimension(model.domain) == dimension, "the grid has the dimension of the domain");
  self.cell_volume = grid.cell_volume();
  if (!grid.volume_fractions.empty()) {
    expects(grid.volume_fractions.size() == size, "one volume fraction per cell");
    self.volumes = grid.volume_fractions;
    for (double& volume : self.volumes) volume *= self.cell_volume;
    self.masses.resize(size);
  }
  self.external.assign(size, 0.0);
  if (!model.potentials.empty()) {
    self.external = averages_on(
        model.domain, grid,
        [&](std::span<const double> points, std::span<double> values) { potentials(model, points, values); });
  }

  std::vector<double> spacing;
  for (std::size_t axis = 0; axis < dimension; ++axis) spacing.push_back(grid.spacing(axis));
  const auto kind = grid.periodic ? EvenConvolution::Kind::Circular : EvenConvolution::Kind::Linear;
  std::vector<std::size_t> offsets;
  for (const std::size_t count : grid.cells) offsets.push_back(EvenConvolution::offset_count(count, kind));
  std::vector<double> weights;
  for (const Interaction& interaction : model.interactions) {
    if (const auto* quadratic = std::get_if<QuadraticInteraction>(&interaction)) {
      self.quadratic_strength += quadratic->strength;
    } else if (const auto* cosine = std::get_if<CosineInteraction>(&interaction)) {
      self.cosine_strength += cosine->strength;
    } else if (const auto* low_rank = std::get_if<LowRankInteraction>(&interaction)) {
      for (const auto& function : low_rank->functions) {
        self.low_rank.push_back(
            {low_rank->strength,
             averages_on(model.domain, grid, [&](std::span<const double> points, std::span<double> values) {
               function->values(points, values);
             })});
      }
    } else {
      const auto* torus = std::get_if<Torus>(&model.domain);
      const std::vector<double> term =
          torus != nullptr ? periodic_kernel_weights(*torus, interaction, grid.cells, options.weights)
                           : kernel_weights(interaction, spacing, offsets, options.weights);
      weights.resize(term.size(), 0.0);
      for (std::size_t i = 0; i < term.size(); ++i) weights[i] += term[i] * self.cell_volume;
    }
  }
  if (!weights.empty()) self.convolution.emplace(grid.cells, weights, kind, self.threads, self.ranks);
  for (const auto& functional : model.functionals) self.functionals.push_back(functional->on_grid(grid));
  if (!self.functionals.empty()) self.variation.resize(size);
  for (std::size_t axis = 0; axis < dimension; ++axis) self.marginal[axis].resize(grid.cells[axis]);
}

MeanField::~MeanField() = default;
MeanField::MeanField(MeanField&&) noexcept = default;
MeanField& MeanField::operator=(MeanField&&) noexcept = default;

const Model& MeanField::model() const { return implementation_->model; }
const Grid& MeanField::grid() const { return implementation_->grid; }
int MeanField::threads() const { return implementation_->threads; }
const Ranks& MeanField::ranks() const { return implementation_->ranks; }
std::span<const double> MeanField::external_potential() const { return implementation_->external; }
std::span<const double> MeanField::volumes() const { return implementation_->volumes; }

/// W = sum_a w(x_a - y_a): (W*rho)(x) = sum_a (w * rho_a)(x_a) with the marginals rho_a.
/// Each mean over a cell adds h^2/12 to |x_i - x_j|^2 and multiplies cos(x_i - x_j) by sinc(h/2).
void MeanField::Implementation::add_through_marginals(std::span<const double> averages,
                                                      std::span<double> out) const {
  const std::size_t dimension = grid.dimension();
  std::array<std::size_t, 3> count{1, 1, 1};
  std::array<std::vector<double>*, 3> line{};
  for (std::size_t axis = 0; axis < dimension; ++axis) {
    count[3 - dimension + axis] = grid.cells[axis];
    line[3 - dimension + axis] = &marginal[axis];
    std::fill(marginal[axis].begin(), marginal[axis].end(), 0.0);
  }
  for (std::size_t i = 0; i < count[0]; ++i) {
    double sheet_sum = 0.0;
    for (std::size_t j = 0; j < count[1]; ++j) {
      const std::size_t row = (i * count[1] + j) * count[2];
      double row_sum = 0.0;
      for (std::size_t k = 0; k < count[2]; ++k) {
        const double mass = averages[row + k] * (volumes.empty() ? cell_volume : volumes[row + k]);
        (*line[2])[k] += mass;
        row_sum += mass;
      }
      if (line[1] != nullptr) (*line[1])[j] += row_sum;
      sheet_sum += row_sum;
    }
    if (line[0] != nullptr) (*line[0])[i] += sheet_sum;
  }
  for (std::size_t axis = 0; axis < dimension; ++axis) {
    std::vector<double>& values = marginal[axis];
    const double h = grid.spacing(axis), middle = 0.5 * (grid.lower[axis] + grid.upper[axis]);
    CompensatedSum zeroth, first, second, cosine, sine;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = grid.center(axis, i) - middle;
      zeroth.add(values[i]);
      first.add(values[i] * x);
      second.add(values[i] * x * x);
      if (cosine_strength != 0.0) {
        cosine.add(values[i] * std::cos(x));
        sine.add(values[i] * std::sin(x));
      }
    }
    const double variance = cells_averaged * h * h / 12.0;
    const double sinc = std::pow(std::sin(0.5 * h) / (0.5 * h), cells_averaged);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = grid.center(axis, i) - middle;
      double potential = 0.5 * quadratic_strength *
                         (zeroth.value() * (x * x + variance) - 2.0 * x * first.value() + second.value());
      if (cosine_strength != 0.0) {
        potential -= cosine_strength * sinc * (std::cos(x) * cosine.value() + std::sin(x) * sine.value());
      }
      values[i] = potential;
    }
  }
  for (std::size_t i = 0; i < count[0]; ++i) {
    for (std::size_t j = 0; j < count[1]; ++j) {
      const double outer =
          (line[0] != nullptr ? (*line[0])[i] : 0.0) + (line[1] != nullptr ? (*line[1])[j] : 0.0);
      double* row = out.data() + (i * count[1] + j) * count[2];
      for (std::size_t k = 0; k < count[2]; ++k) row[k] += outer + (*line[2])[k];
    }
  }
}

double MeanField::interaction_potential(std::span<const double> averages, std::span<double> out) const {
  const Implementation& self = *implementation_;
  const std::size_t size = self.grid.cell_count();
  expects(averages.size() == size && out.size() == size, "one value per cell");
  if (self.convolution) {
    if (self.volumes.empty()) {
      (*self.convolution)(averages, out);
    } else {
      for (std::size_t i = 0; i < size; ++i) self.masses[i] = averages[i] * self.grid.volume_fractions[i];
      (*self.convolution)(self.masses, out);
    }
  } else {
    std::fill(out.begin(), out.end(), 0.0);
  }
  if (self.quadratic_strength != 0.0 || self.cosine_strength != 0.0)
    self.add_through_marginals(averages, out);
  for (const Implementation::LowRankTerm& term : self.low_rank) {
    const double factor = term.strength * self.integral(term.function.data(), averages.data());
    for (std::size_t i = 0; i < size; ++i) out[i] += factor * term.function[i];
  }
  double energy = 0.5 * self.integral(out.data(), averages.data());
  for (const auto& functional : self.functionals) {
    energy += functional->value(averages, self.variation);
    for (std::size_t i = 0; i < size; ++i) out[i] += self.variation[i];
  }
  return energy;
}

FreeEnergy MeanField::free_energy(std::span<const double> averages, double interaction_energy) const {
  const Implementation& self = *implementation_;
  FreeEnergy energy;
  energy.potential_energy =
      self.model.potentials.empty() ? 0.0 : self.integral(self.external.data(), averages.data());
  energy.interaction_energy = interaction_energy;
  const double* v = self.volumes.empty() ? nullptr : self.volumes.data();
  const double sum = blocked(averages.size(), [&](std::size_t first, std::size_t count) {
    return block_f_log_f(averages.data() + first, v == nullptr ? nullptr : v + first, count);
  });
  energy.entropy = v == nullptr ? -sum * self.cell_volume : -sum;
  energy.free_energy =
      energy.potential_energy + energy.interaction_energy - energy.entropy / self.model.inverse_temperature;
  return energy;
}

FreeEnergy MeanField::free_energy(const Density& density) const {
  std::vector<double> potential(density.averages.size());
  const double interaction_energy = interaction_potential(density.averages, potential);
  return free_energy(density.averages, interaction_energy);
}

}  // namespace rieszflow
