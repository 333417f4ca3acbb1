#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

/// Eight doubles in a vector register (or several narrower ones), and the elementary functions that features
/// need. Everything here is inlined into functions that are compiled once per instruction set.
namespace rieszflow::lanes {

using Vector [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = double;
using Integers [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = std::int64_t;

inline constexpr double rounding =
    6755399441055744.0;  ///< 1.5 * 2^52: adding it rounds to an integer in the low bits

[[gnu::always_inline]] inline const Vector& at(const double* address) {
  return *reinterpret_cast<const Vector*>(address);
}
[[gnu::always_inline]] inline Vector& at(double* address) { return *reinterpret_cast<Vector*>(address); }

/// Largest |x| for which sine_cosine below is accurate: 2^-53 relative to 1.
inline constexpr double largest_angle = 1e5;
/// Largest |x| for which exponential below neither overflows nor leaves the normal numbers.
inline constexpr double largest_exponent = 700.0;

/// sin x and cos x for |x| <= largest_angle: reduction by pi/2 in three parts (Cody and Waite), then Taylor
/// polynomials on [-pi/4, pi/4] whose first neglected terms are below 2^-53.
[[gnu::always_inline]] inline void sine_cosine(const Vector& x, Vector& sine, Vector& cosine) {
  const Vector shifted = x * 0.63661977236758134308 + rounding;
  const Integers quadrant = reinterpret_cast<const Integers&>(shifted);
  const Vector turns = shifted - rounding;
  const Vector r = ((x - turns * 1.57079632673412561417e+00) - turns * 6.07710050630396597660e-11) -
                   turns * 2.02226624879595063154e-21;
  const Vector q = r * r;
  const Vector s =
      r + r * q *
              (-1.0 / 6 +
               q * (1.0 / 120 +
                    q * (-1.0 / 5040 +
                         q * (1.0 / 362880 + q * (-1.0 / 39916800 +
                                                  q * (1.0 / 6227020800.0 - q * (1.0 / 1307674368000.0)))))));
  const Vector c =
      1.0 - 0.5 * q +
      q * q *
          (1.0 / 24 +
           q * (-1.0 / 720 +
                q * (1.0 / 40320 +
                     q * (-1.0 / 3628800 + q * (1.0 / 479001600.0 + q * (-1.0 / 87178291200.0 +
                                                                         q * (1.0 / 20922789888000.0)))))));
  const Integers odd = (quadrant & 1) != 0;
  const Vector sine_part = odd ? c : s;
  const Vector cosine_part = odd ? s : c;
  sine = (quadrant & 2) != 0 ? -sine_part : sine_part;
  cosine = ((quadrant + 1) & 2) != 0 ? -cosine_part : cosine_part;
}

/// exp x for |x| <= largest_exponent: x = n log 2 + r, Taylor polynomial of degree 13 on |r| <= log(2)/2,
/// exponent added.
[[gnu::always_inline]] inline void exponential(const Vector& x, Vector& out) {
  const Vector shifted = x * 1.44269504088896340736 + rounding;
  const Integers exponent = reinterpret_cast<const Integers&>(shifted) << 52;
  const Vector n = shifted - rounding;
  const Vector r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  Vector p = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r * r + r + 1.0;
  const Integers bits = reinterpret_cast<const Integers&>(p) + exponent;
  out = reinterpret_cast<const Vector&>(bits);
}

/// log(1 + t) for 0 <= t <= 1 as 2 artanh(t / (2 + t)), series in q^2 <= 1/9.
[[gnu::always_inline]] inline void logarithm_of_one_plus(const Vector& t, Vector& out) {
  const Vector q = t / (2.0 + t);
  const Vector square = q * q;
  Vector sum = square * (1.0 / 33) + 1.0 / 31;
  for (int odd = 29; odd >= 1; odd -= 2) sum = sum * square + 1.0 / odd;
  out = 2.0 * q * sum;
}

}  // namespace rieszflow::lanes
