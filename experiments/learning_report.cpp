#include "experiments/learning_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "experiments/report_page.hpp"
#include "io/files.hpp"
#include "io/run_file.hpp"

namespace rieszflow::learning {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using report::escaped;

std::string percent(const Json& value) {
  return value.is_null() ? "" : report::with_minus(fmt::format("{:.2f}", 100.0 * value.get<double>()));
}

std::string interval(const Json& row) {
  if (row.at("low").is_null()) return percent(row.at("mean"));
  return fmt::format("{} [{}, {}]", percent(row.at("mean")), percent(row.at("low")), percent(row.at("high")));
}

std::string setting_of(const Json& row) {
  std::string text =
      fmt::format("{}, d = {}", row.at("dataset").get<std::string>(), row.at("dimension").get<int>());
  for (const auto& [key, what] : {std::pair{"noise", "label noise"}, std::pair{"input_noise", "input noise"}})
    if (row.at(key).get<double>() > 0.0) text += fmt::format(", {} {}", what, row.at(key).get<double>());
  return text;
}

std::string result_table(const Json& summary) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : summary.at("table")) {
    rows.push_back({escaped(setting_of(row)), escaped(row.at("method").get<std::string>()),
                    fmt::format("{}", row.at("features").get<int>()), interval(row),
                    row.contains("difference") ? interval(row.at("difference")) : "",
                    report::with_minus(fmt::format("{:.3f}", row.at("mcc").get<double>())),
                    fmt::format("{:.3f}", row.at("log_loss").get<double>()),
                    fmt::format("{:.3f}", row.at("brier").get<double>()),
                    fmt::format("{:.3f}", row.at("ece").get<double>()),
                    fmt::format("{:.3f}", row.at("ece_equal_mass").get<double>()),
                    fmt::format("{}", row.at("seeds").get<int>())});
  }
  return report::table({"data", "method", "features", "accuracy %",
                        "minus " + escaped(summary.at("baseline").get<std::string>()), "MCC", "log-loss",
                        "Brier", "ECE, equal widths", "ECE, equal masses", "seeds"},
                       rows);
}

constexpr std::array inks{plot::Ink::Vermillion, plot::Ink::Blue, plot::Ink::Green, plot::Ink::Orange,
                          plot::Ink::Purple,     plot::Ink::Sky,  plot::Ink::Black, plot::Ink::Grey};

/// Accuracy against one key of the table, a curve per method, for each setting in which the key takes several
/// values.
void add_accuracy(const Json& summary, const std::string& key, const std::string& label, bool logarithmic,
                  std::vector<report::CaptionedFigure>& figures) {
  std::map<std::string, std::map<std::string, plot::Curve>> curves;  // setting without the key, method
  std::map<std::string, std::set<double>> values;
  for (const Json& row : summary.at("table")) {
    std::string rest;
    for (const char* other : {"dataset", "dimension", "features", "noise", "input_noise"})
      if (key != other) rest += (rest.empty() ? "" : ", ") + std::string(other) + " " + row.at(other).dump();
    plot::Curve& curve = curves[rest][row.at("method").get<std::string>()];
    const double mean = row.at("mean").get<double>();
    curve.x.push_back(row.at(key).get<double>());
    curve.y.push_back(mean);
    curve.low.push_back(row.at("low").is_null() ? mean : row.at("low").get<double>());
    curve.high.push_back(row.at("high").is_null() ? mean : row.at("high").get<double>());
    values[rest].insert(curve.x.back());
  }
  int index = 0;
  for (auto& [rest, methods] : curves) {
    if (values[rest].size() < 2 || ++index > 6) continue;
    plot::Figure figure{
        .title = "Accuracy", .x = {.label = label, .logarithmic = logarithmic}, .y = {.label = "accuracy"}};
    std::size_t ink = 0;
    for (auto& [method, curve] : methods) {
      if (method == "kernel_ridge" && key == "features") continue;
      curve.label = method;
      curve.ink = inks[ink % inks.size()];
      curve.dashed = ink++ >= inks.size();
      figure.layers.push_back(curve);
    }
    figures.push_back(
        {fmt::format("accuracy_{}_{}", key, index), figure, rest + ". Bands: 95 % intervals over seeds."});
  }
}

