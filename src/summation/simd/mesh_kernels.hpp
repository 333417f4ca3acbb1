#pragma once
#include <cstddef>

#include "summation/simd/direct_kernels.hpp"

/// The inner loops of the fast sum, compiled once per processor level and chosen at run time.
namespace rieszflow::simd {

/// A smooth function of q = r^2 on [0, cutoff]: sum_k coefficients[k] y^k with y = 2 q / cutoff - 1.
struct FarPolynomials {
  int degree = 0;                        ///< of both
  const double* force_over_r = nullptr;  ///< (degree + 1)
  const double* value = nullptr;         ///< (degree + 1)
  double cutoff = 0.0;                   ///< largest q of a near pair
};

/// The window phi on `width` nodes: node j of a particle with offset t has phi = sum_k values[k][j] t^k, and
/// its derivative in the particle's coordinate slopes[k][j] likewise; rows have `lanes_per_row` entries, zero
/// past the width.
struct WindowTable {
  int width = 0;
  int degree = 0;
  int row = 8;                     ///< 8 or 16 entries per power
  const double* values = nullptr;  ///< (power, row)
  const double* slopes = nullptr;  ///< (power, row)
};

/// A regular mesh; coordinate k of a particle is counted in nodes. Last axis fastest.
struct Mesh {
  std::size_t dimension = 0;
  std::size_t strides[3] = {};  ///< of each axis, the last 1
};

struct MeshKernels {
  /// Near pairs of the particles `rows` (one cell) with each other, with [rows.end, own_end) and with the
  /// `ahead` ranges: forces of both += (force_over_r - far force_over_r) (x_i - x_j) for r^2 < cutoff.
  /// Returns the sum of W - far W. At most three dimensions. Nothing outside of the ranges is written.
  double (*near)(const RadialKernel& kernel, const FarPolynomials& far, const Columns& columns, Range rows,
                 std::size_t own_end, const Range* ahead, std::size_t ahead_count, bool with_energy);
  /// grid += sum_i phi(x_i - node), particles [begin, end); coordinates: columns in nodes.
  void (*spread)(const WindowTable& window, const Mesh& mesh, const Columns& columns, Range particles,
                 double* grid);
  /// potential_i = sum over nodes of grid phi, slope_ik = its derivative in x_k, both by the interpolant
  /// divided by the sum of its weights, so that a constant has no slope. slopes: columns.
  void (*interpolate)(const WindowTable& window, const Mesh& mesh, const Columns& columns, Range particles,
                      const double* grid, double* potential, double* slopes);
};

/// The widest that this processor can run.
const MeshKernels& mesh_kernels();

}  // namespace rieszflow::simd
