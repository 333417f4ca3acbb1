#include "solvers/rare_event/gibbs_chain.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "models.hpp"
#include "solvers/rare_event/ladder.hpp"
#include "solvers/rare_event/minimisers.hpp"

namespace rieszflow::rare_event {
namespace {

struct Mean {
  double value = 0.0, standard_error = 0.0;
};

/// Mean over independent chains of a number of the state.
Mean mean_over_chains(const Model& model, std::size_t count, std::int64_t sweeps,
                      const std::function<double(std::span<const double>)>& number,
                      const std::shared_ptr<const Proposal>& proposal = nullptr) {
  constexpr int chains = 16;
  double sum = 0.0, squares = 0.0;
  for (int c = 0; c < chains; ++c) {
    GibbsChain chain(model, count, nullptr, 5, static_cast<std::uint64_t>(c));
    chain.scatter();
    for (int s = 0; s < 400; ++s) {
      chain.sweep();
      if (s < 200 && s % 10 == 9) chain.tune();
    }
    chain.set_proposal(proposal);
    double mean = 0.0;
    for (std::int64_t s = 0; s < sweeps; ++s) {
      chain.sweep();
      mean += number(chain.positions()) / static_cast<double>(sweeps);
    }
    sum += mean / chains;
    squares += mean * mean / chains;
  }
  return {sum, std::sqrt((squares - sum * sum) / (chains - 1))};
}

double mean_square(std::span<const double> x) {
  double sum = 0.0;
  for (const double value : x) sum += value * value;
  return sum / static_cast<double>(x.size());
}

TEST(GibbsChain, HasTheExactMomentOfTheLogGasOnAnIntervalAtEveryStep) {
  // Schwinger-Dyson: with A = 2 + beta (1 - 1/N), m2 solves N (1 - 3 m2) + (beta/2)(N-1)(1 - 2 m2) -
  // (beta/2)((1 - m2)/A - m2) = 0.
  const double beta = 3.0, n = 12.0, a = 2.0 + beta * (1.0 - 1.0 / n);
  const double exact = (n + 0.5 * beta * (n - 1.0) - 0.5 * beta / a) /
                       (3.0 * n + beta * (n - 1.0) - 0.5 * beta * (1.0 + 1.0 / a));
  const Mean m2 = mean_over_chains(test::log_gas(beta), 12, 3000, mean_square);
  EXPECT_LT(m2.standard_error, 0.003);
  EXPECT_NEAR(m2.value, exact, 4.0 * m2.standard_error);
}

TEST(GibbsChain, HasTheExactSizeOfTheConfinedLogGasInTheWholePlane) {
  // E (1/N) sum |x|^2 = (d + (beta/2)(1 - 1/N)) / (beta stiffness): the virial theorem.
  const double beta = 2.5, n = 9.0;
  Model model{.domain = WholeSpace{2},
              .potentials = {QuadraticPotential{1.3}},
              .interactions = {LogarithmicInteraction{}},
              .inverse_temperature = beta};
  const double exact = (2.0 + 0.5 * beta * (1.0 - 1.0 / n)) / (beta * 1.3);
  const Mean size =
      mean_over_chains(model, 9, 3000, [](std::span<const double> x) { return 2.0 * mean_square(x); });
  EXPECT_LT(size.standard_error, 0.02);
  EXPECT_NEAR(size.value, exact, 4.0 * size.standard_error);
}

TEST(GibbsChain, ObeysSchwingerDysonInADisc) {
  // Schwinger-Dyson with g = (1 - |x|^2) x, which has no flux through the wall: E sum_i [div g - beta N
  // g.grad_i H] = 0, div g = 2 - 4 |x|^2.
  const double beta = 2.0;
  const std::size_t count = 8;
  Model model{.domain = Ball{{0.0, 0.0}, 1.0},
              .potentials = {},
              .interactions = {LogarithmicInteraction{}},
              .inverse_temperature = beta};
  const Mean identity = mean_over_chains(model, count, 3000, [&](std::span<const double> x) {
    double sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      const double square = x[2 * i] * x[2 * i] + x[2 * i + 1] * x[2 * i + 1];
      sum += 2.0 - 4.0 * square;
      for (std::size_t j = 0; j < i; ++j) {
        const double dx = x[2 * i] - x[2 * j], dy = x[2 * i + 1] - x[2 * j + 1];
        const double other = x[2 * j] * x[2 * j] + x[2 * j + 1] * x[2 * j + 1];
        const double gx = (1.0 - square) * x[2 * i] - (1.0 - other) * x[2 * j];
        const double gy = (1.0 - square) * x[2 * i + 1] - (1.0 - other) * x[2 * j + 1];
        sum += beta / static_cast<double>(count) * (gx * dx + gy * dy) / (dx * dx + dy * dy);
      }
    }
    return sum;
  });
  EXPECT_LT(identity.standard_error, 0.1);
  EXPECT_NEAR(identity.value, 0.0, 4.0 * identity.standard_error);
}

TEST(Proposal, IsADensityThatDrawsAgreeWith) {
  // Bins of equal probability: a draw's density is what log_density says, and the integral is one.
  std::vector<double> samples;
  for (int i = 0; i < 1600; ++i) samples.push_back(std::pow((i + 0.5) / 1600.0, 1.5) - 0.3);
  const Proposal proposal(Box{{-1.0}, {1.0}}, samples);
  double point = 0.0, integral = 0.0;
  for (int i = 0; i < 2000; ++i) {
    const double uniform = (i + 0.5) / 2000.0;
    const double log_density = proposal.draw({&uniform, 1}, {&point, 1});
    ASSERT_GT(point, -1.0);
    ASSERT_LT(point, 1.0);
    ASSERT_EQ(log_density, proposal.log_density({&point, 1}));
  }
  const int cells = 200000;
  for (int i = 0; i < cells; ++i) {
    point = -1.0 + 2.0 * (i + 0.5) / cells;
    integral += std::exp(proposal.log_density({&point, 1})) * 2.0 / cells;
  }
  EXPECT_NEAR(integral, 1.0, 2e-3);
  // The whole line: nothing outside the samples. A repeated sample makes no bin.
  const std::vector<double> repeated{0.25, 0.25, 0.5, 1.0};
  const Proposal line(WholeSpace{1}, repeated);
  point = 0.5;
  EXPECT_NEAR(line.log_density({&point, 1}), std::log(1.0 / 0.75), 1e-14);
  point = 1.5;
  EXPECT_EQ(line.log_density({&point, 1}), -std::numeric_limits<double>::infinity());
}

TEST(GibbsChain, KeepsItsLawUnderAnyProposal) {
  // The moment above with a proposal from a wrong law, and with one that does not reach the whole domain.
  const double beta = 3.0, n = 12.0, a = 2.0 + beta * (1.0 - 1.0 / n);
  const double exact = (n + 0.5 * beta * (n - 1.0) - 0.5 * beta / a) /
                       (3.0 * n + beta * (n - 1.0) - 0.5 * beta * (1.0 + 1.0 / a));
  std::vector<double> wrong;
  for (int i = 0; i < 64; ++i) wrong.push_back(std::pow((i + 0.5) / 64.0, 3.0) - 0.4);
  const Model model = test::log_gas(beta);
  for (const Domain& support : {Domain(Box{{-1.0}, {1.0}}), Domain(WholeSpace{1})}) {
    const auto proposal = std::make_shared<const Proposal>(support, wrong);
    const Mean m2 = mean_over_chains(model, 12, 6000, mean_square, proposal);
    EXPECT_LT(m2.standard_error, 0.003);
    EXPECT_NEAR(m2.value, exact, 4.0 * m2.standard_error);
  }
}

TEST(GibbsChain, AcceptsNearlyEveryDrawFromItsOwnOneParticleLaw) {
  const Model model = test::log_gas(2.0);
  GibbsChain chain(model, 40, nullptr, 3, 0);
  chain.scatter();
  const Rung rung = settle(chain, 1000, [](const GibbsChain& c) { return c.interaction_energy(); });
  ASSERT_TRUE(rung.proposal);
  chain.set_step(1e-9);  // one sweep of four, always accepted
  chain.forget_acceptance();
  for (int s = 0; s < 400; ++s) chain.sweep();
  EXPECT_GT(chain.acceptance(), 0.25 + 0.75 * 0.75);
}

TEST(GibbsChain, IsBitwiseAFunctionOfSeedAndStream) {
  const Model model = test::log_gas(2.0);
  const auto end_of = [&](std::uint64_t seed, std::uint64_t stream) {
    GibbsChain chain(model, 5, nullptr, seed, stream);
    chain.scatter();
    for (int s = 0; s < 50; ++s) chain.sweep();
    return std::vector<double>(chain.positions().begin(), chain.positions().end());
  };
  EXPECT_EQ(end_of(1, 2), end_of(1, 2));
  EXPECT_NE(end_of(1, 2), end_of(1, 3));
  EXPECT_NE(end_of(1, 2), end_of(2, 2));
}

TEST(GibbsChain, StaysInsideTheEventItIsConfinedTo) {
  const Model model = test::log_gas(2.0);
  const Statistic mean = test::coordinate_mean();
  GibbsChain chain(model, 6, &mean, 3, 0);
  chain.assign(std::vector{0.2, 0.3, 0.4, 0.5, 0.6, 0.7});
  chain.event = Event{.lower = 0.4};
  chain.floor = 0.0;
  for (int s = 0; s < 500; ++s) {
    chain.sweep();
    ASSERT_GT(chain.statistic_value(), 0.4);
    ASSERT_NEAR(chain.statistic_value(), value(mean, chain.positions(), 6), 1e-12);
  }
}

TEST(Minimisers, FindTheFeketePointsOfTheInterval) {
  // Zeros of (1 - x^2) P'_(N-1); the maximum of sum log |x_i - x_j| in closed form (Stieltjes).
  for (const int count : {4, 7}) {
    const double n = count;
    double sum = n * (n - 1.0) * std::numbers::ln2 - (n - 1.0) * std::log(n - 1.0);
    for (int j = 1; j < count; ++j) {
      sum += 2.0 * j * std::log(j) + (j + 1.0) * std::log(j + 1.0) - (n + j - 1.0) * std::log(n + j - 1.0);
    }
    const Minimisers found =
        minimise(test::log_gas(1.0), static_cast<std::size_t>(count), {.starts = 4, .seed = 1});
    ASSERT_EQ(found.status, RunStatus::Completed);
    EXPECT_NEAR(found.best.hamiltonian, -sum / (2.0 * n * n), 1e-9) << "N = " << count;
    EXPECT_GE(found.agreeing, 3U);
  }
}

TEST(Minimisers, MeetAConstraintOnALinearStatistic) {
  // V = |x|^2/2 without interactions and mean >= 1/2: all particles at 1/2.
  Model model{.domain = WholeSpace{1}, .potentials = {QuadraticPotential{1.0}}, .interactions = {}};
  const Minimisers found =
      minimise(model, 5, test::coordinate_mean(), {.lower = 0.5}, {.starts = 3, .seed = 1});
  ASSERT_EQ(found.status, RunStatus::Completed);
  EXPECT_NEAR(found.best.hamiltonian, 0.125, 1e-6);
}

}  // namespace
}  // namespace rieszflow::rare_event
