#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <string>

#include "solvers/pde/evolution.hpp"
#include "solvers/pde/scharfetter_gummel.hpp"
#include "tests/pde/references.hpp"

/// What the time schemes declare (pde::Properties), measured.
namespace rieszflow::pde {
namespace {

using reference::l1_distance;
using reference::observed_order;

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Outcome {
  State state;
  Result result;
};

Outcome evolve(const Model& model, Density start, const Options& options, double end,
               const StopRule& stop = {}) {
  const MeanField field(model, start.grid, {});
  State state{.density = std::move(start)};
  const Result result = run(field, state, options, Schedule::at({0.0, end}), {}, stop);
  return {std::move(state), result};
}

TEST(Schemes, HaveTheirOrdersInTime) {
  for (const Scheme scheme : schemes()) {
    // A smooth positive problem; for the upwind scheme a smooth repulsive flow without noise, far from walls.
    const bool is_cold = scheme == Scheme::SecondOrderUpwind;
    const std::size_t cells = scheme == Scheme::MethodOfLines ? 12 : is_cold ? 80 : 64;
    const double half_length = is_cold ? 3.0 : 1.0;
    const Grid grid{{-half_length}, {half_length}, {cells}};
    const Model model =
        is_cold ? Model{Box{grid.lower, grid.upper}, {}, {GaussianInteraction{1.0, 1.0}}, infinity}
                : Model{Box{grid.lower, grid.upper},
                        {DoubleWellPotential{0.25, 0.5}},
                        {GaussianInteraction{-0.5, 0.3}, LogarithmicInteraction{0.2}},
                        2.0};
    Density start{grid, reference::gaussian_averages(grid, 0.1, 0.6)};
    if (!is_cold) {  // past the layer that the start has at the walls
      start = reference::density_of(
          grid, [](const std::vector<double>& x) { return 1.0 + 0.6 * std::sin(2.0 * x[0]); });
      start = evolve(model, start, {.tolerance = 1e-6}, 0.05).state.density;
    }
    // Explicit schemes need steps below their bounds, and steps for which the leading term shows.
    const double end = scheme == Scheme::MethodOfLines ? 0.04 : is_cold ? 0.5 : 0.4;
    const double coarse = scheme == Scheme::MethodOfLines ? 10.0 : 20.0;
    const auto solution = [&](double steps) {
      const Outcome outcome = evolve(model, start, {.scheme = scheme, .timestep = end / steps}, end);
      EXPECT_EQ(outcome.result.status, RunStatus::Completed) << name(scheme) << outcome.result.message;
      EXPECT_EQ(outcome.result.statistics.accepted, static_cast<std::int64_t>(steps)) << name(scheme);
      return outcome.state.density.averages;
    };
    const std::vector<double> exact = solution(64.0 * coarse);
    std::vector<double> errors;
    for (const double factor : {1.0, 2.0, 4.0})
      errors.push_back(l1_distance(grid, solution(factor * coarse), exact));
    EXPECT_NEAR(observed_order(errors), order(scheme), 0.3)
        << name(scheme) << ": " << errors[0] << " " << errors[1] << " " << errors[2];
  }
}

/// Random models and rough starts with empty cells, from long steps: which refusals occur.
TEST(Schemes, StayPositiveAndDissipateAtEveryStepWhereTheyDeclareIt) {
  for (const Scheme scheme : schemes()) {
    const bool is_cold = scheme == Scheme::SecondOrderUpwind;
    std::mt19937_64 engine(21);
    const auto uniform = [&](double low, double high) {
      return std::uniform_real_distribution<double>(low, high)(engine);
    };
    Statistics total;
    const double round_off = scheme == Scheme::StabilisedExplicit ? 3e-12 : 1e-12;  // many stages a step
    const int trials = scheme == Scheme::EnergyStable ? 150 : 60;
    for (int trial = 0; trial < trials; ++trial) {
      const std::size_t dimension = trial % 6 == 5 ? 3 : trial % 2 == 1 ? 2 : 1;
      Grid grid;
      for (std::size_t axis = 0; axis < dimension; ++axis) {
        grid.lower.push_back(-1.0);
        grid.upper.push_back(uniform(0.5, 1.5));
        grid.cells.push_back(2 + engine() % (dimension == 1 ? 60 : dimension == 2 ? 12 : 6));
      }
      Model model{Box{grid.lower, grid.upper},
                  {CosinePotential{uniform(-1.0, 1.0), 4.0}},
                  {LogarithmicInteraction{}},
                  1.0};
      model.inverse_temperature = is_cold ? infinity : std::pow(10.0, uniform(-1.0, 2.0));
      const double sign = trial % 4 < 2 ? 1.0 : -1.0;
      Interaction& interaction = model.interactions[0];
      if (trial % 3 == 0) {
        interaction = LogarithmicInteraction{sign * uniform(0.1, 2.0)};
      } else if (trial % 3 == 1) {
        interaction = GaussianInteraction{sign * uniform(0.1, 3.0), uniform(0.1, 1.0)};
      } else {
        interaction = RieszInteraction{.exponent = uniform(-0.9, 0.9), .strength = sign};
      }
      const Density start = reference::density_of(
          grid, [&](const std::vector<double>&) { return std::max(0.0, uniform(-0.5, 1.0)) + 1e-12; });
      const double timestep = std::pow(10.0, uniform(-4.0, 3.0));
      double previous = infinity;
      const MeanField field(model, grid, {});
      State state{.density = start};
      const Result result = run(
          field, state, {.scheme = scheme, .timestep = timestep}, Schedule::at({0.0, 4.0 * timestep}), {},
          [&](const Clock& clock) -> std::optional<RunStatus> {
            EXPECT_NEAR(mass(state.density), 1.0, round_off) << name(scheme);
            EXPECT_GE(*std::min_element(state.density.averages.begin(), state.density.averages.end()), 0.0);
            EXPECT_LE(state.diagnostics.energy.free_energy, previous + 1e-12 * (1.0 + std::abs(previous)));
            EXPECT_TRUE(std::isfinite(state.diagnostics.dissipation));
            EXPECT_GE(state.diagnostics.dissipation, 0.0);
            previous = state.diagnostics.energy.free_energy;
            if (clock.step == 12) return RunStatus::StoppedByRule;
            return {};
          });
      EXPECT_NE(result.status, RunStatus::NotFinite) << name(scheme) << " " << trial << result.message;
      total.accepted += result.statistics.accepted;
      total.rejected_energy += result.statistics.rejected_energy;
      total.rejected_state += result.statistics.rejected_state;
      total.rejected_solve += result.statistics.rejected_solve;
    }
    EXPECT_GT(total.accepted, trials);
    EXPECT_EQ(total.rejected_state == 0, properties(scheme).positive_at_every_step) << name(scheme);
    if (properties(scheme).positive_at_every_step) {  // else long steps are refused before F could grow
      EXPECT_EQ(total.rejected_energy == 0, properties(scheme).decays_at_every_step)
          << name(scheme) << " " << total.rejected_energy;
    }
    EXPECT_EQ(properties(scheme).decays_at_every_step || total.rejected_solve == 0, true);
    RecordProperty(std::string(name(scheme)) + "_unsolved", std::to_string(total.rejected_solve));
  }
}

TEST(Schemes, KeepGibbsStatesWhereTheyDeclareIt) {
  const Grid grid{{-1.0, -1.0}, {1.0, 2.0}, {12, 9}};
  for (const Scheme scheme : schemes()) {
    if (!properties(scheme).keeps_gibbs_states) continue;
    const double beta = scheme == Scheme::LimitedSemiImplicit ? 200.0 : 5.0;
    const Model model{Box{grid.lower, grid.upper}, {PolynomialPotential{{0.0, 0.2, 0.3}}}, {}, beta};
    const MeanField field(model, grid, {});
    Density gibbs{grid, std::vector<double>(grid.cell_count())};
    for (std::size_t i = 0; i < gibbs.averages.size(); ++i)
      gibbs.averages[i] = std::exp(-beta * field.external_potential()[i]);
    const double total = mass(gibbs);
    for (double& value : gibbs.averages) value /= total;
    const Outcome outcome = evolve(model, gibbs, {.scheme = scheme}, 1.0);
    // At steps near the edge of stability an explicit scheme lets round-off grow up to its tolerance.
    const double bound = properties(scheme).positive_at_every_step ? 1e-11 : 1e-8;
    EXPECT_EQ(outcome.result.status, RunStatus::Completed) << name(scheme) << outcome.result.message;
    for (std::size_t i = 0; i < gibbs.averages.size(); ++i) {
      EXPECT_NEAR(outcome.state.density.averages[i] / gibbs.averages[i], 1.0, bound) << name(scheme);
    }
  }
}

TEST(Schemes, AgreeInTwoDimensionsAndOnTheDisc) {
  for (const bool on_disc : {false, true}) {
    const Model model{on_disc ? Domain(Ball{{0.0, 0.0}, 1.0}) : Domain(Box{{-1.0, -1.0}, {1.0, 1.5}}),
                      {QuadraticPotential{1.0}},
                      {RieszInteraction{.exponent = 0.5, .strength = 0.4}},
                      3.0};
    const Grid grid = grid_on(model.domain, {14, 15});
    const Density start = reference::density_of(
        grid, [](const std::vector<double>& x) { return 1.0 + 0.5 * std::sin(x[0] + 2.0 * x[1]); });
    const std::vector<double> exact =
        evolve(model, start, {.scheme = Scheme::MethodOfLines, .tolerance = 1e-7}, 0.2)
            .state.density.averages;
    for (const Scheme scheme : {Scheme::SemiImplicit, Scheme::StabilisedExplicit, Scheme::EnergyStable}) {
      const Outcome outcome = evolve(model, start, {.scheme = scheme, .tolerance = 1e-4}, 0.2);
      EXPECT_EQ(outcome.result.status, RunStatus::Completed) << name(scheme) << outcome.result.message;
      double distance = 0.0;
      for (std::size_t i = 0; i < exact.size(); ++i) {
        const double fraction = grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[i];
        distance += std::abs(outcome.state.density.averages[i] - exact[i]) * fraction * grid.cell_volume();
      }
      EXPECT_LT(distance, 4e-4) << name(scheme);
    }
  }
}

/// Gaussians in V = kappa |x|^2/2 with W = alpha |x - y|^2/2: repulsive and attractive flows almost without
/// noise.
TEST(Schemes, LimitedFluxesAreOfSecondOrderAtLargePecletNumbers) {
  const double beta = 1e4, start_mean = 0.2;
  for (const double alpha : {-1.2, 0.5}) {
    const double kappa = alpha < 0.0 ? 0.4 : 0.5, end = 0.5, rate = kappa + alpha;
    const double start_deviation = alpha < 0.0 ? 0.3 : 0.6;
    const auto exact = [&](const Grid& grid, double t) {
      const double limit = 1.0 / (beta * rate);
      const double variance = limit + (start_deviation * start_deviation - limit) * std::exp(-2.0 * rate * t);
      return reference::gaussian_averages(grid, start_mean * std::exp(-kappa * t), std::sqrt(variance));
    };
    std::vector<double> errors, fitted_errors;
    for (const std::size_t cells : {100U, 200U, 400U}) {
      const Grid grid{{-4.0}, {4.0}, {cells}};
      const Model model{
          Box{grid.lower, grid.upper}, {QuadraticPotential{kappa}}, {QuadraticInteraction{alpha}}, beta};
      const Density start{grid, exact(grid, 0.0)};
      const auto error = [&](std::optional<Scheme> scheme) {
        const Outcome outcome = evolve(model, start, {.scheme = scheme, .tolerance = 1e-5}, end);
        EXPECT_EQ(outcome.result.status, RunStatus::Completed) << outcome.result.message;
        if (!scheme) {
          EXPECT_EQ(outcome.result.statistics.limited, outcome.result.statistics.accepted);
        }
        return l1_distance(grid, outcome.state.density.averages, exact(grid, end));
      };
      errors.push_back(error(std::nullopt));
      EXPECT_EQ(errors.back(), error(Scheme::LimitedSemiImplicit));
      fitted_errors.push_back(error(Scheme::SemiImplicit));
    }
    EXPECT_GT(observed_order(errors), 1.8)
        << "alpha = " << alpha << ": " << errors[0] << " " << errors[1] << " " << errors[2];
    EXPECT_LT(observed_order(fitted_errors), 1.2) << "alpha = " << alpha;
    EXPECT_LT(errors.back(), 0.1 * fitted_errors.back());
  }
}

TEST(Schemes, LimitingFactorsLieBetweenZeroAndTwoAndKeepTheSignOfTheDissipation) {
  // One implicit limited step of any length: mass, positivity, and F up to the interaction of the change, on
  // boxes, tori and discs, at every temperature.
  std::mt19937_64 engine(5);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine);
  };
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t dimension = 1 + static_cast<std::size_t>(trial) % 3;
    Grid grid;
    grid.periodic = trial % 4 == 3;
    for (std::size_t axis = 0; axis < dimension; ++axis) {
      grid.lower.push_back(0.0);
      grid.upper.push_back(uniform(0.5, 2.0));
      grid.cells.push_back(1 + engine() % (dimension == 1 ? 150 : dimension == 2 ? 20 : 8));
    }
    if (trial % 12 == 1) grid = grid_on(Ball{{0.0, 0.0}, 1.0}, {13, 14});
    const double beta = trial % 5 == 0 ? infinity : std::pow(10.0, uniform(-1.0, 5.0));
    std::vector<double> potential(grid.cell_count()), rho(grid.cell_count()), next(rho.size()),
        scratch(rho.size());
    const auto fraction = [&](std::size_t i) {
      return grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[i];
    };
    for (std::size_t i = 0; i < rho.size(); ++i) {
      potential[i] = uniform(-1.0, 1.0);
      rho[i] = fraction(i) > 0.0 ? std::max(0.0, uniform(-0.5, 1.0)) : 0.0;
    }
    ScharfetterGummel fluxes(grid, beta, 1);
    fluxes.implicit_step(potential, std::pow(10.0, uniform(-5.0, 4.0)), rho, next, Fluxes::Limited);
    double before = 0.0, after = 0.0, energy_before = 0.0, energy_after = 0.0, scale = 1e-300;
    for (std::size_t i = 0; i < rho.size(); ++i) {
      EXPECT_GE(next[i], 0.0);
      before += fraction(i) * rho[i];
      after += fraction(i) * next[i];
      const auto energy = [&](double value) {
        return fraction(i) * (potential[i] * value + (value > 0.0 ? value * std::log(value) / beta : 0.0));
      };
      energy_before += energy(rho[i]);
      energy_after += energy(next[i]);
      scale += std::abs(energy(rho[i])) + std::abs(energy(next[i]));
    }
    EXPECT_NEAR(after, before, 1e-13 * (1.0 + before));
    EXPECT_LE(energy_after, energy_before + 1e-13 * scale) << trial;
    EXPECT_GE(fluxes.dissipation(potential, rho, scratch, Fluxes::Limited), 0.0);
    EXPECT_TRUE(std::isfinite(fluxes.dissipation(potential, rho, scratch, Fluxes::Limited)));
  }
}

