#include "solvers/rare_event/minimisers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "core/expects.hpp"
#include "core/noise.hpp"
#include "solvers/rare_event/gibbs_chain.hpp"
#include "summation/pair_sum.hpp"

namespace rieszflow::rare_event {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t memory = 10;  ///< values that a step may not exceed
constexpr double allowed_violation = 1e-9;
constexpr int most_multipliers = 60;

/// H_N, and N times its negative gradient; with an event the augmented Lagrangian of depth(g) >= 0,
/// H_N + (max(0, multiplier - penalty depth)^2 - multiplier^2) / (2 penalty).
class Objective {
 public:
  Objective(const Model& model, std::size_t particle_count, const Statistic* statistic, const Event* event)
      : model_(model),
        count_(particle_count),
        statistic_(statistic),
        event_(event),
        pairs_(model, particle_count, {.threads = 1}) {}

  double penalty = 10.0;
  double multiplier = 0.0;  ///< of depth(g) >= 0

  double depth(std::span<const double> positions) const {
    return event_->depth(value(*statistic_, positions, count_));
  }

  double hamiltonian(std::span<const double> positions, std::span<double> forces) const {
    const double n = static_cast<double>(count_);
    const std::size_t d = positions.size() / count_;
    std::fill(forces.begin(), forces.end(), 0.0);
    double energy = 0.0;
    pairs_.add_forces(positions, 1, forces, {&energy, 1});
    for (std::size_t i = 0; i < count_; ++i) {
      energy += potential(model_, positions.subspan(i * d, d)) / n;
      add_potential_force(model_, positions.subspan(i * d, d), forces.subspan(i * d, d));
    }
    for (const auto& functional : model_.functionals)
      energy += functional->add_forces(positions, count_, 0, 0, forces);
    return energy;
  }

  double operator()(std::span<const double> positions, std::span<double> forces) const {
    double energy = hamiltonian(positions, forces);
    if (statistic_ == nullptr) return energy;
    const double g = value(*statistic_, positions, count_);
    const double pressure = std::max(0.0, multiplier - penalty * event_->depth(g));
    energy += 0.5 * (pressure * pressure - multiplier * multiplier) / penalty;
    // d(depth)/dg is +1 below the middle of the event and -1 above it.
    const double pull = pressure * (g - event_->lower < event_->upper - g ? 1.0 : -1.0);
    const std::size_t d = positions.size() / count_;
    std::vector<double> point(d);
    for (std::size_t i = 0; i < count_; ++i) {
      for (std::size_t k = 0; k < d; ++k) {
        std::copy_n(positions.begin() + static_cast<std::ptrdiff_t>(i * d), d, point.begin());
        const double h = 1e-6;
        double above = 0.0, below = 0.0;
        point[k] += h;
        statistic_->components(point, {&above, 1});
        point[k] -= 2.0 * h;
        statistic_->components(point, {&below, 1});
        forces[i * d + k] += pull * (above - below) / (2.0 * h);
      }
    }
    return energy;
  }

