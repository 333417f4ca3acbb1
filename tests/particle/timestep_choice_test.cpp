#include "solvers/particle/timestep_choice.hpp"

#include <gtest/gtest.h>

#include "helpers.hpp"
#include "potentials/expression.hpp"

namespace rieszflow::particle {
namespace {

Model log_gas() { return {Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, 2.0}; }
constexpr double log_gas_second_moment = 0.4009009009;  // Selberg's integral, N = 10

const Statistic second_moment = particle_mean([](double x) { return x * x; });

TEST(TimestepChoice, MeetsItsAccuracyForTheLogGasWhoseParticlesMeet) {
  const double accuracy = 0.005;
  Options options{.scheme = Scheme::Reflected, .seed = 4};
  const auto start = uniform_ensemble(log_gas().domain, 800, 10);
  const TimestepChoice choice = choose_timestep(log_gas(), start, options, 0.5, 10.0, accuracy);
  ASSERT_TRUE(choice.reached);
  EXPECT_LE(choice.measured, accuracy);
  options.timestep = choice.timestep;
  const Mean mean = stationary_mean(log_gas(), uniform_ensemble(log_gas().domain, 300, 10), options, 2.0, 8.0,
                                    0.5, second_moment);
  EXPECT_NEAR(mean.value, log_gas_second_moment,
              accuracy * log_gas_second_moment + 3.0 * mean.standard_error);
}

TEST(TimestepChoice, HalvesTheStepOfAFirstOrderSchemeForHalfTheError) {
  // Euler in a well of stiffness 4: E_h x^2 = 1 / (4 beta (1 - 2 h)) exactly, a bias of 2 h.
  const Model well{WholeSpace{1}, {QuadraticPotential{.stiffness = 4.0}}, {}, 1.0};
  const auto start = uniform_ensemble(Box{{-1.0}, {1.0}}, 8, 1024);
  const Options options{.scheme = Scheme::Reflected, .seed = 4};
  for (const double accuracy : {0.1, 0.025}) {
    const TimestepChoice choice = choose_timestep(well, start, options, 0.5, 3.0, accuracy);
    ASSERT_TRUE(choice.reached);
    const double bias = 1.0 / (1.0 - 2.0 * choice.timestep) - 1.0;
    EXPECT_LE(bias, accuracy);
    EXPECT_GE(bias, accuracy / 5.0) << "a step this small is a waste";
  }
}

TEST(LongestStableTimestep, IsWhereQuadraticForcesThrowParticlesApart) {
  const QuadraticPotential well{.stiffness = 2.0};
  const auto spread = [&](const Model& model, double timestep) {
    State state{.ensemble = uniform_ensemble(Box{{-1.0}, {1.0}}, 4, 8), .clock = {}};
    run(model, state, {.timestep = timestep, .seed = 1}, Schedule::at({0.0, 200.0 * timestep}), {}, {});
    double largest = 0.0;
    for (const double x : state.ensemble.positions) largest = std::max(largest, std::abs(x));
    return largest;
  };
  const Model models[] = {{WholeSpace{1}, {well}, {}, 1.0},
                          {WholeSpace{1}, {well, well}, {}, 1.0},
                          {WholeSpace{1}, {well}, {QuadraticInteraction{.strength = 3.0}}, 1.0},
                          {WholeSpace{1}, {well}, {QuadraticInteraction{.strength = -1.0}}, 1.0},
                          {WholeSpace{1}, {well}, {GaussianInteraction{}}, 1.0}};
  const double stiffness[] = {2.0, 4.0, 5.0, 2.0, 2.0};
  for (std::size_t k = 0; k < std::size(models); ++k) {
    const double longest = longest_stable_timestep(models[k], Scheme::Projected);
    EXPECT_EQ(longest, 2.0 / stiffness[k]) << k;
    EXPECT_LT(spread(models[k], 0.9 * longest), 100.0) << k;
    EXPECT_GT(spread(models[k], 1.1 * longest), 1e6) << k;
  }
  EXPECT_EQ(longest_stable_timestep(models[0], Scheme::Mala), std::numeric_limits<double>::infinity());
  const Model wells{WholeSpace{1}, {well, DoubleWellPotential{}}, {}, 1.0};
  EXPECT_EQ(longest_stable_timestep(wells, Scheme::Reflected), std::numeric_limits<double>::infinity());
}

TEST(TimestepChoice, IsAFunctionOfItsArgumentsForAnyNumberOfThreads) {
  const auto start = uniform_ensemble(log_gas().domain, 8, 10);
  for (const Scheme scheme : {Scheme::Reflected, Scheme::Mala}) {
    Options one{.scheme = scheme, .seed = 4}, two = one;
    two.summation.threads = 2;
    EXPECT_EQ(choose_timestep(log_gas(), start, one, 0.1, 1.0, 0.05).timestep,
              choose_timestep(log_gas(), start, two, 0.1, 1.0, 0.05).timestep);
  }
}

TEST(TimestepChoice, MalaTakesTheStepOfItsTargetAcceptanceAndKeepsTheExactLaw) {
  // exp(-8 x^2) on the line: E x^2 = 1/16.
  const Model well{WholeSpace{1}, {QuadraticPotential{.stiffness = 8.0}}, {}, 2.0};
  Options options{.scheme = Scheme::Mala, .seed = 4};
  const auto start = uniform_ensemble(Box{{-0.5}, {0.5}}, 200, 10);
  const TimestepChoice choice = choose_timestep(well, start, options, 5.0, 10.0, 0.005);
  ASSERT_TRUE(choice.reached);
  EXPECT_NEAR(choice.measured, mala_acceptance, 0.02);
  options.timestep = choice.timestep;
  const double spacing = 4.0 * choice.timestep;
  const Mean mean =
      stationary_mean(well, start, options, 10.0 * spacing, 60.0 * spacing, spacing, second_moment);
  EXPECT_NEAR(mean.value, 1.0 / 16.0, 4.0 * mean.standard_error);
}

TEST(TimestepChoice, MalaStepsNoFurtherThanDiffusionMixesTheDomain) {
  const Options options{.scheme = Scheme::Mala, .seed = 4};
  const Model free{Box{{-1.0}, {1.0}}, {}, {}, 2.0};  // every move is accepted
  const auto start = uniform_ensemble(free.domain, 8, 10);
  const TimestepChoice choice = choose_timestep(free, start, options, 50.0, 100.0, 0.005);
  EXPECT_NEAR(choice.timestep, 2.0 * std::pow(2.0 / M_PI, 2), 1e-3);
}

TEST(TimestepChoice, WorkIsBoundedHoweverSingularTheModel) {
  // A first step of 0.1 would join all thousand particles into one cluster of close pairs.
  const auto start = uniform_ensemble(Box{{-1.0}, {1.0}}, 8, 1000);
  const Model gas{Box{{-1.0}, {1.0}}, {}, {RieszInteraction{.exponent = 0.9}}, 2.0};
  for (const Scheme scheme : {Scheme::Reflected, Scheme::Mala}) {
    const TimestepChoice choice = choose_timestep(gas, start, {.scheme = scheme, .seed = 4}, 0.1, 2.0, 0.005);
    EXPECT_TRUE(choice.reached);
    EXPECT_GT(choice.timestep, 0.0);
    EXPECT_LE(choice.seconds, 1.02 * most_pilot_seconds);
  }
}

TEST(TimestepChoice, FollowsFromTheWeakOrderWhenWorkRunsOut) {
  // A dear interaction that does nothing beside the well of stiffness 4, whose bias is 2 h exactly.
  const Model well{
      WholeSpace{1},
      {QuadraticPotential{.stiffness = 4.0}},
      {ExpressionInteraction{std::make_shared<ExpressionFunction>("0 * r^2", std::vector<std::string>{"r"})}},
      1.0};
  const auto start = uniform_ensemble(Box{{-1.0}, {1.0}}, 8, 300);
  const TimestepChoice choice =
      choose_timestep(well, start, {.scheme = Scheme::Reflected, .seed = 4}, 0.5, 3.0, 0.002);
  ASSERT_TRUE(choice.reached);
  ASSERT_TRUE(choice.extrapolated);
  EXPECT_LE(choice.seconds, 1.02 * most_pilot_seconds);
  const double bias = 1.0 / (1.0 - 2.0 * choice.timestep) - 1.0;
  EXPECT_LE(bias, 0.002);
  EXPECT_GE(bias, 0.002 / 10.0);
}

TEST(TimestepChoice, SaysSoWhenNoStepIsSmallEnough) {
  // A force that carries every step out of the numbers.
  const Model model{WholeSpace{1}, {PolynomialPotential{{0.0, 0.0, 0.0, 0.0, -1e300}}}, {}, 1.0};
  const auto start = uniform_ensemble(Box{{-1.0}, {1.0}}, 8, 16);
  const Options options{.scheme = Scheme::Reflected, .seed = 4};
  EXPECT_FALSE(choose_timestep(model, start, options, 1e-3, 1.0, 0.01).reached);
}

/// Batches of two under quadratic forces: with V = kappa |x|^2/2, W = J |x - y|^2/2 and p = 2 the second
/// moments of the scheme obey a linear recursion, whose fixed point is the exact biased law.
TEST(RandomBatch, HasTheExactBiasOfItsOwnRecursion) {
  const std::size_t n = 8;
  const double kappa = 1.0, J = 2.0, beta = 1.0, count = static_cast<double>(n);
  const Model model{WholeSpace{1}, {QuadraticPotential{.stiffness = kappa}}, {QuadraticInteraction{J}}, beta};
  const auto measured = [&](double h) {
    const Options options{.scheme = Scheme::Reflected,
                          .timestep = h,
                          .seed = 8,
                          .summation = {.method = PairSum::Method::RandomBatch, .batch_size = 2}};
    return stationary_mean(model, uniform_ensemble(Box{{-1.0}, {1.0}}, 1000, n), options, 4.0, 24.0, 0.2,
                           second_moment);
  };
  // a = E x_i^2, c = E x_i x_j. x_i' = (1 - kappa h) x_i - g h (x_i - x_j) + noise, g = J (N - 1)/N, j the
  // partner: a' and, for a pair that meets (probability 1/(N-1)) or does not, c'.
  const auto exact = [&](double h) {
    const double g = J * (count - 1.0) / count, u = 1.0 - kappa * h - g * h, v = g * h,
                 meet = 1.0 / (count - 1.0);
    double a = 1.0, c = 0.0;
    for (int i = 0; i < 200000; ++i) {
      const double next_a = (u * u + v * v) * a + 2.0 * u * v * c + 2.0 * h / beta;
      const double together = 2.0 * u * v * a + (u * u + v * v) * c, apart = (u + v) * (u + v) * c;
      c = meet * together + (1.0 - meet) * apart;
      a = next_a;
    }
    return a;
  };
  for (const double h : {0.1, 0.025}) {
    const Mean mean = measured(h);
    EXPECT_NEAR(mean.value, exact(h), 4.0 * mean.standard_error) << h;
  }
}

TEST(Timestep, IsNoFloatAnywhere) {
  // One particle falls with force 1: a step of 1e-9, which a float added to 0.7 would lose.
  const Model slope{WholeSpace{1}, {PolynomialPotential{{0.0, -1.0}}}, {}, infinity};
  State state{{1, 1, 1, {0.7}}, {}};
  const Options options{.scheme = Scheme::Reflected, .timestep = 1e-9};
  run(slope, state, options, Schedule::at({0.0, 1e-6}), {}, {});
  EXPECT_EQ(state.clock.step, 1000);
  EXPECT_NEAR(state.ensemble.positions[0] - 0.7, 1e-6, 1e-12);
}

}  // namespace
}  // namespace rieszflow::particle
