#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/verify.hpp"
#include "model/density.hpp"
#include "model/initial_law.hpp"
#include "model/mean_field.hpp"
#include "model/model.hpp"
#include "solvers/particle/langevin.hpp"
#include "solvers/pde/evolution.hpp"
#include "solvers/stationary/self_consistency.hpp"

/// How claims are measured and judged. What does not converge gives NaN, which never passes.
namespace rieszflow::verify {

std::vector<Claim> stationary_claims();
std::vector<Claim> evolution_claims();
std::vector<Claim> chaos_claims();
std::vector<Claim> scheme_claims();
std::vector<Claim> finite_size_claims();
std::vector<Claim> partition_claims();
std::vector<Claim> fluctuation_claims();
std::vector<Claim> deviation_claims();

// Judgements
// -------------------------------------------------------------------------------------------

/// Random: within 4 standard errors.
Finding by_chance(const Estimate& measured, double expected);
/// Deterministic: value(cells) and value(2 cells); the finer one within twice the error that this pair
/// predicts for a scheme of this order, |difference| / (2^order - 1). A fault of lower order does not pass.
Finding by_resolution(const std::function<double(std::size_t cells)>& value, std::size_t cells, double order,
                      double expected);
/// Deterministic, within a bound that `rule` explains.
Finding by_bound(double measured, double expected, double tolerance, std::string rule);

// Densities
// ---------------------------------------------------------------------------------------------

Density uniform(const Model& model, std::vector<std::size_t> cells);
/// Cell averages of a function of one coordinate.
std::vector<double> averages(const Grid& grid, const std::function<double(double)>& function);
double l1_distance(const Grid& grid, std::span<const double> a, std::span<const double> b);
/// Minimiser of F from the uniform density, or from the given one.
stationary::Result minimiser(const Model& model, std::vector<std::size_t> cells);
stationary::Result minimiser(const Model& model, const Density& start);
/// rho_t from rho_0 by (4).
Density evolved(const Model& model, Density start, double end, double tolerance = 1e-7);
/// rho(x) of a density on a line at a face: the mean of both cells, rho(x) + O(h^2).
double at_face(const Density& density, double x);

// Particles
// ---------------------------------------------------------------------------------------------

/// A number of one replica; positions: (particle, dimension).
using Statistic = std::function<double(std::span<const double> positions)>;
/// E of the statistics under the Gibbs law (3), by chains without a time step; replicas are independent.
/// (statistic)
std::vector<Estimate> gibbs_means(const Model& model, std::size_t particle_count,
                                  const std::vector<Statistic>& statistics, std::size_t replicas,
                                  std::int64_t sweeps, const Effort& effort);
/// The same of one.
Estimate gibbs_mean(const Model& model, std::size_t particle_count, const Statistic& statistic,
                    std::size_t replicas, std::int64_t sweeps, const Effort& effort);
/// Time average of (2) from uniform starts (whole space: standard Gaussians) after `burn_in`.
Estimate langevin_mean(const Model& model, std::size_t replicas, std::size_t particle_count,
                       particle::Options options, double burn_in, double end, double spacing,
                       const Statistic& statistic, const Effort& effort);
/// The ensemble at `end`.
ParticleEnsemble langevin_end(const Model& model, const InitialLaw& start, std::size_t replicas,
                              std::size_t particle_count, particle::Options options, double end,
                              const Effort& effort);

/// (1/N) sum f(x_i) on the line.
Statistic particle_mean(std::function<double(double)> function);

// Figures
// -----------------------------------------------------------------------------------------------

plot::Figure density_figure(const std::string& title, const Density& measured,
                            const std::function<double(double)>& exact);

}  // namespace rieszflow::verify
