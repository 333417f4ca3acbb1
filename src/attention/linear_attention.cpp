#include "attention/linear_attention.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numbers>

#include "attention/simd/feature_kernels.hpp"
#include "core/expects.hpp"

namespace rieszflow::attention {
namespace {

/// Tokens whose sums are made in float32 before they are added in double.
constexpr std::size_t stretch = 4096;
/// Most parts that a sequence is cut into for threads; where they are cut depends on its length alone.
constexpr std::size_t most_parts = 16;
constexpr float no_shift = -1e30F;
constexpr double least_weight = 1e-20;  // of a feature without a shift

/// Floats on a cache line.
class Floats {
 public:
  explicit Floats(std::size_t size)
      : data_(static_cast<float*>(
            std::aligned_alloc(64, std::max((size * sizeof(float) + 63) / 64, std::size_t{1}) * 64))),
        size_(size) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  float* data() { return data_.get(); }
  void fill(float value) { std::fill_n(data_.get(), size_, value); }

 private:
  struct Free {
    void operator()(float* pointer) const { std::free(pointer); }
  };
  std::unique_ptr<float, Free> data_;
  std::size_t size_;
};

template <class Task>
void each_task(std::size_t count, int threads, Task task) {
  if (threads <= 1 || count <= 1) {
    for (std::size_t k = 0; k < count; ++k) task(k);
    return;
  }
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::size_t k = 0; k < count; ++k) task(k);
}

/// Valid tokens from the one at place `begin` on, `count` of them.
struct TokenRange {
  std::size_t begin = 0;
  std::size_t count = 0;
};

/// The valid tokens in most_parts or fewer ranges of whole stretches.
std::vector<TokenRange> parts_of(const TokenRows& rows, std::size_t valid_count, std::size_t least) {
  const std::size_t pieces = (valid_count + least - 1) / least, parts = std::min(pieces, most_parts);
  std::vector<TokenRange> out;
  std::size_t place = 0, passed = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t first = part * pieces / parts * least;
    const std::size_t last = std::min((part + 1) * pieces / parts * least, valid_count);
    if (rows.valid.empty()) {
      place = first;
    } else {
      for (;; ++place) {
        if (rows.valid[place] == 0) continue;
        if (passed == first) break;
        ++passed;
      }
    }
    out.push_back({place, last - first});
  }
  return out;
}

/// Takes valid tokens in blocks; packs their rows where they do not lie in memory as the kernels read them.
class BlockReader {
 public:
  BlockReader(const TokenRows& rows, std::size_t dimension, TokenRange range)
      : rows_(rows),
        dimension_(dimension),
        columns_(simd::padded(dimension)),
        place_(range.begin),
        left_(range.count),
        first_(rows.valid.empty() ? 0 : simd::block * dimension),
        second_(rows.valid.empty() && columns_ == dimension ? 0 : simd::block * columns_) {}

  bool next() {
    if (left_ == 0) return false;
    count_ = std::min(left_, simd::block);
    left_ -= count_;
    begin_ = place_;
    if (rows_.valid.empty()) {
      place_ += count_;
    } else {
      for (std::size_t k = 0; k < count_; ++place_)
        if (rows_.valid[place_] != 0) places_[k++] = place_;
    }
    return true;
  }

  std::size_t count() const { return count_; }
  std::size_t place(std::size_t k) const { return rows_.valid.empty() ? begin_ + k : places_[k]; }

  /// The next block of `heads` heads side by side, as it lies in memory: to be asked for while the heads of
  /// this block are evaluated one after the other, each of which reads a few numbers of every row. (Heads one
  /// by one over the whole sequence reach a quarter of the speed of the memory.)
  simd::Ahead ahead(const float* memory, std::size_t stride, std::size_t first_head,
                    std::size_t heads) const {
    return {.row = memory + place_ * stride + first_head * dimension_,
            .stride = stride,
            .width = heads * dimension_,
            .rows = std::min({left_, simd::block, rows_.length - place_}),
            .lines_at_once = (dimension_ + simd::group - 1) / simd::group};
  }

