#include "solvers/pde/evolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/numeric/odeint/stepper/controlled_runge_kutta.hpp>
#include <boost/numeric/odeint/stepper/generation.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_dopri5.hpp>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"
#include "solvers/pde/scharfetter_gummel.hpp"
#include "solvers/pde/upwind.hpp"

namespace rieszflow::pde {
namespace {

/// Why a trial step was refused.
enum class Refusal { None, Error, Energy, NotFinite, Negative };

/// A trial step from the current density, which it does not change.
struct Trial {
  Refusal refusal = Refusal::None;
  double growth = 1.0;  ///< factor by which the next timestep may differ
};

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

bool all_non_negative(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value >= 0.0; });
}

/// Sums over cells that the extrapolation needs; y = two half steps, x = one step, rho = the start.
struct Changes {
  double gain = 0.0;   ///< integral of (y - x)+
  double loss = 0.0;   ///< integral of (y - x)-
  double cut = 0.0;    ///< how far y - x lies below -y/2
  double moved = 0.0;  ///< integral of |y - rho|
};

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
Changes
changes(const double* y, const double* x, const double* rho, const double* volumes, double cell_volume,
        std::size_t count) {
  double gain = 0.0, loss = 0.0, cut = 0.0, moved = 0.0;
  if (volumes == nullptr) {
#pragma omp simd reduction(+ : gain, loss, cut, moved)
    for (std::size_t i = 0; i < count; ++i) {
      const double change = y[i] - x[i], floor = -0.5 * y[i];
      gain += change > 0.0 ? change : 0.0;
      loss -= change < 0.0 ? change : 0.0;
      cut += change < floor ? floor - change : 0.0;
      moved += std::abs(y[i] - rho[i]);
    }
    return {gain * cell_volume, loss * cell_volume, cut * cell_volume, moved * cell_volume};
  }
#pragma omp simd reduction(+ : gain, loss, cut, moved)
  for (std::size_t i = 0; i < count; ++i) {
    const double change = y[i] - x[i], floor = -0.5 * y[i];
    gain += (change > 0.0 ? change : 0.0) * volumes[i];
    loss -= (change < 0.0 ? change : 0.0) * volumes[i];
    cut += (change < floor ? floor - change : 0.0) * volumes[i];
    moved += std::abs(y[i] - rho[i]) * volumes[i];
  }
  return {gain, loss, cut, moved};
}

/// y <- y + (y - x), a loss cut at y/2, gains times theta.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void extrapolate(double* __restrict y, const double* __restrict x, double theta, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double change = y[i] - x[i], floor = -0.5 * y[i];
    y[i] += change > 0.0 ? theta * change : (change > floor ? change : floor);
  }
}

/// The parts common to all schemes: the operator, the current effective potential, the trial state.
struct Workspace {
  const MeanField& field;
  ScharfetterGummel fluxes;
  std::vector<double> potential;        ///< Phi of the current density
  std::vector<double> trial;            ///< density of the trial step
  std::vector<double> trial_potential;  ///< its Phi
  double interaction_energy = 0.0;

  explicit Workspace(const MeanField& mean_field)
      : field(mean_field),
        fluxes(mean_field.grid(), mean_field.model().inverse_temperature, mean_field.threads()),
        potential(mean_field.grid().cell_count()),
        trial(potential.size()),
        trial_potential(potential.size()) {}

  /// out = V + W*rho; returns the interaction energy.
  double effective_potential(std::span<const double> averages, std::span<double> out) const {
    const double energy = field.interaction_potential(averages, out);
    const std::span<const double> external = field.external_potential();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += external[i];
    return energy;
  }
};

class Stepper {
 public:
  virtual ~Stepper() = default;
  /// Fills work.trial with the density a timestep later.
  virtual Trial attempt(Workspace& work, std::span<const double> averages, double timestep,
                        bool adaptive) = 0;
  /// - dF/dt of the semi-discretisation.
  virtual double dissipation(const Workspace& work, std::span<const double> averages) {
    return work.fluxes.dissipation(work.potential, averages);
  }
};

