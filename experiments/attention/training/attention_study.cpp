#include "experiments/attention/training/attention_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/classification.hpp"
#include "experiments/attention/bag_of_bigrams.hpp"
#include "experiments/attention/corruption.hpp"
#include "experiments/attention/model_file.hpp"
#include "experiments/attention/predict.hpp"
#include "experiments/attention/text_data.hpp"
#include "experiments/attention_report.hpp"
#include "experiments/sweep.hpp"
#include "io/files.hpp"

namespace rieszflow::attention {
namespace {

using Json = nlohmann::ordered_json;
using side_by_side::Outcome;
using side_by_side::Setting;
using SteadyClock = std::chrono::steady_clock;
using text::TokenSet;

constexpr std::size_t most_corrupted_rows = 2000;
constexpr std::size_t most_engine_rows = 100;
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// A data set as every row sees it.
struct Data {
  text::Splits splits{};          ///< of text
  text::Vocabulary vocabulary{};  ///< of text
  TokenSet train, dev, test;
  std::size_t vocabulary_size = 0, classes = 2, longest = 0;
  bool bigrams = false, pairs = false;
};

text::TextData first_rows(const text::TextData& data, std::size_t most) {
  if (data.count() <= most) return data;
  std::vector<std::size_t> chosen(most);
  for (std::size_t k = 0; k < most; ++k) chosen[k] = k;
  return text::rows(data, chosen);
}

Data prepared(const Source& source, std::uint64_t seed) {
  Data out;
  out.longest = source.longest;
  if (!source.is_text()) {
    // Streams of their own: no row of one set is a row of another.
    out.train = text::selection_rows(source.selection, 0, source.train_rows, seed, 0);
    out.dev = text::selection_rows(source.selection, 0, source.test_rows, seed, 1);
    out.test = text::selection_rows(source.selection, 0, source.test_rows, seed, 2);
    out.vocabulary_size = source.selection.vocabulary();
    out.classes = source.selection.values;
    return out;
  }
  out.splits = text::read_splits(source.folder);
  if (!out.splits.problems.empty()) {
    std::string message = "broken rows:";
    for (const std::string& problem : out.splits.problems) message += "\n  " + problem;
    throw config::ConfigError({{source.folder.string(), 0, "", message}});
  }
  out.splits.train = first_rows(out.splits.train, source.train_rows);
  out.splits.dev = first_rows(out.splits.dev, source.test_rows);
  out.splits.test = first_rows(out.splits.test, source.test_rows);
  out.vocabulary = text::Vocabulary::learn(
      out.splits.train, {.fewest = source.fewest, .fewest_bigrams = source.fewest_bigrams});
  out.train = text::encode(out.splits.train, out.vocabulary, source.longest);
  out.dev = text::encode(out.splits.dev, out.vocabulary, source.longest);
  out.test = text::encode(out.splits.test, out.vocabulary, source.longest);
  out.pairs = out.splits.train.pairs;
  out.vocabulary_size = out.vocabulary.size() * (out.pairs ? 2 : 1);
  out.bigrams = !out.vocabulary.bigrams().empty();
  return out;
}

/// One row of the plan.
struct Job {
  const Source* source = nullptr;
  const Model* model = nullptr;
  const Variant* variant = nullptr;
  const PhaseAOptions* phase = nullptr;  ///< null where nothing is learned
  std::uint64_t seed = 0;
  std::string name;
};

/// Combinations of which nothing depends on what differs are one job.
std::vector<Job> jobs(const Question& question) {
  std::vector<Job> out;
  std::set<std::string> known;
  std::size_t most_seeds = 0, models = 0, phases = 0;
  for (const Regime& regime : question.regimes) {
    most_seeds = std::max(most_seeds, regime.seeds);
    models += regime.models.size();
    phases += regime.phases.size();
  }
  const auto add = [&](const Source& source, const Variant& variant, const Model& model,
                       const PhaseAOptions& phase, std::uint64_t seed) {
    if (variant.is_bag && !source.is_text()) return;
    // Random directions with norms that phase A would not change need no phase A.
    const bool learns =
        variant.has_phase_a() && !(variant.treatment == Treatment::NormMatched && phase.spheres);
    Job job{&source, &model, &variant, learns ? &phase : nullptr, seed, {}};
    job.name = fmt::format("{} {} seed {}", source.name, variant.name, job.seed);
    if (!variant.is_bag && models > 1) {
      job.name += fmt::format(" d {}", model.head_dimension);
      if (has_features(variant.kind)) job.name += fmt::format(" m {}", model.feature_count);
    }
    if (learns && phases > 1) {
      job.name += fmt::format(" move {:g} beta {:g}", phase.move, phase.first_inverse_temperature);
      if (variant.treatment != Treatment::NoRepulsion)
        job.name += fmt::format(" lambda {:g} s {:g}", phase.repulsion, phase.repulsion_exponent);
      if (!phase.spheres) job.name += " norms free";
    }
    if (known.insert(job.name).second) out.push_back(job);
  };
  for (std::size_t repeat = 0; repeat < most_seeds; ++repeat)
    for (const Regime& regime : question.regimes) {
      if (repeat >= regime.seeds) continue;
      for (const std::size_t source : regime.sources)
        for (const Model& model : regime.models)  // outside, so that the variants share a warm start
          for (const Variant& variant : regime.variants)
            for (const PhaseAOptions& phase : regime.phases)
              add(question.sources[source], variant, model, phase, question.seed + repeat);
    }
  return out;
}

/// Tokens that training looks at, in units that make all variants about equal: for the time that is left.
double cost(const Job& job) {
  if (job.variant->is_bag) return 1.0;
  const double rows = job.source->is_text() ? 20000.0 : static_cast<double>(job.source->train_rows);
  return 1.0 + 1e-5 * rows * (1.0 + job.source->epochs) *
                   static_cast<double>(job.source->is_text() ? 20 : job.source->longest) *
                   static_cast<double>(job.model->layers);
}

Json json(const Metrics& m) {
  return {{"accuracy", m.accuracy},
          {"mcc", m.mcc},
          {"log_loss", m.log_loss},
          {"brier", m.brier},
          {"ece", m.ece},
          {"ece_equal_mass", m.ece_equal_mass},
          {"class_ece", m.class_ece},
          {"class_ece_equal_mass", m.class_ece_equal_mass}};
}

Json json(const std::vector<ReliabilityBin>& bins) {
  Json out = Json::array();
  for (const ReliabilityBin& bin : bins) out.push_back({bin.count, bin.confidence, bin.accuracy});
  return out;
}

class Study {
 public:
  Study(const Question& question, const Setting& setting)
      : question_(question), setting_(setting), jobs_(jobs(question)) {}

