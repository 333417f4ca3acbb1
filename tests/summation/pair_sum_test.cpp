#include "summation/pair_sum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "core/noise.hpp"
#include "model/periodic_kernel.hpp"
#include "potentials/expression.hpp"
#include "summation/energy.hpp"
#include "summation/one_particle_sum.hpp"

namespace rieszflow {
namespace {

std::vector<double> cloud(std::size_t particle_count, std::size_t dimension, std::uint64_t replica = 0) {
  std::vector<double> positions(particle_count * dimension);
  NoiseStream(5, NoisePurpose::ReferenceSample).uniforms(replica, 0, 0, positions);
  for (double& x : positions) x = 2.0 * x - 1.0;
  return positions;
}

std::shared_ptr<const ExpressionFunction> text(const std::string& formula,
                                               std::vector<std::string> variables) {
  return std::make_shared<ExpressionFunction>(formula, std::move(variables));
}

struct NamedInteraction {
  std::string name;
  Interaction interaction;
};

std::vector<NamedInteraction> interactions(std::size_t d) {
  const auto names = coordinate_names(d);
  return {
      {"riesz 0.7", RieszInteraction{.exponent = 0.7, .strength = 1.3}},
      {"riesz -0.4", RieszInteraction{.exponent = -0.4, .strength = -0.8}},
      {"riesz 0.5 softened", RieszInteraction{.exponent = 0.5, .strength = 2.0, .softening = 0.1}},
      {"riesz 1", RieszInteraction{.exponent = 1.0, .strength = 0.5}},
      {"riesz 2", RieszInteraction{.exponent = 2.0, .strength = 0.1}},
      {"riesz -1", RieszInteraction{.exponent = -1.0, .strength = 0.5}},
      {"riesz -1 softened", RieszInteraction{.exponent = -1.0, .strength = 0.5, .softening = 0.3}},
      {"log", LogarithmicInteraction{.strength = 1.5}},
      {"log softened", LogarithmicInteraction{.strength = -1.5, .softening = 0.2}},
      {"gaussian", GaussianInteraction{.strength = 2.0, .length = 0.4}},
      {"morse", MorseInteraction{2.0, 0.3, 1.0, 0.9}},
      {"quadratic", QuadraticInteraction{.strength = 1.7}},
      {"cosine", CosineInteraction{.strength = 0.9}},
      {"expression", ExpressionInteraction{text("exp(-r)/r", {"r"})}},
      {"low rank", LowRankInteraction{.strength = 0.7,
                                      .functions = {text("1+" + names[0] + "^2", names),
                                                    text("sin(2*" + names[d - 1] + ")", names)}}},
  };
}

struct Sums {
  std::vector<double> forces;
  double energy = 0.0;
};

/// The definition, pair by pair in extended precision.
Sums by_definition(const Interaction& w, const std::vector<double>& positions, std::size_t d) {
  const std::size_t n = positions.size() / d;
  std::vector<long double> forces(positions.size(), 0.0L);
  long double energy = 0.0L;
  std::vector<double> force(d);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      const std::span<const double> x(&positions[i * d], d), y(&positions[j * d], d);
      std::ranges::fill(force, 0.0);
      add_force(w, x, y, force);
      for (std::size_t k = 0; k < d; ++k) forces[i * d + k] += static_cast<long double>(force[k]) / n;
      energy += static_cast<long double>(value(w, x, y)) / (2.0L * n * n);
    }
  }
  return {{forces.begin(), forces.end()}, static_cast<double>(energy)};
}

Sums by_pair_sum(const Model& model, const std::vector<double>& positions, std::size_t d, int threads = 1) {
  Sums sums{std::vector<double>(positions.size(), 0.0)};
  const PairSum pair_sum(model, positions.size() / d,
                         {.method = PairSum::Method::Direct, .threads = threads});
  pair_sum.add_forces(positions, 1, sums.forces, std::span(&sums.energy, 1));
  return sums;
}

double norm(std::span<const double> v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}

double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> difference(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return norm(difference) / std::max(norm(b), std::numeric_limits<double>::min());
}

