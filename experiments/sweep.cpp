#include "experiments/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "analysis/rate_fit.hpp"
#include "experiments/report_page.hpp"
#include "io/files.hpp"

namespace rieszflow::sweep {
namespace {

constexpr double noise_floor = 3.0;         ///< standard errors below which an error is not seen
constexpr double least_probability = 1e-3;  ///< of chi^2, below which a power law does not describe the rows

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

double number_at(const Json& row, const char* key) {
  return row.contains(key) && row.at(key).is_number() ? row.at(key).get<double>()
                                                      : std::numeric_limits<double>::quiet_NaN();
}

bool has_error(const Json& row) { return number_at(row, "error") > 0.0 && number_at(row, "scale") > 0.0; }

bool below_noise(const Json& row) {
  return number_at(row, "error") < noise_floor * number_at(row, "standard_error");
}

std::vector<Json> rows_of(const std::vector<Json>& rows, const std::string& quantity) {
  std::vector<Json> result;
  for (const Json& row : rows) {
    if (row.at("quantity") == quantity) result.push_back(row);
  }
  return result;
}

std::vector<RatePoint> points_of(std::span<const Json> rows) {
  std::vector<RatePoint> points;
  for (const Json& row : rows) {
    if (!has_error(row) || below_noise(row)) continue;
    const double error = number_at(row, "standard_error");
    points.push_back({.scale = number_at(row, "scale"),
                      .error = {number_at(row, "error"), std::isnan(error) ? 0.0 : error,
                                row.value("samples", std::size_t{0})}});
  }
  return points;
}

Json rows_in(const std::filesystem::path& path) {
  Json rows = Json::parse(io::read_text(path), nullptr, false);
  if (!rows.is_array()) throw io::FileError(path.string() + ": is damaged; start anew with --force");
  return rows;
}

// ---- units ----

/// Measures what is missing. Returns false when interrupted. `kept`: one object {"unit", "rows"} a unit, in
/// any order; those of a rank that is not the first are its own new ones.
class Workshop {
 public:
  Workshop(const Study& study, const Setting& setting) : study_(study), setting_(setting) {
    const Ranks& ranks = setting.ranks;
    if (setting.resume && ranks.first()) {
      if (std::filesystem::exists(path_of(0))) keep(path_of(0));
      std::error_code none;
      for (const auto& entry : std::filesystem::directory_iterator(setting.directory / "rows", none))
        keep(entry.path());
      save();
      forget_others();
    }
    std::string known = kept_.dump();
    ranks.share(known);
    if (!ranks.first()) kept_ = Json::parse(known);
    for (std::size_t unit = 0; unit < study.units.size(); ++unit) {
      if (find(study.units[unit].name) == nullptr) missing_.push_back(unit);
    }
    std::stable_sort(missing_.begin(), missing_.end(),
                     [&](std::size_t a, std::size_t b) { return study.units[a].cost > study.units[b].cost; });
    std::size_t turn = 0;
    std::erase_if(missing_, [&](std::size_t) { return turn++ % ranks.count() != ranks.rank(); });
    if (!ranks.first()) {
      kept_ = Json::array();
      std::filesystem::create_directories(setting.directory / "rows");
    }
  }

  bool work() {
    const std::size_t workers = std::min<std::size_t>(static_cast<std::size_t>(std::max(1, setting_.threads)),
                                                      std::max<std::size_t>(missing_.size(), 1));
    const int threads = std::max(1, setting_.threads / static_cast<int>(workers));
    std::vector<std::thread> team;
    for (std::size_t worker = 1; worker < workers; ++worker) team.emplace_back([&] { take_units(threads); });
    take_units(threads);
    for (std::thread& member : team) member.join();
    if (fault_) std::rethrow_exception(fault_);
    const std::vector<std::string> all = setting_.ranks.collect(kept_.dump());
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      for (Json& entry : Json::parse(all[rank])) kept_.push_back(std::move(entry));
    }
    if (all.size() > 1) {
      save();
      forget_others();
    }
    return !setting_.ranks.any(interrupted_);
  }

