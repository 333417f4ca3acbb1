#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "domain/grid.hpp"

namespace rieszflow::pde {

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
/// In a disc or ball (grid with volume fractions) the fluxes are weighted by the open part of each face and
/// the balance by the volume inside: no flux through the sphere, mass exact. Reference: A. Schlichting and C.
/// Seis, The Scharfetter-Gummel scheme for aggregation-diffusion equations (2021).
class ScharfetterGummel {
 public:
  ScharfetterGummel(const Grid& grid, double inverse_temperature, int threads);

  /// to = rho after one implicit step with Phi frozen: a tridiagonal system per grid line, one axis after the
  /// other (locally one-dimensional splitting), solved without subtractions (Grassmann, Taksar and Heyman
  /// 1985): mass and positivity hold for every timestep. `from` and `to` may be the same array. Order: 1 in
  /// the timestep.
  void implicit_step(std::span<const double> potential, double timestep, std::span<const double> from,
                     std::span<double> to);

  /// out = d rho/dt of the semi-discretisation.
  void rate_of_change(std::span<const double> potential, std::span<const double> averages,
                      std::span<double> out);

  /// - dF/dt along the semi-discretisation, >= 0; infinite where a cell is empty beside an occupied one (beta
  /// finite).
  double dissipation(std::span<const double> potential, std::span<const double> averages) const;

 private:
  struct Axis {
    std::size_t count, inner, outer;  ///< cells along the axis, stride of the axis, number of slabs
    double spacing;
    std::vector<double> apertures;  ///< (cell) open part of the face above; empty: 1
  };
  void sweep(const Axis& axis, const double* potential, double timestep, const double* from, double* to);

  std::vector<Axis> axes_;
  bool periodic_;
  double inverse_temperature_;
  double cell_volume_;
  std::vector<double> fractions_;  ///< (cell) volume fractions; empty: 1
  int threads_;
  bool is_long_line_ = false;              ///< one axis with cells enough to be cut into pieces
  std::vector<std::vector<double>> work_;  ///< (thread)
};

}  // namespace rieszflow::pde
