#include "model/alignment.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>

#include "core/expects.hpp"
#include "core/noise.hpp"
#include "features/bag_block.hpp"
#include "features/matrix_product.hpp"

namespace rieszflow {
namespace {

constexpr std::size_t block_rows = 64;
constexpr std::size_t chunk_rows = 32;  // rows of the Gram matrix per task; a multiple of column_group

struct Sample {
  LiftedData data;
  std::vector<double> labels;             ///< (row, label column)
  std::vector<std::size_t> bag_starts{};  ///< (row + 1), or empty: one point per row

  std::size_t rows() const { return BagBlock::bag_count(data, bag_starts); }
};

/// Empirical means of the features of N particles on one sample; every matrix has padded(N) columns.
struct Statistics {
  std::size_t count = 0;               ///< N
  std::size_t columns = 0;             ///< padded(N)
  std::size_t components = 1;          ///< m
  std::size_t label_columns = 1;       ///< q
  std::vector<double> label_features;  ///< u: (component, label column, columns)
  std::vector<double> gram;           ///< S: (component, component, particle, columns); empty when not needed
  std::vector<double> feature_means;  ///< (component, columns); zero unless centred
  std::vector<double> label_means;    ///< (label column); zero unless centred

  double* u(std::size_t c) { return label_features.data() + c * label_columns * columns; }
  const double* u(std::size_t c) const { return label_features.data() + c * label_columns * columns; }
  double* s(std::size_t c, std::size_t d) { return gram.data() + (c * components + d) * count * columns; }
  const double* s(std::size_t c, std::size_t d) const {
    return gram.data() + (c * components + d) * count * columns;
  }
};

/// S(c, d) += Phi_c^T Phi_d over a block of rows, upper triangle of the diagonal blocks only.
void add_gram(const BagBlock& block, std::size_t rows, Statistics& sums, int threads) {
  const std::size_t chunks = (sums.count + chunk_rows - 1) / chunk_rows;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::size_t first = chunk * chunk_rows, height = std::min(chunk_rows, sums.count - first);
    for (std::size_t c = 0; c < sums.components; ++c)
      for (std::size_t d = c; d < sums.components; ++d) {
        const std::size_t left = c == d ? first : 0;
        add_product(height, rows, sums.columns - left, {block.value(c) + first, 1, sums.columns},
                    block.value(d) + left, sums.columns, sums.s(c, d) + first * sums.columns + left,
                    sums.columns);
      }
  }
}

/// Overwrites `out`. Who asks often keeps it: the pages of a fresh N x N matrix cost more than its numbers
/// when there are few rows.
void evaluate(FeatureMap map, const Sample& sample, std::size_t label_columns,
              std::span<const double> particles, bool with_gram, bool centred, int threads, Statistics& out) {
  BagBlock block(map, sample.data, sample.bag_starts, particles, block_rows);
  out.count = block.count();
  out.columns = block.columns();
  out.components = component_count(map);
  out.label_columns = label_columns;
  out.label_features.assign(out.components * label_columns * out.columns, 0.0);
  out.feature_means.assign(out.components * out.columns, 0.0);
  out.label_means.assign(label_columns, 0.0);
  out.gram.assign(with_gram ? out.components * out.components * out.count * out.columns : 0, 0.0);

  const std::vector<double> ones(block_rows, 1.0);
  for (std::size_t first = 0; first < sample.rows(); first += block_rows) {
    const std::size_t rows = std::min(block_rows, sample.rows() - first);
    block.evaluate(first, rows);
    for (std::size_t c = 0; c < out.components; ++c) {
      add_product(label_columns, rows, out.columns,
                  {sample.labels.data() + first * label_columns, 1, label_columns}, block.value(c),
                  out.columns, out.u(c), out.columns);
      if (centred)
        add_product(1, rows, out.columns, {ones.data(), 1, 1}, block.value(c), out.columns,
                    out.feature_means.data() + c * out.columns, out.columns);
    }
    if (with_gram) add_gram(block, rows, out, threads);
  }

  const double scale = 1.0 / static_cast<double>(sample.rows());
  for (double& value : out.label_features) value *= scale;
  for (double& value : out.feature_means) value *= scale;
  for (double& value : out.gram) value *= scale;
  if (centred) {
    for (std::size_t a = 0; a < sample.rows(); ++a)
      for (std::size_t q = 0; q < label_columns; ++q)
        out.label_means[q] += scale * sample.labels[a * label_columns + q];
    for (std::size_t c = 0; c < out.components; ++c)
      for (std::size_t q = 0; q < label_columns; ++q)
        for (std::size_t i = 0; i < out.columns; ++i)
          out.u(c)[q * out.columns + i] -= out.label_means[q] * out.feature_means[c * out.columns + i];
  }
  if (with_gram) {
    for (std::size_t c = 0; c < out.components; ++c)
      for (std::size_t d = c; d < out.components; ++d)
        for (std::size_t i = 0; i < out.count; ++i)
          for (std::size_t j = c == d ? i : 0; j < out.count; ++j) {
            double& upper = out.s(c, d)[i * out.columns + j];
            if (centred)
              upper -= out.feature_means[c * out.columns + i] * out.feature_means[d * out.columns + j];
            out.s(d, c)[j * out.columns + i] = upper;
          }
  }
}

/// a = integral u . u' dmu over two statistics of the same particles (the same one: |u|^2), with weights w_i
/// / N.
double target_overlap(const Statistics& one, const Statistics& other, std::span<const double> weights) {
  double sum = 0.0;
  for (std::size_t i = 0; i < one.count; ++i) {
    double product = 0.0;
    for (std::size_t c = 0; c < one.components; ++c)
      for (std::size_t q = 0; q < one.label_columns; ++q)
        product += one.u(c)[q * one.columns + i] * other.u(c)[q * one.columns + i];
    sum += weights.empty() ? product : weights[i] * product;
  }
  return sum / static_cast<double>(one.count);
}

/// b = double-integral S : S' dmu dmu.
double kernel_overlap(const Statistics& one, const Statistics& other, std::span<const double> weights) {
  double sum = 0.0;
  for (std::size_t c = 0; c < one.components; ++c)
    for (std::size_t d = 0; d < one.components; ++d)
      for (std::size_t i = 0; i < one.count; ++i) {
        double row = 0.0;
        for (std::size_t j = 0; j < one.count; ++j) {
          const double product = one.s(c, d)[i * one.columns + j] * other.s(c, d)[i * one.columns + j];
          row += weights.empty() ? product : weights[j] * product;
        }
        sum += weights.empty() ? row : weights[i] * row;
      }
  return sum / (static_cast<double>(one.count) * static_cast<double>(one.count));
}

/// |E[y y^T]|_F of the labels, centred or not.
double label_norm(std::span<const double> labels, std::size_t columns, bool centred) {
  const std::size_t rows = labels.size() / columns;
  std::vector<double> means(columns, 0.0), products(columns * columns, 0.0);
  for (std::size_t a = 0; a < rows; ++a)
    for (std::size_t q = 0; q < columns; ++q) {
      means[q] += labels[a * columns + q] / static_cast<double>(rows);
      for (std::size_t r = 0; r < columns; ++r)
        products[q * columns + r] +=
            labels[a * columns + q] * labels[a * columns + r] / static_cast<double>(rows);
    }
  double square = 0.0;
  for (std::size_t q = 0; q < columns; ++q)
    for (std::size_t r = 0; r < columns; ++r) {
      const double entry = products[q * columns + r] - (centred ? means[q] * means[r] : 0.0);
      square += entry * entry;
    }
  return std::sqrt(square);
}

/// A as a function of the two overlaps a and b, and its partial derivatives; theory.md (8)-(10).
struct Value {
  double value = 0.0;
  double target_slope = 0.0;  ///< -dA/da
  double kernel_slope = 0.0;  ///< 2 dA/db
};

Value alignment_value(AlignmentKind kind, double a, double b, double label_norm) {
  switch (kind) {
    case AlignmentKind::RidgeLoss:
      break;  // no function of a and b: see RidgeSolution
    case AlignmentKind::Linear:
      return {-a, 1.0, 0.0};
    case AlignmentKind::SquaredLoss:
      return {0.5 * label_norm * label_norm - a + 0.5 * b, 1.0, 1.0};
    case AlignmentKind::Normalised: {
      const double root = std::sqrt(b);
      return {-a / (label_norm * root), 1.0 / (label_norm * root), a / (label_norm * b * root)};
    }
  }
  return {};
}

}  // namespace

