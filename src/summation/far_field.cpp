#include "summation/far_field.hpp"

#include <algorithm>
#include <cmath>

namespace rieszflow {
namespace {

/// I_m(z) / z^m = 2^-m sum_k (z^2/4)^k / (k! (m+k)!), entire and positive. square = z^2.
double entire_bessel(int m, double square) {
  double term = std::exp2(-m) / std::tgamma(m + 1.0), sum = term;
  for (int k = 1; k < 200; ++k) {
    term *= 0.25 * square / (static_cast<double>(k) * (m + k));
    sum += term;
    if (term < 1e-18 * sum) break;
  }
  return sum;
}

/// G(u) of far_field.hpp, u^2 = square, by parts until nothing is left: with z^2 = band^2 (1 - u^2)
///   G = sum_m (band u)^(2m) (I_m(z) / z^m) / ((s+2)(s+4)...(s+2+2m)), terms of one sign.
double bump_moment(double s, double band, double square) {
  const double z2 = band * band * std::max(0.0, 1.0 - square);
  double factor = 1.0 / (s + 2.0), sum = 0.0;
  for (int m = 0; m < 200; ++m) {
    const double term = factor * entire_bessel(m, z2);
    sum += term;
    if (term < 1e-18 * sum) break;
    factor *= band * band * square / (s + 4.0 + 2.0 * m);
  }
  return sum;
}

/// Coefficients of the antiderivative that vanishes at y = 1.
std::vector<double> antiderivative(const std::vector<double>& c) {
  const auto at = [&](std::size_t k) { return k < c.size() ? c[k] : 0.0; };
  std::vector<double> result(c.size() + 1, 0.0);
  result[1] = at(0) - 0.5 * at(2);
  for (std::size_t k = 2; k < result.size(); ++k)
    result[k] = (at(k - 1) - at(k + 1)) / (2.0 * static_cast<double>(k));
  for (std::size_t k = 1; k < result.size(); ++k) result[0] -= result[k];
  return result;
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

double chebyshev_sum(const std::vector<double>& coefficients, double y) {
  double next = 0.0, here = 0.0;  // Clenshaw
  for (std::size_t k = coefficients.size(); k-- > 1;) {
    const double before = coefficients[k] + 2.0 * y * here - next;
    next = here;
    here = before;
  }
  return coefficients[0] + y * here - next;
}

std::vector<double> powers_of(const std::vector<double>& coefficients) {
  const std::size_t n = coefficients.size();
  std::vector<double> powers(n, 0.0), previous(n, 0.0), current(n, 0.0), next(n, 0.0);
  previous[0] = 1.0;
  if (n > 1) current[1] = 1.0;
  for (std::size_t k = 0; k < n; ++k) {
    const std::vector<double>& basis = k == 0 ? previous : current;
    for (std::size_t i = 0; i <= k; ++i) powers[i] += coefficients[k] * basis[i];
    if (k == 0) continue;
    for (std::size_t i = 0; i < n; ++i) next[i] = (i > 0 ? 2.0 * current[i - 1] : 0.0) - previous[i];
    previous.swap(current);  // T_{k+1} = 2 y T_k - T_{k-1}
    current.swap(next);
  }
  return powers;
}

bool FarField::is_compact(simd::RadialKind kind) {
  return kind != simd::RadialKind::Gaussian && kind != simd::RadialKind::Morse;
}

FarField::FarField(const simd::RadialKernel& kernel, double cutoff, Split split)
    : kernel_(kernel), cutoff_(cutoff), alpha_(std::sqrt(split.decay) / cutoff) {
  if (!is_compact(kernel.kind)) return;
  using Kind = simd::RadialKind;
  exponent_ = kernel.kind == Kind::Logarithm       ? 0.0
              : kernel.kind == Kind::InverseFirst  ? 1.0
              : kernel.kind == Kind::InverseSquare ? 2.0
              : kernel.kind == Kind::Distance      ? -1.0
                                                   : kernel.exponent;
  // Entire in y and like exp(-band y / 4): 48 terms are exact to rounding for band < 40.
  const double scale = std::pow(cutoff, -exponent_ - 2.0) / bump_moment(exponent_, split.band, 1.0);
  force_ = chebyshev_coefficients(
      [&](double y) { return scale * bump_moment(exponent_, split.band, 0.5 * (1.0 + y)); }, 48);
  integral_ = antiderivative(force_);
}

double FarField::kernel_value(double R) const {
  return exponent_ == 0.0 ? -std::log(R) : std::pow(R, -exponent_) / exponent_;
}

FarField::Value FarField::at(double squared_distance) const {
  const double q = squared_distance + kernel_.softening_squared;
  using Kind = simd::RadialKind;
  if (is_compact(kernel_.kind)) {
    const double square = cutoff_ * cutoff_;
    if (q >= square) return {kernel_value(std::sqrt(q)), std::pow(q, -0.5 * exponent_ - 1.0)};
    // value = W(r_c) + (1/2) integral_q^(r_c^2) force_over_r dq.
    const double y = 2.0 * q / square - 1.0;
    return {kernel_value(cutoff_) - 0.25 * square * chebyshev_sum(integral_, y), chebyshev_sum(force_, y)};
  }
  switch (kernel_.kind) {
    case Kind::Logarithm:
    case Kind::InverseFirst:
    case Kind::InverseSquare:
    case Kind::Distance:
    case Kind::Power:
      break;
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
