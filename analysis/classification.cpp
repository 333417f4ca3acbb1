#include "analysis/classification.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

double sigmoid(double s) { return s >= 0.0 ? 1.0 / (1.0 + std::exp(-s)) : std::exp(s) / (1.0 + std::exp(s)); }

/// log(1 + exp(-s))
double softplus_of_minus(double s) { return std::max(-s, 0.0) + std::log1p(std::exp(-std::abs(s))); }

struct ScoreMap {
  double slope = 1.0;
  double offset = 0.0;
};

/// Sigmoid through held-out scores by Newton's method with halving, on targets moved inwards by one virtual
/// count. Source: J. Platt, Advances in Large Margin Classifiers (1999); Lin, Lin, Weng, Machine Learning 68
/// (2007) 267.
ScoreMap platt_sigmoid(const Vector& scores, const Vector& targets) {
  const double positive = (targets.array() > 0.0).count(),
               negative = static_cast<double>(targets.size()) - positive;
  const double high = (positive + 1.0) / (positive + 2.0), low = 1.0 / (negative + 2.0);
  const auto goal = [&](Eigen::Index a) { return targets[a] > 0.0 ? high : low; };
  const auto loss = [&](const ScoreMap& map) {
    double sum = 0.0;
    for (Eigen::Index a = 0; a < scores.size(); ++a) {
      const double f = map.slope * scores[a] + map.offset;
      sum += goal(a) * softplus_of_minus(f) + (1.0 - goal(a)) * softplus_of_minus(-f);
    }
    return sum;
  };
  ScoreMap map{0.0, std::log((positive + 1.0) / (negative + 1.0))};
  double current = loss(map);
  for (int iteration = 0; iteration < 100; ++iteration) {
    double g0 = 0.0, g1 = 0.0, h00 = 1e-12, h01 = 0.0, h11 = 1e-12;
    for (Eigen::Index a = 0; a < scores.size(); ++a) {
      const double p = sigmoid(map.slope * scores[a] + map.offset), weight = p * (1.0 - p),
                   difference = p - goal(a);
      g0 += difference * scores[a];
      g1 += difference;
      h00 += weight * scores[a] * scores[a];
      h01 += weight * scores[a];
      h11 += weight;
    }
    if (std::abs(g0) < 1e-9 && std::abs(g1) < 1e-9) break;
    const double determinant = h00 * h11 - h01 * h01;
    const double step0 = -(h11 * g0 - h01 * g1) / determinant, step1 = -(h00 * g1 - h01 * g0) / determinant;
    double length = 1.0;
    ScoreMap next = map;
    double lowered = current;
    for (; length > 1e-10; length /= 2) {
      next = {map.slope + length * step0, map.offset + length * step1};
      lowered = loss(next);
      if (lowered < current) break;
    }
    if (!(lowered < current)) break;
    map = next;
    current = lowered;
  }
  return map;
}

struct Fitted {
  Vector weights;
  double intercept = 0.0;
  ScoreMap map;
  double penalty = 0.0;
};

/// Centred features in the eigenbasis of their Gram matrix: ridge for every penalty and label column at O(n
/// m) each.
class RidgePath {
 public:
  explicit RidgePath(const Matrix& centred) : centred_(centred) {
    const Eigen::Index n = centred.rows(), m = centred.cols();
    const bool tall = n >= m;
    const Matrix gram = tall ? Matrix(centred.transpose() * centred) : Matrix(centred * centred.transpose());
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(gram);
    scale_ = gram.trace() / static_cast<double>(m);
    // Directions below round-off of the largest carry no information and would only amplify it.
    const double cut = solver.eigenvalues().tail(1)[0] * 1e-14 * static_cast<double>(gram.rows());
    Eigen::Index first = 0;
    while (first < gram.rows() && solver.eigenvalues()[first] <= cut) ++first;
    const Eigen::Index rank = gram.rows() - first;
    eigenvalues_ = solver.eigenvalues().tail(rank);
    const Matrix basis = solver.eigenvectors().rightCols(rank);
    const Vector roots = eigenvalues_.cwiseSqrt();
    if (tall) {
      left_ = (centred * basis) * roots.cwiseInverse().asDiagonal();
      right_ = basis;
    } else {
      left_ = basis;
      right_ = (centred.transpose() * basis) * roots.cwiseInverse().asDiagonal();
    }
    squares_ = left_.array().square().matrix();
  }

