#include "analysis/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double mean_of(std::span<const double> samples) {
  CompensatedSum sum;
  for (double sample : samples) sum.add(sample);
  return sum.value() / static_cast<double>(samples.size());
}

double squared_deviations(std::span<const double> samples, double mean) {
  CompensatedSum sum;
  for (double sample : samples) sum.add((sample - mean) * (sample - mean));
  return sum.value();
}

}  // namespace

Estimate mean_estimate(std::span<const double> samples) {
  expects(!samples.empty(), "a mean needs at least one sample");
  const double n = static_cast<double>(samples.size());
  const double mean = mean_of(samples);
  const double variance_of_mean = squared_deviations(samples, mean) / (n * (n - 1.0));
  return {mean, samples.size() > 1 ? std::sqrt(variance_of_mean) : not_a_number, samples.size()};
}

Estimate pooled_estimate(std::span<const Estimate> estimates) {
  expects(!estimates.empty(), "pooling needs at least one estimate");
  double weight = 0.0, value = 0.0, variance = 0.0;
  std::size_t samples = 0;
  for (const Estimate& estimate : estimates) {
    const double n = static_cast<double>(estimate.samples);
    weight += n;
    value += n * estimate.value;
    variance += n * n * estimate.standard_error * estimate.standard_error;
    samples += estimate.samples;
  }
  expects(samples > 0, "pooling needs estimates with samples");
  return {value / weight, std::sqrt(variance) / weight, samples};
}

Estimate jackknife(std::size_t sample_count, const std::function<double(std::size_t left_out)>& statistic) {
  expects(sample_count > 1, "the jackknife needs at least two samples");
  std::vector<double> without(sample_count);
  for (std::size_t i = 0; i < sample_count; ++i) without[i] = statistic(i);
  const double n = static_cast<double>(sample_count);
  const double mean = mean_of(without);
  return {n * statistic(sample_count) - (n - 1.0) * mean,
          std::sqrt((n - 1.0) / n * squared_deviations(without, mean)), sample_count};
}

Estimate ratio_estimate(std::span<const double> numerators, std::span<const double> denominators) {
  expects(numerators.size() == denominators.size(), "a ratio needs pairs");
  const double n = static_cast<double>(numerators.size());
  const double numerator = n * mean_of(numerators);
  const double denominator = n * mean_of(denominators);
  return jackknife(numerators.size(), [&](std::size_t left_out) {
    if (left_out == numerators.size()) return numerator / denominator;
    return (numerator - numerators[left_out]) / (denominator - denominators[left_out]);
  });
}

Autocorrelation autocorrelation(std::span<const double> series) {
  expects(!series.empty(), "an autocorrelation needs at least one sample");
  const std::size_t count = series.size();
  const double n = static_cast<double>(count);
  const double mean = mean_of(series);
  std::vector<double> deviation(count);
  for (std::size_t i = 0; i < count; ++i) deviation[i] = series[i] - mean;
  const auto covariance = [&](std::size_t lag) {
    double sum = 0.0;
    for (std::size_t i = lag; i < count; ++i) sum += deviation[i] * deviation[i - lag];
    return sum / n;
  };
  const double variance = covariance(0);
  if (!(variance > 0.0)) return {n, 1.0, 0, false};
  double pairs = 0.0;
  double smallest = std::numeric_limits<double>::infinity();
  std::size_t lag = 0;
  for (; lag + 1 < count; lag += 2) {
    const double pair = (lag == 0 ? variance : covariance(lag)) + covariance(lag + 1);
    if (pair <= 0.0) break;
    smallest = std::min(smallest, pair);
    pairs += smallest;
  }
  // tau >= 1/n: no series is worth more than n^2 samples; a strictly alternating one would otherwise divide
  // by zero.
  const double time = std::clamp(2.0 * pairs / variance - 1.0, 1.0 / n, n);
  return {time, n / time, lag, n >= 50.0 * time};
}

Estimate correlated_mean_estimate(std::span<const double> series) {
  const Autocorrelation correlation = autocorrelation(series);
  const double n = static_cast<double>(series.size());
  const double mean = mean_of(series);
  const double variance = squared_deviations(series, mean) / (n - 1.0);
  return {mean, series.size() > 1 ? std::sqrt(variance / correlation.effective_samples) : not_a_number,
          static_cast<std::size_t>(correlation.effective_samples)};
}

}  // namespace rieszflow
