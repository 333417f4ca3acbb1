#include "summation/far_field.hpp"

#include <array>
#include <cmath>

namespace rieszflow {
namespace {

/// gamma*(a, z) of a > -1, z >= 0: exp(-z) sum_n z^n / Gamma(a + n + 1), all terms positive for a > -1.
double entire_gamma(double a, double z) {
  if (z > 45.0) return std::pow(z, -a);  // P = 1 to rounding
  double term = std::exp(-z) / std::tgamma(a + 1.0), sum = term;
  for (int n = 1; n < 400; ++n) {
    term *= z / (a + n);
    sum += term;
    if (term < 1e-18 * sum) break;
  }
  return sum;
}

/// log z + E1(z) + Euler's gamma = integral_0^z (1 - exp(-t)) / t dt, entire.
double entire_logarithm(double z) {
  if (z > 60.0) return std::log(z) + 0.57721566490153286;
  // Gauss-Legendre on panels of length one, ten nodes: 1e-16 for an entire integrand of this growth.
  static constexpr std::array<double, 5> node = {0.14887433898163121, 0.43339539412924719,
                                                 0.67940956829902441, 0.86506336668898451,
                                                 0.97390652851717172};
  static constexpr std::array<double, 5> weight = {0.29552422471475287, 0.26926671930999636,
                                                   0.21908636251598204, 0.14945134915058059,
                                                   0.06667134430868814};
  const int panels = static_cast<int>(std::ceil(z)) + 1;
  const double half = 0.5 * z / panels;
  double sum = 0.0;
  for (int p = 0; p < panels; ++p) {
    for (std::size_t k = 0; k < node.size(); ++k) {
      for (const double side : {-1.0, 1.0}) {
        const double t = half * (2 * p + 1 + side * node[k]);
        sum += half * weight[k] * (t == 0.0 ? 1.0 : -std::expm1(-t) / t);
      }
    }
  }
  return sum;
}

/// The smooth part of exp(-k r) and its -d/dr / r.
FarField::Value smooth_exponential(double k, double alpha, double r) {
  const double c = 0.5 * k / alpha;
  const double falling = std::exp(-k * r) * std::erfc(c - alpha * r);
  // exp(kr) erfc(c + alpha r): the exponent of the product is -(alpha r)^2 - c^2 and never large.
  const double rising = k * r < 600.0 ? std::exp(k * r) * std::erfc(c + alpha * r) : 0.0;
  FarField::Value result{0.5 * (falling + rising), 0.0};
  // force_over_r = (k / 2r) (falling - rising); at small r its limit k (2 alpha exp(-c^2)/sqrt(pi) - k
  // erfc(c)).
  const double small = 1e-5 / alpha;
  result.force_over_r = r > small ? 0.5 * k * (falling - rising) / r
                                  : k * (1.1283791670955126 * alpha * std::exp(-c * c) - k * std::erfc(c));
  return result;
}

}  // namespace

FarField::Value FarField::at(double squared_distance) const {
  const double q = squared_distance + kernel_.softening_squared, z = alpha_ * alpha_ * q,
               s = kernel_.exponent;
  const auto riesz = [&](double exponent) -> Value {
    const double a = 0.5 * exponent;
    // gamma*(a, z) = z gamma*(a + 1, z) + exp(-z) / Gamma(a + 1) also where a < 0.
    const double next = entire_gamma(a + 1.0, z);
    const double here = a > 0.0 ? entire_gamma(a, z) : z * next + std::exp(-z) / std::tgamma(a + 1.0);
    return {std::pow(alpha_, exponent) * here / exponent, std::pow(alpha_, exponent + 2.0) * next};
  };
  using Kind = simd::RadialKind;
  switch (kernel_.kind) {
    case Kind::Logarithm:
      return {-0.5 * (entire_logarithm(z) - 0.57721566490153286 - 2.0 * std::log(alpha_)),
              alpha_ * alpha_ * entire_gamma(1.0, z)};
    case Kind::InverseFirst:
      return riesz(1.0);
    case Kind::InverseSquare:
      return riesz(2.0);
    case Kind::Distance:
      return riesz(-1.0);
    case Kind::Power:
      return riesz(s);
    case Kind::Gaussian: {
      const double rate = 0.5 / (kernel_.length * kernel_.length);
      const double value = rate <= alpha_ * alpha_ ? std::exp(-rate * squared_distance) : 0.0;
      return {value, value};
    }
    case Kind::Morse: {
      const double r = std::sqrt(squared_distance);
      const Value repulsion = smooth_exponential(1.0 / kernel_.repulsion_length, alpha_, r);
      const Value attraction = smooth_exponential(1.0 / kernel_.attraction_length, alpha_, r);
      return {kernel_.repulsion * repulsion.value - kernel_.attraction * attraction.value,
              kernel_.repulsion * repulsion.force_over_r - kernel_.attraction * attraction.force_over_r};
    }
  }
  return {};
}

}  // namespace rieszflow