  /// Rows of a head to be read as they are.
  simd::Rows plain(const float* from, std::size_t head) {
    if (rows_.valid.empty())
      return {from + begin_ * rows_.token_stride + head * dimension_, rows_.token_stride, count_};
    return packed(from, head, first_, dimension_);
  }
  /// Rows of a head to be read in whole groups.
  simd::Rows whole(const float* from, std::size_t head) {
    if (rows_.valid.empty() && columns_ == dimension_) return plain(from, head);
    return packed(from, head, second_, columns_);
  }

 private:
  simd::Rows packed(const float* from, std::size_t head, Floats& into, std::size_t stride) {
    for (std::size_t k = 0; k < count_; ++k) {
      float* const row = into.data() + k * stride;
      std::copy_n(from + place(k) * rows_.token_stride + head * dimension_, dimension_, row);
      std::fill(row + dimension_, row + stride, 0.0F);
    }
    return {into.data(), stride, count_};
  }

  const TokenRows& rows_;
  std::size_t dimension_, columns_;
  std::size_t place_, left_;
  std::size_t begin_ = 0, count_ = 0;
  std::size_t places_[simd::block] = {};
  Floats first_, second_;
};

/// Sums over keys in float32, with the memory that they live in.
class KeySums {
 public:
  KeySums(std::size_t components, std::size_t value_columns)
      : components_(components),
        value_columns_(value_columns),
        values_(components * (value_columns + 2)),
        view_{.shift = values_.data(),
              .weighted = values_.data() + 2 * components,
              .weights = values_.data() + components,
              .value_columns = value_columns} {}

  void clear() {
    values_.fill(0.0F);
    std::fill_n(view_.shift, components_, no_shift);
  }
  const simd::Sums& view() const { return view_; }
  std::size_t components() const { return components_; }
  std::size_t value_columns() const { return value_columns_; }

 private:
  std::size_t components_, value_columns_;
  Floats values_;
  simd::Sums view_;
};

/// Sums over stretches in double, each component with its own power of two.
struct KeyTotals {
  std::vector<double> shift, weights, weighted;

  explicit KeyTotals(const KeySums& like)
      : shift(like.components(), no_shift),
        weights(like.components(), 0.0),
        weighted(like.components() * like.value_columns(), 0.0) {}

  /// Adds what `other` has of component r: 2^other_shift (other_weight, row of other_weighted).
  template <class Number>
  void add(std::size_t r, double other_shift, double other_weight, const Number* row, std::size_t columns) {
    const double common = std::max(shift[r], other_shift);
    const double mine = std::exp2(shift[r] - common), theirs = std::exp2(other_shift - common);
    shift[r] = common;
    weights[r] = weights[r] * mine + other_weight * theirs;
    for (std::size_t c = 0; c < columns; ++c) {
      double& sum = weighted[r * columns + c];
      sum = sum * mine + static_cast<double>(row[c]) * theirs;
    }
  }
  void add(const KeySums& sums) {
    for (std::size_t r = 0; r < shift.size(); ++r)
      add(r, sums.view().shift[r], sums.view().weights[r], sums.view().weighted + r * sums.value_columns(),
          sums.value_columns());
  }
  void add(const KeyTotals& other, std::size_t columns) {
    for (std::size_t r = 0; r < shift.size(); ++r)
      add(r, other.shift[r], other.weights[r], other.weighted.data() + r * columns, columns);
  }
  void store(KeySums& sums) const {
    std::copy(shift.begin(), shift.end(), sums.view().shift);
    std::copy(weights.begin(), weights.end(), sums.view().weights);
    std::copy(weighted.begin(), weighted.end(), sums.view().weighted);
  }
};

/// What a part of the sequence adds to the sums of one head: in `sums`, or, where it is longer than a
/// stretch, in `totals`.
struct HeadSums {
  KeySums sums;
  std::unique_ptr<KeyTotals> totals{};
  bool is_narrow = false;  ///< float32 is not enough
};

