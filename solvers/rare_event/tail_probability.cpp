#include "solvers/rare_event/tail_probability.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/expects.hpp"
#include "solvers/rare_event/ladder.hpp"
#include "solvers/rare_event/replicates.hpp"
#include "solvers/rare_event/reweighting.hpp"
#include "solvers/rare_event/splitting.hpp"

namespace rieszflow::rare_event {
namespace {

constexpr std::size_t most_rungs = 400;
constexpr double common = 0.05;           ///< probability above which an unbiased chain sees enough
constexpr double outward_tilt = 5.0;      ///< of the release from both ends, over the one-particle deviation
constexpr double apart = 3.0;             ///< deviations between two wells
constexpr double beyond_the_wells = 2.5;  ///< deviations that umbrellas reach past the outer wells
constexpr double largest_jump = 6.0;      ///< deviations between the means of neighbouring tilts

double observed_statistic(const GibbsChain& chain) { return chain.statistic_value(); }

/// The pilot: everything that is learned before the measurement. Streams below 2^32 belong to it.
class Pilot {
 public:
  Pilot(const Model& model, std::size_t particle_count, const Statistic& statistic, const Options& options)
      : model_(model),
        count_(particle_count),
        statistic_(statistic),
        options_(options),
        sweeps_(std::clamp<std::int64_t>(options.sweeps / 10, 400, 2000)) {}

  GibbsChain chain(std::uint64_t stream) const {
    return {model_, count_, &statistic_, options_.seed, stream};
  }
  std::int64_t moves = 0;

  Rung unbiased(std::uint64_t stream) {
    GibbsChain chain = this->chain(stream);
    chain.scatter();
    return settled(chain);
  }

  /// The law at bias zero as seen by a chain that was first driven outwards by a strong tilt of this sign.
  Rung released(const Rung& start, double sign) {
    GibbsChain chain = this->chain(sign > 0.0 ? 1 : 2);
    chain.set_step(start.step);
    chain.assign(start.positions);
    // One particle's deviation: sqrt(N) times that of the mean of N without interactions.
    std::vector<double> values;
    double mean = 0.0, squares = 0.0;
    const std::size_t d = dimension(model_.domain);
    for (std::size_t i = 0; i < count_; ++i) {
      double f = 0.0;
      statistic_.components({start.positions.data() + i * d, d}, {&f, 1});
      mean += f / static_cast<double>(count_);
      squares += f * f / static_cast<double>(count_);
    }
    const double deviation = std::sqrt(std::max(squares - mean * mean, 0.0));
    if (!(deviation > 0.0) || !std::isfinite(deviation)) return start;
    chain.bias = {.tilt = sign * outward_tilt / deviation};
    settled(chain);
    chain.bias = {};
    return settled(chain);
  }

  /// Tilts from zero by steps of `spacing` deviations until the mean lies inside the event. Nothing when the
  /// mean jumps or does not get there.
  std::optional<std::vector<Rung>> tilts(const Rung& start, const Event& event) {
    std::vector<Rung> rungs{start};
    const double sign = start.mean <= event.lower ? 1.0 : -1.0;
    GibbsChain chain = this->chain(3);
    chain.set_step(start.step);
    chain.assign(start.positions);
    double tilt = 0.0;
    while (event.depth(rungs.back().mean) <= 0.0) {
      const double deviation = rungs.back().standard_deviation;
      if (rungs.size() == most_rungs || !(deviation > 0.0) || !std::isfinite(deviation)) return {};
      tilt += sign * options_.spacing / (static_cast<double>(count_) * deviation);
      chain.bias = {.tilt = tilt};
      rungs.push_back(settled(chain));
      const Rung &last = rungs.back(), &previous = rungs[rungs.size() - 2];
      const double jump = std::abs(last.mean - previous.mean);
      // Both are small beside a jump between phases; one is where a count of particles comes to zero.
      if (jump > largest_jump * std::max(last.standard_deviation, previous.standard_deviation)) return {};
      // Past the far end of a two-sided event: a smaller step would have met it; the samples of both rungs
      // cover it.
      if (sign * (last.mean - (sign > 0.0 ? event.upper : event.lower)) > 0.0) break;
    }
    return rungs;
  }

