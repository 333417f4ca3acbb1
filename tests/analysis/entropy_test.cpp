#include "analysis/entropy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/neighbour_tree.hpp"
#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow {
namespace {

constexpr double pi = std::numbers::pi;

/// A law on an interval by its unnormalised density: entropy by the midpoint rule, samples by the inverse
/// CDF.
class IntervalLaw {
 public:
  IntervalLaw(const std::function<double(double)>& density, double lower, double upper)
      : lower_(lower), width_((upper - lower) / cells), cumulative_(cells + 1, 0.0) {
    double logarithm = 0.0;
    for (std::size_t i = 0; i < cells; ++i) {
      const double value = density(lower + (static_cast<double>(i) + 0.5) * width_);
      cumulative_[i + 1] = cumulative_[i] + value * width_;
      logarithm += value > 0.0 ? value * std::log(value) * width_ : 0.0;
    }
    const double mass = cumulative_.back();
    entropy_ = std::log(mass) - logarithm / mass;
    for (double& value : cumulative_) value /= mass;
  }
  double entropy() const { return entropy_; }
  double sample(double u) const {
    const auto above = std::upper_bound(cumulative_.begin(), cumulative_.end(), u);
    const std::size_t cell = static_cast<std::size_t>(above - cumulative_.begin()) - 1;
    const double fraction = (u - cumulative_[cell]) / (cumulative_[cell + 1] - cumulative_[cell]);
    return lower_ + width_ * (static_cast<double>(cell) + fraction);
  }

