#include "solvers/rare_event/tail_probability.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <functional>
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
constexpr int most_halvings = 4;          ///< of the step to the next rung
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

  /// Of the time that a short chain at bias zero spends in the event.
  double fraction_inside(const Rung& start, const Event& event) {
    GibbsChain chain = this->chain(4);
    chain.set_step(start.step);
    chain.assign(start.positions);
    chain.set_proposal(start.proposal);
    std::int64_t inside = 0;
    for (std::int64_t s = 0; s < sweeps_; ++s) {
      chain.sweep();
      inside += event.contains(chain.statistic_value()) ? 1 : 0;
    }
    moves += chain.moves();
    return static_cast<double>(inside) / static_cast<double>(sweeps_);
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
      tilt = nearby(chain, rungs, tilt, sign * options_.spacing / (static_cast<double>(count_) * deviation),
                    [](double t) { return Bias{.tilt = t}; });
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
      double center = from, step = 0.0;
      bool concave = false;
      while (rungs.size() < most_rungs) {
        center = nearby(chain, rungs, center, step,
                        [&](double c) { return Bias{.stiffness = stiffness, .center = c}; });
        const Rung& last = rungs.back();
        // N Var = 1 / (k + I''), so that k N Var = 1 where the rate is flat and grows where it is concave.
        const double response = stiffness * n * last.standard_deviation * last.standard_deviation;
        if (!(response > 0.0) || !std::isfinite(response)) return {};
        concave = response > 3.0;
        if (concave || last.mean > to || center > to + (to - from)) break;
        step = options_.spacing * last.standard_deviation / response;
      }
      if (!concave) return rungs.back().mean > required ? std::optional(std::move(rungs)) : std::nullopt;
    }
    return {};
  }

 private:
  /// Appends the rung of parameter + step, or of less where its mean is too far from the last for their
  /// samples to overlap: the deviation there tells little about a law of another shape. Returns its
  /// parameter.
  double nearby(GibbsChain& chain, std::vector<Rung>& rungs, double parameter, double step,
                const std::function<Bias(double)>& bias_of) {
    for (int halvings = 0;; ++halvings, step *= 0.5) {
      chain.bias = bias_of(parameter + step);
      Rung rung = settled(chain);
      if (!rungs.empty()) {
        const Rung& last = rungs.back();
        const auto [narrow, wide] = std::minmax(rung.standard_deviation, last.standard_deviation);
        const double far = 1.5 * options_.spacing * std::max(narrow, 0.3 * wide);
        if (std::abs(rung.mean - last.mean) > far && halvings < most_halvings) {
          chain.assign(last.positions);
          chain.set_proposal(last.proposal);
          continue;
        }
      }
      rungs.push_back(std::move(rung));
      return parameter + step;
    }
  }

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

constexpr std::size_t most_samples = 60'000'000;  ///< of all windows and replicates: half a gigabyte

/// How many replicates there must be: none more once the standard error has reached its target. What the
/// present ones scatter tells how many more, four times as many at most.
std::size_t replicates_wanted(const Options& options, std::size_t done, double standard_error,
                              std::size_t most) {
  if (done == 0) return options.replicates;
  if (!(options.target_error > 0.0) || standard_error <= options.target_error) return done;
  const double factor = std::clamp(std::pow(standard_error / options.target_error, 2), 1.1, 4.0);
  const auto wanted = static_cast<std::size_t>(std::ceil(factor * static_cast<double>(done)));
  return std::max(done, std::min(wanted, most));
}