  Outcome operator()() {
    sweep::Study study{.type = "attention",
                       .name = question_.name,
                       .model = "Transformer encoders with learned and fixed random features",
                       .question = "",
                       .units = {},
                       .curves = {}};
    std::vector<double> costs;
    for (std::size_t k = 0; k < jobs_.size(); ++k) {
      costs.push_back(cost(jobs_[k]));
      study.units.push_back(
          {.name = jobs_[k].name,
           .cost = -static_cast<double>(k),  // in this order
           .measure = [this, k](const sweep::Workplace& place) { return measure(jobs_[k], place); }});
    }
    const auto start = SteadyClock::now();
    const Outcome swept = [&] {
      std::size_t before = std::string::npos;
      const sweep::Outcome outcome = sweep::run(
          study, {.directory = setting_.directory,
                  .resolved_config = setting_.resolved_config,
                  .resume = setting_.resume,
                  .threads = question_.threads,
                  .ranks = setting_.ranks,
                  .progress =
                      [&](const study::Progress& now) {
                        if (!setting_.progress) return;
                        before = std::min(before, now.row);
                        double done = 0.0, left = 0.0;
                        for (std::size_t k = 0; k < costs.size(); ++k)
                          (k < now.row ? (k < before ? left : done) : left) += k < before ? 0.0 : costs[k];
                        setting_.progress(
                            {.part = now.text,
                             .time = static_cast<double>(now.row),
                             .end = static_cast<double>(now.rows),
                             .seconds_left = done > 0.0 ? seconds_since(start) / done * left : unknown});
                      },
                  .interrupted = setting_.interrupted});
      return Outcome{outcome.status, outcome.message, outcome.summary};
    }();
    if (!setting_.ranks.first()) return swept;
    for (const Job& job : jobs_) {
      if (job.source->is_text()) data(job);  // all of them are described, also those that other ranks read
    }
    Json summary = Json::parse(swept.summary);
    for (const char* key : {"fit", "fits", "verdicts"}) summary.erase(key);
    summary["experiment"] = "attention";
    summary["data"] = data_;
    for (const char* key : {"version", "command_line"})
      summary[key] = setting_.provenance.contains(key) ? setting_.provenance.at(key) : "";
    summary["library"] = training_library_;
    conclude(summary);
    Outcome out{swept.status, swept.message, summary.dump(1)};
    io::write_text(setting_.directory / "summary.json", out.summary + "\n");
    write_report(setting_.directory);
    return out;
  }

