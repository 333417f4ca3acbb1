#include "experiments/free_energies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>

#include "analysis/rate_fit.hpp"
#include "domain/grid.hpp"
#include "model/description.hpp"
#include "model/mean_field.hpp"
#include "solvers/stationary/rate_function.hpp"
#include "solvers/stationary/self_consistency.hpp"

namespace rieszflow::free_energies {
namespace {

using sweep::Json;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_cells_of_a_determinant = 2500;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number_at(const Json& row, const char* key) {
  return row.contains(key) && row.at(key).is_number() ? row.at(key).get<double>() : not_a_number;
}

Model at_temperature(Model model, double beta) {
  model.inverse_temperature = beta;
  return model;
}

/// The minimiser of F and what follows from it.
struct Limit {
  double limit = not_a_number;       ///< -beta min F
  double correction = not_a_number;  ///< c0
};

Limit limit_of(const PartitionQuestion& question, double beta, bool with_correction) {
  const std::optional<Model> model = rare_event::bounded(at_temperature(question.model, beta));
  if (question.cells.empty() || !model) return {};
  const MeanField field(*model, grid_on(model->domain, question.cells),
                        {.threads = question.options.threads});
  Density start{field.grid(), std::vector<double>(field.grid().cell_count(), 1.0 / volume(model->domain))};
  const stationary::Result minimum = stationary::solve(field, start, {});
  if (minimum.status != RunStatus::Completed) return {};
  Limit limit{.limit = -beta * minimum.energy.free_energy};
  const bool possible = model->functionals.empty() && start.averages.size() <= most_cells_of_a_determinant;
  if (with_correction && possible)
    limit.correction = stationary::partition_correction(field, minimum.density);
  return limit;
}

/// Exponent of the distance from the limit in N; NaN where it is not a power or not known.
double expected_exponent(const Model& model) {
  const double d = static_cast<double>(dimension(model.domain));
  double exponent = -1.0;
  for (const Interaction& interaction : model.interactions) {
    const auto* riesz = std::get_if<RieszInteraction>(&interaction);
    if (riesz == nullptr || riesz->softening > 0.0 || riesz->exponent < 0.5 * d) continue;
    exponent = riesz->exponent == 0.5 * d ? not_a_number : std::max(exponent, -(d / riesz->exponent - 1.0));
  }
  return exponent;
}

/// True where W is not square integrable: then the excess falls like N^-(d/s - 1) and there is no c0.
bool is_anomalous(const Model& model) { return expected_exponent(model) > -1.0; }

/// The n-particle terms of Mayer's expansion of the excess fall like N^-(n-1)(d/s-1), from the pairs on: the
/// exponents of triples and quadruples relative to that of pairs. Else the excess is a series in 1/N (in
/// beta/N: at beta = 10 its third term is seen from N = 10 to 100).
std::vector<double> corrections(const PartitionQuestion& question) {
  if (!is_anomalous(question.model))
    return question.counts.size() < 5 ? std::vector{-1.0} : std::vector{-1.0, -2.0};
  const double pair = expected_exponent(question.model);
  return {pair, 2.0 * pair};
}

std::string curve_name(double beta) { return fmt::format("free_energy_beta_{:g}", beta); }

std::vector<Json> partition_rows(const PartitionQuestion& question, double beta, std::size_t count,
                                 const sweep::Workplace& workplace) {
  rare_event::PartitionOptions options = question.options;
  options.threads = workplace.threads;
  options.interrupted = workplace.interrupted;
  options.seed = sweep::seed_of(question.options.seed, std::vector<double>{beta, static_cast<double>(count)});
  const rare_event::PartitionFunction z =
      rare_event::partition_function(at_temperature(question.model, beta), count, options);
  if (z.status == RunStatus::Interrupted) return {};
  const double n = static_cast<double>(count), limit = limit_of(question, beta, false).limit;
  Json row{{"quantity", curve_name(beta)},
           {"value", count},
           {"count", count},
           {"inverse_temperature", beta},
           {"status", name(z.status)},
           {"message", z.message},
           {"log_partition_per_particle", number(z.log_partition / n)},
           {"standard_error", number(z.standard_error / n)},
           {"limit", number(limit)},
           {"windows", z.couplings.size()},
           {"least_overlap", z.least_overlap},
           {"samples", z.replicate_values.size()},
           {"moves", z.moves},
           {"seconds", z.seconds}};
  if (std::isfinite(z.log_partition) && std::isfinite(limit)) {
    row["scale"] = count;
    row["error"] = std::abs(z.log_partition / n - limit);
  }
  return {row};
}

/// log Z_N = N limit + c0 + e/N (+ f/N^2 from five counts on) beside the density, for each temperature.
void conclude_partition(const PartitionQuestion& question, const std::vector<Json>& rows, Json& summary) {
  Json limits = Json::array();
  for (const double beta : question.inverse_temperatures) {
    std::vector<TailPoint> points;
    for (const Json& row : rows) {
      const double n = number_at(row, "count"), value = number_at(row, "log_partition_per_particle");
      if (row.at("inverse_temperature") == beta && std::isfinite(value))
        points.push_back(
            {n, {-n * value, n * number_at(row, "standard_error"), question.options.replicates}});
    }
    const bool regular = !is_anomalous(question.model);
    const Limit theory = limit_of(question, beta, regular);
    Json entry{{"inverse_temperature", beta},
               {"limit_theory", number(theory.limit)},
               {"correction_theory", number(theory.correction)}};
    if (regular && points.size() >= 3) {
      const TailFit fit =
          fit_tail(points, {.log_coefficient = 0.0, .inverse_square_term = points.size() >= 5});
      entry["limit"] = fit.rate.value;
      entry["limit_error"] = number(fit.rate.standard_error);
      entry["correction"] = fit.offset;
      entry["z"] = number((fit.rate.value - theory.limit) / fit.rate.standard_error);
    }
    limits.push_back(std::move(entry));
  }
  summary["limits"] = std::move(limits);
}

/// The exponent of an excess that is not of order 1/N.
void judge_exponents(const PartitionQuestion& question, const std::vector<Json>& rows, Json& summary,
                     sweep::Conclusion& conclusion) {
  if (question.cells.empty() || !is_anomalous(question.model)) return;
  const double expected = expected_exponent(question.model);
  const std::vector<double> relative = corrections(question);
  Json exponents = Json::array();
  for (const double beta : question.inverse_temperatures) {
    std::vector<RatePoint> points;
    for (const Json& row : rows) {
      const double excess = number_at(row, "error"), error = number_at(row, "standard_error");
      if (row.at("inverse_temperature") == beta && excess > 0.0 && error > 0.0)
        points.push_back({number_at(row, "count"), {excess, error, question.options.replicates}});
    }
    if (points.size() < relative.size() + 3) continue;
    const CorrectedRateFit fit = fit_corrected_rate(points, relative);
    const double from_one = z_score(fit.exponent, -1.0);
    Verdict verdict = rieszflow::verdict(
        fmt::format("exponent near {:.4g} and not -1 (beta = {:g}, {:.0f} standard errors from -1)", expected,
                    beta, from_one),
        fmt::format(
            "the excess (1/N) log Z_N + beta min F falls with an exponent near -(d/s - 1) = {:.4g} and "
            "not -1: W is not square integrable",
            expected),
        fit.exponent, expected, 4.0 * fit.exponent.standard_error,
        "theory.md section 3, item 2; Mayer's pair term");
    verdict.passed = verdict.passed && from_one > 5.0;
    exponents.push_back({{"inverse_temperature", beta},
                         {"statement", verdict.claim},
                         {"exponent", fit.exponent.value},
                         {"standard_error", number(fit.exponent.standard_error)},
                         {"expected", expected},
                         {"z", number(z_score(fit.exponent, expected))},
                         {"z_against_minus_one", number(from_one)},
                         {"chi_squared", fit.chi_squared},
                         {"degrees_of_freedom", fit.degrees_of_freedom}});
    conclusion.verdicts.push_back(std::move(verdict));
  }
  summary["exponents"] = std::move(exponents);
}

rare_event::SmoothStatistic statistic_of(const PathQuestion& question) {
  const auto f = question.function;
  return {rare_event::mean_of("g", [f](std::span<const double> x) { return (*f)(x); }),
          [f](std::span<const double> x, std::span<double> out) { f->value_and_gradient(x, out); }};
}

std::vector<Json> path_rows(const PathQuestion& question, double level, std::size_t count,
                            const sweep::Workplace& workplace) {
  const auto begin = std::chrono::steady_clock::now();
  rare_event::PathOptions options = question.options;
  options.threads = workplace.threads;
  options.interrupted = workplace.interrupted;
  options.seed =
      sweep::seed_of(question.options.seed, std::vector<double>{level, static_cast<double>(count)});
  const rare_event::Event event =
      question.above ? rare_event::Event{.lower = level} : rare_event::Event{.upper = level};
  const rare_event::PathProbability p = rare_event::path_probability(
      question.model, path_start(question, count), statistic_of(question), event, options);
  if (p.status == RunStatus::Interrupted) return {};
  return {{{"quantity", fmt::format("level_{:g}", level)},
           {"value", count},
           {"count", count},
           {"level", level},
           {"status", name(p.status)},
           {"message", p.message},
           {"log_probability", number(p.log_probability)},
           {"standard_error", number(p.standard_error)},
           {"rate", number(-p.log_probability / static_cast<double>(count))},
           {"relative_variance", number(p.relative_variance)},
           {"control", p.control},
           {"rounds", p.rounds},
           {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()}}};
}

void conclude_paths(const PathQuestion& question, const std::vector<Json>& rows, Json& summary) {
  Json tails = Json::array();
  for (const double level : question.levels) {
    std::vector<TailPoint> points;
    for (const Json& row : rows) {
      if (row.at("level") == level && row.at("log_probability").is_number())
        points.push_back({number_at(row, "count"),
                          {number_at(row, "log_probability"), number_at(row, "standard_error"),
                           question.options.replicates}});
    }
    if (points.size() < 2) continue;
    const TailFit fit = fit_tail(points, {.log_coefficient = 0.5, .inverse_term = points.size() >= 3});
    tails.push_back({{"level", level},
                     {"form", "N I + (1/2) log N + a + c/N"},
                     {"rate", fit.rate.value},
                     {"standard_error", number(fit.rate.standard_error)},
                     {"offset", fit.offset},
                     {"chi_squared", fit.chi_squared},
                     {"degrees_of_freedom", fit.degrees_of_freedom}});
  }
  summary["tails"] = std::move(tails);
}

}  // namespace

sweep::Study study(const PartitionQuestion& question) {
  sweep::Study study{.type = "partition_function",
                     .name = question.name,
                     .model = description(question.model),
                     .question = "How does (1/N) log Z_N approach -beta min F of the density?",
                     .units = {},
                     .curves = {}};
  for (const double beta : question.inverse_temperatures) {
    for (const std::size_t count : question.counts) {
      study.units.push_back({.name = fmt::format("N = {}, beta = {:g}", count, beta),
                             .cost = std::pow(static_cast<double>(count), 2.5),
                             .measure = [question, beta, count](const sweep::Workplace& workplace) {
                               return partition_rows(question, beta, count, workplace);
                             }});
    }
    study.curves.push_back(
        {.quantity = curve_name(beta),
         .description = fmt::format("(1/N) log Z_N + β min F, β = {:g}", beta),
         .scale_label = "N",
         .expected = question.cells.empty() ? not_a_number : expected_exponent(question.model),
         .reference = "theory.md section 3, items 2 and 3",
         .corrections = corrections(question)});
  }
  study.conclude = [question](std::vector<Json>& rows, Json& summary) {
    conclude_partition(question, rows, summary);
    sweep::Conclusion conclusion;
    judge_exponents(question, rows, summary, conclusion);
    return conclusion;
  };
  return study;
}

std::vector<double> path_start(const PathQuestion& question, std::size_t count) {
  const std::size_t d = question.start.size();
  std::vector<double> positions;
  for (std::size_t i = 0; i < count; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    for (std::size_t k = 0; k < d; ++k) {
      const double angle = 2.0 * std::numbers::pi * share;
      const double shift = d == 1   ? 2.0 * share - 1.0
                           : k == 0 ? std::cos(angle)
                           : k == 1 ? std::sin(angle)
                                    : 0.0;
      positions.push_back(question.start[k] + question.spread * shift);
    }
  }
  return positions;
}

sweep::Study study(const PathQuestion& question) {
  sweep::Study study{.type = "path_probability",
                     .name = question.name,
                     .model = description(question.model),
                     .question = "How rare is it that the particles have moved this far?",
                     .units = {},
                     .curves = {}};
  for (const double level : question.levels) {
    for (const std::size_t count : question.counts) {
      study.units.push_back({.name = fmt::format("N = {}, level {:g}", count, level),
                             .cost = std::pow(static_cast<double>(count), 1.5),
                             .measure = [question, level, count](const sweep::Workplace& workplace) {
                               return path_rows(question, level, count, workplace);
                             }});
    }
  }
  study.conclude = [question](std::vector<Json>& rows, Json& summary) {
    conclude_paths(question, rows, summary);
    sweep::Conclusion conclusion;
    std::vector<report::CaptionedFigure>& figures = conclusion.figures;
    for (const double level : question.levels) {
      plot::Markers measured{.x = {}, .y = {}, .error = {}, .label = "controlled paths"};
      for (const Json& row : rows) {
        if (row.at("level") != level || !row.at("rate").is_number()) continue;
        measured.x.push_back(row.at("count"));
        measured.y.push_back(row.at("rate"));
        measured.error.push_back(number_at(row, "standard_error") / row.at("count").get<double>());
      }
      if (measured.x.empty()) continue;
      figures.push_back({fmt::format("path_{}", figures.size() + 1),
                         {.title = fmt::format("level {:g}", level),
                          .x = {.label = "N", .logarithmic = true},
                          .y = {.label = "-(1/N) log P"},
                          .layers = {measured}},
                         ""});
    }
    return conclusion;
  };
  return study;
}

}  // namespace rieszflow::free_energies
