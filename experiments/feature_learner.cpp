#include "experiments/feature_learner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/expects.hpp"
#include "summation/energy.hpp"

namespace rieszflow::learning {
namespace {

constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

/// Held-out rows and what is asked of them at a check.
struct Validation {
  const Dataset* fitted = nullptr;  ///< rows that the particles and the classifier learn from
  const Dataset* held = nullptr;
  std::unique_ptr<Alignment> alignment;  ///< on the held-out rows
  ClassifierOptions classifier;
};

/// What the classifiers of all penalties make of the held-out rows.
struct HeldOut {
  std::vector<double> losses;               ///< (penalty) log-loss with the sigmoid fitted to these rows
  std::vector<std::vector<double>> scores;  ///< (penalty), each (row, score)
  double smallest() const { return *std::min_element(losses.begin(), losses.end()); }
};

HeldOut held_out(const LearnerOptions& options, const Validation& validation,
                 std::span<const double> particles) {
  const FeatureMatrix features = feature_matrix(options.map, *validation.held, particles);
  HeldOut out;
  for (LinearClassifier& model :
       fit_each(feature_matrix(options.map, *validation.fitted, particles), validation.fitted->labels,
                validation.fitted->classes, validation.classifier)) {
    out.scores.push_back(scores(model, features));
    calibrate(model, out.scores.back(), validation.held->labels);
    out.losses.push_back(
        metrics(probabilities(model, out.scores.back()), validation.held->labels, validation.held->classes)
            .log_loss);
  }
  return out;
}

Alignment::Options alignment_options(const LearnerOptions& options, std::uint64_t seed) {
  return {.kind = options.alignment,
          .strength = options.strength,
          .ridge_penalty = options.ridge_penalty,
          .batch_rows = options.batch_rows,
          .seed = seed};
}

/// One run of the dynamics with its trace.
class Path {
 public:
  Path(const LearnerOptions& options, const Dataset& data, const std::vector<double>& start,
       std::uint64_t seed)
      : options_(options),
        seed_(seed),
        p_(particle_dimension(options.map, data.dimension)),
        alignment_(
            std::make_shared<Alignment>(options.map, labelled(data), alignment_options(options, seed))),
        lifted_(lift(options.map, data.points, data.dimension)),
        data_dimension_(data.dimension) {
    state_.ensemble = {1, start.size() / p_, p_, start};
    const Model model =
        learning_model(options, data_dimension_, options.inverse_temperatures.front(), alignment_);
    // The fixed law has tails beyond K; a particle out there starts on its wall.
    for (std::size_t i = 0; i < state_.ensemble.particle_count; ++i)
      project(model.domain, {state_.ensemble.positions.data() + i * p_, p_});
  }

  const std::vector<double>& particles() const { return state_.ensemble.positions; }
  double time() const { return state_.clock.time; }
  double acceptance() const { return acceptance_; }

  /// One check interval, or less to end at `until`.
  RunResult advance(double inverse_temperature, double until, const std::function<bool()>& interrupted) {
    const double progress = options_.end > 0.0 ? state_.clock.time / options_.end : 1.0;
    const double beta = inverse_temperature * std::pow(options_.annealing, 1.0 - progress);
    const Model model = learning_model(options_, data_dimension_, beta, alignment_);
    const particle::Options dynamics{
        .scheme = options_.scheme,
        .timestep = options_.timestep / (1.0 + options_.timestep_decay * state_.clock.time),
        .seed = seed_};
    const auto stop = [&](const Clock&) -> std::optional<RunStatus> {
      if (interrupted && interrupted()) return RunStatus::Interrupted;
      return std::nullopt;
    };
    const particle::Result result =
        particle::run(model, state_, dynamics, Schedule::at({state_.clock.time, until}), {}, stop);
    acceptance_ = result.statistics.acceptance();
    return result;
  }

  TracePoint trace_point(double inverse_temperature, const Validation* validation) const {
    TracePoint point;
    point.time = state_.clock.time;
    point.alignment = alignment_->value(particles());
    const Model model = learning_model(options_, data_dimension_, inverse_temperature, alignment_);
    const PairSum pair_sum(model, state_.ensemble.particle_count, {});
    double potential_energy = 0.0;
    energies(model, pair_sum, state_.ensemble, {&potential_energy, 1}, {&point.repulsion, 1});
    pair_sum.closest_pairs(state_.ensemble.positions, 1, {&point.minimum_distance, 1});
    point.hamiltonian = point.alignment + potential_energy + point.repulsion;
    point.effective_rank = effective_rank(options_.map, lifted_, particles());
    point.validation_alignment = validation ? validation->alignment->value(particles()) : not_known;
    point.validation_loss = not_known;
    return point;
  }

