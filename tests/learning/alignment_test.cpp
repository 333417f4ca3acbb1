#include "model/alignment.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <complex>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow {
namespace {

std::vector<double> gaussians(std::size_t count, std::uint64_t seed) {
  std::vector<double> out(count);
  NoiseStream(seed, NoisePurpose::ReferenceSample).gaussians(0, 0, 0, out);
  return out;
}

LabelledData random_data(FeatureMap map, std::size_t rows, std::size_t label_columns) {
  LabelledData data;
  data.count = rows;
  data.dimension = map == FeatureMap::Circle ? 1 : 2;
  data.label_columns = label_columns;
  data.points = gaussians(rows * data.dimension, 1);
  data.labels = gaussians(rows * label_columns, 2);
  for (double& y : data.labels) y = y > -0.3 ? 1.0 : -1.0;  // unbalanced, so that centring matters
  return data;
}

/// Bags of 1, 2, ..., 5, 1, 2, ... points.
LabelledData random_bags(FeatureMap map, std::size_t bags, std::size_t label_columns) {
  LabelledData data = random_data(map, bags, label_columns);
  data.bag_starts.push_back(0);
  for (std::size_t b = 0; b < bags; ++b) data.bag_starts.push_back(data.bag_starts.back() + 1 + b % 5);
  data.points = gaussians(data.bag_starts.back() * data.dimension, 1);
  return data;
}

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double ridge_penalty = 0.02;

/// The alignments from the n x n kernel matrix, as theory.md writes them.
double by_kernel_matrix(AlignmentKind kind, FeatureMap map, const LabelledData& data,
                        std::span<const double> particles) {
  const auto lifted = lift(map, data.points, data.dimension);
  const auto n = static_cast<Eigen::Index>(data.count);
  const auto count = static_cast<Eigen::Index>(particles.size() / lifted.dimension);
  const auto width = count * static_cast<Eigen::Index>(component_count(map));
  Matrix phi(static_cast<Eigen::Index>(lifted.count), width);
  feature_values(map, lifted, particles, {phi.data(), static_cast<std::size_t>(phi.size())});
  if (!data.bag_starts.empty()) {
    Matrix means(n, width);
    for (Eigen::Index b = 0; b < n; ++b) {
      const auto begin = static_cast<Eigen::Index>(data.bag_starts[static_cast<std::size_t>(b)]),
                 end = static_cast<Eigen::Index>(data.bag_starts[static_cast<std::size_t>(b) + 1]);
      means.row(b) = phi.middleRows(begin, end - begin).colwise().mean();
    }
    phi = std::move(means);
  }
  Matrix kernel = phi * phi.transpose() / static_cast<double>(count);
  const Eigen::Map<const Matrix> y(data.labels.data(), n, static_cast<Eigen::Index>(data.label_columns));
  Matrix target = y * y.transpose();
  if (kind == AlignmentKind::Normalised) {
    const Matrix centring = Matrix::Identity(n, n) - Matrix::Constant(n, n, 1.0 / static_cast<double>(n));
    kernel = (centring * kernel * centring).eval();
    target = (centring * target * centring).eval();
    return -kernel.cwiseProduct(target).sum() / (kernel.norm() * target.norm());
  }
  if (kind == AlignmentKind::RidgeLoss) {  // in the dual: penalty y^T (K/n + penalty)^-1 y / n
    const Matrix centring = Matrix::Identity(n, n) - Matrix::Constant(n, n, 1.0 / static_cast<double>(n));
    const Matrix centred = centring * y;
    kernel = (centring * kernel * centring / static_cast<double>(n)).eval();
    kernel.diagonal().array() += ridge_penalty;
    return ridge_penalty * centred.cwiseProduct(kernel.ldlt().solve(centred)).sum() / static_cast<double>(n);
  }
  if (kind == AlignmentKind::Linear) return -kernel.cwiseProduct(target).mean();
  return 0.5 * (target - kernel).squaredNorm() / static_cast<double>(n * n);
}

struct Case {
  FeatureMap map;
  AlignmentKind kind;
  std::size_t label_columns;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const FeatureMap map : feature_maps())
    for (const AlignmentKind kind : {AlignmentKind::Linear, AlignmentKind::SquaredLoss,
                                     AlignmentKind::Normalised, AlignmentKind::RidgeLoss})
      for (const std::size_t columns : {1, 3}) out.push_back({map, kind, columns});
  return out;
}

class EachAlignment : public testing::TestWithParam<Case> {};

