#include "experiments/assemble.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/catalogue.hpp"
#include "experiments/table_file.hpp"
#include "io/run_file.hpp"
#include "model/probe.hpp"
#include "potentials/expression.hpp"

namespace rieszflow {
namespace {

using config::Document;
using config::Table;

constexpr double most_output_times =
    1e7;                             ///< rows of a series; more are a typing error and would fill the disk
constexpr double most_steps = 1e15;  ///< below 2^53, so that a step counter is exact as a double
constexpr std::size_t most_grid_dimensions = 3;

std::string text(double number) { return config::toml_text(number); }

std::string text(std::span<const double> point) {
  return config::toml_text(std::vector<double>(point.begin(), point.end()));
}

// False, and a problem, unless a list has one entry for each coordinate.
bool has_dimension(Table& table, std::string_view key, std::size_t length, std::size_t dimension) {
  if (length == dimension) return true;
  table.problem(key, fmt::format("has {} {}, must have {}: one for each coordinate of the domain", length,
                                 length == 1 ? "entry" : "entries", dimension));
  return false;
}

// ---- domain ----

std::optional<Domain> domain_of(Document& document) {
  Table* table = document.table("model.domain");
  if (table == nullptr || !table->good()) return std::nullopt;
  if (table->type() == "whole_space") {
    return WholeSpace{static_cast<std::size_t>(table->integer("dimension"))};
  }
  if (table->type() == "ball") return Ball{table->numbers("center"), table->number("radius")};
  const std::vector<double>&lower = table->numbers("lower"), &upper = table->numbers("upper");
  if (lower.size() != upper.size()) {
    table->problem("upper",
                   fmt::format("has {} entries, must have as many as lower: {}", upper.size(), lower.size()));
    return std::nullopt;
  }
  for (std::size_t axis = 0; axis < lower.size(); ++axis) {
    if (upper[axis] > lower[axis] && std::isfinite(upper[axis] - lower[axis])) continue;
    table->problem("upper", fmt::format("entry {} is {}, must be > lower, which is {}", axis + 1,
                                        text(upper[axis]), text(lower[axis])));
    return std::nullopt;
  }
  if (table->type() == "torus") return Torus{lower, upper};
  return Box{lower, upper};
}

// ---- potentials ----

// The key that a potential or interaction depends on most, to point a problem at.
std::string_view main_key(const Table& table) {
  for (const std::string_view key : {"value", "file", "functions", "exponent"}) {
    if (table.has(key)) return key;
  }
  return "type";
}

// A potential that is no number in a cell of the density can only fail, wherever the walls are.
void require_finite_on_cells(Table& table, const Potential& potential, const Domain& domain,
                             const std::vector<std::size_t>& cells) {
  constexpr double most_cells = 1u << 16;  ///< beyond, the trial costs more than the failure would
  double count = 1.0;
  for (const std::size_t axis_cells : cells) count *= static_cast<double>(axis_cells);
  if (count > most_cells || cells.size() != dimension(domain) || std::holds_alternative<WholeSpace>(domain))
    return;
  const Box box = bounding_box(domain);
  const Grid grid{.lower = box.lower, .upper = box.upper, .cells = cells};
  std::vector<double> center(cells.size());
  for (std::size_t cell = 0; cell < grid.cell_count(); ++cell) {
    grid.cell_center(cell, center);
    if (!contains(domain, center) || std::isfinite(value(potential, center))) continue;
    table.problem(main_key(table), fmt::format("V is {} in the cell at {}, must be finite on the domain",
                                               text(value(potential, center)), text(center)));
    return;
  }
}

std::shared_ptr<const ExpressionFunction> expression(Table& table, std::string_view key,
                                                     const std::string& formula,
                                                     const std::vector<std::string>& variables) {
  try {
    return std::make_shared<const ExpressionFunction>(formula, variables);
  } catch (const std::invalid_argument& error) {
    std::string names;
    for (const std::string& name : variables) names += (names.empty() ? "" : ", ") + name;
    table.problem(key, fmt::format("{}; it is a formula in {}", error.what(), names));
    return nullptr;
  }
}

std::optional<Potential> table_potential(Table& table, const Domain& domain,
                                         const std::filesystem::path& folder) {
  const auto path = std::filesystem::absolute(folder / table.text("file")).lexically_normal();
  const std::size_t dimensions = dimension(domain);
  if (std::holds_alternative<WholeSpace>(domain) || dimensions > most_grid_dimensions) {
    table.problem("type", "\"table\" ends somewhere: the domain must be bounded, with 1 to 3 dimensions");
    return std::nullopt;
  }
  TableFile file = read_table_file(path, dimensions);
  if (!file.potential) {
    table.problem("file", file.problem);
    return std::nullopt;
  }
  table.fill("file", path.string());
  return std::move(*file.potential);
}

std::optional<Potential> potential_of(Table& table, const Domain& domain,
                                      const std::filesystem::path& folder) {
  const std::size_t dimensions = dimension(domain);
  if (table.type() == "quadratic") {
    QuadraticPotential quadratic{table.number("stiffness")};
    quadratic.center.assign(dimensions, 0.0);
    if (table.has("center")) {
      if (!has_dimension(table, "center", table.numbers("center").size(), dimensions)) return std::nullopt;
      quadratic.center = table.numbers("center");
    }
    table.fill("center", quadratic.center);
    return quadratic;
  }
  if (table.type() == "double_well")
    return DoubleWellPotential{table.number("height"), table.number("width")};
  if (table.type() == "polynomial") return PolynomialPotential{table.numbers("coefficients")};
  if (table.type() == "cosine") return CosinePotential{table.number("amplitude"), table.number("wavenumber")};
  if (table.type() == "table") return table_potential(table, domain, folder);
  const auto function = expression(table, "value", table.text("value"), coordinate_names(dimensions));
  if (function == nullptr) return std::nullopt;
  return ExpressionPotential{function};
}

// ---- interactions ----

std::optional<Interaction> interaction_of(Table& table, const Domain& domain) {
  const std::size_t dimensions = dimension(domain);
  const std::string& type = table.type();
  if (type == "riesz") {
    const double exponent = table.number("exponent");
    if (exponent == 0.0) {
      table.problem("exponent", "is 0, must not be 0: type = \"log\" is that limit");
      return std::nullopt;
    }
    return RieszInteraction{exponent, table.number("strength"), table.number("softening")};
  }
  if (type == "log" || (type == "coulomb" && dimensions == 2)) {
    return LogarithmicInteraction{table.number("strength"), table.number("softening")};
  }
  if (type == "coulomb") {
    return RieszInteraction{static_cast<double>(dimensions) - 2.0, table.number("strength"),
                            table.number("softening")};
  }
  if (type == "gaussian") return GaussianInteraction{table.number("strength"), table.number("length")};
  if (type == "morse") {
    return MorseInteraction{table.number("repulsion_strength"), table.number("repulsion_length"),
                            table.number("attraction_strength"), table.number("attraction_length")};
  }
  if (type == "quadratic") return QuadraticInteraction{table.number("strength")};
  if (type == "cosine") return CosineInteraction{table.number("strength")};
  if (type == "low_rank") {
    LowRankInteraction low_rank{table.number("strength"), {}};
    for (const std::string& formula : table.texts("functions")) {
      low_rank.functions.push_back(expression(table, "functions", formula, coordinate_names(dimensions)));
      if (low_rank.functions.back() == nullptr) return std::nullopt;
    }
    return low_rank;
  }
  const auto function = expression(table, "value", table.text("value"), {"r"});
  if (function == nullptr) return std::nullopt;
  return ExpressionInteraction{function};
}

// ---- model ----

// `cells`: of the density; empty without one.
std::optional<Model> model_of(Document& document, const std::optional<Domain>& domain,
                              const std::filesystem::path& folder, const std::vector<std::size_t>& cells) {
  if (!domain) return std::nullopt;
  Model model{.domain = *domain, .potentials = {}, .interactions = {}};
  bool complete = true;
  for (Table* table : document.tables("model.potential")) {
    auto potential = table->good() ? potential_of(*table, *domain, folder) : std::nullopt;
    complete = complete && potential.has_value();
    if (!potential) continue;
    if (const auto sentence =
            problem(Model{.domain = *domain, .potentials = {*potential}, .interactions = {}})) {
      table->problem(main_key(*table), *sentence);
    } else {
      require_finite_on_cells(*table, *potential, *domain, cells);
    }
    model.potentials.push_back(std::move(*potential));
  }
  for (Table* table : document.tables("model.interaction")) {
    auto interaction = table->good() ? interaction_of(*table, *domain) : std::nullopt;
    complete = complete && interaction.has_value();
    if (!interaction) continue;
    if (const auto sentence =
            problem(Model{.domain = *domain, .potentials = {}, .interactions = {*interaction}})) {
      table->problem(main_key(*table), *sentence);
    }
    model.interactions.push_back(std::move(*interaction));
  }
  const Table* table = document.table("model");
  if (table == nullptr || !table->has("inverse_temperature") || !complete) return std::nullopt;
  model.inverse_temperature = table->number("inverse_temperature");
  return model;
}

// ---- initial law ----

std::optional<GaussianLaw> gaussian_of(Table& table, const Domain& domain) {
  GaussianLaw law{table.numbers("mean"), table.numbers("std")};
  const bool mean_fits = has_dimension(table, "mean", law.mean.size(), dimension(domain));
  const bool std_fits = has_dimension(table, "std", law.standard_deviation.size(), dimension(domain));
  if (!mean_fits || !std_fits) return std::nullopt;
  // Truncation to a domain that the law hardly meets would be a law made of round-off.
  constexpr double most_deviations = 6.0;
  std::vector<double> nearest = law.mean;
  project(domain, nearest);
  if (std::holds_alternative<Torus>(domain)) return law;
  double squared = 0.0;
  for (std::size_t axis = 0; axis < nearest.size(); ++axis) {
    squared += std::pow((nearest[axis] - law.mean[axis]) / law.standard_deviation[axis], 2);
  }
  if (squared > most_deviations * most_deviations) {
    table.problem("mean",
                  fmt::format("is {}, {:.3g} standard deviations outside the domain, must be at most {:g}",
                              text(law.mean), std::sqrt(squared), most_deviations));
    return std::nullopt;
  }
  return law;
}

std::optional<InitialLaw> file_law(Table& table, const Domain& domain, const std::filesystem::path& folder,
                                   const Table* particles) {
  const auto path = std::filesystem::absolute(folder / table.text("file")).lexically_normal();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    table.problem("file", path.string() + ": there is no such file, must be a run file (run.h5)");
    return std::nullopt;
  }
  try {
    const io::RunReader run(path);
    const bool from_density =
        table.has("state") ? table.text("state") == "density" : !run.density_clocks().empty();
    const std::vector<Clock> clocks = from_density ? run.density_clocks() : run.position_clocks();
    const std::string what = from_density ? "density" : "particle";
    if (clocks.empty()) {
      table.problem("file", fmt::format("{} has no {} snapshot", path.string(), what));
      return std::nullopt;
    }
    const double time = table.has("time") ? table.number("time") : clocks.back().time;
    const auto nearest = std::min_element(clocks.begin(), clocks.end(), [&](const Clock& a, const Clock& b) {
      return std::abs(a.time - time) < std::abs(b.time - time);
    });
    if (std::abs(nearest->time - time) > 1e-9 * std::max(1.0, std::abs(time))) {
      table.problem(
          "time",
          fmt::format("is {}, must be the time of a snapshot: {} of them from {} to {}, the nearest is {}",
                      text(time), clocks.size(), text(clocks.front().time), text(clocks.back().time),
                      text(nearest->time)));
      return std::nullopt;
    }
    table.fill("file", path.string());
    table.fill("time", nearest->time);
    table.fill("state", std::string(from_density ? "density" : "particles"));
    const auto snapshot = static_cast<std::size_t>(nearest - clocks.begin());
    if (from_density) {
      GridLaw law{run.density(snapshot)};
      const Grid& grid = law.density.grid;
      bool inside = grid.dimension() == dimension(domain);
      if (inside && !std::holds_alternative<WholeSpace>(domain)) {
        const Box box = bounding_box(domain);
        for (std::size_t axis = 0; axis < grid.dimension(); ++axis) {
          const double slack = 1e-9 * (box.upper[axis] - box.lower[axis]);
          inside = inside && grid.lower[axis] >= box.lower[axis] - slack &&
                   grid.upper[axis] <= box.upper[axis] + slack;
        }
      }
      if (inside) return law;
      table.problem(
          "file", fmt::format("{}: its density lives in {} dimensions from {} to {}, must lie in the domain",
                              path.string(), grid.dimension(), text(grid.lower), text(grid.upper)));
      return std::nullopt;
    }
    PositionsLaw law{run.positions(snapshot)};
    const ParticleEnsemble& ensemble = law.ensemble;
    if (ensemble.dimension != dimension(domain)) {
      table.problem("file", fmt::format("{}: its particles live in {} dimensions, the domain has {}",
                                        path.string(), ensemble.dimension, dimension(domain)));
      return std::nullopt;
    }
    for (std::size_t start = 0; start < ensemble.positions.size(); start += ensemble.dimension) {
      const std::span point(ensemble.positions.data() + start, ensemble.dimension);
      if (contains(domain, point)) continue;
      table.problem("file",
                    fmt::format("{}: the particle at {} is outside the domain", path.string(), text(point)));
      return std::nullopt;
    }
    if (particles != nullptr && particles->has("count") && particles->has("replicas") &&
        (particles->integer("count") != static_cast<std::int64_t>(ensemble.particle_count) ||
         particles->integer("replicas") != static_cast<std::int64_t>(ensemble.replica_count))) {
      table.problem(
          "file",
          fmt::format("{}: holds {} replicas of {} particles, [particles] must ask for as many; state = "
                      "\"density\" resamples",
                      path.string(), ensemble.replica_count, ensemble.particle_count));
      return std::nullopt;
    }
    return law;
  } catch (const io::FileError& fault) {
    table.problem("file", std::string(fault.what()) + "; must be a run file (run.h5)");
    return std::nullopt;
  }
}

std::optional<InitialLaw> initial_of(Document& document, const std::optional<Domain>& domain,
                                     const std::filesystem::path& folder) {
  Table* table = document.table("initial");
  if (table == nullptr || !table->good() || !domain) return std::nullopt;
  const bool unbounded = std::holds_alternative<WholeSpace>(*domain);
  if (table->type() == "uniform") {
    if (!unbounded) return UniformLaw{};
    table->problem(
        "type", "is \"uniform\", which whole_space has not: must be \"gaussian\" | \"mixture\" | \"file\"");
    return std::nullopt;
  }
  if (table->type() == "gaussian") {
    if (auto law = gaussian_of(*table, *domain)) return *std::move(law);
    return std::nullopt;
  }
  if (table->type() == "mixture") {
    MixtureLaw law;
    bool complete = true;
    for (Table* component : document.tables("initial.components")) {
      auto gaussian = component->good() ? gaussian_of(*component, *domain) : std::nullopt;
      complete = complete && gaussian.has_value();
      if (!gaussian) continue;
      law.weights.push_back(component->number("weight"));
      law.components.push_back(std::move(*gaussian));
    }
    if (law.components.empty() && complete) {
      table->problem("components", "are missing, must be one or more tables [[initial.components]]");
      complete = false;
    }
    if (!complete) return std::nullopt;
    return law;
  }
  if (table->type() == "file") return file_law(*table, *domain, folder, document.table("particles"));
  if (unbounded) {
    table->problem(
        "type",
        "is \"expression\", which needs a bounded domain: must be \"gaussian\" | \"mixture\" | \"file\"");
    return std::nullopt;
  }
  const auto density =
      expression(*table, "density", table->text("density"), coordinate_names(dimension(*domain)));
  if (density == nullptr) return std::nullopt;
  const std::vector<double> points = probe_points(*domain);
  bool somewhere_positive = false;
  for (std::size_t start = 0; start < points.size(); start += dimension(*domain)) {
    const std::span point(points.data() + start, dimension(*domain));
    const double number = (*density)(point);
    somewhere_positive = somewhere_positive || number > 0.0;
    if (std::isfinite(number) && number >= 0.0) continue;
    table->problem("density", fmt::format("is {} at {}, must be finite and >= 0 on the domain", text(number),
                                          text(point)));
    return std::nullopt;
  }
  if (!somewhere_positive) {
    table->problem("density", "is 0 on the whole domain, must be positive somewhere");
    return std::nullopt;
  }
  return ExpressionLaw{density};
}

// ---- sides ----

void read_time(Table& table, side_by_side::Question& question) {
  question.end = table.number("end");
  constexpr double default_outputs = 100.0;
  if (!table.has("output_every"))
    table.fill("output_every", question.end > 0.0 ? question.end / default_outputs : 1.0);
  question.output_every = table.number("output_every");
  if (!table.has("snapshots_every")) table.fill("snapshots_every", question.output_every);
  question.snapshots_every = table.number("snapshots_every");
  if (question.end / question.output_every > most_output_times) {
    table.problem("output_every",
                  fmt::format("is {}, must be >= end / {:g}: more rows than that fill the disk",
                              text(question.output_every), most_output_times));
    return;
  }
  const double ratio = question.snapshots_every / question.output_every;
  if (ratio < 0.5 || std::abs(ratio - std::round(ratio)) > 1e-9 * ratio) {
    table.problem("snapshots_every",
                  fmt::format("is {}, must be a multiple of output_every, which is {}",
                              text(question.snapshots_every), text(question.output_every)));
  }
}

// A step that the clock cannot resolve.
void require_resolvable(Table& table, double timestep, double end) {
  if (timestep > 0.0 && end / timestep > most_steps) {
    table.problem("timestep", fmt::format("is {}, must be >= end / {:g}", text(timestep), most_steps));
  }
}

void read_particles(Table& table, const Model* model, const std::optional<Domain>& domain,
                    const Request& request, side_by_side::Question& question) {
  if (request.seed) table.fill("seed", *request.seed);
  if (!table.good()) return;
  side_by_side::ParticleSide side;
  side.count = static_cast<std::size_t>(table.integer("count"));
  side.replicas = static_cast<std::size_t>(table.integer("replicas"));
  side.options.timestep = table.number("timestep");
  side.options.seed = static_cast<std::uint64_t>(table.integer("seed"));
  const std::string &scheme = table.text("scheme"), &summation = table.text("summation");
  side.options.scheme = scheme == "projected"   ? particle::Scheme::Projected
                        : scheme == "reflected" ? particle::Scheme::Reflected
                                                : particle::Scheme::Mala;
  side.options.summation.method = summation == "direct" ? PairSum::Method::Direct
                                  : summation == "fast" ? PairSum::Method::Fast
                                                        : PairSum::Method::Automatic;
  side.options.summation.tolerance = table.number("tolerance");
  side.options.summation.threads = request.threads;
  require_resolvable(table, side.options.timestep, question.end);
  if (domain && dimension(*domain) > most_grid_dimensions && summation == "fast") {
    table.problem("summation",
                  fmt::format("is \"fast\", which needs 1 to 3 dimensions, the domain has {}: must be "
                              "\"direct\" | \"auto\"",
                              dimension(*domain)));
  }
  if (model != nullptr && std::isinf(model->inverse_temperature) && scheme == "mala") {
    table.problem(
        "scheme",
        "is \"mala\", which needs a finite inverse_temperature: must be \"projected\" | \"reflected\"");
  }
  if (model != nullptr && scheme == "projected" && has_singular_interaction(*model) &&
      (std::holds_alternative<Box>(model->domain) || std::holds_alternative<Ball>(model->domain))) {
    table.problem(
        "scheme",
        "is \"projected\", which puts particles on the same wall point, where the unsoftened interaction is "
        "infinite: must be \"reflected\" | \"mala\", or the interaction needs softening > 0");
  }
  question.particles = side;
  question.seed = side.options.seed;
}

void read_density(Table& table, const std::optional<Domain>& domain, side_by_side::Question& question) {
  side_by_side::DensitySide side;
  for (const std::int64_t cells : table.integers("cells"))
    side.cells.push_back(static_cast<std::size_t>(cells));
  if (table.text("scheme") == "auto") table.fill("scheme", std::string("semi_implicit"));
  side.options.scheme =
      table.text("scheme") == "semi_implicit" ? pde::Scheme::SemiImplicit : pde::Scheme::MethodOfLines;
  side.options.tolerance = table.number("tolerance");
  if (table.has("timestep")) side.options.timestep = table.number("timestep");
  require_resolvable(table, side.options.timestep, question.end);
  if (domain && std::holds_alternative<WholeSpace>(*domain)) {
    table.problem("cells",
                  "whole_space is for particles only: leave [density] out, or take box | ball | torus");
  } else if (domain && dimension(*domain) > most_grid_dimensions) {
    table.problem("cells",
                  fmt::format("a density needs 1 to 3 dimensions, the domain has {}", dimension(*domain)));
  } else if (domain) {
    has_dimension(table, "cells", side.cells.size(), dimension(*domain));
  }
  question.density = std::move(side);
}

}  // namespace

