#pragma once
#include <vector>

#include "domain/grid.hpp"

namespace rieszflow {

/// Cell averages of a probability density; last axis fastest. Non-negative, mass 1 (both to round-off, never
/// clamped).
struct Density {
  Grid grid;
  std::vector<double> averages;  ///< (cell), mass per volume
};

/// Integral of rho: sum of averages times cell volumes (volume fractions included).
double mass(const Density& density);
/// First moments, integral x_k rho; (dimension). Cells cut by the sphere of a ball count at their centres.
std::vector<double> mean(const Density& density);
/// Raw second moment: integral |x|^2 rho of the piecewise constant density (h^2/12 per axis included).
double second_moment(const Density& density);

}  // namespace rieszflow
