#include "potentials/interaction.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/expects.hpp"
#include "difference.hpp"

namespace rieszflow {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::shared_ptr<const ExpressionFunction> text(const char* value, std::vector<std::string> variables) {
  return std::make_shared<const ExpressionFunction>(value, std::move(variables));
}

std::vector<Interaction> every_interaction() {
  return {RieszInteraction{0.5, 1.3, 0.0},
          RieszInteraction{1.0, 0.7, 0.2},
          RieszInteraction{-1.0, 2.0, 0.0},
          RieszInteraction{-1.5, -0.4, 0.1},
          LogarithmicInteraction{1.1, 0.0},
          LogarithmicInteraction{-0.6, 0.3},
          GaussianInteraction{0.9, 0.7},
          MorseInteraction{1.0, 0.5, 0.6, 1.5},
          QuadraticInteraction{1.2},
          CosineInteraction{0.8},
          ExpressionInteraction{text("exp(-r)/r", {"r"})},
          LowRankInteraction{0.5, {text("sin(x)*y", {"x", "y"}), text("x^2 - y", {"x", "y"})}}};
}

TEST(Interaction, RadialValuesAreTheirFormulas) {
  const double r = 0.7;
  EXPECT_DOUBLE_EQ(radial(RieszInteraction{1.5, 2.0, 0.0}, r * r).value, 2.0 * std::pow(r, -1.5) / 1.5);
  EXPECT_DOUBLE_EQ(radial(RieszInteraction{-1.0, 2.0, 0.0}, r * r).value, -2.0 * r);
  EXPECT_DOUBLE_EQ(radial(RieszInteraction{-2.0, 2.0, 0.0}, r * r).value, -r * r);
  EXPECT_DOUBLE_EQ(radial(RieszInteraction{1.0, 2.0, 0.5}, r * r).value, 2.0 / std::hypot(r, 0.5));
  EXPECT_DOUBLE_EQ(radial(LogarithmicInteraction{2.0, 0.0}, r * r).value, -2.0 * std::log(r));
  EXPECT_DOUBLE_EQ(radial(GaussianInteraction{2.0, 0.5}, r * r).value, 2.0 * std::exp(-r * r / 0.5));
  EXPECT_DOUBLE_EQ(radial(MorseInteraction{2.0, 0.5, 1.0, 3.0}, r * r).value,
                   2.0 * std::exp(-2.0 * r) - std::exp(-r / 3.0));
  EXPECT_DOUBLE_EQ(radial(QuadraticInteraction{2.0}, r * r).value, r * r);
  EXPECT_NEAR(radial(ExpressionInteraction{text("exp(-r)/r", {"r"})}, r * r).value, std::exp(-r) / r, 1e-15);
}

TEST(Interaction, ForcesAreMinusTheGradientsInTheFirstArgument) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  for (const Interaction& w : every_interaction())
    for (int trial = 0; trial < 30; ++trial) {
      const std::vector<double> y{uniform(random), uniform(random)};
      const std::vector<double> x{y[0] + 1.0 + 0.5 * uniform(random), y[1] + uniform(random)};
      std::vector<double> force{1.0, 2.0};  // added to, not overwritten
      add_force(w, x, y, force);
      const auto expected =
          force_by_differences([&](std::span<const double> p) { return value(w, p, y); }, x, 5e-3);
      // Pairs are at least 0.5 apart: the seventh derivatives stay below 7!/0.5^8 = 1.3e6, times 5e-3^6 /
      // 140.
      EXPECT_NEAR(force[0] - 1.0, expected[0], 1e-9) << name(w);
      EXPECT_NEAR(force[1] - 2.0, expected[1], 1e-9) << name(w);
    }
}

TEST(Interaction, IsSymmetricAndNewtonsThirdLawHoldsForThoseOfTheDifference) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  for (const Interaction& w : every_interaction())
    for (int trial = 0; trial < 30; ++trial) {
      const std::vector<double> x{uniform(random), uniform(random)};
      const std::vector<double> y{uniform(random), uniform(random)};
      EXPECT_EQ(value(w, x, y), value(w, y, x)) << name(w);
      if (std::holds_alternative<LowRankInteraction>(w)) continue;  // not a function of x - y
      std::vector<double> on_x(2, 0.0);
      std::vector<double> on_y(2, 0.0);
      add_force(w, x, y, on_x);
      add_force(w, y, x, on_y);
      EXPECT_EQ(on_x[0], -on_y[0]) << name(w);
      EXPECT_EQ(on_x[1], -on_y[1]) << name(w);
    }
}