Model free_model(std::size_t d, std::vector<Interaction> w) { return {WholeSpace{d}, {}, std::move(w), 1.0}; }

TEST(PairSum, EqualsItsDefinitionForEveryInteractionDimensionAndParticleCount) {
  for (const std::size_t d : {1, 2, 3, 5}) {
    for (const auto& [label, w] : interactions(d)) {
      for (const std::size_t n : {1, 2, 3, 5, 8, 9, 31, 130, 301}) {
        const auto positions = cloud(n, d);
        const Sums exact = by_definition(w, positions, d),
                   sums = by_pair_sum(free_model(d, {w}), positions, d);
        // Round-off of N terms each way; the reference evaluates its kernels in double too.
        EXPECT_LT(relative_distance(sums.forces, exact.forces), 2e-14) << label << " d=" << d << " N=" << n;
        EXPECT_NEAR(sums.energy, exact.energy, 2e-14 * (1.0 + std::abs(exact.energy)))
            << label << " d=" << d << " N=" << n;
      }
    }
  }
}

TEST(PairSum, ForcesAloneAreTheForcesThatComeWithTheEnergy) {
  for (const std::size_t d : {1, 2, 3, 4}) {
    for (const auto& [label, w] : interactions(d)) {
      const auto positions = cloud(200, d);
      std::vector<double> forces(positions.size(), 0.0);
      PairSum(free_model(d, {w}), 200, {.method = PairSum::Method::Direct}).add_forces(positions, 1, forces);
      EXPECT_LT(relative_distance(forces, by_pair_sum(free_model(d, {w}), positions, d).forces), 1e-15)
          << label;
    }
  }
}

TEST(PairSum, SeveralInteractionsAdd) {
  const auto positions = cloud(150, 2);
  const std::vector<Interaction> all = {LogarithmicInteraction{}, RieszInteraction{.exponent = 0.5},
                                        QuadraticInteraction{0.3}, CosineInteraction{-2.0}};
  const Sums together = by_pair_sum(free_model(2, all), positions, 2);
  Sums added{std::vector<double>(positions.size(), 0.0)};
  for (const Interaction& w : all) {
    const Sums one = by_pair_sum(free_model(2, {w}), positions, 2);
    added.energy += one.energy;
    for (std::size_t i = 0; i < added.forces.size(); ++i) added.forces[i] += one.forces[i];
  }
  EXPECT_LT(relative_distance(together.forces, added.forces), 1e-14);
  EXPECT_NEAR(together.energy, added.energy, 1e-14);
}

TEST(PairSum, AddsToTheForcesThatAreThere) {
  const auto positions = cloud(40, 2);
  std::vector<double> forces(positions.size(), 3.0);
  const Sums sums = by_pair_sum(free_model(2, {GaussianInteraction{}}), positions, 2);
  PairSum(free_model(2, {GaussianInteraction{}}), 40, {}).add_forces(positions, 1, forces);
  for (std::size_t i = 0; i < forces.size(); ++i) EXPECT_DOUBLE_EQ(forces[i], 3.0 + sums.forces[i]);
}

TEST(PairSum, HasTheSameBitsForOneTwoAndThreeThreads) {
  for (const std::size_t d : {1, 2, 3, 6}) {
    for (const auto& [label, w] : interactions(d)) {
      for (const std::size_t replicas : {1, 4}) {
        const std::size_t n = 1000;
        if (std::holds_alternative<ExpressionInteraction>(w) && d > 2) continue;
        const auto positions = cloud(replicas * n, d);
        std::vector<double> reference, reference_energies;
        for (const int threads : {1, 2, 3}) {
          std::vector<double> forces(positions.size(), 0.0), energies(replicas);
          PairSum(free_model(d, {w}), n, {.method = PairSum::Method::Direct, .threads = threads})
              .add_forces(positions, replicas, forces, energies);
          if (threads == 1) reference = forces, reference_energies = energies;
          EXPECT_EQ(forces, reference) << label << " d=" << d << " threads=" << threads;
          EXPECT_EQ(energies, reference_energies) << label << " d=" << d << " threads=" << threads;
        }
      }
    }
  }
}

