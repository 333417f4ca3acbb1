#include "solvers/pde/scharfetter_gummel.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>

#include "model/mean_field.hpp"
#include "tests/pde/references.hpp"

namespace rieszflow::pde {
namespace {

std::vector<double> random_values(std::size_t count, std::mt19937_64& engine, double low, double high) {
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<double> values(count);
  for (double& value : values) value = uniform(engine);
  return values;
}

Grid random_grid(std::mt19937_64& engine, std::size_t dimension, bool periodic) {
  std::uniform_int_distribution<std::size_t> cells(1, dimension == 1 ? 150 : dimension == 2 ? 24 : 9);
  std::uniform_real_distribution<double> length(0.3, 3.0);
  Grid grid;
  grid.periodic = periodic;
  for (std::size_t axis = 0; axis < dimension; ++axis) {
    grid.cells.push_back(cells(engine));
    grid.lower.push_back(0.0);
    grid.upper.push_back(length(engine));
  }
  return grid;
}

double total(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(ScharfetterGummel, KeepsGibbsStatesToRoundOffForEveryTimestep) {
  std::mt19937_64 engine(2);
  for (int trial = 0; trial < 200; ++trial) {
    const Grid grid = random_grid(engine, 1 + static_cast<std::size_t>(trial) % 3, trial % 2 == 1);
    const double beta = std::pow(10.0, std::uniform_real_distribution<double>(-1.0, 2.0)(engine));
    const std::vector<double> potential = random_values(grid.cell_count(), engine, -10.0 / beta, 10.0 / beta);
    std::vector<double> gibbs(potential.size()), next(potential.size());
    for (std::size_t i = 0; i < gibbs.size(); ++i) gibbs[i] = std::exp(-beta * potential[i]);
    ScharfetterGummel fluxes(grid, beta, 1);
    for (const double timestep : {1e-3, 10.0, 1e6}) {
      fluxes.implicit_step(potential, timestep, gibbs, next);
      for (std::size_t i = 0; i < gibbs.size(); ++i) EXPECT_NEAR(next[i] / gibbs[i], 1.0, 1e-12);
    }
    EXPECT_LE(std::abs(fluxes.dissipation(potential, gibbs, next)), 1e-20 * total(gibbs) / (beta * beta));
  }
}

TEST(ScharfetterGummel, ReachesTheGibbsRatioAcrossThirtyUnitsOfBetaV) {
  const Grid grid{{0.0}, {2.0}, {2}};
  ScharfetterGummel fluxes(grid, 1.0, 1);
  std::vector<double> averages{0.5, 0.5};
  for (int step = 0; step < 5; ++step)
    fluxes.implicit_step(std::vector<double>{0.0, 30.0}, 1e18, averages, averages);
  EXPECT_NEAR(averages[1] / averages[0] / std::exp(-30.0), 1.0, 1e-12);
}

TEST(ScharfetterGummel, ConservesMassAndPositivityForEveryTimestep) {
  std::mt19937_64 engine(3);
  for (int trial = 0; trial < 300; ++trial) {
    const Grid grid = random_grid(engine, 1 + static_cast<std::size_t>(trial) % 3, trial % 2 == 1);
    const double beta = trial % 5 == 4
                            ? std::numeric_limits<double>::infinity()
                            : std::pow(10.0, std::uniform_real_distribution<double>(-1.0, 3.0)(engine));
    const std::vector<double> potential = random_values(grid.cell_count(), engine, -1.0, 1.0);
    std::vector<double> averages = random_values(grid.cell_count(), engine, 0.0, 1.0);
    for (double& value : averages) value = value < 0.3 ? 0.0 : value;  // exact zeros
    ScharfetterGummel fluxes(grid, beta, 1);
    const double before = total(averages);
    for (const double timestep : {1e-6, 1e-2, 1e6}) {
      std::vector<double> next(averages.size());
      fluxes.implicit_step(potential, timestep, averages, next);
      EXPECT_NEAR(total(next), before, 1e-14 * (1.0 + before));
      EXPECT_GE(*std::min_element(next.begin(), next.end()), 0.0);
    }
  }
}

TEST(ScharfetterGummel, ImplicitStepSolvesItsEquation) {
  // One axis: (rho' - rho) / tau is the semi-discrete rate at rho'.
  std::mt19937_64 engine(4);
  for (int trial = 0; trial < 60; ++trial) {
    const Grid grid = random_grid(engine, 1, trial % 2 == 1);
    const std::vector<double> potential = random_values(grid.cell_count(), engine, -1.0, 1.0);
    const std::vector<double> averages = random_values(grid.cell_count(), engine, 0.0, 1.0);
    std::vector<double> next(averages.size()), rate(averages.size());
    ScharfetterGummel fluxes(grid, trial % 3 == 0 ? std::numeric_limits<double>::infinity() : 5.0, 1);
    const double timestep = 0.01;
    fluxes.implicit_step(potential, timestep, averages, next);
    fluxes.rate_of_change(potential, next, rate);
    for (std::size_t i = 0; i < next.size(); ++i)
      EXPECT_NEAR(next[i] - averages[i], timestep * rate[i], 1e-12);
  }
}

TEST(ScharfetterGummel, DissipationIsMinusTheSlopeOfTheFreeEnergy) {
  // With Phi fixed, dF/dt = sum of (Phi + (1/beta) log rho) d rho/dt |C|: an identity, not an approximation.
  std::mt19937_64 engine(5);
  for (int trial = 0; trial < 60; ++trial) {
    const Grid grid = random_grid(engine, 1 + static_cast<std::size_t>(trial) % 3, trial % 2 == 1);
    const double beta = 3.0;
    const std::vector<double> potential = random_values(grid.cell_count(), engine, -1.0, 1.0);
    const std::vector<double> averages = random_values(grid.cell_count(), engine, 0.1, 1.0);
    std::vector<double> rate(averages.size()), scratch(averages.size());
    ScharfetterGummel fluxes(grid, beta, 1);
    fluxes.rate_of_change(potential, averages, rate);
    double slope = 0.0, scale = 0.0;
    for (std::size_t i = 0; i < rate.size(); ++i) {
      const double term = (potential[i] + std::log(averages[i]) / beta) * rate[i] * grid.cell_volume();
      slope += term;
      scale += std::abs(term);
    }
    EXPECT_NEAR(fluxes.dissipation(potential, averages, scratch), -slope, 1e-13 * (1e-10 + scale));
    EXPECT_GE(fluxes.dissipation(potential, averages, scratch), 0.0);
  }
}

TEST(ScharfetterGummel, HasItsClosedFormSpectrumForALinearPotential) {
  // V = g x: lambda_n = (B(z) + B(-z) - 2 sqrt(B(z) B(-z)) cos(n pi / N)) / (beta h^2), z = beta g h.
  const double beta = 4.0, g = 3.0;
  const int cells = 64;
  const Grid grid{{0.0}, {1.0}, {static_cast<std::size_t>(cells)}};
  std::vector<double> potential(cells), unit(cells, 0.0), rate(cells);
  for (int i = 0; i < cells; ++i)
    potential[static_cast<std::size_t>(i)] = g * grid.center(0, static_cast<std::size_t>(i));
  ScharfetterGummel fluxes(grid, beta, 1);
  Eigen::MatrixXd generator(cells, cells);
  for (int j = 0; j < cells; ++j) {
    unit.assign(static_cast<std::size_t>(cells), 0.0);
    unit[static_cast<std::size_t>(j)] = 1.0;
    fluxes.rate_of_change(potential, unit, rate);
    for (int i = 0; i < cells; ++i) generator(i, j) = -rate[static_cast<std::size_t>(i)];
  }
  Eigen::VectorXd eigenvalues = generator.eigenvalues().real();
  std::sort(eigenvalues.begin(), eigenvalues.end());
  const double h = grid.spacing(0), z = beta * g * h, b = z / std::expm1(z);
  EXPECT_NEAR(eigenvalues(0), 0.0, 1e-8);
  for (int n = 1; n < cells; ++n) {
    const double exact =
        (2.0 * b + z - 2.0 * std::sqrt(b * (b + z)) * std::cos(n * std::numbers::pi / cells)) /
        (beta * h * h);
    EXPECT_NEAR(eigenvalues(n) / exact, 1.0, 1e-10) << n;
  }
}

TEST(ScharfetterGummel, DissipatesUpToTheInteractionOfTheChange) {
  // F(rho') - F(rho) <= (1/2) double-integral W (rho' - rho)(rho' - rho), for every W, V, rho >= 0 and
  // timestep.
  std::mt19937_64 engine(6);
  double largest = -1.0;
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t dimension = 1 + static_cast<std::size_t>(trial) % 3;
    const Grid grid = random_grid(engine, dimension, false);
    const double beta = std::pow(10.0, std::uniform_real_distribution<double>(-1.0, 3.0)(engine));
    const double strength = std::uniform_real_distribution<double>(-3.0, 3.0)(engine);
    Model model{Box{grid.lower, grid.upper}, {CosinePotential{2.0, 5.0}}, {}, beta};
    if (trial % 2 == 0) {
      model.interactions.push_back(LogarithmicInteraction{strength, 0.0});
    } else {
      model.interactions.push_back(GaussianInteraction{strength, 0.3});
    }
    const MeanField field(model, grid, {});
    std::vector<double> averages = random_values(grid.cell_count(), engine, 0.0, 1.0);
    for (double& value : averages) value = value < 0.2 ? 0.0 : value;
    const double mass = total(averages) * grid.cell_volume();
    if (mass == 0.0) continue;
    for (double& value : averages) value /= mass;
    std::vector<double> potential(averages.size()), next(averages.size());
    const double energy = field.interaction_potential(averages, potential);
    const FreeEnergy before = field.free_energy(averages, energy);
    for (std::size_t i = 0; i < potential.size(); ++i) potential[i] += field.external_potential()[i];
    const double timestep = std::pow(10.0, std::uniform_real_distribution<double>(-5.0, 4.0)(engine));
    ScharfetterGummel(grid, beta, 1).implicit_step(potential, timestep, averages, next);
    const FreeEnergy after = field.free_energy(Density{grid, next});
    std::vector<double> change(next.size());
    for (std::size_t i = 0; i < next.size(); ++i) change[i] = next[i] - averages[i];
    const double quadratic = field.interaction_potential(change, potential);
    const double scale = 1.0 + std::abs(before.free_energy) + std::abs(before.interaction_energy) +
                         std::abs(before.entropy / beta);
    EXPECT_LE(after.free_energy - before.free_energy - quadratic, 1e-13 * scale);
    largest = std::max(largest, after.free_energy - before.free_energy - quadratic);
  }
  RecordProperty("largest_excess", std::to_string(largest));
}

TEST(ScharfetterGummel, IsBitwiseTheSameForEveryNumberOfThreads) {
  std::mt19937_64 engine(7);
  const Grid grid{{0.0, 0.0}, {1.0, 1.0}, {520, 512}};
  const std::vector<double> potential = random_values(grid.cell_count(), engine, -1.0, 1.0);
  const std::vector<double> averages = random_values(grid.cell_count(), engine, 0.0, 1.0);
  std::vector<double> one(averages.size()), two(averages.size());
  ScharfetterGummel(grid, 5.0, 1).implicit_step(potential, 0.1, averages, one);
  ScharfetterGummel(grid, 5.0, 2).implicit_step(potential, 0.1, averages, two);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), two.begin()));
}

}  // namespace
}  // namespace rieszflow::pde
