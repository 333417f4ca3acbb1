#pragma once
#include <string>
#include <vector>

#include "model/ensemble.hpp"
#include "model/model.hpp"
#include "summation/pair_sum.hpp"

namespace rieszflow {

/// A number whose expectation under the Gibbs law (3) is zero, for every N and every kernel.
struct Identity {
  std::string name;
  std::vector<double> residuals;  ///< (replica)
};

/// Exact identities of the Gibbs law at finite N, evaluated on one state. They need no solution and show
/// every bias of walls and timesteps; away from equilibrium the residual of a gradient field is beta times
/// the rate of change of an average.
///
/// Schwinger-Dyson, for a vector field g without flux through the wall (integrate div(g exp(-beta N H_N))):
///
///     residual = (1/N) sum_i [div g(x_i) + beta g(x_i) . force_i],   force_i = -N grad_i H_N.
///
/// Fields, t the coordinate scaled to [-1, 1]: box (1 - t^2) t^p along each axis, p = 0, 1; ball (1 - |t|^2)
/// along each axis and along t; torus sin and cos of the first mode of each axis; whole space sin x along
/// each axis, and x. In the sum over i the singular parts of a pair cancel (g(x) - g(y) is small where the
/// force is large), so the variance is finite for s < d.
///
/// Contact theorem, box and ball, x counted from the centre:
///
///     residual = wall integral of rho_N (x . n) - d - beta (1/N) sum_i x_i . force_i,
///
/// the wall integral from the fractions of particles in three layers below the wall, extrapolated to zero
/// thickness (error of third order in the thickness).
///
/// Empty at beta = infinity and for a functional on random batches, which have no such law.
std::vector<Identity> equilibrium_identities(const Model& model, const PairSum& pair_sum,
                                             const ParticleEnsemble& ensemble);

}  // namespace rieszflow