/// Ridge regression of the labels on the features of particles with masses mu({omega_i}).
struct RidgeSolution {
  double explained = 0.0;  ///< u^T M (M S M + penalty)^-1 M u with M = sqrt(masses): E |y^c|^2 minus the loss
  std::vector<double> coefficients;  ///< w_i = E[r phi_i] / penalty, laid out as Statistics::label_features;
                                     ///< the prediction is sum_i mass_i w_i phi_i^c, r what it leaves of y^c
};

RidgeSolution ridge_solution(const Statistics& means, double penalty, std::span<const double> masses) {
  using Eigen::Index;
  const std::size_t size = means.count * means.components;
  Eigen::MatrixXd gram(size, size), target(size, means.label_columns);
  Eigen::VectorXd roots(size);
  for (std::size_t d = 0; d < means.components; ++d)
    for (std::size_t j = 0; j < means.count; ++j) {
      const auto column = static_cast<Index>(d * means.count + j);
      roots[column] = std::sqrt(masses[j]);
      for (std::size_t q = 0; q < means.label_columns; ++q)
        target(column, static_cast<Index>(q)) = means.u(d)[q * means.columns + j];
      for (std::size_t c = 0; c < means.components; ++c)
        for (std::size_t i = 0; i < means.count; ++i)
          gram(static_cast<Index>(c * means.count + i), column) = means.s(c, d)[i * means.columns + j];
    }
  Eigen::MatrixXd system = roots.asDiagonal() * gram * roots.asDiagonal();
  system.diagonal().array() += penalty;
  const Eigen::MatrixXd scaled = roots.asDiagonal() * target;
  const Eigen::MatrixXd solution = Eigen::LLT<Eigen::MatrixXd>(system).solve(scaled);
  const Eigen::MatrixXd residual = target - gram * (roots.asDiagonal() * solution);
  RidgeSolution out{solution.cwiseProduct(scaled).sum(),
                    std::vector<double>(means.label_features.size(), 0.0)};
  for (std::size_t c = 0; c < means.components; ++c)
    for (std::size_t q = 0; q < means.label_columns; ++q)
      for (std::size_t i = 0; i < means.count; ++i)
        out.coefficients[(c * means.label_columns + q) * means.columns + i] =
            residual(static_cast<Index>(c * means.count + i), static_cast<Index>(q)) / penalty;
  return out;
}