  Fitted fit(const Vector& targets, const std::vector<double>& penalties) const {
    const Eigen::Index n = centred_.rows();
    const double mean = targets.mean();
    const Vector coefficients = left_.transpose() * (targets.array() - mean).matrix();
    Fitted best;
    double lowest = std::numeric_limits<double>::infinity();
    Vector held_out;
    for (const double penalty : penalties) {
      const Vector shrink = (eigenvalues_.array() / (eigenvalues_.array() + penalty * scale_)).matrix();
      const Vector fitted = left_ * shrink.cwiseProduct(coefficients);
      const Vector leverage = (squares_ * shrink).array() + 1.0 / static_cast<double>(n);
      Vector residual = (targets.array() - mean).matrix() - fitted;
      // A leverage of 1 (as many features as rows, no penalty) leaves nothing to predict a row from but
      // itself.
      residual.array() /= (1.0 - leverage.array()).max(1e-12);
      const double error = residual.squaredNorm();
      if (!(error < lowest)) continue;
      lowest = error;
      best.penalty = penalty;
      held_out = targets - residual;
    }
    const Vector filter =
        (eigenvalues_.cwiseSqrt().array() / (eigenvalues_.array() + best.penalty * scale_)).matrix();
    best.weights = right_ * filter.cwiseProduct(coefficients);
    best.intercept = mean;
    best.map = platt_sigmoid(held_out, targets);
    return best;
  }

 private:
  const Matrix& centred_;
  Vector eigenvalues_;
  Matrix left_, right_, squares_;
  double scale_ = 1.0;
};

/// Penalised logistic regression by Newton's method with halving; `start` warms the path over penalties.
struct LogisticModel {
  Vector weights;
  double intercept = 0.0;
};

double logistic_loss(const Matrix& x, const Vector& y, const LogisticModel& model, double penalty) {
  const Vector scores = (x * model.weights).array() + model.intercept;
  double sum = 0.5 * penalty * model.weights.squaredNorm();
  for (Eigen::Index a = 0; a < y.size(); ++a) sum += softplus_of_minus(y[a] * scores[a]);
  return sum;
}

LogisticModel logistic(const Matrix& x, const Vector& y, double penalty, LogisticModel model) {
  double current = logistic_loss(x, y, model, penalty);
  for (int iteration = 0; iteration < 50; ++iteration) {
    const Vector scores = (x * model.weights).array() + model.intercept;
    Vector difference(y.size()), curvature(y.size());
    for (Eigen::Index a = 0; a < y.size(); ++a) {
      const double p = sigmoid(scores[a]);
      difference[a] = p - (y[a] > 0.0 ? 1.0 : 0.0);
      curvature[a] = p * (1.0 - p);
    }
    const Eigen::Index m = x.cols();
    Vector gradient(m + 1);
    gradient << x.transpose() * difference + penalty * model.weights, difference.sum();
    if (gradient.lpNorm<Eigen::Infinity>() < 1e-8 * static_cast<double>(y.size())) break;
    Matrix hessian(m + 1, m + 1);
    const Matrix weighted = curvature.asDiagonal() * x;
    hessian.topLeftCorner(m, m) = x.transpose() * weighted;
    hessian.topLeftCorner(m, m).diagonal().array() += penalty;
    hessian.topRightCorner(m, 1) = weighted.colwise().sum().transpose();
    hessian.bottomLeftCorner(1, m) = hessian.topRightCorner(m, 1).transpose();
    hessian(m, m) = curvature.sum() + 1e-12;
    const Vector step = hessian.ldlt().solve(gradient);
    double length = 1.0, lowered = current;
    LogisticModel next = model;
    for (; length > 1e-8; length /= 2) {
      next = {model.weights - length * step.head(m), model.intercept - length * step[m]};
      lowered = logistic_loss(x, y, next, penalty);
      if (lowered < current) break;
    }
    if (!(lowered < current)) break;
    const bool settled = current - lowered < 1e-10 * (1.0 + current);
    model = next;
    current = lowered;
    if (settled) break;
  }
  return model;
}

