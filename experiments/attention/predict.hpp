#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "experiments/attention/model_file.hpp"

namespace rieszflow::text {

struct Predictions {
  std::vector<double> probabilities;  ///< (row, class), at the model's temperature
  std::vector<int> labels;            ///< (row), the first of equals
  attention::AttentionStatus status = attention::AttentionStatus::Fine;
};

/// Logits (row, class) before the temperature; rows are evaluated in blocks of similar length.
attention::Logits logits(const TextModel& model, const TokenSet& tokens, int threads = 1);

/// Class probabilities of each row of `data`, which must be pairs where the model is for pairs.
Predictions predict(const TextModel& model, const TextData& data, int threads = 1);

/// A table: label, one probability per class, then the sentence or the two sentences.
std::string prediction_table(const TextModel& model, const TextData& data, const Predictions& predictions);

}  // namespace rieszflow::text