std::string_view name(AlignmentKind kind) {
  switch (kind) {
    case AlignmentKind::Linear:
      return "linear";
    case AlignmentKind::SquaredLoss:
      return "squared_loss";
    case AlignmentKind::Normalised:
      return "normalised";
    case AlignmentKind::RidgeLoss:
      return "ridge_loss";
  }
  return "";
}

struct Alignment::Implementation {
  FeatureMap map;
  Options options;
  std::size_t label_columns;
  Sample all;
  double norm = 0.0;          ///< |E[y y^T]|_F, centred for the normalised alignment
  double label_square = 0.0;  ///< E |y^c|^2

  bool with_gram() const { return options.kind != AlignmentKind::Linear; }
  bool centred() const { return with_gram() && options.kind != AlignmentKind::SquaredLoss; }

  /// `half` 0 or 1 of the two independent batches of one step.
  Sample batch(std::uint64_t replica, std::uint64_t step, std::uint64_t half) const {
    std::vector<double> draws(options.batch_rows);
    NoiseStream(options.seed, NoisePurpose::MiniBatch).uniforms(replica, step, half, draws);
    Sample out;
    out.data.dimension = all.data.dimension;
    if (!all.bag_starts.empty()) out.bag_starts.push_back(0);
    for (const double draw : draws) {
      const std::size_t row =
          std::min(static_cast<std::size_t>(draw * static_cast<double>(all.rows())), all.rows() - 1);
      const std::size_t first = all.bag_starts.empty() ? row : all.bag_starts[row];
      const std::size_t last = all.bag_starts.empty() ? row + 1 : all.bag_starts[row + 1];
      const auto append = [](std::vector<double>& to, const std::vector<double>& from, std::size_t width,
                             std::size_t begin, std::size_t end) {
        to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(begin * width),
                  from.begin() + static_cast<std::ptrdiff_t>(end * width));
      };
      append(out.data.points, all.data.points, out.data.dimension, first, last);
      append(out.data.offsets, all.data.offsets, 1, first, last);
      append(out.labels, all.labels, label_columns, row, row + 1);
      out.data.count += last - first;
      if (!all.bag_starts.empty()) out.bag_starts.push_back(out.data.count);
    }
    return out;
  }

  void evaluate_means(const Sample& sample, std::span<const double> particles, Statistics& out) const {
    evaluate(map, sample, label_columns, particles, with_gram(), centred(), options.threads, out);
  }

  Value value(const Statistics& one, const Statistics& other, std::span<const double> weights = {}) const {
    if (options.kind == AlignmentKind::RidgeLoss) {
      std::vector<double> masses(weights.begin(), weights.end());
      masses.resize(one.count, 1.0);
      for (double& mass : masses) mass /= static_cast<double>(one.count);
      return {.value = label_square - ridge_solution(one, options.ridge_penalty, masses).explained};
    }
    return alignment_value(options.kind, target_overlap(one, other, weights),
                           with_gram() ? kernel_overlap(one, other, weights) : 0.0, norm);
  }

  /// forces_i += factor * (2 target_slope <u, E[y D_i]> - 2 kernel_slope E[M_i D_i]), u and S from `means`, E
  /// over `sample`.
  void add_forces(const Sample& sample, const Statistics& means, const Value& value, double factor,
                  std::span<const double> particles, std::span<double> forces) const {
    const std::size_t count = means.count, columns = means.columns, components = means.components;
    const double scale = factor * options.strength / static_cast<double>(sample.rows());
    const double kernel_factor = -2.0 * value.kernel_slope * scale / static_cast<double>(count);
    std::vector<double> u = means.label_features;
    for (double& entry : u) entry *= 2.0 * value.target_slope * scale;
    // Centring: row a of the weights is (y_a - E y) u + (phi_a - E phi) S, so the constant part is a shift of
    // all rows.
    std::vector<double> shift(components * columns, 0.0);
    if (centred()) {
      for (std::size_t c = 0; c < components; ++c) {
        double* out = shift.data() + c * columns;
        for (std::size_t d = 0; d < components; ++d)
          add_product(1, count, columns, {means.feature_means.data() + d * columns, 0, 1}, means.s(d, c),
                      columns, out, columns);
        for (std::size_t i = 0; i < columns; ++i) out[i] *= kernel_factor;
        add_product(1, label_columns, columns, {means.label_means.data(), 0, 1},
                    u.data() + c * label_columns * columns, columns, out, columns);
      }
      for (double& entry : shift) entry = -entry;
    }

    BagBlock block(map, sample.data, sample.bag_starts, particles, block_rows);
    std::array<std::vector<double>, 2> weights;
    for (std::size_t c = 0; c < components; ++c) weights[c].resize(block_rows * columns);
    const double* const pointers[2] = {weights[0].data(), weights[1].data()};
    std::vector<double> sums(sample.data.dimension * columns, 0.0);
    const std::size_t panels = (columns + chunk_rows - 1) / chunk_rows;
    for (std::size_t first = 0; first < sample.rows(); first += block_rows) {
      const std::size_t rows = std::min(block_rows, sample.rows() - first);
      block.evaluate(first, rows);
#pragma omp parallel for schedule(static) num_threads(options.threads) if (options.threads > 1)
      for (std::size_t panel = 0; panel < panels; ++panel) {
        const std::size_t left = panel * chunk_rows, width = std::min(chunk_rows, columns - left);
        for (std::size_t c = 0; c < components; ++c) {
          double* out = weights[c].data() + left;
          for (std::size_t a = 0; a < rows; ++a) std::fill_n(out + a * columns, width, 0.0);
          if (with_gram())
            for (std::size_t d = 0; d < components; ++d)
              add_product(rows, count, width, {block.value(d), columns, 1}, means.s(d, c) + left, columns,
                          out, columns);
          const double* constant = shift.data() + c * columns + left;
          for (std::size_t a = 0; a < rows; ++a)
            for (std::size_t i = 0; i < width; ++i)
              out[a * columns + i] = kernel_factor * out[a * columns + i] + constant[i];
          add_product(rows, label_columns, width,
                      {sample.labels.data() + first * label_columns, label_columns, 1},
                      u.data() + c * label_columns * columns + left, columns, out, columns);
        }
      }
      block.add_pullback(pointers, sums);
    }
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < sample.data.dimension; ++k)
        forces[i * sample.data.dimension + k] += sums[k * columns + i];
  }

  /// forces_i += 2 <w_i, E[r D_i]>, the gradient of the ridge loss; returns the loss.
  double add_ridge_forces(const Statistics& means, std::span<const double> particles,
                          std::span<double> forces) const {
    const std::size_t count = means.count, columns = means.columns, components = means.components;
    const std::vector<double> masses(count, 1.0 / static_cast<double>(count));
    const RidgeSolution solution = ridge_solution(means, options.ridge_penalty, masses);
    const std::vector<double>& w = solution.coefficients;
    std::vector<double> offset(label_columns, 0.0);  // r = y - E y - sum_i (phi_i - E phi_i) w_i / N
    for (std::size_t q = 0; q < label_columns; ++q) {
      offset[q] = -means.label_means[q];
      for (std::size_t c = 0; c < components; ++c)
        for (std::size_t i = 0; i < count; ++i)
          offset[q] +=
              masses[i] * means.feature_means[c * columns + i] * w[(c * label_columns + q) * columns + i];
    }
    BagBlock block(map, all.data, all.bag_starts, particles, block_rows);
    std::array<std::vector<double>, 2> weights;
    for (std::size_t c = 0; c < components; ++c) weights[c].resize(block_rows * columns);
    const double* const pointers[2] = {weights[0].data(), weights[1].data()};
    std::vector<double> sums(all.data.dimension * columns, 0.0), residuals(block_rows * label_columns);
    const double scale = 2.0 * options.strength / static_cast<double>(all.rows());
    for (std::size_t first = 0; first < all.rows(); first += block_rows) {
      const std::size_t rows = std::min(block_rows, all.rows() - first);
      block.evaluate(first, rows);
      for (std::size_t a = 0; a < rows; ++a)
        for (std::size_t q = 0; q < label_columns; ++q) {
          double prediction = 0.0;
          for (std::size_t c = 0; c < components; ++c) {
            const double* phi = block.value(c) + a * columns;
            const double* coefficient = w.data() + (c * label_columns + q) * columns;
            for (std::size_t i = 0; i < count; ++i) prediction += phi[i] * coefficient[i];
          }
          residuals[a * label_columns + q] =
              scale * (all.labels[(first + a) * label_columns + q] + offset[q] - prediction * masses[0]);
        }
      for (std::size_t c = 0; c < components; ++c) {
        std::fill(weights[c].begin(), weights[c].end(), 0.0);
        add_product(rows, label_columns, columns, {residuals.data(), label_columns, 1},
                    w.data() + c * label_columns * columns, columns, weights[c].data(), columns);
      }
      block.add_pullback(pointers, sums);
    }
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < all.data.dimension; ++k)
        forces[i * all.data.dimension + k] += sums[k * columns + i];
    return label_square - solution.explained;
  }

  bool has_one_sweep() const {
    return options.kind == AlignmentKind::Linear && !couples_particles(map) && label_columns == 1 &&
           all.bag_starts.empty();
  }

  /// u and its derivative in one sweep: the gradient of (8) for one label column.
  double add_linear_forces(const Sample& one, const Sample& other, std::span<const double> particles,
                           std::span<double> forces) const {
    const std::size_t p = all.data.dimension, terms = particles.size() / p * component_count(map);
    std::array<std::vector<double>, 2> u, derivative;
    const bool same = &one == &other;
    for (std::size_t half = 0; half < (same ? 1 : 2); ++half) {
      const Sample& sample = half == 0 ? one : other;
      std::vector<double> weights = sample.labels;
      for (double& weight : weights) weight /= static_cast<double>(sample.rows());
      u[half].resize(terms);
      derivative[half].resize(terms * p);
      weighted_moments(map, sample.data, weights, particles, u[half], derivative[half], options.threads);
    }
    if (same) {
      u[1] = u[0];
      derivative[1] = derivative[0];
    }
    double sum = 0.0;
    const std::size_t components = component_count(map);
    for (std::size_t term = 0; term < terms; ++term) {
      sum += u[0][term] * u[1][term];
      double* force = forces.data() + term / components * p;
      for (std::size_t k = 0; k < p; ++k)
        force[k] += options.strength *
                    (u[0][term] * derivative[1][term * p + k] + u[1][term] * derivative[0][term * p + k]);
    }
    return -options.strength * sum * static_cast<double>(components) / static_cast<double>(terms);
  }
};

