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
  // B(|z|) = |z| / (e^|z| - 1); the smallest summand stands for the limit 1 at z = 0. No selection before the
  // division: it would cost three times the rest.
  const double z = inverse_temperature * std::abs(difference) + 1e-300;
  const double against = scale * (z / elementary::exponential_minus_one(z));
  const double slope = scale * inverse_temperature;
  return {against + slope * std::max(-difference, 0.0), against + slope * std::max(difference, 0.0)};
}

/// The same at beta = infinity, where scale has no 1/beta: upwind.
[[gnu::always_inline]] inline Rates upwind_rates(double difference, double scale) {
  const double speed = scale * std::abs(difference);
  return difference > 0.0 ? Rates{0.0, speed} : Rates{speed, 0.0};
}

/// to (cell, lane) = from[start[lane] + cell * stride], `width` lanes; lines along memory by whole cache
/// lines.
void gather(const double* from, const std::size_t* start, std::size_t stride, std::size_t width,
            std::size_t count, double* __restrict to) {
  constexpr std::size_t run = 8;
  if (stride > 1) {  // neighbouring lines lie side by side, except where the block ends a slab
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t l = 0; l < width; ++l) to[i * lanes + l] = from[start[l] + i * stride];
    }
    return;
  }
  for (std::size_t first = 0; first < count; first += run) {
    const std::size_t last = std::min(first + run, count);
    for (std::size_t l = 0; l < width; ++l) {
      for (std::size_t i = first; i < last; ++i) to[i * lanes + l] = from[start[l] + i];
    }
  }
}

/// The way back.
void scatter(const double* __restrict from, const std::size_t* start, std::size_t stride, std::size_t width,
             std::size_t count, double* to) {
  constexpr std::size_t run = 8;
  if (stride > 1) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t l = 0; l < width; ++l) to[start[l] + i * stride] = from[i * lanes + l];
    }
    return;
  }
  for (std::size_t first = 0; first < count; first += run) {
    const std::size_t last = std::min(first + run, count);
    for (std::size_t l = 0; l < width; ++l) {
      for (std::size_t i = first; i < last; ++i) to[start[l] + i] = from[i * lanes + l];
    }
  }
}

