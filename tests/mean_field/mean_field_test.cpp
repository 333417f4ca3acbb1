#include "model/mean_field.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <random>
#include <vector>

#include "model/cell_kernel.hpp"
#include "model/convolution.hpp"
#include "model/elementary.hpp"
#include "potentials/expression.hpp"

namespace rieszflow {
namespace {

std::vector<double> random_averages(std::size_t count, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  std::vector<double> values(count);
  for (double& value : values) value = uniform(engine);
  return values;
}

Grid grid_of(std::vector<std::size_t> cells, std::vector<double> upper) {
  return Grid{std::vector<double>(cells.size(), 0.0), std::move(upper), std::move(cells)};
}

std::vector<std::size_t> index_of(const Grid& grid, std::size_t cell) {
  std::vector<std::size_t> index(grid.dimension());
  for (std::size_t axis = grid.dimension(); axis-- > 0; cell /= grid.cells[axis])
    index[axis] = cell % grid.cells[axis];
  return index;
}

/// The O(n^2) sum that the transform must reproduce.
std::vector<double> direct_sum(const Interaction& interaction, const Grid& grid,
                               const std::vector<double>& averages) {
  std::vector<double> spacing;
  for (std::size_t axis = 0; axis < grid.dimension(); ++axis) spacing.push_back(grid.spacing(axis));
  const std::vector<double> weights = galerkin_weights(interaction, spacing, grid.cells);
  std::vector<double> out(averages.size(), 0.0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto to = index_of(grid, i);
    for (std::size_t j = 0; j < out.size(); ++j) {
      const auto from = index_of(grid, j);
      std::size_t offset = 0;
      for (std::size_t axis = 0; axis < grid.dimension(); ++axis) {
        offset = offset * grid.cells[axis] +
                 (to[axis] > from[axis] ? to[axis] - from[axis] : from[axis] - to[axis]);
      }
      out[i] += weights[offset] * averages[j] * grid.cell_volume();
    }
  }
  return out;
}

TEST(MeanField, EqualsTheDirectSumOnEveryKindOfGrid) {
  const std::vector<Grid> grids{grid_of({1}, {0.3}),
                                grid_of({2}, {1.0}),
                                grid_of({3}, {2.0}),
                                grid_of({64}, {1.0}),
                                grid_of({97}, {5.0}),
                                grid_of({1, 1}, {1.0, 2.0}),
                                grid_of({1, 7}, {1.0, 2.0}),
                                grid_of({8, 1}, {1.0, 2.0}),
                                grid_of({13, 17}, {1.0, 4.0}),
                                grid_of({16, 10}, {3.0, 0.5}),
                                grid_of({1, 1, 1}, {1.0, 1.0, 1.0}),
                                grid_of({5, 4, 7}, {1.0, 2.0, 0.7}),
                                grid_of({1, 6, 3}, {1.0, 1.0, 1.0}),
                                grid_of({8, 8, 8}, {1.0, 1.0, 1.0})};
  unsigned seed = 0;
  for (const Grid& grid : grids) {
    const std::vector<double> lower(grid.dimension(), 0.0);
    const std::vector<Interaction> interactions{LogarithmicInteraction{}, RieszInteraction{.exponent = 0.7},
                                                GaussianInteraction{.length = 0.3}};
    for (const Interaction& interaction : interactions) {
      const Model model{Box{grid.lower, grid.upper}, {}, {interaction}, 1.0};
      const MeanField field(model, grid, {});
      const std::vector<double> averages = random_averages(grid.cell_count(), ++seed);
      std::vector<double> out(averages.size());
      field.interaction_potential(averages, out);
      const std::vector<double> exact = direct_sum(interaction, grid, averages);
      double scale = 0.0, error = 0.0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        scale = std::max(scale, std::abs(exact[i]));
        error = std::max(error, std::abs(out[i] - exact[i]));
      }
      EXPECT_LE(error, 1e-14 * scale + 1e-15)
          << name(interaction) << " on " << grid.cell_count() << " cells, d = " << grid.dimension();
    }
  }
}

TEST(MeanField, EqualsTheDirectSumOnLongLines) {
  // Long enough for the four-step transform; a few rows of the direct sum.
  for (const std::size_t cells : {8192U, 10007U, 20000U}) {
    const Grid grid = grid_of({cells}, {3.0});
    const Interaction interaction = RieszInteraction{.exponent = 0.5};
    const MeanField field(Model{Box{grid.lower, grid.upper}, {}, {interaction}, 1.0}, grid, {});
    const std::vector<double> averages = random_averages(cells, 17);
    const std::vector<double> weights =
        galerkin_weights(interaction, std::vector{grid.spacing(0)}, grid.cells);
    std::vector<double> out(cells);
    field.interaction_potential(averages, out);
    for (const std::size_t i : {std::size_t{0}, cells / 3, cells / 2 + 1, cells - 1}) {
      double exact = 0.0;
      for (std::size_t j = 0; j < cells; ++j)
        exact += weights[i > j ? i - j : j - i] * averages[j] * grid.cell_volume();
      EXPECT_NEAR(out[i], exact, 1e-14 * exact) << cells << " cells, row " << i;
    }
  }
}

TEST(MeanField, DoesNotWrapAroundTheBox) {
  // All mass in the first of four cells, W = |x - y|: three cells away the potential is 3h, not the h of a
  // ring.
  const Grid grid = grid_of({4}, {1.0});
  const MeanField field(
      Model{Box{grid.lower, grid.upper}, {}, {RieszInteraction{.exponent = -1.0, .strength = -1.0}}, 1.0},
      grid, {});
  std::vector<double> out(4);
  field.interaction_potential(std::vector<double>{4.0, 0.0, 0.0, 0.0}, out);
  EXPECT_NEAR(out[3], 0.75, 1e-15);
  EXPECT_NEAR(out[0], 0.25 / 3.0, 1e-15);  // mean distance of two points of one cell
}

TEST(MeanField, QuadraticAndCosineActThroughTheMarginals) {
  for (const Grid& grid :
       {grid_of({9}, {2.0}), grid_of({5, 8}, {2.0, 1.0}), grid_of({3, 4, 5}, {1.0, 2.0, 3.0})}) {
    const Model model{
        Box{grid.lower, grid.upper}, {}, {QuadraticInteraction{1.7}, CosineInteraction{0.6}}, 1.0};
    const MeanField field(model, grid, {});
    const std::vector<double> averages = random_averages(grid.cell_count(), 7);
    std::vector<double> out(averages.size());
    const double energy = field.interaction_potential(averages, out);
    // Means over cells of |x - y|^2 and cos(x - y) in closed form.
    double exact_energy = 0.0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto to = index_of(grid, i);
      double exact = 0.0;
      for (std::size_t j = 0; j < out.size(); ++j) {
        const auto from = index_of(grid, j);
        double w = 0.0;
        for (std::size_t axis = 0; axis < grid.dimension(); ++axis) {
          const double h = grid.spacing(axis),
                       r = grid.center(axis, to[axis]) - grid.center(axis, from[axis]);
          const double sinc = std::sin(0.5 * h) / (0.5 * h);
          w += 0.5 * 1.7 * (r * r + h * h / 6.0) - 0.6 * sinc * sinc * std::cos(r);
        }
        exact += w * averages[j] * grid.cell_volume();
      }
      EXPECT_NEAR(out[i], exact, 1e-14 * (1.0 + std::abs(exact)));
      exact_energy += 0.5 * exact * averages[i] * grid.cell_volume();
    }
    EXPECT_NEAR(energy, exact_energy, 1e-14 * (1.0 + std::abs(exact_energy)));
  }
}

