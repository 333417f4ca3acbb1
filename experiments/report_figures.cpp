#include "experiments/report_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace rieszflow::report {
namespace {

constexpr plot::Ink density_ink = plot::Ink::Blue;
constexpr plot::Ink particle_ink = plot::Ink::Vermillion;
constexpr std::size_t most_snapshots = 6;
constexpr std::size_t default_bins = 64;       ///< of a run file that does not say how many
constexpr std::size_t most_points = 800;       ///< of a cloud; more hide the density below
constexpr std::size_t most_cells_drawn = 256;  ///< per axis of a heat map

constexpr std::array<const char*, 3> axes{"x₁", "x₂", "x₃"};

std::string labelled(const std::string& symbol, const std::string& units) {
  std::string text = units.empty() || units == "1" ? symbol : symbol + "  [" + units + "]";
  if (const auto square = text.find("^2"); square != std::string::npos) text.replace(square, 2, "²");
  return text;
}

/// A column of a series with its band of one standard error.
plot::Curve curve(const io::Series& series, std::size_t column, std::string label, plot::Ink ink) {
  plot::Curve curve{.x = series.time, .y = {}, .label = std::move(label), .ink = ink};
  const std::size_t columns = series.description.columns;
  for (std::size_t row = 0; row < series.time.size(); ++row) {
    const std::size_t index = row * columns + column;
    curve.y.push_back(series.value[index]);
    if (series.standard_error.empty()) continue;
    curve.low.push_back(series.value[index] - series.standard_error[index]);
    curve.high.push_back(series.value[index] + series.standard_error[index]);
  }
  return curve;
}

bool has_errors(const io::Series& series) {
  return std::any_of(series.standard_error.begin(), series.standard_error.end(),
                     [](double error) { return std::isfinite(error); });
}

std::string particle_label(const io::Series& series) {
  return has_errors(series) ? "particles ± standard error" : "particles";
}

/// Both sides of a quantity on one axis; a figure per column.
void add_shared(const io::RunReader& run, const Quantity& quantity, const std::string& caption,
                std::vector<CaptionedFigure>& out) {
  const auto density = find_series(run, std::string("density/") + quantity.name);
  const auto particles = find_series(run, std::string("particles/") + quantity.name);
  if (!density && !particles) return;
  const io::Series& one = density ? *density : *particles;
  const std::size_t columns =
      std::min(density ? density->description.columns : 3, particles ? particles->description.columns : 3);
  for (std::size_t column = 0; column < std::min<std::size_t>(3, columns); ++column) {
    plot::Figure figure{.title = with_axis(quantity.title, column, one.description.columns),
                        .x = {.label = "t  [time]"},
                        .y = {.label = labelled(with_axis(quantity.symbol, column, one.description.columns),
                                                one.description.units)}};
    if (particles)
      figure.layers.push_back(curve(*particles, column, particle_label(*particles), particle_ink));
    if (density) figure.layers.push_back(curve(*density, column, "density (PDE)", density_ink));
    const std::string name = columns == 1 ? quantity.name : fmt::format("{}_{}", quantity.name, column + 1);
    out.push_back({name, std::move(figure), caption});
  }
}

/// -dF/dt from the series of F by differences, against the dissipation integral.
std::optional<CaptionedFigure> dissipation_figure(const io::RunReader& run) {
  const auto dissipation = find_series(run, "density/dissipation");
  const auto energy = find_series(run, "density/free_energy");
  if (!dissipation || !energy || energy->time.size() < 2) return std::nullopt;
  plot::Markers slope{.x = {}, .y = {}, .label = "−ΔF/Δt", .ink = plot::Ink::Black, .size = 0.7};
  for (std::size_t row = 0; row + 1 < energy->time.size(); ++row) {
    slope.x.push_back(0.5 * (energy->time[row] + energy->time[row + 1]));
    slope.y.push_back(-(energy->value[row + 1] - energy->value[row]) /
                      (energy->time[row + 1] - energy->time[row]));
  }
  plot::Figure figure{.title = "Dissipation",
                      .x = {.label = "t  [time]"},
                      .y = {.label = labelled("−dF/dt", dissipation->description.units)}};
  double largest = 0.0;
  for (const double value : dissipation->value) largest = std::max(largest, value);
  if (largest > 0.0) {
    figure.y.logarithmic = true;
    const double smallest = *std::min_element(dissipation->value.begin(), dissipation->value.end());
    figure.y.lower = std::max(smallest / 2.0, 1e-8 * largest);  // below that F differs by round-off only
  }
  figure.layers.push_back(curve(*dissipation, 0, "dissipation integral", density_ink));
  figure.layers.push_back(std::move(slope));
  return CaptionedFigure{
      "dissipation", std::move(figure),
      "The identity dF/dt = −∫ ρ |∇(V + W∗ρ + β⁻¹ log ρ)|² along the density: line, the integral; "
      "points, differences of F between outputs."};
}

/// Rows of the positions and the densities that belong together.
struct Snapshot {
  double time = 0.0;
  std::optional<std::size_t> density{};
  std::optional<std::size_t> positions{};
};

/// At most `most_snapshots` of a run, evenly spaced, the first and the last among them.
std::vector<Snapshot> snapshots(const io::RunReader& run) {
  std::map<double, Snapshot> all;
  const auto at = [&](double time) -> Snapshot& {
    auto found = all.lower_bound(time - 1e-9 * (1.0 + std::abs(time)));
    if (found == all.end() || found->first > time + 1e-9 * (1.0 + std::abs(time)))
      found = all.emplace(time, Snapshot{.time = time}).first;
    return found->second;
  };
  const auto densities = run.density_clocks();
  const auto positions = run.position_clocks();
  for (std::size_t row = 0; row < densities.size(); ++row) at(densities[row].time).density = row;
  for (std::size_t row = 0; row < positions.size(); ++row) at(positions[row].time).positions = row;
  std::vector<Snapshot> list;
  for (const auto& [time, snapshot] : all) list.push_back(snapshot);
  if (list.size() <= most_snapshots) return list;
  std::vector<Snapshot> chosen;
  for (std::size_t k = 0; k < most_snapshots; ++k)
    chosen.push_back(list[k * (list.size() - 1) / (most_snapshots - 1)]);
  return chosen;
}

struct Interval {
  double lower = 0.0;
  double upper = 0.0;
};

/// The axis of the grid or the particles' box; in the whole space what the particles cover.
Interval interval(const io::RunReader& run, const std::optional<Density>& density,
                  const std::optional<ParticleEnsemble>& ensemble, std::size_t axis) {
  if (density) return {density->grid.lower[axis], density->grid.upper[axis]};
  if (const auto box = run.box()) return {box->lower[axis], box->upper[axis]};
  Interval covered{ensemble->positions[axis], ensemble->positions[axis]};
  for (std::size_t index = axis; index < ensemble->positions.size(); index += ensemble->dimension) {
    covered.lower = std::min(covered.lower, ensemble->positions[index]);
    covered.upper = std::max(covered.upper, ensemble->positions[index]);
  }
  if (!(covered.upper > covered.lower)) covered = {covered.lower - 0.5, covered.upper + 0.5};
  return covered;
}

/// Bins of the histograms: what the run was asked for.
std::size_t histogram_bins(const io::RunReader& run) {
  const io::Manifest manifest = run.manifest();
  const auto entry = manifest.find("histogram_bins");
  return entry == manifest.end() ? default_bins : std::stoul(entry->second);
}

/// Histogram of one coordinate of all replicas, as a density.
plot::Steps histogram(const ParticleEnsemble& ensemble, std::size_t axis, const Interval& range,
                      std::size_t bins) {
  plot::Steps steps{.lower = range.lower,
                    .upper = range.upper,
                    .heights = std::vector<double>(bins, 0.0),
                    .label = "particles",
                    .ink = particle_ink};
  const double width = (range.upper - range.lower) / static_cast<double>(bins);
  const std::size_t count = ensemble.positions.size() / ensemble.dimension;
  for (std::size_t index = axis; index < ensemble.positions.size(); index += ensemble.dimension) {
    const double place = (ensemble.positions[index] - range.lower) / width;
    if (!(place >= 0.0) || place > static_cast<double>(bins)) continue;
    steps.heights[std::min(bins - 1, static_cast<std::size_t>(place))] +=
        1.0 / (width * static_cast<double>(count));
  }
  return steps;
}

/// Index of a cell along an axis; last axis fastest.
std::size_t index_along(const Grid& grid, std::size_t cell, std::size_t axis) {
  for (std::size_t last = grid.dimension() - 1; last > axis; --last) cell /= grid.cells[last];
  return cell % grid.cells[axis];
}

/// The density of one coordinate: rho integrated over the others.
plot::Curve marginal(const Density& density, std::size_t axis) {
  const Grid& grid = density.grid;
  plot::Curve curve{
      .x = {}, .y = std::vector<double>(grid.cells[axis], 0.0), .label = "density (PDE)", .ink = density_ink};
  double slice = 1.0;
  for (std::size_t other = 0; other < grid.dimension(); ++other)
    if (other != axis) slice *= grid.spacing(other);
  for (std::size_t cell = 0; cell < density.averages.size(); ++cell)
    curve.y[index_along(grid, cell, axis)] +=
        density.averages[cell] * slice * (grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell]);
  for (std::size_t index = 0; index < grid.cells[axis]; ++index) curve.x.push_back(grid.center(axis, index));
  return curve;
}