Alignment::Alignment(FeatureMap map, const LabelledData& data, Options options)
    : implementation_(std::make_unique<Implementation>()) {
  expects(data.count >= 1 && data.label_columns >= 1, "labelled data");
  expects((!data.bag_starts.empty() || data.points.size() == data.count * data.dimension) &&
              (data.bag_starts.empty() || data.bag_starts.size() == data.count + 1) &&
              data.labels.size() == data.count * data.label_columns,
          "whole rows of points and labels");
  implementation_->map = map;
  implementation_->options = options;
  implementation_->label_columns = data.label_columns;
  implementation_->all = {lift(map, data.points, data.dimension), data.labels, data.bag_starts};
  implementation_->norm =
      label_norm(data.labels, data.label_columns, options.kind == AlignmentKind::Normalised);
  expects(options.kind != AlignmentKind::Normalised || implementation_->norm > 0.0,
          "labels of more than one class");
  expects(
      options.kind != AlignmentKind::RidgeLoss || (options.ridge_penalty > 0.0 && options.batch_rows == 0),
      "the ridge loss has a positive penalty and no batches");
  for (std::size_t q = 0; q < data.label_columns; ++q) {
    double mean = 0.0, square = 0.0;
    for (std::size_t a = 0; a < data.count; ++a) {
      const double y = data.labels[a * data.label_columns + q];
      mean += y / static_cast<double>(data.count);
      square += y * y / static_cast<double>(data.count);
    }
    implementation_->label_square += square - mean * mean;
  }
}

