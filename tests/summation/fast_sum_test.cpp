#include "summation/fast_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/noise.hpp"
#include "potentials/expression.hpp"
#include "summation/far_field.hpp"
#include "summation/pair_sum.hpp"

namespace rieszflow {
namespace {

struct Sums {
  std::vector<double> forces;
  double energy = 0.0;
};

Sums sums_of(const Model& model, const std::vector<double>& x, PairSum::Method method,
             double tolerance = 1e-6, int threads = 1) {
  Sums sums{std::vector<double>(x.size(), 0.0)};
  const PairSum pair_sum(model, x.size() / dimension(model.domain),
                         {.method = method, .tolerance = tolerance, .threads = threads});
  pair_sum.add_forces(x, 1, sums.forces, std::span(&sums.energy, 1));
  return sums;
}

double relative_error(const std::vector<double>& a, const std::vector<double>& exact) {
  double error = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - exact[i]) * (a[i] - exact[i]);
    size += exact[i] * exact[i];
  }
  return std::sqrt(error / size);
}

/// Uniform in [-1, 1]^d.
std::vector<double> cloud(std::size_t particle_count, std::size_t d) {
  std::vector<double> x(particle_count * d);
  NoiseStream(5, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, x);
  for (double& c : x) c = 2.0 * c - 1.0;
  return x;
}

Model box_model(std::size_t d, std::vector<Interaction> w) {
  return {Box{std::vector(d, -1.0), std::vector(d, 1.0)}, {}, std::move(w), 1.0};
}

std::vector<Interaction> kernels(std::size_t d) {
  std::vector<Interaction> all = {RieszInteraction{.exponent = -0.5},
                                  RieszInteraction{.exponent = 0.7, .strength = 1.3},
                                  RieszInteraction{.exponent = 0.7, .strength = -1.0, .softening = 0.2},
                                  LogarithmicInteraction{},
                                  LogarithmicInteraction{1.0, 0.05},
                                  GaussianInteraction{2.0, 0.3},
                                  GaussianInteraction{2.0, 0.01},
                                  MorseInteraction{2.0, 0.3, 1.0, 0.9}};
  if (d > 1) all.push_back(RieszInteraction{.exponent = 1.0});
  if (d > 2) all.push_back(RieszInteraction{.exponent = 2.0});
  return all;
}

/// Enough particles that the mesh is used at every tolerance.
std::size_t enough(std::size_t d) { return d == 3 ? 12000 : 3000; }

TEST(FastSum, KeepsItsToleranceForEveryKernelAndDimension) {
  for (const std::size_t d : {1, 2, 3}) {
    const auto x = cloud(enough(d), d);
    for (const Interaction& w : kernels(d)) {
      const Model model = box_model(d, {w});
      const Sums exact = sums_of(model, x, PairSum::Method::Direct);
      for (const double tolerance : {1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10}) {
        if (d == 3 && tolerance != 1e-4 && tolerance != 1e-6) continue;
        const Sums fast = sums_of(model, x, PairSum::Method::Fast, tolerance);
        EXPECT_NE(fast.forces, exact.forces) << "the mesh was not used: " << name(w) << " d=" << d;
        EXPECT_LT(relative_error(fast.forces, exact.forces), tolerance)
            << name(w) << " d=" << d << ' ' << tolerance;
        // The energy is an average: its error is far below that of single forces, down to round-off.
        EXPECT_NEAR(fast.energy, exact.energy, (tolerance + 1e-13) * std::abs(exact.energy))
            << name(w) << " d=" << d;
      }
    }
  }
}

TEST(FastSum, KeepsItsToleranceOnWallsAndInClusters) {
  const std::size_t n = 4000;
  for (const Interaction& w :
       std::vector<Interaction>{LogarithmicInteraction{}, RieszInteraction{.exponent = 0.5}}) {
    auto walls = cloud(n, 2), lattice = walls, dense = walls;
    // The arcsine law of a wall-bound gas, a lattice on multiples of the mesh width's kind, a cluster of half
    // the particles.
    for (double& c : walls) c = std::sin(1.5707963267948966 * c);
    for (std::size_t i = 0; i < n; ++i) {
      lattice[2 * i] = -1.0 + static_cast<double>(i % 64) / 32.0;
      lattice[2 * i + 1] = -1.0 + static_cast<double>(i / 64) / 32.0;
      if (i % 2 == 0) dense[2 * i] *= 0.01, dense[2 * i + 1] *= 0.01;
    }
    for (auto* const x : {&walls, &lattice, &dense}) {
      const Model model = box_model(2, {w});
      const Sums exact = sums_of(model, *x, PairSum::Method::Direct),
                 fast = sums_of(model, *x, PairSum::Method::Fast);
      EXPECT_LT(relative_error(fast.forces, exact.forces), 1e-6) << name(w);
      EXPECT_NEAR(fast.energy, exact.energy, 1e-6 * std::abs(exact.energy)) << name(w);
    }
  }
}