TEST(MeanField, LowRankAgreesWithTheEqualCosine) {
  // -K cos(x - y) = -K (cos x cos y + sin x sin y).
  const Grid grid{{-std::numbers::pi}, {std::numbers::pi}, {64}};
  LowRankInteraction low_rank{.strength = -3.0, .functions = {}};
  for (const char* text : {"cos(x)", "sin(x)"}) {
    low_rank.functions.push_back(std::make_shared<ExpressionFunction>(text, std::vector<std::string>{"x"}));
  }
  const Box box{grid.lower, grid.upper};
  const MeanField one(Model{box, {}, {low_rank}, 1.0}, grid, {}),
      two(Model{box, {}, {CosineInteraction{3.0}}, 1.0}, grid, {});
  const std::vector<double> averages = random_averages(64, 3);
  std::vector<double> a(64), b(64);
  EXPECT_NEAR(one.interaction_potential(averages, a), two.interaction_potential(averages, b), 1e-12);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(a[i], b[i], 1e-13);
}

TEST(MeanField, LowRankEqualsItsDirectSumBesideAConvolutionAndInADisc) {
  // strength sum_k g_k(x) g_k(y), linear g_k: their cell averages are the values at the centres.
  const std::vector<std::string> names{"x", "y"};
  LowRankInteraction low_rank{.strength = 0.7, .functions = {}};
  for (const char* text : {"x", "1 - 2*y", "x + y"})
    low_rank.functions.push_back(std::make_shared<ExpressionFunction>(text, names));
  const LogarithmicInteraction log;
  const std::vector<Model> models{{Box{{-1.0, 0.0}, {1.0, 0.5}}, {}, {low_rank, log}, 1.0},
                                  {Ball{{0.3, -0.2}, 1.1}, {}, {log, low_rank}, 1.0}};
  for (const Model& model : models) {
    const Grid grid = grid_on(model.domain, {9, 7});
    const MeanField field(model, grid, {});
    const std::vector<double> averages = random_averages(grid.cell_count(), 5);
    std::vector<double> masses = averages, out(averages.size()), a(2), b(2);
    for (std::size_t i = 0; i < masses.size(); ++i)
      masses[i] *= grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[i];
    const double energy = field.interaction_potential(averages, out);
    std::vector<double> exact = direct_sum(log, grid, masses);
    double exact_energy = 0.0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      grid.cell_center(i, a);
      for (std::size_t j = 0; j < out.size(); ++j) {
        grid.cell_center(j, b);
        exact[i] += 0.7 *
                    (a[0] * b[0] + (1.0 - 2.0 * a[1]) * (1.0 - 2.0 * b[1]) + (a[0] + a[1]) * (b[0] + b[1])) *
                    masses[j] * grid.cell_volume();
      }
      EXPECT_NEAR(out[i], exact[i], 1e-13 * (1.0 + std::abs(exact[i])));
      exact_energy += 0.5 * exact[i] * masses[i] * grid.cell_volume();
    }
    EXPECT_NEAR(energy, exact_energy, 1e-13 * (1.0 + std::abs(exact_energy)));
  }
}

