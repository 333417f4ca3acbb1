#include "experiments/attention/training/encoder_training.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <torch/torch.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <climits>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/classification.hpp"
#include "core/expects.hpp"
#include "core/noise.hpp"
#include "experiments/attention/training/training_kernels.hpp"

namespace rieszflow::attention {
namespace {

using text::TokenSet;
using torch::Tensor;

/// Below this length weights between all pairs of tokens are cheaper than sums over features; both are the
/// same numbers.
constexpr std::int64_t longest_of_pairs = 48;
/// Added to the denominators, which are sums of positive terms: padding alone has none.
constexpr double no_weight = 1e-30;

// Of the naive-Bayes start: its logits are then about half the sums of the log-odds of a sentence.
constexpr double log_odds_in_embedding = 0.1;
constexpr double log_odds_in_classifier = 0.1;
/// Of the matrices that write to the residual stream, at a naive-Bayes start: what they make of random weights
/// would outweigh the log-odds.
constexpr double branch_scale = 0.01;

std::vector<std::int64_t> sizes(const std::vector<std::size_t>& shape) {
  return {shape.begin(), shape.end()};
}

/// The weights as leaves of LibTorch's graph, which are views of one buffer, so that the optimiser is one
/// sweep.
struct Parameters {
  EncoderShape shape;
  std::vector<std::string> names;
  std::vector<std::size_t> offsets{0};  ///< (array + 1)
  std::vector<float> values, gradients;
  std::map<std::string, Tensor, std::less<>> tensors;

  Parameters(const EncoderWeights& weights, bool training, bool learn_omega) : shape(weights.shape) {
    EncoderWeights copy = weights;
    const std::vector<WeightArray> arrays = weight_arrays(copy);
    for (const WeightArray& array : arrays) {
      names.push_back(array.name);
      values.insert(values.end(), array.values->begin(), array.values->end());
      offsets.push_back(values.size());
    }
    gradients.assign(training ? values.size() : 0, 0.0F);
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      Tensor view = torch::from_blob(values.data() + offsets[a], sizes(arrays[a].shape), torch::kFloat);
      if (training && (learn_omega || !is_omega(a))) {
        view.requires_grad_(true);
        view.mutable_grad() = torch::from_blob(gradients.data() + offsets[a], view.sizes(), torch::kFloat);
      }
      tensors.emplace(arrays[a].name, view);
    }
  }
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  void add_embedding_gradient(const Tensor& tokens, const Tensor& gradient) {
    const std::size_t d = shape.dimension;
    const Tensor rows = gradient.contiguous();
    const auto place = std::find(names.begin(), names.end(), "token_embedding") - names.begin();
    float* const table = gradients.data() + offsets[static_cast<std::size_t>(place)];
    for (std::int64_t k = 0; k < tokens.numel(); ++k) {
      float* const to = table + static_cast<std::size_t>(tokens.data_ptr<std::int64_t>()[k]) * d;
      const float* const from = rows.data_ptr<float>() + static_cast<std::size_t>(k) * d;
      for (std::size_t c = 0; c < d; ++c) to[c] += from[c];
    }
  }

  bool is_omega(std::size_t array) const { return names[array].ends_with("omega"); }
  bool is_embedding(std::size_t array) const { return names[array].ends_with("embedding"); }
  /// Matrices and embeddings shrink; gains and biases do not.
  bool decays(std::size_t array) const {
    return names[array].ends_with("weight") || names[array].ends_with("embedding");
  }
  const Tensor& at(std::string_view name) const {
    const auto found = tensors.find(name);
    expects(found != tensors.end(), "a weight of that name");
    return found->second;
  }
  EncoderWeights weights(std::span<const float> from) const {
    EncoderWeights out;
    out.shape = shape;
    const std::vector<WeightArray> arrays = weight_arrays(out);
    for (std::size_t a = 0; a < arrays.size(); ++a)
      arrays[a].values->assign(from.begin() + static_cast<std::ptrdiff_t>(offsets[a]),
                               from.begin() + static_cast<std::ptrdiff_t>(offsets[a + 1]));
    return out;
  }
};

/// Dropout whose masks are keyed by (seed, step, site): the same for every kind of attention.
class Dropout {
 public:
  Dropout() = default;
  Dropout(double rate, std::uint64_t seed, std::uint64_t step) : rate_(rate), seed_(seed), step_(step) {}
  Tensor operator()(const Tensor& x) {
    if (rate_ == 0.0) return x;
    std::array<double, 1> draw{};
    NoiseStream(seed_, NoisePurpose::Dropout).uniforms(0, step_, site_++, draw);
    Tensor mask = torch::empty(x.sizes(), torch::kFloat);
    fill_dropout_mask(std::bit_cast<std::uint64_t>(draw[0]) * 0x9e3779b97f4a7c15ULL, rate_,
                      {mask.data_ptr<float>(), static_cast<std::size_t>(mask.numel())});
    return x * mask;
  }

