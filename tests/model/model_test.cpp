#include "model/model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "model/density.hpp"
#include "model/probe.hpp"
#include "potentials/expression.hpp"

namespace rieszflow {
namespace {

constexpr double pi = std::numbers::pi;

std::shared_ptr<const ExpressionFunction> text(const char* value, std::vector<std::string> variables) {
  return std::make_shared<const ExpressionFunction>(value, std::move(variables));
}

struct Pair {
  Domain domain;
  Interaction interaction;
};

TEST(LegalPairs, AreAccepted) {
  const Box interval{{-1.0}, {1.0}};
  const Torus circle{{-pi}, {pi}};
  const Torus solid{{0.0, 0.0, 0.0}, {1.0, 2.0, 1.0}};
  const Ball ball{{0.0, 0.0, 0.0}, 1.0};
  const std::vector<Pair> legal = {
      {interval, RieszInteraction{0.75}},
      {interval, RieszInteraction{-1.0}},
      {interval, RieszInteraction{-3.0}},
      {interval, LogarithmicInteraction{}},
      {interval, GaussianInteraction{}},
      {interval, MorseInteraction{}},
      {interval, QuadraticInteraction{}},
      {interval, CosineInteraction{}},
      {interval, ExpressionInteraction{text("exp(-r)/r", {"r"})}},
      {interval, LowRankInteraction{1.0, {text("x", {"x"})}}},
      {ball, RieszInteraction{2.9}},
      {ball, RieszInteraction{1.0}},
      {WholeSpace{2}, RieszInteraction{1.5}},
      {WholeSpace{20}, GaussianInteraction{}},
      {circle, RieszInteraction{0.5}},
      {circle, RieszInteraction{-1.0}},
      {circle, LogarithmicInteraction{1.0, 0.1}},
      {circle, CosineInteraction{}},
      {circle, LowRankInteraction{1.0, {text("cos(x)", {"x"}), text("sin(2*x)", {"x"})}}},
      {Torus{{0.0, 0.0}, {2.0 * pi, 6.0 * pi}}, CosineInteraction{}},
      {solid, RieszInteraction{1.0}},
      {solid, GaussianInteraction{}},
      {solid, MorseInteraction{}}};
  for (const auto& [domain, interaction] : legal)
    EXPECT_EQ(refusal(domain, interaction), std::nullopt)
        << name(interaction) << " on domain " << domain.index();
}

TEST(LegalPairs, AllOthersAreRefusedWithTheReason) {
  const Box interval{{-1.0}, {1.0}};
  const Torus circle{{-pi}, {pi}};
  struct Refused {
    Domain domain;
    Interaction interaction;
    const char* reason;
  };
  const std::vector<Refused> refused = {
      {interval, RieszInteraction{0.0}, "type = \"log\""},
      {interval, RieszInteraction{1.0}, "below the dimension 1"},
      {Ball{{0.0, 0.0}, 1.0}, RieszInteraction{2.5}, "below the dimension 2"},
      {WholeSpace{3}, RieszInteraction{3.0}, "below the dimension 3"},
      {interval, RieszInteraction{std::nan("")}, "finite"},
      {interval, RieszInteraction{0.5, std::nan("")}, "finite"},
      {interval, RieszInteraction{0.5, 1.0, -0.1}, "softening"},
      {interval, LogarithmicInteraction{1.0, -0.1}, "softening"},
      {interval, GaussianInteraction{1.0, 0.0}, "length"},
      {interval, MorseInteraction{1.0, 0.0, 1.0, 1.0}, "lengths"},
      {circle, RieszInteraction{-2.0}, "exceed -2"},
      {circle, RieszInteraction{-3.5}, "exceed -2"},
      {circle, QuadraticInteraction{}, "no periodic meaning"},
      {circle, ExpressionInteraction{text("exp(-r)", {"r"})}, "no periodic meaning"},
      {Torus{{0.0}, {1.0}}, CosineInteraction{}, "multiple of 2 pi"},
      {Torus{{0.0, 0.0}, {2.0 * pi, pi}}, CosineInteraction{}, "along axis 1"},
      {circle, LowRankInteraction{1.0, {text("cos(x)", {"x"}), text("x", {"x"})}}, "\"x\" is not periodic"},
      {circle, LowRankInteraction{1.0, {text("sin(x/2)", {"x"})}}, "is not periodic"},
      {Torus{std::vector<double>(4, 0.0), std::vector<double>(4, 1.0)}, RieszInteraction{1.0},
       "dimensions 1 to 3"},
      {Torus{std::vector<double>(4, 0.0), std::vector<double>(4, 1.0)}, GaussianInteraction{},
       "dimensions 1 to 3"}};
  for (const auto& [domain, interaction, reason] : refused) {
    const auto sentence = refusal(domain, interaction);
    ASSERT_TRUE(sentence.has_value()) << reason;
    EXPECT_NE(sentence->find(reason), std::string::npos) << *sentence;
  }
}

std::string problem_with(const Domain& domain, Potential potential) {
  return problem(Model{domain, {std::move(potential)}, {}, 1.0}).value_or("");
}

TEST(ModelProblem, FindsWhereAPotentialIsNotANumber) {
  const Box interval{{-1.0}, {1.0}};
  const auto expression = [](const char* value) { return ExpressionPotential{text(value, {"x"})}; };
  EXPECT_EQ(problem_with(interval, expression("x^2")), "");
  EXPECT_NE(problem_with(interval, expression("log(x)")).find("not a number at (-1)"), std::string::npos);
  EXPECT_NE(problem_with(Box{{0.0}, {1.0}}, expression("log(x)")).find("-infinity at (0)"),
            std::string::npos);
  EXPECT_NE(problem_with(interval, expression("1/abs(x)")).find("infinite inside"), std::string::npos);
  EXPECT_NE(problem_with(interval, expression("sqrt(x-0.99)")).find("not a number"), std::string::npos);
  EXPECT_NE(problem_with(Ball{{0.0}, 1.0}, expression("sqrt(0.999-x)")).find("not a number at (1)"),
            std::string::npos);
}

TEST(ModelProblem, AHardWallOnTheBoundaryIsNone) {
  EXPECT_EQ(problem_with(Box{{-1.0}, {1.0}}, ExpressionPotential{text("-log(1-x^2)", {"x"})}), "");
  EXPECT_EQ(problem_with(Ball{{0.0, 0.0}, 1.0}, ExpressionPotential{text("1/max(0, 1-x^2-y^2)", {"x", "y"})}),
            "");
}

TEST(ModelProblem, TheTorusWantsPeriodicPotentials) {
  const Torus circle{{-pi}, {pi}};
  EXPECT_EQ(problem_with(circle, CosinePotential{1.0, 2.0}), "");
  EXPECT_EQ(problem_with(circle, ExpressionPotential{text("sin(x)^3", {"x"})}), "");
  EXPECT_NE(problem_with(circle, ExpressionPotential{text("x^3", {"x"})}).find("not periodic"),
            std::string::npos);
  EXPECT_NE(problem_with(circle, QuadraticPotential{1.0, {0.5}}).find("not periodic"), std::string::npos);
}

TEST(ModelProblem, ATableCoversItsDomain) {
  const auto table = [](double lower, double upper) {
    return TablePotential({lower}, {upper}, {4}, {0.0, 1.0, 2.0, 3.0}, "v.txt");
  };
  EXPECT_EQ(problem_with(Box{{0.0}, {1.0}}, table(0.0, 1.0)), "");
  EXPECT_NE(problem_with(Box{{0.0}, {1.0}}, table(0.1, 1.0)).find("table v.txt"), std::string::npos);
  EXPECT_NE(problem_with(WholeSpace{1}, table(0.1, 1.0)).find("whole space"), std::string::npos);
  EXPECT_NE(problem_with(Box{{0.0, 0.0}, {1.0, 1.0}}, table(0.0, 1.0)).find("1 axes"), std::string::npos);
}

TEST(ModelProblem, InteractionTextsAreTriedAtEveryDistance) {
  const auto with = [](const char* value) {
    return problem(Model{Box{{0.0}, {2.0}}, {}, {ExpressionInteraction{text(value, {"r"})}}, 1.0})
        .value_or("");
  };
  EXPECT_EQ(with("exp(-r)/r"), "");
  EXPECT_EQ(with("r == 0 ? 1 : sin(r)/r"), "");
  EXPECT_NE(with("sin(r)/r").find("not a number at r = 0; give its limit"), std::string::npos);
  EXPECT_NE(with("1/(r-1)").find("infinite at r = 1"), std::string::npos);
  EXPECT_NE(with("sqrt(1-r)").find("not a number"), std::string::npos);
}

TEST(ModelProblem, TemperatureAndRefusalsAreIncluded) {
  EXPECT_NE(problem(Model{Box{{0.0}, {1.0}}, {}, {}, 0.0}), std::nullopt);
  EXPECT_NE(problem(Model{Box{{0.0}, {1.0}}, {}, {}, std::nan("")}), std::nullopt);
  EXPECT_EQ(problem(Model{Box{{0.0}, {1.0}}, {}, {}, std::numeric_limits<double>::infinity()}), std::nullopt);
  EXPECT_EQ(problem(Model{Box{{0.0}, {1.0}}, {}, {RieszInteraction{0.0}}, 1.0}),
            refusal(Box{{0.0}, {1.0}}, RieszInteraction{0.0}));
}

TEST(Model, AddsItsTerms) {
  const Model model{Box{{-1.0, -1.0}, {1.0, 1.0}},
                    {QuadraticPotential{2.0, {}}, ExpressionPotential{text("x*y", {"x", "y"})}},
                    {GaussianInteraction{}},
                    1.0};
  const std::vector<double> x{0.5, -0.25};
  EXPECT_DOUBLE_EQ(potential(model, x), 0.3125 - 0.125);
  std::vector<double> force{0.0, 0.0};
  add_potential_force(model, x, force);
  EXPECT_DOUBLE_EQ(force[0], -1.0 + 0.25);
  EXPECT_DOUBLE_EQ(force[1], 0.5 - 0.5);
  const std::vector<double> points{0.5, -0.25, 0.1, 0.9};
  std::vector<double> values(2);
  potentials(model, points, values);
  EXPECT_EQ(values[0], potential(model, x));
  EXPECT_EQ(values[1], potential(model, std::vector<double>{0.1, 0.9}));
  EXPECT_FALSE(has_singular_interaction(model));
  EXPECT_TRUE(has_singular_interaction(Model{model.domain, {}, {LogarithmicInteraction{}}, 1.0}));
}

TEST(ProbePoints, LieInTheDomainAndReachItsWalls) {
  for (const Domain& domain : {Domain(Box{{-1.0, 2.0}, {1.0, 2.5}}), Domain(Ball{{0.3, -0.2, 1.0}, 0.7}),
                               Domain(Torus{{0.0}, {1.0}}), Domain(Ball{std::vector<double>(6, 0.0), 1.0})}) {
    const std::vector<double> points = probe_points(domain);
    const std::size_t d = dimension(domain);
    for (std::size_t p = 0; p < points.size(); p += d)
      ASSERT_TRUE(contains(domain, std::span<const double>(points).subspan(p, d)));
  }
  const std::vector<double> interval = probe_points(Box{{0.1}, {0.7}});
  EXPECT_EQ(interval.front(), 0.1);
  EXPECT_EQ(interval.back(), 0.7);
}

TEST(Density, MomentsOfThePiecewiseConstantDensityAreExact) {
  Density density{grid_on(Box{{-1.0, 0.0}, {1.0, 3.0}}, {4, 6}), {}};
  density.averages.assign(24, 1.0 / 6.0);
  EXPECT_NEAR(mass(density), 1.0, 1e-15);
  EXPECT_NEAR(mean(density)[0], 0.0, 1e-15);
  EXPECT_NEAR(mean(density)[1], 1.5, 1e-15);
  EXPECT_NEAR(second_moment(density), 1.0 / 3.0 + 3.0,
              1e-14);  // int x^2 / 2 over [-1,1] and int y^2 / 3 over [0,3]
}

TEST(Density, TheMassOfABallCountsVolumeFractions) {
  const Ball disc{{0.0, 0.0}, 1.0};
  Density density{grid_on(disc, {16, 16}), std::vector<double>(256, 1.0 / volume(disc))};
  EXPECT_NEAR(mass(density), 1.0, 1e-10);
}

}  // namespace
}  // namespace rieszflow
