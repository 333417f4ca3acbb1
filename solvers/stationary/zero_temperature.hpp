#pragma once
#include "solvers/stationary/landscape.hpp"
#include "solvers/stationary/self_consistency.hpp"

namespace rieszflow::stationary {

/// Minimiser of E[rho] = integral V rho + (1/2) double-integral W rho rho over densities: an obstacle
/// problem, whose solutions are Frostman's conditions
///
///     Phi = V + W*rho = mu where rho > 0,    Phi >= mu where rho = 0.
///
/// Gradient projection onto {rho >= 0, integral rho = 1} moves the support, conjugate gradients on the
/// support (with the mass fixed) solve for rho, and a projected line search keeps E falling; where W has a
/// negative direction the search runs into the boundary, so the end is a local minimum for interactions of
/// either sign. Result.residual is the largest violation of the two conditions over the largest |Phi|. Where
/// W is smooth, minimisers tend to be sums of points and W cannot tell neighbouring cells apart: many
/// iterations, or NotConverged with the residual reached. Source: J. J. More and G. Toraldo, SIAM J. Optim. 1
/// (1991) 93-113.
Result at_zero_temperature(const Landscape& landscape, const Density& start, const Options& options);

}  // namespace rieszflow::stationary
