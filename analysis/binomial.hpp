#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>

namespace rieszflow {

/// E f(B) for B binomial(n, p) by the terms that matter to double precision, from the mode outwards.
template <class Function>
double binomial_mean(std::size_t n, double p, const Function& f) {
  if (!(p > 0.0)) return f(0);
  if (!(p < 1.0)) return f(n);
  const double count = static_cast<double>(n);
  const std::size_t mode = std::min(n, static_cast<std::size_t>((count + 1.0) * p));
  const double k = static_cast<double>(mode), odds = p / (1.0 - p);
  const double top = std::exp(std::lgamma(count + 1.0) - std::lgamma(k + 1.0) - std::lgamma(count - k + 1.0) +
                              k * std::log(p) + (count - k) * std::log1p(-p));
  // Weights are renormalised by their sum: lgamma loses digits at large n, their ratios do not.
  double sum = top * f(mode), weight = top, total = top;
  for (std::size_t j = mode; j < n && weight > 1e-18 * top; ++j) {
    weight *= static_cast<double>(n - j) / static_cast<double>(j + 1) * odds;
    sum += weight * f(j + 1);
    total += weight;
  }
  weight = top;
  for (std::size_t j = mode; j > 0 && weight > 1e-18 * top; --j) {
    weight *= static_cast<double>(j) / static_cast<double>(n - j + 1) / odds;
    sum += weight * f(j - 1);
    total += weight;
  }
  return sum / total;
}

}  // namespace rieszflow