/// Adds the keys of a range to the sums of heads first_head, first_head + 1, ..., block by block, so that
/// each row is read once.
void sum_keys(const simd::Kernels& kernels, std::span<const simd::Features> features, const TokenRows& rows,
              std::size_t first_head, std::size_t dimension, TokenRange range, std::span<HeadSums> heads,
              float* scratch) {
  BlockReader reader(rows, dimension, range);
  for (HeadSums& head : heads) head.sums.clear();
  std::size_t inside = 0;
  while (reader.next()) {
    if (inside == stretch) {
      for (HeadSums& head : heads) {
        if (!head.totals) head.totals = std::make_unique<KeyTotals>(head.sums);
        head.totals->add(head.sums);
        head.sums.clear();
      }
      inside = 0;
    }
    simd::Ahead ahead[2] = {reader.ahead(rows.keys, rows.token_stride, first_head, heads.size()),
                            reader.ahead(rows.values, rows.token_stride, first_head, heads.size())};
    for (std::size_t k = 0; k < heads.size(); ++k) {
      const std::size_t h = first_head + k;
      if (!heads[k].is_narrow &&
          !kernels.absorb(features[k], reader.plain(rows.keys, h), reader.whole(rows.values, h),
                          heads[k].sums.view(), scratch, ahead))
        heads[k].is_narrow = true;
    }
    inside += reader.count();
  }
  for (HeadSums& head : heads)
    if (head.totals) head.totals->add(head.sums);
}

/// Sums ready for queries: of favor, each component's mean value, its weight moved into the shift; the
/// padding out of the way. False where a component has no weight that float32 can tell from zero.
bool settle(const simd::Features& features, KeySums& sums) {
  const simd::Sums& view = sums.view();
  const std::size_t columns = view.value_columns;
  for (std::size_t r = 0; r < sums.components(); ++r) {
    float* const row = view.weighted + r * columns;
    if (r % features.columns >= features.count) {
      view.shift[r] = no_shift;
      view.weights[r] = 0.0F;
      std::fill(row, row + columns, 0.0F);
    } else if (features.map == simd::Map::Exponential) {
      const float inverse = 1.0F / view.weights[r];
      for (std::size_t c = 0; c < columns; ++c) row[c] *= inverse;
      view.shift[r] += std::log2(view.weights[r]);
      view.weights[r] = 1.0F;
    } else if (!(view.weights[r] >= least_weight)) {
      return false;
    }
  }
  return true;
}

/// Writes the rows of a block where they belong.
void scatter(const BlockReader& reader, const float* block, std::size_t block_stride, std::size_t dimension,
             float* out, std::size_t out_stride) {
  for (std::size_t k = 0; k < reader.count(); ++k)
    std::copy_n(block + k * block_stride, dimension, out + reader.place(k) * out_stride);
}

/// Answers the queries of a range for heads first_head, first_head + 1, ...; sums: (head).
void answer_queries(const simd::Kernels& kernels, std::span<const simd::Features> features,
                    const TokenRows& rows, std::size_t first_head, std::size_t dimension, TokenRange range,
                    std::span<const simd::Sums> sums, std::span<std::atomic<bool>> narrow, float* out,
                    std::size_t out_stride) {
  BlockReader reader(rows, dimension, range);
  const std::size_t columns = simd::padded(dimension);
  const bool direct = rows.valid.empty() && columns == dimension;
  Floats scratch(simd::block * features.front().components()), block(direct ? 0 : simd::block * columns);
  while (reader.next()) {
    simd::Ahead ahead[2] = {reader.ahead(rows.queries, rows.token_stride, first_head, features.size()),
                            reader.ahead(out, out_stride, first_head, features.size())};
    for (std::size_t k = 0; k < features.size(); ++k) {
      const std::size_t h = first_head + k;
      if (narrow[k]) continue;
      float* const to = direct ? out + reader.place(0) * out_stride + h * dimension : block.data();
      if (!kernels.answer(features[k], sums[k], reader.plain(rows.queries, h), scratch.data(), to,
                          direct ? out_stride : columns, ahead)) {
        narrow[k] = true;
      } else if (!direct) {
        scatter(reader, to, columns, dimension, out + h * dimension, out_stride);
      }
    }
  }
}