  /// Harmonic umbrellas whose means run from `from` to `to`, `from` < `to`; `start` is a state near `from`.
  /// Where `to` lies beyond the range of the statistic the means must at least reach `required`.
  std::optional<std::vector<Rung>> umbrellas(const Rung& start, double from, double to, double required,
                                             double least_deviation) {
    const double n = static_cast<double>(count_);
    // Twice the curvature of the narrowest well; doubled wherever that does not outweigh a concave rate.
    double stiffness = 2.0 / (n * least_deviation * least_deviation);
    for (int attempt = 0; attempt < 12; ++attempt, stiffness *= 2.0) {
      std::vector<Rung> rungs;
      GibbsChain chain = this->chain(100 + static_cast<std::uint64_t>(attempt));
      chain.set_step(start.step);
      chain.assign(start.positions);
      double center = from;
      bool concave = false;
      while (rungs.size() < most_rungs) {
        chain.bias = {.stiffness = stiffness, .center = center};
        rungs.push_back(settled(chain));
        const Rung& last = rungs.back();
        // N Var = 1 / (k + I''), so that k N Var = 1 where the rate is flat and grows where it is concave.
        const double response = stiffness * n * last.standard_deviation * last.standard_deviation;
        if (!(response > 0.0) || !std::isfinite(response)) return {};
        concave = response > 3.0;
        if (concave || last.mean > to || center > to + (to - from)) break;
        center += options_.spacing * last.standard_deviation / response;
      }
      if (!concave) return rungs.back().mean > required ? std::optional(std::move(rungs)) : std::nullopt;
    }
    return {};
  }

 private:
  Rung settled(GibbsChain& chain) {
    const std::int64_t before = chain.moves();
    Rung rung = settle(chain, sweeps_, observed_statistic);
    moves += chain.moves() - before;
    return rung;
  }

