#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
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

/// Multi-head attention of the kinds of random_features.hpp in float32, made for long sequences.
///
/// With features: O(L m d) time and memory that does not grow with L. Without padding, a sequence and the
/// same sequence with invalid tokens appended give the same bits; so does any number of threads.
class FusedAttention {
 public:
  /// omega: (head, m, head_dimension) row-major, empty for kinds without features.
  FusedAttention(AttentionKind kind, std::size_t heads, std::size_t head_dimension,
                 std::span<const float> omega);

  /// out: the layout of the inputs, rows `out_stride` apart. Runs on at most `threads` threads.
  AttentionStatus apply(const TokenRows& rows, float* out, std::size_t out_stride, int threads = 1) const;

  AttentionKind kind() const { return kind_; }
  std::size_t heads() const { return heads_; }
  std::size_t head_dimension() const { return head_dimension_; }
  std::size_t feature_count() const { return feature_count_; }  ///< m

 private:
  AttentionKind kind_;
  std::size_t heads_;
  std::size_t head_dimension_;
  std::size_t feature_count_;
  std::vector<float> omega_;
};

}  // namespace rieszflow::attention