 private:
  const LearnerOptions& options_;
  std::uint64_t seed_;
  std::size_t p_;
  std::shared_ptr<const Alignment> alignment_;
  LiftedData lifted_;
  std::size_t data_dimension_;
  particle::State state_;
  double acceptance_ = 1.0;
};

/// Check times 0, check_every, 2 check_every, ..., end.
std::vector<double> check_times(const LearnerOptions& options) {
  return options.end > 0.0 ? Schedule::every(options.check_every, 0.0, options.end).times()
                           : std::vector<double>{0.0};
}

}  // namespace

std::string_view name(Criterion criterion) {
  switch (criterion) {
    case Criterion::ClassifierLoss:
      return "classifier_loss";
    case Criterion::Alignment:
      return "alignment";
    case Criterion::None:
      return "none";
  }
  return "";
}

LabelledData labelled(const Dataset& data) {
  LabelledData out;
  out.count = data.count();
  out.dimension = data.dimension;
  out.points = data.points;
  out.label_columns = data.classes == 2 ? 1 : data.classes;
  out.labels.reserve(out.count * out.label_columns);
  for (const int label : data.labels)
    for (std::size_t q = 0; q < out.label_columns; ++q)
      out.labels.push_back(label == (data.classes == 2 ? 1 : static_cast<int>(q)) ? 1.0 : -1.0);
  return out;
}

Model learning_model(const LearnerOptions& options, std::size_t data_dimension, double inverse_temperature,
                     std::shared_ptr<const Alignment> alignment) {
  const std::size_t p = particle_dimension(options.map, data_dimension);
  const double radius = options.radius > 0.0 ? options.radius : 4.0 + 2.0 * std::sqrt(static_cast<double>(p));
  Model model{.domain = Ball{std::vector<double>(p, 0.0), radius},
              .potentials = {},
              .interactions = {},
              .inverse_temperature = inverse_temperature,
              .functionals = {std::move(alignment)}};
  if (!options.ball) model.domain = Box{std::vector<double>(p, -radius), std::vector<double>(p, radius)};
  const double confining = options.confinement_inverse_temperature > 0.0
                               ? options.confinement_inverse_temperature
                               : inverse_temperature;
  if (options.confinement)
    model.potentials.emplace_back(QuadraticPotential{1.0 / confining, std::vector<double>(p, 0.0)});
  if (options.repulsion != 0.0) {
    if (options.repulsion_exponent == 0.0)
      model.interactions.push_back(LogarithmicInteraction{options.repulsion, options.repulsion_softening});
    else
      model.interactions.push_back(
          RieszInteraction{options.repulsion_exponent, options.repulsion, options.repulsion_softening});
  }
  return model;
}

FeatureMatrix feature_matrix(FeatureMap map, const Dataset& data, std::span<const double> particles,
                             std::span<const double> weights) {
  const auto lifted = lift(map, data.points, data.dimension);
  const std::size_t count = particles.size() / lifted.dimension, columns = count * component_count(map);
  FeatureMatrix out{data.count(), columns, std::vector<double>(data.count() * columns)};
  feature_values(map, lifted, particles, out.values);
  if (!weights.empty())
    for (std::size_t k = 0; k < out.values.size(); ++k) out.values[k] *= weights[k % count];
  return out;
}

LearnedFeatures move(const LearnerOptions& options, const Dataset& train, const std::vector<double>& start,
                     double inverse_temperature, double stop_time, std::uint64_t seed,
                     const std::function<bool()>& interrupted) {
  Path path(options, train, start, seed);
  LearnedFeatures out;
  out.inverse_temperature = inverse_temperature;
  out.stop_time = stop_time;
  for (const double time : check_times(options)) {
    if (time > stop_time) break;
    if (time > 0.0) {
      const RunResult result = path.advance(inverse_temperature, time, interrupted);
      if (result.status != RunStatus::Completed) {
        out.status = result.status;
        out.message = result.message;
        break;
      }
    }
    out.trace.push_back(path.trace_point(inverse_temperature, nullptr));
    out.snapshots.insert(out.snapshots.end(), path.particles().begin(), path.particles().end());
  }
  out.particles = path.particles();
  out.acceptance = path.acceptance();
  return out;
}

LearnedFeatures learn(const LearnerOptions& options, const ClassifierOptions& classifier,
                      const Dataset& train, const std::vector<double>& start, std::uint64_t seed,
                      const std::function<bool()>& interrupted) {
  expects(!options.inverse_temperatures.empty() && options.timestep > 0.0 && options.check_every > 0.0,
          "dynamics");
  const std::vector<double> times = check_times(options);
  const std::size_t temperatures = options.inverse_temperatures.size();
  if (options.criterion == Criterion::None)
    return move(options, train, start, options.inverse_temperatures.front(), times.back(), seed, interrupted);

  // Everything that is chosen together: (temperature, check time, penalty of the classifier).
  const std::size_t penalties = classifier.penalties.size(),
                    choices = temperatures * times.size() * penalties;
  std::vector<double> criteria(choices, 0.0), losses(choices, 0.0);
  std::vector<std::vector<double>> held_scores(choices);
  std::vector<int> held_labels;
  std::vector<std::vector<TracePoint>> first_traces(temperatures);
  for (std::size_t repeat = 0; repeat < options.validation_splits; ++repeat) {
    const auto parts =
        stratified_parts(train.labels, train.classes, options.validation_fraction, seed, 100 + repeat);
    const Dataset fitted = rows(train, parts.first), held = rows(train, parts.second);
    held_labels.insert(held_labels.end(), held.labels.begin(), held.labels.end());
    Alignment::Options exact = alignment_options(options, seed);
    exact.batch_rows = 0;
    const Validation validation{&fitted, &held,
                                std::make_unique<Alignment>(options.map, labelled(held), exact), classifier};
    for (std::size_t temperature = 0; temperature < temperatures; ++temperature) {
      const double beta = options.inverse_temperatures[temperature];
      Path path(options, fitted, start, seed);
      RunStatus status = RunStatus::Completed;
      for (std::size_t check = 0; check < times.size(); ++check) {
        const std::size_t first = (temperature * times.size() + check) * penalties;
        if (check > 0 && status == RunStatus::Completed) {
          const RunResult result = path.advance(beta, times[check], interrupted);
          status = result.status;
          if (status == RunStatus::Interrupted) return {.status = status, .message = result.message};
        }
        if (status != RunStatus::Completed) {  // this path ends here: what comes later cannot be chosen
          std::fill_n(criteria.begin() + static_cast<std::ptrdiff_t>(first), penalties,
                      std::numeric_limits<double>::infinity());
          continue;
        }
        TracePoint point = path.trace_point(beta, &validation);
        const HeldOut found = held_out(options, validation, path.particles());
        point.validation_loss = found.smallest();
        if (repeat == 0) first_traces[temperature].push_back(point);
        for (std::size_t penalty = 0; penalty < penalties; ++penalty) {
          const std::size_t choice = first + penalty;
          losses[choice] += found.losses[penalty];
          criteria[choice] +=
              options.criterion == Criterion::Alignment ? point.validation_alignment : found.losses[penalty];
          held_scores[choice].insert(held_scores[choice].end(), found.scores[penalty].begin(),
                                     found.scores[penalty].end());
        }
      }
    }
  }
  // Time 0 is the same for every temperature, and ties go to the earliest: nothing is moved without a reason.
  // The alignment does not see the penalty; the classifier's loss decides between its equals.
  std::size_t best = 0;
  for (std::size_t k = 0; k < choices; ++k)
    if (std::pair(criteria[k], losses[k]) < std::pair(criteria[best], losses[best])) best = k;
  const std::size_t check = best / penalties % times.size(), temperature = best / penalties / times.size();
  LearnedFeatures out =
      move(options, train, start, options.inverse_temperatures[temperature], times[check], seed, interrupted);
  out.validation_trace = first_traces[temperature];
  out.penalty = {classifier.penalties[best % penalties]};
  out.held_out_scores = held_scores[best];
  out.held_out_labels = held_labels;
  return out;
}

LinearClassifier classifier_on(const LearnedFeatures& learned, const FeatureMatrix& features,
                               std::span<const int> labels, std::size_t classes,
                               const ClassifierOptions& options) {
  ClassifierOptions chosen = options;
  if (!learned.penalty.empty()) chosen.penalties = learned.penalty;
  LinearClassifier classifier = fit(features, labels, classes, chosen);
  if (!learned.held_out_labels.empty())
    calibrate(classifier, learned.held_out_scores, learned.held_out_labels);
  return classifier;
}

}  // namespace rieszflow::learning