  /// In the order of the study.
  std::vector<Json> rows() const {
    std::vector<Json> result;
    for (const Unit& unit : study_.units) {
      const Json* entry = find(unit.name);
      if (entry == nullptr) continue;
      for (const Json& row : entry->at("rows")) result.push_back(row);
    }
    return result;
  }
  std::size_t units_done() const { return kept_.size(); }

 private:
  const Json* find(const std::string& name) const {
    for (const Json& entry : kept_) {
      if (entry.at("unit") == name) return &entry;
    }
    return nullptr;
  }

  std::filesystem::path path_of(std::size_t rank) const {
    return rank == 0 ? setting_.directory / "rows.json"
                     : setting_.directory / "rows" / fmt::format("{}.json", rank);
  }
  void save() const { io::write_text(path_of(setting_.ranks.rank()), kept_.dump(1) + "\n"); }
  void keep(const std::filesystem::path& path) {
    for (const Json& entry : rows_in(path)) {
      if (find(entry.at("unit")) == nullptr) kept_.push_back(entry);
    }
  }
  /// What the other ranks kept is in rows.json now.
  void forget_others() const { std::filesystem::remove_all(setting_.directory / "rows"); }

  bool wished() const { return setting_.interrupted && setting_.interrupted(); }

  void take_units(int threads) {
    while (true) {
      std::size_t index = 0;
      {
        const std::scoped_lock lock(mutex_);
        if (fault_ || interrupted_ || next_ == missing_.size()) return;
        if (wished()) {
          interrupted_ = true;
          return;
        }
        index = missing_[next_++];
        report(study_.units[index].name);
      }
      try {
        std::vector<Json> rows =
            study_.units[index].measure({.threads = threads, .interrupted = [this] { return wished(); }});
        const std::scoped_lock lock(mutex_);
        if (rows.empty()) {
          interrupted_ = true;
          return;
        }
        kept_.push_back({{"unit", study_.units[index].name}, {"rows", std::move(rows)}});
        save();
        report(study_.units[index].name);
      } catch (...) {
        const std::scoped_lock lock(mutex_);
        if (!fault_) fault_ = std::current_exception();
        return;
      }
    }
  }

  void report(const std::string& text) const {
    if (setting_.progress) setting_.progress({kept_.size(), study_.units.size(), text});
  }

  const Study& study_;
  const Setting& setting_;
  std::mutex mutex_;
  Json kept_ = Json::array();
  std::vector<std::size_t> missing_;
  std::size_t next_ = 0;
  bool interrupted_ = false;
  std::exception_ptr fault_;
};

// ---- report ----

Json verdicts_json(const std::vector<Verdict>& verdicts) {
  Json list = Json::array();
  for (const Verdict& verdict : verdicts) {
    list.push_back({{"name", verdict.name},
                    {"claim", verdict.claim},
                    {"measured", number(verdict.measured.value)},
                    {"standard_error", number(verdict.measured.standard_error)},
                    {"expected", verdict.expected},
                    {"tolerance", number(verdict.tolerance)},
                    {"passed", verdict.passed},
                    {"reference", verdict.reference}});
  }
  return list;
}

/// The `fit` of a study that has no rate.
Json verdict_fit(const std::vector<Verdict>& verdicts) {
  const bool passed =
      std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.passed; });
  return {{"exponent", nullptr},
          {"low", nullptr},
          {"high", nullptr},
          {"expected", nullptr},
          {"passed", verdicts.empty() ? Json(nullptr) : Json(passed)}};
}

std::string cell(const Json& row, const char* key, const char* format = "{:.4g}") {
  if (!row.contains(key)) return "-";
  const Json& value = row.at(key);
  if (value.is_number()) return report::with_minus(fmt::format(fmt::runtime(format), value.get<double>()));
  return value.is_string() ? report::escaped(value.get<std::string>()) : "-";
}

