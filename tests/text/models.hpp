#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "core/noise.hpp"
#include "experiments/attention/model_file.hpp"

namespace rieszflow::text {

/// Weights of the given shape: Gaussians of standard deviation inputs^-1/2, gains near 1.
inline attention::EncoderWeights random_weights(const attention::EncoderShape& shape, std::uint64_t seed) {
  attention::EncoderWeights weights;
  weights.shape = shape;
  std::uint64_t which = 0;
  for (const attention::WeightArray& array : attention::weight_arrays(weights)) {
    std::size_t size = 1;
    for (const std::size_t extent : array.shape) size *= extent;
    std::vector<double> numbers(size);
    NoiseStream(seed, NoisePurpose::ReferenceSample).gaussians(0, 0, which++, numbers);
    const bool is_gain = array.name.ends_with("gain"), is_omega = array.name.ends_with("omega");
    const double scale = is_omega ? 1.0 : 1.0 / std::sqrt(static_cast<double>(array.shape.back()));
    array.values->clear();
    for (const double number : numbers)
      array.values->push_back(static_cast<float>(is_gain ? 1.0 + 0.1 * number : scale * number));
  }
  return weights;
}

/// A small model of sentences or pairs over a few words.
inline TextModel small_model(attention::AttentionKind kind, bool pairs, std::uint64_t seed = 1) {
  TextModel model;
  using Bigrams = std::vector<Vocabulary::Bigram>;
  model.vocabulary =
      Vocabulary({"good", "bad", "film", "^un", "+a"}, 3, pairs ? Bigrams{{2, 4}, {3, 4}} : Bigrams{});
  model.weights =
      random_weights({.vocabulary = model.vocabulary.size() * (pairs ? 2 : 1),
                      .max_length = 12,
                      .dimension = 16,
                      .heads = 2,
                      .layers = 2,
                      .feed_forward = 24,
                      .feature_count = attention::has_features(kind) ? std::size_t{10} : std::size_t{0},
                      .kind = kind,
                      .shared_query_key = pairs,
                      .bigrams = pairs,
                      .pairs = pairs},
                     seed);
  model.temperature = 1.25;
  model.class_names = {"negative", "positive"};
  model.description = "a test";
  return model;
}

}  // namespace rieszflow::text
