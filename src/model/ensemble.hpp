#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace rieszflow {

/// Independent replicas of N particles in d dimensions.
struct ParticleEnsemble {
  std::size_t replica_count = 0;
  std::size_t particle_count = 0;  ///< N, per replica
  std::size_t dimension = 0;
  std::vector<double> positions;  ///< (replica, particle, dimension), row-major

  std::span<double> replica(std::size_t index) {
    const std::size_t size = particle_count * dimension;
    return {positions.data() + index * size, size};
  }
  std::span<const double> replica(std::size_t index) const {
    const std::size_t size = particle_count * dimension;
    return {positions.data() + index * size, size};
  }
};

}  // namespace rieszflow
