#include "solvers/stationary/branches.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow::stationary {
namespace {

constexpr double neutral = 1e-6;  ///< of 1/beta (of the largest |Phi| at beta = infinity)

Density normalised(const Grid& grid, std::vector<double> shape) {
  CompensatedSum mass;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const double fraction = grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[i];
    if (fraction == 0.0) shape[i] = 0.0;
    mass.add(shape[i] * fraction);
  }
  for (double& value : shape) value /= mass.value() * grid.cell_volume();
  return {grid, std::move(shape)};
}

double l1(const Landscape& landscape, const Density& a, const Density& b) {
  CompensatedSum sum;
  for (std::size_t i = 0; i < a.averages.size(); ++i)
    sum.add(std::abs(a.averages[i] - b.averages[i]) * landscape.volumes()[i]);
  return sum.value();
}

/// Known states, told apart.
class Collection {
 public:
  Collection(const Landscape& landscape, const SearchOptions& options)
      : landscape_(landscape), options_(options) {}

  std::vector<State> found{};

  /// The place of a state: of the one that it equals, or a new one at the end.
  std::size_t place(const Result& result) {
    for (std::size_t k = 0; k < found.size(); ++k) {
      const Result& known = found[k].solution;
      const double difference = std::abs(known.energy.free_energy - result.energy.free_energy);
      const bool translate =
          landscape_.grid().periodic && difference <= 1e-9 * (1.0 + std::abs(result.energy.free_energy));
      if (translate || l1(landscape_, known.density, result.density) < options_.distinct) return k;
    }
    const Spectrum lowest = second_variation(landscape_, result.density, {.count = 1, .tolerance = 1e-4});
    State state{.solution = result, .second_variation = lowest.values.empty() ? 0.0 : lowest.values.front()};
    const double beta = landscape_.inverse_temperature();
    const double zero = neutral * (std::isfinite(beta) ? 1.0 / beta : std::abs(result.chemical_potential));
    state.stability = lowest.values.empty() || state.second_variation > zero ? Stability::Stable
                      : state.second_variation < -zero                       ? Stability::Unstable
                                                                             : Stability::Neutral;
    found.push_back(std::move(state));
    return found.size() - 1;
  }

  /// Descent, or Newton's method, from a start; the place of what it reached, or none.
  std::size_t reach(const Density& start, Target target) {
    Options options = options_.solve;
    options.target = target;
    const Result result = solve(landscape_, start, options);
    return result.status == RunStatus::Completed ? place(result) : none;
  }

  void add_saddles() {
    const std::size_t minima = found.size();
    for (std::size_t a = 0; a < minima; ++a) {
      for (std::size_t b = a + 1; b < minima; ++b) {
        if (found[a].stability == Stability::Unstable || found[b].stability == Stability::Unstable) continue;
        Density middle = found[a].solution.density;
        for (std::size_t i = 0; i < middle.averages.size(); ++i)
          middle.averages[i] = 0.5 * (middle.averages[i] + found[b].solution.density.averages[i]);
        reach(middle, Target::NearestState);
      }
    }
  }

  static constexpr std::size_t none = static_cast<std::size_t>(-1);

 private:
  const Landscape& landscape_;
  const SearchOptions& options_;
};

bool finite(const Landscape& landscape) { return std::isfinite(landscape.inverse_temperature()); }

void sort_by_energy(std::vector<State>& states) {
  std::stable_sort(states.begin(), states.end(), [](const State& a, const State& b) {
    return a.solution.energy.free_energy < b.solution.energy.free_energy;
  });
}

}  // namespace

std::string_view name(Stability stability) {
  switch (stability) {
    case Stability::Stable:
      return "stable";
    case Stability::Neutral:
      return "neutral";
    case Stability::Unstable:
      return "unstable";
  }
  return {};
}

