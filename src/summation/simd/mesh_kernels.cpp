// Compiled once per processor level, see summation/CMakeLists.txt.
#include "summation/simd/mesh_kernels.hpp"

#include "summation/simd/radial_kernels.hpp"

namespace {

using rieszflow::simd::Columns;
using rieszflow::simd::FarPolynomials;
using rieszflow::simd::Mesh;
using rieszflow::simd::Range;
using rieszflow::simd::WindowTable;

RIESZFLOW_INLINE Vec polynomial(const double* coefficients, int degree, Vec y) {
  Vec p = broadcast(coefficients[degree]);
  for (int k = degree - 1; k >= 0; --k) p = p * y + coefficients[k];
  return p;
}

template <class Kernel, int D, int M, bool WithEnergy>
RIESZFLOW_INLINE void near_group(const Kernel& kernel, const FarPolynomials& far, double softening,
                                 const Columns& c, const Vec (&x)[M][D], Vec (&force)[M][D], std::size_t j,
                                 int count, typename Kernel::Energy& energy, Vec& far_energy) {
  Vec column[D], difference[M][D], squared[M], shifted[M], over_r[M];
  Int present[M];
  for (int k = 0; k < D; ++k) column[k] = load(c.positions + k * c.stride + j);
  const Int inside = lane_numbers() < static_cast<std::int64_t>(count);
  Int any = inside & 0;
  for (int m = 0; m < M; ++m) {
    for (int k = 0; k < D; ++k) difference[m][k] = x[m][k] - column[k];
    squared[m] = difference[m][0] * difference[m][0];
    for (int k = 1; k < D; ++k) squared[m] = difference[m][k] * difference[m][k] + squared[m];
    present[m] = (squared[m] < far.cutoff) & inside;
    any |= present[m];
    shifted[m] = squared[m] + softening;
  }
#if RIESZFLOW_AVX512
  if (_mm512_movepi64_mask(reinterpret_cast<__m512i>(any)) == 0) return;
#endif
  kernel.template evaluate<M, WithEnergy>(shifted, over_r, energy, present);
  for (int m = 0; m < M; ++m) {
    const Vec y = squared[m] * (2.0 / far.cutoff) - 1.0;
    over_r[m] = present[m] ? over_r[m] - polynomial(far.force_over_r, far.degree, y) : Vec{};
    if constexpr (WithEnergy) far_energy += present[m] ? polynomial(far.value, far.degree, y) : Vec{};
  }
  for (int k = 0; k < D; ++k) {
    double* const theirs = c.forces + k * c.stride + j;
    Vec felt = load(theirs);
    for (int m = 0; m < M; ++m) {
      force[m][k] += over_r[m] * difference[m][k];
      felt -= over_r[m] * difference[m][k];
    }
    store_first(theirs, felt, count);
  }
}

template <class Kernel, int D, int M, bool WithEnergy>
RIESZFLOW_INLINE void near_rows(const Kernel& kernel, const FarPolynomials& far, double softening,
                                const Columns& c, std::size_t i, Range own, const Range* ahead,
                                std::size_t ahead_count, typename Kernel::Energy& energy, Vec& far_energy) {
  Vec x[M][D], force[M][D];
  for (int m = 0; m < M; ++m) {
    for (int k = 0; k < D; ++k) {
      x[m][k] = broadcast(c.positions[k * c.stride + i + m]);
      force[m][k] = Vec{};
    }
  }
  for (std::size_t r = 0; r < ahead_count + 1; ++r) {
    const Range range = r == 0 ? own : ahead[r - 1];
    for (std::size_t j = range.begin; j < range.end; j += lanes) {
      const int count = range.end - j < lanes ? static_cast<int>(range.end - j) : lanes;
      near_group<Kernel, D, M, WithEnergy>(kernel, far, softening, c, x, force, j, count, energy, far_energy);
    }
  }
  for (int m = 0; m < M; ++m) {
    for (int k = 0; k < D; ++k) c.forces[k * c.stride + i + m] += total(force[m][k]);
  }
}

template <class Kernel, int D, bool WithEnergy>
double near_cell(const RadialKernel& parameters, const FarPolynomials& far, const Columns& c, Range rows,
                 std::size_t own_end, const Range* ahead, std::size_t ahead_count) {
  const Kernel kernel(parameters);
  const double softening = parameters.softening_squared;
  typename Kernel::Energy energy;
  Vec far_energy{};
  std::size_t i = rows.begin;
  for (; i + 4 <= rows.end; i += 4) {
    near_rows<Kernel, D, 4, WithEnergy>(kernel, far, softening, c, i, {i + 4, own_end}, ahead, ahead_count,
                                        energy, far_energy);
    for (std::size_t k = 0; k < 3; ++k) {
      near_rows<Kernel, D, 1, WithEnergy>(kernel, far, softening, c, i + k, {i + k + 1, i + 4}, ahead, 0,
                                          energy, far_energy);
    }
  }
  for (; i < rows.end; ++i) {
    near_rows<Kernel, D, 1, WithEnergy>(kernel, far, softening, c, i, {i + 1, own_end}, ahead, ahead_count,
                                        energy, far_energy);
  }
  if constexpr (!WithEnergy) return 0.0;
  return kernel.finish(energy.value()) - total(far_energy);
}

double any_near(const RadialKernel& parameters, const FarPolynomials& far, const Columns& c, Range rows,
                std::size_t own_end, const Range* ahead, std::size_t ahead_count, bool with_energy) {
  return with_kernel(parameters.kind, [&]<class Kernel>() {
    const auto in_dimension = [&]<int D>() {
      return with_energy ? near_cell<Kernel, D, true>(parameters, far, c, rows, own_end, ahead, ahead_count)
                         : near_cell<Kernel, D, false>(parameters, far, c, rows, own_end, ahead, ahead_count);
    };
    switch (c.dimension) {
      case 1:
        return in_dimension.template operator()<1>();
      case 2:
        return in_dimension.template operator()<2>();
    }
    return in_dimension.template operator()<3>();
  });
}

/// The weights of one particle along one axis, in Vecs of `lanes` nodes.
template <int Row>
struct Weights {
  Vec phi[Row / lanes];
  Vec slope[Row / lanes];
  double phi_of[Row], slope_of[Row];
};

/// First node of the window about x, and the weights from there on.
template <int Row, bool WithSlope>
RIESZFLOW_INLINE std::size_t weights_at(const WindowTable& window, double x, Weights<Row>& w) {
  // x - width/2 > 0 for every particle on the mesh, so truncation is the floor.
  const double start = x - 0.5 * window.width;
  const auto first = static_cast<std::int64_t>(start) + 1;
  const double t = static_cast<double>(first) - start;  // in (0, 1]
  for (int v = 0; v < Row / lanes; ++v) {
    Vec p = load(window.values + window.degree * Row + v * lanes);
    for (int k = window.degree - 1; k >= 0; --k) p = p * t + load(window.values + k * Row + v * lanes);
    w.phi[v] = p;
    store(w.phi_of + v * lanes, p);
    if constexpr (WithSlope) {
      Vec s = load(window.slopes + window.degree * Row + v * lanes);
      for (int k = window.degree - 1; k >= 0; --k) s = s * t + load(window.slopes + k * Row + v * lanes);
      w.slope[v] = s;
      store(w.slope_of + v * lanes, s);
    }
  }
  return static_cast<std::size_t>(first);
}

template <int D, int Row>
void spread_rows(const WindowTable& window, const Mesh& mesh, const Columns& c, Range particles,
                 double* grid) {
  const int width = window.width, outer = D >= 3 ? width : 1, middle = D >= 2 ? width : 1;
  for (std::size_t i = particles.begin; i < particles.end; ++i) {
    Weights<Row> w[D];
    std::size_t at = 0;
    for (int k = 0; k < D; ++k) {
      at += mesh.strides[k] * weights_at<Row, false>(window, c.positions[k * c.stride + i], w[k]);
    }
    for (int a = 0; a < outer; ++a) {
      for (int b = 0; b < middle; ++b) {
        double* const row =
            grid + at + (D >= 3 ? a * mesh.strides[0] : 0) + (D >= 2 ? b * mesh.strides[D - 2] : 0);
        const double factor =
            (D >= 3 ? w[0].phi_of[a] : 1.0) * (D >= 2 ? w[D >= 2 ? D - 2 : 0].phi_of[b] : 1.0);
        for (int v = 0; v < Row / lanes; ++v) {
          store(row + v * lanes, load(row + v * lanes) + factor * w[D - 1].phi[v]);
        }
      }
    }
  }
}

template <int D, int Row>
void interpolate_rows(const WindowTable& window, const Mesh& mesh, const Columns& c, Range particles,
                      const double* grid, double* potential, double* slopes) {
  constexpr int vectors = Row / lanes;
  const int width = window.width, outer = D >= 3 ? width : 1, middle = D >= 2 ? width : 1;
  for (std::size_t i = particles.begin; i < particles.end; ++i) {
    Weights<Row> w[D];
    std::size_t at = 0;
    for (int k = 0; k < D; ++k) {
      at += mesh.strides[k] * weights_at<Row, true>(window, c.positions[k * c.stride + i], w[k]);
    }
    Vec value[vectors] = {}, along_first[vectors] = {}, along_middle[vectors] = {};
    for (int a = 0; a < outer; ++a) {
      Vec line[vectors] = {}, line_slope[vectors] = {};
      for (int b = 0; b < middle; ++b) {
        const double* const row =
            grid + at + (D >= 3 ? a * mesh.strides[0] : 0) + (D >= 2 ? b * mesh.strides[D - 2] : 0);
        for (int v = 0; v < vectors; ++v) {
          const Vec nodes = load(row + v * lanes);
          if constexpr (D >= 2) {
            line[v] += w[D - 2].phi_of[b] * nodes;
            line_slope[v] += w[D - 2].slope_of[b] * nodes;
          } else {
            line[v] = nodes;
          }
        }
      }
      for (int v = 0; v < vectors; ++v) {
        if constexpr (D >= 3) {
          value[v] += w[0].phi_of[a] * line[v];
          along_first[v] += w[0].slope_of[a] * line[v];
          along_middle[v] += w[0].phi_of[a] * line_slope[v];
        } else {
          value[v] = line[v];
          along_middle[v] = line_slope[v];
        }
      }
    }
    Vec u{}, slope[3] = {};
    for (int v = 0; v < vectors; ++v) {
      u += value[v] * w[D - 1].phi[v];
      slope[D - 1] += value[v] * w[D - 1].slope[v];
      if constexpr (D >= 2) slope[D - 2] += along_middle[v] * w[D - 1].phi[v];
      if constexpr (D >= 3) slope[0] += along_first[v] * w[D - 1].phi[v];
    }
    double sum[D], slope_sum[D], scale = 1.0;
    for (int k = 0; k < D; ++k) {
      Vec phi{}, derivative{};
      for (int v = 0; v < vectors; ++v) phi += w[k].phi[v], derivative += w[k].slope[v];
      sum[k] = total(phi), slope_sum[k] = total(derivative);
      scale *= sum[k];
    }
    potential[i] = total(u) / scale;
    for (int k = 0; k < D; ++k) {
      slopes[k * c.stride + i] = total(slope[k]) / scale - potential[i] * (slope_sum[k] / sum[k]);
    }
  }
}

template <class Call>
RIESZFLOW_INLINE void with_shape(std::size_t dimension, int row, const Call& call) {
  const auto in_dimension = [&]<int Row>() {
    if (dimension == 1) call.template operator()<1, Row>();
    if (dimension == 2) call.template operator()<2, Row>();
    if (dimension == 3) call.template operator()<3, Row>();
  };
  if (row == 8) in_dimension.template operator()<8>();
  if (row == 16) in_dimension.template operator()<16>();
}

void any_spread(const WindowTable& window, const Mesh& mesh, const Columns& c, Range particles,
                double* grid) {
  with_shape(mesh.dimension, window.row,
             [&]<int D, int Row>() { spread_rows<D, Row>(window, mesh, c, particles, grid); });
}

void any_interpolate(const WindowTable& window, const Mesh& mesh, const Columns& c, Range particles,
                     const double* grid, double* potential, double* slopes) {
  with_shape(mesh.dimension, window.row, [&]<int D, int Row>() {
    interpolate_rows<D, Row>(window, mesh, c, particles, grid, potential, slopes);
  });
}

}  // namespace

namespace rieszflow::simd {
#define RIESZFLOW_JOIN(a, b) a##b
#define RIESZFLOW_NAME(level) RIESZFLOW_JOIN(mesh_, level)
extern const MeshKernels RIESZFLOW_NAME(RIESZFLOW_SIMD_LEVEL);
const MeshKernels RIESZFLOW_NAME(RIESZFLOW_SIMD_LEVEL){any_near, any_spread, any_interpolate};
}  // namespace rieszflow::simd
