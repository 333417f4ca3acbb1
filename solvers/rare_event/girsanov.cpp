#include "solvers/rare_event/girsanov.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/expects.hpp"
#include "core/noise.hpp"
#include "solvers/rare_event/replicates.hpp"
#include "solvers/rare_event/reweighting.hpp"
#include "summation/pair_sum.hpp"

namespace rieszflow::rare_event {
namespace {

constexpr double elite = 0.1;
constexpr int most_rounds = 60;
constexpr double common = 0.3;  ///< share of controlled paths in the event at which learning ends
constexpr int polishing_rounds = 3;

/// One path and what learning needs of it.
struct Path {
  double depth = 0.0;
  double log_weight = 0.0;
  std::vector<double> pull;  ///< (interval) sum over steps and particles of grad f . (increment of the noise,
                             ///< control included)
  std::vector<double> square;  ///< (interval) sum of |grad f|^2 h
  bool finite = true;
};

class Simulator {
 public:
  Simulator(const Model& model, std::span<const double> start, const SmoothStatistic& statistic,
            const Event& event, const PathOptions& options)
      : model_(model),
        start_(start),
        statistic_(statistic),
        event_(event),
        options_(options),
        dimension_(dimension(model.domain)),
        count_(start.size() / dimension_),
        steps_(static_cast<std::size_t>(std::max(1.0, std::ceil(options.end / options.timestep - 1e-9)))) {}

  Path path(const PairSum& pairs, const std::vector<double>& control, std::uint64_t stream) const {
    const double h = options_.end / static_cast<double>(steps_), beta = model_.inverse_temperature;
    const double sigma = std::sqrt(2.0 * h / beta);
    const NoiseStream noise(options_.seed, NoisePurpose::PathIncrement);
    Path path{.pull = std::vector<double>(control.size(), 0.0),
              .square = std::vector<double>(control.size(), 0.0)};
    std::vector<double> x(start_.begin(), start_.end()), forces(x.size()), xi(x.size()), gradient(dimension_);
    for (std::size_t step = 0; step < steps_; ++step) {
      const std::size_t interval = step * control.size() / steps_;
      std::fill(forces.begin(), forces.end(), 0.0);
      if (!model_.interactions.empty()) pairs.add_forces(x, 1, forces);
      for (const auto& functional : model_.functionals) functional->add_forces(x, count_, 0, step, forces);
      noise.gaussian_block(stream, step, count_, dimension_, xi);
      for (std::size_t i = 0; i < count_; ++i) {
        const std::span<double> own(x.data() + i * dimension_, dimension_),
            force(forces.data() + i * dimension_, dimension_);
        add_potential_force(model_, own, force);
        statistic_.gradient(own, gradient);
        for (std::size_t k = 0; k < dimension_; ++k) {
          const double u = control[interval] * gradient[k], theta = u * h / sigma, z = xi[i * dimension_ + k];
          path.log_weight -= theta * z + 0.5 * theta * theta;
          path.pull[interval] += gradient[k] * (u * h + sigma * z);
          path.square[interval] += gradient[k] * gradient[k] * h;
          own[k] += h * (force[k] + u) + sigma * z;
        }
        reflect(model_.domain, own);
      }
    }
    path.depth = event_.depth(value(statistic_.statistic, x, count_));
    path.finite = std::isfinite(path.depth) && std::isfinite(path.log_weight);
    return path;
  }

  std::vector<Path> paths(const std::vector<double>& control, std::size_t number, std::uint64_t first) const {
    std::vector<Path> result(number);
#pragma omp parallel num_threads(options_.threads)
    {
      const PairSum pairs(model_, count_, {.method = PairSum::Method::Direct, .threads = 1});
#pragma omp for schedule(static)
      for (std::size_t p = 0; p < number; ++p) result[p] = path(pairs, control, first + p);
    }
    return result;
  }

