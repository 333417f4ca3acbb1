#include "solvers/pde/evolution.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <string>

#include "tests/pde/references.hpp"

namespace rieszflow::pde {
namespace {

using reference::l1_distance;
using reference::observed_order;

constexpr double infinity = std::numeric_limits<double>::infinity();

State run_to(const Model& model, Density start, const Options& options, double end,
             Result* result = nullptr) {
  const MeanField field(model, start.grid, {});
  State state{.density = std::move(start)};
  const Result outcome = run(field, state, options, Schedule::at({0.0, end}), {}, {});
  if (result != nullptr) {
    *result = outcome;
  } else {
    EXPECT_EQ(outcome.status, RunStatus::Completed) << outcome.message;
  }
  return state;
}

/// V = |x|^2/2, W = |x - y|^2/4, beta = 2 from N(0.7, 0.4^2): m = 0.7 e^-t, s^2 = 1/3 + (0.16 - 1/3) e^-3t.
const Model gaussian_model{Box{{-6.0}, {6.0}}, {QuadraticPotential{1.0}}, {QuadraticInteraction{0.5}}, 2.0};
std::vector<double> gaussian_solution(const Grid& grid, double t) {
  return reference::gaussian_averages(grid, 0.7 * std::exp(-t),
                                      std::sqrt(1.0 / 3.0 + (0.16 - 1.0 / 3.0) * std::exp(-3.0 * t)));
}

TEST(Evolution, GaussiansStayGaussianToSecondOrderInSpace) {
  std::vector<double> errors;
  for (const std::size_t cells : {100U, 200U, 400U}) {
    const Grid grid{{-6.0}, {6.0}, {cells}};
    const State state =
        run_to(gaussian_model, {grid, gaussian_solution(grid, 0.0)}, {.tolerance = 1e-6}, 1.0);
    errors.push_back(l1_distance(grid, state.density.averages, gaussian_solution(grid, 1.0)));
    // F = s^2 (kappa + alpha)/2 - log(2 pi e s^2)/(2 beta) + m^2/2, here -0.151573793513.
    const double m = 0.7 * std::exp(-1.0), variance = 1.0 / 3.0 + (0.16 - 1.0 / 3.0) * std::exp(-3.0);
    const double exact =
        0.75 * variance - 0.25 * std::log(2.0 * std::numbers::pi * std::numbers::e * variance) + 0.5 * m * m;
    EXPECT_NEAR(exact, -0.151573793513, 1e-12);
    EXPECT_NEAR(state.diagnostics.energy.free_energy, exact, 2.0 * grid.spacing(0) * grid.spacing(0));
  }
  EXPECT_NEAR(observed_order(errors), 2.0, 0.1);
  EXPECT_LT(errors.back(), 2.5e-4);
}

TEST(Evolution, ColeHopfSolutionsToSecondOrderInSpace) {
  for (const double chi : {1.0, -1.0}) {
    const reference::ColeHopf exact(5.0, chi);
    // W = -chi |x - y|. Values of the formula: rho(1, t) by a one-sided difference of u.
    std::vector<double> errors;
    for (const std::size_t cells : {32U, 64U, 128U}) {
      const Grid grid{{-1.0}, {1.0}, {cells}};
      const Model model{Box{{-1.0}, {1.0}}, {}, {RieszInteraction{.exponent = -1.0, .strength = chi}}, 5.0};
      const State state = run_to(model, reference::uniform_on(grid), {.tolerance = 1e-6}, 0.2);
      errors.push_back(l1_distance(grid, state.density.averages, exact.averages(grid, 0.2)));
    }
    EXPECT_NEAR(observed_order(errors), 2.0, 0.1) << "chi = " << chi;
    EXPECT_LT(errors.back(), 1.2e-4);
  }
  // The reference itself against independent digits (t = 0.2, beta = 5): rho(0) and rho(1/2), centred
  // differences of u.
  const auto density = [](const reference::ColeHopf& solution, double x, double t) {
    const double step = 1e-3;
    return (8.0 * (solution.u(x + step, t) - solution.u(x - step, t)) - solution.u(x + 2.0 * step, t) +
            solution.u(x - 2.0 * step, t)) /
           (24.0 * step);
  };
  EXPECT_NEAR(density(reference::ColeHopf(5.0, 1.0), 0.0, 0.2), 0.41670509429, 1e-9);
  EXPECT_NEAR(density(reference::ColeHopf(5.0, 1.0), 0.5, 0.2), 0.42525368738, 1e-9);
  EXPECT_NEAR(density(reference::ColeHopf(5.0, -1.0), 0.0, 0.2), 0.62439969448, 1e-9);
  EXPECT_NEAR(density(reference::ColeHopf(5.0, -1.0), 0.0, 1.0), 1.13445165477, 1e-9);
  EXPECT_NEAR(density(reference::ColeHopf(20.0, 1.0), 0.0, 1.0), 0.25002869363, 1e-9);
}

/// A smooth problem with all terms, positive everywhere, for orders in time.
struct TimeProblem {
  Grid grid{{-1.0}, {1.0}, {64}};
  Model model{Box{{-1.0}, {1.0}},
              {DoubleWellPotential{0.25, 0.5}},
              {GaussianInteraction{-0.5, 0.3}, LogarithmicInteraction{0.2}},
              2.0};
  Density start = reference::density_of(
      grid, [](const std::vector<double>& x) { return 1.0 + 0.6 * std::sin(2.0 * x[0]); });
};

TEST(Evolution, SemiImplicitHasItsOrderInTime) {
  const TimeProblem problem;
  const State exact =
      run_to(problem.model, problem.start, {.scheme = Scheme::MethodOfLines, .tolerance = 1e-10}, 0.4);
  std::vector<double> errors;
  for (const double steps : {20.0, 40.0, 80.0}) {
    const State state = run_to(problem.model, problem.start, {.timestep = 0.4 / steps}, 0.4);
    errors.push_back(l1_distance(problem.grid, state.density.averages, exact.density.averages));
  }
  EXPECT_NEAR(observed_order(errors), order(Scheme::SemiImplicit), 0.15)
      << errors[0] << " " << errors[1] << " " << errors[2];
}

TEST(Evolution, MethodOfLinesHasItsOrderInTime) {
  TimeProblem problem;
  problem.grid = Grid{{-1.0}, {1.0}, {12}};
  problem.start = reference::density_of(
      problem.grid, [](const std::vector<double>& x) { return 1.0 + 0.6 * std::sin(2.0 * x[0]); });
  const State exact =
      run_to(problem.model, problem.start, {.scheme = Scheme::MethodOfLines, .timestep = 0.04 / 640.0}, 0.04);
  std::vector<double> errors;
  for (const double steps : {10.0, 20.0, 40.0}) {
    const State state = run_to(problem.model, problem.start,
                               {.scheme = Scheme::MethodOfLines, .timestep = 0.04 / steps}, 0.04);
    errors.push_back(l1_distance(problem.grid, state.density.averages, exact.density.averages));
  }
  EXPECT_NEAR(observed_order(errors), order(Scheme::MethodOfLines), 0.3)
      << errors[0] << " " << errors[1] << " " << errors[2];
}

TEST(Evolution, SchemesAgreeInTwoAndThreeDimensions) {
  for (const std::size_t dimension : {2U, 3U}) {
    Grid grid;
    for (std::size_t axis = 0; axis < dimension; ++axis) {
      grid.lower.push_back(-1.0);
      grid.upper.push_back(1.0 + 0.5 * static_cast<double>(axis));
      grid.cells.push_back(dimension == 2 ? 14 + axis : 6 + axis);
    }
    const Model model{Box{grid.lower, grid.upper},
                      {QuadraticPotential{1.0}},
                      {RieszInteraction{.exponent = 1.0, .strength = 0.3}},
                      3.0};
    const Density start = reference::density_of(
        grid, [](const std::vector<double>& x) { return 1.0 + 0.5 * std::sin(x[0] + 2.0 * x[1]); });
    const State exact = run_to(model, start, {.scheme = Scheme::MethodOfLines, .tolerance = 1e-8}, 0.2);
    std::vector<double> errors;
    for (const double steps : {10.0, 20.0, 40.0}) {
      const State state = run_to(model, start, {.timestep = 0.2 / steps}, 0.2);
      errors.push_back(l1_distance(grid, state.density.averages, exact.density.averages));
    }
    EXPECT_NEAR(observed_order(errors), order(Scheme::SemiImplicit), 0.2) << "d = " << dimension;
    EXPECT_LT(errors.back(), 1e-3);
  }
}

TEST(Evolution, ToleranceBoundsTheErrorPerUnitTime) {
  const TimeProblem problem;
  const State exact =
      run_to(problem.model, problem.start, {.scheme = Scheme::MethodOfLines, .tolerance = 1e-10}, 1.0);
  for (const double tolerance : {1e-3, 1e-4, 1e-5}) {
    const State state = run_to(problem.model, problem.start, {.tolerance = tolerance}, 1.0);
    EXPECT_LT(l1_distance(problem.grid, state.density.averages, exact.density.averages), 2.0 * tolerance);
  }
}

TEST(Evolution, KeepsItsStructureOnRandomModels) {
  std::mt19937_64 engine(8);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine);
  };
  std::int64_t steps = 0;
  for (int trial = 0; trial < 240; ++trial) {
    const std::size_t dimension = trial % 6 == 5 ? 3 : trial % 2 == 1 ? 2 : 1;
    Grid grid;
    for (std::size_t axis = 0; axis < dimension; ++axis) {
      grid.lower.push_back(uniform(-2.0, -0.5));
      grid.upper.push_back(uniform(0.5, 2.0));
      grid.cells.push_back(1 + engine() % (dimension == 1 ? 48 : dimension == 2 ? 12 : 6));
    }
    Model model{Box{grid.lower, grid.upper},
                {PolynomialPotential{{0.0, uniform(-2.0, 2.0), uniform(-2.0, 2.0), uniform(-2.0, 2.0), 1.0}}},
                {},
                1.0};
    model.inverse_temperature = trial % 8 == 7 ? infinity : std::pow(10.0, uniform(-1.0, 2.0));
    switch (trial % 5) {
      case 0:
        model.interactions.push_back(LogarithmicInteraction{uniform(-0.3, 2.0)});
        break;
      case 1:
        model.interactions.push_back(RieszInteraction{.exponent = uniform(-1.0, 0.9), .strength = 1.0});
        break;
      case 2:
        model.interactions.push_back(GaussianInteraction{uniform(-2.0, 2.0), uniform(0.1, 1.0)});
        break;
      case 3:
        model.interactions.push_back(QuadraticInteraction{uniform(-1.0, 2.0)});
        model.interactions.push_back(CosineInteraction{uniform(-1.0, 2.0)});
        break;
      default:
        model.interactions.push_back(MorseInteraction{});
    }
    const Density start = reference::density_of(
        grid, [&](const std::vector<double>&) { return std::max(0.0, uniform(-0.3, 1.0)) + 1e-9; });
    const MeanField field(model, grid, {});
    State state{.density = start};
    double previous = infinity;
    const StopRule check = [&](const Clock&) -> std::optional<RunStatus> {
      EXPECT_NEAR(mass(state.density), 1.0, 1e-12);
      EXPECT_GE(*std::min_element(state.density.averages.begin(), state.density.averages.end()), 0.0);
      const FreeEnergy& energy = state.diagnostics.energy;
      const double scale = 1.0 + std::abs(energy.potential_energy) + std::abs(energy.interaction_energy) +
                           std::abs(energy.entropy / model.inverse_temperature);
      EXPECT_LE(energy.free_energy, previous + 1e-12 * scale) << "trial " << trial;
      previous = energy.free_energy;
      ++steps;
      return {};
    };
    const Result result = run(field, state, {.tolerance = 1e-3}, Schedule::at({0.0, 0.3}), {}, check);
    EXPECT_TRUE(result.status == RunStatus::Completed || result.status == RunStatus::Concentrated)
        << "trial " << trial << ": " << result.message;
  }
  EXPECT_GT(steps, 2400);
}

