#include "features/feature_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/expects.hpp"
#include "features/activation.hpp"
#include "features/feature_block.hpp"
#include "features/matrix_product.hpp"

namespace rieszflow {
namespace {

constexpr std::array all_maps{
    FeatureMap::Fourier,  FeatureMap::FourierPhase, FeatureMap::Circle,  FeatureMap::PositiveExponential,
    FeatureMap::Softplus, FeatureMap::Relu,         FeatureMap::Softmax, FeatureMap::SoftmaxPair};

constexpr std::size_t block_rows = 32;      // rows of data whose scores are in the cache at one time
constexpr std::size_t tile_particles = 32;  // particles of one task of weighted_moments

/// Particles first..first+count-1 as the right-hand factor of a score product: (p, padded count), zeros in
/// the padding.
std::vector<double> transposed(std::span<const double> particles, std::size_t dimension, std::size_t first,
                               std::size_t count) {
  const std::size_t columns = padded(count);
  std::vector<double> out(dimension * columns, 0.0);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < dimension; ++k) out[k * columns + i] = particles[(first + i) * dimension + k];
  return out;
}

/// scores(a, i) of rows first..first+rows-1; (row, columns).
void set_scores(const LiftedData& data, std::size_t first, std::size_t rows,
                const std::vector<double>& particles, std::size_t columns, double* scores) {
  for (std::size_t a = 0; a < rows; ++a) std::fill_n(scores + a * columns, columns, data.offsets[first + a]);
  add_product(rows, data.dimension, columns, {data.points.data() + first * data.dimension, data.dimension, 1},
              particles.data(), columns, scores, columns);
}

}  // namespace

std::span<const FeatureMap> feature_maps() { return all_maps; }

std::string_view name(FeatureMap map) {
  switch (map) {
    case FeatureMap::Fourier:
      return "fourier";
    case FeatureMap::FourierPhase:
      return "fourier_phase";
    case FeatureMap::Circle:
      return "circle";
    case FeatureMap::PositiveExponential:
      return "positive_exponential";
    case FeatureMap::Softplus:
      return "softplus";
    case FeatureMap::Relu:
      return "relu";
    case FeatureMap::Softmax:
      return "softmax";
    case FeatureMap::SoftmaxPair:
      return "softmax_pair";
  }
  return "";
}

std::string_view formula(FeatureMap map) {
  switch (map) {
    case FeatureMap::Fourier:
      return "(cos <w, z>, sin <w, z>): random Fourier features, both phases";
    case FeatureMap::FourierPhase:
      return "sqrt(2) cos(<w, z> + b): random Fourier features with a phase";
    case FeatureMap::Circle:
      return "sqrt(2) cos(z - w): one wave on the circle, the closed-form model";
    case FeatureMap::PositiveExponential:
      return "exp(<w, z> - |z|^2/2): positive features of the exponential kernel";
    case FeatureMap::Softplus:
      return "log(1 + exp <w, z>)";
    case FeatureMap::Relu:
      return "max(0, <w, z>): arc-cosine kernel";
    case FeatureMap::Softmax:
      return "N exp <w_i, z> / sum_j exp <w_j, z>: softmax over the features";
    case FeatureMap::SoftmaxPair:
      return "sqrt(2) N (exp <w_i, z>, exp -<w_i, z>) / sum_j (exp <w_j, z> + exp -<w_j, z>): softmax over "
             "the features "
             "and their mirror images";
  }
  return "";
}

std::optional<FeatureMap> feature_map_named(std::string_view wanted) {
  for (const FeatureMap map : all_maps)
    if (name(map) == wanted) return map;
  return std::nullopt;
}

std::size_t component_count(FeatureMap map) {
  return map == FeatureMap::Fourier || map == FeatureMap::SoftmaxPair ? 2 : 1;
}

bool couples_particles(FeatureMap map) {
  return map == FeatureMap::Softmax || map == FeatureMap::SoftmaxPair;
}

