#include "experiments/equilibrium.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numbers>

#include "analysis/estimate.hpp"
#include "analysis/rate_fit.hpp"
#include "experiments/plan.hpp"
#include "model/description.hpp"
#include "model/mean_field.hpp"
#include "model/quadrature.hpp"
#include "solvers/stationary/rate_function.hpp"
#include "summation/identities.hpp"

namespace rieszflow::equilibrium {
namespace {

using sweep::Json;

constexpr double allowed_deviations = 4.0;  ///< standard errors: some ten claims at once
/// -zeta(1/2) / sqrt(2 pi): the mean overshoot constant of a Gaussian walk.
constexpr double overshoot = 0.5825971579390107;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Sums over the outputs from average_from on, one column of replicas for each of several numbers.
struct Averages {
  RunStatus status = RunStatus::Completed;
  std::string message;
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;  ///< (number)(replica): mean over outputs
};

using Reading = std::function<std::vector<Identity>(const ParticleEnsemble&)>;

Averages averages(const Sampling& sampling, const side_by_side::Question& base, std::uint64_t seed,
                  const Reading& reading, const sweep::Workplace& workplace) {
  particle::Options options = base.particles->options;
  options.seed = seed;
  options.summation.threads = workplace.threads;
  particle::State state;
  state.ensemble =
      sample(base.initial, base.model.domain, base.particles->replicas, base.particles->count, seed);
  Averages result;
  double outputs = 0.0;
  const auto observe = [&](const Clock& clock, const particle::State& now) {
    if (clock.time < sampling.average_from) return;
    const std::vector<Identity> numbers = reading(now.ensemble);
    if (result.values.empty())
      result.values.assign(numbers.size(), std::vector<double>(base.particles->replicas, 0.0));
    result.names.clear();
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      result.names.push_back(numbers[k].name);
      for (std::size_t r = 0; r < numbers[k].residuals.size(); ++r)
        result.values[k][r] += numbers[k].residuals[r];
    }
    outputs += 1.0;
  };
  const auto stop = [&](const Clock&) -> std::optional<RunStatus> {
    if (workplace.interrupted && workplace.interrupted()) return RunStatus::Interrupted;
    return std::nullopt;
  };
  const particle::Result run = particle::run(
      base.model, state, options, Schedule::every(base.output_every, 0.0, base.end), observe, stop);
  result.status = run.status;
  result.message = run.message;
  for (auto& column : result.values) {
    for (double& value : column) value /= outputs;
  }
  return result;
}

Json failed_row(const std::string& quantity, double value, const Averages& run) {
  return {{"quantity", quantity}, {"value", value}, {"status", name(run.status)}, {"message", run.message}};
}

Json row_of(const std::string& quantity, double value, const Estimate& difference, double seconds) {
  return {{"quantity", quantity},
          {"value", value},
          {"scale", value},
          {"status", name(RunStatus::Completed)},
          {"error", std::abs(difference.value)},
          {"signed_error", difference.value},
          {"standard_error", difference.standard_error},
          {"z", difference.value / difference.standard_error},
          {"samples", difference.samples},
          {"seconds", seconds}};
}

Verdict within_noise(std::string name, std::string claim, const Estimate& measured, double expected,
                     std::string reference) {
  return verdict(std::move(name), std::move(claim), measured, expected,
                 allowed_deviations * measured.standard_error, std::move(reference));
}

/// (1/N) sum f(x_i) of each replica.
std::vector<double> linear_statistic(const ExpressionFunction& f, const ParticleEnsemble& ensemble) {
  const std::size_t n = ensemble.particle_count, d = ensemble.dimension;
  std::vector<double> values(ensemble.replica_count, 0.0);
  for (std::size_t i = 0; i < ensemble.replica_count * n; ++i)
    values[i / n] += f(std::span(ensemble.positions).subspan(i * d, d)) / static_cast<double>(n);
  return values;
}

double unit_cost(const side_by_side::Question& base) { return rieszflow::plan(base).particle_seconds; }

// ---- quadrature over domains and their walls ----

using Integrand = std::function<double(std::span<const double>)>;

/// Composite Gauss-Legendre nodes on [lower, upper].
QuadratureRule panels(double lower, double upper, std::size_t count) {
  const QuadratureRule rule = gauss_legendre(8);
  QuadratureRule result;
  const double width = (upper - lower) / static_cast<double>(count);
  for (std::size_t p = 0; p < count; ++p) {
    for (std::size_t k = 0; k < rule.nodes.size(); ++k) {
      result.nodes.push_back(lower + width * (static_cast<double>(p) + rule.nodes[k]));
      result.weights.push_back(width * rule.weights[k]);
    }
  }
  return result;
}

double over_axes(const std::vector<QuadratureRule>& rules,
                 const std::function<double(std::span<const double>)>& f) {
  std::vector<double> point(rules.size());
  const std::function<double(std::size_t)> inner = [&](std::size_t axis) -> double {
    if (axis == rules.size()) return f(point);
    double sum = 0.0;
    for (std::size_t k = 0; k < rules[axis].nodes.size(); ++k) {
      point[axis] = rules[axis].nodes[k];
      sum += rules[axis].weights[k] * inner(axis + 1);
    }
    return sum;
  };
  return inner(0);
}

std::size_t panel_count(std::size_t dimension) { return dimension == 1 ? 64 : dimension == 2 ? 12 : 4; }

/// Directions of the unit sphere with their weights, d = 1, 2, 3.
std::vector<std::pair<std::vector<double>, double>> sphere(std::size_t dimension) {
  constexpr int circle = 96;
  if (dimension == 1) return {{{1.0}, 1.0}, {{-1.0}, 1.0}};
  std::vector<std::pair<std::vector<double>, double>> result;
  const double step = 2.0 * std::numbers::pi / circle;
  const QuadratureRule heights = dimension == 3 ? panels(-1.0, 1.0, 4) : QuadratureRule{{0.0}, {1.0}};
  for (std::size_t h = 0; h < heights.nodes.size(); ++h) {
    const double z = heights.nodes[h], across = std::sqrt(1.0 - z * z);
    for (int k = 0; k < circle; ++k) {
      std::vector<double> direction{across * std::cos(k * step), across * std::sin(k * step)};
      if (dimension == 3) direction.push_back(z);
      result.emplace_back(std::move(direction), heights.weights[h] * step);
    }
  }
  return result;
}

/// integral f over the domain and over its wall.
double integral(const Domain& domain, const Integrand& f) {
  const std::size_t d = dimension(domain);
  if (const auto* box = std::get_if<Box>(&domain)) {
    std::vector<QuadratureRule> rules;
    for (std::size_t k = 0; k < d; ++k) rules.push_back(panels(box->lower[k], box->upper[k], panel_count(d)));
    return over_axes(rules, f);
  }
  const Ball& ball = std::get<Ball>(domain);
  const QuadratureRule radii = panels(0.0, ball.radius, 8);
  double sum = 0.0;
  std::vector<double> point(d);
  for (const auto& [direction, weight] : sphere(d)) {
    for (std::size_t k = 0; k < radii.nodes.size(); ++k) {
      for (std::size_t j = 0; j < d; ++j) point[j] = ball.center[j] + radii.nodes[k] * direction[j];
      sum += weight * radii.weights[k] * std::pow(radii.nodes[k], static_cast<double>(d) - 1.0) * f(point);
    }
  }
  return sum;
}

double wall_integral(const Domain& domain, const Integrand& f) {
  const std::size_t d = dimension(domain);
  double sum = 0.0;
  std::vector<double> point(d);
  if (const auto* box = std::get_if<Box>(&domain)) {
    for (std::size_t axis = 0; axis < d; ++axis) {
      std::vector<QuadratureRule> rules;
      for (std::size_t k = 0; k < d; ++k) {
        if (k != axis) rules.push_back(panels(box->lower[k], box->upper[k], panel_count(d)));
      }
      for (const double wall : {box->lower[axis], box->upper[axis]}) {
        sum += over_axes(rules, [&](std::span<const double> rest) {
          for (std::size_t k = 0, j = 0; k < d; ++k) point[k] = k == axis ? wall : rest[j++];
          return f(point);
        });
      }
    }
    return sum;
  }
  const Ball& ball = std::get<Ball>(domain);
  for (const auto& [direction, weight] : sphere(d)) {
    for (std::size_t j = 0; j < d; ++j) point[j] = ball.center[j] + ball.radius * direction[j];
    sum += weight * std::pow(ball.radius, static_cast<double>(d) - 1.0) * f(point);
  }
  return sum;
}

}  // namespace