Fitted logistic_path(const Matrix& centred, const Vector& targets, const ClassifierOptions& options) {
  const Eigen::Index n = centred.rows(), m = centred.cols();
  const double scale = centred.squaredNorm() / static_cast<double>(m);
  std::vector<double> penalties = options.penalties;
  std::sort(penalties.rbegin(), penalties.rend());  // strongest first: each fit starts from the one before
  std::vector<double> losses(penalties.size(), 0.0);
  const auto folds =
      static_cast<Eigen::Index>(std::min<std::size_t>(options.folds, static_cast<std::size_t>(n)));
  for (Eigen::Index fold = 0; fold < folds; ++fold) {
    std::vector<Eigen::Index> inside, outside;
    for (Eigen::Index a = 0; a < n; ++a) (a % folds == fold ? outside : inside).push_back(a);
    const Matrix x = centred(inside, Eigen::all), held_x = centred(outside, Eigen::all);
    const Vector y = targets(inside), held_y = targets(outside);
    LogisticModel model{Vector::Zero(m), 0.0};
    for (std::size_t k = 0; k < penalties.size(); ++k) {
      model = logistic(x, y, penalties[k] * scale, model);
      losses[k] += logistic_loss(held_x, held_y, model, 0.0);
    }
  }
  const auto best = static_cast<std::size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin());
  LogisticModel model{Vector::Zero(m), 0.0};
  for (std::size_t k = 0; k <= best; ++k) model = logistic(centred, targets, penalties[k] * scale, model);
  return {model.weights, model.intercept, {}, penalties[best]};
}

std::size_t score_count(std::size_t classes) { return classes == 2 ? 1 : classes; }

double edge(std::size_t k, std::size_t bins) { return static_cast<double>(k) / static_cast<double>(bins); }

/// Reliability bin (edge(k), edge(k + 1)] that a confidence belongs to; the product may round across an edge.
std::size_t width_bin(double confidence, std::size_t bins) {
  const double position = std::ceil(confidence * static_cast<double>(bins)) - 1.0;
  std::size_t k = std::min(static_cast<std::size_t>(std::max(position, 0.0)), bins - 1);
  while (k > 0 && confidence <= edge(k, bins)) --k;
  while (k + 1 < bins && confidence > edge(k + 1, bins)) ++k;
  return k;
}

/// What a reliability diagram is made of: for each row how sure, and whether it came true.
struct Forecasts {
  std::vector<double> confidence;
  std::vector<std::uint8_t> came_true;
};

double calibration_error(const std::vector<ReliabilityBin>& bins, std::size_t rows) {
  double sum = 0.0;
  for (const ReliabilityBin& bin : bins)
    sum +=
        static_cast<double>(bin.count) / static_cast<double>(rows) * std::abs(bin.accuracy - bin.confidence);
  return sum;
}

void finish(ReliabilityBin& bin) {
  if (bin.count == 0) return;
  bin.confidence /= static_cast<double>(bin.count);
  bin.accuracy /= static_cast<double>(bin.count);
}

void expect_rows(std::span<const double> probabilities, std::span<const int> labels, std::size_t classes) {
  expects(!labels.empty() && classes >= 2 && probabilities.size() == labels.size() * classes,
          "one probability per row and class, at least one row");
}

}  // namespace

std::string_view name(Classifier classifier) {
  switch (classifier) {
    case Classifier::Ridge:
      return "ridge";
    case Classifier::Logistic:
      return "logistic";
  }
  return "";
}