TEST(Evolution, GibbsStatesDoNotMove) {
  const Grid grid{{-1.0, -1.0}, {1.0, 2.0}, {20, 13}};
  const Model model{Box{grid.lower, grid.upper}, {PolynomialPotential{{0.0, 1.0, 3.0}}}, {}, 5.0};
  const MeanField field(model, grid, {});
  Density gibbs{grid, std::vector<double>(grid.cell_count())};
  for (std::size_t i = 0; i < gibbs.averages.size(); ++i)
    gibbs.averages[i] = std::exp(-5.0 * field.external_potential()[i]);
  const double total = mass(gibbs);
  for (double& value : gibbs.averages) value /= total;
  const State state = run_to(model, gibbs, {}, 10.0);
  for (std::size_t i = 0; i < gibbs.averages.size(); ++i) {
    EXPECT_NEAR(state.density.averages[i] / gibbs.averages[i], 1.0, 1e-12);
  }
}

TEST(Evolution, ResumesBitwise) {
  const TimeProblem problem;
  const MeanField field(problem.model, problem.grid, {});
  for (const Options& options : {Options{.tolerance = 1e-4}, Options{.timestep = 0.01},
                                 Options{.scheme = Scheme::MethodOfLines, .tolerance = 1e-5}}) {
    const Schedule schedule = Schedule::every(0.1, 0.0, 0.5);
    State whole{.density = problem.start};
    run(field, whole, options, schedule, {}, {});
    for (const std::int64_t stop_step : {1, 7, 20}) {
      State part{.density = problem.start};
      const Result first =
          run(field, part, options, schedule, {}, [&](const Clock& clock) -> std::optional<RunStatus> {
            if (clock.step == stop_step) return RunStatus::Interrupted;
            return {};
          });
      EXPECT_EQ(first.status, RunStatus::Interrupted);
      // What a checkpoint holds: density, clock, next timestep. A fresh operator.
      State resumed{.density = part.density, .clock = part.clock, .next_timestep = part.next_timestep};
      const MeanField fresh(problem.model, problem.grid, {});
      std::vector<double> seen;
      run(fresh, resumed, options, schedule,
          [&](const Clock& clock, const State&) { seen.push_back(clock.time); }, {});
      EXPECT_EQ(resumed.density.averages, whole.density.averages);
      EXPECT_EQ(resumed.clock.step, whole.clock.step);
      EXPECT_EQ(resumed.clock.time, whole.clock.time);
      EXPECT_EQ(resumed.diagnostics.energy.free_energy, whole.diagnostics.energy.free_energy);
      for (const double time : seen) EXPECT_GT(time, part.clock.time);
    }
  }
}

