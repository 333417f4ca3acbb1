#include "solvers/stationary/linearisation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "analysis/extrapolation.hpp"
#include "solvers/pde/evolution.hpp"
#include "solvers/stationary/self_consistency.hpp"
#include "tests/pde/references.hpp"

namespace rieszflow::stationary {
namespace {

using reference::uniform_on;

std::vector<double> rates(const Model& model, const Grid& grid, int count) {
  const MeanField field(model, grid, {});
  const Result state = solve(field, uniform_on(grid), {});
  EXPECT_EQ(state.status, RunStatus::Completed);
  const Spectrum spectrum =
      relaxation_rates(Landscape(field), state.density, {.count = count, .tolerance = 1e-7});
  EXPECT_EQ(spectrum.status, RunStatus::Completed) << spectrum.residual;
  EXPECT_EQ(spectrum.values.size(), static_cast<std::size_t>(count));
  return spectrum.values;
}

TEST(RelaxationRates, OfALinearPotentialAreTheClosedFormOfTheDiscreteOperator) {
  // V = g x on [0, L]: (B(z) + B(-z) - 2 sqrt(B(z) B(-z)) cos(n pi/N))/(beta h^2), z = beta g h; no error but
  // round-off.
  const double g = 3.0, beta = 4.0;
  for (const std::size_t cells : {64U, 200U}) {
    const Grid grid{{0.0}, {1.0}, {cells}};
    const auto found = rates(Model{Box{{0.0}, {1.0}}, {PolynomialPotential{{0.0, g}}}, {}, beta}, grid, 3);
    const double h = grid.spacing(0), z = beta * g * h, b = z / std::expm1(z), c = b + z;
    for (int n = 1; n <= 3; ++n) {
      const double exact =
          (b + c - 2.0 * std::sqrt(b * c) * std::cos(n * std::numbers::pi / static_cast<double>(cells))) /
          (beta * h * h);
      EXPECT_NEAR(found[static_cast<std::size_t>(n - 1)], exact, 1e-9 * exact);
    }
  }
}

TEST(RelaxationRates, ExtrapolateToTheSpectralGapsOfTheEquation) {
  struct Case {
    Model model;
    double lower, upper, gap, accuracy;
  };
  const std::vector<Case> cases{
      {{Box{{0.0}, {1.0}}, {PolynomialPotential{{0.0, 3.0}}}, {}, 4.0}, 0.0, 1.0, 11.46740110027, 1e-7},
      {{Box{{-1.0}, {1.0}}, {QuadraticPotential{1.0}}, {}, 2.0}, -1.0, 1.0, 1.7984598320321, 1e-8},
      {{Box{{-2.0}, {2.0}}, {QuadraticPotential{1.0}}, {}, 2.0}, -2.0, 2.0, 1.0374612092817, 1e-8},
      {{Box{{-2.5}, {2.5}}, {DoubleWellPotential{1.0, 1.0}}, {}, 4.0}, -2.5, 2.5, 0.0297795933, 1e-8},
      {{Box{{-2.5}, {2.5}}, {DoubleWellPotential{1.0, 1.0}}, {}, 8.0}, -2.5, 2.5, 0.0005718689, 1e-9}};
  for (const Case& c : cases) {
    std::vector<RefinedValue> values;
    for (const std::size_t cells : {125U, 250U, 500U, 1000U}) {
      const Grid grid{{c.lower}, {c.upper}, {cells}};
      values.push_back({grid.spacing(0), rates(c.model, grid, 1)[0]});
    }
    const Extrapolation limit = extrapolated(values, 2.0);
    EXPECT_NEAR(limit.order, 2.0, 0.01);
    EXPECT_NEAR(limit.limit, c.gap, c.accuracy + limit.limit_error) << c.gap;
    EXPECT_LT(limit.limit_error, 1e-5 * c.gap);
  }
}

TEST(RelaxationRates, OfGaussiansKnowTheInteraction) {
  // V = kappa x^2/2, W = alpha |x - y|^2/2: the mean decays at kappa, the n-th Hermite mode at n (kappa +
  // alpha).
  const Grid grid{{-7.0}, {7.0}, {1400}};
  const auto found =
      rates(Model{Box{{-7.0}, {7.0}}, {QuadraticPotential{1.0}}, {QuadraticInteraction{0.5}}, 2.0}, grid, 3);
  EXPECT_NEAR(found[0], 1.0, 1e-4);
  EXPECT_NEAR(found[1], 3.0, 1e-3);
  EXPECT_NEAR(found[2], 4.5, 2e-3);
}

TEST(RelaxationRates, OfTheCoulombGasAreThoseOfItsExactSolution) {
  // Cole-Hopf, beta = 5: odd 0.8725571949, even 2.5243866625.
  const Grid grid{{-1.0}, {1.0}, {512}};
  const auto found = rates(Model{Box{{-1.0}, {1.0}}, {}, {RieszInteraction{.exponent = -1.0}}, 5.0}, grid, 2);
  EXPECT_NEAR(found[0], 0.8725571949, 1e-5);
  EXPECT_NEAR(found[1], 2.5243866625, 1e-4);
}

TEST(RelaxationRates, OfADiscAndACubeAreThoseOfTheHeatEquation) {
  const Ball disc{{0.0, 0.0}, 1.0};
  const Grid round = grid_on(disc, {64, 64});
  const auto modes = rates(Model{disc, {}, {}, 1.0}, round, 3);
  EXPECT_NEAR(modes[0], std::pow(1.8411837813, 2.0), 4e-3);  // first zero of J_1'
  EXPECT_NEAR(modes[1], modes[0], 1e-9);
  EXPECT_NEAR(modes[2], std::pow(3.0542369282, 2.0), 3e-2);  // of J_2'

  const Grid cube{{0.0, 0.0, 0.0}, {1.0, 2.0, 0.5}, {12, 16, 8}};
  const auto box = rates(Model{Box{cube.lower, cube.upper}, {}, {}, 2.0}, cube, 3);
  const auto mode = [](double h, double k) { return (1.0 - std::cos(k * h)) / (h * h); };  // beta = 2
  const double pi = std::numbers::pi;
  EXPECT_NEAR(box[0], mode(0.125, 0.5 * pi), 1e-9);
  EXPECT_NEAR(box[1], mode(0.125, pi), 1e-9);
  EXPECT_NEAR(box[2], mode(1.0 / 12.0, pi), 1e-9);
}

TEST(RelaxationRates, AreNegativeWhereTheEvolutionLeavesTheState) {
  // Uniform rotators, beta = 1, K = 3: e^{ix} grows at K/2 - 1; the evolution agrees.
  const double pi = std::numbers::pi;
  const Grid grid{{0.0}, {2.0 * pi}, {128}, true};
  const Model model{Torus{{0.0}, {2.0 * pi}}, {}, {CosineInteraction{3.0}}, 1.0};
  const auto found = rates(model, grid, 2);
  EXPECT_NEAR(found[0], -0.5, 2e-3);
  EXPECT_NEAR(found[1], found[0], 1e-9);
  const MeanField field(model, grid, {});
  pde::State state{.density = reference::density_of(
                       grid, [](const std::vector<double>& x) { return 1.0 + 1e-6 * std::cos(x[0]); })};
  const auto amplitude = [&] {
    double sum = 0.0;
    for (std::size_t i = 0; i < 128; ++i) sum += state.density.averages[i] * std::cos(grid.center(0, i));
    return sum;
  };
  const double before = amplitude();
  pde::run(field, state, {.timestep = 1e-3}, Schedule::at({0.0, 0.5}), {}, {});
  EXPECT_NEAR(std::log(amplitude() / before) / 0.5, -found[0], 1e-4);
}

TEST(RelaxationRates, SayWhenTheyAreBelowRoundOff) {
  // Metastable at beta = 40: the gap is about e^-40.
  const Grid grid{{-2.5}, {2.5}, {200}};
  const MeanField field(Model{Box{{-2.5}, {2.5}}, {DoubleWellPotential{1.0, 1.0}}, {}, 40.0}, grid, {});
  const Result state = solve(field, uniform_on(grid), {});
  const Spectrum spectrum = relaxation_rates(Landscape(field), state.density, {.count = 1});
  EXPECT_TRUE(spectrum.status == RunStatus::NotConverged || std::abs(spectrum.values[0]) < 1e-10);
}

TEST(SecondVariation, IsOneOverBetaWithoutInteractionAndChangesSignAtTheTransition) {
  const double pi = std::numbers::pi, beta = 0.5;
  const Grid grid{{0.0}, {2.0 * pi}, {64}, true};
  const Torus circle{{0.0}, {2.0 * pi}};
  const auto lowest = [&](const Model& model) {
    const MeanField field(model, grid, {});
    const Spectrum spectrum = second_variation(Landscape(field), uniform_on(grid), {.count = 2});
    EXPECT_EQ(spectrum.status, RunStatus::Completed);
    return spectrum.values;
  };
  EXPECT_NEAR(lowest(Model{circle, {}, {}, beta})[0], 2.0, 1e-12);
  // 1/beta - K/2 (times the cell mean of a cosine, squared): zero at beta K = 2.
  const double h = grid.spacing(0), cell = std::pow(std::sin(0.5 * h) / (0.5 * h), 2.0);
  for (const double k : {3.0, 4.0, 5.0}) {
    const auto values = lowest(Model{circle, {}, {CosineInteraction{k}}, beta});
    EXPECT_NEAR(values[0], 2.0 - 0.5 * k * cell, 1e-9);
    EXPECT_NEAR(values[1], values[0], 1e-9);
  }
}

TEST(SecondVariation, OfARepulsionIsNotBelowThatOfIndependentParticles) {
  const Grid grid{{-1.0}, {1.0}, {64}};
  const MeanField field(Model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, 10.0}, grid, {});
  const Result state = solve(field, uniform_on(grid), {});
  const Spectrum spectrum =
      second_variation(Landscape(field), state.density, {.count = 1, .tolerance = 1e-3});
  EXPECT_GT(spectrum.values[0], 0.1);
  EXPECT_LT(spectrum.values[0], 0.12);
}

}  // namespace
}  // namespace rieszflow::stationary
