#pragma once
#include <string>
#include <vector>

#include "analysis/estimate.hpp"
#include "model/density.hpp"
#include "model/ensemble.hpp"

namespace rieszflow::side_by_side {

/// One distance between mu_N and rho, and what N independent samples of rho would have.
struct Distance {
  std::string name;  ///< of the series comparison/NAME and comparison/NAME_reference
  std::string units;
  std::string meaning;
  Estimate value;          ///< over replicas
  double reference = 0.0;  ///< expectation for N independent samples of rho; NaN where no formula is known
};

/// Names in the order in which `distances` gives them; the first that exists is the run's main distance.
const std::vector<std::string>& distance_names();

/// Every distance that is defined for the state:
/// d = 1: Wasserstein-1 and -2, exact (on the circle where periodic), and the energy distance where not
/// periodic; d >= 2: sliced Wasserstein-2 where not periodic, and the Gaussian maximum mean discrepancy with
/// the root mean square distance of two points as its bandwidth. That one costs N^2 and N times the number of
/// cells: left out above `discrepancy_cost_limit` kernel values.
std::vector<Distance> distances(const ParticleEnsemble& ensemble, const Density& density);

constexpr double discrepancy_cost_limit = 1e9;  ///< kernel values per snapshot: some seconds

}  // namespace rieszflow::side_by_side
