#include "solvers/stationary/zero_temperature.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/pde/references.hpp"

namespace rieszflow::stationary {
namespace {

using reference::uniform_on;

constexpr double infinity = std::numeric_limits<double>::infinity();

Density random_start(const Grid& grid, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(-0.5, 1.0);
  return reference::density_of(grid,
                               [&](const std::vector<double>&) { return std::max(0.0, uniform(engine)); });
}

/// Largest violation of Phi = mu on the support, Phi >= mu beside it.
double frostman_violation(const MeanField& field, const Result& result) {
  std::vector<double> potential(result.density.averages.size());
  field.interaction_potential(result.density.averages, potential);
  double violation = 0.0;
  for (std::size_t i = 0; i < potential.size(); ++i) {
    if (!field.volumes().empty() && field.volumes()[i] == 0.0) continue;
    const double excess = potential[i] + field.external_potential()[i] - result.chemical_potential;
    violation = std::max(violation, result.density.averages[i] > 0.0 ? std::abs(excess) : -excess);
  }
  return violation;
}

TEST(ZeroTemperature, FrostmansConditionsHoldFromAnyStart) {
  const Box line{{-2.0}, {2.0}}, plane{{-2.0, -2.0}, {2.0, 1.5}}, cube{{-1.5, -1.5, -1.5}, {1.5, 1.5, 1.5}};
  const Ball disc{{0.0, 0.0}, 1.0};
  struct Case {
    Model model;
    std::vector<std::size_t> cells;
  };
  const std::vector<Case> cases{
      {{line, {QuadraticPotential{1.0}}, {LogarithmicInteraction{}}, infinity}, {129}},
      {{line, {QuadraticPotential{1.0}}, {RieszInteraction{.exponent = 0.5}}, infinity}, {200}},
      {{line,
        {DoubleWellPotential{4.0, 1.0}},
        {RieszInteraction{.exponent = -1.0, .strength = 0.5}},
        infinity},
       {100}},
      {{plane, {QuadraticPotential{2.0}}, {RieszInteraction{.exponent = 1.0}}, infinity}, {32, 28}},
      {{plane, {DoubleWellPotential{3.0, 1.0}}, {LogarithmicInteraction{0.3}}, infinity}, {32, 28}},
      {{cube, {QuadraticPotential{1.0}}, {RieszInteraction{.exponent = 1.5}}, infinity}, {12, 12, 12}},
      {{disc, {}, {LogarithmicInteraction{}}, infinity}, {24, 24}}};
  for (const Case& c : cases) {
    const Grid grid = grid_on(c.model.domain, c.cells);
    const MeanField field(c.model, grid, {});
    const Result first = solve(field, uniform_on(grid), {});
    ASSERT_EQ(first.status, RunStatus::Completed) << first.residual;
    EXPECT_LT(frostman_violation(field, first), 1e-10);
    EXPECT_NEAR(mass(first.density), 1.0, 1e-13);
    EXPECT_GE(*std::min_element(first.density.averages.begin(), first.density.averages.end()), 0.0);
    // A convex energy has one minimiser.
    const Result second = solve(field, random_start(grid, 3), {});
    ASSERT_EQ(second.status, RunStatus::Completed) << second.residual;
    EXPECT_NEAR(second.energy.free_energy, first.energy.free_energy, 1e-12);
    double distance = 0.0;
    for (std::size_t i = 0; i < first.density.averages.size(); ++i)
      distance = std::max(distance, std::abs(first.density.averages[i] - second.density.averages[i]));
    EXPECT_LT(distance, 1e-6);
  }
}

TEST(ZeroTemperature, SupportEndsWhereTheEquilibriumMeasureDoes) {
  // W = -log|x - y|, V = x^2/2: the semicircle on [-sqrt 2, sqrt 2].
  const Grid grid{{-2.0}, {2.0}, {400}};
  const MeanField field(
      Model{Box{{-2.0}, {2.0}}, {QuadraticPotential{1.0}}, {LogarithmicInteraction{}}, infinity}, grid, {});
  const Result result = solve(field, uniform_on(grid), {});
  double right = -infinity;
  for (std::size_t i = 0; i < 400; ++i) {
    if (result.density.averages[i] > 0.0) right = grid.face(0, i + 1);
  }
  EXPECT_NEAR(right, std::sqrt(2.0), 1.5 * grid.spacing(0));
  EXPECT_NEAR(result.chemical_potential, 0.5 - std::log(std::sqrt(2.0) / 2.0), 1e-5);
}

TEST(ZeroTemperature, IsTheLimitOfColdStates) {
  // F(beta) - E -> 0 like (1/beta) times the entropy of the limit.
  const Grid grid{{-1.0}, {1.0}, {128}};
  const MeanField field(Model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, infinity}, grid, {});
  const Result limit = solve(field, uniform_on(grid), {});
  for (const double beta : {100.0, 1000.0, 10000.0}) {
    const Result cold = solve(Landscape(field, {.inverse_temperature = beta}), uniform_on(grid), {});
    ASSERT_EQ(cold.status, RunStatus::Completed) << "beta = " << beta << ", residual " << cold.residual;
    EXPECT_NEAR(beta * (cold.energy.free_energy - limit.energy.free_energy), -limit.energy.entropy,
                40.0 / beta);
  }
}

TEST(ZeroTemperature, AttractionEndsInALocalMinimum) {
  // W = |x - y|, V = 0: everything into one cell, wherever it starts.
  const Grid grid{{-1.0}, {1.0}, {64}};
  const MeanField field(
      Model{Box{{-1.0}, {1.0}}, {}, {RieszInteraction{.exponent = -1.0, .strength = -1.0}}, infinity}, grid,
      {});
  for (const unsigned seed : {1U, 2U, 3U}) {
    const Result result = solve(field, random_start(grid, seed), {});
    ASSERT_EQ(result.status, RunStatus::Completed);
    EXPECT_NEAR(*std::max_element(result.density.averages.begin(), result.density.averages.end()) *
                    grid.cell_volume(),
                1.0, 1e-12);
    EXPECT_NEAR(result.energy.free_energy, 0.5 * grid.spacing(0) / 3.0, 1e-12);
  }
}

}  // namespace
}  // namespace rieszflow::stationary
