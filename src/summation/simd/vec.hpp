#pragma once
// What the kernels of this folder compute with vectors of numbers. Included only by its sources, which are
// compiled once for each processor level.
#include "core/simd/vector.hpp"

namespace {

#if defined(RIESZFLOW_SINGLE)
constexpr bool single_precision = true;
#else
constexpr bool single_precision = false;
#endif

// Bits of a number: sign, exponent, fraction.
constexpr int fraction_bits = single_precision ? 23 : 52;
constexpr Whole exponent_mask = single_precision ? 0xff : 0x7ff,
                exponent_bias = single_precision ? 127 : 1023,
                fraction_mask = (Whole{1} << fraction_bits) - 1, one_bits = exponent_bias << fraction_bits;

RIESZFLOW_INLINE Int lane_numbers() {
  Int numbers{};
  for (int l = 0; l < lanes; ++l) numbers[l] = l;
  return numbers;
}

#if RIESZFLOW_AVX512
#if defined(RIESZFLOW_SINGLE)
using Mask = __mmask16;
RIESZFLOW_INLINE Mask mask_of(Int present) {
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(present));
}
#else
using Mask = __mmask8;
RIESZFLOW_INLINE Mask mask_of(Int present) {
  return _mm512_movepi64_mask(reinterpret_cast<__m512i>(present));
}
#endif
#endif

/// `count` numbers, 0 < count <= lanes, the other lanes 0.
RIESZFLOW_INLINE Vec load_first(const Real* from, int count) {
  if (count == lanes) return load(from);
#if RIESZFLOW_AVX512
  return RIESZFLOW_PACKED(_mm512_maskz_loadu)(static_cast<Mask>((1U << count) - 1U), from);
#else
  Vec v{};
  for (int l = 0; l < count; ++l) v[l] = from[l];
  return v;
#endif
}
/// The first `count` lanes only, 0 < count <= lanes.
RIESZFLOW_INLINE void store_first(Real* to, Vec v, int count) {
  if (count == lanes) return store(to, v);
#if RIESZFLOW_AVX512
  RIESZFLOW_PACKED(_mm512_mask_storeu)(to, static_cast<Mask>((1U << count) - 1U), v);
#else
  for (int l = 0; l < count; ++l) to[l] = v[l];
#endif
}

RIESZFLOW_INLINE Vec square_root(Vec v) {
#if RIESZFLOW_AVX512
  return RIESZFLOW_PACKED(_mm512_maskz_sqrt)(all_lanes, v);  // the plain form warns: gcc bug 105593
#elif defined(__AVX2__)
  return RIESZFLOW_PACKED(_mm256_sqrt)(v);
#elif defined(__SSE2__)
  return RIESZFLOW_PACKED(_mm_sqrt)(v);
#else
  for (int l = 0; l < lanes; ++l) v[l] = __builtin_sqrt(v[l]);
  return v;
#endif
}

/// v, a product that no later sum is contracted with: code for the baseline has no fused operation on this
/// processor family, and its sums are to have the same bits.
RIESZFLOW_INLINE Vec rounded(Vec v) {
#if defined(__SSE2__)
  asm("" : "+x"(v));
#endif
  return v;
}

/// Sum over lanes, pairwise.
RIESZFLOW_INLINE Real total(Vec v) {
#if RIESZFLOW_AVX512 && defined(RIESZFLOW_SINGLE)
  const auto half = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                    __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  constexpr int count = lanes / 2;
#elif RIESZFLOW_AVX512
  const auto half = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
  constexpr int count = lanes / 2;
#else
  const Vec half = v;
  constexpr int count = lanes;
#endif
  Real parts[count];
  for (int l = 0; l < count; ++l) parts[l] = half[l];
  for (int width = count / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) parts[l] += parts[l + width];
  }
  return parts[0];
}

/// The exponent of a normal number, by its bits: 2^fraction_bits + exponent is a number of that very
/// exponent.
RIESZFLOW_INLINE Vec exponent_of(Int b) {
  constexpr Real carrier = static_cast<Real>(Whole{1} << fraction_bits);
  const Int number =
      ((b >> fraction_bits) & exponent_mask) | ((exponent_bias + Whole{fraction_bits}) << fraction_bits);
  return from_bits(number) - (carrier + static_cast<Real>(exponent_bias));
}

