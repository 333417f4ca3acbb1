#include "experiments/stationary_states.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "experiments/report_page.hpp"
#include "io/files.hpp"
#include "io/run_file.hpp"
#include "model/description.hpp"

namespace rieszflow::stationary_states {
namespace {

using Json = nlohmann::ordered_json;
using stationary::Stability;
using stationary::State;

struct Found {
  double value = 0.0;
  stationary::Parameters parameters;
  State state;
  stationary::Spectrum rates;
};

std::string_view parameter_name(const Question& question) {
  return question.parameter == Parameter::InverseTemperature ? "inverse_temperature" : "strength";
}

Json number(double value) {
  if (std::isinf(value)) return value > 0.0 ? "inf" : "-inf";
  return std::isnan(value) ? Json(nullptr) : Json(value);
}

Json row_of(const Question& question, const Found& found) {
  const stationary::Result& solution = found.state.solution;
  const Grid& grid = solution.density.grid;
  std::vector<double> lower(grid.dimension(), std::numeric_limits<double>::infinity()),
      upper(grid.dimension(), -lower[0]);
  for (std::size_t cell = 0; cell < grid.cell_count(); ++cell) {
    if (!(solution.density.averages[cell] > 0.0)) continue;
    for (std::size_t axis = grid.dimension(), rest = cell; axis-- > 0; rest /= grid.cells[axis]) {
      lower[axis] = std::min(lower[axis], grid.face(axis, rest % grid.cells[axis]));
      upper[axis] = std::max(upper[axis], grid.face(axis, rest % grid.cells[axis] + 1));
    }
  }
  return {{std::string(parameter_name(question)), number(found.value)},
          {"branch", found.state.branch},
          {"stability", name(found.state.stability)},
          {"free_energy", solution.energy.free_energy},
          {"potential_energy", solution.energy.potential_energy},
          {"interaction_energy", solution.energy.interaction_energy},
          {"entropy", solution.energy.entropy},
          {"chemical_potential", solution.chemical_potential},
          {"residual", solution.residual},
          {"second_variation", found.state.second_variation},
          {"mean", mean(solution.density)},
          {"second_moment", second_moment(solution.density)},
          {"support_lower", lower},
          {"support_upper", upper},
          {"rates", found.rates.values},
          {"rates_status", question.rates > 0 && std::isfinite(found.parameters.inverse_temperature)
                               ? Json(name(found.rates.status))
                               : Json(nullptr)},
          {"iterations", solution.iterations}};
}

void write_run_file(const Question& question, const Setting& setting, const std::vector<Found>& found) {
  const std::filesystem::path path = setting.directory / "run.h5";
  std::filesystem::remove(path);
  io::Manifest manifest(setting.provenance.begin(), setting.provenance.end());
  manifest["model"] = description(question.model);
  manifest["config"] = setting.resolved_config;
  manifest["study"] = "stationary";
  manifest["time_is"] = "number of the row in summary.json";
  io::RunFile file = io::RunFile::create(path, manifest);
  for (std::size_t k = 0; k < found.size(); ++k) {
    const Clock clock{static_cast<std::int64_t>(k), static_cast<double>(k)};
    const State& state = found[k].state;
    const auto series = [&](const char* name, const char* units, const char* meaning, double value) {
      file.append({.name = std::string("stationary/") + name, .units = units, .meaning = meaning}, clock,
                  {{value}});
    };
    series(std::string(parameter_name(question)) == "strength" ? "strength" : "inverse_temperature",
           question.parameter == Parameter::Strength ? "1" : "1/energy", "parameter of the study",
           found[k].value);
    series("branch", "1", "number of the branch", static_cast<double>(state.branch));
    series("free_energy", "energy", "F of theory.md (5)", state.solution.energy.free_energy);
    series("residual", "1", "of the self-consistency, theory.md (7)", state.solution.residual);
    series("second_variation", "energy", "lowest eigenvalue of the second variation of F",
           state.second_variation);
    series("second_moment", "length^2", "integral |x|^2 rho", second_moment(state.solution.density));
    file.append_density(clock, state.solution.density);
  }
  file.set_attribute("status", "completed");
  file.finish();
}

plot::Ink ink_of(std::size_t branch) {
  constexpr plot::Ink inks[]{plot::Ink::Blue,   plot::Ink::Vermillion, plot::Ink::Green, plot::Ink::Orange,
                             plot::Ink::Purple, plot::Ink::Sky,        plot::Ink::Black};
  return inks[branch % std::size(inks)];
}

/// Infinity stands as text in JSON.
double value_of(const Json& number) {
  return number.is_string() ? std::numeric_limits<double>::infinity() : number.get<double>();
}

/// What the report shows of one row of the summary.
struct Shown {
  double value = 0.0;
  std::size_t branch = 0;
  bool unstable = false;
  double free_energy = 0.0, mean = 0.0, second_variation = 0.0;
};

/// One curve a branch, dashed where it is unstable.
plot::Figure diagram(const std::vector<Shown>& states, const std::string& title, const std::string& x,
                     const std::string& y, double Shown::*ordinate) {
  plot::Figure figure{.title = title, .x = {.label = x}, .y = {.label = y}};
  std::vector<std::size_t> branches;
  for (const Shown& state : states) {
    if (std::find(branches.begin(), branches.end(), state.branch) == branches.end())
      branches.push_back(state.branch);
  }
  for (const std::size_t branch : branches) {
    for (const bool unstable : {false, true}) {
      plot::Curve curve{.x = {}, .y = {}, .ink = ink_of(branch), .dashed = unstable};
      plot::Markers dots{.x = {}, .y = {}, .ink = ink_of(branch), .size = unstable ? 0.5 : 1.0};
      for (const Shown& state : states) {
        if (state.branch != branch || !std::isfinite(state.value)) continue;
        const bool here = state.unstable == unstable;
        curve.x.push_back(state.value);
        curve.y.push_back(here ? state.*ordinate : std::numeric_limits<double>::quiet_NaN());
        if (!here) continue;
        dots.x.push_back(state.value);
        dots.y.push_back(state.*ordinate);
      }
      if (dots.x.empty()) continue;
      if (dots.x.size() > 1) figure.layers.emplace_back(curve);
      dots.label = fmt::format("branch {}{}", branch, unstable ? ", unstable" : "");
      figure.layers.emplace_back(dots);
    }
  }
  return figure;
}

/// Densities of one axis at the last value of the parameter.
plot::Figure densities(const std::vector<Shown>& states, const io::RunReader& run) {
  plot::Figure figure{.title = "Densities", .x = {.label = "x  [length]"}, .y = {.label = "ρ  [1/length]"}};
  for (std::size_t k = 0; k < states.size(); ++k) {
    if (states[k].value != states.back().value) continue;
    plot::Curve curve{.x = {},
                      .y = {},
                      .label = fmt::format("branch {}", states[k].branch),
                      .ink = ink_of(states[k].branch),
                      .dashed = states[k].unstable};
    const Density density = run.density(k);
    for (std::size_t i = 0; i < density.averages.size(); ++i) {
      curve.x.push_back(density.grid.center(0, i));
      curve.y.push_back(density.averages[i]);
    }
    figure.layers.emplace_back(curve);
  }
  return figure;
}

}  // namespace

Outcome run(const Question& question, const Setting& setting) {
  if (!setting.ranks.first()) return {};  // a path of states is followed by one rank
  io::write_text(setting.directory / "config.toml", setting.resolved_config);
  const MeanField field(question.model, grid_on(question.model.domain, question.cells),
                        {.threads = question.threads, .weights = question.weights});
  std::vector<stationary::Parameters> path;
  for (const double value : question.values) {
    path.push_back(question.parameter == Parameter::InverseTemperature
                       ? stationary::Parameters{.inverse_temperature = value}
                       : stationary::Parameters{.inverse_temperature = question.model.inverse_temperature,
                                                .strength = value});
  }
  if (setting.progress) setting.progress({0, path.size(), "states and branches"});
  const auto branches = stationary::branches(field, path, question.search);
  Outcome outcome;
  std::vector<Found> found;
  for (std::size_t k = 0; k < path.size(); ++k) {
    if (setting.progress)
      setting.progress(
          {k, path.size(), fmt::format("{} = {:g}", parameter_name(question), question.values[k])});
    const stationary::Landscape landscape(field, path[k]);
    for (const State& state : branches[k]) {
      Found next{.value = question.values[k], .parameters = path[k], .state = state, .rates = {}};
      if (question.rates > 0 && std::isfinite(path[k].inverse_temperature))
        next.rates =
            stationary::relaxation_rates(landscape, state.solution.density, {.count = question.rates});
      found.push_back(std::move(next));
    }
    if (branches[k].empty() && outcome.status == RunStatus::Completed) {
      outcome.status = RunStatus::NotConverged;
      outcome.message = fmt::format("{} = {:g}: no start converged to a stationary state",
                                    parameter_name(question), question.values[k]);
    }
  }
  Json rows = Json::array();
  for (const Found& f : found) rows.push_back(row_of(question, f));
  const Json summary{{"type", "stationary"},
                     {"name", question.name},
                     {"status", name(outcome.status)},
                     {"message", outcome.message},
                     {"model", description(question.model)},
                     {"parameter", parameter_name(question)},
                     {"cells", question.cells},
                     {"rows", rows},
                     {"fit", nullptr}};
  outcome.summary = summary.dump(1) + "\n";
  io::write_text(setting.directory / "summary.json", outcome.summary);
  if (!found.empty()) {
    write_run_file(question, setting, found);
    write_report(setting.directory);
  }
  return outcome;
}

void write_report(const std::filesystem::path& directory) {
  const Json summary = Json::parse(io::read_text(directory / "summary.json"), nullptr, false);
  if (!summary.is_object() || !summary.contains("rows"))
    throw io::FileError((directory / "summary.json").string() + ": is damaged");
  const io::RunReader run(directory / "run.h5");
  const std::string parameter = summary.at("parameter");
  const std::string x = parameter == "strength" ? "strength of W" : "β";
  const std::string x_axis = x + (parameter == "strength" ? "  [energy]" : "  [1/energy]");
  const auto cell = [](const char* format, double value) {
    return report::with_minus(fmt::format(fmt::runtime(format), value));
  };
  std::vector<Shown> states;
  std::vector<std::vector<std::string>> lines;
  for (const Json& row : summary.at("rows")) {
    states.push_back({.value = value_of(row.at(parameter)),
                      .branch = row.at("branch"),
                      .unstable = row.at("stability") == name(Stability::Unstable),
                      .free_energy = row.at("free_energy"),
                      .mean = row.at("mean").at(0),
                      .second_variation = row.at("second_variation")});
    const Shown& state = states.back();
    std::vector<std::string> rates;
    for (const double rate : row.at("rates").get<std::vector<double>>())
      rates.push_back(cell("{:.6g}", rate));
    lines.push_back({cell("{:g}", state.value), fmt::format("{}", state.branch), row.at("stability"),
                     cell("{:.10f}", state.free_energy), cell("{:.1e}", row.at("residual")),
                     cell("{:.6g}", state.second_variation), cell("{:.6f}", state.mean),
                     cell("{:.6f}", row.at("second_moment")), fmt::format("{}", fmt::join(rates, ", "))});
  }
  std::vector<report::Section> sections;
  if (std::any_of(states.begin(), states.end(), [&](const Shown& state) {
        return std::isfinite(state.value) && state.value != states.front().value;
      })) {
    sections.push_back(
        {.title = "Branches",
         .text = "Stationary states that continue each other share a colour; dashed where the second "
                 "variation of F is negative.",
         .figures = {
             {"free_energy", diagram(states, "Free energy", x_axis, "F  [energy]", &Shown::free_energy),
              "F of docs/theory.md (5)."},
             {"mean", diagram(states, "Mean", x_axis, "∫ x dρ  [length]", &Shown::mean), "First coordinate."},
             {"second_variation",
              diagram(states, "Stability", x_axis, "lowest eigenvalue  [energy]", &Shown::second_variation),
              "Of the second variation of F on perturbations of mass zero, in L²(ρ)."}}});
  }
  if (summary.at("cells").size() == 1 && !states.empty()) {
    sections.push_back({.title = "Densities",
                        .text = fmt::format("At the last value, {} = {:g}.", x, states.back().value),
                        .figures = {{"densities", densities(states, run), "Cell averages."}}});
  }
  std::filesystem::create_directories(directory / "figures");
  const std::string title = summary.at("name");
  std::string page = report::page_start("Stationary states: " + title);
  page += "<h1>" + report::escaped(title) + "</h1>\n<p class=\"soft\">stationary states</p>\n";
  const std::string command = run.manifest()["command_line"];
  page +=
      "<p>" + report::escaped(summary.at("model").get<std::string>()) + "</p>\n" + report::made_by(command);
  page += report::table({x, "branch", "stability", "F", "residual", "second variation", "mean",
                         "second moment", "relaxation rates"},
                        lines);
  page += report::figures(sections, directory / "figures", command);
  page += report::page_end();
  io::write_text(directory / "report.html", page);
}

std::string plan(const Question& question) {
  return fmt::format(
      "model      {}\npath       {} = {}\nsearch     {} starts at each value, {} relaxation rates of each "
      "state\n"
      "density    {} cells\n",
      description(question.model), parameter_name(question), fmt::join(question.values, ", "),
      1 + 2 * question.cells.size() + static_cast<std::size_t>(question.search.random_starts), question.rates,
      fmt::join(question.cells, " x "));
}

}  // namespace rieszflow::stationary_states