 private:
  double rate_ = 0.0;
  std::uint64_t seed_ = 0, step_ = 0, site_ = 0;
};

/// phi of queries or keys; x: (head, row, d) already times d^(-1/4), omega: (head, m, d); out (head, row,
/// component). `largest_log` is subtracted from log phi of favor; the quotient of attention does not depend
/// on it.
Tensor scores_of(const Tensor& omega, const Tensor& x) { return torch::bmm(x, omega.transpose(1, 2)); }

Tensor plain_features(AttentionKind kind, const Tensor& omega, const Tensor& x) {
  const Tensor scores = scores_of(omega, x);
  switch (kind) {
    case AttentionKind::Favor:
      return (scores - 0.5 * x.square().sum(-1, true)).exp();
    case AttentionKind::PorfSoftplus:
      return torch::softplus(scores);
    case AttentionKind::SoftmaxFeatures:
      return torch::cat({scores, -scores}, -1).softmax(-1);
    default:
      expects(false, "a kind with features");
  }
  return {};
}

/// One batch on its way through the encoder.
struct Pass {
  const Parameters& p;
  Dropout dropout;
  std::int64_t sequences, length;
  Tensor mask;               ///< (sequence, length, 1), 1 for a token
  Tensor queries{}, keys{};  ///< (head, sequence * length, d_head), scaled; of `watched`
  std::int64_t watched = -1;
  /// Rows of the token embedding, (sequence, 1 or 2 ids, length, d): a leaf of its own. LibTorch would make a
  /// gradient of the whole table, most of it zeros, at every step.
  Tensor embedded{};

  /// (sequence * length, d) of the layer's normalised input -> the same of its mixed values.
  Tensor attention(const Tensor& n, const std::string& layer, std::int64_t index) {
    const EncoderShape& shape = p.shape;
    const auto heads = static_cast<std::int64_t>(shape.heads), d = static_cast<std::int64_t>(shape.dimension),
               dh = d / heads;
    const auto weight = [&](const char* name) { return p.at(layer + name); };
    if (shape.kind == AttentionKind::Uniform && watched != index) {
      const Tensor v =
          torch::linear(n, weight("value_weight"), weight("value_bias")).view({sequences, length, d});
      const Tensor mean = (v * mask).sum(1, true) / (mask.sum(1, true) + no_weight);
      return mean.expand({sequences, length, d}).reshape({sequences * length, d});
    }
    std::vector<Tensor> matrices{weight("query_weight")}, shifts{weight("query_bias")};
    if (!shape.shared_query_key) {
      matrices.push_back(weight("key_weight"));
      shifts.push_back(weight("key_bias"));
    }
    matrices.push_back(weight("value_weight"));
    shifts.push_back(weight("value_bias"));
    const auto parts = static_cast<std::int64_t>(matrices.size());
    const Tensor all = torch::linear(n, torch::cat(matrices), torch::cat(shifts))
                           .view({sequences, length, parts, heads, dh})
                           .permute({2, 3, 0, 1, 4})
                           .contiguous();
    const Tensor v = all[parts - 1].reshape({heads * sequences, length, dh});
    const double scale = std::pow(static_cast<double>(dh), -0.25);
    const Tensor scaled = all.narrow(0, 0, parts - 1) * scale;  // (1 or 2, head, sequence, length, d_head)
    const Tensor x = scaled[0].reshape({heads, sequences * length, dh});
    const Tensor y = parts == 2 ? x : scaled[1].reshape({heads, sequences * length, dh});
    if (watched == index) {
      queries = x;
      keys = y;
    }
    const Tensor valid = mask.view({1, sequences, length, 1}).expand({heads, sequences, length, 1});
    Tensor out;
    if (shape.kind == AttentionKind::Uniform) {
      const Tensor flat = valid.reshape({heads * sequences, length, 1});
      out =
          ((v * flat).sum(1, true) / (flat.sum(1, true) + no_weight)).expand({heads * sequences, length, dh});
    } else if (shape.kind == AttentionKind::Softmax) {
      const Tensor scores = torch::bmm(x.view({heads * sequences, length, dh}),
                                       y.view({heads * sequences, length, dh}).transpose(1, 2));
      const Tensor absent = (1.0 - valid.reshape({heads * sequences, 1, length})) * -1e30;
      out = torch::bmm((scores + absent).softmax(-1), v);
    } else {
      out = by_features(x, y, v, valid, weight("omega"));
    }
    return out.view({heads, sequences, length, dh}).permute({1, 2, 0, 3}).reshape({sequences * length, d});
  }

