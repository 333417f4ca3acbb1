#pragma once
// The radial kernels on vectors of squared distances. Included only by the sources of this folder, see
// vec.hpp.
#include "summation/simd/direct_kernels.hpp"
#include "summation/simd/vec.hpp"

namespace {

using rieszflow::simd::RadialKernel;
using rieszflow::simd::RadialKind;

/// Distances below 1.5e-154 (1.1e-19 in floats), whose squares are not normal numbers, count as zero: a pair
/// without direction.
constexpr Real smallest_square =
    static_cast<Real>(single_precision ? 1.17549435e-38 : 2.2250738585072014e-308);
constexpr Real infinity = static_cast<Real>(__builtin_inf());

/// Sum of W over pairs, per lane.
struct PlainEnergy {
  Vec sum{};
  /// What a vector of the lanes `lane` of `parts` holds.
  RIESZFLOW_INLINE static PlainEnergy gathered(const PlainEnergy (&parts)[lanes], int lane) {
    PlainEnergy energy;
    for (int l = 0; l < lanes; ++l) energy.sum[l] = parts[l].sum[lane];
    return energy;
  }
  RIESZFLOW_INLINE double value() const { return total(sum); }
};

/// Sum of log R^2 without logarithms: the product of all R^2, its exponent split off after each group of
/// four. Exact zeros give -inf; four factors stay in range for R between 1e-38 and 1e38. Floats are split one
/// by one.
struct ProductEnergy {
  Vec mantissa = broadcast(1);
  Vec exponent{};
  RIESZFLOW_INLINE static ProductEnergy gathered(const ProductEnergy (&parts)[lanes], int lane) {
    ProductEnergy energy;
    for (int l = 0; l < lanes; ++l) {
      energy.mantissa[l] = parts[l].mantissa[lane];
      energy.exponent[l] = parts[l].exponent[lane];
    }
    return energy;
  }
  RIESZFLOW_INLINE void multiply(Vec product) {
    Vec e;
    split(mantissa * product, mantissa, e);
    exponent += e;
  }
  /// Not inlined: the compiler contracts this sum in one way for all callers.
  [[gnu::noinline]] double value() const {
    double sum = static_cast<double>(total(exponent)) * 0.693147180559945309417;
    for (int l = 0; l < lanes; ++l) sum += __builtin_log(static_cast<double>(mantissa[l]));
    return sum;
  }
};

// A kernel evaluates M pairs per lane: squared = R^2 in, force_over_r out. `present` masks the lanes whose
// energy counts. M is 1 or 4.

struct Logarithm {
  using Energy = ProductEnergy;
  static constexpr bool rows_in_memory = false;
  explicit Logarithm(const RadialKernel&) {}
  template <int M, bool WithEnergy>
  RIESZFLOW_INLINE void evaluate(const Vec (&squared)[M], Vec (&force)[M], Energy& energy,
                                 const Int* present) const {
    for (int m = 0; m < M; ++m) force[m] = reciprocal<false>(squared[m], squared[m] >= smallest_square);
    if constexpr (WithEnergy) {
      Vec factor[M];
      for (int m = 0; m < M; ++m) factor[m] = present ? (present[m] ? squared[m] : broadcast(1)) : squared[m];
      if constexpr (M == 4 && !single_precision) {
        energy.multiply((factor[0] * factor[1]) * (factor[2] * factor[3]));
      } else {
        for (int m = 0; m < M; ++m) energy.multiply(factor[m]);
      }
    }
  }
  template <bool Fast>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    const Int distinct = squared >= smallest_square;
    force = reciprocal<Fast>(squared, distinct);
    value = distinct ? log2(squared) * static_cast<Real>(0.693147180559945309417) : broadcast(-infinity);
  }
  RIESZFLOW_INLINE static double finish(double log_of_squares) { return -0.5 * log_of_squares; }
};

/// The kernels whose energy is a plain sum: Derived::pair<Fast>(squared, force, value) for one vector of
/// pairs. Fast: the variant that leaves the divider to the others of its group of four.
template <class Derived>
struct Summed {
  using Energy = PlainEnergy;
  template <int M, bool WithEnergy>
  RIESZFLOW_INLINE void evaluate(const Vec (&squared)[M], Vec (&force)[M], Energy& energy,
                                 const Int* present) const {
    const Derived& kernel = *static_cast<const Derived*>(this);
    Vec value[M];
    if constexpr (M == 4) {
      // Two of four by the divider, two by estimates: each alone would be the bottleneck.
      kernel.template pair<false>(squared[0], force[0], value[0]);
      kernel.template pair<true>(squared[1], force[1], value[1]);
      kernel.template pair<false>(squared[2], force[2], value[2]);
      kernel.template pair<true>(squared[3], force[3], value[3]);
    } else {
      for (int m = 0; m < M; ++m) kernel.template pair<false>(squared[m], force[m], value[m]);
    }
    if constexpr (WithEnergy) {
      if (present) {
        for (int m = 0; m < M; ++m) value[m] = present[m] ? value[m] : Vec{};
      }
      if constexpr (M == 4) {
        energy.sum += (value[0] + value[1]) + (value[2] + value[3]);
      } else {
        for (int m = 0; m < M; ++m) energy.sum += value[m];
      }
    }
  }
  /// True when the kernel's own constants fill the registers: the rows are then read from memory each time.
  static constexpr bool rows_in_memory = false;
};

