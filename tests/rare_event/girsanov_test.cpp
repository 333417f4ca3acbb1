#include "solvers/rare_event/girsanov.hpp"

#include <gtest/gtest.h>

#include <boost/math/distributions/non_central_chi_squared.hpp>
#include <cmath>
#include <vector>

#include "models.hpp"

namespace rieszflow::rare_event {
namespace {

TEST(PathProbability, OfTheMeanOfAnOrnsteinUhlenbeckFlockIsGaussian) {
  // V = k x^2/2, W = J r^2/2, all from zero: the mean is a single Ornstein-Uhlenbeck chain whatever J; its
  // Euler law is N(0, v/N), v = (2h/beta) sum_{s<n} (1 - k h)^(2s).
  const double k = 1.2, beta = 2.0, h = 0.02, level = 1.1;
  const std::size_t count = 20, steps = 50;
  Model model{.domain = WholeSpace{1},
              .potentials = {QuadraticPotential{k}},
              .interactions = {QuadraticInteraction{1.5}},
              .inverse_temperature = beta};
  const SmoothStatistic mean{test::coordinate_mean(),
                             [](std::span<const double>, std::span<double> out) { out[0] = 1.0; }};
  const std::vector<double> start(count, 0.0);
  PathOptions options{
      .end = h * steps, .timestep = h, .paths = 500, .learning_paths = 200, .seed = 3, .threads = 1};
  const PathProbability measured = path_probability(model, start, mean, {.lower = level}, options);
  ASSERT_EQ(measured.status, RunStatus::Completed) << measured.message;
  double variance = 0.0;
  for (std::size_t s = 0; s < steps; ++s)
    variance += 2.0 * h / beta * std::pow(1.0 - k * h, 2.0 * static_cast<double>(s));
  const double exact = std::log(0.5 * std::erfc(level * std::sqrt(count / (2.0 * variance))));
  EXPECT_LT(exact, -20.0);
  EXPECT_NEAR(measured.log_probability, exact, 4.0 * measured.standard_error);
  EXPECT_LT(measured.standard_error, 0.15);
  EXPECT_LT(measured.relative_variance, 40.0) << "direct sampling would have e^" << -exact;
  // The instanton pulls harder towards the end: a(t) ~ exp(-k (T - t)).
  EXPECT_GT(measured.control.back(), 2.0 * measured.control.front());
  options.threads = 2;
  EXPECT_EQ(path_probability(model, start, mean, {.lower = level}, options).replicate_values,
            measured.replicate_values);
}

TEST(PathProbability, OfTheSizeOfALogGasIsANoncentralChiSquare) {
  // R = sum |x|^2 of W = -log, V = |x|^2/2 in the plane is a squared radial Ornstein-Uhlenbeck process: beta
  // R_t / (1 - e^(-2t)) is a noncentral chi square of 2N + beta (N-1)/2 degrees of freedom and noncentrality
  // beta R_0 e^(-2t) / (1 - e^(-2t)).
  const double beta = 4.0, end = 0.3, level = 0.95;
  const std::size_t count = 8;
  Model model{.domain = WholeSpace{2},
              .potentials = {QuadraticPotential{1.0}},
              .interactions = {LogarithmicInteraction{}},
              .inverse_temperature = beta};
  const SmoothStatistic size{
      mean_of("|x|^2", [](std::span<const double> x) { return x[0] * x[0] + x[1] * x[1]; }),
      [](std::span<const double> x, std::span<double> out) { out[0] = 2.0 * x[0], out[1] = 2.0 * x[1]; }};
  std::vector<double> start;
  for (std::size_t i = 0; i < count; ++i) {
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(i) / count;
    start.insert(start.end(), {0.5 * std::cos(angle), 0.5 * std::sin(angle)});
  }
  const PathOptions options{
      .end = end, .timestep = 0.0025, .paths = 500, .learning_paths = 200, .seed = 5, .threads = 1};
  const PathProbability measured = path_probability(model, start, size, {.lower = level}, options);
  ASSERT_EQ(measured.status, RunStatus::Completed) << measured.message;
  const double decay = std::exp(-2.0 * end), scale = beta / (1.0 - decay);
  const boost::math::non_central_chi_squared law(2.0 * count + 0.5 * beta * (count - 1.0),
                                                 scale * decay * 0.25 * count);
  const double exact = std::log(boost::math::cdf(boost::math::complement(law, scale * level * count)));
  EXPECT_LT(exact, -4.0);
  EXPECT_LT(measured.standard_error, 0.1);
  // The Euler chain is too wide by O(h): log P is off by about N I'(q) O(h), here below 0.15.
  EXPECT_NEAR(measured.log_probability, exact, 4.0 * measured.standard_error + 0.15);
}

}  // namespace
}  // namespace rieszflow::rare_event