  Tensor by_features(const Tensor& x, const Tensor& y, const Tensor& v, const Tensor& valid,
                     const Tensor& omega) {
    const std::int64_t heads = omega.size(0), dh = x.size(2);
    Tensor phi_x, phi_y;
    if (p.shape.kind == AttentionKind::Favor) {
      // -|x|^2/2 and the largest score of a query cancel in its quotient; of keys, the largest over the
      // sequence.
      const Tensor query = scores_of(omega, x);
      phi_x = (query - query.detach().amax(-1, true)).exp();
      const Tensor log_key =
          (scores_of(omega, y) - 0.5 * y.square().sum(-1, true)).view({heads, sequences, length, -1});
      const Tensor largest = (log_key.detach() + (valid - 1.0) * 1e30).amax({2, 3}, true);
      phi_y = (log_key - largest + (valid - 1.0) * 1e30).exp();
    } else {
      phi_x = plain_features(p.shape.kind, omega, x);
      phi_y = plain_features(p.shape.kind, omega, y).view({heads, sequences, length, -1}) * valid;
    }
    const std::int64_t components = phi_x.size(-1);
    phi_x = phi_x.view({heads * sequences, length, components});
    phi_y = phi_y.view({heads * sequences, length, components});
    if (length <= longest_of_pairs) {
      const Tensor weights = torch::bmm(phi_x, phi_y.transpose(1, 2));
      return torch::bmm(weights, v) / (weights.sum(-1, true) + no_weight);
    }
    const Tensor sums =
        torch::bmm(phi_y.transpose(1, 2), torch::cat({v, torch::ones_like(v.narrow(2, 0, 1))}, 2));
    const Tensor both = torch::bmm(phi_x, sums);
    return both.narrow(2, 0, dh) / (both.narrow(2, dh, 1) + no_weight);
  }

  Tensor norm(const Tensor& x, const std::string& name) const {
    return torch::layer_norm(x, {static_cast<std::int64_t>(p.shape.dimension)}, p.at(name + "_gain"),
                             p.at(name + "_bias"), 1e-5);
  }