  void set_library(std::string text) { training_library_ = std::move(text); }

 private:
  const Question& question_;
  const Setting& setting_;
  std::vector<Job> jobs_;
  std::string training_library_;
  Json data_ = Json::array();
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Data>> data_sets_;
  std::map<std::string, std::shared_ptr<const EncoderWeights>> warm_starts_;

  std::shared_ptr<const Data> data(const Job& job) {
    const std::scoped_lock lock(mutex_);
    const std::string key = job.source->is_text() ? job.source->folder.string()
                                                  : fmt::format("{} {}", job.source->name, job.seed);
    auto& entry = data_sets_[key];
    if (!entry) {
      entry = std::make_shared<const Data>(prepared(*job.source, job.seed));
      if (job.source->is_text()) describe(*job.source, *entry);
    }
    return entry;
  }

  void describe(const Source& source, const Data& data) {
    for (const text::TextStatistics& s : text::statistics(data.splits, data.vocabulary))
      data_.push_back({{"dataset", source.name},
                       {"split", s.name},
                       {"rows", s.rows},
                       {"positive", s.positive},
                       {"mean_words", s.mean_words},
                       {"p99_words", s.p99_words},
                       {"longest", s.longest},
                       {"unknown_words", s.unknown_words},
                       {"repeated", s.repeated},
                       {"contradicting", s.contradicting},
                       {"in_train", s.in_train},
                       {"vocabulary", data.vocabulary.size()}});
  }

  TrainingOptions training(const Job& job) const {
    TrainingOptions options = question_.training;
    options.dropout = job.source->dropout;
    options.word_dropout = job.source->word_dropout;
    options.epochs = job.source->epochs;
    options.learning_rate = job.source->learning_rate;
    options.embedding_rate = job.source->embedding_rate;
    options.weight_decay = job.source->weight_decay;
    options.seed = job.seed;
    return options;
  }

  EncoderShape shape(const Job& job, const Data& data) const {
    const bool features = has_features(job.variant->kind);
    return {.vocabulary = data.vocabulary_size,
            .max_length = data.longest,
            .dimension = job.model->heads * job.model->head_dimension,
            .heads = job.model->heads,
            .layers = job.model->layers,
            .feed_forward = job.model->feed_forward,
            .feature_count = features ? job.model->feature_count : 0,
            .kind = job.variant->kind,
            .shared_query_key = job.variant->shared_query_key,
            .bigrams = data.bigrams,
            .pairs = data.pairs,
            .classes = data.classes};
  }

  EncoderWeights start_of(const Job& job, const Data& data) const {
    Start start{.embedding_scale = question_.embedding_scale, .common_scale = job.source->common_scale};
    if (job.source->log_odds_smoothing > 0.0)
      start.log_odds = token_log_odds(data.train, data.vocabulary_size, job.source->log_odds_smoothing);
    return initial_weights(shape(job, data), job.seed, start);
  }

  /// Trained with random fixed omega for the warm start's epochs: the same for all treatments of one kind.
  std::shared_ptr<const EncoderWeights> warm_start(const Job& job, const Data& data,
                                                   const std::function<bool()>& interrupted) {
    const std::string key = fmt::format("{} {} {} {} {} {}", job.source->name, name(job.variant->kind),
                                        job.variant->shared_query_key, job.model->head_dimension,
                                        job.model->feature_count, job.seed);
    {
      const std::scoped_lock lock(mutex_);
      if (const auto found = warm_starts_.find(key); found != warm_starts_.end()) return found->second;
    }
    if (question_.warm_start_epochs == 0.0)
      return std::make_shared<const EncoderWeights>(start_of(job, data));
    TrainingOptions options = training(job);
    options.epochs = question_.warm_start_epochs;
    options.checks_per_epoch = 1;
    options.seed = job.seed + (std::uint64_t{1} << 32);  // another order of rows than phase B's
    Training trained = train(start_of(job, data), data.train, data.dev, options, {}, interrupted);
    if (trained.status != RunStatus::Completed) return nullptr;
    auto weights = std::make_shared<const EncoderWeights>(std::move(trained.last));
    const std::scoped_lock lock(mutex_);
    if (warm_starts_.size() >= 8) warm_starts_.clear();
    return warm_starts_[key] = weights;
  }