/// One block of `lanes` grid lines; arrays (cell, lane).
struct Lines {
  std::size_t count;  ///< cells along a line
  bool periodic;
  const double* potential;
  double inverse_temperature;  ///< unused at zero temperature
  double scale;                ///< timestep / (beta h^2); at zero temperature timestep / h^2
  const double* fractions;     ///< volume fractions f_i (weighted lines only)
  const double* apertures;     ///< factors of the faces above: open part, limiter (weighted lines only)
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
template <bool zero_temperature, bool weighted>
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
      const double scale = weighted ? lines.scale * lines.apertures[i * lanes + l] : lines.scale;
      const Rates r = zero_temperature ? upwind_rates(difference, scale)
                                       : rates(difference, lines.inverse_temperature, scale);
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
template <bool zero_temperature, bool weighted>
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
    if constexpr (weighted) {
      // A cell without volume has no open face; the weight 1 keeps it out of 0/0.
      for (std::size_t l = 0; l < lanes; ++l) stay[l] = lines.fractions[l] > 0.0 ? lines.fractions[l] : 1.0;
      for (std::size_t i = 0; i < count * lanes; ++i) lines.rho[i] *= lines.fractions[i];
    }
    for (std::size_t i = 0; i + 1 < count; ++i) {
      double* here = lines.rho + i * lanes;
      const double* level = lines.potential + i * lanes;
      double* b = back + i * lanes;
      for (std::size_t l = 0; l < lanes; ++l) {
        const double scale = weighted ? lines.scale * lines.apertures[i * lanes + l] : lines.scale;
        const Rates r = face(level[lanes + l] - level[l], scale);
        const double inverse = 1.0 / (stay[l] + r.up);
        const double mass = here[l] * inverse;
        here[lanes + l] += r.up * mass;
        here[l] = mass;
        b[l] = r.down * inverse;
        double weight = 1.0;
        if constexpr (weighted) {
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
    const double scale = weighted ? lines.scale * lines.apertures[(count - 1) * lanes + l] : lines.scale;
    const Rates r = face(lines.potential[l] - lines.potential[(count - 1) * lanes + l], scale);
    ends.to_left[l] = r.down;
    ends.from_left[l] = r.up;
  }
  eliminate_between<zero_temperature, weighted>(lines, ends);
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
/// few cells beyond them form a chain.
struct LongLine {
  std::size_t cells;
  bool periodic;
  const double* potential;     ///< (cell)
  double inverse_temperature;  ///< unused at zero temperature
  double scale;                ///< as in Lines
  const double* factors;       ///< (cell) of the faces above (weighted lines only)
  double* rho;                 ///< (cell) in: rho; out: rho'
  double* work;                ///< four arrays of as many cells, five for weighted lines
};

template <bool zero_temperature, bool weighted>
[[gnu::always_inline]] inline void solve_long_line(const LongLine& line) {
  const auto& [cells, periodic, potential, inverse_temperature, scale, factors, rho, work] = line;
  const auto face = [&](std::size_t i, std::size_t j) {
    const double difference = line.potential[j] - line.potential[i];
    const double weight = weighted ? line.scale * line.factors[i] : line.scale;
    return zero_temperature ? upwind_rates(difference, weight)
                            : rates(difference, line.inverse_temperature, weight);
  };
  const std::size_t piece = cells / lanes, size = piece * lanes, count = lanes + cells - size;
  double* level = work;
  double* mass = work + size;
  std::size_t start[lanes];
  for (std::size_t l = 0; l < lanes; ++l) start[l] = l * piece;
  gather(potential, start, 1, lanes, piece, level);
  gather(rho, start, 1, lanes, piece, mass);
  double* weights = work + 4 * size;
  if constexpr (weighted) gather(factors, start, 1, lanes, piece, weights);
  const Lines lines{piece,   periodic, level, inverse_temperature, scale,
                    nullptr, weights,  mass,  work + 2 * size};
  Ends ends;
  for (std::size_t l = 0; l < lanes; ++l) {
    const bool has_left = l > 0 || periodic;
    const Rates r = has_left ? face(l > 0 ? l * piece - 1 : cells - 1, l * piece) : Rates{0.0, 0.0};
    ends.to_left[l] = r.down;
    ends.from_left[l] = r.up;
  }
  eliminate_between<zero_temperature, weighted>(lines, ends);
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
  scatter(mass, start, 1, lanes, piece, rho);
  for (std::size_t c = lanes; c < count; ++c) rho[size + c - lanes] = chain_mass[c];
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void solve_warm_long_line(const LongLine& line) {
  solve_long_line<false, false>(line);
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void solve_warm_weighted_long_line(const LongLine& line) {
  solve_long_line<false, true>(line);
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
void solve_warm_weighted_lines(const Lines& lines) {
  solve_lines<false, true>(lines);
}

void solve(const LongLine& line) {
  const bool cold = std::isinf(line.inverse_temperature);
  if (line.factors == nullptr) {
    cold ? solve_long_line<true, false>(line) : solve_warm_long_line(line);
  } else {
    cold ? solve_long_line<true, true>(line) : solve_warm_weighted_long_line(line);
  }
}

void solve(const Lines& lines) {
  const bool cold = std::isinf(lines.inverse_temperature);
  if (lines.apertures == nullptr) {
    cold ? solve_lines<true, false>(lines) : solve_warm_lines(lines);
  } else {
    cold ? solve_lines<true, true>(lines) : solve_warm_weighted_lines(lines);
  }
}

/// Faces between the cells k and k + stride, with the cells before and beyond; the same pointer as its
/// neighbour where there is none.
struct Stencil {
  const double *low, *high;                       ///< potential
  const double *before, *below, *above, *beyond;  ///< rho
};

/// kappa of the limited fluxes.
template <bool zero_temperature>
[[gnu::always_inline]] inline void limiting_factors(const Stencil& at, double inverse_temperature,
                                                    double* __restrict out, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    const double difference = at.high[k] - at.low[k];
    const Rates r =
        zero_temperature ? upwind_rates(difference, 1.0) : rates(difference, inverse_temperature, 1.0);
    const double upward = r.up * at.below[k], downward = r.down * at.above[k];
    const bool is_below = difference < 0.0;  // the upwind cell
    const double across = at.above[k] - at.below[k];
    const double aside = is_below ? at.below[k] - at.before[k] : at.beyond[k] - at.above[k];
    const double smallest =
        std::min(std::min(2.0 * std::abs(across), 2.0 * std::abs(aside)), 0.5 * std::abs(across + aside));
    const double slope = across * aside > 0.0 ? std::copysign(smallest, across) : 0.0;
    const double correction = 0.5 * (r.up + r.down - (zero_temperature ? 0.0 : 2.0)) * slope;
    const double sign = upward > downward ? 1.0 : -1.0;
    out[k] = 1.0 + sign * correction / (upward + downward + 1e-300);
  }
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void warm_limiting_factors(const Stencil& at, double inverse_temperature, double* __restrict out,
                           std::size_t count) {
  limiting_factors<false>(at, inverse_temperature, out, count);
}

void limiting_factors(const Stencil& at, double inverse_temperature, double* out, std::size_t count) {
  if (std::isinf(inverse_temperature)) {
    limiting_factors<true>(at, inverse_temperature, out, count);
  } else {
    warm_limiting_factors(at, inverse_temperature, out, count);
  }
}

constexpr std::size_t flow_block = 256;  ///< faces whose flows are formed together

/// Flows across the faces between the cells below and above.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void flows(const double* low, const double* high, const double* below, const double* above,
           double inverse_temperature, double scale, double* __restrict out, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    const Rates r = rates(high[k] - low[k], inverse_temperature, scale);
    out[k] = r.up * below[k] - r.down * above[k];
  }
}

void add_flows(const double* __restrict flow, double* out, std::size_t stride, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) out[k] -= flow[k];
  for (std::size_t k = 0; k < count; ++k) out[k + stride] += flow[k];
}

/// out = beta mu = beta Phi + log rho; an empty cell counts as the smallest number.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void chemical_potentials(const double* potential, const double* rho, double inverse_temperature,
                         double* __restrict out, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    const double present = rho[k] < 0x1p-1022 ? 0x1p-1022 : rho[k];
    out[k] = inverse_temperature * potential[k] + elementary::logarithm(present);
  }
}

/// Largest difference of beta mu that a face counts: a cell that holds less than 2^-52 of its equilibrium
/// share with its neighbour counts as that share, so that an empty cell costs a finite dissipation.
constexpr double largest_drop = 52.0 * 0.6931471805599453;

/// sum of J (mu_below - mu_above) area / h over faces: what they take from F. below, above: beta mu.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
double
losses(const double* flow, const double* below, const double* above, const double* factors,
       double inverse_temperature, std::size_t count) {
  double sum = 0.0;
  if (factors == nullptr) {
#pragma omp simd reduction(+ : sum)
    for (std::size_t k = 0; k < count; ++k) {
      const double drop = below[k] - above[k], least = drop > largest_drop ? largest_drop : drop;
      sum += flow[k] * (least < -largest_drop ? -largest_drop : least);
    }
  } else {
#pragma omp simd reduction(+ : sum)
    for (std::size_t k = 0; k < count; ++k) {
      const double drop = below[k] - above[k], least = drop > largest_drop ? largest_drop : drop;
      sum += factors[k] * flow[k] * (least < -largest_drop ? -largest_drop : least);
    }
  }
  return sum / inverse_temperature;
}

/// The same at zero temperature, mu = Phi: scale (Phi_below - Phi_above)^2 rho_upwind.
double cold_losses(const double* low, const double* high, const double* below, const double* above,
                   const double* factors, double scale, std::size_t count) {
  double sum = 0.0;
  for (std::size_t k = 0; k < count; ++k) {
    const double rise = high[k] - low[k], open = factors == nullptr ? 1.0 : factors[k];
    sum += scale * open * rise * rise * (rise < 0.0 ? below[k] : above[k]);
  }
  return sum;
}

Rates face_rates(double difference, double inverse_temperature, double scale) {
  return std::isinf(inverse_temperature)
             ? upwind_rates(difference, scale)
             : rates(difference, inverse_temperature, scale / inverse_temperature);
}

/// sum of |Phi_above - Phi_below| (rho_below + rho_above)/2 over faces, apertures null: 1.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
double
weighted_rises(const double* low, const double* high, const double* below, const double* above,
               const double* apertures, std::size_t count) {
  double sum = 0.0;
  if (apertures == nullptr) {
#pragma omp simd reduction(+ : sum)
    for (std::size_t k = 0; k < count; ++k) sum += std::abs(high[k] - low[k]) * (below[k] + above[k]);
  } else {
#pragma omp simd reduction(+ : sum)
    for (std::size_t k = 0; k < count; ++k)
      sum += apertures[k] * std::abs(high[k] - low[k]) * (below[k] + above[k]);
  }
  return 0.5 * sum;
}

/// Calls visit(below, above, count) for runs of faces: between the cells below + k and above + k.
template <class Axis, class Visit>
void for_each_run(const Axis& axis, bool periodic, const Visit& visit) {
  for (std::size_t o = 0; o < axis.outer; ++o) {
    const std::size_t first = o * axis.count * axis.inner;
    if (axis.inner == 1) {
      if (axis.count > 1) visit(first, first + 1, axis.count - 1);
    } else {
      for (std::size_t i = 0; i + 1 < axis.count; ++i) {
        visit(first + i * axis.inner, first + (i + 1) * axis.inner, axis.inner);
      }
    }
    if (periodic && axis.count > 1) visit(first + (axis.count - 1) * axis.inner, first, axis.inner);
  }
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

ScharfetterGummel::ScharfetterGummel(const Grid& grid, double inverse_temperature, int threads,
                                     const Ranks& ranks)
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
  if (axes_.size() > 1) ranks_ = ranks;
  is_long_line_ = axes_.size() == 1 && longest >= 4 * lanes;
  work_.resize(static_cast<std::size_t>(threads_));
  for (std::vector<double>& work : work_) work.resize(4 * longest * (is_long_line_ ? 1 : lanes));
}

void ScharfetterGummel::limit(const Axis& axis, const double* potential, const double* averages) {
  factors_.resize(axis.count * axis.inner * axis.outer);
  const double* apertures = axis.apertures.empty() ? nullptr : axis.apertures.data();
  const std::size_t inner = axis.inner, count = axis.count;
  // Cells `first` + k, k < width, and those above them; `before`, `beyond`: offsets of the cells further out.
  const auto faces = [&](std::size_t first, std::ptrdiff_t before, std::ptrdiff_t above,
                         std::ptrdiff_t beyond, std::size_t width) {
    const double *low = potential + first, *rho = averages + first;
    limiting_factors({low, low + above, rho + before, rho, rho + above, rho + beyond}, inverse_temperature_,
                     factors_.data() + first, width);
  };
  const auto up = static_cast<std::ptrdiff_t>(inner);
  for (std::size_t o = 0; o < axis.outer; ++o) {
    const std::size_t slab = o * count * inner;
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_last = i + 1 == count;
      if (is_last && !periodic_) {
        std::fill_n(factors_.data() + slab + i * inner, inner, 0.0);
        continue;
      }
      const bool is_inside = i > 0 && i + 2 < count;
      const auto offset_of = [&](std::size_t cell) {  // around the torus, of a single cell too
        return up * (static_cast<std::ptrdiff_t>(cell % count) - static_cast<std::ptrdiff_t>(i));
      };
      const std::ptrdiff_t before = periodic_ || i > 0 ? offset_of(i + count - 1) : 0;
      const std::ptrdiff_t above = offset_of(i + 1);
      const std::ptrdiff_t beyond = periodic_ || i + 2 < count ? offset_of(i + 2) : above;
      std::size_t width = inner;
      if (inner == 1 && is_inside) {  // the inner faces of a line along memory, together
        width = count - 3;
        faces(slab + i, before, above, beyond, width);
        i = count - 3;
        continue;
      }
      faces(slab + i * inner, before, above, beyond, width);
    }
  }
  if (apertures == nullptr) return;
  for (std::size_t cell = 0; cell < factors_.size(); ++cell) {
    // Beside a closed face there is no slope: Scharfetter-Gummel.
    const bool is_whole = apertures[cell] > 0.0 && cell >= inner && apertures[cell - inner] > 0.0 &&
                          cell + inner < factors_.size() && apertures[cell + inner] > 0.0;
    factors_[cell] = is_whole ? factors_[cell] * apertures[cell] : apertures[cell];
  }
}

