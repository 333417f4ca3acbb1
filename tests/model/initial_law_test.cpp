#include "model/initial_law.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <functional>
#include <numbers>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

constexpr double pi = std::numbers::pi;

std::shared_ptr<const ExpressionFunction> text(const char* value, std::vector<std::string> variables) {
  return std::make_shared<const ExpressionFunction>(value, std::move(variables));
}

double integral(const std::function<double(double)>& f, double from, double to) {
  return boost::math::quadrature::gauss_kronrod<double, 31>::integrate(f, from, to, 12, 1e-13);
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

/// Distribution function of one axis of the samples against `cdf`: sqrt(n) times the Kolmogorov-Smirnov
/// distance.
double ks_statistic(const ParticleEnsemble& ensemble, std::size_t axis,
                    const std::function<double(double)>& cdf) {
  std::vector<double> x;
  for (std::size_t p = axis; p < ensemble.positions.size(); p += ensemble.dimension)
    x.push_back(ensemble.positions[p]);
  std::sort(x.begin(), x.end());
  const double n = static_cast<double>(x.size());
  double distance = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double f = cdf(x[k]);
    distance = std::max({distance, f - static_cast<double>(k) / n, static_cast<double>(k + 1) / n - f});
  }
  return std::sqrt(n) * distance;
}

/// The Kolmogorov distribution exceeds 1.95 with probability 0.001; the seeds are fixed.
constexpr double ks_bound = 1.95;

void expect_inside(const ParticleEnsemble& ensemble, const Domain& domain) {
  for (std::size_t p = 0; p < ensemble.positions.size(); p += ensemble.dimension)
    ASSERT_TRUE(contains(domain, std::span<const double>(ensemble.positions).subspan(p, ensemble.dimension)));
}

/// Density of N(mean, deviation^2) over that at `mode`, so that far tails do not underflow.
auto relative_density(double mean, double deviation, double mode) {
  return [=](double x) {
    return std::exp(-0.5 * (x - mode) * (x + mode - 2.0 * mean) / (deviation * deviation));
  };
}

TEST(GaussianLaw, InABoxFollowsTheTruncatedDistributionFunction) {
  struct Case {
    double mean, deviation;
  };
  const Box box{{-1.0}, {2.0}};
  // Inside, at a wall, wide, in the tail of either side, far in the tail, narrow.
  for (const auto& [mean, deviation] : std::vector<Case>{{0.3, 0.4},
                                                         {-1.0, 0.5},
                                                         {0.0, 50.0},
                                                         {-3.0, 0.4},
                                                         {5.0, 0.7},
                                                         {-9.0, 1.0},
                                                         {30.0, 1.0},
                                                         {0.3, 1e4},
                                                         {0.3, 1e-3}}) {
    const GaussianLaw law{{mean}, {deviation}};
    EXPECT_EQ(problem(law, box), std::nullopt);
    const ParticleEnsemble ensemble = sample(law, box, 4, 1000, 7);
    expect_inside(ensemble, box);
    const double mode = std::clamp(mean, -1.0, 2.0);
    const auto density = relative_density(mean, deviation, mode);
    const double reach = std::min(3.0, 40.0 * deviation);
    const double low = std::max(-1.0, mode - reach);
    const double high = std::min(2.0, mode + reach);
    const double total = integral(density, low, mode) + integral(density, mode, high);
    const auto cdf = [&](double x) {
      if (x <= low) return 0.0;
      return x <= mode ? integral(density, low, x) / total : 1.0 - integral(density, x, high) / total;
    };
    EXPECT_LT(ks_statistic(ensemble, 0, cdf), ks_bound) << "mean " << mean << " std " << deviation;
  }
}

TEST(GaussianLaw, AMeanAnywhereEndsInsideTheBox) {
  const Box box{{0.0, 0.0}, {1.0, 1e-9}};
  for (const double mean : {-1e300, -1e10, -1e3, 0.0, 1.0, 1e3, 1e10, 1e300})
    for (const double deviation : {1e-300, 1e-10, 1.0, 1e10}) {
      const GaussianLaw law{{mean, -mean}, {deviation, deviation}};
      expect_inside(sample(law, box, 1, 20, 1), box);
    }
}

