#include "solvers/particle/langevin.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "core/expects.hpp"
#include "core/noise.hpp"
#include "solvers/particle/close_pairs.hpp"
#include "solvers/particle/fault.hpp"
#include "solvers/particle/metropolis.hpp"

namespace rieszflow::particle {
namespace {

/// Equal steps of one output interval.
struct Interval {
  double start, end;
  std::int64_t steps;

  Interval(double from, double to, double largest_step) : start(from), end(to) {
    const double ratio = (to - from) / largest_step;
    expects(ratio < 0x1.0p62, "an output interval has fewer than 2^62 steps");
    // Round-off of the division never buys an extra step.
    steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(ratio * (1.0 - 1e-9))));
  }
  double timestep() const { return (end - start) / static_cast<double>(steps); }
  double time(std::int64_t k) const { return k == steps ? end : start + static_cast<double>(k) * timestep(); }
};

/// Moves an ensemble by steps of one length. Buffers are kept between steps.
class Stepper {
 public:
  Stepper(const Model& model, const ParticleEnsemble& ensemble, const Options& options)
      : model_(model), options_(options), noise_(options.seed, NoisePurpose::LangevinIncrement) {
    if (options.scheme == Scheme::Mala) {
      for (int t = 0; t < options.summation.threads; ++t) {
        samplers_.emplace_back(model, ensemble.particle_count, options.seed);
      }
    } else {
      pair_sum_.emplace(model, ensemble.particle_count, options.summation);
      forces_.resize(ensemble.positions.size());
      gaussians_.resize(ensemble.positions.size());
    }
    if (options.scheme == Scheme::Reflected)
      close_pairs_.emplace(model, ensemble.particle_count, options.seed);
    next_.resize(ensemble.positions.size());
  }

  void set_timestep(double timestep) {
    if (timestep == timestep_) return;
    timestep_ = timestep;
    for (Metropolis& sampler : samplers_) sampler.set_timestep(timestep);
    if (close_pairs_) close_pairs_->set_timestep(timestep);
  }

  StepOutcome advance(ParticleEnsemble& ensemble, std::uint64_t step, Statistics& statistics) {
    return options_.scheme == Scheme::Mala ? metropolis_step(ensemble, step, statistics)
                                           : euler_step(ensemble, step, statistics);
  }

 private:
  const Model& model_;
  const Options& options_;
  double timestep_ = 0.0;
  std::int64_t accepted_ = 0, proposed_ = 0;  ///< Metropolis moves so far
  NoiseStream noise_;
  std::optional<PairSum> pair_sum_;
  std::optional<ClosePairs> close_pairs_;
  std::vector<Metropolis> samplers_;               ///< (thread)
  std::vector<double> forces_, gaussians_, next_;  ///< (replica, particle, dimension)

  int threads() const { return options_.summation.threads; }

