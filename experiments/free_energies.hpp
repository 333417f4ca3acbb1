#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "experiments/sweep.hpp"
#include "model/model.hpp"
#include "potentials/expression.hpp"
#include "solvers/rare_event/girsanov.hpp"
#include "solvers/rare_event/partition_function.hpp"

/// Two more questions about finite N: its partition function, and the probability of a path event.
namespace rieszflow::free_energies {

struct PartitionQuestion {
  std::string name;
  Model model;  ///< its temperature is replaced by each of `inverse_temperatures`
  std::vector<std::size_t> counts;
  std::vector<double> inverse_temperatures;
  rare_event::PartitionOptions options{};
  std::vector<std::size_t> cells;  ///< grid of min F; empty: none (d > 3)
};

/// Rows (N, beta): (1/N) log Z_N of theory.md (3) with its standard error over replicates; the error of a row
/// is its distance from -beta min F of the density, which falls like N^-1 where W is square integrable and
/// like N^-(d/s-1) for d/2 < s < d (theory.md section 3, item 2). The summary adds, for each temperature, the
/// fit log Z_N = N limit + c0 + e/N beside -beta min F and c0 of the determinant on the grid.
sweep::Study study(const PartitionQuestion& question);

struct PathQuestion {
  std::string name;
  Model model;
  std::shared_ptr<const ExpressionFunction> function;  ///< g = (1/N) sum f(x_i)
  bool above = true;                                   ///< g > level, else g < level
  std::vector<double> levels;
  std::vector<std::size_t> counts;
  std::vector<double> start;  ///< (dimension), where all particles start
  double spread = 0.0;        ///< > 0: equally spaced within it (d = 1), on a circle of this radius (d = 2)
  rare_event::PathOptions options{};
};

/// Positions at time 0; (particle, dimension).
std::vector<double> path_start(const PathQuestion& question, std::size_t count);

/// Rows (N, level): log P(g(mu_N(T)) in the event) of the Euler chain of (2) from a fixed start, by paths
/// under a learnt control. The summary adds, for each level, the fit -log P = N I + (1/2) log N + a + c/N.
sweep::Study study(const PathQuestion& question);

}  // namespace rieszflow::free_energies
