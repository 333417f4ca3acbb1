// Compiled once per processor level (RIESZFLOW_SIMD_LEVEL is a name), see summation/CMakeLists.txt.
// Method: j in lanes, four i at a time broadcast, both directions of a pair from one evaluation (Newton's
// third law).
#include "summation/simd/direct_kernels.hpp"

#include "summation/simd/vec.hpp"

namespace {

using rieszflow::simd::Columns;
using rieszflow::simd::padding;
using rieszflow::simd::RadialKernel;
using rieszflow::simd::RadialKind;
using rieszflow::simd::Range;

/// Distances below 1.5e-154, whose squares are not normal numbers, count as zero: a pair without direction.
constexpr double smallest_square = 2.2250738585072014e-308;

/// Sum of W over pairs, per lane.
struct PlainEnergy {
  Vec sum{};
  RIESZFLOW_INLINE double value() const { return total(sum); }
};

/// Sum of log R^2 without logarithms: the product of all R^2, its exponent split off after each group of
/// four. Exact zeros give -inf; four factors stay in range for R between 1e-38 and 1e38.
struct ProductEnergy {
  Vec mantissa = broadcast(1.0);
  Vec exponent{};
  RIESZFLOW_INLINE void multiply(Vec product) {
    Vec e;
    split(mantissa * product, mantissa, e);
    exponent += e;
  }
  RIESZFLOW_INLINE double value() const {
    double sum = total(exponent) * 0.693147180559945309417;
    for (int l = 0; l < lanes; ++l) sum += __builtin_log(mantissa[l]);
    return sum;
  }
};

// A kernel evaluates M pairs per lane: squared = R^2 in, force_over_r out. `present` masks the lanes whose
// energy counts. M is 1 or 4.

struct Logarithm {
  using Energy = ProductEnergy;
  static constexpr bool rows_in_memory = false;
  explicit Logarithm(const RadialKernel&) {}
  template <int M, bool WithEnergy>
  RIESZFLOW_INLINE void evaluate(const Vec (&squared)[M], Vec (&force)[M], Energy& energy,
                                 const Int* present) const {
    for (int m = 0; m < M; ++m) force[m] = reciprocal<false>(squared[m], squared[m] >= smallest_square);
    if constexpr (WithEnergy) {
      Vec factor[M];
      for (int m = 0; m < M; ++m)
        factor[m] = present ? (present[m] ? squared[m] : broadcast(1.0)) : squared[m];
      if constexpr (M == 4) {
        energy.multiply((factor[0] * factor[1]) * (factor[2] * factor[3]));
      } else {
        for (int m = 0; m < M; ++m) energy.multiply(factor[m]);
      }
    }
  }
  template <bool Fast>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    const Int distinct = squared >= smallest_square;
    force = reciprocal<Fast>(squared, distinct);
    value = distinct ? log2(squared) * 0.693147180559945309417 : broadcast(-__builtin_inf());
  }
  RIESZFLOW_INLINE static double finish(double log_of_squares) { return -0.5 * log_of_squares; }
};

/// The kernels whose energy is a plain sum: Derived::pair<Fast>(squared, force, value) for one vector of
/// pairs. Fast: the variant that leaves the divider to the others of its group of four.
template <class Derived>
struct Summed {
  using Energy = PlainEnergy;
  template <int M, bool WithEnergy>
  RIESZFLOW_INLINE void evaluate(const Vec (&squared)[M], Vec (&force)[M], Energy& energy,
                                 const Int* present) const {
    const Derived& kernel = *static_cast<const Derived*>(this);
    Vec value[M];
    if constexpr (M == 4) {
      // Two of four by the divider, two by estimates: each alone would be the bottleneck.
      kernel.template pair<false>(squared[0], force[0], value[0]);
      kernel.template pair<true>(squared[1], force[1], value[1]);
      kernel.template pair<false>(squared[2], force[2], value[2]);
      kernel.template pair<true>(squared[3], force[3], value[3]);
    } else {
      for (int m = 0; m < M; ++m) kernel.template pair<false>(squared[m], force[m], value[m]);
    }
    if constexpr (WithEnergy) {
      if (present) {
        for (int m = 0; m < M; ++m) value[m] = present[m] ? value[m] : Vec{};
      }
      if constexpr (M == 4) {
        energy.sum += (value[0] + value[1]) + (value[2] + value[3]);
      } else {
        for (int m = 0; m < M; ++m) energy.sum += value[m];
      }
    }
  }
  /// True when the kernel's own constants fill the registers: the rows are then read from memory each time.
  static constexpr bool rows_in_memory = false;
};

