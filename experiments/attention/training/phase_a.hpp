#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attention/encoder.hpp"
#include "experiments/attention/training/encoder_training.hpp"
#include "experiments/attention/vocabulary.hpp"
#include "features/feature_map.hpp"
#include "io/run_file.hpp"
#include "solvers/particle/langevin.hpp"

/// Phase A: the rows of omega, head by head, are the particles of the particle core. Their energy is the
/// centred normalised alignment, theory.md (10), of the labels with the kernel of bags: phi of a sentence is
/// the mean of phi over the queries and keys of its tokens; plus the repulsion (11). Afterwards omega is
/// frozen.
namespace rieszflow::attention {

/// The feature map of the particle core that is phi of this kind, up to a factor that no alignment sees.
FeatureMap feature_map(AttentionKind kind);

struct PhaseAOptions {
  std::size_t steps = 60;
  std::size_t batch_rows = 256;  ///< of each of two fresh mini-batches per step
  /// Root mean square move of a particle in one step, in units of its norm, at the beginning; falls linearly
  /// to zero. The timestep is this divided by the root mean square force, measured at every check.
  double move = 0.1;
  double first_inverse_temperature = 1e4;  ///< beta rises geometrically between these two
  double last_inverse_temperature = 1e6;
  double repulsion = 0.01;          ///< lambda of (11)
  double repulsion_exponent = 0.0;  ///< s; 0: the logarithm
  double repulsion_softening = 0.1;
  bool spheres = true;  ///< every particle stays on the sphere of its norm; else in a ball
  double radius = 1.5;  ///< of the ball, in units of the largest norm at the start
  particle::Scheme scheme = particle::Scheme::Reflected;  ///< at the ball's wall
  bool shuffled_labels = false;
  std::size_t check_every = 10;      ///< steps
  std::size_t most_rows = 8192;      ///< of the training set, at random, that batches are drawn from
  std::size_t held_out_rows = 1000;  ///< of the dev set, at random, that alignments are checked on
  std::uint64_t seed = 0;
};

/// State of one head at one check.
struct HeadCheck {
  std::size_t step = 0;
  double time = 0.0;
  double train_alignment = 0.0;  ///< of the mini-batches of the step, <= 1
  double held_out_alignment = 0.0;
  double repulsion = 0.0;  ///< lambda W_{N,s}
  double inverse_temperature = 0.0;
  double timestep = 0.0;
  double mean_norm = 0.0;
  double effective_rank = 0.0;  ///< of the centred pooled features of held-out rows
  double minimum_distance = 0.0;
};

struct LearnedHead {
  std::size_t layer = 0, head = 0;
  std::vector<HeadCheck> checks{};
  std::vector<double> snapshots{};  ///< (check, m, d_head)
  double probe_before = 0.0;  ///< accuracy of a ridge classifier on the pooled features of held-out rows
  double probe_after = 0.0;
};

struct PhaseA {
  RunStatus status = RunStatus::Completed;
  std::string message;
  EncoderWeights weights{};  ///< the given ones with the learned omega
  std::vector<LearnedHead> heads{};
  std::vector<double> mean_square_scores{};  ///< (layer) |q|^2 / sqrt(d_head) of the training rows

  /// Means over the heads of one layer.
  double held_out_before(std::size_t layer) const;
  double held_out_after(std::size_t layer) const;
};

/// Layers from the first to the last, each with what the learned ones below make of the data.
PhaseA learn_features(const EncoderWeights& start, const text::TokenSet& train, const text::TokenSet& dev,
                      const PhaseAOptions& options, const std::function<void(double)>& report,
                      const std::function<bool()>& interrupted);

/// The control that tells directions from norms: random orthogonal directions with the learned norms.
EncoderWeights norm_matched(const EncoderWeights& learned, std::uint64_t seed);

/// Traces as series phase_a/layerL/headH/..., clouds as positions of replica l * heads + h.
void write_phase_a(const std::filesystem::path& path, io::Manifest manifest, const PhaseA& learned);

}  // namespace rieszflow::attention
