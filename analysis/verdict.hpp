#pragma once
#include <cmath>
#include <string>
#include <utility>

#include "analysis/estimate.hpp"

namespace rieszflow {

/// An experiment's last word: a claim, what was measured, and whether they agree.
struct Verdict {
  std::string name;   ///< short, for tables and --only
  std::string claim;  ///< a sentence with the formula
  Estimate measured;
  double expected = 0.0;
  double tolerance = 0.0;  ///< absolute
  bool passed = false;
  std::string reference;  ///< equation and source
};

/// Passed when |measured - expected| <= tolerance; a measured value that is not finite does not pass.
inline Verdict verdict(std::string name, std::string claim, Estimate measured, double expected,
                       double tolerance, std::string reference) {
  const bool passed = std::abs(measured.value - expected) <= tolerance;
  return {std::move(name), std::move(claim), measured, expected, tolerance, passed, std::move(reference)};
}

/// (value - expected) / standard error.
inline double z_score(const Estimate& measured, double expected) {
  return (measured.value - expected) / measured.standard_error;
}

}  // namespace rieszflow
