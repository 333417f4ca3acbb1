#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "core/ranks.hpp"
#include "domain/grid.hpp"

namespace rieszflow::pde {

/// How a flux continues at large cell Peclet numbers |z|, z = beta (Phi_{i+1} - Phi_i).
enum class Fluxes {
  Fitted,    ///< Scharfetter-Gummel: tends to first-order upwind
  Limited,   ///< times a factor in [0, 2] per face that makes it second-order upwind
  Automatic  ///< a choice of the caller at each step; not a flux
};

/// Finite volumes for d/dt rho = div(rho grad Phi) + (1/beta) Laplacian rho, no flux through walls, Phi given
/// on cells.
///
/// Equation: theory.md (4) with Phi = V + W*rho frozen.
/// Flux through the face between neighbours i and i+1 of one axis (Scharfetter and Gummel 1969),
///     J = (B(z) rho_i - B(-z) rho_{i+1}) / (beta h),  z = beta (Phi_{i+1} - Phi_i),  B(z) = z / (e^z - 1),
/// whose limit beta = infinity is upwind. B(-z) = B(z) + z is formed only for z > 0: no cancellation.
/// Preserves: mass (round-off), positivity (no clamp), the discrete Gibbs state exp(-beta Phi) exactly, and
///     dF/dt = - sum over faces of J (mu_i - mu_{i+1}) area <= 0,  mu = Phi + (1/beta) log rho (semi-discrete
///     (6)).
/// Limited fluxes: kappa J, kappa = 1 + sign(J) C / (up rho_i + down rho_{i+1}), with J = up rho_i - down
/// rho_{i+1} as above, C = (1/2)(up + down - 2/(beta h)) sigma, sigma the limited difference (generalised
/// minmod, theta = 2) in the upwind cell. At large |z| this is kappa J = v (rho_up + sigma/2), the
/// second-order upwind flux; at small |z| kappa - 1 = O(z^2). kappa lies in [0, 2], and in [1/2, 3/2] at a
/// Gibbs state: mass, positivity, Gibbs states and the sign of the dissipation are those of J. kappa is taken
/// at the start of a step. In a disc or ball (grid with volume fractions) the fluxes are weighted by the open
/// part of each face and the balance by the volume inside: no flux through the sphere, mass exact. Reference:
/// A. Schlichting and C. Seis, The Scharfetter-Gummel scheme for aggregation-diffusion equations (2021).
class ScharfetterGummel {
 public:
  /// Ranks, in two and three dimensions, take parts of the grid lines of an implicit step.
  ScharfetterGummel(const Grid& grid, double inverse_temperature, int threads, const Ranks& ranks = {});

  /// to = rho after one implicit step with Phi frozen: a tridiagonal system per grid line, one axis after the
  /// other (locally one-dimensional splitting), solved without subtractions (Grassmann, Taksar and Heyman
  /// 1985): mass and positivity hold for every timestep. `from` and `to` may be the same array. Order: 1 in
  /// the timestep.
  void implicit_step(std::span<const double> potential, double timestep, std::span<const double> from,
                     std::span<double> to, Fluxes fluxes = Fluxes::Fitted);

  /// out = d rho/dt of the semi-discretisation.
  void rate_of_change(std::span<const double> potential, std::span<const double> averages,
                      std::span<double> out);

  /// - dF/dt along the semi-discretisation, >= 0. A cell that holds less than 2^-52 of its equilibrium share
  /// with a neighbour counts as that share there: an empty cell costs a finite dissipation. scratch: one
  /// number per cell, overwritten.
  double dissipation(std::span<const double> potential, std::span<const double> averages,
                     std::span<double> scratch, Fluxes fluxes = Fluxes::Fitted);

  /// Largest rate at which a cell loses its mass; half a bound of the spectral radius with Phi frozen.
  /// scratch: one number per cell, overwritten.
  double largest_rate(std::span<const double> potential, std::span<double> scratch) const;

  /// The largest over the axes of the mean of |z| over the mass.
  double mean_peclet_number(std::span<const double> potential, std::span<const double> averages) const;

 private:
  struct Axis {
    std::size_t count, inner, outer;  ///< cells along the axis, stride of the axis, number of slabs
    double spacing;
    std::vector<double> apertures;  ///< (cell) open part of the face above; empty: 1
  };
  void sweep(const Axis& axis, const double* potential, double timestep, const double* from, double* to,
             Fluxes fluxes);
  /// factors_ = kappa of the faces above, times their open part.
  void limit(const Axis& axis, const double* potential, const double* averages);

  std::vector<Axis> axes_;
  bool periodic_;
  double inverse_temperature_;
  double cell_volume_;
  std::vector<double> fractions_;  ///< (cell) volume fractions; empty: 1
  int threads_;
  Ranks ranks_;
  bool is_long_line_ = false;              ///< one axis with cells enough to be cut into pieces
  std::vector<std::vector<double>> work_;  ///< (thread)
  std::vector<double> lines_;              ///< (line, cell) on their way between ranks
  std::vector<double> factors_;            ///< (cell) empty until limited fluxes are first asked for
};

}  // namespace rieszflow::pde