 private:
  static constexpr std::size_t cells = 100000;
  double lower_, width_, entropy_ = 0.0;
  std::vector<double> cumulative_;
};

struct Case {
  std::string name;
  Domain domain;
  std::size_t dimension;
  double entropy;
  std::function<void(std::span<const double> uniforms, double* point)> draw;
};

ParticleEnsemble ensemble_of(const Case& law, std::size_t replicas, std::size_t particles,
                             std::uint64_t trial) {
  ParticleEnsemble ensemble{replicas, particles, law.dimension,
                            std::vector<double>(replicas * particles * law.dimension)};
  const NoiseStream noise(11, NoisePurpose::ReferenceSample);
  std::vector<double> uniforms(law.dimension + 1);
  for (std::size_t i = 0; i < replicas * particles; ++i) {
    noise.uniforms(trial, 0, i, uniforms);
    law.draw(uniforms, &ensemble.positions[i * law.dimension]);
  }
  return ensemble;
}

Case product(const std::string& name, const std::function<double(double)>& density, std::size_t dimension,
             double lower, double upper,
             const std::function<Domain(std::vector<double>, std::vector<double>)>& domain) {
  const auto law = std::make_shared<IntervalLaw>(density, lower, upper);
  return {name, domain(std::vector<double>(dimension, lower), std::vector<double>(dimension, upper)),
          dimension, static_cast<double>(dimension) * law->entropy(),
          [law, dimension](std::span<const double> u, double* x) {
            for (std::size_t axis = 0; axis < dimension; ++axis) x[axis] = law->sample(u[axis]);
          }};
}

Domain box(std::vector<double> lower, std::vector<double> upper) { return Box{lower, upper}; }
Domain torus(std::vector<double> lower, std::vector<double> upper) { return Torus{lower, upper}; }
Domain whole(std::vector<double> lower, std::vector<double>) { return WholeSpace{lower.size()}; }

/// rho ~ (1 - 0.7 r^2)^-2 in the unit ball: the shape of the two-dimensional log gas.
Case ball_case(std::size_t dimension) {
  const auto radial = [dimension](double r) {
    return std::pow(1.0 - 0.7 * r * r, -2.0) * std::pow(r, static_cast<double>(dimension) - 1.0);
  };
  const auto law = std::make_shared<IntervalLaw>(radial, 0.0, 1.0);
  const double surface = dimension == 2 ? 2.0 * pi : 4.0 * pi;
  double mass = 0.0, logarithm = 0.0;
  for (int i = 0; i < 100000; ++i) {
    const double r = (i + 0.5) * 1e-5;
    mass += surface * radial(r) * 1e-5;
    logarithm += surface * radial(r) * -2.0 * std::log(1.0 - 0.7 * r * r) * 1e-5;
  }
  return {"ball " + std::to_string(dimension), Ball{std::vector<double>(dimension, 0.0), 1.0}, dimension,
          std::log(mass) - logarithm / mass, [law, dimension](std::span<const double> u, double* x) {
            const double r = law->sample(u[0]), angle = 2.0 * pi * u[1];
            const double z = dimension == 3 ? 2.0 * u[2] - 1.0 : 0.0;
            x[0] = r * std::sqrt(1.0 - z * z) * std::cos(angle);
            x[1] = r * std::sqrt(1.0 - z * z) * std::sin(angle);
            if (dimension == 3) x[2] = r * z;
          }};
}

double log_gas_density(double t) {  // log gas on [-1,1], V = 0, beta = 2
  const double a = (1.0 - t * t) * std::atanh(t) + t, b = pi / 2.0 * (1.0 - t * t);
  return 1.0 / (a * a + b * b);
}

std::vector<Case> cases() {
  const auto uniform = [](double) { return 1.0; };
  const auto gauss = [](double x) { return std::exp(-x * x / 2.0); };
  const auto narrow = [](double x) { return std::exp(-x * x / (2.0 * 0.09)); };
  const auto wall = [](double x) { return std::exp(-4.0 * x); };
  const auto wave = [](double x) { return 1.0 + 0.8 * std::cos(x); };
  const auto coulomb = [](double x) {
    return std::pow(std::cos(1.4 * x), -2.0);
  };  // wall density 35 times the centre's
  std::vector<Case> result;
  result.push_back(product("log gas", log_gas_density, 1, -1.0, 1.0, box));
  result.push_back(product("1-d Coulomb", coulomb, 1, -1.0, 1.0, box));
  for (std::size_t d = 1; d <= 3; ++d) {
    const std::string dimension = " " + std::to_string(d);
    result.push_back(product("uniform" + dimension, uniform, d, 0.0, 3.0, box));
    result.push_back(product("gauss" + dimension, gauss, d, -9.0, 9.0, whole));
    result.push_back(product("narrow gauss" + dimension, narrow, d, -1.0, 1.0, box));
    result.push_back(product("exponential at a wall" + dimension, wall, d, 0.0, 2.0, box));
    result.push_back(product("torus" + dimension, wave, d, -pi, pi, torus));
    if (d > 1) result.push_back(ball_case(d));
  }
  return result;
}

TEST(Entropy, OfGaussianMatchesTheReferenceQuadrature) {
  const std::vector<Case> laws = cases();
  const auto gauss =
      std::find_if(laws.begin(), laws.end(), [](const Case& law) { return law.name == "gauss 2"; });
  ASSERT_NE(gauss, laws.end());
  EXPECT_NEAR(gauss->entropy, std::log(2.0 * pi * std::numbers::e), 1e-9);
}

TEST(Entropy, BiasIsBelowTheStandardErrorAt16ReplicasOf2000) {
  for (const Case& law : cases()) {
    std::vector<double> errors;
    double standard_error = 0.0;
    for (std::uint64_t trial = 0; trial < 4; ++trial) {
      const EntropyEstimate result = entropy(ensemble_of(law, 16, 2000, trial), law.domain);
      errors.push_back(result.estimate.value - law.entropy);
      standard_error += result.estimate.standard_error / 4.0;
    }
    const Estimate bias = mean_estimate(errors);
    // Four trials: the mean error has standard deviation standard_error / 2; 1 + 2.5 / 2 of them in all.
    EXPECT_LT(std::abs(bias.value), 2.25 * standard_error) << law.name;
    EXPECT_LT(standard_error, 0.006 * static_cast<double>(law.dimension) + 0.003) << law.name;
  }
}

TEST(Entropy, BiasOfSmallSamplesStaysBelowTheirSpread) {
  for (const Case& law : cases())
    for (std::size_t particles : {10u, 100u}) {
      std::vector<double> errors;
      const std::size_t trials = 400;
      for (std::uint64_t trial = 0; trial < trials; ++trial)
        errors.push_back(entropy(ensemble_of(law, 1, particles, trial), law.domain).estimate.value -
                         law.entropy);
      const Estimate bias = mean_estimate(errors);
      const double spread = bias.standard_error * std::sqrt(static_cast<double>(trials));
      EXPECT_LT(std::abs(bias.value), 0.8 * spread + 4.0 * bias.standard_error)
          << law.name << ' ' << particles;
    }
}

TEST(Entropy, OfUniformLawHasNoBiasUpToTheWalls) {
  for (const Case& law : cases()) {
    if (!law.name.starts_with("uniform")) continue;
    std::vector<double> errors;
    for (std::uint64_t trial = 0; trial < 2000; ++trial)
      errors.push_back(entropy(ensemble_of(law, 1, 40, trial), law.domain).estimate.value - law.entropy);
    const Estimate bias = mean_estimate(errors);
    EXPECT_NEAR(bias.value, 0.0, 4.0 * bias.standard_error) << law.name;
    EXPECT_LT(bias.standard_error, 0.006) << law.name;
  }
}

TEST(Entropy, StandardErrorIsTheSpreadOfTheEstimate) {
  const Case law = cases()[0];
  std::vector<double> values;
  double standard_error = 0.0;
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    const EntropyEstimate result = entropy(ensemble_of(law, 16, 100, trial), law.domain);
    values.push_back(result.estimate.value);
    standard_error += result.estimate.standard_error / 200.0;
  }
  const double spread = mean_estimate(values).standard_error * std::sqrt(200.0);
  EXPECT_NEAR(standard_error / spread, 1.0, 0.25);
}

