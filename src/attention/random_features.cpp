#include "attention/random_features.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/expects.hpp"
#include "core/noise.hpp"
#include "features/haar.hpp"

namespace rieszflow::attention {
namespace {

constexpr std::array kinds{AttentionKind::Uniform, AttentionKind::Softmax, AttentionKind::Favor,
                           AttentionKind::PorfSoftplus, AttentionKind::SoftmaxFeatures};

// Steps of the noise stream of a head: which of its draws.
enum : std::uint64_t { norm_draw = 0, direction_draw = 1, control_direction_draw = 2 };

double inner(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// m rows in blocks of d orthonormal ones, row r times norms[r].
std::vector<double> scaled_directions(std::span<const double> norms, std::size_t d, const NoiseStream& noise,
                                      std::uint64_t stream, std::uint64_t draw) {
  std::vector<double> out(norms.size() * d), block;
  for (std::size_t r = 0; r < norms.size(); ++r) {
    if (r % d == 0) block = haar_matrix(noise, stream, draw, r / d, d);
    for (std::size_t k = 0; k < d; ++k) out[r * d + k] = norms[r] * block[(r % d) * d + k];
  }
  return out;
}

double log_of_softplus(double s) {
  // log(1 + e^s) = e^s (1 - e^s / 2 + ...) for s -> -infinity; the next term is below 2^-53 from -37 on
  if (s < -37.0) return s;
  return std::log(std::max(s, 0.0) + std::log1p(std::exp(-std::abs(s))));
}

double log_sum_exp(std::span<const double> terms) {
  const double largest = *std::max_element(terms.begin(), terms.end());
  double sum = 0.0;
  for (const double term : terms) sum += std::exp(term - largest);
  return largest + std::log(sum);
}

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

AttentionStatus worse(AttentionStatus a, AttentionStatus b) { return std::max(a, b); }

}  // namespace

std::span<const AttentionKind> attention_kinds() { return kinds; }

std::string_view name(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::Uniform:
      return "uniform";
    case AttentionKind::Softmax:
      return "softmax";
    case AttentionKind::Favor:
      return "favor";
    case AttentionKind::PorfSoftplus:
      return "softplus";
    case AttentionKind::SoftmaxFeatures:
      return "softmaxfeat";
  }
  return "";
}

std::string_view meaning(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::Uniform:
      return "the mean of all values: no attention";
    case AttentionKind::Softmax:
      return "exp <x, y>, exact; x = q d^(-1/4), y = k d^(-1/4)";
    case AttentionKind::Favor:
      return "<phi(x), phi(y)>, phi_r(x) = exp(<omega_r, x> - |x|^2 / 2)";
    case AttentionKind::PorfSoftplus:
      return "<phi(x), phi(y)>, phi_r(x) = log(1 + exp <omega_r, x>), orthogonal omega";
    case AttentionKind::SoftmaxFeatures:
      return "<phi(x), phi(y)>, phi = softmax of (<omega_r, x>, -<omega_r, x>) over all r jointly";
  }
  return "";
}

std::optional<AttentionKind> attention_kind_named(std::string_view text) {
  for (const AttentionKind kind : kinds)
    if (name(kind) == text) return kind;
  return std::nullopt;
}

bool has_features(AttentionKind kind) { return component_count(kind, 1) > 0; }

std::size_t component_count(AttentionKind kind, std::size_t m) {
  switch (kind) {
    case AttentionKind::Uniform:
    case AttentionKind::Softmax:
      return 0;
    case AttentionKind::Favor:
    case AttentionKind::PorfSoftplus:
      return m;
    case AttentionKind::SoftmaxFeatures:
      return 2 * m;
  }
  return 0;
}

std::vector<double> orthogonal_features(std::size_t m, std::size_t d, std::uint64_t seed,
                                        std::uint64_t stream) {
  expects(d > 0, "a head of some dimension");
  const NoiseStream noise(seed, NoisePurpose::AttentionFeature);
  std::vector<double> norms(m), gaussians(d);
  for (std::size_t r = 0; r < m; ++r) {
    noise.gaussians(stream, norm_draw, r, gaussians);
    norms[r] = std::sqrt(inner(gaussians, gaussians));
  }
  return scaled_directions(norms, d, noise, stream, direction_draw);
}

std::vector<double> norm_matched_features(std::span<const double> omega, std::size_t d, std::uint64_t seed,
                                          std::uint64_t stream) {
  expects(d > 0 && omega.size() % d == 0, "omega of shape (m, d)");
  std::vector<double> norms(omega.size() / d);
  for (std::size_t r = 0; r < norms.size(); ++r)
    norms[r] = std::sqrt(inner(omega.subspan(r * d, d), omega.subspan(r * d, d)));
  return scaled_directions(norms, d, NoiseStream(seed, NoisePurpose::AttentionFeature), stream,
                           control_direction_draw);
}

void log_features(AttentionKind kind, std::span<const double> omega, std::span<const double> x,
                  std::span<double> out) {
  const std::size_t d = x.size(), m = omega.size() / d;
  expects(has_features(kind) && omega.size() == m * d && out.size() == component_count(kind, m),
          "one number per component");
  const auto score = [&](std::size_t r) { return inner(omega.subspan(r * d, d), x); };
  switch (kind) {
    case AttentionKind::Favor:
      for (std::size_t r = 0; r < m; ++r) out[r] = score(r) - 0.5 * inner(x, x);
      break;
    case AttentionKind::PorfSoftplus:
      for (std::size_t r = 0; r < m; ++r) out[r] = log_of_softplus(score(r));
      break;
    default: {
      for (std::size_t r = 0; r < m; ++r) {
        out[r] = score(r);
        out[m + r] = -out[r];
      }
      const double total = log_sum_exp(out);
      for (double& value : out) value -= total;
    }
  }
}

