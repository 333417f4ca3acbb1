#pragma once
#include <cstddef>
#include <vector>

#include "model/density.hpp"
#include "model/ensemble.hpp"

namespace rieszflow {

/// Fraction of all particles, replicas pooled, per cell and volume. In a cut cell: per volume inside the
/// domain.
Density histogram(const ParticleEnsemble& ensemble, const Grid& grid);

/// The same piecewise constant law on a grid with other numbers of cells on the same box; the masses of the
/// new cells are exact.
Density rebinned(const Density& density, const std::vector<std::size_t>& cells);

/// Law of coordinate `axis` alone: d = 1.
Density marginal(const Density& density, std::size_t axis);

/// integral (a - b)^2 of two densities on the same grid.
double squared_l2_distance(const Density& a, const Density& b);

/// integral (h - rho)^2 of the histogram h of each replica against rho on rho's grid; (replica).
std::vector<double> squared_l2_distances(const ParticleEnsemble& ensemble, const Density& density);

/// What N independent samples of rho have on average: (sum_c p_c / |C_c| - integral rho^2) / N.
double expected_squared_l2_distance(const Density& density, std::size_t particle_count);

/// (1/N) sum_i x_{i, axis} of each replica; (replica).
std::vector<double> means(const ParticleEnsemble& ensemble, std::size_t axis);
/// (1/N) sum_i |x_i|^2 of each replica; (replica).
std::vector<double> second_moments(const ParticleEnsemble& ensemble);

}  // namespace rieszflow