TEST(Entropy, ReplicaValuesHaveTheEstimateAsMean) {
  const Case law = cases()[1];
  const EntropyEstimate result = entropy(ensemble_of(law, 8, 50, 0), law.domain);
  ASSERT_EQ(result.replica_values.size(), 8u);
  const Estimate mean = mean_estimate(result.replica_values);
  EXPECT_NEAR(mean.value, result.estimate.value, 1e-13);
  EXPECT_NEAR(mean.standard_error, result.estimate.standard_error, 1e-13);
}

TEST(Entropy, ChangesByTheLogarithmOfTheScalePerAxis) {
  // A box of 1 by 1e-9: an axis measured in its own units must not see the other one.
  const Case law = cases()[0];
  ParticleEnsemble square{2, 200, 2, std::vector<double>(800)};
  NoiseStream(3, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, square.positions);
  ParticleEnsemble thin = square;
  for (std::size_t i = 1; i < thin.positions.size(); i += 2) thin.positions[i] *= 1e-9;
  const double of_square = entropy(square, Box{{0.0, 0.0}, {1.0, 1.0}}).estimate.value;
  const double of_thin = entropy(thin, Box{{0.0, 0.0}, {1.0, 1e-9}}).estimate.value;
  EXPECT_NEAR(of_thin - of_square, std::log(1e-9), 1e-9);
}

TEST(Entropy, OnTheTorusDoesNotSeeTheSeam) {
  const Case law = product(
      "torus", [](double x) { return 1.0 + 0.8 * std::cos(x); }, 2, -pi, pi, torus);
  ParticleEnsemble ensemble = ensemble_of(law, 1, 300, 0);
  const double before = entropy(ensemble, law.domain).estimate.value;
  // Both axes share their spread only before the shift; measured with the box as unit the value may not move
  // at all.
  for (double& x : ensemble.positions) x = x + 2.0 < pi ? x + 2.0 : x + 2.0 - 2.0 * pi;
  EXPECT_NEAR(entropy(ensemble, law.domain).estimate.value, before, 1e-9);
}

TEST(Entropy, OfCoincidentParticlesIsFiniteAndReported) {
  const Case law = cases()[2];
  ParticleEnsemble ensemble = ensemble_of(law, 2, 100, 0);
  for (std::size_t i = 0; i < 60; ++i) ensemble.positions[i] = 0.0;  // on the wall of [0, 3]
  const EntropyEstimate result = entropy(ensemble, law.domain);
  EXPECT_TRUE(std::isfinite(result.estimate.value));
  EXPECT_TRUE(std::isfinite(result.estimate.standard_error));
  EXPECT_EQ(result.coincident_particles, 60u);
  EXPECT_LT(result.estimate.value, law.entropy - 0.5);
}