/// Exact softmax of the queries of a range, a block at a time: keys are summed with the queries as features.
bool softmax_queries(const simd::Kernels& kernels, const TokenRows& rows, std::size_t head,
                     std::size_t dimension, TokenRange range, TokenRange all, float* out,
                     std::size_t out_stride) {
  BlockReader reader(rows, dimension, range);
  const std::size_t columns = simd::padded(dimension);
  const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(dimension));
  Floats omega(dimension * simd::block), scratch(simd::block * simd::block);
  while (reader.next()) {
    const simd::Rows queries = reader.plain(rows.queries, head);
    simd::Features features{.dimension = dimension,
                            .count = queries.count,
                            .columns = simd::padded(queries.count),
                            .omega = omega.data()};
    omega.fill(0.0F);
    float largest = 0.0F;
    for (std::size_t k = 0; k < queries.count; ++k) {
      float square = 0.0F;
      for (std::size_t c = 0; c < dimension; ++c) {
        const float q = queries.data[k * queries.stride + c];
        omega.data()[c * features.columns + k] = static_cast<float>(q * scale);
        square += q * q;
      }
      if (!std::isfinite(square)) return false;
      largest = std::max(largest, square);
    }
    // |q| |k| / sqrt(d) <= 128
    const double most =
        128.0 * 128.0 * static_cast<double>(dimension) / std::max(static_cast<double>(largest), 1e-30);
    features.largest_square = static_cast<float>(std::min(most, 1e30));
    HeadSums sums{KeySums(features.columns, columns)};
    sum_keys(kernels, {&features, 1}, rows, head, dimension, all, {&sums, 1}, scratch.data());
    if (sums.totals) sums.totals->store(sums.sums);
    if (sums.is_narrow || !settle(features, sums.sums)) return false;
    const float* const result = sums.sums.view().weighted;
    for (std::size_t k = 0; k < queries.count * columns; ++k)
      if (!std::isfinite(result[k])) return false;
    scatter(reader, result, columns, dimension, out, out_stride);
  }
  return true;
}

/// One head in double with the same sums in log space: for inputs that float32 is too narrow for. O(m d)
/// memory for kinds with features.
class CarefulHead {
 public:
  CarefulHead(AttentionKind kind, std::span<const float> omega, const TokenRows& rows, std::size_t head,
              std::size_t dimension, float* out, std::size_t out_stride)
      : kind_(kind),
        omega_(omega.begin(), omega.end()),
        rows_(rows),
        offset_(head * dimension),
        d_(dimension),
        scale_(std::pow(static_cast<double>(dimension), -0.25)),
        out_(out),
        out_stride_(out_stride) {}

  AttentionStatus evaluate() {
    if (kind_ == AttentionKind::Softmax) {
      each_valid([&](std::size_t i) {
        const std::vector<double> query = row(rows_.queries, i, scale_);
        Accumulator sum(d_);
        each_valid([&](std::size_t j) {
          const std::vector<double> key = row(rows_.keys, j, scale_);
          double score = 0.0;
          for (std::size_t c = 0; c < d_; ++c) score += query[c] * key[c];
          sum.add(score, row(rows_.values, j, 1.0));
        });
        write(i, sum);
      });
    } else {
      std::vector<double> logs(component_count(kind_, omega_.size() / d_));
      std::vector<Accumulator> sums(logs.size(), Accumulator(d_));
      each_valid([&](std::size_t j) {
        log_features(kind_, omega_, row(rows_.keys, j, scale_), logs);
        const std::vector<double> value = row(rows_.values, j, 1.0);
        for (std::size_t r = 0; r < logs.size(); ++r) sums[r].add(logs[r], value);
      });
      each_valid([&](std::size_t i) {
        log_features(kind_, omega_, row(rows_.queries, i, scale_), logs);
        Accumulator sum(d_);
        for (std::size_t r = 0; r < logs.size(); ++r) sum.add(logs[r], sums[r]);
        write(i, sum);
      });
    }
    return status_;
  }

