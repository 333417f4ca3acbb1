#include "experiments/convergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>

#include "analysis/discrepancy.hpp"
#include "analysis/distance.hpp"
#include "analysis/entropy.hpp"
#include "analysis/estimate.hpp"
#include "analysis/exact.hpp"
#include "analysis/extrapolation.hpp"
#include "analysis/histogram.hpp"
#include "core/expects.hpp"
#include "experiments/plan.hpp"
#include "model/description.hpp"
#include "model/mean_field.hpp"
#include "solvers/stationary/rate_function.hpp"
#include "summation/energy.hpp"

namespace rieszflow::convergence {
namespace {

using sweep::Json;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t jackknife_blocks = 20;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool is_distance(Quantity quantity) {
  for (const QuantityName& known : quantity_names()) {
    if (known.quantity == quantity) return known.distance;
  }
  return false;
}

std::string_view name_of(Quantity quantity) {
  for (const QuantityName& known : quantity_names()) {
    if (known.quantity == quantity) return known.name;
  }
  return "";
}

/// 0, then the times at which the quantity is read.
Schedule schedule_of(const Question& question) {
  const side_by_side::Question& base = question.base;
  std::vector<double> times{0.0};
  if (question.average_from) {
    const Schedule outputs = Schedule::every(base.output_every, 0.0, base.end);
    for (const double time : outputs.times()) {
      if (time > 0.0 && time >= *question.average_from && time < base.end) times.push_back(time);
    }
  }
  if (base.end > 0.0) times.push_back(base.end);
  return Schedule::at(std::move(times));
}

bool is_read(const Question& question, double time) {
  return time == question.base.end || (question.average_from && time >= *question.average_from);
}

// ---- density ----

struct DensityPath {
  RunStatus status = RunStatus::Completed;
  std::string message;
  std::vector<Density> densities;    ///< (time that is read)
  std::vector<FreeEnergy> energies;  ///< the same
};

DensityPath density_path(const Question& question, const side_by_side::Question& base,
                         const sweep::Workplace& workplace) {
  DensityPath path;
  const MeanField field(base.model, grid_on(base.model.domain, base.density->cells),
                        {.threads = workplace.threads, .weights = base.density->weights});
  pde::State state;
  state.density = cell_averages(base.initial, base.model.domain, field.grid());
  const auto observe = [&](const Clock& clock, const pde::State& now) {
    if (!is_read(question, clock.time)) return;
    path.densities.push_back(now.density);
    path.energies.push_back(now.diagnostics.energy);
  };
  const auto stop = [&](const Clock&) -> std::optional<RunStatus> {
    if (workplace.interrupted && workplace.interrupted()) return RunStatus::Interrupted;
    return std::nullopt;
  };
  const pde::Result result =
      pde::run(field, state, base.density->options, schedule_of(question), observe, stop);
  path.status = result.status;
  path.message = result.message;
  return path;
}

double value_of(const Question& question, const Density& density, const FreeEnergy& energy) {
  switch (question.quantity) {
    case Quantity::Mean:
      return mean(density)[0];
    case Quantity::SecondMoment:
      return second_moment(density);
    case Quantity::Linear: {
      const auto averages = stationary::cell_averages(
          density.grid, [&](std::span<const double> x) { return (*question.function)(x); });
      return stationary::value({.components = {averages}}, density.grid, density.averages);
    }
    case Quantity::PotentialEnergy:
      return energy.potential_energy;
    case Quantity::InteractionEnergy:
      return energy.interaction_energy;
    case Quantity::FreeEnergy:
      return energy.free_energy;
    case Quantity::Entropy:
    case Quantity::ReplicaEntropy:
      return energy.entropy;
    case Quantity::Discrepancy:
    case Quantity::EnergyDistance:
    case Quantity::Wasserstein1:
    case Quantity::Wasserstein2:
    case Quantity::SlicedWasserstein2:
    case Quantity::Marginal:
      return 0.0;  // what a distance tends to
  }
  return not_a_number;
}

// ---- particles ----

ParticleEnsemble replicas_of(const ParticleEnsemble& ensemble, std::size_t begin, std::size_t end) {
  const std::size_t size = ensemble.particle_count * ensemble.dimension;
  return {end - begin, ensemble.particle_count, ensemble.dimension,
          std::vector<double>(ensemble.positions.begin() + static_cast<std::ptrdiff_t>(begin * size),
                              ensemble.positions.begin() + static_cast<std::ptrdiff_t>(end * size))};
}

/// MMD^2 of the law of one particle, from pairs of different replicas only: with D_r of each replica and D of
/// all pooled, (R D - mean D_r) / (R - 1). Error by leaving out blocks of replicas.
Estimate marginal_discrepancy(const MeanDiscrepancy& mmd, const ParticleEnsemble& ensemble) {
  const std::vector<SquaredDiscrepancy> alone = mmd(ensemble);
  const std::size_t replicas = ensemble.replica_count, blocks = std::min(jackknife_blocks, replicas);
  const auto begin_of = [&](std::size_t block) { return block * replicas / blocks; };
  return jackknife(blocks, [&](std::size_t left_out) {
    ParticleEnsemble pooled{1, 0, ensemble.dimension, {}};
    double sum = 0.0, count = 0.0;
    for (std::size_t block = 0; block < blocks; ++block) {
      if (block == left_out) continue;
      const ParticleEnsemble part = replicas_of(ensemble, begin_of(block), begin_of(block + 1));
      pooled.positions.insert(pooled.positions.end(), part.positions.begin(), part.positions.end());
      for (std::size_t r = begin_of(block); r < begin_of(block + 1); ++r) sum += alone[r].biased;
      count += static_cast<double>(part.replica_count);
    }
    pooled.particle_count = pooled.positions.size() / ensemble.dimension;
    return (count * mmd(pooled)[0].biased - sum / count) / (count - 1.0);
  });
}

std::vector<double> replica_values(const Question& question, const Model& model, const PairSum& pair_sum,
                                   const ParticleEnsemble& ensemble, const Density* density) {
  const std::size_t replicas = ensemble.replica_count, n = ensemble.particle_count, d = ensemble.dimension;
  std::vector<double> values(replicas, 0.0);
  const auto length = [&] { return question.length.value_or(typical_distance(*density)); };
  const auto energy = [&](bool potential_part, bool interaction_part) {
    std::vector<double> potential(replicas), pair(replicas);
    energies(model, pair_sum, ensemble, potential, pair);
    for (std::size_t r = 0; r < replicas; ++r) {
      values[r] = (potential_part ? potential[r] : 0.0) +
                  (interaction_part && n > 1 ? mean_field_interaction_energy(pair[r], n) : 0.0);
    }
  };
  switch (question.quantity) {
    case Quantity::Mean:
      return means(ensemble, 0);
    case Quantity::SecondMoment:
      return second_moments(ensemble);
    case Quantity::Linear:
      for (std::size_t r = 0; r < replicas; ++r) {
        const auto x = ensemble.replica(r);
        for (std::size_t i = 0; i < n; ++i)
          values[r] += (*question.function)(x.subspan(i * d, d)) / static_cast<double>(n);
      }
      return values;
    case Quantity::PotentialEnergy:
      energy(true, false);
      return values;
    case Quantity::InteractionEnergy:
      energy(false, true);
      return values;
    case Quantity::FreeEnergy: {
      energy(true, true);
      const EntropyEstimate law = entropy(ensemble, model.domain);
      for (std::size_t r = 0; r < replicas; ++r)
        values[r] -= law.replica_values[r] / model.inverse_temperature;
      return values;
    }
    case Quantity::Entropy:
      return entropy(ensemble, model.domain).replica_values;
    case Quantity::ReplicaEntropy:
      for (std::size_t r = 0; r < replicas; ++r)
        values[r] = entropy(replicas_of(ensemble, r, r + 1), model.domain).estimate.value;
      return values;
    case Quantity::Discrepancy:
    case Quantity::EnergyDistance: {
      const MeanDiscrepancy mmd(*density, question.quantity == Quantity::Discrepancy
                                              ? DiscrepancyKernel(GaussianKernel{length()})
                                              : DiscrepancyKernel(EnergyKernel{}));
      const std::vector<SquaredDiscrepancy> squares = mmd(ensemble);
      std::transform(squares.begin(), squares.end(), values.begin(),
                     [](const auto& square) { return square.biased; });
      return values;
    }
    case Quantity::Wasserstein1:
      return wasserstein1(ensemble, *density);
    case Quantity::Wasserstein2:
    case Quantity::SlicedWasserstein2:
      values = question.quantity == Quantity::Wasserstein2 ? wasserstein2(ensemble, *density)
                                                           : sliced_wasserstein2(ensemble, *density);
      for (double& value : values) value *= value;
      return values;
    case Quantity::Marginal:
      break;
  }
  expects(false, "a quantity of one replica");
  return values;
}

struct Measured {
  RunStatus status = RunStatus::Completed;
  std::string message;
  Estimate error;      ///< as the question wants it
  double value = 0.0;  ///< E q, averaged over the times read
  double limit = 0.0;  ///< the reference, the same
};

Measured measure_particles(const Question& question, const side_by_side::Question& base,
                           const DensityPath& path, std::uint64_t seed, const sweep::Workplace& workplace) {
  const side_by_side::ParticleSide& side = *base.particles;
  particle::Options options = side.options;
  options.seed = seed;
  options.summation.threads = workplace.threads;
  particle::State state;
  state.ensemble = sample(base.initial, base.model.domain, side.replicas, side.count, seed);
  const PairSum pair_sum(base.model, side.count, options.summation);
  std::vector<double> errors(side.replicas, 0.0);
  std::vector<Estimate> marginals;
  double sum = 0.0, limits = 0.0;
  std::size_t reads = 0;
  const auto observe = [&](const Clock& clock, const particle::State& now) {
    if (!is_read(question, clock.time)) return;
    const Density* density = reads < path.densities.size() ? &path.densities[reads] : nullptr;
    const double limit = question.reference == Reference::Exact
                             ? question.exact
                             : value_of(question, *density, path.energies[reads]);
    ++reads;
    limits += limit;
    if (question.quantity == Quantity::Marginal) {
      const MeanDiscrepancy mmd(*density,
                                GaussianKernel{question.length.value_or(typical_distance(*density))});
      marginals.push_back(marginal_discrepancy(mmd, now.ensemble));
      return;
    }
    const std::vector<double> values = replica_values(question, base.model, pair_sum, now.ensemble, density);
    for (std::size_t r = 0; r < values.size(); ++r) {
      const double error = values[r] - limit;
      errors[r] += question.error == ErrorKind::MeanSquare ? error * error : error;
      sum += values[r] / static_cast<double>(values.size());
    }
  };
  const auto stop = [&](const Clock&) -> std::optional<RunStatus> {
    if (workplace.interrupted && workplace.interrupted()) return RunStatus::Interrupted;
    return std::nullopt;
  };
  const particle::Result result =
      particle::run(base.model, state, options, schedule_of(question), observe, stop);
  Measured measured{.status = result.status,
                    .message = result.message,
                    .error = {},
                    .value = not_a_number,
                    .limit = not_a_number};
  if (result.status != RunStatus::Completed) return measured;
  const double times = static_cast<double>(reads);
  measured.limit = limits / times;
  if (question.quantity == Quantity::Marginal) {
    // Times of one run are not independent: the mean of their errors is no smaller than that of the mean.
    for (const Estimate& estimate : marginals) {
      measured.error.value += estimate.value / times;
      measured.error.standard_error += estimate.standard_error / times;
    }
    measured.error.samples = jackknife_blocks;
    measured.value = measured.error.value;
    return measured;
  }
  for (double& error : errors) error /= times;
  measured.error = mean_estimate(errors);
  measured.value = sum / times;
  return measured;
}

/// q of the density alone, averaged over the times read.
Measured measure_density(const Question& question, const side_by_side::Question& base, double limit,
                         const sweep::Workplace& workplace) {
  const DensityPath path = density_path(question, base, workplace);
  Measured measured{
      .status = path.status, .message = path.message, .error = {}, .value = not_a_number, .limit = limit};
  if (path.status != RunStatus::Completed) return measured;
  measured.value = 0.0;
  for (std::size_t k = 0; k < path.densities.size(); ++k) {
    measured.value +=
        value_of(question, path.densities[k], path.energies[k]) / static_cast<double>(path.densities.size());
  }
  measured.error = {measured.value - limit, 0.0, 1};
  return measured;
}

// ---- the model whose errors are known ----

/// The error itself in closed form, NaN where it is not known.
double exact_error(const Question& question, const side_by_side::Question& base) {
  const auto exact = gaussian_model(base.model, base.initial);
  if (!exact || !base.particles || question.average_from || question.reference != Reference::Density)
    return not_a_number;
  const std::size_t n = base.particles->count;
  const double time = base.end;
  switch (question.quantity) {
    case Quantity::Mean:
      return question.error == ErrorKind::MeanSquare ? exact->mean_variance(time) / static_cast<double>(n)
                                                     : not_a_number;
    case Quantity::SecondMoment:
      return question.error == ErrorKind::Bias
                 ? std::abs(exact->particle_variance(time, n) - exact->variance(time))
                 : not_a_number;
    case Quantity::Wasserstein2:
      return question.error == ErrorKind::Bias ? exact->squared_wasserstein2(time, n) : not_a_number;
    case Quantity::Discrepancy:
      return question.error == ErrorKind::Bias && question.length
                 ? exact->squared_discrepancy(time, n, *question.length)
                 : not_a_number;
    case Quantity::Marginal:
      return question.length ? exact->squared_marginal_discrepancy(time, n, *question.length) : not_a_number;
    case Quantity::Linear:
    case Quantity::PotentialEnergy:
    case Quantity::InteractionEnergy:
    case Quantity::FreeEnergy:
    case Quantity::Entropy:
    case Quantity::ReplicaEntropy:
    case Quantity::EnergyDistance:
    case Quantity::Wasserstein1:
    case Quantity::SlicedWasserstein2:
      return not_a_number;
  }
  return not_a_number;
}

// ---- rows ----

double scale_of(const Question& question, double value) {
  if (question.parameter != Parameter::Grid) return value;
  const Box box = bounding_box(question.base.model.domain);
  return (box.upper[0] - box.lower[0]) / value;
}

const char* axis_label(Parameter parameter) {
  switch (parameter) {
    case Parameter::ParticleNumber:
      return "N";
    case Parameter::InverseTemperature:
      return "beta  [1/energy]";
    case Parameter::Timestep:
      return "timestep  [time]";
    case Parameter::Grid:
      return "cell width  [length]";
  }
  return "";
}

const char* symbol(Parameter parameter) {
  switch (parameter) {
    case Parameter::ParticleNumber:
      return "N";
    case Parameter::InverseTemperature:
      return "beta";
    case Parameter::Timestep:
      return "timestep";
    case Parameter::Grid:
      return "cells";
  }
  return "";
}

Json row_of(const Question& question, double value, const side_by_side::Question& base,
            const Measured& measured, double seconds) {
  Json row{{"quantity", name_of(question.quantity)},
           {"value", value},
           {"scale", scale_of(question, value)},
           {"status", name(measured.status)},
           {"message", measured.message},
           {"error", nullptr},
           {"standard_error", nullptr}};
  if (measured.status == RunStatus::Completed) {
    const double error = measured.error.value;
    row["measured"] = measured.value;
    if (question.reference != Reference::Refinement) {
      row["limit"] = measured.limit;
      row["error"] = std::abs(error);
      row["signed_error"] = error;
      row["standard_error"] =
          std::isfinite(measured.error.standard_error) ? Json(measured.error.standard_error) : Json(nullptr);
      row["samples"] = measured.error.samples;
      const double theory = exact_error(question, base);
      if (std::isfinite(theory)) {
        row["theory"] = theory;
        row["z"] = (std::abs(error) - theory) / measured.error.standard_error;
      }
    }
  }
  row["seconds"] = seconds;
  return row;
}

/// Successive differences: a row's error is its distance to the next finer one. Without noise these have the
/// exponent of the error itself when the values are a geometric sequence.
void take_differences(std::vector<Json>& rows) {
  std::sort(rows.begin(), rows.end(), [](const Json& a, const Json& b) {
    return a.at("scale").get<double>() > b.at("scale").get<double>();
  });
  for (std::size_t k = 0; k + 1 < rows.size(); ++k) {
    if (!rows[k].contains("measured") || !rows[k + 1].contains("measured")) continue;
    const double difference = rows[k].at("measured").get<double>() - rows[k + 1].at("measured").get<double>();
    rows[k]["error"] = std::abs(difference);
    rows[k]["signed_error"] = difference;
    rows[k]["standard_error"] = 0.0;
    rows[k]["samples"] = 1;
  }
}

}  // namespace

const std::vector<QuantityName>& quantity_names() {
  static const std::vector<QuantityName> names{
      {Quantity::Discrepancy, "mmd_squared",
       "squared maximum mean discrepancy of mu_N and rho, Gaussian kernel", true},
      {Quantity::EnergyDistance, "energy_distance_squared",
       "2 integral (F_N - F)^2 of the distribution functions, d = 1", true},
      {Quantity::Wasserstein1, "wasserstein_1", "Wasserstein-1 distance of mu_N and rho, d = 1", true},
      {Quantity::Wasserstein2, "wasserstein_2_squared",
       "squared Wasserstein-2 distance of mu_N and rho, d = 1", true},
      {Quantity::SlicedWasserstein2, "sliced_wasserstein_2_squared", "its mean over directions, d = 2, 3",
       true},
      {Quantity::Marginal, "marginal_squared",
       "squared discrepancy of the law of one particle and rho, unbiased, from pairs of replicas", true},
      {Quantity::Mean, "mean", "(1/N) sum x_1", false},
      {Quantity::SecondMoment, "second_moment", "(1/N) sum |x|^2", false},
      {Quantity::Linear, "linear", "(1/N) sum f(x), f in the key function", false},
      {Quantity::PotentialEnergy, "potential_energy", "(1/N) sum V", false},
      {Quantity::InteractionEnergy, "interaction_energy", "N/(N-1) times the pair sum of (1)", false},
      {Quantity::FreeEnergy, "free_energy", "estimate of F of (5), entropy from all replicas together",
       false},
      {Quantity::Entropy, "entropy", "nearest-neighbour entropy of all replicas together", false},
      {Quantity::ReplicaEntropy, "replica_entropy", "nearest-neighbour entropy of each replica alone",
       false}};
  return names;
}

std::optional<exact::OrnsteinUhlenbeck> gaussian_model(const Model& model, const InitialLaw& initial) {
  const auto* law = std::get_if<GaussianLaw>(&initial);
  if (dimension(model.domain) != 1 || law == nullptr || !model.functionals.empty() ||
      model.potentials.size() != 1 || model.interactions.size() > 1 || std::isinf(model.inverse_temperature))
    return std::nullopt;
  const auto* potential = std::get_if<QuadraticPotential>(&model.potentials[0]);
  if (potential == nullptr || !(potential->stiffness > 0.0) ||
      (!potential->center.empty() && potential->center[0] != 0.0))
    return std::nullopt;
  double coupling = 0.0;
  if (!model.interactions.empty()) {
    const auto* interaction = std::get_if<QuadraticInteraction>(&model.interactions[0]);
    if (interaction == nullptr) return std::nullopt;
    coupling = interaction->strength;
  }
  const exact::OrnsteinUhlenbeck exact{
      .stiffness = potential->stiffness,
      .coupling = coupling,
      .beta = model.inverse_temperature,
      .initial_mean = law->mean[0],
      .initial_variance = law->standard_deviation[0] * law->standard_deviation[0]};
  // Walls must be out of reach of the widest law on the way.
  if (const auto* box = std::get_if<Box>(&model.domain)) {
    const double deviation = std::sqrt(std::max({exact.initial_variance, exact.mean_variance(1e9)}));
    const double reach = std::abs(exact.initial_mean) + 6.0 * deviation;
    if (-box->lower[0] < reach || box->upper[0] < reach) return std::nullopt;
  } else if (!std::holds_alternative<WholeSpace>(model.domain)) {
    return std::nullopt;
  }
  return exact;
}

std::pair<double, std::string> correction_exponent(const Model& model) {
  const auto d = static_cast<double>(dimension(model.domain));
  for (const Interaction& interaction : model.interactions) {
    const auto* riesz = std::get_if<RieszInteraction>(&interaction);
    if (riesz == nullptr || riesz->softening > 0.0 || riesz->exponent < 0.5 * d) continue;
    if (riesz->exponent == 0.5 * d) return {not_a_number, "log N / N"};
    return {-(d / riesz->exponent - 1.0), "theory.md section 3, item 2: s between d/2 and d"};
  }
  return {-1.0, "theory.md section 3, item 2"};
}

std::pair<double, std::string> theoretical_exponent(const Question& question) {
  const Model& model = question.base.model;
  const std::pair<double, std::string> unknown{not_a_number, ""};
  switch (question.parameter) {
    case Parameter::ParticleNumber: {
      const std::string chaos = "theory.md section 3, item 1";
      if (question.quantity == Quantity::Marginal)
        return {-2.0, chaos + ": one-particle law at rate 1/N, squared"};
      if (question.quantity == Quantity::Wasserstein1) return {-0.5, chaos};
      if (question.quantity == Quantity::ReplicaEntropy || question.quantity == Quantity::Entropy)
        return unknown;
      if (question.error == ErrorKind::MeanSquare || is_distance(question.quantity)) return {-1.0, chaos};
      return correction_exponent(model);
    }
    case Parameter::InverseTemperature:
      return unknown;
    case Parameter::Timestep:
      if (question.error == ErrorKind::MeanSquare || is_distance(question.quantity)) return unknown;
      if (!question.base.particles)
        return {pde::order(question.base.density->options.scheme.value_or(pde::Scheme::SemiImplicit)),
                "order of the scheme in time"};
      switch (question.base.particles->options.scheme) {
        case particle::Scheme::Projected:
          if (std::holds_alternative<Box>(model.domain) || std::holds_alternative<Ball>(model.domain))
            return {particle::Projected::weak_order, "weak order at a wall"};
          return {1.0, "weak order of Euler's scheme"};
        case particle::Scheme::Reflected:
          return {particle::Reflected::weak_order, "weak order"};
        case particle::Scheme::Mala:
          return {particle::Mala::weak_order, "weak order at finite times"};
      }
      return unknown;
    case Parameter::Grid:
      return {2.0, "finite volumes with Galerkin kernel weights"};
  }
  return unknown;
}

side_by_side::Question base_at(const Question& question, double value) {
  side_by_side::Question base = question.base;
  switch (question.parameter) {
    case Parameter::ParticleNumber:
      base.particles->count = static_cast<std::size_t>(std::llround(value));
      break;
    case Parameter::InverseTemperature:
      base.model.inverse_temperature = value;
      break;
    case Parameter::Timestep:
      (base.particles ? base.particles->options.timestep : base.density->options.timestep) = value;
      break;
    case Parameter::Grid:
      base.density->cells.assign(dimension(base.model.domain), static_cast<std::size_t>(std::llround(value)));
      break;
  }
  return base;
}

sweep::Study study(const Question& question) {
  sweep::Study study{
      .type = std::string(question.parameter == Parameter::ParticleNumber       ? "particle_number"
                          : question.parameter == Parameter::InverseTemperature ? "inverse_temperature"
                          : question.parameter == Parameter::Timestep           ? "timestep"
                                                                                : "grid"),
      .name = question.name,
      .model = description(question.base.model),
      .question = {},
      .units = {},
      .curves = {}};
  const std::string quantity(name_of(question.quantity));
  const std::string error_text =
      question.error == ErrorKind::MeanSquare
          ? "mean square deviation of " + quantity
          : (is_distance(question.quantity) ? "expectation of " : "bias of ") + quantity;
  const std::string against =
      question.reference == Reference::Density           ? "the mean-field density"
      : question.reference == Reference::Exact           ? fmt::format("{:.12g}", question.exact)
      : question.reference == Reference::ZeroTemperature ? "the density at zero temperature"
                                                         : "the next finer row";
  study.question =
      fmt::format("How does the {} against {} fall with the {}?", error_text, against,
                  question.parameter == Parameter::Grid ? "cell width" : symbol(question.parameter));
  study.curves.push_back(
      {.quantity = quantity,
       .description = error_text,
       .scale_label = axis_label(question.parameter),
       .expected = question.expected,
       .reference = question.expected_reference,
       .tolerance = question.tolerance});
  for (const double value : question.values) {
    const side_by_side::Question base = base_at(question, value);
    const Plan costs = rieszflow::plan(base);
    sweep::Unit unit{
        .name = fmt::format("{} = {:.17g}", symbol(question.parameter), value),
        .cost = base.particles ? costs.particle_seconds : costs.density_seconds_per_step * costs.cells,
        .measure = {},
        .warnings = side_by_side::warnings(base)};
    unit.measure = [question, value, base](const sweep::Workplace& workplace) -> std::vector<Json> {
      const auto begin = std::chrono::steady_clock::now();
      Measured measured;
      DensityPath path;
      double limit = question.exact;
      if (question.reference == Reference::ZeroTemperature) {
        Question cold = question;
        cold.base.model.inverse_temperature = std::numeric_limits<double>::infinity();
        cold.base.density->options.scheme.reset();
        measured = measure_density(cold, cold.base, 0.0, workplace);
        limit = measured.value;
      } else if (base.particles && base.density) {
        path = density_path(question, base, workplace);
        measured.status = path.status;
        measured.message = "density: " + path.message;
      }
      if (measured.status == RunStatus::Completed) {
        const std::uint64_t seed = sweep::seed_of(question.base.seed, {&value, 1});
        if (!base.particles) {
          measured = measure_density(question, base, limit, workplace);
        } else if (question.reference == Reference::ZeroTemperature) {
          Question fixed = question;
          fixed.reference = Reference::Exact;
          fixed.exact = limit;
          measured = measure_particles(fixed, base, path, seed, workplace);
        } else {
          measured = measure_particles(question, base, path, seed, workplace);
        }
      }
      if (measured.status == RunStatus::Interrupted) return {};
      return {row_of(question, value, base, measured, seconds_since(begin))};
    };
    study.units.push_back(std::move(unit));
  }
  if (question.reference == Reference::Refinement) {
    study.conclude = [](std::vector<Json>& rows, Json& summary) -> sweep::Conclusion {
      take_differences(rows);
      std::vector<RefinedValue> values;
      for (const Json& row : rows) {
        if (row.contains("measured")) values.push_back({row.at("scale"), row.at("measured")});
      }
      if (values.size() < 3) return {};
      const Extrapolation limit = extrapolated(values);
      const bool converging = limit.kind == Extrapolation::Kind::Converging;
      summary["extrapolation"] = {
          {"limit", limit.limit},
          {"error", std::isfinite(limit.limit_error) ? Json(limit.limit_error) : Json(nullptr)},
          {"order", converging ? Json(limit.order) : Json(nullptr)}};
      return {};
    };
  }
  return study;
}

std::string plan(const Question& question) {
  std::string text =
      fmt::format("model      {}\nrows       {} values of {}\n", description(question.base.model),
                  question.values.size(), symbol(question.parameter));
  double seconds = 0.0, bytes = 0.0;
  for (const double value : question.values) {
    const side_by_side::Question base = base_at(question, value);
    const Plan costs = rieszflow::plan(base);
    seconds += costs.particle_seconds;
    bytes = std::max(bytes, costs.memory_bytes);
    text += fmt::format("  {:<10g}", value);
    if (base.particles) {
      text += fmt::format(" {} replicas of N = {}, {:.6g} steps, about {}", base.particles->replicas,
                          base.particles->count, costs.particle_steps, duration_text(costs.particle_seconds));
    }
    if (base.density)
      text += fmt::format("{} density of {:.6g} cells, about {:.1g} s a step", base.particles ? "," : "",
                          costs.cells, costs.density_seconds_per_step);
    text += "\n";
  }
  text += fmt::format("particles  about {} in all\nmemory     about {} a row\n", duration_text(seconds),
                      bytes_text(bytes));
  return text;
}

}  // namespace rieszflow::convergence
