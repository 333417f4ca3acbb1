#pragma once
// Vectors of doubles as wide as the processor that this file is compiled for. Included only by the sources of
// this folder, which are compiled once for each processor level; everything has internal linkage, so that
// code made for one level is never linked into another.
#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__) && defined(__AVX512DQ__)
constexpr int lanes = 8;
#elif defined(__AVX2__)
constexpr int lanes = 4;
#else
constexpr int lanes = 2;
#endif

using Vec = double __attribute__((vector_size(8 * lanes)));
using Int = std::int64_t __attribute__((vector_size(8 * lanes)));
/// A Vec at an address that is a multiple of 8 only; may alias doubles.
using UnalignedVec = double __attribute__((vector_size(8 * lanes), aligned(8), may_alias));

#define RIESZFLOW_INLINE [[gnu::always_inline]] inline

RIESZFLOW_INLINE Vec load(const double* from) { return *reinterpret_cast<const UnalignedVec*>(from); }
RIESZFLOW_INLINE void store(double* to, Vec v) { *reinterpret_cast<UnalignedVec*>(to) = v; }
RIESZFLOW_INLINE Vec broadcast(double x) { return x - Vec{}; }
RIESZFLOW_INLINE Int broadcast(std::int64_t x) { return x - Int{}; }
RIESZFLOW_INLINE Int lane_numbers() {
  Int numbers{};
  for (int l = 0; l < lanes; ++l) numbers[l] = l;
  return numbers;
}
RIESZFLOW_INLINE Int bits(Vec v) { return reinterpret_cast<Int>(v); }
RIESZFLOW_INLINE Vec from_bits(Int i) { return reinterpret_cast<Vec>(i); }

RIESZFLOW_INLINE Vec square_root(Vec v) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  return _mm512_maskz_sqrt_pd(0xff, v);  // the plain form warns: gcc bug 105593
#elif defined(__AVX2__)
  return _mm256_sqrt_pd(v);
#elif defined(__SSE2__)
  return _mm_sqrt_pd(v);
#else
  for (int l = 0; l < lanes; ++l) v[l] = __builtin_sqrt(v[l]);
  return v;
#endif
}

/// Sum over lanes, pairwise.
RIESZFLOW_INLINE double total(Vec v) {
  double parts[lanes];
  for (int l = 0; l < lanes; ++l) parts[l] = v[l];
  for (int width = lanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) parts[l] += parts[l + width];
  }
  return parts[0];
}

/// v = mantissa 2^exponent with mantissa in [1, 2), for normal v; zero gives exponent -inf, what is not
/// finite NaN.
RIESZFLOW_INLINE void split(Vec v, Vec& mantissa, Vec& exponent) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  mantissa = _mm512_maskz_getmant_pd(0xff, v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
  exponent = _mm512_maskz_getexp_pd(0xff, v);
#else
  const Int b = bits(v);
  mantissa = from_bits((b & 0x000fffffffffffff) | 0x3ff0000000000000);
  const Vec e = from_bits(((b >> 52) & 0x7ff) | 0x4330000000000000) - (0x1.0p52 + 1023.0);
  exponent = v > 0.0 ? (v < __builtin_inf() ? e : broadcast(__builtin_nan(""))) : broadcast(-__builtin_inf());
#endif
}

/// 2^y; 0 below -1021, infinity above 1023. Relative error below 3e-16 + 1e-16 |y|: the argument's own
/// rounding.
RIESZFLOW_INLINE Vec exp2(Vec y) {
  y = y < -1022.0 ? broadcast(-1022.0) : (y > 1024.0 ? broadcast(1024.0) : y);
  const Vec shifted = y + 0x1.8p52;
  const Vec n = shifted - 0x1.8p52;
  const Vec z = (y - n) * 0.693147180559945309417;  // |z| <= log(2)/2; Taylor to z^13 / 13!: 2e-17
  Vec p = broadcast(1.0 / 6227020800.0);
  p = p * z + 1.0 / 479001600.0;
  p = p * z + 1.0 / 39916800.0;
  p = p * z + 1.0 / 3628800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z + 1.0 / 40320.0;
  p = p * z + 1.0 / 5040.0;
  p = p * z + 1.0 / 720.0;
  p = p * z + 1.0 / 120.0;
  p = p * z + 1.0 / 24.0;
  p = p * z + 1.0 / 6.0;
  p = p * z + 0.5;
  p = p * z + 1.0;
  p = p * z + 1.0;
  // 2^n in two factors, so that n = 1024 overflows to infinity and n = -1022 stays normal.
  const Int whole = bits(shifted) - bits(broadcast(0x1.8p52));
  const Int half = whole >> 1;
  const Vec scale = from_bits((half + 1023) << 52) * from_bits((whole - half + 1023) << 52);
  return y > -1022.0 ? p * scale : Vec{};
}

/// log2 v of a normal v > 0.
RIESZFLOW_INLINE Vec log2(Vec v) {
  constexpr std::int64_t one = 0x3ff0000000000000, root_half = 0x3fe6a09e667f3bcd;
  const Int moved = bits(v) + (one - root_half);
  const Vec e = from_bits(((moved >> 52) & 0x7ff) | 0x4330000000000000) - (0x1.0p52 + 1023.0);
  const Vec m = from_bits((moved & 0x000fffffffffffff) + root_half);
  const Vec t = (m - 1.0) / (m + 1.0), q = t * t;  // log m = 2 artanh t, |t| <= 0.1716
  Vec p = broadcast(1.0 / 21.0);
  p = p * q + 1.0 / 19.0;
  p = p * q + 1.0 / 17.0;
  p = p * q + 1.0 / 15.0;
  p = p * q + 1.0 / 13.0;
  p = p * q + 1.0 / 11.0;
  p = p * q + 1.0 / 9.0;
  p = p * q + 1.0 / 7.0;
  p = p * q + 1.0 / 5.0;
  p = p * q + 1.0 / 3.0;
  p = t + t * (q * p);
  return p * 2.885390081777926814720 + e;  // 2 / log 2
}

}  // namespace
