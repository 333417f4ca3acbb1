#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "model/model.hpp"

namespace rieszflow {

/// What one particle of a replica feels at a trial point, the others staying where they are: the sums that a
/// single-particle move needs. O(N) per question; O(1) for quadratic, cosine and low-rank interactions.
class OneParticleSum {
 public:
  OneParticleSum(const Model& model, std::size_t particle_count);
  ~OneParticleSum();
  OneParticleSum(OneParticleSum&&) noexcept;
  OneParticleSum& operator=(OneParticleSum&&) noexcept;

  /// Takes the positions of a replica; (particle, dimension), row-major.
  void load(std::span<const double> positions);

  /// (1/N) sum_{j != i} W(point, x_j), and force = -(1/N) sum_{j != i} grad_1 W(point, x_j), overwritten.
  /// N times the change of the interaction energy of theory.md (1) under a move is the difference of two of
  /// these.
  double at(std::size_t particle, std::span<const double> point, std::span<double> force);

  /// x_particle <- point.
  void move(std::size_t particle, std::span<const double> point);

  /// x_particle; out: (dimension).
  void position(std::size_t particle, std::span<double> out) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rieszflow
