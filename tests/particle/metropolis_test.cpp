#include "solvers/particle/metropolis.hpp"

#include <gtest/gtest.h>

#include <numbers>

#include "helpers.hpp"

namespace rieszflow::particle {
namespace {

double density(const Domain& domain, std::vector<double> point, const std::vector<double>& mean,
               double deviation) {
  return std::exp(log_folded_gaussian(domain, point, mean, deviation));
}

TEST(FoldedGaussian, IntegratesToOneInABox) {
  const Domain box = Box{{-1.0}, {2.0}}, circle = Torus{{-1.0}, {2.0}};
  for (const double mean : {-1.0, 0.3, 2.0, 11.0, -40.0}) {
    for (const double deviation : {0.1, 1.0, 5.0, 11.9, 100.0}) {
      // Trapezoidal rule on a periodic, smooth folding: converges beyond all orders for these widths.
      const int n = 3000;
      double on_box = 0.0, on_circle = 0.0;
      for (int k = 0; k < n; ++k) {
        on_box += 3.0 / n * density(box, {-1.0 + 3.0 * (k + 0.5) / n}, {mean}, deviation);
        on_circle += 3.0 / n * density(circle, {-1.0 + 3.0 * (k + 0.5) / n}, {mean}, deviation);
      }
      EXPECT_NEAR(on_box, 1.0, 1e-12) << mean << ' ' << deviation;
      EXPECT_NEAR(on_circle, 1.0, 1e-12) << mean << ' ' << deviation;
    }
  }
}

TEST(FoldedGaussian, IntegratesToOneInADisc) {
  const Domain disc = Ball{{0.5, 0.0}, 1.0};
  for (const double x : {0.5, 1.2, 3.0}) {
    for (const double deviation : {0.2, 0.7, 3.0}) {
      const int radial = 400, angular = 400;
      double sum = 0.0;
      for (int a = 0; a < radial; ++a) {
        const double r = (a + 0.5) / radial;
        for (int b = 0; b < angular; ++b) {
          const double angle = 2.0 * std::numbers::pi * b / angular;
          sum += r * density(disc, {0.5 + r * std::cos(angle), r * std::sin(angle)}, {x, 0.3}, deviation);
        }
      }
      // Midpoint rule in the radius: error (1/radial)^2.
      EXPECT_NEAR(sum * 2.0 * std::numbers::pi / (radial * angular), 1.0, 2e-4) << x << ' ' << deviation;
    }
  }
}

TEST(FoldedGaussian, IsTheLawOfReflectedGaussians) {
  // Shares of a cell [r0, r1] x [a0, a1] of the ball of radius 1 in polar form, against samples.
  const Domain disc = Ball{{0.0, 0.0}, 1.0};
  const std::vector<double> mean = {0.6, 0.2};
  const double deviation = 0.8;
  const std::size_t samples = 400000;
  std::vector<double> points(2 * samples);
  NoiseStream(1, NoisePurpose::ReferenceSample).gaussian_block(0, 0, samples, 2, points);
  constexpr int rings = 4, sectors = 6;
  std::vector<double> counts(rings * sectors, 0.0);
  for (std::size_t i = 0; i < samples; ++i) {
    const auto point = std::span(points).subspan(2 * i, 2);
    point[0] = mean[0] + deviation * point[0], point[1] = mean[1] + deviation * point[1];
    reflect(disc, point);
    const double angle = std::atan2(point[1], point[0]) / (2.0 * std::numbers::pi) + 0.5;
    const int ring = std::min(rings - 1, static_cast<int>(rings * std::hypot(point[0], point[1])));
    counts[static_cast<std::size_t>(ring * sectors +
                                    std::min(sectors - 1, static_cast<int>(sectors * angle)))] += 1.0;
  }
  for (int ring = 0; ring < rings; ++ring) {
    for (int sector = 0; sector < sectors; ++sector) {
      double share = 0.0;
      const int fine = 40;
      for (int a = 0; a < fine; ++a) {
        for (int b = 0; b < fine; ++b) {
          const double r = (ring + (a + 0.5) / fine) / rings;
          const double angle = 2.0 * std::numbers::pi * ((sector + (b + 0.5) / fine) / sectors - 0.5);
          share += r * density(disc, {r * std::cos(angle), r * std::sin(angle)}, mean, deviation) * 2.0 *
                   std::numbers::pi / (rings * sectors * fine * fine);
        }
      }
      const double count =
          counts[static_cast<std::size_t>(ring * sectors + sector)] / static_cast<double>(samples);
      EXPECT_NEAR(count, share, 5.0 * std::sqrt(share / static_cast<double>(samples)) + 1e-4)
          << ring << ' ' << sector;
    }
  }
}

TEST(Mala, AcceptanceTendsToOneWithTheStepAndDoesNotFallWithTheNumberOfParticles) {
  const auto acceptance = [](std::size_t particles, double timestep) {
    const Model model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, 2.0};
    State state{uniform_ensemble(model.domain, 1, particles), {}};
    return run(model, state, {.scheme = Scheme::Mala, .timestep = timestep},
               Schedule::at({0.0, 40.0 * timestep}), {}, {})
        .statistics.acceptance();
  };
  EXPECT_GT(acceptance(10, 1e-5), 0.97);
  EXPECT_GT(acceptance(10, 1e-2), 0.5);
  EXPECT_GT(acceptance(1000, 1e-2), 0.5);
}

/// A(mu) = (J/2) (mean of x)^2: the quadratic interaction of Curie and Weiss written as a functional.
class SquaredMean : public Functional {
 public:
  std::string description() const override { return "J/2 (mean x)^2"; }
  double add_forces(std::span<const double> positions, std::size_t particle_count, std::uint64_t,
                    std::uint64_t, std::span<double> forces) const override {
    double mean = 0.0;
    for (const double x : positions) mean += x / static_cast<double>(particle_count);
    for (double& f : forces) f -= strength * mean;
    return 0.5 * strength * mean * mean;
  }
  std::unique_ptr<GridFunctional> on_grid(const Grid&) const override { return nullptr; }
  static constexpr double strength = -1.5;
};

TEST(Mala, SamplesModelsWithAFunctionalExactly) {
  // H_N = -(J/2) m^2 with beta J = 1.5, N = 10: N E m^2 = 0.6037042004.
  Model model{Box{{-1.0}, {1.0}}, {}, {}, 1.0, {std::make_shared<SquaredMean>()}};
  const Statistic magnetisation = [](std::span<const double> x) {
    double sum = 0.0;
    for (const double c : x) sum += c;
    return sum * sum / static_cast<double>(x.size());
  };
  const Mean mala =
      stationary_mean(model, uniform_ensemble(model.domain, 40, 10),
                      {.scheme = Scheme::Mala, .timestep = 0.05, .seed = 4}, 5.0, 100.0, 0.2, magnetisation);
  EXPECT_NEAR(mala.value, 0.6037042004, 4.0 * mala.standard_error);
  const Mean reflected = stationary_mean(model, uniform_ensemble(model.domain, 40, 10),
                                         {.timestep = 0.01, .seed = 4}, 5.0, 50.0, 0.2, magnetisation);
  // Weak order one at the wall: a bias below h / 2 on a quantity of order one.
  EXPECT_NEAR(reflected.value, 0.6037042004, 4.0 * reflected.standard_error + 0.005);
}

}  // namespace
}  // namespace rieszflow::particle
