#include <cmath>
#include <numbers>

#include "analysis/discrepancy.hpp"
#include "analysis/distance.hpp"
#include "analysis/entropy.hpp"
#include "analysis/exact.hpp"
#include "analysis/rate_fit.hpp"
#include "core/noise.hpp"
#include "experiments/verify_tools.hpp"
#include "summation/energy.hpp"

/// N particles against their limit, and the estimators that compare them: theory.md section 3, items 1 and 2.
namespace rieszflow::verify {
namespace {

constexpr double pi = std::numbers::pi;

/// The mean-field Ornstein-Uhlenbeck flock kappa = 1, J = 2, beta = 2 from N(0.5, 1/4), stepped by Euler: the
/// law of the chain is Gaussian at every step size, so nothing is lost to the timestep.
struct Flock {
  static constexpr double kappa = 1.0, coupling = 2.0, beta = 2.0, start_mean = 0.5, start_variance = 0.25;
  static constexpr double end = 0.5, timestep = 0.01;
  static constexpr std::size_t steps = 50;

  /// Variance after the Euler steps of dX = -rate X dt + noise from `start_variance`.
  static double variance(double rate) {
    const double decay = std::pow(1.0 - rate * timestep, 2);
    double v = start_variance;
    for (std::size_t step = 0; step < steps; ++step) v = decay * v + 2.0 * timestep / beta;
    return v;
  }
  static double s() { return variance(kappa + coupling); }  ///< of the limit
  static double v() { return variance(kappa); }             ///< N times that of the mean
  static double mean() { return start_mean * std::pow(1.0 - kappa * timestep, steps); }