TEST(GaussianLaw, OnATorusIsTheWrappedNormal) {
  const Torus torus{{0.0}, {1.0}};
  const GaussianLaw law{{0.9}, {0.3}};
  const ParticleEnsemble ensemble = sample(law, torus, 2, 5000, 3);
  expect_inside(ensemble, torus);
  const auto cdf = [&](double x) {
    double sum = 0.0;
    for (int n = -10; n <= 10; ++n) sum += normal_cdf((x + n - 0.9) / 0.3) - normal_cdf((n - 0.9) / 0.3);
    return sum;
  };
  EXPECT_LT(ks_statistic(ensemble, 0, cdf), ks_bound);
}

TEST(GaussianLaw, InABallHasTheRadialLawOfATruncatedGaussian) {
  const Ball ball{{0.5, -0.5}, 1.0};
  for (const double deviation : {0.3, 2.0, 100.0}) {
    const GaussianLaw law{{0.5, -0.5}, {deviation, deviation}};
    EXPECT_EQ(problem(law, ball), std::nullopt);
    ParticleEnsemble ensemble = sample(law, ball, 1, 10000, 5);
    expect_inside(ensemble, ball);
    for (std::size_t p = 0; p < ensemble.positions.size(); p += 2)
      ensemble.positions[p] = std::hypot(ensemble.positions[p] - 0.5, ensemble.positions[p + 1] + 0.5);
    const double s2 = 2.0 * deviation * deviation;
    const auto cdf = [&](double r) { return std::expm1(-r * r / s2) / std::expm1(-1.0 / s2); };
    EXPECT_LT(ks_statistic(ensemble, 0, cdf), ks_bound) << deviation;
  }
}

TEST(GaussianLaw, ThatABallDoesNotHoldIsRefused) {
  const Ball ball{{0.0, 0.0}, 1.0};
  const auto sentence = problem(GaussianLaw{{50.0, 50.0}, {0.1, 0.1}}, ball);
  ASSERT_TRUE(sentence.has_value());
  EXPECT_NE(sentence->find("(50, 50)"), std::string::npos) << *sentence;
}

TEST(GaussianLaw, InTheWholeSpaceIsNormal) {
  const ParticleEnsemble ensemble = sample(GaussianLaw{{1.0, -2.0}, {0.5, 3.0}}, WholeSpace{2}, 1, 10000, 11);
  EXPECT_LT(ks_statistic(ensemble, 0, [](double x) { return normal_cdf((x - 1.0) / 0.5); }), ks_bound);
  EXPECT_LT(ks_statistic(ensemble, 1, [](double x) { return normal_cdf((x + 2.0) / 3.0); }), ks_bound);
}

TEST(UniformLaw, FillsBoxesAndBalls) {
  const ParticleEnsemble box = sample(UniformLaw{}, Box{{-1.0, 0.0}, {1.0, 5.0}}, 1, 10000, 2);
  EXPECT_LT(ks_statistic(box, 1, [](double x) { return x / 5.0; }), ks_bound);
  ParticleEnsemble ball = sample(UniformLaw{}, Ball{{0.0, 0.0, 0.0}, 2.0}, 1, 10000, 2);
  expect_inside(ball, Ball{{0.0, 0.0, 0.0}, 2.0});
  EXPECT_LT(ks_statistic(ball, 2, [](double x) { return 0.5 + x * (12.0 - x * x) / 32.0; }), ks_bound);
  EXPECT_NE(problem(UniformLaw{}, WholeSpace{1}), std::nullopt);
}

TEST(MixtureLaw, WeighsItsTruncatedComponents) {
  const Box box{{0.0}, {1.0}};
  const MixtureLaw law{{1.0, 3.0}, {GaussianLaw{{-0.2}, {0.2}}, GaussianLaw{{0.7}, {0.1}}}};
  const auto truncated = [](double x, double mean, double deviation) {
    const double low = normal_cdf(-mean / deviation);
    return (normal_cdf((x - mean) / deviation) - low) / (normal_cdf((1.0 - mean) / deviation) - low);
  };
  const auto cdf = [&](double x) { return 0.25 * truncated(x, -0.2, 0.2) + 0.75 * truncated(x, 0.7, 0.1); };
  EXPECT_LT(ks_statistic(sample(law, box, 2, 5000, 9), 0, cdf), ks_bound);
  const Density density = cell_averages(law, box, grid_on(box, {40}));
  for (std::size_t i = 0; i < 40; ++i)
    EXPECT_NEAR(density.averages[i] / 40.0, cdf((i + 1.0) / 40.0) - cdf(i / 40.0), 1e-14);
}