  /// Logits; (row, class).
  Tensor operator()(const Tensor& tokens, const Tensor& match) {  // tokens: (sequence, 1 or 2 ids, length)
    const EncoderShape& shape = p.shape;
    const auto d = static_cast<std::int64_t>(shape.dimension);
    embedded = torch::embedding(p.at("token_embedding").detach(), tokens);
    if (torch::GradMode::is_enabled()) embedded.requires_grad_(true);
    Tensor x = embedded.sum(1) + p.at("position_embedding").narrow(0, 0, length).unsqueeze(0);
    if (shape.pairs) x = x + torch::embedding(p.at("match_embedding"), match);
    x = dropout(x).view({sequences * length, d});
    for (std::size_t index = 0; index < shape.layers; ++index) {
      std::string layer = "layers.";
      layer.append(std::to_string(index)).append(".");
      const Tensor mixed = attention(norm(x, layer + "norm1"), layer, static_cast<std::int64_t>(index));
      x = x + dropout(torch::linear(mixed, p.at(layer + "output_weight"), p.at(layer + "output_bias")));
      const Tensor hidden = torch::gelu(torch::linear(norm(x, layer + "norm2"), p.at(layer + "hidden_weight"),
                                                      p.at(layer + "hidden_bias")));
      x = x + dropout(torch::linear(hidden, p.at(layer + "contract_weight"), p.at(layer + "contract_bias")));
    }
    const Tensor tops = norm(x, "norm").view({sequences, length, d});
    Tensor pooled = (tops * mask).sum(1) / (mask.sum(1) + no_weight);
    if (shape.pairs) {
      const Tensor two = pooled.view({sequences / 2, 2, d});
      const Tensor u = two.select(1, 0), v = two.select(1, 1);
      pooled = torch::cat({u, v, (u - v).abs(), u * v}, 1);
    }
    return torch::linear(dropout(pooled), p.at("classifier_weight"), p.at("classifier_bias"));
  }
};

struct BatchTensors {
  std::int64_t sequences = 0, length = 0;
  Tensor tokens;  ///< (sequence, 1 or 2 ids, length): of the token, of its bigram
  Tensor match, mask, labels;
};

/// Word dropout is keyed by (seed, epoch, row): independent of the order of the rows.
BatchTensors tensors(const TokenSet& set, std::span<const std::size_t> rows, double word_dropout = 0.0,
                     std::uint64_t seed = 0, std::uint64_t epoch = 0) {
  const TokenBatch batch = text::batch(set, rows);
  BatchTensors out;
  out.sequences = static_cast<std::int64_t>(batch.sequences);
  out.length = static_cast<std::int64_t>(batch.length);
  const bool bigrams = !batch.bigrams.empty();
  out.tokens = torch::empty({out.sequences, bigrams ? 2 : 1, out.length}, torch::kLong);
  out.mask = torch::empty({out.sequences, out.length, 1}, torch::kFloat);
  auto* tokens = out.tokens.data_ptr<std::int64_t>();
  auto* mask = out.mask.data_ptr<float>();
  const std::size_t stride = (bigrams ? 2 : 1) * batch.length;
  for (std::size_t k = 0; k < batch.tokens.size(); ++k) {
    std::int64_t* const at = tokens + k / batch.length * stride + k % batch.length;
    *at = batch.tokens[k];
    if (bigrams) at[batch.length] = batch.bigrams[k];
    mask[k] = batch.valid[k] != 0 ? 1.0F : 0.0F;
  }
  if (word_dropout > 0.0) {
    const NoiseStream noise(seed, NoisePurpose::WordDropout);
    std::vector<double> draws(batch.length);
    const std::size_t sides = set.pairs ? 2 : 1;
    for (std::size_t s = 0; s < batch.sequences; ++s) {
      noise.uniforms(epoch, s % sides, rows[s / sides], draws);
      for (std::size_t t = 0; t < batch.length; ++t) {
        if (draws[t] >= word_dropout || batch.valid[s * batch.length + t] == 0) continue;
        std::int64_t* const at = tokens + s * stride + t;
        *at = text::Vocabulary::unknown;
        if (!bigrams) continue;
        at[batch.length] = text::Vocabulary::padding;
        if (t + 1 < batch.length) at[batch.length + 1] = text::Vocabulary::padding;
      }
    }
  }
  if (set.pairs) {
    out.match = torch::empty({out.sequences, out.length}, torch::kLong);
    auto* match = out.match.data_ptr<std::int64_t>();
    for (std::size_t k = 0; k < batch.match.size(); ++k) match[k] = batch.match[k];
  }
  if (!set.labels.empty()) {
    out.labels = torch::empty({static_cast<std::int64_t>(rows.size())}, torch::kLong);
    for (std::size_t r = 0; r < rows.size(); ++r)
      out.labels.data_ptr<std::int64_t>()[r] = set.labels[rows[r]];
  }
  return out;
}

std::size_t length_of(const TokenSet& set, std::size_t row) {
  return set.pairs ? std::max(set.sequences[2 * row].size(), set.sequences[2 * row + 1].size())
                   : set.sequences[row].size();
}

/// Rows in batches of similar length; ties in the order of `rows`.
std::vector<std::vector<std::size_t>> batches_by_length(const TokenSet& set, std::vector<std::size_t> rows,
                                                        std::size_t batch_rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::size_t a, std::size_t b) { return length_of(set, a) < length_of(set, b); });
  std::vector<std::vector<std::size_t>> out;
  for (std::size_t first = 0; first < rows.size(); first += batch_rows)
    out.emplace_back(rows.begin() + static_cast<std::ptrdiff_t>(first),
                     rows.begin() + static_cast<std::ptrdiff_t>(std::min(first + batch_rows, rows.size())));
  return out;
}

