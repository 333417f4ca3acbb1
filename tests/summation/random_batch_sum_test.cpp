#include "summation/random_batch_sum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace rieszflow {
namespace {

std::vector<double> cloud(std::size_t count) {
  std::vector<double> x(count);
  NoiseStream(5, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, x);
  for (double& c : x) c = 2.0 * c - 1.0;
  return x;
}

Model plane() {
  return {WholeSpace{2}, {}, {LogarithmicInteraction{1.0, 0.3}, QuadraticInteraction{0.5}}, 1.0};
}

std::vector<double> all_pairs(const std::vector<double>& x) {
  std::vector<double> forces(x.size(), 0.0);
  PairSum(plane(), x.size() / 2, {.method = PairSum::Method::Direct}).add_forces(x, 1, forces);
  return forces;
}

TEST(RandomBatchSum, ABatchOfAllParticlesIsTheWholeSum) {
  const auto x = cloud(2 * 50), exact = all_pairs(x);
  std::vector<double> forces(x.size(), 0.0);
  RandomBatchSum(plane(), 50, 50, 1, 1).add_forces(x, 1, 7, forces);
  for (std::size_t k = 0; k < x.size(); ++k) EXPECT_NEAR(forces[k], exact[k], 1e-13);
}

TEST(RandomBatchSum, IsUnbiasedWithTheVarianceOfSamplingWithoutReplacement) {
  const std::size_t n = 31;  // no multiple of the batch: the last batch is longer
  const auto x = cloud(2 * n), exact = all_pairs(x);
  for (const std::size_t p : {2, 5}) {
    RandomBatchSum batches(plane(), n, p, 3, 1);
    const std::uint64_t draws = 40000;
    std::vector<double> mean(x.size(), 0.0), square(x.size(), 0.0), forces(x.size());
    for (std::uint64_t step = 0; step < draws; ++step) {
      std::ranges::fill(forces, 0.0);
      batches.add_forces(x, 1, step, forces);
      for (std::size_t k = 0; k < x.size(); ++k) mean[k] += forces[k], square[k] += forces[k] * forces[k];
    }
    double worst = 0.0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      mean[k] /= static_cast<double>(draws);
      const double variance = square[k] / static_cast<double>(draws) - mean[k] * mean[k];
      worst =
          std::max(worst, std::abs(mean[k] - exact[k]) / std::sqrt(variance / static_cast<double>(draws)));
    }
    EXPECT_LT(worst, 4.5) << p;  // of 62 coordinates
  }
}

TEST(RandomBatchSum, HasTheSameBitsForOneTwoAndThreeThreadsAndDiffersFromStepToStep) {
  const std::size_t n = 1001;
  const auto x = cloud(2 * 2 * n);
  const auto forces_of = [&](int threads, std::uint64_t step) {
    std::vector<double> forces(x.size(), 0.0);
    RandomBatchSum(plane(), n, 8, 3, threads).add_forces(x, 2, step, forces);
    return forces;
  };
  EXPECT_EQ(forces_of(1, 4), forces_of(2, 4));
  EXPECT_EQ(forces_of(1, 4), forces_of(3, 4));
  EXPECT_NE(forces_of(1, 4), forces_of(1, 5));
}

}  // namespace
}  // namespace rieszflow
