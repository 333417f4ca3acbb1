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
#define RIESZFLOW_AVX512 1
constexpr int lanes = 8;
#else
#define RIESZFLOW_AVX512 0
#if defined(__AVX2__)
constexpr int lanes = 4;
#else
constexpr int lanes = 2;
#endif
#endif

using Vec = double __attribute__((vector_size(8 * lanes)));
using Int = std::int64_t __attribute__((vector_size(8 * lanes)));
/// A Vec at an address that is a multiple of 8 only; may alias doubles.
using UnalignedVec = double __attribute__((vector_size(8 * lanes), aligned(8), may_alias));

#define RIESZFLOW_INLINE [[gnu::always_inline]] inline

RIESZFLOW_INLINE Vec load(const double* from) { return *reinterpret_cast<const UnalignedVec*>(from); }
RIESZFLOW_INLINE void store(double* to, Vec v) { *reinterpret_cast<UnalignedVec*>(to) = v; }
/// The first `count` lanes only, 0 < count <= lanes.
RIESZFLOW_INLINE void store_first(double* to, Vec v, int count) {
#if RIESZFLOW_AVX512
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1 << count) - 1), v);
#else
  for (int l = 0; l < count; ++l) to[l] = v[l];
#endif
}
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
#if RIESZFLOW_AVX512
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
#if RIESZFLOW_AVX512
  mantissa = _mm512_maskz_getmant_pd(0xff, v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
  exponent = _mm512_maskz_getexp_pd(0xff, v);
#else
  const Int b = bits(v);
  mantissa = from_bits((b & 0x000fffffffffffff) | 0x3ff0000000000000);
  const Vec e = from_bits(((b >> 52) & 0x7ff) | 0x4330000000000000) - (0x1.0p52 + 1023.0);
  exponent = v > 0.0 ? (v < __builtin_inf() ? e : broadcast(__builtin_nan(""))) : broadcast(-__builtin_inf());
#endif
}

/// 2^y; 0 below -1022, infinity above 1023. Relative error below 4e-16 + 1e-16 |y|, the argument's own
/// rounding. The polynomial interpolates 2^z at the Chebyshev nodes of |z| <= 1/2, degree 10: 2e-16.
RIESZFLOW_INLINE Vec exp2(Vec y) {
#if RIESZFLOW_AVX512
  const Vec n = _mm512_maskz_roundscale_pd(0xff, y, 0);
#else
  y = y < -1022.0 ? broadcast(-1022.0) : (y > 1024.0 ? broadcast(1024.0) : y);
  const Vec shifted = y + 0x1.8p52;
  const Vec n = shifted - 0x1.8p52;
#endif
  const Vec z = y - n;
  Vec p = broadcast(7.0725859492692236999e-9);
  p = p * z + 1.0208690299958305835e-7;
  p = p * z + 1.3215442587921689653e-6;
  p = p * z + 0.000015252657260200837064;
  p = p * z + 0.00015403530441736050155;
  p = p * z + 0.0013333558230164973899;
  p = p * z + 0.0096181291076068885273;
  p = p * z + 0.055504108664447719166;
  p = p * z + 0.2402265069591009822;
  p = p * z + 0.69314718055994998286;
  p = p * z + 1.0;
#if RIESZFLOW_AVX512
  return _mm512_maskz_scalef_pd(0xff, p, n);
#else
  // 2^n in two factors, so that n = 1024 overflows to infinity and n = -1022 stays normal.
  const Int whole = bits(shifted) - bits(broadcast(0x1.8p52));
  const Int half = whole >> 1;
  const Vec scale = from_bits((half + 1023) << 52) * from_bits((whole - half + 1023) << 52);
  return y > -1022.0 ? p * scale : Vec{};
#endif
}

/// 1/v of normal v, 0 where `present` is not set. The fast variant is a 14-bit estimate r and (1+e)(1+e^2) r,
/// e = 1 - v r: relative error 2e-16. It keeps the divider free for other lanes: a mix of both is faster than
/// either.
template <bool Fast>
RIESZFLOW_INLINE Vec reciprocal(Vec v, Int present) {
#if RIESZFLOW_AVX512
  if constexpr (Fast) {
    const Vec r = _mm512_maskz_rcp14_pd(_mm512_movepi64_mask(reinterpret_cast<__m512i>(present)), v);
    const Vec e = 1.0 - v * r, once = r * e + r;
    return once * (e * e) + once;
  }
#endif
  return present ? 1.0 / v : Vec{};
}

/// v^-1/2 of normal v, 0 where `present` is not set. Fast: y (1 - e)^(-1/2) to e^3, e = 1 - v y^2, |e| <
/// 2^-13.
template <bool Fast>
RIESZFLOW_INLINE Vec reciprocal_root(Vec v, Int present) {
#if RIESZFLOW_AVX512
  if constexpr (Fast) {
    const Vec y = _mm512_maskz_rsqrt14_pd(_mm512_movepi64_mask(reinterpret_cast<__m512i>(present)), v);
    const Vec e = 1.0 - (v * y) * y;
    return (((0.3125 * e + 0.375) * e + 0.5) * e) * y + y;
  }
#endif
  return present ? 1.0 / square_root(v) : Vec{};
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

#if RIESZFLOW_AVX512
/// Entry i & 15 of a table of 16; entry i & 7 of a table of 8.
RIESZFLOW_INLINE Vec pick16(const double* table, Int i) {
  return _mm512_permutex2var_pd(_mm512_loadu_pd(table), reinterpret_cast<__m512i>(i),
                                _mm512_loadu_pd(table + 8));
}
RIESZFLOW_INLINE Vec pick8(const double* table, Int i) {
  return _mm512_maskz_permutexvar_pd(0xff, reinterpret_cast<__m512i>(i), _mm512_loadu_pd(table));
}
#endif

}  // namespace
