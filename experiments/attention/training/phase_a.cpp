#include "experiments/attention/training/phase_a.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "analysis/classification.hpp"
#include "core/expects.hpp"
#include "core/noise.hpp"
#include "features/bag_block.hpp"
#include "model/alignment.hpp"
#include "model/model.hpp"
#include "summation/energy.hpp"
#include "summation/pair_sum.hpp"

namespace rieszflow::attention {
namespace {

using text::TokenSet;

// Which permutation of the stream LabelShuffle.
enum : std::uint64_t { train_rows = 0, dev_rows = 1, labels = 2 };

/// At most `most` rows in random order.
std::vector<std::size_t> some_rows(std::size_t count, std::size_t most, std::uint64_t seed,
                                   std::uint64_t which) {
  std::vector<double> keys(count);
  NoiseStream(seed, NoisePurpose::LabelShuffle).uniforms(which, 0, 0, keys);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  order.resize(std::min(count, most));
  return order;
}

std::vector<int> labels_of(const TokenSet& data, const std::vector<std::size_t>& rows) {
  std::vector<int> out;
  for (const std::size_t row : rows) out.push_back(data.labels[row]);
  return out;
}

LabelledData labelled(const HeadBags& bags, std::size_t head, const std::vector<int>& classes) {
  LabelledData out;
  out.count = classes.size();
  out.dimension = bags.dimension;
  out.points = bags.points[head];
  out.bag_starts = bags.starts;
  const int most = *std::max_element(classes.begin(), classes.end());
  out.label_columns = most < 2 ? 1 : static_cast<std::size_t>(most) + 1;
  for (const int y : classes)
    for (std::size_t q = 0; q < out.label_columns; ++q)
      out.labels.push_back(y == (out.label_columns == 1 ? 1 : static_cast<int>(q)) ? 1.0 : -1.0);
  return out;
}

double norm(std::span<const double> x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

FeatureMatrix pooled(FeatureMap map, const LabelledData& data, std::span<const double> particles) {
  const LiftedData lifted = lift(map, data.points, data.dimension);
  constexpr std::size_t capacity = 32;
  BagBlock block(map, lifted, data.bag_starts, particles, capacity);
  const std::size_t components = component_count(map);
  FeatureMatrix out{data.count, components * block.count(), {}};
  for (std::size_t first = 0; first < data.count; first += capacity) {
    const std::size_t bags = std::min(capacity, data.count - first);
    block.evaluate(first, bags);
    for (std::size_t b = 0; b < bags; ++b)
      for (std::size_t c = 0; c < components; ++c) {
        const double* phi = block.value(c) + b * block.columns();
        out.values.insert(out.values.end(), phi, phi + block.count());
      }
  }
  return out;
}

/// Held-out accuracy of a ridge classifier on pooled features that was fitted to other rows.
double probe(FeatureMap map, const LabelledData& fitted, const std::vector<int>& fitted_labels,
             const LabelledData& held, const std::vector<int>& held_labels,
             std::span<const double> particles) {
  const auto classes =
      static_cast<std::size_t>(*std::max_element(fitted_labels.begin(), fitted_labels.end())) + 1;
  const LinearClassifier classifier =
      fit(pooled(map, fitted, particles), fitted_labels, classes, {.penalties = {1e-4, 1e-3, 1e-2, 1e-1}});
  return metrics(probabilities(classifier, pooled(map, held, particles)), held_labels, classes).accuracy;
}

/// One head's particles on their way.
class Head {
 public:
  Head(const PhaseAOptions& options, FeatureMap map, const LabelledData& train, const LabelledData& held,
       std::uint64_t stream, std::vector<double> start)
      : options_(options),
        map_(map),
        dimension_(train.dimension),
        stream_(stream),
        held_(held),
        held_lifted_(lift(map, held.points, held.dimension)),
        alignment_(std::make_shared<Alignment>(map, train,
                                               Alignment::Options{.kind = AlignmentKind::Normalised,
                                                                  .batch_rows = options.batch_rows,
                                                                  .seed = options.seed * 1000003 + stream})),
        held_alignment_(map, held, {.kind = AlignmentKind::Normalised}) {
    for (std::size_t i = 0; i * dimension_ < start.size(); ++i)
      norms_.push_back(norm({start.data() + i * dimension_, dimension_}));
    state_.ensemble = {1, norms_.size(), dimension_, std::move(start)};
    model_.domain = options.spheres
                        ? Domain(WholeSpace{dimension_})
                        : Domain(Ball{std::vector<double>(dimension_, 0.0),
                                      options.radius * *std::max_element(norms_.begin(), norms_.end())});
    if (options.repulsion > 0.0) {
      if (options.repulsion_exponent == 0.0)
        model_.interactions.push_back(LogarithmicInteraction{options.repulsion, options.repulsion_softening});
      else
        model_.interactions.push_back(
            RieszInteraction{options.repulsion_exponent, options.repulsion, options.repulsion_softening});
    }
    model_.functionals.push_back(alignment_);
  }

  const std::vector<double>& particles() const { return state_.ensemble.positions; }

  RunResult run(LearnedHead& out, const std::function<bool()>& interrupted) {
    for (std::size_t step = 0; step < options_.steps; ++step) {
      if (interrupted && interrupted()) return {RunStatus::Interrupted, state_.clock, ""};
      const double done = static_cast<double>(step) / static_cast<double>(options_.steps);
      model_.inverse_temperature =
          options_.first_inverse_temperature *
          (std::isinf(options_.first_inverse_temperature)
               ? 1.0
               : std::pow(options_.last_inverse_temperature / options_.first_inverse_temperature, done));
      if (step % options_.check_every == 0) {
        set_timestep();
        check(out, step);
      }
      // Algorithm 1 on the product of the spheres: a Langevin step of the core, then the nearest point.
      const double h = timestep_ * (1.0 - done);
      const particle::Result result = particle::run(
          model_, state_, {.scheme = options_.scheme, .timestep = 1.5 * h, .seed = noise_seed()},
          Schedule::at({state_.clock.time, state_.clock.time + h}), {}, {});
      if (result.status != RunStatus::Completed) return result;
      if (options_.spheres) back_to_spheres();
    }
    check(out, options_.steps);
    return {};
  }

 private:
  const PhaseAOptions& options_;
  FeatureMap map_;
  std::size_t dimension_;
  std::uint64_t stream_;
  const LabelledData& held_;
  LiftedData held_lifted_;
  std::shared_ptr<const Alignment> alignment_;
  Alignment held_alignment_;
  Model model_{.domain = WholeSpace{1}, .potentials = {}, .interactions = {}};
  particle::State state_;
  std::vector<double> norms_;  ///< at the start
  double timestep_ = 0.0;
  double batch_alignment_ = 0.0;

  std::uint64_t noise_seed() const { return options_.seed * 1000003 + stream_; }

  void back_to_spheres() {
    for (std::size_t i = 0; i < norms_.size(); ++i) {
      double* x = state_.ensemble.positions.data() + i * dimension_;
      const double scale = norms_[i] / norm({x, dimension_});
      for (std::size_t k = 0; k < dimension_; ++k) x[k] *= scale;
    }
  }

  /// Force of alignment and repulsion at this step's batches; on spheres its part along them.
  void set_timestep() {
    std::vector<double> forces(particles().size(), 0.0);
    const PairSum pair_sum(model_, norms_.size(), {});
    mean_field_forces(pair_sum, forces);
    batch_alignment_ = -alignment_->add_forces(particles(), norms_.size(), 0,
                                               static_cast<std::uint64_t>(state_.clock.step), forces);
    double force_squares = 0.0, squares = 0.0;
    for (std::size_t i = 0; i < norms_.size(); ++i) {
      const std::span<const double> x(particles().data() + i * dimension_, dimension_),
          force(forces.data() + i * dimension_, dimension_);
      const double along = std::inner_product(x.begin(), x.end(), force.begin(), 0.0),
                   square = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
      squares += square;
      force_squares += std::inner_product(force.begin(), force.end(), force.begin(), 0.0) -
                       (options_.spheres ? along * along / square : 0.0);
    }
    timestep_ = force_squares > 0.0 ? options_.move * std::sqrt(squares / force_squares) : 1.0;
  }

  void mean_field_forces(const PairSum& pair_sum, std::vector<double>& forces) const {
    if (model_.interactions.empty()) return;
    pair_sum.add_forces(particles(), 1, forces);
  }

  void check(LearnedHead& out, std::size_t step) {
    HeadCheck now{.step = step, .time = state_.clock.time};
    now.train_alignment = batch_alignment_;
    now.held_out_alignment = -held_alignment_.value(particles());
    now.inverse_temperature = model_.inverse_temperature;
    now.timestep = timestep_;
    for (std::size_t i = 0; i < norms_.size(); ++i)
      now.mean_norm +=
          norm({particles().data() + i * dimension_, dimension_}) / static_cast<double>(norms_.size());
    now.effective_rank = effective_rank(map_, held_lifted_, particles(), held_.bag_starts, true);
    const PairSum pair_sum(model_, norms_.size(), {});
    pair_sum.closest_pairs(particles(), 1, {&now.minimum_distance, 1});
    double potential_energy = 0.0;
    Model pairs = model_;
    pairs.functionals.clear();
    energies(pairs, pair_sum, state_.ensemble, {&potential_energy, 1}, {&now.repulsion, 1});
    out.checks.push_back(now);
    out.snapshots.insert(out.snapshots.end(), particles().begin(), particles().end());
  }
};

double mean_of_layer(const std::vector<LearnedHead>& heads, std::size_t layer, bool last) {
  double sum = 0.0, count = 0.0;
  for (const LearnedHead& head : heads)
    if (head.layer == layer && !head.checks.empty()) {
      sum += (last ? head.checks.back() : head.checks.front()).held_out_alignment;
      count += 1.0;
    }
  return sum / count;
}

}  // namespace

FeatureMap feature_map(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::Favor:
      return FeatureMap::PositiveExponential;
    case AttentionKind::PorfSoftplus:
      return FeatureMap::Softplus;
    case AttentionKind::SoftmaxFeatures:
      return FeatureMap::SoftmaxPair;
    case AttentionKind::Uniform:
    case AttentionKind::Softmax:
      break;
  }
  expects(false, "a kind of attention with features");
  return FeatureMap::Softplus;
}

double PhaseA::held_out_before(std::size_t layer) const { return mean_of_layer(heads, layer, false); }
double PhaseA::held_out_after(std::size_t layer) const { return mean_of_layer(heads, layer, true); }

PhaseA learn_features(const EncoderWeights& start, const TokenSet& train, const TokenSet& dev,
                      const PhaseAOptions& options, const std::function<void(double)>& report,
                      const std::function<bool()>& interrupted) {
  const EncoderShape& shape = start.shape;
  const FeatureMap map = feature_map(shape.kind);
  const std::size_t size = shape.feature_count * shape.head_dimension();
  PhaseA out;
  out.weights = start;
  const auto rows = some_rows(train.count(), options.most_rows, options.seed, train_rows),
             held_rows = some_rows(dev.count(), options.held_out_rows, options.seed, dev_rows);
  const std::vector<int> true_labels = labels_of(train, rows), held_labels = labels_of(dev, held_rows);
  std::vector<int> learned_labels = true_labels;
  if (options.shuffled_labels) {
    const auto order = some_rows(rows.size(), rows.size(), options.seed, labels);
    for (std::size_t r = 0; r < rows.size(); ++r) learned_labels[r] = true_labels[order[r]];
  }
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    const HeadBags bags = queries_and_keys(out.weights, train, rows, layer),
                   held_bags = queries_and_keys(out.weights, dev, held_rows, layer);
    out.mean_square_scores.push_back(bags.mean_square_score);
    for (std::size_t head = 0; head < shape.heads; ++head) {
      float* omega = out.weights.layers[layer].omega.data() + head * size;
      const LabelledData data = labelled(bags, head, learned_labels),
                         held = labelled(held_bags, head, held_labels);
      LearnedHead learned{.layer = layer, .head = head};
      Head particles(options, map, data, held, layer * shape.heads + head, {omega, omega + size});
      learned.probe_before = probe(map, data, true_labels, held, held_labels, particles.particles());
      const RunResult result = particles.run(learned, interrupted);
      if (result.status != RunStatus::Completed) {
        out.status = result.status;
        out.message = fmt::format("phase A, layer {}, head {}: {}", layer, head, result.message);
        return out;
      }
      learned.probe_after = probe(map, data, true_labels, held, held_labels, particles.particles());
      std::transform(particles.particles().begin(), particles.particles().end(), omega,
                     [](double value) { return static_cast<float>(value); });
      out.heads.push_back(std::move(learned));
      if (report)
        report(static_cast<double>(out.heads.size()) / static_cast<double>(shape.layers * shape.heads));
    }
  }
  return out;
}

