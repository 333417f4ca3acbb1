#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numbers>

#include "helpers.hpp"
#include "potentials/expression.hpp"

namespace rieszflow::particle {
namespace {

bool all_inside(const Model& model, const ParticleEnsemble& ensemble) {
  for (std::size_t i = 0; i < ensemble.replica_count * ensemble.particle_count; ++i) {
    if (!contains(model.domain,
                  std::span(ensemble.positions).subspan(i * ensemble.dimension, ensemble.dimension))) {
      return false;
    }
  }
  return true;
}

std::vector<Domain> walled_domains() {
  return {Box{{-1.0}, {1.0}}, Box{{0.0, -2.0}, {1.0, 3.0}}, Ball{{0.5, 0.5}, 1.0}, Ball{{0.0, 0.0, 0.0}, 2.0},
          Torus{{0.0}, {1.0}}};
}

TEST(Walls, HoldForStepsTenBoxLengthsLong) {
  for (const Domain& domain : walled_domains()) {
    for (const Scheme scheme : {Scheme::Projected, Scheme::Reflected, Scheme::Mala}) {
      const Model model{domain, {}, {}, 1.0};
      State state{uniform_ensemble(domain, 2, 20), {}};
      const Result result =
          run(model, state, {.scheme = scheme, .timestep = 500.0}, Schedule::at({0.0, 5000.0}), {}, {});
      EXPECT_EQ(result.status, RunStatus::Completed) << result.message;
      EXPECT_TRUE(all_inside(model, state.ensemble));
    }
  }
}

TEST(Walls, HoldForParticlesThatStartOnThem) {
  const Model box{Box{{-1.0, -1.0}, {1.0, 1.0}}, {}, {LogarithmicInteraction{}}, 4.0};
  const Model ball{Ball{{0.0, 0.0}, 1.0}, {}, {LogarithmicInteraction{}}, 4.0};
  const double a = std::sqrt(0.5);
  for (const Scheme scheme : {Scheme::Reflected, Scheme::Mala}) {
    State corners{{1, 4, 2, {-1.0, -1.0, 1.0, 1.0, 1.0, -1.0, std::nextafter(1.0, 0.0), 0.5}}, {}};
    EXPECT_EQ(
        run(box, corners, {.scheme = scheme, .timestep = 0.01}, Schedule::at({0.0, 1.0}), {}, {}).status,
        RunStatus::Completed);
    EXPECT_TRUE(all_inside(box, corners.ensemble));
    State sphere{{1, 3, 2, {1.0, 0.0, 0.0, -1.0, a, a}}, {}};
    project(ball.domain, std::span(sphere.ensemble.positions).subspan(4, 2));
    EXPECT_EQ(
        run(ball, sphere, {.scheme = scheme, .timestep = 0.01}, Schedule::at({0.0, 1.0}), {}, {}).status,
        RunStatus::Completed);
    EXPECT_TRUE(all_inside(ball, sphere.ensemble));
  }
}

TEST(ClosePairs, AVanishingDistanceThrowsNobodyOut) {
  for (const double distance : {1e-12, 5e-17, 0.0}) {
    for (const Interaction& w :
         std::vector<Interaction>{LogarithmicInteraction{}, RieszInteraction{.exponent = 0.5},
                                  RieszInteraction{.exponent = 0.9, .strength = 1e3}}) {
      for (const double timestep : {1e-4, 0.1, 1e3}) {
        for (const Scheme scheme : {Scheme::Reflected, Scheme::Mala}) {
          const Model model{Box{{-1.0}, {1.0}}, {}, {w}, 2.0};
          State state{{1, 2, 1, {0.0, distance}}, {}};
          const Result result = run(model, state, {.scheme = scheme, .timestep = timestep, .seed = 1},
                                    Schedule::at({0.0, 20.0 * timestep}), {}, {});
          EXPECT_EQ(result.status, RunStatus::Completed) << result.message;
          EXPECT_TRUE(all_inside(model, state.ensemble));
          EXPECT_NE(state.ensemble.positions[0], state.ensemble.positions[1]);
        }
      }
    }
  }
}

TEST(ClosePairs, AllParticlesOnOnePointPart) {
  for (const std::size_t d : {1, 2, 3}) {
    const Model model{Box{std::vector(d, -1.0), std::vector(d, 1.0)}, {}, {LogarithmicInteraction{}}, 2.0};
    for (const Scheme scheme : {Scheme::Reflected, Scheme::Mala}) {
      State state{{1, 30, d, std::vector<double>(30 * d, 0.3)}, {}};
      EXPECT_EQ(
          run(model, state, {.scheme = scheme, .timestep = 0.01}, Schedule::at({0.0, 0.5}), {}, {}).status,
          RunStatus::Completed);
      double closest = 0.0;
      PairSum(model, 30, {}).closest_pairs(state.ensemble.positions, 1, std::span(&closest, 1));
      EXPECT_GT(closest, 0.0);
    }
  }
}

TEST(ClosePairs, AttractionDoesNotBlowUpTheState) {
  const Model model{Ball{{0.0, 0.0}, 1.0}, {}, {LogarithmicInteraction{-3.0}}, 8.0};
  State state{uniform_ensemble(model.domain, 1, 20), {}};
  const Result result = run(model, state, {.timestep = 0.01, .seed = 2}, Schedule::at({0.0, 3.0}), {}, {});
  EXPECT_EQ(result.status, RunStatus::Completed) << result.message;
  EXPECT_TRUE(all_inside(model, state.ensemble));
}

TEST(ClosePairs, SmoothModelsTakeNoSubsteps) {
  const Model smooth{Box{{-1.0}, {1.0}}, {QuadraticPotential{}}, {GaussianInteraction{}}, 2.0};
  const Model singular{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, 2.0};
  State a{uniform_ensemble(smooth.domain, 1, 20), {}}, b = a;
  EXPECT_EQ(run(smooth, a, {.timestep = 0.01}, Schedule::at({0.0, 1.0}), {}, {}).statistics.substeps, 0);
  EXPECT_GT(run(singular, b, {.timestep = 0.01}, Schedule::at({0.0, 1.0}), {}, {}).statistics.substeps, 0);
}

TEST(ZeroTemperature, ACoincidentPairOfASingularInteractionIsRefusedWithASentence) {
  const Model model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, infinity};
  State state{{2, 2, 1, {0.1, 0.2, 0.5, 0.5}}, {}};
  const Result result = run(model, state, {.timestep = 0.01}, Schedule::at({0.0, 1.0}), {}, {});
  EXPECT_EQ(result.status, RunStatus::NotFinite);
  EXPECT_NE(result.message.find("replica 1"), std::string::npos) << result.message;
  EXPECT_EQ(state.clock.step, 0);
}

TEST(ProjectedEuler, StopsWithASentenceWhereProjectionMergesSingularParticles) {
  const Model model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, 2.0};
  State state{uniform_ensemble(model.domain, 1, 10), {}};
  const Result result = run(model, state, {.scheme = Scheme::Projected, .timestep = 0.0025, .seed = 1},
                            Schedule::at({0.0, 100.0}), {}, {});
  EXPECT_EQ(result.status, RunStatus::NotFinite);
  EXPECT_NE(result.message.find("same point"), std::string::npos) << result.message;
  // What is left is the last good state: no two particles together.
  EXPECT_EQ(result.last_good.step, state.clock.step);
  std::ranges::sort(state.ensemble.positions);
  EXPECT_EQ(std::ranges::adjacent_find(state.ensemble.positions), state.ensemble.positions.end());
}

