#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/classification.hpp"
#include "experiments/learning_data.hpp"
#include "model/alignment.hpp"
#include "model/model.hpp"
#include "solvers/particle/langevin.hpp"

/// Random features that move: the particles of theory.md (11) under the Langevin dynamics (2), started from
/// the fixed feature law and stopped by held-out data.
namespace rieszflow::learning {

/// What a stopping time and an inverse temperature are chosen by, on training rows that were held out.
enum class Criterion {
  ClassifierLoss,  ///< log-loss of the classifier on the features, its penalty and sigmoid chosen there too
  Alignment,       ///< the functional A itself on the held-out rows
  None,            ///< no choice: the last time of the first temperature
};

std::string_view name(Criterion criterion);

/// The model
///
///     H_N = strength A(mu_N) + (1/N) sum_i |omega_i|^2 / (2 beta) + repulsion W_{N,s}
///
/// with W_{N,s} of theory.md (11). The confinement makes N(0, I), the law of the fixed features in the units
/// used here (inputs divided by the length scale), the Gibbs measure of A = 0, repulsion = 0: beta weighs the
/// data against the relative entropy to that law. For fourier_phase it acts on the phase too.
struct LearnerOptions {
  FeatureMap map = FeatureMap::FourierPhase;
  AlignmentKind alignment = AlignmentKind::RidgeLoss;
  double strength = 1.0;
  double ridge_penalty = 1e-3;
  std::vector<double> inverse_temperatures{100.0};  ///< candidates; infinity: no noise
  bool confinement = true;
  double confinement_inverse_temperature = 0.0;  ///< beta of the confinement; 0: that of the noise
  double repulsion = 0.0;                        ///< lambda
  double repulsion_exponent = 0.0;               ///< s, any s < dimension; 0: the logarithm
  double repulsion_softening = 0.1;              ///< length; > 0 in the projected scheme
  bool ball = true;                              ///< K: ball, else cube
  double radius = 0.0;                           ///< of K (cube: half its side); 0: 4 + 2 sqrt(p)
  particle::Scheme scheme = particle::Scheme::Reflected;
  double timestep = 0.25;
  double timestep_decay = 0.0;  ///< step = timestep / (1 + timestep_decay t), for mini-batches
  double annealing = 1.0;       ///< beta(t) rises geometrically from annealing * beta at 0 to beta at the end
  double end = 100.0;           ///< time
  double check_every = 10.0;    ///< interval of the checks, of the trace, and of changes of step and beta
  std::size_t batch_rows = 0;   ///< 0: full batch
  Criterion criterion = Criterion::ClassifierLoss;
  double validation_fraction = 0.25;
  std::size_t validation_splits = 2;  ///< random ones, whose criteria are averaged
};

/// The state of a run at one check.
struct TracePoint {
  double time = 0.0;
  double hamiltonian = 0.0;           ///< H_N on the data that the particles learn from
  double alignment = 0.0;             ///< A on the same
  double repulsion = 0.0;             ///< repulsion * W_{N,s}
  double effective_rank = 0.0;        ///< of the feature Gram matrix, <= number of features
  double minimum_distance = 0.0;      ///< of two particles
  double validation_alignment = 0.0;  ///< A on held-out rows; NaN in the final run, which holds none out
  double validation_loss = 0.0;       ///< log-loss of the classifier on held-out rows; NaN as above
};

struct LearnedFeatures {
  RunStatus status = RunStatus::Completed;
  std::string message;
  std::vector<double> particles{};             ///< (particle, p)
  double inverse_temperature = 0.0;            ///< chosen
  double stop_time = 0.0;                      ///< chosen; 0: the fixed features were kept
  std::vector<TracePoint> trace{};             ///< of the final run, on all training rows
  std::vector<TracePoint> validation_trace{};  ///< of the first validation split at the chosen temperature
  std::vector<double> snapshots{};             ///< (trace point, particle, p)
  double acceptance = 1.0;                     ///< of MALA
  /// Penalty of the classifier chosen on the held-out rows, and its scores there with their labels, from
  /// which its sigmoid is fitted: the training rows shaped the features, so they cannot judge them. Empty
  /// without validation.
  std::vector<double> penalty{};          ///< one or none
  std::vector<double> held_out_scores{};  ///< (held-out row, score)
  std::vector<int> held_out_labels{};     ///< (held-out row)
};

/// Labels of the alignment: +-1 for two classes, else one-vs-rest +-1 columns.
LabelledData labelled(const Dataset& data);

/// The model of the particles for this data; `inverse_temperature` of noise and confinement.
Model learning_model(const LearnerOptions& options, std::size_t data_dimension, double inverse_temperature,
                     std::shared_ptr<const Alignment> alignment);

/// phi of all rows: what classifiers see. weights (particle) multiply the features; empty: none.
FeatureMatrix feature_matrix(FeatureMap map, const Dataset& data, std::span<const double> particles,
                             std::span<const double> weights = {});

/// Moves `start` (particle, p). Early stopping: on each of validation_splits random splits of the training
/// rows the run is repeated for each inverse temperature; the pair (temperature, check time) of the smallest
/// mean criterion is taken, time 0 included, and the final run on all training rows goes to that time. A run
/// whose mathematics fails (not finite) is never chosen. `interrupted` is asked at every step.
LearnedFeatures learn(const LearnerOptions& options, const ClassifierOptions& classifier,
                      const Dataset& train, const std::vector<double>& start, std::uint64_t seed,
                      const std::function<bool()>& interrupted);

/// The classifier on learned features: penalty and sigmoid from the held-out rows where there were any.
LinearClassifier classifier_on(const LearnedFeatures& learned, const FeatureMatrix& features,
                               std::span<const int> labels, std::size_t classes,
                               const ClassifierOptions& options);

/// The final run alone: to `stop_time` at one inverse temperature.
LearnedFeatures move(const LearnerOptions& options, const Dataset& train, const std::vector<double>& start,
                     double inverse_temperature, double stop_time, std::uint64_t seed,
                     const std::function<bool()>& interrupted);

}  // namespace rieszflow::learning
