// Compiled once per processor level (RIESZFLOW_SIMD_LEVEL is a name) in doubles and, with RIESZFLOW_SINGLE,
// in floats: see summation/CMakeLists.txt. Method: j in lanes, four i at a time broadcast, both directions of
// a pair from one evaluation (Newton's third law).
#include "summation/simd/direct_kernels.hpp"

#include <utility>

#include "summation/simd/radial_kernels.hpp"

namespace {

using Columns = rieszflow::simd::BasicColumns<Real>;
using rieszflow::simd::Ahead;
using rieszflow::simd::padding;
using rieszflow::simd::Range;

/// M particles, each in all lanes.
template <int M, int D>
struct Rows {
  Vec position[M][D], remainder[single_precision ? M : 1][D];
  RIESZFLOW_INLINE Rows(const Columns& c, std::size_t i) {
    for (int m = 0; m < M; ++m) {
      for (int k = 0; k < D; ++k) {
        position[m][k] = broadcast(c.positions[k * c.stride + i + m]);
        if constexpr (single_precision) remainder[m][k] = broadcast(c.remainders[k * c.stride + i + m]);
      }
    }
  }
#if !defined(RIESZFLOW_SINGLE)
  RIESZFLOW_INLINE explicit Rows(const double* point) {
    for (int k = 0; k < D; ++k) position[0][k] = broadcast(point[k]);
  }
  /// Of as many replicas as there are lanes.
  RIESZFLOW_INLINE static Rows of_replicas(const Columns& c, std::size_t i) {
    Rows x;
    for (int m = 0; m < M; ++m) {
      for (int k = 0; k < D; ++k) x.position[m][k] = load(c.positions + ((i + m) * D + k) * lanes);
    }
    return x;
  }
  Rows() = default;
#endif
};

/// M rows i, i+1, ... against the lanes [j, j + lanes). Masked: only lanes set in `present` are pairs.
/// OneSided: the columns feel nothing.
template <class Kernel, int D, int M, bool WithEnergy, bool Masked, bool OneSided>
RIESZFLOW_INLINE void group(const Kernel& kernel, Real softening, const Columns& c, const Rows<M, D>& x,
                            Vec (&force)[M][D], std::size_t j, const Int* present,
                            typename Kernel::Energy& energy) {
  Vec difference[M][D], squared[M], over_r[M];
  for (int k = 0; k < D; ++k) {
    const Vec column = load(c.positions + k * c.stride + j);
    for (int m = 0; m < M; ++m) difference[m][k] = x.position[m][k] - column;
    if constexpr (single_precision) {
      const Vec remainder = load(c.remainders + k * c.stride + j);
      for (int m = 0; m < M; ++m) difference[m][k] += x.remainder[m][k] - remainder;
    }
  }
  for (int m = 0; m < M; ++m) {
    squared[m] = difference[m][0] * difference[m][0] + softening;
    for (int k = 1; k < D; ++k) squared[m] = difference[m][k] * difference[m][k] + squared[m];
  }
  kernel.template evaluate<M, WithEnergy>(squared, over_r, energy, Masked ? present : nullptr);
  if constexpr (Masked) {
    for (int m = 0; m < M; ++m) over_r[m] = present[m] ? over_r[m] : Vec{};
  }
  for (int k = 0; k < D; ++k) {
    Vec felt = OneSided ? Vec{} : load(c.forces + k * c.stride + j);
    for (int m = 0; m < M; ++m) {
      force[m][k] += over_r[m] * difference[m][k];
      if constexpr (!OneSided) felt -= over_r[m] * difference[m][k];
    }
    if constexpr (!OneSided) store(c.forces + k * c.stride + j, felt);
  }
}

/// Lanes from `first` on that lie behind row i, i + 1, ...: of rows that are columns too, each pair once.
template <int M>
RIESZFLOW_INLINE void behind_rows(std::size_t i, std::size_t first, std::size_t end, Int (&present)[M]) {
  const Int lane = lane_numbers();
  const auto count = static_cast<Whole>(end - first < lanes ? end - first : lanes);
  for (int m = 0; m < M; ++m) present[m] = (lane > static_cast<Whole>(i - first) + m) & (lane < count);
}

/// M rows against the columns [begin, end), begin a multiple of `lanes`; on the diagonal of the pairs,
/// against those from the rows on, which lie in one group of lanes.
template <class Kernel, int D, int M, bool WithEnergy>
RIESZFLOW_INLINE void strip(const Kernel& kernel, Real softening, const Columns& c, std::size_t i,
                            bool diagonal, std::size_t begin, std::size_t end,
                            typename Kernel::Energy& energy) {
  Rows<M, D> x(c, i);
  Vec force[M][D] = {};
  if (diagonal) {
    Int present[M];
    begin = i / lanes * lanes;
    behind_rows<M>(i, begin, end, present);
    group<Kernel, D, M, WithEnergy, true, false>(kernel, softening, c, x, force, begin, present, energy);
    begin += lanes;
  }
  if (end < begin) end = begin;
  const std::size_t full = begin + (end - begin) / lanes * lanes;
  for (std::size_t j = begin; j < full; j += lanes) {
    if constexpr (Kernel::rows_in_memory || single_precision) asm volatile("" : "+m"(x));
    group<Kernel, D, M, WithEnergy, false, false>(kernel, softening, c, x, force, j, nullptr, energy);
  }
  if (full < end) {
    Int present[M];
    for (int m = 0; m < M; ++m) present[m] = lane_numbers() < static_cast<Whole>(end - full);
    group<Kernel, D, M, WithEnergy, true, false>(kernel, softening, c, x, force, full, present, energy);
  }
  for (int m = 0; m < M; ++m) {
    for (int k = 0; k < D; ++k) c.forces[k * c.stride + i + m] += total(force[m][k]);
  }
}

/// One row against the lanes [j, j + lanes) that it belongs to, or to which the lane `skip` belongs.
template <class Kernel, int D, bool WithEnergy>
RIESZFLOW_INLINE void own_lanes(const Kernel& kernel, Real softening, const Columns& c, const Rows<1, D>& x,
                                Vec (&force)[1][D], std::size_t skip, std::size_t j, std::size_t end,
                                typename Kernel::Energy& energy) {
  const Int lane = lane_numbers() + static_cast<Whole>(j);
  const Int present[1] = {(lane < static_cast<Whole>(end)) & (lane != static_cast<Whole>(skip))};
  group<Kernel, D, 1, WithEnergy, true, true>(kernel, softening, c, x, force, j, present, energy);
}

/// Energy of a tile. Floats are added up strip by strip only.
template <class Kernel>
struct TileEnergy {
  const Kernel& kernel;
  typename Kernel::Energy strips{};
  double sum = 0.0;
  explicit TileEnergy(const Kernel& of) : kernel(of) {}
  RIESZFLOW_INLINE void close_strip() {
    if constexpr (single_precision) sum += kernel.finish(strips.value()), strips = {};
  }
  RIESZFLOW_INLINE double value() const { return sum + kernel.finish(strips.value()); }
};

template <class Kernel, int D, bool WithEnergy>
double tile(const Kernel& kernel, Real softening, const Columns& c, Range rows, Range cols) {
  TileEnergy<Kernel> energy(kernel);
  std::size_t i = rows.begin;
  const bool diagonal = rows.begin == cols.begin;
  if (lanes >= 4 || !diagonal) {
    for (; i + 4 <= rows.end; i += 4) {
      strip<Kernel, D, 4, WithEnergy>(kernel, softening, c, i, diagonal, cols.begin, cols.end, energy.strips);
      if constexpr (WithEnergy) energy.close_strip();
    }
  }
  for (; i < rows.end; ++i)
    strip<Kernel, D, 1, WithEnergy>(kernel, softening, c, i, diagonal, cols.begin, cols.end, energy.strips);
  return WithEnergy ? energy.value() : 0.0;
}

#if !defined(RIESZFLOW_SINGLE)
/// One of log2(lanes) stages: the blocks of Width x Width off the diagonal change places.
template <int Width, int... Lane>
RIESZFLOW_INLINE void exchange_blocks(Vec (&rows)[lanes], std::integer_sequence<int, Lane...>) {
  for (int i = 0; i < lanes; ++i) {
    if (i & Width) continue;
    const Vec a = rows[i], b = rows[i + Width];
    rows[i] = __builtin_shufflevector(a, b, (Lane & Width ? lanes + Lane - Width : Lane)...);
    rows[i + Width] = __builtin_shufflevector(a, b, (Lane & Width ? lanes + Lane : Lane + Width)...);
  }
}

/// Rows become columns and columns rows.
RIESZFLOW_INLINE void transpose(Vec (&rows)[lanes]) {
  constexpr auto all = std::make_integer_sequence<int, lanes>();
  if constexpr (lanes > 4) exchange_blocks<4>(rows, all);
  if constexpr (lanes > 2) exchange_blocks<2>(rows, all);
  exchange_blocks<1>(rows, all);
}

/// block(at, count) for the numbers [at, at + count) of `size`, count = lanes but for the last.
template <class Block>
RIESZFLOW_INLINE void in_blocks(std::size_t size, const Block& block) {
  std::size_t at = 0;
  for (; at + lanes <= size; at += lanes) block(at, lanes);
  if (at < size) block(at, static_cast<int>(size - at));
}

void interleave(const double* replicas, std::size_t size, double* in_lanes) {
  in_blocks(
      size, [&](std::size_t at, int count) __attribute__((always_inline)) {
        Vec rows[lanes];
        for (std::size_t r = 0; r < lanes; ++r) rows[r] = load_first(replicas + r * size + at, count);
        transpose(rows);
        for (int i = 0; i < lanes; ++i) {
          if (i < count) store(in_lanes + (at + static_cast<std::size_t>(i)) * lanes, rows[i]);
        }
      });
}

void add_separated(const double* in_lanes, std::size_t size, double scale, double* replicas) {
  in_blocks(
      size, [&](std::size_t at, int count) __attribute__((always_inline)) {
        Vec rows[lanes];
        for (int i = 0; i < lanes; ++i)
          rows[i] = i < count ? load(in_lanes + (at + static_cast<std::size_t>(i)) * lanes) : Vec{};
        transpose(rows);
        for (std::size_t r = 0; r < lanes; ++r) {
          double* const to = replicas + r * size + at;
          store_first(to, load_first(to, count) + rounded(scale * rows[r]), count);
        }
      });
}

// One replica in each lane. Every sum is split and closed as in strip(), over columns that share a lane
// there, so that the bits are the same.

/// M rows against the columns [begin, end) as in strip(); c.stride = lanes, and particles are D lanes apart.
/// energies: of the columns j with j % lanes = l at l.
template <class Kernel, int D, int M, bool WithEnergy>
RIESZFLOW_INLINE void replica_strip(const Kernel& kernel, Real softening, const Columns& c, std::size_t i,
                                    bool diagonal, std::size_t begin, std::size_t end,
                                    typename Kernel::Energy (&energies)[lanes]) {
  auto x = Rows<M, D>::of_replicas(c, i);
  // The sums of two, four, ... lanes of total(), which wait for as many others. Lanes come in the order in
  // which total() joins them, so that few wait.
  constexpr int levels = __builtin_ctz(lanes);
  Vec waiting[levels + 1][M][D];
  if (diagonal) begin = i / lanes * lanes;
  // Energies take a masked group wherever strip() takes one: a compiler may contract a masked summand and a
  // plain one differently.
  const std::size_t plain = WithEnergy ? begin + (end - begin) / lanes * lanes : end;
  for (int turn = 0; turn < lanes; ++turn) {
    int l = 0;
    for (int bit = 0; bit < levels; ++bit) l |= ((turn >> bit) & 1) << (levels - 1 - bit);
    Vec force[M][D] = {};
    typename Kernel::Energy energy = energies[l];
    const auto masked = [&](std::size_t j) __attribute__((always_inline)) {
      const Int column = Int{} + static_cast<Whole>(j);
      Int present[M];
      for (int m = 0; m < M; ++m) present[m] = column > static_cast<Whole>(i) + m;
      group<Kernel, D, M, WithEnergy, true, false>(kernel, softening, c, x, force, j * D * lanes, present,
                                                   energy);
    };
    std::size_t j = begin + static_cast<std::size_t>(l);
    if (diagonal && (WithEnergy || j < i + M)) {
      if (i < j && j < end) masked(j);
      j += lanes;
    }
    for (; j < plain; j += lanes) {
      if constexpr (Kernel::rows_in_memory) asm volatile("" : "+m"(x));
      group<Kernel, D, M, WithEnergy, false, false>(kernel, softening, c, x, force, j * D * lanes, nullptr,
                                                    energy);
    }
    if (j < end) masked(j);
    energies[l] = energy;
    int level = 0;
    for (; (turn >> level) & 1; ++level) {
      for (int m = 0; m < M; ++m) {
        for (int k = 0; k < D; ++k) force[m][k] += waiting[level][m][k];
      }
    }
    for (int m = 0; m < M; ++m) {
      for (int k = 0; k < D; ++k) waiting[level][m][k] = force[m][k];
    }
  }
  for (int m = 0; m < M; ++m) {
    for (int k = 0; k < D; ++k) {
      Real* const felt = c.forces + ((i + m) * D + k) * lanes;
      store(felt, load(felt) + waiting[levels][m][k]);
    }
  }
}

RIESZFLOW_INLINE void fetch(const Ahead& ahead, std::size_t begin, std::size_t end) {
  constexpr std::size_t line = 64 / sizeof(double);
  for (std::size_t at = begin; at < end; at += line) {
    __builtin_prefetch(ahead.read + at, 0, 2);  // into the second-level cache
    __builtin_prefetch(ahead.changed + at, 1, 2);
  }
}

template <class Kernel, int D, bool WithEnergy>
void replica_tile(const Kernel& kernel, Real softening, const Columns& c, Range rows, Range cols,
                  double* sums, const Ahead& ahead) {
  typename Kernel::Energy energies[lanes];
  std::size_t i = rows.begin;
  const bool diagonal = rows.begin == cols.begin;
  if (lanes >= 4 || !diagonal) {
    for (; i + 4 <= rows.end; i += 4) {
      if (diagonal) fetch(ahead, i * D * lanes, (i + 4) * D * lanes);
      replica_strip<Kernel, D, 4, WithEnergy>(kernel, softening, c, i, diagonal, cols.begin, cols.end,
                                              energies);
    }
  }
  for (; i < rows.end; ++i)
    replica_strip<Kernel, D, 1, WithEnergy>(kernel, softening, c, i, diagonal, cols.begin, cols.end,
                                            energies);
  if constexpr (WithEnergy) {
    for (int r = 0; r < lanes; ++r) {
      const auto of_replica = Kernel::Energy::gathered(energies, r);
      sums[r] = kernel.finish(of_replica.value());
    }
  }
}

template <class Kernel, bool WithEnergy>
void replica_tile_of(const RadialKernel& parameters, const Columns& columns, Range rows, Range cols,
                     double* sums, const Ahead& ahead) {
  const Kernel kernel(parameters);
  const Real softening = static_cast<Real>(parameters.softening_squared);
  const Columns c{columns.positions, columns.forces, lanes, columns.dimension, nullptr};
  switch (c.dimension) {
    case 1:
      return replica_tile<Kernel, 1, WithEnergy>(kernel, softening, c, rows, cols, sums, ahead);
    case 2:
      return replica_tile<Kernel, 2, WithEnergy>(kernel, softening, c, rows, cols, sums, ahead);
    case 3:
      return replica_tile<Kernel, 3, WithEnergy>(kernel, softening, c, rows, cols, sums, ahead);
  }
}

void any_replica_tile(const RadialKernel& kernel, const Columns& c, Range rows, Range cols, double* sums,
                      const Ahead& ahead) {
  with_kernel(kernel.kind, [&]<class Kernel>() {
    if (sums) {
      replica_tile_of<Kernel, true>(kernel, c, rows, cols, sums, ahead);
    } else {
      replica_tile_of<Kernel, false>(kernel, c, rows, cols, nullptr, ahead);
    }
    return 0.0;
  });
}

template <class Kernel, int D>
double row(const Kernel& kernel, Real softening, const Columns& c, std::size_t count, std::size_t skip,
           const double* point, double* force) {
  typename Kernel::Energy energy;
  const Rows<1, D> x(point);
  Vec sum[1][D] = {};
  for (std::size_t j = 0; j < count; j += lanes) {
    if (j + lanes <= count && (skip < j || skip >= j + lanes)) {
      group<Kernel, D, 1, true, false, true>(kernel, softening, c, x, sum, j, nullptr, energy);
    } else {
      own_lanes<Kernel, D, true>(kernel, softening, c, x, sum, skip, j, count, energy);
    }
  }
  for (int k = 0; k < D; ++k) force[k] = total(sum[0][k]);
  return kernel.finish(energy.value());
}
#endif

// Any dimension: M rows against V vectors of columns at once, in two passes over the coordinates, squared
// distances first. A sum for a row lies in memory between the columns, (coordinate, row, lane) in `scratch`.

template <class Kernel, int M, int V, bool WithEnergy, bool Masked, bool OneSided>
RIESZFLOW_INLINE void group_any(const Kernel& kernel, Real softening, const Columns& c, const Real* row,
                                std::size_t row_stride, Real* scratch, std::size_t j, const Int* present,
                                typename Kernel::Energy& energy) {
  static_assert(!Masked || V == 1);
  Vec squared[V][M], over_r[V][M];
  const Real* columns[V];
  Real* felt[V];
  for (int v = 0; v < V; ++v) {
    const std::size_t first = j + static_cast<std::size_t>(v * lanes);
    const std::size_t at = (first / padding * c.dimension) * padding + first % padding;
    columns[v] = c.positions + at;
    felt[v] = OneSided ? nullptr : c.forces + at;  // one-sided sums have none
    for (int m = 0; m < M; ++m) squared[v][m] = broadcast(softening);
  }
  const auto difference_of = [&](std::size_t k, int v, int m, Vec column) __attribute__((always_inline)) {
    if constexpr (single_precision) {
      const Real* const low = c.remainders + (columns[v] - c.positions);
      const Real* const row_low = c.remainders + (row - c.positions);
      return (row[k * row_stride + m] - column) + (row_low[k * row_stride + m] - load(low + k * padding));
    }
    return row[k * row_stride + m] - column;
  };
  for (std::size_t k = 0; k < c.dimension; ++k) {
    for (int v = 0; v < V; ++v) {
      const Vec column = load(columns[v] + k * padding);
      for (int m = 0; m < M; ++m) {
        const Vec difference = difference_of(k, v, m, column);
        squared[v][m] = difference * difference + squared[v][m];
      }
    }
  }
  for (int v = 0; v < V; ++v) {
    kernel.template evaluate<M, WithEnergy>(squared[v], over_r[v], energy, Masked ? present : nullptr);
    if constexpr (Masked) {
      for (int m = 0; m < M; ++m) over_r[v][m] = present[m] ? over_r[v][m] : Vec{};
    }
  }
  for (std::size_t k = 0; k < c.dimension; ++k) {
    Vec sum[M];
    for (int m = 0; m < M; ++m) sum[m] = load(scratch + (k * M + m) * lanes);
    for (int v = 0; v < V; ++v) {
      const Vec column = load(columns[v] + k * padding);
      Vec theirs = OneSided ? Vec{} : load(felt[v] + k * padding);
      for (int m = 0; m < M; ++m) {
        const Vec difference = difference_of(k, v, m, column);
        sum[m] += over_r[v][m] * difference;
        if constexpr (!OneSided) theirs -= over_r[v][m] * difference;
      }
      if constexpr (!OneSided) store(felt[v] + k * padding, theirs);
    }
    for (int m = 0; m < M; ++m) store(scratch + (k * M + m) * lanes, sum[m]);
  }
}

RIESZFLOW_INLINE std::size_t block_place(const Columns& c, std::size_t i) {
  return (i / padding * c.dimension) * padding + i % padding;
}

RIESZFLOW_INLINE void clear(Real* scratch, std::size_t count) {
  for (std::size_t n = 0; n < count; ++n) scratch[n] = 0;
}

template <class Kernel, int M, bool WithEnergy>
RIESZFLOW_INLINE void strip_any(const Kernel& kernel, Real softening, const Columns& c, std::size_t i,
                                bool diagonal, std::size_t begin, std::size_t end, Real* scratch,
                                typename Kernel::Energy& energy) {
  constexpr int V = 4;
  const Real* const row = c.positions + block_place(c, i);
  clear(scratch, c.dimension * M * lanes);
  if (diagonal) {
    Int present[M];
    begin = i / lanes * lanes;
    behind_rows<M>(i, begin, end, present);
    group_any<Kernel, M, 1, WithEnergy, true, false>(kernel, softening, c, row, padding, scratch, begin,
                                                     present, energy);
    begin += lanes;
  }
  if (end < begin) end = begin;
  const std::size_t full = begin + (end - begin) / lanes * lanes;
  std::size_t j = begin;
  for (; j + V * lanes <= full; j += V * lanes) {
    group_any<Kernel, M, V, WithEnergy, false, false>(kernel, softening, c, row, padding, scratch, j, nullptr,
                                                      energy);
  }
  for (; j < full; j += lanes) {
    group_any<Kernel, M, 1, WithEnergy, false, false>(kernel, softening, c, row, padding, scratch, j, nullptr,
                                                      energy);
  }
  if (full < end) {
    Int present[M];
    for (int m = 0; m < M; ++m) present[m] = lane_numbers() < static_cast<Whole>(end - full);
    group_any<Kernel, M, 1, WithEnergy, true, false>(kernel, softening, c, row, padding, scratch, full,
                                                     present, energy);
  }
  Real* const mine = c.forces + block_place(c, i);
  for (std::size_t k = 0; k < c.dimension; ++k) {
    for (int m = 0; m < M; ++m) mine[k * padding + m] += total(load(scratch + (k * M + m) * lanes));
  }
}

/// One row against the lanes [j, j + lanes) without `skip` and what lies past `end`; adds to scratch.
template <class Kernel, bool WithEnergy>
RIESZFLOW_INLINE void own_lanes_any(const Kernel& kernel, Real softening, const Columns& c, const Real* row,
                                    std::size_t row_stride, std::size_t skip, std::size_t j, std::size_t end,
                                    Real* scratch, typename Kernel::Energy& energy) {
  const Int lane = lane_numbers() + static_cast<Whole>(j);
  const Int present[1] = {(lane < static_cast<Whole>(end)) & (lane != static_cast<Whole>(skip))};
  group_any<Kernel, 1, 1, WithEnergy, true, true>(kernel, softening, c, row, row_stride, scratch, j, present,
                                                  energy);
}

template <class Kernel, bool WithEnergy>
double tile_any(const Kernel& kernel, Real softening, const Columns& c, Range rows, Range cols,
                Real* scratch) {
  TileEnergy<Kernel> energy(kernel);
  std::size_t i = rows.begin;
  const bool diagonal = rows.begin == cols.begin;
  if (lanes >= 4 || !diagonal) {
    for (; i + 4 <= rows.end; i += 4) {
      strip_any<Kernel, 4, WithEnergy>(kernel, softening, c, i, diagonal, cols.begin, cols.end, scratch,
                                       energy.strips);
      if constexpr (WithEnergy) energy.close_strip();
    }
  }
  for (; i < rows.end; ++i)
    strip_any<Kernel, 1, WithEnergy>(kernel, softening, c, i, diagonal, cols.begin, cols.end, scratch,
                                     energy.strips);
  return WithEnergy ? energy.value() : 0.0;
}

#if !defined(RIESZFLOW_SINGLE)
template <class Kernel>
double row_any(const Kernel& kernel, Real softening, const Columns& c, std::size_t count, std::size_t skip,
               const double* point, double* force, Real* scratch) {
  typename Kernel::Energy energy;
  clear(scratch, c.dimension * lanes);
  for (std::size_t j = 0; j < count; j += lanes) {
    if (j + lanes <= count && (skip < j || skip >= j + lanes)) {
      group_any<Kernel, 1, 1, true, false, true>(kernel, softening, c, point, 1, scratch, j, nullptr, energy);
    } else {
      own_lanes_any<Kernel, true>(kernel, softening, c, point, 1, skip, j, count, scratch, energy);
    }
  }
  for (std::size_t k = 0; k < c.dimension; ++k) force[k] = total(load(scratch + k * lanes));
  return kernel.finish(energy.value());
}
#endif

template <class Kernel, bool WithEnergy>
double tile_of(const RadialKernel& parameters, const Columns& c, Range rows, Range cols, Real* scratch) {
  const Kernel kernel(parameters);
  const Real softening = static_cast<Real>(parameters.softening_squared);
  switch (c.dimension) {
    case 1:
      return tile<Kernel, 1, WithEnergy>(kernel, softening, c, rows, cols);
    case 2:
      return tile<Kernel, 2, WithEnergy>(kernel, softening, c, rows, cols);
    case 3:
      return tile<Kernel, 3, WithEnergy>(kernel, softening, c, rows, cols);
  }
  return tile_any<Kernel, WithEnergy>(kernel, softening, c, rows, cols, scratch);
}

double any_tile(const RadialKernel& kernel, const Columns& c, Range rows, Range cols, bool with_energy,
                Real* scratch) {
  return with_kernel(kernel.kind, [&]<class Kernel>() {
    return with_energy ? tile_of<Kernel, true>(kernel, c, rows, cols, scratch)
                       : tile_of<Kernel, false>(kernel, c, rows, cols, scratch);
  });
}

#if !defined(RIESZFLOW_SINGLE)
template <class Kernel>
double row_of(const RadialKernel& parameters, const Columns& c, std::size_t count, std::size_t skip,
              const double* point, double* force, Real* scratch) {
  const Kernel kernel(parameters);
  const Real softening = static_cast<Real>(parameters.softening_squared);
  switch (c.dimension) {
    case 1:
      return row<Kernel, 1>(kernel, softening, c, count, skip, point, force);
    case 2:
      return row<Kernel, 2>(kernel, softening, c, count, skip, point, force);
    case 3:
      return row<Kernel, 3>(kernel, softening, c, count, skip, point, force);
  }
  return row_any<Kernel>(kernel, softening, c, count, skip, point, force, scratch);
}

template <class Kernel>
void pointwise_of(const RadialKernel& parameters, std::size_t count, const double* squared,
                  double* force_over_r, double* value) {
  const Kernel kernel(parameters);
  const double scale = kernel.finish(1.0);
  for (std::size_t j = 0; j < count; j += lanes) {
    Vec force, sum;
    kernel.template pair<false>(load(squared + j) + parameters.softening_squared, force, sum);
    if (force_over_r) store(force_over_r + j, force);
    if (value) store(value + j, scale * sum);
  }
}

double any_row(const RadialKernel& kernel, const Columns& c, std::size_t count, std::size_t skip,
               const double* point, double* force, Real* scratch) {
  return with_kernel(kernel.kind, [&]<class Kernel>() {
    return row_of<Kernel>(kernel, c, count, skip, point, force, scratch);
  });
}

void any_pointwise(const RadialKernel& kernel, std::size_t count, const double* squared, double* force_over_r,
                   double* value) {
  with_kernel(kernel.kind, [&]<class Kernel>() {
    pointwise_of<Kernel>(kernel, count, squared, force_over_r, value);
    return 0.0;
  });
}
#endif

#define RIESZFLOW_TEXT(x) #x
#define RIESZFLOW_STRING(x) RIESZFLOW_TEXT(x)

}  // namespace

namespace rieszflow::simd {
#if defined(RIESZFLOW_SINGLE)
#define RIESZFLOW_JOIN(a, b) a##b
#define RIESZFLOW_NAME(level) RIESZFLOW_JOIN(single_, level)
extern const SingleKernels RIESZFLOW_NAME(RIESZFLOW_SIMD_LEVEL);
const SingleKernels RIESZFLOW_NAME(RIESZFLOW_SIMD_LEVEL){any_tile};
#else
extern const DirectKernels RIESZFLOW_SIMD_LEVEL;
const DirectKernels RIESZFLOW_SIMD_LEVEL{
    any_tile,   any_row,       any_pointwise, any_replica_tile,
    interleave, add_separated, lanes,         RIESZFLOW_STRING(RIESZFLOW_SIMD_LEVEL)};
#endif
}  // namespace rieszflow::simd
