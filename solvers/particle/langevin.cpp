#include "solvers/particle/langevin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

/// The ranks of one run. Alone, or where they share the pairs of every replica, each has the whole ensemble;
/// else its own replicas, which are gathered when somebody looks at them.
class Team {
 public:
  enum class Agreement { Fault, Look, GoOn };

  Team(ParticleEnsemble& whole, const Options& options)
      : whole_(whole),
        options_(options),
        ranks_(options.ranks),
        by_replica_(!ranks_.alone() && whole.replica_count >= ranks_.count()) {
    if (by_replica_) {
      const auto [begin, end] = ranks_.part(whole.replica_count);
      const std::size_t size = whole.particle_count * whole.dimension;
      first_replica_ = begin;
      mine_ = {.replica_count = end - begin,
               .particle_count = whole.particle_count,
               .dimension = whole.dimension,
               .positions = {whole.positions.begin() + static_cast<std::ptrdiff_t>(begin * size),
                             whole.positions.begin() + static_cast<std::ptrdiff_t>(end * size)}};
    } else if (!ranks_.alone()) {
      options_.summation.ranks = ranks_;
      options_.pair_sum = nullptr;  // a sum whose pairs are shared is for all ranks at once
    }
  }

  ParticleEnsemble& own() { return by_replica_ ? mine_ : whole_; }
  std::size_t first_replica() const { return first_replica_; }
  const Options& options() const { return options_; }

  /// What comes after a step. Alone, everybody looks at every state.
  Agreement after_step(const StepOutcome& fault, bool at_output) {
    if (ranks_.alone()) return fault ? Agreement::Fault : Agreement::Look;
    constexpr std::chrono::milliseconds patience(50);
    const auto now = std::chrono::steady_clock::now();
    const bool look = at_output || (ranks_.first() && now - looked_ > patience);
    const auto count = static_cast<std::int64_t>(whole_.replica_count);
    faulty_replica_ = ranks_.least(fault ? static_cast<std::int64_t>(first_replica_ + fault->replica)
                                         : count + (look ? 0 : 1));
    if (faulty_replica_ < count) return Agreement::Fault;
    if (faulty_replica_ > count) return Agreement::GoOn;
    looked_ = now;
    return Agreement::Look;
  }

  /// The whole ensemble, to everybody.
  void gather() {
    if (!by_replica_) return;
    const std::size_t size = whole_.particle_count * whole_.dimension;
    std::ranges::copy(mine_.positions,
                      whole_.positions.begin() + static_cast<std::ptrdiff_t>(first_replica_ * size));
    ranks_.gather(whole_.positions, size);
  }

  /// Of the fault in the first replica that has one.
  std::string text_of(const StepOutcome& fault) const {
    std::string text;
    const auto replica = fault ? first_replica_ + fault->replica : 0;
    const bool mine = fault && (!by_replica_ || static_cast<std::int64_t>(replica) == faulty_replica_);
    if (mine) text = fmt::format("replica {}, particle {}: {}", replica, fault->particle, fault->what);
    for (const std::string& other : ranks_.collect(text)) {
      if (!other.empty()) return other;
    }
    return text;
  }

  /// The moves of all replicas.
  void add_up(Statistics& statistics) const {
    if (!by_replica_) return;
    std::array sums{static_cast<double>(statistics.accepted), static_cast<double>(statistics.proposed),
                    static_cast<double>(statistics.substeps)};
    ranks_.add(sums);
    statistics.accepted = static_cast<std::int64_t>(sums[0]);
    statistics.proposed = static_cast<std::int64_t>(sums[1]);
    statistics.substeps = static_cast<std::int64_t>(sums[2]);
  }

 private:
  ParticleEnsemble& whole_;
  Options options_;
  const Ranks& ranks_;
  bool by_replica_;
  std::size_t first_replica_ = 0;
  ParticleEnsemble mine_{};  ///< of a rank that has its own replicas
  std::int64_t faulty_replica_ = 0;
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
};

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
  Team team(ensemble, options);
  Result result;
  const auto finish = [&](RunStatus status, std::string message) {
    team.add_up(result.statistics);
    result.status = status;
    result.message = std::move(message);
    result.last_good = state.clock;
    result.statistics.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return result;
  };

  if (observe && state.clock.time == times.front()) observe(state.clock, state);
  if (const auto message = hopeless_start(model, ensemble)) return finish(RunStatus::NotFinite, *message);

  Stepper stepper(model, team.own(), team.options(), 0, team.first_replica());
  for (std::size_t j = 0; j + 1 < times.size(); ++j) {
    if (state.clock.time >= times[j + 1]) continue;
    const Interval interval(times[j], times[j + 1], options.timestep);
    stepper.set_timestep(interval.timestep());
    auto k =
        static_cast<std::int64_t>(std::llround((state.clock.time - interval.start) / interval.timestep()));
    for (; k < interval.steps; ++k) {
      const bool at_output = k + 1 == interval.steps;
      const auto fault =
          stepper.advance(team.own(), static_cast<std::uint64_t>(state.clock.step), result.statistics);
      const Team::Agreement next = team.after_step(fault, at_output);
      if (next == Team::Agreement::Fault) {
        if (!fault) stepper.undo(team.own());
        team.gather();
        return finish(RunStatus::NotFinite, fmt::format("step {} from time {:.6g}, {}", state.clock.step,
                                                        state.clock.time, team.text_of(fault)));
      }
      state.clock = {state.clock.step + 1, interval.time(k + 1)};
      if (next == Team::Agreement::GoOn) continue;
      team.gather();
      if (at_output) {
        if (const auto message = undefined_potential(model, ensemble))
          return finish(RunStatus::NotFinite, *message);
        if (observe) observe(state.clock, state);
      }
      if (state.clock.time < times.back()) {
        if (const auto status = agreed(options.ranks, stop, state.clock)) {
          return finish(*status, fmt::format("stopped at time {:.6g} before the end", state.clock.time));
        }
      }
    }
  }
  return finish(RunStatus::Completed, "");
}

}  // namespace rieszflow::particle
