#include "analysis/rate_fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow {
namespace {

struct LeastSquares {
  Eigen::VectorXd coefficients;
  Eigen::MatrixXd covariance;  ///< for weights 1 / variance
  double chi_squared = 0.0;
};

/// Minimises sum weight (y - design . coefficients)^2. Columns are scaled to length one before the
/// decomposition.
LeastSquares least_squares(const Eigen::MatrixXd& design, const Eigen::VectorXd& y,
                           const Eigen::VectorXd& weights) {
  const Eigen::VectorXd root = weights.cwiseSqrt();
  Eigen::MatrixXd matrix = root.asDiagonal() * design;
  const Eigen::VectorXd scale = matrix.colwise().norm().cwiseInverse();
  matrix = matrix * scale.asDiagonal();
  const Eigen::VectorXd target = root.cwiseProduct(y);
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> decomposition(matrix);
  expects(decomposition.rank() == design.cols(), "a fit needs as many different abscissas as coefficients");
  LeastSquares result;
  const Eigen::VectorXd solution = decomposition.solve(target);
  result.chi_squared = (target - matrix * solution).squaredNorm();
  result.coefficients = scale.cwiseProduct(solution);
  const Eigen::MatrixXd inverse = (matrix.transpose() * matrix).inverse();
  result.covariance = scale.asDiagonal() * inverse * scale.asDiagonal();
  return result;
}

double student_quantile(double probability, std::size_t degrees_of_freedom) {
  return boost::math::quantile(boost::math::students_t(static_cast<double>(degrees_of_freedom)), probability);
}

/// Student's t with nu degrees of freedom for every point: Gaussian over the root of a mean of nu squared
/// Gaussians. Above 200 degrees of freedom (or none stated) the Gaussian itself.
double student_variate(const NoiseStream& noise, std::uint64_t draw, std::uint64_t point, std::size_t samples,
                       std::vector<double>& work) {
  const std::size_t nu = samples > 1 && samples <= 201 ? samples - 1 : 0;
  work.resize(nu + 1);
  noise.gaussians(draw, 0, point, work);
  if (nu == 0) return work[0];
  double squares = 0.0;
  for (std::size_t k = 1; k <= nu; ++k) squares += work[k] * work[k];
  return work[0] / std::sqrt(squares / static_cast<double>(nu));
}

}  // namespace

double RateFit::chi_squared_probability() const {
  if (!weighted || degrees_of_freedom == 0) return 1.0;
  return boost::math::gamma_q(0.5 * static_cast<double>(degrees_of_freedom), 0.5 * chi_squared);
}

RateFit fit_rate(std::span<const RatePoint> points, RateFitOptions options) {
  expects(points.size() >= 2, "a rate needs two points");
  const auto count = static_cast<Eigen::Index>(points.size());
  bool weighted = true;
  for (const RatePoint& point : points) {
    expects(point.scale > 0.0 && point.error.value > 0.0, "scales and errors are positive");
    weighted = weighted && point.error.standard_error > 0.0;
  }
  Eigen::MatrixXd design(count, 2);
  Eigen::VectorXd y(count), weights = Eigen::VectorXd::Ones(count), relative = Eigen::VectorXd::Zero(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const RatePoint& point = points[static_cast<std::size_t>(i)];
    design.row(i) << 1.0, std::log(point.scale);
    y(i) = std::log(point.error.value);
    if (!weighted) continue;
    relative(i) = point.error.standard_error / point.error.value;
    weights(i) = 1.0 / (relative(i) * relative(i));
  }
  const double middle =
      weights.dot(design.col(1)) / weights.sum();  // there the coefficients are not correlated
  design.col(1).array() -= middle;
  const LeastSquares fit = least_squares(design, y, weights);

  RateFit result;
  result.weighted = weighted;
  result.degrees_of_freedom = points.size() - 2;
  result.chi_squared = fit.chi_squared;
  result.log_amplitude = fit.coefficients(0) - fit.coefficients(1) * middle;
  const double freedom = static_cast<double>(result.degrees_of_freedom);
  const double variance = weighted                        ? fit.covariance(1, 1)
                          : result.degrees_of_freedom > 0 ? fit.covariance(1, 1) * fit.chi_squared / freedom
                                                          : std::numeric_limits<double>::infinity();
  result.exponent = {fit.coefficients(1), std::sqrt(variance), points.size()};
  result.pivot = middle;
  result.log_value = {fit.coefficients(0), std::sqrt(variance * fit.covariance(0, 0) / fit.covariance(1, 1)),
                      points.size()};

  if (weighted) {
    const NoiseStream noise(options.seed, NoisePurpose::Bootstrap);
    std::vector<double> exponents, work;
    Eigen::VectorXd moved(count);
    for (std::size_t draw = 0; draw < options.bootstrap_samples; ++draw) {
      for (Eigen::Index i = 0; i < count; ++i)
        moved(i) =
            y(i) + relative(i) * student_variate(noise, draw, static_cast<std::uint64_t>(i),
                                                 points[static_cast<std::size_t>(i)].error.samples, work);
      exponents.push_back(least_squares(design, moved, weights).coefficients(1));
    }
    std::sort(exponents.begin(), exponents.end());
    const auto at = [&](double probability) {
      return exponents[static_cast<std::size_t>(probability * static_cast<double>(exponents.size() - 1) +
                                                0.5)];
    };
    expects(!exponents.empty(), "an interval needs bootstrap samples");
    result.low = at(0.025);
    result.high = at(0.975);
  } else {
    const double half_width =
        result.degrees_of_freedom > 0
            ? student_quantile(0.975, result.degrees_of_freedom) * result.exponent.standard_error
            : std::numeric_limits<double>::infinity();
    result.low = result.exponent.value - half_width;
    result.high = result.exponent.value + half_width;
  }

  // The limit is where the fitted error decreases to.
  std::vector<std::size_t> order(points.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const double direction = result.exponent.value <= 0.0 ? 1.0 : -1.0;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return direction * points[a].scale < direction * points[b].scale;
  });
  const RatePoint& last = points[order.back()];
  const RatePoint& before = points[order[order.size() - 2]];
  result.last_slope = std::log(last.error.value / before.error.value) / std::log(last.scale / before.scale);

  if (points.size() < (weighted ? 3u : 4u)) return result;
  Eigen::MatrixXd curved(count, 3);
  curved << design, design.col(1).cwiseAbs2();
  const LeastSquares bend = least_squares(curved, y, weights);
  const double curvature = bend.coefficients(2);
  const double scatter = weighted ? 1.0 : bend.chi_squared / (static_cast<double>(points.size()) - 3.0);
  const bool significant = std::abs(curvature) > 2.5 * std::sqrt(bend.covariance(2, 2) * scatter);
  // Local slope p + 2 q x: its absolute value at the limit against that at the other end.
  const double range = design.col(1).maxCoeff() - design.col(1).minCoeff();
  const double change = 2.0 * curvature * range;
  if (!significant || std::abs(change) < 0.2) return result;
  // Going to the limit x moves by direction: |slope| falls when slope and its change have opposite signs.
  const bool flattens = change * direction * result.exponent.value < 0.0;
  (flattens ? result.plateau : result.pre_asymptotic) = true;
  return result;
}

