#include "experiments/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "experiments/attention_report.hpp"
#include "experiments/learning_report.hpp"
#include "experiments/report_figures.hpp"
#include "experiments/report_page.hpp"
#include "experiments/stationary_states.hpp"
#include "io/files.hpp"
#include "io/run_file.hpp"

namespace rieszflow {
namespace {

using namespace report;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Two digits of the error, and the value to the same place.
std::string uncertain(double value, double standard_error) {
  if (!std::isfinite(value)) return with_minus(fmt::format("{}", value));
  if (!std::isfinite(standard_error) || standard_error <= 0.0)
    return with_minus(fmt::format("{:.6g}", value));
  const int decimals = 1 - static_cast<int>(std::floor(std::log10(standard_error)));
  if (decimals < 0 || decimals > 9 || std::abs(value) >= 1e6)
    return with_minus(fmt::format("{:.6g} ± {:.2g}", value, standard_error));
  return with_minus(fmt::format("{:.{}f} ± {:.{}f}", value, decimals, standard_error, decimals));
}

/// The last row of a series, one column of it.
struct Final {
  double time = 0.0;
  double value = 0.0;
  double standard_error = std::numeric_limits<double>::quiet_NaN();
};

std::optional<Final> final_value(const std::optional<io::Series>& series, std::size_t column) {
  if (!series || column >= series->description.columns) return std::nullopt;
  const std::size_t row = (series->time.size() - 1) * series->description.columns + column;
  return Final{.time = series->time.back(),
               .value = series->value[row],
               .standard_error = series->standard_error.empty() ? std::nan("") : series->standard_error[row]};
}

bool same_time(double a, double b) { return std::abs(a - b) <= 1e-9 * (1.0 + std::abs(b)); }

/// Final values of both sides and of the distances.
std::string final_values(const io::RunReader& run) {
  std::vector<double> reached;  // particles, density
  std::vector<std::vector<std::string>> rows;
  for (const report::Quantity& quantity : report::shared_quantities) {
    const auto particles = report::find_series(run, std::string("particles/") + quantity.name);
    const auto density = report::find_series(run, std::string("density/") + quantity.name);
    if (!particles && !density) continue;
    if (particles && density) reached = {particles->time.back(), density->time.back()};
    const std::size_t columns = (particles ? *particles : *density).description.columns;
    for (std::size_t column = 0; column < columns; ++column) {
      const std::optional<Final> of_particles = final_value(particles, column);
      const std::optional<Final> of_density = final_value(density, column);
      std::string difference = "–";
      if (of_particles && of_density && same_time(of_particles->time, of_density->time)) {
        const double gap = of_particles->value - of_density->value;
        difference = std::isfinite(of_particles->standard_error) && of_particles->standard_error > 0.0
                         ? fmt::format("{} s.e.",
                                       with_minus(fmt::format("{:.1f}", gap / of_particles->standard_error)))
                         : with_minus(fmt::format("{:.3g}", gap));
      }
      rows.push_back({fmt::format("{}<span class=\"symbol\">{}</span>",
                                  report::with_axis(quantity.title, column, columns), quantity.symbol),
                      of_particles ? uncertain(of_particles->value, of_particles->standard_error) : "–",
                      of_density ? uncertain(of_density->value, 0.0) : "–", difference});
    }
  }
  std::string text;
  if (!rows.empty() && reached.size() == 2 && !same_time(reached[0], reached[1]))
    text += fmt::format("<p>Particles at t = {:.6g}, density at t = {:.6g}: not comparable.</p>\n",
                        reached[0], reached[1]);
  if (!rows.empty()) text += table({"Quantity", "Particles", "Density (PDE)", "Particles − density"}, rows);
  rows.clear();
  for (const std::string& name : report::distances(run)) {
    const std::optional<Final> distance = final_value(report::find_series(run, "comparison/" + name), 0);
    const std::optional<Final> expected =
        final_value(report::find_series(run, "comparison/" + name + "_reference"), 0);
    if (!distance) continue;
    rows.push_back({escaped(report::distance_title(name)),
                    uncertain(distance->value, distance->standard_error),
                    expected ? uncertain(expected->value, expected->standard_error) : "–"});
  }
  if (!rows.empty()) text += table({"Distance of μ_N and ρ_t", "Measured", "N independent samples"}, rows);
  return text;
}

/// Properties that the density must have, from its series.
std::string checks(const io::RunReader& run) {
  std::string text;
  if (const auto mass = report::find_series(run, "density/mass")) {
    double defect = 0.0;
    for (const double value : mass->value) defect = std::max(defect, std::abs(value - 1.0));
    text += fmt::format(
        "<li>Mass of the density: off 1 by at most <strong>{:.1e}</strong> over {} outputs.</li>\n", defect,
        mass->value.size());
  }
  if (const auto energy = report::find_series(run, "density/free_energy");
      energy && energy->value.size() > 1) {
    double rise = -std::numeric_limits<double>::infinity(), scale = 0.0;
    for (std::size_t row = 0; row + 1 < energy->value.size(); ++row) {
      rise = std::max(rise, energy->value[row + 1] - energy->value[row]);
      scale = std::max(scale, std::abs(energy->value[row]));
    }
    const bool decreases = rise <= 1e-12 * scale;
    text += fmt::format("<li>Free energy of the density: <span class=\"{}\">{}</span>{}.</li>\n",
                        decreases ? "good" : "warn",
                        decreases ? "never increases between outputs" : "increases between outputs",
                        decreases ? "" : fmt::format(", by {:.1e} at most", rise));
  }
  if (const auto smallest = report::find_series(run, "density/minimum")) {
    const double value = *std::min_element(smallest->value.begin(), smallest->value.end());
    text += fmt::format("<li>Smallest cell average of the density at any output: <strong>{}</strong>.</li>\n",
                        with_minus(fmt::format("{:.2e}", value)));
  }
  if (const auto identities = report::find_series(run, "particles/identities")) {
    const std::size_t columns = identities->description.columns, last = identities->value.size() - columns;
    double largest = 0.0;
    for (std::size_t k = 0; k < columns && !identities->standard_error.empty(); ++k) {
      const double z = identities->value[last + k] / identities->standard_error[last + k];
      if (std::isfinite(z)) largest = std::max(largest, std::abs(z));
    }
    text += fmt::format(
        "<li>Exact identities of equilibrium (contact theorem, Schwinger-Dyson) at the end: the largest of "
        "{} residuals "
        "is <strong>{:.1f}</strong> standard errors from zero{}.</li>\n",
        columns, largest, largest > 4.0 ? ": not in equilibrium, or biased by the timestep" : "");
  }
  return text.empty() ? text : "<ul>\n" + text + "</ul>\n";
}

/// Numbers and texts of a JSON object as rows "a: b: c | value".
void flatten(const Json& json, const std::string& name, std::vector<std::vector<std::string>>& rows) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      flatten(value, name.empty() ? key : name + ": " + key, rows);
    return;
  }
  std::string label = name;
  std::replace(label.begin(), label.end(), '_', ' ');
  rows.push_back({escaped(label), json.is_number_float() ? fmt::format("{:.4g}", json.get<double>())
                                  : json.is_string()     ? escaped(json.get<std::string>())
                                                         : escaped(json.dump())});
}