Alignment::~Alignment() = default;

FeatureMap Alignment::map() const { return implementation_->map; }
const Alignment::Options& Alignment::options() const { return implementation_->options; }
bool Alignment::is_stochastic() const { return implementation_->options.batch_rows > 0; }

std::string Alignment::description() const {
  const Implementation& self = *implementation_;
  const std::string batches =
      is_stochastic() ? fmt::format(", two batches of {} rows per step", self.options.batch_rows) : "";
  return fmt::format("{} alignment of {} features with the labels of {} points, strength {}{}",
                     name(self.options.kind), name(self.map), self.all.rows(), self.options.strength,
                     batches);
}

double Alignment::add_forces(std::span<const double> positions, std::size_t particle_count,
                             std::uint64_t replica, std::uint64_t step, std::span<double> forces) const {
  const Implementation& self = *implementation_;
  expects(positions.size() == particle_count * self.all.data.dimension && forces.size() == positions.size(),
          "one particle of the feature map per row");
  thread_local Statistics means, other_means;
  if (!is_stochastic()) {
    if (self.has_one_sweep()) return self.add_linear_forces(self.all, self.all, positions, forces);
    self.evaluate_means(self.all, positions, means);
    if (self.options.kind == AlignmentKind::RidgeLoss)
      return self.options.strength * self.add_ridge_forces(means, positions, forces);
    const Value value = self.value(means, means);
    self.add_forces(self.all, means, value, 1.0, positions, forces);
    return self.options.strength * value.value;
  }
  const Sample first = self.batch(replica, step, 0), second = self.batch(replica, step, 1);
  if (self.has_one_sweep()) return self.add_linear_forces(first, second, positions, forces);
  self.evaluate_means(first, positions, means);
  self.evaluate_means(second, positions, other_means);
  const Value value = self.value(means, other_means);
  self.add_forces(first, other_means, value, 0.5, positions, forces);
  self.add_forces(second, means, value, 0.5, positions, forces);
  return self.options.strength * value.value;
}