TEST(FastSum, IndicesStayInRangeForPointsOnTheWallsAndFlatBoxes) {
  auto x = cloud(3000, 2);
  x[0] = 1.0, x[1] = 1.0, x[2] = -1.0, x[3] = -1.0;
  x[4] = std::nextafter(1.0, 0.0), x[5] = std::nextafter(1.0, 2.0);
  for (const double height : {1.0, 1e-9}) {
    auto flat = x;
    for (std::size_t i = 0; i < 3000; ++i) flat[2 * i + 1] *= height;
    const Model model{WholeSpace{2}, {}, {LogarithmicInteraction{}}, 1.0};
    const Sums exact = sums_of(model, flat, PairSum::Method::Direct),
               fast = sums_of(model, flat, PairSum::Method::Fast);
    EXPECT_LT(relative_error(fast.forces, exact.forces), 1e-6) << height;
  }
}

TEST(FastSum, AFarOutlierAndACloudOnOnePointAreSummed) {
  auto x = cloud(2000, 2);
  x[0] = 1e4;
  const Model model{WholeSpace{2}, {}, {LogarithmicInteraction{}}, 1.0};
  const Sums exact = sums_of(model, x, PairSum::Method::Direct),
             fast = sums_of(model, x, PairSum::Method::Fast);
  EXPECT_LT(relative_error(fast.forces, exact.forces), 1e-6);
  for (const double coordinate : {0.25, 0.0}) {  // the origin has no length of its own
    for (const std::size_t count : {10, 500}) {
      const Sums together = sums_of(model, std::vector<double>(2 * count, coordinate), PairSum::Method::Fast);
      EXPECT_EQ(together.energy, std::numeric_limits<double>::infinity());
      for (const double f : together.forces) EXPECT_NEAR(f, 0.0, 1e-12);
    }
  }
}

TEST(FastSum, ACoincidentPairHasInfiniteEnergyAndSparesTheOthers) {
  auto x = cloud(3000, 2);
  x[2] = x[0], x[3] = x[1];
  const Model model = box_model(2, {LogarithmicInteraction{}});
  const Sums exact = sums_of(model, x, PairSum::Method::Direct),
             fast = sums_of(model, x, PairSum::Method::Fast);
  EXPECT_EQ(fast.energy, std::numeric_limits<double>::infinity());
  EXPECT_LT(relative_error(fast.forces, exact.forces), 1e-6);
}

TEST(FastSum, SeveralInteractionsShareOneMesh) {
  const auto x = cloud(3000, 2);
  const Model model =
      box_model(2, {LogarithmicInteraction{}, RieszInteraction{.exponent = 0.5, .strength = -0.3},
                    GaussianInteraction{3.0, 0.2}, QuadraticInteraction{},
                    ExpressionInteraction{
                        std::make_shared<ExpressionFunction>("exp(-r)", std::vector<std::string>{"r"})}});
  const Sums exact = sums_of(model, x, PairSum::Method::Direct),
             fast = sums_of(model, x, PairSum::Method::Fast);
  EXPECT_LT(relative_error(fast.forces, exact.forces), 1e-6);
  EXPECT_NEAR(fast.energy, exact.energy, 1e-6 * std::abs(exact.energy));
}

TEST(FastSum, HasTheSameBitsForOneTwoAndThreeThreadsAndWhateverCameBefore) {
  for (const std::size_t d : {1, 2, 3}) {
    const auto x = cloud(enough(d), d);
    auto other = x;
    for (double& c : other) c *= 0.3;
    const Model model = box_model(d, {LogarithmicInteraction{}});
    const Sums reference = sums_of(model, x, PairSum::Method::Fast, 1e-4);
    for (const int threads : {2, 3}) {
      const Sums sums = sums_of(model, x, PairSum::Method::Fast, 1e-4, threads);
      EXPECT_EQ(sums.forces, reference.forces) << d;
      EXPECT_EQ(sums.energy, reference.energy) << d;
    }
    // A run that was elsewhere before, and a resumed one that was not, agree.
    const PairSum used(model, enough(d), {.method = PairSum::Method::Fast, .tolerance = 1e-4});
    std::vector<double> scratch(x.size(), 0.0), forces(x.size(), 0.0);
    used.add_forces(other, 1, scratch);
    used.add_forces(x, 1, forces);
    EXPECT_EQ(forces, reference.forces) << d;
  }
}

