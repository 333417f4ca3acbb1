#include "solvers/stationary/self_consistency.hpp"

#include <gtest/gtest.h>

#include <boost/math/special_functions/bessel.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "model/quadrature.hpp"
#include "solvers/pde/evolution.hpp"
#include "tests/pde/references.hpp"

namespace rieszflow::stationary {
namespace {

using reference::density_of;
using reference::l1_distance;
using reference::observed_order;
using reference::uniform_on;

Result solve_from(const Model& model, const Density& start, const Options& options = {}) {
  const MeanField field(model, start.grid, {});
  Result result = solve(field, start, options);
  EXPECT_EQ(result.status, RunStatus::Completed)
      << "residual " << result.residual << " after " << result.iterations;
  EXPECT_NEAR(mass(result.density), 1.0, 1e-13);
  return result;
}

TEST(SelfConsistency, LogGasOnAnIntervalConvergesToItsSecondMoment) {
  // W = -log|x - y| on [-1, 1]: m2 = (c + 1)/(2 c + 3), c = beta/2.
  for (const double beta : {1.0, 2.0, 10.0}) {
    std::vector<double> errors;
    for (const std::size_t cells : {64U, 128U, 256U}) {
      const Grid grid{{-1.0}, {1.0}, {cells}};
      const Result result =
          solve_from(Model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, beta}, uniform_on(grid));
      errors.push_back(std::abs(second_moment(result.density) - (0.5 * beta + 1.0) / (beta + 3.0)));
    }
    EXPECT_GT(observed_order(errors), beta < 5.0 ? 1.85 : 1.5) << "beta = " << beta;
    EXPECT_LT(errors.back(), 2e-4);
  }
}

TEST(SelfConsistency, LogGasAtInverseTemperatureTwoIsElementary) {
  // rho = 1 / ((1 - x^2)^2 ((artanh x + x/(1 - x^2))^2 + pi^2/4)), rho(1) = 1; mu = log(3/2), F =
  // 0.0358327192375.
  std::vector<double> errors;
  for (const std::size_t cells : {64U, 128U, 256U, 512U}) {
    const Grid grid{{-1.0}, {1.0}, {cells}};
    const Result result =
        solve_from(Model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, 2.0}, uniform_on(grid));
    // Exact cell averages need a fine rule: the density has a logarithm at the walls.
    const QuadratureRule rule = gauss_legendre(12);
    double error = 0.0;
    for (std::size_t i = 0; i < cells; ++i) {
      double exact = 0.0;
      for (std::size_t q = 0; q < rule.nodes.size(); ++q) {
        const double x = grid.center(0, i) + (rule.nodes[q] - 0.5) * grid.spacing(0);
        const double w = 1.0 - x * x, a = w * std::atanh(x) + x;
        exact += rule.weights[q] / (a * a + w * w * std::numbers::pi * std::numbers::pi / 4.0);
      }
      error += std::abs(result.density.averages[i] - exact) * grid.cell_volume();
    }
    errors.push_back(error);
    EXPECT_NEAR(result.chemical_potential, std::log(1.5), 0.02 / static_cast<double>(cells));
  }
  EXPECT_GT(observed_order(errors), 1.85);
  EXPECT_LT(errors.back(), 1.9e-6);
}

TEST(SelfConsistency, LogGasInAHarmonicWellHasItsExactMoments) {
  // On the line m2 = (1 + 2/beta)/(2 kappa).
  for (const double beta : {1.0, 2.0, 4.0}) {
    const Grid grid{{-9.0}, {9.0}, {600}};
    const Result result =
        solve_from(Model{Box{{-9.0}, {9.0}}, {QuadraticPotential{1.0}}, {LogarithmicInteraction{}}, beta},
                   uniform_on(grid));
    EXPECT_NEAR(second_moment(result.density), 0.5 * (1.0 + 2.0 / beta), 1e-3) << beta;
    const double exact = beta == 1.0 ? -0.833231051904 : beta == 2.0 ? -0.0723649429247 : 0.262104323678;
    EXPECT_NEAR(result.energy.free_energy, exact, 2e-4) << beta;
  }
}

/// W = -chi |x - y| on [-1, 1]: rho = k^2 / (beta cos^2 kx), k tan k = beta/2 (chi = 1); with cosh and tanh
/// for chi = -1.
std::vector<double> coulomb_averages(const Grid& grid, double beta, double chi) {
  const double k =
      chi > 0.0 ? reference::root([&](double x) { return x * std::sin(x) - 0.5 * beta * std::cos(x); }, 0.0,
                                  std::numbers::pi / 2.0)
                : reference::root([&](double x) { return x * std::tanh(x) - 0.5 * beta; }, 0.0, 10.0 + beta);
  std::vector<double> averages;
  for (std::size_t i = 0; i < grid.cells[0]; ++i) {
    const auto primitive = [&](double x) {
      return k / beta * (chi > 0.0 ? std::tan(k * x) : std::tanh(k * x));
    };
    averages.push_back((primitive(grid.face(0, i + 1)) - primitive(grid.face(0, i))) / grid.spacing(0));
  }
  return averages;
}

