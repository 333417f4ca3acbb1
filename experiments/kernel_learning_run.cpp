#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>

#include "experiments/kernel_learning.hpp"
#include "experiments/learning_report.hpp"
#include "io/csv.hpp"
#include "io/run_file.hpp"

namespace rieszflow::learning {
namespace {

using Json = nlohmann::ordered_json;
using side_by_side::Outcome;
using side_by_side::Progress;
using side_by_side::Setting;
using SteadyClock = std::chrono::steady_clock;

/// One split of one data set with one number of features: what is trained together.
struct Job {
  std::size_t table = 0;      ///< index into question.tables; unused for synthetic data
  std::size_t dimension = 0;  ///< synthetic
  Noise noise;
  std::size_t features = 0;
  std::uint64_t seed = 0;
};

std::vector<Job> jobs(const Question& question) {
  std::vector<Job> out;
  const bool synthetic = question.tables.empty();
  const std::size_t sets = synthetic ? question.dimensions.size() : question.tables.size();
  for (std::size_t set = 0; set < sets; ++set)
    for (const double label : question.label_noise)
      for (const double input : question.input_noise)
        for (const std::size_t features : question.feature_counts)
          for (std::size_t repeat = 0; repeat < question.seeds; ++repeat)
            out.push_back({set,
                           synthetic ? question.dimensions[set] : 0,
                           {label, input},
                           features,
                           question.seed + repeat});
  return out;
}

Split split_of(const Question& question, const Job& job) {
  if (!question.tables.empty())
    return random_split(question.tables[job.table], question.split, job.noise, job.seed);
  HiddenFrequencies options = question.synthetic;
  options.dimension = job.dimension;
  return hidden_frequency_split(options, job.noise, job.seed);
}

/// NaN and infinity have no place in JSON.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json(const Row& row) {
  return {{"dataset", row.dataset},
          {"dimension", row.dimension},
          {"method", name(row.method)},
          {"features", row.features},
          {"noise", row.label_noise},
          {"input_noise", row.input_noise},
          {"seed", row.seed},
          {"status", row.status},
          {"accuracy", row.metrics.accuracy},
          {"mcc", row.metrics.mcc},
          {"log_loss", row.metrics.log_loss},
          {"brier", row.metrics.brier},
          {"ece", row.metrics.ece},
          {"ece_equal_mass", row.metrics.ece_equal_mass},
          {"train_seconds", row.train_seconds},
          {"inference_seconds", row.inference_seconds},
          {"test_rows", row.test_rows},
          {"stop_time", row.stop_time},
          {"inverse_temperature", number(row.inverse_temperature)},
          {"effective_rank", row.effective_rank}};
}

Row row_of(const Json& json) {
  Row row;
  row.dataset = json.at("dataset");
  row.dimension = json.at("dimension");
  row.method = *method_named(json.at("method").get<std::string>());
  row.features = json.at("features");
  row.label_noise = json.at("noise");
  row.input_noise = json.at("input_noise");
  row.seed = json.at("seed");
  row.status = json.at("status");
  row.metrics = {.accuracy = json.at("accuracy"),
                 .mcc = json.at("mcc"),
                 .log_loss = json.at("log_loss"),
                 .brier = json.at("brier"),
                 .ece = json.at("ece"),
                 .ece_equal_mass = json.at("ece_equal_mass")};
  row.train_seconds = json.at("train_seconds");
  row.inference_seconds = json.at("inference_seconds");
  row.test_rows = json.at("test_rows");
  row.stop_time = json.at("stop_time");
  row.inverse_temperature = json.at("inverse_temperature").is_null()
                                ? std::numeric_limits<double>::infinity()
                                : json.at("inverse_temperature").get<double>();
  row.effective_rank = json.at("effective_rank");
  return row;
}

Json json(const TableRow& row) {
  Json out{{"dataset", row.dataset},
           {"dimension", row.dimension},
           {"method", name(row.method)},
           {"features", row.features},
           {"noise", row.label_noise},
           {"input_noise", row.input_noise},
           {"seeds", row.seeds},
           {"mean", row.mean},
           {"low", number(row.low)},
           {"high", number(row.high)},
           {"mcc", row.mcc},
           {"log_loss", row.log_loss},
           {"brier", row.brier},
           {"ece", row.ece},
           {"ece_equal_mass", row.ece_equal_mass}};
  if (row.has_difference)
    out["difference"] = {
        {"mean", row.difference}, {"low", number(row.difference_low)}, {"high", number(row.difference_high)}};
  return out;
}

Json json(const std::vector<ReliabilityBin>& bins) {
  Json out = Json::array();
  for (const ReliabilityBin& bin : bins)
    out.push_back({{"lower", bin.lower},
                   {"upper", bin.upper},
                   {"count", bin.count},
                   {"confidence", bin.confidence},
                   {"accuracy", bin.accuracy}});
  return out;
}

std::vector<double> as_numbers(std::span<const int> values) { return {values.begin(), values.end()}; }

/// Traces and particles of one learned run, with those of its validation, and the predictions on the test
/// rows.
void write_run_file(const std::filesystem::path& path, const io::Manifest& manifest, const Question& question,
                    const LearnedFeatures& learned, const Split& split, const Trained& trained) {
  std::filesystem::remove(path);
  io::RunFile file = io::RunFile::create(path, manifest);
  const auto append = [&](const std::string& prefix, const std::vector<TracePoint>& trace, bool held_out) {
    std::int64_t step = 0;
    for (const TracePoint& point : trace) {
      const Clock clock{step++, point.time};
      const auto series = [&](const char* quantity, const char* units, const char* meaning, double value) {
        file.append({.name = prefix + quantity, .units = units, .meaning = meaning}, clock, {&value, 1});
      };
      series("hamiltonian", "energy", "H_N on the rows that the particles learn from", point.hamiltonian);
      series("alignment", "energy", "A(mu_N) on the same rows", point.alignment);
      series("repulsion", "energy", "lambda W_{N,s}", point.repulsion);
      series("effective_rank", "", "of the feature Gram matrix", point.effective_rank);
      series("minimum_distance", "length", "of two particles", point.minimum_distance);
      if (!held_out) continue;
      series("validation_alignment", "energy", "A(mu_N) on held-out rows", point.validation_alignment);
      series("validation_loss", "nat", "held-out log-loss of the classifier", point.validation_loss);
    }
  };
  append("learning/", learned.trace, false);
  append("validation/", learned.validation_trace, true);
  if (!trained.probabilities.empty()) {
    const Clock clock{0, learned.stop_time};
    const auto once = [&](const char* quantity, const char* meaning, const std::vector<double>& values) {
      file.append({.name = std::string("test/") + quantity,
                   .units = "",
                   .meaning = meaning,
                   .columns = values.size()},
                  clock, values);
    };
    once("label", "class of each test row", as_numbers(split.test.labels));
    once("predicted", "most probable class of each test row",
         as_numbers(predictions(trained.probabilities, split.test.classes)));
    once("probability", "(test row, class)", trained.probabilities);
  }
  const std::size_t size = learned.particles.size(), particle_count = trained.row.features;
  for (std::size_t k = 0; k < learned.trace.size(); ++k) {
    const auto begin = learned.snapshots.begin() + static_cast<std::ptrdiff_t>(k * size);
    file.append_positions(
        {static_cast<std::int64_t>(k), learned.trace[k].time},
        {1, particle_count, size / particle_count, {begin, begin + static_cast<std::ptrdiff_t>(size)}});
  }
  file.set_attribute("learner", fmt::format("{} features, {} alignment", name(question.learner.map),
                                            name(question.learner.alignment)));
  file.finish();
}

/// Test rows with their class probabilities; particles with their coordinates in units of standardised
/// inputs; which rows were used for what, and what was done to the inputs.
void export_tables(const std::filesystem::path& directory, const Question& question, const Split& split,
                   const Trained& trained, double length_scale) {
  std::vector<std::string> columns{"row", "label", "predicted"};
  for (const std::string& class_name : split.test.class_names) columns.push_back("p_" + class_name);
  const std::size_t classes = split.test.classes;
  const std::vector<int> predicted = predictions(trained.probabilities, classes);
  std::vector<double> values;
  for (std::size_t a = 0; a < predicted.size(); ++a) {
    values.push_back(static_cast<double>(split.test_rows.empty() ? a : split.test_rows[a]));
    values.push_back(split.test.labels[a]);
    values.push_back(predicted[a]);
    for (std::size_t c = 0; c < classes; ++c) values.push_back(trained.probabilities[a * classes + c]);
  }
  io::write_csv(directory / "predictions.csv", columns, values);

  const std::size_t d = split.train.dimension, p = particle_dimension(question.learner.map, d);
  columns.clear();
  for (std::size_t k = 0; k < d; ++k) columns.push_back("w_" + split.train.inputs[k]);
  if (p > d) columns.push_back("phase");
  values = trained.particles;
  for (std::size_t k = 0; k < values.size(); ++k)
    if (k % p < d) values[k] /= length_scale;
  io::write_csv(directory / "features.csv", columns, values);

  values = split.means;
  values.insert(values.end(), split.scales.begin(), split.scales.end());
  values.insert(values.end(), d, length_scale);
  io::write_csv(directory / "standardisation.csv", split.train.inputs, values);

  values.clear();
  for (const std::size_t row : split.train_rows) values.insert(values.end(), {static_cast<double>(row), 0.0});
  for (const std::size_t row : split.test_rows) values.insert(values.end(), {static_cast<double>(row), 1.0});
  if (!values.empty()) io::write_csv(directory / "split.csv", {"row", "test"}, values);
}

class Run {
 public:
  Run(const Question& question, const Setting& setting)
      : question_(question), setting_(setting), jobs_(jobs(question)) {}

