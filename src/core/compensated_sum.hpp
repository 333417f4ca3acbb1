#pragma once
#include <cmath>

namespace rieszflow {

/// Neumaier's compensated sum: the error is one rounding of the result, whatever the number of terms.
/// A sum that reaches an infinity stays there, as a plain sum does.
/// Source: A. Neumaier, ZAMM 54 (1974) 39-51.
class CompensatedSum {
 public:
  void add(double term) {
    const double next = sum_ + term;
    correction_ += std::abs(sum_) >= std::abs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
  }
  double value() const { return std::isfinite(sum_) ? sum_ + correction_ : sum_; }

 private:
  double sum_ = 0.0;
  double correction_ = 0.0;
};

}  // namespace rieszflow
