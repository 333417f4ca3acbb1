#include "attention/encoder.hpp"

#include <algorithm>
#include <cmath>

#include "attention/linear_attention.hpp"
#include "attention/simd/feature_kernels.hpp"
#include "core/expects.hpp"

namespace rieszflow::attention {
namespace {

/// y = W x + b with W transposed and its columns padded, as the kernels read it.
struct Affine {
  std::size_t inputs = 0, outputs = 0, columns = 0;
  std::vector<float> weight, bias;

  Affine() = default;
  Affine(const std::vector<float>& matrix, const std::vector<float>& shift)
      : inputs(matrix.size() / shift.size()),
        outputs(shift.size()),
        columns(simd::padded(shift.size())),
        weight(inputs * columns, 0.0F),
        bias(columns, 0.0F) {
    std::copy(shift.begin(), shift.end(), bias.begin());
    for (std::size_t o = 0; o < outputs; ++o)
      for (std::size_t i = 0; i < inputs; ++i) weight[i * columns + o] = matrix[o * inputs + i];
  }

  /// x and out: rows `stride`, `out_stride` apart, the latter at least `columns`.
  void operator()(std::size_t rows, const float* x, std::size_t stride, float* out, std::size_t out_stride,
                  bool adds = false) const {
    simd::kernels().affine(rows, inputs, columns, x, stride, weight.data(), bias.data(), adds, out,
                           out_stride);
  }
};

struct Layer {
  Affine query, key, value, output, hidden, contract;
  FusedAttention attention;
  std::vector<float> norm1_gain, norm1_bias, norm2_gain, norm2_bias;
};

}  // namespace

struct Encoder::Packed {
  EncoderShape shape;
  std::vector<float> token_embedding, position_embedding, match_embedding, norm_gain, norm_bias;
  std::vector<Layer> layers;
  std::vector<double> classifier_weight, classifier_bias;

