#include "experiments/attention/training/training_kernels.hpp"

#include <array>
#include <cmath>
#include <numeric>

namespace rieszflow::attention {

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void advance(
    const AdamW& method, std::int64_t step, double rate, double decay, double gradient_scale,
    std::span<const float> gradient, std::span<float> first, std::span<float> second,
    std::span<float> weights, std::span<float> average) {
  const auto t = static_cast<double>(step);
  const auto b1 = static_cast<float>(method.first_decay), b2 = static_cast<float>(method.second_decay);
  const auto first_rate = static_cast<float>(rate / (1.0 - std::pow(method.first_decay, t)));
  const auto second_scale = static_cast<float>(1.0 / (1.0 - std::pow(method.second_decay, t)));
  const auto epsilon = static_cast<float>(method.epsilon), scale = static_cast<float>(gradient_scale);
  const auto shrink = static_cast<float>(1.0 - rate * decay),
             follow = static_cast<float>(1.0 - method.averaging);
  const float* __restrict g = gradient.data();
  float* __restrict m = first.data();
  float* __restrict v = second.data();
  float* __restrict x = weights.data();
  float* __restrict mean = average.data();
  for (std::size_t k = 0; k < gradient.size(); ++k) {
    const float slope = scale * g[k];
    m[k] = b1 * m[k] + (1.0f - b1) * slope;
    v[k] = b2 * v[k] + (1.0f - b2) * slope * slope;
    x[k] = shrink * x[k] - first_rate * m[k] / (std::sqrt(v[k] * second_scale) + epsilon);
    mean[k] += follow * (x[k] - mean[k]);
  }
}

double squared_norm(std::span<const float> values) {
  constexpr std::size_t lanes = 16;  // sums of their own, which the processor adds at once
  std::array<double, lanes> sums{};
  const std::size_t whole = values.size() / lanes * lanes;
  for (std::size_t k = 0; k < whole; k += lanes)
    for (std::size_t l = 0; l < lanes; ++l)
      sums[l] += static_cast<double>(values[k + l]) * static_cast<double>(values[k + l]);
  for (std::size_t k = whole; k < values.size(); ++k)
    sums[k - whole] += static_cast<double>(values[k]) * static_cast<double>(values[k]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void fill_dropout_mask(
    std::uint64_t key, double rate, std::span<float> out) {
  const auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32);
  const auto threshold = static_cast<std::int32_t>(std::lround(rate * 2147483648.0 * 0.99999999));
  const auto kept = static_cast<float>(1.0 / (1.0 - rate));
  const std::size_t count = out.size();
  float* __restrict mask = out.data();
  for (std::size_t k = 0; k < count; ++k) {
    std::uint32_t h = (static_cast<std::uint32_t>(k) ^ low) * 0x9e3779b9u + high;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    mask[k] = static_cast<std::int32_t>(h >> 1) < threshold ? 0.0f : kept;
  }
}

}  // namespace rieszflow::attention