  Outcome operator()() {
    const Ranks& ranks = setting_.ranks;
    rows_.resize(jobs_.size());
    if (setting_.resume) restore();
    ranks.wait_for_all();  // all have read before anybody writes
    if (ranks.first()) {
      io::write_text(setting_.directory / "config.toml", setting_.resolved_config);
    } else {
      std::filesystem::create_directories(checkpoint_folder());
    }
    start_ = SteadyClock::now();
    const auto count = static_cast<std::int64_t>(jobs_.size());
#pragma omp parallel for schedule(dynamic) num_threads(question_.threads) if (question_.threads > 1)
    for (std::int64_t index = 0; index < count; ++index) work(static_cast<std::size_t>(index));
    if (failure_) std::rethrow_exception(failure_);
    const std::vector<std::string> all = ranks.collect(state().dump());
    for (std::size_t rank = 1; rank < all.size(); ++rank) take(Json::parse(all[rank]));
    std::int64_t missing = complete() ? 0 : 1;
    ranks.share(missing);
    if (!ranks.first()) return {missing == 0 ? RunStatus::Completed : RunStatus::Interrupted, "", ""};
    if (all.size() > 1) {
      save(true);
      std::filesystem::remove_all(setting_.directory / "ranks");
    }
    return finish();
  }

