#pragma once
#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "analysis/line_law.hpp"
#include "model/density.hpp"
#include "model/ensemble.hpp"

namespace rieszflow {

/// k(x, y) = exp(-|x - y|^2 / (2 length^2)); on the torus its sum over all images.
struct GaussianKernel {
  double length = 1.0;  ///< bandwidth, > 0
};

/// k(x, y) = -|x - y|, d = 1, not periodic: MMD^2 is the energy distance 2 integral (F_N - F)^2.
struct EnergyKernel {};

using DiscrepancyKernel = std::variant<GaussianKernel, EnergyKernel>;

/// Squared maximum mean discrepancy of one empirical measure against the density.
struct SquaredDiscrepancy {
  double biased = 0.0;  ///< double-integral k d(mu_N - rho) d(mu_N - rho) >= 0
  double unbiased =
      0.0;  ///< without the terms i = j: mean zero for independent samples of rho, may be negative
};

/// Squared MMD against a grid density taken as constant on cells, exact to round-off. Its expectation for N
/// independent samples is exactly proportional to 1/N, which makes it the clean measure of mean-field
/// convergence.
///
/// Gaussian kernel: its Fourier series sum_m a_m exp(i omega_m (x - y)) on the torus, and in a box that of
/// its periodisation with a period so long that no image reaches a double; both have a_m > 0 that fall like a
/// Gaussian, so that
///
///   MMD^2 = sum_m a_m |mu_hat(m) - rho_hat(m)|^2
///
/// has few terms, no cancellation, and costs O((N + n) modes) instead of O(N^2 + N n); a cell's transform is
/// closed form. modes = prod_axis 2.8 (extent/length + 9), on the torus 2.8 extent/length. Energy kernel: O(N
/// log N + n) by the distribution functions. Source: A. Gretton et al., J. Mach. Learn. Res. 13 (2012)
/// 723-773.
class MeanDiscrepancy {
 public:
  MeanDiscrepancy(const Density& density, DiscrepancyKernel kernel);

  /// (replica). Particles lie in the box of the grid (energy kernel: anywhere).
  std::vector<SquaredDiscrepancy> operator()(const ParticleEnsemble& ensemble) const;

  /// E of `biased` for N independent samples: (E k(X, X) - E k(X, X')) / N. That of `unbiased` is zero.
  double expected_biased(std::size_t particle_count) const;

 private:
  struct Axis {
    double origin = 0.0;
    double frequency = 0.0;   ///< omega_m = m frequency
    std::size_t highest = 0;  ///< modes -highest..highest; the last axis 0..highest, the rest by symmetry
  };
  /// Fourier coefficients by (mode of each axis), last axis fastest.
  struct Transform {
    std::vector<double> real;
    std::vector<double> imaginary;
  };

  Transform transform(std::span<const double> positions) const;
  SquaredDiscrepancy gaussian(std::span<const double> positions) const;
  SquaredDiscrepancy energy(std::span<const double> positions) const;

  std::size_t dimension_;
  DiscrepancyKernel kernel_;
  LineLaw law_;                  ///< energy kernel
  std::vector<Axis> axes_;       ///< Gaussian kernel
  std::vector<double> weights_;  ///< (mode) a_m, twice where the last index is positive
  Transform density_;
  double diagonal_ = 0.0;  ///< k(x, x)
  double self_ = 0.0;      ///< double-integral k rho rho
};

/// Root mean square distance of two independent points of rho: the natural bandwidth.
double typical_distance(const Density& density);

}  // namespace rieszflow
