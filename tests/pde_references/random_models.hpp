#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "model/description.hpp"
#include "solvers/pde/evolution.hpp"
#include "tests/pde/references.hpp"

/// Random models and rough starts: what every accepted step of the evolution must keep.
namespace rieszflow::reference {

struct RandomModel {
  Model model;
  Density start;
  double tolerance = 0.0;
};

/// d = 1, 2, 3; boxes, tori, discs and balls; every interaction, of both signs; 0.1 <= beta <= 1000 or
/// infinity; cell averages over three decades, a third of the cells empty.
inline RandomModel random_model(std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine);
  };
  const auto sign = [&] { return engine() % 2 == 0 ? 1.0 : -1.0; };
  const std::size_t d = 1 + (engine() % 6 < 3 ? 0 : engine() % 3 < 2 ? 1 : 2);
  std::vector<double> lower, upper;
  std::vector<std::size_t> cells;
  for (std::size_t axis = 0; axis < d; ++axis) {
    lower.push_back(uniform(-2.0, -0.5));
    upper.push_back(uniform(0.5, 2.0));
    cells.push_back(1 + engine() % (d == 1 ? 64 : d == 2 ? 14 : 7));
  }
  RandomModel result;
  Model& model = result.model;
  const std::uint64_t shape = engine() % 10;
  if (shape < 2) {
    model.domain = Torus{lower, upper};
    if (d == 1 && engine() % 2 == 0) {
      model.domain = Torus{{-std::numbers::pi}, {std::numbers::pi}};
      model.potentials.push_back(CosinePotential{uniform(-2.0, 2.0), 1.0});
    }
  } else if (shape < 4 && d > 1) {
    model.domain = Ball{std::vector<double>(d, uniform(-1.0, 1.0)), uniform(0.5, 2.0)};
    cells.assign(d, std::max<std::size_t>(cells[0], 2));
  } else {
    model.domain = Box{lower, upper};
  }
  const bool periodic = std::holds_alternative<Torus>(model.domain);
  if (!periodic) {
    model.potentials.push_back(
        PolynomialPotential{{0.0, uniform(-2.0, 2.0), uniform(-2.0, 2.0), uniform(-2.0, 2.0), 1.0}});
    if (engine() % 8 == 0) model.potentials.push_back(QuadraticPotential{std::pow(10.0, uniform(0.0, 3.0))});
  }
  const std::size_t terms = 1 + engine() % 2;
  const double high = static_cast<double>(d);
  while (model.interactions.size() < terms) {
    Interaction w;
    switch (engine() % 8) {
      case 0:
        w = LogarithmicInteraction{sign() * uniform(0.05, 2.0)};
        break;
      case 1:
      case 2:
        w = RieszInteraction{.exponent = uniform(-1.5, high - 0.05), .strength = sign() * uniform(0.05, 1.5)};
        break;
      case 3:
        w = RieszInteraction{.exponent = uniform(-1.0, high - 0.05),
                             .strength = sign() * uniform(0.05, 1.5),
                             .softening = uniform(0.01, 0.3)};
        break;
      case 4:
        w = GaussianInteraction{uniform(-2.0, 2.0), uniform(0.1, 1.0)};
        break;
      case 5:
        w = MorseInteraction{};
        break;
      case 6:
        w = QuadraticInteraction{uniform(-1.0, 2.0)};
        break;
      default:
        w = CosineInteraction{uniform(-1.0, 3.0)};
    }
    if (!refusal(model.domain, w)) model.interactions.push_back(w);
  }
  model.inverse_temperature =
      engine() % 7 == 0 ? std::numeric_limits<double>::infinity() : std::pow(10.0, uniform(-1.0, 3.0));
  const Grid grid = grid_on(model.domain, cells);
  result.start = density_of(grid, [&](const std::vector<double>&) {
    return engine() % 3 == 0 ? 0.0 : std::pow(10.0, uniform(-3.0, 0.0));
  });
  if (!(mass(result.start) > 0.0)) result.start = uniform_on(grid);  // every cell was empty
  result.tolerance = std::pow(10.0, uniform(-5.0, -2.0));
  return result;
}

struct Structure {
  RunStatus status = RunStatus::Completed;
  std::int64_t steps = 0;
  double mass_error = 0.0;   ///< largest |mass - 1|
  double lowest = 0.0;       ///< smallest cell average
  double energy_rise = 0.0;  ///< largest F(new) - F(old), over 1 + the sizes of F's terms
  double gibbs_change =
      0.0;  ///< L1 distance that the Gibbs state of V moves until t = 1, without interactions
  bool failed() const {
    return !(mass_error <= 1e-12 && lowest >= 0.0 && energy_rise <= 1e-12 && gibbs_change <= 1e-12) ||
           (status != RunStatus::Completed && status != RunStatus::Concentrated);
  }
};

inline Structure structure_of(const RandomModel& problem) {
  Structure result{.lowest = std::numeric_limits<double>::infinity()};
  const double beta = problem.model.inverse_temperature;
  const Grid& grid = problem.start.grid;
  {
    const MeanField field(problem.model, grid, {});
    pde::State state{.density = problem.start};
    double previous = std::numeric_limits<double>::infinity();
    const pde::Options options{.tolerance = problem.tolerance};
    const auto look = [&] {
      const FreeEnergy energy = field.free_energy(state.density);  // not what the run says of itself
      result.mass_error = std::max(result.mass_error, std::abs(mass(state.density) - 1.0));
      for (const double value : state.density.averages) {
        if (!(value >= result.lowest)) result.lowest = value;
      }
      const double size = 1.0 + std::abs(energy.potential_energy) + std::abs(energy.interaction_energy) +
                          std::abs(energy.entropy / beta);
      if (previous < std::numeric_limits<double>::infinity())
        result.energy_rise = std::max(result.energy_rise, (energy.free_energy - previous) / size);
      if (!std::isfinite(energy.free_energy)) result.energy_rise = std::numeric_limits<double>::infinity();
      previous = energy.free_energy;
    };
    const pde::Result outcome = pde::run(field, state, options, Schedule::at({0.0, 0.3}), {},
                                         [&](const Clock&) -> std::optional<RunStatus> {
                                           look();
                                           ++result.steps;
                                           return {};
                                         });
    result.status = outcome.status;
  }
  if (std::isfinite(beta)) {
    Model free = problem.model;
    free.interactions.clear();
    const MeanField field(free, grid, {});
    Density gibbs{grid, std::vector<double>(grid.cell_count())};
    const std::span<const double> v = field.external_potential();
    const double lowest = *std::min_element(v.begin(), v.end());
    for (std::size_t i = 0; i < v.size(); ++i) {
      const bool inside = grid.volume_fractions.empty() || grid.volume_fractions[i] > 0.0;
      gibbs.averages[i] = inside ? std::exp(-beta * (v[i] - lowest)) : 0.0;
    }
    const double total = mass(gibbs);
    for (double& value : gibbs.averages) value /= total;
    pde::State state{.density = gibbs};
    pde::run(field, state, {.tolerance = problem.tolerance}, Schedule::at({0.0, 1.0}), {}, {});
    for (std::size_t i = 0; i < v.size(); ++i) {
      const double fraction = grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[i];
      result.gibbs_change +=
          std::abs(state.density.averages[i] - gibbs.averages[i]) * fraction * grid.cell_volume();
    }
  }
  return result;
}

}  // namespace rieszflow::reference
