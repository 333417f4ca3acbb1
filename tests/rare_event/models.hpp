#pragma once
#include <cmath>
#include <complex>
#include <numbers>

#include "model/model.hpp"
#include "solvers/rare_event/statistic.hpp"

/// Models with exact finite-N answers, and those answers.
namespace rieszflow::rare_event::test {

inline Model log_gas(double beta) {
  return {.domain = Box{{-1.0}, {1.0}},
          .potentials = {},
          .interactions = {LogarithmicInteraction{}},
          .inverse_temperature = beta};
}

/// H = -(J/2) m^2 on [-1,1] as a pair model: W = (J/2) r^2, V = -(J/2) x^2.
inline Model curie_weiss(double coupling) {
  return {.domain = Box{{-1.0}, {1.0}},
          .potentials = {QuadraticPotential{-1.0}},
          .interactions = {QuadraticInteraction{1.0}},
          .inverse_temperature = coupling};
}

inline Statistic coordinate_mean() {
  return mean_of("mean of x", [](std::span<const double> x) { return x[0]; });
}

/// Density of the mean m of n independent uniforms on [-1,1], up to a factor: (1/2 pi) integral e^(K(c+iy) -
/// n (c+iy) m) dy through the saddle c. Midpoint rule; the integrand is analytic and decays, so it converges
/// geometrically.
inline double log_density_of_uniform_mean(double n, double m) {
  const auto cumulant = [](std::complex<double> s) {
    return std::abs(s) < 1e-4 ? s * s / 6.0 : std::log(std::sinh(s) / s);
  };
  const auto slope = [](double s) { return std::abs(s) < 1e-4 ? s / 3.0 : 1.0 / std::tanh(s) - 1.0 / s; };
  double low = -200.0, high = 200.0;
  for (int i = 0; i < 200; ++i) (slope(0.5 * (low + high)) < m ? low : high) = 0.5 * (low + high);
  const double c = 0.5 * (low + high), base = cumulant(c).real() - c * m;
  const double curvature =
      std::max(std::abs(c) < 1e-3 ? 1.0 / 3.0 : 1.0 / (c * c) - 1.0 / std::pow(std::sinh(c), 2), 1e-12);
  const double width = 1.0 / std::sqrt(n * curvature), h = 0.02 * width;
  double sum = 0.0;
  for (int k = 0; k < 200000; ++k) {
    const std::complex<double> s(c, (k + 0.5) * h);
    const std::complex<double> term = std::exp(n * (cumulant(s) - s * m - base));
    sum += term.real();
    if (std::abs(term) < 1e-17 && k > 100) break;
  }
  return sum > 0.0 ? n * base + std::log(h * sum) : -1e300;
}

/// P(lower < m < upper) for Curie-Weiss with beta J = coupling: the density of m is exp(n coupling m^2 / 2)
/// p0(m).
inline double log_probability_of_curie_weiss(double coupling, int count, double lower, double upper) {
  const double n = count;
  const auto integral = [&](double a, double b, double shift) {
    constexpr int panels = 1000;  // Simpson
    double sum = 0.0;
    const double h = (b - a) / panels;
    for (int i = 0; i <= panels; ++i) {
      const double m = a + h * i;
      if (std::abs(m) > 0.99) continue;  // (1 - |m|)^(n-1): below round-off of the integral
      const double weight = i == 0 || i == panels ? 1.0 : i % 2 == 1 ? 4.0 : 2.0;
      sum += weight * std::exp(log_density_of_uniform_mean(n, m) + 0.5 * n * coupling * m * m - shift);
    }
    return std::log(sum * h / 3.0) + shift;
  };
  const auto peak = [&](double a, double b) {
    double largest = -1e300;
    for (int i = 1; i < 200; ++i) {
      const double m = a + (b - a) * i / 200.0;
      largest = std::max(largest, log_density_of_uniform_mean(n, m) + 0.5 * n * coupling * m * m);
    }
    return largest;
  };
  return integral(lower, upper, peak(lower, upper)) - integral(-1.0, 1.0, peak(-1.0, 1.0));
}

/// Selberg's integral: log Z_N of the log gas on [-1,1]. theory.md section 3, item 3.
inline double log_partition_of_log_gas(double beta, int count) {
  const double n = count, gamma = beta / (2.0 * n);
  double sum = (n + gamma * n * (n - 1.0)) * std::numbers::ln2 - n * std::lgamma(1.0 + gamma);
  for (int j = 0; j < count; ++j) {
    sum += 2.0 * std::lgamma(1.0 + j * gamma) + std::lgamma(1.0 + (j + 1) * gamma) -
           std::lgamma(2.0 + (n + j - 1.0) * gamma);
  }
  return sum;
}

}  // namespace rieszflow::rare_event::test