std::string model_in_words(const std::string& description) {
  std::string text =
      "<dl class=\"card equations\">\n"
      "<dt>N particles (walls reflect them)</dt>\n"
      "<dd>d<i>X</i><sub>i</sub> = −∇<i>V</i>(<i>X</i><sub>i</sub>) d<i>t</i> − (1/<i>N</i>) "
      "∑<sub>j≠i</sub> ∇<i>W</i>(<i>X</i><sub>i</sub>, <i>X</i><sub>j</sub>) d<i>t</i> + √(2/<i>β</i>) "
      "d<i>B</i><sub>i</sub></dd>\n"
      "<dt>density (no flux through walls)</dt>\n"
      "<dd>∂<sub>t</sub><i>ρ</i> = div( <i>ρ</i> ∇(<i>V</i> + <i>W</i>∗<i>ρ</i>) ) + <i>β</i><sup>−1</sup> "
      "Δ<i>ρ</i></dd>\n"
      "<dt>free energy, which the density descends</dt>\n"
      "<dd><i>F</i>[<i>ρ</i>] = ∫ <i>V</i> d<i>ρ</i> + ½ ∬ <i>W</i> d<i>ρ</i> d<i>ρ</i> + "
      "<i>β</i><sup>−1</sup> "
      "∫ <i>ρ</i> log <i>ρ</i></dd>\n</dl>\n";
  if (description.empty()) return text;
  text += "<ul>\n";
  for (std::size_t begin = 0; begin <= description.size();) {
    const std::size_t end = std::min(description.find("; ", begin), description.size());
    text += "<li><code>" + escaped(description.substr(begin, end - begin)) + "</code></li>\n";
    begin = end + 2;
  }
  return text + "</ul>\n";
}

