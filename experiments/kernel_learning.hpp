#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/classification.hpp"
#include "experiments/feature_learner.hpp"
#include "experiments/learning_data.hpp"
#include "experiments/side_by_side.hpp"

/// Do learned random features classify better than fixed ones, and why? `rieszflow learn`.
namespace rieszflow::learning {

/// How the features of a classifier come about. All methods of one row of a table see the same split and, at
/// one seed, start from the same fixed features.
enum class Method {
  Fixed,       ///< independent draws of the reference law
  Orthogonal,  ///< orthogonal directions
  FixedTuned,  ///< Fixed with the length scale chosen on held-out rows among 1/4 .. 4 of the common one
  ImportanceAlignment,  ///< drawn from a pool reweighted by label alignment (Sinha and Duchi, NIPS 2016)
  ImportanceLeverage,  ///< drawn from a pool by ridge leverage scores (Bach, JMLR 2017; Li et al., ICML 2019)
  Learned,             ///< feature_learner
  LearnedNoRepulsion,  ///< the same with repulsion = 0
  LearnedNoNoise,      ///< the same without noise in the dynamics, the confinement as it was
  GradientDescent,     ///< gradient flow of A alone: no noise, no confinement, no repulsion
  NormMatched,         ///< control: the norms of the learned particles, random directions
  ShuffledLabels,  ///< control: particles that learned permuted labels, temperature and time as the learned
                   ///< ones
  KernelRidge,     ///< exact kernel of the limit of many fixed features; no features are drawn
};

std::span<const Method> methods();
std::string_view name(Method method);     ///< as in config files and tables
std::string_view meaning(Method method);  ///< one line for `rieszflow list`
std::optional<Method> method_named(std::string_view name);

/// What to run: every method for every data set, dimension, noise, number of features and seed.
struct Question {
  std::string name;
  std::vector<Dataset> tables;       ///< from files; empty: hidden frequencies
  std::vector<std::string> skipped;  ///< sentences about data sets that are not there
  HiddenFrequencies synthetic;
  std::vector<std::size_t> dimensions{10};  ///< of the synthetic data
  std::vector<double> label_noise{0.0};
  std::vector<double> input_noise{0.0};
  SplitOptions split;
  std::vector<Method> methods;
  std::vector<std::size_t> feature_counts{64};
  std::size_t seeds = 10;
  std::uint64_t seed = 1;               ///< of the first; the others follow
  double length_scale = 0.0;            ///< of standardised inputs; 0: median distance of the training rows
  std::size_t pool_factor = 10;         ///< importance sampling draws from pool_factor * features candidates
  std::size_t most_kernel_rows = 2000;  ///< exact kernel ridge is skipped beyond
  LearnerOptions learner;
  ClassifierOptions classifier;
  std::size_t calibration_bins = 15;
  Method baseline = Method::Fixed;  ///< paired differences are taken against it
  int threads = 1;
};

/// One trained classifier.
struct Row {
  std::string dataset;
  std::size_t dimension = 0;
  Method method = Method::Fixed;
  std::size_t features = 0;  ///< particles; kernel ridge: 0
  double label_noise = 0.0;
  double input_noise = 0.0;
  std::uint64_t seed = 0;
  Metrics metrics;
  double train_seconds = 0.0;      ///< features and classifier, wall clock
  double inference_seconds = 0.0;  ///< all test rows
  std::size_t test_rows = 0;
  double stop_time = 0.0;  ///< of learned features; else 0
  double inverse_temperature = 0.0;
  double effective_rank = 0.0;  ///< of the training features; 0 where not asked
  std::string status;           ///< "completed", or how the learner ended
};

/// Mean over seeds with a 95 % interval (Student's t), and the paired difference to the baseline with its
/// own.
struct TableRow {
  std::string dataset;
  std::size_t dimension = 0;
  Method method = Method::Fixed;
  std::size_t features = 0;
  double label_noise = 0.0;
  double input_noise = 0.0;
  std::size_t seeds = 0;
  double mean = 0.0, low = 0.0, high = 0.0;  ///< accuracy
  double difference = 0.0, difference_low = 0.0,
         difference_high = 0.0;  ///< accuracy minus baseline's, same seed
  bool has_difference = false;
  double mcc = 0.0, log_loss = 0.0, brier = 0.0, ece = 0.0, ece_equal_mass = 0.0;  ///< means
};

/// mean -+ t_{0.975, n-1} s / sqrt n; with one sample the interval is infinite.
struct Interval {
  double mean = 0.0, low = 0.0, high = 0.0;
};
Interval interval(std::span<const double> samples);

std::vector<TableRow> table(const std::vector<Row>& rows, Method baseline);

/// What the data support about learned features, one plain sentence per comparison, failures included.
std::vector<std::string> findings(const std::vector<Row>& rows, const std::vector<TableRow>& table,
                                  Method baseline);

/// Features of one method, and the classifier on them, evaluated on the test rows.
struct Trained {
  Row row;
  std::vector<double> particles;  ///< (particle, p), in units where inputs are divided by the length scale
  std::vector<double> probabilities;  ///< (test row, class)
  std::optional<LearnedFeatures> learned;
};

/// All methods on one split, in the order of question.methods; inputs of the split are divided by the length
/// scale here.
std::vector<Trained> train_all(const Question& question, Split split, std::size_t features,
                               std::uint64_t seed, const std::function<bool()>& interrupted);

/// Runs everything and writes summary.json, run.h5 (traces and particles of the first learned run),
/// predictions.csv, features.csv, split.csv and standardisation.csv of the same run, config.toml and the
/// report into the folder.
side_by_side::Outcome run(const Question& question, const side_by_side::Setting& setting);

/// Number of (split, feature count) pairs, the units of progress.
std::size_t job_count(const Question& question);

}  // namespace rieszflow::learning
