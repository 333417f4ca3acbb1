#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "../io/scratch.hpp"
#include "analysis/classification.hpp"
#include "experiments/attention/bag_of_bigrams.hpp"
#include "experiments/attention/corruption.hpp"
#include "experiments/attention/predict.hpp"
#include "experiments/attention/selection_task.hpp"
#include "io/files.hpp"
#include "models.hpp"

namespace rieszflow::text {
namespace {

using attention::AttentionKind;

TEST(ModelFile, GivesBackTheSameModelAndTheSameLogits) {
  const Scratch scratch;
  for (const AttentionKind kind : attention::attention_kinds()) {
    for (const bool pairs : {false, true}) {
      const TextModel model = small_model(kind, pairs);
      write_model(scratch.path() / "m.model", model);
      TextModel again = read_model(scratch.path() / "m.model");
      EXPECT_EQ(again.weights.shape, model.weights.shape);
      EXPECT_EQ(again.vocabulary.tokens(), model.vocabulary.tokens());
      EXPECT_EQ(again.vocabulary.bigrams(), model.vocabulary.bigrams());
      EXPECT_EQ(again.temperature, model.temperature);
      EXPECT_EQ(again.class_names, model.class_names);
      const TextData data{
          .name = "",
          .pairs = pairs,
          .first = {"good film", "bad"},
          .second = pairs ? std::vector<std::string>{"film", "una bad"} : std::vector<std::string>{}};
      EXPECT_EQ(predict(model, data).probabilities, predict(again, data).probabilities);
    }
  }
}

TEST(ModelFile, ThatIsShortLongFlippedOrOfAnotherVersionIsRefusedByName) {
  const Scratch scratch;
  const auto file = scratch.path() / "m.model";
  write_model(file, small_model(AttentionKind::Favor, false));
  const std::string whole = io::read_text(file);
  const auto sentence_of = [&](const std::string& content) -> std::string {
    io::write_text(file, content);
    try {
      read_model(file);
      return "";
    } catch (const io::FileError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(sentence_of(whole), "");
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 1})
    EXPECT_NE(sentence_of(whole.substr(0, size)).find("m.model"), std::string::npos) << size;
  EXPECT_NE(sentence_of(whole + "x").find("damaged"), std::string::npos);
  for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 97) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    EXPECT_NE(sentence_of(flipped).find("m.model"), std::string::npos) << "byte " << at;
  }
  std::string later = whole;
  later.replace(later.find(" 2\n"), 3, " 3\n");
  EXPECT_NE(sentence_of(later).find("version 3, this program reads version 2"), std::string::npos);
  EXPECT_NE(sentence_of("hello\nworld\n").find("not a model file"), std::string::npos);
}

TEST(Prediction, IsTheSameAloneInABatchAndOnThreads) {
  const TextModel model = small_model(AttentionKind::SoftmaxFeatures, false);
  TextData data{.name = ""};
  for (const std::string text : {"good", "bad film good good", "una film", "film film film film bad"})
    data.first.push_back(text);
  const auto together = predict(model, data, 1).probabilities;
  EXPECT_EQ(together, predict(model, data, 3).probabilities);
  for (std::size_t a = 0; a < data.count(); ++a) {
    const auto alone = predict(model, rows(data, {a})).probabilities;
    EXPECT_EQ(alone[0], together[2 * a]);
    EXPECT_EQ(alone[1], together[2 * a + 1]);
  }
}

TEST(Prediction, WritesLabelsProbabilitiesAndSentences) {
  const TextModel model = small_model(AttentionKind::Softmax, false);
  const TextData data{.name = "", .first = {"good film"}};
  Predictions predictions{.probabilities = {0.25, 0.75}, .labels = {1}};
  EXPECT_EQ(prediction_table(model, data, predictions),
            "label\tp_negative\tp_positive\tsentence\npositive\t0.250000\t0.750000\tgood film\n");
}