plot::Figure line_figure(const io::RunReader& run, const std::optional<Density>& density,
                         const std::optional<ParticleEnsemble>& ensemble, std::size_t axis,
                         const std::string& label) {
  const Interval range = interval(run, density, ensemble, axis);
  plot::Figure figure{.x = {.label = labelled(label, "length"), .lower = range.lower, .upper = range.upper},
                      .y = {.label = labelled("density of " + label, "1/length"), .lower = 0.0}};
  if (ensemble) figure.layers.push_back(histogram(*ensemble, axis, range, histogram_bins(run)));
  if (density) figure.layers.push_back(marginal(*density, axis));
  return figure;
}

/// Cell averages of a plane density; cells outside the domain are left white, large grids are averaged down.
plot::HeatMap heat_map(const Density& density) {
  const Grid& grid = density.grid;
  plot::HeatMap map{.x_range = {grid.lower[0], grid.upper[0]},
                    .y_range = {grid.lower[1], grid.upper[1]},
                    .columns = std::min(most_cells_drawn, grid.cells[0]),
                    .rows = std::min(most_cells_drawn, grid.cells[1]),
                    .values = {},
                    .label = "ρ"};
  std::vector<double> volume(map.columns * map.rows, 0.0);
  map.values.assign(volume.size(), 0.0);
  for (std::size_t cell = 0; cell < density.averages.size(); ++cell) {
    const std::size_t i = index_along(grid, cell, 0) * map.columns / grid.cells[0];
    const std::size_t j = index_along(grid, cell, 1) * map.rows / grid.cells[1];
    const double inside = grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell];
    volume[i * map.rows + j] += inside;
    map.values[i * map.rows + j] += inside * density.averages[cell];
  }
  for (std::size_t cell = 0; cell < volume.size(); ++cell) map.values[cell] /= volume[cell];  // NaN outside
  return map;
}

