#include "model/periodic_kernel.hpp"

#include <gtest/gtest.h>

#include <boost/math/special_functions/bessel.hpp>
#include <boost/math/special_functions/expint.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <numbers>
#include <random>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

constexpr double pi = std::numbers::pi;

Torus torus_of(const std::vector<double>& periods) {
  return Torus{std::vector<double>(periods.size(), 0.0), periods};
}

/// f(n) summed over all n in Z^d with |n_k| <= reach.
double lattice_sum(std::size_t dimension, int reach, const auto& f) {
  std::vector<int> n(dimension, -reach);
  double sum = 0.0;
  for (;;) {
    sum += f(n);
    std::size_t axis = 0;
    while (axis < dimension && n[axis] == reach) n[axis++] = -reach;
    if (axis == dimension) return sum;
    ++n[axis];
  }
}

double squared_image(const std::vector<int>& n, const std::vector<double>& periods,
                     const std::vector<double>& z) {
  double sum = 0.0;
  for (std::size_t k = 0; k < z.size(); ++k) sum += (z[k] + n[k] * periods[k]) * (z[k] + n[k] * periods[k]);
  return sum;
}

/// (|k|, k.z) of the dual lattice.
std::pair<double, double> wave(const std::vector<int>& n, const std::vector<double>& periods,
                               const std::vector<double>& z) {
  double squared = 0.0;
  double phase = 0.0;
  for (std::size_t k = 0; k < z.size(); ++k) {
    const double w = 2.0 * pi * n[k] / periods[k];
    squared += w * w;
    phase += w * z[k];
  }
  return {std::sqrt(squared), phase};
}

double volume_of(const std::vector<double>& periods) {
  double product = 1.0;
  for (const double period : periods) product *= period;
  return product;
}

double upper_gamma(double a, double x) {
  if (a > 0.0) return boost::math::tgamma(a, x);
  if (a == 0.0) return boost::math::expint(1, x);
  return (upper_gamma(a + 1.0, x) - std::pow(x, a) * std::exp(-x)) / a;
}

/// Ewald's double sum with incomplete gamma functions and a free splitting parameter, unsoftened; exponent 0
/// is the log.
double ewald(double exponent, const std::vector<double>& periods, const std::vector<double>& z,
             double alpha) {
  const double a = 0.5 * exponent;
  const double half = 0.5 * static_cast<double>(z.size());
  const double background = std::pow(pi, half) / volume_of(periods);
  const double sum = lattice_sum(z.size(), 9, [&](const std::vector<int>& n) {
    const double q = squared_image(n, periods, z);
    double term = std::pow(q, -a) * upper_gamma(a, alpha * alpha * q);
    const auto [k, phase] = wave(n, periods, z);
    if (k > 0.0)
      term += background * std::pow(0.25 * k * k, a - half) *
              upper_gamma(half - a, 0.25 * k * k / (alpha * alpha)) * std::cos(phase);
    return term;
  });
  const double total = sum - background * std::pow(alpha, exponent - 2.0 * half) / (half - a);
  return exponent == 0.0 ? 0.5 * total : total / (exponent * std::tgamma(a));
}

std::vector<std::vector<double>> displacements(const std::vector<double>& periods, int count) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  std::vector<std::vector<double>> result;
  for (int trial = 0; trial < count; ++trial) {
    std::vector<double> z(periods.size());
    for (std::size_t k = 0; k < z.size(); ++k) z[k] = periods[k] * uniform(random);
    result.push_back(z);
  }
  std::vector<double> corner(periods);
  for (double& x : corner) x *= -0.5;
  result.push_back(corner);
  std::vector<double> near(periods.size(), 0.0);
  near[0] = 1e-3 * periods[0];
  result.push_back(near);
  return result;
}

Interaction homogeneous(double exponent, double softening = 0.0) {
  if (exponent == 0.0) return LogarithmicInteraction{1.0, softening};
  return RieszInteraction{exponent, 1.0, softening};
}

TEST(PeriodicKernel, AgreesWithEwaldSumsForEveryExponentAndDimension) {
  for (const auto& periods :
       std::vector<std::vector<double>>{{1.0}, {7.3}, {1.0, 1.0}, {0.5, 0.8}, {2.0, 1.3, 1.7}})
    for (const double fraction : {-1.9, -1.0, -0.5, 0.0, 0.2, 0.5, 0.95}) {
      // Exponents -1.9, -1, -1/2, 0 and fractions of d.
      const double exponent = fraction <= 0.0 ? fraction : fraction * static_cast<double>(periods.size());
      const PeriodicKernel kernel(torus_of(periods), homogeneous(exponent));
      for (const auto& z : displacements(periods, 3)) {
        const double one = ewald(exponent, periods, z, 2.0 / periods[0]);
        const double other = ewald(exponent, periods, z, 2.6 / periods[0]);
        const double scale =
            1.0 + std::abs(one) + std::abs(kernel.correction(std::vector<double>(z.size(), 0.0)));
        ASSERT_NEAR(one, other, 1e-12 * scale) << "the reference itself, exponent " << exponent;
        EXPECT_NEAR(kernel.value(z), one, 1e-12 * scale) << "d " << z.size() << " exponent " << exponent;
      }
    }
}