/// A random permutation keyed by (seed, TrainingOrder, epoch, which).
std::vector<std::size_t> permutation(std::size_t count, std::uint64_t seed, std::uint64_t epoch,
                                     std::uint64_t which) {
  std::vector<double> keys(count);
  NoiseStream(seed, NoisePurpose::TrainingOrder).uniforms(epoch, which, 0, keys);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  return order;
}

/// Batches of one epoch: all rows in random order, sorted by length within groups of `group` batches, the
/// batches in random order.
std::vector<std::vector<std::size_t>> epoch_batches(const TokenSet& set, std::size_t batch_rows,
                                                    std::uint64_t seed, std::uint64_t epoch) {
  constexpr std::size_t group = 50;
  const std::vector<std::size_t> order = permutation(set.count(), seed, epoch, 0);
  std::vector<std::vector<std::size_t>> sorted;
  for (std::size_t first = 0; first < order.size(); first += group * batch_rows) {
    const std::size_t last = std::min(first + group * batch_rows, order.size());
    for (auto& batch : batches_by_length(set,
                                         {order.begin() + static_cast<std::ptrdiff_t>(first),
                                          order.begin() + static_cast<std::ptrdiff_t>(last)},
                                         batch_rows))
      sorted.push_back(std::move(batch));
  }
  std::vector<std::vector<std::size_t>> out;
  for (const std::size_t k : permutation(sorted.size(), seed, epoch, 1)) out.push_back(std::move(sorted[k]));
  return out;
}

std::vector<std::size_t> all_rows(const TokenSet& set) {
  std::vector<std::size_t> rows(set.count());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return rows;
}

std::vector<double> logits_of(const Parameters& parameters, const TokenSet& data) {
  const torch::NoGradGuard frozen;
  std::vector<double> out(data.count() * parameters.shape.classes);
  for (const auto& rows : batches_by_length(data, all_rows(data), 128)) {
    const BatchTensors batch = tensors(data, rows);
    Pass pass{.p = parameters,
              .dropout = {},
              .sequences = batch.sequences,
              .length = batch.length,
              .mask = batch.mask};
    const Tensor logits = pass(batch.tokens, batch.match).to(torch::kDouble).contiguous();
    for (std::size_t r = 0; r < rows.size(); ++r)
      std::copy_n(logits.data_ptr<double>() + r * parameters.shape.classes, parameters.shape.classes,
                  out.data() + rows[r] * parameters.shape.classes);
  }
  return out;
}

}  // namespace

void prepare_training(int threads) {
  // Tensors of more than 128 KiB would be mapped and unmapped at every operation.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
  torch::set_num_threads(threads);
}

double matrix_product_rate() {
  constexpr std::int64_t n = 512;
  const torch::NoGradGuard frozen;
  const Tensor a = torch::full({n, n}, 0.5F), b = torch::full({n, n}, 0.25F);
  Tensor c = torch::mm(a, b);
  double best = 0.0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    torch::mm_out(c, a, b);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2e-9 * static_cast<double>(n * n * n) / seconds);
  }
  return best;
}

std::string training_library() {
  return fmt::format("LibTorch {}, {} threads, 512 x 512 matrix product at {:.0f} Gflop/s", TORCH_VERSION,
                     torch::get_num_threads(), matrix_product_rate());
}