Assembly assemble(const Request& request) {
  const auto document = Document::read(request.config, catalogue::run(), request.overrides);
  return assemble(*document, request);
}

Assembly assemble(Document& document, const Request& request) {
  const std::filesystem::path folder = request.config.parent_path();
  side_by_side::Question question;
  question.threads = request.threads;
  if (Table* top = document.table("")) {
    if (!top->has("name")) top->fill("name", request.config.stem().string());
    question.name = top->text("name");
  }
  const std::optional<Domain> domain = domain_of(document);
  Table *particles = document.table("particles"), *density = document.table("density");
  if (particles == nullptr && density == nullptr) {
    document.problem("particles", "nothing to run: must have [particles], [density] or both");
  }
  if (Table* time = document.table("time"); time != nullptr && time->good()) read_time(*time, question);
  if (density != nullptr && density->good()) read_density(*density, domain, question);

  const auto model = model_of(document, domain, folder,
                              question.density ? question.density->cells : std::vector<std::size_t>{});
  const auto initial = initial_of(document, domain, folder);
  if (particles != nullptr) read_particles(*particles, model ? &*model : nullptr, domain, request, question);
  if (const Table* compare = document.table("compare"); compare != nullptr && compare->good()) {
    question.compare = compare->boolean("enabled");
    question.comparison_bins = static_cast<std::size_t>(compare->integer("bins"));
  }
  document.throw_problems();
  question.model = *model;
  question.initial = *initial;
  return {std::move(question), document.resolved()};
}

}  // namespace rieszflow
