#include "attention/encoder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "../text/models.hpp"

namespace rieszflow::attention {
namespace {

using text::random_weights;

EncoderShape shape_of(AttentionKind kind, bool pairs, bool shared) {
  return {.vocabulary = 20,
          .max_length = 10,
          .dimension = 24,
          .heads = 3,
          .layers = 2,
          .feed_forward = 20,
          .feature_count = has_features(kind) ? std::size_t{9} : std::size_t{0},
          .kind = kind,
          .shared_query_key = shared,
          .bigrams = pairs,
          .pairs = pairs,
          .classes = 3};
}

// The formulas of encoder.hpp once more, in double, one number at a time.

using Row = std::vector<double>;
using Rows = std::vector<Row>;

Row affine(const std::vector<float>& weight, const std::vector<float>& bias, const Row& x) {
  Row y(bias.begin(), bias.end());
  for (std::size_t o = 0; o < y.size(); ++o)
    for (std::size_t i = 0; i < x.size(); ++i) y[o] += static_cast<double>(weight[o * x.size() + i]) * x[i];
  return y;
}

Row normalised(const Row& x, const std::vector<float>& gain, const std::vector<float>& bias) {
  const auto n = static_cast<double>(x.size());
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double variance = 0.0;
  for (const double value : x) variance += (value - mean) * (value - mean) / n;
  Row y(x.size());
  for (std::size_t k = 0; k < x.size(); ++k)
    y[k] = (x[k] - mean) / std::sqrt(variance + 1e-5) * gain[k] + bias[k];
  return y;
}

/// Of a token and the one before; any numbers do.
std::int32_t bigram(const std::vector<std::int32_t>& ids, std::size_t t) {
  return t == 0 ? 0 : (ids[t - 1] + 3 * ids[t]) % 20;
}

Row pooled(const EncoderWeights& w, const std::vector<std::int32_t>& ids,
           const std::vector<std::uint8_t>& match) {
  const std::size_t d = w.shape.dimension, L = ids.size(), dh = w.shape.head_dimension();
  Rows x(L, Row(d));
  for (std::size_t t = 0; t < L; ++t)
    for (std::size_t k = 0; k < d; ++k) {
      x[t][k] = static_cast<double>(w.token_embedding[static_cast<std::size_t>(ids[t]) * d + k]) +
                w.position_embedding[t * d + k];
      if (w.shape.bigrams) x[t][k] += w.token_embedding[static_cast<std::size_t>(bigram(ids, t)) * d + k];
      if (w.shape.pairs) x[t][k] += w.match_embedding[match[t] * d + k];
    }
  for (const EncoderLayer& layer : w.layers) {
    Rows q, k, v;
    for (const Row& row : x) {
      const Row n = normalised(row, layer.norm1_gain, layer.norm1_bias);
      q.push_back(affine(layer.query_weight, layer.query_bias, n));
      k.push_back(w.shape.shared_query_key ? q.back() : affine(layer.key_weight, layer.key_bias, n));
      v.push_back(affine(layer.value_weight, layer.value_bias, n));
    }
    Rows mixed(L, Row(d));
    for (std::size_t h = 0; h < w.shape.heads; ++h) {
      const auto head = [&](const Rows& rows) {
        Row out;
        for (const Row& row : rows)
          out.insert(out.end(), row.begin() + static_cast<std::ptrdiff_t>(h * dh),
                     row.begin() + static_cast<std::ptrdiff_t>((h + 1) * dh));
        return out;
      };
      const Row hq = head(q), hk = head(k), hv = head(v);
      Row out(L * dh), omega;
      const std::size_t size = w.shape.feature_count * dh;
      omega.assign(layer.omega.begin() + static_cast<std::ptrdiff_t>(h * size),
                   layer.omega.begin() + static_cast<std::ptrdiff_t>((h + 1) * size));
      reference_attention(
          w.shape.kind, omega,
          {.length = L, .dimension = dh, .value_dimension = dh, .queries = hq, .keys = hk, .values = hv},
          out);
      for (std::size_t t = 0; t < L; ++t)
        for (std::size_t c = 0; c < dh; ++c) mixed[t][h * dh + c] = out[t * dh + c];
    }
    for (std::size_t t = 0; t < L; ++t) {
      const Row change = affine(layer.output_weight, layer.output_bias, mixed[t]);
      for (std::size_t c = 0; c < d; ++c) x[t][c] += change[c];
      Row hidden = affine(layer.hidden_weight, layer.hidden_bias,
                          normalised(x[t], layer.norm2_gain, layer.norm2_bias));
      for (double& s : hidden) s = 0.5 * s * (1.0 + std::erf(s / std::sqrt(2.0)));
      const Row added = affine(layer.contract_weight, layer.contract_bias, hidden);
      for (std::size_t c = 0; c < d; ++c) x[t][c] += added[c];
    }
  }
  Row mean(d, 0.0);
  for (const Row& row : x) {
    const Row n = normalised(row, w.norm_gain, w.norm_bias);
    for (std::size_t c = 0; c < d; ++c) mean[c] += n[c] / static_cast<double>(L);
  }
  return mean;
}

TokenBatch batch_of(const std::vector<std::vector<std::int32_t>>& sequences,
                    const std::vector<std::vector<std::uint8_t>>& match, std::size_t length) {
  TokenBatch out{.sequences = sequences.size(), .length = length};
  for (std::size_t s = 0; s < sequences.size(); ++s)
    for (std::size_t t = 0; t < length; ++t) {
      const bool there = t < sequences[s].size();
      out.tokens.push_back(there ? sequences[s][t] : 0);
      out.bigrams.push_back(there ? bigram(sequences[s], t) : 0);
      out.valid.push_back(there ? 1 : 0);
      if (!match.empty()) out.match.push_back(there ? match[s][t] : 1);
    }
  return out;
}

const std::vector<std::vector<std::int32_t>> sequences{
    {3, 4, 5, 6, 2}, {7}, {9, 9, 12, 19, 2, 3, 1, 8}, {11, 4, 6}};
const std::vector<std::vector<std::uint8_t>> matches{
    {0, 1, 0, 0, 1}, {1}, {0, 0, 0, 1, 1, 0, 1, 0}, {0, 1, 1}};

TEST(Encoder, IsItsFormulaInDoubleForAllKinds) {
  for (const AttentionKind kind : attention_kinds()) {
    for (const bool pairs : {false, true}) {
      const EncoderWeights w = random_weights(shape_of(kind, pairs, pairs), 1);
      const Logits result = logits(w, batch_of(sequences, pairs ? matches : decltype(matches){}, 10));
      EXPECT_EQ(result.status, AttentionStatus::Fine);
      std::vector<Row> u;
      for (std::size_t s = 0; s < sequences.size(); ++s) u.push_back(pooled(w, sequences[s], matches[s]));
      std::size_t at = 0;
      for (std::size_t s = 0; s < sequences.size(); s += pairs ? 2 : 1) {
        Row features = u[s];
        if (pairs) {
          features.insert(features.end(), u[s + 1].begin(), u[s + 1].end());
          for (std::size_t c = 0; c < u[s].size(); ++c) features.push_back(std::abs(u[s][c] - u[s + 1][c]));
          for (std::size_t c = 0; c < u[s].size(); ++c) features.push_back(u[s][c] * u[s + 1][c]);
        }
        for (const double expected : affine(w.classifier_weight, w.classifier_bias, features))
          EXPECT_NEAR(result.values[at++], expected, 1e-5) << name(kind);
      }
      EXPECT_EQ(at, result.values.size());
    }
  }
}

TEST(Encoder, ItsLogitsDependOnNeitherBatchNorPaddingNorThreads) {
  for (const AttentionKind kind : attention_kinds()) {
    const EncoderWeights w = random_weights(shape_of(kind, false, false), 2);
    const Logits all = logits(w, batch_of(sequences, {}, 8));
    EXPECT_EQ(all.values, logits(w, batch_of(sequences, {}, 10)).values);
    EXPECT_EQ(all.values, logits(w, batch_of(sequences, {}, 8), 3).values);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const Logits one = logits(w, batch_of({sequences[s]}, {}, sequences[s].size()));
      for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(one.values[c], all.values[3 * s + c]) << name(kind);
    }
  }
}

TEST(Encoder, OfASequenceWithoutTokensGivesTheBiases) {
  const EncoderWeights w = random_weights(shape_of(AttentionKind::Favor, false, false), 3);
  TokenBatch empty{.sequences = 1, .length = 4, .tokens = {0, 0, 0, 0}, .valid = {0, 0, 0, 0}};
  const Logits result = logits(w, empty);
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(result.values[c], w.classifier_bias[c]);
}

}  // namespace
}  // namespace rieszflow::attention