double CorrectedRateFit::chi_squared_probability() const {
  if (degrees_of_freedom == 0) return 1.0;
  return boost::math::gamma_q(0.5 * static_cast<double>(degrees_of_freedom), 0.5 * chi_squared);
}

CorrectedRateFit fit_corrected_rate(std::span<const RatePoint> points, std::span<const double> corrections,
                                    RateFitOptions options) {
  expects(points.size() >= corrections.size() + 2, "two points more than corrections");
  const auto count = static_cast<Eigen::Index>(points.size());
  const auto terms = static_cast<Eigen::Index>(corrections.size()) + 1;
  Eigen::VectorXd y(count), errors(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const RatePoint& point = points[static_cast<std::size_t>(i)];
    expects(point.error.standard_error > 0.0, "every point has a standard error");
    y(i) = point.error.value;
    errors(i) = point.error.standard_error;
  }
  const Eigen::VectorXd weights = errors.cwiseAbs2().cwiseInverse();
  const RateFit start = fit_rate(points, {.bootstrap_samples = 1});
  const double pivot = std::exp(start.pivot);  // amplitudes of terms that are alike there
  const auto amplitudes = [&](const Eigen::VectorXd& values, double exponent) {
    Eigen::MatrixXd design(count, terms);
    for (Eigen::Index i = 0; i < count; ++i) {
      const double scale = points[static_cast<std::size_t>(i)].scale / pivot;
      for (Eigen::Index k = 0; k < terms; ++k)
        design(i, k) =
            std::pow(scale, exponent + (k == 0 ? 0.0 : corrections[static_cast<std::size_t>(k - 1)]));
    }
    return least_squares(design, values, weights);
  };
  // Where a correction is larger than the leading term it has become the leading term: a second minimum.
  const auto chi_squared_of = [&](const Eigen::VectorXd& values, double exponent) {
    const LeastSquares fit = amplitudes(values, exponent);
    const Eigen::VectorXd sizes = fit.coefficients.cwiseAbs();
    return sizes.maxCoeff() > sizes(0) ? std::numeric_limits<double>::infinity() : fit.chi_squared;
  };
  const auto best_exponent = [&](const Eigen::VectorXd& values, double middle, double half, int intervals) {
    double best = middle, lowest = std::numeric_limits<double>::infinity();
    for (int i = 0; i <= intervals; ++i) {
      const double exponent = middle + half * (2.0 * i / intervals - 1.0);
      const double chi_squared = chi_squared_of(values, exponent);
      if (chi_squared < lowest) lowest = chi_squared, best = exponent;
    }
    const double step = 2.0 * half / intervals;
    return boost::math::tools::brent_find_minima(
               [&](double exponent) { return chi_squared_of(values, exponent); }, best - step, best + step,
               26)
        .first;
  };
  constexpr double reach = 1.0;
  constexpr int coarse = 40;
  CorrectedRateFit result;
  const double exponent = best_exponent(y, start.exponent.value, reach, coarse);
  const LeastSquares fit = amplitudes(y, exponent);
  for (Eigen::Index k = 0; k < terms; ++k) {
    const double power = exponent + (k == 0 ? 0.0 : corrections[static_cast<std::size_t>(k - 1)]);
    result.amplitudes.push_back(fit.coefficients(k) * std::pow(pivot, -power));
  }
  result.chi_squared = fit.chi_squared;
  result.degrees_of_freedom = points.size() - corrections.size() - 2;

  const NoiseStream noise(options.seed, NoisePurpose::Bootstrap);
  std::vector<double> exponents, work;
  Eigen::VectorXd moved(count);
  for (std::size_t draw = 0; draw < options.bootstrap_samples; ++draw) {
    for (Eigen::Index i = 0; i < count; ++i)
      moved(i) = y(i) + errors(i) * student_variate(noise, draw, static_cast<std::uint64_t>(i),
                                                    points[static_cast<std::size_t>(i)].error.samples, work);
    exponents.push_back(best_exponent(moved, exponent, reach, coarse));
  }
  expects(!exponents.empty(), "an interval needs bootstrap samples");
  std::sort(exponents.begin(), exponents.end());
  const auto at = [&](double probability) {
    return exponents[static_cast<std::size_t>(probability * static_cast<double>(exponents.size() - 1) + 0.5)];
  };
  result.low = at(0.025);
  result.high = at(0.975);
  // From the middle 68 %: draws that run to the end of the search do not decide about it.
  result.exponent = {exponent, 0.5 * (at(0.8413) - at(0.1587)), points.size()};
  return result;
}

