#include <gtest/gtest.h>

#include <numbers>
#include <string>

#include "core/expects.hpp"
#include "helpers.hpp"

namespace rieszflow::particle {
namespace {

struct Case {
  std::string name;
  Model model;
  Scheme scheme;
  PairSum::Options summation{};
};

std::vector<Case> cases() {
  const Domain square = Box{{-1.0, -1.0}, {1.0, 1.0}}, interval = Box{{-1.0}, {1.0}};
  const Domain circle = Torus{{-std::numbers::pi}, {std::numbers::pi}}, ball = Ball{{0.0, 0.0, 0.0}, 1.0};
  std::vector<Case> all;
  for (const Scheme scheme : {Scheme::Projected, Scheme::Reflected, Scheme::Mala}) {
    const std::string label(name(scheme));
    all.push_back(
        {label + " gaussian square", {square, {QuadraticPotential{}}, {GaussianInteraction{}}, 3.0}, scheme});
    all.push_back({label + " circle", {circle, {}, {CosineInteraction{2.0}}, 1.0}, scheme});
    all.push_back({label + " coulomb ball", {ball, {}, {RieszInteraction{.exponent = 1.0}}, 2.0}, scheme});
    // Close pairs at every step: the substeps are part of what is repeated.
    if (scheme != Scheme::Projected) {
      all.push_back({label + " log interval", {interval, {}, {LogarithmicInteraction{}}, 2.0}, scheme});
    }
  }
  const Model smooth{square, {QuadraticPotential{}}, {GaussianInteraction{}}, 3.0};
  all.push_back({"random batches",
                 smooth,
                 Scheme::Reflected,
                 {.method = PairSum::Method::RandomBatch, .batch_size = 3}});
  all.push_back({"fast sum", smooth, Scheme::Reflected, {.method = PairSum::Method::Fast}});
  all.push_back({"single precision",
                 {interval, {}, {LogarithmicInteraction{}}, 2.0},
                 Scheme::Reflected,
                 {.method = PairSum::Method::Direct, .precision = PairSum::Precision::Single}});
  return all;
}

std::vector<double> positions_after(const Case& c, std::int64_t steps, int threads, std::size_t replicas,
                                    std::size_t particles) {
  State state{uniform_ensemble(c.model.domain, replicas, particles), {}};
  const double h = 0.002;
  PairSum::Options summation = c.summation;
  summation.threads = threads;
  const Result result =
      run(c.model, state, {.scheme = c.scheme, .timestep = h, .seed = 9, .summation = summation},
          Schedule::every(0.1, 0.0, h * static_cast<double>(steps)), {}, {});
  EXPECT_EQ(result.status, RunStatus::Completed) << c.name << ": " << result.message;
  return state.ensemble.positions;
}

TEST(Run, HasTheSameBitsForOneTwoAndThreeThreads) {
  for (const Case& c : cases()) {
    for (const std::size_t replicas : {1, 3}) {
      const std::size_t particles = c.scheme == Scheme::Mala ? 60 : 1000;
      const auto one = positions_after(c, 10, 1, replicas, particles);
      EXPECT_EQ(one, positions_after(c, 10, 2, replicas, particles)) << c.name;
      EXPECT_EQ(one, positions_after(c, 10, 3, replicas, particles)) << c.name;
    }
  }
}

TEST(Run, ResumedInTheMiddleOfAnOutputIntervalHasTheBitsOfTheWholeRun) {
  for (const Case& c : cases()) {
    const Options options{.scheme = c.scheme, .timestep = 0.0021, .seed = 9, .summation = c.summation};
    const Schedule schedule = Schedule::every(0.07, 0.0, 0.42);
    const auto start = uniform_ensemble(c.model.domain, 2, 20);
    State whole{start, {}};
    run(c.model, whole, options, schedule, {}, {});
    State parts{start, {}};
    const auto interrupt_at = [](std::int64_t step) {
      return [step](const Clock& clock) {
        return clock.step == step ? std::optional(RunStatus::Interrupted) : std::nullopt;
      };
    };
    for (const std::int64_t step : {1, 97, 102, 170}) {
      const Result result = run(c.model, parts, options, schedule, {}, interrupt_at(step));
      ASSERT_EQ(result.status, RunStatus::Interrupted) << c.name;
      ASSERT_EQ(parts.clock.step, step);
      parts = State{parts.ensemble, parts.clock};  // what a checkpoint holds
    }
    ASSERT_EQ(run(c.model, parts, options, schedule, {}, {}).status, RunStatus::Completed);
    EXPECT_EQ(parts.ensemble.positions, whole.ensemble.positions) << c.name;
    EXPECT_EQ(parts.clock.step, whole.clock.step);
    EXPECT_EQ(parts.clock.time, whole.clock.time);
  }
}

TEST(Run, ReplicasOfOneSeedDifferAndSeedsDiffer) {
  const Case c = cases()[1];
  State state{{2, 3, 1, {0.1, 0.2, 0.3, 0.1, 0.2, 0.3}}, {}};
  State other = state;
  run(c.model, state, {.timestep = 0.01, .seed = 1}, Schedule::at({0.0, 0.05}), {}, {});
  run(c.model, other, {.timestep = 0.01, .seed = 2}, Schedule::at({0.0, 0.05}), {}, {});
  EXPECT_NE(state.ensemble.positions[0], state.ensemble.positions[3]);
  EXPECT_NE(state.ensemble.positions, other.ensemble.positions);
}

TEST(Run, ObservesEveryScheduledTimeOnceAndExactly) {
  const Case c = cases()[0];
  const Schedule schedule = Schedule::every(0.1, 0.0, 1.0);
  State state{uniform_ensemble(c.model.domain, 1, 3), {}};
  std::vector<double> times;
  const Observer<State> observe = [&](const Clock& clock, const State& s) {
    times.push_back(clock.time);
    EXPECT_EQ(clock.time, s.clock.time);
  };
  const StopRule interrupt = [](const Clock& clock) {
    return clock.time == 0.3 || clock.step == 55 ? std::optional(RunStatus::Interrupted) : std::nullopt;
  };
  const Options options{.timestep = 0.01, .seed = 1};
  int parts = 1;
  while (run(c.model, state, options, schedule, observe, interrupt).status == RunStatus::Interrupted) ++parts;
  EXPECT_GE(parts, 2);
  EXPECT_EQ(times, schedule.times());
  EXPECT_EQ(state.clock.step, 100);
}

TEST(Run, DividesEachIntervalIntoEqualStepsNoLongerThanTheTimestep) {
  const Case c = cases()[0];
  State state{uniform_ensemble(c.model.domain, 1, 2), {}};
  std::vector<double> times = {0.0};
  run(c.model, state, {.timestep = 0.03, .seed = 1}, Schedule::at({0.0, 0.1, 0.13, 1.0}), {},
      [&](const Clock& clock) -> std::optional<RunStatus> {
        times.push_back(clock.time);
        return {};
      });
  ASSERT_EQ(times.size(), 1u + 4u + 1u + 29u - 1u);  // the rule is not asked at the end
  for (std::size_t k = 1; k < times.size(); ++k) EXPECT_LE(times[k] - times[k - 1], 0.03 * (1.0 + 1e-9));
  EXPECT_EQ(times[4], 0.1);
  EXPECT_EQ(times[5], 0.13);
  EXPECT_EQ(state.clock.time, 1.0);
}

TEST(Run, AScheduleOfOneTimeOnlyObserves) {
  const Case c = cases()[0];
  State state{uniform_ensemble(c.model.domain, 1, 2), {}};
  int calls = 0;
  const Result result = run(c.model, state, {.timestep = 0.1}, Schedule::at({0.0}),
                            [&](const Clock&, const State&) { ++calls; }, {});
  EXPECT_EQ(result.status, RunStatus::Completed);
  EXPECT_EQ(calls, 1);
}

TEST(Run, RefusesAStepOfNoLengthAndParticlesOutside) {
  const Case c = cases()[0];
  State state{uniform_ensemble(c.model.domain, 1, 2), {}};
  EXPECT_THROW(run(c.model, state, {.timestep = 0.0}, Schedule::at({0.0, 1.0}), {}, {}),
               PreconditionViolation);
  state.ensemble.positions[1] = 1.5;
  EXPECT_THROW(run(c.model, state, {.timestep = 0.1}, Schedule::at({0.0, 1.0}), {}, {}),
               PreconditionViolation);
  state.ensemble.positions[1] = std::nan("");
  EXPECT_THROW(run(c.model, state, {.timestep = 0.1}, Schedule::at({0.0, 1.0}), {}, {}),
               PreconditionViolation);
}

TEST(Mala, RefusesZeroTemperature) {
  Model model = cases()[0].model;
  model.inverse_temperature = infinity;
  State state{uniform_ensemble(model.domain, 1, 2), {}};
  EXPECT_THROW(run(model, state, {.scheme = Scheme::Mala, .timestep = 0.1}, Schedule::at({0.0, 1.0}), {}, {}),
               PreconditionViolation);
}

}  // namespace
}  // namespace rieszflow::particle