TEST(Evolution, LandsExactlyOnTheScheduledTimes) {
  const TimeProblem problem;
  const MeanField field(problem.model, problem.grid, {});
  for (const double timestep : {0.0, 0.03}) {
    const Schedule schedule = Schedule::at({0.0, 0.1, 0.1 + 1e-9, 0.35, 1.0 / 3.0 + 0.1});
    std::vector<double> seen;
    State state{.density = problem.start};
    run(field, state, {.timestep = timestep}, schedule,
        [&](const Clock& clock, const State& seen_state) {
          seen.push_back(clock.time);
          EXPECT_GT(seen_state.diagnostics.dissipation, 0.0);
        },
        {});
    EXPECT_EQ(seen, schedule.times());
  }
}

TEST(Evolution, FreeEnergyFallsAtTheRateOfTheDissipation) {
  // F(a) - F(b) = integral of D from a to b: Simpson's rule on 41 outputs, after the layer that the start has
  // at the walls.
  const TimeProblem problem;
  const MeanField field(problem.model, problem.grid, {});
  State state{.density = problem.start};
  std::vector<double> energy, dissipation;
  run(field, state, {.scheme = Scheme::MethodOfLines, .tolerance = 1e-9}, Schedule::every(0.005, 0.0, 0.3),
      [&](const Clock& clock, const State& seen) {
        if (clock.time < 0.0999) return;
        energy.push_back(seen.diagnostics.energy.free_energy);
        dissipation.push_back(seen.diagnostics.dissipation);
      },
      {});
  ASSERT_EQ(energy.size(), 41U);
  double integral = 0.0;
  for (std::size_t i = 0; i < 41; ++i)
    integral += (i == 0 || i == 40 ? 1.0 : i % 2 == 1 ? 4.0 : 2.0) * dissipation[i] * 0.005 / 3.0;
  EXPECT_NEAR((energy.front() - energy.back()) / integral, 1.0, 1e-4);
}

