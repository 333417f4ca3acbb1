#include "experiments/study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "experiments/catalogue.hpp"
#include "model/description.hpp"
#include "solvers/rare_event/interaction_field.hpp"
#include "solvers/rare_event/partition_function.hpp"

namespace rieszflow::study {
namespace {

using config::Document;
using config::Table;

std::shared_ptr<const ExpressionFunction> function_of(Table& table, std::size_t dimension) {
  try {
    return std::make_shared<const ExpressionFunction>(table.text("value"), coordinate_names(dimension));
  } catch (const std::invalid_argument& fault) {
    table.problem("value", std::string("is no function of the coordinates: ") + fault.what());
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
    choice.function = function_of(table, dimension);
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
  if (!linear && (method == "tilt" || method == "umbrella")) {
    table.problem("method", fmt::format("is \"{}\", which biases a smooth statistic: must be \"auto\" | "
                                        "\"direct\" | \"splitting\" for the largest value",
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

}  // namespace

Assembly assemble(const Request& request) {
  const auto document = Document::read(request.config, catalogue::study(), request.overrides);
  Assembly assembly;
  if (Table* top = document->table("")) {
    if (!top->has("name")) top->fill("name", request.config.stem().string());
    assembly.name = top->text("name");
  }
  std::optional<Model> model = assemble_model(*document, request.config.parent_path());
  Table* table = document->table("study");
  if (model && table != nullptr && table->good()) {
    large_deviations::Question question = large_deviations_of(*document, *table, std::move(*model), request);
    question.name = assembly.name;
    assembly.question = std::move(question);
  }
  document->throw_problems();
  assembly.resolved = document->resolved();
  return assembly;
}

std::string plan(const Question& question) {
  return std::visit(
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
      question);
}

}  // namespace rieszflow::study
