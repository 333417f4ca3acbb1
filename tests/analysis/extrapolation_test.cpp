#include "analysis/extrapolation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "core/expects.hpp"
#include "solvers/pde/evolution.hpp"
#include "solvers/stationary/self_consistency.hpp"
#include "tests/pde/references.hpp"

namespace rieszflow {
namespace {

using Kind = Extrapolation::Kind;

std::vector<RefinedValue> sampled(const std::vector<double>& scales, const std::function<double(double)>& f) {
  std::vector<RefinedValue> values;
  for (const double h : scales) values.push_back({h, f(h)});
  return values;
}

TEST(Extrapolation, OfOnePowerIsExactForAnyRatioOfScales) {
  for (const double p : {0.25, 1.0, 1.5, 2.0, 4.0}) {
    for (const double sign : {1.0, -1.0}) {
      const auto values =
          sampled({0.3, 0.05, 0.1, 0.17}, [&](double h) { return 2.0 + sign * std::pow(h, p); });
      const Extrapolation result = extrapolated(values);
      EXPECT_EQ(result.kind, Kind::Converging);
      EXPECT_NEAR(result.order, p, 1e-8);
      EXPECT_NEAR(result.limit, 2.0, 1e-10);
      EXPECT_LE(std::abs(result.limit - 2.0), result.limit_error);
      EXPECT_NEAR(result.finest_error, std::pow(0.05, p), 1e-9);
      EXPECT_NEAR(extrapolated(values, p).limit, 2.0, 1e-14);
    }
  }
}

TEST(Extrapolation, ErrorBarsCoverTheErrorOfTwoTermExpansions) {
  // value = 1 + h^p + c h^q on halved grids, with the order given or measured.
  for (const double p : {0.5, 1.0, 1.5, 2.0}) {
    for (const double gap : {0.5, 1.0, 2.0}) {
      for (const double c : {-0.5, 0.5}) {
        const auto values = sampled({0.1, 0.05, 0.025, 0.0125}, [&](double h) {
          return 1.0 + std::pow(h, p) + c * std::pow(h, p + gap);
        });
        for (const Extrapolation& result : {extrapolated(values), extrapolated(values, p)}) {
          EXPECT_LE(std::abs(result.limit - 1.0), result.limit_error) << p << " " << gap << " " << c;
          EXPECT_LE(std::abs(values.back().value - 1.0), result.finest_error);
          EXPECT_LT(std::abs(result.limit - 1.0), std::abs(values.back().value - 1.0));
        }
      }
    }
  }
}

TEST(Extrapolation, SaysWhereThereIsNoOrder) {
  const Extrapolation still = extrapolated(sampled({0.4, 0.2, 0.1}, [](double) { return 3.0; }));
  EXPECT_EQ(still.kind, Kind::RoundOff);
  EXPECT_EQ(still.limit, 3.0);
  EXPECT_LT(still.limit_error, 1e-13);
  const Extrapolation swinging = extrapolated(std::vector<RefinedValue>{{0.4, 1.0}, {0.2, 2.0}, {0.1, 1.5}});
  EXPECT_EQ(swinging.kind, Kind::Oscillating);
  EXPECT_EQ(swinging.limit_error, 1.0);
  for (const auto& values : {std::vector<RefinedValue>{{0.4, 1.0}, {0.2, 2.0}, {0.1, 4.0}},
                             std::vector<RefinedValue>{{0.4, 1.0}, {0.2, 2.0}, {0.1, 0.0}}}) {
    EXPECT_EQ(extrapolated(values).kind, Kind::Diverging);
    EXPECT_EQ(extrapolated(values).finest_error, std::numeric_limits<double>::infinity());
  }
  EXPECT_THROW(extrapolated(std::vector<RefinedValue>{{0.4, 1.0}, {0.2, 2.0}}), PreconditionViolation);
}

TEST(Extrapolation, ErrorBarsCoverExactEquilibria) {
  // W = -log|x - y| on [-1, 1]: m2 = (c + 1)/(2 c + 3), c = beta/2; F at beta = 2 and 10.
  for (const double beta : {2.0, 10.0}) {
    std::vector<RefinedValue> moments, energies;
    for (const std::size_t cells : {64U, 128U, 256U, 512U}) {
      const Grid grid{{-1.0}, {1.0}, {cells}};
      const MeanField field(Model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, beta}, grid, {});
      const stationary::Result found = stationary::solve(field, reference::uniform_on(grid), {});
      moments.push_back({grid.spacing(0), second_moment(found.density)});
      energies.push_back({grid.spacing(0), found.energy.free_energy});
    }
    const Extrapolation moment = extrapolated(moments), energy = extrapolated(energies);
    const double exact_moment = (0.5 * beta + 1.0) / (beta + 3.0);
    const double exact_energy = beta == 2.0 ? 0.0358327192375 : 0.292546561068;
    EXPECT_LE(std::abs(moment.limit - exact_moment), moment.limit_error) << beta;
    EXPECT_LE(std::abs(energy.limit - exact_energy), energy.limit_error) << beta;
    EXPECT_LT(moment.limit_error, 5e-5) << beta;
    EXPECT_LT(energy.limit_error, 5e-5) << beta;
    // The extrapolated value is several times better than the finest one.
    EXPECT_LT(std::abs(energy.limit - exact_energy), 0.2 * std::abs(energies.back().value - exact_energy));
  }
}

TEST(Extrapolation, ErrorBarsCoverAnExactEvolution) {
  // V = x^2/2, W = |x - y|^2/4, beta = 2 from N(0.7, 0.4^2): F(1) = -0.151573793513.
  std::vector<RefinedValue> energies;
  std::vector<Density> densities;
  for (const std::size_t cells : {50U, 100U, 200U, 400U}) {
    const Grid grid{{-6.0}, {6.0}, {cells}};
    const MeanField field(
        Model{Box{{-6.0}, {6.0}}, {QuadraticPotential{1.0}}, {QuadraticInteraction{0.5}}, 2.0}, grid, {});
    pde::State state{.density = {grid, reference::gaussian_averages(grid, 0.7, 0.4)}};
    pde::run(field, state, {.tolerance = 1e-7}, Schedule::at({0.0, 1.0}), {}, {});
    energies.push_back({grid.spacing(0), state.diagnostics.energy.free_energy});
    densities.push_back(state.density);
  }
  const Extrapolation energy = extrapolated(energies, 2.0);
  EXPECT_NEAR(energy.order, 2.0, 0.05);
  EXPECT_LE(std::abs(energy.limit + 0.151573793513), energy.limit_error);
  EXPECT_LT(energy.limit_error, 5e-5);
  // Without the exact solution: the differences of neighbouring grids have the same order.
  EXPECT_NEAR(
      std::log2(l1_difference(densities[1], densities[2]) / l1_difference(densities[2], densities[3])), 2.0,
      0.1);
}

TEST(Acceleration, RemovesPowersOfUnknownOrderOneByOne) {
  // Exact for one power; two powers take two passes, which five values allow.
  std::vector<double> one, two;
  for (int k = 0; k < 5; ++k) {
    const double h = std::pow(0.5, k);
    one.push_back(3.0 + std::pow(h, 0.44));
    two.push_back(3.0 + std::pow(h, 0.44) + 0.7 * h);
  }
  EXPECT_NEAR(accelerated(std::span(one).first(3)).limit, 3.0, 1e-12);
  const Accelerated first = accelerated(std::span(two).first(3)), second = accelerated(two);
  EXPECT_GT(std::abs(first.limit - 3.0), 0.05);
  EXPECT_LT(std::abs(second.limit - 3.0), 0.03);
  EXPECT_LT(std::abs(second.limit - 3.0), second.limit_error);
  // Nothing to extrapolate: differences that grow or change sign.
  EXPECT_EQ(accelerated(std::vector{1.0, 2.0, 4.0}).limit, 4.0);
  EXPECT_EQ(accelerated(std::vector{1.0, 2.0, 1.5}).limit, 1.5);
  EXPECT_EQ(accelerated(std::vector{1.0, 2.0, 1.5}).limit_error, 0.5);
}

TEST(Coarsening, KeepsMassAndUndoesARefinement) {
  const Grid plane{{0.0, 0.0}, {1.0, 2.0}, {4, 6}};
  Density density =
      reference::density_of(plane, [](const std::vector<double>& x) { return 1.0 + x[0] + x[0] * x[1]; });
  const Density coarse = coarsened(density, 2);
  EXPECT_EQ(coarse.grid.cells, (std::vector<std::size_t>{2, 3}));
  EXPECT_NEAR(mass(coarse), 1.0, 1e-14);
  EXPECT_NEAR(coarse.averages[1],
              0.25 * (density.averages[2] + density.averages[3] + density.averages[8] + density.averages[9]),
              1e-14);
  EXPECT_EQ(l1_difference(density, coarse), 0.0);

  const Grid disc = grid_on(Ball{{0.0, 0.0}, 1.0}, {24, 24});
  const Density uniform = reference::uniform_on(disc), blocks = coarsened(uniform, 3);
  EXPECT_NEAR(mass(blocks), 1.0, 1e-13);
  const Grid direct = grid_on(Ball{{0.0, 0.0}, 1.0}, {8, 8});
  for (std::size_t cell = 0; cell < direct.cell_count(); ++cell) {
    EXPECT_NEAR(blocks.grid.volume_fractions[cell], direct.volume_fractions[cell], 1e-9);
  }
}

}  // namespace
}  // namespace rieszflow