  /// Starts a row: which experiment it belongs to.
  Json row_of(const Job& job) const {
    Json row{{"quantity", "classifier"},
             {"value", job.seed},
             {"status", "completed"},
             {"dataset", job.source->name},
             {"variant", job.variant->name},
             {"features", nullptr},
             {"head_dimension", nullptr},
             {"length", nullptr},
             {"noise", job.source->is_text() ? 0.0 : job.source->selection.label_noise},
             {"seed", job.seed},
             {"repulsion", nullptr},
             {"exponent", nullptr},
             {"inverse_temperature", nullptr},
             {"move", nullptr},
             {"norms", nullptr}};
    if (!job.source->is_text()) row["length"] = job.source->selection.length;
    if (job.variant->has_phase_a())
      row["norms"] = job.phase == nullptr || job.phase->spheres ? "held" : "free";
    if (!job.variant->is_bag) {
      row["head_dimension"] = job.model->head_dimension;
      if (has_features(job.variant->kind)) row["features"] = job.model->feature_count;
    }
    if (job.phase != nullptr) {
      const bool repels = job.variant->treatment != Treatment::NoRepulsion;
      row["repulsion"] = repels ? job.phase->repulsion : 0.0;
      row["exponent"] = repels ? Json(job.phase->repulsion_exponent) : Json(nullptr);
      row["inverse_temperature"] = number(job.phase->first_inverse_temperature);
      row["move"] = job.phase->move;
    }
    return row;
  }

  void add_quality(Json& row, const Data& data, const std::vector<double>& dev_logits,
                   const std::vector<double>& test_logits) const {
    const double temperature = fit_temperature(dev_logits, data.dev.labels, data.classes);
    row.update(json(
        metrics_from_logits(test_logits, data.test.labels, data.classes, 1.0, question_.calibration_bins)));
    row["temperature"] = temperature;
    row["scaled"] = json(metrics_from_logits(test_logits, data.test.labels, data.classes, temperature,
                                             question_.calibration_bins));
    const std::vector<double> p = softmax(test_logits, data.classes);
    row["reliability"] = json(reliability(p, data.test.labels, data.classes, question_.calibration_bins));
    row["ece_floor"] = calibration_floor(p, data.classes, 0, 20, question_.calibration_bins).ece;
    const Metrics dev = metrics_from_logits(dev_logits, data.dev.labels, data.classes);
    row["dev_accuracy"] = dev.accuracy;
    row["dev_log_loss"] = dev.log_loss;
  }

  /// The project's own inference on some test rows: its time, and how far its logits are from those of
  /// LibTorch.
  static void add_engine(Json& row, const text::TextModel& model, const Data& data,
                         const std::vector<double>& logits) {
    TokenSet some = data.test;
    const std::size_t rows = std::min(most_engine_rows, some.count()), sides = some.pairs ? 2 : 1;
    some.sequences.resize(rows * sides);
    if (!some.bigrams.empty()) some.bigrams.resize(rows * sides);
    if (some.pairs) some.match.resize(rows * sides);
    some.labels.resize(rows);
    const auto begin = SteadyClock::now();
    const Logits own = text::logits(model, some, 1);
    row["inference_seconds"] =
        seconds_since(begin) * static_cast<double>(data.test.count()) / static_cast<double>(rows);
    double gap = 0.0, scale = 1.0;
    for (std::size_t k = 0; k < own.values.size(); ++k) {
      gap = std::max(gap, std::abs(own.values[k] - logits[k]));
      scale = std::max(scale, std::abs(logits[k]));
    }
    row["engine_difference"] = gap / scale;
  }

  template <class Evaluate>
  void add_robustness(Json& row, const Data& data, Evaluate logits_of) const {
    if (data.splits.test.count() == 0 || question_.corruption_rates.empty()) return;
    const text::TextData some = first_rows(data.splits.test, most_corrupted_rows);
    Json list = Json::array();
    for (const text::Corruption corruption : text::corruptions())
      for (const double rate : question_.corruption_rates) {
        const text::TextData damaged = text::corrupted(some, corruption, rate, 0);
        const Metrics m = metrics_from_logits(logits_of(damaged), damaged.labels, data.classes);
        list.push_back({{"corruption", text::name(corruption)},
                        {"rate", rate},
                        {"accuracy", m.accuracy},
                        {"log_loss", m.log_loss}});
      }
    row["robustness"] = list;
  }

