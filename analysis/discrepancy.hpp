#pragma once
#include <cstddef>
#include <span>
#include <variant>
#include <vector>

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

/// Squared MMD against a grid density taken as constant on cells: every integral over a cell in closed form
/// (error functions; for the energy kernel the distribution function), no sampling of the density. Its
/// expectation for N independent samples is exactly proportional to 1/N, which makes it the clean measure of
/// mean-field convergence. Construction costs O(n sum_axis n_axis) for n cells, each replica O(N^2 + N n),
/// the energy kernel O(N log N + n). Source: A. Gretton et al., J. Mach. Learn. Res. 13 (2012) 723-773.
class MeanDiscrepancy {
 public:
  MeanDiscrepancy(Density density, DiscrepancyKernel kernel);

  /// (replica)
  std::vector<SquaredDiscrepancy> operator()(const ParticleEnsemble& ensemble) const;

  /// E of `biased` for N independent samples: (E k(X, X) - E k(X, X')) / N. That of `unbiased` is zero.
  double expected_biased(std::size_t particle_count) const;

 private:
  SquaredDiscrepancy gaussian(std::span<const double> positions) const;
  SquaredDiscrepancy energy(std::span<const double> positions) const;

  Density density_;
  DiscrepancyKernel kernel_;
  std::vector<double> masses_;  ///< (cell), sum 1
  double diagonal_ = 0.0;       ///< k(x, x)
  double self_ = 0.0;           ///< double-integral k rho rho
};

/// Root mean square distance of two independent points of rho: the natural bandwidth.
double typical_distance(const Density& density);

}  // namespace rieszflow