TEST(FastSum, AutomaticIsDirectForFewAndFastForMany) {
  for (const std::size_t d : {1, 2, 3}) {
    const Model model = box_model(d, {LogarithmicInteraction{}});
    EXPECT_EQ(PairSum(model, 100, {}).method_name(), "direct");
    EXPECT_EQ(PairSum(model, 1000000, {}).method_name(), "fast");
  }
  EXPECT_EQ(PairSum(box_model(5, {LogarithmicInteraction{}}), 1000000, {}).method_name(), "direct");
}

TEST(FastSum, IsChosenEarlierForAKernelThatCostsMore) {
  for (const std::size_t d : {1, 2, 3}) {
    const auto first_fast = [&](const Interaction& w) {
      std::size_t n = 16;
      while (n < 1000000 && PairSum(box_model(d, {w}), n, {}).method_name() == "direct") n += n / 8;
      return n;
    };
    const std::size_t log = first_fast(LogarithmicInteraction{}),
                      power = first_fast(RieszInteraction{.exponent = 0.7});
    EXPECT_LT(power, log) << d;
    EXPECT_GT(power, 50) << d;
    EXPECT_LT(log, 20000) << d;
  }
}

TEST(FarField, ForceIsTheDerivativeOfTheValueAndBeyondTheNearRadiusItIsTheKernel) {
  using simd::RadialKind;
  const double cutoff = 2.0;
  const simd::PowerTable table(1.25);
  for (simd::RadialKernel kernel :
       std::vector<simd::RadialKernel>{{.kind = RadialKind::Logarithm},
                                       {.kind = RadialKind::Logarithm, .softening_squared = 0.3},
                                       {.kind = RadialKind::InverseFirst},
                                       {.kind = RadialKind::InverseSquare},
                                       {.kind = RadialKind::Distance},
                                       {.kind = RadialKind::Power, .exponent = 0.5, .power = &table},
                                       {.kind = RadialKind::Morse,
                                       .repulsion = 1.0,
                                       .repulsion_length = 0.5,
                                       .attraction = 0.4,
                                       .attraction_length = 1.0}}) {
    const FarField far(kernel, cutoff, {.band = 20.0, .decay = 36.0});
    for (const double q : {0.01, 0.3, 1.0, 3.5, 5.0}) {
      const double h = 1e-4 * q;
      const double slope = (far.at(q + h).value - far.at(q - h).value) / (2.0 * h);
      EXPECT_NEAR(far.at(q).force_over_r, -2.0 * slope, 1e-6 * (1.0 + std::abs(slope)))
          << static_cast<int>(kernel.kind) << ' ' << q;
    }
    const double distance = 2.2;  // Morse: exp(-43)
    const std::vector<double> squared(8, distance * distance);
    std::vector<double> force(8), value(8);
    simd::direct_kernels().pointwise(kernel, 8, squared.data(), force.data(), value.data());
    EXPECT_NEAR(far.at(squared[0]).force_over_r, force[0], 1e-14) << static_cast<int>(kernel.kind);
    EXPECT_NEAR(far.at(squared[0]).value, value[0], 1e-14) << static_cast<int>(kernel.kind);
  }
}

/// 2 integral_0^length f(r^2) cos(k r) dr by the trapezoidal rule, which is exact for such f but for aliases.
double cosine_transform(const FarField& far, double k, double length) {
  const double h = 0.02;
  double sum = 0.5 * far.at(0.0).force_over_r;
  for (int i = 1; i < static_cast<int>(length / h); ++i) {
    const double r = h * i;
    sum += far.at(r * r).force_over_r * std::cos(k * r);
  }
  return 2.0 * h * sum;
}

