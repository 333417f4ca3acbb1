#include "experiments/kernel_learning.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "analysis/estimate.hpp"
#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow::learning {
namespace {

using SteadyClock = std::chrono::steady_clock;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::array all_methods{Method::Fixed,
                                 Method::Orthogonal,
                                 Method::FixedTuned,
                                 Method::ImportanceAlignment,
                                 Method::Learned,
                                 Method::LearnedNoRepulsion,
                                 Method::LearnedNoNoise,
                                 Method::GradientDescent,
                                 Method::ImportanceLeverage,
                                 Method::NormMatched,
                                 Method::ShuffledLabels,
                                 Method::KernelRidge};

// Replica numbers of independent draws of the reference law at one seed.
enum Replica : std::uint64_t { FixedDraw = 0, PoolDraw = 1, DirectionDraw = 2 };
// Repeats of the data split at one seed; learn() uses those from 100 on.
constexpr std::uint64_t tuning_repeat = 50;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

void divide_inputs(Dataset& data, double scale) {
  for (double& value : data.points) value /= scale;
}

/// Features of a classifier: particles, and weights where they are not all one.
struct FeatureSet {
  std::vector<double> particles;
  std::vector<double> weights{};  ///< (particle) factor of each feature, or empty
  double input_scale = 1.0;       ///< inputs are divided by this before the map
};

/// Everything that the methods share on one split.
class Bench {
 public:
  Bench(const Question& question, const Split& split, std::size_t features, std::uint64_t seed,
        const std::function<bool()>& interrupted)
      : question_(question),
        train_(split.train),
        test_(split.test),
        features_(features),
        seed_(seed),
        interrupted_(interrupted),
        fixed_(reference_particles(question.learner.map, features, split.train.dimension, 1.0, false, seed,
                                   FixedDraw)) {}

  Trained train(Method method) {
    const auto start = SteadyClock::now();
    Trained out;
    out.row.method = method;
    out.row.status = "completed";
    if (method == Method::KernelRidge) {
      exact_kernel(out, start);
      return out;
    }
    FeatureSet set;
    switch (method) {
      case Method::Fixed:
        set.particles = fixed_;
        break;
      case Method::Orthogonal:
        set.particles = reference_particles(question_.learner.map, features_, train_.dimension, 1.0, true,
                                            seed_, FixedDraw);
        break;
      case Method::FixedTuned:
        set = tuned();
        break;
      case Method::ImportanceAlignment:
        set = importance_by_alignment();
        break;
      case Method::ImportanceLeverage:
        set = importance_by_leverage();
        break;
      case Method::Learned:
        learn_with(question_.learner, out);
        break;
      case Method::LearnedNoRepulsion: {
        LearnerOptions options = question_.learner;
        options.repulsion = 0.0;
        learn_with(options, out);
        break;
      }
      case Method::LearnedNoNoise: {
        LearnerOptions options = question_.learner;
        options.confinement_inverse_temperature = options.inverse_temperatures.front();
        options.inverse_temperatures = {std::numeric_limits<double>::infinity()};
        if (options.scheme == particle::Scheme::Mala) options.scheme = particle::Scheme::Reflected;
        learn_with(options, out);
        break;
      }
      case Method::GradientDescent: {
        LearnerOptions options = question_.learner;
        options.confinement = false;
        options.repulsion = 0.0;
        options.inverse_temperatures = {std::numeric_limits<double>::infinity()};
        if (options.scheme == particle::Scheme::Mala) options.scheme = particle::Scheme::Reflected;
        learn_with(options, out);
        break;
      }
      case Method::NormMatched:
        set.particles = norm_matched();
        break;
      case Method::ShuffledLabels: {
        const LearnedFeatures& model = learned();
        LearnedFeatures moved = move(question_.learner, shuffled(), fixed_, model.inverse_temperature,
                                     model.stop_time, seed_, interrupted_);
        out.learned = std::move(moved);
        break;
      }
      case Method::KernelRidge:
        break;
    }
    if (out.learned) {
      set.particles = out.learned->particles;
      out.row.stop_time = out.learned->stop_time;
      out.row.inverse_temperature = out.learned->inverse_temperature;
      if (out.learned->status != RunStatus::Completed)
        out.row.status = std::string(name(out.learned->status));
      if (method == Method::Learned) learned_ = out.learned;
    }
    evaluate(set, out, start);
    return out;
  }