namespace {

Vector targets_of(std::span<const int> labels, std::size_t classes, std::size_t score) {
  const int positive = classes == 2 ? 1 : static_cast<int>(score);
  Vector targets(static_cast<Eigen::Index>(labels.size()));
  for (std::size_t a = 0; a < labels.size(); ++a)
    targets[static_cast<Eigen::Index>(a)] = labels[a] == positive ? 1.0 : -1.0;
  return targets;
}

/// Fits each candidate list of penalties on one factorisation of the features.
std::vector<LinearClassifier> fit_lists(const FeatureMatrix& features, std::span<const int> labels,
                                        std::size_t classes, const ClassifierOptions& options,
                                        const std::vector<std::vector<double>>& lists) {
  expects(features.rows == labels.size() && features.values.size() == features.rows * features.columns,
          "one label per feature row");
  expects(features.rows >= 2 && features.columns >= 1 && classes >= 2 && !options.penalties.empty(),
          "rows, features and classes to fit");
  const auto n = static_cast<Eigen::Index>(features.rows), m = static_cast<Eigen::Index>(features.columns);
  const Eigen::Map<const RowMajor> raw(features.values.data(), n, m);
  const Eigen::RowVectorXd means = raw.colwise().mean();
  const Matrix centred = raw.rowwise() - means;
  const auto path = options.classifier == Classifier::Ridge ? std::make_unique<RidgePath>(centred) : nullptr;

  std::vector<LinearClassifier> out;
  for (const std::vector<double>& penalties : lists) {
    LinearClassifier classifier;
    classifier.classes = classes;
    classifier.columns = features.columns;
    classifier.means.assign(means.data(), means.data() + m);
    for (std::size_t score = 0; score < score_count(classes); ++score) {
      const Vector targets = targets_of(labels, classes, score);
      expects(targets.maxCoeff() > 0.0 && targets.minCoeff() < 0.0, "every class occurs");
      ClassifierOptions candidates = options;
      candidates.penalties = penalties;
      const Fitted fitted =
          path ? path->fit(targets, penalties) : logistic_path(centred, targets, candidates);
      classifier.weights.insert(classifier.weights.end(), fitted.weights.data(), fitted.weights.data() + m);
      classifier.intercepts.push_back(fitted.intercept);
      classifier.slopes.push_back(fitted.map.slope);
      classifier.offsets.push_back(fitted.map.offset);
      classifier.penalties.push_back(fitted.penalty);
    }
    out.push_back(std::move(classifier));
  }
  return out;
}

}  // namespace

LinearClassifier fit(const FeatureMatrix& features, std::span<const int> labels, std::size_t classes,
                     const ClassifierOptions& options) {
  return fit_lists(features, labels, classes, options, {options.penalties}).front();
}

std::vector<LinearClassifier> fit_each(const FeatureMatrix& features, std::span<const int> labels,
                                       std::size_t classes, const ClassifierOptions& options) {
  std::vector<std::vector<double>> lists;
  for (const double penalty : options.penalties) lists.push_back({penalty});
  return fit_lists(features, labels, classes, options, lists);
}

std::vector<double> scores(const LinearClassifier& classifier, const FeatureMatrix& features) {
  expects(features.columns == classifier.columns, "the features that the classifier was fitted to");
  const auto n = static_cast<Eigen::Index>(features.rows), m = static_cast<Eigen::Index>(features.columns);
  const Eigen::Map<const RowMajor> raw(features.values.data(), n, m);
  const Eigen::Map<const Eigen::RowVectorXd> means(classifier.means.data(), m);
  const auto count = static_cast<Eigen::Index>(score_count(classifier.classes));
  const Eigen::Map<const RowMajor> weights(classifier.weights.data(), count, m);
  const Eigen::Map<const Vector> intercepts(classifier.intercepts.data(), count);
  const Vector shift = intercepts - weights * means.transpose();
  std::vector<double> out(features.rows * static_cast<std::size_t>(count));
  Eigen::Map<RowMajor>(out.data(), n, count) = (raw * weights.transpose()).rowwise() + shift.transpose();
  return out;
}

void calibrate(LinearClassifier& classifier, std::span<const double> scores, std::span<const int> labels) {
  const std::size_t count = score_count(classifier.classes);
  expects(!labels.empty() && scores.size() == labels.size() * count, "scores of every row");
  for (std::size_t score = 0; score < count; ++score) {
    Vector column(static_cast<Eigen::Index>(labels.size()));
    for (std::size_t a = 0; a < labels.size(); ++a)
      column[static_cast<Eigen::Index>(a)] = scores[a * count + score];
    const ScoreMap map = platt_sigmoid(column, targets_of(labels, classifier.classes, score));
    classifier.slopes[score] = map.slope;
    classifier.offsets[score] = map.offset;
  }
}

std::vector<double> probabilities(const LinearClassifier& classifier, std::span<const double> scores) {
  const std::size_t count = score_count(classifier.classes), rows = scores.size() / count;
  std::vector<double> out(rows * classifier.classes);
  for (std::size_t a = 0; a < rows; ++a) {
    double* row = out.data() + a * classifier.classes;
    double total = 0.0;
    for (std::size_t score = 0; score < count; ++score) {
      const double p =
          sigmoid(classifier.slopes[score] * scores[a * count + score] + classifier.offsets[score]);
      row[classifier.classes == 2 ? 1 : score] = p;
      total += p;
    }
    if (classifier.classes == 2) {
      row[0] = 1.0 - row[1];
    } else {
      for (std::size_t c = 0; c < classifier.classes; ++c)  // all sigmoids underflowed: no class is preferred
        row[c] = total > 0.0 ? row[c] / total : 1.0 / static_cast<double>(classifier.classes);
    }
  }
  return out;
}