Sums in_floats(const Model& model, const std::vector<double>& positions, std::size_t d, int threads = 1) {
  Sums sums{std::vector<double>(positions.size(), 0.0)};
  const PairSum pair_sum(
      model, positions.size() / d,
      {.method = PairSum::Method::Direct, .precision = PairSum::Precision::Single, .threads = threads});
  pair_sum.add_forces(positions, 1, sums.forces, std::span(&sums.energy, 1));
  return sums;
}

TEST(SinglePrecision, ForcesAndEnergiesAreThoseOfDoublesToTwoMillionths) {
  for (const std::size_t d : {1, 2, 3, 5, 16}) {
    for (const auto& [label, w] : interactions(d)) {
      for (const std::size_t n : {2, 9, 130, 1500}) {
        if (n == 1500 && label == "expression") continue;
        const auto positions = cloud(n, d);
        const Model model = free_model(d, {w});
        const Sums exact = by_pair_sum(model, positions, d), single = in_floats(model, positions, d);
        EXPECT_LT(relative_distance(single.forces, exact.forces), 2e-6) << label << " d=" << d << " N=" << n;
        EXPECT_NEAR(single.energy, exact.energy, 1e-6 * std::abs(exact.energy) + 1e-7)
            << label << " d=" << d << " N=" << n;
      }
    }
  }
}

/// A float alone would lose the difference of two particles that are 1e-8 apart.
TEST(SinglePrecision, ClosePairsFarFromTheOriginKeepTheirDigits) {
  auto positions = cloud(200, 2);
  for (double& x : positions) x += 7.0;
  positions[2] = positions[0] + 1e-8, positions[3] = positions[1] - 2e-8;
  const Model model = free_model(2, {LogarithmicInteraction{}});
  const Sums exact = by_pair_sum(model, positions, 2), single = in_floats(model, positions, 2);
  EXPECT_LT(relative_distance(single.forces, exact.forces), 1e-6);
}

TEST(SinglePrecision, WhatLeavesTheRangeOfFloatsIsSummedInDoubles) {
  auto positions = cloud(50, 3);
  for (std::size_t k = 0; k < 3; ++k) positions[k] *= 1e-12, positions[3 + k] = positions[k] * (1.0 + 1e-3);
  const Model model = free_model(3, {RieszInteraction{.exponent = 2.0}});
  const Sums exact = by_pair_sum(model, positions, 3), single = in_floats(model, positions, 3);
  EXPECT_EQ(single.forces, exact.forces);
  EXPECT_EQ(single.energy, exact.energy);
  positions[3] = positions[0], positions[4] = positions[1], positions[5] = positions[2];
  EXPECT_EQ(in_floats(model, positions, 3).energy, std::numeric_limits<double>::infinity());
}

TEST(SinglePrecision, HasTheSameBitsForOneTwoAndThreeThreads) {
  const auto positions = cloud(1500, 2);
  const Model model = free_model(2, {RieszInteraction{.exponent = 0.7}});
  const Sums reference = in_floats(model, positions, 2);
  EXPECT_NE(reference.forces, by_pair_sum(model, positions, 2).forces);
  for (const int threads : {2, 3}) {
    const Sums sums = in_floats(model, positions, 2, threads);
    EXPECT_EQ(sums.forces, reference.forces);
    EXPECT_EQ(sums.energy, reference.energy);
  }
}

TEST(PairSum, ABatchOfReplicasIsEachReplicaAlone) {
  const std::size_t n = 33, d = 3, replicas = 5;
  const Model model = free_model(d, {RieszInteraction{.exponent = 1.0}, QuadraticInteraction{}});
  const PairSum pair_sum(model, n, {.threads = 2});
  const auto positions = cloud(replicas * n, d);
  std::vector<double> forces(positions.size(), 0.0), energies(replicas);
  pair_sum.add_forces(positions, replicas, forces, energies);
  for (std::size_t r = 0; r < replicas; ++r) {
    const std::vector<double> own(positions.begin() + r * n * d, positions.begin() + (r + 1) * n * d);
    const Sums alone = by_pair_sum(model, own, d);
    EXPECT_EQ(energies[r], alone.energy);
    EXPECT_TRUE(std::equal(alone.forces.begin(), alone.forces.end(), forces.begin() + r * n * d));
  }
}

