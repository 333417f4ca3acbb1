#include <cmath>
#include <numbers>

#include "analysis/exact.hpp"
#include "experiments/verify_tools.hpp"
#include "solvers/rare_event/minimisers.hpp"
#include "solvers/rare_event/partition_function.hpp"
#include "solvers/stationary/rate_function.hpp"
#include "summation/pair_sum.hpp"

/// The Gibbs law (3) at finite N: moments, identities, partition functions.
namespace rieszflow::verify {
namespace {

constexpr double pi = std::numbers::pi;

Model log_gas(Domain domain, double beta, std::vector<Potential> potentials = {}) {
  return {.domain = std::move(domain),
          .potentials = std::move(potentials),
          .interactions = {LogarithmicInteraction{}},
          .inverse_temperature = beta};
}
const Domain interval = Box{{-1.0}, {1.0}};
const Domain circle = Torus{{-pi}, {pi}};

/// H = -(J/2) m^2 on [-1,1], J = 1.
Model curie_weiss(double coupling) {
  return {.domain = interval,
          .potentials = {QuadraticPotential{-1.0}},
          .interactions = {QuadraticInteraction{1.0}},
          .inverse_temperature = coupling};
}
Model rotators(double coupling) {
  return {.domain = circle,
          .potentials = {},
          .interactions = {CosineInteraction{coupling}},
          .inverse_temperature = 1.0};
}
Model coulomb_line(double beta) {
  return {.domain = interval,
          .potentials = {},
          .interactions = {RieszInteraction{.exponent = -1.0}},
          .inverse_temperature = beta};
}
Model learned_kernel(double beta) {
  const auto g = [](const char* text) {
    return std::make_shared<const ExpressionFunction>(text, std::vector<std::string>{"x"});
  };
  return {.domain = Torus{{-0.5 * pi}, {0.5 * pi}},
          .potentials = {CosinePotential{-0.5, 2.0}, PolynomialPotential{{-0.5}}},
          .interactions = {LowRankInteraction{0.5, {g("1"), g("cos(2*x)"), g("sin(2*x)")}}},
          .inverse_temperature = beta};
}

Statistic squared_mean() {
  return [](std::span<const double> x) {
    double sum = 0.0;
    for (const double value : x) sum += value;
    return sum * sum / static_cast<double>(x.size());  // N m^2
  };
}
/// |sum exp(i k x)|^2 / N.
Statistic mode(int k) {
  return [k](std::span<const double> x) {
    double c = 0.0, s = 0.0;
    for (const double angle : x) c += std::cos(k * angle), s += std::sin(k * angle);
    return (c * c + s * s) / static_cast<double>(x.size());
  };
}

// Moments
// ---------------------------------------------------------------------------------------------

Finding interval_second_moment(const Effort& effort) {
  return by_chance(
      langevin_mean(log_gas(interval, 2.0), 40, 10, {.scheme = particle::Scheme::Mala, .timestep = 0.01}, 2.0,
                    effort.of(400.0, 40.0), 0.04, particle_mean([](double x) { return x * x; }), effort),
      exact::log_gas_on_interval_second_moment(10, 2.0));
}

Finding interval_mean_variance(const Effort& effort) {
  return by_chance(gibbs_mean(log_gas(interval, 5.0), 10, squared_mean(), 40, effort.of(60000, 6000), effort),
                   exact::log_gas_on_interval_mean_variance(10, 5.0));
}

Finding virial(const Effort& effort) {
  const Statistic squared_radius = [](std::span<const double> x) {
    double sum = 0.0;
    for (const double value : x) sum += value * value;
    return 2.0 * sum / static_cast<double>(x.size());  // (1/N) sum |x|^2, N = size/2
  };
  return by_chance(gibbs_mean(log_gas(WholeSpace{2}, 4.0, {QuadraticPotential{1.0}}), 10, squared_radius, 40,
                              effort.of(60000, 6000), effort),
                   exact::log_gas_second_moment(2, 10, 4.0, 1.0));
}

Finding circle_mode(int k, const Effort& effort) {
  return by_chance(gibbs_mean(log_gas(circle, 2.0), 10, mode(k), 40, effort.of(60000, 6000), effort),
                   exact::circle_mode_variance(10, 2.0, k));
}
Finding circle_mode_1(const Effort& effort) { return circle_mode(1, effort); }
Finding circle_mode_2(const Effort& effort) { return circle_mode(2, effort); }

Finding curie_weiss_variance(const Effort& effort) {
  return by_chance(gibbs_mean(curie_weiss(1.5), 40, squared_mean(), 40, effort.of(60000, 6000), effort),
                   exact::curie_weiss_variance(40, 1.5));
}

Finding rotator_mode(double coupling, double expected, const Effort& effort) {
  return by_chance(gibbs_mean(rotators(coupling), 10, mode(1), 40, effort.of(60000, 6000), effort), expected);
}
Finding rotators_above(const Effort& effort) { return rotator_mode(1.0, 1.713063278, effort); }
Finding rotators_below(const Effort& effort) { return rotator_mode(3.0, 5.69923175338, effort); }

// Identities
// ------------------------------------------------------------------------------------------

Finding contact(const Effort& effort) {
  // rho(1) = (4 M(h) - M(2h))/(2h) + O(h^2), M(h) the mass within h of a wall; both walls.
  const double h = 0.02, beta = 4.0;
  const Statistic density = particle_mean([h](double x) {
    const double depth = 1.0 - std::abs(x);
    return depth < h ? 3.0 / (4.0 * h) : depth < 2.0 * h ? -1.0 / (4.0 * h) : 0.0;
  });
  Finding finding =
      by_chance(gibbs_mean(log_gas(interval, beta), 5, density, 40, effort.of(600000, 60000), effort),
                0.5 * exact::contact_flux(1, beta, 5, 0.0, -1.0));
  finding.tolerance += 0.003 * finding.expected;
  finding.rule += " and 0.3 % for the extrapolation to the wall";
  return finding;
}

/// E (1/N) sum [div g + beta g . F] = 0 for g = (1-|x|^2) x, F the force of (2).
Finding schwinger_dyson(const Model& model, std::size_t count, double timestep, const Effort& effort) {
  const std::size_t d = dimension(model.domain);
  const PairSum pairs(model, count, {});
  std::vector<double> forces(count * d);
  const Statistic identity = [&](std::span<const double> x) {
    std::fill(forces.begin(), forces.end(), 0.0);
    pairs.add_forces(x, 1, forces);
    double sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const double> point = x.subspan(i * d, d);
      const std::span<double> force(forces.data() + i * d, d);
      add_potential_force(model, point, force);
      double r2 = 0.0, work = 0.0;
      for (std::size_t k = 0; k < d; ++k) r2 += point[k] * point[k], work += point[k] * force[k];
      sum += static_cast<double>(d) * (1.0 - r2) - 2.0 * r2 + model.inverse_temperature * (1.0 - r2) * work;
    }
    return sum / static_cast<double>(count);
  };
  return by_chance(langevin_mean(model, 40, count, {.scheme = particle::Scheme::Mala, .timestep = timestep},
                                 2.0, effort.of(400.0, 40.0), 0.04, identity, effort),
                   0.0);
}

Finding identity_riesz(const Effort& effort) {
  return schwinger_dyson({.domain = interval,
                          .potentials = {QuadraticPotential{0.5}},
                          .interactions = {RieszInteraction{.exponent = 0.5}},
                          .inverse_temperature = 2.0},
                         8, 0.01, effort);
}
Finding identity_disc(const Effort& effort) {
  return schwinger_dyson(log_gas(Ball{{0.0, 0.0}, 1.0}, 3.0), 8, 0.02, effort);
}
Finding identity_morse(const Effort& effort) {
  return schwinger_dyson(
      {.domain = interval,
       .potentials = {DoubleWellPotential{.height = 0.5, .width = 0.6}},
       .interactions = {MorseInteraction{}, GaussianInteraction{.strength = 2.0, .length = 0.3}},
       .inverse_temperature = 3.0},
      8, 0.02, effort);
}

// Partition functions
// ---------------------------------------------------------------------------------

/// With `share` of the usual number of sweeps.
Finding partition(const Model& model, std::size_t count, double exact_log_z, const Effort& effort,
                  double share = 1.0) {
  const rare_event::PartitionFunction z =
      rare_event::partition_function(model, count,
                                     {.replicates = 32,
                                      .sweeps = static_cast<std::int64_t>(share * effort.of(8000.0, 1000.0)),
                                      .seed = effort.seed,
                                      .threads = effort.threads});
  const double n = static_cast<double>(count);
  return by_chance({.value = z.log_partition / n, .standard_error = z.standard_error / n, .samples = 32},
                   exact_log_z / n);
}

Finding partition_interval(const Effort& effort) {
  return partition(log_gas(interval, 2.0), 10, exact::log_gas_on_interval(10, 2.0).log_z, effort);
}
Finding partition_line(const Effort& effort) {
  return partition(log_gas(WholeSpace{1}, 2.0, {QuadraticPotential{1.0}}), 10,
                   exact::log_gas_on_line(10, 2.0, 1.0).log_z, effort);
}
Finding partition_circle(const Effort& effort) {
  return partition(log_gas(circle, 10.0), 10, exact::log_gas_on_circle(10, 10.0).log_z, effort);
}
Finding partition_coulomb(const Effort& effort) {
  return partition(coulomb_line(5.0), 10, exact::coulomb_on_interval(10, 5.0).log_z, effort);
}
Finding partition_curie_weiss(const Effort& effort) {
  return partition(curie_weiss(1.5), 20, exact::curie_weiss(20, 1.5).log_z, effort);
}
Finding partition_rotators(const Effort& effort) {
  return partition(rotators(1.0), 20, exact::plane_rotators(20, 1.0).log_z, effort);
}
Finding partition_learned(const Effort& effort) {
  return partition(learned_kernel(2.0), 10, exact::learned_kernel(10, 2.0).log_z, effort);
}
Finding partition_disc(const Effort& effort) {
  // beta = 2N: |Vandermonde|^2, orthogonal monomials.
  return partition(log_gas(Ball{{0.0, 0.0}, 1.0}, 10.0), 5, 5.0 * std::log(pi), effort);
}

Finding equilibrium_free_energy(const Effort& effort) {
  // f(N) = f + c/N + e/N^2 at N, 2N, 4N: f = (8 f(4N) - 6 f(2N) + f(N))/3.
  const double beta = 2.0;
  const Model model = log_gas(interval, beta);
  double value = 0.0, variance = 0.0;
  plot::Markers markers{.x = {}, .y = {}, .error = {}, .label = "(1/N) log Z_N"};
  const double weights[] = {1.0 / 3.0, -2.0, 8.0 / 3.0};
  for (std::size_t k = 0; k < 3; ++k) {
    const std::size_t count = 10U << k;
    const Estimate f = partition(model, count, 0.0, effort).measured;
    value += weights[k] * f.value;
    variance += weights[k] * weights[k] * f.standard_error * f.standard_error;
    markers.x.push_back(1.0 / static_cast<double>(count));
    markers.y.push_back(f.value);
    markers.error.push_back(f.standard_error);
  }
  const double limit = -beta * minimiser(model, {400}).energy.free_energy;
  Finding finding = by_chance({.value = value, .standard_error = std::sqrt(variance), .samples = 32}, limit);
  const double c0 = exact::log_gas_on_interval(10, beta).correction.value();
  finding.figures = {{.title = "Free energy of N particles",
                      .x = {.label = "1/N"},
                      .y = {.label = "(1/N) log Z_N"},
                      .layers = {plot::Curve{.x = {0.0, 0.1},
                                             .y = {limit, limit + 0.1 * c0},
                                             .label = "−β min F + c₀/N",
                                             .ink = plot::Ink::Black},
                                 markers}}};
  return finding;
}

Finding riesz_correction(const Effort& effort) {
  // (1/N) log Z_N + beta min F ~ N^-(1/s - 1) for 1/2 < s < 1.
  const Model model{.domain = interval,
                    .potentials = {},
                    .interactions = {RieszInteraction{.exponent = 0.75, .strength = 0.75}},
                    .inverse_temperature = 1.0};
  const double limit = -1.20058912;
  const Estimate few = partition(model, 20, 0.0, effort, 0.2).measured,
                 many = partition(model, 80, 0.0, effort, 0.2).measured;
  const double ratio = (few.value - limit) / (many.value - limit);
  const Estimate exponent{.value = -std::log(ratio) / std::log(4.0),
                          .standard_error = std::hypot(few.standard_error / (few.value - limit),
                                                       many.standard_error / (many.value - limit)) /
                                            std::log(4.0),
                          .samples = 32};
  Finding finding = by_chance(exponent, -1.0 / 3.0);
  finding.tolerance += 0.03;
  finding.rule += " and 0.03: the next order at N = 20 to 80";
  return finding;
}

Finding correction_constant(const Model& model, std::size_t cells, double order, double expected) {
  return by_resolution(
      [&](std::size_t n) {
        const Density density = minimiser(model, {n}).density;
        return stationary::partition_correction(MeanField(model, density.grid, {}), density);
      },
      cells, order, expected);
}
Finding correction_interval(const Effort& effort) {
  return correction_constant(log_gas(interval, 2.0), effort.of(300, 100), 1.0,
                             exact::log_gas_on_interval(10, 2.0).correction.value());
}
Finding correction_rotators(const Effort& effort) {
  return correction_constant(rotators(1.0), effort.of(200, 50), 2.0,
                             exact::plane_rotators(10, 1.0).correction.value());
}

Finding fekete(const Effort& effort) {
  // sum_{i<j} log|x_i - x_j| = -1.59405996014777 N at the zeros of (1-x^2) P'_9.
  const rare_event::Minimisers minima = rare_event::minimise(
      log_gas(interval, 1.0), 10,
      {.starts = effort.of<std::size_t>(16, 6), .seed = effort.seed, .threads = effort.threads});
  return by_bound(minima.status == RunStatus::Completed ? -10.0 * minima.best.hamiltonian : std::nan(""),
                  -1.59405996014777, 1e-9, "convergence of the minimisation");
}

}  // namespace