double Alignment::value(std::span<const double> particles) const { return value(particles, {}); }

double Alignment::value(std::span<const double> particles, std::span<const double> weights) const {
  thread_local Statistics means;
  implementation_->evaluate_means(implementation_->all, particles, means);
  return implementation_->options.strength * implementation_->value(means, means, weights).value;
}

namespace {

std::vector<double> cell_volumes(const Grid& grid) {
  std::vector<double> out(grid.cell_count(), grid.cell_volume());
  for (std::size_t cell = 0; cell < grid.volume_fractions.size(); ++cell)
    out[cell] *= grid.volume_fractions[cell];
  return out;
}

class AlignmentOnGrid final : public GridFunctional {
 public:
  AlignmentOnGrid(const Grid& grid, Alignment::Options options, double label_norm, std::vector<double> target,
                  std::vector<double> kernel)
      : options_(options),
        label_norm_(label_norm),
        target_(std::move(target)),
        kernel_(std::move(kernel)),
        columns_(padded(grid.cell_count())),
        volumes_(cell_volumes(grid)) {}

  double value(std::span<const double> averages, std::span<double> first_variation) const override {
    const std::size_t cells = volumes_.size();
    expects(averages.size() == cells && first_variation.size() == cells,
            "cell averages on the functional's grid");
    std::vector<double> masses(cells), smoothed(columns_, 0.0);
    for (std::size_t cell = 0; cell < cells; ++cell) masses[cell] = averages[cell] * volumes_[cell];
    if (!kernel_.empty())
      add_product(1, cells, columns_, {masses.data(), 0, 1}, kernel_.data(), columns_, smoothed.data(),
                  columns_);
    double a = 0.0, b = 0.0;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      a += masses[cell] * target_[cell];
      b += masses[cell] * smoothed[cell];
    }
    const Value value = alignment_value(options_.kind, a, b, label_norm_);
    for (std::size_t cell = 0; cell < cells; ++cell)
      first_variation[cell] =
          options_.strength * (value.kernel_slope * smoothed[cell] - value.target_slope * target_[cell]);
    return options_.strength * value.value;
  }