struct InverseFirst : Summed<InverseFirst> {
  explicit InverseFirst(const RadialKernel&) {}
  static constexpr bool always_fast =
      true;  // a root and a division take the divider longer than the whole group
  template <bool Fast>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    const Int distinct = squared >= smallest_square;
    const Vec inverse = reciprocal_root<Fast>(squared, distinct);
    force = inverse * (inverse * inverse);
    value = distinct ? inverse : broadcast(__builtin_inf());
  }
  RIESZFLOW_INLINE static double finish(double sum) { return sum; }
};

struct InverseSquare : Summed<InverseSquare> {
  explicit InverseSquare(const RadialKernel&) {}
  template <bool Fast>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    const Int distinct = squared >= smallest_square;
    const Vec inverse = reciprocal<Fast>(squared, distinct);
    force = inverse * inverse;
    value = distinct ? inverse : broadcast(__builtin_inf());
  }
  RIESZFLOW_INLINE static double finish(double sum) { return 0.5 * sum; }
};

struct Distance : Summed<Distance> {
  explicit Distance(const RadialKernel&) {}
  template <bool Fast>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    force = reciprocal_root<Fast>(squared, squared >= smallest_square);
    value = squared * force;
  }
  RIESZFLOW_INLINE static double finish(double sum) { return -sum; }
};

struct Power : Summed<Power> {
  static constexpr bool rows_in_memory = true;
  const rieszflow::simd::PowerTable& table;
  double half_power, at_zero, inverse_exponent;
  explicit Power(const RadialKernel& kernel)
      : table(*kernel.power),
        half_power(-0.5 * kernel.exponent - 1.0),
        at_zero(kernel.exponent > 0.0 ? __builtin_inf() : 0.0),
        inverse_exponent(1.0 / kernel.exponent) {}
  RIESZFLOW_INLINE Vec power(Vec v) const {
#if RIESZFLOW_AVX512
    const Int b = bits(v);
    const Vec m = from_bits((b & 0x000fffffffffffff) | 0x3ff0000000000000);
    const Vec t = m * pick16(table.root, b >> 48) - 1.0;
    Vec p = t * table.coefficients[8] + table.coefficients[7];
    for (int k = 6; k >= 0; --k) p = p * t + table.coefficients[k];
    const Vec scale = (pick16(table.scale, b >> 48) * pick8(table.low, b >> 52)) *
                      (pick16(table.middle, b >> 55) * pick16(table.high, b >> 59));
    return p * scale;
#else
    return exp2(half_power * log2(v));
#endif
  }
  template <bool>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    const Int distinct = squared >= smallest_square;
    force = distinct ? power(squared) : Vec{};
    value = distinct ? force * squared : broadcast(at_zero);
  }
  RIESZFLOW_INLINE double finish(double sum) const { return sum * inverse_exponent; }
};

struct Gaussian : Summed<Gaussian> {
  double rate;
  explicit Gaussian(const RadialKernel& kernel)
      : rate(-0.5 * 1.442695040888963407360 / (kernel.length * kernel.length)) {}
  template <bool>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    value = force = exp2(rate * squared);
  }
  RIESZFLOW_INLINE static double finish(double sum) { return sum; }
};

struct Morse : Summed<Morse> {
  double repulsion, repulsion_rate, repulsion_force, attraction, attraction_rate, attraction_force;
  explicit Morse(const RadialKernel& kernel)
      : repulsion(kernel.repulsion),
        repulsion_rate(-1.442695040888963407360 / kernel.repulsion_length),
        repulsion_force(kernel.repulsion / kernel.repulsion_length),
        attraction(kernel.attraction),
        attraction_rate(-1.442695040888963407360 / kernel.attraction_length),
        attraction_force(kernel.attraction / kernel.attraction_length) {}
  template <bool Fast>
  RIESZFLOW_INLINE void pair(Vec squared, Vec& force, Vec& value) const {
    const Vec inverse = reciprocal_root<Fast>(squared, squared >= smallest_square);
    const Vec r = squared * inverse;
    const Vec repelled = exp2(repulsion_rate * r), attracted = exp2(attraction_rate * r);
    value = repulsion * repelled - attraction * attracted;
    force = (repulsion_force * repelled - attraction_force * attracted) * inverse;
  }
  RIESZFLOW_INLINE static double finish(double sum) { return sum; }
};