 private:
  const Model& model_;
  std::size_t count_;
  const Statistic* statistic_;
  const Event* event_;
  PairSum pairs_;
};

double largest(std::span<const double> values) {
  double result = 0.0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

/// Spectral projected gradients from `x`.
Minimiser descend(const Model& model, std::size_t particle_count, const Objective& objective,
                  std::vector<double> x, const MinimiserOptions& options) {
  const std::size_t d = dimension(model.domain);
  std::vector<double> forces(x.size()), trial(x.size()), trial_forces(x.size()), direction(x.size());
  Minimiser result;
  double energy = objective(x, forces);
  std::vector<double> recent{energy};
  double length = 1.0;
  const double scale = std::holds_alternative<WholeSpace>(model.domain)
                           ? 1.0
                           : bounding_box(model.domain).upper[0] - bounding_box(model.domain).lower[0];
  length = 0.1 * scale / std::max(largest(forces), 1e-300);
  const auto towards = [&](double step) {
    for (std::size_t i = 0; i < x.size(); ++i) trial[i] = x[i] + step * forces[i];
    for (std::size_t i = 0; i < particle_count; ++i)
      project(model.domain, std::span(trial).subspan(i * d, d));
  };
  for (int iteration = 0; iteration < options.iterations && std::isfinite(energy); ++iteration) {
    towards(1.0);
    for (std::size_t i = 0; i < x.size(); ++i) direction[i] = trial[i] - x[i];
    result.residual = largest(direction);
    if (result.residual <= options.tolerance * scale) {
      result.status = RunStatus::Completed;
      break;
    }
    towards(length);
    double slope = 0.0;
    const bool torus = std::holds_alternative<Torus>(model.domain);
    for (std::size_t i = 0; i < x.size(); ++i) {
      direction[i] = torus ? length * forces[i] : trial[i] - x[i];
      slope -= direction[i] * forces[i] / static_cast<double>(particle_count);
    }
    const double ceiling = *std::max_element(recent.begin(), recent.end());
    double step = 1.0, trial_energy = infinity;
    for (; step > 1e-20; step *= 0.5) {
      for (std::size_t i = 0; i < x.size(); ++i) trial[i] = x[i] + step * direction[i];
      if (torus) {
        for (std::size_t i = 0; i < particle_count; ++i)
          project(model.domain, std::span(trial).subspan(i * d, d));
      }
      trial_energy = objective(trial, trial_forces);
      if (trial_energy <= ceiling + 1e-4 * step * slope) break;
    }
    if (!(step > 1e-20)) {  // no descent to round-off
      result.status = result.residual <= 1e-7 * scale ? RunStatus::Completed : RunStatus::NotConverged;
      break;
    }
    double ss = 0.0, sy = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double s = step * direction[i], y = forces[i] - trial_forces[i];
      ss += s * s;
      sy += s * y;
    }
    length = sy > 0.0 ? std::clamp(ss / sy, 1e-14 * scale, 1e6 * scale) : 2.0 * length;
    x = trial;
    forces = trial_forces;
    energy = trial_energy;
    recent.push_back(energy);
    if (recent.size() > memory) recent.erase(recent.begin());
  }
  result.hamiltonian = objective.hamiltonian(x, trial_forces);
  result.positions = std::move(x);
  if (!std::isfinite(result.hamiltonian)) result.status = RunStatus::NotFinite;
  return result;
}

Minimisers solved(const Model& model, std::size_t particle_count, const Statistic* statistic,
                  const Event* event, const MinimiserOptions& options) {
  expects(options.starts > 0, "at least one start");
  Model annealed = model;
  if (!std::isfinite(annealed.inverse_temperature)) annealed.inverse_temperature = 1.0;
  std::vector<Minimiser> found(options.starts);
#pragma omp parallel for schedule(dynamic) num_threads(options.threads)
  for (std::size_t start = 0; start < options.starts; ++start) {
    GibbsChain chain(annealed, particle_count, statistic, options.seed, (1ULL << 48) + start);
    chain.scatter();
    for (int s = 0; s < 20; ++s) chain.sweep();
    Objective objective(model, particle_count, statistic, event);
    std::vector<double> positions(chain.positions().begin(), chain.positions().end());
    if (statistic == nullptr) {
      found[start] = descend(model, particle_count, objective, std::move(positions), options);
      continue;
    }
    double violation = infinity;
    for (int k = 0; k < most_multipliers; ++k) {
      found[start] = descend(model, particle_count, objective, positions, options);
      if (found[start].status != RunStatus::Completed) break;
      positions = found[start].positions;
      const double depth = objective.depth(positions);
      // Either the constraint is met with equality or it does not press.
      const double next = std::abs(std::min(depth, objective.multiplier / objective.penalty));
      objective.multiplier = std::max(0.0, objective.multiplier - objective.penalty * depth);
      if (next > 0.25 * violation) objective.penalty *= 4.0;
      violation = next;
      if (violation < allowed_violation) break;
    }
    if (!(violation < allowed_violation)) found[start].status = RunStatus::NotConverged;
  }
  Minimisers result;
  result.best.hamiltonian = infinity;
  for (const Minimiser& minimiser : found) {
    if (minimiser.status == RunStatus::Completed && minimiser.hamiltonian < result.best.hamiltonian)
      result.best = minimiser;
  }
  for (const Minimiser& minimiser : found) {
    result.agreeing +=
        minimiser.status == RunStatus::Completed && minimiser.hamiltonian < result.best.hamiltonian + 1e-8
            ? 1
            : 0;
  }
  result.status = result.best.status;
  return result;
}

}  // namespace

Minimisers minimise(const Model& model, std::size_t particle_count, const MinimiserOptions& options) {
  return solved(model, particle_count, nullptr, nullptr, options);
}

Minimisers minimise(const Model& model, std::size_t particle_count, const Statistic& statistic,
                    const Event& event, const MinimiserOptions& options) {
  expects(statistic.kind == Statistic::Kind::Mean, "a linear statistic");
  return solved(model, particle_count, &statistic, &event, options);
}

}  // namespace rieszflow::rare_event