TEST(ProjectedEuler, RunsWithASoftenedInteraction) {
  const Model model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{1.0, 0.1}}, 2.0};
  State state{uniform_ensemble(model.domain, 1, 10), {}};
  EXPECT_EQ(run(model, state, {.scheme = Scheme::Projected, .timestep = 0.0025, .seed = 1},
                Schedule::at({0.0, 5.0}), {}, {})
                .status,
            RunStatus::Completed);
}

TEST(Run, StopsAtTheLastGoodClockWhenThePotentialIsNotANumber) {
  const auto wall = std::make_shared<ExpressionFunction>("log(x + 0.9)", std::vector<std::string>{"x"});
  for (const Scheme scheme : {Scheme::Projected, Scheme::Reflected, Scheme::Mala}) {
    const Model model{Box{{-1.0}, {1.0}}, {ExpressionPotential{wall}}, {}, 0.5};
    State state{{1, 50, 1, std::vector<double>(50, 0.5)}, {}};
    const Result result = run(model, state, {.scheme = scheme, .timestep = 0.01, .seed = 1},
                              Schedule::every(1.0, 0.0, 50.0), {}, {});
    EXPECT_EQ(result.status, RunStatus::NotFinite) << name(scheme);
    EXPECT_FALSE(result.message.empty());
    EXPECT_EQ(result.last_good.step, state.clock.step);
    EXPECT_LT(state.clock.time, 50.0);
    EXPECT_TRUE(all_inside(model, state.ensemble));
  }
}

TEST(Run, StopsWhenAnExplicitStepBlowsUp) {
  const Model model{WholeSpace{1}, {PolynomialPotential{{0.0, 0.0, 0.0, 0.0, 1.0}}}, {}, 1.0};
  State state{{1, 1, 1, {10.0}}, {}};
  const Result result = run(model, state, {.timestep = 0.1}, Schedule::at({0.0, 100.0}), {}, {});
  EXPECT_EQ(result.status, RunStatus::NotFinite);
  EXPECT_TRUE(std::isfinite(state.ensemble.positions[0]));
  State calm{{1, 1, 1, {10.0}}, {}};
  EXPECT_EQ(
      run(model, calm, {.scheme = Scheme::Mala, .timestep = 0.1}, Schedule::at({0.0, 100.0}), {}, {}).status,
      RunStatus::Completed);
}

TEST(Run, OneParticleAndNoParticleAreModelsToo) {
  const Model model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, 2.0};
  for (const Scheme scheme : {Scheme::Projected, Scheme::Reflected, Scheme::Mala}) {
    for (const std::size_t particles : {0, 1}) {
      State state{{2, particles, 1, std::vector<double>(2 * particles, 0.1)}, {}};
      EXPECT_EQ(
          run(model, state, {.scheme = scheme, .timestep = 0.1}, Schedule::at({0.0, 1.0}), {}, {}).status,
          RunStatus::Completed);
    }
  }
}

}  // namespace
}  // namespace rieszflow::particle