TEST(PairSum, ReplicasThatShareVectorsHaveTheBitsOfEachAlone) {
  for (const std::size_t d : {1, 2, 3}) {
    for (const auto& [label, w] : interactions(d)) {
      for (const std::size_t n : {2, 9, 100, 301}) {
        const std::size_t replicas = 19;  // full vectors of every width, and a rest
        auto positions = cloud(replicas * n, d);
        std::copy_n(positions.begin(), d, positions.begin() + static_cast<std::ptrdiff_t>(d));  // coincide
        for (const int threads : {1, 2}) {
          const PairSum pair_sum(free_model(d, {w}), n,
                                 {.method = PairSum::Method::Direct, .threads = threads});
          std::vector<double> forces(positions.size(), 0.0), energies(replicas), without(forces);
          pair_sum.add_forces(positions, replicas, forces, energies);
          pair_sum.add_forces(positions, replicas, without);
          for (std::size_t r = 0; r < replicas; ++r) {
            const auto own = std::span(positions).subspan(r * n * d, n * d);
            std::vector<double> alone(own.size(), 0.0), alone_without(alone);
            double energy = 0.0;
            pair_sum.add_forces(own, 1, alone, {&energy, 1});
            pair_sum.add_forces(own, 1, alone_without);
            EXPECT_EQ(energies[r], energy) << label << " d=" << d << " N=" << n;
            EXPECT_TRUE(std::equal(alone.begin(), alone.end(), &forces[r * n * d])) << label << " d=" << d;
            EXPECT_TRUE(std::equal(alone_without.begin(), alone_without.end(), &without[r * n * d]))
                << label << " d=" << d;
          }
        }
      }
    }
  }
}

TEST(PairSum, InternalForcesOfRadialInteractionsSumToZero) {
  for (const std::size_t d : {1, 2, 3}) {
    const auto positions = cloud(777, d);
    const Sums sums = by_pair_sum(free_model(d, {RieszInteraction{.exponent = 0.9}}), positions, d);
    const double size = norm(sums.forces);
    for (std::size_t k = 0; k < d; ++k) {
      double total = 0.0;
      for (std::size_t i = 0; i < 777; ++i) total += sums.forces[i * d + k];
      EXPECT_NEAR(total / size, 0.0, 1e-13);
    }
  }
}

TEST(PairSum, CoincidentPairHasInfiniteEnergyNoForceAndSparesTheThirdParticle) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::size_t d : {1, 2, 3, 4}) {
    for (const double strength : {1.0, -2.0}) {
      for (const Interaction& w : std::vector<Interaction>{
               LogarithmicInteraction{strength}, RieszInteraction{.exponent = 0.5, .strength = strength},
               RieszInteraction{.exponent = 1.0, .strength = strength}}) {
        std::vector<double> positions(3 * d, 0.25);
        for (std::size_t k = 0; k < d; ++k)
          positions[2 * d + k] = 0.75;  // the third, at distance sqrt(d) / 2
        const Sums sums = by_pair_sum(free_model(d, {w}), positions, d);
        EXPECT_EQ(sums.energy, strength * infinity) << name(w) << d;
        const std::span<const double> first(positions.data(), d), third(positions.data() + 2 * d, d);
        std::vector<double> pair(d, 0.0);
        add_force(w, first, third, pair);
        for (std::size_t k = 0; k < d; ++k) {
          EXPECT_NEAR(sums.forces[k], pair[k] / 3.0, 1e-14) << name(w) << d;
          EXPECT_NEAR(sums.forces[d + k], pair[k] / 3.0, 1e-14) << name(w) << d;
          EXPECT_NEAR(sums.forces[2 * d + k], -2.0 * pair[k] / 3.0, 1e-14) << name(w) << d;
        }
      }
    }
  }
}

