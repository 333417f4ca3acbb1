#include "experiments/chaos.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/discrepancy.hpp"
#include "analysis/distance.hpp"
#include "analysis/estimate.hpp"
#include "experiments/convergence.hpp"
#include "experiments/plan.hpp"
#include "model/description.hpp"
#include "solvers/particle/coupled_copies.hpp"

namespace rieszflow::chaos {
namespace {

using sweep::Json;

/// (1/N) sum |x_i - y_i|^2 of each replica; largest <- max(largest, |x_i - y_i|^2).
std::vector<double> path_distances(const Domain& domain, const particle::CoupledState& state,
                                   std::vector<double>& largest) {
  const std::size_t n = state.particles.particle_count, d = state.particles.dimension;
  std::vector<double> means(state.particles.replica_count, 0.0), difference(d);
  for (std::size_t i = 0; i < largest.size(); ++i) {
    displacement(domain, std::span(state.particles.positions).subspan(i * d, d),
                 std::span(state.copies.positions).subspan(i * d, d), difference);
    double squared = 0.0;
    for (const double c : difference) squared += c * c;
    means[i / n] += squared / static_cast<double>(n);
    largest[i] = std::max(largest[i], squared);
  }
  return means;
}

/// Relative entropy of k particles against the product, both Gaussian: from the covariance of two particles.
Estimate marginal_entropy(const ParticleEnsemble& ensemble, double mean, double variance, std::size_t k) {
  const std::size_t n = ensemble.particle_count, replicas = ensemble.replica_count;
  std::vector<double> covariances(replicas);
  double total = 0.0;
  for (std::size_t r = 0; r < replicas; ++r) {
    double sum = 0.0, squares = 0.0;
    for (const double x : ensemble.replica(r)) {
      sum += x - mean;
      squares += (x - mean) * (x - mean);
    }
    covariances[r] = (sum * sum - squares) / static_cast<double>(n * (n - 1));
    total += covariances[r];
  }
  return jackknife(replicas, [&](std::size_t left_out) {
    const bool all = left_out == replicas;
    const double tau = (all ? total : total - covariances[left_out]) /
                       (static_cast<double>(all ? replicas : replicas - 1) * variance);
    const double k_tau = static_cast<double>(k) * tau;
    return 0.5 * (k_tau - std::log1p(k_tau));
  });
}

Json row_of(const char* quantity, double n, const Estimate& error, double theory) {
  Json row{{"quantity", quantity},
           {"value", n},
           {"scale", n},
           {"status", name(RunStatus::Completed)},
           {"error", error.value},
           {"standard_error", error.standard_error},
           {"samples", error.samples}};
  if (std::isfinite(theory)) {
    row["theory"] = theory;
    row["z"] = (error.value - theory) / error.standard_error;
  }
  return row;
}

Json failed_row(double n, RunStatus status, const std::string& message) {
  return {{"quantity", "path_squared"}, {"value", n}, {"status", name(status)}, {"message", message}};
}

std::vector<Json> measure(const Question& question, std::size_t count, const sweep::Workplace& workplace) {
  const auto begin = std::chrono::steady_clock::now();
  const side_by_side::Question& base = question.base;
  const Model& model = base.model;
  const double n = static_cast<double>(count);
  const Schedule schedule = Schedule::every(base.output_every, 0.0, base.end);
  const auto stop = [&](const Clock&) -> std::optional<RunStatus> {
    if (workplace.interrupted && workplace.interrupted()) return RunStatus::Interrupted;
    return std::nullopt;
  };

  const MeanField field(model, grid_on(model.domain, base.density->cells), {.threads = workplace.threads});
  pde::State density;
  density.density = cell_averages(base.initial, model.domain, field.grid());
  std::vector<double> times;
  std::vector<Density> densities;
  const pde::Result solved = pde::run(
      field, density, base.density->options, schedule,
      [&](const Clock& clock, const pde::State& state) {
        times.push_back(clock.time);
        densities.push_back(state.density);
      },
      stop);
  if (solved.status == RunStatus::Interrupted) return {};
  if (solved.status != RunStatus::Completed)
    return {failed_row(n, solved.status, "density: " + solved.message)};

  const particle::MeanFieldForce force(field, times, densities);
  particle::CoupledState state;
  const std::uint64_t seed = sweep::seed_of(base.seed, {&n, 1});
  state.particles = sample(base.initial, model.domain, base.particles->replicas, count, seed);
  state.copies = state.particles;
  PairSum::Options summation = base.particles->options.summation;
  summation.threads = workplace.threads;
  std::vector<double> largest(base.particles->replicas * count, 0.0), paths;
  const RunResult run = particle::run_coupled(
      model, state, force,
      {.timestep = base.particles->options.timestep, .seed = seed, .summation = summation}, schedule,
      [&](const Clock&, const particle::CoupledState& now) {
        paths = path_distances(model.domain, now, largest);
      },
      stop);
  if (run.status == RunStatus::Interrupted) return {};
  if (run.status != RunStatus::Completed) return {failed_row(n, run.status, run.message)};

  const auto exact = convergence::gaussian_model(model, base.initial);
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> largest_means(base.particles->replicas, 0.0);
  for (std::size_t i = 0; i < largest.size(); ++i) largest_means[i / count] += largest[i] / n;
  std::vector<Json> rows;
  rows.push_back(row_of("path_squared", n, mean_estimate(paths),
                        exact ? exact->squared_path_distance(base.end, count) : unknown));
  rows.push_back(row_of("path_largest", n, mean_estimate(largest_means), unknown));
  const double length = question.length.value_or(typical_distance(densities.back()));
  std::vector<double> squares;
  for (const SquaredDiscrepancy& value :
       MeanDiscrepancy(densities.back(), GaussianKernel{length})(state.particles))
    squares.push_back(value.biased);
  rows.push_back(
      row_of("mmd_squared", n, mean_estimate(squares),
             exact && question.length ? exact->squared_discrepancy(base.end, count, length) : unknown));
  if (state.particles.dimension == 1) {
    std::vector<double> transport = wasserstein2(state.particles, densities.back());
    for (double& value : transport) value *= value;
    rows.push_back(row_of("wasserstein_2_squared", n, mean_estimate(transport),
                          exact ? exact->squared_wasserstein2(base.end, count) : unknown));
  }
  if (exact) {
    for (const std::size_t k : {std::size_t{1}, std::size_t{2}}) {
      rows.push_back(
          row_of(k == 1 ? "relative_entropy_1" : "relative_entropy_2", n,
                 marginal_entropy(state.particles, exact->mean(base.end), exact->variance(base.end), k),
                 exact->marginal_entropy(base.end, k, count)));
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (Json& row : rows) row["seconds"] = seconds;
  return rows;
}

/// Mean over the counts of measured / exact, weighted by the standard errors; no samples where there is
/// nothing exact.
Estimate ratio_to_theory(const std::vector<Json>& rows, const std::string& quantity) {
  double weights = 0.0, sum = 0.0;
  std::size_t count = 0;
  for (const Json& row : rows) {
    if (row.at("quantity") != quantity || !row.contains("theory")) continue;
    const double theory = row.at("theory"), error = row.at("standard_error"), value = row.at("error");
    const double weight = theory * theory / (error * error);
    weights += weight;
    sum += weight * value / theory;
    ++count;
  }
  return {sum / weights, 1.0 / std::sqrt(weights), count};
}

}  // namespace

std::optional<std::string> refusal(const Model& model) {
  if (!std::holds_alternative<Box>(model.domain) && !std::holds_alternative<Torus>(model.domain))
    return "needs a box or a torus, on which the force of the density is interpolated";
  if (dimension(model.domain) > 3) return "needs 1 to 3 dimensions";
  if (!model.functionals.empty()) return "takes no alignment terms";
  if (has_singular_interaction(model))
    return "couples paths by plain Euler steps, which an unsoftened singular interaction makes useless: it "
           "needs softening > 0";
  return std::nullopt;
}

sweep::Study study(const Question& question) {
  const std::string reference = "Sznitman (1991), theorem 1.4", item = "theory.md section 3, item 1";
  sweep::Study study{
      .type = "chaos",
      .name = question.name,
      .model = description(question.base.model),
      .question = "How fast do N interacting particles become independent copies of the mean-field particle?",
      .units = {},
      .curves = {}};
  const auto curve = [&](const char* quantity, const char* text, double expected, const std::string& source,
                         const std::vector<double>& corrections = {}) {
    study.curves.push_back({.quantity = quantity,
                            .description = text,
                            .scale_label = "N",
                            .expected = expected,
                            .reference = source,
                            .corrections = corrections});
  };
  curve("path_squared", "mean square distance to the coupled mean-field copy", -1.0, reference);
  curve("path_largest", "the same, largest over the outputs of a path", -1.0, reference);
  curve("mmd_squared", "squared maximum mean discrepancy", -1.0, item);
  if (dimension(question.base.model.domain) == 1)
    curve("wasserstein_2_squared", "squared Wasserstein-2 distance", std::numeric_limits<double>::quiet_NaN(),
          "log log N / N for Gaussians: no power law");
  if (convergence::gaussian_model(question.base.model, question.base.initial)) {
    // (k tau - log(1 + k tau))/2 with tau ~ 1/N: a power series in 1/N.
    curve("relative_entropy_1", "relative entropy of one particle", -2.0,
          "(k/N)^2: Lacker, Probab. Math. Phys. 4 (2023)", {-1.0});
    curve("relative_entropy_2", "relative entropy of two particles", -2.0,
          "(k/N)^2: Lacker, Probab. Math. Phys. 4 (2023)", {-1.0});
  }
  for (const std::size_t count : question.counts) {
    side_by_side::Question base = question.base;
    base.particles->count = count;
    study.units.push_back({.name = fmt::format("N = {}", count),
                           .cost = rieszflow::plan(base).particle_seconds,
                           .measure = [question, count](const sweep::Workplace& workplace) {
                             return measure(question, count, workplace);
                           },
                           .warnings = side_by_side::warnings(base)});
  }
  study.conclude = [curves = study.curves](std::vector<Json>& rows, Json&) {
    sweep::Conclusion conclusion;
    for (const sweep::Curve& each : curves) {
      const Estimate ratio = ratio_to_theory(rows, each.quantity);
      if (ratio.samples == 0) continue;
      conclusion.verdicts.push_back(
          verdict(each.quantity + " / closed form",
                  each.description + " equals its closed form for the Gaussian model at every N", ratio, 1.0,
                  4.0 * ratio.standard_error, "exact.hpp OrnsteinUhlenbeck"));
    }
    return conclusion;
  };
  return study;
}

}  // namespace rieszflow::chaos
