// Compiled once per processor level, see summation/CMakeLists.txt.
#include "summation/simd/mesh_kernels.hpp"

#include "summation/simd/radial_kernels.hpp"

namespace {

using rieszflow::simd::Columns;
using rieszflow::simd::FarPolynomials;
using rieszflow::simd::Mesh;
using rieszflow::simd::Range;
using rieszflow::simd::WindowTable;

/// p = sum_k coefficients[k] y^k, M chains side by side: one alone would wait for itself.
template <int M>
RIESZFLOW_INLINE void polynomial(const double* coefficients, int degree, const Vec (&y)[M], Vec (&p)[M]) {
  for (int m = 0; m < M; ++m) p[m] = broadcast(coefficients[degree]);
  for (int k = degree - 1; k >= 0; --k) {
    for (int m = 0; m < M; ++m) p[m] = p[m] * y[m] + coefficients[k];
  }
}

constexpr int rows = static_cast<int>(rieszflow::simd::pack_size);

/// Which lanes of a group are columns: all; those behind row m, the group beginning `first` behind row 0; the
/// first `count`.
enum class Lanes { All, Behind, First };

template <class Kernel, int D, bool WithEnergy, Lanes Present>
RIESZFLOW_INLINE void near_group(const Kernel& kernel, const FarPolynomials& far, double softening,
                                 const Columns& c, const Vec (&x)[rows][D], Vec (&force)[rows][D],
                                 std::size_t j, int count, typename Kernel::Energy& energy, Vec& far_energy,
                                 int first = 0) {
  Vec column[D], difference[rows][D], squared[rows], shifted[rows], over_r[rows], y[rows], smooth[rows];
  Int present[rows];
  for (int k = 0; k < D; ++k) column[k] = load(c.positions + k * c.stride + j);
  for (int m = 0; m < rows; ++m) {
    for (int k = 0; k < D; ++k) difference[m][k] = x[m][k] - column[k];
    squared[m] = difference[m][0] * difference[m][0];
    for (int k = 1; k < D; ++k) squared[m] = difference[m][k] * difference[m][k] + squared[m];
    present[m] = squared[m] < far.cutoff;
    if constexpr (Present != Lanes::All) present[m] &= lane_numbers() < static_cast<Whole>(count);
    if constexpr (Present == Lanes::Behind) present[m] &= lane_numbers() > static_cast<Whole>(m - first);
    shifted[m] = squared[m] + softening;
    y[m] = squared[m] * (2.0 / far.cutoff) - 1.0;
  }
  kernel.template evaluate<rows, WithEnergy>(shifted, over_r, energy, present);
  polynomial<rows>(far.force_over_r, far.force_degree, y, smooth);
  for (int m = 0; m < rows; ++m) over_r[m] = present[m] ? over_r[m] - smooth[m] : Vec{};
  if constexpr (WithEnergy) {
    polynomial<rows>(far.value, far.value_degree, y, smooth);
    for (int m = 0; m < rows; ++m) far_energy += present[m] ? smooth[m] : Vec{};
  }
  for (int k = 0; k < D; ++k) {
    double* const theirs = c.forces + k * c.stride + j;
    // The lanes behind `count` may be another thread's.
    Vec felt = Present == Lanes::All ? load(theirs) : load_first(theirs, count);
    for (int m = 0; m < rows; ++m) {
      force[m][k] += over_r[m] * difference[m][k];
      felt -= over_r[m] * difference[m][k];
    }
    if constexpr (Present == Lanes::All) {
      store(theirs, felt);
    } else {
      store_first(theirs, felt, count);
    }
  }
}

template <class Kernel, int D, bool WithEnergy>
double near_pack(const RadialKernel& parameters, const FarPolynomials& far, const Columns& c, Range pack,
                 std::size_t own_end, const Range* ahead, std::size_t ahead_count) {
  const Kernel kernel(parameters);
  const double softening = parameters.softening_squared;
  typename Kernel::Energy energy;
  Vec far_energy{};
  Vec x[rows][D], force[rows][D];
  const int present = static_cast<int>(pack.end - pack.begin);
  for (int m = 0; m < rows; ++m) {
    for (int k = 0; k < D; ++k) {
      // A row that does not exist is far from everything; its square still is a number.
      x[m][k] = broadcast(m < present ? c.positions[k * c.stride + pack.begin + m] : 1e150);
      force[m][k] = Vec{};
    }
  }
  const auto left = [](std::size_t j, std::size_t end) {
    return end - j < lanes ? static_cast<int>(end - j) : lanes;
  };
  // Columns that are rows, too: each pair once.
  std::size_t j = pack.begin;
  constexpr std::size_t span = lanes > rows ? lanes : rows;
  for (int first = 0; first < static_cast<int>(span) && j < own_end; first += lanes, j += lanes) {
    near_group<Kernel, D, WithEnergy, Lanes::Behind>(kernel, far, softening, c, x, force, j, left(j, own_end),
                                                     energy, far_energy, first);
  }
  j = pack.begin + span;
  for (std::size_t r = 0; r < ahead_count + 1; ++r) {
    if (r > 0) j = ahead[r - 1].begin;
    const std::size_t end = r == 0 ? own_end : ahead[r - 1].end;
    for (; j + lanes <= end; j += lanes) {
      near_group<Kernel, D, WithEnergy, Lanes::All>(kernel, far, softening, c, x, force, j, lanes, energy,
                                                    far_energy);
    }
    if (j < end) {
      near_group<Kernel, D, WithEnergy, Lanes::First>(kernel, far, softening, c, x, force, j, left(j, end),
                                                      energy, far_energy);
    }
  }
  for (int m = 0; m < present; ++m) {
    for (int k = 0; k < D; ++k) c.forces[k * c.stride + pack.begin + m] += total(force[m][k]);
  }
  if constexpr (!WithEnergy) return 0.0;
  return kernel.finish(energy.value()) - total(far_energy);
}

double any_near(const RadialKernel& parameters, const FarPolynomials& far, const Columns& c, Range pack,
                std::size_t own_end, const Range* ahead, std::size_t ahead_count, bool with_energy) {
  return with_kernel(parameters.kind, [&]<class Kernel>() {
    const auto in_dimension = [&]<int D>() {
      return with_energy ? near_pack<Kernel, D, true>(parameters, far, c, pack, own_end, ahead, ahead_count)
                         : near_pack<Kernel, D, false>(parameters, far, c, pack, own_end, ahead, ahead_count);
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
  const auto first = static_cast<Whole>(start) + 1;
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

RIESZFLOW_INLINE double coordinate(const Mesh& mesh, const Columns& c, int k, std::size_t i) {
  return (c.positions[k * c.stride + i] - mesh.origin[k]) * mesh.nodes_per_length;
}

template <int D, int Row>
void spread_rows(const WindowTable& window, const Mesh& mesh, const Columns& c, Range particles,
                 double* grid) {
  const int width = window.width, outer = D >= 3 ? width : 1, middle = D >= 2 ? width : 1;
  for (std::size_t i = particles.begin; i < particles.end; ++i) {
    Weights<Row> w[D];
    std::size_t at = 0;
    for (int k = 0; k < D; ++k) {
      at += mesh.strides[k] * weights_at<Row, false>(window, coordinate(mesh, c, k, i), w[k]);
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
double interpolate_rows(const WindowTable& window, const Mesh& mesh, const Columns& c, Range particles,
                        const double* grid, double near_scale) {
  double potentials = 0.0;
  constexpr int vectors = Row / lanes;
  const int width = window.width, outer = D >= 3 ? width : 1, middle = D >= 2 ? width : 1;
  for (std::size_t i = particles.begin; i < particles.end; ++i) {
    Weights<Row> w[D];
    std::size_t at = 0;
    for (int k = 0; k < D; ++k) {
      at += mesh.strides[k] * weights_at<Row, true>(window, coordinate(mesh, c, k, i), w[k]);
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
    const double potential = total(u) / scale;
    potentials += potential;
    for (int k = 0; k < D; ++k) {
      const double gradient =
          mesh.nodes_per_length * (total(slope[k]) / scale - potential * (slope_sum[k] / sum[k]));
      double& force = c.forces[k * c.stride + i];
      force = near_scale * force - gradient;
    }
  }
  return potentials;
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

double any_interpolate(const WindowTable& window, const Mesh& mesh, const Columns& c, Range particles,
                       const double* grid, double near_scale) {
  double potentials = 0.0;
  with_shape(mesh.dimension, window.row, [&]<int D, int Row>() {
    potentials = interpolate_rows<D, Row>(window, mesh, c, particles, grid, near_scale);
  });
  return potentials;
}

}  // namespace

namespace rieszflow::simd {
#define RIESZFLOW_JOIN(a, b) a##b
#define RIESZFLOW_NAME(level) RIESZFLOW_JOIN(mesh_, level)
extern const MeshKernels RIESZFLOW_NAME(RIESZFLOW_SIMD_LEVEL);
const MeshKernels RIESZFLOW_NAME(RIESZFLOW_SIMD_LEVEL){any_near, any_spread, any_interpolate};
}  // namespace rieszflow::simd
