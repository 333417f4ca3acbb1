#pragma once
#include <vector>

#include "domain/domain.hpp"

namespace rieszflow {

/// Points at which functions given by the user are tried before a run: a lattice with the walls, corners and
/// the centre of the domain, 1025, 65 or 17 nodes per axis for d = 1, 2, 3, a Halton sequence of 4096 points
/// for d > 3. Ball: lattice points outside are projected, so the sphere is tried too. Torus: upper faces left
/// out. Whole space: the box [-5, 5]^d. Result: (point, dimension), row-major.
std::vector<double> probe_points(const Domain& domain);

}  // namespace rieszflow
