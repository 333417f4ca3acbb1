#include "analysis/estimate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow {
namespace {

std::vector<double> gaussians(std::size_t count, std::uint64_t replica) {
  std::vector<double> out(count);
  NoiseStream(5, NoisePurpose::ReferenceSample).gaussians(replica, 0, 0, out);
  return out;
}

/// x_{t+1} = phi x_t + sqrt(1 - phi^2) xi: correlations phi^k, tau = (1 + phi) / (1 - phi).
std::vector<double> autoregression(double phi, std::size_t count, std::uint64_t replica) {
  std::vector<double> series = gaussians(count, replica);
  for (std::size_t t = 1; t < count; ++t)
    series[t] = phi * series[t - 1] + std::sqrt(1.0 - phi * phi) * series[t];
  return series;
}

TEST(MeanEstimate, IsTheTextbookFormula) {
  const std::vector<double> samples = {1.0, 2.0, 4.0, 9.0};
  const Estimate estimate = mean_estimate(samples);
  EXPECT_DOUBLE_EQ(estimate.value, 4.0);
  EXPECT_DOUBLE_EQ(estimate.standard_error, std::sqrt((9.0 + 4.0 + 0.0 + 25.0) / 3.0 / 4.0));
  EXPECT_EQ(estimate.samples, 4u);
}

TEST(MeanEstimate, OfOneSampleHasNoError) {
  const std::vector<double> samples = {3.0};
  EXPECT_EQ(mean_estimate(samples).value, 3.0);
  EXPECT_TRUE(std::isnan(mean_estimate(samples).standard_error));
  EXPECT_THROW(mean_estimate(std::vector<double>{}), PreconditionViolation);
}

TEST(MeanEstimate, KeepsSmallSpreadsOnALargeOffset) {
  const std::vector<double> samples = {1e9, 1e9 + 1.0, 1e9 + 2.0};
  EXPECT_DOUBLE_EQ(mean_estimate(samples).standard_error, std::sqrt(1.0 / 3.0));
}

TEST(PooledEstimate, OfEqualGroupsIsTheMeanOfAllSamples) {
  const std::vector<double> all = gaussians(40, 1);
  const std::span<const double> span(all);
  const std::vector<Estimate> groups = {mean_estimate(span.first(20)), mean_estimate(span.last(20))};
  const Estimate pooled = pooled_estimate(groups);
  EXPECT_NEAR(pooled.value, mean_estimate(all).value, 1e-15);
  EXPECT_EQ(pooled.samples, 40u);
  EXPECT_NEAR(pooled.standard_error, std::hypot(groups[0].standard_error, groups[1].standard_error) / 2.0,
              1e-15);
}

TEST(Jackknife, OfAMeanIsTheMeanEstimate) {
  const std::vector<double> samples = gaussians(12, 2);
  double sum = 0.0;
  for (double sample : samples) sum += sample;
  const Estimate estimate =
      jackknife(12, [&](std::size_t i) { return i == 12 ? sum / 12.0 : (sum - samples[i]) / 11.0; });
  EXPECT_NEAR(estimate.value, mean_estimate(samples).value, 1e-14);
  EXPECT_NEAR(estimate.standard_error, mean_estimate(samples).standard_error, 1e-14);
}

TEST(Jackknife, RemovesTheBiasOfASquaredMean) {
  // mean^2 of n samples is biased by variance / n; the jackknife of a quadratic statistic is unbiased.
  std::vector<double> values;
  for (std::uint64_t trial = 0; trial < 4000; ++trial) {
    const std::vector<double> samples = gaussians(5, 100 + trial);
    double sum = 0.0;
    for (double sample : samples) sum += sample;
    values.push_back(jackknife(5, [&](std::size_t i) {
                       const double mean = i == 5 ? sum / 5.0 : (sum - samples[i]) / 4.0;
                       return mean * mean;
                     }).value);
  }
  const Estimate bias = mean_estimate(values);
  EXPECT_NEAR(bias.value, 0.0, 4.0 * bias.standard_error);
  EXPECT_LT(4.0 * bias.standard_error, 0.2 / 5.0 * 1.0);  // the plain square has bias 1/5
}

TEST(RatioEstimate, OfProportionalPairsIsExact) {
  const std::vector<double> denominators = {1.0, 2.0, 5.0};
  const std::vector<double> numerators = {3.0, 6.0, 15.0};
  const Estimate ratio = ratio_estimate(numerators, denominators);
  EXPECT_NEAR(ratio.value, 3.0, 1e-14);
  EXPECT_NEAR(ratio.standard_error, 0.0, 1e-14);
}

TEST(Autocorrelation, TimeOfAnAutoregressionIsItsClosedForm) {
  for (double phi : {-0.5, 0.0, 0.8, 0.95}) {
    std::vector<double> times;
    for (std::uint64_t trial = 0; trial < 20; ++trial)
      times.push_back(autocorrelation(autoregression(phi, 20000, 10 + trial)).time);
    const Estimate time = mean_estimate(times);
    const double exact = (1.0 + phi) / (1.0 - phi);
    // The truncated sum keeps positive noise: a bias of a few per cent is the price of the positive sequence.
    EXPECT_NEAR(time.value, exact, 4.0 * time.standard_error + 0.06 * exact) << phi;
  }
}

TEST(Autocorrelation, SaysWhenTheSeriesIsTooShort) {
  EXPECT_TRUE(autocorrelation(autoregression(0.8, 5000, 3)).resolved);
  EXPECT_FALSE(autocorrelation(autoregression(0.99, 2000, 3)).resolved);
  EXPECT_FALSE(autocorrelation(std::vector<double>(100, 1.0)).resolved);
  EXPECT_DOUBLE_EQ(autocorrelation(std::vector<double>(100, 1.0)).effective_samples, 1.0);
}

TEST(CorrelatedMeanEstimate, IntervalsCover95Percent) {
  // 600 independent series; a binomial proportion of 0.95 has standard deviation 0.009.
  int covered = 0;
  for (std::uint64_t trial = 0; trial < 600; ++trial) {
    const Estimate mean = correlated_mean_estimate(autoregression(0.7, 2000, 1000 + trial));
    covered += std::abs(mean.value) < 1.96 * mean.standard_error ? 1 : 0;
  }
  EXPECT_GE(covered, 0.93 * 600);
  EXPECT_LE(covered, 0.97 * 600);
}

}  // namespace
}  // namespace rieszflow