std::size_t particle_dimension(FeatureMap map, std::size_t data_dimension) {
  if (map == FeatureMap::Circle) return 1;
  return map == FeatureMap::FourierPhase ? data_dimension + 1 : data_dimension;
}

LiftedData lift(FeatureMap map, std::span<const double> points, std::size_t data_dimension) {
  expects(data_dimension >= 1 && points.size() % data_dimension == 0, "whole rows of data");
  expects(map != FeatureMap::Circle || data_dimension == 1, "the circle map takes one angle per data point");
  LiftedData lifted;
  lifted.count = points.size() / data_dimension;
  lifted.dimension = particle_dimension(map, data_dimension);
  lifted.offsets.assign(lifted.count, 0.0);
  lifted.points.assign(lifted.count * lifted.dimension, 0.0);
  for (std::size_t a = 0; a < lifted.count; ++a) {
    const double* point = points.data() + a * data_dimension;
    double* row = lifted.points.data() + a * lifted.dimension;
    if (map == FeatureMap::Circle) {
      row[0] = -1.0;
      lifted.offsets[a] = point[0];
      continue;
    }
    std::copy_n(point, data_dimension, row);
    if (map == FeatureMap::FourierPhase) row[data_dimension] = 1.0;
    if (map == FeatureMap::PositiveExponential)
      for (std::size_t k = 0; k < data_dimension; ++k) lifted.offsets[a] -= 0.5 * point[k] * point[k];
  }
  return lifted;
}

FeatureBlock::FeatureBlock(FeatureMap map, const LiftedData& data, std::span<const double> particles,
                           std::size_t capacity)
    : map_(map),
      data_(data),
      count_(particles.size() / data.dimension),
      columns_(padded(count_)),
      particles_(transposed(particles, data.dimension, 0, count_)),
      scores_(capacity * columns_),
      score_weights_(capacity * columns_, 0.0) {
  for (std::size_t c = 0; c < component_count(map); ++c) {
    values_[c].resize(scores_.size());
    slopes_[c].resize(scores_.size());
  }
}

void FeatureBlock::evaluate(std::size_t first, std::size_t rows) {
  expects(rows * columns_ <= scores_.size() && first + rows <= data_.count,
          "rows of the data within the capacity");
  first_ = first;
  rows_ = rows;
  set_scores(data_, first, rows, particles_, columns_, scores_.data());
  double* values[2] = {values_[0].data(), values_[1].data()};
  double* slopes[2] = {slopes_[0].data(), slopes_[1].data()};
  if (couples_particles(map_)) return normalise_exponentials(values, slopes);
  activate(map_, scores_.data(), rows * columns_, values, slopes);
}

void FeatureBlock::normalise_exponentials(double* const* values, double* const* slopes) {
  const std::size_t components = component_count(map_);
  std::vector<double> largest(rows_);
  for (std::size_t a = 0; a < rows_; ++a) {
    const double* row = scores_.data() + a * columns_;
    largest[a] = *std::max_element(row, row + count_);
    if (components == 2) largest[a] = std::max(largest[a], -*std::min_element(row, row + count_));
  }
  for (std::size_t c = components; c-- > 0;) {  // the mirror images first: shifting overwrites the scores
    const double sign = c == 0 ? 1.0 : -1.0;
    double* shifted = c == 0 ? scores_.data() : score_weights_.data();
    for (std::size_t a = 0; a < rows_; ++a)
      for (std::size_t i = 0; i < columns_; ++i)
        shifted[a * columns_ + i] = i < count_ ? sign * scores_[a * columns_ + i] - largest[a] : 0.0;
    activate(map_, shifted, rows_ * columns_, values + c, slopes + c);
  }
  for (std::size_t a = 0; a < rows_; ++a) {
    double sum = 0.0;
    for (std::size_t c = 0; c < components; ++c)
      for (std::size_t i = 0; i < count_; ++i) sum += values[c][a * columns_ + i];
    for (std::size_t c = 0; c < components; ++c)
      for (std::size_t i = 0; i < count_; ++i) values[c][a * columns_ + i] *= total_value() / sum;
  }
}

