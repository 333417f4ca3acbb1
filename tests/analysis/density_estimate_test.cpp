#include "analysis/density_estimate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "analysis/sampling.hpp"
#include "domain/grid.hpp"

namespace rieszflow {
namespace {

TEST(KernelDensity, OfOneReflectedParticleIsTheKernelWithItsImages) {
  const Box box{{0.0}, {1.0}};
  const ParticleEnsemble two{1, 2, 1, {0.05, 0.9}};
  const double h = 0.2;
  const Grid grid = grid_on(box, {800});
  const DensityEstimate estimate = kernel_density(two, box, grid, h);
  const auto kernel = [&](double x) {
    double sum = 0.0;
    for (const double particle : {0.05, 0.9}) {
      for (int m = -3; m <= 3; ++m) {
        for (const double image : {particle + 2.0 * m, -particle + 2.0 * m})
          sum +=
              0.5 * std::exp(-0.5 * std::pow((x - image) / h, 2)) / (h * std::sqrt(2.0 * std::numbers::pi));
      }
    }
    return sum;
  };
  for (const std::size_t cell : {std::size_t{0}, std::size_t{177}, std::size_t{799}})
    EXPECT_NEAR(estimate.density.averages[cell], kernel(grid.center(0, cell)), 5e-3) << cell;
  EXPECT_NEAR(mass(estimate.density), 1.0, 1e-12);
}

TEST(KernelDensity, KeepsMassOnEveryAxisAndWrapsATorus) {
  const Torus torus{{-1.0, 0.0, 0.0}, {1.0, 1.0, 3.0}};
  const ParticleEnsemble seam{1, 2, 3, {-1.0, 0.01, 0.1, 0.99, 0.5, 2.9}};
  const Grid grid = grid_on(torus, {12, 8, 10});
  const DensityEstimate estimate = kernel_density(seam, torus, grid, 0.3);
  EXPECT_NEAR(mass(estimate.density), 1.0, 1e-9);
  EXPECT_EQ(estimate.bandwidths, std::vector<double>(3, 0.3));
  // Both first coordinates sit at the seam: its two sides are alike.
  double left = 0.0, right = 0.0;
  for (std::size_t rest = 0; rest < 80; ++rest) {
    left += estimate.density.averages[rest];
    right += estimate.density.averages[11 * 80 + rest];
  }
  EXPECT_NEAR(left, right, 0.02 * left);
}

TEST(KernelDensity, AtAWallHasTheBiasOfItsFormulaAndHalfTheDensityWithoutReflection) {
  // A linear law: the bias at the wall x = 1 is -(2/pi)^(1/2) bandwidth rho'.
  const Box box{{-1.0}, {1.0}};
  Density law{grid_on(box, {400}), {}};
  for (std::size_t cell = 0; cell < 400; ++cell)
    law.averages.push_back(0.5 + 0.3 * law.grid.center(0, cell));
  const ParticleEnsemble sample = independent_samples(law, box, 16, 20000, 3);
  const double h = 0.05, wall = 0.8, slope = 0.3;
  const DensityEstimate estimate = kernel_density(sample, box, law.grid, h);
  EXPECT_NEAR(estimate.density.averages.back(), wall - std::sqrt(2.0 / std::numbers::pi) * h * slope, 0.012);
  EXPECT_NEAR(kernel_density(sample, WholeSpace{1}, law.grid, h).density.averages.back(), 0.5 * wall, 0.02);
}

}  // namespace
}  // namespace rieszflow