TEST(Schemes, LongLinesAndManyLinesTakeTheSameLimitedStep) {
  // A line is solved in pieces, a plane of one-cell columns line by line.
  std::mt19937_64 engine(6);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  for (const bool periodic : {false, true}) {
    Grid line{{0.0}, {1.0}, {203}}, plane{{0.0, 0.0}, {1.0, 1.0}, {203, 1}};
    line.periodic = plane.periodic = periodic;
    std::vector<double> potential(203), rho(203), of_line(203), of_plane(203);
    for (std::size_t i = 0; i < 203; ++i) {
      potential[i] = uniform(engine);
      rho[i] = uniform(engine);
    }
    ScharfetterGummel(line, 50.0, 1).implicit_step(potential, 1e-3, rho, of_line, Fluxes::Limited);
    ScharfetterGummel(plane, 50.0, 1).implicit_step(potential, 1e-3, rho, of_plane, Fluxes::Limited);
    for (std::size_t i = 0; i < 203; ++i) EXPECT_NEAR(of_line[i], of_plane[i], 1e-13);
  }
}

TEST(Schemes, EnergyStableStepsOfAnyLengthDecayUnderStrongRepulsion) {
  // The log gas at beta = 100: semi-implicit steps above 0.01 raise F, the energy-stable ones never do.
  const Grid grid{{-1.0}, {1.0}, {256}};
  const Model model{Box{grid.lower, grid.upper}, {}, {LogarithmicInteraction{}}, 100.0};
  const Density start = reference::density_of(
      grid, [](const std::vector<double>& x) { return 1.0 + 0.3 * std::cos(std::numbers::pi * x[0]); });
  std::int64_t refused = 0;
  for (const double timestep : {0.03, 0.3, 3.0}) {
    const auto statistics = [&](Scheme scheme) {
      const Outcome outcome = evolve(model, start, {.scheme = scheme, .timestep = timestep}, 4.0 * timestep);
      EXPECT_EQ(outcome.result.status, RunStatus::Completed) << outcome.result.message;
      return outcome.result.statistics;
    };
    refused += statistics(Scheme::SemiImplicit).rejected_energy;
    const Statistics stable = statistics(Scheme::EnergyStable);
    EXPECT_EQ(stable.rejected_energy, 0);
    EXPECT_LE(stable.rejected_solve,
              timestep < 1.0 ? 0 : 4);  // what Anderson mixing does not solve is halved
  }
  EXPECT_GT(refused, 0);
}