TEST(ExpressionLaw, SamplesFollowTheText) {
  const Box interval{{0.0}, {1.0}};
  const ExpressionLaw law{text("x < 0.3 ? 0 : x^2", {"x"})};
  EXPECT_EQ(problem(law, interval), std::nullopt);
  const ParticleEnsemble ensemble = sample(law, interval, 1, 10000, 4);
  const double floor = 0.027;
  EXPECT_LT(
      ks_statistic(ensemble, 0, [&](double x) { return std::max(0.0, x * x * x - floor) / (1.0 - floor); }),
      ks_bound);

  const Ball disc{{0.0, 0.0}, 1.0};
  ParticleEnsemble planar = sample(ExpressionLaw{text("1 - x^2 - y^2", {"x", "y"})}, disc, 1, 10000, 4);
  expect_inside(planar, disc);
  for (std::size_t p = 0; p < planar.positions.size(); p += 2)
    planar.positions[p] = std::hypot(planar.positions[p], planar.positions[p + 1]);
  EXPECT_LT(ks_statistic(planar, 0, [](double r) { return r * r * (2.0 - r * r); }), ks_bound);
}

TEST(ExpressionLaw, IsRefusedWhereItIsNoDensity) {
  const Box interval{{-1.0}, {1.0}};
  const auto fault = [&](const char* value) {
    return problem(ExpressionLaw{text(value, {"x"})}, interval).value_or("");
  };
  EXPECT_EQ(fault("1 + x"), "");
  EXPECT_NE(fault("x").find("negative at (-1)"), std::string::npos);
  EXPECT_NE(fault("log(x)").find("not a number at (-1)"), std::string::npos);
  EXPECT_NE(fault("1/abs(x)").find("infinite at (0)"), std::string::npos);
  EXPECT_NE(fault("0*x").find("zero"), std::string::npos);
  EXPECT_NE(problem(ExpressionLaw{text("1", {"x"})}, WholeSpace{1}), std::nullopt);
}

TEST(GridLaw, SamplesAndRemapsThePiecewiseConstantDensity) {
  const Box box{{0.0}, {1.0}};
  const GridLaw law{{grid_on(box, {4}), {0.4, 0.0, 2.8, 0.8}}};
  EXPECT_EQ(problem(law, box), std::nullopt);
  const auto cdf = [](double x) {
    return x < 0.25 ? 0.4 * x : (x < 0.5 ? 0.1 : (x < 0.75 ? 0.1 + 2.8 * (x - 0.5) : 0.8 + 0.8 * (x - 0.75)));
  };
  EXPECT_LT(ks_statistic(sample(law, box, 1, 10000, 6), 0, cdf), ks_bound);
  for (const std::size_t n : {1u, 3u, 4u, 8u, 17u}) {
    const Density moved = cell_averages(law, box, grid_on(box, {n}));
    const double h = 1.0 / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_NEAR(moved.averages[i] * h,
                  cdf(h * static_cast<double>(i + 1)) - cdf(h * static_cast<double>(i)), 1e-14);
  }
  EXPECT_NE(problem(GridLaw{{grid_on(box, {2}), {1.0, -1.0}}}, box), std::nullopt);
}

TEST(PositionsLaw, IsUsedAsItIs) {
  const Box box{{0.0}, {1.0}};
  const PositionsLaw law{{2, 3, 1, {0.1, 0.2, 0.3, 0.9, 1.0, 0.6}}};
  EXPECT_EQ(sample(law, box, 2, 3, 0).positions, law.ensemble.positions);
  EXPECT_THROW(sample(law, box, 2, 4, 0), PreconditionViolation);
  const Density histogram = cell_averages(law, box, grid_on(box, {2}));
  EXPECT_DOUBLE_EQ(histogram.averages[0], 1.0);
  EXPECT_DOUBLE_EQ(histogram.averages[1], 1.0);
  EXPECT_NE(problem(law, Box{{0.0}, {0.95}}), std::nullopt);
}

