#include "attention/linear_attention.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/noise.hpp"

namespace rieszflow::attention {
namespace {

constexpr std::array with_features{AttentionKind::Favor, AttentionKind::PorfSoftplus,
                                   AttentionKind::SoftmaxFeatures};

/// Rows of q, k and v of one sequence, side by side, and the omega of all heads.
struct Sample {
  std::size_t length, heads, d, m;
  std::vector<float> queries, keys, values, omega;
  std::vector<std::uint8_t> valid{};

  Sample(std::size_t length_, std::size_t heads_, std::size_t d_, std::size_t m_, double scale = 1.0,
         std::uint64_t seed = 1)
      : length(length_), heads(heads_), d(d_), m(m_) {
    std::vector<double> numbers(3 * length * heads * d);
    NoiseStream(seed, NoisePurpose::ReferenceSample).gaussians(0, 0, 0, numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      auto& list = i % 3 == 0 ? queries : i % 3 == 1 ? keys : values;
      list.push_back(static_cast<float>(numbers[i] * (i % 3 == 2 ? 1.0 : scale)));
    }
    for (std::size_t h = 0; h < heads; ++h)
      for (const double value : orthogonal_features(m, d, 5, h)) omega.push_back(static_cast<float>(value));
  }

  TokenRows rows() const {
    return {.length = length,
            .token_stride = heads * d,
            .queries = queries.data(),
            .keys = keys.data(),
            .values = values.data(),
            .valid = valid};
  }
  FusedAttention engine(AttentionKind kind, std::string_view level = {}) const {
    return {kind, heads, d, has_features(kind) ? std::span<const float>(omega) : std::span<const float>{},
            level};
  }
  std::vector<float> attention(AttentionKind kind, int threads = 1, std::string_view level = {},
                               bool in_float = true) const {
    std::vector<float> out(length * heads * d, -7.0F);
    std::size_t heads_in_double = 0;
    EXPECT_EQ(engine(kind, level).apply(rows(), out.data(), heads * d, threads, &heads_in_double),
              AttentionStatus::Fine);
    EXPECT_TRUE(heads_in_double == 0 || !in_float) << name(kind) << ": the fast path must do";
    return out;
  }
  /// The double reference of all heads; rows that are not valid become 0.
  std::vector<double> reference(AttentionKind kind) const {
    std::vector<double> out(length * heads * d, 0.0);
    for (std::size_t h = 0; h < heads; ++h) {
      const auto head = [&](const std::vector<float>& from) {
        std::vector<double> to;
        for (std::size_t t = 0; t < length; ++t)
          to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>((t * heads + h) * d),
                    from.begin() + static_cast<std::ptrdiff_t>((t * heads + h + 1) * d));
        return to;
      };
      const auto q = head(queries), k = head(keys), v = head(values);
      std::vector<double> part(length * d), features;
      if (has_features(kind))
        features.assign(omega.begin() + static_cast<std::ptrdiff_t>(h * m * d),
                        omega.begin() + static_cast<std::ptrdiff_t>((h + 1) * m * d));
      reference_attention(kind, features,
                          {.length = length,
                           .dimension = d,
                           .value_dimension = d,
                           .queries = q,
                           .keys = k,
                           .values = v,
                           .valid = valid},
                          part);
      for (std::size_t t = 0; t < length; ++t)
        for (std::size_t c = 0; c < d; ++c)
          if (valid.empty() || valid[t] != 0) out[(t * heads + h) * d + c] = part[t * d + c];
    }
    return out;
  }
};

double largest_difference(const std::vector<float>& a, const std::vector<double>& b) {
  double most = 0.0;
  for (std::size_t i = 0; i < b.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
  return most;
}

TEST(FusedAttention, IsTheDoubleReferenceForAllKindsAndShapes) {
  // Lengths around the block, head and feature sizes that do and do not fill vectors.
  for (const auto& [length, heads, d, m] : {std::array<std::size_t, 4>{1, 1, 8, 16},
                                            {3, 2, 5, 7},
                                            {63, 1, 16, 64},
                                            {64, 2, 32, 64},
                                            {65, 1, 17, 33},
                                            {200, 4, 32, 64},
                                            {150, 1, 64, 100}}) {
    const Sample sample(length, heads, d, m, 0.7);
    for (const AttentionKind kind : attention_kinds())
      EXPECT_LT(largest_difference(sample.attention(kind), sample.reference(kind)), 1e-5)
          << name(kind) << " " << length << " " << d << " " << m;
  }
}

TEST(FusedAttention, AgreesBetweenProcessorLevels) {
  const Sample sample(130, 2, 24, 40);
  for (const AttentionKind kind : attention_kinds()) {
    const std::vector<double> reference = sample.reference(kind);
    for (const std::string_view level : FusedAttention::levels())
      EXPECT_LT(largest_difference(sample.attention(kind, 1, level), reference), 1e-5) << name(kind) << level;
  }
}

TEST(FusedAttention, PaddingChangesNoBitWhereverItStandsAndWhateverItHolds) {
  const Sample alone(3, 2, 16, 32);
  for (const AttentionKind kind : attention_kinds()) {
    const std::vector<float> expected = alone.attention(kind);
    for (const float garbage : {1e3F, -1e30F, std::numeric_limits<float>::quiet_NaN()}) {
      Sample padded(8, 2, 16, 32);
      const std::size_t width = 2 * 16, places[3] = {0, 2, 5};
      padded.valid.assign(8, 0);
      for (auto* list : {&padded.queries, &padded.keys, &padded.values})
        std::fill(list->begin(), list->end(), garbage);
      for (std::size_t t = 0; t < 3; ++t) {
        padded.valid[places[t]] = 1;
        for (std::size_t c = 0; c < width; ++c) {
          padded.queries[places[t] * width + c] = alone.queries[t * width + c];
          padded.keys[places[t] * width + c] = alone.keys[t * width + c];
          padded.values[places[t] * width + c] = alone.values[t * width + c];
        }
      }
      const std::vector<float> out = padded.attention(kind);
      for (std::size_t t = 0; t < 8; ++t)
        for (std::size_t c = 0; c < width; ++c)
          if (padded.valid[t] == 0) {
            EXPECT_EQ(out[t * width + c], 0.0F) << "rows of padding are 0";
          }
      for (std::size_t t = 0; t < 3; ++t)
        for (std::size_t c = 0; c < width; ++c)
          EXPECT_EQ(out[places[t] * width + c], expected[t * width + c]) << name(kind);
    }
  }
}

TEST(FusedAttention, OfNothingButPaddingIsZero) {
  Sample sample(5, 1, 8, 16);
  sample.valid.assign(5, 0);
  for (const AttentionKind kind : attention_kinds())
    for (const float value : sample.attention(kind)) EXPECT_EQ(value, 0.0F);
}

TEST(FusedAttention, OfOneTokenIsItsValue) {
  const Sample sample(1, 2, 16, 32, 3.0);
  for (const AttentionKind kind : attention_kinds()) {
    const std::vector<float> out = sample.attention(kind);
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], sample.values[i], 1e-6F) << name(kind);
  }
}

