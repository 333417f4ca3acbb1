#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "potentials/interaction.hpp"

namespace rieszflow {

/// What W between two cells is the mean over.
enum class CellWeights {
  Galerkin,    ///< over both cells: the discrete energy is the exact energy of the piecewise constant density
  CellAverage  ///< from the centre of one over the other: the potential at centres is exact for it
};

/// Weights of a radial interaction on a uniform grid,
///
///   Galerkin     w_k = (1/|C|^2) integral_{C_0} integral_{C_k} W(x - y) dy dx = integral W(h (k + t)) prod_i
///   (1 - |t_i|) dt CellAverage  w_k = (1/|C|) integral_{C_k} W(y) dy = integral W(h (k + t)) dt over |t_i| <
///   1/2.
///
/// With the first, (1/2) sum_{ij} w_{i-j} m_i m_j is the exact interaction energy of the piecewise constant
/// density with cell masses m, symmetric, and positive definite where W is; equilibria that are positive at
/// walls have several times smaller errors. With the second, uniform densities have their exact potential at
/// the centres.
///
/// A tensor Gauss rule for the weight whose size follows the distance; within three cells, bisection
/// towards the singularity with Gauss-Legendre; in the boxes that touch it, Duffy's pyramids with the radial
/// integral in closed form (Riesz, log) or geometrically graded. All terms of these sums have one sign where
/// W has: no digits are lost at large k, unlike in second differences of a primitive. Relative error about
/// 1e-14 for the named interactions; an expression is integrated exactly up to degree 5 in each variable per
/// cell.
///
/// spacing: (dimension) cell edges; counts: (dimension) number of offsets 0, 1, ... per axis; result:
/// (offset), last axis fastest.
std::vector<double> kernel_weights(const Interaction& interaction, std::span<const double> spacing,
                                   std::span<const std::size_t> counts, CellWeights kind);

inline std::vector<double> galerkin_weights(const Interaction& interaction, std::span<const double> spacing,
                                            std::span<const std::size_t> counts) {
  return kernel_weights(interaction, spacing, counts, CellWeights::Galerkin);
}

}  // namespace rieszflow
