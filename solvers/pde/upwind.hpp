#pragma once
#include <span>
#include <vector>

#include "domain/grid.hpp"

namespace rieszflow::pde {

/// Second-order finite volumes for the gradient flow without noise, d/dt rho = div(rho grad Phi), no flux
/// through walls.
///
/// Equation: theory.md (4) at beta = infinity. Flux: J = u rho at the upwind side of the face, u =
/// -(Phi_{i+1} - Phi_i)/h, rho there from a linear reconstruction with the generalised minmod limiter (theta
/// = 2). Preserves: mass (round-off); positivity of forward Euler steps up to `stable_timestep`; dF/dt = -
/// sum |u| J area <= 0. Order: 2 in space where rho is smooth; fronts spread over two or three cells.
/// Reference: J. A. Carrillo, A. Chertock and Y. Huang, Commun. Comput. Phys. 17 (2015) 233-258.
class SecondOrderUpwind {
 public:
  explicit SecondOrderUpwind(const Grid& grid);

  /// out = d rho/dt; returns the dissipation - dF/dt.
  double rate_of_change(std::span<const double> potential, std::span<const double> averages,
                        std::span<double> out) const;

  /// Longest Euler step that keeps rho >= 0: no cell loses more than it holds.
  double stable_timestep(std::span<const double> potential) const;

 private:
  struct Axis {
    std::size_t count, inner, outer;
    double spacing;
    std::vector<double> apertures;  ///< (cell) open part of the face above; empty: 1
  };
  std::vector<Axis> axes_;
  std::vector<double> fractions_;  ///< (cell); empty: 1
  bool periodic_;
  double cell_volume_;
  mutable std::vector<double> outflow_;  ///< (cell) work
};

}  // namespace rieszflow::pde
