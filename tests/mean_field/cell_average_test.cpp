#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "analysis/exact.hpp"
#include "model/cell_kernel.hpp"
#include "model/mean_field.hpp"
#include "model/quadrature.hpp"
#include "solvers/stationary/self_consistency.hpp"
#include "tests/pde/references.hpp"

/// Weights from the centre of one cell to the mean over the other.
namespace rieszflow {
namespace {

using reference::observed_order;

std::vector<double> centre_weights(const Interaction& w, const std::vector<double>& spacing,
                                   std::size_t count) {
  return kernel_weights(w, spacing, std::vector<std::size_t>(spacing.size(), count),
                        CellWeights::CellAverage);
}

TEST(CellAverage, EqualsDifferencesOfThePrimitiveInOneDimension) {
  const double h = 0.3;
  for (const double s : {-1.0, 0.25, 0.5, 0.75}) {  // strength s: W = r^-s (s = -1: -r)
    const auto weights = centre_weights(RieszInteraction{.exponent = s, .strength = std::abs(s)}, {h}, 30);
    const double sign = s < 0.0 ? -1.0 : 1.0;
    const auto primitive = [&](double x) {
      return sign * std::copysign(std::pow(std::abs(x), 1.0 - s), x) / (1.0 - s);
    };
    EXPECT_NEAR(weights[0], sign * std::pow(2.0, s) * std::pow(h, -s) / (1.0 - s), 1e-13);
    for (std::size_t k = 0; k < 30; ++k) {
      const double x = static_cast<double>(k);
      EXPECT_NEAR(weights[k], (primitive((x + 0.5) * h) - primitive((x - 0.5) * h)) / h, 1e-12)
          << s << " " << k;
    }
  }
  const auto log = centre_weights(LogarithmicInteraction{}, {h}, 30);
  EXPECT_NEAR(log[0], 1.0 - std::log(0.5 * h), 1e-14);
  const auto primitive = [](double x) { return x - x * std::log(x); };
  for (std::size_t k = 1; k < 30; ++k) {
    const double x = static_cast<double>(k);
    EXPECT_NEAR(log[k], (primitive((x + 0.5) * h) - primitive((x - 0.5) * h)) / h, 1e-13) << k;
  }
}

TEST(CellAverage, LosesNoDigitsAtLargeDistance) {
  // W(k)(1 + s(s+1)/(24 k^2) + ...).
  const double s = 0.5;
  const auto weights = centre_weights(RieszInteraction{.exponent = s, .strength = s}, {1.0}, 1000001);
  for (const std::size_t k : {200U, 5000U, 1000000U}) {
    const double x = static_cast<double>(k), x2 = x * x;
    const double series =
        1.0 + s * (s + 1.0) / (24.0 * x2) + s * (s + 1.0) * (s + 2.0) * (s + 3.0) / (1920.0 * x2 * x2);
    EXPECT_NEAR(weights[k] / (std::pow(x, -s) * series), 1.0, 1e-14) << k;
  }
}

TEST(CellAverage, KnowsThePrimitivesOfLogAndCoulombInTwoAndThreeDimensions) {
  // Integral of log(x^2 + y^2)/2 and of 1/r over boxes, by their primitives at the corners.
  const double hx = 0.2, hy = 0.35, hz = 0.15;
  const auto log_primitive = [](double x, double y) {
    return 0.5 * (x * y * std::log(x * x + y * y) - 3.0 * x * y + x * x * std::atan(y / x) +
                  y * y * std::atan(x / y));
  };
  const auto log = kernel_weights(LogarithmicInteraction{}, std::vector{hx, hy},
                                  std::vector<std::size_t>{5, 6}, CellWeights::CellAverage);
  const auto coulomb_primitive = [](double x, double y, double z) {
    const double r = std::sqrt(x * x + y * y + z * z);
    return x * y * std::log(z + r) + y * z * std::log(x + r) + x * z * std::log(y + r) -
           0.5 * (z * z * std::atan(x * y / (z * r)) + y * y * std::atan(x * z / (y * r)) +
                  x * x * std::atan(y * z / (x * r)));
  };
  const auto coulomb = kernel_weights(RieszInteraction{.exponent = 1.0}, std::vector{hx, hy, hz},
                                      std::vector<std::size_t>{4, 4, 4}, CellWeights::CellAverage);
  const auto corner = [](std::size_t k, int end, double h) {
    return (static_cast<double>(k) + 0.5 * end) * h;
  };
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 6; ++j) {
      double sum = 0.0;
      for (const int a : {-1, 1}) {
        for (const int b : {-1, 1}) sum += a * b * log_primitive(corner(i, a, hx), corner(j, b, hy));
      }
      EXPECT_NEAR(log[i * 6 + j], -sum / (hx * hy), 1e-12) << i << " " << j;
    }
  }
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      for (std::size_t k = 0; k < 4; ++k) {
        double sum = 0.0;
        for (const int a : {-1, 1}) {
          for (const int b : {-1, 1}) {
            for (const int c : {-1, 1})
              sum += a * b * c * coulomb_primitive(corner(i, a, hx), corner(j, b, hy), corner(k, c, hz));
          }
        }
        EXPECT_NEAR(coulomb[(i * 4 + j) * 4 + k], sum / (hx * hy * hz), 1e-10) << i << j << k;
      }
    }
  }
}