TEST(Evolution, HeatModesDecayAtTheirRate) {
  const double beta = 4.0;
  const Grid grid{{0.0}, {2.0}, {100}};
  const Model model{Box{{0.0}, {2.0}}, {}, {}, beta};
  const double wavenumber = 3.0 * std::numbers::pi / 2.0;
  const auto mode = [&](const Density& density) {
    double sum = 0.0;
    for (std::size_t i = 0; i < 100; ++i)
      sum += density.averages[i] * std::cos(wavenumber * grid.center(0, i)) * grid.cell_volume();
    return sum;
  };
  const Density start = reference::density_of(
      grid, [&](const std::vector<double>& x) { return 1.0 + 0.5 * std::cos(wavenumber * x[0]); });
  const State state = run_to(model, start, {.tolerance = 1e-8}, 0.2);
  const double rate = -std::log(mode(state.density) / mode(start)) / 0.2;
  const double h = grid.spacing(0), discrete = 2.0 * (1.0 - std::cos(wavenumber * h)) / (beta * h * h);
  EXPECT_NEAR(rate / discrete, 1.0, 1e-6);
  EXPECT_NEAR(rate / (wavenumber * wavenumber / beta), 1.0, 2e-3);
}

TEST(Evolution, LinearPotentialRelaxesAtItsGap) {
  // V = g x on [0, L]: gap pi^2/(beta L^2) + beta g^2 / 4; beta = 4, g = 3, L = 1: 11.4674.
  const Grid grid{{0.0}, {1.0}, {64}};
  const Model model{Box{{0.0}, {1.0}}, {PolynomialPotential{{0.0, 3.0}}}, {}, 4.0};
  const MeanField field(model, grid, {});
  Density gibbs{grid, std::vector<double>(64)};
  for (std::size_t i = 0; i < 64; ++i) gibbs.averages[i] = std::exp(-12.0 * grid.center(0, i));
  const double total = mass(gibbs);
  for (double& value : gibbs.averages) value /= total;
  State state{.density = reference::uniform_on(grid)};
  std::vector<double> distance;
  run(field, state, {.timestep = 0.002}, Schedule::at({0.0, 1.2, 1.3}),
      [&](const Clock&, const State& seen) {
        distance.push_back(l1_distance(grid, seen.density.averages, gibbs.averages));
      },
      {});
  const double rate = std::log(distance[1] / distance[2]) / 0.1;
  EXPECT_NEAR(rate, 11.45670975, 0.003);  // the discrete gap at 64 cells
  EXPECT_NEAR(rate, std::numbers::pi * std::numbers::pi / 4.0 + 9.0, 0.03);
}