report::CaptionedFigure figure_of(const Curve& curve, const std::vector<Json>& rows, const Json& fitted,
                                  std::size_t index) {
  plot::Markers seen{.x = {}, .y = {}, .error = {}, .label = "measured"};
  plot::Markers unseen{.x = {}, .y = {}, .error = {}, .label = "within noise", .ink = plot::Ink::Grey};
  plot::Curve theory{.x = {}, .y = {}, .label = "exact", .ink = plot::Ink::Black, .dashed = true};
  std::vector<std::pair<double, double>> exact;
  for (const Json& row : rows) {
    if (!has_error(row)) continue;
    plot::Markers& markers = below_noise(row) ? unseen : seen;
    markers.x.push_back(number_at(row, "scale"));
    markers.y.push_back(number_at(row, "error"));
    markers.error.push_back(std::isnan(number_at(row, "standard_error")) ? 0.0
                                                                         : number_at(row, "standard_error"));
    if (number_at(row, "theory") > 0.0) exact.emplace_back(markers.x.back(), number_at(row, "theory"));
  }
  plot::Figure figure{.title = curve.description,
                      .x = {.label = curve.scale_label, .logarithmic = true},
                      .y = {.label = "error, in units of the quantity", .logarithmic = true},
                      .layers = {}};
  const std::vector<RatePoint> points = points_of(rows);
  if (fitted.at("exponent").is_number()) {
    const RateFit line = fit_rate(points);
    double low = points.front().scale, high = low;
    for (const RatePoint& point : points) {
      low = std::min(low, point.scale);
      high = std::max(high, point.scale);
    }
    plot::Curve curve_fit{
        .x = {},
        .y = {},
        .low = {},
        .high = {},
        .label = fmt::format("exponent {:.3f} [{:.3f}, {:.3f}]", line.exponent.value, line.low, line.high)};
    const bool corrected = fitted.contains("amplitudes");
    if (corrected)
      curve_fit.label =
          fmt::format("leading exponent {:.3f} [{:.3f}, {:.3f}]", fitted.at("exponent").get<double>(),
                      fitted.at("low").get<double>(), fitted.at("high").get<double>());
    for (int i = 0; i <= 60; ++i) {
      const double scale = low * std::pow(high / low, i / 60.0);
      if (corrected) {
        const std::vector<double> amplitudes = fitted.at("amplitudes");
        double sum = 0.0;
        for (std::size_t k = 0; k < amplitudes.size(); ++k)
          sum += amplitudes[k] * std::pow(scale, fitted.at("exponent").get<double>() +
                                                     (k == 0 ? 0.0 : curve.corrections[k - 1]));
        curve_fit.x.push_back(scale);
        curve_fit.y.push_back(sum);
        continue;
      }
      const Estimate value = line.at(std::log(scale));
      const double half = std::isfinite(value.standard_error) ? 1.96 * value.standard_error : 0.0;
      curve_fit.x.push_back(scale);
      curve_fit.y.push_back(std::exp(value.value));
      curve_fit.low.push_back(std::exp(value.value - half));
      curve_fit.high.push_back(std::exp(value.value + half));
    }
    figure.layers.emplace_back(std::move(curve_fit));
  }
  if (!seen.x.empty()) figure.layers.emplace_back(seen);
  if (!unseen.x.empty()) figure.layers.emplace_back(unseen);
  if (exact.size() > 1) {
    std::sort(exact.begin(), exact.end());
    for (const auto& [x, y] : exact) {
      theory.x.push_back(x);
      theory.y.push_back(y);
    }
    figure.layers.emplace_back(theory);
  }
  std::string caption = fitted.at("warning").is_string() ? fitted.at("warning").get<std::string>() : "";
  return {fmt::format("rate_{}", index + 1), figure, caption};
}