  std::vector<Json> measure(const Job& job, const sweep::Workplace& place) {
    const std::shared_ptr<const Data> set = data(job);
    Json row = row_of(job);
    const auto start = SteadyClock::now();
    if (job.variant->is_bag) {
      const text::BagOfBigrams bag = text::BagOfBigrams::fit(set->splits.train, set->splits.dev);
      row["train_seconds"] = seconds_since(start);
      const auto begin = SteadyClock::now();
      const std::vector<double> test_logits = bag.logits(set->splits.test);
      row["inference_seconds"] = seconds_since(begin);
      add_quality(row, *set, bag.logits(set->splits.dev), test_logits);
      add_robustness(row, *set, [&](const text::TextData& rows) { return bag.logits(rows); });
      return {row};
    }
    const auto warm = warm_start(job, *set, place.interrupted);
    if (place.interrupted()) return {};
    if (!warm) return failed(row, RunStatus::NotFinite);
    EncoderWeights weights = *warm;
    if (job.variant->has_phase_a()) {
      const std::optional<RunStatus> problem = treat(job, *set, weights, row, place.interrupted);
      if (problem == RunStatus::Interrupted) return {};
      if (problem) return failed(row, *problem);
    }
    TrainingOptions options = training(job);
    options.learn_omega = job.variant->treatment == Treatment::Backprop;
    const Training trained = train(weights, set->train, set->dev, options, {}, place.interrupted);
    if (trained.status == RunStatus::Interrupted) return {};
    if (trained.status != RunStatus::Completed) return failed(row, trained.status);
    row["train_seconds"] = seconds_since(start);
    row["chosen_epoch"] = trained.checks.at(trained.chosen).epoch;
    Json checks = Json::array();
    for (const Check& check : trained.checks)
      checks.push_back({check.epoch, check.train_loss, check.dev_log_loss, check.dev_accuracy});
    row["checks"] = checks;

    text::TextModel model;
    model.weights = trained.best;
    model.vocabulary = set->vocabulary;
    const std::vector<double> dev_logits = training_logits(trained.best, set->dev);
    const std::vector<double> test_logits = training_logits(trained.best, set->test);
    add_quality(row, *set, dev_logits, test_logits);
    add_engine(row, model, *set, test_logits);
    add_robustness(row, *set, [&](const text::TextData& rows) {
      return training_logits(trained.best, text::encode(rows, set->vocabulary, set->longest));
    });
    if (job.source->is_text() && job.seed == question_.seed) {
      model.temperature = row.at("temperature").get<double>();
      model.class_names = {"0", "1"};
      model.description = job.name;
      const std::filesystem::path folder = setting_.directory / "models";
      std::filesystem::create_directories(folder);
      text::write_model(folder / (file_name(job) + ".model"), model);
    }
    return {row};
  }

  static std::string file_name(const Job& job) {
    std::string out = job.name;
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c == ' ' || c == '/'; }, '_');
    return out;
  }

  static std::vector<Json> failed(Json row, RunStatus status) {
    row["status"] = rieszflow::name(status);
    row["message"] = "the training is not finite";
    return {row};
  }

  /// What the variant does to omega; records phase A in the row.
  std::optional<RunStatus> treat(const Job& job, const Data& set, EncoderWeights& weights, Json& row,
                                 const std::function<bool()>& interrupted) const {
    if (job.phase == nullptr) {
      weights = norm_matched(weights, job.seed);
      return std::nullopt;
    }
    PhaseAOptions options = *job.phase;
    options.seed = job.seed;
    options.shuffled_labels = job.variant->treatment == Treatment::ShuffledLabels;
    if (job.variant->treatment == Treatment::NoRepulsion) options.repulsion = 0.0;
    const bool control = job.variant->treatment == Treatment::NormMatched;
    const auto start = SteadyClock::now();
    PhaseA learned = learn_features(weights, set.train, set.dev, options, {}, interrupted);
    if (learned.status != RunStatus::Completed) return learned.status;
    const bool warm = question_.warm_start_epochs > 0.0;
    Json& record = row[warm ? "phase_a" : "phase_a_at_start"];
    record = phase_a_json(learned);
    record["seconds"] = seconds_since(start);
    if (warm && question_.phase_a_at_start && job.variant->treatment == Treatment::Kernel) {
      const PhaseA at_start =
          learn_features(start_of(job, set), set.train, set.dev, options, {}, interrupted);
      if (at_start.status != RunStatus::Completed) return at_start.status;
      row["phase_a_at_start"] = phase_a_json(at_start);
    }
    if (job.variant->treatment == Treatment::Kernel && job.seed == question_.seed) save(job, learned);
    weights = control ? norm_matched(learned.weights, job.seed) : learned.weights;
    return std::nullopt;
  }

