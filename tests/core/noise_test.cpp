#include "core/noise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

constexpr std::uint64_t seed = 20240607;

std::vector<double> gaussian_sample(std::uint64_t replica, std::uint64_t step, std::size_t count,
                                    std::size_t dimension,
                                    NoisePurpose purpose = NoisePurpose::LangevinIncrement) {
  std::vector<double> sample(count * dimension);
  NoiseStream(seed, purpose).gaussian_block(replica, step, count, dimension, sample);
  return sample;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum / static_cast<double>(a.size());
}

// Random123's own known answer for philox4x64-10 with counter and key zero: 16554d9eca36314c db20fe9d672d0fdc
// d7e772cee186176b 7e68b68aec7ba23b. Here purpose is never zero, so the numbers below were computed from the
// published algorithm in exact integer arithmetic, independently of Random123: key (1, 2), counter (0, 5, 4,
// 3).
TEST(NoiseStream, IsPhiloxKeyedBySeedAndPurposeAndCountedByParticleStepReplica) {
  std::vector<double> u(4);
  NoiseStream(1, NoisePurpose::LangevinIncrement).uniforms(3, 4, 5, u);
  const std::uint64_t words[] = {0x152309e50bf2d59aULL, 0x286aba0e5f779ebfULL, 0x63643878319cd72dULL,
                                 0x8209ad34635ab017ULL};
  for (int k = 0; k < 4; ++k) {
    EXPECT_EQ(u[k], (static_cast<double>(words[k] >> 12) + 0.5) * 0x1.0p-52);
  }
}

TEST(NoiseStream, UniformsNeverReachZeroOrOne) {
  std::vector<double> u(1u << 20);
  NoiseStream(seed, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, u);
  const auto [low, high] = std::ranges::minmax(u);
  EXPECT_GT(low, 0.0);
  EXPECT_LT(high, 1.0);
  // The extremes of n uniforms are 1/n from the ends on average: a stream that avoids the ends would fail
  // here.
  EXPECT_LT(low, 20.0 / static_cast<double>(u.size()));
  EXPECT_GT(high, 1.0 - 20.0 / static_cast<double>(u.size()));
}

TEST(NoiseStream, UniformsFillTheUnitIntervalEvenly) {
  constexpr std::size_t bins = 1000, count = 1u << 20;
  std::vector<double> u(count), histogram(bins, 0.0);
  NoiseStream(seed, NoisePurpose::ReferenceSample).uniforms(1, 2, 3, u);
  for (const double x : u) histogram[static_cast<std::size_t>(x * bins)] += 1.0;
  double chi_squared = 0.0;
  const double expected = static_cast<double>(count) / bins;
  for (const double h : histogram) chi_squared += (h - expected) * (h - expected) / expected;
  EXPECT_NEAR(chi_squared, bins - 1.0, 5.0 * std::sqrt(2.0 * bins));  // five standard deviations of chi^2
}

TEST(NoiseStream, GaussiansAreBoxMullerOfTheUniforms) {
  // The library's functions have errors of a few ulp; a wrong quadrant or branch is an error of order one.
  for (std::uint64_t particle = 0; particle < 2000; ++particle) {
    const NoiseStream stream(seed, NoisePurpose::InitialPosition);
    std::vector<double> u(4), g(4);
    stream.uniforms(0, 9, particle, u);
    stream.gaussians(0, 9, particle, g);
    for (int k = 0; k < 4; k += 2) {
      const double radius = std::sqrt(-2.0 * std::log(u[k])), angle = 2.0 * std::numbers::pi * u[k + 1];
      EXPECT_NEAR(g[k], radius * std::cos(angle), 1e-14);
      EXPECT_NEAR(g[k + 1], radius * std::sin(angle), 1e-14);
    }
  }
}

