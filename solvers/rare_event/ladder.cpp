#include "solvers/rare_event/ladder.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/expects.hpp"

namespace rieszflow::rare_event {
namespace {

constexpr int tuning_rounds = 12;
constexpr int sweeps_per_round = 10;
constexpr std::int64_t interrupt_every = 256;  ///< sweeps
constexpr std::size_t most_samples = 8192;     ///< of one particle's law that a proposal is learnt from

/// Positions of one particle along a pilot, every so many sweeps.
class OneParticleLaw {
 public:
  OneParticleLaw(const GibbsChain& chain, std::int64_t sweeps)
      : chain_(chain),
        // A proposal per axis is no match for a law in many dimensions.
        every_(dimension(chain.model().domain) > 3
                   ? 0
                   : 1 + sweeps * static_cast<std::int64_t>(chain.particle_count()) /
                             static_cast<std::int64_t>(most_samples)) {}
  void record(std::int64_t sweep) {
    if (every_ > 0 && sweep % every_ == 0)
      samples_.insert(samples_.end(), chain_.positions().begin(), chain_.positions().end());
  }
  std::shared_ptr<const Proposal> proposal() const {
    return samples_.empty() ? nullptr : std::make_shared<const Proposal>(chain_.model().domain, samples_);
  }

 private:
  const GibbsChain& chain_;
  std::int64_t every_;
  std::vector<double> samples_;
};

}  // namespace

Rung settle(GibbsChain& chain, std::int64_t sweeps, Observed observed) {
  const std::shared_ptr<const Proposal> nearby = chain.proposal();
  chain.set_proposal(nullptr);
  chain.forget_acceptance();
  for (int round = 0; round < tuning_rounds; ++round) {
    for (int s = 0; s < sweeps_per_round; ++s) chain.sweep();
    chain.tune();
  }
  chain.set_proposal(nearby);
  OneParticleLaw first(chain, sweeps / 4), law(chain, sweeps);
  for (std::int64_t s = 0; s < sweeps / 4; ++s) {
    chain.sweep();
    first.record(s);
  }
  chain.set_proposal(first.proposal());
  double mean = 0.0, squares = 0.0;
  for (std::int64_t s = 0; s < sweeps; ++s) {  // Welford's recurrence
    chain.sweep();
    law.record(s);
    const double difference = observed(chain) - mean;
    mean += difference / static_cast<double>(s + 1);
    squares += difference * (observed(chain) - mean);
  }
  chain.set_proposal(law.proposal());
  return {.bias = chain.bias,
          .coupling = chain.coupling,
          .reduced = chain.bias,
          .step = chain.step(),
          .mean = mean,
          .standard_deviation = std::sqrt(squares / static_cast<double>(sweeps)),
          .positions = {chain.positions().begin(), chain.positions().end()},
          .proposal = chain.proposal()};
}

LadderSamples sample(std::span<const Rung> rungs,
                     const std::function<GibbsChain(std::uint64_t stream)>& chain_of, Observed observed,
                     const LadderOptions& options) {
  expects(!rungs.empty() && options.replicates > 0 && options.sweeps > 0, "something to sample");
  LadderSamples result;
  result.samples.assign(options.replicates, std::vector<BiasedSamples>(rungs.size()));
  const std::size_t tasks = options.replicates * rungs.size();
  constexpr std::size_t width = 3;
  std::vector<double> told(tasks * width, 0.0);  ///< (task) acceptance, moves, finite
  std::atomic<bool> stop = false;
  const auto mine = options.ranks.part(tasks);
#pragma omp parallel for schedule(dynamic) num_threads(options.threads)
  for (std::size_t task = mine.first; task < mine.second; ++task) {
    if (stop) continue;
    const std::size_t replicate = task / rungs.size(), k = task % rungs.size();
    const std::uint64_t number = options.first_replicate + replicate + 1;
    const Rung& rung = rungs[k];
    GibbsChain chain = chain_of((number << 32) + k);
    chain.bias = rung.bias;
    chain.coupling = rung.coupling;
    chain.set_step(rung.step);
    chain.assign(rung.positions);
    chain.set_proposal(rung.proposal);
    const std::int64_t forgetting = std::max<std::int64_t>(200, options.sweeps / 10);
    for (std::int64_t s = 0; s < forgetting; ++s) chain.sweep();
    chain.forget_acceptance();
    BiasedSamples& out = result.samples[replicate][k];
    out.bias = rung.reduced;
    out.values.reserve(static_cast<std::size_t>(options.sweeps));
    for (std::int64_t s = 0; s < options.sweeps && !stop; ++s) {
      chain.sweep();
      out.values.push_back(observed(chain));
      if (s % interrupt_every == 0 && options.interrupted && options.interrupted()) stop = true;
    }
    told[task * width] = chain.acceptance();
    told[task * width + 1] = static_cast<double>(chain.moves());
    told[task * width + 2] = chain.finite() ? 1.0 : 0.0;
  }
  result.interrupted = options.ranks.any(stop);
  if (result.interrupted) return result;
  options.ranks.gather(told, width);
  if (!options.ranks.alone()) {
    const auto size = static_cast<std::size_t>(options.sweeps);
    std::vector<double> values(tasks * size);
    for (std::size_t task = mine.first; task < mine.second; ++task)
      std::ranges::copy(result.samples[task / rungs.size()][task % rungs.size()].values,
                        values.begin() + static_cast<std::ptrdiff_t>(task * size));
    options.ranks.gather(values, size);
    for (std::size_t task = 0; task < tasks; ++task) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(task * size);
      BiasedSamples& out = result.samples[task / rungs.size()][task % rungs.size()];
      out.bias = rungs[task % rungs.size()].reduced;
      out.values.assign(begin, begin + static_cast<std::ptrdiff_t>(size));
    }
  }
  result.acceptances.assign(rungs.size(), 0.0);
  for (std::size_t task = 0; task < tasks; ++task) {
    result.acceptances[task % rungs.size()] += told[task * width] / static_cast<double>(options.replicates);
    result.moves += static_cast<std::int64_t>(told[task * width + 1]);
    result.finite = result.finite && told[task * width + 2] != 0.0;
  }
  return result;
}

std::vector<Reweighting> reweight(const LadderSamples& samples, double particle_count, int threads) {
  std::vector<Reweighting> result(samples.samples.size());
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::size_t r = 0; r < result.size(); ++r) result[r] = reweight(samples.samples[r], particle_count);
  return result;
}

}  // namespace rieszflow::rare_event