TEST(SelfConsistency, CoulombGasOfBothSignsConvergesAtLeastToSecondOrder) {
  for (const double chi : {1.0, -1.0}) {
    for (const double beta : {1.0, 5.0}) {
      std::vector<double> errors;
      for (const std::size_t cells : {16U, 32U, 64U}) {
        const Grid grid{{-1.0}, {1.0}, {cells}};
        const Model model{
            Box{{-1.0}, {1.0}}, {}, {RieszInteraction{.exponent = -1.0, .strength = chi}}, beta};
        const Result result = solve_from(model, uniform_on(grid));
        errors.push_back(l1_distance(grid, result.density.averages, coulomb_averages(grid, beta, chi)));
      }
      EXPECT_GT(observed_order(errors), 1.9);
      EXPECT_LT(errors.back(), 2e-6) << "chi = " << chi << ", beta = " << beta;
    }
  }
}

TEST(SelfConsistency, KuramotoHasTheBesselOrderParameterAndItsUniformBranch) {
  // r = I_1(K r)/I_0(K r) at beta = 1; F = -log(2 pi I_0(K r)) + K r^2/2.
  const double pi = std::numbers::pi, k = 3.0;
  const double r = reference::root(
      [&](double x) { return x - boost::math::cyl_bessel_i(1, k * x) / boost::math::cyl_bessel_i(0, k * x); },
      0.1, 1.0);
  EXPECT_NEAR(r, 0.72415871762635, 1e-13);
  std::vector<double> errors;
  for (const std::size_t cells : {32U, 64U, 128U}) {
    const Grid grid{{-pi}, {pi}, {cells}, true};
    const Model model{Torus{{-pi}, {pi}}, {}, {CosineInteraction{k}}, 1.0};
    const Result ordered = solve_from(
        model, density_of(grid, [](const std::vector<double>& x) { return 1.0 + 0.3 * std::cos(x[0]); }));
    double order_parameter = 0.0;
    for (std::size_t i = 0; i < cells; ++i) {
      order_parameter +=
          ordered.density.averages[i] * (std::sin(grid.face(0, i + 1)) - std::sin(grid.face(0, i)));
    }
    errors.push_back(std::abs(order_parameter - r));
    EXPECT_NEAR(ordered.energy.free_energy,
                -std::log(2.0 * pi * boost::math::cyl_bessel_i(0, k * r)) + 0.5 * k * r * r,
                3.0 / static_cast<double>(cells * cells));
    const Result uniform = solve_from(model, uniform_on(grid));
    EXPECT_NEAR(uniform.energy.free_energy, -std::log(2.0 * pi), 1e-12);
    EXPECT_GT(uniform.energy.free_energy, ordered.energy.free_energy);
  }
  EXPECT_NEAR(observed_order(errors), 2.0, 0.1);
}

TEST(SelfConsistency, DesaiZwanzigHasThreeBranchesBelowTheTransitionAndOneAbove) {
  const PolynomialPotential quartic{{0.0, 0.0, -0.5, 0.0, 0.25}};
  const auto start = [](const Grid& grid, double centre) {
    return density_of(grid, [=](const std::vector<double>& x) {
      return std::exp(-2.0 * (x[0] - centre) * (x[0] - centre));
    });
  };
  std::vector<double> errors;
  for (const std::size_t cells : {100U, 200U, 400U}) {
    const Grid grid{{-3.0}, {3.0}, {cells}};
    const Model model{Box{{-3.0}, {3.0}}, {quartic}, {QuadraticInteraction{1.0}}, 4.0};
    const Result right = solve_from(model, start(grid, 0.5)), left = solve_from(model, start(grid, -0.5)),
                 middle = solve_from(model, start(grid, 0.0));
    errors.push_back(std::abs(mean(right.density)[0] - 0.78755040684382));
    EXPECT_NEAR(mean(left.density)[0], -mean(right.density)[0], 1e-10);
    EXPECT_NEAR(mean(middle.density)[0], 0.0, 1e-10);
    EXPECT_NEAR(right.energy.free_energy, -0.1935013190586, 4.0 / static_cast<double>(cells * cells));
    EXPECT_NEAR(middle.energy.free_energy, -0.1487188360345, 4.0 / static_cast<double>(cells * cells));
  }
  EXPECT_NEAR(observed_order(errors), 2.0, 0.1);
  // The critical inverse temperature is (Gamma(1/4)/(2 Gamma(3/4)))^2 = 2.18844: one state at 2.1, a pair
  // at 2.28.
  const Grid grid{{-4.0}, {4.0}, {400}};
  const double critical = std::pow(std::tgamma(0.25) / (2.0 * std::tgamma(0.75)), 2.0);
  EXPECT_NEAR(critical, 2.18843961522648, 1e-13);
  for (const double beta : {2.1, 2.28}) {
    const Result result = solve_from(Model{Box{{-4.0}, {4.0}}, {quartic}, {QuadraticInteraction{1.0}}, beta},
                                     start(grid, 0.5), {.tolerance = 1e-10});
    if (beta < critical) {
      EXPECT_NEAR(mean(result.density)[0], 0.0, 1e-6);
    } else {
      EXPECT_NEAR(mean(result.density)[0], 0.258, 0.003);
    }
  }
}

