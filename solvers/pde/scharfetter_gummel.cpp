#include "solvers/pde/scharfetter_gummel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"
#include "model/elementary.hpp"
#include "solvers/pde/apertures.hpp"

namespace rieszflow::pde {
namespace {

constexpr std::size_t lanes = 16;  ///< grid lines solved together

/// Transition rates across one face: up = B(z)/beta from i to i+1, down = B(-z)/beta back, both times
/// `scale`.
struct Rates {
  double up, down;
};

[[gnu::always_inline]] inline Rates rates(double difference, double inverse_temperature, double scale) {
  const double z = inverse_temperature * std::abs(difference);
  // z / (e^z - 1); at z = 0 the quotient 0/0 is replaced by its limit.
  const double safe = z > 1e-300 ? z : 1e-300;
  const double against = scale * (safe / elementary::exponential_minus_one(safe));
  const double along = against + scale * z;
  return difference > 0.0 ? Rates{against, along} : Rates{along, against};
}

/// The same at beta = infinity, where scale has no 1/beta: upwind.
[[gnu::always_inline]] inline Rates upwind_rates(double difference, double scale) {
  const double speed = scale * std::abs(difference);
  return difference > 0.0 ? Rates{0.0, speed} : Rates{speed, 0.0};
}

/// One block of `lanes` grid lines; arrays (cell, lane).
struct Lines {
  std::size_t count;  ///< cells along a line
  bool periodic;
  const double* potential;
  double inverse_temperature;  ///< unused at zero temperature
  double scale;                ///< timestep / (beta h^2); at zero temperature timestep / h^2
  const double* fractions;     ///< volume fractions f_i (cut lines only)
  const double* apertures;     ///< open parts of the faces above (cut lines only)
  double* rho;                 ///< in: rho; out: rho'
  double* work;                ///< two arrays
};

/// What the states between two ends of each line leave behind when they are eliminated: mass and weight of
/// staying for either end, and the rates that now link the ends directly.
struct Ends {
  double to_left[lanes], from_left[lanes];  ///< in: between the first state and the left end; out: links
  double left_mass[lanes], left_stay[lanes];
  double right_mass[lanes], right_stay[lanes];
};

/// Eliminates the states 0 .. count - 2 of each line; the last state is the right end.
template <bool zero_temperature>
[[gnu::always_inline]] inline void eliminate_between(const Lines& lines, Ends& ends) {
  const std::size_t count = lines.count;
  double* back = lines.work;  // rho'_i = rho_i + back_i rho'_{i+1} + wrap_i rho'_left
  double* wrap = lines.work + count * lanes;
  double stay[lanes];
  for (std::size_t l = 0; l < lanes; ++l) {
    stay[l] = 1.0;
    ends.left_mass[l] = ends.left_stay[l] = ends.right_mass[l] = ends.right_stay[l] = 0.0;
  }
  for (std::size_t i = 0; i + 1 < count; ++i) {
    double* here = lines.rho + i * lanes;
    const double* level = lines.potential + i * lanes;
    double* b = back + i * lanes;
    double* w = wrap + i * lanes;
    for (std::size_t l = 0; l < lanes; ++l) {
      const double difference = level[lanes + l] - level[l];
      const Rates r = zero_temperature ? upwind_rates(difference, lines.scale)
                                       : rates(difference, lines.inverse_temperature, lines.scale);
      const double inverse = 1.0 / (stay[l] + r.up + ends.to_left[l]);
      const double mass = (here[l] + ends.right_mass[l]) * inverse;
      here[l] = mass;
      b[l] = r.down * inverse;
      w[l] = ends.from_left[l] * inverse;
      ends.left_mass[l] += ends.to_left[l] * mass;
      ends.left_stay[l] += w[l] * stay[l];
      ends.right_mass[l] = r.up * mass;
      ends.right_stay[l] = b[l] * stay[l];
      stay[l] = 1.0 + ends.right_stay[l];
      ends.to_left[l] = b[l] * ends.to_left[l];
      ends.from_left[l] = w[l] * r.up;
    }
  }
}

/// The eliminated states, from the left ends and the last states.
[[gnu::always_inline]] inline void substitute_between(const Lines& lines, const double* left) {
  for (std::size_t i = lines.count - 1; i-- > 0;) {
    double* here = lines.rho + i * lanes;
    const double* b = lines.work + i * lanes;
    const double* w = lines.work + (lines.count + i) * lanes;
    for (std::size_t l = 0; l < lanes; ++l) here[l] += b[l] * here[lanes + l] + w[l] * left[l];
  }
}

/// Solves rho'_i (f_i + up_i + down_{i-1}) - up_{i-1} rho'_{i-1} - down_i rho'_{i+1} = f_i rho_i, f_i = 1 in
/// whole cells.
///
/// Elimination without subtractions: state i keeps the weight a_i of staying, passes its mass to i+1 in the
/// ratio of its rates. On a torus the last state is connected to all that remain and is solved last.
template <bool zero_temperature, bool cut>
[[gnu::always_inline]] inline void solve_lines(const Lines& lines) {
  const std::size_t count = lines.count;
  const auto face = [&](double difference, double scale) {
    if constexpr (zero_temperature) {
      return upwind_rates(difference, scale);
    } else {
      return rates(difference, lines.inverse_temperature, scale);
    }
  };
  if (count == 1) return;
  double* back = lines.work;  // rho'_i = rho_i + back_i rho'_{i+1} (+ wrap_i rho'_last)
  double* last = lines.rho + (count - 1) * lanes;
  if (!lines.periodic) {
    double stay[lanes];
    for (std::size_t l = 0; l < lanes; ++l) stay[l] = 1.0;
    if constexpr (cut) {
      // A cell without volume has no open face; the weight 1 keeps it out of 0/0.
      for (std::size_t l = 0; l < lanes; ++l) stay[l] = lines.fractions[l] > 0.0 ? lines.fractions[l] : 1.0;
      for (std::size_t i = 0; i < count * lanes; ++i) lines.rho[i] *= lines.fractions[i];
    }
    for (std::size_t i = 0; i + 1 < count; ++i) {
      double* here = lines.rho + i * lanes;
      const double* level = lines.potential + i * lanes;
      double* b = back + i * lanes;
      for (std::size_t l = 0; l < lanes; ++l) {
        const double scale = cut ? lines.scale * lines.apertures[i * lanes + l] : lines.scale;
        const Rates r = face(level[lanes + l] - level[l], scale);
        const double inverse = 1.0 / (stay[l] + r.up);
        const double mass = here[l] * inverse;
        here[lanes + l] += r.up * mass;
        here[l] = mass;
        b[l] = r.down * inverse;
        double weight = 1.0;
        if constexpr (cut) {
          const double fraction = lines.fractions[(i + 1) * lanes + l];
          weight = fraction > 0.0 ? fraction : 1.0;
        }
        stay[l] = weight + b[l] * stay[l];
      }
    }
    for (std::size_t l = 0; l < lanes; ++l) last[l] /= stay[l];
    for (std::size_t i = count - 1; i-- > 0;) {
      double* here = lines.rho + i * lanes;
      const double* b = back + i * lanes;
      for (std::size_t l = 0; l < lanes; ++l) here[l] += b[l] * here[lanes + l];
    }
    return;
  }
  // On a torus the last state is both ends of the rest of its line.
  Ends ends;
  for (std::size_t l = 0; l < lanes; ++l) {
    const Rates r = face(lines.potential[l] - lines.potential[(count - 1) * lanes + l], lines.scale);
    ends.to_left[l] = r.down;
    ends.from_left[l] = r.up;
  }
  eliminate_between<zero_temperature>(lines, ends);
  double closed[lanes];
  for (std::size_t l = 0; l < lanes; ++l) {
    last[l] =
        (last[l] + ends.left_mass[l] + ends.right_mass[l]) / (1.0 + ends.left_stay[l] + ends.right_stay[l]);
    closed[l] = last[l];
  }
  substitute_between(lines, closed);
}

/// Solves a chain of states: masses and weights of staying, links up_i (i to i+1) and down_i (back);
/// `closed`: the last link joins the last state to the first. mass: in m, out rho'. The arrays are used up.
void solve_chain(std::size_t count, double* mass, double* stay, double* up, double* down, bool closed) {
  double wrap[2 * lanes];
  double to_last = closed ? down[count - 1] : 0.0, from_last = closed ? up[count - 1] : 0.0;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (i + 2 == count) {  // both neighbours are the last state
      up[i] += to_last;
      down[i] += from_last;
      to_last = from_last = 0.0;
    }
    const double inverse = 1.0 / (stay[i] + up[i] + to_last);
    mass[i] *= inverse;
    wrap[i] = from_last * inverse;
    const double back = down[i] * inverse;
    mass[count - 1] += to_last * mass[i];
    stay[count - 1] += wrap[i] * stay[i];
    mass[i + 1] += up[i] * mass[i];
    stay[i + 1] += back * stay[i];
    to_last *= back;
    from_last = wrap[i] * up[i];
    down[i] = back;
  }
  mass[count - 1] /= stay[count - 1];
  for (std::size_t i = count - 1; i-- > 0;) mass[i] += down[i] * mass[i + 1] + wrap[i] * mass[count - 1];
}

/// One long line cut into `lanes` pieces that are eliminated together; the last states of the pieces and the
/// few cells beyond them form a chain. potential, rho: (cell); work: four arrays of as many cells.
template <bool zero_temperature>
[[gnu::always_inline]] inline void solve_long_line(std::size_t cells, bool periodic, const double* potential,
                                                   double inverse_temperature, double scale, double* rho,
                                                   double* work) {
  const auto face = [&](std::size_t i, std::size_t j) {
    const double difference = potential[j] - potential[i];
    return zero_temperature ? upwind_rates(difference, scale) : rates(difference, inverse_temperature, scale);
  };
  const std::size_t piece = cells / lanes, size = piece * lanes, count = lanes + cells - size;
  double* level = work;
  double* mass = work + size;
  for (std::size_t l = 0; l < lanes; ++l) {
    for (std::size_t i = 0; i < piece; ++i) {
      level[i * lanes + l] = potential[l * piece + i];
      mass[i * lanes + l] = rho[l * piece + i];
    }
  }
  const Lines lines{piece,   periodic, level, inverse_temperature, scale,
                    nullptr, nullptr,  mass,  work + 2 * size};
  Ends ends;
  for (std::size_t l = 0; l < lanes; ++l) {
    const bool has_left = l > 0 || periodic;
    const Rates r = has_left ? face(l > 0 ? l * piece - 1 : cells - 1, l * piece) : Rates{0.0, 0.0};
    ends.to_left[l] = r.down;
    ends.from_left[l] = r.up;
  }
  eliminate_between<zero_temperature>(lines, ends);
  double chain_mass[2 * lanes], chain_stay[2 * lanes], up[2 * lanes], down[2 * lanes];
  for (std::size_t c = 0; c < count; ++c) {
    const std::size_t cell = c < lanes ? (c + 1) * piece - 1 : size + c - lanes;
    chain_mass[c] = rho[cell] + (c < lanes ? ends.right_mass[c] : 0.0);
    chain_stay[c] = 1.0 + (c < lanes ? ends.right_stay[c] : 0.0);
    if (c + 1 < lanes) {  // the piece to the right of this state has become a link
      chain_mass[c] += ends.left_mass[c + 1];
      chain_stay[c] += ends.left_stay[c + 1];
      up[c] = ends.from_left[c + 1];
      down[c] = ends.to_left[c + 1];
    } else if (c + 1 < count) {  // beyond the pieces links are faces
      const Rates r = face(cell, cell + 1);
      up[c] = r.up;
      down[c] = r.down;
    } else {  // on a torus the first piece joins the last state to its own end; else its rates are zero
      chain_mass[c] += ends.left_mass[0];
      chain_stay[c] += ends.left_stay[0];
      up[c] = ends.from_left[0];
      down[c] = ends.to_left[0];
    }
  }
  solve_chain(count, chain_mass, chain_stay, up, down, periodic);
  double left[lanes];
  for (std::size_t l = 0; l < lanes; ++l) {
    left[l] = l > 0 ? chain_mass[l - 1] : chain_mass[count - 1];
    mass[(piece - 1) * lanes + l] = chain_mass[l];
  }
  substitute_between(lines, left);
  for (std::size_t l = 0; l < lanes; ++l) {
    for (std::size_t i = 0; i < piece; ++i) rho[l * piece + i] = mass[i * lanes + l];
  }
  for (std::size_t c = lanes; c < count; ++c) rho[size + c - lanes] = chain_mass[c];
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void solve_warm_long_line(std::size_t cells, bool periodic, const double* potential, double inverse_temperature,
                          double scale, double* rho, double* work) {
  solve_long_line<false>(cells, periodic, potential, inverse_temperature, scale, rho, work);
}

void solve_cold_long_line(std::size_t cells, bool periodic, const double* potential, double scale,
                          double* rho, double* work) {
  solve_long_line<true>(cells, periodic, potential, 0.0, scale, rho, work);
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void solve_warm_lines(const Lines& lines) {
  solve_lines<false, false>(lines);
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void solve_warm_cut_lines(const Lines& lines) {
  solve_lines<false, true>(lines);
}

void solve_cold_lines(const Lines& lines) {
  if (lines.fractions != nullptr) {
    solve_lines<true, true>(lines);
  } else {
    solve_lines<true, false>(lines);
  }
}

constexpr std::size_t flow_block = 64;  ///< faces whose flows are formed together

/// Flows across faces between the cells k and k + stride.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void flows(const double* potential, const double* rho, std::size_t stride, double inverse_temperature,
           double scale, double* __restrict out, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    const Rates r = rates(potential[k + stride] - potential[k], inverse_temperature, scale);
    out[k] = r.up * rho[k] - r.down * rho[k + stride];
  }
}

void add_flows(const double* __restrict flow, double* out, std::size_t stride, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) out[k] -= flow[k];
  for (std::size_t k = 0; k < count; ++k) out[k + stride] += flow[k];
}

/// Faces between the cells below and above, `count` of them.
struct Faces {
  const double *low, *high;     ///< potential
  const double *below, *above;  ///< rho
  const double* apertures;      ///< or null
  std::size_t count;
};

/// sum of J (mu_below - mu_above) area / h: what the faces take from F.
template <bool zero_temperature>
[[gnu::always_inline]] inline double losses(const Faces& faces, double inverse_temperature, double scale) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), smallest = 0x1p-1022;
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t k = 0; k < faces.count; ++k) {
    const double difference = faces.high[k] - faces.low[k], b = faces.below[k], a = faces.above[k];
    const Rates r =
        zero_temperature ? upwind_rates(difference, scale) : rates(difference, inverse_temperature, scale);
    const double flow = r.up * b - r.down * a;
    double drop = -difference;
    if constexpr (!zero_temperature) {
      const double log_b = b < smallest ? -infinity : elementary::logarithm(b < smallest ? 1.0 : b);
      const double log_a = a < smallest ? -infinity : elementary::logarithm(a < smallest ? 1.0 : a);
      drop += (log_b - log_a) / inverse_temperature;
    }
    const double open = faces.apertures == nullptr ? 1.0 : faces.apertures[k];
    sum += flow == 0.0 || open == 0.0 ? 0.0 : open * flow * drop;
  }
  return sum;
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
double
warm_losses(const Faces& faces, double inverse_temperature, double scale) {
  return losses<false>(faces, inverse_temperature, scale);
}