EncoderWeights norm_matched(const EncoderWeights& learned, std::uint64_t seed) {
  EncoderWeights out = learned;
  const EncoderShape& shape = learned.shape;
  const std::size_t size = shape.feature_count * shape.head_dimension();
  for (std::size_t layer = 0; layer < shape.layers; ++layer)
    for (std::size_t head = 0; head < shape.heads; ++head) {
      float* omega = out.layers[layer].omega.data() + head * size;
      const std::vector<double> control = norm_matched_features(
          std::vector<double>(omega, omega + size), shape.head_dimension(), seed, layer * shape.heads + head);
      std::transform(control.begin(), control.end(), omega,
                     [](double value) { return static_cast<float>(value); });
    }
  return out;
}

void write_phase_a(const std::filesystem::path& path, io::Manifest manifest, const PhaseA& learned) {
  std::filesystem::remove(path);
  io::RunFile file = io::RunFile::create(path, manifest);
  const EncoderShape& shape = learned.weights.shape;
  for (const LearnedHead& head : learned.heads)
    for (const HeadCheck& check : head.checks) {
      const Clock clock{static_cast<std::int64_t>(check.step), check.time};
      const auto series = [&](const char* quantity, const char* units, const char* meaning, double value) {
        file.append({.name = fmt::format("phase_a/layer{}/head{}/{}", head.layer, head.head, quantity),
                     .units = units,
                     .meaning = meaning},
                    clock, {&value, 1});
      };
      series("train_alignment", "", "centred normalised alignment of two mini-batches",
             check.train_alignment);
      series("held_out_alignment", "", "the same of held-out rows", check.held_out_alignment);
      series("repulsion", "energy", "lambda W_{N,s}", check.repulsion);
      series("inverse_temperature", "1/energy", "beta", check.inverse_temperature);
      series("timestep", "time", "before its decay", check.timestep);
      series("mean_norm", "", "of the particles", check.mean_norm);
      series("effective_rank", "", "of the pooled features", check.effective_rank);
      series("minimum_distance", "", "of two particles", check.minimum_distance);
    }
  // The heads have clocks of their own (their timesteps differ); the clouds are ordered by the step.
  if (!learned.heads.empty()) {
    const std::size_t size = shape.feature_count * shape.head_dimension(),
                      checks = learned.heads.front().checks.size();
    for (std::size_t k = 0; k < checks; ++k) {
      ParticleEnsemble clouds{learned.heads.size(), shape.feature_count, shape.head_dimension(), {}};
      for (const LearnedHead& head : learned.heads)
        clouds.positions.insert(clouds.positions.end(),
                                head.snapshots.begin() + static_cast<std::ptrdiff_t>(k * size),
                                head.snapshots.begin() + static_cast<std::ptrdiff_t>((k + 1) * size));
      const auto step = static_cast<std::int64_t>(learned.heads.front().checks[k].step);
      file.append_positions({step, static_cast<double>(step)}, clouds);
    }
  }
  file.finish();
}

}  // namespace rieszflow::attention
