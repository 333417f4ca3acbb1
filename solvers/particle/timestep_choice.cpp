#include "solvers/particle/timestep_choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <variant>
#include <vector>

#include "core/expects.hpp"
#include "solvers/particle/close_pairs.hpp"
#include "solvers/particle/stepper.hpp"

namespace rieszflow::particle {
namespace {

constexpr std::size_t pilot_coordinates = 8192, most_pilot_particles = 1024;
constexpr double most_steps = 2048;
constexpr double fewest_steps = 8;
constexpr int most_halvings = 20;
constexpr double most_close_neighbours = 2.5;
constexpr double close_pair_seconds = 2e-8;
constexpr std::uint64_t pilot_seed = 0x9e3779b97f4a7c15;  ///< added to the run's: the pilot shares no noise

ParticleEnsemble pilot_of(const ParticleEnsemble& start) {
  const PilotShape shape = pilot_shape(start.particle_count, start.dimension);
  ParticleEnsemble pilot{shape.replicas, shape.count, start.dimension, {}};
  const std::size_t size = pilot.particle_count * pilot.dimension;
  for (std::size_t r = 0; r < pilot.replica_count; ++r) {
    const auto from = start.replica(r % start.replica_count).first(size);
    pilot.positions.insert(pilot.positions.end(), from.begin(), from.end());
  }
  return pilot;
}

/// Time in which diffusion forgets the start; `end` where there is no such time.
double mixing_time(const Model& model, double end) {
  if (std::isinf(model.inverse_temperature) || std::holds_alternative<WholeSpace>(model.domain)) return end;
  const Box box = bounding_box(model.domain);
  double longest = 0.0;
  for (std::size_t k = 0; k < box.lower.size(); ++k) longest = std::max(longest, box.upper[k] - box.lower[k]);
  return std::min(end, model.inverse_temperature * std::pow(longest / std::numbers::pi, 2));
}

/// Of each replica: mean of |x - center|^2, added to `sums`.
void add_spreads(const ParticleEnsemble& ensemble, std::span<const double> center,
                 std::vector<double>& sums) {
  const std::size_t d = ensemble.dimension;
  for (std::size_t r = 0; r < ensemble.replica_count; ++r) {
    const auto x = ensemble.replica(r);
    double sum = 0.0;
    for (std::size_t at = 0; at < x.size(); ++at) sum += std::pow(x[at] - center[at % d], 2);
    sums[r] += sum / static_cast<double>(ensemble.particle_count);
  }
}

/// The ensembles of a pilot and what they may cost.
struct Pilot {
  const Model& model;
  const ParticleEnsemble& start;
  const Options& options;
  std::vector<double> center;
  double step_seconds;  ///< of all replicas, without close pairs
  double seconds = 0.0;

  Pilot(const Model& of, const ParticleEnsemble& particles, const Options& with)
      : model(of),
        start(particles),
        options(with),
        center(particles.dimension, 0.0),
        step_seconds(static_cast<double>(start.replica_count) *
                     PairSum::expected_cost(model, start.particle_count, options.summation).seconds) {
    for (std::size_t at = 0; at < start.positions.size(); ++at)
      center[at % start.dimension] += start.positions[at] * static_cast<double>(start.dimension) /
                                      static_cast<double>(start.positions.size());
  }

  /// Time averages of the spreads over the later half of `steps` steps; empty when a step fails or the work
  /// runs out.
  std::vector<double> spreads(double timestep, std::int64_t steps, int coarsening) {
    ParticleEnsemble ensemble = start;
    Stepper stepper(model, ensemble, options, coarsening);
    stepper.set_timestep(timestep);
    std::vector<double> sums(ensemble.replica_count, 0.0);
    Statistics statistics;
    // Both ensembles are averaged over the same instants, the ends of whole coarse steps.
    const std::int64_t stride = coarsening == 0 ? 2 : 1;
    const double before = seconds;
    double count = 0.0;
    for (std::int64_t step = 0; step < steps; ++step) {
      if (stepper.advance(ensemble, static_cast<std::uint64_t>(step), statistics)) return {};
      seconds = before + step_seconds * static_cast<double>(step + 1) +
                close_pair_seconds * static_cast<double>(statistics.close_pairs);
      if (seconds > most_pilot_seconds) return {};
      if ((step + 1) % stride != 0 || 2 * (step + 1) <= steps) continue;
      add_spreads(ensemble, center, sums);
      count += 1.0;
    }
    for (double& sum : sums) sum /= count;
    return sums;
  }