double cold_losses(const Faces& faces, double scale) { return losses<true>(faces, 0.0, scale); }

Rates face_rates(double difference, double inverse_temperature, double scale) {
  return std::isinf(inverse_temperature)
             ? upwind_rates(difference, scale)
             : rates(difference, inverse_temperature, scale / inverse_temperature);
}

/// Calls visit(i, j) for each pair of neighbours along an axis, j above i.
template <class Visit>
void for_each_face(std::size_t count, std::size_t inner, std::size_t outer, bool periodic,
                   const Visit& visit) {
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t i = 0; i + 1 < count; ++i) {
      const std::size_t first = (o * count + i) * inner;
      for (std::size_t k = 0; k < inner; ++k) visit(first + k, first + inner + k);
    }
    if (periodic && count > 1) {
      const std::size_t first = (o * count + count - 1) * inner, wrapped = o * count * inner;
      for (std::size_t k = 0; k < inner; ++k) visit(first + k, wrapped + k);
    }
  }
}

}  // namespace

ScharfetterGummel::ScharfetterGummel(const Grid& grid, double inverse_temperature, int threads)
    : periodic_(grid.periodic),
      inverse_temperature_(inverse_temperature),
      cell_volume_(grid.cell_volume()),
      fractions_(grid.volume_fractions),
      threads_(grid.cell_count() >= (std::size_t{1} << 18) ? std::max(1, threads) : 1) {
  std::size_t inner = 1, longest = 1;
  for (std::size_t axis = grid.dimension(); axis-- > 0;) {
    const std::size_t count = grid.cells[axis];
    axes_.insert(axes_.begin(),
                 Axis{count, inner, grid.cell_count() / (inner * count), grid.spacing(axis), {}});
    if (!grid.volume_fractions.empty()) axes_.front().apertures = face_apertures(grid, axis);
    inner *= count;
    longest = std::max(longest, count);
  }
  is_long_line_ = axes_.size() == 1 && longest >= 4 * lanes;
  const std::size_t block_lanes = is_long_line_ ? 1 : lanes;
  for (int t = 0; t < threads_; ++t) work_.emplace_back((fractions_.empty() ? 4 : 6) * longest * block_lanes);
}

