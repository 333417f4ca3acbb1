#include "experiments/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "experiments/report_figures.hpp"
#include "io/files.hpp"
#include "io/run_file.hpp"

namespace rieszflow {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Colours adapt to the reader's preference; in the dark the figures' white cards are inverted, hues kept.
constexpr std::string_view style = R"(
:root { color-scheme: light dark; --page: #fbfbfa; --card: #ffffff; --text: #1d1d1f; --soft: #62626a; --line: #dedee3;
  --accent: #0072b2; --good: #00724f; --warn: #a24a00; }
@media (prefers-color-scheme: dark) {
  :root { --page: #161618; --card: #1f1f22; --text: #ececf0; --soft: #a6a6b0; --line: #3a3a40; --accent: #6cb8ea;
    --good: #4fcf9f; --warn: #f0a060; }
  figure img { filter: invert(0.88) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.55 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 28px 18px 60px; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 1.25rem; margin: 44px 0 6px; padding-top: 14px; border-top: 1px solid var(--line); }
p { margin: 8px 0; max-width: 76ch; }
.soft { color: var(--soft); }
.symbol { display: block; color: var(--soft); font-size: 0.86rem; white-space: nowrap; }
.good { color: var(--good); font-weight: 600; }
.warn { color: var(--warn); font-weight: 600; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 18px; margin: 16px 0; }
.equations { overflow-x: auto; white-space: nowrap; font-family: "STIX Two Text", Cambria, Georgia, serif; font-size: 1.04rem; }
.equations dt { font: 0.8rem system-ui, sans-serif; color: var(--soft); }
.equations dd { margin: 0 0 6px; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 345px), 1fr)); gap: 16px; margin: 14px 0; align-items: start; }
.top { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 36px; }
@media (min-width: 1040px) { .top { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); } }
.top h2 { margin-top: 10px; padding-top: 0; border-top: 0; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 8px; }
figure img { display: block; width: 100%; height: auto; border-radius: 6px; }
figcaption { color: var(--soft); font-size: 0.86rem; line-height: 1.4; padding: 6px 6px 2px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 12px 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; font-size: 0.88rem; }
td.number { white-space: nowrap; }
code, pre { font: 0.88rem/1.5 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
summary { cursor: pointer; color: var(--accent); }
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Control characters are not allowed in HTML; a command line may hold them.
        out += static_cast<unsigned char>(letter) < 0x20 && letter != '\n' && letter != '\t' ? ' ' : letter;
    }
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t begin = 0; begin < bytes.size(); begin += 3) {
    unsigned block = 0;
    for (std::size_t k = 0; k < 3; ++k)
      block = block << 8 | (begin + k < bytes.size() ? static_cast<unsigned char>(bytes[begin + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      text += begin + k <= bytes.size() ? digits[block >> (18 - 6 * k) & 63u] : '=';
  }
  return text;
}

std::string with_minus(std::string text) {
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

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

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::string text = "<div class=\"scroll\"><table>\n";
  if (!head.empty()) {
    text += "<thead><tr>";
    for (const std::string& cell : head) text += "<th scope=\"col\">" + cell + "</th>";
    text += "</tr></thead>\n";
  }
  text += "<tbody>\n";
  for (const auto& row : rows) {
    text += "<tr>";
    for (std::size_t column = 0; column < row.size(); ++column)
      text += (column == 0 ? "<td>" : "<td class=\"number\">") + row[column] + "</td>";
    text += "</tr>\n";
  }
  return text + "</tbody>\n</table></div>\n";
}

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

/// The figures of the run: files in `folder`, and the same embedded in the page.
std::string figures(const io::RunReader& run, const fs::path& folder) {
  std::string text;
  try {
    for (const report::Section& section : report::sections(run)) {
      text += "<h2>" + escaped(section.title) + "</h2>\n";
      if (!section.text.empty()) text += "<p>" + escaped(section.text) + "</p>\n";
      text += "<div class=\"grid\">\n";
      for (const report::CaptionedFigure& figure : section.figures) {
        const std::string svg = plot::svg(figure.figure);
        io::write_text(folder / (figure.name + ".svg"), svg);
        text += fmt::format(
            "<figure><img alt=\"{}\" width=\"{}\" height=\"{}\" src=\"data:image/svg+xml;base64,{}\" />",
            escaped(fmt::format("{}: {} over {}", figure.figure.title, figure.figure.y.label,
                                figure.figure.x.label)),
            figure.figure.width, figure.figure.height, base64(svg));
        if (!figure.caption.empty()) text += "<figcaption>" + escaped(figure.caption) + "</figcaption>";
        text += "</figure>\n";
      }
      text += "</div>\n";
    }
  } catch (const plot::PlotError& error) {
    text += fmt::format("</div>\n<p class=\"warn\">No figures: {}.</p>\n", escaped(error.what()));
  }
  return text;
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
  const io::RunReader run(directory / "run.h5");
  const Json summary = summary_of(directory / "summary.json");
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
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n<title>" +
      escaped(title) + " – rieszflow</title>\n<style>" + std::string(style) +
      "</style>\n</head>\n<body>\n<main>\n";
  page += "<h1>" + escaped(title) + "</h1>\n<p class=\"soft\">" + kind + "</p>\n" +
          status_line(manifest["status"]);
  page += "<div class=\"top\">\n<div>\n<h2>Model</h2>\n" + model_in_words(manifest["model"]) + extent_of(run);
  if (!manifest["command_line"].empty()) page += "<pre>" + escaped(manifest["command_line"]) + "</pre>\n";
  page += "</div>\n<div>\n<h2>Final values</h2>\n" + final_values(run) + checks(run) + "</div>\n</div>\n";
  page += figures(run, folder);
  page += how_to_read(run);

  if (summary.contains("timing")) {
    std::vector<std::vector<std::string>> rows;
    flatten(summary["timing"], "", rows);
    if (!rows.empty()) page += "<h2>Cost</h2>\n" + table({}, rows);
  }
  page += "<h2>Provenance</h2>\n";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, text] : manifest)
    if (!text.empty() && name != "config" && name != "model" && name != "name" && name != "command_line")
      rows.push_back({escaped(name), escaped(text)});
  if (!rows.empty()) page += table({}, rows);
  if (!manifest["config"].empty())
    page += "<details><summary>Complete configuration (running it repeats the run)</summary><pre>" +
            escaped(manifest["config"]) + "</pre></details>\n";
  page += all_series(run) + "</main>\n</body>\n</html>\n";
  io::write_text(directory / "report.html", page);
}

}  // namespace rieszflow