double FeatureBlock::total_value() const {
  return (map_ == FeatureMap::SoftmaxPair ? std::numbers::sqrt2 : 1.0) * static_cast<double>(count_);
}

void FeatureBlock::add_pullback(const double* const* weights, std::span<double> sums) {
  const std::size_t components = component_count(map_);
  for (std::size_t a = 0; a < rows_; ++a) {
    double* out = score_weights_.data() + a * columns_;
    std::fill_n(out, count_, 0.0);
    double mean =
        0.0;  // softmax maps: d phi_j / d s_i = phi_i (delta_ij - phi_j / total), - for mirror images
    if (couples_particles(map_)) {
      for (std::size_t c = 0; c < components; ++c)
        for (std::size_t i = 0; i < count_; ++i)
          mean += value(c)[a * columns_ + i] * weights[c][a * columns_ + i];
      mean /= total_value();
    }
    for (std::size_t c = 0; c < components; ++c) {
      const double* weight = weights[c] + a * columns_;
      const double* slope =
          couples_particles(map_) ? value(c) + a * columns_ : slopes_[c].data() + a * columns_;
      const double sign = couples_particles(map_) && c == 1 ? -1.0 : 1.0;
      for (std::size_t i = 0; i < count_; ++i) out[i] += sign * slope[i] * (weight[i] - mean);
    }
  }
  add_product(data_.dimension, rows_, columns_,
              {data_.points.data() + first_ * data_.dimension, 1, data_.dimension}, score_weights_.data(),
              columns_, sums.data(), columns_);
}

void feature_values(FeatureMap map, const LiftedData& data, std::span<const double> particles,
                    std::span<double> out) {
  FeatureBlock block(map, data, particles, block_rows);
  const std::size_t components = component_count(map);
  expects(out.size() == data.count * components * block.count(), "out is (row, component, particle)");
  for (std::size_t first = 0; first < data.count; first += block_rows) {
    const std::size_t rows = std::min(block_rows, data.count - first);
    block.evaluate(first, rows);
    for (std::size_t a = 0; a < rows; ++a)
      for (std::size_t c = 0; c < components; ++c)
        std::copy_n(block.value(c) + a * block.columns(), block.count(),
                    out.data() + ((first + a) * components + c) * block.count());
  }
}

void add_pullback(FeatureMap map, const LiftedData& data, std::span<const double> particles,
                  std::span<const double> weights, std::span<double> gradient) {
  FeatureBlock block(map, data, particles, block_rows);
  const std::size_t components = component_count(map), count = block.count(), columns = block.columns();
  expects(weights.size() == data.count * components * count, "weights are (row, component, particle)");
  expects(gradient.size() == count * data.dimension, "gradient is (particle, dimension)");
  std::vector<double> rows_of[2] = {std::vector<double>(block_rows * columns, 0.0),
                                    std::vector<double>(block_rows * columns, 0.0)};
  std::vector<double> sums(data.dimension * columns, 0.0);
  for (std::size_t first = 0; first < data.count; first += block_rows) {
    const std::size_t rows = std::min(block_rows, data.count - first);
    block.evaluate(first, rows);
    for (std::size_t a = 0; a < rows; ++a)
      for (std::size_t c = 0; c < components; ++c)
        std::copy_n(weights.data() + ((first + a) * components + c) * count, count,
                    rows_of[c].data() + a * columns);
    const double* const pointers[2] = {rows_of[0].data(), rows_of[1].data()};
    block.add_pullback(pointers, sums);
  }
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < data.dimension; ++k)
      gradient[i * data.dimension + k] += sums[k * columns + i];
}