TEST(PeriodicKernel, AgreesWithEwaldSumsOnElongatedTori) {
  const std::vector<double> periods{1.0, 2.9};
  for (const double exponent : {0.0, 1.0}) {
    const PeriodicKernel kernel(torus_of(periods), homogeneous(exponent));
    EXPECT_GT(kernel.images().size(), 2u);
    for (const auto& z : displacements(periods, 5))
      EXPECT_NEAR(kernel.value(z), ewald(exponent, periods, z, 1.7),
                  1e-12 * (1.0 + std::abs(kernel.value(z))))
          << exponent;
  }
}

TEST(PeriodicKernel, OneDimensionalLogAndCoulombAreTheirClosedForms) {
  const double length = 3.0;
  const Torus circle{{-1.0}, {2.0}};
  const PeriodicKernel logarithm(circle, LogarithmicInteraction{2.0, 0.0});
  const PeriodicKernel coulomb(circle, RieszInteraction{-1.0, 2.0, 0.0});
  const PeriodicKernel softened(circle, LogarithmicInteraction{2.0, 0.4});
  for (double x = -1.5; x < 1.5; x += 0.0917) {
    const std::vector<double> z{x};
    EXPECT_NEAR(logarithm.value(z), -2.0 * std::log(std::abs(2.0 * std::sin(pi * x / length))), 1e-13);
    EXPECT_NEAR(coulomb.value(z), 2.0 * (-std::abs(x) + x * x / length + length / 6.0), 1e-13);
    const double q = std::exp(-2.0 * pi * 0.4 / length);
    EXPECT_NEAR(softened.value(z), -std::log(1.0 - 2.0 * q * std::cos(2.0 * pi * x / length) + q * q), 1e-13);
    std::vector<double> force{1.0};
    logarithm.add_force(z, force);
    EXPECT_NEAR(force[0], 1.0 + 2.0 * pi / length / std::tan(pi * x / length),
                1e-12 * (1.0 + 1.0 / std::abs(x)));
  }
}

TEST(PeriodicKernel, TheCubicLatticeOfChargesHasItsKnownConstant) {
  // Potential of a simple cubic lattice in its neutralising background at a lattice point without its own
  // charge: -2.837297479480619 / L (for instance Fraser et al., Phys. Rev. B 53 (1996) 1814).
  const PeriodicKernel kernel(torus_of({1.0, 1.0, 1.0}), RieszInteraction{1.0, 1.0, 0.0});
  EXPECT_NEAR(kernel.correction(std::vector<double>{0.0, 0.0, 0.0}), -2.837297479480619, 1e-12);
}

TEST(PeriodicKernel, SoftenedKernelsAreTheirFourierSeries) {
  for (const auto& periods : std::vector<std::vector<double>>{{1.0}, {1.0, 1.2}, {1.0, 0.9, 1.1}})
    for (const double exponent : {-1.5, -1.0, 0.0, 0.5, 0.9 * static_cast<double>(periods.size())})
      for (const double softening : {0.4, 3.0}) {
        const double a = 0.5 * exponent;
        const double half = 0.5 * static_cast<double>(periods.size());
        const PeriodicKernel kernel(torus_of(periods), homogeneous(exponent, softening));
        for (const auto& z : displacements(periods, 3)) {
          const double sum = lattice_sum(z.size(), 16, [&](const std::vector<int>& n) {
            const auto [k, phase] = wave(n, periods, z);
            if (k == 0.0 || k * softening > 45.0) return 0.0;
            return std::pow(0.5 * k / softening, a - half) *
                   boost::math::cyl_bessel_k(half - a, k * softening) * std::cos(phase);
          });
          // FT of (r^2 + eps^2)^-a is 2 pi^(d/2) / Gamma(a) (k / 2 eps)^(a - d/2) K_{d/2-a}(k eps); over s =
          // 2a.
          const double expected = std::pow(pi, half) / std::tgamma(1.0 + a) * sum / volume_of(periods);
          const double scale = 1.0 + std::abs(radial(kernel.interaction(), 0.0).value);
          EXPECT_NEAR(kernel.value(z), expected, 3e-13 * scale)
              << z.size() << " " << exponent << " " << softening;
        }
      }
}

