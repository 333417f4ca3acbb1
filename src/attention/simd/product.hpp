#pragma once
// The one matrix product of this folder: register tiles of rows times vectors of columns, compiled with its
// users once per processor level; everything has internal linkage.
#include "attention/simd/feature_kernels.hpp"
#include "attention/simd/float_vec.hpp"

namespace {

using rieszflow::attention::simd::group;

constexpr int vectors_per_group = static_cast<int>(group) / lanes;

/// sum(m, v) += sum_t a(m, t) b(t, v): the one register tile of all products here.
template <int M, int V>
RIESZFLOW_INLINE void multiply(std::size_t inner, const float* a, std::size_t a_row, std::size_t a_inner,
                               const float* b, std::size_t b_inner, Vec (&sum)[M][V]) {
  for (std::size_t t = 0; t < inner; ++t) {
    Vec right[V];
    for (int v = 0; v < V; ++v) right[v] = load(b + t * b_inner + v * lanes);
    for (int m = 0; m < M; ++m) {
      const Vec left = broadcast(a[m * a_row + t * a_inner]);
      for (int v = 0; v < V; ++v) sum[m][v] += left * right[v];
    }
  }
}

/// A(row, t) = a[row * row_stride + t * inner_stride].
struct Left {
  const float* a;
  std::size_t row_stride, inner_stride;
};

/// C = start + A B in tiles of M rows and V vectors; start(row, column) and finish(row, column, sum) give and
/// take a vector of C.
template <int M, int V, class Start, class Finish>
RIESZFLOW_INLINE void tile(std::size_t row, std::size_t column, std::size_t inner, Left left, const float* b,
                           std::size_t b_stride, Start start, Finish finish) {
  Vec sum[M][V];
  for (int m = 0; m < M; ++m)
    for (int v = 0; v < V; ++v) sum[m][v] = start(row + m, column + v * lanes);
  multiply<M, V>(inner, left.a + row * left.row_stride, left.row_stride, left.inner_stride, b + column,
                 b_stride, sum);
  for (int m = 0; m < M; ++m)
    for (int v = 0; v < V; ++v) finish(row + m, column + v * lanes, sum[m][v]);
}

template <int M, int V, class Start, class Finish>
RIESZFLOW_INLINE void panel(std::size_t rows, std::size_t column, std::size_t inner, Left left,
                            const float* b, std::size_t b_stride, Start start, Finish finish) {
  std::size_t row = 0;
  for (; row + M <= rows; row += M) tile<M, V>(row, column, inner, left, b, b_stride, start, finish);
  if constexpr (M > 4) {
    for (; row + 4 <= rows; row += 4) tile<4, V>(row, column, inner, left, b, b_stride, start, finish);
  }
  for (; row < rows; ++row) tile<1, V>(row, column, inner, left, b, b_stride, start, finish);
}

/// `columns` is a multiple of group.
template <class Start, class Finish>
RIESZFLOW_INLINE void product(std::size_t rows, std::size_t inner, std::size_t columns, Left left,
                              const float* b, std::size_t b_stride, Start start, Finish finish) {
  std::size_t column = 0;
#if RIESZFLOW_AVX512
  for (; column + 4 * group <= columns; column += 4 * group)
    panel<6, 4>(rows, column, inner, left, b, b_stride, start, finish);
  for (; column + 2 * group <= columns; column += 2 * group)
    panel<8, 2>(rows, column, inner, left, b, b_stride, start, finish);
  if (column < columns) panel<8, 1>(rows, column, inner, left, b, b_stride, start, finish);
#elif defined(__AVX2__)
  for (; column < columns; column += group)
    panel<6, vectors_per_group>(rows, column, inner, left, b, b_stride, start, finish);
#else
  for (; column < columns; column += group)
    panel<2, vectors_per_group>(rows, column, inner, left, b, b_stride, start, finish);
#endif
}

constexpr auto nothing = [](std::size_t, std::size_t) { return Vec{}; };

}  // namespace