plot::Figure plane_figure(const io::RunReader& run, const std::optional<Density>& density,
                          const std::optional<ParticleEnsemble>& ensemble) {
  const Interval x = interval(run, density, ensemble, 0);
  const Interval y = interval(run, density, ensemble, 1);
  plot::Figure figure{.x = {.label = labelled(axes[0], "length"), .lower = x.lower, .upper = x.upper},
                      .y = {.label = labelled(axes[1], "length"), .lower = y.lower, .upper = y.upper},
                      .equal_scales = true,
                      .width = 480,
                      .height = 420};
  if (density) figure.layers.push_back(heat_map(*density));
  if (ensemble) {
    plot::Markers cloud{.x = {}, .y = {}, .ink = particle_ink, .size = 0.4, .opacity = 0.6};
    const std::size_t count = std::min(most_points, ensemble->positions.size() / 2);
    for (std::size_t particle = 0; particle < count; ++particle) {
      cloud.x.push_back(ensemble->positions[2 * particle]);
      cloud.y.push_back(ensemble->positions[2 * particle + 1]);
    }
    figure.layers.push_back(std::move(cloud));
  }
  return figure;
}

double peak(const plot::Figure& figure) {
  double largest = 0.0;
  for (const plot::Layer& layer : figure.layers) {
    const std::vector<double>* values = nullptr;
    if (const auto* steps = std::get_if<plot::Steps>(&layer)) values = &steps->heights;
    if (const auto* line = std::get_if<plot::Curve>(&layer)) values = &line->y;
    if (values != nullptr)
      for (const double value : *values) largest = std::max(largest, std::isfinite(value) ? value : 0.0);
  }
  return largest;
}

