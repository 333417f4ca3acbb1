#pragma once
#include <cstddef>
#include <cstdint>

#include "domain/domain.hpp"
#include "model/density.hpp"
#include "model/ensemble.hpp"

namespace rieszflow {

/// Independent samples of the piecewise constant law `density`: what a mean-field particle system would be if
/// its particles did not feel each other. Cell by the inverse distribution function, place in the cell
/// uniform; in a cell cut by the sphere of a ball, uniform in the part inside. Keyed by (seed,
/// ReferenceSample, replica, attempt, particle). `domain` is the one the grid covers.
ParticleEnsemble independent_samples(const Density& density, const Domain& domain, std::size_t replica_count,
                                     std::size_t particle_count, std::uint64_t seed);

}  // namespace rieszflow
