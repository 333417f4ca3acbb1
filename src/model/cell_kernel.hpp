#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "potentials/interaction.hpp"

namespace rieszflow {

/// Galerkin weights of a radial interaction on a uniform grid: the mean of W over pairs of cells,
///
///   w_k = (1/|C|^2) integral_{C_0} integral_{C_k} W(x - y) dy dx = integral W(h (k + t)) prod_i (1 - |t_i|)
///   dt,
///
/// so that (1/2) sum_{ij} w_{i-j} m_i m_j is the exact interaction energy of the piecewise constant density
/// with cell masses m, symmetric, and positive definite where W is.
///
/// A tensor Gauss rule for the hat weight whose size follows the distance; within three cells, bisection
/// towards the singularity with Gauss-Legendre; in the boxes that touch it, Duffy's pyramids with the radial
/// integral in closed form (Riesz, log) or geometrically graded. All terms of these sums have one sign where
/// W has: no digits are lost at large k, unlike in second differences of a primitive. Relative error about
/// 1e-14 for the named interactions; an expression is integrated exactly up to degree 5 in each variable per
/// cell.
///
/// spacing: (dimension) cell edges; counts: (dimension) number of offsets 0, 1, ... per axis; result:
/// (offset), last axis fastest.
std::vector<double> galerkin_weights(const Interaction& interaction, std::span<const double> spacing,
                                     std::span<const std::size_t> counts);

}  // namespace rieszflow
