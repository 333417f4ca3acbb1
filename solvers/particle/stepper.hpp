#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/noise.hpp"
#include "model/ensemble.hpp"
#include "model/model.hpp"
#include "solvers/particle/close_pairs.hpp"
#include "solvers/particle/fault.hpp"
#include "solvers/particle/langevin.hpp"
#include "solvers/particle/metropolis.hpp"
#include "summation/pair_sum.hpp"
#include "summation/random_batch_sum.hpp"

namespace rieszflow::particle {

/// Moves an ensemble by steps of one length: what `run` does between two outputs. Buffers are kept between
/// steps.
class Stepper {
 public:
  /// `coarsening` m: the noise of a step is that of 2^m steps of an uncoarsened stepper of h / 2^m, so that
  /// both follow one Brownian path (but for the bridges of close pairs). `first_replica`: number of the
  /// ensemble's first, by which its noise is keyed. `model` and `options` must outlive this.
  Stepper(const Model& model, const ParticleEnsemble& ensemble, const Options& options, int coarsening = 0,
          std::size_t first_replica = 0);

  void set_timestep(double timestep);
  StepOutcome advance(ParticleEnsemble& ensemble, std::uint64_t step, Statistics& statistics);
  /// Takes the last advance back.
  void undo(ParticleEnsemble& ensemble) { ensemble.positions.swap(next_); }

 private:
  const Model& model_;
  const Options& options_;
  int coarsening_;
  std::uint64_t first_replica_;
  double timestep_ = 0.0;
  NoiseStream noise_;
  std::shared_ptr<const PairSum> pair_sum_;
  std::optional<RandomBatchSum> batch_sum_;
  std::optional<ClosePairs> close_pairs_;
  std::vector<Metropolis> samplers_;               ///< (thread)
  std::vector<double> forces_, gaussians_, next_;  ///< (replica, particle, dimension)

  int threads() const { return options_.summation.threads; }
  void evaluate_forces(const ParticleEnsemble& ensemble, std::uint64_t step);
  void draw(std::uint64_t replica, std::uint64_t step, std::size_t begin, std::size_t count,
            std::span<double> out) const;
  StepOutcome euler_step(ParticleEnsemble& ensemble, std::uint64_t step, Statistics& statistics);
  StepOutcome metropolis_step(ParticleEnsemble& ensemble, std::uint64_t step, Statistics& statistics);
  StepOutcome first_wall_collision(const ParticleEnsemble& ensemble) const;
};

}  // namespace rieszflow::particle
