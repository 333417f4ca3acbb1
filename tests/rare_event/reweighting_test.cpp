#include "solvers/rare_event/reweighting.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/noise.hpp"

namespace rieszflow::rare_event {
namespace {

/// Independent samples of N(mean, 1).
std::vector<double> normals(double mean, std::size_t count, std::uint64_t stream) {
  std::vector<double> values(count);
  NoiseStream(17, NoisePurpose::ReferenceSample).gaussians(stream, 0, 0, values);
  for (double& value : values) value += mean;
  return values;
}

TEST(Bennett, RatioOfTwoShiftedNormalsIsThatOfTheirIntegrals) {
  // u_a = x^2/2, u_b = (x-1)^2/2 + 0.7: f_b - f_a = 0.7.
  std::vector<double> forward, backward;
  const auto change = [](double x) { return 0.5 * (x - 1.0) * (x - 1.0) + 0.7 - 0.5 * x * x; };
  for (const double x : normals(0.0, 20000, 0)) forward.push_back(change(x));
  for (const double x : normals(1.0, 30000, 1)) backward.push_back(-change(x));
  EXPECT_NEAR(bennett_ratio(forward, backward), 0.7, 0.03);  // four standard errors of 25000 pairs
  EXPECT_NEAR(bennett_ratio(forward, backward), -bennett_ratio(backward, forward), 1e-10);
}

TEST(Reweighting, TailOfANormalFromTiltedSamples) {
  // Tilt t of N(0,1): N(t,1), f = -t^2/2. P(x > 6) = 9.87e-10.
  std::vector<BiasedSamples> windows;
  for (int k = 0; k <= 4; ++k) {
    const double tilt = 1.6 * k;
    windows.push_back(
        {.bias = {.tilt = tilt}, .values = normals(tilt, 20000, static_cast<std::uint64_t>(10 + k))});
  }
  const Reweighting weights = reweight(windows, 1.0);
  ASSERT_EQ(weights.status, RunStatus::Completed);
  EXPECT_LT(weights.residual, 1e-9);
  for (int k = 0; k <= 4; ++k)
    EXPECT_NEAR(weights.free_energies[static_cast<std::size_t>(k)], -0.5 * 1.6 * k * 1.6 * k, 0.06) << k;
  const double exact = std::log(0.5 * std::erfc(6.0 / std::sqrt(2.0)));
  EXPECT_NEAR(log_probability(weights, windows, [](double x) { return x > 6.0; }), exact, 0.07);
  EXPECT_NEAR(log_probability(weights, windows, [](double) { return true; }), 0.0, 1e-12);
  for (std::size_t k = 0; k < 4; ++k) {  // integral p_k p_(k+1) / sum_l p_l
    double exact_overlap = 0.0;
    const auto p = [](double x, double t) {
      return std::exp(-0.5 * (x - t) * (x - t)) / std::sqrt(2.0 * 3.14159265358979);
    };
    for (double x = -8.0; x < 15.0; x += 0.01) {
      double all = 0.0;
      for (int l = 0; l <= 4; ++l) all += p(x, 1.6 * l);
      if (all > 0.0) exact_overlap += 0.01 * p(x, 1.6 * k) * p(x, 1.6 * (k + 1.0)) / all;
    }
    EXPECT_NEAR(weights.overlaps[k], exact_overlap, 0.01) << k;
  }
  EXPECT_GT(effective_sample_size(weights, windows, [](double x) { return x > 6.0; }), 1000.0);
}

TEST(Reweighting, HarmonicWindowsGiveTheNormaliser) {
  // exp(-k (x-c)^2/2) on N(0,1): f = k c^2 / (2 (1+k)) + log(1+k)/2, without a window of bias zero.
  const double k = 3.0;
  std::vector<BiasedSamples> windows;
  for (int w = -3; w <= 3; ++w) {
    const double c = 0.9 * w;
    std::vector<double> values = normals(0.0, 20000, static_cast<std::uint64_t>(40 + w));
    for (double& value : values) value = k * c / (1.0 + k) + value / std::sqrt(1.0 + k);
    windows.push_back({.bias = {.stiffness = k, .center = c}, .values = values});
  }
  const Reweighting weights = reweight(windows, 1.0);
  ASSERT_EQ(weights.status, RunStatus::Completed);
  const auto exact = [&](double c) { return 0.5 * k * c * c / (1.0 + k); };
  EXPECT_NEAR(weights.free_energies[3] - weights.free_energies[0], exact(0.0) - exact(2.7), 0.05);
  EXPECT_NEAR(log_probability(weights, windows, [](double x) { return x > 1.5; }),
              std::log(0.5 * std::erfc(1.5 / std::sqrt(2.0))), 0.05);
}

TEST(Reweighting, RefusesWindowsThatDoNotOverlap) {
  const std::vector<BiasedSamples> windows = {{.bias = {}, .values = normals(0.0, 1000, 1)},
                                              {.bias = {.tilt = 80.0}, .values = normals(80.0, 1000, 2)}};
  const Reweighting weights = reweight(windows, 1.0);
  if (weights.status == RunStatus::Completed) {
    EXPECT_LT(weights.overlaps[0], 1e-9) << "a solve that converged without overlap must say so";
  } else {
    EXPECT_EQ(weights.status, RunStatus::NotConverged);
    EXPECT_FALSE(weights.message.empty());
    EXPECT_TRUE(weights.log_weights.empty());
  }
}

TEST(Reweighting, RefusesSamplesThatAreNotNumbers) {
  const std::vector<BiasedSamples> windows = {{.bias = {.tilt = 1.0}, .values = {0.1, std::nan("")}}};
  EXPECT_EQ(reweight(windows, 1.0).status, RunStatus::NotFinite);
}

TEST(LogSumExp, SurvivesRangesThatDoublesDoNot) {
  EXPECT_DOUBLE_EQ(log_sum_exp(std::vector{-2000.0, -2000.0}), -2000.0 + std::log(2.0));
  EXPECT_EQ(log_sum_exp(std::vector<double>{}), -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace rieszflow::rare_event