 private:
  /// e^shift (sum of weights, sum of weighted values), the largest exponent so far taken out.
  struct Accumulator {
    double shift = -std::numeric_limits<double>::infinity();
    double weight = 0.0;
    std::vector<double> weighted;

    explicit Accumulator(std::size_t d) : weighted(d, 0.0) {}
    void add(double exponent, const std::vector<double>& value, double factor = 1.0) {
      if (exponent > shift) {
        const double down = std::exp(shift - exponent);
        weight *= down;
        for (double& sum : weighted) sum *= down;
        shift = exponent;
      }
      const double term = std::exp(exponent - shift);
      weight += term * factor;
      for (std::size_t c = 0; c < weighted.size(); ++c) weighted[c] += term * value[c];
    }
    void add(double exponent, const Accumulator& other) {
      add(exponent + other.shift, other.weighted, other.weight);
    }
  };

  template <class Call>
  void each_valid(Call call) const {
    for (std::size_t t = 0; t < rows_.length; ++t)
      if (rows_.valid.empty() || rows_.valid[t] != 0) call(t);
  }

  std::vector<double> row(const float* from, std::size_t t, double scale) const {
    std::vector<double> out(d_);
    for (std::size_t c = 0; c < d_; ++c)
      out[c] = scale * static_cast<double>(from[t * rows_.token_stride + offset_ + c]);
    return out;
  }

  void write(std::size_t t, const Accumulator& sum) {
    float* const to = out_ + t * out_stride_;
    AttentionStatus here = AttentionStatus::Fine;
    for (std::size_t c = 0; c < d_; ++c) {
      to[c] = static_cast<float>(sum.weighted[c] / sum.weight);
      if (!std::isfinite(to[c])) here = AttentionStatus::NotFinite;
    }
    if (here != AttentionStatus::Fine) std::fill_n(to, d_, 0.0F);
    status_ = std::max(status_, here);
  }

  AttentionKind kind_;
  std::vector<double> omega_;
  const TokenRows& rows_;
  std::size_t offset_, d_;
  double scale_;
  float* out_;
  std::size_t out_stride_;
  AttentionStatus status_ = AttentionStatus::Fine;
};

/// The mean of the values of one head for every token.
AttentionStatus uniform_head(const TokenRows& rows, std::size_t head, std::size_t dimension,
                             std::size_t valid_count, float* out, std::size_t out_stride) {
  const auto is_valid = [&](std::size_t t) { return rows.valid.empty() || rows.valid[t] != 0; };
  std::vector<double> mean(dimension, 0.0);
  for (std::size_t t = 0; t < rows.length; ++t)
    for (std::size_t c = 0; c < dimension && is_valid(t); ++c)
      mean[c] += static_cast<double>(rows.values[t * rows.token_stride + head * dimension + c]);
  AttentionStatus status = AttentionStatus::Fine;
  for (double& value : mean) {
    value /= static_cast<double>(valid_count);
    if (!std::isfinite(value)) status = AttentionStatus::NotFinite;
  }
  if (status != AttentionStatus::Fine) std::fill(mean.begin(), mean.end(), 0.0);
  for (std::size_t t = 0; t < rows.length; ++t)
    if (is_valid(t)) std::copy(mean.begin(), mean.end(), out + t * out_stride + head * dimension);
  return status;
}