  /// forces_ = -N grad H_N of every replica.
  void evaluate_forces(const ParticleEnsemble& ensemble, std::uint64_t step) {
    const std::size_t d = ensemble.dimension, n = ensemble.particle_count;
    std::ranges::fill(forces_, 0.0);
    pair_sum_->add_forces(ensemble.positions, ensemble.replica_count, forces_);
    const auto count = static_cast<std::int64_t>(ensemble.replica_count * n);
#pragma omp parallel for schedule(static) num_threads(threads()) if (threads() > 1)
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * d;
      add_potential_force(model_, std::span(ensemble.positions).subspan(at, d),
                          std::span(forces_).subspan(at, d));
    }
    for (const auto& term : model_.functionals) {
      for (std::size_t r = 0; r < ensemble.replica_count; ++r) {
        term->add_forces(ensemble.replica(r), n, r, step, std::span(forces_).subspan(r * n * d, n * d));
      }
    }
  }

  StepOutcome euler_step(ParticleEnsemble& ensemble, std::uint64_t step, Statistics& statistics) {
    const std::size_t d = ensemble.dimension, n = ensemble.particle_count, size = n * d;
    evaluate_forces(ensemble, step);
    ++statistics.force_evaluations;
    if (const auto fault = first_not_finite(ensemble, forces_, "the force")) return fault;
    const double noise = std::sqrt(2.0 * timestep_ / model_.inverse_temperature);
    const bool reflected = options_.scheme == Scheme::Reflected,
               local = reflected && close_pairs_->possible();
    // Work is cut into chunks of particles, or whole replicas where clusters of them move together.
    const std::size_t chunk = local ? std::max<std::size_t>(n, 1) : 512;
    const std::size_t chunks = (n + chunk - 1) / chunk;
    const auto count = static_cast<std::int64_t>(ensemble.replica_count * chunks);
    std::int64_t substeps = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : substeps) num_threads(threads()) if (threads() > 1)
    for (std::int64_t index = 0; index < count; ++index) {
      const std::size_t r = static_cast<std::size_t>(index) / chunks;
      const std::size_t begin = static_cast<std::size_t>(index) % chunks * chunk,
                        end = std::min(begin + chunk, n);
      const std::size_t at = r * size + begin * d, length = (end - begin) * d;
      const auto xi = std::span(gaussians_).subspan(at, length), y = std::span(next_).subspan(at, length);
      const auto x = std::span(ensemble.positions).subspan(at, length),
                 f = std::span(forces_).subspan(at, length);
      if (noise > 0.0) {
        noise_.gaussian_block(r, step, begin, end - begin, d, xi);
      } else {
        std::ranges::fill(xi, 0.0);
      }
      if (local) {
        substeps += close_pairs_->advance(r, step, x, f, xi, y);
        continue;
      }
      for (std::size_t k = 0; k < length; ++k) y[k] = x[k] + timestep_ * f[k] + noise * xi[k];
      for (std::size_t i = 0; i < end - begin; ++i) {
        if (reflected) {
          reflect(model_.domain, y.subspan(i * d, d));
        } else {
          project(model_.domain, y.subspan(i * d, d));
        }
      }
    }
    if (const auto fault = first_not_finite(ensemble, next_, "the next position")) return fault;
    if (!reflected) {
      if (const auto fault = first_wall_collision(ensemble)) return fault;
    }
    statistics.substeps += substeps;
    ensemble.positions.swap(next_);
    return {};
  }

  StepOutcome metropolis_step(ParticleEnsemble& ensemble, std::uint64_t step, Statistics& statistics) {
    const auto count = static_cast<std::int64_t>(ensemble.replica_count);
    std::vector<StepOutcome> faults(ensemble.replica_count);
    std::int64_t accepted_now = 0;
    next_ = ensemble.positions;
#pragma omp parallel for schedule(dynamic) reduction(+ : accepted_now) num_threads(threads()) if (threads() > 1)
    for (std::int64_t index = 0; index < count; ++index) {
      const auto r = static_cast<std::size_t>(index);
      const std::size_t size = ensemble.particle_count * ensemble.dimension;
      std::int64_t accepted_here = 0;
      faults[r] = samplers_[static_cast<std::size_t>(threads() > 1 ? omp_get_thread_num() : 0)].sweep(
          r, step, std::span(next_).subspan(r * size, size), accepted_here);
      accepted_now += accepted_here;
    }
    statistics.force_evaluations += 2;
    for (const auto& fault : faults) {
      if (fault) return fault;
    }
    accepted_ += accepted_now;
    proposed_ += count * samplers_.front().moves();
    if (proposed_ > 0)
      statistics.acceptance = static_cast<double>(accepted_) / static_cast<double>(proposed_);
    ensemble.positions.swap(next_);
    return {};
  }

  static StepOutcome first_not_finite(const ParticleEnsemble& ensemble, const std::vector<double>& values,
                                      const char* what) {
    // A sum of x - x is zero when all are finite, and vectorises.
    double check = 0.0;
    for (const double v : values) check += v - v;
    if (check == 0.0) return {};
    const auto bad = std::ranges::find_if(values, [](double v) { return !std::isfinite(v); });
    const auto index = static_cast<std::size_t>(bad - values.begin()) / ensemble.dimension;
    const std::size_t replica = index / ensemble.particle_count;
    const auto place = std::span(ensemble.positions).subspan(index * ensemble.dimension, ensemble.dimension);
    return Fault{replica, index % ensemble.particle_count,
                 fmt::format("{} of the particle at ({:.6g}) is not finite", what, fmt::join(place, ", "))};
  }

  /// Two particles that were projected onto the same point of the wall, where W is infinite.
  StepOutcome first_wall_collision(const ParticleEnsemble& ensemble) const {
    if (!has_singular_interaction(model_)) return {};
    const std::size_t d = ensemble.dimension, n = ensemble.particle_count;
    for (std::size_t r = 0; r < ensemble.replica_count; ++r) {
      const auto x = std::span(next_).subspan(r * n * d, n * d);
      std::vector<std::size_t> order(n);
      std::iota(order.begin(), order.end(), std::size_t{0});
      const auto less = [&](std::size_t a, std::size_t b) {
        return std::ranges::lexicographical_compare(x.subspan(a * d, d), x.subspan(b * d, d));
      };
      std::ranges::sort(order, less);
      for (std::size_t k = 1; k < n; ++k) {
        if (less(order[k - 1], order[k])) continue;
        const auto [first, second] = std::minmax(order[k - 1], order[k]);
        return Fault{
            r, first,
            fmt::format(
                "projection put it on the same point ({:.6g}) as particle {}, where the interaction is "
                "infinite: use the reflected or the mala scheme, or a softened interaction",
                fmt::join(x.subspan(first * d, d), ", "), second)};
      }
    }
    return {};
  }
};

