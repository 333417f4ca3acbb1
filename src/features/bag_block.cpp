#include "features/bag_block.hpp"

#include <algorithm>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

/// Points of the largest block of `capacity` consecutive bags that begins at a multiple of `capacity` or
/// anywhere.
std::size_t largest_block(std::span<const std::size_t> starts, std::size_t capacity) {
  if (starts.empty()) return capacity;
  std::size_t largest = 0;
  for (std::size_t b = 0; b + 1 < starts.size(); ++b)
    largest = std::max(largest, starts[std::min(b + capacity, starts.size() - 1)] - starts[b]);
  return largest;
}

}  // namespace

BagBlock::BagBlock(FeatureMap map, const LiftedData& data, std::span<const std::size_t> starts,
                   std::span<const double> particles, std::size_t capacity)
    : starts_(starts),
      components_(component_count(map)),
      points_(map, data, particles, largest_block(starts, capacity)) {
  if (starts_.empty()) return;
  expects(starts_.front() == 0 && starts_.back() == data.count, "bags hold all points");
  for (std::size_t c = 0; c < components_; ++c) {
    means_[c].resize(capacity * columns());
    point_weights_[c].resize(largest_block(starts, capacity) * columns());
  }
}

std::size_t BagBlock::bag_count(const LiftedData& data, std::span<const std::size_t> starts) {
  return starts.empty() ? data.count : starts.size() - 1;
}

void BagBlock::evaluate(std::size_t first, std::size_t bags) {
  first_ = first;
  bags_ = bags;
  if (starts_.empty()) return points_.evaluate(first, bags);
  points_.evaluate(starts_[first], starts_[first + bags] - starts_[first]);
  for (std::size_t c = 0; c < components_; ++c)
    for (std::size_t b = 0; b < bags; ++b) {
      double* mean = means_[c].data() + b * columns();
      std::fill_n(mean, columns(), 0.0);
      const std::size_t begin = starts_[first + b], end = starts_[first + b + 1];
      for (std::size_t point = begin; point < end; ++point) {
        const double* phi = points_.value(c) + (point - starts_[first]) * columns();
        for (std::size_t i = 0; i < columns(); ++i) mean[i] += phi[i];
      }
      for (std::size_t i = 0; i < columns(); ++i) mean[i] /= static_cast<double>(end - begin);
    }
}

void BagBlock::add_pullback(const double* const* weights, std::span<double> sums) {
  if (starts_.empty()) return points_.add_pullback(weights, sums);
  for (std::size_t c = 0; c < components_; ++c)
    for (std::size_t b = 0; b < bags_; ++b) {
      const double* of_bag = weights[c] + b * columns();
      const std::size_t begin = starts_[first_ + b], end = starts_[first_ + b + 1];
      for (std::size_t point = begin; point < end; ++point) {
        double* out = point_weights_[c].data() + (point - starts_[first_]) * columns();
        for (std::size_t i = 0; i < columns(); ++i) out[i] = of_bag[i] / static_cast<double>(end - begin);
      }
    }
  const double* const pointers[2] = {point_weights_[0].data(), point_weights_[1].data()};
  points_.add_pullback(pointers, sums);
}

}  // namespace rieszflow
