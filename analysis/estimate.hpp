#pragma once
#include <cstddef>
#include <span>

namespace rieszflow {

/// A value from random data is never a bare number.
struct Estimate {
  double value = 0.0;
  double standard_error = 0.0;  ///< NaN when there is only one sample
  std::size_t samples = 0;
};

/// Mean of independent samples with its standard error.
Estimate mean_estimate(std::span<const double> samples);

}  // namespace rieszflow
