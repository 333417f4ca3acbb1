#include "solvers/pde/evolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "core/expects.hpp"
#include "solvers/pde/stepper.hpp"

namespace rieszflow::pde {
namespace {

bool is_attractive_and_singular(const Interaction& interaction) {
  if (const auto* riesz = std::get_if<RieszInteraction>(&interaction)) {
    return is_singular(interaction) && riesz->strength < 0.0;
  }
  if (const auto* logarithmic = std::get_if<LogarithmicInteraction>(&interaction)) {
    return is_singular(interaction) && logarithmic->strength < 0.0;
  }
  return false;
}

double largest_cell_mass(const MeanField& field, std::span<const double> averages) {
  const std::span<const double> volumes = field.volumes();
  double largest = 0.0;
  for (std::size_t i = 0; i < averages.size(); ++i) {
    largest = std::max(largest, averages[i] * (volumes.empty() ? field.grid().cell_volume() : volumes[i]));
  }
  return largest;
}

/// Sums that make up F are exact to a few units in the last place of their largest part.
double round_off(const FreeEnergy& energy, double inverse_temperature) {
  return 1e-13 * (1.0 + std::abs(energy.potential_energy) + std::abs(energy.interaction_energy) +
                  std::abs(energy.entropy / inverse_temperature));
}

}  // namespace

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

bool all_non_negative(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value >= 0.0; });
}

Trial verdict(double error, double allowed, double growth_order) {
  const double factor = 0.9 * std::pow(allowed / std::max(error, 1e-300), 1.0 / growth_order);
  if (!(error <= allowed)) return {Refusal::Error, std::clamp(factor, 0.1, 0.9)};
  return {Refusal::None, std::clamp(factor, 0.5, 4.0)};
}

Workspace::Workspace(const MeanField& mean_field)
    : field(mean_field),
      fluxes(mean_field.grid(), mean_field.model().inverse_temperature, mean_field.threads(),
             mean_field.ranks()),
      potential(mean_field.grid().cell_count()),
      trial(potential.size()),
      trial_potential(potential.size()) {}

double Workspace::effective_potential(std::span<const double> averages, std::span<double> out) const {
  const double energy = field.interaction_potential(averages, out);
  const std::span<const double> external = field.external_potential();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += external[i];
  return energy;
}

std::string_view name(Scheme scheme) {
  switch (scheme) {
    case Scheme::SemiImplicit:
      return "semi_implicit";
    case Scheme::LimitedSemiImplicit:
      return "semi_implicit_limited";
    case Scheme::EnergyStable:
      return "energy_stable";
    case Scheme::StabilisedExplicit:
      return "stabilised_explicit";
    case Scheme::MethodOfLines:
      return "method_of_lines";
    case Scheme::SecondOrderUpwind:
      return "upwind";
  }
  return "unknown";
}

std::string_view description(Scheme scheme) {
  switch (scheme) {
    case Scheme::SemiImplicit:
      return "implicit Scharfetter-Gummel steps, potential frozen over a step, extrapolated";
    case Scheme::LimitedSemiImplicit:
      return "the same with limited fluxes: second order also where the drift of a cell exceeds its "
             "diffusion";
    case Scheme::EnergyStable:
      return "implicit in the interaction too: F decreases for every timestep and interaction";
    case Scheme::StabilisedExplicit:
      return "explicit Runge-Kutta-Chebyshev steps, as many stages as the stiffness needs";
    case Scheme::MethodOfLines:
      return "explicit Dormand-Prince 5(4) (Boost.Odeint): an independent reference on coarse grids";
    case Scheme::SecondOrderUpwind:
      return "limited upwind fluxes, Heun: inverse_temperature = inf only";
  }
  return "unknown";
}

std::span<const Scheme> schemes() {
  static constexpr std::array all{Scheme::SemiImplicit,  Scheme::LimitedSemiImplicit,
                                  Scheme::EnergyStable,  Scheme::StabilisedExplicit,
                                  Scheme::MethodOfLines, Scheme::SecondOrderUpwind};
  return all;
}

