#include "solvers/observer.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

TEST(Schedule, EveryTimeIsAProductAndTheLastIsTheEnd) {
  const auto times = Schedule::every(0.1, 0.0, 2.0).times();
  ASSERT_EQ(times.size(), 21u);
  for (std::size_t k = 0; k < 20; ++k) EXPECT_EQ(times[k], static_cast<double>(k) * 0.1);
  EXPECT_EQ(times.back(), 2.0);
}

TEST(Schedule, AnIntervalThatDoesNotDivideTheRunEndsAtTheEnd) {
  EXPECT_EQ(Schedule::every(0.4, 1.0, 2.0).times(), (std::vector<double>{1.0, 1.4, 1.8, 2.0}));
  EXPECT_EQ(Schedule::every(5.0, 1.0, 2.0).times(), (std::vector<double>{1.0, 2.0}));
}

TEST(Schedule, ARunOfNoLengthHasOneTime) {
  EXPECT_EQ(Schedule::every(0.1, 3.0, 3.0).times(), (std::vector<double>{3.0}));
}

TEST(Schedule, TimesIncreaseStrictlyForAwkwardIntervals) {
  for (const double interval : {1.0 / 3.0, 0.1, 0.7, 1e-3, 0.123456789}) {
    const auto times = Schedule::every(interval, 0.3, 7.3).times();
    for (std::size_t k = 1; k < times.size(); ++k) EXPECT_LT(times[k - 1], times[k]);
    EXPECT_GT(times.back() - times[times.size() - 2], 1e-6 * interval);
    EXPECT_EQ(times.back(), 7.3);
  }
}

TEST(Schedule, RefusesTimesThatDoNotIncrease) {
  EXPECT_THROW(Schedule::at({}), PreconditionViolation);
  EXPECT_THROW(Schedule::at({0.0, 1.0, 1.0}), PreconditionViolation);
  EXPECT_THROW(Schedule::every(0.0, 0.0, 1.0), PreconditionViolation);
  EXPECT_THROW(Schedule::every(0.1, 1.0, 0.0), PreconditionViolation);
}

TEST(RunStatus, EveryStatusHasItsOwnName) {
  const std::set<std::string_view> names = {name(RunStatus::Completed),      name(RunStatus::StoppedByRule),
                                            name(RunStatus::Interrupted),    name(RunStatus::NotFinite),
                                            name(RunStatus::LostPositivity), name(RunStatus::NotConverged),
                                            name(RunStatus::Concentrated)};
  EXPECT_EQ(names.size(), 7u);
}

}  // namespace
}  // namespace rieszflow
