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
constexpr std::array setting_keys{"dataset",   "length",   "head_dimension",      "features", "noise",
                                  "repulsion", "exponent", "inverse_temperature", "move",     "norms"};

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

std::string in_words(const std::string& metric) {
  return metric == "mcc"        ? "MCC"
         : metric == "log_loss" ? "log-loss"
         : metric == "brier"    ? "Brier score"
         : metric == "ece"      ? "calibration error (ECE)"
                                : metric;
}

/// The two QQP claims say that the kernel lowers a metric against its own vanilla; the others that it is best
/// of all linear variants.
std::string judged(const Claim& claim, const std::vector<Group>& all) {
  const bool against_vanilla = claim.dataset == "qqp";
  const std::string what = fmt::format("{}: {} {} {}", claim.dataset, claim.variant,
                                       against_vanilla ? "lowers" : "has the best", in_words(claim.metric));
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
  if (own == nullptr || rival == nullptr) return what + ". Not tried here.";
  const auto gap = difference(*own, *rival, claim.metric);
  if (!gap) return what + ". No seeds in common.";
  const bool ahead = sign * gap->mean > 0.0;
  const char* verdict = !gap->excludes_zero() || std::isnan(gap->low)
                            ? (ahead ? "Not confirmed (ahead, but within the noise)"
                                     : "Not confirmed (not ahead, within the noise)")
                            : (ahead ? "Reproduced" : "Contradicted");
  return fmt::format("{}. {}: {:.4f} against {:.4f} of {}, paired difference {}, {} seeds.", what, verdict,
                     mean_of(*own, claim.metric).mean, mean_of(*rival, claim.metric).mean, variant_of(*rival),
                     points(*gap, 1.0, "{:+.4f}"), gap->seeds);
}

/// What differs between the lines of one table, for the reader; `except`: the key of an axis.
std::string experiment_of(const Json& line, const Json& all, const std::string& except = "") {
  std::string text = except == "length" ? "selection" : line.at("dataset").get<std::string>();
  const std::array names{std::pair{"head_dimension", "d"},
                         std::pair{"features", "m"},
                         std::pair{"repulsion", "lambda"},
                         std::pair{"exponent", "s"},
                         std::pair{"inverse_temperature", "beta"},
                         std::pair{"move", "move"},
                         std::pair{"norms", "norms"}};
  // Variants without repulsion say so by their names.
  const auto has = [](const Json& one, const std::string& key) {
    return !one.at(key).is_null() &&
           !(key == "repulsion" && one.at("variant").get<std::string>().ends_with("/no_repulsion"));
  };
  for (const auto& [key, symbol] : names) {
    if (key == except || !has(line, key)) continue;
    std::set<std::string> values;
    for (const Json& other : all)
      if (has(other, key)) values.insert(other.at(key).dump());
    if (values.size() < 2) continue;
    if (line.at(key).is_string())
      text += fmt::format(", {} {}", symbol, line.at(key).get<std::string>());
    else
      text += fmt::format(", {} = {:g}", symbol, line.at(key).get<double>());
  }
  return text;
}

/// An interval as it was written by `json`.
bool excludes_zero(const Json& i) {
  return !i.at("low").is_null() && (i.at("low").get<double>() > 0.0 || i.at("high").get<double>() < 0.0);
}

