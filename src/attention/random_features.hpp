#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// Attention by positive random features, and the O(L^2) double references that the fast engine is held
/// against.
///
/// One head of dimension d reads rows q_i, k_j, v_j (i, j < L). With x_i = q_i d^(-1/4) and y_j = k_j
/// d^(-1/4), so that <x, y> = <q, k> / sqrt(d), its output is the weighted mean of values
///     out_i = sum_j a(x_i, y_j) v_j / sum_j a(x_i, y_j)   over the valid tokens j,
/// with weights a > 0 of one of these kinds (omega: m rows of dimension d):
///
/// * uniform:     a = 1 (the mean of all values; no attention).
/// * softmax:     a = exp <x, y>.
/// * favor:       a = <phi(x), phi(y)>, phi_r(x) = exp(<omega_r, x> - |x|^2 / 2);  E a / m = exp <x, y>.
/// * softplus:    a = <phi(x), phi(y)>, phi_r(x) = log(1 + exp <omega_r, x>).
/// * softmaxfeat: a = <phi(x), phi(y)>, phi = softmax over the 2m scores (<omega_1, x>, ..., <omega_m, x>,
///                -<omega_1, x>, ..., -<omega_m, x>) jointly: the components of one phi sum to 1.
///
/// Nothing is added to a feature or to the denominator: everything is a sum of positive terms in log space,
/// the largest taken out first. Where no token is valid the output is 0.
/// Sources: Choromanski et al., ICLR 2021 (favor); Zhang et al., ICLR 2024 (softmax over features).
namespace rieszflow::attention {

enum class AttentionKind { Uniform, Softmax, Favor, PorfSoftplus, SoftmaxFeatures };

/// All kinds, in the order of the enumeration.
std::span<const AttentionKind> attention_kinds();
std::string_view name(AttentionKind kind);  ///< "uniform", "softmax", "favor", "softplus", "softmaxfeat"
std::string_view meaning(AttentionKind kind);  ///< its weights a(x, y) in one line
std::optional<AttentionKind> attention_kind_named(std::string_view name);
/// Whether the kind has an omega.
bool has_features(AttentionKind kind);
/// Components of phi for m rows of omega: 2m for softmaxfeat, m for favor and softplus, 0 without features.
std::size_t component_count(AttentionKind kind, std::size_t m);

/// omega of one head, (m, d) row-major: blocks of d orthogonal rows of Haar law, the norms those of
/// independent d-dimensional Gaussians: each row is N(0, I). Keyed by (seed, AttentionFeature, stream).
std::vector<double> orthogonal_features(std::size_t m, std::size_t d, std::uint64_t seed,
                                        std::uint64_t stream);
/// New orthogonal directions, independent of orthogonal_features of the same key, with the norms of the given
/// rows: the control that tells whether directions or norms were learned. omega: (m, d).
std::vector<double> norm_matched_features(std::span<const double> omega, std::size_t d, std::uint64_t seed,
                                          std::uint64_t stream);

/// log phi of one row x (dimension d, already scaled by d^(-1/4)); out: (component). omega: (m, d).
void log_features(AttentionKind kind, std::span<const double> omega, std::span<const double> x,
                  std::span<double> out);

/// Numbers whose quotient is no number: what came out instead of a value.
enum class AttentionStatus {
  Fine,
  DenominatorNotPositive,  ///< a sum of weights was <= 0; the rows concerned are 0
  NotFinite,               ///< an input or a result was not finite; the rows concerned are 0
};

/// One head in double. Rows of queries and keys have `dimension` numbers, rows of values `value_dimension`.
struct HeadInput {
  std::size_t length = 0;
  std::size_t dimension = 0;
  std::size_t value_dimension = 0;
  std::span<const double> queries, keys, values;
  std::span<const std::uint8_t> valid{};  ///< (length); empty: all tokens are valid
};

/// The definition above, O(L^2) in log space; out: (length, value_dimension). omega: (m, dimension), empty
/// for kinds without features.
AttentionStatus reference_attention(AttentionKind kind, std::span<const double> omega, const HeadInput& input,
                                    std::span<double> out);

/// out_i = sum_j <a_i, b_j> v_j / sum_j <a_i, b_j> for any features, signs allowed. query_features,
/// key_features: (length, components); values: (length, value_dimension).
AttentionStatus attention_of_features(std::size_t length, std::size_t components,
                                      std::span<const double> query_features,
                                      std::span<const double> key_features, std::span<const double> values,
                                      std::size_t value_dimension, std::span<const std::uint8_t> valid,
                                      std::span<double> out);

/// Mean of |q|^2 / sqrt(d) over rows (row, d): the exponent that favor has to average over. Above about 1 the
/// estimator of exp <x, y> by a few dozen features has a relative error of 1 or more.
double mean_square_score(std::span<const double> rows, std::size_t d);

}  // namespace rieszflow::attention
