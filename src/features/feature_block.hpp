#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "features/feature_map.hpp"

namespace rieszflow {

/// Features of all particles on a block of consecutive data rows, and the pullback through them: what sums
/// over the data are made of when n x N numbers are not to be stored. Rows have `columns` numbers, padded as
/// in matrix_product.hpp; what stands in the padding has no meaning.
class FeatureBlock {
 public:
  /// Blocks of at most `capacity` rows of `data`, which must outlive this object. particles: (particle, p).
  FeatureBlock(FeatureMap map, const LiftedData& data, std::span<const double> particles,
               std::size_t capacity);

  /// Features and slopes of rows first..first+rows-1. The softmax maps' row maximum is taken out before the
  /// exponential and their values have a fixed mean, so they never overflow.
  void evaluate(std::size_t first, std::size_t rows);

  /// sums(k, i) += sum_a sum_c weights[c](a, i) d phi_c(z_a; omega_i) / d omega_ik over the block just
  /// evaluated, the softmax coupling included. weights: per component (row, columns); sums: (p, columns).
  void add_pullback(const double* const* weights, std::span<double> sums);

  std::size_t count() const { return count_; }      ///< N
  std::size_t columns() const { return columns_; }  ///< padded(N)
  /// (row, columns) of one component.
  const double* value(std::size_t component) const { return values_[component].data(); }

 private:
  FeatureMap map_;
  const LiftedData& data_;
  std::size_t count_;
  std::size_t columns_;
  std::size_t first_ = 0;
  std::size_t rows_ = 0;
  std::vector<double> particles_;  ///< (p, columns)
  std::vector<double> scores_;     ///< (row, columns)
  std::vector<double> score_weights_;
  std::array<std::vector<double>, 2> values_;
  std::array<std::vector<double>, 2> slopes_;

  double total_value() const;  ///< sum of all values of a row, of the softmax maps
  void normalise_exponentials(double* const* values, double* const* slopes);
};

}  // namespace rieszflow