TEST(Schemes, EnergyDefectVanishesWithTheTimestep) {
  // F(t) - F(0) + integral of the dissipation: second order where scheme and quadrature are.
  const Grid grid{{-1.0}, {1.0}, {64}};
  const Model model{
      Box{grid.lower, grid.upper}, {DoubleWellPotential{0.25, 0.5}}, {LogarithmicInteraction{0.2}}, 2.0};
  Density start = reference::density_of(
      grid, [](const std::vector<double>& x) { return 1.0 + 0.6 * std::sin(2.0 * x[0]); });
  start = evolve(model, start, {.tolerance = 1e-6}, 0.1).state.density;  // past the layer at the walls
  for (const Scheme scheme : {Scheme::SemiImplicit, Scheme::EnergyStable, Scheme::StabilisedExplicit}) {
    std::vector<double> defects;
    double fall = 0.0;
    for (const double steps : {20.0, 40.0, 80.0}) {
      const Outcome outcome = evolve(model, start, {.scheme = scheme, .timestep = 0.4 / steps}, 0.4);
      defects.push_back(std::abs(outcome.state.energy_defect));
      const MeanField field(model, grid, {});
      fall = field.free_energy(start).free_energy - outcome.state.diagnostics.energy.free_energy;
    }
    EXPECT_NEAR(observed_order(defects), order(scheme), 0.35)
        << name(scheme) << defects[0] << " " << defects[2];
    EXPECT_LT(defects.back(), 0.03 * fall) << name(scheme);
  }
}

TEST(Schemes, DissipationBesideEmptyCellsIsFinite) {
  // Two cells, one empty, no potential: J = rho/(beta h), and beta mu counts as 52 log 2 apart.
  const Grid grid{{0.0}, {1.0}, {2}};
  ScharfetterGummel fluxes(grid, 4.0, 1);
  std::vector<double> scratch(2);
  const double h = 0.5, flow = 2.0 / (4.0 * h);
  EXPECT_NEAR(fluxes.dissipation(std::vector<double>{0.0, 0.0}, std::vector<double>{2.0, 0.0}, scratch),
              flow * 52.0 * std::numbers::ln2 / 4.0, 1e-12);
}

}  // namespace
}  // namespace rieszflow::pde