void write_report(const Study& study, const Setting& setting, const std::vector<Json>& rows, const Json& fits,
                  const Conclusion& conclusion) {
  report::Section section{
      .title = "Rates",
      .text = "Errors with standard errors over replicas, the fitted power law and its 95 % band.",
      .figures = {}};
  std::vector<std::vector<std::string>> verdicts, lines;
  for (std::size_t c = 0; c < study.curves.size(); ++c) {
    const Curve& curve = study.curves[c];
    const std::vector<Json> own = rows_of(rows, curve.quantity);
    const Json& fitted = fits.at(c);
    if (std::any_of(own.begin(), own.end(), has_error))
      section.figures.push_back(figure_of(curve, own, fitted, c));
    const Json& passed = fitted.at("passed");
    verdicts.push_back(
        {report::escaped(curve.description), cell(fitted, "exponent", "{:.4f}"),
         fmt::format("{} to {}", cell(fitted, "low", "{:.4f}"), cell(fitted, "high", "{:.4f}")),
         cell(fitted, "expected"),
         fmt::format("{} / {}", cell(fitted, "chi_squared", "{:.2f}"), cell(fitted, "degrees_of_freedom")),
         fmt::format("{} of {}", cell(fitted, "points"), own.size()),
         passed.is_boolean() ? (passed.get<bool>() ? "agrees" : "differs") : "-", cell(fitted, "warning")});
  }
  for (const Json& row : rows) {
    lines.push_back({cell(row, "quantity"), cell(row, "value", "{:.6g}"), cell(row, "scale", "{:.6g}"),
                     cell(row, "error", "{:.6g}"), cell(row, "standard_error", "{:.2g}"),
                     cell(row, "theory", "{:.6g}"), cell(row, "z", "{:.2f}"), cell(row, "seconds", "{:.2f}"),
                     cell(row, "status")});
  }
  section.figures.insert(section.figures.end(), conclusion.figures.begin(), conclusion.figures.end());
  std::filesystem::create_directories(setting.directory / "figures");
  std::string page = report::page_start(study.name);
  page += "<h1>" + report::escaped(study.name) + "</h1>\n<p>" + report::escaped(study.question) +
          "</p>\n<p>" + report::escaped(study.model) + "</p>\n" + report::made_by(setting.command_line());
  for (const std::string& sentence : warnings(study)) page += report::warning(sentence);
  if (!verdicts.empty())
    page += report::table({"rate of", "exponent", "95 % interval", "expected", "χ² / degrees of freedom",
                           "rows", "verdict", "warning"},
                          verdicts);
  std::vector<std::vector<std::string>> claims;
  for (const Json& verdict : verdicts_json(conclusion.verdicts)) {
    claims.push_back({cell(verdict, "name"), cell(verdict, "measured", "{:.6g}"),
                      cell(verdict, "standard_error", "{:.2g}"), cell(verdict, "expected", "{:.6g}"),
                      cell(verdict, "tolerance", "{:.2g}"),
                      verdict.at("passed").get<bool>() ? "agrees" : "differs", cell(verdict, "reference")});
  }
  if (!claims.empty())
    page += report::table(
        {"claim", "measured", "standard error", "expected", "tolerance", "verdict", "reference"}, claims);
  if (!section.figures.empty())
    page += report::figures({section}, setting.directory / "figures", setting.command_line());
  page += report::table(
      {"quantity", "value", "scale", "error", "standard error", "exact", "z", "seconds", "status"}, lines);
  page += report::page_end();
  io::write_text(setting.directory / "report.html", page);
}

}  // namespace

std::vector<std::string> warnings(const Study& study) {
  std::vector<std::string> sentences;
  for (const Unit& unit : study.units)
    for (const std::string& sentence : unit.warnings) sentences.push_back(unit.name + ": " + sentence);
  return sentences;
}

Json kept_rows(const Setting& setting) {
  const std::filesystem::path path = setting.directory / "rows.json";
  Json rows = Json::array();
  if (setting.ranks.first() && setting.resume && std::filesystem::exists(path)) rows = rows_in(path);
  std::string text = rows.dump();
  setting.ranks.share(text);
  return Json::parse(text);
}

