#pragma once
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "summation/simd/direct_kernels.hpp"

namespace rieszflow {

/// The smooth part of a radial kernel at the near radius r_c, a function of q = r^2. Units of
/// simd::RadialKernel; R^2 = q + softening^2; force_over_r = -2 d value / dq.
///
/// Riesz and log. R^-(s+2) is a mixture of scaled bumps psi(R/sigma) sigma^-(s+3) over all widths sigma; far
/// are those wider than r_c:
///   force_over_r = r_c^-(s+2) G(R/r_c) / G(1),   G(u) = integral_0^1 psi(u x) x^(s+1) dx,   R < r_c,
/// and W itself from r_c on: what is near has compact support. psi(v) = I_0(band sqrt(1 - v^2)) is a
/// Kaiser-Bessel bump, entire in v^2, whose transform ends at the wavenumber band / r_c but for exp(-band).
/// An Ewald split by Gaussians has to go twice as far at the same accuracy. Bumps: Lewitt, J. Opt. Soc. Am. A
/// 7 (1990) 1834.
///
/// Gaussian and Morse, by a Gaussian of 1/r_c: alpha = sqrt(decay) / r_c; what is near falls like exp(-decay)
/// at r_c, what is far ends at the wavenumber 2 decay / r_c but for exp(-decay).
///   Gaussian   all of it when 1/(2 length^2) <= alpha^2, else nothing
///   Morse      exp(-k r) -> (exp(-kr) erfc(k/(2 alpha) - alpha r) + exp(kr) erfc(k/(2 alpha) + alpha r)) / 2
class FarField {
 public:
  /// What r_c times the wavenumber where the far field ends is, for each kind of split.
  struct Split {
    double band = 0.0;   ///< Riesz and log
    double decay = 0.0;  ///< Gaussian and Morse
  };
  FarField(const simd::RadialKernel& kernel, double cutoff, Split split);

  /// True for the kernels that split by compact bumps.
  static bool is_compact(simd::RadialKind kind);

  struct Value {
    double value = 0.0;
    double force_over_r = 0.0;
  };
  Value at(double squared_distance) const;

 private:
  simd::RadialKernel kernel_;
  double cutoff_, alpha_;
  double exponent_ = 0.0;  ///< s of Riesz and log
  std::vector<double> force_,
      integral_;  ///< Chebyshev, in y = 2 R^2 / r_c^2 - 1; integral_ of force_, 0 at y = 1

  double kernel_value(double R) const;
};

/// f(cos(pi (i + 1/2) / n)) interpolated: coefficients of T_0 .. T_(n-1).
template <class Function>
std::vector<double> chebyshev_coefficients(const Function& f, int n) {
  std::vector<double> samples(static_cast<std::size_t>(n)), result(samples.size());
  for (int i = 0; i < n; ++i)
    samples[static_cast<std::size_t>(i)] = f(std::cos(std::numbers::pi * (i + 0.5) / n));
  for (int k = 0; k < n; ++k) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i)
      sum += samples[static_cast<std::size_t>(i)] * std::cos(std::numbers::pi * k * (i + 0.5) / n);
    result[static_cast<std::size_t>(k)] = (k == 0 ? 1.0 : 2.0) / n * sum;
  }
  return result;
}
/// sum_k c_k T_k(y).
double chebyshev_sum(const std::vector<double>& coefficients, double y);
/// The coefficients of sum_k c_k T_k(y) in powers of y.
std::vector<double> powers_of(const std::vector<double>& coefficients);

}  // namespace rieszflow