std::vector<double> probabilities(const LinearClassifier& classifier, const FeatureMatrix& features) {
  return probabilities(classifier, scores(classifier, features));
}

std::vector<int> predictions(std::span<const double> probabilities, std::size_t classes) {
  std::vector<int> out(probabilities.size() / classes);
  for (std::size_t a = 0; a < out.size(); ++a) {
    const auto row = probabilities.subspan(a * classes, classes);
    out[a] = static_cast<int>(std::max_element(row.begin(), row.end()) - row.begin());
  }
  return out;
}

namespace {

std::vector<ReliabilityBin> width_bins(const Forecasts& forecasts, std::size_t bins) {
  std::vector<ReliabilityBin> out(bins);
  for (std::size_t k = 0; k < bins; ++k) {
    out[k].lower = edge(k, bins);
    out[k].upper = edge(k + 1, bins);
  }
  for (std::size_t a = 0; a < forecasts.confidence.size(); ++a) {
    ReliabilityBin& bin = out[width_bin(forecasts.confidence[a], bins)];
    ++bin.count;
    bin.confidence += forecasts.confidence[a];
    bin.accuracy += forecasts.came_true[a];
  }
  for (ReliabilityBin& bin : out) finish(bin);
  return out;
}

std::vector<ReliabilityBin> mass_bins(const Forecasts& forecasts, std::size_t bins) {
  const std::vector<double>& confidence = forecasts.confidence;
  const std::size_t rows = confidence.size();
  std::vector<std::size_t> order(rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return confidence[a] < confidence[b]; });
  std::vector<ReliabilityBin> out;
  double lower = 0.0;
  for (std::size_t k = 0, first = 0; k < bins && first < rows; ++k) {
    std::size_t last = std::max((k + 1) * rows / bins, first);
    while (last > first && last < rows && confidence[order[last]] == confidence[order[last - 1]]) ++last;
    if (last == first) continue;
    ReliabilityBin bin{.lower = lower, .upper = confidence[order[last - 1]]};
    for (; first < last; ++first) {
      ++bin.count;
      bin.confidence += confidence[order[first]];
      bin.accuracy += forecasts.came_true[order[first]];
    }
    finish(bin);
    lower = bin.upper;
    out.push_back(bin);
  }
  return out;
}

Forecasts of_predicted_class(std::span<const double> probabilities, std::span<const int> labels,
                             std::size_t classes) {
  const std::vector<int> predicted = predictions(probabilities, classes);
  Forecasts out;
  for (std::size_t a = 0; a < labels.size(); ++a) {
    out.confidence.push_back(probabilities[a * classes + static_cast<std::size_t>(predicted[a])]);
    out.came_true.push_back(predicted[a] == labels[a] ? 1 : 0);
  }
  return out;
}

Forecasts of_class(std::span<const double> probabilities, std::span<const int> labels, std::size_t classes,
                   std::size_t which) {
  expects(which < classes, "one of the classes");
  Forecasts out;
  for (std::size_t a = 0; a < labels.size(); ++a) {
    out.confidence.push_back(probabilities[a * classes + which]);
    out.came_true.push_back(labels[a] == static_cast<int>(which) ? 1 : 0);
  }
  return out;
}

/// The four calibration errors of Metrics.
CalibrationErrors calibration_errors(std::span<const double> probabilities, std::span<const int> labels,
                                     std::size_t classes, std::size_t bins) {
  const std::size_t rows = labels.size();
  const Forecasts top = of_predicted_class(probabilities, labels, classes);
  CalibrationErrors out{.ece = calibration_error(width_bins(top, bins), rows),
                        .ece_equal_mass = calibration_error(mass_bins(top, bins), rows)};
  const std::size_t first = classes == 2 ? 1 : 0;
  for (std::size_t c = first; c < classes; ++c) {
    const Forecasts one = of_class(probabilities, labels, classes, c);
    const auto share = static_cast<double>(classes - first);
    out.class_ece += calibration_error(width_bins(one, bins), rows) / share;
    out.class_ece_equal_mass += calibration_error(mass_bins(one, bins), rows) / share;
  }
  return out;
}