// ---- identities ----

sweep::Study study(const Identities& question) {
  const Sampling& sampling = question.sampling;
  sweep::Study study{
      .type = "identities",
      .name = sampling.name,
      .model = description(sampling.base.model),
      .question =
          "Does the sampled law satisfy the identities that the Gibbs law satisfies exactly at "
          "every N?",
      .units = {},
      .curves = {}};
  for (const std::size_t count : question.counts) {
    side_by_side::Question base = sampling.base;
    base.particles->count = count;
    sweep::Unit unit{.name = fmt::format("N = {}", count),
                     .cost = unit_cost(base),
                     .measure = {},
                     .warnings = side_by_side::warnings(base)};
    unit.measure = [sampling, base](const sweep::Workplace& workplace) -> std::vector<Json> {
      const auto begin = std::chrono::steady_clock::now();
      const double n = static_cast<double>(base.particles->count);
      PairSum::Options summation = base.particles->options.summation;
      summation.threads = workplace.threads;
      const PairSum pair_sum(base.model, base.particles->count, summation);
      const Averages run = averages(
          sampling, base, sweep::seed_of(base.seed, {&n, 1}),
          [&](const ParticleEnsemble& ensemble) {
            return equilibrium_identities(base.model, pair_sum, ensemble);
          },
          workplace);
      if (run.status == RunStatus::Interrupted) return {};
      if (run.status != RunStatus::Completed) return {failed_row("identities", n, run)};
      std::vector<Json> rows;
      for (std::size_t k = 0; k < run.names.size(); ++k)
        rows.push_back(row_of(run.names[k], n, mean_estimate(run.values[k]), seconds_since(begin)));
      return rows;
    };
    study.units.push_back(std::move(unit));
  }
  study.conclude = [](std::vector<Json>& rows, Json&) {
    sweep::Conclusion conclusion;
    for (const Json& row : rows) {
      if (!row.contains("signed_error")) continue;
      const std::string name =
          fmt::format("{}, N = {:g}", row.at("quantity").get<std::string>(), row.at("value").get<double>());
      conclusion.verdicts.push_back(
          within_noise(name, name + ": the residual has mean zero",
                       {row.at("signed_error"), row.at("standard_error"), row.at("samples")}, 0.0,
                       "theory.md section 3, item 3"));
    }
    return conclusion;
  };
  return study;
}

