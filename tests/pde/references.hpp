#pragma once
#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <vector>

#include "domain/grid.hpp"
#include "model/density.hpp"

/// Exact solutions, computed here from their formulas, and small helpers for the tests of densities.
namespace rieszflow::reference {

/// Cell averages normalised to mass 1, from a density by an 8-point Gauss rule per axis is not needed here:
/// midpoint values suffice for starts that are not compared with exact solutions.
inline Density density_of(const Grid& grid, const std::function<double(const std::vector<double>&)>& shape) {
  Density density{grid, std::vector<double>(grid.cell_count())};
  std::vector<double> point(grid.dimension());
  double sum = 0.0;
  for (std::size_t cell = 0; cell < density.averages.size(); ++cell) {
    grid.cell_center(cell, point);
    density.averages[cell] = shape(point);
    sum += density.averages[cell] * (grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell]);
  }
  for (double& value : density.averages) value /= sum * grid.cell_volume();
  return density;
}

inline Density uniform_on(const Grid& grid) {
  return density_of(grid, [](const std::vector<double>&) { return 1.0; });
}

inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// Exact averages of N(mean, deviation^2) over the cells of a one-dimensional grid, not truncated.
inline std::vector<double> gaussian_averages(const Grid& grid, double mean, double deviation) {
  std::vector<double> averages(grid.cells[0]);
  for (std::size_t i = 0; i < averages.size(); ++i) {
    const double a = (grid.face(0, i) - mean) / deviation, b = (grid.face(0, i + 1) - mean) / deviation;
    // In the upper tail the difference of the complements keeps its digits.
    const double mass = a > 0.0 ? normal_cdf(-a) - normal_cdf(-b) : normal_cdf(b) - normal_cdf(a);
    averages[i] = mass / grid.spacing(0);
  }
  return averages;
}

inline double l1_distance(const Grid& grid, const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum * grid.cell_volume();
}

/// The root of an increasing function.
inline double root(const std::function<double(double)>& f, double low, double high) {
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (f(middle) > 0.0 ? high : low) = middle;
  }
  return 0.5 * (low + high);
}

/// d/dt rho for W = -chi |x - y| on [-1, 1], chi = +-1, rho_0 = 1/2, no flux: the Cole-Hopf transform.
/// u = 2 M - 1, M(x) = mass left of x, solves u_t + chi u u_x = u_xx / beta; u = -(2 / (chi beta)) phi_x /
/// phi with phi_t = phi_xx / beta, phi_x(+-1) = -+ (chi beta / 2) phi, phi_0 = exp(-chi beta x^2 / 4).
class ColeHopf {
 public:
  ColeHopf(double beta, double chi) : beta_(beta), chi_(chi) {
    const double pi = std::numbers::pi, slope = 0.5 * chi * beta;
    if (chi < 0.0) {
      hyperbolic_ = root([&](double k) { return k * std::tanh(k) + slope; }, 0.0, 10.0 + beta);
    }
    for (int n = chi < 0.0 ? 1 : 0; n < 60; ++n) {  // k sin k = slope cos k
      const double low = n * pi - (chi < 0.0 ? 0.5 * pi : 0.0);
      const double sign = n % 2 == 0 ? 1.0 : -1.0;
      wavenumbers_.push_back(root([&](double k) { return sign * (k * std::sin(k) - slope * std::cos(k)); },
                                  low, low + 0.5 * pi));
    }
    for (const double k : wavenumbers_) {
      amplitudes_.push_back(projection([k](double x) { return std::cos(k * x); }));
    }
    if (chi < 0.0)
      hyperbolic_amplitude_ = projection([this](double x) { return std::cosh(hyperbolic_ * x); });
  }

  /// u(x, t) in (-1, 1).
  double u(double x, double t) const {
    double phi = 0.0, derivative = 0.0;
    for (std::size_t n = 0; n < wavenumbers_.size(); ++n) {
      const double k = wavenumbers_[n], a = amplitudes_[n] * std::exp(-k * k * t / beta_);
      phi += a * std::cos(k * x);
      derivative -= a * k * std::sin(k * x);
    }
    if (chi_ < 0.0) {
      const double a = hyperbolic_amplitude_ * std::exp(hyperbolic_ * hyperbolic_ * t / beta_);
      phi += a * std::cosh(hyperbolic_ * x);
      derivative += a * hyperbolic_ * std::sinh(hyperbolic_ * x);
    }
    return -2.0 / (chi_ * beta_) * derivative / phi;
  }

  std::vector<double> averages(const Grid& grid, double t) const {
    std::vector<double> result(grid.cells[0]);
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = (u(grid.face(0, i + 1), t) - u(grid.face(0, i), t)) / (2.0 * grid.spacing(0));
    }
    return result;
  }

 private:
  /// integral phi_0 mode / integral mode^2 over [-1, 1], Simpson's rule.
  double projection(const std::function<double(double)>& mode) const {
    const int panels = 4000;
    double above = 0.0, below = 0.0;
    for (int i = 0; i <= panels; ++i) {
      const double x = -1.0 + 2.0 * i / panels, weight = i == 0 || i == panels ? 1.0 : i % 2 == 1 ? 4.0 : 2.0;
      above += weight * std::exp(-0.25 * chi_ * beta_ * x * x) * mode(x);
      below += weight * mode(x) * mode(x);
    }
    return above / below;
  }

  double beta_, chi_, hyperbolic_ = 0.0, hyperbolic_amplitude_ = 0.0;
  std::vector<double> wavenumbers_, amplitudes_;
};

/// Order of convergence from the errors at three or more grids refined by 2: the last ratio.
inline double observed_order(const std::vector<double>& errors) {
  return std::log2(errors[errors.size() - 2] / errors.back());
}

}  // namespace rieszflow::reference
