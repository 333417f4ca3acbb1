#include "solvers/rare_event/splitting.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/expects.hpp"
#include "core/noise.hpp"
#include "solvers/rare_event/gibbs_chain.hpp"

namespace rieszflow::rare_event {
namespace {

constexpr int decorrelating_sweeps = 10;  ///< between the first walkers
constexpr int starting_sweeps = 500;      ///< before the first walker
constexpr int most_levels = 200'000;

struct Walker {
  std::vector<double> positions;  ///< (particle, dimension)
  double score = 0.0;
};

}  // namespace

SplittingResult split(const Model& model, std::size_t particle_count, const Statistic& statistic,
                      const Event& event, const SplittingOptions& options) {
  expects(options.walkers >= 2 && options.killed_fraction > 0.0 && options.killed_fraction < 1.0,
          "walkers to split");
  SplittingResult result;
  const std::size_t count = options.walkers;
  const auto kill = std::max<std::size_t>(
      1, static_cast<std::size_t>(options.killed_fraction * static_cast<double>(count)));
  const NoiseStream choice(options.seed, NoisePurpose::SplittingChoice);

  GibbsChain chain(model, particle_count, &statistic, options.seed, options.stream);
  chain.scatter();
  for (int s = 0; s < starting_sweeps; ++s) {
    chain.sweep();
    if (s < starting_sweeps / 2 && s % 10 == 9) chain.tune();
  }
  std::vector<Walker> walkers(count);
  for (Walker& walker : walkers) {
    for (int s = 0; s < decorrelating_sweeps; ++s) chain.sweep();
    walker.positions.assign(chain.positions().begin(), chain.positions().end());
    walker.score = event.depth(chain.statistic_value());
  }
  if (!chain.finite())
    return {RunStatus::NotFinite, "the start has an infinite energy", 0.0, 0, 0.0, chain.moves()};

  chain.event = event;
  double accepted = 0.0;
  std::int64_t mutations = 0;
  std::vector<std::size_t> order(count);
  for (; result.levels < most_levels; ++result.levels) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kill) - 1, order.end(),
                     [&](std::size_t a, std::size_t b) { return walkers[a].score < walkers[b].score; });
    const double level = walkers[order[kill - 1]].score;
    if (level >= 0.0) break;
    std::vector<std::size_t> dead, alive;
    for (std::size_t w = 0; w < count; ++w) (walkers[w].score <= level ? dead : alive).push_back(w);
    if (alive.empty()) {
      result.status = RunStatus::NotConverged;
      result.message =
          "all walkers of the splitting are at one level: the statistic has a plateau before the event";
      return result;
    }
    result.log_probability += std::log1p(-static_cast<double>(dead.size()) / static_cast<double>(count));
    chain.floor = level;
    chain.forget_acceptance();
    for (const std::size_t w : dead) {
      double uniform = 0.0;
      choice.uniforms(options.stream, static_cast<std::uint64_t>(result.levels), w, {&uniform, 1});
      const std::size_t parent = alive[std::min(
          alive.size() - 1, static_cast<std::size_t>(uniform * static_cast<double>(alive.size())))];
      chain.assign(walkers[parent].positions);
      for (int s = 0; s < options.mutation_sweeps; ++s) chain.sweep();
      walkers[w].positions.assign(chain.positions().begin(), chain.positions().end());
      walkers[w].score = event.depth(chain.statistic_value());
    }
    accepted += chain.acceptance();
    ++mutations;
    if (chain.acceptance() == 0.0) {
      result.status = RunStatus::NotConverged;
      result.message = "no mutation of the splitting was accepted";
      return result;
    }
    chain.tune();
    if (options.interrupted && options.interrupted()) {
      result.status = RunStatus::Interrupted;
      result.message = "interrupted";
      return result;
    }
  }
  std::size_t inside = 0;
  for (const Walker& walker : walkers) inside += walker.score > 0.0 ? 1 : 0;
  result.moves = chain.moves();
  result.acceptance = mutations > 0 ? accepted / static_cast<double>(mutations) : 0.0;
  if (result.levels == most_levels || inside == 0) {
    result.status = RunStatus::NotConverged;
    result.message = "the splitting did not reach the event";
    return result;
  }
  result.log_probability += std::log(static_cast<double>(inside) / static_cast<double>(count));
  return result;
}

}  // namespace rieszflow::rare_event