TEST(Evolution, SecondMomentOfTheLogGasObeysTheVirialIdentity) {
  // W = -chi log r, V = kappa |x|^2/2, no walls met: dm2/dt = -2 kappa m2 + 2 d/beta + chi.
  const double kappa = 1.0, beta = 2.0, chi = 1.5, end = 0.3;
  const Grid grid{{-6.0}, {6.0}, {240}};
  const Model model{Box{{-6.0}, {6.0}}, {QuadraticPotential{kappa}}, {LogarithmicInteraction{chi}}, beta};
  const Density start{grid, reference::gaussian_averages(grid, 0.0, 0.5)};
  const State state = run_to(model, start, {.tolerance = 1e-5}, end);
  const double limit = (2.0 / beta + chi) / (2.0 * kappa);
  const double exact = limit + (0.25 - limit) * std::exp(-2.0 * kappa * end);
  EXPECT_NEAR(second_moment(state.density), exact, 2e-3);

  // Two dimensions, attractive below the critical mass: slope 4/beta - theta = 2.
  const Grid plane{{-2.5, -2.5}, {2.5, 2.5}, {64, 64}};
  const Model below{Box{plane.lower, plane.upper}, {}, {LogarithmicInteraction{-2.0}}, 1.0};
  const Density round = reference::density_of(plane, [](const std::vector<double>& x) {
    return std::exp(-(x[0] * x[0] + x[1] * x[1]) / (2.0 * 0.16));
  });
  const State spread = run_to(below, round, {.tolerance = 1e-3}, 0.05);
  EXPECT_NEAR((second_moment(spread.density) - second_moment(round)) / 0.05, 2.0, 0.02);
}

/// Zero temperature, W = r^-s (or -log r for s = 0), V = kappa |x|^2/2 with kappa = 1: rho = c (1 -
/// r^2/R^2)^((s+2-d)/2), R^(s+2) = K + (R0^(s+2) - K) e^(-(s+2) t), K = (2 s/d) Gamma((d-s)/2)
/// Gamma(2+s/2)/Gamma(d/2); log: K = 2/d.
double self_similar_radius(double s, double d, double start, double t) {
  const double k =
      s == 0.0 ? 2.0 / d
               : 2.0 * s / d * std::tgamma(0.5 * (d - s)) * std::tgamma(2.0 + 0.5 * s) / std::tgamma(0.5 * d);
  return std::pow(k + (std::pow(start, s + 2.0) - k) * std::exp(-(s + 2.0) * t), 1.0 / (s + 2.0));
}

TEST(Evolution, ZeroTemperatureFlowsKeepTheirSelfSimilarShape) {
  EXPECT_NEAR(self_similar_radius(0.5, 1.0, 0.5, 1.0), 1.35617829740, 1e-10);
  EXPECT_NEAR(self_similar_radius(0.0, 1.0, 0.5, 1.0), 1.32784157727, 1e-10);
  for (const double s : {0.0, 0.5}) {
    // One dimension: mass left of x by the substitution x = R sin(angle), Simpson's rule.
    const double power = 0.5 * (s + 1.0);
    const auto averages = [&](const Grid& grid, double radius) {
      const auto primitive = [&](double x) {
        const double angle = std::asin(std::clamp(x / radius, -1.0, 1.0));
        const int panels = 200;
        double sum = 0.0;
        for (int i = 0; i <= panels; ++i) {
          const double a = angle * i / panels;
          sum += (i == 0 || i == panels ? 1.0
                  : i % 2 == 1          ? 4.0
                                        : 2.0) *
                 std::pow(std::cos(a), 2.0 * power + 1.0);
        }
        return sum * angle / (3.0 * panels);
      };
      const double total = 2.0 * primitive(radius);
      std::vector<double> result(grid.cells[0]);
      for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = (primitive(grid.face(0, i + 1)) - primitive(grid.face(0, i))) / (total * grid.spacing(0));
      return result;
    };
    const Interaction interaction = s == 0.0 ? Interaction(LogarithmicInteraction{})
                                             : Interaction(RieszInteraction{.exponent = s, .strength = s});
    std::vector<double> errors, plain_errors;
    for (const std::size_t cells : {64U, 128U, 256U}) {
      const Grid grid{{-2.0}, {2.0}, {cells}};
      const Model model{Box{{-2.0}, {2.0}}, {QuadraticPotential{1.0}}, {interaction}, infinity};
      const std::vector<double> exact = averages(grid, self_similar_radius(s, 1.0, 0.5, 0.5));
      const State state = run_to(model, {grid, averages(grid, 0.5)},
                                 {.scheme = Scheme::SecondOrderUpwind, .tolerance = 1e-4}, 0.5);
      errors.push_back(l1_distance(grid, state.density.averages, exact));
      EXPECT_NEAR(mass(state.density), 1.0, 1e-13);
      const State plain = run_to(model, {grid, averages(grid, 0.5)},
                                 {.scheme = Scheme::SemiImplicit, .tolerance = 1e-3}, 0.5);
      plain_errors.push_back(l1_distance(grid, plain.density.averages, exact));
    }
    // The profile has a root at its edge: not second order.
    EXPECT_GT(observed_order(errors), 1.0) << "s = " << s;
    EXPECT_LT(errors.back(), 0.2 * plain_errors.back());  // Scharfetter-Gummel is first-order upwind here
    RecordProperty("upwind_" + std::to_string(s), std::to_string(errors.back()));
    RecordProperty("first_order_" + std::to_string(s), std::to_string(plain_errors.back()));
  }
}