void weighted_moments(FeatureMap map, const LiftedData& data, std::span<const double> weights,
                      std::span<const double> particles, std::span<double> moments,
                      std::span<double> derivatives, int threads) {
  expects(!couples_particles(map), "softmax features have no moments of one particle alone");
  const std::size_t p = data.dimension, count = particles.size() / p, components = component_count(map);
  expects(weights.size() == data.count && moments.size() == count * components &&
              derivatives.size() == count * components * p,
          "weights per row, moments per particle and component");

  // Rows (w_a, w_a x_a): row 0 of the product with values is the moment, rows 1..p with slopes the
  // derivative.
  const std::size_t width = p + 1;
  std::vector<double> weighted(data.count * width);
  for (std::size_t a = 0; a < data.count; ++a) {
    weighted[a * width] = weights[a];
    for (std::size_t k = 0; k < p; ++k) weighted[a * width + 1 + k] = weights[a] * data.points[a * p + k];
  }

  const std::size_t tiles = (count + tile_particles - 1) / tile_particles;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const std::size_t first_particle = tile * tile_particles;
    const std::size_t in_tile = std::min(tile_particles, count - first_particle);
    const std::size_t columns = padded(in_tile);
    const std::vector<double> omega = transposed(particles, p, first_particle, in_tile);
    std::vector<double> scores(block_rows * columns);
    std::array<std::vector<double>, 2> value, slope;
    double* values[2] = {nullptr, nullptr};
    double* slopes[2] = {nullptr, nullptr};
    for (std::size_t c = 0; c < components; ++c) {
      value[c].resize(scores.size());
      slope[c].resize(scores.size());
      values[c] = value[c].data();
      slopes[c] = slope[c].data();
    }
    std::vector<double> moment(components * columns, 0.0), sums(components * p * columns, 0.0);
    for (std::size_t first = 0; first < data.count; first += block_rows) {
      const std::size_t rows = std::min(block_rows, data.count - first);
      set_scores(data, first, rows, omega, columns, scores.data());
      activate(map, scores.data(), rows * columns, values, slopes);
      const double* left = weighted.data() + first * width;
      for (std::size_t c = 0; c < components; ++c) {
        add_product(1, rows, columns, {left, 1, width}, values[c], columns, moment.data() + c * columns,
                    columns);
        add_product(p, rows, columns, {left + 1, 1, width}, slopes[c], columns, sums.data() + c * p * columns,
                    columns);
      }
    }
    for (std::size_t i = 0; i < in_tile; ++i) {
      for (std::size_t c = 0; c < components; ++c) {
        const std::size_t target = (first_particle + i) * components + c;
        moments[target] = moment[c * columns + i];
        for (std::size_t k = 0; k < p; ++k) derivatives[target * p + k] = sums[(c * p + k) * columns + i];
      }
    }
  }
}

double median_distance(std::span<const double> points, std::size_t dimension, std::size_t limit) {
  const std::size_t rows = points.size() / dimension;
  expects(rows >= 2 && limit >= 2, "at least two rows");
  const std::size_t used = std::min(rows, limit);
  std::vector<double> squares;
  squares.reserve(used * (used - 1) / 2);
  for (std::size_t a = 0; a < used; ++a) {
    const double* x = points.data() + a * rows / used * dimension;
    for (std::size_t b = 0; b < a; ++b) {
      const double* y = points.data() + b * rows / used * dimension;
      double square = 0.0;
      for (std::size_t k = 0; k < dimension; ++k) square += (x[k] - y[k]) * (x[k] - y[k]);
      if (square > 0.0) squares.push_back(square);
    }
  }
  if (squares.empty()) return 0.0;
  const auto middle = squares.begin() + static_cast<std::ptrdiff_t>(squares.size() / 2);
  std::nth_element(squares.begin(), middle, squares.end());
  return std::sqrt(*middle);
}

}  // namespace rieszflow
