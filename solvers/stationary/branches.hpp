#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "solvers/stationary/linearisation.hpp"
#include "solvers/stationary/self_consistency.hpp"

/// Several stationary states of one model, and how they continue in the inverse temperature and the strength
/// of the interaction.
namespace rieszflow::stationary {

/// Sign of the lowest eigenvalue of the second variation of F.
enum class Stability {
  Stable,
  Neutral,  ///< zero to 1e-6: a symmetry, or a bifurcation
  Unstable
};

std::string_view name(Stability stability);  ///< "stable", ...

struct State {
  Result solution;
  double second_variation = 0.0;  ///< lowest eigenvalue (linearisation.hpp), energy
  Stability stability = Stability::Stable;
  std::size_t branch = 0;  ///< number of its branch; states that continue each other share it
};

struct SearchOptions {
  Options solve{};
  int random_starts = 8;   ///< besides the uniform one and those tilted towards each wall
  std::uint64_t seed = 1;  ///< of the random starts
  double distinct = 1e-4;  ///< L1 distance below which two states are one
  bool saddles = true;     ///< Newton's method from the mean of any two minima (finite beta)
};

/// The starts of a search: uniform; exp(+-4 x/L) along each axis; exp of random trigonometric polynomials.
std::vector<Density> starts(const Grid& grid, const SearchOptions& options);

/// Stationary states reached from the given starts, and saddles between them, lowest F first. Only converged
/// ones. On a torus translates are one state: F equal to 1e-9. A search, no proof that there are no others.
std::vector<State> states(const Landscape& landscape, std::span<const Density> from,
                          const SearchOptions& options);

/// The states at each point of a path through the family of a model. Forwards each state is continued to the
/// next point by Newton's method (so that unstable branches go on) and the search of `states` is added;
/// backwards the same with the states found since. Branches end where their state disappears: at a fold, or
/// where they merge with another. result: (point)(state), lowest F first.
std::vector<std::vector<State>> branches(const MeanField& field, std::span<const Parameters> path,
                                         const SearchOptions& options);

}  // namespace rieszflow::stationary
