#pragma once
#include <cmath>

namespace rieszflow {

/// Neumaier's compensated sum: the error is one rounding of the result, whatever the number of terms.
/// Source: A. Neumaier, ZAMM 54 (1974) 39-51.
class CompensatedSum {
 public:
  void add(double term) {
    const double next = sum_ + term;
    correction_ += std::abs(sum_) >= std::abs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
  }
  double value() const { return sum_ + correction_; }

 private:
  double sum_ = 0.0;
  double correction_ = 0.0;
};

}  // namespace rieszflow