TEST(PeriodicKernel, ShortRangeKernelsAreTheirImageSums) {
  for (const auto& periods : std::vector<std::vector<double>>{{1.0}, {1.0, 1.2}, {1.0, 0.9, 1.1}})
    for (const double length : {0.02, 0.1, 0.25}) {
      const PeriodicKernel gaussian(torus_of(periods), GaussianInteraction{2.0, length});
      const PeriodicKernel morse(torus_of(periods), MorseInteraction{1.5, length, 0.5, 0.7 * length});
      for (const auto& z : displacements(periods, 3)) {
        double expected_gaussian = 0.0;
        const double expected_morse = lattice_sum(z.size(), 10, [&](const std::vector<int>& n) {
          const double q = squared_image(n, periods, z);
          expected_gaussian += radial(gaussian.interaction(), q).value;
          return radial(morse.interaction(), q).value;
        });
        EXPECT_NEAR(gaussian.value(z), expected_gaussian, 1e-13) << length;
        EXPECT_NEAR(morse.value(z), expected_morse, 1e-13) << length;
      }
    }
}

TEST(PeriodicKernel, WideKernelsKeepTheirMean) {
  // Much wider than the torus: constant, the integral of W over R^d divided by the volume.
  const double length = 40.0;
  const PeriodicKernel gaussian(torus_of({1.0, 2.0}), GaussianInteraction{1.0, length});
  const PeriodicKernel morse(torus_of({1.0, 2.0}), MorseInteraction{1.0, length, 0.0, 1.0});
  const std::vector<double> z{0.2, -0.7};
  EXPECT_NEAR(gaussian.value(z) / (2.0 * pi * length * length / 2.0), 1.0, 1e-13);
  // exp(-r/l) is not smooth at 0: its waves fall like (k l)^-3.
  EXPECT_NEAR(morse.value(z) / (2.0 * pi * length * length / 2.0), 1.0, 1e-5);
}

TEST(PeriodicKernel, ForcesAreMinusTheGradients) {
  const std::vector<double> periods{1.0, 1.7, 0.9};
  for (std::size_t d = 1; d <= 3; ++d)
    for (const Interaction& w :
         std::vector<Interaction>{RieszInteraction{0.7, 1.3, 0.0}, LogarithmicInteraction{0.8, 0.1},
                                  GaussianInteraction{1.0, 0.3}, MorseInteraction{1.0, 0.2, 0.5, 0.4}}) {
      const PeriodicKernel kernel(torus_of({periods.begin(), periods.begin() + static_cast<long>(d)}), w);
      std::vector<double> z{0.31, -0.52, 0.27};
      z.resize(d);
      std::vector<double> force(d, 0.0);
      EXPECT_EQ(kernel.add_force(z, force), kernel.value(z));
      for (std::size_t k = 0; k < d; ++k) {
        const double step = 2e-3;
        const auto at = [&](double shift) {
          std::vector<double> moved = z;
          moved[k] += shift;
          return kernel.value(moved);
        };
        const double slope = (45.0 * (at(step) - at(-step)) - 9.0 * (at(2 * step) - at(-2 * step)) +
                              (at(3 * step) - at(-3 * step))) /
                             (60.0 * step);
        // The seventh derivative at distance 0.3 is below 1e8, times step^6 / 140.
        EXPECT_NEAR(force[k], -slope, 1e-9) << name(w) << " d " << d;
      }
    }
}

TEST(PeriodicKernel, IsEvenAndPeriodicAcrossTheCellFaces) {
  const std::vector<double> periods{1.0, 1.3};
  for (const double exponent : {-1.0, 0.0, 1.2}) {
    const PeriodicKernel kernel(torus_of(periods), homogeneous(exponent));
    for (const double y : {0.0, 0.2, 0.65}) {
      const std::vector<double> right{0.5, y};
      const std::vector<double> left{-0.5, -y};
      // The images are added in another order.
      EXPECT_NEAR(kernel.value(right), kernel.value(left), 1e-14);
      std::vector<double> force(2, 0.0);
      kernel.add_force(right, force);
      // Even and periodic: no normal force on the face. The derivative of a polynomial of degree n at its end
      // is n^2 / range times less accurate than the value.
      EXPECT_NEAR(force[0], 0.0, 1e-10) << exponent;
    }
  }
}

TEST(PeriodicKernel, BatchesAgreeWithSinglePairs) {
  for (const auto& periods : std::vector<std::vector<double>>{{1.0}, {1.0, 1.2}, {1.0, 0.9, 1.1}}) {
    const std::size_t d = periods.size();
    const PeriodicKernel kernel(torus_of(periods), RieszInteraction{0.5, 1.0, 0.0});
    const auto pairs = displacements(periods, 40);
    const std::size_t count = pairs.size();
    std::vector<double> z(d * count), values(count, 1.0), forces(d * count, 2.0);
    for (std::size_t p = 0; p < count; ++p)
      for (std::size_t k = 0; k < d; ++k) z[k * count + p] = pairs[p][k];
    kernel.add_corrections(count, z, values, forces);
    for (std::size_t p = 0; p < count; ++p) {
      std::vector<double> force(d, 2.0);
      // Fused multiply-adds of the vector code round differently.
      EXPECT_NEAR(values[p], 1.0 + kernel.correction(pairs[p], force), 1e-13);
      for (std::size_t k = 0; k < d; ++k) EXPECT_NEAR(forces[k * count + p], force[k], 1e-12);
    }
  }
}