std::vector<Claim> finite_size_claims() {
  return {
      {"interval_second_moment", "log gas on [-1,1], N = 10, β = 2: E x², by Metropolis-adjusted Langevin",
       "loop equations; exact.hpp log_gas_on_interval_second_moment", interval_second_moment},
      {"interval_mean_variance", "log gas on [-1,1], N = 10, β = 5: N Var(x̄) = (1 − E x²)/(2 + β(1 − 1/N))",
       "loop equations; exact.hpp log_gas_on_interval_mean_variance", interval_mean_variance},
      {"virial", "log gas in |x|²/2 in the plane, N = 10, β = 4: E|x|² = (d + (β/2)(1 − 1/N))/β",
       "virial theorem", virial},
      {"circle_mode_1", "circular log gas, N = 10, β = 2: N E|μ̂₁|² = 1/(1 + (β/2)(1 − 1/N))",
       "exact.hpp circle_mode_variance", circle_mode_1},
      {"circle_mode_2", "circular log gas, N = 10, β = 2: N E|μ̂₂|² by Jack polynomials",
       "exact.hpp circle_mode_variance", circle_mode_2},
      {"curie_weiss_variance", "Curie-Weiss, βJ = 1.5, N = 40: N E m²", "Hubbard and Stratonovich",
       curie_weiss_variance},
      {"rotators_above", "mean-field rotators above their transition, βK = 1, N = 10: N E r²",
       "Hubbard and Stratonovich", rotators_above},
      {"rotators_below", "mean-field rotators below their transition, βK = 3, N = 10: N E r²",
       "Hubbard and Stratonovich", rotators_below},
      {"contact", "log gas on [-1,1], N = 5, β = 4: ρ_N(±1) = ½ + (β/4)(1 − 1/N)",
       "contact theorem; exact.hpp contact_flux", contact},
      {"identity_riesz", "Schwinger-Dyson identity of (1 − x²)x, W = r^(−1/2), V = x²/4 on [-1,1], N = 8",
       "integration by parts in (3)", identity_riesz},
      {"identity_disc", "Schwinger-Dyson identity of (1 − |x|²)x, log gas on the disc, N = 8",
       "integration by parts in (3)", identity_disc},
      {"identity_morse",
       "Schwinger-Dyson identity of (1 − x²)x, Morse and Gaussian W in a double well, N = 8",
       "integration by parts in (3)", identity_morse},
      {"fekete", "log gas on [-1,1], N = 10: (1/N) max Σ log|x_i − x_j|, zeros of (1 − x²)P₉′",
       "Stieltjes; G. Szegő, Orthogonal Polynomials (6.7)", fekete},
  };
}

