#pragma once
// Vectors of floats as wide as the processor that this file is compiled for. Included only by the sources of
// this folder, which are compiled once for each processor level; everything has internal linkage, so that
// code made for one level is never linked into another.
#include <cstddef>
#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define RIESZFLOW_AVX512 1
constexpr int lanes = 16;
#else
#define RIESZFLOW_AVX512 0
#if defined(__AVX2__)
constexpr int lanes = 8;
#else
constexpr int lanes = 4;
#endif
#endif

using Vec = float __attribute__((vector_size(4 * lanes)));
using Int = std::int32_t __attribute__((vector_size(4 * lanes)));
/// A Vec at an address that is a multiple of 4 only; may alias floats.
// A typedef: clang drops the alignment of an alias declaration.
typedef float UnalignedVec __attribute__((vector_size(4 * lanes), aligned(4), may_alias));

#define RIESZFLOW_INLINE [[gnu::always_inline]] inline

RIESZFLOW_INLINE Vec load(const float* from) { return *reinterpret_cast<const UnalignedVec*>(from); }
RIESZFLOW_INLINE void store(float* to, Vec v) { *reinterpret_cast<UnalignedVec*>(to) = v; }
RIESZFLOW_INLINE Vec broadcast(float x) { return x - Vec{}; }
RIESZFLOW_INLINE Int bits(Vec v) { return reinterpret_cast<Int>(v); }
RIESZFLOW_INLINE Vec from_bits(Int i) { return reinterpret_cast<Vec>(i); }
RIESZFLOW_INLINE Vec magnitude(Vec v) { return from_bits(bits(v) & 0x7fffffff); }

/// Of numbers: what a NaN gives is not defined.
RIESZFLOW_INLINE Vec larger(Vec a, Vec b) {
#if RIESZFLOW_AVX512
  return _mm512_maskz_max_ps(0xffff, a, b);  // the plain form warns: gcc bug 105593
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
  const Vec n = _mm512_maskz_roundscale_ps(0xffff, y, 0);
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
  return _mm512_maskz_scalef_ps(0xffff, p, n);
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
