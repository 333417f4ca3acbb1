#include "experiments/assemble.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/expects.hpp"
#include "experiments/catalogue.hpp"
#include "experiments/feature_learner.hpp"
#include "experiments/table_file.hpp"
#include "io/run_file.hpp"
#include "potentials/expression.hpp"
#include "solvers/particle/timestep_choice.hpp"

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
// Labels and inputs of a table as the particles see them, or the closed-form model of exact answers: five
// equispaced points of the circle with y = sqrt(2) cos x, on which every mean over the circle is exact.
std::optional<LabelledData> labelled_data(Table& table, FeatureMap map, const std::filesystem::path& folder) {
  if (!table.has("file")) {
    if (map != FeatureMap::Circle) {
      table.problem("map", "must be \"circle\" without a file: there are no other labels");
      return std::nullopt;
    }
    LabelledData data{.count = 5, .dimension = 1, .label_columns = 1, .points = {}, .labels = {}};
    for (int k = 0; k < 5; ++k) {
      data.points.push_back(2.0 * std::numbers::pi * k / 5.0);
      data.labels.push_back(std::numbers::sqrt2 * std::cos(data.points.back()));
    }
    return data;
  }
  const auto path = std::filesystem::absolute(folder / table.text("file")).lexically_normal();
  const learning::DatasetReading reading = learning::read_dataset(path, table.text("label"));
  for (const std::string& what : reading.problems) table.problem("file", what);
  if (!reading.problems.empty()) return std::nullopt;
  table.fill("file", path.string());
  return learning::labelled(
      learning::standardised(reading.dataset, static_cast<std::size_t>(table.integer("most_rows"))));
}

std::shared_ptr<const Functional> alignment_of(Table& table, const Domain& domain,
                                               const std::filesystem::path& folder) {
  const FeatureMap map = *feature_map_named(table.text("map"));
  const auto data = labelled_data(table, map, folder);
  if (!data) return nullptr;
  if (map == FeatureMap::Circle && data->dimension != 1) {
    table.problem("map", "\"circle\" takes one angle per point");
    return nullptr;
  }
  const std::size_t p = particle_dimension(map, data->dimension);
  if (p != dimension(domain)) {
    table.problem("map", fmt::format("has particles with {} coordinates for this data, the domain has {}", p,
                                     dimension(domain)));
    return nullptr;
  }
  Alignment::Options options{.strength = table.number("strength"),
                             .ridge_penalty = table.number("ridge_penalty")};
  for (const AlignmentKind kind : {AlignmentKind::Linear, AlignmentKind::SquaredLoss,
                                   AlignmentKind::Normalised, AlignmentKind::RidgeLoss})
    if (table.text("kind") == name(kind)) options.kind = kind;
  return std::make_shared<Alignment>(map, *data, options);
}