TEST(FusedAttention, HugeInputsStayFiniteAveragesAndEqualTheReference) {
  for (const double scale : {2.0, 10.0, 50.0, 1000.0}) {
    const Sample sample(40, 1, 64, 64, scale);
    for (const AttentionKind kind : attention_kinds())
      EXPECT_LT(largest_difference(sample.attention(kind, 1, {}, false), sample.reference(kind)), 1e-5)
          << name(kind) << " " << scale;
    Sample ones = sample;
    std::fill(ones.values.begin(), ones.values.end(), 1.0F);
    for (const AttentionKind kind : attention_kinds())
      for (const float value : ones.attention(kind, 1, {}, false))
        EXPECT_NEAR(value, 1.0F, 2e-6F) << "weights sum to 1";
  }
}

TEST(FusedAttention, KeysOppositeToTheQueryOfFarNormHaveADefinedMean) {
  // phi(q) and phi(k) have no component in common that single precision could hold.
  Sample sample(2, 1, 8, 8);
  for (std::size_t c = 0; c < 8; ++c)
    for (std::size_t t = 0; t < 2; ++t) sample.queries[t * 8 + c] = 100.0F, sample.keys[t * 8 + c] = -100.0F;
  for (const AttentionKind kind : with_features)
    EXPECT_LT(largest_difference(sample.attention(kind, 1, {}, false), sample.reference(kind)), 1e-6)
        << name(kind);
}