void add_reliability(const Json& summary, std::vector<report::CaptionedFigure>& figures) {
  plot::Figure figure{.title = "Reliability", .x = {.label = "confidence"}, .y = {.label = "accuracy"}};
  figure.layers.push_back(plot::Curve{
      .x = {0.0, 1.0}, .y = {0.0, 1.0}, .label = "calibrated", .ink = plot::Ink::Grey, .dashed = true});
  std::size_t ink = 0;
  for (const char* method : {"learned", "fixed"}) {
    if (!summary.at("reliability").contains(method)) continue;
    plot::Curve curve{.x = {}, .y = {}, .label = method, .ink = inks[ink++]};
    for (const Json& bin : summary.at("reliability").at(method)) {
      if (bin.at("count").get<int>() == 0) continue;
      curve.x.push_back(bin.at("confidence").get<double>());
      curve.y.push_back(bin.at("accuracy").get<double>());
    }
    figure.layers.push_back(curve);
  }
  if (ink > 0)
    figures.push_back(
        {"reliability", figure,
         "First run: how often the predicted class was right against how sure the classifier was."});
}

void add_trace(const io::RunReader& run, const std::string& title, const std::string& units,
               const std::vector<std::pair<std::string, std::string>>& series, const std::string& file,
               std::vector<report::CaptionedFigure>& figures) {
  plot::Figure figure{.title = title, .x = {.label = "t  [time]"}, .y = {.label = units}};
  std::size_t ink = 0;
  for (const auto& [name, label] : series) {
    const auto found = report::find_series(run, name);
    if (found)
      figure.layers.push_back(
          plot::Curve{.x = found->time, .y = found->value, .label = label, .ink = inks[ink]});
    ++ink;
  }
  if (!figure.layers.empty()) figures.push_back({file, figure, ""});
}

}  // namespace

void write_learning_report(const fs::path& directory) {
  const Json summary = Json::parse(io::read_text(directory / "summary.json"), nullptr, false);
  if (summary.is_discarded() || !summary.is_object() || !summary.contains("table"))
    throw io::FileError((directory / "summary.json").string() +
                        ": cannot read: no results of `rieszflow learn`");
  const fs::path folder = directory / "figures";
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw io::FileError(folder.string() + ": cannot create: " + problem.message());

  const std::string title = summary.at("name").get<std::string>();
  const std::string command = summary.value("command_line", std::string());
  std::string page = report::page_start(title) + "<h1>" + escaped(title) +
                     "</h1>\n<p class=\"soft\">learned random features against their "
                     "baselines</p>\n" +
                     report::made_by(command) + "<h2>Findings</h2>\n<ul>\n";
  for (const Json& sentence : summary.at("findings"))
    page += "<li>" + escaped(sentence.get<std::string>()) + "</li>\n";
  for (const Json& sentence : summary.at("skipped"))
    page += "<li class=\"warn\">" + escaped(sentence.get<std::string>()) + "</li>\n";
  page += "</ul>\n";

  std::vector<report::Section> sections(2);
  sections[0] = {"Accuracy", "", {}};
  add_accuracy(summary, "features", "number of features N", true, sections[0].figures);
  add_accuracy(summary, "noise", "label noise", false, sections[0].figures);
  add_accuracy(summary, "input_noise", "input noise", false, sections[0].figures);
  add_accuracy(summary, "dimension", "dimension", true, sections[0].figures);
  add_reliability(summary, sections[0].figures);
  sections[1] = {"Learning",
                 "The first learned run: validation on the rows held out, then the final run on all training "
                 "rows up to the time chosen.",
                 {}};
  std::error_code absent;
  if (fs::exists(directory / "run.h5", absent)) {
    const io::RunReader run(directory / "run.h5");
    add_trace(run, "Energy", "energy",
              {{"learning/hamiltonian", "H_N"},
               {"learning/alignment", "A(mu_N)"},
               {"learning/repulsion", "repulsion"},
               {"validation/validation_alignment", "A, held out"}},
              "trace_energy", sections[1].figures);
    add_trace(run, "Held-out log-loss", "nat", {{"validation/validation_loss", "classifier"}}, "trace_loss",
              sections[1].figures);
    add_trace(run, "Diversity", "effective rank",
              {{"learning/effective_rank", "final run"}, {"validation/effective_rank", "validation"}},
              "trace_rank", sections[1].figures);
    add_trace(run, "Smallest distance", "distance", {{"learning/minimum_distance", "of two particles"}},
              "trace_distance", sections[1].figures);
  }
  std::erase_if(sections, [](const report::Section& section) { return section.figures.empty(); });
  page += report::figures(sections, folder, command) + "<h2>All results</h2>\n" + result_table(summary) +
          report::page_end();
  io::write_text(directory / "report.html", page);
}

}  // namespace rieszflow::learning