double log_sum_exp(std::span<const double> row, double temperature) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0.0;
  for (const double logit : row) sum += std::exp((logit - largest) / temperature);
  return largest / temperature + std::log(sum);
}

void expect_logits(std::span<const double> logits, std::size_t classes, double temperature) {
  expects(classes >= 2 && logits.size() % classes == 0 && temperature > 0.0,
          "rows of one logit per class, T > 0");
}

}  // namespace

std::vector<ReliabilityBin> reliability(std::span<const double> probabilities, std::span<const int> labels,
                                        std::size_t classes, std::size_t bins) {
  expect_rows(probabilities, labels, classes);
  return width_bins(of_predicted_class(probabilities, labels, classes), bins);
}

std::vector<ReliabilityBin> reliability_equal_mass(std::span<const double> probabilities,
                                                   std::span<const int> labels, std::size_t classes,
                                                   std::size_t bins) {
  expect_rows(probabilities, labels, classes);
  return mass_bins(of_predicted_class(probabilities, labels, classes), bins);
}

std::vector<ReliabilityBin> class_reliability(std::span<const double> probabilities,
                                              std::span<const int> labels, std::size_t classes,
                                              std::size_t which, std::size_t bins) {
  expect_rows(probabilities, labels, classes);
  return width_bins(of_class(probabilities, labels, classes, which), bins);
}

std::vector<ReliabilityBin> class_reliability_equal_mass(std::span<const double> probabilities,
                                                         std::span<const int> labels, std::size_t classes,
                                                         std::size_t which, std::size_t bins) {
  expect_rows(probabilities, labels, classes);
  return mass_bins(of_class(probabilities, labels, classes, which), bins);
}

std::vector<double> softmax(std::span<const double> logits, std::size_t classes, double temperature) {
  expect_logits(logits, classes, temperature);
  std::vector<double> out(logits.begin(), logits.end());
  for (std::size_t at = 0; at < out.size(); at += classes) {
    const auto row = std::span(out).subspan(at, classes);
    const double largest = *std::max_element(row.begin(), row.end());
    double sum = 0.0;
    for (double& value : row) sum += value = std::exp((value - largest) / temperature);
    for (double& value : row) value /= sum;
  }
  return out;
}

double log_loss_of_logits(std::span<const double> logits, std::span<const int> labels, std::size_t classes,
                          double temperature) {
  expect_logits(logits, classes, temperature);
  expects(!labels.empty() && logits.size() == labels.size() * classes, "logits of each row");
  double sum = 0.0;
  for (std::size_t a = 0; a < labels.size(); ++a) {
    const auto row = logits.subspan(a * classes, classes);
    sum += log_sum_exp(row, temperature) - row[static_cast<std::size_t>(labels[a])] / temperature;
  }
  return sum / static_cast<double>(labels.size());
}

Metrics metrics_from_logits(std::span<const double> logits, std::span<const int> labels, std::size_t classes,
                            double temperature, std::size_t bins) {
  Metrics out = metrics(softmax(logits, classes, temperature), labels, classes, bins);
  out.log_loss = log_loss_of_logits(logits, labels, classes, temperature);
  return out;
}

double fit_temperature(std::span<const double> logits, std::span<const int> labels, std::size_t classes) {
  expect_logits(logits, classes, 1.0);
  expects(!labels.empty() && logits.size() == labels.size() * classes, "logits of each row");
  // Derivatives in a = 1/T of mean log sum_c exp(a z_c) - a z_y: mean of E z - z_y, and of the variance of z.
  const auto derivatives = [&](double a) {
    double slope = 0.0, curvature = 0.0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto row = logits.subspan(i * classes, classes);
      const double largest = *std::max_element(row.begin(), row.end());
      double sum = 0.0, first = 0.0, second = 0.0;
      for (const double z : row) {
        const double weight = std::exp(a * (z - largest));
        sum += weight;
        first += weight * (z - largest);
        second += weight * (z - largest) * (z - largest);
      }
      first /= sum;
      slope += first + largest - row[static_cast<std::size_t>(labels[i])];
      curvature += second / sum - first * first;
    }
    return std::pair(slope, curvature);
  };
  double low = 1.0 / 64.0, high = 64.0;
  if (derivatives(low).first >= 0.0) return 1.0 / low;
  if (derivatives(high).first <= 0.0) return 1.0 / high;
  double a = 1.0;
  for (int iteration = 0; iteration < 200 && high - low > 1e-14 * high; ++iteration) {
    const auto [slope, curvature] = derivatives(a);
    (slope > 0.0 ? high : low) = a;
    const double next = a - slope / curvature;
    if (slope == 0.0 || next == a) break;
    a = next > low && next < high ? next : 0.5 * (low + high);
  }
  return 1.0 / a;
}

