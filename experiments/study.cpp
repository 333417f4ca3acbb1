#include "experiments/study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/match.hpp"
#include "experiments/catalogue.hpp"
#include "experiments/chaos.hpp"
#include "experiments/convergence.hpp"
#include "experiments/equilibrium.hpp"
#include "experiments/free_energies.hpp"
#include "model/description.hpp"
#include "solvers/rare_event/interaction_field.hpp"
#include "solvers/rare_event/partition_function.hpp"

namespace rieszflow::study {
namespace {

using config::Document;
using config::Table;

std::shared_ptr<const ExpressionFunction> function_of(Table& table, const char* key, std::size_t dimension) {
  try {
    return std::make_shared<const ExpressionFunction>(table.text(key), coordinate_names(dimension));
  } catch (const std::invalid_argument& fault) {
    table.problem(key, std::string("is no function of the coordinates: ") + fault.what());
    return nullptr;
  }
}

large_deviations::StatisticChoice statistic_of(Table& table, std::size_t dimension) {
  using Kind = large_deviations::StatisticChoice::Kind;
  large_deviations::StatisticChoice choice;
  const std::string& type = table.type();
  if (type == "mean") {
    choice.axis = static_cast<std::size_t>(table.integer("axis"));
    if (choice.axis >= dimension)
      table.problem("axis", fmt::format("is {}, must be below the dimension {}", choice.axis, dimension));
  } else if (type == "moment") {
    choice.kind = Kind::Moment;
    choice.power = static_cast<int>(table.integer("power"));
  } else if (type == "linear" || type == "largest") {
    choice.kind = type == "linear" ? Kind::Linear : Kind::Largest;
    choice.function = function_of(table, "value", dimension);
  } else {
    choice.kind = type == "kernel_entry" ? Kind::KernelEntry : Kind::KernelDistance;
    choice.map = feature_map_named(table.text("map")).value();
    // fourier, positive_exponential, relu: omega lives where the data do; circle: both are angles.
    choice.data_dimension = dimension;
    if (choice.map == FeatureMap::Circle && dimension != 1)
      table.problem("map", "is \"circle\", which needs a domain of dimension 1");
    if (choice.kind == Kind::KernelEntry) {
      for (const char* key : {"first", "second"}) {
        const std::vector<double>& point = table.numbers(key);
        if (point.size() != dimension)
          table.problem(key, fmt::format("has {} entries, must have {}: one for each coordinate",
                                         point.size(), dimension));
        choice.points.insert(choice.points.end(), point.begin(), point.end());
      }
    } else {
      choice.points = table.numbers("points");
      if (choice.points.size() % dimension != 0) {
        table.problem(
            "points",
            fmt::format("has {} entries, must have a multiple of {}: the coordinates of whole points",
                        choice.points.size(), dimension));
      }
    }
  }
  return choice;
}

/// A number in --set that the study replaces would do nothing.
void refuse_override(Table* table, const char* key, const char* instead) {
  if (table != nullptr && table->overridden(key))
    table->problem(
        key, fmt::format("is swept by this study, which does not read it: must be given as {}", instead));
}

large_deviations::Question large_deviations_of(Document& document, Table& table, Model model,
                                               const Request& request) {
  large_deviations::Question question{.name = {},
                                      .model = std::move(model),
                                      .statistic = {},
                                      .side = {},
                                      .levels = table.numbers("levels"),
                                      .counts = {},
                                      .inverse_temperatures = {},
                                      .cells = {}};
  const std::size_t d = dimension(question.model.domain);
  if (const auto sentence = rare_event::InteractionField::refusal(question.model))
    table.problem("type", *sentence);
  if (Table* statistic = document.table("study.statistic"); statistic != nullptr && statistic->good()) {
    question.statistic = statistic_of(*statistic, d);
  }
  if (std::holds_alternative<WholeSpace>(question.model.domain) &&
      rare_event::essential_box(question.model).lower.empty()) {
    table.problem("type",
                  "is a question about the Gibbs law, which in the whole space needs a potential that grows "
                  "along every axis");
  }
  const std::string& event = table.text("event");
  question.side = event == "above"   ? large_deviations::Side::Above
                  : event == "below" ? large_deviations::Side::Below
                                     : large_deviations::Side::Within;
  for (const double level : question.levels) {
    if (question.side == large_deviations::Side::Within && !(level > 0.0)) {
      table.problem("levels",
                    fmt::format("holds {:g}, must be positive where the event is \"within\"", level));
    }
  }
  for (const std::int64_t count : table.integers("counts"))
    question.counts.push_back(static_cast<std::size_t>(count));
  if (table.has("inverse_temperatures"))
    refuse_override(document.table("model"), "inverse_temperature", "study.inverse_temperatures");
  else
    table.fill("inverse_temperatures", std::vector<double>{question.model.inverse_temperature});
  question.inverse_temperatures = table.numbers("inverse_temperatures");
  const std::string& method = table.text("method");
  for (const rare_event::Method known : {rare_event::Method::Direct, rare_event::Method::Tilt,
                                         rare_event::Method::Umbrella, rare_event::Method::Splitting}) {
    if (method == rare_event::name(known)) question.method = known;
  }
  const bool linear = question.statistic.kind != large_deviations::StatisticChoice::Kind::Largest;
  if (!linear && question.side != large_deviations::Side::Below &&
      (method == "tilt" || method == "umbrella")) {
    table.problem("method", fmt::format("is \"{}\", which biases a mean: must be \"auto\" | "
                                        "\"direct\" | \"splitting\" for the largest value above a level",
                                        method));
  }
  if (request.seed) table.fill("seed", *request.seed);
  question.options = {.replicates = static_cast<std::size_t>(table.integer("replicates")),
                      .target_error = table.number("target_error"),
                      .sweeps = table.integer("sweeps"),
                      .walkers = static_cast<std::size_t>(table.integer("walkers")),
                      .seed = static_cast<std::uint64_t>(table.integer("seed")),
                      .threads = request.threads};
  if (table.has("cells")) {
    const std::vector<std::int64_t>& cells = table.integers("cells");
    if (cells.size() != d)
      table.problem("cells",
                    fmt::format("has {} entries, must have {}: one for each coordinate of the domain",
                                cells.size(), d));
  } else if (d <= 3) {
    table.fill("cells", std::vector<std::int64_t>(d, d == 1 ? 400 : d == 2 ? 96 : 24));
  }
  if (table.has("cells")) {
    for (const std::int64_t cells : table.integers("cells"))
      question.cells.push_back(static_cast<std::size_t>(cells));
  }
  if (question.statistic.kind == large_deviations::StatisticChoice::Kind::KernelDistance &&
      question.cells.empty()) {
    table.problem("type",
                  "a kernel distance needs the minimiser of F as its target: at most three dimensions");
  }
  return question;
}

// ---- partition functions and paths ----

std::vector<std::size_t> counts_of(const Table& table) {
  std::vector<std::size_t> counts;
  for (const std::int64_t count : table.integers("counts")) counts.push_back(static_cast<std::size_t>(count));
  return counts;
}

Sweep partition_function_of(Document& document, Table& table, Model model, const std::string& name,
                            const Request& request) {
  const std::size_t d = dimension(model.domain);
  if (const auto sentence = rare_event::InteractionField::refusal(model)) table.problem("type", *sentence);
  if (std::holds_alternative<WholeSpace>(model.domain) && rare_event::essential_box(model).lower.empty()) {
    table.problem("type",
                  "is a question about the Gibbs law, which in the whole space needs a potential that grows "
                  "along every axis");
  }
  if (d > 3 && !model.potentials.empty())
    table.problem("type", "integrates exp(-beta V) over at most three coordinates");
  if (table.has("inverse_temperatures"))
    refuse_override(document.table("model"), "inverse_temperature", "study.inverse_temperatures");
  else
    table.fill("inverse_temperatures", std::vector<double>{model.inverse_temperature});
  if (request.seed) table.fill("seed", *request.seed);
  if (!table.has("cells") && d <= 3)
    table.fill("cells", std::vector<std::int64_t>(d, d == 1 ? 400 : d == 2 ? 96 : 24));
  free_energies::PartitionQuestion question{
      .name = name,
      .model = std::move(model),
      .counts = counts_of(table),
      .inverse_temperatures = table.numbers("inverse_temperatures"),
      .options = {.method = table.text("method") == "thermodynamic"
                                ? rare_event::PartitionMethod::Thermodynamic
                                : rare_event::PartitionMethod::Reweighting,
                  .replicates = static_cast<std::size_t>(table.integer("replicates")),
                  .sweeps = table.integer("sweeps"),
                  .seed = static_cast<std::uint64_t>(table.integer("seed"))},
      .cells = {}};
  if (table.has("cells")) {
    for (const std::int64_t cells : table.integers("cells"))
      question.cells.push_back(static_cast<std::size_t>(cells));
    if (question.cells.size() != d)
      table.problem("cells",
                    fmt::format("has {} entries, must have {}: one for each coordinate of the domain",
                                question.cells.size(), d));
  }
  return {.study = free_energies::study(question),
          .plan = fmt::format(
              "model      {}\nrows       {} (N = {}; beta = {})\nsampling   {} replicates of {} "
              "sweeps a coupling\n",
              description(question.model), question.counts.size() * question.inverse_temperatures.size(),
              fmt::join(question.counts, ", "), fmt::join(question.inverse_temperatures, ", "),
              question.options.replicates, question.options.sweeps)};
}

Sweep path_probability_of(Table& table, Model model, const std::string& name, const Request& request) {
  const std::size_t d = dimension(model.domain);
  if (request.seed) table.fill("seed", *request.seed);
  free_energies::PathQuestion question{
      .name = name,
      .model = std::move(model),
      .function = function_of(table, "function", d),
      .above = table.text("event") == "above",
      .levels = table.numbers("levels"),
      .counts = counts_of(table),
      .start = table.numbers("start"),
      .spread = table.number("spread"),
      .options = {.end = table.number("end"),
                  .timestep = table.number("timestep"),
                  .paths = static_cast<std::size_t>(table.integer("paths")),
                  .replicates = static_cast<std::size_t>(table.integer("replicates")),
                  .intervals = static_cast<std::size_t>(table.integer("intervals")),
                  .learning_paths = static_cast<std::size_t>(table.integer("learning_paths")),
                  .seed = static_cast<std::uint64_t>(table.integer("seed"))}};
  if (std::isinf(question.model.inverse_temperature))
    table.problem("type", "is a question about noise, needs a finite inverse_temperature");
  if (question.start.size() != d) {
    table.problem("start", fmt::format("has {} entries, must have {}: one for each coordinate of the domain",
                                       question.start.size(), d));
    question.start.resize(d);
  }
  if (question.spread > 0.0 && d > 2)
    table.problem("spread", fmt::format("is {:g}, must be 0 in {} dimensions", question.spread, d));
  if (question.spread == 0.0 && has_singular_interaction(question.model))
    table.problem("spread", "is 0, must be positive: the interaction is infinite where particles coincide");
  for (const std::size_t count : question.counts) {
    const std::vector<double> positions = free_energies::path_start(question, count);
    for (std::size_t i = 0; i < count; ++i) {
      if (contains(question.model.domain, std::span(positions).subspan(i * d, d))) continue;
      table.problem("start", "puts particles outside of the domain");
      i = count;
    }
  }
  return {.study = free_energies::study(question),
          .plan = fmt::format(
              "model      {}\nrows       {} (N = {}; levels {})\nsampling   {} replicates of {} "
              "paths, {} steps each\n",
              description(question.model), question.counts.size() * question.levels.size(),
              fmt::join(question.counts, ", "), fmt::join(question.levels, ", "), question.options.replicates,
              question.options.paths, std::ceil(question.options.end / question.options.timestep))};
}

// ---- sweeps ----

/// d of [model.domain], before the model is assembled; 0 where the table has problems.
std::size_t dimension_of(Document& document) {
  Table* table = document.table("model.domain");
  if (table == nullptr || !table->good()) return 0;
  if (table->type() == "whole_space") return static_cast<std::size_t>(table->integer("dimension"));
  return table->numbers(table->type() == "ball" ? "center" : "lower").size();
}

/// A section of `run` that this type of study needs, or does not know.
void require(Document& document, const char* section, bool needed, const std::string& type) {
  if (needed && document.table(section) == nullptr)
    document.problem(section, fmt::format("is missing, must be given for a study of type \"{}\"", type));
}
void refuse(Document& document, const char* section, const char* main_key, const std::string& type) {
  if (Table* table = document.table(section))
    table->problem(main_key, fmt::format("is not read by a study of type \"{}\", must be left out", type));
}

/// Fills a key of a side that `values` replaces anyway; a problem where it is neither given nor swept.
void sweep_key(Table* side, const char* key, bool swept, const config::Value& value) {
  if (swept) refuse_override(side, key, "study.values");
  if (side == nullptr || !side->good() || side->has(key)) return;
  if (swept) {
    side->fill(key, value);
  } else {
    side->problem(key, "is missing, must be given: the study does not sweep it");
  }
}

std::vector<double> swept_values(Table& table, bool whole, double smallest) {
  std::vector<double> values = table.numbers("values");
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    table.problem("values", "holds a value twice, must hold different ones");
  for (const double value : values) {
    if (whole && (value != std::floor(value) || value < smallest || value > 1e12))
      table.problem("values", fmt::format("holds {:g}, must hold whole numbers >= {:g}", value, smallest));
  }
  return values;
}

/// An output interval is divided into equal steps: a timestep that does not divide it is not the one that is
/// taken.
void require_even_steps(Table& table, const std::vector<double>& timesteps, double interval) {
  for (const double timestep : timesteps) {
    const double ratio = interval / timestep;
    if (interval > 0.0 && (ratio < 0.5 || std::abs(ratio - std::round(ratio)) > 1e-6 * ratio))
      table.problem("values",
                    fmt::format("holds {:g}, must divide the time between two outputs, which is {:g}",
                                timestep, interval));
  }
}

/// The four sweeps of a side-by-side run.
Sweep convergence_of(Document& document, Table& table, const Request& request) {
  using namespace convergence;
  convergence::Question question;
  const std::string& type = table.type();
  question.parameter = type == "particle_number"       ? Parameter::ParticleNumber
                       : type == "inverse_temperature" ? Parameter::InverseTemperature
                       : type == "timestep"            ? Parameter::Timestep
                                                       : Parameter::Grid;
  const bool counts = question.parameter == Parameter::ParticleNumber,
             grid = question.parameter == Parameter::Grid, steps = question.parameter == Parameter::Timestep;
  Table *particles = document.table("particles"), *density = document.table("density");
  require(document, "initial", true, type);
  require(document, "time", true, type);
  require(document, "particles", counts, type);
  require(document, "density", grid, type);
  if (grid) refuse(document, "particles", "timestep", type);
  if (question.parameter == Parameter::InverseTemperature)
    refuse_override(document.table("model"), "inverse_temperature", "study.values");
  question.values = swept_values(table, counts || grid, counts ? 2.0 : 1.0);
  const std::size_t d = dimension_of(document);
  if (!question.values.empty()) {
    const double first = question.values.front(),
                 longest = *std::max_element(question.values.begin(), question.values.end());
    sweep_key(particles, "count", counts, static_cast<std::int64_t>(first));
    sweep_key(particles, "timestep", steps, longest);
    if (steps && particles == nullptr) refuse_override(density, "timestep", "study.values");
    sweep_key(density, "cells", grid,
              std::vector<std::int64_t>(std::max<std::size_t>(d, 1), static_cast<std::int64_t>(first)));
  }

  for (const QuantityName& known : quantity_names()) {
    if (table.text("statistic") != known.name) continue;
    question.quantity = known.quantity;
    if (known.distance && (particles == nullptr || density == nullptr)) {
      table.problem(
          "statistic",
          fmt::format("is \"{}\", a distance of particles and density: needs [particles] and [density]",
                      known.name));
    }
    if (known.distance && table.text("error") == "mean_square")
      table.problem("error",
                    "is \"mean_square\", must be \"auto\" | \"bias\" for a distance, whose limit is zero");
    const bool line = known.quantity == Quantity::Wasserstein1 || known.quantity == Quantity::Wasserstein2 ||
                      known.quantity == Quantity::EnergyDistance;
    if (line && d > 1)
      table.problem("statistic", fmt::format("is \"{}\", which needs a domain of dimension 1", known.name));
    if (known.quantity == Quantity::SlicedWasserstein2 && d == 1)
      table.problem("statistic",
                    fmt::format("is \"{}\", which needs a domain of dimension 2 or 3", known.name));
    if (known.quantity == Quantity::Linear && !table.has("function"))
      table.problem("function",
                    "is missing, must be given for statistic = \"linear\": f as text in the coordinates");
  }
  if (table.has("function") && d > 0) question.function = function_of(table, "function", d);
  if (table.has("length")) question.length = table.number("length");
  if (table.has("average_from")) question.average_from = table.number("average_from");
  if (Table* time = document.table("time"); question.average_from && time != nullptr && time->good() &&
                                            *question.average_from > time->number("end"))
    table.problem("average_from", fmt::format("is {:g}, must be <= time.end, which is {:g}",
                                              *question.average_from, time->number("end")));

  const std::string &error = table.text("error"), &reference = table.text("reference");
  const bool distance = std::any_of(
      quantity_names().begin(), quantity_names().end(),
      [&](const QuantityName& known) { return known.quantity == question.quantity && known.distance; });
  const bool moment = question.quantity == Quantity::Mean || question.quantity == Quantity::SecondMoment ||
                      question.quantity == Quantity::Linear;
  question.error = error == "mean_square" || (error == "auto" && counts && moment) ? ErrorKind::MeanSquare
                                                                                   : ErrorKind::Bias;
  if (particles == nullptr && error == "mean_square")
    table.problem("error", "is \"mean_square\", which needs [particles]: a density is not random");
  const bool both = particles != nullptr && density != nullptr;
  question.reference = reference == "density"                                ? Reference::Density
                       : reference == "exact"                                ? Reference::Exact
                       : reference == "zero_temperature"                     ? Reference::ZeroTemperature
                       : reference == "refinement"                           ? Reference::Refinement
                       : table.has("exact") && !distance                     ? Reference::Exact
                       : both                                                ? Reference::Density
                       : question.parameter == Parameter::InverseTemperature ? Reference::ZeroTemperature
                                                                             : Reference::Refinement;
  if (question.reference == Reference::Exact && !table.has("exact"))
    table.problem("exact", "is missing, must be given for reference = \"exact\"");
  if (question.reference == Reference::Density && !both)
    table.problem("reference", "is \"density\", which needs [particles] and [density]");
  if (question.reference == Reference::ZeroTemperature &&
      (question.parameter != Parameter::InverseTemperature || density == nullptr))
    table.problem("reference",
                  "is \"zero_temperature\", which needs type = \"inverse_temperature\" and [density]");
  if (question.reference == Reference::Refinement) {
    if (particles != nullptr)
      table.problem(
          "reference",
          "needs [density] or a number in the key exact: particles alone have nothing to be compared with");
    else if (!grid && !steps)
      table.problem("reference", "is \"refinement\", which needs type = \"grid\" | \"timestep\"");
    if (question.values.size() > 2) {
      std::vector<double> sorted = question.values;
      std::sort(sorted.begin(), sorted.end());
      const double ratio = sorted[1] / sorted[0];
      for (std::size_t k = 1; k + 1 < sorted.size(); ++k) {
        if (std::abs(sorted[k + 1] / sorted[k] - ratio) < 1e-9 * ratio) continue;
        table.problem("values",
                      "must be a geometric sequence where no exact value is given: rows are compared with "
                      "the next finer one");
        break;
      }
    }
  }
  if (distance && question.reference != Reference::Density)
    table.problem("reference", "must be \"auto\" | \"density\" for a distance");
  question.exact = table.has("exact") ? table.number("exact") : 0.0;
  question.tolerance = table.number("tolerance");

  rieszflow::Assembly run = rieszflow::assemble(document, request);  // throws all problems
  question.name = run.question.name;
  question.base = std::move(run.question);
  if (steps)
    require_even_steps(table, question.values,
                       question.average_from ? question.base.output_every : question.base.end);
  document.throw_problems();
  std::tie(question.expected, question.expected_reference) = theoretical_exponent(question);
  if (table.has("expected")) {
    question.expected = table.number("expected");
    question.expected_reference = "given in the config";
  }
  return {convergence::study(question), convergence::plan(question)};
}

// ---- studies of the Gibbs law, and of chaos ----

std::vector<std::size_t> counts_of(Table& table, Table* particles) {
  std::vector<std::size_t> counts;
  for (const double value : swept_values(table, true, 2.0)) counts.push_back(static_cast<std::size_t>(value));
  if (!counts.empty()) sweep_key(particles, "count", true, static_cast<std::int64_t>(counts.front()));
  return counts;
}

std::vector<side_by_side::Question> with_counts(const side_by_side::Question& base,
                                                const std::vector<std::size_t>& counts) {
  std::vector<side_by_side::Question> rows;
  for (const std::size_t count : counts) {
    rows.push_back(base);
    rows.back().particles->count = count;
  }
  return rows;
}

/// Problem of [study] from a model that cannot be asked this; the model is assembled a second time with the
/// run.
void refuse_model(Table& table, const std::optional<std::string>& sentence) {
  if (sentence) table.problem("type", *sentence);
}

/// Averages from here on; absent: after the first fifth.
double average_from(Document& document, Table& table) {
  Table* time = document.table("time");
  if (time == nullptr || !time->good()) return 0.0;
  const double end = time->number("end");
  if (!table.has("average_from")) table.fill("average_from", 0.2 * end);
  const double from = table.number("average_from");
  if (from > end)
    table.problem("average_from", fmt::format("is {:g}, must be <= time.end, which is {:g}", from, end));
  return from;
}

void require_replicas(Table* particles, std::int64_t least) {
  if (particles != nullptr && particles->good() && particles->integer("replicas") < least)
    particles->problem("replicas", fmt::format("is {}, must be >= {}: standard errors are over replicas",
                                               particles->integer("replicas"), least));
}

Sweep equilibrium_of(Document& document, Table& table, const Request& request) {
  const std::string type = table.type();
  Table* particles = document.table("particles");
  require(document, "initial", true, type);
  require(document, "time", true, type);
  require(document, "particles", true, type);
  refuse(document, "density", "cells", type);
  require_replicas(particles, 8);
  const std::size_t d = dimension_of(document);
  equilibrium::Sampling sampling{.name = {}, .base = {}, .average_from = average_from(document, table)};
  std::shared_ptr<const ExpressionFunction> function;
  if (type != "identities" && d > 0) function = function_of(table, "function", d);
  std::shared_ptr<const ExpressionFunction> second;
  if (type == "fluctuations" && d > 0 && table.has("second_function"))
    second = function_of(table, "second_function", d);
  std::vector<std::size_t> counts;
  std::vector<double> timesteps;
  if (type == "boundary") {
    timesteps = swept_values(table, false, 0.0);
    sweep_key(particles, "count", false, std::int64_t{0});
    if (!timesteps.empty()) sweep_key(particles, "timestep", true, timesteps.front());
  } else {
    counts = counts_of(table, particles);
    sweep_key(particles, "timestep", false, 0.0);
  }
  std::vector<std::size_t> cells;
  if (type == "fluctuations") {
    if (!table.has("cells"))
      table.fill("cells", std::vector<std::int64_t>(d, d <= 1 ? 400 : d == 2 ? 32 : 10));
    for (const std::int64_t count : table.integers("cells")) cells.push_back(static_cast<std::size_t>(count));
    if (d > 3)
      table.problem("type", "needs 1 to 3 dimensions: its limit is found on a grid");
    else if (cells.size() != d)
      table.problem("cells",
                    fmt::format("has {} entries, must have {}: one for each coordinate of the domain",
                                cells.size(), d));
  }
  rieszflow::Assembly run = rieszflow::assemble(document, request);  // throws all problems
  sampling.name = run.question.name;
  sampling.base = std::move(run.question);
  const Model& model = sampling.base.model;
  if (type == "boundary") {
    refuse_model(table, equilibrium::boundary_refusal(model));
    require_even_steps(table, timesteps, sampling.base.output_every);
    document.throw_problems();
    std::vector<side_by_side::Question> rows;
    for (const double timestep : timesteps) {
      rows.push_back(sampling.base);
      rows.back().particles->options.timestep = timestep;
    }
    return {equilibrium::study(equilibrium::Boundary{sampling, timesteps, function}),
            equilibrium::plan(sampling, rows, 3.0)};
  }
  if (std::isinf(model.inverse_temperature))
    refuse_model(table, "is about the Gibbs law, which needs a finite inverse_temperature");
  if (type == "fluctuations" &&
      (!model.functionals.empty() || std::holds_alternative<WholeSpace>(model.domain)))
    refuse_model(table, "needs a bounded domain and no alignment terms: its limit is found on a grid");
  document.throw_problems();
  const std::string plan = equilibrium::plan(sampling, with_counts(sampling.base, counts), 1.0);
  if (type == "identities") return {equilibrium::study(equilibrium::Identities{sampling, counts}), plan};
  return {equilibrium::study(equilibrium::Fluctuations{
              sampling, counts, cells, function,
              table.has("exact") ? std::optional(table.number("exact")) : std::nullopt, second}),
          plan};
}

Sweep chaos_of(Document& document, Table& table, const Request& request) {
  const std::string type = table.type();
  Table *particles = document.table("particles"), *density = document.table("density");
  for (const char* section : {"initial", "time", "particles", "density"})
    require(document, section, true, type);
  require_replicas(particles, 8);
  chaos::Question question;
  question.counts = counts_of(table, particles);
  sweep_key(particles, "timestep", false, 0.0);
  sweep_key(density, "cells", false, std::int64_t{0});
  if (table.has("length")) question.length = table.number("length");
  rieszflow::Assembly run = rieszflow::assemble(document, request);  // throws all problems
  question.name = run.question.name;
  question.base = std::move(run.question);
  refuse_model(table, chaos::refusal(question.base.model));
  document.throw_problems();
  const equilibrium::Sampling sampling{.name = question.name, .base = question.base, .average_from = 0.0};
  return {chaos::study(question),
          equilibrium::plan(sampling, with_counts(question.base, question.counts), 2.0)};
}

// ---- stationary states ----

stationary_states::Question stationary_of(Table& table, Model model, const Request& request) {
  stationary_states::Question question{.name = {}, .model = std::move(model), .values = {}, .cells = {}};
  const std::size_t d = dimension(question.model.domain);
  if (std::holds_alternative<WholeSpace>(question.model.domain) || d > 3) {
    table.problem("type", "needs a grid: a bounded domain or a torus of dimension 1, 2 or 3");
    return question;
  }
  question.parameter = table.text("parameter") == "strength"
                           ? stationary_states::Parameter::Strength
                           : stationary_states::Parameter::InverseTemperature;
  const bool strength = question.parameter == stationary_states::Parameter::Strength;
  if (!table.has("values"))
    table.fill("values", std::vector<double>{strength ? 1.0 : question.model.inverse_temperature});
  question.values = table.numbers("values");
  if (strength &&
      std::any_of(question.values.begin(), question.values.end(), [](double v) { return std::isinf(v); }))
    table.problem("values", "holds inf, must hold finite factors of the interaction");
  if (!table.has("cells")) table.fill("cells", std::vector<std::int64_t>(d, d == 1 ? 400 : d == 2 ? 96 : 24));
  const std::vector<std::int64_t>& cells = table.integers("cells");
  if (cells.size() != d)
    table.problem("cells", fmt::format("has {} entries, must have {}: one for each coordinate of the domain",
                                       cells.size(), d));
  for (const std::int64_t count : cells) question.cells.push_back(static_cast<std::size_t>(count));
  if (request.seed) table.fill("seed", *request.seed);
  question.search = {.solve = {.tolerance = table.number("tolerance")},
                     .random_starts = static_cast<int>(table.integer("random_starts")),
                     .seed = static_cast<std::uint64_t>(table.integer("seed"))};
  question.rates = static_cast<int>(table.integer("rates"));
  question.weights = cell_weights_named(table.text("weights"));
  question.threads = request.threads;
  return question;
}

}  // namespace

Assembly assemble(const Request& request) {
  const auto document = read_config(request, "study");
  Assembly assembly;
  assembly.name = name_of(*document, request, "study");
  Table* table = document->table("study");
  const bool good = table != nullptr && table->good();
  const std::string type = good ? table->type() : std::string();
  if (type == "identities" || type == "boundary" || type == "fluctuations") {
    assembly.question = equilibrium_of(*document, *table, request);
  } else if (type == "chaos") {
    assembly.question = chaos_of(*document, *table, request);
  } else if (good && !catalogue::asks_the_model_alone(type)) {
    assembly.question = convergence_of(*document, *table, request);
  } else {
    std::optional<Model> model = assemble_model(*document, request.config.parent_path());
    if (good) {
      for (const auto& [section, key] : {std::pair("initial", "type"), std::pair("time", "end"),
                                         std::pair("particles", "timestep"), std::pair("density", "cells")})
        refuse(*document, section, key, table->type());
    }
    if (model && type == "stationary") {
      if (table->has("values") && table->text("parameter") == "inverse_temperature")
        refuse_override(document->table("model"), "inverse_temperature", "study.values");
      stationary_states::Question question = stationary_of(*table, std::move(*model), request);
      question.name = assembly.name;
      assembly.question = std::move(question);
    } else if (model && type == "partition_function") {
      assembly.question = partition_function_of(*document, *table, std::move(*model), assembly.name, request);
    } else if (model && type == "path_probability") {
      assembly.question = path_probability_of(*table, std::move(*model), assembly.name, request);
    } else if (model && good) {
      large_deviations::Question question =
          large_deviations_of(*document, *table, std::move(*model), request);
      question.name = assembly.name;
      assembly.question = std::move(question);
    }
  }
  document->throw_problems();
  assembly.resolved = document->resolved();
  return assembly;
}

std::string plan(const Question& question) {
  return std::visit(
      Match{
          [](const large_deviations::Question& q) {
            return fmt::format(
                "model      {}\nrows       {} (N = {}; beta = {}; levels {})\nsampling   {} replicates of {} "
                "sweeps a window{}\n"
                "density    {} cells\n",
                description(q.model), q.counts.size() * q.levels.size() * q.inverse_temperatures.size(),
                fmt::join(q.counts, ", "), fmt::join(q.inverse_temperatures, ", "), fmt::join(q.levels, ", "),
                q.options.replicates, q.options.sweeps,
                q.options.target_error > 0.0
                    ? fmt::format(", more until log P is known to {:g}", q.options.target_error)
                    : std::string(),
                q.cells.empty() ? std::string("no") : fmt::format("{}", fmt::join(q.cells, " x ")));
          },
          [](const Sweep& sweep) { return sweep.plan; },
          [](const stationary_states::Question& q) { return stationary_states::plan(q); }},
      question);
}

}  // namespace rieszflow::study
