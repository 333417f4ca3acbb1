#pragma once
// What the kernels of this folder compute with vectors of floats. Included only by its sources, which are
// compiled once for each processor level.
#if !defined(RIESZFLOW_SINGLE)
#define RIESZFLOW_SINGLE
#endif
#include "core/simd/vector.hpp"

namespace {

RIESZFLOW_INLINE Vec magnitude(Vec v) { return from_bits(bits(v) & 0x7fffffff); }

/// Of numbers: what a NaN gives is not defined.
RIESZFLOW_INLINE Vec larger(Vec a, Vec b) {
#if RIESZFLOW_AVX512
  return _mm512_maskz_max_ps(all_lanes, a, b);  // the plain form warns: gcc bug 105593
#elif defined(__AVX2__)
  return _mm256_max_ps(a, b);
#elif defined(__SSE2__)
  return _mm_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}

/// Sum over lanes, pairwise.
RIESZFLOW_INLINE float total(Vec v) {
#if RIESZFLOW_AVX512
  const __m256 half = _mm512_maskz_extractf32x8_ps(0xff, v, 0) + _mm512_maskz_extractf32x8_ps(0xff, v, 1);
  const __m128 quarter = _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
#elif defined(__AVX2__)
  const __m128 quarter = _mm256_castps256_ps128(v) + _mm256_extractf128_ps(v, 1);
#else
  const Vec quarter = v;
#endif
#if defined(__SSE2__)
  const __m128 pair = quarter + _mm_movehl_ps(quarter, quarter);
  return pair[0] + pair[1];
#else
  return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
#endif
}

/// Largest lane.
RIESZFLOW_INLINE float largest(Vec v) {
#if RIESZFLOW_AVX512
  const __m256 half =
      _mm256_max_ps(_mm512_maskz_extractf32x8_ps(0xff, v, 0), _mm512_maskz_extractf32x8_ps(0xff, v, 1));
  const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
#elif defined(__AVX2__)
  const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
#else
  const Vec quarter = v;
#endif
#if defined(__SSE2__)
  const __m128 pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return pair[0] > pair[1] ? pair[0] : pair[1];
#else
  float most = quarter[0];
  for (int l = 1; l < lanes; ++l) most = quarter[l] > most ? quarter[l] : most;
  return most;
#endif
}

/// 2^y for y < 128; 0 from about -126 down. Relative error below 1.5e-7: the polynomial approximates 2^z on
/// |z| <= 1/2 to 7.5e-8 in the largest relative error.
RIESZFLOW_INLINE Vec exp2(Vec y) {
#if RIESZFLOW_AVX512
  const Vec n = _mm512_maskz_roundscale_ps(all_lanes, y, 0);
#else
  y = larger(y, broadcast(-127.0F));
  const Vec shifted = y + 0x1.8p23F;
  const Vec n = shifted - 0x1.8p23F;
#endif
  const Vec z = y - n;
  Vec p = z * 0.0013276471818959306F + 0.009675541333034575F;
  p = p * z + 0.05550713274033805F;
  p = p * z + 0.24022119723874966F;
  p = p * z + 0.6931469670644327F;
  p = p * z + 1.0000000716546718F;
#if RIESZFLOW_AVX512
  return _mm512_maskz_scalef_ps(all_lanes, p, n);
#else
  const Int scale = (bits(shifted) - bits(broadcast(0x1.8p23F)) + 127) << 23;  // n = -127: the number 0
  return p * from_bits(scale);
#endif
}

/// log2(1 + t) for 0 <= t <= 1: t times a polynomial, relative error below 3e-7.
RIESZFLOW_INLINE Vec log2_of_one_plus(Vec t) {
  Vec p = t * 0.007549181087047126F - 0.04256705774369359F;
  p = p * t + 0.11285618645729466F;
  p = p * t - 0.19711896408399596F;
  p = p * t + 0.275641409494297F;
  p = p * t - 0.3584084717499559F;
  p = p * t + 0.48069295722833744F;
  p = p * t - 0.7213402080032452F;
  p = p * t + 1.4426949974343215F;
  return p * t;
}

}  // namespace