Estimate intercept(std::span<const double> x, std::span<const Estimate> y) {
  expects(x.size() == y.size() && x.size() >= 2, "a line needs two points");
  const auto count = static_cast<Eigen::Index>(x.size());
  Eigen::MatrixXd design(count, 2);
  Eigen::VectorXd values(count), weights(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const Estimate& point = y[static_cast<std::size_t>(i)];
    expects(point.standard_error > 0.0, "standard errors are positive");
    design.row(i) << 1.0, x[static_cast<std::size_t>(i)];
    values(i) = point.value;
    weights(i) = 1.0 / (point.standard_error * point.standard_error);
  }
  const LeastSquares fit = least_squares(design, values, weights);
  return {fit.coefficients(0), std::sqrt(fit.covariance(0, 0)), x.size()};
}

TailFit fit_tail(std::span<const TailPoint> points, TailModel model) {
  const bool free = !model.log_coefficient.has_value();
  const Eigen::Index columns =
      2 + (free ? 1 : 0) + (model.inverse_term ? 1 : 0) + (model.inverse_square_term ? 1 : 0);
  const auto count = static_cast<Eigen::Index>(points.size());
  expects(count >= columns, "a fit needs as many points as coefficients");
  bool weighted = true;
  for (const TailPoint& point : points) {
    expects(point.size > 0.0, "sizes are positive");
    weighted = weighted && point.log_probability.standard_error > 0.0;
  }
  Eigen::MatrixXd design(count, columns);
  Eigen::VectorXd y(count), weights = Eigen::VectorXd::Ones(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const TailPoint& point = points[static_cast<std::size_t>(i)];
    Eigen::Index column = 0;
    design(i, column++) = point.size;
    design(i, column++) = 1.0;
    if (free) design(i, column++) = std::log(point.size);
    if (model.inverse_term) design(i, column++) = 1.0 / point.size;
    if (model.inverse_square_term) design(i, column++) = 1.0 / (point.size * point.size);
    y(i) = -point.log_probability.value - (free ? 0.0 : *model.log_coefficient * std::log(point.size));
    if (weighted)
      weights(i) = 1.0 / (point.log_probability.standard_error * point.log_probability.standard_error);
  }
  const LeastSquares fit = least_squares(design, y, weights);
  TailFit result;
  result.chi_squared = fit.chi_squared;
  result.degrees_of_freedom = static_cast<std::size_t>(count - columns);
  const double scatter = weighted ? 1.0
                         : result.degrees_of_freedom > 0
                             ? fit.chi_squared / static_cast<double>(count - columns)
                             : 0.0;
  const auto error = [&](Eigen::Index column) { return std::sqrt(scatter * fit.covariance(column, column)); };
  result.rate = {fit.coefficients(0), error(0), points.size()};
  result.offset = fit.coefficients(1);
  result.log_coefficient = free ? Estimate{fit.coefficients(2), error(2), points.size()}
                                : Estimate{*model.log_coefficient, 0.0, points.size()};
  if (model.inverse_term) result.inverse_coefficient = fit.coefficients(free ? 3 : 2);
  return result;
}

}  // namespace rieszflow