/// What the run is made of: particle number, grid, reached times.
std::string extent_of(const io::RunReader& run) {
  std::string text;
  if (const auto clocks = run.position_clocks(); !clocks.empty()) {
    const ParticleEnsemble ensemble = run.positions(0);
    text +=
        fmt::format("<li>Particles: N = {} in {} replica{}, d = {}; {} snapshot{} to t = {:.6g}.</li>\n",
                    ensemble.particle_count, ensemble.replica_count, ensemble.replica_count == 1 ? "" : "s",
                    ensemble.dimension, clocks.size(), clocks.size() == 1 ? "" : "s", clocks.back().time);
  }
  if (const auto clocks = run.density_clocks(); !clocks.empty()) {
    const Grid grid = run.density(0).grid;
    text += fmt::format("<li>Density: {} cells; {} snapshot{} to t = {:.6g}.</li>\n",
                        fmt::join(grid.cells, " × "), clocks.size(), clocks.size() == 1 ? "" : "s",
                        clocks.back().time);
  }
  return text.empty() ? "<p>The run file holds no snapshot yet.</p>\n" : "<ul>\n" + text + "</ul>\n";
}

std::string status_line(const std::string& status) {
  if (status.starts_with("completed")) return "<p class=\"good\">Completed.</p>\n";
  std::string text = "<p class=\"warn\">Status: " + escaped(status.empty() ? "unknown" : status) + ".</p>\n";
  if (status.starts_with("running") || status.starts_with("interrupted"))
    text +=
        "<p>The page shows what the run had written by then. The same command with <code>--resume</code> "
        "continues "
        "it from its last checkpoint.</p>\n";
  return text;
}

std::string how_to_read(const io::RunReader& run) {
  const bool has_particles = !run.position_clocks().empty(), has_density = !run.density_clocks().empty();
  std::string text = "<h2>How to read this page</h2>\n<ul>\n";
  if (has_density)
    text += "<li>Blue lines and blue shades belong to the density, the solution of the PDE.</li>\n";
  if (has_particles)
    text +=
        "<li>Orange belongs to the particles. A band is one standard error to each side, from the spread "
        "over independent replicas; with one replica there is none. About one output in three lies outside "
        "its band "
        "by chance, and neighbouring outputs are correlated.</li>\n";
  if (has_particles && has_density)
    text +=
        "<li>Both sides solve one model: they differ by fluctuations of order N<sup>−1/2</sup>, by a bias of "
        "order 1/N, by the particles’ time step and by the density’s grid. A gap that stays when N "
        "grows and the time step shrinks would be a fault.</li>\n";
  if (!report::distances(run).empty())
    text +=
        "<li>A distance between N points and a density is never zero. Compare it with the dashed line, not "
        "with "
        "zero.</li>\n";
  return text +
         "<li>Every number of this page is in <code>run.h5</code> (HDF5; the positions follow H5MD 1.1) and "
         "the "
         "final ones are in <code>summary.json</code>. The figures are in "
         "<code>figures/</code>.</li>\n</ul>\n";
}