/// Equation: (4), Scharfetter-Gummel in space. Update: y1 = S(Phi(rho), tau) rho; z = S(Phi(rho), tau/2) rho;
/// y2 = S(Phi(z), tau/2) z; result y2 + theta (y2 - y1), theta = 1 (Richardson) except where that would take
/// more than half of a cell's mass: there it is cut, and the growth of the other cells is scaled so that mass
/// stays. Preserves mass, positivity, Gibbs states; order 2. Error estimate: |y2 - y1|_1.
class SemiImplicitStepper : public Stepper {
 public:
  explicit SemiImplicitStepper(const Workspace& work, double tolerance)
      : full_(work.trial.size()),
        half_(work.trial.size()),
        half_potential_(work.trial.size()),
        tolerance_(tolerance) {}

  Trial attempt(Workspace& work, std::span<const double> averages, double timestep, bool adaptive) override {
    work.fluxes.implicit_step(work.potential, timestep, averages, full_);
    work.fluxes.implicit_step(work.potential, 0.5 * timestep, averages, half_);
    work.effective_potential(half_, half_potential_);
    work.fluxes.implicit_step(half_potential_, 0.5 * timestep, half_, work.trial);
    const std::span<const double> volumes = work.field.volumes();
    const Changes sums =
        changes(work.trial.data(), full_.data(), averages.data(), volumes.empty() ? nullptr : volumes.data(),
                work.field.grid().cell_volume(), averages.size());
    const double theta = sums.cut > 0.0 && sums.gain > 0.0 ? std::max(0.0, 1.0 - sums.cut / sums.gain) : 1.0;
    extrapolate(work.trial.data(), full_.data(), theta, averages.size());
    const double error = sums.gain + sums.loss;
    if (!std::isfinite(error)) return {Refusal::NotFinite, 0.25};
    if (!adaptive) return {};
    // The estimate belongs to y2 and is O(tau^2); the result is one order better: error^(3/2) / tau models
    // its error per unit time. Near equilibrium that would allow any step; but where the frozen Phi
    // overshoots, y1 and y2 differ as much as they differ from rho, while for a linear decay their distance
    // is at most a tenth.
    const double allowed = std::min(std::pow(tolerance_ * timestep, 2.0 / 3.0), 0.25 * sums.moved + 1e-13);
    const double factor = 0.9 * std::pow(allowed / std::max(error, 1e-300), 0.75);
    if (error > allowed) return {Refusal::Error, std::clamp(factor, 0.1, 0.9)};
    return {Refusal::None, std::clamp(factor, 0.5, 4.0)};
  }

 private:
  std::vector<double> full_, half_, half_potential_;
  double tolerance_;
};

/// Equation: (4), Scharfetter-Gummel in space. Update: Dormand-Prince 5(4), controlled (Boost.Odeint).
/// Preserves mass; positivity and decay of F by refusing steps. Order 5. Reference: J. R. Dormand and P. J.
/// Prince (1980).
class MethodOfLinesStepper : public Stepper {
 public:
  explicit MethodOfLinesStepper(const Workspace& work, double tolerance)
      : potential_(work.trial.size()),
        stage_(work.trial.size()),
        error_(work.trial.size()),
        tolerance_(tolerance) {}

  Trial attempt(Workspace& work, std::span<const double> averages, double timestep, bool adaptive) override {
    const auto system = [&](const std::vector<double>& rho, std::vector<double>& rate, double) {
      work.effective_potential(rho, potential_);
      work.fluxes.rate_of_change(potential_, rho, rate);
    };
    stage_.assign(averages.begin(), averages.end());
    // A fresh stepper state per trial (no reuse of the last stage), so that a resumed run repeats every bit.
    formula_.reset();
    formula_.do_step(system, stage_, 0.0, timestep, error_);
    if (!all_finite(stage_)) return {Refusal::NotFinite, 0.25};
    if (!all_non_negative(stage_)) return {Refusal::Negative, 0.5};
    work.trial = stage_;
    if (!adaptive) return {};
    const double volume = work.field.grid().cell_volume();
    double error = 0.0;
    for (const double local : error_) error += std::abs(local) * volume;
    const double allowed = tolerance_ * timestep;
    const double factor = 0.9 * std::pow(allowed / std::max(error, 1e-300), 0.25);
    if (!(error <= allowed)) return {Refusal::Error, std::clamp(factor, 0.1, 0.9)};
    return {Refusal::None, std::clamp(factor, 0.5, 4.0)};
  }

