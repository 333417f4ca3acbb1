#include "domain/grid.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

namespace rieszflow {
namespace {

TEST(Grid, EveryCentreLiesInItsOwnCell) {
  const Grid grid = grid_on(Box{{-1.0, 2.0, 0.0}, {1.0, 2.5, 7.0}}, {3, 4, 5});
  ASSERT_EQ(grid.cell_count(), 60u);
  std::vector<double> center(3);
  for (std::size_t cell = 0; cell < grid.cell_count(); ++cell) {
    grid.cell_center(cell, center);
    EXPECT_EQ(grid.cell_of(center), cell);
  }
  EXPECT_DOUBLE_EQ(grid.cell_volume() * 60.0, 7.0);
}

TEST(Grid, PointsOnAndOneUlpAroundTheWallsHaveACell) {
  for (std::size_t n = 1; n < 400; ++n) {
    const Grid grid = grid_on(Box{{0.1}, {0.7}}, {n});
    for (const double x : {0.1, 0.7, std::nextafter(0.7, 0.0), std::nextafter(0.7, 1.0),
                           std::nextafter(0.1, 0.0), std::nextafter(0.1, 1.0)}) {
      const std::vector<double> point{x};
      ASSERT_LT(grid.cell_of(point), n);
      ASSERT_EQ(grid.cell_of(point), x < 0.4 ? 0u : n - 1) << n << " " << x;
    }
    EXPECT_EQ(grid.face(0, n), 0.7);
    EXPECT_EQ(grid.face(0, 0), 0.1);
  }
}

double total(const Grid& grid) {
  return grid.cell_volume() *
         std::accumulate(grid.volume_fractions.begin(), grid.volume_fractions.end(), 0.0);
}

TEST(Grid, VolumeFractionsOfABallAddUpToItsVolume) {
  for (const std::size_t n : {1u, 2u, 3u, 5u, 16u, 37u}) {
    const Ball disc{{0.3, -0.2}, 0.7};
    // The quadrature's error per cut cell, relative: 1e-10.
    EXPECT_NEAR(total(grid_on(disc, {n, n + 1})) / volume(disc), 1.0, 1e-10) << n;
    const Ball ball{{0.3, -0.2, 1.0}, 0.7};
    EXPECT_NEAR(total(grid_on(ball, {n, n + 1, n})) / volume(ball), 1.0, 1e-9) << n;
  }
  EXPECT_TRUE(grid_on(Ball{{0.0}, 1.0}, {8}).volume_fractions.empty());
}

TEST(Grid, VolumeFractionsAgreeWithSampling) {
  const Ball ball{{0.0, 0.0, 0.0}, 1.0};
  const Grid grid = grid_on(ball, {4, 5, 6});
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<double> hits(grid.cell_count());
  const int samples = 400000;
  for (int k = 0; k < samples; ++k) {
    const std::vector<double> point{uniform(random), uniform(random), uniform(random)};
    if (contains(ball, point)) hits[grid.cell_of(point)] += 1.0;
  }
  const double per_cell = samples / static_cast<double>(grid.cell_count());
  for (std::size_t cell = 0; cell < hits.size(); ++cell)
    // Five standard deviations of a binomial count.
    EXPECT_NEAR(hits[cell] / per_cell, grid.volume_fractions[cell], 5.0 * 0.5 / std::sqrt(per_cell)) << cell;
}

TEST(Grid, VolumeFractionsLieInTheUnitIntervalAndAreSymmetric) {
  const Grid grid = grid_on(Ball{{0.0, 0.0, 0.0}, 1.0}, {7, 8, 9});
  for (std::size_t cell = 0; cell < grid.cell_count(); ++cell) {
    EXPECT_GE(grid.volume_fractions[cell], 0.0);
    EXPECT_LE(grid.volume_fractions[cell], 1.0);
    EXPECT_EQ(grid.volume_fractions[cell], grid.volume_fractions[grid.cell_count() - 1 - cell]);
  }
}

TEST(Grid, TorusGridsArePeriodic) {
  EXPECT_TRUE(grid_on(Torus{{0.0}, {1.0}}, {4}).periodic);
  EXPECT_FALSE(grid_on(Box{{0.0}, {1.0}}, {4}).periodic);
}

}  // namespace
}  // namespace rieszflow