std::string all_series(const io::RunReader& run) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : run.series_names()) {
    const io::Series series = run.series(name);
    rows.push_back({"<code>" + escaped(name) + "</code>", escaped(series.description.units),
                    fmt::format("{}", series.time.size()), escaped(series.description.meaning)});
  }
  if (rows.empty()) return "";
  return "<details><summary>All series of the run file</summary>\n" +
         table({"Name", "Units", "Rows", "Meaning"}, rows) + "</details>\n";
}

Json summary_of(const fs::path& path) {
  if (!fs::exists(path)) return Json::object();
  Json json = Json::parse(io::read_text(path), nullptr, false);
  if (json.is_discarded() || !json.is_object())
    throw io::FileError(path.string() + ": cannot read: not a JSON object");
  return json;
}

}  // namespace

void write_report(const fs::path& directory) {
  const Json summary = summary_of(directory / "summary.json");
  try {
    if (summary.value("experiment", "") == "learn") return learning::write_learning_report(directory);
    if (summary.value("experiment", "") == "attention") return attention::write_report(directory);
    if (summary.value("type", "") == "stationary") return stationary_states::write_report(directory);
  } catch (const Json::exception& problem) {
    throw io::FileError((directory / "summary.json").string() +
                        ": cannot read: another version wrote it, or it is damaged: " + problem.what());
  }
  if (fs::exists(directory / "rows.json") && !fs::exists(directory / "run.h5"))
    throw io::FileError(directory.string() +
                        ": cannot report: it holds a study or a verification; the same command with --resume "
                        "keeps all its rows and writes the report anew");
  const io::RunReader run(directory / "run.h5");
  io::Manifest manifest = run.manifest();
  const fs::path folder = directory / "figures";
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw io::FileError(folder.string() + ": cannot create: " + problem.message());

  const bool particles = !run.position_clocks().empty(), density = !run.density_clocks().empty();
  const std::string title = (manifest["name"].empty() ? "Run" : manifest["name"]);
  const std::string kind = particles && density ? "particles and density of one model, side by side"
                           : particles          ? "particles"
                           : density            ? "density"
                                                : "no snapshots yet";
  std::string page = page_start(title);
  page += "<h1>" + escaped(title) + "</h1>\n<p class=\"soft\">" + kind + "</p>\n" +
          status_line(manifest["status"]);
  if (!manifest["warning"].empty()) page += warning(manifest["warning"]);
  page += "<div class=\"top\">\n<div>\n<h2>Model</h2>\n" + model_in_words(manifest["model"]) + extent_of(run);
  page += made_by(manifest["command_line"]) + "</div>\n<div>\n<h2>Final values</h2>\n" + final_values(run) +
          checks(run) + "</div>\n</div>\n";
  page += figures(sections(run), folder, manifest["command_line"]);
  page += how_to_read(run);

  if (summary.contains("timing")) {
    std::vector<std::vector<std::string>> rows;
    flatten(summary["timing"], "", rows);
    if (!rows.empty()) page += "<h2>Cost</h2>\n" + table({}, rows);
  }
  page += "<h2>Provenance</h2>\n";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, text] : manifest)
    if (!text.empty() && name != "config" && name != "model" && name != "name" && name != "command_line" &&
        name != "warning")
      rows.push_back({escaped(name), escaped(text)});
  if (!rows.empty()) page += table({}, rows);
  if (!manifest["config"].empty())
    page += "<details><summary>Complete configuration (running it repeats the run)</summary><pre>" +
            escaped(manifest["config"]) + "</pre></details>\n";
  page += all_series(run) + page_end();
  io::write_text(directory / "report.html", page);
}

}  // namespace rieszflow