TEST(InitialLaw, SamplesAreKeyedByReplicaAndParticleAlone) {
  const std::vector<std::pair<InitialLaw, Domain>> cases = {
      {GaussianLaw{{0.0, 0.0}, {0.5, 2.0}}, Box{{-1.0, -1.0}, {1.0, 1.0}}},
      {GaussianLaw{{0.0, 0.0}, {0.5, 2.0}}, Ball{{0.0, 0.0}, 1.0}},
      {UniformLaw{}, Torus{{-1.0, -1.0}, {1.0, 1.0}}},
      {ExpressionLaw{text("1 + x*y", {"x", "y"})}, Box{{-1.0, -1.0}, {1.0, 1.0}}}};
  for (const auto& [law, domain] : cases) {
    const ParticleEnsemble large = sample(law, domain, 3, 40, 17);
    const ParticleEnsemble small = sample(law, domain, 2, 10, 17);
    for (std::size_t replica = 0; replica < 2; ++replica)
      for (std::size_t k = 0; k < 20; ++k) EXPECT_EQ(small.replica(replica)[k], large.replica(replica)[k]);
    EXPECT_NE(sample(law, domain, 2, 10, 18).positions, small.positions);
    EXPECT_NE(large.replica(0)[0], large.replica(1)[0]);
  }
}

TEST(InitialLaw, NoParticlesAreNoParticles) {
  EXPECT_TRUE(sample(UniformLaw{}, Box{{0.0}, {1.0}}, 2, 0, 1).positions.empty());
}

TEST(CellAverages, OfAGaussianAgreeWithQuadratureAlsoFarInTheTails) {
  const Box box{{-1.0}, {2.0}};
  for (const auto& [mean, deviation] : std::vector<std::pair<double, double>>{
           {0.3, 0.4}, {0.3, 20.0}, {0.3, 1e-2}, {-4.0, 0.3}, {60.0, 1.0}, {1e4, 3.0}}) {
    const Grid grid = grid_on(box, {96});
    const Density density = cell_averages(GaussianLaw{{mean}, {deviation}}, box, grid);
    EXPECT_NEAR(mass(density), 1.0, 1e-14);
    const double mode = std::clamp(mean, -1.0, 2.0);
    const auto f = relative_density(mean, deviation, mode);
    // The quadrature subdivides each cell, enough for the steepest tail here: e-folding length 1/1100 of the
    // domain.
    std::vector<double> cells(96);
    double total = 0.0;
    for (std::size_t i = 0; i < 96; ++i) {
      for (int part = 0; part < 128; ++part) {
        const double from = grid.face(0, i) + grid.spacing(0) * part / 128.0;
        cells[i] +=
            boost::math::quadrature::gauss<double, 15>::integrate(f, from, from + grid.spacing(0) / 128.0);
      }
      total += cells[i];
    }
    for (std::size_t i = 0; i < 96; ++i)
      EXPECT_NEAR(density.averages[i] * grid.spacing(0), cells[i] / total,
                  1e-13 * std::max(1e-3, cells[i] / total))
          << "mean " << mean << " std " << deviation << " cell " << i;
  }
}

TEST(CellAverages, AreRelativelyAccurateInTheTail) {
  // No cancellation: the ratio of the last two cells is right to round-off although both are of order 1e-200.
  const Box box{{0.0}, {30.0}};
  const Density density = cell_averages(GaussianLaw{{0.0}, {1.0}}, box, grid_on(box, {3000}));
  const auto f = [](double x) { return std::exp(-0.5 * (x * x - 900.0)); };
  const double last = integral(f, 29.99, 30.0);
  const double before = integral(f, 29.98, 29.99);
  EXPECT_NEAR(density.averages[2998] / density.averages[2999] / (before / last), 1.0, 1e-11);
}

TEST(CellAverages, OnATorusAreThoseOfTheWrappedNormal) {
  const Torus torus{{-1.0}, {1.0}};
  for (const double deviation : {0.05, 0.7, 5.0, 7.0}) {
    const Grid grid = grid_on(torus, {32});
    const Density density = cell_averages(GaussianLaw{{0.9}, {deviation}}, torus, grid);
    for (std::size_t i = 0; i < 32; ++i) {
      // Fourier series of the wrapped normal, integrated over the cell.
      double expected = grid.spacing(0) / 2.0;
      for (int k = 1; k < 200; ++k) {
        const double w = pi * k;
        expected += std::exp(-0.5 * w * w * deviation * deviation) / w *
                    (std::sin(w * (grid.face(0, i + 1) - 0.9)) - std::sin(w * (grid.face(0, i) - 0.9)));
      }
      EXPECT_NEAR(density.averages[i] * grid.spacing(0), expected, 1e-13) << deviation << " " << i;
    }
  }
}

