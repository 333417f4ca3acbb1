#include "features/feature_map.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "core/expects.hpp"
#include "core/noise.hpp"
#include "features/matrix_product.hpp"

namespace rieszflow {
namespace {

std::vector<double> gaussians(std::size_t count, std::uint64_t seed, double scale = 1.0) {
  std::vector<double> out(count);
  NoiseStream(seed, NoisePurpose::ReferenceSample).gaussians(0, 0, 0, out);
  for (double& value : out) value *= scale;
  return out;
}

std::size_t data_dimension(FeatureMap map) { return map == FeatureMap::Circle ? 1 : 3; }

/// The map written directly from its formula; (component, particle) of one data point.
std::vector<double> formula_values(FeatureMap map, std::span<const double> z,
                                   std::span<const double> particles) {
  const std::size_t d = z.size(), p = particle_dimension(map, d), count = particles.size() / p;
  std::vector<double> out(component_count(map) * count);
  double total = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    const double* omega = particles.data() + i * p;
    double dot = 0.0, square = 0.0;
    for (std::size_t k = 0; k < d; ++k) {
      dot += omega[k] * z[k];
      square += z[k] * z[k];
    }
    switch (map) {
      case FeatureMap::Fourier:
        out[i] = std::cos(dot);
        out[count + i] = std::sin(dot);
        break;
      case FeatureMap::FourierPhase:
        out[i] = std::numbers::sqrt2 * std::cos(dot + omega[d]);
        break;
      case FeatureMap::Circle:
        out[i] = std::numbers::sqrt2 * std::cos(z[0] - omega[0]);
        break;
      case FeatureMap::PositiveExponential:
        out[i] = std::exp(dot - square / 2);
        break;
      case FeatureMap::Softplus:
        out[i] = std::log(1.0 + std::exp(dot));
        break;
      case FeatureMap::Relu:
        out[i] = std::max(0.0, dot);
        break;
      case FeatureMap::Softmax:
        out[i] = std::exp(dot);
        total += out[i];
        break;
      case FeatureMap::SoftmaxPair:
        out[i] = std::exp(dot);
        out[count + i] = std::exp(-dot);
        total += out[i] + out[count + i];
        break;
    }
  }
  const double mean = map == FeatureMap::SoftmaxPair ? std::numbers::sqrt2 : 1.0;
  if (couples_particles(map))
    for (double& value : out) value *= mean * static_cast<double>(count) / total;
  return out;
}

double inner(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

class EachMap : public testing::TestWithParam<FeatureMap> {};

TEST_P(EachMap, ValuesAreTheFormula) {
  for (const std::size_t count : {1, 7, 8, 33}) {  // below, at and across the vector width
    const FeatureMap map = GetParam();
    const std::size_t d = data_dimension(map), rows = 41;
    const auto points = gaussians(rows * d, 1);
    const auto particles = reference_particles(map, count, d, 0.7, false, 2, 0);
    std::vector<double> values(rows * component_count(map) * count);
    feature_values(map, lift(map, points, d), particles, values);
    for (std::size_t a = 0; a < rows; ++a) {
      const auto expected = formula_values(map, {points.data() + a * d, d}, particles);
      for (std::size_t k = 0; k < expected.size(); ++k)
        EXPECT_NEAR(values[a * expected.size() + k], expected[k], 2e-14 * (1.0 + std::abs(expected[k])));
    }
  }
}

TEST_P(EachMap, PullbackIsTheGradient) {
  const FeatureMap map = GetParam();
  const std::size_t d = data_dimension(map), rows = 37, count = 9;
  const auto data = lift(map, gaussians(rows * d, 3), d);
  auto particles = reference_particles(map, count, d, 1.0, false, 4, 0);
  std::vector<double> values(rows * component_count(map) * count);
  const auto weights = gaussians(values.size(), 5);
  std::vector<double> gradient(particles.size(), 0.25);  // the pullback adds to what is there
  add_pullback(map, data, particles, weights, gradient);
  const double step = 1e-5;  // central difference: error of order step^2 = 1e-10 times third derivatives
  for (std::size_t k = 0; k < particles.size(); ++k) {
    const double at = particles[k];
    particles[k] = at + step;
    feature_values(map, data, particles, values);
    const double above = inner(weights, values);
    particles[k] = at - step;
    feature_values(map, data, particles, values);
    const double below = inner(weights, values);
    particles[k] = at;
    EXPECT_NEAR(gradient[k] - 0.25, (above - below) / (2 * step), 1e-6) << k;
  }
}

TEST_P(EachMap, KernelOfManyParticlesTendsToTheLimitKernel) {
  const FeatureMap map = GetParam();
  const std::size_t d = data_dimension(map), count = 40000;
  const double length = map == FeatureMap::PositiveExponential ? 1.0 : 1.3;
  const std::vector<double> points =
      d == 1 ? std::vector<double>{0.9, 0.4} : std::vector<double>{0.9, 0.5, -0.3, 0.4, 0.6, 0.2};
  const auto particles = reference_particles(map, count, d, length, false, 7, 0);
  const std::size_t width = component_count(map) * count;
  std::vector<double> values(2 * width);
  feature_values(map, lift(map, points, d), particles, values);
  std::vector<double> products(count, 0.0);
  for (std::size_t k = 0; k < width; ++k) products[k % count] += values[k] * values[width + k];
  const double mean = std::accumulate(products.begin(), products.end(), 0.0) / count;
  double variance = 0.0;
  for (const double x : products) variance += (x - mean) * (x - mean) / (count - 1);
  const double expected = limit_kernel(map, {points.data(), d}, {points.data() + d, d}, length);
  EXPECT_NEAR(mean, expected,
              4 * std::sqrt(variance / count) + (couples_particles(map) ? 20.0 / count : 0.0));
  EXPECT_GT(std::abs(expected - 1.0), 8 * std::sqrt(variance / count))
      << "the points must tell kernels apart";
}

TEST_P(EachMap, MomentsAreTheWeightedSumsForAnyNumberOfThreads) {
  const FeatureMap map = GetParam();
  const std::size_t d = data_dimension(map), rows = 101, count = 67, components = component_count(map);
  const auto data = lift(map, gaussians(rows * d, 8), d);
  const auto weights = gaussians(rows, 9);
  const auto particles = reference_particles(map, count, d, 1.0, false, 10, 0);
  std::vector<double> values(rows * components * count), moments(count * components),
      derivatives(moments.size() * data.dimension);
  feature_values(map, data, particles, values);
  if (couples_particles(map)) {  // there are no moments of one alone
    EXPECT_THROW(weighted_moments(map, data, weights, particles, moments, derivatives, 1),
                 PreconditionViolation);
    return;
  }
  weighted_moments(map, data, weights, particles, moments, derivatives, 1);
  for (std::size_t c = 0; c < components; ++c) {
    std::vector<double> component_weights(values.size(), 0.0), gradient(particles.size(), 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      double sum = 0.0;
      for (std::size_t a = 0; a < rows; ++a) {
        sum += weights[a] * values[(a * components + c) * count + i];
        component_weights[(a * components + c) * count + i] = weights[a];
      }
      EXPECT_NEAR(moments[i * components + c], sum, 1e-12);
    }
    add_pullback(map, data, particles, component_weights, gradient);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < data.dimension; ++k)
        EXPECT_NEAR(derivatives[(i * components + c) * data.dimension + k], gradient[i * data.dimension + k],
                    1e-11);
  }
  auto other_moments = moments;
  auto other_derivatives = derivatives;
  weighted_moments(map, data, weights, particles, other_moments, other_derivatives, 3);
  EXPECT_EQ(moments, other_moments);
  EXPECT_EQ(derivatives, other_derivatives);
}

TEST_P(EachMap, ANotANumberInTheDataIsNotHidden) {
  const FeatureMap map = GetParam();
  const std::size_t d = data_dimension(map);
  std::vector<double> points(d, 0.5);
  points[0] = std::nan("");
  const auto particles = reference_particles(map, 3, d, 1.0, false, 1, 0);
  std::vector<double> values(component_count(map) * 3);
  feature_values(map, lift(map, points, d), particles, values);
  for (const double value : values) EXPECT_TRUE(std::isnan(value));
}

INSTANTIATE_TEST_SUITE_P(Features, EachMap, testing::ValuesIn(feature_maps().begin(), feature_maps().end()),
                         [](const auto& instance) { return std::string(name(instance.param)); });

TEST(FourierFeatures, AreAccurateForSmallLargeAndHugeScores) {
  // 1e5 ends the vector range: below it sine and cosine hold 2 ulp of 1, beyond it the C library takes over.
  for (const double scale : {1e-9, 1.0, 100.0, 0.99e5, 1e7, 1e15}) {
    const std::size_t rows = 500;
    std::vector<double> points(rows), omega{1.0}, values(2 * rows);
    NoiseStream(1, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, points);
    for (double& x : points) x = (2 * x - 1) * scale;
    feature_values(FeatureMap::Fourier, lift(FeatureMap::Fourier, points, 1), omega, values);
    for (std::size_t a = 0; a < rows; ++a) {
      EXPECT_NEAR(values[2 * a], std::cos(points[a]), 4.5e-16) << points[a];
      EXPECT_NEAR(values[2 * a + 1], std::sin(points[a]), 4.5e-16 * std::min(1.0, scale)) << points[a];
    }
  }
}

TEST(ExponentialFeatures, AreAccurateOverTheWholeRangeOfDoubles) {
  const std::vector<double> omega{1.0};
  for (const double s : {-750.0, -745.0, -701.0, -699.0, -20.0, -1e-9, 0.0, 0.3, 30.0, 699.0, 705.0, 709.7}) {
    double value = 0.0;
    const std::vector<double> point{s};
    feature_values(FeatureMap::Softplus, lift(FeatureMap::Softplus, point, 1), omega, {&value, 1});
    const double softplus = std::max(s, 0.0) + std::log1p(std::exp(-std::abs(s)));
    EXPECT_NEAR(value, softplus, 4e-16 * softplus) << s;
    // exp(omega z - z^2/2) with the offset cancelled by omega' = omega + z/2
    const std::vector<double> shifted{1.0 + s / 2};
    feature_values(FeatureMap::PositiveExponential, lift(FeatureMap::PositiveExponential, point, 1), shifted,
                   {&value, 1});
    EXPECT_NEAR(value, std::exp(s), 1e-10 * std::exp(s)) << s;  // the score itself is rounded at |s|^2 ulp
  }
}

TEST(SoftmaxFeatures, StayFiniteForScoresOfAThousand) {
  const std::vector<double> points{1000.0}, omega{1.0, -1.0, 0.999};
  std::vector<double> values(3);
  feature_values(FeatureMap::Softmax, lift(FeatureMap::Softmax, points, 1), omega, values);
  EXPECT_NEAR(values[0], 3.0 / (1.0 + std::exp(-1.0)), 1e-12);
  EXPECT_EQ(values[1], 0.0);
  EXPECT_NEAR(std::accumulate(values.begin(), values.end(), 0.0), 3.0, 1e-14);
}

TEST(MirroredSoftmaxFeatures, AreAllEqualAtTheOriginAndFiniteForScoresOfAThousand) {
  const std::vector<double> points{0.0, 1000.0}, omega{1.0, -1.0, 0.999};
  std::vector<double> values(12);
  feature_values(FeatureMap::SoftmaxPair, lift(FeatureMap::SoftmaxPair, points, 1), omega, values);
  for (std::size_t k = 0; k < 6; ++k) EXPECT_NEAR(values[k], std::numbers::sqrt2 / 2.0, 1e-15);
  EXPECT_NEAR(values[6], values[6 + 3 + 1], 1e-12);  // w_1 and the mirror image of w_2
  EXPECT_EQ(values[7], 0.0);
  EXPECT_NEAR(std::accumulate(values.begin() + 6, values.end(), 0.0), 3.0 * std::numbers::sqrt2, 1e-13);
}

TEST(OrthogonalParticles, HaveOrthogonalDirectionsAndASmallerKernelVariance) {
  const std::size_t d = 8, count = 16;
  const auto particles = reference_particles(FeatureMap::Fourier, count, d, 1.0, true, 3, 0);
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_NEAR(inner({particles.data() + i * d, d}, {particles.data() + j * d, d}), 0.0, 1e-13);
  const std::vector<double> z(d, 0.3), origin(d, 0.0);
  const double exact = limit_kernel(FeatureMap::Fourier, z, origin, 1.0);
  double errors[2] = {0.0, 0.0};
  for (const bool orthogonal : {false, true}) {
    for (std::uint64_t replica = 0; replica < 300; ++replica) {
      const auto omega = reference_particles(FeatureMap::Fourier, count, d, 1.0, orthogonal, 11, replica);
      double kernel = 0.0;
      for (std::size_t i = 0; i < count; ++i) kernel += std::cos(inner({omega.data() + i * d, d}, z)) / count;
      errors[orthogonal] += (kernel - exact) * (kernel - exact) / 300;
    }
  }
  EXPECT_LT(errors[1], 0.5 * errors[0]);  // 0.25 in this setting, each known to 8 %
}

TEST(ParticlesOfTheReferenceLaw, DependOnSeedReplicaAndIndexOnly) {
  const auto few = reference_particles(FeatureMap::FourierPhase, 5, 3, 2.0, false, 1, 4);
  const auto many = reference_particles(FeatureMap::FourierPhase, 9, 3, 2.0, false, 1, 4);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  EXPECT_NE(few, reference_particles(FeatureMap::FourierPhase, 5, 3, 2.0, false, 1, 5));
}

TEST(MedianDistance, IsThatOfThePairsAndIgnoresEqualRows) {
  const std::vector<double> line{0.0, 1.0, 3.0, 7.0};  // distances 1 2 3 4 6 7
  EXPECT_EQ(median_distance(line, 1), 4.0);
  EXPECT_EQ(median_distance(std::vector<double>{2.0, 2.0, 2.0, 5.0}, 1), 3.0);
  EXPECT_EQ(median_distance(std::vector<double>{1.0, 1.0}, 1), 0.0);
}

TEST(MatrixProduct, IsTheSumForEveryShapeAndOrientation) {
  for (const std::size_t rows : {1, 2, 3, 5, 8})
    for (const std::size_t columns : {8, 16, 24}) {
      const std::size_t inner_count = 7;
      const auto a = gaussians(rows * inner_count, 1), b = gaussians(inner_count * columns, 2);
      for (const bool transpose : {false, true}) {
        const MatrixView view =
            transpose ? MatrixView{a.data(), 1, rows} : MatrixView{a.data(), inner_count, 1};
        std::vector<double> c(rows * columns, 0.5);
        add_product(rows, inner_count, columns, view, b.data(), columns, c.data(), columns);
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t k = 0; k < columns; ++k) {
            double sum = 0.5;
            for (std::size_t t = 0; t < inner_count; ++t)
              sum += a[r * view.row_stride + t * view.column_stride] * b[t * columns + k];
            EXPECT_NEAR(c[r * columns + k], sum, 1e-13);
          }
      }
    }
}

}  // namespace
}  // namespace rieszflow