 private:
  const Question& question_;
  const Setting& setting_;
  std::vector<Job> jobs_;
  std::vector<std::vector<Row>> rows_;  ///< (job); empty until it is done
  Json reliability_ = Json::object();
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::size_t done_ = 0, restored_ = 0;
  SteadyClock::time_point start_, saved_ = SteadyClock::now();

  bool wants_to_stop() const { return setting_.interrupted && setting_.interrupted(); }

  void work(std::size_t index) {
    if (index % setting_.ranks.count() != setting_.ranks.rank()) return;
    if (!rows_[index].empty() || wants_to_stop() || failure_) return;
    try {
      const Job& job = jobs_[index];
      const Split split = split_of(question_, job);
      const std::vector<Trained> trained =
          train_all(question_, split, job.features, job.seed, [&] { return wants_to_stop(); });
      const std::lock_guard lock(mutex_);
      if (wants_to_stop()) return;  // an interrupted job begins again
      for (const Trained& one : trained) {
        rows_[index].push_back(one.row);
        rows_[index].back().label_noise = job.noise.label;
        rows_[index].back().input_noise = job.noise.input;
      }
      if (index == 0) export_first(split, trained);
      ++done_;
      save(false);
      report_progress();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
  }

  void report_progress() const {
    if (!setting_.progress) return;
    const double seconds = std::chrono::duration<double>(SteadyClock::now() - start_).count();
    const auto left = static_cast<double>(jobs_.size() - done_ - restored_);
    setting_.progress({.part = "learning",
                       .time = static_cast<double>(done_ + restored_),
                       .end = static_cast<double>(jobs_.size()),
                       .seconds_left = seconds / static_cast<double>(done_) * left});
  }

  /// Run file, tables and reliability of the learned features of the first job, or of its first method.
  void export_first(const Split& split, const std::vector<Trained>& trained) {
    const auto found = std::find_if(trained.begin(), trained.end(),
                                    [](const Trained& one) { return one.learned.has_value(); });
    const Trained& shown = found == trained.end() ? trained.front() : *found;
    for (const Trained& one : trained)
      if (!one.probabilities.empty())
        reliability_[std::string(name(one.row.method))] = json(reliability(
            one.probabilities, split.test.labels, split.test.classes, question_.calibration_bins));
    const double length = question_.length_scale > 0.0
                              ? question_.length_scale
                              : median_distance(split.train.points, split.train.dimension);
    if (!shown.probabilities.empty() && !shown.particles.empty())
      export_tables(setting_.directory, question_, split, shown, length);
    if (found == trained.end()) return;
    io::Manifest manifest(setting_.provenance.begin(), setting_.provenance.end());
    manifest["name"] = question_.name;
    manifest["config"] = setting_.resolved_config;
    manifest["status"] = shown.row.status;
    manifest["seed"] = fmt::format("{}", shown.row.seed);
    manifest["model"] = fmt::format("{} features moved by Langevin dynamics, {} alignment of {} rows of {}",
                                    name(question_.learner.map), name(question_.learner.alignment),
                                    split.train.count(), split.train.name);
    write_run_file(setting_.directory / "run.h5", manifest, question_, *found->learned, split, shown);
  }

  void save(bool now) {
    constexpr double seconds_between = 10.0;
    if (!now && std::chrono::duration<double>(SteadyClock::now() - saved_).count() < seconds_between) return;
    saved_ = SteadyClock::now();
    io::save_checkpoint(checkpoint_folder(),
                        {.integers = {{"jobs", static_cast<std::int64_t>(jobs_.size())}},
                         .numbers = {},
                         .arrays = {},
                         .texts = {{"rows", state().dump()}, {"reliability", reliability_.dump()}}});
  }

  /// Rows of each job.
  Json state() const {
    Json state = Json::array();
    for (const auto& rows : rows_) {
      Json list = Json::array();
      for (const Row& row : rows) list.push_back(json(row));
      state.push_back(list);
    }
    return state;
  }

  /// Those of `state` that are not here.
  void take(const Json& state) {
    for (std::size_t index = 0; index < jobs_.size(); ++index) {
      if (!rows_[index].empty() || state[index].empty()) continue;
      for (const Json& row : state[index]) rows_[index].push_back(row_of(row));
      ++restored_;
    }
  }

  bool complete() const {
    return std::none_of(rows_.begin(), rows_.end(), [](const auto& rows) { return rows.empty(); });
  }

  /// Each rank has its own; that of the first has all rows in the end.
  std::filesystem::path checkpoint_folder() const {
    const Ranks& ranks = setting_.ranks;
    return ranks.first() ? setting_.directory
                         : setting_.directory / "ranks" / fmt::format("{}", ranks.rank());
  }

  void restore() {
    restore(setting_.directory);
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(setting_.directory / "ranks", none))
      restore(entry.path());
  }
  void restore(const std::filesystem::path& folder) {
    const auto checkpoint = io::load_checkpoint(folder);
    if (!checkpoint || checkpoint->integers.at("jobs") != static_cast<std::int64_t>(jobs_.size())) return;
    const Json reliability = Json::parse(checkpoint->texts.at("reliability"));
    if (!reliability.empty()) reliability_ = reliability;
    take(Json::parse(checkpoint->texts.at("rows")));
  }