 private:
  Alignment::Options options_;
  double label_norm_;
  std::vector<double> target_;  ///< |u|^2 at the cell centres
  std::vector<double>
      kernel_;  ///< |S|_F^2 between cell centres, (cell, padded cell); empty for linear alignment
  std::size_t columns_;
  std::vector<double> volumes_;  ///< of the cells, inside the domain
};

class RidgeLossOnGrid final : public GridFunctional {
 public:
  RidgeLossOnGrid(const Grid& grid, Alignment::Options options, double label_square, Statistics means)
      : options_(options),
        label_square_(label_square),
        means_(std::move(means)),
        volumes_(cell_volumes(grid)) {}

  double value(std::span<const double> averages, std::span<double> first_variation) const override {
    std::vector<double> masses(volumes_.size());
    for (std::size_t cell = 0; cell < masses.size(); ++cell) masses[cell] = averages[cell] * volumes_[cell];
    const RidgeSolution solution = ridge_solution(means_, options_.ridge_penalty, masses);
    std::fill(first_variation.begin(), first_variation.end(), 0.0);
    for (std::size_t row = 0; row < means_.components * means_.label_columns; ++row)
      for (std::size_t cell = 0; cell < masses.size(); ++cell) {
        const double w = solution.coefficients[row * means_.columns + cell];
        first_variation[cell] -= options_.strength * options_.ridge_penalty * w * w;
      }
    return options_.strength * (label_square_ - solution.explained);
  }