TEST(Interaction, RadialOnesAreInvariantUnderRotationsAndTranslations) {
  const std::vector<double> x{0.3, -0.8};
  const std::vector<double> y{-0.5, 0.2};
  const double c = std::cos(0.7);
  const double s = std::sin(0.7);
  const auto moved = [&](const std::vector<double>& p) {
    return std::vector<double>{c * p[0] - s * p[1] + 5.0, s * p[0] + c * p[1] - 3.0};
  };
  for (const Interaction& w : every_interaction()) {
    if (!is_radial(w)) continue;
    EXPECT_NEAR(value(w, moved(x), moved(y)), value(w, x, y), 1e-14) << name(w);
    std::vector<double> force(2, 0.0);
    std::vector<double> rotated(2, 0.0);
    add_force(w, x, y, force);
    add_force(w, moved(x), moved(y), rotated);
    EXPECT_NEAR(rotated[0], c * force[0] - s * force[1], 1e-14) << name(w);
    EXPECT_NEAR(rotated[1], s * force[0] + c * force[1], 1e-14) << name(w);
  }
  EXPECT_FALSE(is_radial(CosineInteraction{}));
  EXPECT_FALSE(is_radial(LowRankInteraction{}));
  EXPECT_THROW(radial(CosineInteraction{}, 1.0), PreconditionViolation);
}

TEST(Interaction, CoincidentPointsOfASingularKernelHaveInfiniteEnergyAndNoForce) {
  const std::vector<double> x{0.1, 0.2};
  for (const auto& [w, expected] : std::vector<std::pair<Interaction, double>>{
           {RieszInteraction{0.5, 1.0, 0.0}, infinity},
           {RieszInteraction{0.5, -1.0, 0.0}, -infinity},
           {LogarithmicInteraction{1.0, 0.0}, infinity},
           {LogarithmicInteraction{-1.0, 0.0}, -infinity},
           {ExpressionInteraction{text("exp(-r)/r", {"r"})}, infinity}}) {
    EXPECT_TRUE(is_singular(w));
    EXPECT_EQ(value(w, x, x), expected);
    std::vector<double> force{3.0, 4.0};
    add_force(w, x, x, force);
    EXPECT_EQ(force, (std::vector<double>{3.0, 4.0}));
  }
}

TEST(Interaction, CoincidentPointsOfABoundedKernelJustWork) {
  const std::vector<double> x{0.1, 0.2};
  for (const Interaction& w : every_interaction()) {
    if (is_singular(w) || std::holds_alternative<LowRankInteraction>(w)) continue;
    EXPECT_TRUE(std::isfinite(value(w, x, x))) << name(w);
    std::vector<double> force{0.0, 0.0};
    add_force(w, x, x, force);
    EXPECT_EQ(force, (std::vector<double>{0.0, 0.0})) << name(w);
  }
  EXPECT_FALSE(is_singular(RieszInteraction{0.5, 1.0, 1e-3}));
  EXPECT_FALSE(is_singular(RieszInteraction{-1.0, 1.0, 0.0}));
  EXPECT_FALSE(is_singular(RieszInteraction{0.5, 0.0, 0.0}));
  EXPECT_FALSE(is_singular(LogarithmicInteraction{1.0, 1e-3}));
}

TEST(Interaction, PairsNextToEachOtherStayFinite) {
  const std::vector<double> x{0.0};
  const std::vector<double> y{1e-12};
  for (const Interaction& w :
       std::vector<Interaction>{RieszInteraction{0.75, 1.0, 0.0}, LogarithmicInteraction{}}) {
    std::vector<double> force{0.0};
    add_force(w, x, y, force);
    EXPECT_TRUE(std::isfinite(force[0]));
    EXPECT_LT(force[0], 0.0);
    EXPECT_TRUE(std::isfinite(value(w, x, y)));
  }
}

}  // namespace
}  // namespace rieszflow
