#include "solvers/rare_event/replicates.hpp"

#include <cmath>
#include <limits>

#include "solvers/rare_event/reweighting.hpp"

namespace rieszflow::rare_event {

LogMean log_mean(std::span<const double> logarithms) {
  const double n = static_cast<double>(logarithms.size());
  const double value = log_sum_exp(logarithms) - std::log(n);
  if (logarithms.size() < 2 || !std::isfinite(value))
    return {value, std::numeric_limits<double>::quiet_NaN()};
  double squares = 0.0;
  for (const double logarithm : logarithms) squares += std::pow(std::exp(logarithm - value) - 1.0, 2);
  return {value, std::sqrt(squares / (n * (n - 1.0)))};
}

}  // namespace rieszflow::rare_event