  static Json phase_a_json(const PhaseA& learned) {
    Json layers = Json::array();
    for (std::size_t layer = 0; layer < learned.weights.shape.layers; ++layer) {
      double probe_before = 0.0, probe_after = 0.0, norm_before = 0.0, norm_after = 0.0, rank_before = 0.0,
             rank_after = 0.0, distance_before = 0.0, distance_after = 0.0, train = 0.0, count = 0.0;
      for (const LearnedHead& head : learned.heads) {
        if (head.layer != layer) continue;
        count += 1.0;
        probe_before += head.probe_before;
        probe_after += head.probe_after;
        norm_before += head.checks.front().mean_norm;
        norm_after += head.checks.back().mean_norm;
        rank_before += head.checks.front().effective_rank;
        rank_after += head.checks.back().effective_rank;
        distance_before += head.checks.front().minimum_distance;
        distance_after += head.checks.back().minimum_distance;
        train += head.checks.back().train_alignment;
      }
      layers.push_back({{"alignment_before", learned.held_out_before(layer)},
                        {"alignment_after", learned.held_out_after(layer)},
                        {"train_alignment", train / count},
                        {"probe_before", probe_before / count},
                        {"probe_after", probe_after / count},
                        {"norm_before", norm_before / count},
                        {"norm_after", norm_after / count},
                        {"effective_rank_before", rank_before / count},
                        {"effective_rank_after", rank_after / count},
                        {"nearest_before", distance_before / count},
                        {"nearest_after", distance_after / count},
                        {"mean_square_score", learned.mean_square_scores.at(layer)}});
    }
    return {{"layers", layers}};
  }

  void save(const Job& job, const PhaseA& learned) const {
    io::Manifest manifest(setting_.provenance.begin(), setting_.provenance.end());
    manifest["name"] = job.name;
    manifest["config"] = setting_.resolved_config;
    manifest["status"] = rieszflow::name(learned.status);
    manifest["seed"] = fmt::format("{}", job.seed);
    manifest["model"] =
        fmt::format("phase A of {}: omega of each head as particles, centred normalised alignment", job.name);
    const std::filesystem::path folder = setting_.directory / "phase_a";
    std::filesystem::create_directories(folder);
    write_phase_a(folder / (file_name(job) + ".h5"), manifest, learned);
    const auto first = std::find_if(jobs_.begin(), jobs_.end(), [](const Job& one) {
      return one.variant->treatment == Treatment::Kernel;
    });
    if (first != jobs_.end() && first->name == job.name)
      write_phase_a(setting_.directory / "run.h5", manifest, learned);
  }
};

}  // namespace

std::size_t row_count(const Question& question) { return jobs(question).size(); }

std::vector<std::string> data_summary(const Question& question) {
  std::vector<std::string> out;
  for (const Source& source : question.sources) {
    if (!source.is_text()) {
      out.push_back(fmt::format("{}: {} rows of train, {} of dev and of test, {} classes", source.name,
                                source.train_rows, source.test_rows, source.selection.values));
      continue;
    }
    const Data data = prepared(source, 0);
    for (const text::TextStatistics& s : text::statistics(data.splits, data.vocabulary))
      out.push_back(fmt::format(
          "{} {}: {} rows, {:.1f} % of class 1, {:.1f} words (99 %: {}, longest {}), {:.2f} % unknown "
          "words, {} repeated ({} with another label), {} in train",
          source.name, s.name, s.rows, 100.0 * s.positive, s.mean_words, s.p99_words, s.longest,
          100.0 * s.unknown_words, s.repeated, s.contradicting, s.in_train));
    for (const std::string& note : data.splits.notes) out.push_back(source.name + ": " + note);
  }
  return out;
}

Outcome run(const Question& question, const Setting& setting) {
  Study study(question, setting);
  study.set_library(training_library());
  return study();
}

}  // namespace rieszflow::attention