TEST(CellAverages, OfEveryLawHaveMassOne) {
  const std::vector<Domain> domains = {Box{{-1.0, -1.0}, {1.0, 2.0}}, Ball{{0.0, 0.0}, 1.0},
                                       Torus{{-1.0, 0.0}, {1.0, 1.0}}};
  const std::vector<InitialLaw> laws = {
      GaussianLaw{{0.1, 0.2}, {0.4, 0.8}}, UniformLaw{},
      MixtureLaw{{1.0, 2.0}, {GaussianLaw{{0.1, 0.2}, {0.4, 0.8}}, GaussianLaw{{0.5, 0.5}, {0.1, 0.1}}}},
      ExpressionLaw{text("exp(x)*(2+y)", {"x", "y"})}};
  for (const Domain& domain : domains)
    for (const InitialLaw& law : laws) {
      EXPECT_EQ(problem(law, domain), std::nullopt);
      const Density density = cell_averages(law, domain, grid_on(domain, {13, 8}));
      EXPECT_NEAR(mass(density), 1.0, 1e-14);
      EXPECT_GE(*std::min_element(density.averages.begin(), density.averages.end()), 0.0);
    }
}

TEST(CellAverages, OfATextAgreeWithQuadrature) {
  const Box box{{0.0, 0.0}, {1.0, 2.0}};
  const Density density =
      cell_averages(ExpressionLaw{text("exp(x)*(2+cos(y))", {"x", "y"})}, box, grid_on(box, {5, 7}));
  const double total = std::expm1(1.0) * (4.0 + std::sin(2.0));
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 7; ++j) {
      const double x = std::exp((i + 1.0) / 5.0) - std::exp(i / 5.0);
      const double y = 4.0 / 7.0 + std::sin((j + 1.0) * 2.0 / 7.0) - std::sin(j * 2.0 / 7.0);
      EXPECT_NEAR(density.averages[i * 7 + j] * density.grid.cell_volume(), x * y / total, 1e-12);
    }
}

TEST(MixtureLaw, WeightsNearTheLargestNumberAreRelativeToo) {
  const Domain domain = Box{{-1.0, -1.0}, {1.0, 1.0}};
  const MixtureLaw plain{.weights = {1.0, 1.0},
                         .components = {{{-0.4, 0.0}, {0.1, 0.1}}, {{0.4, 0.0}, {0.1, 0.1}}}};
  MixtureLaw huge = plain;
  huge.weights = {std::ldexp(1.0, 1023), std::ldexp(1.0, 1023)};
  const Grid grid = grid_on(domain, std::vector<std::size_t>{8, 8});
  EXPECT_EQ(cell_averages(huge, domain, grid).averages, cell_averages(plain, domain, grid).averages);
  EXPECT_EQ(sample(huge, domain, 1, 50, 1).positions, sample(plain, domain, 1, 50, 1).positions);
}

TEST(GaussianLaw, BeyondWhatADomainResolvesIsRefusedWithASentence) {
  const Domain box = Box{{-6.0}, {6.0}}, torus = Torus{{-1.0}, {1.0}};
  EXPECT_TRUE(problem(GaussianLaw{{1e308}, {0.4}}, box));
  EXPECT_TRUE(problem(GaussianLaw{{0.0}, {1e308}}, box));
  EXPECT_TRUE(problem(GaussianLaw{{0.0}, {1e308}}, torus));
  EXPECT_TRUE(problem(GaussianLaw{{1e300}, {0.4}}, torus));
  EXPECT_FALSE(problem(GaussianLaw{{106.0}, {0.4}}, box))
      << "250 standard deviations outside: Marsaglia's tail";
  EXPECT_FALSE(problem(GaussianLaw{{0.0}, {1e6}}, box));
  EXPECT_FALSE(problem(GaussianLaw{{7.0}, {30.0}}, torus));
}

}  // namespace
}  // namespace rieszflow