  /// Mean of the normalised valid tokens of one sequence. (d)
  std::vector<double> encode(const TokenBatch& batch, std::size_t sequence, AttentionStatus& status) const;
};

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

Encoder::Encoder(const EncoderWeights& weights) {
  EncoderWeights w = weights;
  for (const WeightArray& array : weight_arrays(w)) {
    std::size_t size = 1;
    for (const std::size_t extent : array.shape) size *= extent;
    expects(array.values->size() == size, "weights of the shape");
  }
  auto packed = std::make_unique<Packed>();
  packed->shape = w.shape;
  for (EncoderLayer& layer : w.layers) {
    const Affine query(layer.query_weight, layer.query_bias);
    packed->layers.push_back(
        {.query = query,
         .key = w.shape.shared_query_key ? Affine() : Affine(layer.key_weight, layer.key_bias),
         .value = Affine(layer.value_weight, layer.value_bias),
         .output = Affine(layer.output_weight, layer.output_bias),
         .hidden = Affine(layer.hidden_weight, layer.hidden_bias),
         .contract = Affine(layer.contract_weight, layer.contract_bias),
         .attention = FusedAttention(w.shape.kind, w.shape.heads, w.shape.head_dimension(), layer.omega),
         .norm1_gain = std::move(layer.norm1_gain),
         .norm1_bias = std::move(layer.norm1_bias),
         .norm2_gain = std::move(layer.norm2_gain),
         .norm2_bias = std::move(layer.norm2_bias)});
  }
  packed->token_embedding = std::move(w.token_embedding);
  packed->position_embedding = std::move(w.position_embedding);
  packed->match_embedding = std::move(w.match_embedding);
  packed->norm_gain = std::move(w.norm_gain);
  packed->norm_bias = std::move(w.norm_bias);
  packed->classifier_weight.assign(w.classifier_weight.begin(), w.classifier_weight.end());
  packed->classifier_bias.assign(w.classifier_bias.begin(), w.classifier_bias.end());
  packed_ = std::move(packed);
}

Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

std::vector<double> Encoder::Packed::encode(const TokenBatch& batch, std::size_t sequence,
                                            AttentionStatus& status) const {
  const simd::Kernels& kernels = simd::kernels();
  const std::size_t d = shape.dimension, width = simd::padded(d), f = simd::padded(shape.feed_forward);
  std::vector<std::size_t> places;
  for (std::size_t t = 0; t < batch.length; ++t)
    if (batch.valid[sequence * batch.length + t] != 0) places.push_back(t);
  const std::size_t L = places.size();
  std::vector<double> mean(d, 0.0);
  if (L == 0) return mean;
  std::vector<float> x(L * width, 0.0F), normal(L * width), q(L * width), k, v(L * width), mixed(L * width),
      hidden(L * f);
  if (!shape.shared_query_key) k.resize(L * width);
  for (std::size_t i = 0; i < L; ++i) {
    const std::size_t at = sequence * batch.length + places[i];
    const auto id = static_cast<std::size_t>(batch.tokens[at]);
    const auto bigram = shape.bigrams ? static_cast<std::size_t>(batch.bigrams[at]) : 0;
    for (std::size_t c = 0; c < d; ++c) {
      x[i * width + c] = token_embedding[id * d + c] + position_embedding[places[i] * d + c];
      if (shape.bigrams) x[i * width + c] += token_embedding[bigram * d + c];
      if (shape.pairs) x[i * width + c] += match_embedding[(batch.match[at] != 0 ? d : 0) + c];
    }
  }
  for (const Layer& layer : layers) {
    kernels.layer_norm(L, d, x.data(), width, layer.norm1_gain.data(), layer.norm1_bias.data(),
                       normal.data());
    layer.query(L, normal.data(), width, q.data(), width);
    if (!shape.shared_query_key) layer.key(L, normal.data(), width, k.data(), width);
    layer.value(L, normal.data(), width, v.data(), width);
    const TokenRows rows{.length = L,
                         .token_stride = width,
                         .queries = q.data(),
                         .keys = shape.shared_query_key ? q.data() : k.data(),
                         .values = v.data()};
    status = std::max(status, layer.attention.apply(rows, mixed.data(), width));
    layer.output(L, mixed.data(), width, x.data(), width, true);
    kernels.layer_norm(L, d, x.data(), width, layer.norm2_gain.data(), layer.norm2_bias.data(),
                       normal.data());
    layer.hidden(L, normal.data(), width, hidden.data(), f);
    kernels.gelu(L * f, hidden.data());
    layer.contract(L, hidden.data(), f, x.data(), width, true);
  }
  kernels.layer_norm(L, d, x.data(), width, norm_gain.data(), norm_bias.data(), normal.data());
  for (std::size_t i = 0; i < L; ++i)
    for (std::size_t c = 0; c < d; ++c) mean[c] += static_cast<double>(normal[i * width + c]);
  for (double& value : mean) value /= static_cast<double>(L);
  return mean;
}

Logits Encoder::logits(const TokenBatch& batch, int threads) const {
  const EncoderShape& shape = packed_->shape;
  const std::size_t count = batch.sequences * batch.length, per_row = shape.pairs ? 2 : 1;
  expects(batch.tokens.size() == count && batch.valid.size() == count &&
              (!shape.bigrams || batch.bigrams.size() == count) &&
              (!shape.pairs || (batch.match.size() == count && batch.sequences % 2 == 0)),
          "one token, one validity (and one bigram, one match) per place");
  for (std::size_t at = 0; at < count; ++at)
    expects(batch.valid[at] == 0 ||
                (batch.tokens[at] >= 0 && at % batch.length < shape.max_length &&
                 static_cast<std::size_t>(batch.tokens[at]) < shape.vocabulary &&
                 (!shape.bigrams || (batch.bigrams[at] >= 0 &&
                                     static_cast<std::size_t>(batch.bigrams[at]) < shape.vocabulary))),
            "ids of the vocabulary, at most max_length tokens");
  const std::size_t rows = batch.sequences / per_row, classes = shape.classes;
  Logits out{.values = std::vector<double>(rows * classes)};
  std::vector<AttentionStatus> status(rows, AttentionStatus::Fine);
#pragma omp parallel for schedule(dynamic) num_threads(std::max(threads, 1)) if (threads > 1)
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<double> features = packed_->encode(batch, row * per_row, status[row]);
    if (shape.pairs) {
      const std::vector<double> u = features, v = packed_->encode(batch, 2 * row + 1, status[row]);
      features.insert(features.end(), v.begin(), v.end());
      for (std::size_t c = 0; c < u.size(); ++c) features.push_back(std::abs(u[c] - v[c]));
      for (std::size_t c = 0; c < u.size(); ++c) features.push_back(u[c] * v[c]);
    }
    for (std::size_t c = 0; c < classes; ++c) {
      double score = packed_->classifier_bias[c];
      for (std::size_t i = 0; i < features.size(); ++i)
        score += packed_->classifier_weight[c * features.size() + i] * features[i];
      out.values[row * classes + c] = score;
    }
  }
  for (const AttentionStatus one : status) out.status = std::max(out.status, one);
  return out;
}

Logits logits(const EncoderWeights& weights, const TokenBatch& batch, int threads) {
  return Encoder(weights).logits(batch, threads);
}

}  // namespace rieszflow::attention