/// The paired differences of kernel variants that are seen, and how many are not.
std::vector<std::string> kernel_findings(const Json& differences) {
  std::vector<std::string> out;
  std::map<std::string, std::pair<int, int>> counts;  // by opponent: seen, all
  const auto text = [](const Json& i, double factor, const char* format) {
    return points({factor * i.at("mean").get<double>(), factor * i.at("low").get<double>(),
                   factor * i.at("high").get<double>(), i.at("seeds").get<std::size_t>()},
                  1.0, format);
  };
  for (const Json& line : differences) {
    const std::string variant = line.at("variant"), minus = line.at("minus");
    const Json &accuracy = line.at("accuracy"), &loss = line.at("log_loss");
    if (!variant.ends_with("/kernel") || accuracy.at("low").is_null()) continue;
    const auto slash = minus.find('/');
    auto& [seen, all] = counts[slash == std::string::npos ? "vanilla" : minus.substr(slash + 1)];
    ++all;
    if (!excludes_zero(accuracy) && !excludes_zero(loss)) continue;
    ++seen;
    const bool better = excludes_zero(accuracy) ? accuracy.at("mean") > 0.0 : loss.at("mean") < 0.0;
    out.push_back(fmt::format("{}, {} minus {}: accuracy {} points, log-loss {} ({} seeds): {}.",
                              experiment_of(line, differences), variant, minus,
                              text(accuracy, 100.0, "{:+.2f}"), text(loss, 1.0, "{:+.4f}"),
                              accuracy.at("seeds").get<int>(), better ? "better" : "worse"));
  }
  for (const auto& [opponent, count] : counts)
    out.push_back(
        fmt::format("Kernel minus {}: a difference in accuracy or log-loss is seen in {} of {} "
                    "comparisons (95 % intervals; chance alone gives up to {:.0f}).",
                    opponent == "norm_matched"      ? "random directions of the same norms"
                    : opponent == "shuffled_labels" ? "phase A with shuffled labels"
                    : opponent == "no_repulsion"    ? "phase A without repulsion"
                    : opponent == "backprop"        ? "back-propagation"
                                                    : opponent,
                    count.first, count.second, std::ceil(0.1 * count.second)));
  return out;
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

/// What phase A did to layer 0; of many experiments the range.
std::vector<std::string> phase_a_findings(const Json& alignments) {
  std::vector<std::string> out;
  double lowest = INFINITY, highest = 0.0;
  int above_3 = 0, above_10 = 0, encoders = 0;
  for (const Json& line : alignments) {
    if (line.at("layer") != 0 || !line.at("variant").get<std::string>().ends_with("/kernel")) continue;
    const Json& ratio = line.at("ratio");
    out.push_back(
        fmt::format("{}, {}: phase A {} takes the held-out alignment of layer 0 from {:.4f} to {:.4f}; at "
                    "least 3-fold in {} and 10-fold in {} of {} seeds; |q|^2/sqrt(d) = {:.2f}.",
                    experiment_of(line, alignments), line.at("variant").get<std::string>(),
                    line.at("placed").get<std::string>(), line.at("alignment_before").get<double>(),
                    line.at("alignment_after").get<double>(), line.at("seeds_above_3").get<int>(),
                    line.at("seeds_above_10").get<int>(), ratio.at("seeds").get<int>(),
                    line.at("mean_square_score").get<double>()));
    lowest = std::min(lowest, ratio.at("mean").get<double>());
    highest = std::max(highest, ratio.at("mean").get<double>());
    above_3 += line.at("seeds_above_3").get<int>();
    above_10 += line.at("seeds_above_10").get<int>();
    encoders += ratio.at("seeds").get<int>();
  }
  if (out.size() <= 4) return out;
  return {fmt::format(
      "Phase A multiplies the held-out alignment of layer 0 by {:.1f} to {:.1f} (means over seeds "
      "of {} experiments); at least 3-fold in {} and 10-fold in {} of {} encoders.",
      lowest, highest, out.size(), above_3, above_10, encoders)};
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
        if (entry.contains("accuracy")) differences.push_back(entry);
      }
  }
  std::set<std::string> datasets;
  for (const Group& group : all) datasets.insert(dataset_of(group));
  for (const Claim& claim : claims)
    if (datasets.contains(claim.dataset)) verdicts.push_back(judged(claim, all));
  for (const std::string& sentence : kernel_findings(differences)) findings.push_back(sentence);
  summary["phase_a"] = alignments(all);
  for (const std::string& sentence : phase_a_findings(summary["phase_a"])) findings.push_back(sentence);
  summary["table"] = table;
  summary["differences"] = differences;
  summary["findings"] = findings;
  summary["claims"] = verdicts;
}