TEST(PairSum, ManyCoincidentParticlesOfASmoothInteractionJustWork) {
  for (const Interaction& w :
       std::vector<Interaction>{GaussianInteraction{}, QuadraticInteraction{}, CosineInteraction{},
                                MorseInteraction{}, LogarithmicInteraction{1.0, 0.1}}) {
    const std::vector<double> positions(2 * 300, 0.5);
    const Sums sums = by_pair_sum(free_model(2, {w}), positions, 2);
    EXPECT_NEAR(norm(sums.forces), 0.0, 1e-14) << name(w);  // cosine: round-off of sums of cos and sin
    const double at_zero = value(w, std::span(positions).first(2), std::span(positions).first(2));
    EXPECT_NEAR(sums.energy, 0.5 * at_zero * 299.0 / 300.0, 1e-13) << name(w);
  }
}

TEST(PairSum, RieszPowersHoldOverTheWholeRangeOfDistances) {
  for (const double exponent : {-0.5, 0.3, 0.7, 1.0, 2.0}) {
    for (int decade = -60; decade <= 60; ++decade) {
      const double r = 3.0 * std::pow(10.0, decade);
      const Interaction w = RieszInteraction{.exponent = exponent};
      const Sums sums = by_pair_sum(free_model(3, {w}), {0.0, 0.0, 0.0, r, 0.0, 0.0}, 3);
      const double force = std::pow(r, -exponent - 1.0), energy = std::pow(r, -exponent) / exponent;
      EXPECT_NEAR(sums.forces[3] / (0.5 * force), 1.0, 1e-13) << exponent << ' ' << decade;
      EXPECT_NEAR(sums.energy / (0.25 * energy), 1.0, 1e-13) << exponent << ' ' << decade;
    }
  }
}

TEST(PairSum, LogarithmicEnergyNeverOverflowsItsProduct) {
  // 2,000 equal distances of 1e30 and of 1e-30 from one particle; the product of their squares is
  // 1e(+-120000).
  for (const double scale : {1e30, 1e-30}) {
    const std::size_t n = 2001;
    std::vector<double> positions(n);
    for (std::size_t i = 0; i < n; ++i) positions[i] = scale * static_cast<double>(i);
    const Sums sums = by_pair_sum(free_model(1, {LogarithmicInteraction{}}), positions, 1);
    double exact = 0.0;  // -(1/N^2) sum over gaps m of (N-m) log(m scale)
    for (std::size_t m = 1; m < n; ++m)
      exact -= static_cast<double>(n - m) * std::log(scale * static_cast<double>(m));
    exact /= static_cast<double>(n * n);
    EXPECT_NEAR(sums.energy / exact, 1.0, 1e-13);
  }
}

TEST(PairSum, CountsMorePairsThanThirtyTwoBitsHold) {
  // Softened so much that every pair contributes log(1000): N = 65,537 has 2,147,516,416 pairs.
  const std::size_t n = 65537;
  const auto positions = cloud(n, 1);
  const Sums sums = by_pair_sum(free_model(1, {LogarithmicInteraction{1.0, 1e9}}), positions, 1);
  const double pairs = 0.5 * static_cast<double>(n) * static_cast<double>(n - 1);
  EXPECT_NEAR(sums.energy, -std::log(1e9) * pairs / (static_cast<double>(n) * static_cast<double>(n)), 1e-11);
}

TEST(PairSum, OrderedSumOfTheLineCountsTiesAsNoForce) {
  const Sums sums =
      by_pair_sum(free_model(1, {RieszInteraction{.exponent = -1.0}}), {0.5, 0.5, -1.0, 2.0, 0.5}, 1);
  const std::vector<double> forces = {0.0, 0.0, -4.0 / 5.0, 4.0 / 5.0, 0.0};
  EXPECT_LT(relative_distance(sums.forces, forces), 1e-15);
  EXPECT_DOUBLE_EQ(sums.energy, -(3 * 1.5 + 3 * 1.5 + 3.0) / 25.0);
}

