#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "model/model.hpp"
#include "solvers/observer.hpp"
#include "solvers/rare_event/statistic.hpp"

namespace rieszflow::rare_event {

struct SplittingOptions {
  std::size_t walkers = 1000;
  double killed_fraction = 0.1;  ///< of the walkers, per level
  int mutation_sweeps = 2;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  ///< tells repetitions apart
  std::function<bool()> interrupted{};
};

struct SplittingResult {
  RunStatus status = RunStatus::Completed;
  std::string message;
  double log_probability = 0.0;
  int levels = 0;
  double acceptance = 0.0;  ///< mean over the mutations
  std::int64_t moves = 0;
};

/// Adaptive multilevel splitting on the Gibbs law (3) with the depth of the statistic in the event as its
/// score:
///
///     the k walkers of lowest score (and those that tie with the k-th) are replaced by copies of survivors,
///     each moved by sweeps of the Metropolis chain confined above the level; P = prod_levels (1 -
///     killed/walkers) x (fraction inside at the end).
///
/// The standard deviation of log P is about sqrt(|log P| / walkers); P is unbiased but for the tuning of the
/// step between levels. Source: C.-E. Brehier et al., Ann. Appl. Probab. 26 (2016) 3559-3601; F. Cerou, A.
/// Guyader, Stoch. Anal. Appl. 25 (2007) 417-443. NotConverged when every walker ties, or when mutations stop
/// being accepted.
SplittingResult split(const Model& model, std::size_t particle_count, const Statistic& statistic,
                      const Event& event, const SplittingOptions& options);

}  // namespace rieszflow::rare_event