void ScharfetterGummel::sweep(const Axis& axis, const double* potential, double timestep, const double* from,
                              double* to) {
  const bool cold = std::isinf(inverse_temperature_);
  const double scale = timestep / (axis.spacing * axis.spacing * (cold ? 1.0 : inverse_temperature_));
  if (is_long_line_) {
    if (from != to) std::copy_n(from, axis.count, to);
    if (cold) {
      solve_cold_long_line(axis.count, periodic_, potential, scale, to, work_[0].data());
    } else {
      solve_warm_long_line(axis.count, periodic_, potential, inverse_temperature_, scale, to,
                           work_[0].data());
    }
    return;
  }
  const std::size_t line_count = axis.inner * axis.outer, blocks = (line_count + lanes - 1) / lanes;
#pragma omp parallel for num_threads(threads_) schedule(static) if (threads_ > 1)
  for (std::size_t block = 0; block < blocks; ++block) {
    int thread = 0;
#ifdef _OPENMP
    thread = threads_ > 1 ? omp_get_thread_num() : 0;
#endif
    const std::size_t size = axis.count * lanes;
    double* level = work_[thread].data();
    double* rho = level + size;
    const std::size_t width = std::min(lanes, line_count - block * lanes);
    std::size_t start[lanes];
    for (std::size_t l = 0; l < width; ++l) {
      const std::size_t line = block * lanes + l;
      start[l] = line / axis.inner * axis.count * axis.inner + line % axis.inner;
    }
    if (width < lanes) std::fill(level, level + 2 * size, 0.0);
    for (std::size_t i = 0; i < axis.count; ++i) {
      for (std::size_t l = 0; l < width; ++l) {
        level[i * lanes + l] = potential[start[l] + i * axis.inner];
        rho[i * lanes + l] = from[start[l] + i * axis.inner];
      }
    }
    Lines lines{axis.count, periodic_, level, inverse_temperature_, scale, nullptr, nullptr, rho, rho + size};
    if (!fractions_.empty()) {
      double* fractions = level + 4 * size;
      std::fill(fractions, fractions + 2 * size, 0.0);
      for (std::size_t i = 0; i < axis.count; ++i) {
        for (std::size_t l = 0; l < width; ++l) {
          fractions[i * lanes + l] = fractions_[start[l] + i * axis.inner];
          fractions[size + i * lanes + l] = axis.apertures[start[l] + i * axis.inner];
        }
      }
      lines.fractions = fractions;
      lines.apertures = fractions + size;
    }
    if (cold) {
      solve_cold_lines(lines);
    } else if (lines.fractions != nullptr) {
      solve_warm_cut_lines(lines);
    } else {
      solve_warm_lines(lines);
    }
    for (std::size_t i = 0; i < axis.count; ++i) {
      for (std::size_t l = 0; l < width; ++l) to[start[l] + i * axis.inner] = rho[i * lanes + l];
    }
  }
}