 private:
  Alignment::Options options_;
  double label_square_;
  Statistics means_;
  std::vector<double> volumes_;  ///< of the cells, inside the domain
};

}  // namespace

std::unique_ptr<GridFunctional> Alignment::on_grid(const Grid& grid) const {
  const Implementation& self = *implementation_;
  expects(!couples_particles(self.map), "softmax features are no function of one particle");
  expects(grid.dimension() == self.all.data.dimension, "the grid is in the space of the particles");
  const std::size_t cells = grid.cell_count(), p = grid.dimension();
  std::vector<double> centers(cells * p);
  for (std::size_t cell = 0; cell < cells; ++cell) grid.cell_center(cell, {centers.data() + cell * p, p});
  Statistics means;
  self.evaluate_means(self.all, centers, means);
  if (self.options.kind == AlignmentKind::RidgeLoss)
    return std::make_unique<RidgeLossOnGrid>(grid, self.options, self.label_square, std::move(means));
  std::vector<double> target(cells, 0.0), kernel(self.with_gram() ? cells * means.columns : 0, 0.0);
  for (std::size_t c = 0; c < means.components; ++c) {
    for (std::size_t q = 0; q < self.label_columns; ++q)
      for (std::size_t cell = 0; cell < cells; ++cell)
        target[cell] += means.u(c)[q * means.columns + cell] * means.u(c)[q * means.columns + cell];
    if (!self.with_gram()) continue;
    for (std::size_t d = 0; d < means.components; ++d)
      for (std::size_t k = 0; k < kernel.size(); ++k) kernel[k] += means.s(c, d)[k] * means.s(c, d)[k];
  }
  return std::make_unique<AlignmentOnGrid>(grid, self.options, self.norm, std::move(target),
                                           std::move(kernel));
}

double effective_rank(FeatureMap map, const LiftedData& data, std::span<const double> particles,
                      std::span<const std::size_t> bag_starts, bool centred) {
  const Sample sample{data,
                      std::vector<double>(BagBlock::bag_count(data, bag_starts), 0.0),
                      {bag_starts.begin(), bag_starts.end()}};
  Statistics means;
  evaluate(map, sample, 1, particles, true, centred, 1, means);
  double trace = 0.0;
  for (std::size_t c = 0; c < means.components; ++c)
    for (std::size_t i = 0; i < means.count; ++i) trace += means.s(c, c)[i * means.columns + i];
  const double square =
      kernel_overlap(means, means, {}) * static_cast<double>(means.count) * static_cast<double>(means.count);
  return trace * trace / square;
}

}  // namespace rieszflow