TEST(Evolution, UpwindHasItsOrderInTime) {
  // A smooth repulsive flow away from fronts and walls.
  const Grid grid{{-3.0}, {3.0}, {80}};
  const Model model{Box{{-3.0}, {3.0}}, {}, {GaussianInteraction{1.0, 1.0}}, infinity};
  const Density start{grid, reference::gaussian_averages(grid, 0.1, 0.6)};
  const State exact =
      run_to(model, start, {.scheme = Scheme::SecondOrderUpwind, .timestep = 0.5 / 1280.0}, 0.5);
  std::vector<double> errors;
  for (const double steps : {20.0, 40.0, 80.0}) {
    const State state =
        run_to(model, start, {.scheme = Scheme::SecondOrderUpwind, .timestep = 0.5 / steps}, 0.5);
    errors.push_back(l1_distance(grid, state.density.averages, exact.density.averages));
  }
  EXPECT_NEAR(observed_order(errors), order(Scheme::SecondOrderUpwind), 0.25)
      << errors[0] << " " << errors[1] << " " << errors[2];
}

TEST(Evolution, CoulombDropletsGrowToTheirRadiusInTwoDimensions) {
  // W = -log r, V = |x|^2/2: uniform disc, R^2 = 1 + (R0^2 - 1) e^-2t; second moment R^2/2.
  const Grid grid{{-1.5, -1.5}, {1.5, 1.5}, {64, 64}};
  const Model model{
      Box{grid.lower, grid.upper}, {QuadraticPotential{1.0}}, {LogarithmicInteraction{}}, infinity};
  const Density start = reference::density_of(
      grid, [](const std::vector<double>& x) { return x[0] * x[0] + x[1] * x[1] < 0.25 ? 1.0 : 0.0; });
  const State state = run_to(model, start, {.scheme = Scheme::SecondOrderUpwind, .tolerance = 1e-3}, 1.0);
  // dm2/dt = -2 m2 + 1 whatever the shape.
  const double exact = 0.5 + (second_moment(start) - 0.5) * std::exp(-2.0);
  EXPECT_NEAR(second_moment(state.density), exact, 2e-3);
  const std::size_t centre = 32 * 64 + 32;
  EXPECT_NEAR(state.density.averages[centre],
              1.0 / (std::numbers::pi * std::pow(self_similar_radius(0.0, 2.0, 0.5, 1.0), 2.0)), 0.01);
}

TEST(Evolution, StopsWhenTheDensityConcentrates) {
  // theta log r with beta theta = 8 > 4: m2 = 2 (0.12)^2 - 4 t reaches 0 before t = 0.0072.
  const Grid grid{{-1.0, -1.0}, {1.0, 1.0}, {96, 96}};
  const Density start = reference::density_of(grid, [](const std::vector<double>& x) {
    return std::exp(-(x[0] * x[0] + x[1] * x[1]) / (2.0 * 0.12 * 0.12));
  });
  Result result;
  const State above = run_to(Model{Box{grid.lower, grid.upper}, {}, {LogarithmicInteraction{-8.0}}, 1.0},
                             start, {.tolerance = 1e-2}, 0.02, &result);
  EXPECT_EQ(result.status, RunStatus::Concentrated);
  EXPECT_GT(above.clock.time, 0.004);
  EXPECT_LT(above.clock.time, 0.014);
  EXPECT_NEAR(mass(above.density), 1.0, 1e-12);
  EXPECT_FALSE(result.message.empty());
  run_to(Model{Box{grid.lower, grid.upper}, {}, {LogarithmicInteraction{-2.0}}, 1.0}, start,
         {.tolerance = 1e-2}, 0.02, &result);
  EXPECT_EQ(result.status, RunStatus::Completed);
}