void ScharfetterGummel::implicit_step(std::span<const double> potential, double timestep,
                                      std::span<const double> from, std::span<double> to) {
  const double* source = from.data();
  for (const Axis& axis : axes_) {
    sweep(axis, potential.data(), timestep, source, to.data());
    source = to.data();
  }
}

void ScharfetterGummel::rate_of_change(std::span<const double> potential, std::span<const double> averages,
                                       std::span<double> out) {
  std::fill(out.begin(), out.end(), 0.0);
  for (const Axis& axis : axes_) {
    const double scale = 1.0 / (axis.spacing * axis.spacing);
    if (!fractions_.empty() || std::isinf(inverse_temperature_)) {
      for_each_face(axis.count, axis.inner, axis.outer, periodic_, [&](std::size_t i, std::size_t j) {
        const Rates r = face_rates(potential[j] - potential[i], inverse_temperature_, scale);
        const double flow = r.up * averages[i] - r.down * averages[j];
        if (fractions_.empty()) {
          out[i] -= flow;
          out[j] += flow;
        } else if (axis.apertures[i] > 0.0) {
          out[i] -= axis.apertures[i] / fractions_[i] * flow;
          out[j] += axis.apertures[i] / fractions_[j] * flow;
        }
      });
      continue;
    }
    const double warm_scale = scale / inverse_temperature_;
    // Faces between consecutive slabs of `inner` cells are as many loops over contiguous cells; along the
    // last axis the faces of one line are one loop.
    const std::size_t stretch = axis.inner == 1 ? axis.count - 1 : axis.inner;
    double* flow = work_[0].data();
    for (std::size_t o = 0; o < axis.outer; ++o) {
      const std::size_t first = o * axis.count * axis.inner;
      for (std::size_t i = 0; i + 1 < axis.count; i += axis.inner == 1 ? axis.count : 1) {
        const std::size_t below = first + i * axis.inner;
        for (std::size_t k = 0; k < stretch; k += flow_block) {
          const std::size_t present = std::min(flow_block, stretch - k), at = below + k;
          flows(potential.data() + at, averages.data() + at, axis.inner, inverse_temperature_, warm_scale,
                flow, present);
          add_flows(flow, out.data() + at, axis.inner, present);
        }
      }
      if (periodic_ && axis.count > 1) {
        const std::size_t last = first + (axis.count - 1) * axis.inner;
        for (std::size_t k = 0; k < axis.inner; ++k) {
          const Rates r = rates(potential[first + k] - potential[last + k], inverse_temperature_, warm_scale);
          const double wrapped = r.up * averages[last + k] - r.down * averages[first + k];
          out[last + k] -= wrapped;
          out[first + k] += wrapped;
        }
      }
    }
  }
}

