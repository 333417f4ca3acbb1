#include <gtest/gtest.h>

#include "tests/pde_references/cases.hpp"

namespace rieszflow::reference {
namespace {

class References : public testing::TestWithParam<Case> {};

TEST_P(References, HaveTheirErrorsAndOrders) {
  const Case& c = GetParam();
  const Table table = solved(c);
  for (std::size_t k = 0; k < c.cells.size(); ++k)
    EXPECT_TRUE(table.solutions[k].completed) << c.cells[k] << " cells";
  for (const Claim& claim : c.claims) {
    const auto& quantities = table.solutions.back().quantities;
    std::size_t q = 0;
    while (q < quantities.size() && quantities[q].name != claim.quantity) ++q;
    ASSERT_LT(q, quantities.size()) << claim.quantity;
    EXPECT_LE(quantities[q].error(), claim.error) << claim.quantity;
    if (claim.lowest_order > 0.0) {
      EXPECT_GE(table.order(c, q), claim.lowest_order) << claim.quantity;
      EXPECT_LE(table.order(c, q), claim.highest_order) << claim.quantity;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Exact, References, testing::ValuesIn(cases()),
                         [](const auto& parameter) { return parameter.param.name; });

/// Independent digits of the two-piece Dyson law.
TEST(DysonFlow, HasItsTabulatedDensity) {
  EXPECT_NEAR(dyson_density(0.0, 2.0), 0.15915494309, 1e-10);
  EXPECT_NEAR(dyson_density(0.5, 2.0), 0.16975215242, 1e-10);
  EXPECT_NEAR(dyson_density(1.0, 2.0), 0.17748044241, 1e-10);
  EXPECT_NEAR(dyson_density(0.5, 1.0), 0.20772131693, 1e-10);
  EXPECT_EQ(dyson_density(0.0, 0.5), 0.0);
  EXPECT_NEAR(dyson_density(1.5, 0.5), 0.30044099531, 1e-10);
  EXPECT_EQ(dyson_density(2.0998, 0.5), 0.0);
  EXPECT_GT(dyson_density(2.0997, 0.5), 0.0);
}

}  // namespace
}  // namespace rieszflow::reference
