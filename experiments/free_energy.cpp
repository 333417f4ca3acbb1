#include "experiments/free_energy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>

#include "analysis/estimate.hpp"
#include "analysis/extrapolation.hpp"
#include "analysis/rate_fit.hpp"
#include "experiments/convergence.hpp"
#include "experiments/plan.hpp"
#include "model/description.hpp"
#include "model/mean_field.hpp"
#include "solvers/rare_event/interaction_field.hpp"
#include "solvers/stationary/rate_function.hpp"

namespace rieszflow::free_energy {
namespace {

using sweep::Json;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// -beta min F and c0, found once by the first unit that asks.
class Limit {
 public:
  explicit Limit(const Question& question) : question_(question) {}

  bool found() {
    std::call_once(once_, [this] { find(); });
    return std::isfinite(value_);
  }
  double value() const { return value_; }
  double correction() const { return correction_; }

 private:
  void find() {
    const Model& model = question_.model;
    std::vector<RefinedValue> values;
    for (const std::size_t factor : {4, 2, 1}) {
      std::vector<std::size_t> cells = question_.cells;
      for (std::size_t& count : cells) count /= factor;
      const MeanField field(model, grid_on(model.domain, cells), {.threads = question_.sampling.threads});
      const stationary::Result minimum = stationary::solve(
          field, cell_averages(UniformLaw{}, model.domain, field.grid()), {.tolerance = 1e-11});
      if (minimum.status != RunStatus::Completed) return;
      values.push_back({field.grid().spacing(0), -model.inverse_temperature * minimum.energy.free_energy});
      if (factor == 1) correction_ = stationary::partition_correction(field, minimum.density);
    }
    value_ = question_.exact.value_or(extrapolated(values).limit);
  }

  const Question question_;
  std::once_flag once_;
  double value_ = not_a_number, correction_ = not_a_number;
};

}  // namespace

std::optional<std::string> refusal(const Model& model) {
  if (const auto sentence = rare_event::InteractionField::refusal(model)) return sentence;
  if (!model.functionals.empty()) return "takes no alignment terms";
  if (std::holds_alternative<WholeSpace>(model.domain))
    return "needs a bounded domain, on which F is minimised";
  if (dimension(model.domain) > 3) return "needs 1 to 3 dimensions";
  return std::nullopt;
}

sweep::Study study(const Question& question) {
  const auto [expected, reference] = convergence::correction_exponent(question.model);
  sweep::Study study{.type = "free_energy",
                     .name = question.name,
                     .model = description(question.model),
                     .question = "How fast does (1/N) log Z_N approach minus beta times the minimum of F?",
                     .units = {},
                     .curves = {{.quantity = "free_energy",
                                 .description = "|(1/N) log Z_N + beta min F|",
                                 .scale_label = "N",
                                 .expected = expected,
                                 .reference = reference}}};
  const auto limit = std::make_shared<Limit>(question);
  for (const std::size_t count : question.counts) {
    sweep::Unit unit{.name = fmt::format("N = {}", count),
                     .cost = std::pow(static_cast<double>(count), 2.0),
                     .measure = {}};
    unit.measure = [question, count, limit](const sweep::Workplace& workplace) -> std::vector<Json> {
      const auto begin = std::chrono::steady_clock::now();
      const double n = static_cast<double>(count);
      Json row{{"quantity", "free_energy"}, {"value", n}, {"scale", n}};
      if (!limit->found()) {
        row["status"] = name(RunStatus::NotConverged);
        row["message"] = "the minimiser of F was not found";
        return {row};
      }
      rare_event::PartitionOptions options = question.sampling;
      options.seed = sweep::seed_of(options.seed, {&n, 1});
      options.threads = workplace.threads;
      options.interrupted = workplace.interrupted;
      const rare_event::PartitionFunction z = rare_event::partition_function(question.model, count, options);
      if (z.status == RunStatus::Interrupted) return {};
      row["status"] = name(z.status);
      row["message"] = z.message;
      if (z.status == RunStatus::Completed) {
        const double error = z.log_partition / n - limit->value();
        row["log_partition_per_particle"] = z.log_partition / n;
        row["limit"] = limit->value();
        row["error"] = std::abs(error);
        row["signed_error"] = error;
        row["standard_error"] = z.standard_error / n;
        row["samples"] = z.replicate_values.size();
        row["couplings"] = z.couplings.size();
        row["least_overlap"] = z.least_overlap;
      }
      row["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      return {row};
    };
    study.units.push_back(std::move(unit));
  }
  study.conclude = [limit, expected = expected](std::vector<Json>& rows, Json& summary) {
    sweep::Conclusion conclusion;
    if (!limit->found()) return conclusion;
    summary["limit"] = limit->value();
    std::vector<double> inverse_counts;
    std::vector<Estimate> scaled;  // N (error) = c0 + c/N
    std::vector<RatePoint> points;
    for (const Json& row : rows) {
      if (!row.contains("signed_error")) continue;
      const double n = row.at("value"), standard_error = row.at("standard_error");
      inverse_counts.push_back(1.0 / n);
      scaled.push_back({n * row.at("signed_error").get<double>(), n * standard_error, row.at("samples")});
      points.push_back({n, {row.at("error"), standard_error, row.at("samples")}});
    }
    if (points.size() < 2) return conclusion;
    if (expected == -1.0) {
      const Estimate measured = intercept(inverse_counts, scaled);
      summary["correction"] = limit->correction();
      conclusion.verdicts.push_back(
          verdict("c0", "N ((1/N) log Z_N + beta min F) -> c0 of the determinant formula", measured,
                  limit->correction(), 4.0 * measured.standard_error + 0.05 * std::abs(limit->correction()),
                  "theory.md section 3, item 3"));
    } else if (std::isfinite(expected)) {
      const RateFit fit = fit_rate(points);
      conclusion.verdicts.push_back(
          {.name = "not 1/N",
           .claim = "the exponent of the correction is not -1: its 95 % interval lies above",
           .measured = fit.exponent,
           .expected = expected,
           .tolerance = expected + 1.0,
           .passed = fit.low > -1.0,
           .reference = "theory.md section 3, item 2"});
    }
    return conclusion;
  };
  return study;
}

std::string plan(const Question& question) {
  std::string text = fmt::format("model      {}\nrows       {} (N = {})\n", description(question.model),
                                 question.counts.size(), fmt::join(question.counts, ", "));
  double seconds = 0.0;
  for (const std::size_t count : question.counts) {
    // Couplings grow like sqrt(N); a move costs N kernel values.
    const double n = static_cast<double>(count), windows = 3.0 + 1.5 * std::sqrt(n);
    const double moves = windows * n * static_cast<double>(question.sampling.replicates) *
                         static_cast<double>(question.sampling.sweeps);
    const double row = moves * (1e-7 + 2e-9 * n) / std::max(1, question.sampling.threads);
    seconds += row;
    text += fmt::format("  N = {}: about {:.0f} couplings, {:.2g} moves, about {}\n", count, windows, moves,
                        duration_text(row));
  }
  text += fmt::format(
      "sampling   {} replicates of {} sweeps a coupling\ndensity    {} cells\nin all     about {}\n",
      question.sampling.replicates, question.sampling.sweeps, fmt::join(question.cells, " x "),
      duration_text(seconds));
  return text;
}

}  // namespace rieszflow::free_energy