double ScharfetterGummel::dissipation(std::span<const double> potential,
                                      std::span<const double> averages) const {
  CompensatedSum sum;
  const bool cold = std::isinf(inverse_temperature_);
  for (const Axis& axis : axes_) {
    const double scale = 1.0 / (axis.spacing * axis.spacing * (cold ? 1.0 : inverse_temperature_));
    const double* apertures = axis.apertures.empty() ? nullptr : axis.apertures.data();
    const auto add = [&](std::size_t below, std::size_t above, std::size_t count) {
      const double* open = apertures == nullptr ? nullptr : apertures + below;
      const Faces faces{potential.data() + below,
                        potential.data() + above,
                        averages.data() + below,
                        averages.data() + above,
                        open,
                        count};
      sum.add(cold ? cold_losses(faces, scale) : warm_losses(faces, inverse_temperature_, scale));
    };
    for (std::size_t o = 0; o < axis.outer; ++o) {
      const std::size_t first = o * axis.count * axis.inner;
      if (axis.inner == 1) {
        if (axis.count > 1) add(first, first + 1, axis.count - 1);
      } else {
        for (std::size_t i = 0; i + 1 < axis.count; ++i) {
          add(first + i * axis.inner, first + (i + 1) * axis.inner, axis.inner);
        }
      }
      if (periodic_ && axis.count > 1) add(first + (axis.count - 1) * axis.inner, first, axis.inner);
    }
  }
  return sum.value() * cell_volume_;
}

}  // namespace rieszflow::pde
