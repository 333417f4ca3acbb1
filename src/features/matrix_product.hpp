#pragma once
#include <cstddef>

namespace rieszflow {

/// Columns of the matrices below come in whole groups of this many numbers; callers pad with zeros.
inline constexpr std::size_t column_group = 8;

/// `count` rounded up to whole groups of columns.
constexpr std::size_t padded(std::size_t count) {
  return (count + column_group - 1) / column_group * column_group;
}

/// A read-only matrix with free strides: element (r, t) is data[r * row_stride + t * column_stride]. Swapping
/// the strides transposes it.
struct MatrixView {
  const double* data;
  std::size_t row_stride;
  std::size_t column_stride;
};

/// C(r, c) += sum_t A(r, t) B(t, c) for r < rows, t < inner, c < columns.
///
/// B and C are row-major with leading dimensions b_stride and c_stride; `columns` is a multiple of
/// column_group. The order of summation over t is fixed, so that a product split over columns by several
/// threads has the same bits. Made for the shapes of feature learning (inner or rows small), where a general
/// matrix product spends its time packing.
void add_product(std::size_t rows, std::size_t inner, std::size_t columns, MatrixView a, const double* b,
                 std::size_t b_stride, double* c, std::size_t c_stride);

}  // namespace rieszflow