TEST(Evolution, UsesEachAxisOwnSpacing) {
  // V = y^2 on a 1 x 4 box with 8 x 16 cells stays uniform in x and equals the one-dimensional run.
  const Grid plane{{0.0, -2.0}, {1.0, 2.0}, {8, 16}}, line{{-2.0}, {2.0}, {16}};
  const auto squared = std::make_shared<ExpressionFunction>("y^2", std::vector<std::string>{"x", "y"});
  const Model parabola{Box{plane.lower, plane.upper}, {ExpressionPotential{squared}}, {}, 3.0};
  const State two = run_to(parabola, reference::uniform_on(plane), {.timestep = 0.05}, 1.0);
  const State one = run_to(Model{Box{{-2.0}, {2.0}}, {QuadraticPotential{2.0}}, {}, 3.0},
                           reference::uniform_on(line), {.timestep = 0.05}, 1.0);
  for (std::size_t cell = 0; cell < 128; ++cell)
    EXPECT_NEAR(two.density.averages[cell], one.density.averages[cell % 16], 1e-13);
}

TEST(Evolution, LinearModesOfTheTorusGrowAtTheirRates) {
  // Around the uniform state of period L: d/dt log(amplitude of exp(i k x)) = -k^2 (1/beta + What(k)/L); for
  // the periodised W = -chi log|x| in one dimension What(k) = chi pi/|k|; for W = -K cos(x - y): K/2 - 1/beta
  // at k = 1.
  const double pi = std::numbers::pi, beta = 2.0;
  const auto growth = [&](const Model& model, double k) {
    const Grid grid = grid_on(model.domain, {128});
    const auto amplitude = [&](const Density& density) {
      double sum = 0.0;
      for (std::size_t i = 0; i < 128; ++i) sum += density.averages[i] * std::cos(k * grid.center(0, i));
      return sum;
    };
    const Density start = reference::density_of(
        grid, [&](const std::vector<double>& x) { return 1.0 + 1e-5 * std::cos(k * x[0]); });
    const State state = run_to(model, start, {.timestep = 0.002}, 0.1);
    return std::log(amplitude(state.density) / amplitude(start)) / 0.1;
  };
  const Torus torus{{0.0}, {2.0 * pi}};
  EXPECT_NEAR(growth(Model{torus, {}, {CosineInteraction{3.0}}, beta}, 1.0), 1.5 - 0.5, 1e-3);
  for (const double k : {1.0, 3.0}) {
    const double exact = -k * k * (0.5 + 1.5 * pi / (k * 2.0 * pi));
    EXPECT_NEAR(growth(Model{torus, {}, {LogarithmicInteraction{1.5}}, beta}, k), exact, -3e-3 * exact);
  }
}

TEST(Evolution, KeepsItsStructureInDiscAndBall) {
  for (const std::size_t dimension : {2U, 3U}) {
    const Model model{Ball{std::vector<double>(dimension, 0.5), 1.3},
                      {QuadraticPotential{1.0}},
                      {RieszInteraction{.exponent = 0.5, .strength = 0.4}},
                      3.0};
    const Grid grid = grid_on(model.domain, std::vector<std::size_t>(dimension, dimension == 2 ? 21 : 10));
    const MeanField field(model, grid, {});
    State state{.density = reference::density_of(grid, [](const std::vector<double>& x) {
                  return 1.0 + 0.5 * std::sin(x[0] + 2.0 * x[1]);
                })};
    double previous = infinity;
    run(field, state, {.tolerance = 1e-3}, Schedule::at({0.0, 4.0}), {},
        [&](const Clock&) -> std::optional<RunStatus> {
          EXPECT_NEAR(mass(state.density), 1.0, 1e-13);
          EXPECT_GE(*std::min_element(state.density.averages.begin(), state.density.averages.end()), 0.0);
          EXPECT_LE(state.diagnostics.energy.free_energy, previous + 1e-12);
          previous = state.diagnostics.energy.free_energy;
          return {};
        });
    EXPECT_LT(state.diagnostics.dissipation, 1e-5);
    for (std::size_t cell = 0; cell < grid.cell_count(); ++cell) {
      EXPECT_EQ(state.density.averages[cell] == 0.0, grid.volume_fractions[cell] == 0.0);
    }
    // Both schemes share the cut-cell semi-discretisation.
    const Density start = reference::density_of(
        grid, [](const std::vector<double>& x) { return 1.0 + 0.5 * std::sin(x[0] + 2.0 * x[1]); });
    if (dimension == 2) {
      const State implicit = run_to(model, start, {.tolerance = 1e-5}, 0.05);
      const State explicit_state =
          run_to(model, start, {.scheme = Scheme::MethodOfLines, .tolerance = 1e-4}, 0.05);
      double distance = 0.0;
      for (std::size_t cell = 0; cell < grid.cell_count(); ++cell) {
        distance += std::abs(implicit.density.averages[cell] - explicit_state.density.averages[cell]) *
                    grid.volume_fractions[cell] * grid.cell_volume();
      }
      EXPECT_LT(distance, 1e-5);
    }
  }
}