std::optional<Model> model_of(Document& document, const std::optional<Domain>& domain,
                              const std::filesystem::path& folder, const std::vector<std::size_t>& cells) {
  if (!domain) return std::nullopt;
  Model model{.domain = *domain, .potentials = {}, .interactions = {}};
  bool complete = true;
  for (Table* table : document.tables("model.potential")) {
    if (table->type() == "alignment") {
      auto alignment = table->good() ? alignment_of(*table, *domain, folder) : nullptr;
      complete = complete && alignment != nullptr;
      if (alignment) model.functionals.push_back(std::move(alignment));
      continue;
    }
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

// The law, or a problem at `key` when it cannot start a run in the domain.
std::optional<InitialLaw> fitting(Table& table, std::string_view key, InitialLaw law, const Domain& domain) {
  const auto sentence = problem(law, domain);
  if (!sentence) return law;
  table.problem(key, *sentence);
  return std::nullopt;
}

std::optional<InitialLaw> gaussian_of(Table& table, const Domain& domain) {
  GaussianLaw law{table.numbers("mean"), table.numbers("std")};
  const bool mean_fits = has_dimension(table, "mean", law.mean.size(), dimension(domain));
  const bool std_fits = has_dimension(table, "std", law.standard_deviation.size(), dimension(domain));
  if (!mean_fits || !std_fits) return std::nullopt;
  return fitting(table, "mean", std::move(law), domain);
}

std::optional<InitialLaw> mixture_of(Document& document, Table& table, const Domain& domain) {
  MixtureLaw law;
  const std::vector<Table*> components = document.tables("initial.components");
  if (components.empty()) {
    table.problem("components", "are missing, must be one or more tables [[initial.components]]");
  }
  for (Table* component : components) {
    auto gaussian = component->good() ? gaussian_of(*component, domain) : std::nullopt;
    if (!gaussian) continue;
    law.weights.push_back(component->number("weight"));
    law.components.push_back(std::get<GaussianLaw>(*std::move(gaussian)));
  }
  if (components.empty() || law.components.size() < components.size()) return std::nullopt;
  return law;
}

bool lies_in(const Grid& grid, const Domain& domain) {
  if (std::holds_alternative<WholeSpace>(domain) || grid.dimension() != dimension(domain)) return true;
  const Box box = bounding_box(domain);
  for (std::size_t axis = 0; axis < grid.dimension(); ++axis) {
    const double slack = 1e-9 * (box.upper[axis] - box.lower[axis]);
    if (grid.lower[axis] < box.lower[axis] - slack || grid.upper[axis] > box.upper[axis] + slack)
      return false;
  }
  return true;
}

// A snapshot of a run file. Throws io::FileError when it is none.
std::optional<InitialLaw> snapshot_of(Table& table, const Domain& domain, const std::filesystem::path& path,
                                      const Table* particles) {
  const io::RunReader run(path);
  const bool from_density =
      table.has("state") ? table.text("state") == "density" : !run.density_clocks().empty();
  const std::vector<Clock> clocks = from_density ? run.density_clocks() : run.position_clocks();
  if (clocks.empty()) {
    table.problem("file", fmt::format("{} has no snapshot of the {}", path.string(),
                                      from_density ? "density" : "particles"));
    return std::nullopt;
  }
  const double time = table.has("time") ? table.number("time") : clocks.back().time;
  const auto nearest = std::min_element(clocks.begin(), clocks.end(), [&](const Clock& a, const Clock& b) {
    return std::abs(a.time - time) < std::abs(b.time - time);
  });
  if (std::abs(nearest->time - time) > 1e-9 * std::max(1.0, std::abs(time))) {
    table.problem(
        "time",
        fmt::format("is {}, must be the time of a snapshot: there are {} from {} to {}, the nearest is {}",
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
    if (lies_in(law.density.grid, domain)) return fitting(table, "file", std::move(law), domain);
    table.problem("file",
                  fmt::format("{}: its density lives on {} to {}, must lie in the domain", path.string(),
                              text(law.density.grid.lower), text(law.density.grid.upper)));
    return std::nullopt;
  }
  PositionsLaw law{run.positions(snapshot)};
  const auto count = static_cast<std::int64_t>(law.ensemble.particle_count),
             replicas = static_cast<std::int64_t>(law.ensemble.replica_count);
  if (particles != nullptr && particles->has("count") && particles->has("replicas") &&
      (particles->integer("count") != count || particles->integer("replicas") != replicas)) {
    table.problem("file",
                  fmt::format("{} holds {} replicas of {} particles, [particles] must ask for as many, or "
                              "state = \"density\" for new samples",
                              path.string(), replicas, count));
    return std::nullopt;
  }
  return fitting(table, "file", std::move(law), domain);
}

std::optional<InitialLaw> initial_of(Document& document, const std::optional<Domain>& domain,
                                     const std::filesystem::path& folder) {
  Table* table = document.table("initial");
  if (table == nullptr || !table->good() || !domain) return std::nullopt;
  if (table->type() == "uniform") return fitting(*table, "type", UniformLaw{}, *domain);
  if (table->type() == "gaussian") return gaussian_of(*table, *domain);
  if (table->type() == "mixture") return mixture_of(document, *table, *domain);
  if (table->type() == "file") {
    const auto path = std::filesystem::absolute(folder / table->text("file")).lexically_normal();
    try {
      return snapshot_of(*table, *domain, path, document.table("particles"));
    } catch (const io::FileError& fault) {
      table->problem("file", std::string(fault.what()) + "; must be a run file (run.h5)");
      return std::nullopt;
    }
  }
  const auto density =
      expression(*table, "density", table->text("density"), coordinate_names(dimension(*domain)));
  if (density == nullptr) return std::nullopt;
  return fitting(*table, "density", ExpressionLaw{density}, *domain);
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

// A step so long that its fold into the domain keeps fewer than about six digits.
void require_foldable(Table& table, const Model& model, double timestep) {
  constexpr double most_foldings = 1e10;
  if (std::holds_alternative<WholeSpace>(model.domain)) return;
  const Box box = bounding_box(model.domain);
  const double noise = std::sqrt(2.0 * timestep / model.inverse_temperature);
  for (std::size_t axis = 0; axis < box.lower.size(); ++axis) {
    const double length = box.upper[axis] - box.lower[axis];
    if (noise > most_foldings * length) {
      table.problem(
          "timestep",
          fmt::format("is {}: the noise of one step, sqrt(2 timestep / inverse_temperature) = {:.3g}, is "
                      "{:.2g} times as long as the domain, must be at most {:g} times",
                      text(timestep), noise, noise / length, most_foldings));
      return;
    }
  }
}

void read_particles(Table& table, const Model* model, const std::optional<Domain>& domain,
                    const Request& request, side_by_side::Question& question) {
  if (request.seed) table.fill("seed", *request.seed);
  if (!table.good()) return;
  side_by_side::ParticleSide side;
  side.count = static_cast<std::size_t>(table.integer("count"));
  side.replicas = static_cast<std::size_t>(table.integer("replicas"));
  if (!table.is_word("timestep")) side.options.timestep = table.number("timestep");
  side.options.seed = static_cast<std::uint64_t>(table.integer("seed"));
  const std::string &scheme = table.text("scheme"), &summation = table.text("summation");
  side.options.scheme = scheme == "projected"   ? particle::Scheme::Projected
                        : scheme == "reflected" ? particle::Scheme::Reflected
                                                : particle::Scheme::Mala;
  side.options.summation.method = summation == "direct" ? PairSum::Method::Direct
                                  : summation == "fast" ? PairSum::Method::Fast
                                  : summation == "auto" ? PairSum::Method::Automatic
                                                        : PairSum::Method::RandomBatch;
  const bool single = table.text("precision") == "single";
  side.options.summation.precision = single ? PairSum::Precision::Single : PairSum::Precision::Double;
  side.options.summation.batch_size = static_cast<std::size_t>(table.integer("batch_size"));
  side.options.summation.tolerance = table.number("tolerance");
  side.options.summation.threads = request.threads;
  require_resolvable(table, side.options.timestep, question.end);
  if (model != nullptr) require_foldable(table, *model, side.options.timestep);
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
  if (single && (scheme == "mala" || summation == "fast" || summation == "random_batch")) {
    table.problem("precision",
                  "is \"single\", which is for direct sums over all pairs: must be \"double\", or scheme "
                  "\"reflected\" | \"projected\" with summation \"direct\" | \"auto\"");
  }
  if (summation == "random_batch" && scheme == "mala") {
    table.problem("summation",
                  "is \"random_batch\", whose forces are estimates that no Metropolis test can use: must be "
                  "\"direct\" | \"fast\" | \"auto\", or scheme \"reflected\" | \"projected\"");
  }
  if (summation == "random_batch" && model != nullptr && has_singular_interaction(*model)) {
    table.problem("summation",
                  "is \"random_batch\", which sees few of the close pairs of a singular interaction: must be "
                  "\"direct\" | \"fast\" | \"auto\", or the interaction needs softening > 0");
  }
  question.particles = side;
  question.seed = side.options.seed;
}

/// The step that timestep = "auto" stands for, also in the resolved config.
void choose_timestep(Table& table, side_by_side::Question& question) {
  side_by_side::ParticleSide& side = *question.particles;
  const double accuracy = table.number("accuracy");
  if (!(question.end > 0.0)) {  // no step is taken
    table.fill("timestep", side.options.timestep = 1.0);
    return;
  }
  // Positions of a file are what they are; of a law no more are drawn than the pilot needs.
  const particle::PilotShape shape =
      std::holds_alternative<PositionsLaw>(question.initial)
          ? particle::PilotShape{side.replicas, side.count}
          : particle::pilot_shape(side.count, dimension(question.model.domain));
  const ParticleEnsemble start =
      sample(question.initial, question.model.domain, shape.replicas, shape.count, side.options.seed);
  const auto choice = particle::choose_timestep(question.model, start, side.options, question.output_every,
                                                question.end, accuracy);
  table.fill("timestep", side.options.timestep = choice.timestep);
  if (!choice.reached) {
    table.problem(
        "timestep",
        fmt::format("is \"auto\", but no step down to {:.3g} met the accuracy {:g}: must be a number, "
                    "or accuracy a larger one",
                    choice.timestep, accuracy));
  }
}

void read_density(Table& table, const std::optional<Domain>& domain, side_by_side::Question& question) {
  side_by_side::DensitySide side;
  for (const std::int64_t cells : table.integers("cells"))
    side.cells.push_back(static_cast<std::size_t>(cells));
  side.weights = cell_weights_named(table.text("weights"));
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

/// `auto` stays open: the run chooses its fluxes step by step. Some schemes have one kind of temperature
/// only.
void choose_density_scheme(Table& table, const Model& model, pde::Options& options) {
  const bool is_cold = std::isinf(model.inverse_temperature);
  for (const pde::Scheme scheme : pde::schemes()) {
    if (table.text("scheme") == pde::name(scheme)) options.scheme = scheme;
  }
  if (!options.scheme && is_cold) {
    options.scheme = pde::Scheme::SecondOrderUpwind;
    table.fill("scheme", std::string(pde::name(*options.scheme)));
  }
  if (options.scheme == pde::Scheme::SecondOrderUpwind && !is_cold) {
    table.problem(
        "scheme",
        "is \"upwind\", which has no diffusion: must be \"auto\" or another scheme, or the model needs "
        "inverse_temperature = inf");
  }
  if (options.scheme == pde::Scheme::StabilisedExplicit && is_cold) {
    table.problem(
        "scheme",
        "is \"stabilised_explicit\", which is stable with diffusion only: must be \"auto\" or another "
        "scheme, or the model needs a finite inverse_temperature");
  }
}

}  // namespace

std::unique_ptr<Document> read_config(const Request& request, const std::string& command,
                                      const std::string& otherwise) {
  const config::Schema* schema = nullptr;
  Document::Foreign foreign;
  for (const catalogue::Command& known : catalogue::commands()) {
    if (known.name == command) {
      schema = &known.schema;
      continue;
    }
    for (const config::Section& section : known.schema) {
      if (section.path.empty() || section.path.find('.') != std::string::npos) continue;
      std::string& sentence = foreign[section.path];
      sentence +=
          (sentence.empty() ? "this table is one of `rieszflow " : " or `rieszflow ") + known.name + "`";
    }
  }
  expects(schema != nullptr, "the catalogue has the command");
  return request.config.empty() ? Document::parse(otherwise, "defaults", *schema, request.overrides, foreign)
                                : Document::read(request.config, *schema, request.overrides, foreign);
}

std::string name_of(Document& document, const Request& request, const std::string& command) {
  Table* top = document.table("");
  expects(top != nullptr, "every config has a top");
  if (!top->has("name")) {
    std::string stem = request.config.stem().string();
    stem.erase(0, stem.find_first_not_of('.'));
    top->fill("name", stem.empty() ? command : stem);
  }
  return top->text("name");
}

CellWeights cell_weights_named(std::string_view word) {
  return word == "cell_average" ? CellWeights::CellAverage : CellWeights::Galerkin;
}

std::optional<Model> assemble_model(Document& document, const std::filesystem::path& folder) {
  return model_of(document, domain_of(document), folder, {});
}

Assembly assemble(const Request& request) {
  const auto document = read_config(request, "run");
  return assemble(*document, request);
}

Assembly assemble(Document& document, const Request& request) {
  const std::filesystem::path folder = request.config.parent_path();
  side_by_side::Question question;
  question.threads = request.threads;
  question.name = name_of(document, request, "run");
  const std::optional<Domain> domain = domain_of(document);
  Table *particles = document.table("particles"), *density = document.table("density");
  if (particles == nullptr && density == nullptr) {
    document.problem("particles", "nothing to run: must have [particles], [density] or both");
  }
  if (Table* time = document.table("time"); time != nullptr && time->good()) read_time(*time, question);
  if (density != nullptr && density->good()) read_density(*density, domain, question);

  const auto model = model_of(document, domain, folder,
                              question.density ? question.density->cells : std::vector<std::size_t>{});
  if (model && question.density) choose_density_scheme(*density, *model, question.density->options);
  const auto initial = initial_of(document, domain, folder);
  if (particles != nullptr) read_particles(*particles, model ? &*model : nullptr, domain, request, question);
  if (const Table* compare = document.table("compare"); compare != nullptr && compare->good()) {
    question.compare = compare->boolean("enabled");
    question.comparison_bins = static_cast<std::size_t>(compare->integer("bins"));
  }
  document.throw_problems();
  question.model = *model;
  question.initial = *initial;
  if (particles != nullptr && particles->is_word("timestep")) {
    choose_timestep(*particles, question);
    document.throw_problems();
  }
  return {std::move(question), document.resolved()};
}

}  // namespace rieszflow
