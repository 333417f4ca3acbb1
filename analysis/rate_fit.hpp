#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/estimate.hpp"

namespace rieszflow {

/// One measured error of a sweep.
struct RatePoint {
  double scale = 0.0;  ///< particle number, timestep or cell width, > 0
  Estimate error;      ///< value > 0; standard error 0 or NaN: known without noise
};

struct RateFitOptions {
  std::size_t bootstrap_samples = 2000;
  std::uint64_t seed = 1;
};

/// error = exp(log_amplitude) scale^exponent.
struct RateFit {
  Estimate exponent;  ///< samples: number of points
  double low = 0.0;   ///< 95 % interval of the exponent
  double high = 0.0;
  double log_amplitude = 0.0;
  double pivot = 0.0;        ///< log scale at which value and exponent are not correlated
  Estimate log_value{};      ///< of the fitted line at the pivot
  double chi_squared = 0.0;  ///< weighted squared residuals; for points without noise: plain ones
  std::size_t degrees_of_freedom = 0;
  bool weighted = false;        ///< every point has a standard error
  double last_slope = 0.0;      ///< between the two points nearest to the limit
  bool plateau = false;         ///< the curve flattens towards the limit: another error takes over there
  bool pre_asymptotic = false;  ///< the curve steepens towards the limit: the rate is not reached yet

  /// log error of the line at a log scale, with its standard error.
  Estimate at(double log_scale) const {
    const double x = log_scale - pivot;
    return {log_value.value + exponent.value * x,
            std::hypot(log_value.standard_error, exponent.standard_error * x), exponent.samples};
  }
  /// Probability that chi_squared is at least this large if the power law holds; 1 without degrees of freedom
  /// or without weights. R^2 is no substitute: it is near 1 for wrong laws as well.
  double chi_squared_probability() const;
};

/// Least squares of log error against log scale, weights (error / standard error)^2. The interval is a
/// parametric bootstrap: each log error moves by its relative error times Student's t with samples - 1
/// degrees of freedom (its standard error is itself estimated), refit, 2.5 % and 97.5 % quantiles. Points
/// without noise: equal weights, and Student's t with the residuals; two such points have an infinite
/// interval. `plateau` and `pre_asymptotic` come from a quadratic term: |z| > 2.5 and a change of slope above
/// 0.2 between the ends. At least two points with different scales and positive errors.
RateFit fit_rate(std::span<const RatePoint> points, RateFitOptions options = {});

/// error = sum_k amplitudes_k scale^(exponent + corrections_k), corrections_0 = 0.
struct CorrectedRateFit {
  Estimate exponent;  ///< samples: number of points
  double low = 0.0;   ///< 95 % interval of the exponent
  double high = 0.0;
  std::vector<double> amplitudes;  ///< (term)
  double chi_squared = 0.0;
  std::size_t degrees_of_freedom = 0;

  /// Probability that chi_squared is at least this large if the form holds; 1 without degrees of freedom.
  double chi_squared_probability() const;
};

/// The leading exponent where the exponents of the next terms are known relative to it (`corrections`: 1/2
/// where errors are a power series in the root of the scale): on few scales a pure power law has an exponent
/// between the first two. Weighted least squares of the errors themselves; for each exponent the amplitudes
/// are linear, the exponent is sought within one of that of `fit_rate`, where the leading term is the largest
/// in the middle of the scales. Interval and standard error: the
/// parametric bootstrap of `fit_rate`. At least two points more than corrections, all with standard errors.
/// Source of the separation: G. Golub, V. Pereyra, SIAM J. Numer. Anal. 10 (1973) 413-432.
CorrectedRateFit fit_corrected_rate(std::span<const RatePoint> points, std::span<const double> corrections,
                                    RateFitOptions options = {});

/// Value at x = 0 of the straight line through (x, y), weights 1 / standard error^2: what a first-order
/// expansion says about its limit. Two different x at least; all standard errors positive.
Estimate intercept(std::span<const double> x, std::span<const Estimate> y);

/// One measured probability of a large deviation.
struct TailPoint {
  double size = 0.0;         ///< N at fixed beta, or beta N
  Estimate log_probability;  ///< log P; standard error 0 or NaN: known without noise
};

struct TailModel {
  std::optional<double> log_coefficient = 0.5;  ///< b; fitted when empty
  bool inverse_term = true;                     ///< c / size is fitted; needs one point more
  bool inverse_square_term = false;             ///< d / size^2 is fitted; needs one point more
};

/// -log P = rate size + b log size + offset + c / size + d / size^2.
struct TailFit {
  Estimate rate;             ///< I; samples: number of points
  Estimate log_coefficient;  ///< b; standard error 0 when it was given
  double offset = 0.0;
  double inverse_coefficient = 0.0;
  double chi_squared = 0.0;
  std::size_t degrees_of_freedom = 0;
};

/// Weighted least squares of the expansion of theory.md section 3, item 4. b = 1/2 for a smooth dominating
/// point of a half space; a fit with free b is the diagnostic. A straight line (b = 0, no inverse term) is
/// wrong by per cents at R^2 > 0.9995. Standard errors: from those of the points; from the residuals when the
/// points are exact (0 when there are none left). At least as many points with different sizes as
/// coefficients.
TailFit fit_tail(std::span<const TailPoint> points, TailModel model = {});

}  // namespace rieszflow