Result run(const MeanField& field, State& state, const Options& options, const Schedule& schedule,
           const Observer<State>& observe, const StopRule& stop) {
  expects(state.density.averages.size() == field.grid().cell_count(),
          "the density lives on the grid of the field");
  expects(options.timestep >= 0.0 && options.tolerance > 0.0, "a timestep >= 0 and a tolerance > 0");
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<double>& times = schedule.times();
  const double beta = field.model().inverse_temperature;
  const double smallest_timestep = 1e-12 * std::max(times.back() - times.front(), 1e-300);
  const bool adaptive = options.timestep == 0.0;
  const bool may_concentrate = std::any_of(field.model().interactions.begin(),
                                           field.model().interactions.end(), is_attractive_and_singular);
  const double concentration = std::ldexp(1.0, -static_cast<int>(field.grid().dimension()) - 1);

  Result result;
  const auto finish = [&](RunStatus status, std::string message) {
    result.status = status;
    result.message = std::move(message);
    result.last_good = state.clock;
    result.statistics.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
  };

  Workspace work(field);
  Options resolved = options;
  if (!resolved.scheme && std::isinf(beta)) resolved.scheme = Scheme::SecondOrderUpwind;
  const bool is_implicit = !resolved.scheme || *resolved.scheme == Scheme::SemiImplicit ||
                           *resolved.scheme == Scheme::LimitedSemiImplicit ||
                           *resolved.scheme == Scheme::EnergyStable;
  const std::unique_ptr<Stepper> stepper =
      is_implicit ? implicit_stepper(work, resolved) : explicit_stepper(work, resolved);
  double interaction_energy = 0.0;

  std::vector<double>& averages = state.density.averages;
  interaction_energy = work.effective_potential(averages, work.potential);
  state.diagnostics.energy = field.free_energy(averages, interaction_energy);
  if (!all_finite(work.potential) || !all_finite(averages) ||
      !std::isfinite(state.diagnostics.energy.free_energy)) {
    return finish(RunStatus::NotFinite, "the density or its potential V + W*rho is not finite at the start");
  }
  if (!all_non_negative(averages))
    return finish(RunStatus::LostPositivity, "the density is negative at the start");

  // The trial potential is free once a step is accepted.
  const auto diagnose = [&] {
    state.diagnostics.dissipation = stepper->dissipation(work, averages, work.trial_potential);
  };
  diagnose();
  if (adaptive && !(state.next_timestep > 0.0)) {
    // One thousandth of the mass moves in the first step.
    work.fluxes.rate_of_change(work.potential, averages, work.trial);
    const double volume = field.grid().cell_volume();
    double rate = 0.0;
    for (const double change : work.trial) rate += std::abs(change) * volume;
    state.next_timestep = std::min(times.back() - times.front(), 1e-3 / std::max(rate, 1e-300));
  }

  for (std::size_t k = 0; k < times.size(); ++k) {
    const double target = times[k];
    if (target < state.clock.time || (target == state.clock.time && state.clock.step > 0)) continue;
    // Fixed timestep: the whole interval is divided, also when the run resumes inside it.
    const double interval_start = k > 0 ? times[k - 1] : state.clock.time;
    double fixed_timestep = 0.0;
    std::int64_t step_of_interval = 0;
    bool on_plan = !adaptive;
    if (!adaptive && target > interval_start) {
      const double interval = target - interval_start;
      fixed_timestep = interval / std::max(1.0, std::ceil(interval / options.timestep * (1.0 - 1e-12)));
      const double steps_done = std::round((state.clock.time - interval_start) / fixed_timestep);
      step_of_interval = static_cast<std::int64_t>(steps_done);
      on_plan = state.clock.time == interval_start + steps_done * fixed_timestep;
    }
    bool retry = false;
    double refused_timestep = 0.0;
    while (state.clock.time < target) {
      const double remaining = target - state.clock.time;
      double planned = adaptive ? state.next_timestep : fixed_timestep;
      if (retry) planned = refused_timestep;
      double timestep = planned;
      bool lands = false;
      if (timestep >= remaining * (1.0 - 1e-10)) {
        timestep = remaining;
        lands = true;
      } else if (adaptive && timestep > 0.5 * remaining) {
        timestep = 0.5 * remaining;
      }

      work.trial_potential_known = false;
      Trial trial = stepper->attempt(work, averages, timestep, adaptive);
      FreeEnergy energy;
      if (trial.refusal == Refusal::None) {
        interaction_energy = work.trial_potential_known
                                 ? work.trial_interaction_energy
                                 : work.effective_potential(work.trial, work.trial_potential);
        energy = field.free_energy(work.trial, interaction_energy);
        if (!std::isfinite(energy.free_energy)) {
          trial = {Refusal::NotFinite, 0.25};
        } else if (energy.free_energy >
                   state.diagnostics.energy.free_energy + round_off(state.diagnostics.energy, beta)) {
          trial = {Refusal::Energy, 0.5};
        }
      }
      if (trial.refusal != Refusal::None) {
        Statistics& count = result.statistics;
        ++(trial.refusal == Refusal::Error      ? count.rejected_error
           : trial.refusal == Refusal::Energy   ? count.rejected_energy
           : trial.refusal == Refusal::Unsolved ? count.rejected_solve
                                                : count.rejected_state);
        refused_timestep = timestep * trial.growth;
        retry = true;
        if (refused_timestep < smallest_timestep) {
          const std::string where =
              fmt::format("at time {:.6g}, timestep {:.2g}", state.clock.time, timestep);
          switch (trial.refusal) {
            case Refusal::None:
              break;
            case Refusal::Error:
              return finish(RunStatus::NotConverged, "the error stays above the tolerance " + where);
            case Refusal::Energy:
              return finish(RunStatus::NotConverged, "the free energy does not decrease " + where);
            case Refusal::Unsolved:
              return finish(RunStatus::NotConverged, "the implicit equation is not solved " + where);
            case Refusal::NotFinite:
              return finish(RunStatus::NotFinite, "the density does not stay finite " + where);
            case Refusal::Negative:
              return finish(RunStatus::LostPositivity, "the density does not stay positive " + where);
          }
        }
        continue;
      }

      const double heaviest_before = may_concentrate ? largest_cell_mass(field, averages) : 0.0;
      averages.swap(work.trial);
      work.potential.swap(work.trial_potential);
      const double earlier_dissipation = state.diagnostics.dissipation;
      diagnose();
      state.energy_defect += energy.free_energy - state.diagnostics.energy.free_energy +
                             0.5 * timestep * (earlier_dissipation + state.diagnostics.dissipation);
      state.diagnostics.energy = energy;
      ++state.clock.step;
      ++step_of_interval;
      ++result.statistics.accepted;
      if (work.limited) ++result.statistics.limited;
      on_plan = on_plan && !retry;
      state.clock.time = lands     ? target
                         : on_plan ? interval_start + static_cast<double>(step_of_interval) * fixed_timestep
                                   : state.clock.time + timestep;
      if (adaptive) {
        // A step cut short by an output time says nothing against the planned one.
        const double suggestion = timestep * (retry ? std::min(1.0, trial.growth) : trial.growth);
        state.next_timestep =
            timestep < planned ? std::max(suggestion, std::min(planned, 4.0 * timestep)) : suggestion;
      }
      retry = false;
      if (may_concentrate) {
        const double heaviest = largest_cell_mass(field, averages);
        if (heaviest > concentration && heaviest > heaviest_before) {
          return finish(
              RunStatus::Concentrated,
              fmt::format(
                  "one cell holds {:.0f} % of the mass at time {:.6g}: the attraction is stronger than "
                  "the diffusion and the grid no longer resolves the density",
                  100.0 * heaviest, state.clock.time));
        }
      }
      if (state.clock.time < target) {
        if (const auto status = agreed(field.ranks(), stop, state.clock))
          return finish(*status, fmt::format("stopped at time {:.6g}", state.clock.time));
      }
    }
    if (observe) observe(state.clock, state);
    if (state.clock.step > 0) {
      if (const auto status = agreed(field.ranks(), stop, state.clock))
        return finish(*status, fmt::format("stopped at time {:.6g}", state.clock.time));
    }
  }
  return finish(RunStatus::Completed, "");
}

}  // namespace rieszflow::pde