TEST(PeriodicKernel, RefusesKernelsWithoutAPeriodicForm) {
  EXPECT_THROW(PeriodicKernel(torus_of({1.0}), QuadraticInteraction{}), PreconditionViolation);
  EXPECT_THROW(PeriodicKernel(torus_of({1.0, 1.0, 1.0, 1.0}), RieszInteraction{}), PreconditionViolation);
}

double total_over_torus(const std::vector<double>& weights, const std::vector<std::size_t>& cells) {
  double sum = 0.0;
  for (std::size_t w = 0; w < weights.size(); ++w) {
    std::size_t rest = w;
    double multiplicity = 1.0;
    for (std::size_t k = cells.size(); k-- > 0;) {
      const std::size_t count = cells[k] / 2 + 1;
      const std::size_t offset = rest % count;
      rest /= count;
      if (offset != 0 && 2 * offset != cells[k]) multiplicity *= 2.0;
    }
    sum += multiplicity * weights[w];
  }
  return sum;
}

TEST(PeriodicGalerkinWeights, OfAKernelWithoutMeanAddUpToZero) {
  for (const auto& cells :
       std::vector<std::vector<std::size_t>>{{1}, {2}, {3}, {64}, {101}, {8, 5}, {1, 2}, {4, 3, 5}}) {
    std::vector<double> periods{1.0, 1.4, 0.8};
    periods.resize(cells.size());
    for (const double exponent : {-1.0, 0.0, 0.6}) {
      const auto weights = periodic_galerkin_weights(torus_of(periods), homogeneous(exponent), cells);
      // Each weight is a difference of the images' (up to 27 of order one) and the correction, to about 1e-14
      // each.
      EXPECT_NEAR(total_over_torus(weights, cells), 0.0, 1e-12 * volume_of({cells.begin(), cells.end()}))
          << cells[0] << " exponent " << exponent;
    }
  }
}

TEST(PeriodicGalerkinWeights, OfTheOneDimensionalLogAreItsFourierSeries) {
  // -log|2 sin(pi x / L)| = sum cos(2 pi m x / L) / m; the hat multiplies each wave by sinc^2.
  const std::size_t n = 12;
  const std::vector<std::size_t> cells{n};
  const auto weights = periodic_galerkin_weights(torus_of({2.0}), LogarithmicInteraction{1.0, 0.0}, cells);
  ASSERT_EQ(weights.size(), n / 2 + 1);
  for (std::size_t offset = 0; offset <= n / 2; ++offset) {
    double expected = 0.0;
    for (int m = 1; m < 400000; ++m) {
      const double w = pi * m / static_cast<double>(n);
      const double sinc = std::sin(w) / w;
      expected += sinc * sinc * std::cos(2.0 * w * static_cast<double>(offset)) / m;
    }
    // The tail of the series is below the integral of n^2 / (pi^2 m^3) from 4e5: 5e-11.
    EXPECT_NEAR(weights[offset], expected, 1e-10) << offset;
  }
}

TEST(PeriodicGalerkinWeights, AreTheMeansOfTheKernelOverFarCells) {
  const std::vector<double> periods{1.0, 1.4};
  const std::vector<std::size_t> cells{10, 12};
  const auto weights = periodic_galerkin_weights(torus_of(periods), RieszInteraction{1.0, 1.0, 0.0}, cells);
  const PeriodicKernel kernel(torus_of(periods), RieszInteraction{1.0, 1.0, 0.0});
  const double h = 0.1;
  const double k = 1.4 / 12.0;
  double mean = 0.0;  // midpoint rule over the hats of offset (4, 5)
  const int points = 64;
  for (int i = 0; i < points; ++i)
    for (int j = 0; j < points; ++j) {
      const double s = (2.0 * i + 1.0) / points - 1.0;
      const double t = (2.0 * j + 1.0) / points - 1.0;
      mean += kernel.value(std::vector<double>{h * (4.0 + s), k * (5.0 + t)}) * (1.0 - std::abs(s)) *
              (1.0 - std::abs(t));
    }
  // The rule's error: second derivatives of order 10 times (cell / 32)^2.
  EXPECT_NEAR(weights[4 * 7 + 5], mean * 4.0 / (points * points), 1e-4);
}

}  // namespace
}  // namespace rieszflow