 private:
  const Question& question_;
  Dataset train_;
  Dataset test_;
  std::size_t features_;
  std::uint64_t seed_;
  const std::function<bool()>& interrupted_;
  std::vector<double> fixed_;
  std::optional<LearnedFeatures> learned_;

  FeatureMap map() const { return question_.learner.map; }

  static Dataset scaled(Dataset data, double scale) {
    if (scale != 1.0) divide_inputs(data, scale);
    return data;
  }

  void evaluate(const FeatureSet& set, Trained& out, SteadyClock::time_point start) const {
    out.particles = set.particles;
    out.row.features = features_;
    if (out.row.status != "completed") {  // the mathematics failed: no classifier, no numbers
      out.row.train_seconds = seconds_since(start);
      return;
    }
    const Dataset train = scaled(train_, set.input_scale), test = scaled(test_, set.input_scale);
    const FeatureMatrix features = feature_matrix(map(), train, set.particles, set.weights);
    const LinearClassifier classifier =
        out.learned ? classifier_on(*out.learned, features, train.labels, train.classes, question_.classifier)
                    : fit(features, train.labels, train.classes, question_.classifier);
    out.row.train_seconds = seconds_since(start);
    const auto begin = SteadyClock::now();
    out.probabilities = probabilities(classifier, feature_matrix(map(), test, set.particles, set.weights));
    out.row.inference_seconds = seconds_since(begin);
    out.row.metrics = metrics(out.probabilities, test.labels, test.classes, question_.calibration_bins);
    out.row.test_rows = test.count();
    if (set.weights.empty())
      out.row.effective_rank =
          effective_rank(map(), lift(map(), train.points, train.dimension), set.particles);
  }

  void learn_with(const LearnerOptions& options, Trained& out) const {
    out.learned = learn(options, question_.classifier, train_, fixed_, seed_, interrupted_);
  }

  /// The learned features that the controls compare with; learned here when the method was not asked for.
  const LearnedFeatures& learned() {
    if (!learned_)
      learned_ = learn(question_.learner, question_.classifier, train_, fixed_, seed_, interrupted_);
    return *learned_;
  }

  /// Held-out log-loss of a feature set, mean over the learner's number of validation splits.
  double held_out_loss(const FeatureSet& set) const {
    double loss = 0.0;
    for (std::size_t repeat = 0; repeat < question_.learner.validation_splits; ++repeat) {
      const auto parts =
          stratified_parts(train_.labels, train_.classes, question_.learner.validation_fraction, seed_,
                           tuning_repeat + repeat);
      const Dataset fitted = scaled(rows(train_, parts.first), set.input_scale),
                    held = scaled(rows(train_, parts.second), set.input_scale);
      const auto model = fit(feature_matrix(map(), fitted, set.particles, set.weights), fitted.labels,
                             fitted.classes, question_.classifier);
      loss += metrics(probabilities(model, feature_matrix(map(), held, set.particles, set.weights)),
                      held.labels, held.classes)
                  .log_loss;
    }
    return loss;
  }

  FeatureSet best_of(std::vector<FeatureSet> candidates) const {
    std::size_t best = 0;
    double lowest = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      const double loss = held_out_loss(candidates[k]);
      if (loss < lowest) {
        lowest = loss;
        best = k;
      }
    }
    return std::move(candidates[best]);
  }

  FeatureSet tuned() const {
    std::vector<FeatureSet> candidates;
    for (const double factor : {1.0, 0.25, 0.5, 2.0, 4.0}) candidates.push_back({fixed_, {}, factor});
    return best_of(std::move(candidates));
  }