TEST(SelectionTask, HoldsTheLabelInTheTokenThatTheQueryPointsTo) {
  const SelectionTask task{.length = 20, .keys = 8, .values = 3, .targets = 2};
  const TokenSet set = selection_rows(task, 0, 300, 1, 0);
  std::vector<int> labels(3, 0);
  for (std::size_t a = 0; a < set.count(); ++a) {
    std::size_t queries = 0, query = 0, targets = 0;
    ASSERT_EQ(set.sequences[a].size(), 20u);
    for (const std::int32_t id : set.sequences[a]) {
      ASSERT_GE(id, 2);
      ASSERT_LT(static_cast<std::size_t>(id), task.vocabulary());
      if (static_cast<std::size_t>(id) < 2 + task.keys) ++queries, query = static_cast<std::size_t>(id) - 2;
    }
    ASSERT_EQ(queries, 1u);
    for (const std::int32_t id : set.sequences[a]) {
      if (static_cast<std::size_t>(id) < 2 + task.keys) continue;
      const std::size_t token = static_cast<std::size_t>(id) - 2 - task.keys;
      if (token / task.values != query) continue;
      ++targets;
      EXPECT_EQ(static_cast<int>(token % task.values), set.labels[a]);
    }
    EXPECT_EQ(targets, 2u);
    ++labels[static_cast<std::size_t>(set.labels[a])];
  }
  for (const int count : labels) EXPECT_NEAR(count, 100, 5 * std::sqrt(300 * 2.0 / 9));
}

TEST(SelectionTask, NoCountOfATokenTellsTheLabel) {
  // Every linear function of token counts: the label's correlation with each count is noise.
  const SelectionTask task{.length = 24, .keys = 4, .values = 2};
  constexpr std::size_t rows = 4000;
  const TokenSet set = selection_rows(task, 0, rows, 3, 0);
  // One target among 23 tokens, each value of a key is seen in 1/4 of the rows as target: the correlation of
  // a count with the label is about sqrt(1/8) / sqrt(23/8): small, and the sum of all value-1 counts has no
  // more.
  double covariance = 0.0, variance = 0.0;
  std::vector<double> counts;
  for (std::size_t a = 0; a < rows; ++a) {
    double ones = 0.0;
    for (const std::int32_t id : set.sequences[a])
      if (id >= 6) ones += (id - 6) % 2;
    counts.push_back(ones - 11.5);
    covariance += counts.back() * (set.labels[a] - 0.5);
    variance += counts.back() * counts.back();
  }
  // 22 fair coins and the label itself: correlation 1/sqrt(23)
  EXPECT_NEAR(covariance / std::sqrt(variance * rows / 4.0), 1.0 / std::sqrt(23.0), 5.0 / std::sqrt(rows));
}

TEST(SelectionTask, RowsBelongToTheirNumbersAndNoiseToTheLabels) {
  const SelectionTask clean{.length = 16}, noisy{.length = 16, .label_noise = 0.5};
  const TokenSet all = selection_rows(clean, 0, 2000, 1, 0), part = selection_rows(clean, 500, 10, 1, 0),
                 other = selection_rows(clean, 0, 10, 1, 1), flipped = selection_rows(noisy, 0, 2000, 1, 0);
  for (std::size_t a = 0; a < 10; ++a) EXPECT_EQ(part.sequences[a], all.sequences[500 + a]);
  EXPECT_NE(other.sequences[0], all.sequences[0]);
  EXPECT_EQ(flipped.sequences, all.sequences);
  int changed = 0;
  for (std::size_t a = 0; a < 2000; ++a) changed += flipped.labels[a] != all.labels[a] ? 1 : 0;
  EXPECT_NEAR(changed, 500, 5 * std::sqrt(375.0)) << "half are drawn again, half of those change";
}