TEST(SelfConsistency, LogGasInTheDiscConvergesThroughCutCells) {
  // W = -chi log r, beta = 1, g = -chi/4: rho = (1 - g)/(pi (1 - g + g r^2)^2). Staircase cells would give
  // order 1.
  for (const double chi : {2.0, -1.0}) {
    const double g = -chi / 4.0;
    std::vector<double> errors;
    for (const std::size_t cells : {24U, 48U, 96U}) {
      const Model model{Ball{{0.0, 0.0}, 1.0}, {}, {LogarithmicInteraction{chi}}, 1.0};
      const Grid grid = grid_on(model.domain, {cells, cells});
      const Result result = solve_from(model, uniform_on(grid));
      double error = 0.0;
      std::vector<double> x(2);
      for (std::size_t cell = 0; cell < grid.cell_count(); ++cell) {
        grid.cell_center(cell, x);
        const double r2 = x[0] * x[0] + x[1] * x[1];
        const double exact = (1.0 - g) / (std::numbers::pi * std::pow(1.0 - g + g * r2, 2.0));
        error += std::abs(result.density.averages[cell] - exact) * grid.volume_fractions[cell] *
                 grid.cell_volume();
      }
      errors.push_back(error);
      const double exact = chi > 0.0 ? -0.928334561525 : -1.28168366849;
      EXPECT_NEAR(result.energy.free_energy, exact, 2.0 / static_cast<double>(cells * cells));
    }
    EXPECT_GT(observed_order(errors), 1.85) << "chi = " << chi;
    EXPECT_LT(errors.back(), 1.2e-4);
  }
}

TEST(SelfConsistency, RepeatsItselfOnATorusOfAnySize) {
  // A Gaussian attraction on a torus orders beyond its critical strength; twice the cells, the same state to
  // O(h^2).
  std::vector<double> energies;
  for (const std::size_t cells : {31U, 62U, 124U}) {
    const Grid grid{{0.0}, {2.0}, {cells}, true};
    const Model model{Torus{{0.0}, {2.0}}, {}, {GaussianInteraction{-3.0, 0.3}}, 4.0};
    const Result result = solve_from(model, density_of(grid, [](const std::vector<double>& x) {
                                       return 1.0 + 0.3 * std::cos(std::numbers::pi * x[0]);
                                     }));
    energies.push_back(result.energy.free_energy);
    EXPECT_LT(result.energy.free_energy, solve_from(model, uniform_on(grid)).energy.free_energy - 0.05);
  }
  EXPECT_NEAR(std::log2((energies[0] - energies[1]) / (energies[1] - energies[2])), 2.0, 0.2);
}

TEST(SelfConsistency, IsWhereTheEvolutionEnds) {
  const Grid grid{{-1.0, -1.0}, {1.0, 1.5}, {16, 20}};
  const Model model{Box{grid.lower, grid.upper},
                    {QuadraticPotential{2.0}},
                    {RieszInteraction{.exponent = 1.0, .strength = 0.5}},
                    4.0};
  const MeanField field(model, grid, {});
  const Result result = solve_from(model, uniform_on(grid));
  pde::State state{.density = uniform_on(grid)};
  EXPECT_EQ(pde::run(field, state, {.tolerance = 1e-4}, Schedule::at({0.0, 10.0}), {}, {}).status,
            RunStatus::Completed);
  EXPECT_LT(l1_distance(grid, state.density.averages, result.density.averages), 1e-9);
  EXPECT_NEAR(state.diagnostics.energy.free_energy, result.energy.free_energy, 1e-12);
  EXPECT_LT(state.diagnostics.dissipation, 1e-14);
}

TEST(SelfConsistency, SaysWhenItDoesNotConverge) {
  const Grid grid{{-1.0}, {1.0}, {64}};
  const MeanField field(Model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, 50.0}, grid, {});
  const Result result = solve(field, uniform_on(grid), {.iterations = 2});
  EXPECT_EQ(result.status, RunStatus::NotConverged);
  EXPECT_GT(result.residual, 1e-6);
}

}  // namespace
}  // namespace rieszflow::stationary
