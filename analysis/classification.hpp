#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

/// Linear classifiers on given features, and how good probabilistic predictions are.
namespace rieszflow {

/// Feature rows of labelled points.
struct FeatureMatrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> values;  ///< (row, column), row-major
};

enum class Classifier {
  Ridge,  ///< least squares on +-1 labels, one against the rest; probabilities by Platt's sigmoid on held-out
          ///< scores
  Logistic,  ///< penalised maximum likelihood, one against the rest
};

std::string_view name(Classifier classifier);

struct ClassifierOptions {
  Classifier classifier = Classifier::Ridge;
  /// Candidates, in units of the mean diagonal of the features' Gram matrix per row; the best by
  /// cross-validation is taken.
  std::vector<double> penalties{1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0};
  std::size_t folds = 5;  ///< of the logistic classifier; ridge leaves one out, exactly and at no extra cost
};

/// sign or probability of each class from w . (x - mean) + intercept.
struct LinearClassifier {
  std::size_t classes = 2;
  std::size_t columns = 0;
  std::vector<double> means;       ///< (column), of the training features
  std::vector<double> weights;     ///< (score, column); one score for two classes, else one per class
  std::vector<double> intercepts;  ///< (score)
  std::vector<double> slopes;      ///< (score): probability = 1 / (1 + exp(-(slope s + offset)))
  std::vector<double> offsets;     ///< (score)
  std::vector<double> penalties;   ///< (score) chosen, in the units of ClassifierOptions
};

/// Fits to classes 0..classes-1; every class must occur. Cross-validation minimises, for ridge, the
/// leave-one-out squared error (from one eigendecomposition: residual / (1 - leverage)); for logistic, the
/// held-out log-loss of folds (row a is in fold a mod folds: rows must come in random order).
LinearClassifier fit(const FeatureMatrix& features, std::span<const int> labels, std::size_t classes,
                     const ClassifierOptions& options);

/// One classifier for each of options.penalties, without cross-validation; sigmoids as in `fit`. For those
/// who choose the penalty by rows of their own.
std::vector<LinearClassifier> fit_each(const FeatureMatrix& features, std::span<const int> labels,
                                       std::size_t classes, const ClassifierOptions& options);

/// Raw scores w . (x - mean) + intercept; (row, score), one score for two classes, else one per class.
std::vector<double> scores(const LinearClassifier& classifier, const FeatureMatrix& features);

/// Replaces the sigmoids by those of scores of rows that the classifier was not fitted to; scores: (row,
/// score). Where features were learned from the labels, cross-validation of the classifier alone finds it too
/// sure of itself.
void calibrate(LinearClassifier& classifier, std::span<const double> scores, std::span<const int> labels);

/// Class probabilities of given scores; (row, class).
std::vector<double> probabilities(const LinearClassifier& classifier, std::span<const double> scores);

/// Class probabilities; (row, class). More than two classes: one-vs-rest sigmoids, normalised to sum 1.
std::vector<double> probabilities(const LinearClassifier& classifier, const FeatureMatrix& features);

/// Quality of predicted probabilities.
struct Metrics {
  double accuracy = 0.0;
  double mcc = 0.0;  ///< Matthews' correlation (Gorodkin's R_K for more classes); 0 where it is 0/0
  /// mean -log p(true class). From probabilities, p is held in [2^-52, 1 - 2^-52]: a certain error
  /// costs 36.04. From logits it is exact.
  double log_loss = 0.0;
  double brier = 0.0;  ///< mean (1/2) sum_c (p_c - 1{true = c})^2; for two classes (p - y)^2
  /// Expected calibration error of the predicted class (top-label), equal-width bins: sum over bins of the
  /// share of rows times |accuracy - mean confidence|.
  double ece = 0.0;
  double ece_equal_mass = 0.0;  ///< the same, bins of equal count; equal confidences stay in one bin
  /// The same for the probability of class 1 against the share of class 1; more classes: mean over the
  /// classes.
  double class_ece = 0.0;
  double class_ece_equal_mass = 0.0;
};

/// Most probable class, the first of equals. (row)
std::vector<int> predictions(std::span<const double> probabilities, std::size_t classes);

/// labels: (row); probabilities: (row, class). At least one row.
Metrics metrics(std::span<const double> probabilities, std::span<const int> labels, std::size_t classes,
                std::size_t bins = 15);

/// Softmax of logits (row, class) / temperature; (row, class).
std::vector<double> softmax(std::span<const double> logits, std::size_t classes, double temperature = 1.0);

/// mean of log sum_c exp(z_c / T) - z_y / T: never through probabilities, so that no error costs infinity.
double log_loss_of_logits(std::span<const double> logits, std::span<const int> labels, std::size_t classes,
                          double temperature = 1.0);

/// As `metrics`, of softmax(logits / temperature), with the log-loss from the logits.
Metrics metrics_from_logits(std::span<const double> logits, std::span<const int> labels, std::size_t classes,
                            double temperature = 1.0, std::size_t bins = 15);

/// The temperature T in [1/64, 64] that minimises the log-loss of logits / T; an end of the interval where
/// the logits separate the labels without error (or say nothing about them). Newton's method on 1/T, in which
/// the loss is convex. Source: Guo et al., ICML 2017.
double fit_temperature(std::span<const double> logits, std::span<const int> labels, std::size_t classes);

/// The four calibration errors of Metrics.
struct CalibrationErrors {
  double ece = 0.0, ece_equal_mass = 0.0, class_ece = 0.0, class_ece_equal_mass = 0.0;
};
/// What they are on average where the probabilities are exactly right: labels drawn from them `repetitions`
/// times, keyed by (seed, CalibrationFloor). An estimate near its floor says that no miscalibration was seen.
CalibrationErrors calibration_floor(std::span<const double> probabilities, std::size_t classes,
                                    std::uint64_t seed, std::size_t repetitions = 100, std::size_t bins = 15);

/// One bin of a reliability diagram: how often what was predicted came true against how sure the classifier
/// was.
struct ReliabilityBin {
  double lower = 0.0, upper = 0.0;  ///< confidences in (lower, upper]; 0 belongs to the first
  std::size_t count = 0;
  double confidence = 0.0;  ///< mean; 0 in an empty bin
  double accuracy = 0.0;    ///< share that came true; 0 in an empty bin
};

/// Bins (k/bins, (k+1)/bins] of the confidence in the predicted class. Source: Guo et al., ICML 2017.
std::vector<ReliabilityBin> reliability(std::span<const double> probabilities, std::span<const int> labels,
                                        std::size_t classes, std::size_t bins = 15);
/// Bins of (nearly) equal count.
std::vector<ReliabilityBin> reliability_equal_mass(std::span<const double> probabilities,
                                                   std::span<const int> labels, std::size_t classes,
                                                   std::size_t bins = 15);
/// The same two tables for the probability of one class against the share of rows of that class.
std::vector<ReliabilityBin> class_reliability(std::span<const double> probabilities,
                                              std::span<const int> labels, std::size_t classes,
                                              std::size_t which, std::size_t bins = 15);
std::vector<ReliabilityBin> class_reliability_equal_mass(std::span<const double> probabilities,
                                                         std::span<const int> labels, std::size_t classes,
                                                         std::size_t which, std::size_t bins = 15);

}  // namespace rieszflow
