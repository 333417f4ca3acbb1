#include "analysis/sampling.hpp"

#include <algorithm>
#include <vector>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow {

ParticleEnsemble independent_samples(const Density& density, const Domain& domain, std::size_t replica_count,
                                     std::size_t particle_count, std::uint64_t seed) {
  const Grid& grid = density.grid;
  const std::size_t dimension = grid.dimension();
  std::vector<double> cumulative;
  CompensatedSum sum;
  for (std::size_t cell = 0; cell < density.averages.size(); ++cell) {
    sum.add(density.averages[cell] * (grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell]));
    cumulative.push_back(sum.value());
  }
  const double total = sum.value();
  expects(total > 0.0, "a law has positive mass");

  ParticleEnsemble ensemble{replica_count, particle_count, dimension,
                            std::vector<double>(replica_count * particle_count * dimension)};
  const NoiseStream noise(seed, NoisePurpose::ReferenceSample);
  std::vector<double> uniforms(dimension + 1);
  for (std::size_t replica = 0; replica < replica_count; ++replica)
    for (std::size_t particle = 0; particle < particle_count; ++particle) {
      const std::span<double> point = ensemble.replica(replica).subspan(particle * dimension, dimension);
      noise.uniforms(replica, 0, particle, uniforms);
      const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), uniforms[dimension] * total);
      std::size_t cell = static_cast<std::size_t>(std::min(found, cumulative.end() - 1) - cumulative.begin());
      for (std::uint64_t attempt = 1;; ++attempt) {
        std::size_t rest = cell;
        for (std::size_t axis = dimension; axis-- > 0;) {
          const std::size_t index = rest % grid.cells[axis];
          rest /= grid.cells[axis];
          const double lower = grid.face(axis, index), upper = grid.face(axis, index + 1);
          point[axis] = lower + uniforms[axis] * (upper - lower);
          if (point[axis] >= upper) point[axis] = lower;  // rounding; a torus does not contain its upper face
        }
        if (contains(domain, point)) break;
        noise.uniforms(replica, attempt, particle, uniforms);
      }
    }
  return ensemble;
}

}  // namespace rieszflow
