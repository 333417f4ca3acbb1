#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attention/random_features.hpp"

/// A trained Transformer encoder classifier, evaluated.
namespace rieszflow::attention {

/// pre-LN encoder: with x_t = token[id_t] + position[t] (+ token[bigram_t]) (+ match[flag_t] for pairs),
///     x <- x + Wo Attention(Wq n, Wk n, Wv n) + bo,  n = LayerNorm_1(x)      (biases inside Wq, Wk, Wv too)
///     x <- x + W2 gelu(W1 n + b1) + b2,              n = LayerNorm_2(x)      for each layer, then
///     u = mean over valid t of LayerNorm(x_t),  logits = W u + b;
/// pairs: logits = W (u, v, |u - v|, u * v) + b with u, v of the two sentences. LayerNorm has epsilon 1e-5 in
/// the variance, gelu(s) = s (1 + erf(s / sqrt 2)) / 2. A sequence without a valid token has u = 0.
struct EncoderShape {
  std::size_t vocabulary = 0;
  std::size_t max_length = 0;   ///< tokens of one sequence
  std::size_t dimension = 128;  ///< d, a multiple of heads
  std::size_t heads = 4;
  std::size_t layers = 2;
  std::size_t feed_forward = 256;
  std::size_t feature_count = 64;  ///< m of each head; 0 for kinds without features
  AttentionKind kind = AttentionKind::Softmax;
  bool shared_query_key = false;  ///< Wk = Wq and bk = bq
  bool bigrams = false;           ///< a second id of each token: of it and the one before
  bool pairs = false;             ///< two sentences
  std::size_t classes = 2;

  std::size_t head_dimension() const { return dimension / heads; }
  bool operator==(const EncoderShape&) const = default;
};

/// Matrices are (output, input), row-major: y = W x + b.
struct EncoderLayer {
  std::vector<float> norm1_gain, norm1_bias;  ///< (d)
  std::vector<float> query_weight,
      query_bias;  ///< (d, d), (d); head h makes rows h d_head ... (h + 1) d_head - 1
  std::vector<float> key_weight, key_bias;  ///< the same; empty with shared_query_key
  std::vector<float> value_weight, value_bias;
  std::vector<float> output_weight, output_bias;
  std::vector<float> omega;                           ///< (head, m, d_head); empty without features
  std::vector<float> norm2_gain, norm2_bias;          ///< (d)
  std::vector<float> hidden_weight, hidden_bias;      ///< W1 (feed_forward, d), b1 (feed_forward)
  std::vector<float> contract_weight, contract_bias;  ///< W2 (d, feed_forward), b2 (d)
};

struct EncoderWeights {
  EncoderShape shape;
  std::vector<float> token_embedding;     ///< (vocabulary, d)
  std::vector<float> position_embedding;  ///< (max_length, d)
  std::vector<float> match_embedding;     ///< (2, d): not in, in the other sentence; empty without pairs
  std::vector<EncoderLayer> layers;
  std::vector<float> norm_gain, norm_bias;                ///< (d)
  std::vector<float> classifier_weight, classifier_bias;  ///< (classes, d or 4 d), (classes)
};

/// One array of the weights: where it is and what shape it must have. In the order of a model file.
struct WeightArray {
  std::string name;                ///< "layers.0.query_weight", "token_embedding"
  std::vector<std::size_t> shape;  ///< row-major
  std::vector<float>* values;
};
/// All arrays that the shape asks for; resizes `weights.layers`, touches no values.
std::vector<WeightArray> weight_arrays(EncoderWeights& weights);

/// Token sequences of one padded block.
struct TokenBatch {
  std::size_t sequences = 0;            ///< for pairs: sequences 2i and 2i + 1 are the sentences of pair i
  std::size_t length = 0;               ///< padded
  std::vector<std::int32_t> tokens{};   ///< (sequence, length), 0 <= id < vocabulary
  std::vector<std::uint8_t> valid{};    ///< (sequence, length), 1 for a token, 0 for padding
  std::vector<std::int32_t> bigrams{};  ///< as `tokens`; with EncoderShape::bigrams
  std::vector<std::uint8_t>
      match{};  ///< (sequence, length), 1 where the token occurs in the other sentence; pairs
};

struct Logits {
  std::vector<double> values;  ///< (sequence or pair, class)
  AttentionStatus status = AttentionStatus::Fine;
};

/// An encoder ready to evaluate: matrices packed for the processor, float32 with our own kernels.
class Encoder {
 public:
  /// Copies what it needs of the weights, which must have the arrays that weight_arrays names.
  explicit Encoder(const EncoderWeights& weights);
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  /// Logits of each sequence or pair. They do not depend, bit for bit, on what else is in the batch, on the
  /// length that it is padded to, or on the number of threads, over which sequences are spread.
  Logits logits(const TokenBatch& batch, int threads = 1) const;

 private:
  struct Packed;
  std::unique_ptr<const Packed> packed_;
};

/// The same of an encoder made for this one call.
Logits logits(const EncoderWeights& weights, const TokenBatch& batch, int threads = 1);

}  // namespace rieszflow::attention
