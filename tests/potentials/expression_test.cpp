#include "potentials/expression.hpp"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <stdexcept>
#include <thread>

#include "difference.hpp"

namespace rieszflow {
namespace {

double at(const char* text, double x, double y = 0.0) {
  return ExpressionFunction(text, {"x", "y"})(std::vector<double>{x, y});
}

std::string complaint(const char* text) {
  try {
    ExpressionFunction(text, {"x", "y"});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Expression, FollowsTheRulesOfPrecedence) {
  EXPECT_EQ(at("1 + 2 * 3", 0), 7.0);
  EXPECT_EQ(at("-2^2", 0), -4.0);
  EXPECT_EQ(at("2^3^2", 0), 512.0);
  EXPECT_EQ(at("2^-1", 0), 0.5);
  EXPECT_EQ(at("8 / 4 / 2", 0), 1.0);
  EXPECT_EQ(at("7 - 4 - 2", 0), 1.0);
  EXPECT_EQ(at("-x*y", 2, 3), -6.0);
  EXPECT_EQ(at("2*-x", 3), -6.0);
  EXPECT_EQ(at("x--y", 1, 2), 3.0);
  EXPECT_EQ(at("(x + y) * (x - y)", 3, 2), 5.0);
  EXPECT_EQ(at("1 < 2 && 3 < 2 || 1", 0), 1.0);
  EXPECT_EQ(at("x<-1", -2), 1.0);
  EXPECT_EQ(at("x >= 1", 1), 1.0);
  EXPECT_EQ(at("x > 1", 1), 0.0);
  EXPECT_EQ(at("x != y", 1, 1), 0.0);
}

TEST(Expression, KnowsItsFunctionsAndConstants) {
  const double x = 0.37;
  const double y = -0.81;
  const std::vector<std::pair<const char*, double>> cases = {{"sin(x)", std::sin(x)},
                                                             {"cos(x)", std::cos(x)},
                                                             {"tan(x)", std::tan(x)},
                                                             {"asin(x)", std::asin(x)},
                                                             {"acos(x)", std::acos(x)},
                                                             {"atan(x)", std::atan(x)},
                                                             {"sinh(x)", std::sinh(x)},
                                                             {"cosh(x)", std::cosh(x)},
                                                             {"tanh(x)", std::tanh(x)},
                                                             {"exp(x)", std::exp(x)},
                                                             {"log(x)", std::log(x)},
                                                             {"ln(x)", std::log(x)},
                                                             {"log2(x)", std::log2(x)},
                                                             {"log10(x)", std::log10(x)},
                                                             {"sqrt(x)", std::sqrt(x)},
                                                             {"abs(y)", -y},
                                                             {"erf(x)", std::erf(x)},
                                                             {"sign(y)", -1.0},
                                                             {"min(x, y)", y},
                                                             {"max(x, y, 2)", 2.0},
                                                             {"atan2(x, y)", std::atan2(x, y)},
                                                             {"pi", std::numbers::pi},
                                                             {"e", std::numbers::e},
                                                             {"x^0.5", std::sqrt(x)},
                                                             {"y^3", y * y * y},
                                                             {"y^-2", 1.0 / (y * y)},
                                                             {"x^y", std::pow(x, y)},
                                                             {"y^20", std::pow(y, 20.0)},
                                                             {"1.5e-3*x", 1.5e-3 * x},
                                                             {".5 + x", .5 + x}};
  for (const auto& [text, expected] : cases) EXPECT_DOUBLE_EQ(at(text, x, y), expected) << text;
}

TEST(Expression, ConditionalsNestBothWays) {
  const char* nested = "x>0 ? y>0 ? 1 : 2 : y>0 ? 3 : 4";
  EXPECT_EQ(at(nested, 1, 1), 1.0);
  EXPECT_EQ(at(nested, 1, -1), 2.0);
  EXPECT_EQ(at(nested, -1, 1), 3.0);
  EXPECT_EQ(at(nested, -1, -1), 4.0);
  const char* chain = "x<1 ? 10 : x<2 ? 20 : x<3 ? 30 : 40";
  EXPECT_EQ(at(chain, 0.5), 10.0);
  EXPECT_EQ(at(chain, 1.5), 20.0);
  EXPECT_EQ(at(chain, 2.5), 30.0);
  EXPECT_EQ(at(chain, 3.5), 40.0);
  EXPECT_EQ(at("(x ? 1 : 2) + 3", 0), 5.0);
  EXPECT_EQ(at("x ? 1 : 2 + 3", 0), 5.0);
}

TEST(Expression, DerivativesAreExactToRoundOff) {
  const std::vector<std::pair<const char*, std::function<double(double)>>> cases = {
      {"sin(x)", [](double x) { return std::cos(x); }},
      {"cos(x)", [](double x) { return -std::sin(x); }},
      {"tan(x)", [](double x) { return 1.0 / (std::cos(x) * std::cos(x)); }},
      {"asin(x)", [](double x) { return 1.0 / std::sqrt(1.0 - x * x); }},
      {"acos(x)", [](double x) { return -1.0 / std::sqrt(1.0 - x * x); }},
      {"atan(x)", [](double x) { return 1.0 / (1.0 + x * x); }},
      {"sinh(x)", [](double x) { return std::cosh(x); }},
      {"cosh(x)", [](double x) { return std::sinh(x); }},
      {"tanh(x)", [](double x) { return 1.0 / (std::cosh(x) * std::cosh(x)); }},
      {"exp(-x^2)", [](double x) { return -2.0 * x * std::exp(-x * x); }},
      {"log(x)", [](double x) { return 1.0 / x; }},
      {"log2(x)", [](double x) { return 1.0 / (x * std::numbers::ln2); }},
      {"log10(x)", [](double x) { return 1.0 / (x * std::numbers::ln10); }},
      {"sqrt(x)", [](double x) { return 0.5 / std::sqrt(x); }},
      {"abs(-x)", [](double) { return 1.0; }},
      {"erf(x)", [](double x) { return 2.0 * std::numbers::inv_sqrtpi * std::exp(-x * x); }},
      {"min(x, 2*x)", [](double) { return 1.0; }},
      {"max(x, 2*x)", [](double) { return 2.0; }},
      {"x^7", [](double x) { return 7.0 * std::pow(x, 6.0); }},
      {"x^-3", [](double x) { return -3.0 * std::pow(x, -4.0); }},
      {"x^2.5", [](double x) { return 2.5 * std::pow(x, 1.5); }},
      {"x^x", [](double x) { return std::pow(x, x) * (1.0 + std::log(x)); }},
      {"2^x", [](double x) { return std::pow(2.0, x) * std::numbers::ln2; }},
      {"atan2(x, 2)", [](double x) { return 2.0 / (4.0 + x * x); }},
      {"atan2(2, x)", [](double x) { return -2.0 / (4.0 + x * x); }},
      {"exp(-x)/x", [](double x) { return -std::exp(-x) * (1.0 + x) / (x * x); }},
      {"x < 0.5 ? x^2 : x^3", [](double x) { return x < 0.5 ? 2.0 * x : 3.0 * x * x; }},
      {"sign(x) * (x > 0)", [](double) { return 0.0; }},
      {"sin(20*x)^2", [](double x) { return 20.0 * std::sin(40.0 * x); }}};
  for (const auto& [text, derivative] : cases) {
    const ExpressionFunction f(text, {"x"});
    for (const double x : {0.11, 0.37, 0.5, 0.93}) {
      const double expected = derivative(x);
      EXPECT_NEAR(f.derivative(std::vector<double>{x}, 0), expected, 1e-14 * (20.0 + std::abs(expected)))
          << text << x;
    }
  }
}

TEST(Expression, GradientsOfSeveralVariablesAgreeWithDifferences) {
  const ExpressionFunction f("exp(-(x^2+y^2)/2) * sin(x*y) + x/(2+y) - (x>0 ? x*y : y^2)", {"x", "y"});
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0.1, 1.0);
  for (int trial = 0; trial < 100; ++trial) {
    const std::vector<double> x{uniform(random), uniform(random)};
    std::vector<double> gradient(2);
    EXPECT_EQ(f.value_and_gradient(x, gradient), f(x));
    const auto force = force_by_differences([&](std::span<const double> p) { return f(p); }, x);
    EXPECT_NEAR(gradient[0], -force[0], 1e-9);
    EXPECT_NEAR(gradient[1], -force[1], 1e-9);
  }
}

TEST(Expression, ABranchNotTakenSpoilsNoDerivative) {
  const ExpressionFunction f("x > 0 ? x*log(x) : x^2", {"x"});
  EXPECT_EQ(f.derivative(std::vector<double>{0.0}, 0), 0.0);
  EXPECT_EQ(f.derivative(std::vector<double>{-1.0}, 0), -2.0);
  const ExpressionFunction flat("exp(-1/x^2)", {"x"});
  EXPECT_EQ(flat.derivative(std::vector<double>{0.0}, 0), 0.0);
}

TEST(Expression, BatchesAreBitwiseThePointByPointValues) {
  const ExpressionFunction f("exp(-x^2) * cos(3*y) + (x<y ? x^3 : max(x,y,0.2)) - pi", {"x", "y"});
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-2.0, 2.0);
  for (const std::size_t count : {0u, 1u, 63u, 64u, 65u, 1000u}) {
    std::vector<double> points(2 * count);
    for (double& x : points) x = uniform(random);
    std::vector<double> out(count);
    f.values(points, out);
    for (std::size_t p = 0; p < count; ++p)
      EXPECT_EQ(out[p], f(std::span<const double>(points).subspan(2 * p, 2)));
  }
}

TEST(Expression, EvaluatesConcurrently) {
  const ExpressionFunction f("sin(x)^2 + cos(x)^2 + x - x", {"x"});
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 20000; ++k) {
        const double x = 0.001 * k + static_cast<double>(t);
        double slope = 0.0;
        const double value = f.value_and_gradient({&x, 1}, {&slope, 1});
        // cos^2 + sin^2 and the difference x - x round within a few ulps of x <= 24.
        if (std::abs(value - 1.0) > 1e-14 || std::abs(slope) > 1e-14) ++wrong[t];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(Expression, SaysWhatIsWrongAndWhere) {
  EXPECT_NE(complaint("x + )").find("position 4"), std::string::npos) << complaint("x + )");
  EXPECT_NE(complaint("x + q").find("\"q\" found at position 4"), std::string::npos) << complaint("x + q");
  EXPECT_NE(complaint("x + q").find("variables here: x, y"), std::string::npos);
  EXPECT_NE(complaint("sin(x").find("parenthesis"), std::string::npos);
  EXPECT_NE(complaint("").find("empty"), std::string::npos);
  EXPECT_NE(complaint("x ? 1").find("without its \":\""), std::string::npos);
  EXPECT_NE(complaint("1 : 2").find("without its \"?\""), std::string::npos);
  EXPECT_NE(complaint("1e400").find("range"), std::string::npos);
  for (const char* text : {"x , y", "x = 3", "2x", "x y", "0x1F", "1.5e", "\"x\"", "!x", "sin x", "sin()",
                           "atan2(x)", "inf", "nan", "x %% 2", "()", "x ? : 1", "(x:y)+1", "x..1", "1,5"})
    EXPECT_FALSE(complaint(text).empty()) << text;
}

TEST(Expression, IsNotFiniteWhereTheTextIsNot) {
  EXPECT_TRUE(std::isnan(at("log(x)", -1.0)));
  EXPECT_EQ(at("1/x", 0.0), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(at("x/x", 0.0)));
}

TEST(Expression, ReadsNumbersWithAPointInEveryLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  if (!std::setlocale(LC_ALL, "de_DE.UTF-8")) GTEST_SKIP() << "the locale de_DE.UTF-8 is not installed";
  EXPECT_EQ(at("1.5 * x", 2.0), 3.0);
  EXPECT_FALSE(complaint("1,5 * x").empty());
  std::setlocale(LC_ALL, before.c_str());
}

TEST(Expression, LongTextsKeepTheirMeaning) {
  std::string text = "0";
  for (int k = 1; k <= 300; ++k) text += " + x^" + std::to_string(k) + "/" + std::to_string(k);
  const ExpressionFunction f(text, {"x"});
  // The series of -log(1 - x) and of 1/(1 - x) at 1/2: the tail after 300 terms is 2^-300.
  EXPECT_NEAR(f(std::vector<double>{0.5}), std::numbers::ln2, 1e-15);
  EXPECT_NEAR(f.derivative(std::vector<double>{0.5}, 0), 2.0, 1e-14);
}

TEST(Expression, CoordinateNamesFollowTheDimension) {
  EXPECT_EQ(coordinate_names(2), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(coordinate_names(4), (std::vector<std::string>{"x1", "x2", "x3", "x4"}));
}

}  // namespace
}  // namespace rieszflow
