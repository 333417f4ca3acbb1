#include "model/cell_kernel.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "model/quadrature.hpp"
#include "potentials/expression.hpp"

namespace rieszflow {
namespace {

double weight(const Interaction& interaction, std::vector<double> spacing, std::vector<std::size_t> offset) {
  std::vector<std::size_t> counts;
  for (const std::size_t k : offset) counts.push_back(k + 1);
  return galerkin_weights(interaction, spacing, counts).back();
}

ExpressionInteraction text_interaction(const char* text) {
  return {std::make_shared<ExpressionFunction>(text, std::vector<std::string>{"r"})};
}

TEST(GaussHat, IntegratesPolynomialsExactly) {
  for (std::size_t points = 1; points <= 16; ++points) {
    const QuadratureRule rule = gauss_hat(points);
    for (std::size_t degree = 0; degree < 2 * points; ++degree) {
      double sum = 0.0;
      for (std::size_t q = 0; q < points; ++q) {
        sum += rule.weights[q] * std::pow(rule.nodes[q], static_cast<double>(degree));
      }
      const double p = static_cast<double>(degree);
      const double exact = degree % 2 == 1 ? 0.0 : 2.0 / ((p + 1.0) * (p + 2.0));
      EXPECT_NEAR(sum, exact, 1e-14) << points << " points, degree " << degree;
    }
  }
}

TEST(CellKernel, EqualsSecondDifferencesOfThePrimitiveInOneDimension) {
  // w_k = (P((k+1)h) - 2 P(kh) + P((k-1)h)) / h^2, P'' = W, in extended precision where it still has digits.
  const double h = 0.037;
  const auto expect_equal = [&](const Interaction& interaction, const auto& primitive) {
    const auto weights = galerkin_weights(interaction, std::vector{h}, std::vector<std::size_t>{40});
    for (int k = 0; k < 40; ++k) {
      const long double x = k * static_cast<long double>(h), step = h;
      const long double exact =
          (primitive(x + step) - 2.0L * primitive(x) + primitive(std::abs(x - step))) / (step * step);
      EXPECT_NEAR(weights[static_cast<std::size_t>(k)], static_cast<double>(exact),
                  2e-14 * std::abs(static_cast<double>(exact)) + 1e-15)
          << "k = " << k;
    }
  };
  for (const double s : {-1.0, -0.5, 0.25, 0.5, 0.75, 0.95}) {
    const long double e = s;
    expect_equal(RieszInteraction{.exponent = s},
                 [&](long double x) { return std::pow(x, 2.0L - e) / (e * (1.0L - e) * (2.0L - e)); });
  }
  expect_equal(LogarithmicInteraction{}, [](long double x) {
    return x == 0.0L ? 0.0L : -(0.5L * x * x * std::log(x) - 0.75L * x * x);
  });
}

TEST(CellKernel, LosesNoDigitsAtLargeDistance) {
  // Far away the mean over two cells is W(kh) (1 + s(s+1)/(12 k^2) + ...).
  const double s = 0.5, k = 1e6;
  const auto weights =
      galerkin_weights(RieszInteraction{.exponent = s}, std::vector{1.0}, std::vector<std::size_t>{1000001});
  EXPECT_NEAR(weights.back() / (2.0 * std::pow(k, -s) * (1.0 + s * (s + 1.0) / (12.0 * k * k))), 1.0, 1e-15);
}

TEST(CellKernel, KnowsTheSelfEnergiesOfSquareAndCube) {
  const double root2 = std::numbers::sqrt2, root3 = std::numbers::sqrt3, pi = std::numbers::pi;
  // Mean of 1/r and of -log r over pairs of points of the unit square; mean of 1/r over the unit cube.
  EXPECT_NEAR(weight(RieszInteraction{.exponent = 1.0}, {1.0, 1.0}, {0, 0}),
              4.0 * ((1.0 - root2) / 3.0 + std::log(1.0 + root2)), 1e-14);
  EXPECT_NEAR(weight(LogarithmicInteraction{}, {1.0, 1.0}, {0, 0}),
              (25.0 - 4.0 * pi - 4.0 * std::log(2.0)) / 12.0, 1e-14);
  EXPECT_NEAR(weight(RieszInteraction{.exponent = 1.0}, {1.0, 1.0, 1.0}, {0, 0, 0}),
              2.0 * ((1.0 + root2 - 2.0 * root3) / 5.0 - pi / 3.0 + std::log((1.0 + root2) * (2.0 + root3))),
              2e-14);
}

/// A cell of width 2h is two cells of width h: w^{2h}_K = sum over a in {-1, 0, 1}^d of prod (1/4, 1/2, 1/4)
/// w^h_{2K+a}.
void expect_additive(const Interaction& interaction, const std::vector<double>& spacing, double tolerance) {
  const std::size_t dimension = spacing.size(), coarse_count = dimension == 3 ? 4 : 7;
  std::vector<double> doubled = spacing;
  for (double& h : doubled) h *= 2.0;
  const std::size_t fine_count = 2 * coarse_count;
  const auto coarse =
      galerkin_weights(interaction, doubled, std::vector<std::size_t>(dimension, coarse_count));
  const auto fine = galerkin_weights(interaction, spacing, std::vector<std::size_t>(dimension, fine_count));
  double worst = 0.0;
  for (std::size_t cell = 0; cell < coarse.size(); ++cell) {
    std::vector<int> offset(dimension);
    std::size_t rest = cell;
    for (std::size_t axis = dimension; axis-- > 0; rest /= coarse_count)
      offset[axis] = static_cast<int>(rest % coarse_count);
    double sum = 0.0, size = 0.0;
    std::size_t combinations = 1;
    for (std::size_t axis = 0; axis < dimension; ++axis) combinations *= 3;
    for (std::size_t c = 0; c < combinations; ++c) {
      double factor = 1.0;
      std::size_t index = 0, digits = c;
      for (std::size_t axis = 0; axis < dimension; ++axis, digits /= 3) {
        const int a = static_cast<int>(digits % 3) - 1;
        factor *= a == 0 ? 0.5 : 0.25;
        index = index * fine_count + static_cast<std::size_t>(std::abs(2 * offset[axis] + a));
      }
      sum += factor * fine[index];
      size += factor * std::abs(fine[index]);
    }
    worst = std::max(worst, std::abs(coarse[cell] - sum) / (size + 1e-3 * std::abs(fine[0])));
  }
  EXPECT_LE(worst, tolerance) << name(interaction) << ", dimension " << dimension << ", last spacing "
                              << spacing.back();
}

TEST(CellKernel, IsAdditiveUnderRefinement) {
  const std::vector<std::vector<double>> grids{{0.1},       {0.1, 0.1},      {0.1, 0.37},
                                               {0.5, 0.03}, {0.1, 0.1, 0.1}, {0.1, 0.25, 0.4}};
  for (const auto& spacing : grids) {
    const auto d = static_cast<double>(spacing.size());
    for (const double s : {-1.0, 0.3, d - 0.5})
      expect_additive(RieszInteraction{.exponent = s}, spacing, 1e-13);
    expect_additive(LogarithmicInteraction{.strength = -2.0}, spacing, 1e-13);
    expect_additive(RieszInteraction{.exponent = 0.5, .softening = 0.01}, spacing, 1e-12);
    expect_additive(LogarithmicInteraction{.softening = 0.2}, spacing, 1e-12);
    expect_additive(GaussianInteraction{.length = 0.15}, spacing, 1e-13);
    if (spacing.size() < 3) {
      expect_additive(MorseInteraction{.repulsion_length = 0.5}, spacing, 1e-11);
      expect_additive(text_interaction("exp(-r)/sqrt(r)"), spacing, 1e-11);
    }
  }
}

TEST(CellKernel, IntegratesAHiddenSingularityOfAnExpression) {
  const Interaction text = text_interaction("1/sqrt(r)");
  const Interaction riesz = RieszInteraction{.exponent = 0.5, .strength = 0.5};
  for (const std::size_t k : {0U, 1U, 2U, 5U}) {
    EXPECT_NEAR(weight(text, {0.2}, {k}) / weight(riesz, {0.2}, {k}), 1.0, 1e-12);
    EXPECT_NEAR(weight(text, {0.2, 0.1}, {k, 0}) / weight(riesz, {0.2, 0.1}, {k, 0}), 1.0, 1e-12);
  }
}

}  // namespace
}  // namespace rieszflow