/// Samples every rung and reweights: one rung at bias zero is the direct method.
TailProbability measured(TailProbability result, const Model& model, std::size_t particle_count,
                         const Statistic& statistic, const Event& event, const Options& options,
                         std::span<const Rung> rungs) {
  const auto chain_of = [&](std::uint64_t stream) {
    return GibbsChain(model, particle_count, &statistic, options.seed, stream);
  };
  const double n = static_cast<double>(particle_count);
  const auto inside = [&](double g) { return event.contains(g); };
  std::vector<BiasedSamples> pool(rungs.size());
  std::vector<double> start(rungs.size(), 0.0);
  for (const Rung& rung : rungs)
    result.windows.push_back({.bias = rung.bias, .step = rung.step, .series = {}});
  const std::size_t most = std::min(options.most_replicates,
                                    most_samples / (rungs.size() * static_cast<std::size_t>(options.sweeps)));
  for (std::size_t done = 0, wanted = options.replicates; done < wanted;
       wanted = replicates_wanted(options, done, result.standard_error, most)) {
    LadderSamples samples = sample(rungs, chain_of, observed_statistic,
                                   {.first_replicate = done,
                                    .replicates = wanted - done,
                                    .sweeps = options.sweeps,
                                    .threads = options.threads,
                                    .ranks = options.ranks,
                                    .interrupted = options.interrupted});
    result.moves += samples.moves;
    if (samples.interrupted) return failed(std::move(result), RunStatus::Interrupted, "interrupted");
    if (!samples.finite)
      return failed(std::move(result), RunStatus::NotFinite, "a chain reached an infinite energy");
    const std::vector<Reweighting> weights = reweight(samples, n, options.threads);
    for (std::size_t k = 0; k < rungs.size() && done == 0; ++k)
      result.windows[k].series = samples.samples[0][k].values;
    for (std::size_t r = 0; r < weights.size(); ++r) {
      if (weights[r].status != RunStatus::Completed)
        return failed(std::move(result), weights[r].status, weights[r].message);
      result.replicate_values.push_back(log_probability(weights[r], samples.samples[r], inside));
      result.effective_samples += effective_sample_size(weights[r], samples.samples[r], inside);
      for (const double overlap : weights[r].overlaps)
        result.least_overlap = std::min(result.least_overlap, overlap);
    }
    for (std::size_t k = 0; k < rungs.size(); ++k) {
      Window& window = result.windows[k];
      window.acceptance += (samples.acceptances[k] - window.acceptance) * static_cast<double>(wanted - done) /
                           static_cast<double>(wanted);
    }
    for (std::size_t r = 0; r < weights.size(); ++r) {
      for (std::size_t k = 0; k < rungs.size(); ++k) {
        const BiasedSamples& own = samples.samples[r][k];
        pool[k].bias = own.bias;
        pool[k].values.insert(pool[k].values.end(), own.values.begin(), own.values.end());
        start[k] += weights[r].free_energies[k];
      }
    }
    done = wanted;
    const LogMean mean = log_mean(result.replicate_values);
    if (!std::isfinite(mean.value))
      return failed(std::move(result), RunStatus::NotConverged, "no sample lies inside the event");
    result.standard_error = mean.standard_error;
  }
  // The replicates tell the error, all their samples together the value: a ratio of one replicate is biased
  // by half of its variance, that of R replicates by 1/R of it.
  for (double& f : start) f /= static_cast<double>(result.replicate_values.size());
  const Reweighting all = reweight(pool, n, start);
  if (all.status != RunStatus::Completed) return failed(std::move(result), all.status, all.message);
  result.log_probability = log_probability(all, pool, inside);
  for (Window& window : result.windows) {
    const double count = static_cast<double>(window.series.size());
    for (const double g : window.series) window.mean += g / count;
    for (const double g : window.series)
      window.standard_deviation += (g - window.mean) * (g - window.mean) / count;
    window.standard_deviation = std::sqrt(window.standard_deviation);
  }
  return result;
}

TailProbability by_splitting(TailProbability result, const Model& model, std::size_t particle_count,
                             const Statistic& statistic, const Event& event, const Options& options) {
  Window window;
  for (std::size_t done = 0, wanted = options.replicates; done < wanted;
       wanted = replicates_wanted(options, done, result.standard_error, options.most_replicates)) {
    std::vector<SplittingResult> runs(wanted - done);
#pragma omp parallel for schedule(dynamic) num_threads(options.threads)
    for (std::size_t r = 0; r < runs.size(); ++r) {
      runs[r] = split(model, particle_count, statistic, event,
                      {.walkers = options.walkers,
                       .mutation_sweeps = options.mutation_sweeps,
                       .seed = options.seed,
                       .stream = static_cast<std::uint64_t>(done + r + 1) << 32,
                       .interrupted = options.interrupted});
    }
    for (const SplittingResult& run : runs) {
      result.moves += run.moves;
      if (run.status != RunStatus::Completed) return failed(std::move(result), run.status, run.message);
      result.replicate_values.push_back(run.log_probability);
      window.acceptance += run.acceptance;
    }
    done = wanted;
    // Each replicate's P is unbiased, but for |log P| >> walkers its law is log-normal and a mean of few is
    // the largest of them. The mean of the logarithms has a bias of -variance/2, which is added back; both
    // agree when the scatter is small.
    double mean = 0.0, squares = 0.0;
    const double count = static_cast<double>(done);
    for (const double value : result.replicate_values) mean += value / count;
    for (const double value : result.replicate_values) squares += (value - mean) * (value - mean);
    const double variance = done > 1 ? squares / (count - 1.0) : std::numeric_limits<double>::quiet_NaN();
    result.log_probability = done > 1 ? mean + 0.5 * variance : mean;
    result.standard_error = std::sqrt(variance / count);
    result.effective_samples = count / variance;
  }
  window.acceptance /= static_cast<double>(result.replicate_values.size());
  result.windows = {window};
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

struct Cost {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::clock_t cpu_start = std::clock();
  void write(TailProbability& result) const {
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  }
};

/// `method` empty: choose.
TailProbability solved(const Model& model, std::size_t particle_count, const Statistic& statistic,
                       const Event& event, const Options& options, std::optional<Method> method) {
  expects(options.replicates >= 1 && options.sweeps >= 1 && options.threads >= 1, "something to do");
  expects(event.lower < event.upper, "an event that is not empty");
  const Cost cost;
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
    cost.write(result);
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
    // A first look at the probability decides about the cost, not about the answer.
    const bool often = pilot.fraction_inside(start, event) > common;
    const bool two_sided = std::isfinite(event.lower) && std::isfinite(event.upper);
    method = several_wells ? Method::Umbrella
             : often       ? Method::Direct
             : two_sided   ? Method::Umbrella
                           : Method::Tilt;
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
  cost.write(result);
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