// ---- boundary ----

std::optional<std::string> boundary_refusal(const Model& model) {
  if (!std::holds_alternative<Box>(model.domain) && !std::holds_alternative<Ball>(model.domain))
    return "is about walls: the domain must be a box or a ball";
  if (!model.interactions.empty() || !model.functionals.empty())
    return "is about independent particles: the model must have no interaction (a study of type \"timestep\" "
           "takes any)";
  if (dimension(model.domain) > 3) return "needs 1 to 3 dimensions";
  if (std::isinf(model.inverse_temperature)) return "needs a finite inverse_temperature";
  return std::nullopt;
}

sweep::Study study(const Boundary& question) {
  const Sampling& sampling = question.sampling;
  const Model& model = sampling.base.model;
  const double beta = model.inverse_temperature;
  const ExpressionFunction& f = *question.function;
  const auto weight = [&](std::span<const double> x) { return std::exp(-beta * potential(model, x)); };
  const double partition = integral(model.domain, weight);
  const double exact =
      integral(model.domain, [&](std::span<const double> x) { return f(x) * weight(x); }) / partition;
  const double wall =
      wall_integral(model.domain, [&](std::span<const double> x) { return (f(x) - exact) * weight(x); }) /
      partition;
  const double leading = overshoot * std::sqrt(2.0 / beta) * wall;  ///< times sqrt(h)
  const bool unbiased = model.potentials.empty() && std::holds_alternative<Box>(model.domain);

  sweep::Study study{
      .type = "boundary",
      .name = sampling.name,
      .model = description(model),
      .question =
          "How does the bias of an average fall with the timestep when a scheme projects, reflects "
          "or tests at a wall?",
      .units = {},
      .curves = {}};
  study.curves.push_back({.quantity = "projected",
                          .description = "bias of the projected scheme",
                          .scale_label = "timestep  [time]",
                          .expected = particle::Projected::weak_order,
                          .reference = "Asmussen, Glynn, Pitman (1995)",
                          .corrections = {0.5}});
  if (!unbiased) {
    study.curves.push_back({.quantity = "reflected",
                            .description = "bias of the reflected scheme",
                            .scale_label = "timestep  [time]",
                            .expected = particle::Reflected::weak_order,
                            .reference = "Bossy, Gobet, Talay (2004)"});
  }
  for (const double timestep : question.timesteps) {
    side_by_side::Question base = sampling.base;
    base.particles->options.timestep = timestep;
    sweep::Unit unit{.name = fmt::format("timestep = {:.17g}", timestep),
                     .cost = unit_cost(base),
                     .measure = {},
                     .warnings = side_by_side::warnings(base)};
    unit.measure = [question, base, timestep, exact,
                    leading](const sweep::Workplace& workplace) -> std::vector<Json> {
      const auto begin = std::chrono::steady_clock::now();
      const std::uint64_t seed = sweep::seed_of(base.seed, {&timestep, 1});
      const Reading reading = [&](const ParticleEnsemble& ensemble) {
        return std::vector<Identity>{{"f", linear_statistic(*question.function, ensemble)}};
      };
      std::vector<Averages> runs;
      for (const particle::Scheme scheme :
           {particle::Scheme::Mala, particle::Scheme::Projected, particle::Scheme::Reflected}) {
        side_by_side::Question own = base;
        own.particles->options.scheme = scheme;
        runs.push_back(averages(question.sampling, own, seed, reading, workplace));
        if (runs.back().status == RunStatus::Interrupted) return {};
        if (runs.back().status != RunStatus::Completed)
          return {failed_row(std::string(particle::name(scheme)), timestep, runs.back())};
      }
      std::vector<Json> rows;
      const std::vector<double>& free = runs[0].values[0];
      for (const std::size_t k : {1, 2}) {
        std::vector<double> differences = runs[k].values[0];
        for (std::size_t r = 0; r < differences.size(); ++r) differences[r] -= free[r];
        rows.push_back(row_of(k == 1 ? "projected" : "reflected", timestep, mean_estimate(differences),
                              seconds_since(begin)));
        if (k == 1) rows.back()["theory"] = std::abs(leading) * std::sqrt(timestep);
        rows.back().erase("z");
      }
      Estimate mala = mean_estimate(free);
      mala.value -= exact;
      rows.push_back(row_of("mala", timestep, mala, seconds_since(begin)));
      return rows;
    };
    study.units.push_back(std::move(unit));
  }
  study.conclude = [exact, leading, unbiased](std::vector<Json>& rows, Json& summary) {
    summary["exact"] = exact;
    summary["projection_constant"] = leading;
    sweep::Conclusion conclusion;
    std::vector<double> roots;
    std::vector<Estimate> constants;  // bias / sqrt(h) = constant + slope sqrt(h)
    for (const Json& row : rows) {
      if (!row.contains("signed_error")) continue;
      const std::string quantity = row.at("quantity");
      const Estimate measured{row.at("signed_error"), row.at("standard_error"), row.at("samples")};
      const double timestep = row.at("value"), root = std::sqrt(timestep);
      if (quantity == "projected") {
        roots.push_back(root);
        constants.push_back({measured.value / root, measured.standard_error / root, measured.samples});
      } else if (quantity == "mala" || unbiased) {
        conclusion.verdicts.push_back(within_noise(
            fmt::format("{} at h = {:g}", quantity, timestep), quantity + " has no bias in equilibrium",
            measured, 0.0, quantity == "mala" ? "Metropolis" : "the folded kernel is doubly stochastic"));
      }
    }
    if (roots.size() > 1) {
      const Estimate constant = intercept(roots, constants);
      const double tolerance = allowed_deviations * constant.standard_error + 0.02 * std::abs(leading);
      conclusion.verdicts.push_back(
          verdict("constant of projection",
                  "bias / sqrt(h) -> 0.5826 sqrt(2/beta) times the wall integral of rho (f - E f)", constant,
                  leading, tolerance, "Asmussen, Glynn, Pitman (1995)"));
    }
    return conclusion;
  };
  return study;
}

