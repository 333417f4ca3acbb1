// Compiled once per processor level (RIESZFLOW_SIMD_LEVEL is a name), see attention/CMakeLists.txt.
// Method: a block of rows times omega in register tiles, the map on the block in cache, then the products
// with the values (keys) or with the sums (queries) in register tiles. Nothing grows with the length of the
// sequence.
#include "attention/simd/feature_kernels.hpp"

#include "attention/simd/dense_kernels.hpp"
#include "attention/simd/product.hpp"

namespace {

using rieszflow::attention::simd::Ahead;
using rieszflow::attention::simd::block;
using rieszflow::attention::simd::Features;
using rieszflow::attention::simd::Map;
using rieszflow::attention::simd::Rows;
using rieszflow::attention::simd::Sums;

/// A shift is raised when a key exceeds it by this many powers of two, so that it seldom is.
constexpr float slack = 24.0F;
/// Below this a denominator in float32 is no longer accurate.
constexpr float least_denominator = 1e-30F;

/// |row|^2 of each row; false if one exceeds `most` or is no number.
RIESZFLOW_INLINE bool squares(const Rows& rows, std::size_t dimension, float most, float* out) {
  float worst = 0.0F;
  bool fine = true;
  for (std::size_t t = 0; t < rows.count; ++t) {
    const float* row = rows.data + t * rows.stride;
    Vec sum{};
    std::size_t k = 0;
    for (; k + lanes <= dimension; k += lanes) sum += load(row + k) * load(row + k);
    float square = total(sum);
    for (; k < dimension; ++k) square += row[k] * row[k];
    out[t] = square;
    worst = square > worst ? square : worst;
    fine = fine && square <= most;  // false for NaN
  }
  return fine && worst <= most;
}

/// Scores of a block to scratch: (row, columns), each vector minus shift(row, column).
template <class Start>
RIESZFLOW_INLINE void scores(const Features& f, const Rows& rows, Start start, float* scratch, Ahead* ahead) {
  const std::size_t stride = f.components();
  product(rows.count, f.dimension, f.columns, {rows.data, rows.stride, 1}, f.omega, f.columns, start,
          [=](std::size_t t, std::size_t r, Vec sum) {
            store(scratch + t * stride + r, sum);
            if (r == 0) {
              ahead[0].step();
              ahead[1].step();
            }
          });
}

/// Softmax over (s, -s) of each row in place: the negative half goes to the columns after the positive one.
RIESZFLOW_INLINE void softmax_pairs(const Features& f, std::size_t rows, float* scratch) {
  const std::size_t stride = f.components(), columns = f.columns;
  alignas(64) float present[2 * group];  // 1 in the columns of the last group that are features
  for (std::size_t r = 0; r < group; ++r) present[r] = columns - group + r < f.count ? 1.0F : 0.0F;
  for (std::size_t t = 0; t < rows; ++t) {
    float* const row = scratch + t * stride;
    Vec most{};  // |s| >= 0, and the padding has s = 0
    for (std::size_t r = 0; r < columns; r += lanes) most = larger(most, magnitude(load(row + r)));
    const Vec shift = broadcast(largest(most));
    Vec sum{};
    for (std::size_t r = 0; r < columns; r += lanes) {
      const Vec s = load(row + r);
      Vec positive = exp2(s - shift), negative = exp2(-s - shift);
      if (r + group >= columns && f.count != columns) {
        const Vec mask = load(present + (r + group - columns));
        positive *= mask;
        negative *= mask;
      }
      sum += positive + negative;
      store(row + r, positive);
      store(row + columns + r, negative);
    }
    const Vec scale = broadcast(1.0F / total(sum));
    for (std::size_t r = 0; r < stride; r += lanes) store(row + r, load(row + r) * scale);
  }
}

/// log2(1 + 2^s) in place; 0 in the padding.
RIESZFLOW_INLINE void softplus(const Features& f, std::size_t rows, float* scratch) {
  for (std::size_t t = 0; t < rows; ++t) {
    float* const row = scratch + t * f.columns;
    for (std::size_t r = 0; r < f.columns; r += lanes) {
      const Vec s = load(row + r);
      store(row + r, larger(s, Vec{}) + log2_of_one_plus(exp2(-magnitude(s))));
    }
    for (std::size_t r = f.count; r < f.columns; ++r) row[r] = 0.0F;
  }
}

bool absorb(const Features& f, const Rows& keys, const Rows& values, const Sums& sums, float* scratch,
            Ahead* ahead) {
  alignas(64) float square[block];
  if (!squares(keys, f.dimension, f.largest_square, square)) return false;
  const std::size_t components = f.components(), rows = keys.count;
  switch (f.map) {
    case Map::Exponential: {
      if (f.square_scale == 0.0F) {
        scores(f, keys, nothing, scratch, ahead);
      } else {
        for (std::size_t t = 0; t < rows; ++t) square[t] *= -f.square_scale;
        const float* const start = square;
        scores(
            f, keys, [=](std::size_t t, std::size_t) { return broadcast(start[t]); }, scratch, ahead);
      }
      for (std::size_t r = 0; r < components; r += lanes) {
        Vec most = load(scratch + r);
        for (std::size_t t = 1; t < rows; ++t) most = larger(most, load(scratch + t * components + r));
        const Vec old = load(sums.shift + r);
        const Vec shift = most > old + slack ? most : old;
        alignas(64) float factor[lanes];
        store(factor, exp2(old - shift));
        bool raised = false;
        for (int l = 0; l < lanes; ++l) raised = raised || factor[l] != 1.0F;
        if (raised) {
          store(sums.shift + r, shift);
          store(sums.weights + r, load(sums.weights + r) * load(factor));
          for (int l = 0; l < lanes; ++l) {
            float* const row = sums.weighted + (r + static_cast<std::size_t>(l)) * sums.value_columns;
            for (std::size_t c = 0; c < sums.value_columns; c += lanes)
              store(row + c, load(row + c) * factor[l]);
          }
        }
        Vec weights{};
        for (std::size_t t = 0; t < rows; ++t) {
          const Vec feature = exp2(load(scratch + t * components + r) - shift);
          weights += feature;
          store(scratch + t * components + r, feature);
        }
        store(sums.weights + r, load(sums.weights + r) + weights);
      }
      break;
    }
    case Map::Softplus:
      scores(f, keys, nothing, scratch, ahead);
      softplus(f, rows, scratch);
      break;
    case Map::SoftmaxPair:
      scores(f, keys, nothing, scratch, ahead);
      softmax_pairs(f, rows, scratch);
      break;
  }
  if (f.map != Map::Exponential) {
    for (std::size_t r = 0; r < components; r += lanes) {
      Vec weights = load(scratch + r);
      for (std::size_t t = 1; t < rows; ++t) weights += load(scratch + t * components + r);
      store(sums.weights + r, load(sums.weights + r) + weights);
    }
  }
  // weighted(r, :) += sum_t phi(t, r) v(t, :)
  float* const weighted = sums.weighted;
  const std::size_t stride = sums.value_columns;
  product(
      components, rows, stride, {scratch, 1, components}, values.data, values.stride,
      [=](std::size_t r, std::size_t c) { return load(weighted + r * stride + c); },
      [=](std::size_t r, std::size_t c, Vec sum) { store(weighted + r * stride + c, sum); });
  return true;
}

bool answer(const Features& f, const Sums& sums, const Rows& queries, float* scratch, float* out,
            std::size_t out_stride, Ahead* ahead) {
  alignas(64) float square[block], inverse[block];
  if (!squares(queries, f.dimension, f.largest_square, square)) return false;
  const std::size_t components = f.components(), rows = queries.count;
  bool fine = true;
  switch (f.map) {
    case Map::Exponential: {  // -|x|^2 is a factor of the whole row and cancels
      const float* const shift = sums.shift;
      scores(
          f, queries, [=](std::size_t, std::size_t r) { return load(shift + r); }, scratch, ahead);
      for (std::size_t t = 0; t < rows; ++t) {
        float* const row = scratch + t * components;
        Vec most = load(row);
        for (std::size_t r = lanes; r < components; r += lanes) most = larger(most, load(row + r));
        const Vec down = broadcast(largest(most));
        Vec sum{};
        for (std::size_t r = 0; r < components; r += lanes) {
          const Vec feature = exp2(load(row + r) - down);
          sum += feature * load(sums.weights + r);
          store(row + r, feature);
        }
        const float denominator = total(sum);
        fine = fine && denominator >= least_denominator;
        inverse[t] = 1.0F / denominator;
      }
      break;
    }
    case Map::Softplus:
    case Map::SoftmaxPair:
      scores(f, queries, nothing, scratch, ahead);
      f.map == Map::Softplus ? softplus(f, rows, scratch) : softmax_pairs(f, rows, scratch);
      for (std::size_t t = 0; t < rows; ++t) {
        const float* const row = scratch + t * components;
        Vec sum{};
        for (std::size_t r = 0; r < components; r += lanes) sum += load(row + r) * load(sums.weights + r);
        const float denominator = total(sum);
        fine = fine && denominator >= least_denominator;
        inverse[t] = 1.0F / denominator;
      }
      break;
  }
  Vec spoilt{};  // 0, or NaN once a result was not finite
  const float* const scale = inverse;
  product(rows, components, sums.value_columns, {scratch, components, 1}, sums.weighted, sums.value_columns,
          nothing, [&](std::size_t t, std::size_t c, Vec sum) {
            const Vec result = sum * scale[t];
            spoilt += result - result;
            store(out + t * out_stride + c, result);
          });
  return fine && total(spoilt) == 0.0F;
}

#define RIESZFLOW_TEXT(x) #x
#define RIESZFLOW_STRING(x) RIESZFLOW_TEXT(x)

}  // namespace

namespace rieszflow::attention::simd {
extern const Kernels RIESZFLOW_SIMD_LEVEL;
const Kernels RIESZFLOW_SIMD_LEVEL{absorb,     answer, affine,
                                   layer_norm, gelu,   RIESZFLOW_STRING(RIESZFLOW_SIMD_LEVEL)};
}  // namespace rieszflow::attention::simd