CalibrationErrors calibration_floor(std::span<const double> probabilities, std::size_t classes,
                                    std::uint64_t seed, std::size_t repetitions, std::size_t bins) {
  expects(classes >= 2 && !probabilities.empty() && probabilities.size() % classes == 0 && repetitions > 0,
          "one probability per row and class, at least one row");
  const std::size_t rows = probabilities.size() / classes;
  const NoiseStream noise(seed, NoisePurpose::CalibrationFloor);
  std::vector<double> draws(rows);
  std::vector<int> labels(rows);
  CalibrationErrors out;
  for (std::size_t k = 0; k < repetitions; ++k) {
    noise.uniforms(0, k, 0, draws);
    for (std::size_t a = 0; a < rows; ++a) {
      std::size_t c = 0;
      for (double rest = draws[a] - probabilities[a * classes]; rest > 0.0 && c + 1 < classes;
           rest -= probabilities[a * classes + c])
        ++c;
      labels[a] = static_cast<int>(c);
    }
    const CalibrationErrors one = calibration_errors(probabilities, labels, classes, bins);
    out.ece += one.ece;
    out.ece_equal_mass += one.ece_equal_mass;
    out.class_ece += one.class_ece;
    out.class_ece_equal_mass += one.class_ece_equal_mass;
  }
  for (double* value : {&out.ece, &out.ece_equal_mass, &out.class_ece, &out.class_ece_equal_mass})
    *value /= static_cast<double>(repetitions);
  return out;
}

Metrics metrics(std::span<const double> probabilities, std::span<const int> labels, std::size_t classes,
                std::size_t bins) {
  expect_rows(probabilities, labels, classes);
  constexpr double least = std::numeric_limits<double>::epsilon();
  const std::size_t rows = labels.size();
  const std::vector<int> predicted = predictions(probabilities, classes);
  std::vector<double> true_counts(classes, 0.0), predicted_counts(classes, 0.0);
  Metrics out;
  double correct = 0.0;
  for (std::size_t a = 0; a < rows; ++a) {
    const auto label = static_cast<std::size_t>(labels[a]);
    expects(label < classes, "labels 0..classes-1");
    correct += predicted[a] == labels[a] ? 1.0 : 0.0;
    ++true_counts[label];
    ++predicted_counts[static_cast<std::size_t>(predicted[a])];
    out.log_loss -= std::log(std::clamp(probabilities[a * classes + label], least, 1.0 - least));
    for (std::size_t c = 0; c < classes; ++c) {
      const double miss = probabilities[a * classes + c] - (c == label ? 1.0 : 0.0);
      out.brier += 0.5 * miss * miss;
    }
  }
  const auto count = static_cast<double>(rows);
  double overlap = 0.0, predicted_squares = 0.0, true_squares = 0.0;
  for (std::size_t c = 0; c < classes; ++c) {
    overlap += true_counts[c] * predicted_counts[c];
    predicted_squares += predicted_counts[c] * predicted_counts[c];
    true_squares += true_counts[c] * true_counts[c];
  }
  const double spread = (count * count - predicted_squares) * (count * count - true_squares);
  out.accuracy = correct / count;
  out.mcc = spread > 0.0 ? (correct * count - overlap) / std::sqrt(spread) : 0.0;
  out.log_loss /= count;
  out.brier /= count;
  const CalibrationErrors errors = calibration_errors(probabilities, labels, classes, bins);
  out.ece = errors.ece;
  out.ece_equal_mass = errors.ece_equal_mass;
  out.class_ece = errors.class_ece;
  out.class_ece_equal_mass = errors.class_ece_equal_mass;
  return out;
}

}  // namespace rieszflow