TEST_P(EachAlignment, IsTheFormulaOfTheKernelMatrix) {
  const auto [map, kind, columns] = GetParam();
  const auto data = random_data(map, 70, columns);  // more than one block of rows
  const auto particles = reference_particles(map, 35, data.dimension, 1.0, false, 3, 0);
  const Alignment alignment(map, data, {.kind = kind, .ridge_penalty = ridge_penalty});
  const double expected = by_kernel_matrix(kind, map, data, particles);
  EXPECT_NEAR(alignment.value(particles), expected, 1e-12 * (1.0 + std::abs(expected)));
  std::vector<double> forces(particles.size(), 0.0);
  EXPECT_NEAR(alignment.add_forces(particles, 35, 0, 0, forces), expected,
              1e-12 * (1.0 + std::abs(expected)));
}

TEST_P(EachAlignment, ForcesAreMinusNTimesTheGradient) {
  const auto [map, kind, columns] = GetParam();
  const auto data = random_data(map, 67, columns);
  const std::size_t count = 5;
  auto particles = reference_particles(map, count, data.dimension, 1.0, false, 4, 0);
  const Alignment alignment(map, data, {.kind = kind, .strength = 1.7, .ridge_penalty = ridge_penalty});
  std::vector<double> forces(particles.size(), 0.5);  // forces are added to what is there
  alignment.add_forces(particles, count, 0, 0, forces);
  double scale = 0.0;
  for (const double force : forces) scale = std::max(scale, std::abs(force));
  const double step = 1e-4;  // fourth-order difference: truncation of order 1e-16, rounding of order 1e-12
  for (std::size_t k = 0; k < particles.size(); ++k) {
    const double at = particles[k];
    const auto value = [&](double shift) {
      particles[k] = at + shift;
      return alignment.value(particles);
    };
    const double slope =
        (8 * (value(step) - value(-step)) - (value(2 * step) - value(-2 * step))) / (12 * step);
    particles[k] = at;
    EXPECT_NEAR(forces[k] - 0.5, -static_cast<double>(count) * slope, 1e-9 * (1.0 + scale)) << k;
  }
}

TEST_P(EachAlignment, OfBagsIsThatOfTheMeanFeaturesOfTheirPoints) {
  const auto [map, kind, columns] = GetParam();
  const auto data = random_bags(map, 70, columns);  // more than one block
  const std::size_t count = 5;
  auto particles = reference_particles(map, count, data.dimension, 1.0, false, 3, 0);
  const Alignment alignment(map, data, {.kind = kind, .ridge_penalty = ridge_penalty});
  const double expected = by_kernel_matrix(kind, map, data, particles);
  std::vector<double> forces(particles.size(), 0.0);
  EXPECT_NEAR(alignment.add_forces(particles, count, 0, 0, forces), expected,
              1e-12 * (1.0 + std::abs(expected)));
  double scale = 0.0;
  for (const double force : forces) scale = std::max(scale, std::abs(force));
  const double step = 1e-4;
  for (std::size_t k = 0; k < particles.size(); ++k) {
    const double at = particles[k];
    const auto value = [&](double shift) {
      particles[k] = at + shift;
      return alignment.value(particles);
    };
    const double slope =
        (8 * (value(step) - value(-step)) - (value(2 * step) - value(-2 * step))) / (12 * step);
    particles[k] = at;
    EXPECT_NEAR(forces[k], -static_cast<double>(count) * slope, 1e-9 * (1.0 + scale)) << k;
  }
}

TEST_P(EachAlignment, OfBagsOfOnePointIsThatOfThePointsForBatchesToo) {
  const auto [map, kind, columns] = GetParam();
  auto data = random_data(map, 90, columns);
  const std::size_t count = 6;
  const auto particles = reference_particles(map, count, data.dimension, 1.0, false, 3, 0);
  const Alignment::Options options{
      .kind = kind, .batch_rows = kind == AlignmentKind::RidgeLoss ? 0u : 40u, .seed = 9};
  std::vector<double> points(particles.size(), 0.0), bags(particles.size(), 0.0);
  Alignment(map, data, options).add_forces(particles, count, 1, 7, points);
  for (std::size_t b = 0; b <= data.count; ++b) data.bag_starts.push_back(b);
  Alignment(map, data, options).add_forces(particles, count, 1, 7, bags);
  for (std::size_t k = 0; k < points.size(); ++k)
    EXPECT_NEAR(bags[k], points[k], 1e-13 * (1.0 + std::abs(points[k])));
}

TEST_P(EachAlignment, HasTheSameBitsForEveryNumberOfThreads) {
  const auto [map, kind, columns] = GetParam();
  const auto data = random_data(map, 130, columns);
  const std::size_t count = 70;
  const auto particles = reference_particles(map, count, data.dimension, 1.0, false, 5, 0);
  std::vector<double> one(particles.size(), 0.0), three(particles.size(), 0.0);
  const double value =
      Alignment(map, data, {.kind = kind, .threads = 1}).add_forces(particles, count, 0, 0, one);
  EXPECT_EQ(Alignment(map, data, {.kind = kind, .threads = 3}).add_forces(particles, count, 0, 0, three),
            value);
  EXPECT_EQ(one, three);
}

