#pragma once
#include <vector>

#include "domain/domain.hpp"
#include "model/density.hpp"
#include "model/ensemble.hpp"

namespace rieszflow {

/// A smooth density from particles, all replicas pooled.
struct DensityEstimate {
  Density density;
  std::vector<double> bandwidths;  ///< (dimension) standard deviation of the kernel
};

/// Gaussian kernel density, reflected at the walls of a box, wrapped on a torus:
///
///     rho(C) = (1/(n |C|)) sum_i prod_k sum_images P(x_ik' + bandwidth_k xi in C_k),   C the cells of
///     `grid`,
///
/// the images of x at the walls a, b being x + 2 m (b - a) and 2 a - x + 2 m (b - a): without them half of
/// the kernel of a particle at a wall is lost and the estimate there is half the density; with them mass is
/// kept and the bias there is of first order in the bandwidth, (2 / pi)^(1/2) bandwidth |d rho/dn|, against
/// second order inside. In the whole space what lies outside of the grid is lost. Particles are counted in
/// cells first: the resolution is that of the grid. d <= 3; not for a ball.
///
/// bandwidth 0: Silverman's rule, deviation_k (4 / ((d + 2) n))^(1/(d + 4)), n all particles: the best for
/// Gaussians whose particles are independent; too wide for several peaks. Sources: B. Silverman, Density
/// Estimation (1986), sections 2.10 and 4.3.
DensityEstimate kernel_density(const ParticleEnsemble& ensemble, const Domain& domain, const Grid& grid,
                               double bandwidth = 0.0);

}  // namespace rieszflow
