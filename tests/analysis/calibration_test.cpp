#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "analysis/classification.hpp"
#include "core/noise.hpp"

namespace rieszflow {
namespace {

std::vector<double> two_classes(const std::vector<double>& ones) {
  std::vector<double> out;
  for (const double p : ones) {
    out.push_back(1 - p);
    out.push_back(p);
  }
  return out;
}

std::vector<double> uniforms(std::size_t count, std::uint64_t seed) {
  std::vector<double> out(count);
  NoiseStream(seed, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, out);
  return out;
}

TEST(Calibration, AConfidenceOfExactlyOneIsInTheLastBin) {
  const Metrics m = metrics(two_classes({0.95, 1.0}), std::vector<int>{1, 0}, 2, 10);
  EXPECT_NEAR(m.ece, std::abs(0.975 - 0.5), 1e-15);
  EXPECT_NEAR(m.class_ece, 0.475, 1e-15);
}

TEST(Calibration, ProbabilitiesOfExactlyZeroAreInTheFirstBin) {
  const std::vector<double> p = two_classes({1, 1, 1, 1, 0});
  const std::vector<int> labels{0, 0, 1, 1, 1};
  const Metrics m = metrics(p, labels, 2, 2);
  // class 1: four rows at 1 of which half are 1, one row at 0 that is 1
  EXPECT_NEAR(m.class_ece, 0.8 * 0.5 + 0.2 * 1.0, 1e-15);
  // predicted class: five rows at confidence 1, two right
  EXPECT_NEAR(m.ece, 0.6, 1e-15);
  const auto bins = class_reliability(p, labels, 2, 1, 2);
  EXPECT_EQ(bins[0].count, 1u);
  EXPECT_EQ(bins[1].count, 4u);
}

TEST(Calibration, OfTheClassAndOfThePredictedClassAreTwoNumbers) {
  // One row sure of 0.4 for class 1 and label 1: class 1 came with 1 against 0.4, the prediction 0 was wrong
  // at 0.6.
  const Metrics m = metrics(two_classes({0.4}), std::vector<int>{1}, 2, 15);
  EXPECT_NEAR(m.class_ece, 0.6, 1e-15);
  EXPECT_NEAR(m.ece, 0.6, 1e-15);
  const Metrics two = metrics(two_classes({0.4, 0.6}), std::vector<int>{1, 1}, 2, 15);
  EXPECT_NEAR(two.class_ece, 0.5 * 0.6 + 0.5 * 0.4, 1e-15);
  EXPECT_NEAR(two.ece, std::abs(0.5 - 0.6), 1e-15);
}

TEST(Calibration, ConfidencesOnTheEdgesBelongToTheBinBelowForAllNumbersOfBins) {
  for (std::size_t bins = 2; bins <= 60; ++bins) {
    for (std::size_t k = 1; k <= bins; ++k) {
      const double edge = static_cast<double>(k) / static_cast<double>(bins);
      const auto table = class_reliability(two_classes({edge}), std::vector<int>{1}, 2, 1, bins);
      EXPECT_EQ(table[k - 1].count, 1u) << bins << " " << k;
      if (k < bins) {
        const auto above =
            class_reliability(two_classes({std::nextafter(edge, 2.0)}), std::vector<int>{1}, 2, 1, bins);
        EXPECT_EQ(above[k].count, 1u) << bins << " " << k;
      }
    }
  }
}

TEST(Calibration, ReliabilityTablesOfAClassCountEveryRowOnce) {
  const std::vector<double> ones = uniforms(500, 1), draws = uniforms(500, 2);
  std::vector<int> labels;
  for (std::size_t a = 0; a < ones.size(); ++a) labels.push_back(draws[a] < ones[a] ? 1 : 0);
  const std::vector<double> p = two_classes(ones);
  for (const auto& table :
       {class_reliability(p, labels, 2, 1), class_reliability_equal_mass(p, labels, 2, 1)}) {
    std::size_t rows = 0;
    double error = 0.0;
    for (const ReliabilityBin& bin : table) {
      rows += bin.count;
      error += static_cast<double>(bin.count) / 500.0 * std::abs(bin.accuracy - bin.confidence);
    }
    EXPECT_EQ(rows, 500u);
    EXPECT_LT(error, 0.12);
  }
}

TEST(LogitMetrics, ACertainErrorCostsItsLogitExactly) {
  const std::vector<double> logits{0.0, 200.0};
  EXPECT_EQ(metrics_from_logits(logits, std::vector<int>{0}, 2).log_loss, 200.0);
  EXPECT_EQ(log_loss_of_logits(std::vector<double>{0.0, 1e4}, std::vector<int>{0}, 2), 1e4);
  EXPECT_NEAR(log_loss_of_logits(std::vector<double>{-1000.0, -1000.0}, std::vector<int>{0}, 2),
              std::log(2.0), 1e-12);
}

TEST(LogitMetrics, AreThoseOfTheProbabilitiesAndBlindToAShift) {
  const std::vector<double> logits{0.3, -0.2, 1.0, 2.0, -0.5, 0.5, 0.0, 0.1};
  std::vector<double> shifted = logits;
  for (std::size_t i = 0; i < shifted.size(); i += 2) shifted[i] += 37.0, shifted[i + 1] += 37.0;
  const std::vector<int> labels{0, 1, 0, 0};
  const Metrics a = metrics_from_logits(logits, labels, 2), b = metrics(softmax(logits, 2), labels, 2),
                c = metrics_from_logits(shifted, labels, 2);
  EXPECT_NEAR(a.log_loss, b.log_loss, 1e-14);
  EXPECT_EQ(a.brier, b.brier);
  EXPECT_EQ(a.ece, b.ece);
  EXPECT_NEAR(a.log_loss, c.log_loss, 1e-13);
  EXPECT_EQ(a.accuracy, c.accuracy);
}

TEST(Temperature, RecoversTheFactorThatMadeLogitsTooSure) {
  constexpr std::size_t rows = 20000;
  const std::vector<double> u = uniforms(rows, 3), draws = uniforms(rows, 4);
  std::vector<double> logits;
  std::vector<int> labels;
  for (std::size_t a = 0; a < rows; ++a) {
    const double odds = 6.0 * u[a] - 3.0;
    logits.insert(logits.end(), {0.0, 2.5 * odds});
    labels.push_back(draws[a] < 1.0 / (1.0 + std::exp(-odds)) ? 1 : 0);
  }
  const double temperature = fit_temperature(logits, labels, 2);
  EXPECT_NEAR(temperature, 2.5, 0.1);
  const double best = log_loss_of_logits(logits, labels, 2, temperature);
  for (const double factor : {0.99, 1.01})
    EXPECT_GT(log_loss_of_logits(logits, labels, 2, factor * temperature), best);
  EXPECT_LT(metrics_from_logits(logits, labels, 2, temperature).ece,
            0.4 * metrics_from_logits(logits, labels, 2).ece);
  EXPECT_EQ(metrics_from_logits(logits, labels, 2, temperature).accuracy,
            metrics_from_logits(logits, labels, 2).accuracy);
}

TEST(Temperature, OfSeparatedOrEmptyLogitsIsAnEndOfItsInterval) {
  EXPECT_EQ(fit_temperature(std::vector<double>{0, 1, 1, 0}, std::vector<int>{1, 0}, 2), 1.0 / 64.0);
  EXPECT_EQ(fit_temperature(std::vector<double>{0, 1, 1, 0}, std::vector<int>{0, 1}, 2), 64.0);
}

TEST(CalibrationFloor, IsTheMeanErrorOfPerfectForecastsAndFallsLikeTheRootOfTheRows) {
  const auto floor_of = [](std::size_t rows) {
    return calibration_floor(two_classes(uniforms(rows, 5)), 2, 1, 60).class_ece;
  };
  const double small = floor_of(500), large = floor_of(8000);
  EXPECT_NEAR(small / large, 4.0, 0.6);
  // Forecasts at 1/2 in one bin: E |share - 1/2| = sqrt(2 / (pi n)) / 2.
  const double one_bin = calibration_floor(two_classes(std::vector<double>(400, 0.5)), 2, 2, 2000).class_ece;
  EXPECT_NEAR(one_bin, std::sqrt(2.0 / (M_PI * 400)) / 2.0, 0.0008);
}

TEST(Metrics, OfOneClassOneRowAndTiesAreDefined) {
  const Metrics one = metrics_from_logits(std::vector<double>{0.0, 0.0}, std::vector<int>{1}, 2);
  EXPECT_EQ(one.accuracy, 0.0) << "of equal logits the first class is predicted";
  EXPECT_EQ(one.mcc, 0.0);
  EXPECT_NEAR(one.log_loss, std::log(2.0), 1e-15);
  EXPECT_EQ(one.brier, 0.25);
}

}  // namespace
}  // namespace rieszflow
