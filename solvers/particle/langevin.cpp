#include "solvers/particle/langevin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/expects.hpp"
#include "solvers/particle/stepper.hpp"

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
