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

}  // namespace

Rung settle(GibbsChain& chain, std::int64_t sweeps, Observed observed) {
  chain.forget_acceptance();
  for (int round = 0; round < tuning_rounds; ++round) {
    for (int s = 0; s < sweeps_per_round; ++s) chain.sweep();
    chain.tune();
  }
  for (std::int64_t s = 0; s < sweeps / 4; ++s) chain.sweep();
  double mean = 0.0, squares = 0.0;
  for (std::int64_t s = 0; s < sweeps; ++s) {  // Welford's recurrence
    chain.sweep();
    const double difference = observed(chain) - mean;
    mean += difference / static_cast<double>(s + 1);
    squares += difference * (observed(chain) - mean);
  }
  return {.bias = chain.bias,
          .coupling = chain.coupling,
          .reduced = chain.bias,
          .step = chain.step(),
          .mean = mean,
          .standard_deviation = std::sqrt(squares / static_cast<double>(sweeps)),
          .positions = {chain.positions().begin(), chain.positions().end()}};
}

LadderSamples sample(std::span<const Rung> rungs,
                     const std::function<GibbsChain(std::uint64_t stream)>& chain_of, Observed observed,
                     const LadderOptions& options) {
  expects(!rungs.empty() && options.replicates > 0 && options.sweeps > 0, "something to sample");
  LadderSamples result;
  result.samples.assign(options.replicates, std::vector<BiasedSamples>(rungs.size()));
  const std::size_t tasks = options.replicates * rungs.size();
  std::vector<double> acceptance(tasks, 0.0);
  std::vector<std::int64_t> moves(tasks, 0);
  std::vector<char> finite(tasks, 1);
  std::atomic<bool> stop = false;
#pragma omp parallel for schedule(dynamic) num_threads(options.threads)
  for (std::size_t task = 0; task < tasks; ++task) {
    if (stop) continue;
    const std::size_t replicate = task / rungs.size(), k = task % rungs.size();
    const Rung& rung = rungs[k];
    GibbsChain chain = chain_of((static_cast<std::uint64_t>(replicate + 1) << 32) + k);
    chain.bias = rung.bias;
    chain.coupling = rung.coupling;
    chain.set_step(rung.step);
    chain.assign(rung.positions);
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
    acceptance[task] = chain.acceptance();
    moves[task] = chain.moves();
    finite[task] = chain.finite();
  }
  result.interrupted = stop;
  result.acceptances.assign(rungs.size(), 0.0);
  for (std::size_t task = 0; task < tasks; ++task) {
    result.acceptances[task % rungs.size()] += acceptance[task] / static_cast<double>(options.replicates);
    result.moves += moves[task];
    result.finite = result.finite && finite[task] != 0;
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
