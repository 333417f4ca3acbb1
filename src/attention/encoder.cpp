#include "attention/encoder.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "attention/linear_attention.hpp"
#include "core/expects.hpp"

namespace rieszflow::attention {
namespace {

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const Rows> matrix(const std::vector<float>& values, std::size_t rows) {
  return {values.data(), static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(values.size() / rows)};
}

Rows linear(const Rows& x, const std::vector<float>& weight, const std::vector<float>& bias) {
  const Eigen::Map<const Eigen::RowVectorXf> shift(bias.data(), static_cast<Eigen::Index>(bias.size()));
  Rows out = x * matrix(weight, bias.size()).transpose();
  out.rowwise() += shift;
  return out;
}

Rows layer_norm(const Rows& x, const std::vector<float>& gain, const std::vector<float>& bias) {
  Rows out(x.rows(), x.cols());
  for (Eigen::Index t = 0; t < x.rows(); ++t) {
    const double mean = x.row(t).cast<double>().mean();
    const double variance = (x.row(t).cast<double>().array() - mean).square().mean();
    const double scale = 1.0 / std::sqrt(variance + 1e-5);
    for (Eigen::Index k = 0; k < x.cols(); ++k)
      out(t, k) = static_cast<float>((x(t, k) - mean) * scale) * gain[static_cast<std::size_t>(k)] +
                  bias[static_cast<std::size_t>(k)];
  }
  return out;
}

float gelu(float s) { return 0.5F * s * (1.0F + std::erf(s / std::numbers::sqrt2_v<float>)); }

/// Pooled sentence vector of the valid tokens of one sequence.
Eigen::VectorXd encode(const EncoderWeights& w, const TokenBatch& batch, std::size_t sequence,
                       AttentionStatus& status) {
  const EncoderShape& shape = w.shape;
  const std::size_t d = shape.dimension, dh = shape.head_dimension();
  std::vector<std::size_t> places;
  for (std::size_t t = 0; t < batch.length; ++t)
    if (batch.valid[sequence * batch.length + t] != 0) places.push_back(t);
  const auto L = static_cast<Eigen::Index>(places.size());
  if (L == 0) return Eigen::VectorXd::Zero(static_cast<Eigen::Index>(d));
  Rows x(L, static_cast<Eigen::Index>(d));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t at = sequence * batch.length + places[i];
    const auto id = static_cast<std::size_t>(batch.tokens[at]);
    expects(id < shape.vocabulary && places[i] < shape.max_length,
            "ids of the vocabulary, at most max_length tokens");
    for (std::size_t k = 0; k < d; ++k) {
      float value = w.token_embedding[id * d + k] + w.position_embedding[places[i] * d + k];
      if (shape.pairs) value += w.match_embedding[(batch.match[at] != 0 ? d : 0) + k];
      x(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(k)) = value;
    }
  }
  for (const EncoderLayer& layer : w.layers) {
    const Rows n = layer_norm(x, layer.norm1_gain, layer.norm1_bias);
    const Rows q = linear(n, layer.query_weight, layer.query_bias);
    const Rows k = shape.shared_query_key ? q : linear(n, layer.key_weight, layer.key_bias);
    const Rows v = linear(n, layer.value_weight, layer.value_bias);
    Rows mixed(L, static_cast<Eigen::Index>(d));
    const FusedAttention attention(shape.kind, shape.heads, dh, layer.omega);
    status = std::max(status, attention.apply({.length = places.size(),
                                               .token_stride = d,
                                               .queries = q.data(),
                                               .keys = k.data(),
                                               .values = v.data()},
                                              mixed.data(), d));
    x += linear(mixed, layer.output_weight, layer.output_bias);
    const Rows hidden =
        linear(layer_norm(x, layer.norm2_gain, layer.norm2_bias), layer.hidden_weight, layer.hidden_bias)
            .unaryExpr(&gelu);
    x += linear(hidden, layer.contract_weight, layer.contract_bias);
  }
  return layer_norm(x, w.norm_gain, w.norm_bias).cast<double>().colwise().mean().transpose();
}

}  // namespace