  Outcome finish() {
    std::vector<Row> all;
    for (const auto& rows : rows_) all.insert(all.end(), rows.begin(), rows.end());
    Outcome outcome;
    if (!complete()) {
      outcome.status = RunStatus::Interrupted;
      outcome.message = fmt::format("{} of {} parts are done", done_ + restored_, jobs_.size());
      save(true);
      return outcome;
    }
    const std::vector<TableRow> rows = table(all, question_.baseline);
    Json summary{{"status", name(RunStatus::Completed)},
                 {"experiment", "learn"},
                 {"name", question_.name},
                 {"baseline", name(question_.baseline)}};
    summary["findings"] = findings(all, rows, question_.baseline);
    summary["skipped"] = question_.skipped;
    summary["table"] = Json::array();
    for (const TableRow& row : rows) summary["table"].push_back(json(row));
    summary["reliability"] = reliability_;
    summary["rows"] = Json::array();
    for (const Row& row : all) summary["rows"].push_back(json(row));
    summary["timing"] = {{"seconds", std::chrono::duration<double>(SteadyClock::now() - start_).count()}};
    for (const char* key : {"version", "command_line"})
      summary[key] = setting_.provenance.contains(key) ? setting_.provenance.at(key) : "";
    if (!all.empty() &&
        std::none_of(all.begin(), all.end(), [](const Row& row) { return row.status == "completed"; })) {
      outcome.status = RunStatus::NotFinite;
      outcome.message = "no method gave finite features";
      summary["status"] = name(outcome.status);
    }
    outcome.summary = summary.dump(2);
    io::write_text(setting_.directory / "summary.json", outcome.summary + "\n");
    write_learning_report(setting_.directory);
    save(true);
    return outcome;
  }
};

}  // namespace

std::size_t job_count(const Question& question) { return jobs(question).size(); }

Outcome run(const Question& question, const Setting& setting) { return Run(question, setting)(); }

}  // namespace rieszflow::learning
