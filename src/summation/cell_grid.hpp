#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "summation/simd/direct_kernels.hpp"

namespace rieszflow {

/// A box of cells, first axis slowest, for pairs nearer than a cutoff. Cells are thinner along the last axis:
/// a row of cells is a run of particles once these are sorted by cell.
class CellGrid {
 public:
  CellGrid() = default;
  /// lower, extents: (dimension), at most three. The lower corner may be moved later.
  CellGrid(std::span<const double> lower, std::span<const double> extents, double cutoff);
  void move_to(std::span<const double> lower);

  std::size_t cell_count() const { return cells_[0] * cells_[1] * cells_[2]; }
  std::size_t row_length() const { return cells_[dimension_ - 1]; }
  std::size_t row_count() const { return cell_count() / row_length(); }
  /// Layers of cells across the first axis, and how thick one is.
  std::size_t layer_count() const { return cells_[0]; }
  double layer_thickness() const { return sizes_[0]; }

  /// The cell of a point, moved into the box if it lies outside.
  std::size_t cell_of(const double* point) const;

  /// Rows of cells that lie ahead of a row within the cutoff: their offsets, and how many cells to either
  /// side of its own a particle reaches there. The first is the row itself.
  struct Ahead {
    std::int64_t a, b, span;
  };
  std::span<const Ahead> ahead() const { return ahead_; }
  /// visit(first cell, last cell) for the rows ahead of `row` that exist, as far as the cells [first, last]
  /// of `row` reach in them; counted from the first cell of `row`, for the row itself too when `own`.
  template <class Visit>
  void for_rows_ahead(std::size_t row, std::size_t first, std::size_t last, bool own,
                      const Visit& visit) const {
    const std::size_t length = row_length();
    const auto rows_b = static_cast<std::int64_t>(dimension_ >= 2 ? cells_[dimension_ - 2] : 1),
               rows_a = static_cast<std::int64_t>(dimension_ == 3 ? cells_[0] : 1);
    const auto at = static_cast<std::int64_t>(row);
    const std::int64_t a0 = at / rows_b, b0 = at % rows_b;
    for (std::size_t k = own ? 0 : 1; k < ahead_.size(); ++k) {
      const std::int64_t a = a0 + ahead_[k].a, b = b0 + ahead_[k].b;
      if (a >= rows_a || b < 0 || b >= rows_b) continue;
      const std::size_t base = static_cast<std::size_t>(a * rows_b + b) * length;
      const auto span = static_cast<std::size_t>(ahead_[k].span);
      visit(base + (first > span ? first - span : 0), base + std::min(length - 1, last + span));
    }
  }

  /// Crowded regions: blocks of cells no thinner than the cutoff that hold more than `share` particles each,
  /// with all blocks about them. Regions that touch are one; two particles of different regions are thus
  /// further apart than the cutoff, and so are a particle outside and one in a crowded block. counts: (cell).
  struct Regions {
    std::size_t count = 0;
    std::vector<std::uint32_t> region_of_cell;   ///< 0: none, else 1 + region; empty without regions
    std::vector<std::array<double, 3>> extents;  ///< (region)
  };
  Regions crowded(std::span<const std::uint32_t> counts, double share) const;

 private:
  std::size_t dimension_ = 1;
  std::array<std::size_t, 3> cells_{1, 1, 1}, block_{1, 1, 1};  ///< block_: cells of a block along each axis
  std::array<double, 3> sizes_{1.0, 1.0, 1.0}, lower_{};
  std::vector<Ahead> ahead_;
};

}  // namespace rieszflow
