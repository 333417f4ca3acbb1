#include "solvers/stationary/branches.hpp"

#include <gtest/gtest.h>

#include <boost/math/special_functions/bessel.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "tests/pde/references.hpp"

namespace rieszflow::stationary {
namespace {

const Box interval{{-3.0}, {3.0}};
const Grid line{{-3.0}, {3.0}, {200}};

/// V = x^4/4 - x^2/2 + tilt x, W = |x - y|^2/2.
Model desai_zwanzig(double tilt) {
  return {interval, {PolynomialPotential{{0.0, tilt, -0.5, 0.0, 0.25}}}, {QuadraticInteraction{1.0}}, 1.0};
}

double first_moment(const State& state) { return mean(state.solution.density)[0]; }

TEST(Branches, OfTheDesaiZwanzigModelForkAtItsCriticalTemperature) {
  const MeanField field(desai_zwanzig(0.0), line, {});
  const std::vector<Parameters> path{{1.0, 1.0}, {2.15, 1.0}, {2.25, 1.0}, {3.0, 1.0}, {4.0, 1.0}};
  const auto found = branches(field, path, {});
  for (std::size_t k = 0; k < path.size(); ++k) {
    const bool ordered = path[k].inverse_temperature > 2.18844;
    ASSERT_EQ(found[k].size(), ordered ? 3U : 1U) << path[k].inverse_temperature;
    for (const State& state : found[k]) EXPECT_LE(state.solution.residual, 1e-12);
    // The branch of mean zero is one branch, stable before the transition only.
    const State& symmetric = found[k].back();
    EXPECT_EQ(symmetric.branch, found[0][0].branch);
    EXPECT_NEAR(first_moment(symmetric), 0.0, 1e-7);
    EXPECT_EQ(symmetric.stability, ordered ? Stability::Unstable : Stability::Stable);
    if (!ordered) continue;
    for (const std::size_t s : {0U, 1U}) EXPECT_EQ(found[k][s].stability, Stability::Stable);
    EXPECT_NEAR(first_moment(found[k][0]), -first_moment(found[k][1]), 1e-8);
    EXPECT_NEAR(found[k][0].solution.energy.free_energy, found[k][1].solution.energy.free_energy, 1e-11);
    EXPECT_LT(found[k][0].solution.energy.free_energy, symmetric.solution.energy.free_energy);
  }
  EXPECT_NEAR(std::abs(first_moment(found[4][0])), 0.78755040684382, 3e-4);
}

TEST(Branches, GoOnThroughUnstableStatesToTheirFold) {
  // A tilted potential: one branch for every temperature; a minimum and a saddle are born together at a fold.
  const MeanField field(desai_zwanzig(0.02), line, {});
  std::vector<Parameters> path;
  for (double beta = 2.0; beta < 4.01; beta += 0.25) path.push_back({beta, 1.0});
  const auto found = branches(field, path, {});
  ASSERT_EQ(found.front().size(), 1U);
  ASSERT_EQ(found.back().size(), 3U);
  bool born = false;
  for (std::size_t k = 0; k < path.size(); ++k) {
    EXPECT_EQ(found[k][0].branch, found[0][0].branch);
    EXPECT_EQ(found[k][0].stability, Stability::Stable);
    EXPECT_LT(first_moment(found[k][0]), 0.0);
    if (born) {
      EXPECT_EQ(found[k].size(), 3U);
    }
    if (found[k].size() == 3U) {
      born = true;
      EXPECT_EQ(found[k][1].stability, Stability::Stable);
      EXPECT_EQ(found[k][2].stability, Stability::Unstable);
      EXPECT_EQ(found[k][1].branch, found.back()[1].branch);
      EXPECT_EQ(found[k][2].branch, found.back()[2].branch);
      EXPECT_GT(first_moment(found[k][1]), first_moment(found[k][2]));
    }
  }
}

TEST(Branches, OfRotatorsInTheStrengthCarryTheirSymmetry) {
  const double pi = std::numbers::pi;
  const Grid grid{{0.0}, {2.0 * pi}, {128}, true};
  const MeanField field(Model{Torus{{0.0}, {2.0 * pi}}, {}, {CosineInteraction{1.0}}, 1.0}, grid, {});
  const std::vector<Parameters> path{{1.0, 1.9}, {1.0, 2.2}, {1.0, 3.0}};
  const auto found = branches(field, path, {});
  ASSERT_EQ(found[0].size(), 1U);
  for (const std::size_t k : {1U, 2U}) {
    ASSERT_EQ(found[k].size(), 2U);  // the rotations are one state
    EXPECT_EQ(found[k][0].stability, Stability::Neutral);
    EXPECT_EQ(found[k][1].stability, Stability::Unstable);
    const double strength = path[k].strength;
    const double r = reference::root(
        [&](double x) {
          return x - boost::math::cyl_bessel_i(1, strength * x) / boost::math::cyl_bessel_i(0, strength * x);
        },
        0.1, 1.0);
    EXPECT_NEAR(found[k][0].solution.energy.free_energy,
                -std::log(2.0 * pi * boost::math::cyl_bessel_i(0, strength * r)) + 0.5 * strength * r * r,
                3e-4);
    EXPECT_NEAR(found[k][1].solution.energy.free_energy, -std::log(2.0 * pi), 1e-12);
  }
}

TEST(Branches, OfAConvexEnergyAreOneDownToZeroTemperature) {
  const Grid grid{{-1.0}, {1.0}, {128}};
  const MeanField field(Model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, 1.0}, grid, {});
  const std::vector<Parameters> path{
      {1.0, 1.0}, {30.0, 1.0}, {1000.0, 1.0}, {std::numeric_limits<double>::infinity(), 1.0}};
  const auto found = branches(field, path, {.random_starts = 2});
  for (const auto& states : found) {
    ASSERT_EQ(states.size(), 1U);
    EXPECT_EQ(states[0].branch, found[0][0].branch);
    EXPECT_EQ(states[0].stability, Stability::Stable);
  }
  // F of the family at beta = 1 is the exact one, at infinity half of log 2.
  EXPECT_NEAR(found[0][0].solution.energy.free_energy, -0.302820381313, 1e-5);
  EXPECT_NEAR(found[3][0].solution.energy.free_energy, 0.5 * std::log(2.0), 1e-3);
}

TEST(Landscape, StrengthScalesTheInteraction) {
  const MeanField one(Model{interval, {QuadraticPotential{1.0}}, {LogarithmicInteraction{1.0}}, 2.0}, line,
                      {});
  const MeanField three(Model{interval, {QuadraticPotential{1.0}}, {LogarithmicInteraction{3.0}}, 5.0}, line,
                        {});
  const Result scaled =
      solve(Landscape(one, {.inverse_temperature = 5.0, .strength = 3.0}), reference::uniform_on(line), {});
  const Result direct = solve(three, reference::uniform_on(line), {});
  EXPECT_LT(reference::l1_distance(line, scaled.density.averages, direct.density.averages), 1e-11);
  EXPECT_NEAR(scaled.energy.free_energy, direct.energy.free_energy, 1e-12);
  EXPECT_NEAR(scaled.chemical_potential, direct.chemical_potential, 1e-11);
}

}  // namespace
}  // namespace rieszflow::stationary
