#include "experiments/attention_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "analysis/estimate.hpp"
#include "experiments/report_page.hpp"
#include "io/files.hpp"

namespace rieszflow::attention {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using report::escaped;

constexpr std::array metrics{"accuracy", "mcc", "log_loss", "brier", "ece", "ece_equal_mass"};
// What tells experiments apart besides the variant.
constexpr std::array setting_keys{"dataset",  "head_dimension",      "features", "noise", "repulsion",
                                  "exponent", "inverse_temperature", "move"};

bool lower_is_better(const std::string& metric) { return metric != "accuracy" && metric != "mcc"; }

struct Interval {
  double mean = 0.0, low = 0.0, high = 0.0;  ///< low and high: NaN with one seed
  std::size_t seeds = 0;

  bool excludes_zero() const { return low > 0.0 || high < 0.0; }
};

Interval interval(const std::vector<double>& samples) {
  const Estimate estimate = mean_estimate(samples);
  if (samples.size() < 2) return {estimate.value, NAN, NAN, samples.size()};
  const boost::math::students_t law(static_cast<double>(samples.size() - 1));
  const double half = boost::math::quantile(law, 0.975) * estimate.standard_error;
  return {estimate.value, estimate.value - half, estimate.value + half, samples.size()};
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json json(const Interval& i) {
  return {{"mean", number(i.mean)}, {"low", number(i.low)}, {"high", number(i.high)}, {"seeds", i.seeds}};
}

bool completed(const Json& row) { return row.at("status") == "completed"; }

std::string setting_of(const Json& row) {
  Json key = Json::array();
  for (const char* name : setting_keys) key.push_back(row.at(name));
  return key.dump();
}

/// Rows of one variant in one setting.
struct Group {
  const Json* first = nullptr;
  std::map<std::uint64_t, const Json*> rows;  ///< by seed
};

std::vector<Group> groups(const Json& rows) {
  std::vector<Group> out;
  std::map<std::string, std::size_t> places;
  for (const Json& row : rows) {
    if (!completed(row)) continue;
    const std::string key = setting_of(row) + row.at("variant").get<std::string>();
    const auto [found, is_new] = places.emplace(key, out.size());
    if (is_new) out.push_back({.first = &row, .rows = {}});
    out[found->second].rows[row.at("seed").get<std::uint64_t>()] = &row;
  }
  return out;
}

std::string variant_of(const Group& group) { return group.first->at("variant"); }
std::string dataset_of(const Group& group) { return group.first->at("dataset"); }

/// Whether `other` is what `group` may be compared with: equal wherever both know a setting.
bool comparable(const Group& group, const Group& other) {
  for (const char* key : setting_keys) {
    const Json &mine = group.first->at(key), &theirs = other.first->at(key);
    if (!mine.is_null() && !theirs.is_null() && mine != theirs && std::string(key) != "repulsion" &&
        std::string(key) != "exponent")
      return false;
  }
  // lambda and s: those of a control without repulsion differ by design.
  const bool without = variant_of(other).ends_with("/no_repulsion");
  for (const char* key : {"repulsion", "exponent"}) {
    const Json &mine = group.first->at(key), &theirs = other.first->at(key);
    if (!without && !mine.is_null() && !theirs.is_null() && mine != theirs) return false;
  }
  return true;
}

std::optional<Interval> difference(const Group& group, const Group& other, const std::string& metric) {
  std::vector<double> samples;
  for (const auto& [seed, row] : group.rows) {
    const auto found = other.rows.find(seed);
    if (found != other.rows.end())
      samples.push_back(row->at(metric).get<double>() - found->second->at(metric).get<double>());
  }
  if (samples.empty()) return std::nullopt;
  return interval(samples);
}

Interval mean_of(const Group& group, const std::string& metric) {
  std::vector<double> samples;
  for (const auto& [seed, row] : group.rows) samples.push_back(row->at(metric).get<double>());
  return interval(samples);
}

double mean_at(const Group& group, const char* table, const char* key) {
  double sum = 0.0, count = 0.0;
  for (const auto& [seed, row] : group.rows)
    if (row->contains(table)) {
      sum += row->at(table).at(key).get<double>();
      count += 1.0;
    }
  return count > 0.0 ? sum / count : NAN;
}

/// The variants that a variant is compared with.
std::vector<std::string> opponents(const std::string& variant) {
  const auto slash = variant.find('/');
  const std::string base = variant.substr(0, slash);
  if (variant == "bag_of_bigrams" || variant == "uniform") return {};
  if (slash == std::string::npos) return {"uniform", "softmax", "bag_of_bigrams"};
  std::vector<std::string> out{base};
  if (variant.ends_with("/kernel"))
    for (const char* control : {"/norm_matched", "/shuffled_labels", "/no_repulsion", "/backprop"})
      out.push_back(base + control);
  return out;
}

std::string points(const Interval& i, double factor, const char* format) {
  const auto text = [&](double value) { return fmt::format(fmt::runtime(format), factor * value); };
  return std::isnan(i.low) ? text(i.mean) + " (one seed)"
                           : fmt::format("{} [{}, {}]", text(i.mean), text(i.low), text(i.high));
}

/// One claim of the paper: a variant is best in a metric among the linear ones.
struct Claim {
  std::string dataset, variant, metric;
};

const std::vector<Claim> claims{
    {"sst2", "softplus/kernel", "accuracy"},   {"sst2", "softplus/kernel", "mcc"},
    {"sst2", "favor/kernel", "ece"},           {"qqp", "softmaxfeat-qk/kernel", "log_loss"},
    {"qqp", "softmaxfeat-qk/kernel", "brier"}, {"rt", "softmaxfeat/kernel", "accuracy"},
    {"rt", "softmaxfeat/kernel", "mcc"},       {"rt", "softmaxfeat/kernel", "log_loss"},
    {"rt", "softmaxfeat/kernel", "brier"}};

bool is_linear(const std::string& variant) {
  const auto slash = variant.find('/');
  if (slash != std::string::npos && variant.substr(slash) != "/kernel") return false;
  return variant.starts_with("favor") || variant.starts_with("softplus") ||
         variant.starts_with("softmaxfeat");
}

/// The two QQP claims say that the kernel lowers a metric against its own vanilla; the others that it is best
/// of all linear variants.
std::string judged(const Claim& claim, const std::vector<Group>& all) {
  const bool against_vanilla = claim.dataset == "qqp";
  const std::string what =
      against_vanilla ? fmt::format("{}: {} lowers {}", claim.dataset, claim.variant, claim.metric)
                      : fmt::format("{}: {} has the best {}", claim.dataset, claim.variant, claim.metric);
  const Group* own = nullptr;
  const Group* rival = nullptr;
  for (const Group& group : all)
    if (dataset_of(group) == claim.dataset && variant_of(group) == claim.variant) own = &group;
  const std::string base = claim.variant.substr(0, claim.variant.find('/'));
  const double sign = lower_is_better(claim.metric) ? -1.0 : 1.0;
  for (const Group& group : all) {
    if (dataset_of(group) != claim.dataset || &group == own) continue;
    const bool counts = against_vanilla ? variant_of(group) == base : is_linear(variant_of(group));
    if (counts && (rival == nullptr ||
                   sign * mean_of(group, claim.metric).mean > sign * mean_of(*rival, claim.metric).mean))
      rival = &group;
  }
  if (own == nullptr || rival == nullptr) return what + ": not tried here.";
  const auto gap = difference(*own, *rival, claim.metric);
  if (!gap) return what + ": no seeds in common.";
  const bool ahead = sign * gap->mean > 0.0;
  const char* verdict = !gap->excludes_zero() || std::isnan(gap->low)
                            ? (ahead ? "not confirmed: ahead, but within the noise"
                                     : "not confirmed: not ahead, within the noise")
                            : (ahead ? "reproduced" : "contradicted");
  return fmt::format("{}: {}; {:.4f} against {:.4f} of {}, paired difference {}, {} seeds.", what, verdict,
                     mean_of(*own, claim.metric).mean, mean_of(*rival, claim.metric).mean, variant_of(*rival),
                     points(*gap, 1.0, "{:+.4f}"), gap->seeds);
}

Json alignments(const std::vector<Group>& all) {
  Json out = Json::array();
  for (const Group& group : all)
    for (const char* key : {"phase_a_at_start", "phase_a"}) {
      std::map<std::size_t, std::vector<const Json*>> layers;
      for (const auto& [seed, row] : group.rows)
        if (row->contains(key))
          for (std::size_t layer = 0; layer < row->at(key).at("layers").size(); ++layer)
            layers[layer].push_back(&row->at(key).at("layers").at(layer));
      for (const auto& [layer, entries] : layers) {
        Json line{{"variant", variant_of(group)},
                  {"placed", std::string(key) == "phase_a" ? "after the warm start" : "at initialisation"},
                  {"layer", layer}};
        for (const char* name : setting_keys) line[name] = group.first->at(name);
        std::vector<double> ratios;
        std::size_t above_3 = 0, above_10 = 0;
        for (const Json* entry : entries) {
          ratios.push_back(entry->at("alignment_after").get<double>() /
                           entry->at("alignment_before").get<double>());
          above_3 += ratios.back() >= 3.0 ? 1 : 0;
          above_10 += ratios.back() >= 10.0 ? 1 : 0;
        }
        for (const char* name :
             {"alignment_before", "alignment_after", "train_alignment", "probe_before", "probe_after",
              "norm_before", "norm_after", "effective_rank_before", "effective_rank_after", "nearest_before",
              "nearest_after", "mean_square_score"}) {
          double sum = 0.0;
          for (const Json* entry : entries) sum += entry->at(name).get<double>();
          line[name] = sum / static_cast<double>(entries.size());
        }
        line["ratio"] = json(interval(ratios));
        line["seeds_above_3"] = above_3;
        line["seeds_above_10"] = above_10;
        out.push_back(line);
      }
    }
  return out;
}

}  // namespace

void conclude(Json& summary) {
  const std::vector<Group> all = groups(summary.at("rows"));
  Json table = Json::array(), differences = Json::array(), findings = Json::array(), verdicts = Json::array();
  for (const Group& group : all) {
    Json line{{"variant", variant_of(group)}};
    for (const char* key : setting_keys) line[key] = group.first->at(key);
    line["seeds"] = group.rows.size();
    const Interval accuracy = mean_of(group, "accuracy");
    line["mean"] = number(accuracy.mean);
    line["low"] = number(accuracy.low);
    line["high"] = number(accuracy.high);
    for (const char* metric : metrics) line[metric] = json(mean_of(group, metric));
    line["class_ece"] = json(mean_of(group, "class_ece"));
    line["ece_floor"] = json(mean_of(group, "ece_floor"));
    line["scaled_log_loss"] = number(mean_at(group, "scaled", "log_loss"));
    line["scaled_ece"] = number(mean_at(group, "scaled", "ece"));
    line["temperature"] = json(mean_of(group, "temperature"));
    line["dev_log_loss"] = json(mean_of(group, "dev_log_loss"));
    line["train_seconds"] = json(mean_of(group, "train_seconds"));
    table.push_back(line);
    for (const std::string& opponent : opponents(variant_of(group)))
      for (const Group& other : all) {
        if (&other == &group || variant_of(other) != opponent || !comparable(group, other)) continue;
        Json entry{{"variant", variant_of(group)}, {"minus", opponent}};
        for (const char* key : setting_keys) entry[key] = group.first->at(key);
        for (const char* metric : metrics)
          if (const auto gap = difference(group, other, metric)) entry[metric] = json(*gap);
        if (!entry.contains("accuracy")) continue;
        differences.push_back(entry);
        const auto accuracy_gap = difference(group, other, "accuracy"),
                   loss_gap = difference(group, other, "log_loss");
        if (variant_of(group).ends_with("/kernel") && !std::isnan(accuracy_gap->low))
          findings.push_back(fmt::format(
              "{}, {} minus {}: accuracy {} points, log-loss {} ({} seeds): {}.", dataset_of(group),
              variant_of(group), opponent, points(*accuracy_gap, 100.0, "{:+.2f}"),
              points(*loss_gap, 1.0, "{:+.4f}"), accuracy_gap->seeds,
              !accuracy_gap->excludes_zero() && !loss_gap->excludes_zero() ? "no difference seen"
              : (accuracy_gap->excludes_zero() ? accuracy_gap->mean > 0.0 : loss_gap->mean < 0.0) ? "better"
                                                                                                  : "worse"));
      }
  }
  std::set<std::string> datasets;
  for (const Group& group : all) datasets.insert(dataset_of(group));
  for (const Claim& claim : claims)
    if (datasets.contains(claim.dataset)) verdicts.push_back(judged(claim, all));
  summary["phase_a"] = alignments(all);
  for (const Json& line : summary["phase_a"]) {
    if (line.at("layer") != 0 || !line.at("variant").get<std::string>().ends_with("/kernel")) continue;
    findings.push_back(
        fmt::format("{}, {}: phase A {} raises the held-out alignment of layer 0 from {:.4f} to {:.4f}; "
                    "ratios above 3 in {} and "
                    "above 10 in {} of {} seeds; |q|^2/sqrt(d) = {:.2f}.",
                    line.at("dataset").get<std::string>(), line.at("variant").get<std::string>(),
                    line.at("placed").get<std::string>(), line.at("alignment_before").get<double>(),
                    line.at("alignment_after").get<double>(), line.at("seeds_above_3").get<int>(),
                    line.at("seeds_above_10").get<int>(), line.at("ratio").at("seeds").get<int>(),
                    line.at("mean_square_score").get<double>()));
  }
  summary["table"] = table;
  summary["differences"] = differences;
  summary["findings"] = findings;
  summary["claims"] = verdicts;
}

namespace {

std::string cell(const Json& value, const char* format = "{:.3f}", double factor = 1.0) {
  if (!value.is_number()) return "";
  return report::with_minus(fmt::format(fmt::runtime(format), factor * value.get<double>()));
}

std::string interval_cell(const Json& i, const char* format, double factor = 1.0) {
  const std::string mean = cell(i.at("mean"), format, factor);
  if (i.at("low").is_null()) return mean;
  return fmt::format("{} [{}, {}]", mean, cell(i.at("low"), format, factor),
                     cell(i.at("high"), format, factor));
}

/// What differs between lines of one table, for the reader.
std::string experiment_of(const Json& line, const Json& all) {
  std::string text = line.at("dataset").get<std::string>();
  const std::array names{std::pair{"head_dimension", "d"},         std::pair{"features", "m"},
                         std::pair{"repulsion", "lambda"},         std::pair{"exponent", "s"},
                         std::pair{"inverse_temperature", "beta"}, std::pair{"move", "move"}};
  for (const auto& [key, symbol] : names) {
    std::set<std::string> values;
    for (const Json& other : all)
      if (!other.at(key).is_null()) values.insert(other.at(key).dump());
    if (values.size() > 1 && !line.at(key).is_null())
      text += fmt::format(", {} = {:g}", symbol, line.at(key).get<double>());
  }
  return text;
}

constexpr std::array inks{plot::Ink::Vermillion, plot::Ink::Blue, plot::Ink::Green, plot::Ink::Orange,
                          plot::Ink::Purple,     plot::Ink::Sky,  plot::Ink::Black, plot::Ink::Grey};

/// Variants whose curves are drawn: not the controls.
bool is_drawn(const std::string& variant) {
  return variant.find('/') == std::string::npos || variant.ends_with("/kernel");
}

/// Pooled over seeds, one figure a data set.
std::vector<report::CaptionedFigure> reliability_figures(const Json& rows) {
  std::map<std::string, std::map<std::string, std::vector<std::array<double, 3>>>> bins;
  for (const Json& row : rows) {
    if (!completed(row) || !row.contains("reliability") || !is_drawn(row.at("variant"))) continue;
    auto& sums = bins[row.at("dataset")][row.at("variant")];
    sums.resize(row.at("reliability").size());
    for (std::size_t b = 0; b < sums.size(); ++b) {
      const Json& bin = row.at("reliability").at(b);
      const double count = bin.at(0).get<double>();
      sums[b][0] += count;
      sums[b][1] += count * bin.at(1).get<double>();
      sums[b][2] += count * bin.at(2).get<double>();
    }
  }
  std::vector<report::CaptionedFigure> out;
  for (const auto& [dataset, variants] : bins) {
    plot::Figure figure{
        .title = "Reliability, " + dataset, .x = {.label = "confidence"}, .y = {.label = "accuracy"}};
    figure.layers.push_back(plot::Curve{
        .x = {0.5, 1.0}, .y = {0.5, 1.0}, .label = "calibrated", .ink = plot::Ink::Grey, .dashed = true});
    std::size_t ink = 0;
    for (const auto& [variant, sums] : variants) {
      plot::Curve curve{
          .x = {}, .y = {}, .label = variant, .ink = inks[ink % inks.size()], .dashed = ink >= inks.size()};
      ++ink;
      for (const auto& [count, confidence, accuracy] : sums) {
        if (count < 20.0) continue;
        curve.x.push_back(confidence / count);
        curve.y.push_back(accuracy / count);
      }
      figure.layers.push_back(curve);
    }
    out.push_back(
        {"reliability_" + dataset, figure,
         "How often the predicted class was right against how sure the encoder was, all seeds together; bins "
         "of fewer than 20 rows are left out."});
  }
  return out;
}

/// Accuracy under damage of the test sentences, mean over seeds.
std::vector<report::CaptionedFigure> robustness_figures(const Json& rows) {
  std::map<std::pair<std::string, std::string>,
           std::map<std::string, std::map<double, std::pair<double, double>>>>
      sums;
  for (const Json& row : rows) {
    if (!completed(row) || !row.contains("robustness") || !is_drawn(row.at("variant"))) continue;
    for (const Json& entry : row.at("robustness")) {
      auto& [sum, count] = sums[{row.at("dataset"), entry.at("corruption")}][row.at("variant")]
                               [entry.at("rate").get<double>()];
      sum += entry.at("accuracy").get<double>();
      count += 1.0;
    }
  }
  std::vector<report::CaptionedFigure> out;
  for (const auto& [place, variants] : sums) {
    plot::Figure figure{.title = fmt::format("{}, {}", place.first, place.second),
                        .x = {.label = "share of words"},
                        .y = {.label = "accuracy"}};
    std::size_t ink = 0;
    for (const auto& [variant, values] : variants) {
      plot::Curve curve{
          .x = {}, .y = {}, .label = variant, .ink = inks[ink % inks.size()], .dashed = ink >= inks.size()};
      ++ink;
      for (const auto& [rate, sum] : values) {
        curve.x.push_back(rate);
        curve.y.push_back(sum.first / sum.second);
      }
      figure.layers.push_back(curve);
    }
    out.push_back({fmt::format("robustness_{}_{}", place.first, place.second), figure, ""});
  }
  return out;
}

/// Paired differences of accuracy against one key that takes several values.
std::vector<report::CaptionedFigure> regime_figures(const Json& differences) {
  std::vector<report::CaptionedFigure> out;
  for (const auto& [key, label] :
       {std::pair{"features", "features m"}, std::pair{"head_dimension", "head dimension d"},
        std::pair{"repulsion", "repulsion lambda"}, std::pair{"exponent", "exponent s"}}) {
    std::map<std::string, std::map<std::string, std::map<double, const Json*>>> curves;
    for (const Json& line : differences) {
      if (!line.at("variant").get<std::string>().ends_with("/kernel") || line.at(key).is_null()) continue;
      std::string rest;
      for (const char* other : setting_keys)
        if (std::string(other) != key && !line.at(other).is_null())
          rest += (rest.empty() ? "" : ", ") + std::string(other) + " " + line.at(other).dump();
      curves[rest][line.at("variant").get<std::string>() + " minus " + line.at("minus").get<std::string>()]
            [line.at(key).get<double>()] = &line;
    }
    int index = 0;
    for (const auto& [rest, lines] : curves) {
      plot::Figure figure{.title = "Paired difference of accuracy",
                          .x = {.label = label, .logarithmic = std::string(key) == "features"},
                          .y = {.label = "difference"}};
      std::size_t ink = 0;
      for (const auto& [name, values] : lines) {
        if (values.size() < 2) continue;
        plot::Curve curve{
            .x = {}, .y = {}, .label = name, .ink = inks[ink % inks.size()], .dashed = ink >= inks.size()};
        ++ink;
        for (const auto& [x, line] : values) {
          const Json& gap = line->at("accuracy");
          curve.x.push_back(x);
          curve.y.push_back(gap.at("mean").get<double>());
          curve.low.push_back(gap.at("low").is_null() ? curve.y.back() : gap.at("low").get<double>());
          curve.high.push_back(gap.at("high").is_null() ? curve.y.back() : gap.at("high").get<double>());
        }
        figure.layers.push_back(curve);
      }
      if (!figure.layers.empty() && ++index <= 12)
        out.push_back(
            {fmt::format("regime_{}_{}", key, index), figure, rest + ". Bands: 95 % intervals over seeds."});
    }
  }
  return out;
}

std::string list(const Json& sentences) {
  std::string out = "<ul>\n";
  for (const Json& sentence : sentences) out += "<li>" + escaped(sentence.get<std::string>()) + "</li>\n";
  return out + "</ul>\n";
}

}  // namespace

void write_report(const fs::path& directory) {
  const Json summary = Json::parse(io::read_text(directory / "summary.json"), nullptr, false);
  if (summary.is_discarded() || !summary.is_object() || !summary.contains("differences"))
    throw io::FileError((directory / "summary.json").string() +
                        ": cannot read: no results of `rieszflow attention`");
  const fs::path folder = directory / "figures";
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw io::FileError(folder.string() + ": cannot create: " + problem.message());

  const std::string title = summary.at("name").get<std::string>();
  const std::string command = summary.value("command_line", std::string());
  std::string page =
      report::page_start(title) + "<h1>" + escaped(title) +
      "</h1>\n<p class=\"soft\">Transformer encoders whose attention has fixed and learned random "
      "features</p>\n" +
      report::made_by(command);
  if (summary.at("status") != "completed")
    page += "<p class=\"warn\">Not finished: " + escaped(summary.value("message", std::string())) + "</p>\n";
  if (!summary.at("claims").empty())
    page +=
        "<h2>Claims of the paper</h2>\n<p>Best means best of the linear variants of this study; intervals: "
        "95 %, "
        "paired by seed.</p>\n" +
        list(summary.at("claims"));
  page += "<h2>Findings</h2>\n" + list(summary.at("findings"));

  const Json& table = summary.at("table");
  std::vector<std::vector<std::string>> lines;
  for (const Json& line : table)
    lines.push_back({escaped(experiment_of(line, table)), escaped(line.at("variant").get<std::string>()),
                     interval_cell(line.at("accuracy"), "{:.2f}", 100.0),
                     interval_cell(line.at("mcc"), "{:.3f}"), interval_cell(line.at("log_loss"), "{:.4f}"),
                     interval_cell(line.at("brier"), "{:.4f}"), interval_cell(line.at("ece"), "{:.3f}"),
                     interval_cell(line.at("ece_equal_mass"), "{:.3f}"),
                     cell(line.at("ece_floor").at("mean")), cell(line.at("class_ece").at("mean")),
                     cell(line.at("scaled_log_loss"), "{:.4f}"), cell(line.at("scaled_ece")),
                     fmt::format("{}", line.at("seeds").get<int>()),
                     cell(line.at("train_seconds").at("mean"), "{:.0f}")});
  page +=
      "<h2>All variants</h2>\n<p>Test rows; the checkpoint is the one of the lowest log-loss on dev after "
      "phase A. "
      "Brackets: 95 % intervals over seeds. ECE: 15 bins, of the predicted class unless it says class 1; its "
      "floor is "
      "what a perfectly calibrated classifier with these probabilities would show.</p>\n" +
      report::table({"data", "variant", "accuracy %", "MCC", "log-loss", "Brier", "ECE, equal widths",
                     "ECE, equal masses", "ECE floor", "ECE of class 1", "log-loss, scaled", "ECE, scaled",
                     "seeds", "training s"},
                    lines);
  lines.clear();
  for (const Json& line : summary.at("differences"))
    lines.push_back(
        {escaped(experiment_of(line, summary.at("differences"))),
         escaped(line.at("variant").get<std::string>() + " minus " + line.at("minus").get<std::string>()),
         interval_cell(line.at("accuracy"), "{:+.2f}", 100.0), interval_cell(line.at("log_loss"), "{:+.4f}"),
         interval_cell(line.at("brier"), "{:+.4f}"), interval_cell(line.at("ece"), "{:+.3f}"),
         fmt::format("{}", line.at("accuracy").at("seeds").get<int>())});
  page +=
      "<h2>Paired differences</h2>\n" +
      report::table({"data", "difference", "accuracy, points", "log-loss", "Brier", "ECE", "seeds"}, lines);
  lines.clear();
  for (const Json& line : summary.at("phase_a"))
    lines.push_back(
        {escaped(experiment_of(line, summary.at("phase_a"))), escaped(line.at("variant").get<std::string>()),
         escaped(line.at("placed").get<std::string>()), fmt::format("{}", line.at("layer").get<int>()),
         cell(line.at("alignment_before"), "{:.4f}"), cell(line.at("alignment_after"), "{:.4f}"),
         interval_cell(line.at("ratio"), "{:.1f}"), cell(line.at("probe_before")),
         cell(line.at("probe_after")),
         cell(line.at("norm_before"), "{:.2f}") + " → " + cell(line.at("norm_after"), "{:.2f}"),
         cell(line.at("effective_rank_before"), "{:.1f}") + " → " +
             cell(line.at("effective_rank_after"), "{:.1f}"),
         cell(line.at("nearest_before"), "{:.2f}") + " → " + cell(line.at("nearest_after"), "{:.2f}"),
         cell(line.at("mean_square_score"), "{:.2f}")});
  if (!lines.empty())
    page += "<h2>Phase A on held-out rows</h2>\n" +
            report::table({"data", "variant", "placed", "layer", "alignment before", "after", "ratio",
                           "probe before", "after", "norm", "effective rank", "nearest neighbour", "|q|²/√d"},
                          lines);
  std::vector<report::Section> sections{
      {"Calibration", "", reliability_figures(summary.at("rows"))},
      {"Where learning the kernel pays", "", regime_figures(summary.at("differences"))},
      {"Robustness", "Damaged test sentences.", robustness_figures(summary.at("rows"))}};
  std::erase_if(sections, [](const report::Section& section) { return section.figures.empty(); });
  if (!sections.empty()) page += report::figures(sections, folder, command);
  lines.clear();
  for (const Json& line : summary.at("data"))
    lines.push_back(
        {escaped(line.at("dataset").get<std::string>()), escaped(line.at("split").get<std::string>()),
         fmt::format("{}", line.at("rows").get<int>()), cell(line.at("positive"), "{:.1f}", 100.0),
         cell(line.at("mean_words"), "{:.1f}"), fmt::format("{}", line.at("p99_words").get<int>()),
         cell(line.at("unknown_words"), "{:.2f}", 100.0), fmt::format("{}", line.at("repeated").get<int>()),
         fmt::format("{}", line.at("contradicting").get<int>()),
         fmt::format("{}", line.at("in_train").get<int>())});
  if (!lines.empty())
    page += "<h2>Data</h2>\n" + report::table({"data", "split", "rows", "class 1 %", "words", "99 %",
                                               "unknown words %", "repeated", "contradicting", "in train"},
                                              lines);
  page +=
      "<p class=\"soft\">" + escaped(summary.value("library", std::string())) + "</p>\n" + report::page_end();
  io::write_text(directory / "report.html", page);
}

}  // namespace rieszflow::attention