/// One scale for all when the highest is at most four times as high as the lowest; else each has its own.
void share_scale(std::vector<CaptionedFigure>& figures) {
  double lowest = std::numeric_limits<double>::infinity(), highest = 0.0;
  for (const auto& figure : figures) {
    lowest = std::min(lowest, peak(figure.figure));
    highest = std::max(highest, peak(figure.figure));
  }
  if (highest > 0.0 && highest <= 4.0 * lowest)
    for (auto& figure : figures) figure.figure.y.upper = 1.06 * highest;
}

Section snapshot_section(const io::RunReader& run) {
  Section section{.title = "The state at several times", .text = {}, .figures = {}};
  std::vector<Snapshot> chosen = snapshots(run);
  if (chosen.empty()) return section;
  const std::size_t dimension = chosen[0].density ? run.density(*chosen[0].density).grid.dimension()
                                                  : run.positions(*chosen[0].positions).dimension;
  const bool both = !run.density_clocks().empty() && !run.position_clocks().empty();
  section.text =
      dimension == 1 ? "Histograms of the particles of all replicas; the line is the solution of the PDE."
      : dimension == 2
          ? "Blue: the density, darker where it is larger. Points: particles of the first replicas."
          : "Each coordinate at the last snapshot: histogram of the particles of all replicas; the line is "
            "the density integrated over the other coordinates.";
  if (!both)
    section.text =
        run.density_clocks().empty() ? "The particles of all replicas." : "The solution of the PDE.";
  if (dimension > 2) chosen = {chosen.back()};
  for (std::size_t index = 0; index < chosen.size(); ++index) {
    const Snapshot& snapshot = chosen[index];
    const std::optional<Density> density =
        snapshot.density ? std::optional(run.density(*snapshot.density)) : std::nullopt;
    const std::optional<ParticleEnsemble> ensemble =
        snapshot.positions ? std::optional(run.positions(*snapshot.positions)) : std::nullopt;
    const std::string title = fmt::format("t = {:.6g}", snapshot.time);
    for (std::size_t axis = 0; axis < (dimension > 2 ? std::min<std::size_t>(3, dimension) : 1); ++axis) {
      plot::Figure figure =
          dimension == 2 ? plane_figure(run, density, ensemble)
                         : line_figure(run, density, ensemble, axis, dimension == 1 ? "x" : axes[axis]);
      figure.title = title;
      section.figures.push_back({fmt::format("state_{}", section.figures.size()), std::move(figure), ""});
    }
  }
  if (dimension == 1) share_scale(section.figures);
  return section;
}

