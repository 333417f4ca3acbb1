#include "summation/cell_grid.hpp"

#include <algorithm>
#include <cmath>

namespace rieszflow {

CellGrid::CellGrid(std::span<const double> lower, std::span<const double> extents, double cutoff)
    : dimension_(extents.size()) {
  move_to(lower);
  const std::size_t d = dimension_;
  for (std::size_t k = 0; k < d; ++k) {
    const std::size_t parts = k + 1 == d ? 8 : 3;  // of the cutoff
    const double count = std::floor(extents[k] / (cutoff / static_cast<double>(parts)));
    cells_[k] = static_cast<std::size_t>(std::clamp(count, 1.0, k + 1 == d ? 4e6 : 4e3));
    sizes_[k] = extents[k] / static_cast<double>(cells_[k]);
    block_[k] = std::min(parts, cells_[k]);
  }
  const auto gap = [&](std::int64_t offset, std::size_t k) {
    return static_cast<double>(std::max<std::int64_t>(0, std::abs(offset) - 1)) * sizes_[k];
  };
  const auto reach = [&](double square, std::size_t k) {
    return static_cast<std::int64_t>(std::sqrt(std::max(0.0, square)) / sizes_[k]) + 1;
  };
  const double square = cutoff * cutoff;
  const std::int64_t a_reach = d == 3 ? reach(square, 0) : 0, b_reach = d >= 2 ? reach(square, d - 2) : 0;
  for (std::int64_t a = 0; a <= a_reach; ++a) {
    for (std::int64_t b = a == 0 ? 0 : -b_reach; b <= b_reach; ++b) {
      const double rest =
          square - (d == 3 ? gap(a, 0) * gap(a, 0) : 0.0) - (d >= 2 ? gap(b, d - 2) * gap(b, d - 2) : 0.0);
      if (rest > 0.0) ahead_.push_back({a, b, reach(rest, d - 1)});
    }
  }
}

void CellGrid::move_to(std::span<const double> lower) { std::ranges::copy(lower, lower_.begin()); }

std::size_t CellGrid::cell_of(const double* point) const {
  std::size_t cell = 0;
  for (std::size_t k = 0; k < dimension_; ++k) {
    const double c = (point[k] - lower_[k]) / sizes_[k];
    cell = cell * cells_[k] + std::min(cells_[k] - 1, static_cast<std::size_t>(std::max(0.0, c)));
  }
  return cell;
}

CellGrid::Regions CellGrid::crowded(std::span<const std::uint32_t> counts, double share) const {
  // Axes from the left, the missing ones of length one behind.
  std::array<std::size_t, 3> blocks{};
  for (std::size_t k = 0; k < 3; ++k) blocks[k] = (cells_[k] + block_[k] - 1) / block_[k];
  const auto ends = [&](std::size_t block, std::size_t k) {
    return std::min((block + 1) * block_[k], cells_[k]);
  };
  const auto for_cells = [&](const auto& visit) {
    std::size_t cell = 0;
    for (std::size_t p = 0; p < blocks[0]; ++p) {
      for (std::size_t a = p * block_[0]; a < ends(p, 0); ++a) {
        for (std::size_t q = 0; q < blocks[1]; ++q) {
          for (std::size_t b = q * block_[1]; b < ends(q, 1); ++b) {
            for (std::size_t r = 0; r < blocks[2]; ++r) {
              const std::size_t block = (p * blocks[1] + q) * blocks[2] + r;
              for (std::size_t c = r * block_[2]; c < ends(r, 2); ++c, ++cell) visit(cell, block);
            }
          }
        }
      }
    }
  };
  std::vector<std::uint32_t> held(blocks[0] * blocks[1] * blocks[2], 0);
  for_cells([&](std::size_t cell, std::size_t block) { held[block] += counts[cell]; });

  using Place = std::array<std::size_t, 3>;
  const auto index = [&](const Place& p) { return (p[0] * blocks[1] + p[1]) * blocks[2] + p[2]; };
  const auto for_neighbours = [&](const Place& p, const auto& visit) {
    Place from, to, q;
    for (std::size_t k = 0; k < 3; ++k) {
      from[k] = p[k] > 0 ? p[k] - 1 : 0;
      to[k] = std::min(p[k] + 1, blocks[k] - 1);
    }
    for (q[0] = from[0]; q[0] <= to[0]; ++q[0]) {
      for (q[1] = from[1]; q[1] <= to[1]; ++q[1]) {
        for (q[2] = from[2]; q[2] <= to[2]; ++q[2]) visit(q);
      }
    }
  };
  const auto for_blocks = [&](const auto& visit) {
    Place p;
    for (p[0] = 0; p[0] < blocks[0]; ++p[0]) {
      for (p[1] = 0; p[1] < blocks[1]; ++p[1]) {
        for (p[2] = 0; p[2] < blocks[2]; ++p[2]) visit(p);
      }
    }
  };
  constexpr std::uint32_t unknown = 0xffffffff;
  std::vector<std::uint32_t> region(held.size(), 0);
  for_blocks([&](const Place& p) {
    if (static_cast<double>(held[index(p)]) <= share) return;
    for_neighbours(p, [&](const Place& q) { region[index(q)] = unknown; });
  });
  Regions result;
  std::vector<Place> open;
  for_blocks([&](const Place& seed) {
    if (region[index(seed)] != unknown) return;
    const auto number = static_cast<std::uint32_t>(++result.count);
    Place low = seed, high = seed;
    region[index(seed)] = number;
    open.assign(1, seed);
    while (!open.empty()) {
      const Place p = open.back();
      open.pop_back();
      for (std::size_t k = 0; k < 3; ++k) low[k] = std::min(low[k], p[k]), high[k] = std::max(high[k], p[k]);
      for_neighbours(p, [&](const Place& q) {
        if (region[index(q)] != unknown) return;
        region[index(q)] = number;
        open.push_back(q);
      });
    }
    auto& extent = result.extents.emplace_back();
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t end = std::min((high[k] + 1) * block_[k], cells_[k]);
      extent[k] = static_cast<double>(end - low[k] * block_[k]) * sizes_[k];
    }
  });
  if (result.count > 0) {
    result.region_of_cell.resize(cell_count());
    for_cells([&](std::size_t cell, std::size_t block) { result.region_of_cell[cell] = region[block]; });
  }
  return result;
}

}  // namespace rieszflow
