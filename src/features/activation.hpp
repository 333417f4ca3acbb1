#pragma once
#include <cstddef>

#include "features/feature_map.hpp"

namespace rieszflow {

/// Elementwise part of a feature map: values[c][k] = f_c(scores[k]) and slopes[c][k] = f_c'(scores[k]) for k
/// < count, a multiple of column_group. Scores beyond the range of the vector functions go through the C
/// library; what overflows there stays infinite. The softmax maps' part is the exponential; their
/// normalisation is left to the caller.
void activate(FeatureMap map, const double* scores, std::size_t count, double* const* values,
              double* const* slopes);

}  // namespace rieszflow