  static ParticleEnsemble particles(std::size_t replicas, std::size_t count, const Effort& effort) {
    const Model model{.domain = WholeSpace{1},
                      .potentials = {QuadraticPotential{kappa}},
                      .interactions = {QuadraticInteraction{coupling}},
                      .inverse_temperature = beta};
    return langevin_end(model, GaussianLaw{{start_mean}, {std::sqrt(start_variance)}}, replicas, count,
                        {.timestep = timestep}, end, effort);
  }
  static Density limit() {
    const Box box{{-4.0}, {5.0}};
    return cell_averages(GaussianLaw{{mean()}, {std::sqrt(s())}}, box, grid_on(box, {3000}));
  }
};

Estimate over_replicas(const ParticleEnsemble& ensemble, const Statistic& statistic) {
  std::vector<double> values;
  for (std::size_t r = 0; r < ensemble.replica_count; ++r) values.push_back(statistic(ensemble.replica(r)));
  return mean_estimate(values);
}

Finding flock_spread(const Effort& effort) {
  const std::size_t count = 5;
  const ParticleEnsemble ensemble = Flock::particles(effort.of(400000, 50000), count, effort);
  const Estimate spread = over_replicas(ensemble, [](std::span<const double> x) {
    double mean = 0.0, squares = 0.0;
    for (const double value : x) mean += value / static_cast<double>(x.size());
    for (const double value : x) squares += (value - mean) * (value - mean) / static_cast<double>(x.size());
    return squares;
  });
  return by_chance(spread, (1.0 - 1.0 / static_cast<double>(count)) * Flock::s());
}

Finding flock_marginal(const Effort& effort) {
  const std::size_t count = 5;
  const ParticleEnsemble ensemble = Flock::particles(effort.of(400000, 50000), count, effort);
  const Estimate variance = over_replicas(
      ensemble, particle_mean([](double x) { return (x - Flock::mean()) * (x - Flock::mean()); }));
  const double n = static_cast<double>(count);
  // N (Var x_i - s): the distance of the one-particle law from the limit, times N.
  return by_chance({.value = n * (variance.value - Flock::s()),
                    .standard_error = n * variance.standard_error,
                    .samples = variance.samples},
                   Flock::v() - Flock::s());
}

double squared_discrepancy(std::size_t count) {
  const auto g = [](double tau) { return 1.0 / std::sqrt(1.0 + tau); };
  const double n = static_cast<double>(count), s = Flock::s(), v = Flock::v();
  return (1.0 - g(2.0 * s)) / n + 2.0 * (g(2.0 * s) - g(2.0 * s + (v - s) / n));
}

Estimate measured_discrepancy(std::size_t count, std::size_t replicas, const Effort& effort) {
  const MeanDiscrepancy discrepancy(Flock::limit(), GaussianKernel{1.0});
  std::vector<double> values;
  for (const SquaredDiscrepancy& value : discrepancy(Flock::particles(replicas, count, effort)))
    values.push_back(value.biased);
  return mean_estimate(values);
}

Finding discrepancy_value(const Effort& effort) {
  return by_chance(measured_discrepancy(40, effort.of(20000, 4000), effort), squared_discrepancy(40));
}

Finding discrepancy_rate(const Effort& effort) {
  std::vector<RatePoint> points;
  plot::Markers measured{.x = {}, .y = {}, .error = {}, .label = "measured"};
  plot::Curve exact{.x = {}, .y = {}, .label = "exact", .ink = plot::Ink::Black};
  for (const std::size_t count : {10U, 40U, 160U, 640U}) {
    points.push_back(
        {static_cast<double>(count), measured_discrepancy(count, effort.of(8000, 1000), effort)});
    measured.x.push_back(points.back().scale);
    measured.y.push_back(points.back().error.value);
    measured.error.push_back(points.back().error.standard_error);
    exact.x.push_back(points.back().scale);
    exact.y.push_back(squared_discrepancy(count));
  }
  // The exact values have this slope between N = 10 and 640, not quite -1.
  const double slope = std::log(squared_discrepancy(640) / squared_discrepancy(10)) / std::log(64.0);
  Finding finding = by_chance(fit_rate(points).exponent, -1.0);
  finding.tolerance += std::abs(slope + 1.0);
  finding.rule += " and the curvature of the exact values";
  finding.figures = {{.title = "Squared discrepancy of N particles",
                      .x = {.label = "N", .logarithmic = true},
                      .y = {.label = "E MMD²", .logarithmic = true},
                      .layers = {exact, measured}}};
  return finding;
}

Finding transport(const Effort& effort) {
  const std::size_t count = 40;
  std::vector<double> values =
      wasserstein2(Flock::particles(effort.of(20000, 4000), count, effort), Flock::limit());
  for (double& value : values) value *= value;
  return by_chance(mean_estimate(values), (Flock::v() - Flock::s()) / static_cast<double>(count) +
                                              Flock::s() * exact::gaussian_squared_wasserstein2(count));
}

Finding independent_energy(const Effort& effort) {
  const std::size_t count = 4;
  const Model model{.domain = Box{{-1.0}, {1.0}},
                    .potentials = {},
                    .interactions = {LogarithmicInteraction{}},
                    .inverse_temperature = 1.0};
  const ParticleEnsemble ensemble =
      sample(UniformLaw{}, model.domain, effort.of(200000, 40000), count, effort.seed);
  std::vector<double> potential(ensemble.replica_count), interaction(ensemble.replica_count);
  energies(model, PairSum(model, count, {}), ensemble, potential, interaction);
  // (1/2) E W = (3/2 - log 2)/2 for two uniforms on [-1,1].
  return by_chance(mean_estimate(interaction),
                   (1.0 - 1.0 / static_cast<double>(count)) * 0.5 * (1.5 - std::numbers::ln2));
}

/// Gaussian of deviations 1, 2, 1/2 in d dimensions.
Finding gaussian_entropy(std::size_t d, const Effort& effort) {
  const std::vector<double> scales{1.0, 2.0, 0.5};
  const GaussianLaw law{std::vector<double>(d, 0.3), {scales.begin(), scales.begin() + static_cast<long>(d)}};
  const WholeSpace space{d};
  const EntropyEstimate measured =
      entropy(sample(law, space, 40, effort.of<std::size_t>(4000, 1000), effort.seed), space);
  double exact = 0.5 * static_cast<double>(d) * std::log(2.0 * pi * std::numbers::e);
  for (const double scale : law.standard_deviation) exact += std::log(scale);
  return by_chance(measured.estimate, exact);
}
Finding entropy_line(const Effort& effort) { return gaussian_entropy(1, effort); }
Finding entropy_plane(const Effort& effort) { return gaussian_entropy(2, effort); }
Finding entropy_space(const Effort& effort) { return gaussian_entropy(3, effort); }

}  // namespace

std::vector<Claim> chaos_claims() {
  const char* const flock = "theory.md section 3, item 1; exact.hpp OrnsteinUhlenbeck, its Euler chain";
  return {
      {"flock_spread", "mean-field Ornstein-Uhlenbeck, N = 5: E (1/N) Σ (x_i − x̄)² = (1 − 1/N) s(t)", flock,
       flock_spread},
      {"flock_marginal", "propagation of chaos: N (Var x_i − s(t)) = v(t) − s(t) exactly", flock,
       flock_marginal},
      {"discrepancy_value", "N = 40: E MMD²(μ_N, ρ_t)", flock, discrepancy_value},
      {"discrepancy_rate", "E MMD²(μ_N, ρ_t) ~ N^(−1), N = 10 to 640", flock, discrepancy_rate},
      {"transport", "N = 40: E W₂²(μ_N, ρ_t)", flock, transport},
      {"independent_energy", "independent particles, N = 4: E of the pair energy is (1 − 1/N) ½∬Wρρ",
       "theory.md (1), (5)", independent_energy},
      {"entropy_line", "nearest-neighbour entropy of a Gaussian, d = 1", "(d/2) log 2πe + Σ log σ",
       entropy_line},
      {"entropy_plane", "nearest-neighbour entropy of a Gaussian, d = 2", "(d/2) log 2πe + Σ log σ",
       entropy_plane},
      {"entropy_space", "nearest-neighbour entropy of a Gaussian, d = 3", "(d/2) log 2πe + Σ log σ",
       entropy_space},
  };
}

}  // namespace rieszflow::verify
