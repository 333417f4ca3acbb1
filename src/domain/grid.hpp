#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "domain/domain.hpp"

namespace rieszflow {

/// Uniform Cartesian grid of cells on a box (or torus), last axis fastest.
/// For a ball the grid covers the bounding box and `volume_fractions` says how much of each cell lies inside.
struct Grid {
  std::vector<double> lower;               ///< (dimension)
  std::vector<double> upper;               ///< (dimension)
  std::vector<std::size_t> cells;          ///< (dimension), each >= 1
  bool periodic = false;                   ///< torus: opposite faces are one face
  std::vector<double> volume_fractions{};  ///< (cell) in [0, 1]; empty when every cell is whole

  std::size_t dimension() const { return cells.size(); }
  std::size_t cell_count() const;
  double spacing(std::size_t axis) const {
    return (upper[axis] - lower[axis]) / static_cast<double>(cells[axis]);
  }
  double cell_volume() const;
  double center(std::size_t axis, std::size_t index) const {
    return lower[axis] + (static_cast<double>(index) + 0.5) * spacing(axis);
  }
  /// Lower face of cell `index` along `axis`; index = cells[axis]: the upper wall, exactly.
  double face(std::size_t axis, std::size_t index) const {
    return index == cells[axis] ? upper[axis] : lower[axis] + static_cast<double>(index) * spacing(axis);
  }
  /// Position of the cell centre; out: (dimension).
  void cell_center(std::size_t cell, std::span<double> out) const;
  /// Linear index of the cell that holds `point`; points on the upper wall belong to the last cell. Always in
  /// range: a point outside belongs to the nearest cell. The point must be finite.
  std::size_t cell_of(std::span<const double> point) const;
};

/// The grid of a bounded domain with that many cells per axis. For a ball in d = 2, 3: volume fractions by
/// Gauss-Legendre quadrature between the points where the sphere crosses cell edges (relative error below
/// 1e-10). d <= 3 for a ball.
Grid grid_on(const Domain& domain, std::vector<std::size_t> cells);

}  // namespace rieszflow