  /// What the first step of this length takes, close pairs included.
  double seconds_of_step(double timestep) {
    const double before = seconds;
    spreads(timestep, 1, 1);
    return seconds - before;
  }

  /// True when a step leaves close pairs in clusters of a few, in a cloud that fills its domain, or without
  /// walls two deviations to each side.
  bool is_sparse(const ClosePairs& pairs, double timestep) const {
    if (options.scheme != Scheme::Reflected) return true;
    double room = 1.0;
    if (std::holds_alternative<WholeSpace>(model.domain)) {
      std::vector<double> squares(start.dimension, 0.0);
      for (std::size_t at = 0; at < start.positions.size(); ++at)
        squares[at % start.dimension] += std::pow(start.positions[at] - center[at % start.dimension], 2);
      const auto count = static_cast<double>(start.positions.size() / start.dimension);
      for (const double square : squares) room *= 4.0 * std::sqrt(square / count);
    } else {
      room = volume(model.domain);
    }
    return !(room > 0.0) || pairs.crowding(timestep, room) <= most_close_neighbours;
  }
};

/// The first replicas, as many as a budget of seconds pays for, at least `fewest`.
void keep_affordable(ParticleEnsemble& pilot, double budget, double seconds_of_one, std::size_t fewest) {
  const double affordable = std::min(budget / seconds_of_one, static_cast<double>(pilot.replica_count));
  pilot.replica_count = std::max(std::min(fewest, pilot.replica_count), static_cast<std::size_t>(affordable));
  pilot.positions.resize(pilot.replica_count * pilot.particle_count * pilot.dimension);
}

TimestepChoice by_halving(const Model& model, ParticleEnsemble start, const Options& options, double longest,
                          double end, double accuracy) {
  keep_affordable(
      start, 0.25 * most_pilot_seconds,
      3.0 * fewest_steps * PairSum::expected_cost(model, start.particle_count, options.summation).seconds, 2);
  Pilot pilot(model, start, options);
  const ClosePairs pairs(model, start.particle_count, options.seed);
  const double order = options.scheme == Scheme::Projected ? Projected::weak_order : Reflected::weak_order;
  const double share = 1.0 / (std::exp2(order) - 1.0), mixing = mixing_time(model, end);
  const double shortest = std::ldexp(longest, -most_halvings);
  TimestepChoice choice;
  double step = longest;
  while (step > mixing / 8.0 || (step > 2.0 * shortest && !pilot.is_sparse(pairs, step))) step *= 0.5;
  for (; step >= shortest; step *= 0.5) {
    // Where close pairs make the fewest steps too dear, shorter ones have fewer of them.
    const double seconds = pilot.seconds_of_step(step),
                 affordable = std::floor(0.25 * most_pilot_seconds / (3.0 * seconds));
    if (affordable < fewest_steps && seconds > 2.0 * pilot.step_seconds) continue;
    const auto steps = static_cast<std::int64_t>(
        std::min({most_steps / 2.0, std::max(fewest_steps, affordable), std::ceil(mixing / step)}));
    const double left = most_pilot_seconds - pilot.seconds;
    if (3.0 * static_cast<double>(steps) * seconds > left && choice.measured > 0.0) break;
    const auto coarse = pilot.spreads(step, steps, 1);
    const auto fine = pilot.spreads(0.5 * step, 2 * steps, 0);
    choice.seconds = pilot.seconds;
    if (choice.measured == 0.0) choice.timestep = 0.5 * step;
    if (pilot.seconds > most_pilot_seconds) break;
    choice.sweeps += 3 * steps;
    choice.timestep = 0.5 * step;
    if (coarse.empty() || fine.empty()) continue;
    const auto count = static_cast<double>(fine.size());
    double scale = 0.0, mean = 0.0, square = 0.0;
    for (std::size_t r = 0; r < fine.size(); ++r) {
      scale += fine[r] / count;
      mean += (coarse[r] - fine[r]) / count;
    }
    for (std::size_t r = 0; r < fine.size(); ++r) square += std::pow(coarse[r] - fine[r] - mean, 2);
    const double error = std::sqrt(square / (count * (count - 1.0)));
    choice.measured = scale > 0.0 ? share * (std::abs(mean) + 2.0 * error) / scale : 0.0;
    if (choice.measured <= accuracy) {
      choice.reached = true;
      return choice;
    }
  }
  if (step >= shortest && choice.measured > 0.0) {
    choice.timestep *= std::pow(accuracy / choice.measured, 1.0 / order);
    choice.measured = accuracy;
    choice.reached = choice.extrapolated = true;
  }
  return choice;
}

TimestepChoice by_acceptance(const Model& model, ParticleEnsemble pilot, const Options& options,
                             double longest, double end) {
  // A sweep sums over the row of each moved particle twice.
  const double sweep_seconds =
      4.0 * PairSum::expected_cost(model, pilot.particle_count, {.method = PairSum::Method::Direct}).seconds;
  keep_affordable(pilot, 0.5 * most_pilot_seconds, static_cast<double>(mala_warm_up_sweeps) * sweep_seconds,
                  1);
  TimestepChoice choice{.sweeps = mala_warm_up_sweeps, .reached = true};
  // Steps beyond the time in which diffusion mixes the domain propose nothing new.
  const double largest = std::min(longest, mixing_time(model, end));
  double log_step = std::log(0.1 * largest), later = 0.0, accepted = 0.0;
  for (std::int64_t sweep = 0; sweep < mala_warm_up_sweeps; ++sweep) {
    Stepper stepper(model, pilot, options);
    stepper.set_timestep(std::exp(log_step));
    Statistics statistics;
    const bool failed = stepper.advance(pilot, static_cast<std::uint64_t>(sweep), statistics).has_value();
    const double acceptance = failed ? 0.0 : statistics.acceptance();
    // Gains of Robbins and Monro, Ann. Math. Statist. 22 (1951) 400.
    log_step += 4.0 * (acceptance - mala_acceptance) / std::sqrt(1.0 + 0.1 * static_cast<double>(sweep));
    log_step = std::min(log_step, std::log(largest));
    if (2 * sweep < mala_warm_up_sweeps) continue;
    later += log_step;
    accepted += acceptance;
  }
  const double half = 0.5 * static_cast<double>(mala_warm_up_sweeps);
  choice.seconds = static_cast<double>(mala_warm_up_sweeps * pilot.replica_count) * sweep_seconds;
  choice.timestep = std::exp(later / half);
  choice.measured = accepted / half;
  return choice;
}

}  // namespace

PilotShape pilot_shape(std::size_t particle_count, std::size_t dimension) {
  const std::size_t count = std::min(particle_count, most_pilot_particles);
  return {std::max<std::size_t>(8, pilot_coordinates / (count * dimension)), count};
}

double longest_stable_timestep(const Model& model, Scheme scheme) {
  const double unknown = std::numeric_limits<double>::infinity();
  if (scheme == Scheme::Mala || !model.functionals.empty()) return unknown;
  double stiffness = 0.0, of_pairs = 0.0;
  for (const Potential& potential : model.potentials) {
    const auto* quadratic = std::get_if<QuadraticPotential>(&potential);
    if (quadratic == nullptr) return unknown;
    stiffness += quadratic->stiffness;
  }
  bool all_quadratic = true;
  for (const Interaction& interaction : model.interactions) {
    const auto* quadratic = std::get_if<QuadraticInteraction>(&interaction);
    all_quadratic = all_quadratic && quadratic != nullptr;
    if (quadratic != nullptr) of_pairs += quadratic->strength;
  }
  if (all_quadratic) stiffness += std::max(0.0, of_pairs);
  return stiffness > 0.0 ? 2.0 / stiffness : unknown;
}

TimestepChoice choose_timestep(const Model& model, const ParticleEnsemble& start, const Options& options,
                               double longest, double end, double accuracy) {
  expects(longest > 0.0 && end > 0.0 && accuracy > 0.0, "a longest step, a time and an accuracy");
  Options pilot_options = options;
  pilot_options.seed += pilot_seed;
  const ParticleEnsemble pilot = pilot_of(start);
  return options.scheme == Scheme::Mala ? by_acceptance(model, pilot, pilot_options, longest, end)
                                        : by_halving(model, pilot, pilot_options, longest, end, accuracy);
}

}  // namespace rieszflow::particle
