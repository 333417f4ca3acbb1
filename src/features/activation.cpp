#include "features/activation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "features/lanes.hpp"
#include "features/matrix_product.hpp"

namespace rieszflow {
namespace {

using lanes::at;
using lanes::Vector;

/// True when |score| <= bound for all; false also for a NaN.
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) bool within(
    const double* scores, std::size_t count, double bound) {
  lanes::Integers outside{};
  for (std::size_t k = 0; k < count; k += column_group) {
    const Vector s = at(scores + k);
    outside |= ~((s <= bound) & (s >= -bound));
  }
  std::int64_t any = 0;
  for (std::size_t lane = 0; lane < column_group; ++lane) any |= outside[lane];
  return any == 0;
}

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void fourier(
    const double* scores, std::size_t count, double* cosine, double* sine, double* cosine_slope,
    double* sine_slope) {
  for (std::size_t k = 0; k < count; k += column_group) {
    Vector s, c;
    lanes::sine_cosine(at(scores + k), s, c);
    at(cosine + k) = c;
    at(sine + k) = s;
    at(cosine_slope + k) = -s;
    at(sine_slope + k) = c;
  }
}

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void phase(const double* scores,
                                                                                         std::size_t count,
                                                                                         double* value,
                                                                                         double* slope) {
  for (std::size_t k = 0; k < count; k += column_group) {
    Vector s, c;
    lanes::sine_cosine(at(scores + k), s, c);
    at(value + k) = std::numbers::sqrt2 * c;
    at(slope + k) = -std::numbers::sqrt2 * s;
  }
}

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void exponential(
    const double* scores, std::size_t count, double* value) {
  for (std::size_t k = 0; k < count; k += column_group) lanes::exponential(at(scores + k), at(value + k));
}

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void softplus(
    const double* scores, std::size_t count, double* value, double* slope) {
  for (std::size_t k = 0; k < count; k += column_group) {
    const Vector s = at(scores + k);
    const Vector magnitude = s < 0.0 ? -s : s;
    Vector t, logarithm;
    lanes::exponential(-magnitude, t);  // log(1 + e^s) = max(s, 0) + log(1 + e^-|s|)
    lanes::logarithm_of_one_plus(t, logarithm);
    at(value + k) = (s < 0.0 ? 0.0 * s : s) + logarithm;
    at(slope + k) = (s < 0.0 ? t : 0.0 * t + 1.0) / (1.0 + t);
  }
}

}  // namespace

void activate(FeatureMap map, const double* scores, std::size_t count, double* const* values,
              double* const* slopes) {
  switch (map) {
    case FeatureMap::Fourier:
      if (within(scores, count, lanes::largest_angle))
        return fourier(scores, count, values[0], values[1], slopes[0], slopes[1]);
      for (std::size_t k = 0; k < count; ++k) {
        values[0][k] = slopes[1][k] = std::cos(scores[k]);
        values[1][k] = std::sin(scores[k]);
        slopes[0][k] = -values[1][k];
      }
      return;
    case FeatureMap::FourierPhase:
    case FeatureMap::Circle:
      if (within(scores, count, lanes::largest_angle)) return phase(scores, count, values[0], slopes[0]);
      for (std::size_t k = 0; k < count; ++k) {
        values[0][k] = std::numbers::sqrt2 * std::cos(scores[k]);
        slopes[0][k] = -std::numbers::sqrt2 * std::sin(scores[k]);
      }
      return;
    case FeatureMap::PositiveExponential:
    case FeatureMap::Softmax:
    case FeatureMap::SoftmaxPair:
      if (within(scores, count, lanes::largest_exponent)) {
        exponential(scores, count, values[0]);
      } else {
        for (std::size_t k = 0; k < count; ++k) values[0][k] = std::exp(scores[k]);
      }
      std::copy_n(values[0], count, slopes[0]);
      return;
    case FeatureMap::Softplus:
      if (within(scores, count, lanes::largest_exponent))
        return softplus(scores, count, values[0], slopes[0]);
      for (std::size_t k = 0; k < count; ++k) {
        const double t = std::exp(-std::abs(scores[k]));
        values[0][k] = std::max(scores[k], 0.0) + std::log1p(t);
        slopes[0][k] = (scores[k] < 0.0 ? t : 1.0) / (1.0 + t);
      }
      return;
    case FeatureMap::Relu:
      for (std::size_t k = 0; k < count; ++k) {
        values[0][k] = scores[k] < 0.0 ? 0.0 : scores[k];  // a NaN stays a NaN
        slopes[0][k] = scores[k] <= 0.0 ? 0.0 : 1.0;
      }
      return;
  }
}

}  // namespace rieszflow