  std::vector<double> pool() const {
    return reference_particles(map(), question_.pool_factor * features_, train_.dimension, 1.0, false, seed_,
                               PoolDraw);
  }

  /// `features_` different members of the pool, drawn one after another with the given probabilities: the
  /// largest keys log(uniform) / q. Source: Efraimidis and Spirakis, Inf. Process. Lett. 97 (2006) 181.
  std::vector<std::size_t> draw(const std::vector<double>& probability) const {
    std::vector<double> keys(probability.size());
    NoiseStream(seed_, NoisePurpose::Bootstrap).uniforms(0, 0, 0, keys);
    for (std::size_t k = 0; k < keys.size(); ++k)
      keys[k] = probability[k] > 0.0 ? std::log(keys[k]) / probability[k]
                                     : -std::numeric_limits<double>::infinity();
    std::vector<std::size_t> order(keys.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return keys[a] > keys[b]; });
    order.resize(features_);
    return order;
  }

  std::vector<double> chosen(const std::vector<double>& pool, const std::vector<std::size_t>& members) const {
    const std::size_t p = pool.size() / (question_.pool_factor * features_);
    std::vector<double> out;
    for (const std::size_t member : members)
      out.insert(out.end(), pool.begin() + static_cast<std::ptrdiff_t>(member * p),
                 pool.begin() + static_cast<std::ptrdiff_t>((member + 1) * p));
    return out;
  }

  /// Maximal linear alignment sum_k q_k |E y phi_k|^2 over a chi-square ball around the uniform law of the
  /// pool: q_k proportional to max(0, v_k - threshold), the radius given by the effective number 1 / sum q^2.
  /// The radius is chosen on held-out rows. Source: Sinha and Duchi, NIPS 2016, eq. (4) and algorithm 1.
  FeatureSet importance_by_alignment() const {
    const std::vector<double> candidates = pool();
    const std::size_t count = question_.pool_factor * features_, components = component_count(map());
    const LabelledData labels = labelled(train_);
    const auto lifted = lift(map(), train_.points, train_.dimension);
    std::vector<double> values(count, 0.0), moments(count * components),
        derivatives(moments.size() * lifted.dimension);
    if (couples_particles(map())) {  // couples its particles: by the features of the whole pool
      const FeatureMatrix features = feature_matrix(map(), train_, candidates);
      for (std::size_t q = 0; q < labels.label_columns; ++q)
        for (std::size_t k = 0; k < features.columns; ++k) {
          double u = 0.0;
          for (std::size_t a = 0; a < labels.count; ++a)
            u += labels.labels[a * labels.label_columns + q] * features.values[a * features.columns + k];
          values[k % count] += u * u;
        }
    } else {
      for (std::size_t q = 0; q < labels.label_columns; ++q) {
        std::vector<double> weights(labels.count);
        for (std::size_t a = 0; a < labels.count; ++a)
          weights[a] = labels.labels[a * labels.label_columns + q];
        weighted_moments(map(), lifted, weights, candidates, moments, derivatives, 1);
        for (std::size_t k = 0; k < moments.size(); ++k) values[k / components] += moments[k] * moments[k];
      }
    }
    std::vector<FeatureSet> sets;
    for (const double share : {0.5, 1.0, 2.0, 4.0}) {
      const double wanted = share * static_cast<double>(features_);
      if (wanted >= static_cast<double>(count)) continue;
      sets.push_back({chosen(candidates, draw(tilted(values, wanted)))});
    }
    return best_of(std::move(sets));
  }

  /// q proportional to max(0, v - threshold) with 1 / sum q^2 = effective, by bisection in the threshold.
  static std::vector<double> tilted(const std::vector<double>& v, double effective) {
    const auto [smallest, largest] = std::minmax_element(v.begin(), v.end());
    const double span = *largest - *smallest;
    std::vector<double> q(v.size(), 1.0 / static_cast<double>(v.size()));
    if (!(span > 0.0)) return q;
    const auto law = [&](double threshold) {
      double sum = 0.0, squares = 0.0;
      for (std::size_t k = 0; k < v.size(); ++k) sum += q[k] = std::max(0.0, v[k] - threshold);
      for (double& value : q) {
        value /= sum;
        squares += value * value;
      }
      return 1.0 / squares;  // decreases with the threshold
    };
    double low = *smallest - 1e3 * span, high = *largest - 1e-12 * span;
    for (int iteration = 0; iteration < 100; ++iteration) {
      const double middle = 0.5 * (low + high);
      (law(middle) > effective ? low : high) = middle;
    }
    law(0.5 * (low + high));
    return q;
  }

  /// Ridge leverage scores phi_k^T (Phi Phi^T + n penalty M)^-1 phi_k of the pool of M; features are divided
  /// by sqrt(M q_k) so that the kernel is unbiased. The penalty is chosen on held-out rows.
  FeatureSet importance_by_leverage() const {
    const std::vector<double> candidates = pool();
    const std::size_t count = question_.pool_factor * features_;
    const FeatureMatrix raw = feature_matrix(map(), train_, candidates);
    const auto n = static_cast<Eigen::Index>(raw.rows), m = static_cast<Eigen::Index>(raw.columns);
    const Eigen::MatrixXd phi = Eigen::Map<const RowMajor>(raw.values.data(), n, m);
    const Eigen::MatrixXd gram =
        n <= m ? Eigen::MatrixXd(phi * phi.transpose()) : Eigen::MatrixXd(phi.transpose() * phi);
    std::vector<FeatureSet> sets;
    for (const double penalty : {1e-4, 1e-2}) {
      Eigen::MatrixXd system = gram;
      system.diagonal().array() += penalty * gram.trace() / static_cast<double>(gram.rows());
      const Eigen::LLT<Eigen::MatrixXd> factor(system);
      std::vector<double> scores(count, 0.0);
      if (n <= m) {
        const Eigen::MatrixXd half = factor.matrixL().solve(phi);
        for (Eigen::Index k = 0; k < m; ++k)
          scores[static_cast<std::size_t>(k) % count] += half.col(k).squaredNorm();
      } else {
        const Eigen::MatrixXd product = factor.solve(gram);
        for (Eigen::Index k = 0; k < m; ++k) scores[static_cast<std::size_t>(k) % count] += product(k, k);
      }
      const double total = std::accumulate(scores.begin(), scores.end(), 0.0);
      for (double& score : scores) score /= total;
      const std::vector<std::size_t> members = draw(scores);
      FeatureSet set{chosen(candidates, members)};
      for (const std::size_t member : members)
        set.weights.push_back(1.0 / std::sqrt(static_cast<double>(count) * scores[member]));
      sets.push_back(std::move(set));
    }
    return best_of(std::move(sets));
  }

  /// The learned norms with the directions of independent draws of the reference law; a phase stays as
  /// learned.
  std::vector<double> norm_matched() {
    const std::vector<double>& particles = learned().particles;
    std::vector<double> out =
        reference_particles(map(), features_, train_.dimension, 1.0, false, seed_, DirectionDraw);
    const std::size_t p = particle_dimension(map(), train_.dimension);
    const std::size_t directions = map() == FeatureMap::FourierPhase ? p - 1 : p;
    for (std::size_t i = 0; i < features_; ++i) {
      double learned_square = 0.0, drawn_square = 0.0;
      for (std::size_t k = 0; k < directions; ++k) {
        learned_square += particles[i * p + k] * particles[i * p + k];
        drawn_square += out[i * p + k] * out[i * p + k];
      }
      for (std::size_t k = 0; k < p; ++k) {
        double& value = out[i * p + k];
        value = k < directions ? value * std::sqrt(learned_square / drawn_square) : particles[i * p + k];
      }
    }
    return out;
  }

  Dataset shuffled() const {
    Dataset out = train_;
    std::vector<double> keys(out.count());
    NoiseStream(seed_, NoisePurpose::Bootstrap).uniforms(1, 0, 0, keys);
    std::vector<std::size_t> order(out.count());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
    for (std::size_t a = 0; a < order.size(); ++a) out.labels[a] = train_.labels[order[a]];
    return out;
  }

  /// Kernel ridge regression as ridge regression on the exact feature vectors K_test U / sqrt(lambda) of the
  /// training kernel K = U lambda U^T: the same classifier, penalties and calibration as everywhere else.
  void exact_kernel(Trained& out, SteadyClock::time_point start) const {
    const std::size_t n = train_.count(), d = train_.dimension;
    if (n > question_.most_kernel_rows) {
      out.row.status = "skipped";
      return;
    }
    const auto matrix = [&](const Dataset& left) {
      Eigen::MatrixXd kernel(static_cast<Eigen::Index>(left.count()), static_cast<Eigen::Index>(n));
      for (std::size_t a = 0; a < left.count(); ++a)
        for (std::size_t b = 0; b < n; ++b)
          kernel(static_cast<Eigen::Index>(a), static_cast<Eigen::Index>(b)) =
              limit_kernel(map(), {left.points.data() + a * d, d}, {train_.points.data() + b * d, d}, 1.0);
      return kernel;
    };
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix(train_));
    const double cut = solver.eigenvalues().tail(1)[0] * 1e-12;
    Eigen::Index first = 0;
    while (first < solver.eigenvalues().size() && solver.eigenvalues()[first] <= cut) ++first;
    const Eigen::Index rank = solver.eigenvalues().size() - first;
    const Eigen::MatrixXd basis = solver.eigenvectors().rightCols(rank);
    const Eigen::VectorXd roots = solver.eigenvalues().tail(rank).cwiseSqrt();
    const auto features = [&](const Eigen::MatrixXd& rows_of) {
      FeatureMatrix result{static_cast<std::size_t>(rows_of.rows()), static_cast<std::size_t>(rank),
                           std::vector<double>(static_cast<std::size_t>(rows_of.rows() * rank))};
      Eigen::Map<RowMajor>(result.values.data(), rows_of.rows(), rank) = rows_of;
      return result;
    };
    const LinearClassifier classifier =
        fit(features(basis * roots.asDiagonal()), train_.labels, train_.classes, question_.classifier);
    out.row.train_seconds = seconds_since(start);
    const auto begin = SteadyClock::now();
    out.probabilities =
        probabilities(classifier, features(matrix(test_) * basis * roots.cwiseInverse().asDiagonal()));
    out.row.inference_seconds = seconds_since(begin);
    out.row.metrics = metrics(out.probabilities, test_.labels, test_.classes, question_.calibration_bins);
    out.row.test_rows = test_.count();
  }
};