TEST(PairSum, OneParticleHasNoPairEnergyAndNoParticleNone) {
  for (const auto& [label, w] : interactions(2)) {
    const Sums one = by_pair_sum(free_model(2, {w}), {0.3, 0.4}, 2);
    EXPECT_NEAR(one.energy, 0.0, 1e-16) << label;
    EXPECT_NEAR(norm(one.forces), 0.0, 1e-16) << label;
  }
}

TEST(PairSum, ClosestPairIsTheSmallestDistance) {
  for (const std::size_t d : {1, 2, 3}) {
    for (const Domain& domain :
         std::vector<Domain>{WholeSpace{d}, Torus{std::vector(d, -1.0), std::vector(d, 1.0)}}) {
      const auto positions = cloud(120, d);
      double exact = std::numeric_limits<double>::infinity();
      std::vector<double> difference(d);
      for (std::size_t i = 0; i < 120; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          displacement(domain, std::span(&positions[i * d], d), std::span(&positions[j * d], d), difference);
          exact = std::min(exact, norm(difference));
        }
      }
      double closest = 0.0;
      const Model model{domain, {}, {}, 1.0};
      PairSum(model, 120, {}).closest_pairs(positions, 1, std::span(&closest, 1));
      EXPECT_EQ(closest, exact) << d;
    }
  }
}

TEST(PairSum, ClosestPairIsFoundAcrossTheSeamOfATorus) {
  double closest = 0.0;
  const Model model{Torus{{0.0, 0.0}, {1.0, 1.0}}, {}, {}, 1.0};
  const std::vector<double> positions = {0.001, 0.5, 0.3, 0.1, 0.6, 0.9, 0.999, 0.5};
  PairSum(model, 4, {}).closest_pairs(positions, 1, std::span(&closest, 1));
  EXPECT_NEAR(closest, 0.002, 1e-15);
}

std::vector<NamedInteraction> periodic_interactions(std::size_t d) {
  std::vector<NamedInteraction> all = {{"riesz 0.7", RieszInteraction{.exponent = 0.7, .strength = 1.3}},
                                       {"riesz -0.5", RieszInteraction{.exponent = -0.5}},
                                       {"riesz -1", RieszInteraction{.exponent = -1.0}},
                                       {"log", LogarithmicInteraction{-0.6}},
                                       {"gaussian", GaussianInteraction{2.0, 0.3}},
                                       {"morse", MorseInteraction{2.0, 0.3, 1.0, 0.9}}};
  if (d > 1) all.push_back({"riesz 1", RieszInteraction{.exponent = 1.0}});
  return all;
}

TEST(PairSumOnATorus, EqualsTheSumOfThePeriodisedKernel) {
  for (const std::size_t d : {1, 2, 3}) {
    const Torus torus{std::vector(d, -1.0), std::vector(d, 1.0)};
    for (const auto& [label, w] : periodic_interactions(d)) {
      const PeriodicKernel kernel(torus, w);
      for (const std::size_t n : {2, 3, 137, 270}) {
        const auto positions = cloud(n, d);
        Sums exact{std::vector<double>(positions.size(), 0.0)};
        std::vector<double> difference(d), force(d);
        const double count = static_cast<double>(n);
        for (std::size_t i = 0; i < n; ++i) {
          for (std::size_t j = 0; j < n; ++j) {
            if (i == j) continue;
            displacement(torus, std::span(&positions[i * d], d), std::span(&positions[j * d], d), difference);
            std::ranges::fill(force, 0.0);
            exact.energy += kernel.add_force(difference, force) / (2.0 * count * count);
            for (std::size_t k = 0; k < d; ++k) exact.forces[i * d + k] += force[k] / count;
          }
        }
        const Model model{torus, {}, {w}, 1.0};
        const Sums sums = by_pair_sum(model, positions, d);
        EXPECT_LT(relative_distance(sums.forces, exact.forces), 3e-14) << label << " d=" << d << " N=" << n;
        EXPECT_NEAR(sums.energy, exact.energy, 1e-13 * (1.0 + std::abs(exact.energy))) << label << " d=" << d;
        if (n == 270) {
          const Sums threaded = by_pair_sum(model, positions, d, 3);
          EXPECT_EQ(threaded.forces, sums.forces) << label;
          EXPECT_EQ(threaded.energy, sums.energy) << label;
          OneParticleSum one(model, n);
          one.load(positions);
          double energy = 0.0;
          for (std::size_t i = 0; i < n; ++i) {
            energy += one.at(i, std::span(&positions[i * d], d), force) / (2.0 * count);
            for (std::size_t k = 0; k < d; ++k) {
              EXPECT_NEAR(force[k], sums.forces[i * d + k], 1e-12 * (1.0 + std::abs(force[k]))) << label;
            }
          }
          EXPECT_NEAR(energy, sums.energy, 1e-13 * (1.0 + std::abs(energy))) << label;
        }
      }
    }
  }
}

