#pragma once
#include <cstddef>
#include <functional>
#include <span>

namespace rieszflow {

/// A value from random data is never a bare number.
struct Estimate {
  double value = 0.0;
  double standard_error = 0.0;  ///< NaN when there is only one sample
  std::size_t samples = 0;
};

/// Mean of independent samples with its standard error, s / sqrt(n), s^2 with divisor n - 1. At least one
/// sample.
Estimate mean_estimate(std::span<const double> samples);

/// One estimate out of independent ones of the same quantity, weighted by their numbers of samples. Weights
/// that do not look at the values keep the mean unbiased; inverse-variance weights from few samples do not.
Estimate pooled_estimate(std::span<const Estimate> estimates);

/// Delete-one jackknife of a statistic of n independent samples. `statistic(i)` is its value without sample
/// i, `statistic(n)` with all of them. The value returned is corrected for the bias of order 1/n. Source: B.
/// Efron, C. Stein, Ann. Statist. 9 (1981) 586-596.
Estimate jackknife(std::size_t sample_count, const std::function<double(std::size_t left_out)>& statistic);

/// E[numerator] / E[denominator] from pairs of the same samples, by the jackknife.
Estimate ratio_estimate(std::span<const double> numerators, std::span<const double> denominators);

/// How much a time series repeats itself.
struct Autocorrelation {
  double time = 1.0;  ///< tau = 1 + 2 sum_{k >= 1} C(k) / C(0), in samples; 1 for independent ones
  double effective_samples = 0.0;  ///< n / tau
  std::size_t window = 0;          ///< lags that entered the sum
  bool resolved = false;           ///< n >= 50 tau: below that tau itself is mostly noise
};

/// Integrated autocorrelation time of a stationary series by the initial monotone sequence: sums of two
/// neighbouring autocovariances are positive and decreasing for a reversible chain (Langevin and Metropolis
/// are), so the sum stops where noise breaks the first property and is capped where it breaks the second.
/// Source: C. Geyer, Statist. Sci. 7 (1992) 473-483, section 3.3. Chains that are not reversible are not
/// handled. A constant series has tau = n: it is worth one sample.
Autocorrelation autocorrelation(std::span<const double> series);

/// Mean of a correlated stationary series: the standard error of effective_samples independent ones,
/// `samples` the whole part of effective_samples.
Estimate correlated_mean_estimate(std::span<const double> series);

}  // namespace rieszflow
