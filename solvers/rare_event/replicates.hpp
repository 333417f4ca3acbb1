#pragma once
#include <span>

namespace rieszflow::rare_event {

/// A probability from independent unbiased estimates of it, in logarithms.
struct LogMean {
  double value = 0.0;  ///< log of the mean; -infinity when all are zero
  double standard_error =
      0.0;  ///< of the log, by the delta method; NaN for fewer than two or when all are zero
};
LogMean log_mean(std::span<const double> logarithms);

}  // namespace rieszflow::rare_event