void ScharfetterGummel::sweep(const Axis& axis, const double* potential, double timestep, const double* from,
                              double* to, Fluxes fluxes) {
  const bool cold = std::isinf(inverse_temperature_), limited = fluxes == Fluxes::Limited;
  const double scale = timestep / (axis.spacing * axis.spacing * (cold ? 1.0 : inverse_temperature_));
  const std::size_t arrays = limited || !fractions_.empty() ? 6 : 4;
  const std::size_t block_size = axis.count * (is_long_line_ ? 1 : lanes);
  for (std::vector<double>& work : work_) {
    if (work.size() < arrays * block_size) work.resize(arrays * block_size);
  }
  const double* factors = axis.apertures.empty() ? nullptr : axis.apertures.data();
  if (limited) {
    limit(axis, potential, from);
    factors = factors_.data();
  }
  if (is_long_line_) {
    if (from != to) std::copy_n(from, axis.count, to);
    solve(LongLine{axis.count, periodic_, potential, inverse_temperature_, scale, factors, to,
                   work_[0].data()});
    return;
  }
  const std::size_t line_count = axis.inner * axis.outer, blocks = (line_count + lanes - 1) / lanes;
  const auto mine = ranks_.part(blocks);
  const auto start_of = [&](std::size_t line) {
    return line / axis.inner * axis.count * axis.inner + line % axis.inner;
  };
  if (!ranks_.alone()) lines_.resize(blocks * block_size);
#pragma omp parallel for num_threads(threads_) schedule(static) if (threads_ > 1)
  for (std::size_t block = mine.first; block < mine.second; ++block) {
    int thread = 0;
#ifdef _OPENMP
    thread = threads_ > 1 ? omp_get_thread_num() : 0;
#endif
    const std::size_t size = axis.count * lanes;
    double* level = work_[thread].data();
    double* rho = level + size;
    const std::size_t width = std::min(lanes, line_count - block * lanes);
    std::size_t start[lanes];
    for (std::size_t l = 0; l < width; ++l) start[l] = start_of(block * lanes + l);
    if (width < lanes) std::fill(level, level + 2 * size, 0.0);
    gather(potential, start, axis.inner, width, axis.count, level);
    gather(from, start, axis.inner, width, axis.count, rho);
    Lines lines{axis.count, periodic_, level, inverse_temperature_, scale, nullptr, nullptr, rho, rho + size};
    if (factors != nullptr) {
      double* fractions = level + 4 * size;
      std::fill(fractions, fractions + size, fractions_.empty() ? 1.0 : 0.0);
      std::fill(fractions + size, fractions + 2 * size, 0.0);
      if (!fractions_.empty()) gather(fractions_.data(), start, axis.inner, width, axis.count, fractions);
      gather(factors, start, axis.inner, width, axis.count, fractions + size);
      lines.fractions = fractions;
      lines.apertures = fractions + size;
    }
    solve(lines);
    if (ranks_.alone()) {
      scatter(rho, start, axis.inner, width, axis.count, to);
    } else {
      std::copy_n(rho, block_size, lines_.data() + block * block_size);
    }
  }
  if (ranks_.alone()) return;
  ranks_.gather(lines_, block_size);
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t width = std::min(lanes, line_count - block * lanes);
    std::size_t start[lanes];
    for (std::size_t l = 0; l < width; ++l) start[l] = start_of(block * lanes + l);
    scatter(lines_.data() + block * block_size, start, axis.inner, width, axis.count, to);
  }
}