 private:
  boost::numeric::odeint::runge_kutta_dopri5<std::vector<double>> formula_;
  std::vector<double> potential_, stage_, error_;
  double tolerance_;
};

/// Equation: (4) at beta = infinity, second-order upwind in space. Update: Heun, y = rho + tau (k1 + k2)/2: a
/// mean of Euler steps, each within the bound that keeps rho >= 0. Preserves mass and positivity; order 2.
/// Error estimate: tau |k2 - k1|_1 / 2. Reference: C.-W. Shu and S. Osher, J. Comput. Phys. 77 (1988).
class UpwindStepper : public Stepper {
 public:
  UpwindStepper(const Workspace& work, double tolerance)
      : fluxes_(work.field.grid()),
        first_(work.trial.size()),
        second_(work.trial.size()),
        stage_potential_(work.trial.size()),
        tolerance_(tolerance) {}

  Trial attempt(Workspace& work, std::span<const double> averages, double timestep, bool adaptive) override {
    const double longest = fluxes_.stable_timestep(work.potential);
    if (timestep > longest) return {Refusal::Negative, std::max(0.01, 0.9 * longest / timestep)};
    fluxes_.rate_of_change(work.potential, averages, first_);
    for (std::size_t i = 0; i < first_.size(); ++i) work.trial[i] = averages[i] + timestep * first_[i];
    if (!all_finite(work.trial)) return {Refusal::NotFinite, 0.25};
    work.effective_potential(work.trial, stage_potential_);
    if (timestep > fluxes_.stable_timestep(stage_potential_)) return {Refusal::Negative, 0.5};
    fluxes_.rate_of_change(stage_potential_, work.trial, second_);
    const std::span<const double> volumes = work.field.volumes();
    const double cell_volume = work.field.grid().cell_volume();
    double error = 0.0;
    for (std::size_t i = 0; i < first_.size(); ++i) {
      // The mean of rho and of an Euler step from the stage: both are >= 0.
      work.trial[i] = 0.5 * averages[i] + 0.5 * (work.trial[i] + timestep * second_[i]);
      error +=
          0.5 * timestep * std::abs(second_[i] - first_[i]) * (volumes.empty() ? cell_volume : volumes[i]);
    }
    if (!all_non_negative(work.trial)) return {Refusal::Negative, 0.5};
    if (!adaptive) return {};
    const double allowed = std::pow(tolerance_ * timestep, 2.0 / 3.0);
    const double factor = 0.9 * std::pow(allowed / std::max(error, 1e-300), 0.75);
    if (!(error <= allowed)) return {Refusal::Error, std::clamp(factor, 0.1, 0.9)};
    return {Refusal::None, std::min(std::clamp(factor, 0.5, 4.0), 0.9 * longest / timestep)};
  }

  double dissipation(const Workspace& work, std::span<const double> averages) override {
    return fluxes_.rate_of_change(work.potential, averages, first_);
  }

 private:
  SecondOrderUpwind fluxes_;
  std::vector<double> first_, second_, stage_potential_;
  double tolerance_;
};

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