std::vector<Claim> partition_claims() {
  return {
      {"partition_interval", "log gas on [-1,1], N = 10, β = 2: (1/N) log Z", "Selberg (1944)",
       partition_interval},
      {"partition_line", "log gas in x²/2, N = 10, β = 2: (1/N) log Z", "Mehta (17.6.7)", partition_line},
      {"partition_circle", "circular log gas, N = 10, β = 10: (1/N) log Z", "Dyson (1962)", partition_circle},
      {"partition_coulomb", "W = −|x| on [-1,1], N = 10, β = 5: (1/N) log Z", "Hermite and Genocchi",
       partition_coulomb},
      {"partition_disc", "log gas on the disc, N = 5, β = 2N: Z = π^N", "orthogonal monomials",
       partition_disc},
      {"partition_curie_weiss", "Curie-Weiss, N = 20, βJ = 1.5: (1/N) log Z", "Hubbard and Stratonovich",
       partition_curie_weiss},
      {"partition_rotators", "mean-field rotators, N = 20, βK = 1: (1/N) log Z", "Hubbard and Stratonovich",
       partition_rotators},
      {"partition_learned", "learned kernel, N = 10, β = 2: (1/N) log Z by Bessel integrals",
       "exact.hpp learned_kernel", partition_learned},
      {"equilibrium_free_energy", "log gas on [-1,1], β = 2: (1/N) log Z_N → −β min F of the density",
       "theory.md section 3, item 3", equilibrium_free_energy},
      {"riesz_correction", "W = r^(−3/4) on the line: (1/N) log Z_N + β min F ~ N^(−1/3), not N^(−1)",
       "theory.md section 3, item 2", riesz_correction},
      {"correction_interval",
       "log gas on [-1,1], β = 2: c₀ = lim (log Z_N + βN min F) by a determinant on the grid",
       "exact.hpp log_gas_on_interval", correction_interval},
      {"correction_rotators", "mean-field rotators, βK = 1: c₀ by a determinant on the grid",
       "exact.hpp plane_rotators", correction_rotators},
  };
}

}  // namespace rieszflow::verify