AttentionStatus reference_attention(AttentionKind kind, std::span<const double> omega, const HeadInput& in,
                                    std::span<double> out) {
  const std::size_t L = in.length, d = in.dimension, p = in.value_dimension;
  expects(in.queries.size() == L * d && in.keys.size() == L * d && in.values.size() == L * p &&
              out.size() == L * p && (in.valid.empty() || in.valid.size() == L),
          "rows of one head");
  expects(has_features(kind) == !omega.empty() && omega.size() % d == 0, "omega of shape (m, d)");
  const double scale = std::pow(static_cast<double>(d), -0.25);
  const std::size_t components = component_count(kind, omega.size() / d);
  const auto scaled = [&](std::span<const double> rows, std::size_t i) {
    std::vector<double> x(rows.begin() + static_cast<std::ptrdiff_t>(i * d),
                          rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * d));
    for (double& value : x) value *= scale;
    return x;
  };
  std::vector<std::size_t> tokens;
  for (std::size_t j = 0; j < L; ++j)
    if (in.valid.empty() || in.valid[j] != 0) tokens.push_back(j);
  std::vector<std::vector<double>> keys;
  for (const std::size_t j : tokens) {
    keys.push_back(scaled(in.keys, j));
    if (components > 0) {
      std::vector<double> logs(components);
      log_features(kind, omega, keys.back(), logs);
      keys.back() = std::move(logs);
    }
  }
  AttentionStatus status = AttentionStatus::Fine;
  std::vector<double> weights(tokens.size()), terms(components);
  for (std::size_t i = 0; i < L; ++i) {
    const auto row = out.subspan(i * p, p);
    std::fill(row.begin(), row.end(), 0.0);
    if (tokens.empty()) continue;
    std::vector<double> query = scaled(in.queries, i);
    if (components > 0) {
      std::vector<double> logs(components);
      log_features(kind, omega, query, logs);
      query = std::move(logs);
    }
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      if (kind == AttentionKind::Uniform) {
        weights[t] = 0.0;
      } else if (kind == AttentionKind::Softmax) {
        weights[t] = inner(query, keys[t]);
      } else {
        for (std::size_t c = 0; c < components; ++c) terms[c] = query[c] + keys[t][c];
        weights[t] = log_sum_exp(terms);
      }
    }
    const double total = log_sum_exp(weights);
    for (std::size_t t = 0; t < tokens.size(); ++t)
      for (std::size_t c = 0; c < p; ++c)
        row[c] += std::exp(weights[t] - total) * in.values[tokens[t] * p + c];
    if (!all_finite(row)) {
      std::fill(row.begin(), row.end(), 0.0);
      status = AttentionStatus::NotFinite;
    }
  }
  return status;
}

AttentionStatus attention_of_features(std::size_t length, std::size_t components,
                                      std::span<const double> query_features,
                                      std::span<const double> key_features, std::span<const double> values,
                                      std::size_t value_dimension, std::span<const std::uint8_t> valid,
                                      std::span<double> out) {
  const std::size_t p = value_dimension;
  expects(query_features.size() == length * components && key_features.size() == length * components &&
              values.size() == length * p && out.size() == length * p &&
              (valid.empty() || valid.size() == length),
          "rows of one head");
  std::vector<double> sums(components * (p + 1), 0.0);  // (component, value..., 1)
  std::size_t tokens = 0;
  for (std::size_t j = 0; j < length; ++j) {
    if (!valid.empty() && valid[j] == 0) continue;
    ++tokens;
    for (std::size_t c = 0; c < components; ++c) {
      const double feature = key_features[j * components + c];
      for (std::size_t k = 0; k < p; ++k) sums[c * (p + 1) + k] += feature * values[j * p + k];
      sums[c * (p + 1) + p] += feature;
    }
  }
  AttentionStatus status = AttentionStatus::Fine;
  for (std::size_t i = 0; i < length; ++i) {
    const auto row = out.subspan(i * p, p);
    std::fill(row.begin(), row.end(), 0.0);
    if (tokens == 0) continue;
    double denominator = 0.0;
    for (std::size_t c = 0; c < components; ++c) {
      const double feature = query_features[i * components + c];
      for (std::size_t k = 0; k < p; ++k) row[k] += feature * sums[c * (p + 1) + k];
      denominator += feature * sums[c * (p + 1) + p];
    }
    AttentionStatus here = AttentionStatus::Fine;
    if (!std::isfinite(denominator) || !all_finite(row)) {
      here = AttentionStatus::NotFinite;
    } else if (denominator <= 0.0) {
      here = AttentionStatus::DenominatorNotPositive;
    }
    for (double& value : row) value = here == AttentionStatus::Fine ? value / denominator : 0.0;
    status = worse(status, here);
  }
  return status;
}

double mean_square_score(std::span<const double> rows, std::size_t d) {
  expects(d > 0 && !rows.empty() && rows.size() % d == 0, "rows of dimension d");
  return inner(rows, rows) / static_cast<double>(rows.size() / d) / std::sqrt(static_cast<double>(d));
}

}  // namespace rieszflow::attention