std::vector<double> token_log_odds(const TokenSet& train, std::size_t vocabulary, double smoothing) {
  const std::size_t sides = train.pairs ? 2 : 1;
  std::array<std::vector<double>, 2> counts{std::vector<double>(vocabulary, smoothing),
                                            std::vector<double>(vocabulary, smoothing)};
  std::vector<std::size_t> last_row(vocabulary, train.count());
  for (std::size_t row = 0; row < train.count(); ++row)
    for (std::size_t s = sides * row; s < sides * (row + 1); ++s)
      for (const auto* kind : {&train.sequences, train.bigrams.empty() ? nullptr : &train.bigrams}) {
        if (kind == nullptr) continue;
        for (const std::int32_t id : (*kind)[s]) {
          const auto token = static_cast<std::size_t>(id);
          if (last_row[token] == row) continue;
          last_row[token] = row;
          counts.at(static_cast<std::size_t>(train.labels[row]))[token] += 1.0;
        }
      }
  const double zeros = std::accumulate(counts[0].begin(), counts[0].end(), 0.0),
               ones = std::accumulate(counts[1].begin(), counts[1].end(), 0.0);
  std::vector<double> out(vocabulary);
  for (std::size_t k = 0; k < vocabulary; ++k) out[k] = std::log(counts[1][k] / ones * zeros / counts[0][k]);
  return out;
}

EncoderWeights initial_weights(const EncoderShape& shape, std::uint64_t seed, const Start& start) {
  const std::vector<double>& log_odds = start.log_odds;
  EncoderWeights weights;
  weights.shape = shape;
  const NoiseStream noise(seed, NoisePurpose::WeightInitialisation);
  std::uint64_t matrix = 0, layer = 0;
  for (const WeightArray& array : weight_arrays(weights)) {
    std::size_t size = 1;
    for (const std::size_t extent : array.shape) size *= extent;
    array.values->assign(size, array.name.ends_with("gain") ? 1.0F : 0.0F);
    if (array.name.ends_with("omega")) {
      for (std::size_t head = 0; head < shape.heads; ++head) {
        const auto omega = orthogonal_features(shape.feature_count, shape.head_dimension(), seed,
                                               layer * shape.heads + head);
        std::copy(omega.begin(), omega.end(),
                  array.values->begin() + static_cast<std::ptrdiff_t>(head * omega.size()));
      }
      ++layer;
      continue;
    }
    const bool embedding = array.name.ends_with("embedding");
    if (!embedding && !array.name.ends_with("weight")) continue;
    double scale = embedding ? start.embedding_scale
                             : std::sqrt(2.0 / static_cast<double>(array.shape.at(0) + array.shape.at(1)));
    if (!log_odds.empty()) {
      if (array.name.ends_with("output_weight") || array.name.ends_with("contract_weight")) scale *= branch_scale;
      if (array.name == "classifier_weight") scale = 0.0;
    }
    std::vector<double> draws(size);
    noise.gaussians(0, 0, matrix++, draws);
    for (std::size_t k = 0; k < size; ++k) (*array.values)[k] = static_cast<float>(scale * draws[k]);
  }
  std::vector<double> common(shape.dimension), direction(shape.dimension, 0.0);
  noise.gaussians(0, 1, 0, common);
  if (!log_odds.empty()) {
    // Signs, half of each: orthogonal to what layer normalisation subtracts, and then to the common vector, which
    // would otherwise prefer a class.
    std::vector<double> draws(shape.dimension);
    noise.gaussians(0, 1, 1, draws);
    std::vector<std::size_t> order(shape.dimension);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return draws[a] < draws[b]; });
    const std::size_t half = shape.dimension / 2;
    for (std::size_t r = 0; r < half; ++r) {
      direction[order[r]] = -1.0;
      direction[order[shape.dimension - 1 - r]] = 1.0;
    }
    const double along = std::inner_product(common.begin(), common.end(), direction.begin(), 0.0) /
                         static_cast<double>(2 * half);
    for (std::size_t k = 0; k < shape.dimension; ++k) common[k] -= along * direction[k];
  }
  for (std::size_t k = 0; k < weights.position_embedding.size(); ++k)
    weights.position_embedding[k] += static_cast<float>(start.common_scale * common[k % shape.dimension]);
  if (log_odds.empty()) return weights;
  expects(log_odds.size() == shape.vocabulary && shape.classes == 2, "log-odds of each token");
  for (std::size_t k = 0; k < shape.dimension; ++k) {
    for (std::size_t token = 0; token < shape.vocabulary; ++token)
      weights.token_embedding[token * shape.dimension + k] +=
          static_cast<float>(log_odds_in_embedding * direction[k] * log_odds[token]);
    const std::size_t inputs = weights.classifier_weight.size() / 2;
    for (std::size_t side = 0; side < (shape.pairs ? 2 : 1); ++side) {
      const std::size_t at = side * shape.dimension + k;
      weights.classifier_weight[at] -= static_cast<float>(log_odds_in_classifier * direction[k]);
      weights.classifier_weight[inputs + at] += static_cast<float>(log_odds_in_classifier * direction[k]);
    }
  }
  return weights;
}