// ---- fluctuations ----

namespace {

/// Two of the functions f, g whose covariance is asked for.
struct Pair {
  const char* quantity;
  const char* text;
  std::size_t a, b;
};

std::vector<Pair> pairs_of(const Fluctuations& question) {
  std::vector<Pair> pairs{{"variance", "N Var((1/N) sum f)", 0, 0}};
  if (question.second_function) {
    pairs.push_back({"covariance", "N Cov((1/N) sum f, (1/N) sum g)", 0, 1});
    pairs.push_back({"second_variance", "N Var((1/N) sum g)", 1, 1});
  }
  return pairs;
}

/// The limits of a study of fluctuations belong to every row; found once, by the first that asks.
class Limit {
 public:
  explicit Limit(const Fluctuations& question) : question_(question) {}

  RunStatus status() {
    std::call_once(once_, [this] { find(); });
    return status_;
  }
  /// Of the grid.
  double covariance(const Pair& pair) const { return covariances_[pair.a + pair.b]; }
  /// In closed form where it is given, else of the grid.
  double best(const Pair& pair) const {
    return pair.b == 0 ? question_.exact.value_or(covariance(pair)) : covariance(pair);
  }
  double mean(std::size_t function) const { return means_[function]; }

 private:
  void find() {
    const Model& model = question_.sampling.base.model;
    const MeanField field(model, grid_on(model.domain, question_.cells),
                          {.threads = question_.sampling.base.threads});
    std::vector<std::vector<double>> averages;
    for (const auto& function : {question_.function, question_.second_function}) {
      if (function)
        averages.push_back(stationary::cell_averages(
            field.grid(), [&](std::span<const double> x) { return (*function)(x); }));
    }
    const auto minima = stationary::minimisers(field, {.components = {averages[0]}}, {});
    if (minima.empty() || minima.front().status != RunStatus::Completed) return;
    const Density& density = minima.front().density;
    status_ = RunStatus::Completed;
    for (const auto& f : averages)
      means_.push_back(stationary::value({.components = {f}}, field.grid(), density.averages));
    for (const Pair& pair : pairs_of(question_))
      covariances_.push_back(
          stationary::limit_covariance(field, density, averages[pair.a], averages[pair.b]));
  }

