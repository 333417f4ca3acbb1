#pragma once
#include <cstddef>

#include "summation/simd/direct_kernels.hpp"

/// The inner loops of the fast sum, compiled once per processor level and chosen at run time.
namespace rieszflow::simd {

/// A smooth function of q = r^2 on [0, cutoff] and its energy: sum_k coefficients[k] y^k with y = 2 q /
/// cutoff - 1.
struct FarPolynomials {
  int force_degree = 0, value_degree = 0;
  const double* force_over_r = nullptr;  ///< (force_degree + 1)
  const double* value = nullptr;         ///< (value_degree + 1)
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

/// A regular mesh, last axis fastest. Node j of axis k lies at origin[k] + j / nodes_per_length.
struct Mesh {
  std::size_t dimension = 0;
  std::size_t strides[3] = {};  ///< of each axis, the last 1
  double origin[3] = {};
  double nodes_per_length = 0.0;
};

struct MeshKernels {
  /// Near pairs of `pack`, one to `pack_size` neighbours in the order of the columns, with each other, with
  /// [pack.end, own_end) and with the `ahead` ranges: forces of both += (force_over_r - far force_over_r)
  /// (x_i - x_j) for r^2 < cutoff. Returns the sum of W - far W when `with_energy`, else 0. At most three
  /// dimensions. Nothing outside of the ranges is written.
  double (*near)(const RadialKernel& kernel, const FarPolynomials& far, const Columns& columns, Range pack,
                 std::size_t own_end, const Range* ahead, std::size_t ahead_count, bool with_energy);
  /// grid += sum_i phi(x_i - node), particles [begin, end).
  void (*spread)(const WindowTable& window, const Mesh& mesh, const Columns& columns, Range particles,
                 double* grid);
  /// forces = near_scale forces - gradient of the potential, the sum over nodes of grid phi by the
  /// interpolant divided by the sum of its weights, so that a constant has no gradient. Returns the sum of
  /// the potential.
  double (*interpolate)(const WindowTable& window, const Mesh& mesh, const Columns& columns, Range particles,
                        const double* grid, double near_scale);
};
constexpr std::size_t pack_size = 4;

/// The widest that this processor can run.
const MeshKernels& mesh_kernels();

}  // namespace rieszflow::simd