TEST(FusedAttention, ReportsInputsThatAreNoNumbers) {
  for (const AttentionKind kind : attention_kinds()) {
    for (int which = 0; which < 3; ++which) {
      Sample sample(4, 2, 8, 16);
      auto& list = which == 0 ? sample.queries : which == 1 ? sample.keys : sample.values;
      list[2 * 16 + 3] = std::numeric_limits<float>::quiet_NaN();
      std::vector<float> out(list.size());
      const AttentionStatus status = sample.engine(kind).apply(sample.rows(), out.data(), 16);
      if (kind != AttentionKind::Uniform || which == 2) {
        EXPECT_EQ(status, AttentionStatus::NotFinite) << name(kind) << which;
      }
      for (const float value : out) EXPECT_TRUE(std::isfinite(value));
    }
  }
}

TEST(FusedAttention, GivesTheSameBitsTwiceAndOnAnyNumberOfThreads) {
  Sample sample(9000, 2, 16, 32);
  sample.valid.assign(9000, 1);
  for (std::size_t t = 0; t < 9000; t += 7) sample.valid[t] = 0;
  for (const AttentionKind kind : with_features) {
    const std::vector<float> once = sample.attention(kind);
    EXPECT_EQ(once, sample.attention(kind));
    // The most first: LLVM's OpenMP 14 loses memory when a later loop has more threads.
    for (const int threads : {7, 3, 2}) EXPECT_EQ(once, sample.attention(kind, threads)) << name(kind);
  }
  Sample shorter(700, 2, 16, 32);
  EXPECT_EQ(shorter.attention(AttentionKind::Softmax), shorter.attention(AttentionKind::Softmax, 3));
}

TEST(FusedAttention, StaysAccurateOnSequencesOfManyStretches) {
  // 20,000 tokens against sums in double; keys grow along the sequence, so that stabilisers keep moving.
  Sample sample(20000, 1, 16, 32);
  for (std::size_t i = 0; i < sample.keys.size(); ++i) sample.keys[i] *= static_cast<float>(i) / 2e5F;
  for (const AttentionKind kind : with_features) {
    const std::size_t components = component_count(kind, 32);
    const std::vector<double> omega(sample.omega.begin(), sample.omega.end());
    std::vector<double> q(20000 * components), k(q.size());
    for (std::size_t t = 0; t < 20000; ++t) {
      for (auto [from, to] : {std::pair(&sample.queries, &q), std::pair(&sample.keys, &k)}) {
        std::vector<double> x(from->begin() + static_cast<std::ptrdiff_t>(16 * t),
                              from->begin() + static_cast<std::ptrdiff_t>(16 * t + 16));
        for (double& value : x) value *= 0.5;
        log_features(kind, omega, x, std::span(*to).subspan(t * components, components));
        for (std::size_t r = 0; r < components; ++r) {
          double& value = (*to)[t * components + r];
          value = std::exp(value);
        }
      }
    }
    std::vector<double> expected(20000 * 16);
    const std::vector<double> values(sample.values.begin(), sample.values.end());
    ASSERT_EQ(attention_of_features(20000, components, q, k, values, 16, {}, expected),
              AttentionStatus::Fine);
    EXPECT_LT(largest_difference(sample.attention(kind), expected), 3e-6) << name(kind);
  }
}

}  // namespace
}  // namespace rieszflow::attention
