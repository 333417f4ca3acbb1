#include "analysis/classification.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow {
namespace {

/// Two-class probabilities from those of class 1.
std::vector<double> two_classes(const std::vector<double>& ones) {
  std::vector<double> out;
  for (const double p : ones) {
    out.push_back(1 - p);
    out.push_back(p);
  }
  return out;
}

FeatureMatrix gaussian_rows(std::size_t rows, std::size_t columns, std::uint64_t seed) {
  FeatureMatrix out{rows, columns, std::vector<double>(rows * columns)};
  NoiseStream(seed, NoisePurpose::ReferenceSample).gaussians(0, 0, 0, out.values);
  return out;
}

TEST(Metrics, OfAHandComputedExample) {
  // class 1 probabilities 0.9 0.6 0.4 0.2, truth 1 0 1 0: two right, two wrong
  const std::vector<int> labels{1, 0, 1, 0};
  const Metrics m = metrics(two_classes({0.9, 0.6, 0.4, 0.2}), labels, 2);
  EXPECT_DOUBLE_EQ(m.accuracy, 0.5);
  EXPECT_DOUBLE_EQ(m.mcc, 0.0);
  EXPECT_NEAR(m.log_loss, -(std::log(0.9) + std::log(0.4) + std::log(0.4) + std::log(0.8)) / 4, 1e-15);
  EXPECT_NEAR(m.brier, (0.01 + 0.36 + 0.36 + 0.04) / 4, 1e-15);
  // confidences 0.9 right | 0.6 wrong, 0.6 wrong | 0.8 right
  EXPECT_NEAR(m.ece, (0.1 + 2 * 0.6 + 0.2) / 4, 1e-15);
  EXPECT_NEAR(m.ece_equal_mass, (0.1 + 2 * 0.6 + 0.2) / 4, 1e-15);
}

TEST(Metrics, MatthewsCorrelationIsTheTwoByTwoFormula) {
  // true positives 5, false positives 2, false negatives 1, true negatives 4
  std::vector<int> labels;
  std::vector<double> ones;
  const auto add = [&](int times, int label, double p) {
    for (int k = 0; k < times; ++k) {
      labels.push_back(label);
      ones.push_back(p);
    }
  };
  add(5, 1, 0.8), add(2, 0, 0.8), add(1, 1, 0.3), add(4, 0, 0.3);
  EXPECT_NEAR(metrics(two_classes(ones), labels, 2).mcc, (5.0 * 4 - 2 * 1) / std::sqrt(7.0 * 6 * 6 * 5),
              1e-15);
}

TEST(Metrics, AreDefinedForCertainPredictionsOneClassAndOneSample) {
  const Metrics right = metrics(two_classes({1.0, 0.0}), std::vector<int>{1, 0}, 2);
  EXPECT_EQ(right.accuracy, 1.0);
  EXPECT_EQ(right.mcc, 1.0);
  EXPECT_NEAR(right.log_loss, 0.0, 1e-15);
  EXPECT_EQ(right.brier, 0.0);
  EXPECT_EQ(right.ece, 0.0);
  const Metrics wrong = metrics(two_classes({1.0}), std::vector<int>{0}, 2);
  EXPECT_EQ(wrong.accuracy, 0.0);
  EXPECT_EQ(wrong.mcc, 0.0) << "one class only: 0/0 is 0";
  EXPECT_NEAR(wrong.log_loss, 52 * std::log(2.0), 1e-12);
  EXPECT_EQ(wrong.brier, 1.0);
  EXPECT_EQ(wrong.ece, 1.0);
  EXPECT_EQ(wrong.ece_equal_mass, 1.0);
  EXPECT_THROW(metrics({}, {}, 2), PreconditionViolation);
}

TEST(Metrics, ATieGoesToTheFirstClassAndAConfidenceOnAnEdgeToTheBinBelow) {
  EXPECT_EQ(predictions(std::vector<double>{0.5, 0.5}, 2), std::vector<int>{0});
  const auto bins = reliability(two_classes({0.6, 0.60001}), std::vector<int>{1, 1}, 2, 5);
  EXPECT_EQ(bins[2].count, 1u);  // (0.4, 0.6]
  EXPECT_EQ(bins[3].count, 1u);
  const auto zero = reliability(std::vector<double>{1, 0, 0}, std::vector<int>{0}, 3, 5);
  EXPECT_EQ(zero[4].count, 1u);
}

TEST(Metrics, EqualMassBinsHoldEveryRowOnceAndKeepEqualConfidencesTogether) {
  std::vector<double> ones(40, 0.7);
  for (int k = 0; k < 20; ++k) ones.push_back(0.8 + 0.005 * k);
  const std::vector<int> labels(ones.size(), 1);
  const auto bins = reliability_equal_mass(two_classes(ones), labels, 2, 15);
  std::size_t total = 0;
  for (const auto& bin : bins) total += bin.count;
  EXPECT_EQ(total, 60u);
  EXPECT_EQ(bins[0].count, 40u);
  EXPECT_NEAR(bins[0].confidence, 0.7, 1e-15);
  for (std::size_t k = 1; k < bins.size(); ++k) EXPECT_EQ(bins[k].count, 4u);
}

TEST(Metrics, OfThreeClassesReduceToThoseOfTwoWhenTheThirdNeverOccurs) {
  const std::vector<double> two = two_classes({0.9, 0.6, 0.4, 0.2, 0.7});
  std::vector<double> three;
  for (std::size_t k = 0; k < two.size(); k += 2) three.insert(three.end(), {two[k], two[k + 1], 0.0});
  const std::vector<int> labels{1, 0, 1, 0, 1};
  const Metrics a = metrics(two, labels, 2), b = metrics(three, labels, 3);
  EXPECT_DOUBLE_EQ(a.mcc, b.mcc);
  EXPECT_DOUBLE_EQ(a.brier, b.brier);
  EXPECT_DOUBLE_EQ(a.log_loss, b.log_loss);
  EXPECT_DOUBLE_EQ(a.ece, b.ece);
}

TEST(Ridge, MinimisesThePenalisedSquaredErrorForTallAndWideFeatures) {
  for (const std::size_t rows : {30, 12}) {
    const std::size_t columns = 20;
    const auto x = gaussian_rows(rows, columns, 1);
    std::vector<int> labels(rows);
    for (std::size_t a = 0; a < rows; ++a)
      labels[a] = x.values[a * columns] + 0.3 * x.values[a * columns + 1] > 0.2;
    const auto model = fit(x, labels, 2, {.penalties = {0.1}});
    using RowMajor = Eigen::Matrix<double, -1, -1, Eigen::RowMajor>;
    Eigen::MatrixXd phi = Eigen::Map<const RowMajor>(x.values.data(), static_cast<long>(rows), 20);
    phi.rowwise() -= phi.colwise().mean().eval();
    Eigen::VectorXd y(rows);
    for (std::size_t a = 0; a < rows; ++a) y[static_cast<long>(a)] = labels[a] ? 1.0 : -1.0;
    y.array() -= y.mean();
    const Eigen::MatrixXd gram = phi.transpose() * phi;
    const double penalty = 0.1 * gram.trace() / 20;
    const Eigen::VectorXd expected =
        (gram + penalty * Eigen::MatrixXd::Identity(20, 20)).ldlt().solve(phi.transpose() * y);
    for (long k = 0; k < 20; ++k) EXPECT_NEAR(model.weights[static_cast<std::size_t>(k)], expected[k], 1e-10);
  }
}

TEST(Ridge, ChoosesThePenaltyOfTheSmallestLeaveOneOutError) {
  const std::size_t rows = 25, columns = 8;
  const auto x = gaussian_rows(rows, columns, 2);
  std::vector<int> labels(rows);
  const auto noise = gaussian_rows(rows, 1, 3);
  for (std::size_t a = 0; a < rows; ++a) labels[a] = x.values[a * columns] + noise.values[a] > 0;
  const std::vector<double> penalties{1e-3, 1e-1, 10.0};
  // By brute force: n fits without one row each. The unit of the penalty is that of all rows.
  std::vector<double> errors;
  double unit = 0.0;
  {
    Eigen::MatrixXd all =
        Eigen::Map<const Eigen::Matrix<double, -1, -1, Eigen::RowMajor>>(x.values.data(), 25, 8);
    all.rowwise() -= all.colwise().mean().eval();
    unit = all.squaredNorm() / 8;
  }
  for (const double penalty : penalties) {
    double error = 0.0;
    for (std::size_t left = 0; left < rows; ++left) {
      Eigen::MatrixXd phi(24, 9);
      Eigen::VectorXd y(24);
      for (std::size_t a = 0, row = 0; a < rows; ++a) {
        if (a == left) continue;
        for (long k = 0; k < 8; ++k)
          phi(static_cast<long>(row), k) = x.values[a * columns + static_cast<std::size_t>(k)];
        phi(static_cast<long>(row), 8) = 1.0;
        y[static_cast<long>(row++)] = labels[a] ? 1.0 : -1.0;
      }
      // The intercept is not penalised; features are centred at the mean of all rows as in the fit.
      Eigen::RowVectorXd mean = Eigen::RowVectorXd::Zero(9);
      for (std::size_t a = 0; a < rows; ++a)
        for (long k = 0; k < 8; ++k) mean[k] += x.values[a * columns + static_cast<std::size_t>(k)] / 25.0;
      phi.rowwise() -= mean;
      Eigen::MatrixXd system = phi.transpose() * phi;
      system.diagonal().head(8).array() += penalty * unit;
      const Eigen::VectorXd w = system.ldlt().solve(phi.transpose() * y);
      double score = w[8];
      for (long k = 0; k < 8; ++k)
        score += w[k] * (x.values[left * columns + static_cast<std::size_t>(k)] - mean[k]);
      error += std::pow((labels[left] ? 1.0 : -1.0) - score, 2);
    }
    errors.push_back(error);
  }
  const auto best = static_cast<std::size_t>(std::min_element(errors.begin(), errors.end()) - errors.begin());
  EXPECT_EQ(fit(x, labels, 2, {.penalties = penalties}).penalties[0], penalties[best]);
  EXPECT_EQ(fit(x, labels, 2, {.penalties = {penalties[best]}}).weights,
            fit(x, labels, 2, {.penalties = penalties}).weights);
}

TEST(Logistic, IsStationaryForThePenalisedLikelihood) {
  const std::size_t rows = 60, columns = 4;
  const auto x = gaussian_rows(rows, columns, 4);
  const auto noise = gaussian_rows(rows, 1, 5);
  std::vector<int> labels(rows);
  for (std::size_t a = 0; a < rows; ++a)
    labels[a] = x.values[a * columns] - x.values[a * columns + 2] + noise.values[a] > 0.3;
  const double penalty = 0.01;
  const auto model = fit(x, labels, 2, {.classifier = Classifier::Logistic, .penalties = {penalty}});
  const auto p = probabilities(model, x);
  double unit = 0.0;
  for (std::size_t a = 0; a < rows; ++a)
    for (std::size_t k = 0; k < columns; ++k)
      unit += std::pow(x.values[a * columns + k] - model.means[k], 2) / columns;
  for (std::size_t k = 0; k < columns; ++k) {
    double gradient = penalty * unit * model.weights[k];
    for (std::size_t a = 0; a < rows; ++a)
      gradient += (p[2 * a + 1] - labels[a]) * (x.values[a * columns + k] - model.means[k]);
    EXPECT_NEAR(gradient, 0.0, 1e-5);
  }
}

class EachClassifier : public testing::TestWithParam<Classifier> {};

TEST_P(EachClassifier, GivesCalibratedProbabilitiesOfALogisticTruth) {
  const std::size_t rows = 4000;
  const auto x = gaussian_rows(rows, 2, 6), test = gaussian_rows(rows, 2, 7);
  std::vector<double> uniforms(2 * rows);
  NoiseStream(8, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, uniforms);
  const auto truth = [&](const FeatureMatrix& f, std::size_t a) {
    return 1 / (1 + std::exp(-(1.5 * f.values[2 * a] - f.values[2 * a + 1] + 0.5)));
  };
  std::vector<int> labels(rows), test_labels(rows);
  double best_loss = 0.0;
  for (std::size_t a = 0; a < rows; ++a) {
    labels[a] = uniforms[a] < truth(x, a);
    test_labels[a] = uniforms[rows + a] < truth(test, a);
    best_loss -= std::log(test_labels[a] ? truth(test, a) : 1 - truth(test, a)) / rows;
  }
  const auto model = fit(x, labels, 2, {.classifier = GetParam()});
  const Metrics m = metrics(probabilities(model, test), test_labels, 2);
  EXPECT_LT(
      m.log_loss,
      best_loss + 0.01);   // 3 parameters, 4000 rows: excess 3 / 8000; the ridge link costs a little more
  EXPECT_LT(m.ece, 0.03);  // sampling error of 15 bins with 4000 rows is 0.01
}

TEST_P(EachClassifier, SeparatesThreeClassesAndItsProbabilitiesSumToOne) {
  const std::size_t rows = 300;
  auto x = gaussian_rows(rows, 2, 9);
  std::vector<int> labels(rows);
  for (std::size_t a = 0; a < rows; ++a) {
    labels[a] = static_cast<int>(a % 3);
    x.values[2 * a] += 8.0 * (labels[a] == 1);
    x.values[2 * a + 1] += 8.0 * (labels[a] == 2);
  }
  const auto model = fit(x, labels, 3, {.classifier = GetParam()});
  const auto p = probabilities(model, x);
  for (std::size_t a = 0; a < rows; ++a) EXPECT_NEAR(p[3 * a] + p[3 * a + 1] + p[3 * a + 2], 1.0, 1e-15);
  EXPECT_GT(metrics(p, labels, 3).accuracy, 0.97);
}

TEST_P(EachClassifier, SurvivesSeparableConstantAndRepeatedFeatures) {
  const std::size_t rows = 20, columns = 5;
  FeatureMatrix x{rows, columns, std::vector<double>(rows * columns, 3.0)};
  std::vector<int> labels(rows);
  for (std::size_t a = 0; a < rows; ++a) {
    labels[a] = a % 2 == 0;
    x.values[a * columns] = x.values[a * columns + 1] = labels[a] ? 1.0 : -1.0;
  }
  const auto p = probabilities(fit(x, labels, 2, {.classifier = GetParam()}), x);
  EXPECT_EQ(metrics(p, labels, 2).accuracy, 1.0);
  for (double& value : x.values) value = 3.0;  // nothing to learn from
  const auto flat = probabilities(fit(x, labels, 2, {.classifier = GetParam()}), x);
  for (const double value : flat) EXPECT_NEAR(value, 0.5, 1e-6);
  EXPECT_THROW(fit(x, std::vector<int>(rows, 1), 2, {.classifier = GetParam()}), PreconditionViolation);
}

INSTANTIATE_TEST_SUITE_P(Classifiers, EachClassifier,
                         testing::Values(Classifier::Ridge, Classifier::Logistic),
                         [](const auto& instance) { return std::string(name(instance.param)); });

}  // namespace
}  // namespace rieszflow