std::uint64_t seed_of(std::uint64_t seed, std::span<const std::uint64_t> words) {
  std::uint64_t hash = 14695981039346656037ULL;
  const auto take = [&](std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ ((word >> (8 * byte)) & 0xff)) * 1099511628211ULL;
  };
  take(seed);
  for (const std::uint64_t word : words) take(word);
  return hash;
}

std::uint64_t seed_of(std::uint64_t seed, std::span<const double> numbers) {
  std::vector<std::uint64_t> words;
  for (const double number : numbers) words.push_back(std::bit_cast<std::uint64_t>(number));
  return seed_of(seed, words);
}

std::uint64_t seed_of(std::uint64_t seed, std::string_view name) {
  std::vector<std::uint64_t> words;
  for (const unsigned char letter : name) words.push_back(letter);
  return seed_of(seed, words);
}

namespace {

/// Puts the leading exponent in place of the pure power law's.
void correct(Json& json, const Curve& curve, std::span<const RatePoint> points) {
  const CorrectedRateFit fit = fit_corrected_rate(points, curve.corrections);
  json["power_law"] = {{"exponent", json.at("exponent")},
                       {"low", json.at("low")},
                       {"high", json.at("high")},
                       {"chi_squared", json.at("chi_squared")},
                       {"degrees_of_freedom", json.at("degrees_of_freedom")}};
  json["corrections"] = curve.corrections;
  json["amplitudes"] = fit.amplitudes;
  json["amplitude"] = fit.amplitudes.front();
  json["exponent"] = fit.exponent.value;
  json["standard_error"] = number(fit.exponent.standard_error);
  json["low"] = fit.low;
  json["high"] = fit.high;
  json["chi_squared"] = fit.chi_squared;
  json["degrees_of_freedom"] = fit.degrees_of_freedom;
  json["chi_squared_per_degree"] = fit.chi_squared / static_cast<double>(fit.degrees_of_freedom);
  json["chi_squared_probability"] = fit.chi_squared_probability();
  json["tolerance"] = 0.0;
  const bool doubtful = fit.chi_squared_probability() < least_probability;
  json["warning"] =
      doubtful ? Json(fmt::format("the leading power and its corrections do not describe the errors: chi^2 = "
                                  "{:.3g} with {} degrees of freedom",
                                  fit.chi_squared, fit.degrees_of_freedom))
               : Json(nullptr);
  if (std::isfinite(curve.expected))
    json["passed"] = !doubtful && fit.low <= curve.expected && curve.expected <= fit.high;
}

}  // namespace

