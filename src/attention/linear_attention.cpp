#include "attention/linear_attention.hpp"

#include <algorithm>

#include "core/expects.hpp"

namespace rieszflow::attention {

FusedAttention::FusedAttention(AttentionKind kind, std::size_t heads, std::size_t head_dimension,
                               std::span<const float> omega)
    : kind_(kind),
      heads_(heads),
      head_dimension_(head_dimension),
      feature_count_(heads * head_dimension == 0 ? 0 : omega.size() / (heads * head_dimension)),
      omega_(omega.begin(), omega.end()) {
  expects(heads > 0 && head_dimension > 0 && omega.size() == heads * feature_count_ * head_dimension &&
              has_features(kind) == (feature_count_ > 0),
          "omega of shape (head, m, head_dimension), empty for kinds without features");
}

AttentionStatus FusedAttention::apply(const TokenRows& rows, float* out, std::size_t out_stride, int) const {
  const std::size_t L = rows.length, d = head_dimension_, per_head = feature_count_ * d;
  AttentionStatus status = AttentionStatus::Fine;
  for (std::size_t head = 0; head < heads_; ++head) {
    const auto gathered = [&](const float* from) {
      std::vector<double> to(L * d);
      for (std::size_t t = 0; t < L; ++t)
        for (std::size_t c = 0; c < d; ++c) to[t * d + c] = from[t * rows.token_stride + head * d + c];
      return to;
    };
    const std::vector<double> q = gathered(rows.queries), k = gathered(rows.keys), v = gathered(rows.values);
    const std::vector<double> omega(omega_.begin() + static_cast<std::ptrdiff_t>(head * per_head),
                                    omega_.begin() + static_cast<std::ptrdiff_t>((head + 1) * per_head));
    std::vector<double> result(L * d);
    status = std::max(status, reference_attention(kind_, omega,
                                                  {.length = L,
                                                   .dimension = d,
                                                   .value_dimension = d,
                                                   .queries = q,
                                                   .keys = k,
                                                   .values = v,
                                                   .valid = rows.valid},
                                                  result));
    for (std::size_t t = 0; t < L; ++t)
      for (std::size_t c = 0; c < d; ++c)
        out[t * out_stride + head * d + c] = static_cast<float>(result[t * d + c]);
  }
  return status;
}

}  // namespace rieszflow::attention
