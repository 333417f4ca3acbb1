#include "solvers/rare_event/tail_probability.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "analysis/exact.hpp"
#include "models.hpp"
#include "solvers/rare_event/partition_function.hpp"

namespace rieszflow::rare_event {
namespace {

const Options quick{.replicates = 8, .sweeps = 1500, .seed = 4, .threads = 2};

/// 4 standard errors of 8 replicates (Student's t: one in 200), and 10 % of the probability, fixed seed.
void expect_log_probability(const TailProbability& measured, double exact) {
  ASSERT_EQ(measured.status, RunStatus::Completed) << measured.message;
  EXPECT_NEAR(measured.log_probability, exact, 4.0 * measured.standard_error);
  EXPECT_LT(measured.standard_error, 0.15);
  EXPECT_GT(measured.least_overlap, 0.03);
  EXPECT_EQ(measured.replicate_values.size(), 8U);
}

TEST(TailProbability, OfAQuadraticModelIsTheGaussianTailWhateverTheCoupling) {
  // H = (k/2N) sum x^2 + (J/4N^2) sum (x_i - x_j)^2: the mean is N(0, 1/(beta k N)) for every J.
  const double beta = 2.0, k = 0.8, delta = 1.1;
  const std::size_t count = 30;
  Model model{.domain = WholeSpace{1},
              .potentials = {QuadraticPotential{k}},
              .interactions = {QuadraticInteraction{1.5}},
              .inverse_temperature = beta};
  const TailProbability measured =
      tail_probability(model, count, test::coordinate_mean(), {.lower = delta}, quick);
  EXPECT_EQ(measured.method, Method::Tilt);
  expect_log_probability(measured, std::log(0.5 * std::erfc(delta * std::sqrt(0.5 * beta * k * count))));
}

TEST(TailProbability, OfCurieWeissBelowItsTransition) {
  const TailProbability measured =
      tail_probability(test::curie_weiss(2.0), 30, test::coordinate_mean(), {.lower = 0.65}, quick);
  EXPECT_EQ(measured.method, Method::Tilt);
  expect_log_probability(measured, test::log_probability_of_curie_weiss(2.0, 30, 0.65, 1.0));
}

TEST(TailProbability, OfTheBarrierBetweenTwoWellsCountsBothWells) {
  // Above the transition a chain stays in one well; an answer from one well is wrong by a factor of two.
  const TailProbability measured = tail_probability(test::curie_weiss(5.0), 40, test::coordinate_mean(),
                                                    {.lower = -0.15, .upper = 0.15}, quick);
  EXPECT_EQ(measured.method, Method::Umbrella);
  expect_log_probability(measured, test::log_probability_of_curie_weiss(5.0, 40, -0.15, 0.15));
}

TEST(TailProbability, OfALearnedKernelEntryWithLowRankInteraction) {
  // V = -(1 + cos 2w)/2, W = (1 + cos 2(w - w'))/2: H = |1 - z|^2/4 up to a constant, z = mean exp(2 i w).
  // The event Re z < -0.1 seen two ways: a tilt, and umbrellas.
  const auto g = [](const char* text) {
    return std::make_shared<const ExpressionFunction>(text, std::vector<std::string>{"x"});
  };
  const double half = 0.5 * std::numbers::pi;
  Model model{.domain = Torus{{-half}, {half}},
              .potentials = {CosinePotential{-0.5, 2.0}},
              .interactions = {LowRankInteraction{0.5, {g("cos(2*x)"), g("sin(2*x)")}}},
              .inverse_temperature = 2.5};
  const Statistic entry = mean_of("Re z", [](std::span<const double> x) { return std::cos(2.0 * x[0]); });
  const TailProbability tilted = tail_probability(model, 16, entry, {.upper = -0.1}, quick, Method::Tilt);
  const TailProbability umbrella =
      tail_probability(model, 16, entry, {.upper = -0.1}, quick, Method::Umbrella);
  ASSERT_EQ(tilted.status, RunStatus::Completed);
  ASSERT_EQ(umbrella.status, RunStatus::Completed) << umbrella.message;
  EXPECT_LT(tilted.log_probability, -5.0);
  EXPECT_NEAR(tilted.log_probability, umbrella.log_probability,
              4.0 * std::hypot(tilted.standard_error, umbrella.standard_error));
}

TEST(TailProbability, OfAllParticlesInsideASmallerIntervalIsAPowerOfItsSize) {
  // Scaling: Z_N(rD) = r^(dN + beta (N-1)/2) Z_N(D) for W = -log.
  const double beta = 1.4, r = 0.6;
  const std::size_t count = 10;
  const Statistic largest = largest_of("max |x|", [](std::span<const double> x) { return std::abs(x[0]); });
  const TailProbability measured =
      tail_probability(test::log_gas(beta), count, largest, {.upper = r},
                       {.replicates = 8, .walkers = 300, .seed = 2, .threads = 2}, Method::Splitting);
  EXPECT_EQ(measured.method, Method::Splitting);
  const double exact = (count + 0.5 * beta * (count - 1.0)) * std::log(r);
  expect_log_probability(measured, exact);
  // The same as a linear event: the fraction outside is zero.
  const TailProbability tilted = tail_probability(test::log_gas(beta), count, largest, {.upper = r}, quick);
  EXPECT_EQ(tilted.method, Method::Tilt);
  expect_log_probability(tilted, exact);
}

TEST(TailProbability, OfACommonEventIsCountedDirectly) {
  const TailProbability measured =
      tail_probability(test::curie_weiss(1.0), 12, test::coordinate_mean(), {.lower = 0.1}, quick);
  EXPECT_EQ(measured.method, Method::Direct);
  expect_log_probability(measured, test::log_probability_of_curie_weiss(1.0, 12, 0.1, 1.0));
}

TEST(TailProbability, AddsReplicatesUntilItsErrorMeetsTheTarget) {
  Options options{.replicates = 8, .target_error = 0.03, .sweeps = 300, .seed = 4, .threads = 2};
  const auto measure = [&] {
    return tail_probability(test::log_gas(2.0), 20, test::coordinate_mean(), {.lower = 0.4}, options);
  };
  const TailProbability measured = measure();
  ASSERT_EQ(measured.status, RunStatus::Completed) << measured.message;
  EXPECT_LE(measured.standard_error, 0.03);
  EXPECT_GT(measured.replicate_values.size(), 8U);
  // Those that were added are those that a larger number would have had from the start.
  options.replicates = measured.replicate_values.size();
  options.target_error = 0.0;
  EXPECT_EQ(measure().replicate_values, measured.replicate_values);
  options = {.replicates = 4, .target_error = 1e-6, .most_replicates = 12, .sweeps = 100, .seed = 4};
  EXPECT_EQ(measure().replicate_values.size(), 12U);
}

TEST(TailProbability, HasNoBiasOfOneReplicateHoweverShortItIs) {
  // A replicate of 100 sweeps has log P to about a half: the mean of such P is too large by a tenth.
  const double beta = 2.0, k = 0.8, delta = 1.1;
  const std::size_t count = 16;
  Model model{.domain = WholeSpace{1},
              .potentials = {QuadraticPotential{k}},
              .interactions = {QuadraticInteraction{1.5}},
              .inverse_temperature = beta};
  const TailProbability measured =
      tail_probability(model, count, test::coordinate_mean(), {.lower = delta},
                       {.replicates = 400, .sweeps = 100, .seed = 3, .threads = 2}, Method::Tilt);
  const double exact = std::log(0.5 * std::erfc(delta * std::sqrt(0.5 * beta * k * count)));
  ASSERT_EQ(measured.status, RunStatus::Completed) << measured.message;
  EXPECT_LT(measured.standard_error, 0.08);
  EXPECT_NEAR(measured.log_probability, exact, 3.0 * measured.standard_error);
  double mean_of_probabilities = 0.0;
  for (const double value : measured.replicate_values)
    mean_of_probabilities += std::exp(value - exact) / 400.0;
  EXPECT_GT(std::log(mean_of_probabilities), measured.log_probability - exact + 0.03);
}

TEST(TailProbability, OfABoundedEventInAWideLawBridgesBothSides) {
  // N = 10: the two wells are not apart, and the mean of both lies inside the event, which is rare still.
  const TailProbability measured = tail_probability(test::curie_weiss(4.5), 10, test::coordinate_mean(),
                                                    {.lower = -0.1, .upper = 0.1}, quick);
  EXPECT_EQ(measured.method, Method::Umbrella);
  expect_log_probability(measured, test::log_probability_of_curie_weiss(4.5, 10, -0.1, 0.1));
}

TEST(TailProbability, OfAStatisticThatIsInfiniteAtAWall) {
  // exp(N L) is a product of independent Beta variables, L = (1/N) sum log((1 + x)/2) (Selberg). The tilts
  // put (1 + x)^t at the wall, -1 < t < 0: no step fits there.
  const Statistic g = mean_of("log", [](std::span<const double> x) { return std::log(0.5 * (1.0 + x[0])); });
  const TailProbability measured = tail_probability(test::log_gas(2.0), 20, g, {.upper = -1.75}, quick);
  EXPECT_EQ(measured.method, Method::Tilt);
  expect_log_probability(measured,
                         exact::log_gas_on_interval_tail(20, 2.0, -1.75, exact::Side::Below).log_probability);
  for (const Window& window : measured.windows) EXPECT_GT(window.acceptance, 0.5);
}

TEST(TailProbability, IsBitwiseTheSameForEveryNumberOfThreads) {
  Options options{.replicates = 3, .sweeps = 300, .seed = 8, .threads = 1};
  const auto values = [&](Method method) {
    return tail_probability(test::log_gas(2.0), 8, test::coordinate_mean(), {.lower = 0.4}, options, method)
        .replicate_values;
  };
  const std::vector<double> one = values(Method::Tilt);
  options.threads = 2;
  EXPECT_EQ(one, values(Method::Tilt));
  ASSERT_EQ(one.size(), 3U);
  EXPECT_NE(one[0], one[1]);
}

TEST(TailProbability, SaysWhenNothingReachesTheEvent) {
  const TailProbability outside = tail_probability(test::curie_weiss(1.0), 6, test::coordinate_mean(),
                                                   {.lower = 1.5}, quick, Method::Tilt);
  EXPECT_EQ(outside.status, RunStatus::NotConverged);
  EXPECT_TRUE(std::isnan(outside.log_probability));
  EXPECT_FALSE(outside.message.empty());
  const TailProbability unseen = tail_probability(test::curie_weiss(1.0), 40, test::coordinate_mean(),
                                                  {.lower = 0.8}, quick, Method::Direct);
  EXPECT_EQ(unseen.status, RunStatus::NotConverged);
}

TEST(TailProbability, StopsWhenInterrupted) {
  Options options = quick;
  options.interrupted = [] { return true; };
  EXPECT_EQ(
      tail_probability(test::curie_weiss(1.0), 12, test::coordinate_mean(), {.lower = 0.1}, options).status,
      RunStatus::Interrupted);
}

TEST(PartitionFunction, OfTheLogGasIsSelbergsIntegralByBothMethods) {
  for (const double beta : {1.5, 6.0}) {
    const double exact = test::log_partition_of_log_gas(beta, 12);
    for (const PartitionMethod method : {PartitionMethod::Reweighting, PartitionMethod::Thermodynamic}) {
      const PartitionFunction z = partition_function(
          test::log_gas(beta), 12, {.method = method, .sweeps = 1500, .seed = 5, .threads = 2});
      ASSERT_EQ(z.status, RunStatus::Completed) << z.message;
      EXPECT_NEAR(z.log_partition, exact, 4.0 * z.standard_error) << beta;
      EXPECT_LT(z.standard_error / 12.0, 2e-3);
    }
  }
}

TEST(PartitionFunction, OfOneParticleIsAnIntegral) {
  Model model{.domain = WholeSpace{2},
              .potentials = {QuadraticPotential{0.7}},
              .interactions = {},
              .inverse_temperature = 3.0};
  EXPECT_NEAR(log_one_particle_integral(model), std::log(2.0 * std::numbers::pi / 2.1), 1e-11);
  model.domain = Ball{{0.0, 0.0, 0.0}, 1.5};
  const double a = 1.05, r = 1.5;  // integral of exp(-a r^2) over a ball in three dimensions
  const double exact = 4.0 * std::numbers::pi *
                       (std::sqrt(std::numbers::pi) * std::erf(std::sqrt(a) * r) / (4.0 * std::pow(a, 1.5)) -
                        r * std::exp(-a * r * r) / (2.0 * a));
  EXPECT_NEAR(log_one_particle_integral(model), std::log(exact), 1e-11);
  model.domain = WholeSpace{1};
  model.potentials = {QuadraticPotential{-1.0}};
  EXPECT_TRUE(std::isnan(log_one_particle_integral(model)));
}

}  // namespace
}  // namespace rieszflow::rare_event
