#include "potentials/potential.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/expects.hpp"
#include "difference.hpp"
#include "potentials/expression.hpp"

namespace rieszflow {
namespace {

TablePotential sampled(const std::function<double(std::span<const double>)>& f, std::vector<double> lower,
                       std::vector<double> upper, std::vector<std::size_t> nodes) {
  std::size_t count = 1;
  for (const std::size_t n : nodes) count *= n;
  std::vector<double> values(count);
  std::vector<double> point(nodes.size());
  for (std::size_t node = 0; node < count; ++node) {
    std::size_t rest = node;
    for (std::size_t k = nodes.size(); k-- > 0;) {
      const double fraction =
          nodes[k] == 1 ? 0.0 : static_cast<double>(rest % nodes[k]) / static_cast<double>(nodes[k] - 1);
      point[k] = lower[k] + fraction * (upper[k] - lower[k]);
      rest /= nodes[k];
    }
    values[node] = f(point);
  }
  return TablePotential(std::move(lower), std::move(upper), std::move(nodes), std::move(values), "test");
}

double wave(std::span<const double> point) {
  double product = 1.0;
  for (std::size_t k = 0; k < point.size(); ++k)
    product *= std::sin(2.0 * point[k] + 0.3 * static_cast<double>(k + 1));
  return product;
}

TEST(Potential, ValuesAreTheirFormulas) {
  const std::vector<double> x{0.5, -2.0};
  EXPECT_DOUBLE_EQ(value(QuadraticPotential{3.0, {}}, x), 1.5 * (0.25 + 4.0));
  EXPECT_DOUBLE_EQ(value(QuadraticPotential{3.0, {0.5, -1.0}}, x), 1.5);
  EXPECT_DOUBLE_EQ(value(DoubleWellPotential{2.0, 0.5}, x), 2.0 * 15.0 * 15.0);
  EXPECT_DOUBLE_EQ(value(PolynomialPotential{{1.0, 0.0, 2.0, -1.0}}, x), 2.0 + 2.0 * 4.25 - (0.125 - 8.0));
  EXPECT_DOUBLE_EQ(value(CosinePotential{2.0, 3.0}, x), 2.0 * (std::cos(1.5) + std::cos(6.0)));
  EXPECT_DOUBLE_EQ(value(PolynomialPotential{}, x), 0.0);
}

TEST(Potential, ForcesAreMinusTheGradients) {
  const auto text =
      std::make_shared<const ExpressionFunction>("exp(-x^2) * cos(3*y) + x*y^3", coordinate_names(2));
  const std::vector<Potential> potentials = {
      QuadraticPotential{1.7, {0.3, -0.4}}, DoubleWellPotential{0.5, 1.2},
      PolynomialPotential{{1.0, -0.5, 2.0, 0.7, -0.1}}, CosinePotential{1.3, 2.1}, ExpressionPotential{text}};
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1.5, 1.5);
  for (const Potential& potential : potentials)
    for (int trial = 0; trial < 50; ++trial) {
      const std::vector<double> x{uniform(random), uniform(random)};
      std::vector<double> force{1.0, 2.0};  // added to, not overwritten
      add_force(potential, x, force);
      const auto expected =
          force_by_differences([&](std::span<const double> p) { return value(potential, p); }, x);
      // Sixth-order differences with step 1e-2 of functions whose seventh derivatives stay below 1e4.
      EXPECT_NEAR(force[0] - 1.0, expected[0], 1e-9) << name(potential);
      EXPECT_NEAR(force[1] - 2.0, expected[1], 1e-9) << name(potential);
    }
}

TEST(Potential, NamesAreThoseOfTheConfig) {
  EXPECT_EQ(name(QuadraticPotential{}), "quadratic");
  EXPECT_EQ(name(DoubleWellPotential{}), "double_well");
  EXPECT_EQ(name(PolynomialPotential{}), "polynomial");
  EXPECT_EQ(name(CosinePotential{}), "cosine");
  EXPECT_EQ(name(ExpressionPotential{}), "expression");
  EXPECT_EQ(name(sampled(&wave, {0.0}, {1.0}, {4})), "table");
}

TEST(TablePotential, PassesThroughItsNodes) {
  for (const std::vector<std::size_t>& nodes : std::vector<std::vector<std::size_t>>{
           {1}, {2}, {3}, {4}, {5}, {17}, {6, 7}, {4, 5, 6}, {1, 8}, {8, 1}, {2, 3}}) {
    const std::size_t dimension = nodes.size();
    const std::vector<double> lower(dimension, -0.5);
    const std::vector<double> upper(dimension, 1.5);
    const TablePotential table = sampled(&wave, lower, upper, nodes);
    std::vector<double> point(dimension);
    for (std::size_t node = 0; node < 8; ++node) {
      for (std::size_t k = 0; k < dimension; ++k) {
        const std::size_t i = (node + k) % nodes[k];
        point[k] = lower[k] +
                   (nodes[k] == 1 ? 0.0 : 2.0 * static_cast<double>(i) / static_cast<double>(nodes[k] - 1));
      }
      EXPECT_NEAR(value(table, point), wave(point), 1e-14) << "nodes " << nodes[0] << " d " << dimension;
    }
  }
}

TEST(TablePotential, ReproducesCubicPolynomialsAndTheirForces) {
  const auto cubic = [](std::span<const double> p) { return 1.0 + p[0] * (2.0 - p[0] * (0.5 + 3.0 * p[0])); };
  for (const std::size_t n : {4u, 5u, 9u, 40u}) {
    const TablePotential table = sampled(cubic, {-1.0}, {2.0}, {n});
    for (double x = -1.2; x < 2.2; x += 0.07) {  // continued beyond the ends as well
      const std::vector<double> point{x};
      std::vector<double> force{0.0};
      add_force(table, point, force);
      EXPECT_NEAR(value(table, point), cubic(point), 1e-12);
      EXPECT_NEAR(force[0], -(2.0 - x - 9.0 * x * x), 1e-11);
    }
  }
}

TEST(TablePotential, ConvergesAtOrderFourUpToTheEnds) {
  for (std::size_t dimension = 1; dimension <= 2; ++dimension) {
    std::vector<double> errors;
    for (const std::size_t n : {17u, 33u, 65u}) {
      const TablePotential table =
          sampled(&wave, std::vector<double>(dimension, 0.0), std::vector<double>(dimension, 2.0),
                  std::vector<std::size_t>(dimension, n));
      double error = 0.0;
      for (double t = 0.003; t < 2.0; t += 0.0101) {
        std::vector<double> point(dimension, 2.0 - t);
        point[0] = t;
        error = std::max(error, std::abs(value(table, point) - wave(point)));
      }
      errors.push_back(error);
    }
    EXPECT_GT(std::log2(errors[0] / errors[1]), 3.7);
    EXPECT_GT(std::log2(errors[1] / errors[2]), 3.8);
  }
}

TEST(TablePotential, TheForceIsTheExactGradientOfTheInterpolantEverywhere) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> uniform(0.0, 2.0);
  for (std::size_t dimension = 1; dimension <= 3; ++dimension) {
    const TablePotential table =
        sampled(&wave, std::vector<double>(dimension, 0.0), std::vector<double>(dimension, 2.0),
                std::vector<std::size_t>(dimension, 6));
    for (int trial = 0; trial < 50; ++trial) {
      std::vector<double> point(dimension);
      for (double& x : point) x = uniform(random);
      std::vector<double> force(dimension, 0.0);
      add_force(table, point, force);
      // Inside one cubic piece the differences are exact but for rounding; across a knot their error is the
      // step squared times the jump of the third derivative (of order ten).
      const auto expected =
          force_by_differences([&](std::span<const double> p) { return value(table, p); }, point, 1e-4);
      for (std::size_t k = 0; k < dimension; ++k) EXPECT_NEAR(force[k], expected[k], 1e-6);
    }
  }
}

TEST(TablePotential, RefusesWhatIsNoTable) {
  EXPECT_THROW(TablePotential({0.0}, {1.0}, {3}, {0.0, std::nan(""), 1.0}, ""), PreconditionViolation);
  EXPECT_THROW(TablePotential({0.0}, {1.0}, {3}, {0.0, 1.0}, ""), PreconditionViolation);
  EXPECT_THROW(TablePotential({1.0}, {1.0}, {3}, {0.0, 1.0, 2.0}, ""), PreconditionViolation);
}

}  // namespace
}  // namespace rieszflow
