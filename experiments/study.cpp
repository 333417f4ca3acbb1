#include "experiments/study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/match.hpp"
#include "experiments/catalogue.hpp"
#include "experiments/convergence.hpp"
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
  if (!table.has("inverse_temperatures")) {
    table.fill("inverse_temperatures", std::vector<double>{question.model.inverse_temperature});
  }
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
  question.values = swept_values(table, counts || grid, counts ? 2.0 : 1.0);
  const std::size_t d = dimension_of(document);
  if (!question.values.empty()) {
    const double first = question.values.front(),
                 longest = *std::max_element(question.values.begin(), question.values.end());
    sweep_key(particles, "count", counts, static_cast<std::int64_t>(first));
    sweep_key(particles, "timestep", steps, longest);
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
  std::tie(question.expected, question.expected_reference) = theoretical_exponent(question);
  if (table.has("expected")) {
    question.expected = table.number("expected");
    question.expected_reference = "given in the config";
  }
  return {convergence::study(question), convergence::plan(question)};
}

}  // namespace

Assembly assemble(const Request& request) {
  const auto document = Document::read(request.config, catalogue::study(), request.overrides);
  Assembly assembly;
  if (Table* top = document->table("")) {
    if (!top->has("name")) top->fill("name", request.config.stem().string());
    assembly.name = top->text("name");
  }
  Table* table = document->table("study");
  const bool good = table != nullptr && table->good();
  if (good && table->type() != "large_deviations") {
    assembly.question = convergence_of(*document, *table, request);
  } else {
    std::optional<Model> model = assemble_model(*document, request.config.parent_path());
    if (good) {
      for (const auto& [section, key] : {std::pair("initial", "type"), std::pair("time", "end"),
                                         std::pair("particles", "timestep"), std::pair("density", "cells")})
        refuse(*document, section, key, table->type());
    }
    if (model && good) {
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
                "sweeps a window\n"
                "density    {} cells\n",
                description(q.model), q.counts.size() * q.levels.size() * q.inverse_temperatures.size(),
                fmt::join(q.counts, ", "), fmt::join(q.inverse_temperatures, ", "), fmt::join(q.levels, ", "),
                q.options.replicates, q.options.sweeps,
                q.cells.empty() ? std::string("no") : fmt::format("{}", fmt::join(q.cells, " x ")));
          },
          [](const Sweep& sweep) { return sweep.plan; }},
      question);
}

}  // namespace rieszflow::study
