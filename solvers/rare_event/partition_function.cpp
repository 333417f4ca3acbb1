#include "solvers/rare_event/partition_function.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <variant>

#include "core/expects.hpp"
#include "model/quadrature.hpp"
#include "solvers/rare_event/ladder.hpp"
#include "solvers/rare_event/replicates.hpp"
#include "solvers/rare_event/reweighting.hpp"

namespace rieszflow::rare_event {
namespace {

constexpr std::size_t most_rungs = 2000;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double observed_energy(const GibbsChain& chain) { return chain.interaction_energy(); }

/// integral of exp(-beta (V - shift)) over the axes from `axis` on.
double nested_integral(const Model& model, const Box& box, const Ball* ball, const QuadratureRule& rule,
                       std::size_t panels, std::size_t axis, std::vector<double>& point, double shift) {
  const std::size_t d = point.size();
  double lower = box.lower[axis], upper = box.upper[axis];
  if (ball != nullptr) {
    double square = ball->radius * ball->radius;
    for (std::size_t k = 0; k < axis; ++k) square -= std::pow(point[k] - ball->center[k], 2);
    const double half = std::sqrt(std::max(square, 0.0));
    lower = ball->center[axis] - half;
    upper = ball->center[axis] + half;
  }
  // x = middle + half sin(theta) on a ball: the chord of the next axis closes like a cosine, smooth in theta.
  const double middle = 0.5 * (lower + upper), half = 0.5 * (upper - lower);
  double sum = 0.0;
  for (std::size_t panel = 0; panel < panels; ++panel) {
    for (std::size_t q = 0; q < rule.nodes.size(); ++q) {
      const double u = 2.0 * (static_cast<double>(panel) + rule.nodes[q]) / static_cast<double>(panels) - 1.0;
      double weight = 2.0 * rule.weights[q] / static_cast<double>(panels);
      if (ball != nullptr) {
        const double theta = 0.5 * std::numbers::pi * u;
        point[axis] = middle + half * std::sin(theta);
        weight *= 0.5 * std::numbers::pi * half * std::cos(theta);
      } else {
        point[axis] = middle + half * u;
        weight *= half;
      }
      sum +=
          weight * (axis + 1 == d ? std::exp(-model.inverse_temperature * (potential(model, point) - shift))
                                  : nested_integral(model, box, ball, rule, panels, axis + 1, point, shift));
    }
  }
  return sum;
}

}  // namespace

Box essential_box(const Model& model) {
  const std::size_t d = dimension(model.domain);
  std::vector<double> point(d, 0.0);
  Box box{std::vector<double>(d), std::vector<double>(d)};
  for (std::size_t k = 0; k < d; ++k) {
    double lowest = std::numeric_limits<double>::infinity();
    int where = 0;
    for (int i = -400; i <= 400; ++i) {
      point[k] = 0.05 * i;
      const double v = potential(model, point);
      if (v < lowest) lowest = v, where = i;
    }
    if (where == -400 || where == 400) return {};
    for (const double sign : {-1.0, 1.0}) {
      double reach = std::max(0.25, 0.05 * std::abs(where));
      const auto high = [&](double r) {
        point[k] = sign * r;
        return model.inverse_temperature * (potential(model, point) - lowest) > 60.0;
      };
      while (reach < 1e6 && !(high(reach) && high(1.1 * reach) && high(1.5 * reach) && high(4.0 * reach)))
        reach *= 1.1;
      if (reach >= 1e6) return {};
      (sign > 0.0 ? box.upper : box.lower)[k] = sign * reach;
    }
    point[k] = 0.0;
  }
  return box;
}

std::optional<Model> bounded(Model model) {
  if (!std::holds_alternative<WholeSpace>(model.domain)) return model;
  Box box = essential_box(model);
  if (box.lower.empty()) return std::nullopt;
  model.domain = std::move(box);
  return model;
}

double log_one_particle_integral(const Model& model) {
  const bool whole = std::holds_alternative<WholeSpace>(model.domain);
  if (model.potentials.empty()) return whole ? not_a_number : std::log(volume(model.domain));
  const std::size_t d = dimension(model.domain);
  expects(d <= 3, "an integral over at most three coordinates");
  const Box box = whole ? essential_box(model) : bounding_box(model.domain);
  if (box.lower.empty()) return not_a_number;
  const QuadratureRule rule = gauss_legendre(16);
  const std::size_t panels = d == 1 ? 64 : d == 2 ? 12 : 4;
  std::vector<double> point(d);
  for (std::size_t k = 0; k < d; ++k) point[k] = 0.5 * (box.lower[k] + box.upper[k]);
  double shift = potential(model, point);
  const double sum =
      nested_integral(model, box, std::get_if<Ball>(&model.domain), rule, panels, 0, point, shift);
  return std::log(sum) - model.inverse_temperature * shift;
}

PartitionFunction partition_function(const Model& model, std::size_t particle_count,
                                     const PartitionOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const double n = static_cast<double>(particle_count), beta = model.inverse_temperature;
  PartitionFunction result;
  const auto failed = [&](RunStatus status, std::string message) {
    result.status = status;
    result.message = std::move(message);
    result.log_partition = result.standard_error = not_a_number;
    return result;
  };
  const double free_part = n * log_one_particle_integral(model);
  if (!std::isfinite(free_part))
    return failed(RunStatus::NotFinite, "the potential does not confine one particle");
  if (model.interactions.empty() && model.functionals.empty()) {
    result.log_partition = free_part;
    result.replicate_values = {free_part};
    return result;
  }

  const auto chain_of = [&](std::uint64_t stream) {
    return GibbsChain(model, particle_count, nullptr, options.seed, stream);
  };
  const bool reweighting = options.method == PartitionMethod::Reweighting;
  std::vector<Rung> rungs;
  std::vector<double> weights;  // of the nodes of Thermodynamic
  GibbsChain pilot = chain_of(0);
  pilot.scatter();
  const std::int64_t pilot_sweeps = std::clamp<std::int64_t>(options.sweeps / 10, 300, 2000);
  const auto add_rung = [&](double coupling) {
    pilot.coupling = coupling;
    rungs.push_back(settle(pilot, pilot_sweeps, observed_energy));
    rungs.back().reduced = {.tilt = -beta * coupling};
    return beta * n * rungs.back().standard_deviation;
  };
  if (reweighting) {
    for (double coupling = 0.0;;) {
      const double deviation = add_rung(coupling);
      if (!std::isfinite(deviation)) return failed(RunStatus::NotFinite, "an energy is not finite");
      if (coupling == 1.0) break;
      if (rungs.size() == most_rungs)
        return failed(RunStatus::NotConverged, "the couplings do not reach one");
      coupling = std::min(1.0, coupling + options.spacing / std::max(deviation, 1e-300));
    }
  } else {
    const QuadratureRule rule = gauss_legendre(options.nodes);
    for (std::size_t q = 0; q < options.nodes; ++q) {
      const double mu = rule.nodes[q];
      add_rung(mu * mu * mu);
      weights.push_back(rule.weights[q] * 3.0 * mu * mu);
    }
  }
  result.moves = pilot.moves();
  LadderSamples samples = sample(rungs, chain_of, observed_energy,
                                 {.replicates = options.replicates,
                                  .sweeps = options.sweeps,
                                  .threads = options.threads,
                                  .interrupted = options.interrupted});
  result.moves += samples.moves;
  if (samples.interrupted) return failed(RunStatus::Interrupted, "interrupted");
  if (!samples.finite) return failed(RunStatus::NotFinite, "a chain reached an infinite energy");

  result.mean_energies.assign(rungs.size(), 0.0);
  for (std::size_t k = 0; k < rungs.size(); ++k) result.couplings.push_back(rungs[k].coupling);
  for (const auto& replicate : samples.samples) {
    double integral = 0.0;
    for (std::size_t k = 0; k < rungs.size(); ++k) {
      double energy = 0.0;
      for (const double value : replicate[k].values) energy += value / static_cast<double>(options.sweeps);
      result.mean_energies[k] += energy / static_cast<double>(options.replicates);
      if (!reweighting) integral += weights[k] * energy;
    }
    if (!reweighting) result.replicate_values.push_back(free_part - beta * n * integral);
  }
  if (reweighting) {
    for (const Reweighting& solved : reweight(samples, n, options.threads)) {
      if (solved.status != RunStatus::Completed) return failed(solved.status, solved.message);
      result.replicate_values.push_back(free_part -
                                        (solved.free_energies.back() - solved.free_energies.front()));
      for (const double overlap : solved.overlaps)
        result.least_overlap = std::min(result.least_overlap, overlap);
    }
  }
  double mean = 0.0, scatter = 0.0;
  const double count = static_cast<double>(options.replicates);
  for (const double value : result.replicate_values) mean += value / count;
  for (const double value : result.replicate_values) scatter += (value - mean) * (value - mean);
  result.log_partition = mean;
  result.standard_error =
      options.replicates > 1 ? std::sqrt(scatter / (count * (count - 1.0))) : not_a_number;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace rieszflow::rare_event
