#pragma once
#include <cstddef>
#include <vector>

#include "model/density.hpp"
#include "model/ensemble.hpp"

/// Optimal-transport distances between the empirical measure mu_N of each replica and a grid density, which
/// is taken as what it is: constant on cells. Cells cut by the sphere of a ball hold their mass spread over
/// the whole cell.
namespace rieszflow {

/// W_1(mu_N, rho) of each replica, d = 1, exact to round-off; on the circle where the grid is periodic.
/// (replica)
std::vector<double> wasserstein1(const ParticleEnsemble& ensemble, const Density& density);

/// W_2(mu_N, rho) of each replica, d = 1, exact to round-off; on the circle where the grid is periodic.
/// (replica)
std::vector<double> wasserstein2(const ParticleEnsemble& ensemble, const Density& density);

struct SlicedOptions {
  std::size_t directions = 32;  ///< d = 2: equal angles; d = 3: Fibonacci points on the half sphere
  std::size_t resolution = 8;   ///< bins of the projected density per smallest cell width
};

/// Sliced W_2 of each replica: the root mean square over directions of W_2 of the projections; d = 2, 3, not
/// periodic. (replica). Each projected W_2 is off by less than one bin of the projected density
/// (line_law.hpp). Source: N. Bonneel et al., J. Math. Imaging Vis. 51 (2015) 22-45.
std::vector<double> sliced_wasserstein2(const ParticleEnsemble& ensemble, const Density& density,
                                        SlicedOptions options = {});

/// What N independent samples of rho have on average: the reference line of the distances above, exact up to
/// the quadrature's 1e-10. Not periodic.
double expected_wasserstein1(const Density& density, std::size_t particle_count);
/// E W_2^2: sqrt of it is the root mean square.
double expected_squared_wasserstein2(const Density& density, std::size_t particle_count);
double expected_squared_sliced_wasserstein2(const Density& density, std::size_t particle_count,
                                            SlicedOptions options = {});

/// Directions of the sliced distance; (direction, dimension), unit vectors, one of each pair +-v.
std::vector<double> sliced_directions(std::size_t dimension, std::size_t count);

}  // namespace rieszflow