  const Fluctuations question_;
  std::once_flag once_;
  RunStatus status_ = RunStatus::NotConverged;
  std::vector<double> covariances_;  ///< (a + b)
  std::vector<double> means_;        ///< (function)
};

}  // namespace

sweep::Study study(const Fluctuations& question) {
  const Sampling& sampling = question.sampling;
  const Model& model = sampling.base.model;
  sweep::Study study{
      .type = "fluctuations",
      .name = sampling.name,
      .model = description(model),
      .question =
          "Does N times the covariance of linear statistics approach the inverse Hessian of the free energy?",
      .units = {},
      .curves = {}};
  for (const Pair& pair : pairs_of(question)) {
    study.curves.push_back({.quantity = pair.quantity,
                            .description = std::string(pair.text) + " against its limit",
                            .scale_label = "N",
                            .expected = -1.0,
                            .reference = "theory.md section 3, item 7",
                            .tolerance = 0.15,
                            .corrections = {-1.0}});
  }
  const auto limit = std::make_shared<Limit>(question);
  for (const std::size_t count : question.counts) {
    side_by_side::Question base = sampling.base;
    base.particles->count = count;
    sweep::Unit unit{.name = fmt::format("N = {}", count),
                     .cost = unit_cost(base),
                     .measure = {},
                     .warnings = side_by_side::warnings(base)};
    unit.measure = [question, base, limit](const sweep::Workplace& workplace) -> std::vector<Json> {
      const auto begin = std::chrono::steady_clock::now();
      const double n = static_cast<double>(base.particles->count);
      if (limit->status() != RunStatus::Completed) {
        Averages none;
        none.status = limit->status();
        none.message = "the minimiser of F was not found";
        return {failed_row("variance", n, none)};
      }
      const std::vector<Pair> pairs = pairs_of(question);
      // First moments of f, g, then the products of each pair, all about fixed numbers: any serve, the limits
      // keep the squares small.
      const Averages run = averages(
          question.sampling, base, sweep::seed_of(base.seed, {&n, 1}),
          [&](const ParticleEnsemble& ensemble) {
            std::vector<Identity> numbers{{"f", linear_statistic(*question.function, ensemble)}};
            if (question.second_function)
              numbers.push_back({"g", linear_statistic(*question.second_function, ensemble)});
            for (std::size_t k = 0; k < numbers.size(); ++k) {
              for (double& value : numbers[k].residuals) value -= limit->mean(k);
            }
            for (const Pair& pair : pairs) {
              Identity product{pair.quantity, numbers[pair.a].residuals};
              for (std::size_t r = 0; r < product.residuals.size(); ++r)
                product.residuals[r] *= numbers[pair.b].residuals[r];
              numbers.push_back(std::move(product));
            }
            return numbers;
          },
          workplace);
      if (run.status == RunStatus::Interrupted) return {};
      if (run.status != RunStatus::Completed) return {failed_row("variance", n, run)};
      const std::size_t replicas = run.values[0].size(), functions = question.second_function ? 2 : 1;
      std::vector<Json> rows;
      for (std::size_t k = 0; k < pairs.size(); ++k) {
        const std::vector<double>&first = run.values[pairs[k].a], &second = run.values[pairs[k].b],
              &product = run.values[functions + k];
        const Estimate covariance = jackknife(replicas, [&](std::size_t left_out) {
          double one = 0.0, two = 0.0, both = 0.0, kept = 0.0;
          for (std::size_t r = 0; r < replicas; ++r) {
            if (r == left_out) continue;
            one += first[r];
            two += second[r];
            both += product[r];
            kept += 1.0;
          }
          return n * (both / kept - one * two / (kept * kept));
        });
        Estimate difference = covariance;
        difference.value -= limit->best(pairs[k]);
        rows.push_back(row_of(pairs[k].quantity, n, difference, seconds_since(begin)));
        rows.back()["scaled_covariance"] = covariance.value;
        rows.back()["limit"] = limit->best(pairs[k]);
      }
      return rows;
    };
    study.units.push_back(std::move(unit));
  }
  study.conclude = [limit, question](std::vector<Json>& rows, Json& summary) {
    sweep::Conclusion conclusion;
    if (limit->status() != RunStatus::Completed) return conclusion;
    const std::vector<Pair> pairs = pairs_of(question);
    summary["limit"] = limit->covariance(pairs[0]);
    if (question.exact) {
      conclusion.verdicts.push_back(
          verdict("limit on the grid", "<f, (I + beta C W)^-1 C f> equals its closed form",
                  {limit->covariance(pairs[0]), 0.0, 1}, *question.exact, 0.01 * std::abs(*question.exact),
                  "closed form given in the config"));
    }
    for (const Pair& pair : pairs) {
      std::vector<double> inverse_counts;
      std::vector<Estimate> covariances;  // limit + c/N
      for (const Json& row : rows) {
        if (!row.contains("scaled_covariance") || row.at("quantity") != pair.quantity) continue;
        inverse_counts.push_back(1.0 / row.at("value").get<double>());
        covariances.push_back({row.at("scaled_covariance"), row.at("standard_error"), row.at("samples")});
      }
      // A line in 1/N through the larger half of the counts: the next term is of order 1/N^2.
      const std::size_t kept = std::max<std::size_t>(2, (covariances.size() + 1) / 2);
      if (covariances.size() < 2) continue;
      std::vector<std::size_t> order(covariances.size());
      for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
      std::sort(order.begin(), order.end(),
                [&](std::size_t a, std::size_t b) { return inverse_counts[a] < inverse_counts[b]; });
      std::vector<double> x;
      std::vector<Estimate> y;
      for (std::size_t k = 0; k < kept; ++k) {
        x.push_back(inverse_counts[order[k]]);
        y.push_back(covariances[order[k]]);
      }
      conclusion.verdicts.push_back(within_noise(
          std::string(pair.quantity) + ", N to infinity",
          std::string(pair.text) + " -> the same entry of the inverse Hessian, (I + beta C W)^-1 C",
          intercept(x, y), limit->best(pair), "theory.md section 3, item 7"));
    }
    return conclusion;
  };
  return study;
}

std::string plan(const Sampling& sampling, const std::vector<side_by_side::Question>& rows, double schemes) {
  std::string text =
      fmt::format("model      {}\nrows       {}\n", description(sampling.base.model), rows.size());
  double seconds = 0.0, memory = 0.0;
  for (const side_by_side::Question& row : rows) {
    const Plan costs = rieszflow::plan(row);
    seconds += schemes * costs.particle_seconds;
    memory = std::max(memory, costs.memory_bytes);
    text += fmt::format("  {} replicas of N = {}, timestep {:g}, {:.6g} steps, about {}\n",
                        row.particles->replicas, row.particles->count, row.particles->options.timestep,
                        schemes * costs.particle_steps, duration_text(schemes * costs.particle_seconds));
  }
  text += fmt::format(
      "averages   over times {:g} to {:g}, every {:g}\nparticles  about {} in all\nmemory     about {} a "
      "row\n",
      sampling.average_from, sampling.base.end, sampling.base.output_every, duration_text(seconds),
      bytes_text(memory));
  return text;
}

}  // namespace rieszflow::equilibrium