std::vector<Density> starts(const Grid& grid, const SearchOptions& options) {
  const std::size_t d = grid.dimension();
  std::vector<double> point(d);
  const auto shaped = [&](auto exponent) {
    std::vector<double> shape(grid.cell_count());
    for (std::size_t cell = 0; cell < shape.size(); ++cell) {
      grid.cell_center(cell, point);
      shape[cell] = std::exp(exponent());
    }
    return normalised(grid, std::move(shape));
  };
  const auto relative = [&](std::size_t axis) {
    return (point[axis] - grid.lower[axis]) / (grid.upper[axis] - grid.lower[axis]);
  };
  std::vector<Density> result{shaped([] { return 0.0; })};
  for (std::size_t axis = 0; axis < d; ++axis) {
    for (const double sign : {-4.0, 4.0}) {
      result.push_back(grid.periodic ? shaped([&] {
        return 0.5 * sign * std::cos(2.0 * std::numbers::pi * relative(axis));
      })
                                     : shaped([&] { return sign * relative(axis); }));
    }
  }
  std::mt19937_64 engine(options.seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0.0, 2.0 * std::numbers::pi);
  for (int k = 0; k < options.random_starts; ++k) {
    struct Wave {
      std::vector<double> number;
      double phase, amplitude;
    };
    std::vector<Wave> waves(4);
    for (Wave& wave : waves) {
      for (std::size_t axis = 0; axis < d; ++axis)
        wave.number.push_back(2.0 * std::numbers::pi * static_cast<double>(engine() % 4));
      wave.phase = uniform(engine);
      wave.amplitude = normal(engine);
    }
    result.push_back(shaped([&] {
      double sum = 0.0;
      for (const Wave& wave : waves) {
        double angle = wave.phase;
        for (std::size_t axis = 0; axis < d; ++axis) angle += wave.number[axis] * relative(axis);
        sum += wave.amplitude * std::cos(angle);
      }
      return sum;
    }));
  }
  return result;
}

std::vector<State> states(const Landscape& landscape, std::span<const Density> from,
                          const SearchOptions& options) {
  Collection collection(landscape, options);
  for (const Density& start : from) collection.reach(start, Target::Minimum);
  if (options.saddles && finite(landscape)) collection.add_saddles();
  sort_by_energy(collection.found);
  for (std::size_t k = 0; k < collection.found.size(); ++k) collection.found[k].branch = k;
  return std::move(collection.found);
}

std::vector<std::vector<State>> branches(const MeanField& field, std::span<const Parameters> path,
                                         const SearchOptions& options) {
  const std::vector<Density> from = starts(field.grid(), options);
  std::vector<std::vector<State>> result(path.size());
  std::size_t next_branch = 0;
  constexpr std::size_t unnamed = static_cast<std::size_t>(-1);
  // States of `known` are continued to point k; what is new there gets its branch from where it came.
  const auto extend = [&](std::size_t k, const std::vector<State>& known, bool search) {
    const Landscape landscape(field, path[k]);
    Collection collection(landscape, options);
    collection.found = std::move(result[k]);
    const auto names = [&](std::size_t branch) {
      return std::any_of(collection.found.begin(), collection.found.end(),
                         [&](const State& state) { return state.branch == branch; });
    };
    const auto join = [&](std::size_t place, std::size_t branch) {
      if (place == Collection::none) return;
      State& state = collection.found[place];
      if (state.branch == unnamed && !names(branch)) state.branch = branch;
    };
    const auto reach = [&](const Density& start, Target target) {
      const std::size_t before = collection.found.size();
      const std::size_t place = collection.reach(start, target);
      if (collection.found.size() > before) collection.found.back().branch = unnamed;
      return place;
    };
    for (const State& state : known) {
      const bool unstable = state.stability == Stability::Unstable && finite(landscape);
      join(reach(state.solution.density, unstable ? Target::NearestState : Target::Minimum), state.branch);
    }
    if (search) {
      for (const Density& start : from) reach(start, Target::Minimum);
      if (options.saddles && finite(landscape)) {
        const std::size_t before = collection.found.size();
        collection.add_saddles();
        for (std::size_t i = before; i < collection.found.size(); ++i) collection.found[i].branch = unnamed;
      }
    }
    sort_by_energy(collection.found);
    for (State& state : collection.found) {
      if (state.branch == unnamed) state.branch = next_branch++;
    }
    result[k] = std::move(collection.found);
  };
  for (std::size_t k = 0; k < path.size(); ++k) extend(k, k > 0 ? result[k - 1] : std::vector<State>{}, true);
  for (std::size_t k = path.size(); k-- > 1;) extend(k - 1, result[k], false);
  return result;
}

}  // namespace rieszflow::stationary