using Setup = std::tuple<std::string, std::size_t, std::size_t, double, double>;  // one comparison of methods

Setup setup(const Row& row) {
  return {row.dataset, row.dimension, row.features, row.label_noise, row.input_noise};
}

std::vector<const Row*> rows_of(const std::vector<Row>& rows, const Setup& where, Method method) {
  std::vector<const Row*> out;
  for (const Row& row : rows)
    if (row.method == method && row.status == "completed" && setup(row) == where) out.push_back(&row);
  return out;
}

/// Accuracy differences of two methods at equal seeds.
std::vector<double> paired(const std::vector<const Row*>& rows, const std::vector<const Row*>& baseline) {
  std::vector<double> out;
  for (const Row* row : rows)
    for (const Row* other : baseline)
      if (row->seed == other->seed) out.push_back(row->metrics.accuracy - other->metrics.accuracy);
  return out;
}

std::string place(const TableRow& row) {
  std::string text = row.dataset;
  if (row.dataset == "synthetic") text += fmt::format(", d = {}", row.dimension);
  text += fmt::format(", {} features", row.features);
  if (row.label_noise > 0.0) text += fmt::format(", label noise {}", row.label_noise);
  if (row.input_noise > 0.0) text += fmt::format(", input noise {}", row.input_noise);
  return text;
}