TEST(CellAverage, OfACellIsTheMeanOverItsThirds) {
  const auto text =
      std::make_shared<const ExpressionFunction>("exp(-r)/(r+0.1)", std::vector<std::string>{"r"});
  for (std::size_t d = 1; d <= 3; ++d) {
    const double high = static_cast<double>(d);
    const std::vector<Interaction> interactions{RieszInteraction{.exponent = 0.8 * high},
                                                RieszInteraction{.exponent = 0.5, .softening = 0.1},
                                                LogarithmicInteraction{},
                                                LogarithmicInteraction{.strength = 1.0, .softening = 0.05},
                                                GaussianInteraction{1.0, 0.4},
                                                MorseInteraction{},
                                                ExpressionInteraction{text}};
    std::vector<double> coarse_spacing, fine_spacing;
    for (std::size_t axis = 0; axis < d; ++axis) {
      coarse_spacing.push_back(0.3 + 0.1 * static_cast<double>(axis));
      fine_spacing.push_back(coarse_spacing.back() / 3.0);
    }
    const std::size_t count = d == 3 ? 3 : 4, fine_count = 3 * count;
    for (const Interaction& interaction : interactions) {
      const auto coarse = centre_weights(interaction, coarse_spacing, count);
      const auto fine = centre_weights(interaction, fine_spacing, fine_count);
      for (std::size_t k = 0; k < coarse.size(); ++k) {
        double sum = 0.0;
        std::size_t parts = 1;
        for (std::size_t axis = 0; axis < d; ++axis) parts *= 3;
        for (std::size_t part = 0; part < parts; ++part) {
          std::size_t rest = k, third = part, index = 0, stride = 1;
          for (std::size_t axis = 0; axis < d; ++axis, rest /= count, third /= 3, stride *= fine_count) {
            const long offset = 3 * static_cast<long>(rest % count) + static_cast<long>(third % 3) - 1;
            index += stride * static_cast<std::size_t>(std::abs(offset));
          }
          sum += fine[index];
        }
        const bool expression = std::holds_alternative<ExpressionInteraction>(interaction);
        EXPECT_NEAR(coarse[k], sum / static_cast<double>(parts),
                    (expression ? 1e-5 : 1e-10) * (1.0 + std::abs(coarse[k])))
            << "d = " << d << ", " << name(interaction) << ", offset " << k;
      }
    }
  }
}

TEST(CellAverage, GivesUniformDensitiesTheirExactPotentialAtCentres) {
  const Grid grid{{-1.0}, {1.0}, {33}};
  const Model model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, 1.0};
  const MeanField field(model, grid, {.weights = CellWeights::CellAverage});
  std::vector<double> potential(33);
  field.interaction_potential(reference::uniform_on(grid).averages, potential);
  for (std::size_t i = 0; i < 33; ++i) {
    const double x = grid.center(0, i);
    const auto primitive = [](double y) { return y - y * std::log(y); };
    EXPECT_NEAR(potential[i], 0.5 * (primitive(1.0 - x) + primitive(1.0 + x)), 1e-13);
  }
}

/// Largest error of W*rho at centres (cell means for Galerkin weights would differ by h^2/24 of its
/// curvature) against a fine sum, smooth rho.
TEST(CellAverage, PotentialsOfSmoothDensitiesConvergeToSecondOrder) {
  const auto shape = [](double x) { return std::pow(1.0 - x * x, 4.0); };
  for (const double s : {0.25, 0.5, 0.75}) {
    for (const CellWeights kind : {CellWeights::CellAverage, CellWeights::Galerkin}) {
      std::vector<double> at_zero;
      for (const std::size_t cells : {65U, 195U, 585U, 1755U}) {
        const Grid grid{{-1.0}, {1.0}, {cells}};
        const Model model{Box{{-1.0}, {1.0}}, {}, {RieszInteraction{.exponent = s, .strength = s}}, 1.0};
        const MeanField field(model, grid, {.weights = kind});
        const QuadratureRule rule = gauss_legendre(6);
        std::vector<double> averages(cells), potential(cells);
        for (std::size_t i = 0; i < cells; ++i) {
          for (std::size_t q = 0; q < 6; ++q)
            averages[i] +=
                rule.weights[q] * shape(grid.center(0, i) + (rule.nodes[q] - 0.5) * grid.spacing(0));
        }
        field.interaction_potential(averages, potential);
        at_zero.push_back(potential[cells / 2]);
      }
      const double order = std::log((at_zero[0] - at_zero[1]) / (at_zero[1] - at_zero[2])) / std::log(3.0);
      EXPECT_NEAR(order, 2.0, 0.1) << s;
      // 2 integral_0^1 x^-s (1 - x^2)^4 dx = B((1-s)/2, 5).
      const double exact =
          std::tgamma(0.5 * (1.0 - s)) * std::tgamma(5.0) / std::tgamma(0.5 * (1.0 - s) + 5.0);
      EXPECT_NEAR(at_zero.back(), exact, 2e-5) << s;
    }
  }
}