TEST(PairSumOnATorus, CoincidentPairHasInfiniteEnergyAndNoForce) {
  const Model model{Torus{{0.0, 0.0}, {1.0, 1.0}}, {}, {LogarithmicInteraction{}}, 1.0};
  const Sums sums = by_pair_sum(model, {0.25, 0.25, 0.25, 0.25}, 2);
  EXPECT_EQ(sums.energy, std::numeric_limits<double>::infinity());
  EXPECT_NEAR(norm(sums.forces), 0.0, 1e-14);
}

TEST(OneParticleSum, IsTheParticlesShareOfThePairSum) {
  for (const std::size_t d : {1, 2, 3, 5}) {
    for (const auto& [label, w] : interactions(d)) {
      const std::size_t n = 61;
      auto positions = cloud(n, d);
      const Model model = free_model(d, {w});
      OneParticleSum one(model, n);
      one.load(positions);
      // After a move, the sums are those of the moved cloud.
      const auto moved = cloud(1, d, 9);
      one.move(7, moved);
      std::copy(moved.begin(), moved.end(), positions.begin() + 7 * d);
      const Sums sums = by_pair_sum(model, positions, d);
      double energy = 0.0;
      std::vector<double> force(d);
      for (std::size_t i = 0; i < n; ++i) {
        energy += one.at(i, std::span(&positions[i * d], d), force) / (2.0 * static_cast<double>(n));
        for (std::size_t k = 0; k < d; ++k) {
          EXPECT_NEAR(force[k], sums.forces[i * d + k], 1e-12 * (1.0 + std::abs(force[k]))) << label << d;
        }
      }
      EXPECT_NEAR(energy, sums.energy, 1e-13 * (1.0 + std::abs(sums.energy))) << label << d;
    }
  }
}

TEST(OneParticleSum, DifferenceOfTwoPointsIsNTimesTheChangeOfTheEnergy) {
  for (const auto& [label, w] : interactions(2)) {
    const std::size_t n = 40;
    auto positions = cloud(n, 2);
    const auto target = cloud(1, 2, 3);
    const Model model = free_model(2, {w});
    OneParticleSum one(model, n);
    one.load(positions);
    std::vector<double> force(2);
    const double before = by_pair_sum(model, positions, 2).energy;
    const double change = one.at(11, target, force) - one.at(11, std::span(&positions[22], 2), force);
    positions[22] = target[0], positions[23] = target[1];
    const double after = by_pair_sum(model, positions, 2).energy;
    EXPECT_NEAR(change, static_cast<double>(n) * (after - before), 1e-12) << label;
  }
}

TEST(Energies, AreThePotentialPerParticleAndThePairEnergy) {
  const Model model{WholeSpace{2}, {QuadraticPotential{.stiffness = 3.0}}, {QuadraticInteraction{2.0}}, 1.0};
  const ParticleEnsemble ensemble{2, 2, 2, {1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 4.0}};
  std::vector<double> potential(2), interaction(2);
  energies(model, PairSum(model, 2, {}), ensemble, potential, interaction);
  EXPECT_EQ(potential, (std::vector<double>{1.5 * 5.0 / 2.0, 1.5 * 16.0 / 2.0}));
  EXPECT_EQ(interaction, (std::vector<double>{5.0 / 4.0, 16.0 / 4.0}));  // (1/(2 N^2)) 2 (strength r^2 / 2)
}

}  // namespace
}  // namespace rieszflow