const simd::Kernels* kernels_of(std::string_view level) {
  if (level.empty()) return &simd::kernels();
  const simd::Kernels* levels[8] = {};
  const std::size_t count = simd::kernel_levels(levels, 8);
  for (std::size_t k = 0; k < count; ++k)
    if (levels[k]->level == level) return levels[k];
  return nullptr;
}

simd::Map map_of(AttentionKind kind) {
  return kind == AttentionKind::PorfSoftplus      ? simd::Map::Softplus
         : kind == AttentionKind::SoftmaxFeatures ? simd::Map::SoftmaxPair
                                                  : simd::Map::Exponential;
}

}  // namespace

FusedAttention::FusedAttention(AttentionKind kind, std::size_t heads, std::size_t head_dimension,
                               std::span<const float> omega, std::string_view level)
    : kind_(kind),
      heads_(heads),
      head_dimension_(head_dimension),
      feature_count_(heads * head_dimension == 0 ? 0 : omega.size() / (heads * head_dimension)),
      kernels_(kernels_of(level)),
      omega_(omega.begin(), omega.end()) {
  expects(heads > 0 && head_dimension > 0 && omega.size() == heads * feature_count_ * head_dimension &&
              has_features(kind) == (feature_count_ > 0),
          "omega of shape (head, m, head_dimension), empty for kinds without features");
  expects(kernels_ != nullptr, "a level that this processor can run");
  const std::size_t d = head_dimension, m = feature_count_, columns = simd::padded(m);
  const double scale = std::numbers::log2e * std::pow(static_cast<double>(d), -0.25);
  packed_.assign(heads * d * columns, 0.0F);
  for (std::size_t h = 0; h < heads && m > 0; ++h) {
    double largest = 1e-30;
    for (std::size_t r = 0; r < m; ++r) {
      double square = 0.0;
      for (std::size_t k = 0; k < d; ++k) {
        const float value = omega[(h * m + r) * d + k];
        packed_[(h * d + k) * columns + r] = static_cast<float>(value * scale);
        square += static_cast<double>(value) * value;
      }
      largest = std::max(largest, square);
    }
    double most = std::min(256.0 * 256.0 / largest, 1e20);
    if (kind == AttentionKind::Favor) most = std::min(most, 128.0);
    largest_squares_.push_back(static_cast<float>(most * std::sqrt(static_cast<double>(d))));
  }
}

std::string_view FusedAttention::level() const { return kernels_->level; }

std::vector<std::string_view> FusedAttention::levels() {
  const simd::Kernels* kernels[8] = {};
  const std::size_t count = simd::kernel_levels(kernels, 8);
  std::vector<std::string_view> names;
  for (std::size_t k = 0; k < count; ++k) names.push_back(kernels[k]->level);
  return names;
}

