#pragma once
#include <cstddef>

/// The inner loops of attention and of the encoder around it in float32, compiled once per processor level
/// and chosen at run time.
///
/// All exponents are base 2: a score is s_r = log2(e) d^(-1/4) <omega_r, row>, and log2(e) is inside `omega`.
namespace rieszflow::attention::simd {

/// Columns of all packed arrays come in whole groups of this many numbers.
constexpr std::size_t group = 16;
constexpr std::size_t padded(std::size_t count) { return (count + group - 1) / group * group; }

/// Most tokens of one call.
constexpr std::size_t block = 64;

enum class Map {
  Exponential,  ///< 2^(s - square_scale |row|^2): favor, and (square_scale 0, omega the queries) exact
                ///< softmax
  Softplus,     ///< log2(1 + 2^s)
  SoftmaxPair,  ///< softmax over (s, -s), the positive half in columns [0, columns), the negative after it
};

/// What turns rows into features.
struct Features {
  Map map = Map::Exponential;
  std::size_t dimension = 0;     ///< d of a row
  std::size_t count = 0;         ///< m
  std::size_t columns = 0;       ///< padded(m)
  const float* omega = nullptr;  ///< (d, columns), zero in the padding
  float square_scale = 0.0F;
  float largest_square = 0.0F;  ///< of |row|^2; rows beyond it lose digits in float32 and are refused

  std::size_t components() const { return map == Map::SoftmaxPair ? 2 * columns : columns; }
};

/// Sums over keys, component by component: 2^-shift sum_j phi(k_j) (v_j, 1).
struct Sums {
  float* shift = nullptr;     ///< (component) of the exponential map, else 0
  float* weighted = nullptr;  ///< (component, value_columns)
  float* weights = nullptr;   ///< (component)
  std::size_t value_columns = 0;
};

/// Rows of one head in memory; `stride` floats from one to the next.
struct Rows {
  const float* data = nullptr;
  std::size_t stride = 0;
  std::size_t count = 0;  ///< at most `block`
};

/// A walk through memory that will be needed soon, a few cache lines at a time between other work.
struct Ahead {
  const float* row = nullptr;
  std::size_t stride = 0;  ///< floats from one row to the next
  std::size_t width = 0;   ///< floats of a row that will be needed
  std::size_t rows = 0;    ///< left
  std::size_t lines_at_once = 1;
  std::size_t column = 0;

  void step() {
    for (std::size_t k = 0; k < lines_at_once && rows > 0; ++k) {
      __builtin_prefetch(row + column, 0, 2);
      column += group;
      if (column < width) continue;
      column = 0;
      row += stride;
      --rows;
    }
  }
};

struct Kernels {
  /// Adds the keys and values of a block; values.data must be readable to value_columns. scratch: block *
  /// components. ahead: two walks, which take a step with each row. False, and nothing added, if a key has
  /// |k|^2 > largest_square (or is no number).
  bool (*absorb)(const Features& features, const Rows& keys, const Rows& values, const Sums& sums,
                 float* scratch, Ahead* ahead);
  /// out(i, :) = sum_r phi_r(q_i) weighted(r, :) / sum_r phi_r(q_i) weights(r), shifts included; out: (row,
  /// value_columns). False if a query has |q|^2 > largest_square, a result is no finite number, or a
  /// denominator has fallen below 1e-30.
  bool (*answer)(const Features& features, const Sums& sums, const Rows& queries, float* scratch, float* out,
                 std::size_t out_stride, Ahead* ahead);

  /// out(t, c) = bias(c) + sum_i x(t, i) weight(i, c), added to what `out` holds if `adds`; `columns` in
  /// whole groups, weight: (inputs, columns).
  void (*affine)(std::size_t rows, std::size_t inputs, std::size_t columns, const float* x,
                 std::size_t x_stride, const float* weight, const float* bias, bool adds, float* out,
                 std::size_t out_stride);
  /// (x - mean) / sqrt(variance + 1e-5) gain + bias of each row of `columns` numbers, rows `stride` apart in
  /// both arrays.
  void (*layer_norm)(std::size_t rows, std::size_t columns, const float* x, std::size_t stride,
                     const float* gain, const float* bias, float* out);
  /// s (1 + erf(s / sqrt 2)) / 2 in place.
  void (*gelu)(std::size_t count, float* values);
  const char* level;
};

/// The widest that this processor can run.
const Kernels& kernels();
/// All levels that this processor can run, the widest first.
std::size_t kernel_levels(const Kernels** out, std::size_t most);

}  // namespace rieszflow::attention::simd
