#include "analysis/distance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "analysis/discrepancy.hpp"
#include "analysis/estimate.hpp"
#include "analysis/histogram.hpp"
#include "analysis/line_law.hpp"
#include "analysis/sampling.hpp"
#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow {
namespace {

constexpr double pi = std::numbers::pi;

Density normalised(Grid grid, std::vector<double> values) {
  Density density{std::move(grid), std::move(values)};
  const double total = mass(density);
  for (double& value : density.averages) value /= total;
  return density;
}

/// Random positive cell averages with an empty cell in the middle.
Density random_density(std::vector<std::size_t> cells, bool periodic = false) {
  Grid grid{{}, {}, cells, periodic, {}};
  for (std::size_t axis = 0; axis < cells.size(); ++axis) {
    grid.lower.push_back(-1.0 - 0.5 * static_cast<double>(axis));
    grid.upper.push_back(2.0 + static_cast<double>(axis));
  }
  std::vector<double> values(grid.cell_count());
  NoiseStream(21, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, values);
  values[values.size() / 2] = 0.0;
  return normalised(grid, values);
}

Density gaussian_density(double standard_deviation, std::size_t cells) {
  const double edge = 8.0 * standard_deviation;
  Grid grid{{-edge}, {edge}, {cells}, false, {}};
  std::vector<double> values;
  for (std::size_t i = 0; i < cells; ++i) {
    const double scale = 1.0 / (std::numbers::sqrt2 * standard_deviation);
    values.push_back(std::erf(grid.face(0, i + 1) * scale) - std::erf(grid.face(0, i) * scale));
  }
  return normalised(grid, values);
}

Box box_of(const Grid& grid) { return {grid.lower, grid.upper}; }

/// Quantile function of a one-dimensional grid density, straight from its definition.
double quantile(const Density& density, double u) {
  double below = 0.0;
  const double h = density.grid.spacing(0);
  for (std::size_t i = 0;; ++i) {
    const double inside = density.averages[i] * h;
    if (below + inside >= u || i + 1 == density.averages.size())
      return density.grid.face(0, i) + (inside > 0.0 ? (u - below) / inside : 0.0) * h;
    below += inside;
  }
}

TEST(IndependentSamples, HaveTheMassesOfTheCells) {
  const Density density = random_density({5, 4});
  const ParticleEnsemble ensemble = independent_samples(density, box_of(density.grid), 10, 4000, 3);
  const Density seen = histogram(ensemble, density.grid);
  double chi_squared = 0.0;
  for (std::size_t cell = 0; cell < density.averages.size(); ++cell) {
    const double expected = density.averages[cell] * density.grid.cell_volume() * 40000.0;
    const double counted = seen.averages[cell] * density.grid.cell_volume() * 40000.0;
    if (expected == 0.0) {
      EXPECT_EQ(counted, 0.0);
      continue;
    }
    chi_squared += (counted - expected) * (counted - expected) / expected;
  }
  EXPECT_LT(chi_squared, 42.3);  // chi-squared with 18 degrees of freedom: 0.1 % above
}

TEST(IndependentSamples, StayInsideACutCell) {
  const Ball disk{{0.0, 0.0}, 1.0};
  Grid grid = grid_on(disk, {6, 6});
  const Density density = normalised(grid, std::vector<double>(36, 1.0));
  const ParticleEnsemble ensemble = independent_samples(density, disk, 1, 4000, 4);
  double squares = 0.0;
  for (std::size_t i = 0; i < 4000; ++i) {
    EXPECT_TRUE(contains(disk, std::span(ensemble.positions).subspan(2 * i, 2)));
    squares += ensemble.positions[2 * i] * ensemble.positions[2 * i] +
               ensemble.positions[2 * i + 1] * ensemble.positions[2 * i + 1];
  }
  // Uniform on the disc: r^2 is uniform on (0, 1).
  EXPECT_NEAR(squares / 4000.0, 0.5, 4.0 * std::sqrt(1.0 / 12.0 / 4000.0));
}

TEST(Wasserstein, OfOneAtomIsAMoment) {
  const Density density = random_density({7});
  const double a = 0.3;
  double first = 0.0, second = 0.0;
  const std::size_t points = 7 * 100000;  // midpoints, none on a face
  for (std::size_t k = 0; k < points; ++k) {
    const double x = -1.0 + 3.0 * (static_cast<double>(k) + 0.5) / static_cast<double>(points);
    const double weight =
        density.averages[density.grid.cell_of(std::vector<double>{x})] * 3.0 / static_cast<double>(points);
    first += std::abs(x - a) * weight;
    second += (x - a) * (x - a) * weight;
  }
  const ParticleEnsemble ensemble{1, 1, 1, {a}};
  EXPECT_NEAR(wasserstein1(ensemble, density)[0], first, 1e-10);
  EXPECT_NEAR(wasserstein2(ensemble, density)[0], std::sqrt(second), 1e-10);
}

TEST(Wasserstein, IsTheIntegralOfQuantileDifferences) {
  const Density density = random_density({9});
  const std::size_t n = 13;
  ParticleEnsemble ensemble{1, n, 1, std::vector<double>(n)};
  NoiseStream(2, NoisePurpose::ReferenceSample)
      .gaussians(0, 0, 0, ensemble.positions);  // some outside the grid
  std::vector<double> sorted = ensemble.positions;
  std::sort(sorted.begin(), sorted.end());
  double first = 0.0, second = 0.0;
  const std::size_t points = 13 * 40000;
  for (std::size_t k = 0; k < points; ++k) {
    const double gap =
        sorted[k / 40000] - quantile(density, (static_cast<double>(k) + 0.5) / static_cast<double>(points));
    first += std::abs(gap) / static_cast<double>(points);
    second += gap * gap / static_cast<double>(points);
  }
  EXPECT_NEAR(wasserstein1(ensemble, density)[0], first, 1e-6);
  EXPECT_NEAR(wasserstein2(ensemble, density)[0], std::sqrt(second), 1e-6);
}

TEST(Wasserstein, OnTheCircleOfOneAtomAgainstTheUniformLawIsAQuarterTurn) {
  const Density uniform = normalised({{0.0}, {4.0}, {10}, true, {}}, std::vector<double>(10, 1.0));
  for (double x : {0.0, 0.7, 3.9}) {
    EXPECT_NEAR(wasserstein1({1, 1, 1, {x}}, uniform)[0], 1.0, 1e-12);
    EXPECT_NEAR(wasserstein2({1, 1, 1, {x}}, uniform)[0], std::sqrt(16.0 / 12.0), 1e-9);
  }
}

TEST(Wasserstein, OnTheCircleDoesNotSeeTheSeam) {
  const std::size_t n = 40;
  const Density density = random_density({12}, true);
  Density turned = density;
  std::rotate(turned.averages.begin(), turned.averages.begin() + 5, turned.averages.end());
  ParticleEnsemble ensemble = independent_samples(density, Torus{{-1.0}, {2.0}}, 1, n, 6);
  ParticleEnsemble moved = ensemble;
  for (double& x : moved.positions) {
    x -= 5.0 * 0.25;
    if (x < -1.0) x += 3.0;
  }
  EXPECT_NEAR(wasserstein1(ensemble, density)[0], wasserstein1(moved, turned)[0], 1e-10);
  EXPECT_NEAR(wasserstein2(ensemble, density)[0], wasserstein2(moved, turned)[0], 1e-8);
  Density cut = density;
  cut.grid.periodic = false;
  EXPECT_LE(wasserstein2(ensemble, density)[0], wasserstein2(ensemble, cut)[0] + 1e-12);
}

TEST(ExpectedWasserstein, OfAGaussianHasTheOrderStatisticValues) {
  // E W_2^2 = 2 (1 - sum_i c_i E xi_(i)), c_i = phi(z_{i-1}) - phi(z_i), z_i the normal quantile of i/N. Mean
  // largest of two: 1/sqrt(pi); of three: 3/(2 sqrt(pi)), the middle one 0. The grid law adds at most h^2 /
  // 12 = 3e-7.
  const Density gauss = gaussian_density(1.0, 8000);
  const auto phi = [](double z) { return std::exp(-0.5 * z * z) / std::sqrt(2.0 * pi); };
  const double two_thirds = 0.43072729929545749;  // normal quantile of 2/3
  EXPECT_NEAR(expected_squared_wasserstein2(gauss, 1), 2.0, 2e-6);
  EXPECT_NEAR(expected_squared_wasserstein2(gauss, 2), 2.0 * (1.0 - 2.0 * phi(0.0) / std::sqrt(pi)), 2e-6);
  EXPECT_NEAR(expected_squared_wasserstein2(gauss, 3), 2.0 * (1.0 - 3.0 * phi(two_thirds) / std::sqrt(pi)),
              2e-6);
}

TEST(ExpectedWasserstein, OfAGaussianDecaysLikeLogLogNOverN) {
  // N E W_2^2 grows, but slower than log N: the reason why W_2^2 has no clean slope -1.
  const Density gauss = gaussian_density(1.0, 8000);
  const double at_20 = 20.0 * expected_squared_wasserstein2(gauss, 20);
  const double at_2000 = 2000.0 * expected_squared_wasserstein2(gauss, 2000);
  EXPECT_GT(at_2000, 1.1 * at_20);
  EXPECT_LT(at_2000, 2.0 * at_20);
}

TEST(ExpectedWasserstein, OfTheUniformLawIsClosedForm) {
  // Uniform on (0,1): E W_2^2 = 1/(6 n); E W_1 = integral E|B/n - p| dp, n = 1: integral 2p(1-p) dp = 1/3,
  // n = 2: 2 integral_0^(1/2) 2p(1-p)^2 dp = 11/48.
  const Density uniform = normalised({{0.0}, {1.0}, {3}, false, {}}, {1.0, 1.0, 1.0});
  for (std::size_t n : {1u, 2u, 10u, 1000u})
    EXPECT_NEAR(expected_squared_wasserstein2(uniform, n), 1.0 / (6.0 * static_cast<double>(n)), 1e-12) << n;
  EXPECT_NEAR(expected_wasserstein1(uniform, 1), 1.0 / 3.0, 1e-12);
  EXPECT_NEAR(expected_wasserstein1(uniform, 2), 11.0 / 48.0, 1e-12);
}

TEST(ExpectedWasserstein, IsTheMeanOverIndependentSamples) {
  const Density density = random_density({9});
  for (std::size_t n : {3u, 50u}) {
    const ParticleEnsemble ensemble = independent_samples(density, box_of(density.grid), 4000, n, 8);
    const Estimate first = mean_estimate(wasserstein1(ensemble, density));
    std::vector<double> squares = wasserstein2(ensemble, density);
    for (double& value : squares) value *= value;
    const Estimate second = mean_estimate(squares);
    EXPECT_NEAR(first.value, expected_wasserstein1(density, n), 4.0 * first.standard_error) << n;
    EXPECT_NEAR(second.value, expected_squared_wasserstein2(density, n), 4.0 * second.standard_error) << n;
  }
}

TEST(ProjectedLaw, OfASquareAlongItsDiagonalIsATriangle) {
  const Density square =
      normalised({{0.0, 0.0}, {1.0, 1.0}, {4, 4}, false, {}}, std::vector<double>(16, 1.0));
  const double c = std::sqrt(0.5);
  const LineLaw law = projected_law(square, std::vector<double>{c, c}, 8);
  for (std::size_t k = 0; k < law.edges.size(); ++k) {
    const double s = law.edges[k] / c;
    EXPECT_NEAR(law.cumulative[k], s < 1.0 ? s * s / 2.0 : 1.0 - (2.0 - s) * (2.0 - s) / 2.0, 1e-12);
  }
}

TEST(ProjectedLaw, HasTheMomentsOfTheDensity) {
  const Density density = random_density({6, 5, 4});
  const std::vector<double> directions = sliced_directions(3, 12);
  for (std::size_t j = 0; j < 12; ++j) {
    const std::span<const double> v(&directions[3 * j], 3);
    const LineLaw law = projected_law(density, v, 8);
    double first = 0.0, exact = 0.0;
    for (std::size_t k = 0; k < law.cell_count(); ++k)
      first += (law.cumulative[k + 1] - law.cumulative[k]) * 0.5 * (law.edges[k] + law.edges[k + 1]);
    const std::vector<double> center = mean(density);
    for (std::size_t axis = 0; axis < 3; ++axis) exact += v[axis] * center[axis];
    EXPECT_NEAR(first, exact, 2e-3);  // bins are 0.06 wide; linear inside a bin
  }
}

TEST(ProjectedLaw, AlongAnAxisIsTheMarginal) {
  const Density density = random_density({6, 5});
  const LineLaw along = projected_law(density, std::vector<double>{0.0, 1.0}, 8),
                exact = line_law(marginal(density, 1));
  int compared = 0;
  for (std::size_t face = 0; face < exact.edges.size(); ++face) {
    const auto place = std::lower_bound(along.edges.begin(), along.edges.end(), exact.edges[face] - 1e-9);
    ASSERT_NE(place, along.edges.end());
    if (std::abs(*place - exact.edges[face]) > 1e-9) continue;
    EXPECT_NEAR(along.cumulative[static_cast<std::size_t>(place - along.edges.begin())],
                exact.cumulative[face], 1e-9);
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

TEST(SlicedWasserstein, HasItsExpectedMeanOverIndependentSamples) {
  for (std::size_t d : {2u, 3u}) {
    const Density density =
        random_density(d == 2 ? std::vector<std::size_t>{5, 4} : std::vector<std::size_t>{3, 4, 3});
    const ParticleEnsemble ensemble = independent_samples(density, box_of(density.grid), 400, 60, 9);
    std::vector<double> squares = sliced_wasserstein2(ensemble, density);
    for (double& value : squares) value *= value;
    const Estimate seen = mean_estimate(squares);
    EXPECT_NEAR(seen.value, expected_squared_sliced_wasserstein2(density, 60), 4.0 * seen.standard_error);
    EXPECT_LT(seen.standard_error, 0.05 * seen.value);
  }
}

TEST(SlicedWasserstein, SeesAShift) {
  // A shift by s moves every projection by s . v: the sliced distance is at least |s| sqrt(mean (v .
  // s/|s|)^2).
  const Density density = random_density({5, 4});
  ParticleEnsemble ensemble = independent_samples(density, box_of(density.grid), 1, 4000, 10);
  for (std::size_t i = 0; i < ensemble.positions.size(); i += 2) ensemble.positions[i] += 0.5;
  EXPECT_NEAR(sliced_wasserstein2(ensemble, density)[0], 0.5 / std::numbers::sqrt2, 0.03);
}

TEST(MeanDiscrepancy, OfGaussianSamplesHasTheClosedForm) {
  // X, X' ~ N(0, s): E k = (1 + 2 s / l^2)^(-1/2); N E MMD^2 = 1 - E k.
  const double s = 0.49, length = 0.8;
  const MeanDiscrepancy discrepancy(gaussian_density(0.7, 4000), GaussianKernel{length});
  EXPECT_NEAR(50.0 * discrepancy.expected_biased(50),
              1.0 - 1.0 / std::sqrt(1.0 + 2.0 * s / (length * length)), 1e-6);
}

TEST(MeanDiscrepancy, IsTheDoubleIntegralItClaims) {
  // Every cell replaced by points: the midpoint rule with m points a cell and axis has error (h/m)^2 / l^2.
  const Density density = random_density({4, 3});
  const Grid& grid = density.grid;
  const double length = 0.9;
  const std::size_t m = 24, points = 4 * 3 * m * m;
  std::vector<double> x(2 * points), weight(points);
  for (std::size_t k = 0; k < points; ++k) {
    const std::size_t cell = k / (m * m), a = k % (m * m) / m, b = k % m;
    x[2 * k] =
        grid.face(0, cell / 3) + (static_cast<double>(a) + 0.5) / static_cast<double>(m) * grid.spacing(0);
    x[2 * k + 1] =
        grid.face(1, cell % 3) + (static_cast<double>(b) + 0.5) / static_cast<double>(m) * grid.spacing(1);
    weight[k] = density.averages[cell] * grid.cell_volume() / static_cast<double>(m * m);
  }
  const ParticleEnsemble ensemble{1, 3, 2, {0.1, 0.2, 1.9, -1.4, -0.5, 2.2}};
  const auto kernel = [&](const double* p, const double* q) {
    const double dx = p[0] - q[0], dy = p[1] - q[1];
    return std::exp(-0.5 * (dx * dx + dy * dy) / (length * length));
  };
  double self = 0.0, cross = 0.0, pairs = 0.0;
  for (std::size_t i = 0; i < points; ++i)
    for (std::size_t j = 0; j < points; ++j) self += weight[i] * weight[j] * kernel(&x[2 * i], &x[2 * j]);
  for (std::size_t i = 0; i < 3; ++i) {
    const double* p = &ensemble.positions[2 * i];
    for (std::size_t j = 0; j < points; ++j) cross += weight[j] * kernel(p, &x[2 * j]) / 3.0;
    for (std::size_t j = 0; j < 3; ++j)
      if (j != i) pairs += kernel(p, &ensemble.positions[2 * j]);
  }
  const SquaredDiscrepancy value = MeanDiscrepancy(density, GaussianKernel{length})(ensemble)[0];
  EXPECT_NEAR(value.biased, self - 2.0 * cross + (pairs + 3.0) / 9.0, 1e-3);
  EXPECT_NEAR(value.unbiased, self - 2.0 * cross + pairs / 6.0, 1e-3);
}

TEST(MeanDiscrepancy, OfTwoAtomsDiffersFromTheMeanOfBothByTheirKernel) {
  // mu = (delta_x + delta_y)/2: MMD^2(mu) = (MMD^2(delta_x) + MMD^2(delta_y))/2 - (k(x,x) - k(x,y))/2.
  const Density density = random_density({4, 3, 3});
  const std::vector<double> x = {-1.0, 2.9, -2.0}, y = {1.7, -1.2, 3.9};
  for (double length : {0.4, 1.3, 6.0}) {
    const MeanDiscrepancy discrepancy(density, GaussianKernel{length});
    double squared = 0.0;
    for (std::size_t axis = 0; axis < 3; ++axis) squared += (x[axis] - y[axis]) * (x[axis] - y[axis]);
    const double of_x = discrepancy({1, 1, 3, x})[0].biased, of_y = discrepancy({1, 1, 3, y})[0].biased;
    const double of_both = discrepancy({1, 2, 3, {x[0], x[1], x[2], y[0], y[1], y[2]}})[0].biased;
    EXPECT_NEAR(of_both, 0.5 * (of_x + of_y) - 0.5 * (1.0 - std::exp(-0.5 * squared / (length * length))),
                1e-14);
  }
}

TEST(MeanDiscrepancy, SelfTermIsExactForWideAndNarrowKernels) {
  // One cell (0,1): E k = 2 P(1) - 2 P(0) with P(t) = l sqrt(pi/2) t erf(t/(sqrt2 l)) + l^2 exp(-t^2/(2
  // l^2)), over 1.
  const Density uniform = normalised({{0.0}, {1.0}, {1}, false, {}}, {1.0});
  const Density fine = normalised({{0.0}, {1.0}, {64}, false, {}}, std::vector<double>(64, 1.0));
  for (double length : {0.02, 0.3, 2.0}) {
    const auto p = [&](double t) {
      return length * std::sqrt(pi / 2.0) * t * std::erf(t / (std::numbers::sqrt2 * length)) +
             length * length * std::exp(-0.5 * t * t / (length * length));
    };
    const double exact = 2.0 * (p(1.0) - p(0.0));
    EXPECT_NEAR(1.0 - MeanDiscrepancy(uniform, GaussianKernel{length}).expected_biased(1), exact, 1e-12);
    EXPECT_NEAR(1.0 - MeanDiscrepancy(fine, GaussianKernel{length}).expected_biased(1), exact, 1e-12);
  }
}

TEST(MeanDiscrepancy, HasItsExpectedMeansOverIndependentSamples) {
  const Density line = random_density({9}), plane = random_density({5, 4}),
                circle = random_density({8}, true);
  struct Setting {
    const Density* density;
    Domain domain;
    DiscrepancyKernel kernel;
  };
  const std::vector<Setting> settings = {
      {&line, box_of(line.grid), GaussianKernel{0.5}},
      {&line, box_of(line.grid), EnergyKernel{}},
      {&plane, box_of(plane.grid), GaussianKernel{0.7}},
      {&circle, Torus{circle.grid.lower, circle.grid.upper}, GaussianKernel{1.0}}};
  for (const Setting& setting : settings) {
    const MeanDiscrepancy discrepancy(*setting.density, setting.kernel);
    std::vector<double> biased, unbiased;
    for (const SquaredDiscrepancy& value :
         discrepancy(independent_samples(*setting.density, setting.domain, 2000, 12, 12))) {
      biased.push_back(value.biased);
      unbiased.push_back(value.unbiased);
      EXPECT_GE(value.biased, -1e-14);
    }
    const Estimate mean_biased = mean_estimate(biased), mean_unbiased = mean_estimate(unbiased);
    EXPECT_NEAR(mean_biased.value, discrepancy.expected_biased(12), 4.0 * mean_biased.standard_error);
    EXPECT_NEAR(mean_unbiased.value, 0.0, 4.0 * mean_unbiased.standard_error);
  }
}

TEST(MeanDiscrepancy, WithTheEnergyKernelIsTheEnergyDistance) {
  const Density uniform = normalised({{0.0}, {1.0}, {4}, false, {}}, std::vector<double>(4, 1.0));
  // One atom at a: 2 E|a - X| - E|X - X'| = (a^2 + (1-a)^2) - 1/3, also outside the grid.
  for (double a : {0.0, 0.3, 0.5}) {
    const SquaredDiscrepancy value = MeanDiscrepancy(uniform, EnergyKernel{})({1, 1, 1, {a}})[0];
    EXPECT_NEAR(value.biased, a * a + (1.0 - a) * (1.0 - a) - 1.0 / 3.0, 1e-14);
  }
  EXPECT_NEAR(MeanDiscrepancy(uniform, EnergyKernel{})({1, 1, 1, {2.0}})[0].biased, 2.0 * 1.5 - 1.0 / 3.0,
              1e-14);
}

TEST(MeanDiscrepancy, OnTheTorusDoesNotSeeTheSeam) {
  const Density density = random_density({6, 4}, true);
  Density turned = density;  // by one cell along the last axis
  for (std::size_t row = 0; row < 6; ++row)
    std::rotate(turned.averages.begin() + static_cast<long>(4 * row),
                turned.averages.begin() + static_cast<long>(4 * row + 1),
                turned.averages.begin() + static_cast<long>(4 * row + 4));
  const ParticleEnsemble ensemble =
      independent_samples(density, Torus{density.grid.lower, density.grid.upper}, 1, 10, 2);
  ParticleEnsemble moved = ensemble;
  for (std::size_t i = 1; i < 20; i += 2) {
    moved.positions[i] -= density.grid.spacing(1);
    if (moved.positions[i] < density.grid.lower[1])
      moved.positions[i] += density.grid.upper[1] - density.grid.lower[1];
  }
  for (double length : {0.3, 3.0})
    EXPECT_NEAR(MeanDiscrepancy(density, GaussianKernel{length})(ensemble)[0].biased,
                MeanDiscrepancy(turned, GaussianKernel{length})(moved)[0].biased, 1e-13);
}

TEST(TypicalDistance, OfAUniformIntervalIsItsLengthOverRootSix) {
  const Density uniform = normalised({{1.0}, {4.0}, {5}, false, {}}, std::vector<double>(5, 1.0));
  EXPECT_NEAR(typical_distance(uniform), 3.0 / std::sqrt(6.0), 1e-13);
}

TEST(Histogram, RebinningKeepsMassAndMarginals) {
  const Density density = random_density({6, 5});
  for (std::vector<std::size_t> cells : {std::vector<std::size_t>{4, 7}, {1, 1}, {12, 5}}) {
    const Density other = rebinned(density, cells);
    EXPECT_NEAR(mass(other), 1.0, 1e-14);
  }
  const Density back = rebinned(rebinned(density, {18, 10}), {6, 5});
  for (std::size_t cell = 0; cell < 30; ++cell)
    EXPECT_NEAR(back.averages[cell], density.averages[cell], 1e-14);
  const Density along = marginal(density, 0);
  double first = 0.0;
  for (std::size_t j = 0; j < 5; ++j) first += density.averages[10 + j] * density.grid.spacing(1);
  EXPECT_NEAR(along.averages[2], first, 1e-14);
}

TEST(Histogram, OfABallCountsCutCellsByTheirVolume) {
  const Ball disk{{0.0, 0.0}, 1.0};
  const Density uniform = normalised(grid_on(disk, {8, 8}), std::vector<double>(64, 1.0));
  const Density coarse = rebinned(uniform, {4, 4});
  for (double average : coarse.averages) EXPECT_NEAR(average, 1.0 / pi, 1e-8);
  EXPECT_NEAR(mass(coarse), 1.0, 1e-12);
}

TEST(Histogram, L2DistanceHasItsExpectedMeanOverIndependentSamples) {
  const Density density = random_density({5, 4});
  const ParticleEnsemble ensemble = independent_samples(density, box_of(density.grid), 3000, 20, 13);
  const Estimate distance = mean_estimate(squared_l2_distances(ensemble, density));
  EXPECT_NEAR(distance.value, expected_squared_l2_distance(density, 20), 4.0 * distance.standard_error);
}

TEST(Histogram, MomentsOfReplicasAreThoseOfTheirParticles) {
  const ParticleEnsemble ensemble{2, 2, 2, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}};
  EXPECT_EQ(means(ensemble, 1), (std::vector<double>{3.0, 7.0}));
  EXPECT_EQ(second_moments(ensemble), (std::vector<double>{15.0, 87.0}));
}

}  // namespace
}  // namespace rieszflow