CaptionedFigure distance_figure(const io::RunReader& run, const std::string& name) {
  const io::Series series = run.series("comparison/" + name);
  plot::Figure figure{.title = distance_title(name),
                      .x = {.label = "t  [time]"},
                      .y = {.label = labelled("distance", series.description.units)}};
  std::vector<double> values = series.value;
  figure.layers.push_back(
      curve(series, 0, has_errors(series) ? "μ_N to ρ_t ± standard error" : "μ_N to ρ_t", particle_ink));
  if (const auto reference = find_series(run, "comparison/" + name + "_reference")) {
    plot::Curve line = curve(*reference, 0, "N independent samples of ρ_t", plot::Ink::Grey);
    line.dashed = true;
    values.insert(values.end(), line.y.begin(), line.y.end());
    figure.layers.push_back(std::move(line));
  }
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  if (*smallest > 0.0 && *largest > 4.0 * *smallest) {
    figure.y.logarithmic = true;
  } else if (*smallest >= 0.0) {
    figure.y.lower = 0.0;
  }
  std::string file = name;
  std::replace(file.begin(), file.end(), '/', '_');
  return {"distance_" + file, std::move(figure), series.description.meaning};
}

}  // namespace

std::string with_axis(const std::string& text, std::size_t column, std::size_t columns) {
  return columns == 1 ? text : fmt::format("{}, axis {}", text, column + 1);
}

std::string distance_title(const std::string& name) {
  static const std::map<std::string, std::string> titles{
      {"wasserstein_1", "Wasserstein distance W₁"},
      {"wasserstein_2", "Wasserstein distance W₂"},
      {"sliced_wasserstein_1", "Sliced Wasserstein distance SW₁"},
      {"sliced_wasserstein_2", "Sliced Wasserstein distance SW₂"},
      {"mmd", "Maximum mean discrepancy"},
      {"l2", "L² distance of smoothed densities"},
  };
  if (const auto found = titles.find(name); found != titles.end()) return found->second;
  std::string title = name;
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

std::optional<io::Series> find_series(const io::RunReader& run, const std::string& name) {
  const std::vector<std::string> names = run.series_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  io::Series series = run.series(name);
  return series.time.empty() ? std::nullopt : std::optional(std::move(series));
}

std::vector<std::string> distances(const io::RunReader& run) {
  const std::string prefix = "comparison/";
  std::vector<std::string> names;
  for (const std::string& name : run.series_names())
    if (name.starts_with(prefix) && !name.ends_with("_reference") && find_series(run, name))
      names.push_back(name.substr(prefix.size()));
  return names;
}

std::vector<Section> sections(const io::RunReader& run) {
  std::vector<Section> list;
  Section energy{.title = "Free energy",
                 .text =
                     "F[ρ] = ∫ V dρ + ½ ∬ W dρ dρ + β⁻¹ ∫ ρ log ρ never increases along the PDE; the "
                     "particles' estimate of it "
                     "follows within its standard error and a bias that vanishes with N.",
                 .figures = {}};
  add_shared(run, shared_quantities[0], "", energy.figures);
  if (auto figure = dissipation_figure(run)) energy.figures.push_back(std::move(*figure));
  for (std::size_t index : {1, 2, 3}) add_shared(run, shared_quantities[index], "", energy.figures);
  list.push_back(std::move(energy));

  list.push_back(snapshot_section(run));

  Section distance{
      .title = "Distance between particles and density",
      .text =
          "If the particles were N independent draws from ρ_t, the distance would be the dashed line, of "
          "order 1/√N. A solid line well above it means that the particles follow another law.",
      .figures = {}};
  for (const std::string& name : distances(run)) distance.figures.push_back(distance_figure(run, name));
  list.push_back(std::move(distance));

  Section moments{.title = "Moments", .text = "", .figures = {}};
  for (std::size_t index : {4, 5}) add_shared(run, shared_quantities[index], "", moments.figures);
  list.push_back(std::move(moments));

  std::erase_if(list, [](const Section& section) { return section.figures.empty(); });
  return list;
}

}  // namespace rieszflow::report
