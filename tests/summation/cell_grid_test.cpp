#include "summation/cell_grid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "core/noise.hpp"

namespace rieszflow {
namespace {

/// Half of the particles uniform in [0, 1]^d, the rest in two tight clusters.
std::vector<double> cloud(std::size_t count, std::size_t d) {
  std::vector<double> x(count * d), g(count * d);
  NoiseStream(5, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, x);
  NoiseStream(6, NoisePurpose::ReferenceSample).gaussian_block(0, 0, 0, count, d, g);
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 2 == 0) continue;
    for (std::size_t k = 0; k < d; ++k) x[i * d + k] = (i % 4 == 1 ? 0.2 : 0.8) + 0.004 * g[i * d + k];
  }
  return x;
}

double distance(const std::vector<double>& x, std::size_t i, std::size_t j, std::size_t d) {
  double square = 0.0;
  for (std::size_t k = 0; k < d; ++k) square += (x[i * d + k] - x[j * d + k]) * (x[i * d + k] - x[j * d + k]);
  return std::sqrt(square);
}

TEST(CellGrid, RowsAheadReachEveryPairNearerThanTheCutoffOnce) {
  for (const std::size_t d : {1, 2, 3}) {
    const std::size_t n = 300;
    const double cutoff = d == 1 ? 0.02 : 0.15;
    const auto x = cloud(n, d);
    const std::vector<double> lower(d, 0.0), extents(d, 1.0);
    const CellGrid grid(lower, extents, cutoff);
    std::vector<std::size_t> cell(n);
    for (std::size_t i = 0; i < n; ++i) cell[i] = grid.cell_of(&x[i * d]);
    std::vector<int> met(n * n, 0);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t row = cell[i] / grid.row_length(), at = cell[i] % grid.row_length();
      grid.for_rows_ahead(row, at, at, true, [&](std::size_t first, std::size_t last) {
        for (std::size_t j = 0; j < n; ++j) {
          const bool ahead = cell[j] >= std::max(first, cell[i] + 1) || (first > cell[i] && cell[j] >= first);
          if (cell[j] <= last && ahead) ++met[i * n + j];
        }
      });
    }
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const int times = met[i * n + j] + met[j * n + i];
        EXPECT_LE(times, 1);
        if (cell[i] != cell[j] && distance(x, i, j, d) < cutoff) {
          EXPECT_EQ(times, 1) << d;
        }
      }
    }
  }
}

TEST(CellGrid, CrowdedRegionsAreFurtherApartThanTheCutoff) {
  for (const std::size_t d : {1, 2, 3}) {
    const std::size_t n = 1200;
    const double cutoff = 0.06;
    const auto x = cloud(n, d);
    const std::vector<double> lower(d, 0.0), extents(d, 1.0);
    const CellGrid grid(lower, extents, cutoff);
    std::vector<std::uint32_t> counts(grid.cell_count(), 0);
    for (std::size_t i = 0; i < n; ++i) ++counts[grid.cell_of(&x[i * d])];
    const auto regions = grid.crowded(counts, 0.1 * static_cast<double>(n));
    ASSERT_EQ(regions.count, 2U) << d;
    std::vector<std::uint32_t> region(n);
    for (std::size_t i = 0; i < n; ++i) region[i] = regions.region_of_cell[grid.cell_of(&x[i * d])];
    std::set<std::uint32_t> of_clusters;
    for (std::size_t i = 0; i < n; ++i) {
      if (i % 2 == 1) of_clusters.insert(region[i]);
      for (std::size_t j = 0; j < i; ++j) {
        const bool apart = region[i] != region[j] && region[i] != 0 && region[j] != 0;
        if (apart) {
          EXPECT_GT(distance(x, i, j, d), cutoff) << d;
        }
        // What crowds, the clusters, sees nothing but its own region.
        if (i % 2 == 1 && region[j] != region[i]) {
          EXPECT_GT(distance(x, i, j, d), cutoff) << d;
        }
      }
    }
    EXPECT_EQ(of_clusters, (std::set<std::uint32_t>{1, 2})) << d;
    EXPECT_EQ(grid.crowded(counts, static_cast<double>(n)).count, 0U);
  }
}

}  // namespace
}  // namespace rieszflow