std::string percent(double value) { return fmt::format("{:.1f}", 100.0 * value); }

}  // namespace

std::span<const Method> methods() { return all_methods; }

std::string_view name(Method method) {
  switch (method) {
    case Method::Fixed:
      return "fixed";
    case Method::Orthogonal:
      return "orthogonal";
    case Method::FixedTuned:
      return "fixed_tuned";
    case Method::ImportanceAlignment:
      return "importance_alignment";
    case Method::ImportanceLeverage:
      return "importance_leverage";
    case Method::Learned:
      return "learned";
    case Method::LearnedNoRepulsion:
      return "learned_no_repulsion";
    case Method::LearnedNoNoise:
      return "learned_no_noise";
    case Method::GradientDescent:
      return "gradient_descent";
    case Method::NormMatched:
      return "norm_matched";
    case Method::ShuffledLabels:
      return "shuffled_labels";
    case Method::KernelRidge:
      return "kernel_ridge";
  }
  return "";
}

std::string_view meaning(Method method) {
  switch (method) {
    case Method::Fixed:
      return "independent draws of the reference law";
    case Method::Orthogonal:
      return "orthogonal directions, norms of the reference law";
    case Method::FixedTuned:
      return "fixed, the length scale chosen on held-out rows";
    case Method::ImportanceAlignment:
      return "drawn from a pool by label alignment";
    case Method::ImportanceLeverage:
      return "drawn from a pool by ridge leverage scores";
    case Method::Learned:
      return "Langevin particles of the alignment Hamiltonian";
    case Method::LearnedNoRepulsion:
      return "learned with repulsion = 0";
    case Method::LearnedNoNoise:
      return "learned without noise";
    case Method::GradientDescent:
      return "gradient flow of the alignment alone";
    case Method::NormMatched:
      return "control: learned norms, random directions";
    case Method::ShuffledLabels:
      return "control: learned from permuted labels";
    case Method::KernelRidge:
      return "the exact limit kernel, no features";
  }
  return "";
}

