#include <cmath>
#include <limits>
#include <numbers>

#include "analysis/exact.hpp"
#include "experiments/verify_tools.hpp"

/// Solutions of theory.md (4) in time.
namespace rieszflow::verify {
namespace {

constexpr double pi = std::numbers::pi;

Density gaussian(const Model& model, std::vector<std::size_t> cells, double mean, double deviation) {
  const std::size_t d = cells.size();
  return cell_averages(GaussianLaw{std::vector<double>(d, mean), std::vector<double>(d, deviation)},
                       model.domain, grid_on(model.domain, std::move(cells)));
}

Finding gaussian_free_energy(const Effort& effort) {
  const Model model{.domain = Box{{-6.0}, {6.0}},
                    .potentials = {QuadraticPotential{1.0}},
                    .interactions = {QuadraticInteraction{0.5}},
                    .inverse_temperature = 2.0};
  const exact::OrnsteinUhlenbeck law{1.0, 0.5, 2.0, 0.7, 0.16};
  const double m = law.mean(1.0), s = law.variance(1.0);
  return by_resolution(
      [&](std::size_t n) {
        const Density density = evolved(model, gaussian(model, {n}, 0.7, 0.4), 1.0);
        return MeanField(model, density.grid, {}).free_energy(density).free_energy;
      },
      effort.of(400, 150), 2.0,
      0.5 * (m * m + s) + 0.5 * 0.5 * s - 0.25 * std::log(2.0 * pi * std::numbers::e * s));
}

Finding line_coulomb(double strength, double exact, const Effort& effort) {
  const Model model{.domain = Box{{-1.0}, {1.0}},
                    .potentials = {},
                    .interactions = {RieszInteraction{.exponent = -1.0, .strength = strength}},
                    .inverse_temperature = 5.0};
  return by_resolution([&](std::size_t n) { return at_face(evolved(model, uniform(model, {n}), 0.2), 0.0); },
                       effort.of(400, 100), 2.0, exact);
}
Finding cole_hopf(const Effort& effort) { return line_coulomb(1.0, 0.41670509429, effort); }
Finding cole_hopf_attractive(const Effort& effort) { return line_coulomb(-1.0, 0.62439969448, effort); }

Finding self_similar(const Effort& effort) {
  // rho ~ (R^2 - x^2)^((s+1)/2): m2 = R^2/(s+4); R^(s+2)(t) relaxes exponentially.
  const double s = 0.5, start_radius = 0.5, radius = 1.35617829740;
  const Model model{.domain = Box{{-2.0}, {2.0}},
                    .potentials = {QuadraticPotential{1.0}},
                    .interactions = {RieszInteraction{.exponent = s, .strength = s}},
                    .inverse_temperature = std::numeric_limits<double>::infinity()};
  return by_resolution(
      [&](std::size_t n) {
        const Grid grid = grid_on(model.domain, {n});
        Density start{grid, averages(grid, [&](double x) {
                        const double q = start_radius * start_radius - x * x;
                        return q > 0.0 ? std::pow(q, 0.5 * (s + 1.0)) : 0.0;
                      })};
        const double total = mass(start);
        for (double& value : start.averages) value /= total;
        return std::sqrt((s + 4.0) * second_moment(evolved(model, std::move(start), 1.0, 1e-5)));
      },
      effort.of(200, 100), 1.0, radius);
}

Finding heat_mode(const Effort& effort) {
  const double beta = 4.0;
  const Model model{
      .domain = Box{{-1.0}, {1.0}}, .potentials = {}, .interactions = {}, .inverse_temperature = beta};
  return by_resolution(
      [&](std::size_t n) {
        const Grid grid = grid_on(model.domain, {n});
        const std::vector<double> mode = averages(grid, [](double x) { return std::sin(0.5 * pi * x); });
        Density start{grid, {}};
        for (const double value : mode) start.averages.push_back(0.5 + 0.3 * value);
        const Density density = evolved(model, start, 1.0, 1e-8);
        double amplitude = 0.0, before = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
          amplitude += density.averages[i] * mode[i];
          before += start.averages[i] * mode[i];
        }
        return -std::log(amplitude / before);
      },
      effort.of(200, 50), 2.0, 0.25 * pi * pi / beta);
}

Finding spectral_gap(const Effort& effort) {
  // An odd perturbation falls like the first odd mode once the third (rate above 11) is gone.
  const Model model{.domain = Box{{-1.0}, {1.0}},
                    .potentials = {QuadraticPotential{1.0}},
                    .interactions = {},
                    .inverse_temperature = 2.0};
  return by_resolution(
      [&](std::size_t n) {
        Density start = uniform(model, {n});
        for (std::size_t i = 0; i < n; ++i) start.averages[i] *= 1.0 + 0.5 * start.grid.center(0, i);
        const Density first = evolved(model, start, 1.5, 1e-8);
        const Density second = evolved(model, first, 1.0, 1e-8);
        return std::log(mean(first)[0] / mean(second)[0]);
      },
      effort.of(200, 50), 2.0, 1.7984598320321);
}

Finding chemotaxis_moment(const Effort& effort) {
  const double attraction = 8.0, beta = 1.0, time = 0.05;
  const Model model{.domain = Box{{-4.0, -4.0}, {4.0, 4.0}},
                    .potentials = {},
                    .interactions = {LogarithmicInteraction{.strength = -attraction}},
                    .inverse_temperature = beta};
  return by_resolution(
      [&](std::size_t n) {
        const Density start = gaussian(model, {n, n}, 0.0, 0.6);
        return (second_moment(evolved(model, start, time, 1e-5)) - second_moment(start)) / time;
      },
      effort.of(64, 40), 2.0, 4.0 / beta - attraction);
}

Finding log_gas_moment(const Effort& effort) {
  const double beta = 2.0, kappa = 1.0, time = 0.5, start_deviation = 0.5;
  const Model model{.domain = Box{{-8.0}, {8.0}},
                    .potentials = {QuadraticPotential{kappa}},
                    .interactions = {LogarithmicInteraction{}},
                    .inverse_temperature = beta};
  const double rest = (2.0 / beta + 1.0) / (2.0 * kappa);
  return by_resolution(
      [&](std::size_t n) {
        return second_moment(evolved(model, gaussian(model, {n}, 0.0, start_deviation), time));
      },
      effort.of(800, 300), 2.0,
      rest + (start_deviation * start_deviation - rest) * std::exp(-2.0 * kappa * time));
}

Finding dissipation(const Effort& effort) {
  // Simpson's rule over equal output times.
  const Model model{.domain = Box{{-1.0}, {1.0}},
                    .potentials = {QuadraticPotential{2.0}},
                    .interactions = {LogarithmicInteraction{}},
                    .inverse_temperature = 5.0};
  const MeanField field(model, grid_on(model.domain, {effort.of<std::size_t>(400, 100)}), {});
  pde::State state{.density = gaussian(model, {field.grid().cells[0]}, 0.3, 0.25)};
  std::vector<double> times, dissipated, energies;
  const pde::Result result = pde::run(field, state, {.tolerance = 1e-7}, Schedule::every(0.0025, 0.0, 1.0),
                                      [&](const Clock& clock, const pde::State& now) {
                                        times.push_back(clock.time);
                                        dissipated.push_back(now.diagnostics.dissipation);
                                        energies.push_back(now.diagnostics.energy.free_energy);
                                      },
                                      {});
  double integral = 0.0;
  for (std::size_t i = 0; i + 2 < times.size(); i += 2)
    integral +=
        (times[i + 2] - times[i]) / 6.0 * (dissipated[i] + 4.0 * dissipated[i + 1] + dissipated[i + 2]);
  if (result.status != RunStatus::Completed) integral = std::numeric_limits<double>::quiet_NaN();
  Finding finding = by_bound((energies.front() - energies.back()) / integral, 1.0, 1e-3,
                             "quadrature in time of 400 intervals");
  finding.figures = {{.title = "Free energy of the density",
                      .x = {.label = "t  [time]"},
                      .y = {.label = "F  [energy]"},
                      .layers = {plot::Curve{.x = times, .y = energies}}}};
  return finding;
}

}  // namespace