TEST_P(EachAlignment, OnAGridIsThatOfParticlesAtTheCellCentres) {
  const auto [map, kind, columns] = GetParam();
  if (couples_particles(map)) return;  // refused, see below
  auto data = random_data(map, 60, columns);
  const std::size_t p = particle_dimension(map, data.dimension);
  Grid grid;
  grid.lower.assign(p, -1.0);
  grid.upper.assign(p, 1.0);
  grid.cells.assign(p, 3);
  const Alignment alignment(map, data, {.kind = kind, .strength = 0.6, .ridge_penalty = ridge_penalty});
  const auto on_grid = alignment.on_grid(grid);
  // Particles at centres, their number per cell irregular; the density is the same law.
  std::vector<double> particles, averages(grid.cell_count(), 0.0);
  std::size_t count = 0;
  for (std::size_t cell = 0; cell < grid.cell_count(); ++cell) count += 1 + cell % 3;
  for (std::size_t cell = 0; cell < grid.cell_count(); ++cell) {
    std::vector<double> center(p);
    grid.cell_center(cell, center);
    for (std::size_t k = 0; k < 1 + cell % 3; ++k)
      particles.insert(particles.end(), center.begin(), center.end());
    averages[cell] = static_cast<double>(1 + cell % 3) / (static_cast<double>(count) * grid.cell_volume());
  }
  std::vector<double> variation(averages.size()), scratch(averages.size());
  EXPECT_NEAR(on_grid->value(averages, variation), alignment.value(particles), 1e-12);
  // The first variation is the derivative along every direction.
  for (std::size_t cell = 0; cell < averages.size(); ++cell) {
    const double at = averages[cell], step = 1e-3;
    const auto value = [&](double shift) {
      averages[cell] = at + shift;
      return on_grid->value(averages, scratch);
    };
    const double slope =
        (8 * (value(step) - value(-step)) - (value(2 * step) - value(-2 * step))) / (12 * step);
    averages[cell] = at;
    EXPECT_NEAR(variation[cell] * grid.cell_volume(), slope, 1e-8 * (1.0 + std::abs(slope)));
  }
  if (kind != AlignmentKind::Normalised) return;
  double mean =
      0.0;  // (10) does not depend on the total mass: its first variation integrates to 0 against rho
  for (std::size_t cell = 0; cell < averages.size(); ++cell)
    mean += averages[cell] * variation[cell] * grid.cell_volume();
  EXPECT_NEAR(mean, 0.0, 1e-13);
}

INSTANTIATE_TEST_SUITE_P(Alignments, EachAlignment, testing::ValuesIn(cases()), [](const auto& instance) {
  return std::string(name(instance.param.map)) + "_" + std::string(name(instance.param.kind)) + "_" +
         std::to_string(instance.param.label_columns);
});

TEST(MiniBatches, GiveUnbiasedForcesAndValuesOfTheLinearAndTheSquaredLoss) {
  const auto data = random_data(FeatureMap::Fourier, 60, 1);
  const std::size_t count = 4, steps = 40000;
  const auto particles = reference_particles(FeatureMap::Fourier, count, data.dimension, 1.0, false, 6, 0);
  for (const AlignmentKind kind : {AlignmentKind::Linear, AlignmentKind::SquaredLoss}) {
    std::vector<double> exact(particles.size(), 0.0);
    const double exact_value =
        Alignment(FeatureMap::Fourier, data, {.kind = kind}).add_forces(particles, count, 0, 0, exact);
    const Alignment batches(FeatureMap::Fourier, data, {.kind = kind, .batch_rows = 3, .seed = 1});
    EXPECT_TRUE(batches.is_stochastic());
    std::vector<double> sum(particles.size(), 0.0), squares(particles.size(), 0.0);
    double value_sum = 0.0, value_squares = 0.0;
    for (std::size_t step = 0; step < steps; ++step) {
      std::vector<double> forces(particles.size(), 0.0);
      const double value = batches.add_forces(particles, count, 0, step, forces);
      value_sum += value;
      value_squares += value * value;
      for (std::size_t k = 0; k < forces.size(); ++k) {
        sum[k] += forces[k];
        squares[k] += forces[k] * forces[k];
      }
    }
    const auto check = [&](double total, double total_squares, double expected) {
      const double mean = total / steps, error = std::sqrt((total_squares / steps - mean * mean) / steps);
      EXPECT_NEAR(mean, expected, 4.5 * error);
    };
    check(value_sum, value_squares, exact_value);
    for (std::size_t k = 0; k < sum.size(); ++k) check(sum[k], squares[k], exact[k]);
  }
}

