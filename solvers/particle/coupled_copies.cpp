#include "solvers/particle/coupled_copies.hpp"

#include <algorithm>
#include <cmath>

#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow::particle {

MeanFieldForce::MeanFieldForce(const MeanField& field, const std::vector<double>& times,
                               const std::vector<Density>& densities)
    : grid_(field.grid()), times_(times) {
  expects(!times.empty() && times.size() == densities.size(), "one density for each time");
  expects(grid_.volume_fractions.empty(), "forces are interpolated in a box or on a torus");
  const std::size_t d = grid_.dimension(), cells = grid_.cell_count();
  std::vector<double> potential(cells);
  for (const Density& density : densities) {
    field.interaction_potential(density.averages, potential);
    std::vector<double>& gradient = gradients_.emplace_back(cells * d);
    std::size_t stride = cells;
    for (std::size_t axis = 0; axis < d; ++axis) {
      const std::size_t count = grid_.cells[axis];
      stride /= count;
      const double h = grid_.spacing(axis);
      for (std::size_t cell = 0; cell < cells; ++cell) {
        const std::size_t index = cell / stride % count;
        const auto at = [&](std::size_t other) { return potential[cell - index * stride + other * stride]; };
        double& slope = gradient[cell * d + axis];
        if (count < 3) {
          slope = count < 2 ? 0.0 : (at(1) - at(0)) / h;
        } else if (grid_.periodic) {
          slope = (at((index + 1) % count) - at((index + count - 1) % count)) / (2.0 * h);
        } else if (index == 0) {
          slope = (-3.0 * at(0) + 4.0 * at(1) - at(2)) / (2.0 * h);
        } else if (index + 1 == count) {
          slope = (3.0 * at(index) - 4.0 * at(index - 1) + at(index - 2)) / (2.0 * h);
        } else {
          slope = (at(index + 1) - at(index - 1)) / (2.0 * h);
        }
      }
    }
  }
}

void MeanFieldForce::add(double time, std::span<const double> point, std::span<double> force) const {
  const std::size_t d = grid_.dimension();
  // Neighbouring times and their weights.
  const auto after = std::upper_bound(times_.begin(), times_.end(), time);
  const std::size_t late =
      std::min<std::size_t>(static_cast<std::size_t>(after - times_.begin()), times_.size() - 1);
  const std::size_t early =
      after == times_.begin() ? 0 : static_cast<std::size_t>(after - times_.begin()) - 1;
  const double share = late == early ? 0.0 : (time - times_[early]) / (times_[late] - times_[early]);
  // Neighbouring cell centres of each axis; beyond the outermost the line between the last two goes on.
  std::size_t low[3] = {}, high[3] = {};
  double weight[3] = {};
  for (std::size_t axis = 0; axis < d; ++axis) {
    const std::size_t count = grid_.cells[axis];
    const double place = (point[axis] - grid_.center(axis, 0)) / grid_.spacing(axis);
    if (grid_.periodic) {
      const double base = std::floor(place);
      weight[axis] = place - base;
      const auto first = static_cast<std::ptrdiff_t>(base) + static_cast<std::ptrdiff_t>(count);
      low[axis] = static_cast<std::size_t>(first) % count;
      high[axis] = (low[axis] + 1) % count;
    } else {
      low[axis] =
          count < 2 ? 0 : std::min(count - 2, static_cast<std::size_t>(std::max(0.0, std::floor(place))));
      high[axis] = std::min(low[axis] + 1, count - 1);
      weight[axis] = place - static_cast<double>(low[axis]);
    }
  }
  for (std::size_t corner = 0; corner < (std::size_t{1} << d); ++corner) {
    double w = 1.0;
    std::size_t cell = 0;
    for (std::size_t axis = 0; axis < d; ++axis) {
      const bool upper = (corner >> axis & 1) != 0;
      w *= upper ? weight[axis] : 1.0 - weight[axis];
      cell = cell * grid_.cells[axis] + (upper ? high[axis] : low[axis]);
    }
    for (std::size_t axis = 0; axis < d; ++axis) {
      force[axis] -= w * ((1.0 - share) * gradients_[early][cell * d + axis] +
                          share * gradients_[late][cell * d + axis]);
    }
  }
}

RunResult run_coupled(const Model& model, CoupledState& state, const MeanFieldForce& force,
                      const CoupledOptions& options, const Schedule& schedule,
                      const Observer<CoupledState>& observe, const StopRule& stop) {
  expects(options.timestep > 0.0, "the timestep is positive");
  expects(state.particles.positions.size() == state.copies.positions.size(), "as many copies as particles");
  expects(model.functionals.empty() && !has_singular_interaction(model), "a bounded interaction");
  const std::vector<double>& times = schedule.times();
  expects(state.clock.time == times.front(), "a coupled run starts at the beginning");
  const std::size_t n = state.particles.particle_count, d = state.particles.dimension,
                    replicas = state.particles.replica_count;
  const PairSum pair_sum(model, n, options.summation);
  const NoiseStream noise(options.seed, NoisePurpose::LangevinIncrement);
  std::vector<double> forces(state.particles.positions.size()), xi(n * d), copy_force(d);
  RunResult result;
  if (observe) observe(state.clock, state);
  for (std::size_t j = 0; j + 1 < times.size(); ++j) {
    const double length = times[j + 1] - times[j];
    const auto steps = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::ceil(length / options.timestep * (1.0 - 1e-9))));
    const double h = length / static_cast<double>(steps),
                 deviation = std::sqrt(2.0 * h / model.inverse_temperature);
    for (std::int64_t k = 0; k < steps; ++k) {
      const double now = times[j] + static_cast<double>(k) * h;
      std::ranges::fill(forces, 0.0);
      pair_sum.add_forces(state.particles.positions, replicas, forces);
      double check = 0.0;
      for (std::size_t r = 0; r < replicas; ++r) {
        if (deviation > 0.0) noise.gaussian_block(r, static_cast<std::uint64_t>(state.clock.step), n, d, xi);
        const auto x = state.particles.replica(r), y = state.copies.replica(r);
        const auto f = std::span(forces).subspan(r * n * d, n * d);
        for (std::size_t i = 0; i < n; ++i) {
          const auto xi_i = std::span(xi).subspan(i * d, d);
          const auto x_i = x.subspan(i * d, d), y_i = y.subspan(i * d, d), f_i = f.subspan(i * d, d);
          add_potential_force(model, x_i, f_i);
          std::ranges::fill(copy_force, 0.0);
          add_potential_force(model, y_i, copy_force);
          force.add(now, y_i, copy_force);
          for (std::size_t a = 0; a < d; ++a) {
            x_i[a] += h * f_i[a] + deviation * xi_i[a];
            y_i[a] += h * copy_force[a] + deviation * xi_i[a];
            check += (x_i[a] - x_i[a]) + (y_i[a] - y_i[a]);
          }
          reflect(model.domain, x_i);
          reflect(model.domain, y_i);
        }
      }
      ++state.clock.step;
      state.clock.time = k + 1 == steps ? times[j + 1] : times[j] + static_cast<double>(k + 1) * h;
      if (!(check == 0.0)) {
        result.status = RunStatus::NotFinite;
        result.message = "a position is not finite";
        break;
      }
      if (observe && k + 1 == steps) observe(state.clock, state);
      if (stop && state.clock.time < times.back()) {
        if (const auto status = stop(state.clock)) {
          result.status = *status;
          break;
        }
      }
    }
    if (result.status != RunStatus::Completed) break;
  }
  result.last_good = state.clock;
  return result;
}

}  // namespace rieszflow::particle