void ScharfetterGummel::implicit_step(std::span<const double> potential, double timestep,
                                      std::span<const double> from, std::span<double> to, Fluxes fluxes) {
  const double* source = from.data();
  for (const Axis& axis : axes_) {
    sweep(axis, potential.data(), timestep, source, to.data(), fluxes);
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
          const double *level = potential.data() + at, *rho = averages.data() + at;
          flows(level, level + axis.inner, rho, rho + axis.inner, inverse_temperature_, warm_scale, flow,
                present);
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

double ScharfetterGummel::dissipation(std::span<const double> potential, std::span<const double> averages,
                                      std::span<double> scratch, Fluxes fluxes) {
  CompensatedSum sum;
  const bool cold = std::isinf(inverse_temperature_);
  if (!cold) {
    chemical_potentials(potential.data(), averages.data(), inverse_temperature_, scratch.data(),
                        averages.size());
  }
  for (const Axis& axis : axes_) {
    const double scale = 1.0 / (axis.spacing * axis.spacing * (cold ? 1.0 : inverse_temperature_));
    const double* factors = axis.apertures.empty() ? nullptr : axis.apertures.data();
    if (fluxes == Fluxes::Limited) {
      limit(axis, potential.data(), averages.data());
      factors = factors_.data();
    }
    const double *level = potential.data(), *rho = averages.data(), *mu = scratch.data();
    for_each_run(axis, periodic_, [&](std::size_t below, std::size_t above, std::size_t count) {
      if (cold) {
        sum.add(cold_losses(level + below, level + above, rho + below, rho + above,
                            factors == nullptr ? nullptr : factors + below, scale, count));
        return;
      }
      double flow[flow_block];
      double of_run = 0.0;
      for (std::size_t k = 0; k < count; k += flow_block) {
        const std::size_t present = std::min(flow_block, count - k), low = below + k, high = above + k;
        flows(level + low, level + high, rho + low, rho + high, inverse_temperature_, scale, flow, present);
        of_run += losses(flow, mu + low, mu + high, factors == nullptr ? nullptr : factors + low,
                         inverse_temperature_, present);
      }
      sum.add(of_run);
    });
  }
  return sum.value() * cell_volume_;
}

double ScharfetterGummel::largest_rate(std::span<const double> potential, std::span<double> scratch) const {
  std::fill(scratch.begin(), scratch.end(), 0.0);
  for (const Axis& axis : axes_) {
    const double scale = 1.0 / (axis.spacing * axis.spacing);
    for_each_face(axis.count, axis.inner, axis.outer, periodic_, [&](std::size_t i, std::size_t j) {
      const double open = axis.apertures.empty() ? 1.0 : axis.apertures[i];
      const Rates r = face_rates(potential[j] - potential[i], inverse_temperature_, open * scale);
      scratch[i] += r.up;
      scratch[j] += r.down;
    });
  }
  double largest = 0.0;
  for (std::size_t i = 0; i < scratch.size(); ++i) {
    const double fraction = fractions_.empty() ? 1.0 : fractions_[i];
    if (fraction > 0.0) largest = std::max(largest, scratch[i] / fraction);
  }
  return largest;
}

double ScharfetterGummel::mean_peclet_number(std::span<const double> potential,
                                             std::span<const double> averages) const {
  double largest = 0.0;
  for (const Axis& axis : axes_) {
    const double* apertures = axis.apertures.empty() ? nullptr : axis.apertures.data();
    double sum = 0.0;
    for_each_run(axis, periodic_, [&](std::size_t below, std::size_t above, std::size_t count) {
      sum +=
          weighted_rises(potential.data() + below, potential.data() + above, averages.data() + below,
                         averages.data() + above, apertures == nullptr ? nullptr : apertures + below, count);
    });
    largest = std::max(largest, sum);
  }
  return inverse_temperature_ * largest * cell_volume_;
}

}  // namespace rieszflow::pde