TEST(CellAverage, EquilibriaConvergeSlowerThanWithGalerkinWeights) {
  // Log gas on [-1, 1], beta = 2: the density is positive at the walls.
  std::vector<double> average, galerkin;
  for (const std::size_t cells : {128U, 256U, 512U}) {
    const Grid grid{{-1.0}, {1.0}, {cells}};
    const Model model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, 2.0};
    const QuadratureRule rule = gauss_legendre(12);
    const auto error = [&](CellWeights kind) {
      const MeanField field(model, grid, {.weights = kind});
      const auto found = stationary::solve(field, reference::uniform_on(grid), {});
      EXPECT_EQ(found.status, RunStatus::Completed);
      double sum = 0.0;
      for (std::size_t i = 0; i < cells; ++i) {
        double exact = 0.0;
        for (std::size_t q = 0; q < 12; ++q) {
          exact += rule.weights[q] * exact::log_gas_on_interval_density(
                                         2.0, grid.center(0, i) + (rule.nodes[q] - 0.5) * grid.spacing(0));
        }
        sum += std::abs(found.density.averages[i] - exact) * grid.spacing(0);
      }
      return sum;
    };
    average.push_back(error(CellWeights::CellAverage));
    galerkin.push_back(error(CellWeights::Galerkin));
  }
  EXPECT_NEAR(observed_order(average), 1.75, 0.1);
  EXPECT_NEAR(observed_order(galerkin), 1.92, 0.05);
  EXPECT_NEAR(average.back(), 1.7e-5, 1e-6);
  EXPECT_NEAR(galerkin.back(), 1.8e-6, 1e-7);
}

TEST(CellAverage, OfMarginalKernelsAndOnATorusIsTheMeanOverTheSource) {
  const double pi = std::numbers::pi;
  const Grid grid{{-1.0}, {1.0}, {7}};
  const Model model{Box{{-1.0}, {1.0}}, {}, {QuadraticInteraction{2.0}, CosineInteraction{3.0}}, 1.0};
  const MeanField field(model, grid, {.weights = CellWeights::CellAverage});
  std::vector<double> averages(7, 0.0), potential(7);
  averages[2] = 1.0 / grid.spacing(0);
  field.interaction_potential(averages, potential);
  const double h = grid.spacing(0);
  for (std::size_t i = 0; i < 7; ++i) {
    const double a = grid.center(0, i) - grid.face(0, 2), b = grid.center(0, i) - grid.face(0, 3);
    const double exact = (a * a * a - b * b * b) / (3.0 * h) - 3.0 * (std::sin(a) - std::sin(b)) / h;
    EXPECT_NEAR(potential[i], exact, 1e-13);
  }
  // On the circle -log|2 sin(z/2)| at the centre of a uniform arc; the arc of all cells has mean zero.
  const Torus circle{{0.0}, {2.0 * pi}};
  const Grid ring = grid_on(circle, {12});
  const MeanField periodic(Model{circle, {}, {LogarithmicInteraction{}}, 1.0}, ring,
                           {.weights = CellWeights::CellAverage});
  std::vector<double> out(12);
  periodic.interaction_potential(std::vector<double>(12, 1.0), out);
  for (const double value : out) EXPECT_NEAR(value, 0.0, 1e-11);
  std::vector<double> one(12, 0.0);
  one[0] = 1.0 / ring.spacing(0);
  periodic.interaction_potential(one, out);
  const QuadratureRule rule = gauss_legendre(16);
  for (const std::size_t k : {3U, 6U}) {
    double exact = 0.0;
    for (std::size_t q = 0; q < 16; ++q) {
      const double z = ring.center(0, k) - ring.spacing(0) * rule.nodes[q];
      exact -= rule.weights[q] * std::log(2.0 * std::sin(0.5 * z));
    }
    EXPECT_NEAR(out[k], exact, 1e-11);
  }
}

}  // namespace
}  // namespace rieszflow
