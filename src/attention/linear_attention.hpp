#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "attention/random_features.hpp"

namespace rieszflow::attention {

/// Queries, keys and values of one sequence, all heads side by side: component c of head h of token t is
/// data[t * token_stride + h * head_dimension + c].
struct TokenRows {
  std::size_t length = 0;
  std::size_t token_stride = 0;
  const float* queries = nullptr;
  const float* keys = nullptr;
  const float* values = nullptr;
  /// (length); empty: all tokens are valid. Other tokens are no keys; their own rows of the output are those
  /// of a query like any other.
  std::span<const std::uint8_t> valid{};
};

namespace simd {
struct Kernels;
}

/// Multi-head attention of the kinds of random_features.hpp in float32, made for long sequences.
///
/// With features, O(L m d) time and memory that does not grow with L: a block of tokens at a time goes
/// through phi into the running sums sum_j phi_r(k_j) (v_j, 1), then each query reads them. The sums of favor
/// have one stabiliser for each feature, the largest exponent of any key so far: raising it rescales that
/// feature's sum, and a query adds it to its own exponents before it takes its largest one out. So each
/// denominator holds a term of at least 2^-24, whatever the norms. Sums over more than 4096 tokens are kept
/// in double. Exact softmax is the same sweep over keys with the queries of a block as features: O(L^2) time,
/// the same memory.
///
/// Where float32 would lose digits (|x| |omega_r| > 256, |x|^2 > 128, exact softmax: |x| |y| > 128) or a sum
/// has fallen below 1e-20, the head is evaluated in double instead, O(L m d) still. Heads and stretches of
/// tokens are spread over threads.
///
/// The bits of the result depend on the valid tokens only: not on tokens that are not valid, nor where they
/// stand, nor on the number of threads.
class FusedAttention {
 public:
  /// omega: (head, m, head_dimension) row-major, empty for kinds without features. level: one of
  /// levels(), for comparisons; empty: the widest.
  FusedAttention(AttentionKind kind, std::size_t heads, std::size_t head_dimension,
                 std::span<const float> omega, std::string_view level = {});

  /// out: the layout of the inputs, rows `out_stride` apart; rows of tokens that are not valid become 0.
  /// heads_in_double: how many heads float32 was too narrow for.
  AttentionStatus apply(const TokenRows& rows, float* out, std::size_t out_stride, int threads = 1,
                        std::size_t* heads_in_double = nullptr) const;

  AttentionKind kind() const { return kind_; }
  std::size_t heads() const { return heads_; }
  std::size_t head_dimension() const { return head_dimension_; }
  std::size_t feature_count() const { return feature_count_; }  ///< m
  std::string_view level() const;

  /// Processor levels of this build that this processor can run, the widest first: of "x86_64_v4",
  /// "x86_64_v3" and "baseline".
  static std::vector<std::string_view> levels();

 private:
  AttentionKind kind_;
  std::size_t heads_;
  std::size_t head_dimension_;
  std::size_t feature_count_;
  const simd::Kernels* kernels_;
  std::vector<float> omega_;
  std::vector<float> packed_;           ///< (head, head_dimension, padded m), scaled for the kernels
  std::vector<float> largest_squares_;  ///< (head) of |q|^2 and |k|^2 in float32
};

}  // namespace rieszflow::attention
