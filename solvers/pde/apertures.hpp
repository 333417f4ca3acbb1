#pragma once
#include <vector>

#include "domain/grid.hpp"

namespace rieszflow::pde {

/// How much of each face between neighbours along `axis` is inside the ball whose bounding box the grid is;
/// (cell), the face above the cell, in [0, 1]; 0 beside a cell with no volume. Exact chords for d = 2; for d
/// = 3 the area of a rectangle in a disc by Gauss-Legendre quadrature between the points where the circle
/// meets its edges.
std::vector<double> face_apertures(const Grid& grid, std::size_t axis);

}  // namespace rieszflow::pde
