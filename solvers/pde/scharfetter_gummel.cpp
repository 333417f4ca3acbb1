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

/// Solves rho'_i (1 + up_i + down_{i-1}) - up_{i-1} rho'_{i-1} - down_i rho'_{i+1} = rho_i on `lanes` lines
/// of `count` cells; rho: (cell, lane) in and out, potential: (cell, lane), work: 3 (cell, lane) arrays.
///
/// Elimination without subtractions: state i keeps the weight a_i of staying, passes its mass to i+1 in the
/// ratio of its rates. On a torus the last state is connected to all that remain and is solved last.
template <bool zero_temperature>
[[gnu::always_inline]] inline void solve_lines(std::size_t count, bool periodic, const double* potential,
                                               double inverse_temperature, double scale, double* rho,
                                               double* work) {
  const auto face = [&](double difference) {
    if constexpr (zero_temperature) {
      return upwind_rates(difference, scale);
    } else {
      return rates(difference, inverse_temperature, scale);
    }
  };
  double* back = work;  // rho'_i = rho_i + back_i rho'_{i+1} (+ wrap_i rho'_last)
  double* wrap = work + count * lanes;
  double stay[lanes], to_last[lanes], from_last[lanes], last_mass[lanes], last_stay[lanes];
  if (!periodic || count == 1) {
    if (count == 1) return;
    for (std::size_t l = 0; l < lanes; ++l) stay[l] = 1.0;
    for (std::size_t i = 0; i + 1 < count; ++i) {
      double* here = rho + i * lanes;
      const double* level = potential + i * lanes;
      double* b = back + i * lanes;
      for (std::size_t l = 0; l < lanes; ++l) {
        const Rates r = face(level[lanes + l] - level[l]);
        const double inverse = 1.0 / (stay[l] + r.up);
        const double mass = here[l] * inverse;
        here[lanes + l] += r.up * mass;
        here[l] = mass;
        b[l] = r.down * inverse;
        stay[l] = 1.0 + b[l] * stay[l];
      }
    }
    double* last = rho + (count - 1) * lanes;
    for (std::size_t l = 0; l < lanes; ++l) last[l] /= stay[l];
    for (std::size_t i = count - 1; i-- > 0;) {
      double* here = rho + i * lanes;
      const double* b = back + i * lanes;
      for (std::size_t l = 0; l < lanes; ++l) here[l] += b[l] * here[lanes + l];
    }
    return;
  }
  double* last = rho + (count - 1) * lanes;
  for (std::size_t l = 0; l < lanes; ++l) {
    const Rates r = face(potential[l] - potential[(count - 1) * lanes + l]);
    stay[l] = 1.0;
    to_last[l] = r.down;
    from_last[l] = r.up;
    last_mass[l] = last[l];
    last_stay[l] = 1.0;
  }
  for (std::size_t i = 0; i + 1 < count; ++i) {
    double* here = rho + i * lanes;
    const double* level = potential + i * lanes;
    double* b = back + i * lanes;
    double* w = wrap + i * lanes;
    const bool closes = i + 2 == count;  // the next state is the last one
    for (std::size_t l = 0; l < lanes; ++l) {
      const Rates r = face(level[lanes + l] - level[l]);
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
    double* here = rho + i * lanes;
    const double* b = back + i * lanes;
    const double* w = wrap + i * lanes;
    for (std::size_t l = 0; l < lanes; ++l) here[l] += b[l] * here[lanes + l] + w[l] * last[l];
  }
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void solve_warm_lines(std::size_t count, bool periodic, const double* potential, double inverse_temperature,
                      double scale, double* rho, double* work) {
  solve_lines<false>(count, periodic, potential, inverse_temperature, scale, rho, work);
}

void solve_cold_lines(std::size_t count, bool periodic, const double* potential, double scale, double* rho,
                      double* work) {
  solve_lines<true>(count, periodic, potential, 0.0, scale, rho, work);
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
      threads_(grid.cell_count() >= (std::size_t{1} << 18) ? std::max(1, threads) : 1) {
  std::size_t inner = 1, longest = 1;
  for (std::size_t axis = grid.dimension(); axis-- > 0;) {
    const std::size_t count = grid.cells[axis];
    axes_.insert(axes_.begin(), Axis{count, inner, grid.cell_count() / (inner * count), grid.spacing(axis)});
    inner *= count;
    longest = std::max(longest, count);
  }
  for (int t = 0; t < threads_; ++t) work_.emplace_back(4 * longest * lanes);
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
    if (cold) {
      solve_cold_lines(axis.count, periodic_, level, scale, rho, rho + size);
    } else {
      solve_warm_lines(axis.count, periodic_, level, inverse_temperature_, scale, rho, rho + size);
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
      out[i] -= flow;
      out[j] += flow;
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
      if (flow == 0.0) return;
      double drop = potential[i] - potential[j];
      if (!std::isinf(inverse_temperature_))
        drop += (std::log(below) - std::log(above)) / inverse_temperature_;
      sum.add(flow * drop);
    });
  }
  return sum.value() * cell_volume_;
}

}  // namespace rieszflow::pde
