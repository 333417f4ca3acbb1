#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attention/encoder.hpp"
#include "experiments/attention/vocabulary.hpp"
#include "solvers/observer.hpp"

/// Training of the encoder by LibTorch, and what of it is held against the project's own engine. The .cpp is
/// the only file of the project that sees LibTorch.
namespace rieszflow::attention {

/// Sets LibTorch's threads and the memory allocator of this process; before anything else of this header.
void prepare_training(int threads);

/// "LibTorch 1.13.1, ..., 512^3 matrix product at 92 Gflop/s". Measures.
std::string training_library();
/// Gflop/s of a product of 512 x 512 matrices; below `slow_matrix_product` the reference BLAS is at work,
/// which makes training 30 times slower.
double matrix_product_rate();
inline constexpr double slow_matrix_product = 15.0;

/// log of the share of class-1 rows with a token or bigram over that of class-0 rows, `smoothing` added to
/// the counts: the weights of naive Bayes. (id); two classes
std::vector<double> token_log_odds(const text::TokenSet& train, std::size_t vocabulary, double smoothing);

struct Start {
  double embedding_scale = 0.01;  ///< standard deviation of the embeddings
  /// That of one random vector which all positions have in common. It is what layer normalisation divides by,
  /// so that a rare word, whose embedding has hardly moved, weighs little instead of as much as any other.
  double common_scale = 0.3;
  /// (token), or empty. The embedding of each token has them along one random direction, which the classifier
  /// reads, and nothing else reaches the classifier yet: training starts as naive Bayes, with no preference for
  /// a class whatever the seed.
  std::vector<double> log_odds{};
};

/// Weights to begin with: matrices N(0, 2 / (rows + columns)), embeddings as above, gains one, biases zero,
/// omega of orthogonal_features. Keyed by (seed, WeightInitialisation): all kinds of attention with one seed
/// begin with the same numbers wherever they have the same matrices.
EncoderWeights initial_weights(const EncoderShape& shape, std::uint64_t seed, const Start& start = {});

struct TrainingOptions {
  double epochs = 4.0;
  std::size_t batch_rows = 64;
  double learning_rate = 1e-3;  ///< at the end of the warm-up; then half a cosine down to zero
  double embedding_rate = 1.0;  ///< factor of it for the embeddings
  double warm_up = 0.1;         ///< share of the steps
  double weight_decay = 0.01;   ///< of matrices and embeddings (AdamW)
  double dropout = 0.2;         ///< after embedding, attention, feed-forward and pooling
  double word_dropout = 0.1;    ///< probability that a token becomes the unknown token
  double clip = 1.0;            ///< largest norm of the gradient
  double averaging = 0.0;       ///< of the weights that are checked and kept: decay per step
  std::size_t checks_per_epoch = 1;
  bool learn_omega = false;  ///< omega by back-propagation too; else it is frozen
  std::uint64_t seed = 0;    ///< of the order of the rows and of dropout, streams of their own
};

/// State at one check.
struct Check {
  double epoch = 0.0;
  double train_loss = 0.0;    ///< mean since the last check, with dropout
  double dev_log_loss = 0.0;  ///< of the averaged weights
  double dev_accuracy = 0.0;
};

struct Training {
  RunStatus status = RunStatus::Completed;
  EncoderWeights best{};  ///< of the check of lowest dev log-loss
  EncoderWeights last{};
  std::vector<Check> checks{};
  std::size_t chosen = 0;  ///< index of the check of `best`
};

/// AdamW on the cross-entropy of `train`; the rule for the checkpoint is the lowest log-loss on `dev` among
/// the checks of this call. Batches hold rows of similar length. The same bits for the same arguments and
/// number of threads; `report` is called at checks and now and then between them with the share that is done.
Training train(const EncoderWeights& start, const text::TokenSet& train, const text::TokenSet& dev,
               const TrainingOptions& options, const std::function<void(double)>& report,
               const std::function<bool()>& interrupted);

/// Logits by LibTorch's forward pass, without dropout; (row, class).
std::vector<double> training_logits(const EncoderWeights& weights, const text::TokenSet& data);

/// Queries and keys that one layer sees, times d_head^(-1/4), as bags of points: one bag per row (both
/// sentences of a pair), with the queries and the keys of all its tokens.
struct HeadBags {
  std::size_t dimension = 0;                  ///< d_head
  std::vector<std::size_t> starts{};          ///< (row + 1)
  std::vector<std::vector<double>> points{};  ///< (head), each (point, d_head)
  double mean_square_score = 0.0;             ///< mean of |q|^2 / sqrt(d_head) over queries and keys
};
HeadBags queries_and_keys(const EncoderWeights& weights, const text::TokenSet& data,
                          const std::vector<std::size_t>& rows, std::size_t layer);

/// phi of the rows of x (row, d_head) by the expressions that training differentiates, (row, component), and
/// the gradient in omega of sum weights phi, by back-propagation. In double; for comparison with the particle
/// core.
struct FeatureGradient {
  std::vector<double> values, gradient;
};
FeatureGradient training_features(AttentionKind kind, const std::vector<double>& omega, std::size_t dimension,
                                  const std::vector<double>& x, const std::vector<double>& weights);

}  // namespace rieszflow::attention