/// Without noise two particles on one point never part: the state has infinite energy for ever.
std::optional<std::string> hopeless_start(const Model& model, const ParticleEnsemble& ensemble) {
  if (std::isfinite(model.inverse_temperature) || !has_singular_interaction(model)) return {};
  std::vector<double> closest(ensemble.replica_count);
  Model without_interaction{model.domain, {}, {}, model.inverse_temperature};
  PairSum(without_interaction, ensemble.particle_count, {})
      .closest_pairs(ensemble.positions, ensemble.replica_count, closest);
  for (std::size_t r = 0; r < ensemble.replica_count; ++r) {
    if (closest[r] == 0.0) {
      return fmt::format(
          "two particles of replica {} start on the same point; without noise they never part and their "
          "interaction stays infinite",
          r);
    }
  }
  return {};
}

/// A potential may be no number where its force is one: log of a negative argument. Asked at output times.
std::optional<std::string> undefined_potential(const Model& model, const ParticleEnsemble& ensemble) {
  std::vector<double> values(ensemble.replica_count * ensemble.particle_count);
  potentials(model, ensemble.positions, values);
  const auto bad = std::ranges::find_if(values, [](double v) { return std::isnan(v); });
  if (bad == values.end()) return {};
  const auto index = static_cast<std::size_t>(bad - values.begin());
  return fmt::format(
      "the potential is not a number at ({:.6g}), where particle {} of replica {} is",
      fmt::join(std::span(ensemble.positions).subspan(index * ensemble.dimension, ensemble.dimension), ", "),
      index % ensemble.particle_count, index / ensemble.particle_count);
}

}  // namespace

std::string_view name(Scheme scheme) {
  switch (scheme) {
    case Scheme::Projected:
      return "projected";
    case Scheme::Reflected:
      return "reflected";
    case Scheme::Mala:
      return "mala";
  }
  return "unknown";
}

Result run(const Model& model, State& state, const Options& options, const Schedule& schedule,
           const Observer<State>& observe, const StopRule& stop) {
  ParticleEnsemble& ensemble = state.ensemble;
  const std::vector<double>& times = schedule.times();
  expects(options.timestep > 0.0, "the timestep is positive");
  expects(options.summation.threads >= 1, "at least one thread");
  expects(ensemble.dimension == dimension(model.domain), "the particles live in the model's space");
  expects(ensemble.positions.size() == ensemble.replica_count * ensemble.particle_count * ensemble.dimension,
          "positions are (replica, particle, dimension)");
  expects(state.clock.time >= times.front() && state.clock.time <= times.back(),
          "the clock is within the schedule");
  for (std::size_t i = 0; i < ensemble.replica_count * ensemble.particle_count; ++i) {
    expects(contains(model.domain,
                     std::span(ensemble.positions).subspan(i * ensemble.dimension, ensemble.dimension)),
            "every particle is in the domain");
  }

  const auto began = std::chrono::steady_clock::now();
  Result result;
  const auto finish = [&](RunStatus status, std::string message) {
    result.status = status;
    result.message = std::move(message);
    result.last_good = state.clock;
    result.statistics.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return result;
  };

  if (observe && state.clock.time == times.front()) observe(state.clock, state);
  if (const auto message = hopeless_start(model, ensemble)) return finish(RunStatus::NotFinite, *message);

  Stepper stepper(model, ensemble, options);
  for (std::size_t j = 0; j + 1 < times.size(); ++j) {
    if (state.clock.time >= times[j + 1]) continue;
    const Interval interval(times[j], times[j + 1], options.timestep);
    stepper.set_timestep(interval.timestep());
    auto k =
        static_cast<std::int64_t>(std::llround((state.clock.time - interval.start) / interval.timestep()));
    for (; k < interval.steps; ++k) {
      const auto fault =
          stepper.advance(ensemble, static_cast<std::uint64_t>(state.clock.step), result.statistics);
      if (fault) {
        return finish(RunStatus::NotFinite,
                      fmt::format("step {} from time {:.6g}, replica {}, particle {}: {}", state.clock.step,
                                  state.clock.time, fault->replica, fault->particle, fault->what));
      }
      state.clock = {state.clock.step + 1, interval.time(k + 1)};
      if (k + 1 == interval.steps) {
        if (const auto message = undefined_potential(model, ensemble))
          return finish(RunStatus::NotFinite, *message);
      }
      if (observe && k + 1 == interval.steps) observe(state.clock, state);
      if (stop && state.clock.time < times.back()) {
        if (const auto status = stop(state.clock)) {
          return finish(*status, fmt::format("stopped at time {:.6g} before the end", state.clock.time));
        }
      }
    }
  }
  return finish(RunStatus::Completed, "");
}

}  // namespace rieszflow::particle