TEST(Evolution, SurvivesEmptyCellsUnderASteepPotential) {
  // beta times the potential drops by 700 per face; half of the cells are empty.
  const Grid grid{{0.0}, {1.0}, {16}};
  const Model model{Box{{0.0}, {1.0}}, {PolynomialPotential{{0.0, 700.0 * 16.0}}}, {}, 1.0};
  Density start{grid, std::vector<double>(16, 0.0)};
  for (std::size_t i = 8; i < 16; ++i) start.averages[i] = 2.0;
  Result result;
  const State state = run_to(model, start, {}, 1.0, &result);
  EXPECT_EQ(result.status, RunStatus::Completed) << result.message;
  EXPECT_GE(*std::min_element(state.density.averages.begin(), state.density.averages.end()), 0.0);
  EXPECT_NEAR(state.density.averages[0], 16.0, 1e-10);
  EXPECT_TRUE(std::isfinite(state.diagnostics.energy.free_energy));
}

TEST(Evolution, NeverAcceptsAStateThatIsNotFinite) {
  const Grid grid{{-1.0}, {1.0}, {16}};
  const Model model{Box{{-1.0}, {1.0}}, {PolynomialPotential{{0.0, 0.0, 0.0, 0.0, 1e6}}}, {}, 1.0};
  const MeanField field(model, grid, {});
  State state{.density = reference::uniform_on(grid), .next_timestep = 10.0};
  int asked = 0;
  const Result result = run(field, state, {.scheme = Scheme::MethodOfLines, .tolerance = 1e-3},
                            Schedule::at({0.0, 100.0}), {}, [&](const Clock&) -> std::optional<RunStatus> {
                              for (const double value : state.density.averages)
                                EXPECT_TRUE(std::isfinite(value) && value >= 0.0);
                              if (++asked == 300) return RunStatus::StoppedByRule;
                              return {};
                            });
  EXPECT_EQ(result.status, RunStatus::StoppedByRule);
  EXPECT_GT(result.statistics.rejected_state + result.statistics.rejected_error, 0);
  EXPECT_GT(state.clock.time, 0.0);
}

TEST(Evolution, RefusesAPotentialThatIsNotANumber) {
  const Grid grid{{-1.0}, {1.0}, {8}};
  const Model model{
      Box{{-1.0}, {1.0}},
      {ExpressionPotential{std::make_shared<ExpressionFunction>("log(x)", std::vector<std::string>{"x"})}},
      {},
      1.0};
  Result result;
  const Density start = reference::uniform_on(grid);
  const State state = run_to(model, start, {}, 1.0, &result);
  EXPECT_EQ(result.status, RunStatus::NotFinite);
  EXPECT_EQ(state.density.averages, start.averages);
  EXPECT_EQ(result.last_good.step, 0);
}

TEST(Evolution, TreatsOneCellAndZeroDurationAsTheSensibleLimits) {
  const Grid grid{{0.0}, {1.0}, {1}};
  const Model model{Box{{0.0}, {1.0}}, {QuadraticPotential{1.0}}, {LogarithmicInteraction{}}, 1.0};
  EXPECT_EQ(run_to(model, reference::uniform_on(grid), {}, 1.0).density.averages[0], 1.0);
  const MeanField field(model, grid, {});
  State state{.density = reference::uniform_on(grid)};
  int seen = 0;
  EXPECT_EQ(
      run(field, state, {}, Schedule::at({0.0}), [&](const Clock&, const State&) { ++seen; }, {}).status,
      RunStatus::Completed);
  EXPECT_EQ(seen, 1);
}

TEST(Evolution, KeepsMassOnFourCells) {
  const Grid grid{{0.0}, {1.0}, {4}};
  const Model model{Box{{0.0}, {1.0}}, {}, {}, 1.0};
  const State state = run_to(model, Density{grid, {4.0, 0.0, 0.0, 0.0}}, {}, 1.0);
  EXPECT_NEAR(mass(state.density), 1.0, 1e-13);
  for (const double value : state.density.averages) EXPECT_NEAR(value, 1.0, 1e-3);
}

}  // namespace
}  // namespace rieszflow::pde
