#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "attention/encoder.hpp"
#include "experiments/assemble.hpp"
#include "experiments/attention/selection_task.hpp"
#include "experiments/attention/training/encoder_training.hpp"
#include "experiments/attention/training/phase_a.hpp"

namespace rieszflow::attention {

/// What becomes of omega between the warm start and phase B.
enum class Treatment {
  Vanilla,         ///< nothing: random and fixed
  Kernel,          ///< phase A
  NormMatched,     ///< random directions with the norms that phase A leaves
  ShuffledLabels,  ///< phase A with the labels in random order
  NoRepulsion,     ///< phase A with lambda = 0
  Backprop,        ///< trained by the cross-entropy in phase B
};

struct Variant {
  std::string name;     ///< as in the config
  bool is_bag = false;  ///< bag of bigrams: no encoder
  AttentionKind kind = AttentionKind::Uniform;
  bool shared_query_key = false;
  Treatment treatment = Treatment::Vanilla;

  bool has_phase_a() const {
    return treatment == Treatment::Kernel || treatment == Treatment::ShuffledLabels ||
           treatment == Treatment::NoRepulsion || treatment == Treatment::NormMatched;
  }
};
std::optional<Variant> variant_named(const std::string& name);

/// One [[dataset]].
struct Source {
  std::string name;
  std::filesystem::path folder{};  ///< of text; empty: the selection task
  text::SelectionTask selection{};
  std::size_t longest = 64, fewest = 2, fewest_bigrams = 0;  ///< of text
  std::size_t train_rows = 0, test_rows = 0;                 ///< most of text, exactly of the selection task
  double epochs = 1.0, dropout = 0.0, word_dropout = 0.0;
  double learning_rate = 1e-3, embedding_rate = 1.0, weight_decay = 0.01;
  double common_scale = 0.3;        ///< of the start
  double log_odds_smoothing = 0.0;  ///< of the naive-Bayes start; 0: none

  bool is_text() const { return !folder.empty(); }
};

/// What an encoder is like beyond its data and its variant.
struct Model {
  std::size_t layers = 2, heads = 4, head_dimension = 16, feature_count = 64, feed_forward = 128;
};

/// Every combination of these.
struct Regime {
  std::vector<std::size_t> sources{};  ///< indices
  std::vector<Model> models{};
  std::vector<Variant> variants{};
  std::vector<PhaseAOptions> phases{};
  std::size_t seeds = 1;
};

/// The plan: the union of the regimes; what several of them name is done once.
struct Question {
  std::string name;
  std::vector<Source> sources;
  std::vector<Regime> regimes;
  TrainingOptions training;  ///< epochs and dropouts: those of the source
  double embedding_scale = 0.01;
  double warm_start_epochs = 1.0;  ///< 0: phase A at the random start
  std::uint64_t seed = 0;
  std::vector<double> corruption_rates;
  std::size_t calibration_bins = 15;
  bool phase_a_at_start = false;
  int threads = 1;  ///< rows at a time
};

struct Assembly {
  Question question;
  std::string resolved;  ///< the config with every default filled in
};

/// Throws config::ConfigError with all problems at once. An empty `request.config` is the default config.
Assembly assemble(const Request& request);

}  // namespace rieszflow::attention
