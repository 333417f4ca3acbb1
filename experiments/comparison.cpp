#include "experiments/comparison.hpp"

#include <cmath>
#include <limits>

#include "analysis/discrepancy.hpp"
#include "analysis/distance.hpp"

namespace rieszflow::side_by_side {

namespace {

/// Root of the mean of squares; its standard error by the derivative of the root.
Estimate root_mean(const std::vector<double>& squares) {
  Estimate estimate = mean_estimate(squares);
  const double root = std::sqrt(estimate.value);
  estimate.standard_error = root > 0.0 ? estimate.standard_error / (2.0 * root) : 0.0;
  estimate.value = root;
  return estimate;
}

std::vector<double> squared(std::vector<double> values) {
  for (double& value : values) value *= value;
  return values;
}

Distance discrepancy(const ParticleEnsemble& ensemble, const Density& density,
                     const DiscrepancyKernel& kernel, std::string name, std::string units,
                     std::string meaning) {
  const MeanDiscrepancy mmd(density, kernel);
  std::vector<double> squares;
  for (const SquaredDiscrepancy& value : mmd(ensemble)) squares.push_back(std::max(0.0, value.biased));
  return {std::move(name), std::move(units), std::move(meaning), root_mean(squares),
          std::sqrt(mmd.expected_biased(ensemble.particle_count))};
}

}  // namespace

const std::vector<std::string>& distance_names() {
  static const std::vector<std::string> names = {"wasserstein_1", "wasserstein_2", "sliced_wasserstein_2",
                                                 "energy_distance", "mmd"};
  return names;
}

std::vector<Distance> distances(const ParticleEnsemble& ensemble, const Density& density) {
  const std::size_t n = ensemble.particle_count;
  const bool periodic = density.grid.periodic;
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  std::vector<Distance> result;
  if (ensemble.dimension == 1) {
    result.push_back({"wasserstein_1", "length", "Wasserstein-1 distance of mu_N and rho",
                      mean_estimate(wasserstein1(ensemble, density)),
                      periodic ? unknown : expected_wasserstein1(density, n)});
    result.push_back({"wasserstein_2", "length", "Wasserstein-2 distance of mu_N and rho, root mean square",
                      root_mean(squared(wasserstein2(ensemble, density))),
                      periodic ? unknown : std::sqrt(expected_squared_wasserstein2(density, n))});
    if (!periodic) {
      result.push_back(discrepancy(ensemble, density, EnergyKernel{}, "energy_distance", "length^(1/2)",
                                   "energy distance of mu_N and rho, root mean square"));
      return result;
    }
  } else if (!periodic) {
    result.push_back(
        {"sliced_wasserstein_2", "length",
         "sliced Wasserstein-2 distance of mu_N and rho, root mean square over directions and replicas",
         root_mean(squared(sliced_wasserstein2(ensemble, density))),
         std::sqrt(expected_squared_sliced_wasserstein2(density, n))});
  }
  const double pairs = static_cast<double>(n) * static_cast<double>(n + density.averages.size());
  if (static_cast<double>(ensemble.replica_count) * pairs <= discrepancy_cost_limit) {
    const double length = typical_distance(density);
    result.push_back(
        discrepancy(ensemble, density, GaussianKernel{length}, "mmd", "1",
                    "maximum mean discrepancy of mu_N and rho, Gaussian kernel, root mean square"));
  }
  return result;
}

}  // namespace rieszflow::side_by_side