AttentionStatus FusedAttention::apply(const TokenRows& rows, float* out, std::size_t out_stride, int threads,
                                      std::size_t* heads_in_double) const {
  const std::size_t d = head_dimension_, columns = simd::padded(d);
  expects(rows.valid.empty() || rows.valid.size() == rows.length, "one validity for each token");
  std::size_t valid_count = rows.length;
  if (!rows.valid.empty()) {
    valid_count = 0;
    for (std::size_t t = 0; t < rows.length; ++t) {
      if (rows.valid[t] != 0) {
        ++valid_count;
      } else {
        std::fill_n(out + t * out_stride, heads_ * d, 0.0F);
      }
    }
  }
  if (heads_in_double != nullptr) *heads_in_double = 0;
  if (valid_count == 0) return AttentionStatus::Fine;

  const auto features_of = [&](std::size_t h) {
    const std::size_t m = feature_count_, padded = simd::padded(m);
    return simd::Features{.map = map_of(kind_),
                          .dimension = d,
                          .count = m,
                          .columns = padded,
                          .omega = packed_.data() + h * d * padded,
                          .square_scale = kind_ == AttentionKind::Favor
                                              ? static_cast<float>(0.5 * std::numbers::log2e /
                                                                   std::sqrt(static_cast<double>(d)))
                                              : 0.0F,
                          .largest_square = largest_squares_[h]};
  };
  std::vector<AttentionStatus> status(heads_, AttentionStatus::Fine);
  std::vector<std::atomic<bool>> narrow(heads_);  // heads that float32 is too narrow for

  if (kind_ == AttentionKind::Uniform) {
    each_task(heads_, threads,
              [&](std::size_t h) { status[h] = uniform_head(rows, h, d, valid_count, out, out_stride); });
  } else if (kind_ == AttentionKind::Softmax) {
    const std::vector<TokenRange> parts = parts_of(rows, valid_count, simd::block);
    const TokenRange all{parts.front().begin, valid_count};
    each_task(heads_ * parts.size(), threads, [&](std::size_t task) {
      const std::size_t h = task / parts.size();
      if (!narrow[h] &&
          !softmax_queries(*kernels_, rows, h, d, parts[task % parts.size()], all, out + h * d, out_stride))
        narrow[h] = true;
    });
  } else {
    std::vector<simd::Features> features;
    for (std::size_t h = 0; h < heads_; ++h) features.push_back(features_of(h));
    // All heads of a row together where the parts of the sequence occupy all threads, else heads one by one.
    const auto each_part = [&](const std::vector<TokenRange>& parts, auto call) {
      const bool together = parts.size() >= static_cast<std::size_t>(std::max(threads, 1));
      const std::size_t width = together ? heads_ : 1, groups = heads_ / width;
      each_task(parts.size() * groups, threads, [&](std::size_t task) {
        call(task / groups, parts[task / groups], task % groups * width, width);
      });
    };
    const std::vector<TokenRange> parts = parts_of(rows, valid_count, stretch);
    const std::size_t components = features.front().components();
    std::vector<HeadSums> sums;  // (part, head)
    for (std::size_t k = 0; k < parts.size() * heads_; ++k) sums.push_back({KeySums(components, columns)});
    each_part(parts, [&](std::size_t part, TokenRange range, std::size_t head, std::size_t width) {
      Floats scratch(simd::block * components);
      sum_keys(*kernels_, std::span(features).subspan(head, width), rows, head, d, range,
               std::span(sums).subspan(part * heads_ + head, width), scratch.data());
    });
    std::vector<simd::Sums> settled;
    for (std::size_t h = 0; h < heads_; ++h) {
      HeadSums& head = sums[h];
      for (std::size_t part = 1; part < parts.size(); ++part)
        head.is_narrow = head.is_narrow || sums[part * heads_ + h].is_narrow;
      if (!head.is_narrow && (parts.size() > 1 || head.totals)) {
        KeyTotals all(head.sums);
        for (std::size_t part = 0; part < parts.size(); ++part) {
          const HeadSums& one = sums[part * heads_ + h];
          if (one.totals) {
            all.add(*one.totals, columns);
          } else {
            all.add(one.sums);
          }
        }
        all.store(head.sums);
      }
      narrow[h] = head.is_narrow || !settle(features[h], head.sums);
      settled.push_back(head.sums.view());
    }
    each_part(parts_of(rows, valid_count, simd::block),
              [&](std::size_t, TokenRange range, std::size_t head, std::size_t width) {
                answer_queries(*kernels_, std::span(features).subspan(head, width), rows, head, d, range,
                               std::span(settled).subspan(head, width),
                               std::span(narrow).subspan(head, width), out, out_stride);
              });
  }

  each_task(heads_, threads, [&](std::size_t h) {
    if (!narrow[h]) return;
    const std::size_t per_head = feature_count_ * d;
    status[h] = CarefulHead(kind_, std::span(omega_).subspan(h * per_head, per_head), rows, h, d, out + h * d,
                            out_stride)
                    .evaluate();
  });
  if (heads_in_double != nullptr)
    *heads_in_double = static_cast<std::size_t>(std::count(narrow.begin(), narrow.end(), true));
  return *std::max_element(status.begin(), status.end());
}

}  // namespace rieszflow::attention