struct InverseFirst : Summed<InverseFirst> {
  explicit InverseFirst(const RadialKernel&) {}
  static constexpr bool always_fast =
      true;  // a root and a division take the divider longer than the whole group
  template <bool Fast>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    const Int distinct = squared >= smallest_square;
    const Vec inverse = reciprocal_root<Fast>(squared, distinct);
    force = inverse * (inverse * inverse);
    value = distinct ? inverse : broadcast(infinity);
  }
  RIESZFLOW_INLINE static double finish(double sum) { return sum; }
};

struct InverseSquare : Summed<InverseSquare> {
  explicit InverseSquare(const RadialKernel&) {}
  template <bool Fast>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    const Int distinct = squared >= smallest_square;
    const Vec inverse = reciprocal<Fast>(squared, distinct);
    force = inverse * inverse;
    value = distinct ? inverse : broadcast(infinity);
  }
  RIESZFLOW_INLINE static double finish(double sum) { return 0.5 * sum; }
};

struct Distance : Summed<Distance> {
  explicit Distance(const RadialKernel&) {}
  template <bool Fast>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    force = reciprocal_root<Fast>(squared, squared >= smallest_square);
    value = squared * force;
  }
  RIESZFLOW_INLINE static double finish(double sum) { return -sum; }
};

struct Power : Summed<Power> {
  static constexpr bool rows_in_memory = true;
  const rieszflow::simd::PowerTable& table;
  Real half_power, at_zero;
  double inverse_exponent;
  explicit Power(const RadialKernel& kernel)
      : table(*kernel.power),
        half_power(static_cast<Real>(-0.5 * kernel.exponent - 1.0)),
        at_zero(kernel.exponent > 0.0 ? infinity : Real{0}),
        inverse_exponent(1.0 / kernel.exponent) {}
  RIESZFLOW_INLINE Vec power(Vec v) const {
#if RIESZFLOW_AVX512
    const Int b = bits(v);
    const Vec m = from_bits((b & fraction_mask) | one_bits);
#if defined(RIESZFLOW_SINGLE)
    const auto& t16 = table.single;
    const Vec t = m * pick16(t16.root, b >> 19) - 1.0f;
    const Vec scale = pick16(t16.scale, b >> 19) * pick16(t16.low, b >> 23);
    return (horner(t16.coefficients, t) * scale) * pick16(t16.high, b >> 27);
#else
    const Vec t = m * pick16(table.root, b >> 48) - 1.0;
    const Vec scale = (pick16(table.scale, b >> 48) * pick8(table.low, b >> 52)) *
                      (pick16(table.middle, b >> 55) * pick16(table.high, b >> 59));
    return horner(table.coefficients, t) * scale;
#endif
#else
    return exp2(half_power * log2(v));
#endif
  }
  template <bool>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    const Int distinct = squared >= smallest_square;
    force = distinct ? power(squared) : Vec{};
    value = distinct ? force * squared : broadcast(at_zero);
  }
  RIESZFLOW_INLINE double finish(double sum) const { return sum * inverse_exponent; }
};

struct Gaussian : Summed<Gaussian> {
  Real rate;
  explicit Gaussian(const RadialKernel& kernel)
      : rate(static_cast<Real>(-0.5 * 1.442695040888963407360 / (kernel.length * kernel.length))) {}
  template <bool>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    value = force = exp2(rate * squared);
  }
  RIESZFLOW_INLINE static double finish(double sum) { return sum; }
};

struct Morse : Summed<Morse> {
  Real repulsion, repulsion_rate, repulsion_force, attraction, attraction_rate, attraction_force;
  explicit Morse(const RadialKernel& kernel)
      : repulsion(static_cast<Real>(kernel.repulsion)),
        repulsion_rate(static_cast<Real>(-1.442695040888963407360 / kernel.repulsion_length)),
        repulsion_force(static_cast<Real>(kernel.repulsion / kernel.repulsion_length)),
        attraction(static_cast<Real>(kernel.attraction)),
        attraction_rate(static_cast<Real>(-1.442695040888963407360 / kernel.attraction_length)),
        attraction_force(static_cast<Real>(kernel.attraction / kernel.attraction_length)) {}
  template <bool Fast>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    const Vec inverse = reciprocal_root<Fast>(squared, squared >= smallest_square);
    const Vec r = squared * inverse;
    const Vec repelled = exp2(repulsion_rate * r), attracted = exp2(attraction_rate * r);
    value = repulsion * repelled - attraction * attracted;
    force = (repulsion_force * repelled - attraction_force * attracted) * inverse;
  }
  RIESZFLOW_INLINE static double finish(double sum) { return sum; }
};

/// Calls `visit` with the kernel's type.
template <class Visit>
RIESZFLOW_INLINE double with_kernel(RadialKind kind, const Visit& visit) {
  switch (kind) {
    case RadialKind::Logarithm:
      return visit.template operator()<Logarithm>();
    case RadialKind::InverseFirst:
      return visit.template operator()<InverseFirst>();
    case RadialKind::InverseSquare:
      return visit.template operator()<InverseSquare>();
    case RadialKind::Distance:
      return visit.template operator()<Distance>();
    case RadialKind::Power:
      return visit.template operator()<Power>();
    case RadialKind::Gaussian:
      return visit.template operator()<Gaussian>();
    case RadialKind::Morse:
      return visit.template operator()<Morse>();
  }
  return 0.0;
}

}  // namespace