std::optional<Method> method_named(std::string_view wanted) {
  for (const Method method : all_methods)
    if (name(method) == wanted) return method;
  return std::nullopt;
}

std::vector<Trained> train_all(const Question& question, Split split, std::size_t features,
                               std::uint64_t seed, const std::function<bool()>& interrupted) {
  const double length = question.length_scale > 0.0
                            ? question.length_scale
                            : median_distance(split.train.points, split.train.dimension);
  divide_inputs(split.train, length);
  divide_inputs(split.test, length);
  Bench bench(question, split, features, seed, interrupted);
  std::vector<Trained> out;
  for (const Method method : question.methods) {
    if (interrupted && interrupted()) break;
    out.push_back(bench.train(method));
    out.back().row.seed = seed;
    out.back().row.dataset = split.train.name;
    out.back().row.dimension = split.train.dimension;
    out.back().row.features = features;
  }
  return out;
}

Interval interval(std::span<const double> samples) {
  expects(!samples.empty(), "at least one sample");
  const Estimate estimate = mean_estimate(samples);
  if (samples.size() == 1) {
    const double infinity = std::numeric_limits<double>::infinity();
    return {estimate.value, -infinity, infinity};
  }
  const boost::math::students_t law(static_cast<double>(samples.size() - 1));
  const double half = boost::math::quantile(law, 0.975) * estimate.standard_error;
  return {estimate.value, estimate.value - half, estimate.value + half};
}

