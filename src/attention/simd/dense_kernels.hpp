#pragma once
// What an encoder does between two attentions, compiled with feature_kernels.cpp once per processor level.
#include "attention/simd/product.hpp"

namespace {

/// Phi(s) = erfc(-s / sqrt 2) / 2 with erfc(z) = t exp(-z^2 + polynomial(t)), t = 1 / (1 + z / 2), z >= 0:
/// relative error of erfc below 1.2e-7 in exact arithmetic. Source: Press et al., Numerical Recipes (1992),
/// section 6.2.
RIESZFLOW_INLINE Vec normal_distribution(Vec s) {
  const Vec z = magnitude(s) * 0.70710678118654752440F;
  const Vec t = 1.0F / (1.0F + 0.5F * z);
  Vec p = t * 0.17087277F - 0.82215223F;
  p = p * t + 1.48851587F;
  p = p * t - 1.13520398F;
  p = p * t + 0.27886807F;
  p = p * t - 0.18628806F;
  p = p * t + 0.09678418F;
  p = p * t + 0.37409196F;
  p = p * t + 1.00002368F;
  p = p * t - 1.26551223F;
  const Vec tail = 0.5F * t * exp2((p - z * z) * 1.44269504088896340736F);
  return s < 0.0F ? tail : 1.0F - tail;
}

void gelu(std::size_t count, float* values) {
  std::size_t k = 0;
  for (; k + lanes <= count; k += lanes) {
    const Vec s = load(values + k);
    store(values + k, s * normal_distribution(s));
  }
  if (k == count) return;
  float rest[lanes] = {};
  for (std::size_t l = k; l < count; ++l) rest[l - k] = values[l];
  const Vec s = load(rest);
  store(rest, s * normal_distribution(s));
  for (std::size_t l = k; l < count; ++l) values[l] = rest[l - k];
}

void layer_norm(std::size_t rows, std::size_t columns, const float* x, std::size_t stride, const float* gain,
                const float* bias, float* out) {
  const auto inverse = 1.0F / static_cast<float>(columns);
  for (std::size_t t = 0; t < rows; ++t) {
    const float* const row = x + t * stride;
    float* const to = out + t * stride;
    Vec sum{};
    float rest = 0.0F;
    std::size_t k = 0;
    for (; k + lanes <= columns; k += lanes) sum += load(row + k);
    for (std::size_t l = k; l < columns; ++l) rest += row[l];
    const float mean = (total(sum) + rest) * inverse;
    sum = Vec{};
    rest = 0.0F;
    for (k = 0; k + lanes <= columns; k += lanes) {
      const Vec difference = load(row + k) - mean;
      sum += difference * difference;
    }
    for (std::size_t l = k; l < columns; ++l) rest += (row[l] - mean) * (row[l] - mean);
    const float scale = 1.0F / __builtin_sqrtf((total(sum) + rest) * inverse + 1e-5F);
    for (k = 0; k + lanes <= columns; k += lanes)
      store(to + k, (load(row + k) - mean) * scale * load(gain + k) + load(bias + k));
    for (std::size_t l = k; l < columns; ++l) to[l] = (row[l] - mean) * scale * gain[l] + bias[l];
  }
}

void affine(std::size_t rows, std::size_t inputs, std::size_t columns, const float* x, std::size_t x_stride,
            const float* weight, const float* bias, bool adds, float* out, std::size_t out_stride) {
  product(
      rows, inputs, columns, {x, x_stride, 1}, weight, columns,
      [=](std::size_t t, std::size_t c) {
        const Vec start = load(bias + c);
        return adds ? start + load(out + t * out_stride + c) : start;
      },
      [=](std::size_t t, std::size_t c, Vec sum) { store(out + t * out_stride + c, sum); });
}

}  // namespace
