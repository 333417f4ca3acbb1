#include <gtest/gtest.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "analysis/estimate.hpp"
#include "core/noise.hpp"
#include "model/initial_law.hpp"
#include "solvers/particle/langevin.hpp"

/// Nominal 95 % intervals, tried with many seeds against exact values.
namespace rieszflow {
namespace {

struct Coverage {
  int tried = 0, covered = 0;

  void add(const Estimate& estimate, double exact) {
    const double quantile =
        boost::math::quantile(boost::math::students_t(static_cast<double>(estimate.samples - 1)), 0.975);
    ++tried;
    covered += std::abs(estimate.value - exact) <= quantile * estimate.standard_error ? 1 : 0;
  }
  double share() const { return static_cast<double>(covered) / tried; }
};

/// Quadratic V and W in free space: the chain x <- x - h (x + a (x - mean)) + sqrt(2 h / beta) xi is linear,
/// so its moments are known for every N and every step: the mean has the rate 1, what is left the rate 1 + a.
TEST(Intervals, OfMeansOverReplicasCover95PercentOf200Seeds) {
  constexpr double a = 0.5, beta = 2.0, h = 0.02, start = 0.7, deviation = 0.4;
  constexpr std::size_t count = 20, replicas = 16;
  const Model model{.domain = WholeSpace{1},
                    .potentials = {QuadraticPotential{.stiffness = 1.0}},
                    .interactions = {QuadraticInteraction{.strength = a}},
                    .inverse_temperature = beta};
  const InitialLaw initial = GaussianLaw{{start}, {deviation}};
  const auto variance = [&](double rate, std::int64_t step) {
    double v = deviation * deviation;
    for (std::int64_t k = 0; k < step; ++k) v = (1.0 - h * rate) * (1.0 - h * rate) * v + 2.0 * h / beta;
    return v;
  };
  Coverage means, second_moments;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    particle::State state{.ensemble = sample(initial, model.domain, replicas, count, seed), .clock = {}};
    const auto observe = [&](const Clock& clock, const particle::State& now) {
      std::vector<double> mean(replicas, 0.0), square(replicas, 0.0);
      for (std::size_t i = 0; i < replicas * count; ++i) {
        const double x = now.ensemble.positions[i];
        mean[i / count] += x / count;
        square[i / count] += x * x / count;
      }
      const double exact = start * std::pow(1.0 - h, static_cast<double>(clock.step));
      means.add(mean_estimate(mean), exact);
      second_moments.add(mean_estimate(square),
                         exact * exact + variance(1.0, clock.step) / count +
                             variance(1.0 + a, clock.step) * (1.0 - 1.0 / static_cast<double>(count)));
    };
    const auto result = particle::run(model, state, {.timestep = h, .seed = seed},
                                      Schedule::every(1.0, 0.0, 4.0), observe, {});
    ASSERT_EQ(result.status, RunStatus::Completed) << result.message;
  }
  // Five times a seed, nearly independent: the share itself has a standard error of 0.7 %.
  std::printf("means %.1f %%, second moments %.1f %% of %d intervals\n", 100 * means.share(),
              100 * second_moments.share(), means.tried);
  EXPECT_NEAR(means.share(), 0.95, 0.02);
  EXPECT_NEAR(second_moments.share(), 0.95, 0.02);
}

/// An autoregressive chain of autocorrelation time 9: what a Metropolis chain hands to its error bar.
TEST(Intervals, OfCorrelatedSeriesCover95PercentOf200Seeds) {
  constexpr double memory = 0.8;
  constexpr std::size_t length = 20000;
  Coverage coverage;
  std::vector<double> noise(length), series(length);
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    NoiseStream(seed, NoisePurpose::ReferenceSample).gaussians(0, 0, 0, noise);
    double x = noise[0] / std::sqrt(1.0 - memory * memory);
    for (std::size_t k = 0; k < length; ++k) series[k] = x = memory * x + noise[k];
    coverage.add(correlated_mean_estimate(series), 0.0);
  }
  std::printf("correlated series %.1f %% of %d intervals\n", 100 * coverage.share(), coverage.tried);
  EXPECT_NEAR(coverage.share(), 0.95, 3.0 * std::sqrt(0.95 * 0.05 / 200))
      << "three standard errors of 200 seeds";
}

}  // namespace
}  // namespace rieszflow
