#include "solvers/stationary/rate_function.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "model/mean_field.hpp"

namespace rieszflow::stationary {
namespace {

Observable mean_of(const Grid& grid, const std::function<double(std::span<const double>)>& f) {
  return {.kind = Observable::Kind::Mean, .components = {cell_averages(grid, f)}};
}

/// Cramer transform of the uniform law on [-1,1]: Lambda*(m) = t m - log(sinh t / t) with coth t - 1/t = m.
double cramer_of_uniform(double m) {
  double low = 1e-6, high = 500.0;
  for (int i = 0; i < 200; ++i) {
    const double t = 0.5 * (low + high);
    (1.0 / std::tanh(t) - 1.0 / t < m ? low : high) = t;
  }
  return low * m - (low + std::log(0.5 * (1.0 - std::exp(-2.0 * low)) / low));
}

Model curie_weiss(double coupling) {
  return {.domain = Box{{-1.0}, {1.0}},
          .potentials = {QuadraticPotential{-1.0}},
          .interactions = {QuadraticInteraction{1.0}},
          .inverse_temperature = coupling};
}

double first(std::span<const double> x) { return x[0]; }

TEST(RateFunction, OfIndependentParticlesIsCramers) {
  Model model{.domain = Box{{-1.0}, {1.0}}, .potentials = {}, .interactions = {}};
  const Grid grid = grid_on(model.domain, {400});
  const MeanField field(model, grid, {});
  const Observable mean = mean_of(grid, first);
  const auto minima = minimisers(field, mean, {});
  ASSERT_EQ(minima.size(), 1U);
  for (const double level : {0.2, 0.7}) {
    const RatePoint point = rate(field, mean, level, minima, {});
    ASSERT_EQ(point.status, RunStatus::Completed) << point.message;
    EXPECT_NEAR(point.rate, cramer_of_uniform(level),
                3e-4 * cramer_of_uniform(level));  // O(h^2) of 400 cells
    EXPECT_FALSE(point.constrained);
    EXPECT_NEAR(value(mean, grid, point.density.averages), level, 1e-8);
  }
}

TEST(RateFunction, OfCurieWeissIsCramersMinusTheEnergyAlsoWhereItIsNotConvex) {
  const double coupling = 5.0;
  const Model model = curie_weiss(coupling);
  const Grid grid = grid_on(model.domain, {400});
  const MeanField field(model, grid, {});
  const Observable mean = mean_of(grid, first);
  const auto minima = minimisers(field, mean, {});
  ASSERT_GE(minima.size(), 2U) << "both wells";
  double lowest = 0.0;
  for (double m = 0.001; m < 0.999; m += 0.0005)
    lowest = std::min(lowest, cramer_of_uniform(m) - 0.5 * coupling * m * m);
  const auto exact = [&](double m) { return cramer_of_uniform(m) - 0.5 * coupling * m * m - lowest; };
  const RatePoint barrier = rate_of_event(field, mean, -0.15, 0.15, minima, {});
  ASSERT_EQ(barrier.status, RunStatus::Completed) << barrier.message;
  EXPECT_TRUE(barrier.constrained);
  EXPECT_NEAR(barrier.rate, exact(0.15), 1e-3 * exact(0.15));
  const RatePoint beyond =
      rate_of_event(field, mean, 0.9, std::numeric_limits<double>::infinity(), minima, {});
  EXPECT_NEAR(beyond.rate, exact(0.9), 1e-3 * exact(0.9));
  EXPECT_EQ(rate_of_event(field, mean, 0.5, 0.99, minima, {}).rate, 0.0) << "a minimiser lies inside";
}

TEST(RateFunction, OfTheConfinedLogGasIsThatOfTheGammaLaw) {
  // (beta/2) sum x^2 is Gamma(k N): I = x - k - k log(x/k), x = beta q / 2, k = (1 + beta/2)/2.
  const double beta = 3.0, q = 1.2, k = 0.5 * (1.0 + 0.5 * beta), x = 0.5 * beta * q;
  Model model{.domain = Box{{-6.0}, {6.0}},
              .potentials = {QuadraticPotential{1.0}},
              .interactions = {LogarithmicInteraction{}},
              .inverse_temperature = beta};
  const Grid grid = grid_on(model.domain, {600});
  const MeanField field(model, grid, {});
  const Observable square = mean_of(grid, [](std::span<const double> p) { return p[0] * p[0]; });
  const auto minima = minimisers(field, square, {});
  const double exact = x - k - k * std::log(x / k);
  const RatePoint point = rate(field, square, q, minima, {});
  ASSERT_EQ(point.status, RunStatus::Completed);
  EXPECT_NEAR(point.rate, exact, 2e-3 * exact);
  EXPECT_NEAR(point.tilt, 0.5 * beta * (1.0 - k / x), 2e-3);  // dI/dq
}

TEST(RateFunction, OfADistanceIsTheLowestOverAllDirections) {
  // Independent uniform angles, components cos and sin of equal weight: I(delta) = Cramer of cos at delta,
  // any direction.
  Model model{.domain = Torus{{-std::numbers::pi}, {std::numbers::pi}}, .potentials = {}, .interactions = {}};
  const Grid grid = grid_on(model.domain, {300});
  const MeanField field(model, grid, {});
  const Observable cosine = mean_of(grid, [](std::span<const double> p) { return std::cos(p[0]); });
  Observable distance{
      .kind = Observable::Kind::Distance,
      .components = {cosine.components[0],
                     cell_averages(grid, [](std::span<const double> p) { return std::sin(p[0]); })},
      .target = {0.0, 0.0},
      .weights = {1.0, 1.0}};
  const auto minima = minimisers(field, cosine, {});
  const RatePoint line = rate(field, cosine, 0.4, minima, {}), ring = rate(field, distance, 0.4, minima, {});
  ASSERT_EQ(line.status, RunStatus::Completed);
  ASSERT_EQ(ring.status, RunStatus::Completed) << ring.message;
  EXPECT_NEAR(ring.rate, line.rate, 1e-6);
  distance.weights = {1.0, 4.0};  // now the sine is the cheap direction: 0.2 away in it
  const RatePoint ellipse = rate(field, distance, 0.4, minima, {});
  EXPECT_NEAR(ellipse.rate, rate(field, cosine, 0.2, minima, {}).rate, 1e-6);
}

TEST(RateFunction, SaysWhenALevelCannotBeReached) {
  const Model model = curie_weiss(1.0);
  const Grid grid = grid_on(model.domain, {64});
  const MeanField field(model, grid, {});
  const Observable mean = mean_of(grid, first);
  const RatePoint point = rate(field, mean, 1.5, minimisers(field, mean, {}), {});
  EXPECT_EQ(point.status, RunStatus::NotConverged);
  EXPECT_TRUE(std::isnan(point.rate));
  EXPECT_FALSE(point.message.empty());
}

TEST(LimitCovariance, OfTheLogGasOnAnIntervalHasTheClosedForm) {
  // N Var(mean x) -> (2 + k) / (2 (1 + k)(3 + 2k)), k = beta/2.
  const double beta = 3.0, k = 0.5 * beta;
  Model model{.domain = Box{{-1.0}, {1.0}},
              .potentials = {},
              .interactions = {LogarithmicInteraction{}},
              .inverse_temperature = beta};
  const Grid grid = grid_on(model.domain, {300});
  const MeanField field(model, grid, {});
  const Observable mean = mean_of(grid, first);
  const auto minima = minimisers(field, mean, {});
  const double exact = (2.0 + k) / (2.0 * (1.0 + k) * (3.0 + 2.0 * k));
  EXPECT_NEAR(limit_covariance(field, minima.front().density, mean.components[0], mean.components[0]), exact,
              1e-3 * exact);
}

TEST(PartitionCorrection, OfDysonsCircleIsLogGammaPlusEulersConstant) {
  // c0 = log Gamma(1 + k) + Euler k, k = beta/2; the truncated sum over modes has an error beta^2 / (8 n) or
  // so.
  const double beta = 2.5, k = 0.5 * beta;
  Model model{.domain = Torus{{-std::numbers::pi}, {std::numbers::pi}},
              .potentials = {},
              .interactions = {LogarithmicInteraction{}},
              .inverse_temperature = beta};
  const double exact = std::lgamma(1.0 + k) + 0.57721566490153286 * k;
  double error[2];
  for (int level = 0; level < 2; ++level) {
    const Grid grid = grid_on(model.domain, {level == 0 ? 150U : 300U});
    const MeanField field(model, grid, {});
    const auto minima =
        minimisers(field, mean_of(grid, [](std::span<const double> p) { return std::cos(p[0]); }), {});
    error[level] = partition_correction(field, minima.front().density) - exact;
  }
  EXPECT_LT(std::abs(error[1]), 0.02 * exact);
  EXPECT_NEAR(error[0] / error[1], 2.0, 0.2);  // first order in the cell width
}

TEST(PartitionCorrection, OfCurieWeissIsThatOfOneMode) {
  // c0 = -log(1 - beta J / 3) / 2 below the transition. The pair form of H_N keeps no diagonal: W(0) = 0.
  const Model model = curie_weiss(1.5);
  const Grid grid = grid_on(model.domain, {200});
  const MeanField field(model, grid, {});
  const auto minima = minimisers(field, mean_of(grid, first), {});
  EXPECT_NEAR(partition_correction(field, minima.front().density), -0.5 * std::log(1.0 - 0.5), 1e-3);
}

}  // namespace
}  // namespace rieszflow::stationary