TEST(FarField, EndsAtItsWavenumberButForAnExponentiallySmallRest) {
  const simd::RadialKernel coulomb{.kind = simd::RadialKind::InverseFirst};
  for (const double band : {8.0, 14.0}) {
    const FarField far(coulomb, 1.0, {.band = band, .decay = 20.0});
    const double all = cosine_transform(far, 0.0, 400.0), rest = cosine_transform(far, 1.3 * band, 400.0);
    EXPECT_LT(std::abs(rest), 3.0 * std::exp(-band) * all) << band;
    EXPECT_GT(std::abs(cosine_transform(far, 0.4 * band, 400.0)), std::exp(-band) * all) << band;
  }
}

TEST(FastSum, ForcesAloneAreThoseThatComeWithTheEnergy) {
  const auto x = cloud(3000, 2);
  const Model model = box_model(2, {RieszInteraction{.exponent = 0.7}});
  const Sums with_energy = sums_of(model, x, PairSum::Method::Fast);
  std::vector<double> forces(x.size(), 0.0);
  PairSum(model, 3000, {.method = PairSum::Method::Fast}).add_forces(x, 1, forces);
  EXPECT_LT(relative_error(forces, with_energy.forces), 1e-14);
}

/// Half of the particles uniform in [-1, 1]^d, half in clusters of very different sizes.
std::vector<double> clusters(std::size_t count, std::size_t d) {
  auto x = cloud(count, d);
  std::vector<double> g(x.size());
  NoiseStream(6, NoisePurpose::ReferenceSample).gaussian_block(0, 0, 0, count, d, g);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < d; ++k) {
      if (i % 4 == 1) x[i * d + k] = 0.3 + 0.03 * g[i * d + k];
      if (i % 4 == 3) x[i * d + k] = -0.6 + 0.0005 * g[i * d + k];
    }
  }
  return x;
}

TEST(FastSum, KeepsItsToleranceInClustersWithinClusters) {
  for (const std::size_t d : {1, 2, 3}) {
    const auto x = clusters(d == 3 ? 16000 : 12000, d);
    for (const Interaction& w : std::vector<Interaction>{
             LogarithmicInteraction{}, RieszInteraction{.exponent = 0.7}, LogarithmicInteraction{1.0, 0.001},
             GaussianInteraction{2.0, 0.3}, MorseInteraction{2.0, 0.3, 1.0, 0.9}}) {
      const Model model = box_model(d, {w});
      const Sums exact = sums_of(model, x, PairSum::Method::Direct);
      for (const double tolerance : {1e-3, 1e-6, 1e-9}) {
        if (d == 3 && tolerance == 1e-9) continue;
        const Sums fast = sums_of(model, x, PairSum::Method::Fast, tolerance);
        EXPECT_NE(fast.forces, exact.forces) << "the mesh was not used: " << name(w) << " d=" << d;
        EXPECT_LT(relative_error(fast.forces, exact.forces), tolerance)
            << name(w) << " d=" << d << ' ' << tolerance;
        EXPECT_NEAR(fast.energy, exact.energy, (tolerance + 1e-13) * std::abs(exact.energy))
            << name(w) << " d=" << d;
      }
    }
  }
}

TEST(FastSum, ClustersHaveTheSameBitsForOneTwoAndThreeThreads) {
  for (const std::size_t d : {1, 2, 3}) {
    const auto x = clusters(16000, d);
    const Model model = box_model(d, {LogarithmicInteraction{}});
    const Sums reference = sums_of(model, x, PairSum::Method::Fast, 1e-4);
    for (const int threads : {2, 3}) {
      const Sums sums = sums_of(model, x, PairSum::Method::Fast, 1e-4, threads);
      EXPECT_EQ(sums.forces, reference.forces) << d;
      EXPECT_EQ(sums.energy, reference.energy) << d;
    }
  }
}

/// Crowding makes the mesh finer: a cloud of which all but a few particles sit in a hundredth of the box.
TEST(FastSum, ACloudOfTightClustersStaysOnTheMesh) {
  auto x = cloud(20000, 2);
  for (std::size_t i = 16; i < x.size(); ++i) x[i] = (i / 2 % 2 == 0 ? -0.8 : 0.7) + 0.02 * x[i];
  const Model model = box_model(2, {LogarithmicInteraction{}});
  const Sums exact = sums_of(model, x, PairSum::Method::Direct),
             fast = sums_of(model, x, PairSum::Method::Fast);
  EXPECT_NE(fast.forces, exact.forces) << "the mesh was not used";
  EXPECT_LT(relative_error(fast.forces, exact.forces), 1e-6);
}

}  // namespace
}  // namespace rieszflow