TEST(Entropy, OfOnePointIsMinusInfinityAndReported) {
  const ParticleEnsemble ensemble{2, 3, 2, std::vector<double>(12, 0.5)};
  const EntropyEstimate result = entropy(ensemble, Box{{0.0, 0.0}, {1.0, 1.0}});
  EXPECT_EQ(result.estimate.value, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(result.coincident_particles, 6u);
}

TEST(Entropy, OfFewerThanTwoParticlesIsUndefined) {
  const EntropyEstimate one = entropy({1, 1, 1, {0.5}}, Box{{0.0}, {1.0}});
  EXPECT_TRUE(std::isnan(one.estimate.value));
  EXPECT_EQ(one.estimate.samples, 0u);
  const EntropyEstimate none = entropy({0, 0, 1, {}}, Box{{0.0}, {1.0}});
  EXPECT_EQ(none.estimate.samples, 0u);
  const EntropyEstimate two_replicas = entropy({2, 1, 1, {0.25, 0.75}}, Box{{0.0}, {1.0}});
  EXPECT_TRUE(std::isfinite(two_replicas.estimate.value));
  EXPECT_TRUE(std::isnan(two_replicas.estimate.standard_error));
}

TEST(Entropy, OfPointsOnWallsAndCornersIsFinite) {
  const ParticleEnsemble corners{1, 5, 2, {-1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 0.0, 0.0}};
  EXPECT_TRUE(std::isfinite(entropy(corners, Box{{-1.0, -1.0}, {1.0, 1.0}}).estimate.value));
  const double outside = std::nextafter(1.0, 2.0);
  const ParticleEnsemble sphere{1, 4, 2, {1.0, 0.0, -outside, 0.0, 0.0, 1.0, 0.0, -1.0}};
  EXPECT_TRUE(std::isfinite(entropy(sphere, Ball{{0.0, 0.0}, 1.0}).estimate.value));
}

TEST(NeighbourTree, FindsWhatASearchOverAllPairsFinds) {
  for (std::size_t dimension : {1u, 2u, 3u, 5u})
    for (NeighbourTree::Norm norm : {NeighbourTree::Norm::Euclidean, NeighbourTree::Norm::Maximum})
      for (double period : {0.0, 1.0}) {
        const std::size_t points = 150;
        std::vector<double> x(points * dimension);
        NoiseStream(7, NoisePurpose::ReferenceSample).uniforms(dimension, 0, 0, x);
        const NeighbourTree tree(x, std::vector<double>(dimension, period), norm);
        std::vector<NeighbourTree::Neighbour> found;
        for (std::size_t i = 0; i < points; ++i) {
          std::vector<double> distances;
          for (std::size_t j = 0; j < points; ++j) {
            if (j == i) continue;
            double largest = 0.0, squares = 0.0;
            for (std::size_t axis = 0; axis < dimension; ++axis) {
              double gap = std::abs(x[i * dimension + axis] - x[j * dimension + axis]);
              if (period > 0.0) gap = std::min(gap, period - gap);
              largest = std::max(largest, gap);
              squares += gap * gap;
            }
            distances.push_back(norm == NeighbourTree::Norm::Maximum ? largest : std::sqrt(squares));
          }
          std::sort(distances.begin(), distances.end());
          tree.nearest(i, 7, found);
          ASSERT_EQ(found.size(), 7u);
          for (std::size_t k = 0; k < 7; ++k) EXPECT_EQ(found[k].distance, distances[k]);
        }
        tree.nearest(0, 1000, found);
        EXPECT_EQ(found.size(), points - 1);
      }
}

TEST(MeanFieldInteractionEnergy, IsUnbiasedForIndependentParticles) {
  // W = |x - y|^2 / 2, x uniform on (0,1): (1/2) double-integral W rho rho = 1/24.
  std::vector<double> energies;
  const NoiseStream noise(9, NoisePurpose::ReferenceSample);
  for (std::uint64_t trial = 0; trial < 4000; ++trial) {
    std::vector<double> x(3);
    noise.uniforms(trial, 0, 0, x);
    double pairs = 0.0;
    for (double a : x)
      for (double b : x) pairs += (a - b) * (a - b) / 2.0;
    energies.push_back(mean_field_interaction_energy(pairs / (2.0 * 9.0), 3));
  }
  const Estimate energy = mean_estimate(energies);
  EXPECT_NEAR(energy.value, 1.0 / 24.0, 4.0 * energy.standard_error);
  EXPECT_LT(energy.standard_error, 0.1 / 24.0);
  EXPECT_THROW(mean_field_interaction_energy(0.0, 1), PreconditionViolation);
}

}  // namespace
}  // namespace rieszflow