TEST(MeanField, GivesTheEnergyOfThePiecewiseConstantDensityExactly) {
  // Uniform density on [0, 1]: (1/2) double-integral |x - y|^-1/2 = 4/3 for every grid; V = x^2 / 2: 1/6.
  for (const std::size_t cells : {1U, 2U, 7U, 100U}) {
    const Grid grid = grid_of({cells}, {1.0});
    const Model model{Box{{0.0}, {1.0}},
                      {QuadraticPotential{1.0}},
                      {RieszInteraction{.exponent = 0.5, .strength = 0.5}},
                      4.0};
    const MeanField field(model, grid, {});
    const FreeEnergy energy = field.free_energy(Density{grid, std::vector<double>(cells, 1.0)});
    EXPECT_NEAR(energy.interaction_energy, 4.0 / 3.0, 1e-13);
    EXPECT_NEAR(energy.potential_energy, 1.0 / 6.0, 1e-14);
    EXPECT_NEAR(energy.entropy, 0.0, 1e-15);
    EXPECT_NEAR(energy.free_energy, 1.5, 1e-13);
  }
}

TEST(MeanField, IsPositiveDefiniteWhereTheKernelIs) {
  const Grid grid = grid_of({12, 9}, {1.0, 2.0});
  const MeanField field(Model{Box{grid.lower, grid.upper}, {}, {RieszInteraction{.exponent = 1.0}}, 1.0},
                        grid, {});
  std::vector<double> out(grid.cell_count());
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<double> signed_values = random_averages(grid.cell_count(), seed);
    for (double& value : signed_values) value -= 0.5;
    EXPECT_GT(field.interaction_potential(signed_values, out), 0.0);
  }
}

TEST(MeanField, AddsTheFirstVariationAndTheValueOfFunctionals) {
  // A[rho] = (integral x rho)^2 / 2, delta A / delta rho = x integral x rho.
  struct OnGrid : GridFunctional {
    Grid grid;
    double value(std::span<const double> averages, std::span<double> first_variation) const override {
      double mean = 0.0;
      for (std::size_t i = 0; i < averages.size(); ++i)
        mean += grid.center(0, i) * averages[i] * grid.cell_volume();
      for (std::size_t i = 0; i < averages.size(); ++i) first_variation[i] = grid.center(0, i) * mean;
      return 0.5 * mean * mean;
    }
  };
  struct SquaredMean : Functional {
    std::string description() const override { return "squared mean"; }
    double add_forces(std::span<const double>, std::size_t, std::uint64_t, std::uint64_t,
                      std::span<double>) const override {
      return 0.0;
    }
    std::unique_ptr<GridFunctional> on_grid(const Grid& grid) const override {
      auto result = std::make_unique<OnGrid>();
      result->grid = grid;
      return result;
    }
  };
  const Grid grid = grid_of({4}, {1.0});
  Model model{Box{{0.0}, {1.0}}, {}, {QuadraticInteraction{1.0}}, 1.0};
  const MeanField without(model, grid, {});
  model.functionals.push_back(std::make_shared<SquaredMean>());
  const MeanField with(model, grid, {});
  const std::vector<double> averages{0.5, 1.5, 0.25, 1.75};
  std::vector<double> a(4), b(4);
  const double difference =
      with.interaction_potential(averages, a) - without.interaction_potential(averages, b);
  double mean = 0.0;
  for (std::size_t i = 0; i < 4; ++i) mean += grid.center(0, i) * averages[i] * 0.25;
  EXPECT_NEAR(difference, 0.5 * mean * mean, 1e-15);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(a[i] - b[i], grid.center(0, i) * mean, 1e-15);
}

