#include "experiments/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "experiments/report_page.hpp"
#include "experiments/sweep.hpp"
#include "experiments/verify_config.hpp"
#include "experiments/verify_tools.hpp"
#include "io/files.hpp"

namespace rieszflow::verify {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number_in(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string figure_file(const std::string& claim, std::size_t k) {
  return k == 0 ? claim + ".svg" : fmt::format("{}_{}.svg", claim, k + 1);
}

/// Draws the figures of one claim; returns a sentence when gnuplot cannot.
std::string draw(const std::vector<plot::Figure>& figures, const std::string& name,
                 const std::filesystem::path& folder) {
  try {
    for (std::size_t k = 0; k < figures.size(); ++k)
      io::write_text(folder / figure_file(name, k), plot::svg(figures[k]));
  } catch (const plot::PlotError& error) {
    return error.what();
  }
  return "";
}

struct Selected {
  const Chapter* chapter;
  const Claim* claim;
};

std::vector<Selected> selection(const Question& question) {
  std::vector<Selected> selected;
  for (const Chapter& chapter : catalogue()) {
    for (const Claim& claim : chapter.claims) {
      const bool wanted = question.only.empty() || std::find(question.only.begin(), question.only.end(),
                                                             claim.name) != question.only.end();
      if (wanted) selected.push_back({&chapter, &claim});
    }
  }
  return selected;
}

std::string digits(const Json& value, const char* format = "{:.6g}") {
  return value.is_number() ? report::with_minus(fmt::format(fmt::runtime(format), value.get<double>())) : "–";
}

/// (measured - expected) / tolerance of every claim.
plot::Figure overview(const Json& rows) {
  plot::Markers passed{.x = {}, .y = {}, .label = "passed", .ink = plot::Ink::Green},
      failed{.x = {}, .y = {}, .label = "failed", .ink = plot::Ink::Vermillion};
  double x = 0.0;
  for (const Json& row : rows) {
    x += 1.0;
    const double y =
        (number_in(row.at("measured")) - number_in(row.at("expected"))) / number_in(row.at("tolerance"));
    if (!std::isfinite(y)) continue;
    plot::Markers& markers = row.at("passed").get<bool>() ? passed : failed;
    markers.x.push_back(x);
    markers.y.push_back(std::clamp(y, -3.0, 3.0));  // beyond: at the edge of the figure
  }
  plot::Figure figure{.title = "Every claim",
                      .x = {.label = "claim", .lower = 0.0, .upper = x + 1.0},
                      .y = {.label = "(measured − expected) / tolerance", .lower = -3.2, .upper = 3.2},
                      .layers = {}};
  for (const double edge : {-1.0, 1.0})
    figure.layers.emplace_back(
        plot::Curve{.x = {0.0, x + 1.0}, .y = {edge, edge}, .ink = plot::Ink::Grey, .dashed = true});
  for (const plot::Markers& markers : {passed, failed}) {
    if (!markers.x.empty()) figure.layers.emplace_back(markers);
  }
  figure.width = 960;
  return figure;
}

void write_report(const Json& summary, const std::filesystem::path& directory) {
  const std::filesystem::path folder = directory / "figures";
  const Json& rows = summary.at("verdicts");
  std::size_t failed = 0;
  for (const Json& row : rows) failed += row.at("passed").get<bool>() ? 0 : 1;
  std::string page = report::page_start("Theoretical limits");
  page += "<h1>Theoretical limits</h1>\n";
  page +=
      fmt::format("<p class=\"{}\">{} of {} claims passed{}.</p>\n", failed == 0 ? "good" : "warn",
                  rows.size() - failed, rows.size(), failed == 0 ? "" : fmt::format(", {} failed", failed));
  page +=
      "<p>A random measurement passes within four standard errors: about one false alarm in 16 000 claims if "
      "errors were "
      "Gaussian, one in 3 000 for the Student law of 32 replicates. Seeds are fixed, so a verdict is the "
      "same in every "
      "run of the same build. A deterministic one passes within twice the error that its two grids predict "
      "for its "
      "order.</p>\n";
  const std::string sentence = draw({overview(rows)}, "overview", folder);
  page += sentence.empty()
              ? report::image(io::read_text(folder / "overview.svg"), "deviation of each claim in tolerances",
                              "", 960, 360)
              : fmt::format("<p class=\"warn\">No figures: {}.</p>\n", report::escaped(sentence));
  page += report::made_by(summary.value("command_line", ""));
  std::string chapter;
  std::vector<std::vector<std::string>> lines;
  std::string images;
  const auto close = [&] {
    if (lines.empty()) return;
    page += "<h2>" + report::escaped(chapter) + "</h2>\n";
    page +=
        report::table({"claim", "measured", "error", "expected", "tolerance", "verdict", "seconds"}, lines);
    if (!images.empty()) page += "<div class=\"grid\">\n" + images + "</div>\n";
    lines.clear();
    images.clear();
  };
  for (const Json& row : rows) {
    if (row.at("chapter") != chapter) {
      close();
      chapter = row.at("chapter");
    }
    const std::string name = row.at("name"), claim = row.at("claim");
    const bool passed = row.at("passed");
    lines.push_back(
        {fmt::format("<strong>{}</strong><br>{}<br><span class=\"soft\">{}; {}</span>", report::escaped(name),
                     report::escaped(claim), report::escaped(row.at("reference").get<std::string>()),
                     report::escaped(row.at("rule").get<std::string>())),
         digits(row.at("measured")), digits(row.at("standard_error"), "{:.2g}"), digits(row.at("expected")),
         digits(row.at("tolerance"), "{:.2g}"),
         passed ? "<span class=\"good\">passed</span>" : "<span class=\"warn\">failed</span>",
         digits(row.at("seconds"), "{:.1f}")});
    for (std::size_t k = 0; std::filesystem::exists(folder / figure_file(name, k)); ++k)
      images +=
          report::image(io::read_text(folder / figure_file(name, k)), claim, name + ": " + claim, 480, 360);
  }
  close();
  page += report::page_end();
  io::write_text(directory / "report.html", page);
}

}  // namespace

const std::vector<Chapter>& catalogue() {
  static const std::vector<Chapter> chapters{
      {"Stationary states of the density", stationary_claims()},
      {"The density in time", evolution_claims()},
      {"N particles and their limit", chaos_claims()},
      {"Schemes at walls, pair sums", scheme_claims()},
      {"The Gibbs law at finite N", finite_size_claims()},
      {"Partition functions and their limit", partition_claims()},
      {"Fluctuations", fluctuation_claims()},
      {"Large deviations and concentration", deviation_claims()},
  };
  return chapters;
}

Outcome run(const Question& question, const Setting& setting,
            const std::function<void(const Verdict&)>& told) {
  const Ranks& ranks = setting.ranks;
  if (ranks.first()) io::write_text(setting.directory / "config.toml", setting.resolved_config);
  std::filesystem::create_directories(setting.directory / "figures");
  const std::filesystem::path kept = setting.directory / "rows.json";
  const Json earlier = sweep::kept_rows(setting);
  Outcome outcome;
  const std::vector<Selected> selected = selection(question);
  Json rows = Json::array();
  std::size_t turn = 0;  // ranks take the claims in turn
  for (const Selected& now : selected) {
    const Claim& claim = *now.claim;
    const auto known = std::find_if(earlier.begin(), earlier.end(),
                                    [&](const Json& row) { return row.at("name") == claim.name; });
    if (known != earlier.end()) {
      if (ranks.first()) rows.push_back(*known);
      continue;
    }
    if (turn++ % ranks.count() != ranks.rank()) continue;
    if (setting.interrupted && setting.interrupted()) {
      outcome.status = RunStatus::Interrupted;
      outcome.message = fmt::format("{} of {} claims are done", rows.size(), selected.size());
      break;
    }
    if (setting.progress) setting.progress({rows.size(), selected.size(), claim.name});
    const auto begin = std::chrono::steady_clock::now();
    const Finding finding = claim.measure({.quick = question.quick,
                                           .threads = question.threads,
                                           .seed = sweep::seed_of(question.seed, claim.name)});
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const Verdict verdict = rieszflow::verdict(claim.name, claim.claim, finding.measured, finding.expected,
                                               finding.tolerance, claim.reference);
    draw(finding.figures, claim.name, setting.directory / "figures");
    rows.push_back({{"name", claim.name},
                    {"claim", claim.claim},
                    {"measured", number(finding.measured.value)},
                    {"standard_error", number(finding.measured.standard_error)},
                    {"expected", number(finding.expected)},
                    {"tolerance", number(finding.tolerance)},
                    {"rule", finding.rule},
                    {"passed", verdict.passed},
                    {"seconds", seconds},
                    {"reference", claim.reference},
                    {"chapter", now.chapter->title}});
    if (ranks.first()) io::write_text(kept, rows.dump(1) + "\n");
    if (told) told(verdict);
  }
  const std::vector<std::string> all = ranks.collect(rows.dump());
  if (ranks.any(outcome.status == RunStatus::Interrupted)) outcome.status = RunStatus::Interrupted;
  if (!ranks.first()) return outcome;
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    for (Json& row : Json::parse(all[rank])) rows.push_back(std::move(row));
  }
  if (all.size() > 1) {
    const auto place = [&](const Json& row) {
      return std::ranges::find(selected, row.at("name").get<std::string>(),
                               [](const Selected& one) { return one.claim->name; });
    };
    std::sort(rows.begin(), rows.end(), [&](const Json& a, const Json& b) { return place(a) < place(b); });
    io::write_text(kept, rows.dump(1) + "\n");
  }
  if (outcome.status == RunStatus::Interrupted)
    outcome.message = fmt::format("{} of {} claims are done", rows.size(), selected.size());
  for (const Json& row : rows) ++(row.at("passed").get<bool>() ? outcome.passed : outcome.failed);
  Json summary{{"status", name(outcome.status)}, {"message", outcome.message}, {"quick", question.quick},
               {"passed", outcome.passed},       {"failed", outcome.failed},   {"verdicts", rows}};
  for (const auto& [key, value] : setting.provenance) summary[key] = value;
  outcome.summary = summary.dump(1) + "\n";
  io::write_text(setting.directory / "summary.json", outcome.summary);
  if (outcome.status == RunStatus::Completed) write_report(summary, setting.directory);
  return outcome;
}

}  // namespace rieszflow::verify
