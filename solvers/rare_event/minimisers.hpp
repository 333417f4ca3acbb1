#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/model.hpp"
#include "solvers/observer.hpp"
#include "solvers/rare_event/statistic.hpp"

namespace rieszflow::rare_event {

struct MinimiserOptions {
  std::size_t starts = 16;
  int iterations = 20000;
  double tolerance = 1e-10;  ///< on the projected gradient step in particle units, relative to the domain
  std::uint64_t seed = 0;
  int threads = 1;
};

/// A local minimiser of H_N of theory.md (1).
struct Minimiser {
  RunStatus status = RunStatus::NotConverged;
  double hamiltonian = 0.0;       ///< H_N
  double residual = 0.0;          ///< largest |Proj(x - N grad H_N) - x|
  std::vector<double> positions;  ///< (particle, dimension)
};

struct Minimisers {
  RunStatus status = RunStatus::NotConverged;
  Minimiser best;
  std::size_t agreeing = 0;  ///< starts that ended within 1e-8 of the best H_N
};

/// min H_N over the domain by spectral projected gradients from random starts: Fekete points when W is the
/// log kernel. Steps of Barzilai-Borwein length, projected, and backtracked until H_N falls below the largest
/// of the last ten values. With an event: over {g in the closed event} by an augmented Lagrangian until the
/// violation is below 1e-9 (Mean statistics; the gradient of f by central differences, which limits the
/// residual to about 1e-9). Source: E. Birgin, J. Martinez, M. Raydan, SIAM J. Optim. 10 (2000) 1196-1211. A
/// minimum of finitely many starts: an upper bound of the global one.
Minimisers minimise(const Model& model, std::size_t particle_count, const MinimiserOptions& options);
Minimisers minimise(const Model& model, std::size_t particle_count, const Statistic& statistic,
                    const Event& event, const MinimiserOptions& options);

}  // namespace rieszflow::rare_event