TEST(MeanField, IsBitwiseTheSameForEveryNumberOfThreadsAndEveryObject) {
  // Large enough for threads to be used.
  for (const Grid& grid : {grid_of({512, 520}, {1.0, 1.0}), grid_of({300000}, {1.0})}) {
    const Model model{Box{grid.lower, grid.upper}, {}, {GaussianInteraction{.length = 0.2}}, 1.0};
    const std::vector<double> averages = random_averages(grid.cell_count(), 11);
    std::vector<double> first(averages.size()), other(averages.size());
    const double energy = MeanField(model, grid, {.threads = 1}).interaction_potential(averages, first);
    for (const int threads : {1, 2, 3}) {
      EXPECT_EQ(MeanField(model, grid, {.threads = threads}).interaction_potential(averages, other), energy);
      EXPECT_TRUE(std::equal(first.begin(), first.end(), other.begin())) << threads << " threads";
    }
  }
}

TEST(EvenConvolution, IsCircularOnATorus) {
  for (const std::vector<std::size_t>& counts :
       {std::vector<std::size_t>{1}, {2}, {7}, {16}, {5, 6}, {3, 1, 4}, {4, 5, 6}}) {
    std::size_t size = 1, offsets = 1;
    std::vector<std::size_t> offset_counts;
    for (const std::size_t n : counts) {
      offset_counts.push_back(EvenConvolution::offset_count(n, EvenConvolution::Kind::Circular));
      size *= n;
      offsets *= offset_counts.back();
    }
    const std::vector<double> weights = random_averages(offsets, 5), in = random_averages(size, 6);
    std::vector<double> out(size);
    const EvenConvolution convolution(counts, weights, EvenConvolution::Kind::Circular, 1);
    convolution(in, out);
    const Grid grid = grid_of(counts, std::vector<double>(counts.size(), 1.0));
    for (std::size_t i = 0; i < size; ++i) {
      double exact = 0.0;
      for (std::size_t j = 0; j < size; ++j) {
        const auto to = index_of(grid, i), from = index_of(grid, j);
        std::size_t offset = 0;
        for (std::size_t axis = 0; axis < counts.size(); ++axis) {
          const std::size_t away = to[axis] > from[axis] ? to[axis] - from[axis] : from[axis] - to[axis];
          offset = offset * offset_counts[axis] + std::min(away, counts[axis] - away);
        }
        exact += weights[offset] * in[j];
      }
      EXPECT_NEAR(out[i], exact, 1e-14 * static_cast<double>(size));
    }
  }
}

TEST(Elementary, MatchesTheStandardLibrary) {
  std::mt19937_64 engine(1);
  std::uniform_real_distribution<double> exponent(-700.0, 700.0), small(-1.0, 1.0);
  for (int i = 0; i < 100000; ++i) {
    const double x = i % 2 == 0 ? exponent(engine) : small(engine);
    EXPECT_NEAR(elementary::exponential(x) / std::exp(x), 1.0, 1e-15);
    const double a = std::abs(x);
    EXPECT_NEAR(elementary::exponential_minus_one(a) / std::expm1(a), 1.0, 1e-15);
    const double y = std::exp(x);
    EXPECT_NEAR(elementary::logarithm(y), std::log(y), 3e-16 * (1.0 + std::abs(x)));
    EXPECT_NEAR(elementary::exponential_minus_one(1e-9 * a + 1e-300) / std::expm1(1e-9 * a + 1e-300), 1.0,
                1e-15);
  }
  EXPECT_EQ(elementary::exponential(-1e4), 0.0);
  EXPECT_EQ(elementary::exponential(0.0), 1.0);
  EXPECT_EQ(elementary::exponential_minus_one(0.0), 0.0);
  EXPECT_EQ(elementary::logarithm(1.0), 0.0);
  EXPECT_TRUE(std::isfinite(elementary::exponential_minus_one(1e5)));
}

}  // namespace
}  // namespace rieszflow