TEST(Corruption, DamagesAboutTheGivenShareOfWordsAndNothingAtRateZero) {
  TextData data{.name = ""};
  for (int k = 0; k < 200; ++k)
    data.first.push_back("alpha beta gamma delta epsilon zeta eta theta iota kappa");
  for (const Corruption kind : corruptions()) {
    EXPECT_EQ(corrupted(data, kind, 0.0, 1).first, data.first);
    const TextData once = corrupted(data, kind, 0.1, 1);
    EXPECT_EQ(once.first, corrupted(data, kind, 0.1, 1).first);
    EXPECT_NE(once.first, corrupted(data, kind, 0.1, 2).first);
    std::size_t same = 0, total = 0;
    for (std::size_t a = 0; a < data.count(); ++a) {
      same += once.first[a] == data.first[a] ? 1 : 0;
      total += words(once.first[a]).size();
    }
    if (kind == Corruption::WordDropout) {
      EXPECT_NEAR(static_cast<double>(total), 1800.0, 5 * std::sqrt(180.0));
    } else {
      EXPECT_EQ(total, 2000u);
    }
    EXPECT_LT(same, 120u) << name(kind) << ": 0.9^10 = 0.35 of the sentences escape";
    EXPECT_GT(same, 30u);
  }
  for (const std::string& text : corrupted(data, Corruption::WordDropout, 1.0, 1).first)
    EXPECT_EQ(text, "kappa");
}

TEST(BagOfBigrams, LearnsAWordOrderThatNoSingleWordTells) {
  // "not a" / "a not": the label is in the bigram only.
  TextData train{.name = "train"}, dev{.name = "dev"};
  std::vector<double> draws(600);
  NoiseStream(1, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, draws);
  for (std::size_t k = 0; k < 300; ++k) {
    TextData& part = k < 200 ? train : dev;
    const bool one = draws[k] < 0.5;
    part.first.push_back(std::string(draws[300 + k] < 0.5 ? "w " : "v ") +
                         (one ? "left right" : "right left"));
    part.labels.push_back(one ? 1 : 0);
  }
  const BagOfBigrams bag = BagOfBigrams::fit(train, dev);
  const Metrics m = metrics_from_logits(bag.logits(dev), dev.labels, 2);
  EXPECT_EQ(m.accuracy, 1.0);
  EXPECT_LT(m.log_loss, 0.05);
}

TEST(BagOfBigrams, MinimisesThePenalisedLogLoss) {
  // Two features by hand: words a and b, labels that each word leans to; the gradient of the loss at the fit
  // is 0.
  TextData data{.name = ""};
  for (const auto& [text, label, times] : {std::tuple("a", 1, 6), {"a", 0, 2}, {"b", 1, 3}, {"b", 0, 5}})
    for (int k = 0; k < times; ++k) data.first.push_back(text), data.labels.push_back(label);
  const BagOfBigrams bag = BagOfBigrams::fit(data, data, {.smoothing = 1.0, .penalties = {1e-7}});
  const auto odds = bag.log_odds(data);
  EXPECT_NEAR(odds[0], std::log(6.0 / 2.0), 2e-3);
  EXPECT_NEAR(odds.back(), std::log(3.0 / 5.0), 2e-3);
}

TEST(BagOfBigrams, OfPairsSeesWhatTheyShare) {
  TextData train{.name = "", .pairs = true};
  const std::vector<std::string> list{"red", "blue", "green", "grey", "pink", "gold"};
  for (std::size_t a = 0; a < 36; ++a) {
    train.first.push_back(list[a / 6] + " car");
    train.second.push_back(list[a % 6] + " car");
    train.labels.push_back(a / 6 == a % 6 ? 1 : 0);
  }
  const BagOfBigrams bag = BagOfBigrams::fit(train, train);
  EXPECT_EQ(metrics_from_logits(bag.logits(train), train.labels, 2).accuracy, 1.0);
}

}  // namespace
}  // namespace rieszflow::text