Training train(const EncoderWeights& start, const TokenSet& train, const TokenSet& dev,
               const TrainingOptions& options, const std::function<void(double)>& report,
               const std::function<bool()>& interrupted) {
  Parameters parameters(start, true, options.learn_omega);
  const std::size_t count = parameters.values.size();
  std::vector<float> first(count, 0.0F), second(count, 0.0F), average = parameters.values, best = average;
  const AdamW method{.averaging = options.averaging};
  const std::size_t per_epoch = (train.count() + options.batch_rows - 1) / options.batch_rows;
  const auto steps = static_cast<std::int64_t>(std::lround(options.epochs * static_cast<double>(per_epoch)));
  const auto per_check =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(per_epoch / options.checks_per_epoch));
  Training out;
  double lowest = std::numeric_limits<double>::infinity(), loss_sum = 0.0;
  std::int64_t losses = 0;
  std::vector<std::vector<std::size_t>> order;
  const auto batch_losses = [&](std::int64_t step) {
    const std::size_t epoch = static_cast<std::size_t>(step) / per_epoch;
    if (static_cast<std::size_t>(step) % per_epoch == 0)
      order = epoch_batches(train, options.batch_rows, options.seed, epoch);
    const BatchTensors batch = tensors(train, order[static_cast<std::size_t>(step) % per_epoch],
                                       options.word_dropout, options.seed, epoch);
    Pass pass{.p = parameters,
              .dropout = {options.dropout, options.seed, static_cast<std::uint64_t>(step)},
              .sequences = batch.sequences,
              .length = batch.length,
              .mask = batch.mask};
    const Tensor loss = torch::cross_entropy_loss(pass(batch.tokens, batch.match), batch.labels);
    loss.backward();
    parameters.add_embedding_gradient(batch.tokens, pass.embedded.grad());
    return static_cast<double>(loss.item<float>());
  };
  for (std::int64_t step = 0; step < steps; ++step) {
    if (interrupted && interrupted()) {
      out.status = RunStatus::Interrupted;
      return out;
    }
    std::fill(parameters.gradients.begin(), parameters.gradients.end(), 0.0F);
    const double loss = batch_losses(step), norm = std::sqrt(squared_norm(parameters.gradients));
    if (!std::isfinite(loss) || !std::isfinite(norm)) {
      out.status = RunStatus::NotFinite;
      return out;
    }
    loss_sum += loss;
    ++losses;
    const double done = static_cast<double>(step) / static_cast<double>(steps);
    const double rate =
        options.learning_rate *
        (done < options.warm_up
             ? (done + 1.0 / static_cast<double>(steps)) / options.warm_up
             : 0.5 * (1.0 + std::cos(M_PI * (done - options.warm_up) / (1.0 - options.warm_up))));
    const double scale = norm > options.clip ? options.clip / norm : 1.0;
    // The average forgets its start: no more weight on it than on any later step.
    AdamW now = method;
    now.averaging = std::min(method.averaging, static_cast<double>(step) / static_cast<double>(step + 10));
    for (std::size_t a = 0; a + 1 < parameters.offsets.size(); ++a) {
      if (parameters.is_omega(a) && !options.learn_omega) continue;
      const std::size_t begin = parameters.offsets[a], size = parameters.offsets[a + 1] - begin;
      const auto part = [&](std::vector<float>& values) {
        return std::span<float>(values.data() + begin, size);
      };
      advance(now, step + 1, parameters.is_embedding(a) ? rate * options.embedding_rate : rate,
              parameters.decays(a) ? options.weight_decay : 0.0, scale, part(parameters.gradients),
              part(first), part(second), part(parameters.values), part(average));
    }
    if (report && step % 20 == 0) report(done);
    if ((step + 1) % per_check != 0 && step + 1 != steps) continue;
    const EncoderWeights averaged = parameters.weights(average);
    const std::vector<double> logits = training_logits(averaged, dev);
    const Metrics quality = metrics_from_logits(logits, dev.labels, averaged.shape.classes);
    out.checks.push_back({static_cast<double>(step + 1) / static_cast<double>(per_epoch),
                          loss_sum / static_cast<double>(losses), quality.log_loss, quality.accuracy});
    loss_sum = 0.0;
    losses = 0;
    if (quality.log_loss < lowest) {
      lowest = quality.log_loss;
      out.chosen = out.checks.size() - 1;
      best = average;
    }
    if (report) report(static_cast<double>(step + 1) / static_cast<double>(steps));
  }
  out.best = parameters.weights(best);
  out.last = parameters.weights(average);
  return out;
}