/// v = mantissa 2^exponent with mantissa in [1, 2), for normal v; zero gives exponent -inf, what is not
/// finite NaN.
RIESZFLOW_INLINE void split(Vec v, Vec& mantissa, Vec& exponent) {
#if RIESZFLOW_AVX512
  mantissa = RIESZFLOW_PACKED(_mm512_maskz_getmant)(all_lanes, v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
  exponent = RIESZFLOW_PACKED(_mm512_maskz_getexp)(all_lanes, v);
#else
  constexpr Real infinity = static_cast<Real>(__builtin_inf());
  mantissa = from_bits((bits(v) & fraction_mask) | one_bits);
  exponent = v > Real{0}
                 ? (v < infinity ? exponent_of(bits(v)) : broadcast(static_cast<Real>(__builtin_nan(""))))
                 : broadcast(-infinity);
#endif
}

/// sum_k c[k] x^k.
template <int N>
RIESZFLOW_INLINE Vec horner(const Real (&c)[N], Vec x) {
  Vec p = broadcast(c[N - 1]);
  for (int k = N - 2; k >= 0; --k) p = p * x + c[k];
  return p;
}

/// 2^y; 0 below the smallest normal number, infinity above the largest. Relative error below 2 ulp, and that
/// of the argument's own rounding. The polynomial interpolates 2^z at the Chebyshev nodes of |z| <= 1/2,
/// degree 10 (7 for floats): 2e-16 (5e-9).
RIESZFLOW_INLINE Vec exp2(Vec y) {
#if RIESZFLOW_AVX512
  const Vec n = RIESZFLOW_PACKED(_mm512_maskz_roundscale)(all_lanes, y, 0);
#else
  constexpr Real lowest = 1 - exponent_bias, highest = exponent_bias + 1,
                 rounder = static_cast<Real>(Whole{3} << (fraction_bits - 1));
  y = y < lowest ? broadcast(lowest) : (y > highest ? broadcast(highest) : y);
  const Vec shifted = y + rounder;
  const Vec n = shifted - rounder;
#endif
  const Vec z = y - n;
#if defined(RIESZFLOW_SINGLE)
  constexpr Real c[] = {1.0f,
                        0.69314718056f,
                        0.24022650696f,
                        0.055504108665f,
                        0.0096181291076f,
                        0.0013333558230f,
                        0.00015403530442f,
                        0.000015252657260f};
#else
  constexpr Real c[] = {1.0,
                        0.69314718055994998286,
                        0.2402265069591009822,
                        0.055504108664447719166,
                        0.0096181291076068885273,
                        0.0013333558230164973899,
                        0.00015403530441736050155,
                        0.000015252657260200837064,
                        1.3215442587921689653e-6,
                        1.0208690299958305835e-7,
                        7.0725859492692236999e-9};
#endif
  const Vec p = horner(c, z);
#if RIESZFLOW_AVX512
  return RIESZFLOW_PACKED(_mm512_maskz_scalef)(all_lanes, p, n);
#else
  // 2^n in two factors, so that the largest n overflows to infinity and the smallest stays normal.
  const Int whole = bits(shifted) - bits(broadcast(rounder));
  const Int half = whole >> 1;
  const Vec scale = from_bits((half + exponent_bias) << fraction_bits) *
                    from_bits((whole - half + exponent_bias) << fraction_bits);
  return y > lowest ? p * scale : Vec{};
#endif
}

/// 1/v of normal v, 0 where `present` is not set. The fast variant is a 14-bit estimate r and (1+e)(1+e^2) r,
/// e = 1 - v r: relative error 2e-16; for floats (1+e) r. It keeps the divider free for other lanes: a mix of
/// both is faster than either.
template <bool Fast>
RIESZFLOW_INLINE Vec reciprocal(Vec v, Int present) {
#if RIESZFLOW_AVX512
  if constexpr (Fast || single_precision) {
    const Vec r = RIESZFLOW_PACKED(_mm512_maskz_rcp14)(mask_of(present), v);
    const Vec e = Real{1} - v * r, once = r * e + r;
    if constexpr (single_precision) return once;
    return once * (e * e) + once;
  }
#endif
  return present ? Real{1} / v : Vec{};
}

/// v^-1/2 of normal v, 0 where `present` is not set. Fast: y (1 - e)^(-1/2) to e^3 (floats: to e), e = 1 - v
/// y^2, |e| < 2^-13.
template <bool Fast>
RIESZFLOW_INLINE Vec reciprocal_root(Vec v, Int present) {
#if RIESZFLOW_AVX512
  if constexpr (Fast || single_precision) {
    const Vec y = RIESZFLOW_PACKED(_mm512_maskz_rsqrt14)(mask_of(present), v);
    const Vec e = Real{1} - (v * y) * y;
    if constexpr (single_precision) return (Real{0.5} * e) * y + y;
    return (((Real{0.3125} * e + Real{0.375}) * e + Real{0.5}) * e) * y + y;
  }
#endif
  return present ? Real{1} / square_root(v) : Vec{};
}

/// log2 v of a normal v > 0.
RIESZFLOW_INLINE Vec log2(Vec v) {
#if defined(RIESZFLOW_SINGLE)
  constexpr Whole root_half = 0x3f3504f3;
  constexpr Real c[] = {1.0f, 1.0f / 3, 1.0f / 5, 1.0f / 7, 1.0f / 9};
#else
  constexpr Whole root_half = 0x3fe6a09e667f3bcd;
  constexpr Real c[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                        1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
#endif
  const Int moved = bits(v) + (one_bits - root_half);
  const Vec m = from_bits((moved & fraction_mask) + root_half);
  const Vec t = (m - Real{1}) / (m + Real{1});  // log m = 2 artanh t, |t| <= 0.1716
  return (t * horner(c, t * t)) * static_cast<Real>(2.885390081777926814720) +
         exponent_of(moved);  // 2 / log 2
}

#if RIESZFLOW_AVX512
/// Entry i & 15 of a table of 16; entry i & 7 of a table of 8.
#if defined(RIESZFLOW_SINGLE)
RIESZFLOW_INLINE Vec pick16(const float* table, Int i) {
  return _mm512_maskz_permutexvar_ps(0xffff, reinterpret_cast<__m512i>(i), _mm512_loadu_ps(table));
}
#else
RIESZFLOW_INLINE Vec pick16(const double* table, Int i) {
  return _mm512_permutex2var_pd(_mm512_loadu_pd(table), reinterpret_cast<__m512i>(i),
                                _mm512_loadu_pd(table + 8));
}
RIESZFLOW_INLINE Vec pick8(const double* table, Int i) {
  return _mm512_maskz_permutexvar_pd(0xff, reinterpret_cast<__m512i>(i), _mm512_loadu_pd(table));
}
#endif
#endif

}  // namespace
