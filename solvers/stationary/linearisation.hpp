#pragma once
#include <vector>

#include "model/density.hpp"
#include "solvers/observer.hpp"
#include "solvers/stationary/landscape.hpp"

namespace rieszflow::stationary {

struct SpectrumOptions {
  int count = 1;  ///< how many of the lowest eigenvalues
  double tolerance =
      1e-6;  ///< of the residual, relative; the relative error of an eigenvalue is about its square
  int iterations = 200;
};

/// The lowest eigenvalues of a self-adjoint operator and their residuals.
struct Spectrum {
  RunStatus status = RunStatus::Completed;  ///< NotConverged: the values are upper bounds
  std::vector<double> values{};  ///< (mode), ascending; fewer where the lowest is below 1e-12 of the next
  std::vector<std::vector<double>>
      modes{};            ///< (mode)(cell): change of rho, integral mode^2 / rho = 1, mass 0
  double residual = 0.0;  ///< largest of the modes, relative
  int iterations = 0;
};

/// The second variation of F at a density, on perturbations u rho of mass zero:
///
///     d^2 F[u rho, u rho] = (1/beta) integral u^2 rho + double-integral W (u rho)(u rho),
///
/// eigenvalues with respect to integral u^2 rho. A stationary state is a strict local minimum of F where the
/// lowest is positive. Independent particles have 1/beta, and a repulsion crowds eigenvalues there from above
/// (NotConverged, with upper bounds close to it); what an attraction lowers is isolated. Cells without mass
/// do not take part.
Spectrum second_variation(const Landscape& landscape, const Density& state, const SpectrumOptions& options);

/// Rates lambda of theory.md (4) linearised at a stationary state of finite beta: perturbations decay as
/// exp(-lambda t). The lowest is the spectral gap; a negative one is the growth of an instability, zero a
/// symmetry.
///
/// -K H, K = -div(rho grad .) and H = second variation, is exactly the Jacobian of the Scharfetter-Gummel
/// semi-discretisation (scharfetter_gummel.hpp) at its stationary state, so these are the rates of
/// `pde::run`. All real: lambda = <v, H v> / <v, K^-1 v>, second variation over the squared Wasserstein
/// speed. Error about 1e-13 of the fastest rate of the grid, 4 d / (beta h^2): slower ones are zero here. K
/// is factorised once as a sparse matrix: to about 10^5 cells in 3-d.
Spectrum relaxation_rates(const Landscape& landscape, const Density& state, const SpectrumOptions& options);

}  // namespace rieszflow::stationary