TEST(MiniBatches, DependOnReplicaAndStepOnly) {
  const auto data = random_data(FeatureMap::Fourier, 60, 1);
  const auto particles = reference_particles(FeatureMap::Fourier, 4, data.dimension, 1.0, false, 6, 0);
  const Alignment batches(FeatureMap::Fourier, data,
                          {.kind = AlignmentKind::Normalised, .batch_rows = 20, .seed = 1});
  std::vector<double> first(particles.size(), 0.0), again(particles.size(), 0.0),
      later(particles.size(), 0.0);
  batches.add_forces(particles, 4, 2, 7, first);
  batches.add_forces(particles, 4, 2, 7, again);
  batches.add_forces(particles, 4, 2, 8, later);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, later);
}

/// x on five equispaced points of the circle, y = sqrt2 cos x; with z = (1/N) sum_i exp(2 i omega_i)
/// everything is known.
LabelledData circle_data() {
  LabelledData data;
  data.count = 5;
  data.dimension = 1;
  for (int k = 0; k < 5; ++k) {
    data.points.push_back(2 * std::numbers::pi * k / 5);
    data.labels.push_back(std::numbers::sqrt2 * std::cos(data.points.back()));
  }
  return data;
}

TEST(ClosedFormModel, HasTheLossAndTheAlignmentOfItsFormulas) {
  const auto particles = reference_particles(FeatureMap::Circle, 11, 1, 1.0, false, 8, 0);
  std::complex<double> z = 0.0;
  for (const double omega : particles) z += std::polar(1.0 / 11, 2 * omega);
  const auto value = [&](AlignmentKind kind) {
    return Alignment(FeatureMap::Circle, circle_data(), {.kind = kind}).value(particles);
  };
  EXPECT_NEAR(value(AlignmentKind::SquaredLoss), std::norm(1.0 - z) / 4, 1e-15);
  EXPECT_NEAR(value(AlignmentKind::Linear), -0.5 * (1 + z.real()), 1e-15);
  EXPECT_NEAR(value(AlignmentKind::Normalised), -(1 + z.real()) / std::sqrt(2 * (1 + std::norm(z))), 1e-15);
}

TEST(WeightedParticles, WithIntegerWeightsAreRepeatedParticles) {
  const auto data = random_data(FeatureMap::Fourier, 60, 1);
  const auto two = reference_particles(FeatureMap::Fourier, 2, 2, 1.0, false, 6, 0);
  std::vector<double> repeated(two.begin(), two.end());
  repeated.insert(repeated.end(), two.begin(), two.begin() + 2);  // (first, second, first): weights 4/3, 2/3
  const std::vector<double> weights{4.0 / 3, 2.0 / 3};
  for (const AlignmentKind kind : {AlignmentKind::Linear, AlignmentKind::SquaredLoss,
                                   AlignmentKind::Normalised, AlignmentKind::RidgeLoss}) {
    const Alignment alignment(FeatureMap::Fourier, data, {.kind = kind});
    EXPECT_NEAR(alignment.value(two, weights), alignment.value(repeated), 1e-14);
  }
}

TEST(EffectiveRank, IsOneForEqualParticlesAndFullForOrthogonalFeatures) {
  const std::size_t rows = 8;
  std::vector<double> points;
  for (std::size_t k = 0; k < rows; ++k)
    points.push_back(2 * std::numbers::pi * static_cast<double>(k) / rows);
  const auto lifted = lift(FeatureMap::Fourier, points, 1);
  EXPECT_NEAR(effective_rank(FeatureMap::Fourier, lifted, std::vector<double>{1, 2, 3}), 6.0, 1e-12);
  EXPECT_NEAR(effective_rank(FeatureMap::Fourier, lifted, std::vector<double>{2, 2, 2}), 2.0, 1e-12);
  EXPECT_NEAR(
      effective_rank(FeatureMap::Circle, lift(FeatureMap::Circle, points, 1), std::vector<double>{1, 1}), 1.0,
      1e-12);
}

TEST(AlignmentOfOneClass, HasNoCentredTargetAndIsRefusedAsAPrecondition) {
  LabelledData data = circle_data();
  data.labels.assign(5, 1.0);
  EXPECT_THROW(Alignment(FeatureMap::Circle, data, {.kind = AlignmentKind::Normalised}),
               PreconditionViolation);
  Grid grid;
  grid.lower = {-1.0};
  grid.upper = {1.0};
  grid.cells = {4};
  EXPECT_THROW(Alignment(FeatureMap::Softmax, circle_data(), {}).on_grid(grid), PreconditionViolation);
}

}  // namespace
}  // namespace rieszflow
