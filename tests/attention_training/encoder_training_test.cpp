#include "experiments/attention/training/encoder_training.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/noise.hpp"
#include "experiments/attention/predict.hpp"
#include "experiments/attention/training/phase_a.hpp"
#include "experiments/attention/training/training_kernels.hpp"
#include "features/feature_map.hpp"

namespace rieszflow::attention {
namespace {

std::vector<double> uniforms(std::size_t count, std::uint64_t seed) {
  std::vector<double> out(count);
  NoiseStream(seed, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, out);
  return out;
}

EncoderShape small(AttentionKind kind, bool pairs = false, bool shared = false) {
  return {.vocabulary = 40,
          .max_length = 70,
          .dimension = 24,
          .heads = 3,
          .layers = 2,
          .feed_forward = 32,
          .feature_count = has_features(kind) ? 12u : 0u,
          .kind = kind,
          .shared_query_key = shared,
          .bigrams = pairs,
          .pairs = pairs};
}

/// Sentences of 1 to `longest` tokens; class 1 has more of the tokens 2..7, class 0 of 8..13.
text::TokenSet sentences(std::size_t rows, bool pairs, std::size_t longest, std::uint64_t seed) {
  text::TokenSet out{.pairs = pairs};
  for (std::size_t row = 0; row < rows; ++row) {
    const int label = static_cast<int>(row % 2);
    for (std::size_t side = 0; side < (pairs ? 2u : 1u); ++side) {
      const auto draws = uniforms(2 * longest + 1, seed * 1000003 + 2 * row + side);
      const std::size_t length = 1 + static_cast<std::size_t>(draws[0] * static_cast<double>(longest));
      std::vector<std::int32_t> ids(length);
      for (std::size_t t = 0; t < length; ++t)
        ids[t] = draws[1 + t] < 0.3
                     ? static_cast<std::int32_t>(2 + (1 - label) * 6 + 6 * draws[1 + longest + t])
                     : static_cast<std::int32_t>(14 + 26 * draws[1 + longest + t]);
      out.sequences.push_back(ids);
      if (pairs) {
        std::vector<std::uint8_t> match(length);
        for (std::size_t t = 0; t < length; ++t) match[t] = draws[1 + t] < 0.5 ? 1 : 0;
        out.match.push_back(match);
        std::vector<std::int32_t> bigrams(length, 0);
        for (std::size_t t = 1; t < length; ++t) bigrams[t] = (ids[t - 1] + 3 * ids[t]) % 40;
        out.bigrams.push_back(bigrams);
      }
    }
    out.labels.push_back(label);
  }
  return out;
}

/// All weights different from one another and from their neutral values.
EncoderWeights random_weights(const EncoderShape& shape) {
  EncoderWeights weights = initial_weights(shape, 3, {.embedding_scale = 0.7, .common_scale = 0.0});
  std::uint64_t stream = 100;
  for (const WeightArray& array : weight_arrays(weights)) {
    const auto draws = uniforms(array.values->size(), ++stream);
    for (std::size_t k = 0; k < draws.size(); ++k)
      (*array.values)[k] += static_cast<float>(0.2 * (draws[k] - 0.5));
  }
  return weights;
}

TEST(TrainingForwardPass, HasTheLogitsOfTheInferenceEngine) {
  for (const AttentionKind kind : attention_kinds())
    for (const bool pairs : {false, true})
      for (const bool shared : {false, true}) {
        if (shared && kind == AttentionKind::Uniform) continue;
        const EncoderWeights weights = random_weights(small(kind, pairs, shared));
        for (const std::size_t longest : {20, 70}) {  // weights between pairs of tokens, sums over features
          const text::TokenSet data = sentences(10, pairs, longest, 1);
          text::TextModel model;
          model.weights = weights;
          const Logits own = text::logits(model, data);
          ASSERT_EQ(own.status, AttentionStatus::Fine);
          const std::vector<double> theirs = training_logits(weights, data);
          double scale = 0.0;
          for (const double value : theirs) scale = std::max(scale, std::abs(value));
          for (std::size_t k = 0; k < theirs.size(); ++k)
            EXPECT_NEAR(own.values[k], theirs[k], 1e-4 * scale) << name(kind) << pairs << shared << longest;
        }
      }
}

TEST(TrainingForwardPass, DoesNotSeePadding) {
  for (const AttentionKind kind : attention_kinds()) {
    const EncoderWeights weights = random_weights(small(kind));
    text::TokenSet alone = sentences(1, false, 3, 5), padded = alone;
    const text::TokenSet other = sentences(1, false, 70, 6);
    padded.sequences.push_back(other.sequences.front());
    padded.sequences.back().resize(70, 20);
    padded.labels.push_back(0);
    const auto one = training_logits(weights, alone), two = training_logits(weights, padded);
    for (std::size_t c = 0; c < 2; ++c)
      EXPECT_NEAR(one[c], two[c], 2e-6 * (1.0 + std::abs(one[c]))) << name(kind);
  }
}

TEST(FeatureMaps, OfTheParticleCoreAreThoseThatTrainingDifferentiates) {
  const std::size_t d = 5, m = 9, rows = 7;
  const auto omega = orthogonal_features(m, d, 1, 0);
  std::vector<double> x(rows * d);
  NoiseStream(2, NoisePurpose::ReferenceSample).gaussians(0, 0, 0, x);
  for (const AttentionKind kind :
       {AttentionKind::Favor, AttentionKind::PorfSoftplus, AttentionKind::SoftmaxFeatures}) {
    const FeatureMap map = feature_map(kind);
    const std::size_t components = component_count(kind, m);
    std::vector<double> weights = uniforms(rows * components, 4), values(rows * components),
                        gradient(omega.size(), 0.0);
    const LiftedData data = lift(map, x, d);
    feature_values(map, data, omega, values);
    add_pullback(map, data, omega, weights, gradient);
    const FeatureGradient theirs = training_features(kind, omega, d, x, weights);
    // The core's softmax features have sum sqrt2 m, those of attention sum 1.
    const double factor =
        kind == AttentionKind::SoftmaxFeatures ? std::sqrt(2.0) * static_cast<double>(m) : 1.0;
    for (std::size_t k = 0; k < values.size(); ++k)
      EXPECT_NEAR(values[k], factor * theirs.values[k], 1e-12 * (1.0 + std::abs(values[k]))) << name(kind);
    for (std::size_t k = 0; k < gradient.size(); ++k)
      EXPECT_NEAR(gradient[k], factor * theirs.gradient[k], 1e-11 * (1.0 + std::abs(gradient[k])))
          << name(kind);
  }
}

/// Random weights of the classifier and of the residual branches would give every seed a class of its own.
TEST(NaiveBayesStart, PrefersNoClassWhateverTheSeed) {
  const text::TokenSet data = sentences(200, false, 20, 9);
  const EncoderShape shape = small(AttentionKind::SoftmaxFeatures);
  std::vector<double> log_odds(shape.vocabulary, 0.0);
  for (std::size_t token = 2; token < 14; ++token) log_odds[token] = token < 8 ? 1.0 : -1.0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto logits = training_logits(initial_weights(shape, seed, {.log_odds = log_odds}), data);
    double sum = 0.0, squares = 0.0, right = 0.0;
    for (std::size_t row = 0; row < data.count(); ++row) {
      const double margin = logits[2 * row + 1] - logits[2 * row];
      sum += margin;
      squares += margin * margin;
      right += (margin > 0.0) == (data.labels[row] == 1) ? 1.0 : 0.0;
    }
    const auto count = static_cast<double>(data.count());
    EXPECT_LT(std::abs(sum / count), 0.3 * std::sqrt(squares / count)) << seed;
    EXPECT_GT(right / count, 0.8) << seed;
  }
}

TEST(Training, OfOneSeedGivesOneResultAndLearns) {
  const text::TokenSet train_set = sentences(400, false, 20, 7), dev = sentences(200, false, 20, 8);
  EncoderShape shape = small(AttentionKind::SoftmaxFeatures);
  shape.layers = 1;
  const EncoderWeights start = initial_weights(shape, 1);
  const TrainingOptions options{
      .epochs = 6.0, .batch_rows = 20, .learning_rate = 5e-3, .dropout = 0.1, .averaging = 0.9, .seed = 1};
  const Training one = train(start, train_set, dev, options, {}, {}),
                 two = train(start, train_set, dev, options, {}, {});
  ASSERT_EQ(one.status, RunStatus::Completed);
  EXPECT_EQ(one.checks.size(), 6u);
  EXPECT_EQ(one.best.token_embedding, two.best.token_embedding);
  EXPECT_EQ(one.last.classifier_weight, two.last.classifier_weight);
  EXPECT_GT(one.checks[one.chosen].dev_accuracy, 0.8);
  EXPECT_EQ(one.last.layers[0].omega, start.layers[0].omega);  // frozen
  for (const Check& check : one.checks) EXPECT_GE(check.dev_log_loss, one.checks[one.chosen].dev_log_loss);
  TrainingOptions learning = options;
  learning.learn_omega = true;
  learning.epochs = 1.0;
  EXPECT_NE(train(start, train_set, dev, learning, {}, {}).last.layers[0].omega, start.layers[0].omega);
  int asked = 0;
  EXPECT_EQ(train(start, train_set, dev, options, {}, [&] { return ++asked > 3; }).status,
            RunStatus::Interrupted);
}

TEST(InitialWeights, OfAllKindsHaveTheSameMatrices) {
  const EncoderWeights favor = initial_weights(small(AttentionKind::Favor), 9),
                       softmax = initial_weights(small(AttentionKind::Softmax), 9);
  EXPECT_EQ(favor.token_embedding, softmax.token_embedding);
  EXPECT_EQ(favor.layers[1].hidden_weight, softmax.layers[1].hidden_weight);
  EXPECT_EQ(favor.layers[0].omega, initial_weights(small(AttentionKind::SoftmaxFeatures), 9).layers[0].omega);
  EXPECT_NE(favor.layers[0].omega, favor.layers[1].omega);
}

class PhaseAOf : public testing::TestWithParam<AttentionKind> {};

TEST_P(PhaseAOf, RaisesTheHeldOutAlignmentAndKeepsTheNorms) {
  EncoderShape shape = small(GetParam());
  shape.layers = 1;
  const EncoderWeights start = initial_weights(shape, 2, {.embedding_scale = 1.0, .common_scale = 0.0});
  const text::TokenSet train_set = sentences(600, false, 20, 7), dev = sentences(300, false, 20, 8);
  PhaseAOptions options{.steps = 40, .batch_rows = 128, .seed = 2};
  const PhaseA learned = learn_features(start, train_set, dev, options, {}, {});
  ASSERT_EQ(learned.status, RunStatus::Completed) << learned.message;
  EXPECT_GT(learned.held_out_after(0), 1.3 * learned.held_out_before(0));
  const std::size_t d = shape.head_dimension();
  for (std::size_t row = 0; row < shape.heads * shape.feature_count; ++row) {
    const auto norm = [&](const EncoderWeights& weights) {
      const float* w = weights.layers[0].omega.data() + row * d;
      return std::sqrt(std::inner_product(w, w + d, w, 0.0));
    };
    EXPECT_NEAR(norm(learned.weights), norm(start), 1e-5 * norm(start));
  }
  EXPECT_EQ(learned.weights.layers[0].query_weight, start.layers[0].query_weight);
  EXPECT_EQ(learn_features(start, train_set, dev, options, {}, {}).weights.layers[0].omega,
            learned.weights.layers[0].omega);
  options.shuffled_labels = true;
  EXPECT_LT(learn_features(start, train_set, dev, options, {}, {}).held_out_after(0),
            learned.held_out_after(0));
  const EncoderWeights control = norm_matched(learned.weights, 2);
  EXPECT_NE(control.layers[0].omega, start.layers[0].omega);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PhaseAOf,
                         testing::Values(AttentionKind::Favor, AttentionKind::PorfSoftplus,
                                         AttentionKind::SoftmaxFeatures),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST(DropoutMask, KeepsTheMeanAndHasAStreamOfItsOwnForEachKey) {
  const std::size_t count = 200000;
  std::vector<float> one(count), two(count);
  fill_dropout_mask(1, 0.3, one);
  fill_dropout_mask(2, 0.3, two);
  const double mean = std::accumulate(one.begin(), one.end(), 0.0) / static_cast<double>(count);
  const double deviation =
      std::sqrt(0.3 / 0.7 / static_cast<double>(count));  // of the mean: variance p / (1 - p)
  EXPECT_NEAR(mean, 1.0, 5 * deviation);
  double overlap = 0.0, neighbours = 0.0;
  for (std::size_t k = 1; k < count; ++k) {
    overlap += (one[k] - 1.0) * (two[k] - 1.0);
    neighbours += (one[k] - 1.0) * (one[k - 1] - 1.0);
  }
  const double bound = 5 * (0.3 / 0.7) / std::sqrt(static_cast<double>(count));
  EXPECT_NEAR(overlap / static_cast<double>(count), 0.0, bound);
  EXPECT_NEAR(neighbours / static_cast<double>(count), 0.0, bound);
}

TEST(AdamWStep, IsTheFormula) {
  const AdamW method{.first_decay = 0.9, .second_decay = 0.99, .epsilon = 1e-8, .averaging = 0.5};
  std::vector<float> gradient{2.0F, -1.0F}, first{0.5F, 0.0F}, second{0.25F, 0.0F}, weights{1.0F, -3.0F},
      average{0.0F, 0.0F};
  advance(method, 3, 0.1, 0.2, 0.5, gradient, first, second, weights, average);
  for (std::size_t k = 0; k < 2; ++k) {
    const double g = k == 0 ? 1.0 : -0.5, m = k == 0 ? 0.9 * 0.5 + 0.1 * g : 0.1 * g,
                 v = k == 0 ? 0.99 * 0.25 + 0.01 * g * g : 0.01 * g * g, x = k == 0 ? 1.0 : -3.0;
    const double expected =
        x - 0.1 * (m / (1 - std::pow(0.9, 3)) / (std::sqrt(v / (1 - std::pow(0.99, 3))) + 1e-8) + 0.2 * x);
    EXPECT_NEAR(weights[k], expected, 1e-6 * std::abs(expected));
    EXPECT_NEAR(average[k], 0.5 * expected, 1e-6);
  }
}

}  // namespace
}  // namespace rieszflow::attention