 private:
  const Model& model_;
  std::span<const double> start_;
  const SmoothStatistic& statistic_;
  const Event& event_;
  const PathOptions& options_;
  std::size_t dimension_, count_, steps_;
};

}  // namespace

PathProbability path_probability(const Model& model, std::span<const double> start,
                                 const SmoothStatistic& statistic, const Event& event,
                                 const PathOptions& options) {
  expects(statistic.statistic.kind == Statistic::Kind::Mean, "a linear statistic");
  expects(
      options.intervals > 0 && options.paths > 1 && options.replicates > 1 && options.learning_paths >= 20,
      "paths to sample");
  expects(!start.empty() && start.size() % dimension(model.domain) == 0, "start: (particle, dimension)");
  PathProbability result;
  const auto failed = [&](RunStatus status, std::string message) {
    result.status = status;
    result.message = std::move(message);
    result.log_probability = result.standard_error = std::numeric_limits<double>::quiet_NaN();
    return result;
  };
  const Simulator simulator(model, start, statistic, event, options);
  std::vector<double> control(options.intervals, 0.0);
  std::uint64_t stream = 0;
  int polished = 0;
  for (; result.rounds < most_rounds && polished < polishing_rounds; ++result.rounds) {
    const std::vector<Path> paths = simulator.paths(control, options.learning_paths, stream);
    stream += options.learning_paths;
    if (!std::all_of(paths.begin(), paths.end(), [](const Path& p) { return p.finite; })) {
      return failed(RunStatus::NotFinite, "a path is not finite: the timestep is too large");
    }
    std::vector<double> depths;
    for (const Path& path : paths) depths.push_back(path.depth);
    const auto rank = static_cast<std::ptrdiff_t>((1.0 - elite) * static_cast<double>(depths.size()));
    std::nth_element(depths.begin(), depths.begin() + rank, depths.end());
    const double level = std::min(0.0, depths[static_cast<std::size_t>(rank)]);
    double inside = 0.0, largest = -std::numeric_limits<double>::infinity();
    for (const Path& path : paths) {
      inside += path.depth > 0.0 ? 1.0 / static_cast<double>(paths.size()) : 0.0;
      if (path.depth >= level) largest = std::max(largest, path.log_weight);
    }
    if (inside > common) ++polished;
    for (std::size_t k = 0; k < control.size(); ++k) {
      double pull = 0.0, square = 0.0;
      for (const Path& path : paths) {
        if (path.depth < level) continue;
        const double weight = std::exp(path.log_weight - largest);
        pull += weight * path.pull[k];
        square += weight * path.square[k];
      }
      if (square > 0.0) control[k] = pull / square;
    }
    if (options.interrupted && options.interrupted()) return failed(RunStatus::Interrupted, "interrupted");
  }
  result.control = control;
  if (polished == 0)
    return failed(RunStatus::NotConverged,
                  "no control along the gradient of the statistic reaches the event");

  double second = 0.0, first = 0.0;
  for (std::size_t r = 0; r < options.replicates; ++r) {
    const std::vector<Path> paths = simulator.paths(control, options.paths, (1ULL << 40) + r * options.paths);
    std::vector<double> weights;
    for (const Path& path : paths) {
      if (!path.finite)
        return failed(RunStatus::NotFinite, "a path is not finite: the timestep is too large");
      if (path.depth > 0.0) weights.push_back(path.log_weight);
    }
    result.replicate_values.push_back(log_sum_exp(weights) - std::log(static_cast<double>(options.paths)));
    if (options.interrupted && options.interrupted()) return failed(RunStatus::Interrupted, "interrupted");
    const double reference = result.replicate_values.front();
    for (const double weight : weights) {
      const double relative =
          std::exp(weight - reference) / static_cast<double>(options.paths * options.replicates);
      first += relative;
      second += relative * std::exp(weight - reference);
    }
  }
  const LogMean mean = log_mean(result.replicate_values);
  if (!std::isfinite(mean.value)) return failed(RunStatus::NotConverged, "no path lies inside the event");
  result.log_probability = mean.value;
  result.standard_error = mean.standard_error;
  result.relative_variance = second / (first * first) - 1.0;
  return result;
}

}  // namespace rieszflow::rare_event
