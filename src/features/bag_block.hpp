#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "features/feature_block.hpp"

namespace rieszflow {

/// Features of bags of points, phi(bag; omega) = mean of phi(z; omega) over the points z of the bag, on a
/// block of consecutive bags: a sentence is the bag of its tokens. Without bags every point is a bag of its
/// own, at no cost. Rows as in feature_block.hpp.
class BagBlock {
 public:
  /// `starts`: (bag + 1), bag b holds points starts[b]..starts[b+1]-1, at least one; empty: no bags. `data`,
  /// `starts` must outlive this object. Blocks of at most `capacity` bags.
  BagBlock(FeatureMap map, const LiftedData& data, std::span<const std::size_t> starts,
           std::span<const double> particles, std::size_t capacity);

  /// Number of bags of the data.
  static std::size_t bag_count(const LiftedData& data, std::span<const std::size_t> starts);

  /// Features of bags first..first+bags-1.
  void evaluate(std::size_t first, std::size_t bags);

  /// sums(k, i) += sum_b sum_c weights[c](b, i) d phi_c(bag_b; omega_i) / d omega_ik over the block just
  /// evaluated. weights: per component (bag, columns); sums: (p, columns).
  void add_pullback(const double* const* weights, std::span<double> sums);

  std::size_t count() const { return points_.count(); }      ///< N
  std::size_t columns() const { return points_.columns(); }  ///< padded(N)
  /// (bag, columns) of one component.
  const double* value(std::size_t component) const {
    return starts_.empty() ? points_.value(component) : means_[component].data();
  }

 private:
  std::span<const std::size_t> starts_;
  std::size_t components_;
  FeatureBlock points_;
  std::size_t first_ = 0, bags_ = 0;
  std::array<std::vector<double>, 2> means_;          ///< (bag, columns)
  std::array<std::vector<double>, 2> point_weights_;  ///< (point, columns)
};

}  // namespace rieszflow