std::vector<Claim> evolution_claims() {
  return {
      {"gaussian_free_energy", "quadratic V and W: Gaussians stay Gaussian, F at t = 1", "references B1",
       gaussian_free_energy},
      {"cole_hopf", "W = −|x| on [-1,1], β = 5: ρ(0) at t = 0.2", "Cole and Hopf; references B2", cole_hopf},
      {"cole_hopf_attractive", "W = +|x| on [-1,1], β = 5: ρ(0) at t = 0.2", "Cole and Hopf; references B3",
       cole_hopf_attractive},
      {"self_similar", "W = |x|^(−1/2), β = ∞: radius R(1) of the self-similar solution", "references B4",
       self_similar},
      {"heat_mode", "W = V = 0: the first mode decays at the rate (π/2)²/β", "references B7", heat_mode},
      {"spectral_gap", "V = x²/2 on [-1,1], β = 2: the mean decays at the spectral gap", "references B7",
       spectral_gap},
      {"chemotaxis_moment", "W = θ log|x| in the plane: d m₂/dt = 4/β − θ, negative beyond the critical mass",
       "virial theorem; references B6", chemotaxis_moment},
      {"log_gas_moment", "W = −log|x|, V = x²/2: m₂ relaxes at the rate 2", "virial theorem; references B6",
       log_gas_moment},
      {"dissipation", "(F(0) − F(1)) / ∫ dissipation dt = 1 and F falls", "theory.md (6)", dissipation},
  };
}

}  // namespace rieszflow::verify
