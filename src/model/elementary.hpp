#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

/// exp and log without branches or tables, so that loops over cells vectorise; error below two units in the
/// last place. Call them inside a function that is cloned per vector width.
namespace rieszflow::elementary {

inline constexpr double log2_e = 1.4426950408889634;
inline constexpr double ln2_high = 0x1.62e42fefa0000p-1;  ///< its low bits are zero: k * ln2_high is exact
inline constexpr double ln2_low = 0x1.cf79abc9e3b3ap-40;
inline constexpr double round_shift = 0x1.8p52;  ///< adding it rounds to an integer held in the low bits

/// exp(f) - 1 by its series for |f| <= log(2)/2.
[[gnu::always_inline]] inline double reduced_expm1(double f) {
  double p = 1.0 / 6227020800.0;
  p = p * f + 1.0 / 479001600.0;
  p = p * f + 1.0 / 39916800.0;
  p = p * f + 1.0 / 3628800.0;
  p = p * f + 1.0 / 362880.0;
  p = p * f + 1.0 / 40320.0;
  p = p * f + 1.0 / 5040.0;
  p = p * f + 1.0 / 720.0;
  p = p * f + 1.0 / 120.0;
  p = p * f + 1.0 / 24.0;
  p = p * f + 1.0 / 6.0;
  p = p * f + 0.5;
  return p * f * f + f;
}

/// 2^k for the integer k in the low bits of shifted = k + round_shift, -1022 <= k <= 1023.
[[gnu::always_inline]] inline double power_of_two(double shifted) {
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023U) << 52);
}

/// exp(x) for finite x; 0 below -708, exp(709) above 709.
[[gnu::always_inline]] inline double exponential(double x) {
  const double inside = x < -708.0 ? -708.0 : (x > 709.0 ? 709.0 : x);
  const double shifted = inside * log2_e + round_shift;
  const double k = shifted - round_shift;
  const double f = (inside - k * ln2_high) - k * ln2_low;
  const double scale = power_of_two(shifted);
  const double result = scale * reduced_expm1(f) + scale;
  return x < -708.0 ? 0.0 : result;
}

/// exp(a) - 1 for a >= 0, without cancellation; exp(709) above 709.
[[gnu::always_inline]] inline double exponential_minus_one(double a) {
  const double inside = a > 709.0 ? 709.0 : a;
  const double shifted = inside * log2_e + round_shift;
  const double k = shifted - round_shift;
  const double f = (inside - k * ln2_high) - k * ln2_low;
  const double scale = power_of_two(shifted);
  return scale * reduced_expm1(f) + (scale - 1.0);
}

/// log(x) for positive normal x.
[[gnu::always_inline]] inline double logarithm(double x) {
  constexpr std::uint64_t one = 0x3ff0000000000000U, sqrt_half = 0x3fe6a09e667f3bcdU;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) + (one - sqrt_half);
  const double exponent = std::bit_cast<double>((bits >> 52) | 0x4330000000000000U) - (0x1p52 + 1023.0);
  const double m = std::bit_cast<double>((bits & 0x000fffffffffffffU) + sqrt_half);
  const double t = (m - 1.0) / (m + 1.0), t2 = t * t;
  double p = 2.0 / 21.0;
  p = p * t2 + 2.0 / 19.0;
  p = p * t2 + 2.0 / 17.0;
  p = p * t2 + 2.0 / 15.0;
  p = p * t2 + 2.0 / 13.0;
  p = p * t2 + 2.0 / 11.0;
  p = p * t2 + 2.0 / 9.0;
  p = p * t2 + 2.0 / 7.0;
  p = p * t2 + 2.0 / 5.0;
  p = p * t2 + 2.0 / 3.0;
  return exponent * ln2_high + (p * t * t2 + (2.0 * t + exponent * ln2_low));
}

}  // namespace rieszflow::elementary