std::vector<double> training_logits(const EncoderWeights& weights, const TokenSet& data) {
  return logits_of(Parameters(weights, false, false), data);
}

HeadBags queries_and_keys(const EncoderWeights& weights, const TokenSet& data,
                          const std::vector<std::size_t>& rows, std::size_t layer) {
  const torch::NoGradGuard frozen;
  const Parameters parameters(weights, false, false);
  const std::size_t heads = weights.shape.heads, dh = weights.shape.head_dimension(),
                    sides = data.pairs ? 2 : 1;
  HeadBags out{.dimension = dh};
  out.starts.push_back(0);
  for (const std::size_t row : rows) {
    std::size_t tokens = 0;
    for (std::size_t side = 0; side < sides; ++side) tokens += data.sequences[sides * row + side].size();
    out.starts.push_back(out.starts.back() + 2 * tokens);
  }
  out.points.assign(heads, std::vector<double>(out.starts.back() * dh));
  std::map<std::size_t, std::size_t> place;
  for (std::size_t r = 0; r < rows.size(); ++r) place.emplace(rows[r], r);
  expects(place.size() == rows.size(), "different rows");
  for (const auto& batch_rows : batches_by_length(data, rows, 128)) {
    const BatchTensors batch = tensors(data, batch_rows);
    Pass pass{.p = parameters,
              .dropout = {},
              .sequences = batch.sequences,
              .length = batch.length,
              .mask = batch.mask,
              .watched = static_cast<std::int64_t>(layer)};
    pass(batch.tokens, batch.match);
    const Tensor both[2] = {pass.queries.contiguous(), pass.keys.contiguous()};
    const auto length = static_cast<std::size_t>(batch.length),
               sequences = static_cast<std::size_t>(batch.sequences);
    for (std::size_t r = 0; r < batch_rows.size(); ++r)
      for (std::size_t head = 0; head < heads; ++head) {
        double* to = out.points[head].data() + out.starts[place.at(batch_rows[r])] * dh;
        for (std::size_t side = 0; side < sides; ++side) {
          const std::size_t s = sides * r + side,
                            tokens = data.sequences[sides * batch_rows[r] + side].size();
          for (const Tensor& one : both) {
            to = std::copy_n(one.data_ptr<float>() + (head * sequences * length + s * length) * dh,
                             tokens * dh, to);
          }
        }
      }
  }
  double squares = 0.0, count = 0.0;
  for (const auto& points : out.points) {
    squares += std::inner_product(points.begin(), points.end(), points.begin(), 0.0);
    count += static_cast<double>(points.size() / dh);
  }
  out.mean_square_score = squares / count;  // |q d^(-1/4)|^2 = |q|^2 / sqrt(d)
  return out;
}

FeatureGradient training_features(AttentionKind kind, const std::vector<double>& omega, std::size_t dimension,
                                  const std::vector<double>& x, const std::vector<double>& weights) {
  const auto d = static_cast<std::int64_t>(dimension);
  const auto tensor = [&](const std::vector<double>& values, std::int64_t columns) {
    return torch::tensor(values, torch::kDouble).view({1, -1, columns});
  };
  const Tensor particles = tensor(omega, d).requires_grad_(true);
  const Tensor phi = plain_features(kind, particles, tensor(x, d));
  (phi * tensor(weights, phi.size(-1))).sum().backward();
  const auto vector = [](const Tensor& values) {
    const Tensor flat = values.detach().contiguous();
    return std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
  };
  return {vector(phi), vector(particles.grad())};
}

}  // namespace rieszflow::attention
