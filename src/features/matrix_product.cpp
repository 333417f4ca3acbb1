#include "features/matrix_product.hpp"

#include "features/lanes.hpp"

namespace rieszflow {
namespace {

using lanes::Vector;

/// A tile of `Rows` x (8 Groups) numbers of C held in registers over the whole inner sum.
template <int Rows, int Groups>
[[gnu::always_inline]] inline void add_tile(std::size_t inner, MatrixView a, const double* b,
                                            std::size_t b_stride, double* c, std::size_t c_stride) {
  Vector sums[Rows][Groups];
  for (int r = 0; r < Rows; ++r)
    for (int g = 0; g < Groups; ++g) sums[r][g] = lanes::at(c + r * c_stride + g * column_group);
  for (std::size_t t = 0; t < inner; ++t) {
    const double* left = a.data + t * a.column_stride;
    for (int g = 0; g < Groups; ++g) {
      const Vector right = lanes::at(b + t * b_stride + g * column_group);
      for (int r = 0; r < Rows; ++r) sums[r][g] += left[r * a.row_stride] * right;
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int g = 0; g < Groups; ++g) lanes::at(c + r * c_stride + g * column_group) = sums[r][g];
}

template <int Groups>
[[gnu::always_inline]] inline void add_panel(std::size_t rows, std::size_t inner, MatrixView a,
                                             const double* b, std::size_t b_stride, double* c,
                                             std::size_t c_stride) {
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4)
    add_tile<4, Groups>(inner, {a.data + r * a.row_stride, a.row_stride, a.column_stride}, b, b_stride,
                        c + r * c_stride, c_stride);
  const MatrixView rest{a.data + r * a.row_stride, a.row_stride, a.column_stride};
  if (rows - r == 3) add_tile<3, Groups>(inner, rest, b, b_stride, c + r * c_stride, c_stride);
  if (rows - r == 2) add_tile<2, Groups>(inner, rest, b, b_stride, c + r * c_stride, c_stride);
  if (rows - r == 1) add_tile<1, Groups>(inner, rest, b, b_stride, c + r * c_stride, c_stride);
}

}  // namespace

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void add_product(
    std::size_t rows, std::size_t inner, std::size_t columns, MatrixView a, const double* b,
    std::size_t b_stride, double* c, std::size_t c_stride) {
  std::size_t column = 0;
  for (; column + 2 * column_group <= columns; column += 2 * column_group)
    add_panel<2>(rows, inner, a, b + column, b_stride, c + column, c_stride);
  if (column < columns) add_panel<1>(rows, inner, a, b + column, b_stride, c + column, c_stride);
}

}  // namespace rieszflow