namespace {

/// "softmaxfeat: kernel − norm_matched", "softmax − uniform".
std::string pair_of(const Json& line) {
  const std::string variant = line.at("variant"), minus = line.at("minus");
  const auto slash = variant.find('/'), other = minus.find('/');
  if (slash == std::string::npos || minus.substr(0, other) != variant.substr(0, slash))
    return variant + " − " + minus;
  return variant.substr(0, slash) + ": " + variant.substr(slash + 1) + " − " +
         (other == std::string::npos ? "vanilla" : minus.substr(other + 1));
}

std::string cell(const Json& value, const char* format = "{:.3f}", double factor = 1.0) {
  if (!value.is_number()) return "";
  return report::with_minus(fmt::format(fmt::runtime(format), factor * value.get<double>()));
}

/// Signs that the format asks for are those of the mean; an interval of one point is not written.
std::string interval_cell(const Json& i, const char* format, double factor = 1.0) {
  const std::string mean = cell(i.at("mean"), format, factor);
  if (i.at("low").is_null() || i.at("low") == i.at("high")) return mean;
  std::string plain = format;
  std::erase(plain, '+');
  return fmt::format("{} [{}, {}]", mean, cell(i.at("low"), plain.c_str(), factor),
                     cell(i.at("high"), plain.c_str(), factor));
}

/// A difference; bold where its interval excludes zero.
std::string difference_cell(const Json& i, const char* format, double factor = 1.0) {
  const std::string text = interval_cell(i, format, factor);
  return excludes_zero(i) ? "<b>" + text + "</b>" : text;
}

constexpr std::array inks{plot::Ink::Vermillion, plot::Ink::Blue, plot::Ink::Green, plot::Ink::Orange,
                          plot::Ink::Purple,     plot::Ink::Sky,  plot::Ink::Black, plot::Ink::Grey};

/// The kind of attention; "baselines" of those without features.
std::string family(const std::string& variant) {
  const std::string kind = variant.substr(0, variant.find('/'));
  return kind == "uniform" || kind == "softmax" || kind == "bag_of_bigrams" ? "baselines" : kind;
}

/// Pooled over seeds, one figure for each data set and kind, of vanilla and kernel; none of a map, whose
/// settings are not to be pooled.
std::vector<report::CaptionedFigure> reliability_figures(const Json& rows) {
  std::map<std::string, std::string> settings;  // by data set and variant
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::vector<std::array<double, 3>>>>
      bins;
  for (const Json& row : rows) {
    const std::string variant = row.at("variant"), dataset = row.at("dataset");
    if (settings.emplace(dataset + " " + variant, setting_of(row)).first->second != setting_of(row))
      return {};
    const bool is_control = variant.find('/') != std::string::npos && !variant.ends_with("/kernel");
    if (!completed(row) || !row.contains("reliability") || is_control) continue;
    auto& sums = bins[{dataset, family(variant)}][variant];
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
  for (const auto& [place, variants] : bins) {
    plot::Figure figure{.title = fmt::format("{}, {}", place.first, place.second),
                        .x = {.label = "confidence"},
                        .y = {.label = "accuracy"}};
    figure.layers.push_back(
        plot::Curve{.x = {0.5, 1.0}, .y = {0.5, 1.0}, .ink = plot::Ink::Grey, .dashed = true});
    std::size_t ink = 0;
    for (const auto& [variant, sums] : variants) {
      plot::Curve curve{.x = {}, .y = {}, .label = variant, .ink = inks[ink++ % inks.size()]};
      for (const auto& [count, confidence, accuracy] : sums) {
        if (count < 20.0) continue;
        curve.x.push_back(confidence / count);
        curve.y.push_back(accuracy / count);
      }
      figure.layers.push_back(curve);
    }
    out.push_back({fmt::format("reliability_{}_{}", place.first, place.second), figure, ""});
  }
  return out;
}

/// Accuracy under damage of the test sentences, mean over seeds; without treatments, which the table has.
std::vector<report::CaptionedFigure> robustness_figures(const Json& rows) {
  std::map<std::pair<std::string, std::string>,
           std::map<std::string, std::map<double, std::pair<double, double>>>>
      sums;
  for (const Json& row : rows) {
    if (!completed(row) || !row.contains("robustness") ||
        row.at("variant").get<std::string>().find('/') != std::string::npos)
      continue;
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
                        .y = {.label = "accuracy"},
                        .height = 420};
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
        std::pair{"length", "tokens"}, std::pair{"repulsion", "repulsion lambda"},
        std::pair{"exponent", "exponent s"}}) {
    std::map<std::string, std::map<std::string, std::map<double, const Json*>>> curves;
    for (const Json& line : differences) {
      if (!line.at("variant").get<std::string>().ends_with("/kernel") || line.at(key).is_null()) continue;
      const std::string rest = experiment_of(line, differences, key);
      curves[rest][line.at("variant").get<std::string>() + " minus " + line.at("minus").get<std::string>()]
            [line.at(key).get<double>()] = &line;
    }
    int index = 0;
    for (const auto& [rest, lines] : curves) {
      plot::Figure figure{
          .title = "Paired difference of accuracy",
          .x = {.label = label,
                .logarithmic = std::string(key) == "features" || std::string(key) == "length"},
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

/// Accuracy in % at each rate of damage, mean over seeds.
std::string robustness_table(const Json& rows) {
  std::vector<std::string> head{"variant", "as it is"};
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::map<double, std::vector<double>>>>
      samples;
  std::vector<std::string> damages;
  for (const Json& row : rows) {
    if (!completed(row) || !row.contains("robustness")) continue;
    const std::pair<std::string, std::string> key{row.at("dataset"), row.at("variant")};
    if (!samples.contains(key)) order.push_back(key);
    samples[key][""][0.0].push_back(row.at("accuracy").get<double>());
    for (const Json& entry : row.at("robustness")) {
      const std::string damage = entry.at("corruption");
      if (std::find(damages.begin(), damages.end(), damage) == damages.end()) damages.push_back(damage);
      samples[key][damage][entry.at("rate").get<double>()].push_back(entry.at("accuracy").get<double>());
    }
  }
  if (order.empty()) return "";
  std::string rates;
  for (const auto& [rate, values] : samples[order.front()][damages.front()])
    rates += fmt::format("{}{:g}", rates.empty() ? "" : ", ", 100.0 * rate);
  for (std::string damage : damages) {
    std::replace(damage.begin(), damage.end(), '_', ' ');
    head.push_back(fmt::format("{}, {} %", damage, rates));
  }
  std::vector<std::vector<std::string>> lines;
  for (const auto& key : order) {
    std::vector<std::string> line{escaped(key.first + ": " + key.second),
                                  fmt::format("{:.1f}", 100.0 * mean_estimate(samples[key][""][0.0]).value)};
    for (const std::string& damage : damages) {
      std::string text;
      for (const auto& [rate, values] : samples[key][damage])
        text += fmt::format("{}{:.1f}", text.empty() ? "" : ", ", 100.0 * mean_estimate(values).value);
      line.push_back(text);
    }
    lines.push_back(line);
  }
  return report::table(head, lines);
}

std::string list(const Json& sentences) {
  std::string out = "<ul>\n";
  for (const Json& sentence : sentences) {
    std::string text = escaped(sentence.get<std::string>());
    for (const char* before : {" ", "["})  // minus signs
      for (std::size_t at = 0; (at = text.find(std::string(before) + "-", at)) != std::string::npos; ++at)
        if (at + 2 < text.size() && text[at + 2] >= '0' && text[at + 2] <= '9') text.replace(at + 1, 1, "−");
    out += "<li>" + text + "</li>\n";
  }
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
  std::vector<std::vector<std::string>> lines, calibration;
  for (const Json& line : table) {
    const std::string variant =
        escaped(experiment_of(line, table) + ": " + line.at("variant").get<std::string>());
    lines.push_back({variant, interval_cell(line.at("accuracy"), "{:.2f}", 100.0),
                     interval_cell(line.at("mcc"), "{:.3f}"), interval_cell(line.at("log_loss"), "{:.4f}"),
                     interval_cell(line.at("brier"), "{:.4f}"),
                     fmt::format("{}", line.at("seeds").get<int>()),
                     cell(line.at("train_seconds").at("mean"), "{:.0f}")});
    calibration.push_back({variant, interval_cell(line.at("ece"), "{:.3f}"),
                           interval_cell(line.at("ece_equal_mass"), "{:.3f}"),
                           cell(line.at("ece_floor").at("mean")), cell(line.at("class_ece").at("mean")),
                           cell(line.at("temperature").at("mean"), "{:.2f}"),
                           cell(line.at("scaled_log_loss"), "{:.4f}"), cell(line.at("scaled_ece"))});
  }
  page +=
      "<h2>All variants</h2>\n<p>Test rows; the checkpoint is the one of the lowest log-loss on dev after "
      "phase A. Brackets: 95 % intervals over seeds.</p>\n" +
      report::table({"variant", "accuracy %", "MCC", "log-loss", "Brier", "seeds", "training s"}, lines);
  lines.clear();
  const Json& differences = summary.at("differences");
  for (const Json& line : differences)
    lines.push_back({escaped(experiment_of(line, differences) + ", " + pair_of(line)),
                     difference_cell(line.at("accuracy"), "{:+.2f}", 100.0),
                     difference_cell(line.at("log_loss"), "{:+.1f}", 1000.0),
                     difference_cell(line.at("brier"), "{:+.1f}", 1000.0),
                     difference_cell(line.at("ece"), "{:+.1f}", 1000.0),
                     fmt::format("{}", line.at("accuracy").at("seeds").get<int>())});
  page +=
      "<h2>Paired differences</h2>\n<p>Of runs with the same seed; bold: the 95 % interval excludes "
      "zero.</p>\n" +
      report::table(
          {"difference", "accuracy, points", "log-loss × 1000", "Brier × 1000", "ECE × 1000", "seeds"},
          lines) +
      "<h2>Calibration</h2>\n<p>Expected calibration error with 15 bins, of the predicted class unless it "
      "says "
      "class 1. Its floor is what a perfectly calibrated classifier with these probabilities would show. "
      "Scaled: "
      "by the temperature of the lowest log-loss on dev.</p>\n" +
      report::table({"variant", "ECE, equal widths", "ECE, equal masses", "floor", "ECE of class 1",
                     "temperature", "log-loss, scaled", "ECE, scaled"},
                    calibration);
  lines.clear();
  for (const Json& line : summary.at("phase_a"))
    lines.push_back(
        {escaped(experiment_of(line, summary.at("phase_a")) + ": " + line.at("variant").get<std::string>()),
         line.at("placed") == "at initialisation" ? "random" : "warm",
         fmt::format("{}", line.at("layer").get<int>()),
         cell(line.at("alignment_before"), "{:.4f}") + " → " + cell(line.at("alignment_after"), "{:.4f}"),
         interval_cell(line.at("ratio"), "{:.1f}"),
         fmt::format("{}, {} of {}", line.at("seeds_above_3").get<int>(),
                     line.at("seeds_above_10").get<int>(), line.at("ratio").at("seeds").get<int>()),
         cell(line.at("probe_before")) + " → " + cell(line.at("probe_after")),
         cell(line.at("norm_before"), "{:.2f}") + " → " + cell(line.at("norm_after"), "{:.2f}"),
         cell(line.at("effective_rank_before"), "{:.1f}") + " → " +
             cell(line.at("effective_rank_after"), "{:.1f}"),
         cell(line.at("nearest_before"), "{:.2f}") + " → " + cell(line.at("nearest_after"), "{:.2f}"),
         cell(line.at("mean_square_score"), "{:.2f}")});
  if (!lines.empty())
    page += "<h2>Phase A on held-out rows</h2>\n" +
            report::table({"variant", "start", "layer", "alignment", "ratio", "≥ 3, ≥ 10", "probe", "norm",
                           "effective rank", "nearest neighbour", "|q|²/√d"},
                          lines);
  std::vector<report::Section> sections{
      {"Reliability",
       "How often the predicted class was right against how sure the encoder was, all seeds together; "
       "dashed: "
       "calibrated. Bins of fewer than 20 rows are left out.",
       reliability_figures(summary.at("rows"))},
      {"Where learning the kernel pays", "", regime_figures(summary.at("differences"))},
      {"Robustness", "Damaged test sentences: what share of the words, and the accuracy then.",
       robustness_figures(summary.at("rows"))}};
  std::erase_if(sections, [](const report::Section& section) { return section.figures.empty(); });
  if (!sections.empty()) page += report::figures(sections, folder, command);
  page += robustness_table(summary.at("rows"));
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
