#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ranks.hpp"
#include "solvers/observer.hpp"
#include "solvers/rare_event/gibbs_chain.hpp"
#include "solvers/rare_event/reweighting.hpp"

namespace rieszflow::rare_event {

/// One law of a ladder of overlapping laws, with what a pilot chain learned about it.
struct Rung {
  Bias bias;              ///< of the chain, on the statistic
  double coupling = 1.0;  ///< of the chain
  Bias reduced;           ///< the same law as a bias on the observed number: what the reweighting sees
  double step = 0.0;      ///< tuned
  double mean = 0.0;      ///< of the observed number
  double standard_deviation = 0.0;
  std::vector<double> positions;               ///< a state of this law
  std::shared_ptr<const Proposal> proposal{};  ///< from its one-particle law; none in more than 3 dimensions
};

/// The number that the windows reweight: the statistic or the interaction energy.
using Observed = double (*)(const GibbsChain& chain);

/// Lets `chain` forget its start under its present law, tunes its step and learns a proposal, then measures
/// mean and standard deviation of the observed number over `sweeps` sweeps. A chain that has a proposal, of a
/// law nearby, starts with it.
Rung settle(GibbsChain& chain, std::int64_t sweeps, Observed observed);

/// What sampling a ladder gives.
struct LadderSamples {
  std::vector<std::vector<BiasedSamples>> samples;  ///< (replicate, rung)
  std::vector<double> acceptances;                  ///< (rung), mean over replicates
  std::int64_t moves = 0;
  bool interrupted = false;
  bool finite = true;
};

struct LadderOptions {
  std::size_t first_replicate = 0;  ///< number of the first: streams are keyed by the number
  std::size_t replicates = 8;
  std::int64_t sweeps = 10000;
  int threads = 1;
  Ranks ranks{};  ///< take parts of the chains; each gets all samples
  std::function<bool()> interrupted{};
};

/// `replicates` independent chains on every rung, each recorded after every sweep once it has forgotten its
/// start (a tenth of its sweeps, at least 200). `chain_of` makes the chain of a stream; streams are numbered
/// (replicate, rung). Bitwise the same for every number of threads and ranks.
LadderSamples sample(std::span<const Rung> rungs,
                     const std::function<GibbsChain(std::uint64_t stream)>& chain_of, Observed observed,
                     const LadderOptions& options);

/// Reweighting of each replicate by itself; (replicate).
std::vector<Reweighting> reweight(const LadderSamples& samples, double particle_count, int threads);

}  // namespace rieszflow::rare_event
