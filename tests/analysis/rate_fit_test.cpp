#include "analysis/rate_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "analysis/exact.hpp"
#include "analysis/verdict.hpp"
#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow {
namespace {

TEST(FitRate, OfAnExactPowerLawIsExact) {
  std::vector<RatePoint> points;
  for (double n : {10.0, 20.0, 50.0, 1000.0}) points.push_back({n, {3.0 * std::pow(n, -0.75), 0.0, 1}});
  const RateFit fit = fit_rate(points);
  EXPECT_NEAR(fit.exponent.value, -0.75, 1e-12);
  EXPECT_NEAR(std::exp(fit.log_amplitude), 3.0, 1e-10);
  EXPECT_NEAR(fit.high - fit.low, 0.0, 1e-10);
  EXPECT_NEAR(fit.last_slope, -0.75, 1e-12);
  EXPECT_FALSE(fit.weighted);
  EXPECT_FALSE(fit.plateau);
  EXPECT_FALSE(fit.pre_asymptotic);
}

TEST(FitRate, GivesNoisyPointsLessWeight) {
  std::vector<RatePoint> points;
  for (double n : {10.0, 20.0, 40.0, 80.0}) points.push_back({n, {1.0 / n, 0.001 / n, 20}});
  points.push_back({160.0, {1.0 / 80.0, 1.0 / 80.0, 20}});
  EXPECT_NEAR(fit_rate(points).exponent.value, -1.0, 1e-4);
}

/// 95 % intervals of the exponent over 500 simulated studies: six sizes, `replicas` squared errors each.
double coverage(std::size_t replicas, bool exponential) {
  const NoiseStream noise(31, NoisePurpose::ReferenceSample);
  int covered = 0;
  for (std::uint64_t study = 0; study < 500; ++study) {
    std::vector<RatePoint> points;
    for (std::uint64_t k = 0; k < 6; ++k) {
      const double size = 50.0 * std::pow(2.0, static_cast<double>(k));
      std::vector<double> samples(replicas);
      if (exponential) {
        noise.uniforms(study, k, 0, samples);
        for (double& x : samples) x = -std::log(x) / size;
      } else {
        noise.gaussians(study, k, 0, samples);
        for (double& x : samples) x = (1.0 + 0.2 * x) / size;
      }
      points.push_back({size, mean_estimate(samples)});
    }
    const RateFit fit = fit_rate(points, {400, study});
    covered += fit.low <= -1.0 && -1.0 <= fit.high ? 1 : 0;
  }
  return covered / 500.0;
}

TEST(FitRate, IntervalsCover95PercentForGaussianErrors) {
  // Between 93 and 97 %; the proportion itself has standard deviation 0.01.
  EXPECT_NEAR(coverage(16, false), 0.95, 0.02);
}

TEST(FitRate, IntervalsCover95PercentForSkewErrors) {
  // Squared distances have the law of a sum of few squares: here exponential, the most skew of them.
  EXPECT_NEAR(coverage(32, true), 0.95, 0.02);
}

TEST(FitRate, NoticesAPlateauAndAPreAsymptoticStart) {
  std::vector<RatePoint> plateau, early;
  for (double n : {10.0, 30.0, 100.0, 300.0, 1000.0}) {
    plateau.push_back({n, {1.0 / n + 0.01, 0.0, 1}});
    early.push_back({n, {1.0 / (n + 100.0), 0.0, 1}});
  }
  EXPECT_TRUE(fit_rate(plateau).plateau);
  EXPECT_FALSE(fit_rate(plateau).pre_asymptotic);
  EXPECT_TRUE(fit_rate(early).pre_asymptotic);
  EXPECT_FALSE(fit_rate(early).plateau);
  // Towards small timesteps the same holds the other way round.
  for (RatePoint& point : plateau) point.scale = 1.0 / point.scale;
  for (RatePoint& point : early) point.scale = 1.0 / point.scale;
  EXPECT_TRUE(fit_rate(plateau).plateau);
  EXPECT_TRUE(fit_rate(early).pre_asymptotic);
}

TEST(FitRate, OfTwoExactPointsHasNoInterval) {
  const std::vector<RatePoint> points = {{1.0, {1.0, 0.0, 1}}, {2.0, {0.5, 0.0, 1}}};
  EXPECT_NEAR(fit_rate(points).exponent.value, -1.0, 1e-14);
  EXPECT_TRUE(std::isinf(fit_rate(points).high));
  EXPECT_THROW(fit_rate(std::vector<RatePoint>{{1.0, {1.0, 0.0, 1}}}), PreconditionViolation);
  EXPECT_THROW(fit_rate(std::vector<RatePoint>{{1.0, {1.0, 0.0, 1}}, {1.0, {2.0, 0.0, 1}}}),
               PreconditionViolation);
  EXPECT_THROW(fit_rate(std::vector<RatePoint>{{1.0, {1.0, 0.0, 1}}, {2.0, {0.0, 0.0, 1}}}),
               PreconditionViolation);
}

/// log P of the mean of N standard Gaussians above `level`: 0.5 erfc(level sqrt(N/2)), rate level^2 / 2, b =
/// 1/2.
std::vector<TailPoint> gaussian_tail(double level, double noise_level) {
  std::vector<TailPoint> points;
  const NoiseStream noise(41, NoisePurpose::ReferenceSample);
  for (double n : {10.0, 20.0, 40.0, 80.0, 160.0}) {
    std::vector<double> z(1);
    noise.gaussians(0, 0, static_cast<std::uint64_t>(n), z);
    points.push_back(
        {n, {std::log(0.5 * std::erfc(level * std::sqrt(n / 2.0))) + noise_level * z[0], noise_level, 16}});
  }
  return points;
}

TEST(FitTail, FindsTheRateOfAGaussianTailWhereAStraightLineDoesNot) {
  const double level = 0.6, rate = level * level / 2.0;
  const std::vector<TailPoint> points = gaussian_tail(level, 0.0);
  const TailFit expansion = fit_tail(points);
  EXPECT_NEAR(expansion.rate.value, rate, 1e-3 * rate);  // what the term after c/N leaves
  EXPECT_NEAR(expansion.offset, std::log(level * std::sqrt(2.0 * std::numbers::pi)), 0.03);
  const TailFit line = fit_tail(points, {0.0, false});
  EXPECT_GT(line.rate.value, 1.02 * rate);
  const TailFit free = fit_tail(points, {std::nullopt, false});
  EXPECT_NEAR(free.log_coefficient.value, 0.5, 0.15);
  EXPECT_NEAR(free.rate.value, rate, 5e-3 * rate);
}

TEST(FitTail, StatesTheErrorItMakes) {
  const double level = 0.6;
  const TailFit fit = fit_tail(gaussian_tail(level, 0.02));
  EXPECT_LT(std::abs(z_score(fit.rate, level * level / 2.0)), 3.0);
  EXPECT_LT(fit.rate.standard_error, 0.01 * fit.rate.value);
  EXPECT_LT(fit.chi_squared, 9.2);  // two degrees of freedom, 1 %
  EXPECT_EQ(fit.degrees_of_freedom, 2u);
}

TEST(FitTail, OfTheScalingLawHasNoLogarithm) {
  // P = r^(d N + c): no logarithm and no inverse term.
  std::vector<TailPoint> points;
  for (double n : {5.0, 10.0, 20.0, 40.0}) points.push_back({n, {(2.0 * n + 3.0) * std::log(0.5), 0.0, 1}});
  const TailFit fit = fit_tail(points, {std::nullopt, false});
  EXPECT_NEAR(fit.rate.value, 2.0 * std::numbers::ln2, 1e-11);
  EXPECT_NEAR(fit.log_coefficient.value, 0.0, 1e-9);
  EXPECT_THROW(fit_tail(std::span(points).first(2)), PreconditionViolation);
}

TEST(FitTail, OfAColdGasNeedsTheSquareOfTheInverse) {
  // Selberg's integral is a series in beta/N, and beta/N is 1 at the first of these counts.
  std::vector<TailPoint> points;
  exact::Partition gas;
  for (const std::size_t n : {10u, 20u, 40u, 70u, 100u}) {
    gas = exact::log_gas_on_interval(n, 10.0);
    points.push_back({static_cast<double>(n), {-gas.log_z, 1e-2, 32}});
  }
  const TailFit fit = fit_tail(points, {.log_coefficient = 0.0, .inverse_square_term = true});
  const TailFit without = fit_tail(points, {.log_coefficient = 0.0});
  EXPECT_EQ(fit.degrees_of_freedom, 1u);
  EXPECT_LT(std::abs(fit.rate.value - gas.limit), 2e-4);
  EXPECT_GT(std::abs(without.rate.value - gas.limit), 5e-4);
  EXPECT_NEAR(fit.offset, *gas.correction, 2e-3 * *gas.correction);
}

TEST(CorrectedRate, FindsTheLeadingExponentBehindItsCorrections) {
  // 0.5 h^(1/2) (1 + 0.4 h^(1/2) - 0.2 h): a pure power has an exponent of 0.53 on these scales.
  std::vector<RatePoint> points;
  for (double h = 0.08; h > 0.002; h *= 0.5)
    points.push_back(
        {h, {0.5 * std::sqrt(h) * (1.0 + 0.4 * std::sqrt(h) - 0.2 * h), 0.002 * std::sqrt(h), 100}});
  const RateFit pure = fit_rate(points);
  EXPECT_GT(pure.low, 0.5);
  const CorrectedRateFit one = fit_corrected_rate(points, std::vector{0.5});
  EXPECT_LT(one.low, 0.5);
  EXPECT_GT(one.high, 0.5);
  EXPECT_NEAR(one.exponent.value, 0.5, 0.01);
  const CorrectedRateFit two = fit_corrected_rate(points, std::vector{0.5, 1.0});
  EXPECT_NEAR(two.exponent.value, 0.5, 1e-4);
  EXPECT_NEAR(two.amplitudes[0], 0.5, 1e-3);
  EXPECT_NEAR(two.amplitudes[1], 0.2, 1e-2);
  EXPECT_LT(two.chi_squared, 1e-6);
  EXPECT_EQ(two.degrees_of_freedom, points.size() - 4);
  EXPECT_GT(two.high - two.low, one.high - one.low);
}

TEST(Verdict, PassesWithinItsToleranceOnly) {
  EXPECT_TRUE(verdict("a", "b", {1.1, 0.1, 4}, 1.0, 0.11, "c").passed);
  EXPECT_FALSE(verdict("a", "b", {1.2, 0.1, 4}, 1.0, 0.11, "c").passed);
  EXPECT_FALSE(verdict("a", "b", {std::nan(""), 0.1, 4}, 1.0, 0.11, "c").passed);
  EXPECT_NEAR(z_score({1.3, 0.1, 4}, 1.0), 3.0, 1e-12);
}

}  // namespace
}  // namespace rieszflow
