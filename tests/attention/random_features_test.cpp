#include "attention/random_features.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/noise.hpp"

namespace rieszflow::attention {
namespace {

std::vector<double> gaussians(std::size_t count, std::uint64_t seed, double scale = 1.0) {
  std::vector<double> out(count);
  NoiseStream(seed, NoisePurpose::ReferenceSample).gaussians(0, 0, 0, out);
  for (double& value : out) value *= scale;
  return out;
}

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

TEST(OrthogonalFeatures, HaveTheMeanSquareNormOfAGaussianRowWhateverTheirNumber) {
  constexpr std::size_t d = 16;
  for (const std::size_t m : {16, 32, 40, 64}) {
    double sum = 0.0;
    constexpr std::size_t draws = 50;
    for (std::size_t stream = 0; stream < draws; ++stream) {
      const auto omega = orthogonal_features(m, d, 7, stream);
      sum += dot(omega, omega);
    }
    const double rows = static_cast<double>(m * draws);
    EXPECT_NEAR(sum / rows, 16.0, 5.0 * std::sqrt(2.0 * 16.0 / rows)) << m;  // the variance of chi^2_d is 2d
  }
}

TEST(OrthogonalFeatures, AreOrthogonalWithinABlockAndNotAcross) {
  constexpr std::size_t d = 16, m = 40;
  const auto omega = orthogonal_features(m, d, 1, 0);
  const auto row = [&](std::size_t r) { return std::span(omega).subspan(r * d, d); };
  double across = 0.0;
  for (std::size_t a = 0; a < m; ++a) {
    for (std::size_t b = a + 1; b < m; ++b) {
      if (a / d == b / d) {
        EXPECT_NEAR(dot(row(a), row(b)), 0.0, 1e-12);
      } else {
        across = std::max(across, std::abs(dot(row(a), row(b))));
      }
    }
  }
  EXPECT_GT(across, 1.0);
}

TEST(OrthogonalFeatures, AreHaarDistributed) {
  // One entry of a Haar matrix has mean 0 (a QR without the sign fix has not), variance 1/d and fourth moment
  // 3 / (d (d + 2)).
  constexpr std::size_t d = 4, draws = 4000;
  double first = 0.0, second = 0.0, fourth = 0.0;
  for (std::size_t stream = 0; stream < draws; ++stream) {
    const auto omega = orthogonal_features(d, d, 3, stream);
    const double u = omega[0] / std::sqrt(dot({omega.data(), d}, {omega.data(), d}));
    first += u / draws;
    second += u * u / draws;
    fourth += u * u * u * u / draws;
  }
  EXPECT_NEAR(first, 0.0, 5.0 * 0.5 / std::sqrt(draws));
  EXPECT_NEAR(second, 1.0 / 4.0, 5.0 * 0.25 / std::sqrt(draws));
  EXPECT_NEAR(fourth, 3.0 / 24.0, 5.0 * 0.16 / std::sqrt(draws));
}

TEST(OrthogonalFeatures, NormMatchedOnesHaveTheNormsAndOtherDirections) {
  constexpr std::size_t d = 8, m = 20;
  auto learned = gaussians(m * d, 2, 3.0);
  const auto control = norm_matched_features(learned, d, 1, 0);
  for (std::size_t r = 0; r < m; ++r) {
    const std::span<const double> a = std::span(learned).subspan(r * d, d),
                                  b = std::span(control).subspan(r * d, d);
    EXPECT_NEAR(dot(a, a), dot(b, b), 1e-12 * dot(a, a));
    EXPECT_LT(std::abs(dot(a, b)), 0.999 * dot(a, a));
  }
}

TEST(FavorFeatures, EstimateTheExponentialOfTheScoreWithoutBias) {
  constexpr std::size_t d = 8, m = 16, draws = 2000;
  const auto x = gaussians(d, 1, 0.35), y = gaussians(d, 2, 0.35);
  std::vector<double> a(m), b(m);
  double mean = 0.0, square = 0.0;
  for (std::size_t stream = 0; stream < draws; ++stream) {
    const auto omega = orthogonal_features(m, d, 5, stream);
    log_features(AttentionKind::Favor, omega, x, a);
    log_features(AttentionKind::Favor, omega, y, b);
    double kernel = 0.0;
    for (std::size_t r = 0; r < m; ++r) kernel += std::exp(a[r] + b[r]) / m;
    mean += kernel / draws;
    square += kernel * kernel / draws;
  }
  EXPECT_NEAR(mean, std::exp(dot(x, y)), 5.0 * std::sqrt((square - mean * mean) / draws));
}

TEST(SoftmaxFeatures, AreOneDistributionOverBothSigns) {
  constexpr std::size_t d = 4, m = 6;
  const auto omega = orthogonal_features(m, d, 1, 0);
  std::vector<double> logs(2 * m);
  log_features(AttentionKind::SoftmaxFeatures, omega, std::vector<double>(d, 0.0), logs);
  for (const double value : logs) EXPECT_NEAR(std::exp(value), 1.0 / (2 * m), 1e-15);
  const auto x = gaussians(d, 4);
  log_features(AttentionKind::SoftmaxFeatures, omega, x, logs);
  double total = 0.0;
  for (const double value : logs) total += std::exp(value);
  EXPECT_NEAR(total, 1.0, 1e-14);
  for (std::size_t r = 0; r < m; ++r)
    EXPECT_NEAR(logs[r] - logs[m + r], 2.0 * dot(std::span(omega).subspan(r * d, d), x), 1e-13);
}

TEST(SoftplusFeatures, AreTheirFormulaInBothTails) {
  const std::vector<double> omega{1.0}, expected{std::log(std::log1p(std::exp(2.0)))};
  std::vector<double> logs(1);
  log_features(AttentionKind::PorfSoftplus, omega, std::vector<double>{2.0}, logs);
  EXPECT_NEAR(logs[0], expected[0], 1e-15);
  log_features(AttentionKind::PorfSoftplus, omega, std::vector<double>{-800.0}, logs);
  EXPECT_EQ(logs[0], -800.0);
  log_features(AttentionKind::PorfSoftplus, omega, std::vector<double>{800.0}, logs);
  EXPECT_NEAR(logs[0], std::log(800.0), 1e-14);
}

/// Root mean square of the relative error of favor against exact softmax over independent omega.
double favor_error(std::size_t m, double scale, std::size_t draws) {
  constexpr std::size_t L = 16, d = 16;
  const auto q = gaussians(L * d, 1, scale), k = gaussians(L * d, 2, scale), v = gaussians(L * d, 3);
  const HeadInput input{
      .length = L, .dimension = d, .value_dimension = d, .queries = q, .keys = k, .values = v};
  std::vector<double> exact(L * d), estimate(L * d);
  reference_attention(AttentionKind::Softmax, {}, input, exact);
  double sum = 0.0;
  for (std::size_t draw = 0; draw < draws; ++draw) {
    reference_attention(AttentionKind::Favor, orthogonal_features(m, d, 11, draw), input, estimate);
    double error = 0.0;
    for (std::size_t i = 0; i < exact.size(); ++i)
      error += (estimate[i] - exact[i]) * (estimate[i] - exact[i]);
    sum += error / dot(exact, exact);
  }
  return std::sqrt(sum / static_cast<double>(draws));
}

TEST(Favor, ConvergesToExactSoftmaxLikeTheInverseRootOfTheNumberOfFeatures) {
  std::vector<double> sizes, errors;
  for (const std::size_t m : {64, 256, 1024, 4096}) {
    sizes.push_back(std::log(static_cast<double>(m)));
    errors.push_back(std::log(favor_error(m, 0.5, 4)));
  }
  const double mean_x = dot(sizes, std::vector<double>(4, 0.25)),
               mean_y = dot(errors, std::vector<double>(4, 0.25));
  double covariance = 0.0, variance = 0.0;
  for (std::size_t k = 0; k < 4; ++k) {
    covariance += (sizes[k] - mean_x) * (errors[k] - mean_y);
    variance += (sizes[k] - mean_x) * (sizes[k] - mean_x);
  }
  EXPECT_NEAR(covariance / variance, -0.5, 0.1);
  EXPECT_LT(std::exp(errors.back()), 0.06);
}

TEST(Favor, ALargeKeyDoesNotTurnItsOutputIntoTheMeanOfTheValues) {
  constexpr std::size_t L = 16, d = 16;
  const auto q = gaussians(L * d, 1, 0.5), v = gaussians(L * d, 3);
  auto k = gaussians(L * d, 2, 0.5);
  for (std::size_t c = 0; c < d; ++c) k[c] *= 12.0;
  const HeadInput input{
      .length = L, .dimension = d, .value_dimension = d, .queries = q, .keys = k, .values = v};
  std::vector<double> out(L * d), mean(L * d);
  reference_attention(AttentionKind::Favor, orthogonal_features(64, d, 1, 0), input, out);
  reference_attention(AttentionKind::Uniform, {}, input, mean);
  double distance = 0.0;
  for (std::size_t i = 0; i < out.size(); ++i) distance += (out[i] - mean[i]) * (out[i] - mean[i]);
  EXPECT_GT(std::sqrt(distance / dot(mean, mean)), 0.2);
}

TEST(AttentionOfFeatures, IsTheReferenceForPositiveFeatures) {
  constexpr std::size_t L = 9, d = 4, m = 6;
  const auto q = gaussians(L * d, 1), k = gaussians(L * d, 2), v = gaussians(L * 3, 3);
  const auto omega = orthogonal_features(m, d, 1, 0);
  const std::vector<std::uint8_t> valid{1, 1, 0, 1, 1, 1, 0, 1, 1};
  for (const AttentionKind kind :
       {AttentionKind::Favor, AttentionKind::PorfSoftplus, AttentionKind::SoftmaxFeatures}) {
    const std::size_t components = component_count(kind, m);
    const auto features = [&](const std::vector<double>& rows) {
      std::vector<double> out(L * components);
      for (std::size_t t = 0; t < L; ++t) {
        std::vector<double> x(rows.begin() + t * d, rows.begin() + (t + 1) * d);
        for (double& value : x) value *= std::pow(4.0, -0.25);
        log_features(kind, omega, x, std::span(out).subspan(t * components, components));
      }
      for (double& value : out) value = std::exp(value);
      return out;
    };
    std::vector<double> direct(L * 3), reference(L * 3);
    EXPECT_EQ(attention_of_features(L, components, features(q), features(k), v, 3, valid, direct),
              AttentionStatus::Fine);
    reference_attention(kind, omega,
                        {.length = L,
                         .dimension = d,
                         .value_dimension = 3,
                         .queries = q,
                         .keys = k,
                         .values = v,
                         .valid = valid},
                        reference);
    for (std::size_t i = 0; i < direct.size(); ++i) EXPECT_NEAR(direct[i], reference[i], 1e-13);
  }
}

TEST(AttentionOfFeatures, ReportsADenominatorThatIsNotPositive) {
  // One token, q = -k, two random Fourier features (cos, sin) of frequency w: <phi, phi> = cos(2 w k) may be
  // negative.
  const double angle = 1.2;
  const std::vector<double> query{std::cos(-angle), std::sin(-angle)}, key{std::cos(angle), std::sin(angle)};
  std::vector<double> out{7.0};
  EXPECT_EQ(attention_of_features(1, 2, query, key, std::vector<double>{1.0}, 1, {}, out),
            AttentionStatus::DenominatorNotPositive);
  EXPECT_EQ(out[0], 0.0);
  EXPECT_EQ(
      attention_of_features(1, 2, query, std::vector<double>{NAN, 0.0}, std::vector<double>{1.0}, 1, {}, out),
      AttentionStatus::NotFinite);
}

TEST(AttentionKinds, AreFoundByTheirNames) {
  for (const AttentionKind kind : attention_kinds()) EXPECT_EQ(attention_kind_named(name(kind)), kind);
  EXPECT_FALSE(attention_kind_named("performer").has_value());
}

TEST(MeanSquareScore, IsTheMeanExponentOfAGaussianHead) {
  EXPECT_NEAR(mean_square_score(gaussians(4000 * 16, 1), 16), 4.0, 5 * std::sqrt(32.0 / 4000) / 4);
}

}  // namespace
}  // namespace rieszflow::attention