std::vector<WeightArray> weight_arrays(EncoderWeights& w) {
  const EncoderShape& s = w.shape;
  expects(s.heads > 0 && s.dimension % s.heads == 0 && s.dimension > 0, "heads that divide the dimension");
  expects(has_features(s.kind) == (s.feature_count > 0), "features for the kinds that have them, else none");
  const std::size_t d = s.dimension, f = s.feed_forward;
  std::vector<WeightArray> out;
  out.push_back({"token_embedding", {s.vocabulary, d}, &w.token_embedding});
  out.push_back({"position_embedding", {s.max_length, d}, &w.position_embedding});
  if (s.pairs) out.push_back({"match_embedding", {2, d}, &w.match_embedding});
  w.layers.resize(s.layers);
  for (std::size_t k = 0; k < s.layers; ++k) {
    EncoderLayer& layer = w.layers[k];
    const std::string at = std::string("layers.").append(std::to_string(k)).append(".");
    out.push_back({at + "norm1_gain", {d}, &layer.norm1_gain});
    out.push_back({at + "norm1_bias", {d}, &layer.norm1_bias});
    out.push_back({at + "query_weight", {d, d}, &layer.query_weight});
    out.push_back({at + "query_bias", {d}, &layer.query_bias});
    if (!s.shared_query_key) {
      out.push_back({at + "key_weight", {d, d}, &layer.key_weight});
      out.push_back({at + "key_bias", {d}, &layer.key_bias});
    }
    out.push_back({at + "value_weight", {d, d}, &layer.value_weight});
    out.push_back({at + "value_bias", {d}, &layer.value_bias});
    out.push_back({at + "output_weight", {d, d}, &layer.output_weight});
    out.push_back({at + "output_bias", {d}, &layer.output_bias});
    if (s.feature_count > 0)
      out.push_back({at + "omega", {s.heads, s.feature_count, d / s.heads}, &layer.omega});
    out.push_back({at + "norm2_gain", {d}, &layer.norm2_gain});
    out.push_back({at + "norm2_bias", {d}, &layer.norm2_bias});
    out.push_back({at + "hidden_weight", {f, d}, &layer.hidden_weight});
    out.push_back({at + "hidden_bias", {f}, &layer.hidden_bias});
    out.push_back({at + "contract_weight", {d, f}, &layer.contract_weight});
    out.push_back({at + "contract_bias", {d}, &layer.contract_bias});
  }
  out.push_back({"norm_gain", {d}, &w.norm_gain});
  out.push_back({"norm_bias", {d}, &w.norm_bias});
  out.push_back({"classifier_weight", {s.classes, s.pairs ? 4 * d : d}, &w.classifier_weight});
  out.push_back({"classifier_bias", {s.classes}, &w.classifier_bias});
  return out;
}

Logits logits(const EncoderWeights& w, const TokenBatch& batch, int) {
  const EncoderShape& shape = w.shape;
  const std::size_t count = batch.sequences * batch.length, per_row = shape.pairs ? 2 : 1;
  expects(batch.tokens.size() == count && batch.valid.size() == count &&
              (!shape.pairs || (batch.match.size() == count && batch.sequences % 2 == 0)),
          "one token, one validity (and one match) per place");
  Logits out;
  const Eigen::MatrixXd classifier = matrix(w.classifier_weight, shape.classes).cast<double>();
  for (std::size_t row = 0; row < batch.sequences / per_row; ++row) {
    Eigen::VectorXd pooled = encode(w, batch, row * per_row, out.status);
    if (shape.pairs) {
      const Eigen::VectorXd u = pooled, v = encode(w, batch, 2 * row + 1, out.status);
      pooled.resize(4 * u.size());
      pooled << u, v, (u - v).cwiseAbs(), u.cwiseProduct(v);
    }
    const Eigen::VectorXd scores = classifier * pooled;
    for (std::size_t c = 0; c < shape.classes; ++c)
      out.values.push_back(scores[static_cast<Eigen::Index>(c)] + w.classifier_bias[c]);
  }
  return out;
}

}  // namespace rieszflow::attention