Json fit(const Curve& curve, std::span<const Json> rows) {
  const std::vector<RatePoint> points = points_of(rows);
  const auto quiet = static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [](const Json& row) { return has_error(row) && below_noise(row); }));
  Json json{{"quantity", curve.quantity},
            {"exponent", nullptr},
            {"low", nullptr},
            {"high", nullptr},
            {"expected", number(curve.expected)},
            {"passed", nullptr},
            {"tolerance", curve.tolerance},
            {"reference", curve.reference},
            {"points", points.size()},
            {"rows_within_noise", quiet},
            {"warning", nullptr}};
  std::vector<double> scales;
  for (const RatePoint& point : points) scales.push_back(point.scale);
  std::sort(scales.begin(), scales.end());
  const auto different = std::unique(scales.begin(), scales.end()) - scales.begin();
  if (different < 2) {
    if (std::isfinite(curve.expected)) json["passed"] = false;
    json["warning"] = quiet > 0
                          ? fmt::format("{} of {} errors are within noise: no rate; more replicas are needed",
                                        quiet, rows.size())
                          : "fewer than two errors: no rate";
    return json;
  }
  const RateFit line = fit_rate(points);
  json["exponent"] = line.exponent.value;
  json["standard_error"] = number(line.exponent.standard_error);
  json["low"] = number(line.low);
  json["high"] = number(line.high);
  json["amplitude"] = std::exp(line.log_amplitude);
  json["chi_squared"] = line.chi_squared;
  json["degrees_of_freedom"] = line.degrees_of_freedom;
  json["chi_squared_per_degree"] = line.degrees_of_freedom > 0
                                       ? Json(line.chi_squared / static_cast<double>(line.degrees_of_freedom))
                                       : Json(nullptr);
  json["chi_squared_probability"] = line.chi_squared_probability();
  json["weighted"] = line.weighted;
  json["last_slope"] = line.last_slope;
  json["plateau"] = line.plateau;
  json["pre_asymptotic"] = line.pre_asymptotic;
  std::string warning;
  if (line.plateau)
    warning = "the errors flatten towards the limit: another error takes over there, the exponent is no rate";
  else if (line.pre_asymptotic)
    warning = "the slope still changes towards the limit: the rate is not reached, the exponent is no rate";
  else if (line.chi_squared_probability() < least_probability)
    warning =
        fmt::format("a power law does not describe the errors: chi^2 = {:.3g} with {} degrees of freedom",
                    line.chi_squared, line.degrees_of_freedom);
  else if (quiet > 0)
    warning = fmt::format("{} rows are within noise and left out", quiet);
  if (!warning.empty()) json["warning"] = warning;
  const bool doubtful =
      line.plateau || line.pre_asymptotic || line.chi_squared_probability() < least_probability;
  if (std::isfinite(curve.expected)) {
    json["passed"] = !doubtful && line.low - curve.tolerance <= curve.expected &&
                     curve.expected <= line.high + curve.tolerance;
  }
  if (!curve.corrections.empty() && line.weighted && points.size() >= curve.corrections.size() + 3)
    correct(json, curve, points);
  return json;
}

Outcome run(const Study& study, const Setting& setting) {
  if (setting.ranks.first()) io::write_text(setting.directory / "config.toml", setting.resolved_config);
  Workshop workshop(study, setting);
  Outcome outcome;
  const bool complete = workshop.work();
  if (!setting.ranks.first()) return {complete ? RunStatus::Completed : RunStatus::Interrupted, "", ""};
  if (!complete) {
    outcome.status = RunStatus::Interrupted;
    outcome.message = fmt::format("{} of {} rows are done", workshop.units_done(), study.units.size());
  }
  std::vector<Json> rows = workshop.rows();
  Json extra = Json::object();
  Conclusion conclusion;
  if (outcome.status == RunStatus::Completed && study.conclude) conclusion = study.conclude(rows, extra);
  for (const Json& row : rows) {
    if (outcome.status != RunStatus::Completed) break;
    const std::string status = row.at("status");
    if (status == "completed") continue;
    for (const RunStatus known : {RunStatus::NotFinite, RunStatus::LostPositivity, RunStatus::NotConverged,
                                  RunStatus::Concentrated}) {
      if (status == name(known)) outcome.status = known;
    }
    outcome.message = fmt::format("{} = {:g}: {}", row.at("quantity").get<std::string>(),
                                  number_at(row, "value"), row.value("message", std::string()));
  }
  Json fits = Json::array();
  for (const Curve& curve : study.curves) fits.push_back(fit(curve, rows_of(rows, curve.quantity)));
  Json summary{{"type", study.type},
               {"status", name(outcome.status)},
               {"message", outcome.message},
               {"name", study.name},
               {"model", study.model},
               {"rows", rows},
               {"fit", fits.empty() ? verdict_fit(conclusion.verdicts) : fits.front()},
               {"fits", fits},
               {"verdicts", verdicts_json(conclusion.verdicts)}};
  if (const auto sentences = warnings(study); !sentences.empty()) summary["warnings"] = sentences;
  summary.update(extra);
  outcome.summary = summary.dump(1) + "\n";
  io::write_text(setting.directory / "summary.json", outcome.summary);
  if (outcome.status != RunStatus::Interrupted) write_report(study, setting, rows, fits, conclusion);
  return outcome;
}

}  // namespace rieszflow::sweep
