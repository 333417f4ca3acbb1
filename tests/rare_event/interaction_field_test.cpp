#include "solvers/rare_event/interaction_field.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "core/noise.hpp"

namespace rieszflow::rare_event {
namespace {

std::vector<double> uniform_points(std::size_t count, std::size_t dimension, double low, double high) {
  std::vector<double> points(count * dimension);
  NoiseStream(11, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, points);
  for (double& x : points) x = low + (high - low) * x;
  return points;
}

/// (1/(2N^2)) sum_{i != j} W by its definition.
double energy_by_definition(
    const std::vector<double>& points, std::size_t dimension,
    const std::function<double(std::span<const double>, std::span<const double>)>& w) {
  const std::size_t count = points.size() / dimension;
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      if (i != j) sum += w({&points[i * dimension], dimension}, {&points[j * dimension], dimension});
    }
  }
  return sum / (2.0 * static_cast<double>(count * count));
}

void expect_field_of(const Model& model, std::vector<double> points,
                     const std::function<double(std::span<const double>, std::span<const double>)>& w) {
  const std::size_t d = dimension(model.domain), count = points.size() / d;
  InteractionField field(model, count);
  field.assign(points);
  const double before = energy_by_definition(points, d, w);
  EXPECT_NEAR(field.energy(), before, 1e-12 * (1.0 + std::abs(before)));
  const std::vector<double> targets = uniform_points(3, d, -0.9, 0.9);
  const std::size_t movers[] = {0, count / 2, count - 1};
  double energy = before;
  for (std::size_t k = 0; k < 3; ++k) {
    const std::span<const double> target(&targets[k * d], d);
    const double difference = field.difference(movers[k], target);
    std::copy(target.begin(), target.end(), points.begin() + static_cast<std::ptrdiff_t>(movers[k] * d));
    const double after = energy_by_definition(points, d, w);
    // N^2 round-offs of terms of order one, seen through the factor N^2.
    EXPECT_NEAR(difference, static_cast<double>(count * count) * (after - energy),
                1e-10 * static_cast<double>(count));
    field.move(movers[k], target);
    EXPECT_NEAR(field.energy(), after, 1e-12 * (1.0 + std::abs(after)));
    energy = after;
  }
}

TEST(InteractionField, DifferenceIsThatOfTheEnergyForEveryKernelInABox) {
  const auto expression = [](const char* text, std::vector<std::string> variables) {
    return std::make_shared<const ExpressionFunction>(text, std::move(variables));
  };
  const std::vector<Interaction> kernels = {
      LogarithmicInteraction{0.7},
      LogarithmicInteraction{-1.3, 0.2},
      RieszInteraction{0.75, 1.1},
      RieszInteraction{-1.0, 0.8},
      RieszInteraction{0.5, 1.0, 0.1},
      GaussianInteraction{1.5, 0.4},
      MorseInteraction{},
      QuadraticInteraction{-2.0},
      CosineInteraction{1.2},
      ExpressionInteraction{expression("exp(-r)*cos(3*r)", {"r"})},
  };
  for (const std::size_t d : {1, 2, 3}) {
    for (const Interaction& kernel : kernels) {
      SCOPED_TRACE(std::string(name(kernel)) + " d = " + std::to_string(d));
      Model model{.domain = Box{std::vector<double>(d, -1.0), std::vector<double>(d, 1.0)},
                  .potentials = {},
                  .interactions = {kernel}};
      expect_field_of(
          model, uniform_points(70, d, -1.0, 1.0),
          [&](std::span<const double> x, std::span<const double> y) { return value(kernel, x, y); });
    }
  }
}

TEST(InteractionField, AddsTermsAndLowRankKernels) {
  const auto g = [](const char* text) {
    return std::make_shared<const ExpressionFunction>(text, std::vector<std::string>{"x"});
  };
  Model model{
      .domain = Box{{-1.0}, {1.0}},
      .potentials = {},
      .interactions = {LogarithmicInteraction{0.5}, LowRankInteraction{-0.7, {g("cos(2*x)"), g("x^3")}},
                       QuadraticInteraction{0.3}, LowRankInteraction{0.4, {g("1")}}}};
  expect_field_of(model, uniform_points(65, 1, -1.0, 1.0),
                  [&](std::span<const double> x, std::span<const double> y) {
                    double sum = 0.0;
                    for (const Interaction& term : model.interactions) sum += value(term, x, y);
                    return sum;
                  });
}

TEST(InteractionField, OnACircleTheLogKernelIsTheChord) {
  const double length = 3.0;
  Model model{
      .domain = Torus{{-1.5}, {1.5}}, .potentials = {}, .interactions = {LogarithmicInteraction{0.9}}};
  expect_field_of(
      model, uniform_points(20, 1, -1.5, 1.5), [&](std::span<const double> x, std::span<const double> y) {
        return -0.9 * std::log(2.0 * std::abs(std::sin(std::numbers::pi * (x[0] - y[0]) / length)));
      });
}

TEST(InteractionField, OnATorusOtherKernelsArePeriodised) {
  const Torus torus{{-1.0, -1.0}, {1.0, 1.0}};
  const Interaction kernel = RieszInteraction{0.5, 1.2};
  Model model{.domain = torus, .potentials = {}, .interactions = {kernel, CosineInteraction{0.0}}};
  const PeriodicKernel periodic(torus, kernel);
  expect_field_of(model, uniform_points(12, 2, -1.0, 1.0),
                  [&](std::span<const double> x, std::span<const double> y) {
                    double z[2];
                    displacement(model.domain, x, y, z);
                    return periodic.value(z);
                  });
}

TEST(InteractionField, MovesOntoAnotherParticleCostInfinitely) {
  for (const Interaction& kernel :
       {Interaction(LogarithmicInteraction{}), Interaction(RieszInteraction{0.75, 1.0})}) {
    Model model{.domain = Box{{-1.0}, {1.0}}, .potentials = {}, .interactions = {kernel}};
    InteractionField field(model, 3);
    field.assign(std::vector{-0.5, 0.1, 0.6});
    const double target = 0.6;
    EXPECT_EQ(field.difference(0, {&target, 1}), std::numeric_limits<double>::infinity()) << name(kernel);
  }
}

TEST(InteractionField, RefusesWhatItCannotSample) {
  Model model{.domain = Box{{-1.0}, {1.0}}, .potentials = {}, .interactions = {RieszInteraction{0.5, 1.0}}};
  EXPECT_FALSE(InteractionField::refusal(model).has_value());
  model.inverse_temperature = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(InteractionField::refusal(model).has_value());
}

}  // namespace
}  // namespace rieszflow::rare_event