TEST(NoiseStream, GaussiansHaveTheMomentsOfTheNormalLaw) {
  const auto g = gaussian_sample(0, 0, 1u << 20, 2);
  const double n = static_cast<double>(g.size());
  double moment[9] = {};
  for (const double x : g) {
    double power = 1.0;
    for (double& m : moment) m += power / n, power *= x;
  }
  const double exact[] = {1, 0, 1, 0, 3, 0, 15, 0, 105},
               second[] = {1, 1, 3, 15, 105, 945, 10395, 135135, 2027025};
  for (int k = 1; k < 9; ++k) {
    EXPECT_NEAR(moment[k], exact[k], 5.0 * std::sqrt((second[k] - exact[k] * exact[k]) / n))
        << "moment " << k;
  }
}

TEST(NoiseStream, GaussiansFollowTheNormalDistributionFunction) {
  auto g = gaussian_sample(1, 0, 1u << 18, 3);
  std::ranges::sort(g);
  double distance = 0.0;
  const double n = static_cast<double>(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double exact = 0.5 * std::erfc(-g[i] / std::numbers::sqrt2);
    distance = std::max({distance, std::abs(exact - i / n), std::abs(exact - (i + 1) / n)});
  }
  EXPECT_LT(distance * std::sqrt(n), 1.95);  // Kolmogorov-Smirnov, level 0.001
}

TEST(NoiseStream, StreamsThatDifferInOneKeyAreUncorrelated) {
  const std::size_t count = 1u << 18;
  const auto base = gaussian_sample(7, 11, count, 1);
  const double bound = 5.0 / std::sqrt(static_cast<double>(count));
  EXPECT_LT(std::abs(correlation(base, gaussian_sample(8, 11, count, 1))), bound);
  EXPECT_LT(std::abs(correlation(base, gaussian_sample(7, 12, count, 1))), bound);
  EXPECT_LT(std::abs(correlation(base, gaussian_sample(11, 7, count, 1))), bound);
  EXPECT_LT(std::abs(correlation(base, gaussian_sample(7, 11, count, 1, NoisePurpose::BrownianBridge))),
            bound);
  std::vector<double> other_seed(count), neighbour(count);
  NoiseStream(seed + 1, NoisePurpose::LangevinIncrement).gaussian_block(7, 11, count, 1, other_seed);
  EXPECT_LT(std::abs(correlation(base, other_seed)), bound);
  NoiseStream(seed, NoisePurpose::LangevinIncrement).gaussian_block(7, 11, 1, count, 1, neighbour);
  EXPECT_LT(std::abs(correlation(base, neighbour)), bound);
}

TEST(NoiseStream, DimensionsOfOneParticleAreUncorrelated) {
  const std::size_t count = 1u << 18, dimension = 5;
  const auto g = gaussian_sample(0, 0, count, dimension);
  for (std::size_t a = 0; a < dimension; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      double sum = 0.0;
      for (std::size_t i = 0; i < count; ++i) sum += g[i * dimension + a] * g[i * dimension + b];
      EXPECT_LT(std::abs(sum / count), 5.0 / std::sqrt(static_cast<double>(count)));
    }
  }
}

TEST(NoiseStream, BlockGivesTheBitsOfTheSingleParticleCalls) {
  const NoiseStream stream(seed, NoisePurpose::LangevinIncrement);
  for (const std::size_t dimension : {1, 2, 3, 4, 5, 64, 600}) {
    const std::size_t count = 521;
    std::vector<double> block(count * dimension), single(dimension);
    stream.gaussian_block(3, 1u << 20, count, dimension, block);
    for (std::size_t i = 0; i < count; ++i) {
      stream.gaussians(3, 1u << 20, i, single);
      ASSERT_TRUE(std::equal(single.begin(), single.end(), block.begin() + i * dimension))
          << dimension << ' ' << i;
    }
  }
}

TEST(NoiseStream, BlockRefusesAnArrayOfAnotherSize) {
  std::vector<double> out(5);
  EXPECT_THROW(NoiseStream(seed, NoisePurpose::Bootstrap).gaussian_block(0, 0, 3, 2, out),
               PreconditionViolation);
}

}  // namespace
}  // namespace rieszflow
