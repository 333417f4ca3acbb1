#include <cmath>
#include <limits>
#include <numbers>

#include "analysis/exact.hpp"
#include "experiments/verify_tools.hpp"
#include "solvers/stationary/rate_function.hpp"

/// Minimisers of F: theory.md (5), (7).
namespace rieszflow::verify {
namespace {

constexpr double pi = std::numbers::pi;

Model on_interval(Interaction interaction, double beta, std::vector<Potential> potentials = {}) {
  return {.domain = Box{{-1.0}, {1.0}},
          .potentials = std::move(potentials),
          .interactions = {std::move(interaction)},
          .inverse_temperature = beta};
}
Interaction logarithm(double strength = 1.0) { return LogarithmicInteraction{.strength = strength}; }
/// W = -strength |x|.
Interaction coulomb_line(double strength = 1.0) {
  return RieszInteraction{.exponent = -1.0, .strength = strength};
}

double free_energy(const Model& model, std::vector<std::size_t> cells) {
  return minimiser(model, std::move(cells)).energy.free_energy;
}

/// The L1 distance to an exact density.
Finding density_claim(const std::string& title, const Model& model, std::size_t cells,
                      const std::function<double(double)>& exact) {
  Density finest;
  Finding finding = by_resolution(
      [&](std::size_t n) {
        finest = minimiser(model, {n}).density;
        return l1_distance(finest.grid, finest.averages, averages(finest.grid, exact));
      },
      cells, 2.0, 0.0);
  finding.figures = {density_figure(title, finest, exact)};
  return finding;
}

Finding interval_density(const Effort& effort) {
  return density_claim("Log gas on [-1,1], β = 2", on_interval(logarithm(), 2.0), effort.of(400, 100),
                       [](double x) { return exact::log_gas_on_interval_density(2.0, x); });
}

Finding interval_free_energy(const Effort& effort) {
  return by_resolution([](std::size_t n) { return free_energy(on_interval(logarithm(), 2.0), {n}); },
                       effort.of(400, 100), 2.0, -exact::log_gas_on_interval(10, 2.0).limit / 2.0);
}

Finding line_density(const Effort& effort) {
  Model model = on_interval(logarithm(), 2.0, {QuadraticPotential{1.0}});
  model.domain = Box{{-7.0}, {7.0}};  // beyond: exp(-49)
  return density_claim("Log gas in a well, β = 2", model, effort.of(600, 200),
                       [](double x) { return exact::log_gas_on_line_density(2.0, 1.0, x); });
}

Finding coulomb_density(const Effort& effort) {
  return density_claim("One-dimensional Coulomb gas on [-1,1], β = 5", on_interval(coulomb_line(), 5.0),
                       effort.of(400, 100),
                       [](double x) { return exact::coulomb_on_interval_density(5.0, x); });
}

Finding attractive_free_energy(const Effort& effort) {
  return by_resolution([](std::size_t n) { return free_energy(on_interval(coulomb_line(-1.0), 5.0), {n}); },
                       effort.of(400, 100), 2.0, 0.12450561361);
}

Finding riesz_moment(const Effort& effort) {
  return by_resolution(
      [](std::size_t n) {
        return second_moment(
            minimiser(on_interval(RieszInteraction{.exponent = 0.5, .strength = 0.5}, 2.0), {n}).density);
      },
      effort.of(400, 100), 2.0, 0.3682837294);
}

Finding uniform_coulomb(const Effort& effort) {
  const Density density = minimiser(on_interval(coulomb_line(), 3.0, {QuadraticPotential{1.0}}),
                                    {effort.of<std::size_t>(400, 100)})
                              .density;
  return by_bound(
      l1_distance(density.grid, density.averages, averages(density.grid, [](double) { return 0.5; })), 0.0,
      1e-9, "round-off: cell averages of this kernel and potential are exact");
}

Finding uniform_sphere(const Effort& effort) {
  // -1/x on a ball with V = |x|^2/2: any beta.
  Model model{.domain = Ball{{0.0, 0.0}, 1.0},
              .potentials = {QuadraticPotential{1.0}},
              .interactions = {logarithm()},
              .inverse_temperature = 4.0};
  return by_resolution(
      [&](std::size_t n) {
        const Density start = uniform(model, {n, n});
        return l1_distance(start.grid, minimiser(model, start).density.averages, start.averages);
      },
      effort.of(48, 24), 1.0, 0.0);
}

Finding disc_free_energy(const Effort& effort) {
  const Model model{.domain = Ball{{0.0, 0.0}, 1.0},
                    .potentials = {},
                    .interactions = {logarithm()},
                    .inverse_temperature = 2.0};
  return by_resolution(
      [&](std::size_t n) {
        return free_energy(model, {n, n});
      },
      effort.of(64, 32), 1.0, -exact::log_gas_on_disc_limit(2.0) / 2.0);
}

Finding coulomb_ball(const Effort& effort) {
  const Model model{.domain = Ball{{0.0, 0.0, 0.0}, 1.0},
                    .potentials = {},
                    .interactions = {RieszInteraction{.exponent = 1.0}},
                    .inverse_temperature = 5.0};
  return by_resolution(
      [&](std::size_t n) {
        return second_moment(minimiser(model, {n, n, n}).density);
      },
      effort.of(16, 10), 1.0, 0.70284783458);
}

Finding semicircle(const Effort& effort) {
  Model model = on_interval(logarithm(), std::numeric_limits<double>::infinity(), {QuadraticPotential{1.0}});
  model.domain = Box{{-2.0}, {2.0}};
  Density last;
  Finding finding = by_resolution(
      [&](std::size_t n) {
        last = evolved(model, uniform(model, {n}), 8.0, 1e-5);
        return MeanField(model, last.grid, {}).free_energy(last).free_energy;
      },
      effort.of(200, 60), 1.0, 0.375 + 0.25 * std::numbers::ln2);
  finding.figures = {density_figure("Log gas in a well, β = ∞, t = 8", last, [](double x) {
    return std::abs(x) < std::numbers::sqrt2 ? std::sqrt(2.0 - x * x) / pi : 0.0;
  })};
  return finding;
}

Model rotators(double coupling) {
  return {.domain = Torus{{-pi}, {pi}},
          .potentials = {},
          .interactions = {CosineInteraction{coupling}},
          .inverse_temperature = 1.0};
}

/// |integral exp(i x) rho| from a start that leans to x = 0.
double order_parameter(double coupling, std::size_t cells) {
  const Model model = rotators(coupling);
  Density start = uniform(model, {cells});
  const std::vector<double> cosine = averages(start.grid, [](double x) { return std::cos(x); });
  for (std::size_t i = 0; i < cells; ++i) start.averages[i] *= 1.0 + 0.5 * cosine[i];
  const Density density = minimiser(model, start).density;
  double r = 0.0;
  for (std::size_t i = 0; i < cells; ++i) r += density.averages[i] * cosine[i] * density.grid.cell_volume();
  return r;
}

Finding rotators_ordered(const Effort& effort) {
  Finding finding = by_resolution([](std::size_t n) { return order_parameter(3.0, n); }, effort.of(200, 60),
                                  2.0, 0.72415871762635);
  plot::Curve curve{.x = {}, .y = {}, .label = "density"};
  for (double coupling = 1.0; coupling <= 4.01; coupling += 0.25) {
    if (std::abs(coupling - 2.0) < 0.01) continue;  // slow at the critical point
    curve.x.push_back(coupling);
    curve.y.push_back(order_parameter(coupling, 60));
  }
  const plot::Markers exact{.x = {3.0, 4.0}, .y = {0.72415871762635, 0.83146202475426}, .label = "exact"};
  finding.figures = {{.title = "Order of mean-field rotators",
                      .x = {.label = "βK"},
                      .y = {.label = "r"},
                      .layers = {curve, exact}}};
  return finding;
}

Finding rotators_disordered(const Effort& effort) {
  const double r = order_parameter(1.0, effort.of<std::size_t>(200, 60));
  return by_bound(r, 0.0, 1e-9, "the solver's residual");
}

/// V = x^4/4 - x^2/2, W = |x-y|^2/2.
Model desai_zwanzig(double beta) {
  return {.domain = Box{{-4.0}, {4.0}},
          .potentials = {PolynomialPotential{{0.0, 0.0, -0.5, 0.0, 0.25}}},
          .interactions = {QuadraticInteraction{1.0}},
          .inverse_temperature = beta};
}

Finding double_well_order(const Effort& effort) {
  return by_resolution(
      [](std::size_t n) {
        const Model model = desai_zwanzig(4.0);
        const Grid grid = grid_on(model.domain, {n});
        const Density start = cell_averages(GaussianLaw{{0.8}, {0.4}}, model.domain, grid);
        return mean(minimiser(model, start).density)[0];
      },
      effort.of(400, 100), 2.0, 0.78755040684382);
}

Finding double_well_critical(const Effort& effort) {
  // The symmetric state loses its stability where beta Var(x) = 1; from a symmetric start it is found on both
  // sides.
  return by_resolution(
      [](std::size_t n) {
        double low = 1.0, high = 4.0;
        for (int step = 0; step < 30; ++step) {
          const double beta = 0.5 * (low + high);
          (beta * second_moment(minimiser(desai_zwanzig(beta), {n}).density) < 1.0 ? low : high) = beta;
        }
        return low;
      },
      effort.of(200, 80), 2.0, 2.18843961522648);
}

}  // namespace

std::vector<Claim> stationary_claims() {
  const char* const interval = "exact.hpp log_gas_on_interval (Selberg 1944; Stieltjes transform by Riccati)";
  return {
      {"interval_density", "log gas on [-1,1], β = 2: ‖ρ_h − ρ‖₁ → 0 with order 2", interval,
       interval_density},
      {"interval_free_energy", "log gas on [-1,1], β = 2: min F", interval, interval_free_energy},
      {"line_density",
       "log gas in x²/2, β = 2: ‖ρ_h − ρ‖₁ → 0 with order 2, ρ by parabolic cylinder functions",
       "Allez, Bouchaud, Guionnet (2012)", line_density},
      {"coulomb_density", "W = −|x| on [-1,1], β = 5: ρ = (k²/β)/cos²(kx), k tan k = β/2",
       "exact.hpp coulomb_on_interval_density", coulomb_density},
      {"attractive_free_energy", "W = +|x| on [-1,1], β = 5: min F", "references A9", attractive_free_energy},
      {"riesz_moment", "W = |x|^(−1/2) on [-1,1], β = 2: ∫x²ρ", "Gegenbauer spectral solution, ten digits",
       riesz_moment},
      {"uniform_coulomb", "W = −|x|, V = x²/2 on [-1,1]: ρ = 1/2 for every β", "jellium: V + W*ρ is constant",
       uniform_coulomb},
      {"uniform_disc", "W = −log|x|, V = |x|²/2 on the unit disc: ρ = 1/π for every β",
       "jellium: V + W*ρ is constant", uniform_sphere},
      {"disc_free_energy", "log gas on the unit disc, β = 2: min F by Liouville's equation",
       "exact.hpp log_gas_on_disc_limit", disc_free_energy},
      {"coulomb_ball", "W = 1/r in the unit ball, β = 5: ∫|x|²ρ", "radial equation, eleven digits",
       coulomb_ball},
      {"semicircle", "log gas in x²/2, β = ∞: F → 3/8 + (log 2)/4 along (4), the semicircle", "references A5",
       semicircle},
      {"rotators_disordered", "W = −K cos, βK = 1 < 2: r = 0 also from an ordered start", "theory.md (7)",
       rotators_disordered},
      {"rotators_ordered", "W = −K cos, βK = 3 > 2: r = I₁(βKr)/I₀(βKr)", "references A14", rotators_ordered},
      {"double_well_order", "Desai and Zwanzig, β = 4: mean of the ordered minimiser", "references A15",
       double_well_order},
      {"double_well_critical", "Desai and Zwanzig: critical β = (Γ(1/4)/(2Γ(3/4)))²", "references A15",
       double_well_critical},
  };
}

}  // namespace rieszflow::verify