std::vector<TableRow> table(const std::vector<Row>& rows, Method baseline) {
  std::vector<TableRow> out;
  std::vector<std::pair<Setup, Method>> done;
  for (const Row& first : rows) {
    const std::pair key{setup(first), first.method};
    if (std::find(done.begin(), done.end(), key) != done.end()) continue;
    done.push_back(key);
    const auto members = rows_of(rows, key.first, first.method);
    if (members.empty()) continue;
    TableRow row{.dataset = first.dataset,
                 .dimension = first.dimension,
                 .method = first.method,
                 .features = first.features,
                 .label_noise = first.label_noise,
                 .input_noise = first.input_noise,
                 .seeds = members.size()};
    std::vector<double> accuracies;
    for (const Row* member : members) {
      const double weight = 1.0 / static_cast<double>(members.size());
      accuracies.push_back(member->metrics.accuracy);
      row.mcc += weight * member->metrics.mcc;
      row.log_loss += weight * member->metrics.log_loss;
      row.brier += weight * member->metrics.brier;
      row.ece += weight * member->metrics.ece;
      row.ece_equal_mass += weight * member->metrics.ece_equal_mass;
    }
    const Interval accuracy = interval(accuracies);
    row.mean = accuracy.mean, row.low = accuracy.low, row.high = accuracy.high;
    const std::vector<double> differences = paired(members, rows_of(rows, key.first, baseline));
    if (first.method != baseline && !differences.empty()) {
      const Interval difference = interval(differences);
      row.difference = difference.mean, row.difference_low = difference.low,
      row.difference_high = difference.high;
      row.has_difference = true;
    }
    out.push_back(row);
  }
  return out;
}

std::vector<std::string> findings(const std::vector<Row>& rows, const std::vector<TableRow>& table,
                                  Method baseline) {
  std::vector<std::string> out;
  const auto compare = [&](const TableRow& row, Method against, const Interval& difference) {
    const std::string numbers =
        fmt::format("{:+.2f} points of accuracy, 95 % interval [{:+.2f}, {:+.2f}], {} seeds",
                    100.0 * difference.mean, 100.0 * difference.low, 100.0 * difference.high, row.seeds);
    const char* verdict = difference.low > 0.0    ? "is better than"
                          : difference.high < 0.0 ? "is worse than"
                                                  : "cannot be told from";
    out.push_back(
        fmt::format("{}: {} {} {} ({}).", place(row), name(row.method), verdict, name(against), numbers));
  };
  for (const TableRow& row : table) {
    if (row.method != Method::Learned) continue;
    const Setup where{row.dataset, row.dimension, row.features, row.label_noise, row.input_noise};
    const auto learned = rows_of(rows, where, Method::Learned);
    std::vector<Method> others{baseline};
    for (const Method method : all_methods)
      if (method != Method::Learned && method != baseline) others.push_back(method);
    for (const Method other : others) {
      const std::vector<double> differences = paired(learned, rows_of(rows, where, other));
      if (!differences.empty()) compare(row, other, interval(differences));
    }
  }
  // How much of the accuracy above chance a quarter of the features keeps.
  for (const TableRow& few : table) {
    if (few.method != Method::Learned && few.method != baseline) continue;
    for (const TableRow& many : table) {
      if (many.method != few.method || many.dataset != few.dataset || many.dimension != few.dimension ||
          many.label_noise != few.label_noise || many.input_noise != few.input_noise ||
          many.features != 4 * few.features)
        continue;
      const auto small = rows_of(
          rows, {few.dataset, few.dimension, few.features, few.label_noise, few.input_noise}, few.method);
      const auto large =
          rows_of(rows, {many.dataset, many.dimension, many.features, many.label_noise, many.input_noise},
                  many.method);
      std::vector<double> kept, all;
      for (const Row* a : small)
        for (const Row* b : large)
          if (a->seed == b->seed) {
            kept.push_back(a->metrics.accuracy - 0.5);
            all.push_back(b->metrics.accuracy - 0.5);
          }
      if (few.dataset != "synthetic" || kept.size() < 2) continue;  // chance is 1/2 there
      const Estimate ratio = ratio_estimate(kept, all);
      const double half =
          boost::math::quantile(boost::math::students_t(static_cast<double>(kept.size() - 1)), 0.975) *
          ratio.standard_error;
      out.push_back(fmt::format(
          "{}: {} keeps {} % of the accuracy above chance that it has with {} features, 95 % interval "
          "[{}, {}].",
          place(few), name(few.method), percent(ratio.value), many.features, percent(ratio.value - half),
          percent(ratio.value + half)));
    }
  }
  return out;
}

}  // namespace rieszflow::learning
