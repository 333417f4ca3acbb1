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
  double* wrap = lines.work + count * lanes;
  double stay[lanes], to_last[lanes], from_last[lanes], last_mass[lanes], last_stay[lanes];
  for (std::size_t l = 0; l < lanes; ++l) {
    const Rates r = face(lines.potential[l] - lines.potential[(count - 1) * lanes + l], lines.scale);
    stay[l] = 1.0;
    to_last[l] = r.down;
    from_last[l] = r.up;
    last_mass[l] = last[l];
    last_stay[l] = 1.0;
  }
  for (std::size_t i = 0; i + 1 < count; ++i) {
    double* here = lines.rho + i * lanes;
    const double* level = lines.potential + i * lanes;
    double* b = back + i * lanes;
    double* w = wrap + i * lanes;
    const bool closes = i + 2 == count;  // the next state is the last one
    for (std::size_t l = 0; l < lanes; ++l) {
      const Rates r = face(level[lanes + l] - level[l], lines.scale);
      const double inverse = 1.0 / (stay[l] + r.up + to_last[l]);
      const double mass = here[l] * inverse;
      here[l] = mass;
      b[l] = r.down * inverse;
      w[l] = from_last[l] * inverse;
      last_mass[l] += (closes ? to_last[l] + r.up : to_last[l]) * mass;
      last_stay[l] += (closes ? w[l] + b[l] : w[l]) * stay[l];
      if (!closes) {
        here[lanes + l] += r.up * mass;
        stay[l] = 1.0 + b[l] * stay[l];
        to_last[l] = b[l] * to_last[l];
        from_last[l] = w[l] * r.up;
      }
    }
  }
  for (std::size_t l = 0; l < lanes; ++l) last[l] = last_mass[l] / last_stay[l];
  for (std::size_t i = count - 1; i-- > 0;) {
    double* here = lines.rho + i * lanes;
    const double* b = back + i * lanes;
    const double* w = wrap + i * lanes;
    for (std::size_t l = 0; l < lanes; ++l) here[l] += b[l] * here[lanes + l] + w[l] * last[l];
  }
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
  for (int t = 0; t < threads_; ++t) work_.emplace_back((fractions_.empty() ? 4 : 6) * longest * lanes);
}

void ScharfetterGummel::sweep(const Axis& axis, const double* potential, double timestep, const double* from,
                              double* to) {
  const bool cold = std::isinf(inverse_temperature_);
  const double scale = timestep / (axis.spacing * axis.spacing * (cold ? 1.0 : inverse_temperature_));
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
  }
}

double ScharfetterGummel::dissipation(std::span<const double> potential,
                                      std::span<const double> averages) const {
  CompensatedSum sum;
  for (const Axis& axis : axes_) {
    const double scale = 1.0 / (axis.spacing * axis.spacing);
    for_each_face(axis.count, axis.inner, axis.outer, periodic_, [&](std::size_t i, std::size_t j) {
      const double below = averages[i], above = averages[j];
      if (below == 0.0 && above == 0.0) return;
      const Rates r = face_rates(potential[j] - potential[i], inverse_temperature_, scale);
      const double flow = r.up * below - r.down * above;
      const double aperture = axis.apertures.empty() ? 1.0 : axis.apertures[i];
      if (flow == 0.0 || aperture == 0.0) return;
      double drop = potential[i] - potential[j];
      if (!std::isinf(inverse_temperature_))
        drop += (std::log(below) - std::log(above)) / inverse_temperature_;
      sum.add(aperture * flow * drop);
    });
  }
  return sum.value() * cell_volume_;
}

}  // namespace rieszflow::pde