  const Model& model_;
  std::size_t count_;
  const Statistic& statistic_;
  const Options& options_;
  std::int64_t sweeps_;
};

TailProbability failed(TailProbability result, RunStatus status, std::string message) {
  result.status = status;
  result.message = std::move(message);
  result.log_probability = result.standard_error = std::numeric_limits<double>::quiet_NaN();
  return result;
}

/// Samples every rung and reweights: one rung at bias zero is the direct method.
TailProbability measured(TailProbability result, const Model& model, std::size_t particle_count,
                         const Statistic& statistic, const Event& event, const Options& options,
                         std::span<const Rung> rungs) {
  const auto chain_of = [&](std::uint64_t stream) {
    return GibbsChain(model, particle_count, &statistic, options.seed, stream);
  };
  LadderSamples samples = sample(rungs, chain_of, observed_statistic,
                                 {.replicates = options.replicates,
                                  .sweeps = options.sweeps,
                                  .threads = options.threads,
                                  .interrupted = options.interrupted});
  result.moves += samples.moves;
  if (samples.interrupted) return failed(std::move(result), RunStatus::Interrupted, "interrupted");
  if (!samples.finite)
    return failed(std::move(result), RunStatus::NotFinite, "a chain reached an infinite energy");
  const double n = static_cast<double>(particle_count);
  const std::vector<Reweighting> weights = reweight(samples, n, options.threads);
  const auto inside = [&](double g) { return event.contains(g); };
  for (std::size_t r = 0; r < weights.size(); ++r) {
    if (weights[r].status != RunStatus::Completed)
      return failed(std::move(result), weights[r].status, weights[r].message);
    result.replicate_values.push_back(log_probability(weights[r], samples.samples[r], inside));
    result.effective_samples += effective_sample_size(weights[r], samples.samples[r], inside);
    for (const double overlap : weights[r].overlaps)
      result.least_overlap = std::min(result.least_overlap, overlap);
  }
  for (std::size_t k = 0; k < rungs.size(); ++k) {
    Window window{.bias = rungs[k].bias,
                  .mean = 0.0,
                  .standard_deviation = 0.0,
                  .acceptance = samples.acceptances[k],
                  .step = rungs[k].step,
                  .series = std::move(samples.samples[0][k].values)};
    const double count = static_cast<double>(window.series.size());
    for (const double g : window.series) window.mean += g / count;
    for (const double g : window.series)
      window.standard_deviation += (g - window.mean) * (g - window.mean) / count;
    window.standard_deviation = std::sqrt(window.standard_deviation);
    result.windows.push_back(std::move(window));
  }
  const LogMean mean = log_mean(result.replicate_values);
  result.log_probability = mean.value;
  result.standard_error = mean.standard_error;
  if (!std::isfinite(mean.value)) {
    return failed(std::move(result), RunStatus::NotConverged, "no sample lies inside the event");
  }
  return result;
}

TailProbability by_splitting(TailProbability result, const Model& model, std::size_t particle_count,
                             const Statistic& statistic, const Event& event, const Options& options) {
  std::vector<SplittingResult> runs(options.replicates);
#pragma omp parallel for schedule(dynamic) num_threads(options.threads)
  for (std::size_t r = 0; r < runs.size(); ++r) {
    runs[r] = split(model, particle_count, statistic, event,
                    {.walkers = options.walkers,
                     .mutation_sweeps = options.mutation_sweeps,
                     .seed = options.seed,
                     .stream = static_cast<std::uint64_t>(r + 1) << 32,
                     .interrupted = options.interrupted});
  }
  Window window;
  for (const SplittingResult& run : runs) {
    result.moves += run.moves;
    if (run.status != RunStatus::Completed) return failed(std::move(result), run.status, run.message);
    result.replicate_values.push_back(run.log_probability);
    window.acceptance += run.acceptance / static_cast<double>(runs.size());
  }
  result.windows = {window};
  // Each replicate's P is unbiased, but for |log P| >> walkers its law is log-normal and a mean of few is the
  // largest of them. The mean of the logarithms has a bias of -variance/2, which is added back; both agree
  // when the scatter is small.
  double mean = 0.0, squares = 0.0;
  const double count = static_cast<double>(runs.size());
  for (const double value : result.replicate_values) mean += value / count;
  for (const double value : result.replicate_values) squares += (value - mean) * (value - mean);
  const double variance =
      runs.size() > 1 ? squares / (count - 1.0) : std::numeric_limits<double>::quiet_NaN();
  result.log_probability = runs.size() > 1 ? mean + 0.5 * variance : mean;
  result.standard_error = std::sqrt(variance / count);
  result.effective_samples = count / variance;
  return result;
}

/// "All particles inside {f < upper}" as a linear statistic: the fraction that is not is zero.
Statistic fraction_outside(const Statistic& largest, double upper) {
  return mean_of("fraction with " + largest.name + " outside",
                 [components = largest.components, upper](std::span<const double> point) {
                   double f = 0.0;
                   components(point, {&f, 1});
                   return f < upper ? 0.0 : 1.0;
                 });
}

struct Seconds {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double value() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

/// `method` empty: choose.
TailProbability solved(const Model& model, std::size_t particle_count, const Statistic& statistic,
                       const Event& event, const Options& options, std::optional<Method> method) {
  expects(options.replicates >= 1 && options.sweeps >= 1 && options.threads >= 1, "something to do");
  expects(event.lower < event.upper, "an event that is not empty");
  const Seconds seconds;
  const bool named = method.has_value();
  if (statistic.kind == Statistic::Kind::Largest && method != Method::Splitting &&
      event.lower == -std::numeric_limits<double>::infinity()) {
    const Statistic fraction = fraction_outside(statistic, event.upper);
    return solved(model, particle_count, fraction, {.upper = 0.5 / static_cast<double>(particle_count)},
                  options, method);
  }
  TailProbability result;
  if (!method && statistic.kind != Statistic::Kind::Mean) method = Method::Splitting;
  if (method == Method::Splitting) {
    result.method = Method::Splitting;
    result = by_splitting(std::move(result), model, particle_count, statistic, event, options);
    result.seconds = seconds.value();
    return result;
  }

  Pilot pilot(model, particle_count, statistic, options);
  const Rung start = pilot.unbiased(0);
  if (!std::isfinite(start.mean) || !std::isfinite(start.standard_deviation)) {
    return failed(std::move(result), RunStatus::NotFinite, "the statistic of the unbiased law is not finite");
  }
  std::vector<Rung> wells{start};
  if (statistic.kind == Statistic::Kind::Mean && method != Method::Direct && method != Method::Tilt) {
    wells = {pilot.released(start, -1.0), pilot.released(start, 1.0)};
    if (wells.front().mean > wells.back().mean) std::swap(wells.front(), wells.back());
  }
  const bool several_wells =
      wells.size() == 2 && wells[1].mean - wells[0].mean >
                               apart * std::hypot(wells[0].standard_deviation, wells[1].standard_deviation);
  if (!method) {
    if (several_wells) {
      method = Method::Umbrella;
    } else {
      // Gaussian guess of the probability: it decides about the cost, not about the answer.
      const double deviations = -event.depth(start.mean) / std::max(start.standard_deviation, 1e-300);
      method = deviations < 0.0 || 0.5 * std::erfc(deviations / std::sqrt(2.0)) > common ? Method::Direct
                                                                                         : Method::Tilt;
    }
  }

  std::optional<std::vector<Rung>> rungs;
  if (method == Method::Direct) rungs = {start};
  if (method == Method::Tilt) {
    rungs = event.depth(start.mean) > 0.0 ? std::optional(std::vector{start}) : pilot.tilts(start, event);
    if (!rungs && !named) method = Method::Umbrella;  // the mean jumps: the rate is not convex
  }
  if (method == Method::Umbrella) {
    const Rung &left = wells.front(), &right = wells.back();
    double from = left.mean - beyond_the_wells * left.standard_deviation;
    double to = right.mean + beyond_the_wells * right.standard_deviation;
    const double required = std::isfinite(event.lower) ? std::max(right.mean, event.lower) : right.mean;
    if (std::isfinite(event.lower)) to = std::max(to, event.lower);
    if (std::isfinite(event.upper)) from = std::min(from, event.upper);
    rungs = pilot.umbrellas(left, from, to, required,
                            std::min(left.standard_deviation, right.standard_deviation));
  }
  result.method = *method;
  result.moves = pilot.moves;
  if (!rungs)
    return failed(std::move(result), RunStatus::NotConverged, "no ladder of windows reaches the event");
  result = measured(std::move(result), model, particle_count, statistic, event, options, *rungs);
  result.seconds = seconds.value();
  return result;
}

}  // namespace

std::string_view name(Method method) {
  switch (method) {
    case Method::Direct:
      return "direct";
    case Method::Tilt:
      return "tilt";
    case Method::Umbrella:
      return "umbrella";
    case Method::Splitting:
      return "splitting";
  }
  return "";
}

TailProbability tail_probability(const Model& model, std::size_t particle_count, const Statistic& statistic,
                                 const Event& event, const Options& options) {
  return solved(model, particle_count, statistic, event, options, {});
}

TailProbability tail_probability(const Model& model, std::size_t particle_count, const Statistic& statistic,
                                 const Event& event, const Options& options, Method method) {
  return solved(model, particle_count, statistic, event, options, method);
}

}  // namespace rieszflow::rare_event
