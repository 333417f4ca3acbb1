#include "core/compensated_sum.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace rieszflow {
namespace {

TEST(CompensatedSum, KeepsWhatAPlainSumLoses) {
  CompensatedSum sum;
  for (const double term : {1.0, 1e100, 1.0, -1e100}) sum.add(term);
  EXPECT_EQ(sum.value(), 2.0);
}

TEST(CompensatedSum, OfManyTenthsIsExactToOneRounding) {
  CompensatedSum sum;
  for (int i = 0; i < 1'000'000; ++i) sum.add(0.1);
  EXPECT_DOUBLE_EQ(sum.value(), 100000.0);
}

TEST(CompensatedSum, AnInfinityStays) {
  CompensatedSum sum;
  for (const double term : {1.0, std::numeric_limits<double>::infinity(), 1.0}) sum.add(term);
  EXPECT_EQ(sum.value(), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace rieszflow