/// M rows i, i+1, ... against the lanes [j, j + lanes). Masked: only lanes set in `present` are pairs.
/// OneSided: the columns feel nothing.
template <class Kernel, int D, int M, bool WithEnergy, bool Masked, bool OneSided>
RIESZFLOW_INLINE void group(const Kernel& kernel, double softening, const Columns& c, const Vec (&x)[M][D],
                            Vec (&force)[M][D], std::size_t j, const Int* present,
                            typename Kernel::Energy& energy) {
  Vec column[D], difference[M][D], squared[M], over_r[M];
  for (int k = 0; k < D; ++k) column[k] = load(c.positions + k * c.stride + j);
  for (int m = 0; m < M; ++m) {
    for (int k = 0; k < D; ++k) difference[m][k] = x[m][k] - column[k];
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

/// M rows against the columns [begin, end), begin a multiple of `lanes`.
template <class Kernel, int D, int M, bool WithEnergy>
RIESZFLOW_INLINE void strip(const Kernel& kernel, double softening, const Columns& c, std::size_t i,
                            std::size_t begin, std::size_t end, typename Kernel::Energy& energy) {
  if (begin >= end) return;
  Vec x[M][D], force[M][D];
  for (int m = 0; m < M; ++m) {
    for (int k = 0; k < D; ++k) {
      x[m][k] = broadcast(c.positions[k * c.stride + i + m]);
      force[m][k] = Vec{};
    }
  }
  const std::size_t full = begin + (end - begin) / lanes * lanes;
  for (std::size_t j = begin; j < full; j += lanes) {
    if constexpr (Kernel::rows_in_memory) asm volatile("" : "+m"(x));
    group<Kernel, D, M, WithEnergy, false, false>(kernel, softening, c, x, force, j, nullptr, energy);
  }
  if (full < end) {
    Int present[M];
    for (int m = 0; m < M; ++m) present[m] = lane_numbers() < static_cast<std::int64_t>(end - full);
    group<Kernel, D, M, WithEnergy, true, false>(kernel, softening, c, x, force, full, present, energy);
  }
  for (int m = 0; m < M; ++m) {
    for (int k = 0; k < D; ++k) c.forces[k * c.stride + i + m] += total(force[m][k]);
  }
}

/// One row against the lanes [j, j + lanes) that it belongs to, or to which the lane `skip` belongs.
template <class Kernel, int D, bool WithEnergy>
RIESZFLOW_INLINE void own_lanes(const Kernel& kernel, double softening, const Columns& c,
                                const Vec (&x)[1][D], Vec (&force)[1][D], std::size_t skip, std::size_t j,
                                std::size_t end, typename Kernel::Energy& energy) {
  const Int lane = lane_numbers() + static_cast<std::int64_t>(j);
  const Int present[1] = {(lane < static_cast<std::int64_t>(end)) &
                          (lane != static_cast<std::int64_t>(skip))};
  group<Kernel, D, 1, WithEnergy, true, true>(kernel, softening, c, x, force, j, present, energy);
}

template <class Kernel, int D, bool WithEnergy>
double tile(const Kernel& kernel, double softening, const Columns& c, Range rows, Range cols) {
  typename Kernel::Energy once, twice;
  std::size_t i = rows.begin;
  const auto later_columns = [&](std::size_t row) {
    return rows.begin == cols.begin ? row / lanes * lanes + lanes : cols.begin;
  };
  for (; i + 4 <= rows.end; i += 4) {
    if constexpr (lanes >= 4) {
      strip<Kernel, D, 4, WithEnergy>(kernel, softening, c, i, later_columns(i), cols.end, once);
    } else {
      if (rows.begin == cols.begin) {
        for (int m = 0; m < 4; ++m) {
          strip<Kernel, D, 1, WithEnergy>(kernel, softening, c, i + m, later_columns(i + m), cols.end, once);
        }
      } else {
        strip<Kernel, D, 4, WithEnergy>(kernel, softening, c, i, cols.begin, cols.end, once);
      }
    }
  }
  for (; i < rows.end; ++i)
    strip<Kernel, D, 1, WithEnergy>(kernel, softening, c, i, later_columns(i), cols.end, once);
  if (rows.begin == cols.begin) {
    for (i = rows.begin; i < rows.end; ++i) {
      Vec x[1][D], force[1][D];
      for (int k = 0; k < D; ++k) x[0][k] = broadcast(c.positions[k * c.stride + i]), force[0][k] = Vec{};
      own_lanes<Kernel, D, WithEnergy>(kernel, softening, c, x, force, i, i / lanes * lanes, rows.end, twice);
      for (int k = 0; k < D; ++k) c.forces[k * c.stride + i] += total(force[0][k]);
    }
  }
  if constexpr (!WithEnergy) return 0.0;
  return kernel.finish(once.value()) + 0.5 * kernel.finish(twice.value());
}

template <class Kernel, int D>
double row(const Kernel& kernel, double softening, const Columns& c, std::size_t count, std::size_t skip,
           const double* point, double* force) {
  typename Kernel::Energy energy;
  Vec x[1][D], sum[1][D];
  for (int k = 0; k < D; ++k) x[0][k] = broadcast(point[k]), sum[0][k] = Vec{};
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

// Any dimension: M rows against V vectors of columns at once, in two passes over the coordinates, squared
// distances first. A sum for a row lies in memory between the columns, (coordinate, row, lane) in `scratch`.

template <class Kernel, int M, int V, bool WithEnergy, bool Masked, bool OneSided>
RIESZFLOW_INLINE void group_any(const Kernel& kernel, double softening, const Columns& c, const double* row,
                                std::size_t row_stride, double* scratch, std::size_t j, const Int* present,
                                typename Kernel::Energy& energy) {
  static_assert(!Masked || V == 1);
  Vec squared[V][M], over_r[V][M];
  const double* columns[V];
  double* felt[V];
  for (int v = 0; v < V; ++v) {
    const std::size_t first = j + static_cast<std::size_t>(v * lanes);
    const std::size_t at = (first / padding * c.dimension) * padding + first % padding;
    columns[v] = c.positions + at;
    felt[v] = c.forces + at;
    for (int m = 0; m < M; ++m) squared[v][m] = broadcast(softening);
  }
  for (std::size_t k = 0; k < c.dimension; ++k) {
    for (int v = 0; v < V; ++v) {
      const Vec column = load(columns[v] + k * padding);
      for (int m = 0; m < M; ++m) {
        const Vec difference = row[k * row_stride + m] - column;
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
        const Vec difference = row[k * row_stride + m] - column;
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

RIESZFLOW_INLINE void clear(double* scratch, std::size_t count) {
  for (std::size_t n = 0; n < count; ++n) scratch[n] = 0.0;
}

template <class Kernel, int M, bool WithEnergy>
RIESZFLOW_INLINE void strip_any(const Kernel& kernel, double softening, const Columns& c, std::size_t i,
                                std::size_t begin, std::size_t end, double* scratch,
                                typename Kernel::Energy& energy) {
  if (begin >= end) return;
  constexpr int V = 4;
  const double* const row = c.positions + block_place(c, i);
  clear(scratch, c.dimension * M * lanes);
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
    for (int m = 0; m < M; ++m) present[m] = lane_numbers() < static_cast<std::int64_t>(end - full);
    group_any<Kernel, M, 1, WithEnergy, true, false>(kernel, softening, c, row, padding, scratch, full,
                                                     present, energy);
  }
  double* const mine = c.forces + block_place(c, i);
  for (std::size_t k = 0; k < c.dimension; ++k) {
    for (int m = 0; m < M; ++m) mine[k * padding + m] += total(load(scratch + (k * M + m) * lanes));
  }
}

/// One row against the lanes [j, j + lanes) without `skip` and what lies past `end`; adds to scratch.
template <class Kernel, bool WithEnergy>
RIESZFLOW_INLINE void own_lanes_any(const Kernel& kernel, double softening, const Columns& c,
                                    const double* row, std::size_t row_stride, std::size_t skip,
                                    std::size_t j, std::size_t end, double* scratch,
                                    typename Kernel::Energy& energy) {
  const Int lane = lane_numbers() + static_cast<std::int64_t>(j);
  const Int present[1] = {(lane < static_cast<std::int64_t>(end)) &
                          (lane != static_cast<std::int64_t>(skip))};
  group_any<Kernel, 1, 1, WithEnergy, true, true>(kernel, softening, c, row, row_stride, scratch, j, present,
                                                  energy);
}

template <class Kernel, bool WithEnergy>
double tile_any(const Kernel& kernel, double softening, const Columns& c, Range rows, Range cols,
                double* scratch) {
  typename Kernel::Energy once, twice;
  std::size_t i = rows.begin;
  const bool diagonal = rows.begin == cols.begin;
  const auto later_columns = [&](std::size_t row) {
    return diagonal ? row / lanes * lanes + lanes : cols.begin;
  };
  if (lanes >= 4 || !diagonal) {
    for (; i + 4 <= rows.end; i += 4) {
      strip_any<Kernel, 4, WithEnergy>(kernel, softening, c, i, later_columns(i), cols.end, scratch, once);
    }
  }
  for (; i < rows.end; ++i) {
    strip_any<Kernel, 1, WithEnergy>(kernel, softening, c, i, later_columns(i), cols.end, scratch, once);
  }
  if (diagonal) {
    for (i = rows.begin; i < rows.end; ++i) {
      clear(scratch, c.dimension * lanes);
      const std::size_t place = block_place(c, i);
      own_lanes_any<Kernel, WithEnergy>(kernel, softening, c, c.positions + place, padding, i,
                                        i / lanes * lanes, rows.end, scratch, twice);
      for (std::size_t k = 0; k < c.dimension; ++k) {
        c.forces[place + k * padding] += total(load(scratch + k * lanes));
      }
    }
  }
  if constexpr (!WithEnergy) return 0.0;
  return kernel.finish(once.value()) + 0.5 * kernel.finish(twice.value());
}

template <class Kernel>
double row_any(const Kernel& kernel, double softening, const Columns& c, std::size_t count, std::size_t skip,
               const double* point, double* force, double* scratch) {
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

template <class Kernel, bool WithEnergy>
double tile_of(const RadialKernel& parameters, const Columns& c, Range rows, Range cols, double* scratch) {
  const Kernel kernel(parameters);
  const double softening = parameters.softening_squared;
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

template <class Kernel>
double row_of(const RadialKernel& parameters, const Columns& c, std::size_t count, std::size_t skip,
              const double* point, double* force, double* scratch) {
  const Kernel kernel(parameters);
  const double softening = parameters.softening_squared;
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

/// Calls `visit` with the kernel's type.
template <class Visit>
RIESZFLOW_INLINE double with_kernel(RadialKind kind, const Visit& visit) {
  switch (kind) {
    case RadialKind::Logarithm:
      return visit.template operator()<Logarithm>();
    case RadialKind::InverseFirst:
      return visit.template operator()<InverseFirst>();
    case RadialKind::InverseSquare:
      return visit.template operator()<InverseSquare>();
    case RadialKind::Distance:
      return visit.template operator()<Distance>();
    case RadialKind::Power:
      return visit.template operator()<Power>();
    case RadialKind::Gaussian:
      return visit.template operator()<Gaussian>();
    case RadialKind::Morse:
      return visit.template operator()<Morse>();
  }
  return 0.0;
}

double any_tile(const RadialKernel& kernel, const Columns& c, Range rows, Range cols, bool with_energy,
                double* scratch) {
  return with_kernel(kernel.kind, [&]<class Kernel>() {
    return with_energy ? tile_of<Kernel, true>(kernel, c, rows, cols, scratch)
                       : tile_of<Kernel, false>(kernel, c, rows, cols, scratch);
  });
}

double any_row(const RadialKernel& kernel, const Columns& c, std::size_t count, std::size_t skip,
               const double* point, double* force, double* scratch) {
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

#define RIESZFLOW_TEXT(x) #x
#define RIESZFLOW_STRING(x) RIESZFLOW_TEXT(x)

}  // namespace

namespace rieszflow::simd {
extern const DirectKernels RIESZFLOW_SIMD_LEVEL;
const DirectKernels RIESZFLOW_SIMD_LEVEL{any_tile, any_row, any_pointwise,
                                         RIESZFLOW_STRING(RIESZFLOW_SIMD_LEVEL)};
}  // namespace rieszflow::simd