std::string_view name(Scheme scheme) {
  switch (scheme) {
    case Scheme::SemiImplicit:
      return "semi_implicit";
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
      return "implicit Scharfetter-Gummel steps, potential frozen over a step, extrapolated: the default at "
             "finite beta";
    case Scheme::MethodOfLines:
      return "the same fluxes, explicit Dormand-Prince 5(4) (Boost.Odeint): an independent reference on "
             "coarse grids";
    case Scheme::SecondOrderUpwind:
      return "second-order upwind fluxes, Heun: sharper fronts, the default at beta = inf and only there";
  }
  return "unknown";
}

std::span<const Scheme> schemes() {
  static constexpr std::array all{Scheme::SemiImplicit, Scheme::MethodOfLines, Scheme::SecondOrderUpwind};
  return all;
}

Scheme automatic_scheme(const Model& model) {
  return std::isinf(model.inverse_temperature) ? Scheme::SecondOrderUpwind : Scheme::SemiImplicit;
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
  std::unique_ptr<Stepper> stepper;
  switch (options.scheme) {
    case Scheme::SemiImplicit:
      stepper = std::make_unique<SemiImplicitStepper>(work, options.tolerance);
      break;
    case Scheme::MethodOfLines:
      stepper = std::make_unique<MethodOfLinesStepper>(work, options.tolerance);
      break;
    case Scheme::SecondOrderUpwind:
      expects(std::isinf(beta), "the upwind scheme is for beta = infinity");
      stepper = std::make_unique<UpwindStepper>(work, options.tolerance);
      break;
  }

  std::vector<double>& averages = state.density.averages;
  work.interaction_energy = work.effective_potential(averages, work.potential);
  state.diagnostics.energy = field.free_energy(averages, work.interaction_energy);
  if (!all_finite(work.potential) || !all_finite(averages) ||
      !std::isfinite(state.diagnostics.energy.free_energy)) {
    return finish(RunStatus::NotFinite, "the density or its potential V + W*rho is not finite at the start");
  }
  if (!all_non_negative(averages))
    return finish(RunStatus::LostPositivity, "the density is negative at the start");

  const auto diagnose = [&] { state.diagnostics.dissipation = stepper->dissipation(work, averages); };
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

      Trial trial = stepper->attempt(work, averages, timestep, adaptive);
      FreeEnergy energy;
      double interaction_energy = 0.0;
      if (trial.refusal == Refusal::None) {
        interaction_energy = work.effective_potential(work.trial, work.trial_potential);
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
        ++(trial.refusal == Refusal::Error    ? count.rejected_error
           : trial.refusal == Refusal::Energy ? count.rejected_energy
                                              : count.rejected_state);
        refused_timestep = timestep * trial.growth;
        retry = true;
        if (refused_timestep < smallest_timestep) {
          diagnose();
          const std::string where =
              fmt::format("at time {:.6g}, timestep {:.2g}", state.clock.time, timestep);
          switch (trial.refusal) {
            case Refusal::None:
              break;
            case Refusal::Error:
              return finish(RunStatus::NotConverged, "the error stays above the tolerance " + where);
            case Refusal::Energy:
              return finish(RunStatus::NotConverged, "the free energy does not decrease " + where);
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
      work.interaction_energy = interaction_energy;
      state.diagnostics.energy = energy;
      ++state.clock.step;
      ++step_of_interval;
      ++result.statistics.accepted;
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
          diagnose();
          return finish(
              RunStatus::Concentrated,
              fmt::format(
                  "one cell holds {:.0f} % of the mass at time {:.6g}: the attraction is stronger than "
                  "the diffusion and the grid no longer resolves the density",
                  100.0 * heaviest, state.clock.time));
        }
      }
      if (stop && state.clock.time < target) {
        if (const auto status = stop(state.clock)) {
          diagnose();
          return finish(*status, fmt::format("stopped at time {:.6g}", state.clock.time));
        }
      }
    }
    diagnose();
    if (observe) observe(state.clock, state);
    if (stop && state.clock.step > 0) {
      if (const auto status = stop(state.clock))
        return finish(*status, fmt::format("stopped at time {:.6g}", state.clock.time));
    }
  }
  return finish(RunStatus::Completed, "");
}

}  // namespace rieszflow::pde
