#include "experiments/attention/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "analysis/classification.hpp"
#include "core/expects.hpp"

namespace rieszflow::text {

attention::Logits logits(const TextModel& model, const TokenSet& tokens, int threads) {
  const std::size_t classes = model.weights.shape.classes, rows = tokens.count();
  const std::size_t per_row = tokens.pairs ? 2 : 1;
  std::vector<std::size_t> order(rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto length = [&](std::size_t row) { return tokens.sequences[row * per_row].size(); };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return length(a) < length(b); });
  attention::Logits out{.values = std::vector<double>(rows * classes)};
  const attention::Encoder encoder(model.weights);
  constexpr std::size_t block = 256;
  for (std::size_t first = 0; first < rows; first += block) {
    const auto chosen = std::span(order).subspan(first, std::min(block, rows - first));
    const attention::Logits part = encoder.logits(batch(tokens, chosen), threads);
    out.status = std::max(out.status, part.status);
    for (std::size_t k = 0; k < chosen.size(); ++k)
      std::copy_n(part.values.begin() + static_cast<std::ptrdiff_t>(k * classes), classes,
                  out.values.begin() + static_cast<std::ptrdiff_t>(chosen[k] * classes));
  }
  return out;
}

Predictions predict(const TextModel& model, const TextData& data, int threads) {
  expects(data.pairs == model.weights.shape.pairs,
          "sentences for a model of sentences, pairs for one of pairs");
  const std::size_t classes = model.weights.shape.classes;
  const attention::Logits scores =
      logits(model, encode(data, model.vocabulary, model.weights.shape.max_length), threads);
  Predictions out;
  out.status = scores.status;
  out.probabilities = softmax(scores.values, classes, model.temperature);
  out.labels = predictions(out.probabilities, classes);
  return out;
}

std::string prediction_table(const TextModel& model, const TextData& data, const Predictions& predictions) {
  const std::size_t classes = model.weights.shape.classes;
  std::string out = "label";
  for (const std::string& name : model.class_names) out += "\tp_" + name;
  out += data.pairs ? "\tquestion1\tquestion2\n" : "\tsentence\n";
  for (std::size_t a = 0; a < data.count(); ++a) {
    out += model.class_names[static_cast<std::size_t>(predictions.labels[a])];
    for (std::size_t c = 0; c < classes; ++c)
      out += fmt::format("\t{:.6f}", predictions.probabilities[a * classes + c]);
    out += "\t" + data.first[a];
    if (data.pairs) out += "\t" + data.second[a];
    out += "\n";
  }
  return out;
}

}  // namespace rieszflow::text
