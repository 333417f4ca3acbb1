#include <cmath>
#include <numbers>

#include "analysis/exact.hpp"
#include "analysis/rate_fit.hpp"
#include "experiments/verify_tools.hpp"
#include "solvers/rare_event/girsanov.hpp"
#include "solvers/rare_event/tail_probability.hpp"
#include "solvers/stationary/rate_function.hpp"

/// Fluctuations and large deviations: theory.md section 3, items 4 to 7.
namespace rieszflow::verify {
namespace {

constexpr double pi = std::numbers::pi;
const Domain interval = Box{{-1.0}, {1.0}};

Model log_gas(Domain domain, double beta, std::vector<Potential> potentials = {}) {
  return {.domain = std::move(domain),
          .potentials = std::move(potentials),
          .interactions = {LogarithmicInteraction{}},
          .inverse_temperature = beta};
}
/// H = -(J/2) m^2 on [-1,1], J = 1.
Model curie_weiss(double coupling) {
  return {.domain = interval,
          .potentials = {QuadraticPotential{-1.0}},
          .interactions = {QuadraticInteraction{1.0}},
          .inverse_temperature = coupling};
}
/// Squared-loss learning of one feature cos(x - w): H = |1 - z|^2/4 up to a constant, z = (1/N) sum exp(2 i
/// w).
Model learned_kernel(double beta) {
  const auto g = [](const char* text) {
    return std::make_shared<const ExpressionFunction>(text, std::vector<std::string>{"x"});
  };
  return {.domain = Torus{{-0.5 * pi}, {0.5 * pi}},
          .potentials = {CosinePotential{-0.5, 2.0}},
          .interactions = {LowRankInteraction{0.5, {g("cos(2*x)"), g("sin(2*x)")}}},
          .inverse_temperature = beta};
}
/// Independent features exp(-beta w^2/2) on [-pi, pi].
Model gaussian_features(double beta) {
  return {.domain = Box{{-pi}, {pi}},
          .potentials = {QuadraticPotential{1.0}},
          .interactions = {},
          .inverse_temperature = beta};
}
Model circular(double beta) { return log_gas(Torus{{-pi}, {pi}}, beta); }

using Function = double (*)(double x);
double itself(double x) { return x; }
double lean(double x) { return std::log(0.5 * (1.0 + x)); }
double chord(double x) { return std::log(2.0 * std::abs(std::sin(0.5 * x))); }
double cosine(double x) { return std::cos(x); }
double double_cosine(double x) { return std::cos(2.0 * x); }
double square(double x) { return x * x; }

// Fluctuations
// -----------------------------------------------------------------------------------------

/// lim N Var((1/N) sum f) = <f, (I + beta C W)^-1 C f>.
Finding variance(const Model& model, Function f, std::size_t cells, double order, double expected) {
  return by_resolution(
      [&](std::size_t n) {
        const Density density = minimiser(model, {n}).density;
        const std::vector<double> values = averages(density.grid, f);
        return stationary::limit_covariance(MeanField(model, density.grid, {}), density, values, values);
      },
      cells, order, expected);
}
Finding clt_interval(const Effort& effort) {
  return variance(log_gas(interval, 2.0), itself, effort.of(200, 80), 2.0, 0.15);
}
Finding clt_interval_square(const Effort& effort) {
  return variance(log_gas(interval, 5.0), square, effort.of(200, 80), 2.0, 0.0338378907);
}
Finding clt_circle(const Effort& effort) {
  return variance(circular(2.0), double_cosine, effort.of(200, 80), 2.0, 0.5 / (1.0 + 2.0 / 4.0));
}
Finding clt_learned(const Effort& effort) {
  return variance(learned_kernel(2.0), double_cosine, effort.of(200, 80), 2.0,
                  exact::learned_kernel_variance_real(2.0));
}
Finding clt_curie_weiss(const Effort& effort) {
  return variance(curie_weiss(1.5), itself, effort.of(200, 80), 2.0, 1.0 / (3.0 - 1.5));
}

// Rate functions of the density
// ------------------------------------------------------------------------

Finding rate(const Model& model, Function f, rare_event::Event event, std::size_t cells, double order,
             double expected) {
  return by_resolution(
      [&](std::size_t n) {
        const Grid grid = grid_on(model.domain, {n});
        const MeanField field(model, grid, {});
        const stationary::Observable observable{.components = {averages(grid, f)}};
        const auto minima = stationary::minimisers(field, observable, {});
        const stationary::RatePoint point =
            stationary::rate_of_event(field, observable, event.lower, event.upper, minima, {});
        return point.status == RunStatus::Completed ? point.rate : std::nan("");
      },
      cells, order, expected);
}
Finding rate_interval(const Effort& effort) {
  return rate(log_gas(interval, 2.0), lean, {.lower = -0.6}, effort.of(400, 150), 1.0, 0.282198231808);
}
Finding rate_circle(const Effort& effort) {
  return rate(circular(2.0), chord, {.lower = 0.35}, effort.of(400, 150), 1.0, 0.193120791528);
}
Finding rate_curie_weiss(const Effort& effort) {
  return rate(curie_weiss(1.5), itself, {.lower = 0.5}, effort.of(300, 100), 2.0, 0.221138820403);
}
Finding rate_barrier(const Effort& effort) {
  return rate(curie_weiss(4.5), itself, {.lower = -0.1, .upper = 0.1}, effort.of(300, 100), 2.0,
              0.198405374703);
}
Finding rate_learned(const Effort& effort) {
  return rate(learned_kernel(2.0), double_cosine, {.upper = -0.2}, effort.of(300, 100), 2.0, 0.424029260367);
}
Finding concentration_in_beta(const Effort& effort) {
  const double beta = 64.0;
  Finding finding =
      rate(gaussian_features(beta), cosine, {.upper = 0.5}, effort.of(600, 300), 2.0, beta * 0.5296010185);
  finding.measured.value /= beta;
  finding.expected /= beta;
  finding.tolerance /= beta;
  plot::Markers markers{.x = {}, .y = {}, .label = "I_β/β of the density"};
  for (const double b : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0}) {
    markers.x.push_back(b);
    markers.y.push_back(rate(gaussian_features(b), cosine, {.upper = 0.5}, 150, 2.0, 0.0).measured.value / b);
  }
  const double energy = 0.5 * std::pow(std::acos(0.5), 2);
  finding.figures = {{.title = "Kernel entry below ½: the rate in β",
                      .x = {.label = "β  [1/energy]", .logarithmic = true},
                      .y = {.label = "I_β/β  [energy]"},
                      .layers = {markers, plot::Curve{.x = {1.0, 64.0},
                                                      .y = {energy, energy},
                                                      .label = "energy, arccos(½)²/2",
                                                      .ink = plot::Ink::Black,
                                                      .dashed = true}}}};
  return finding;
}

// Probabilities of N particles
// -------------------------------------------------------------------------

rare_event::Statistic mean_of(Function f) {
  return rare_event::mean_of("g", [f](std::span<const double> x) { return f(x[0]); });
}

rare_event::Options options(const Effort& effort) {
  return {.replicates = 32, .sweeps = effort.of(4000, 800), .seed = effort.seed, .threads = effort.threads};
}

Estimate log_probability(const rare_event::TailProbability& tail) {
  return {.value = tail.log_probability,
          .standard_error = tail.standard_error,
          .samples = tail.replicate_values.size()};
}

Finding tail(const Model& model, std::size_t count, const rare_event::Statistic& statistic,
             rare_event::Event event, double exact_log_probability, const Effort& effort) {
  return by_chance(
      log_probability(rare_event::tail_probability(model, count, statistic, event, options(effort))),
      exact_log_probability);
}

Finding tail_curie_weiss(const Effort& effort) {
  const std::size_t count = effort.of<std::size_t>(160, 40);
  return tail(curie_weiss(1.5), count, mean_of(itself), {.lower = 0.7},
              exact::curie_weiss_tail(count, 1.5, 0.7).log_probability, effort);
}
Finding tail_barrier(const Effort& effort) {
  const std::size_t count = effort.of<std::size_t>(80, 20);
  return tail(curie_weiss(4.5), count, mean_of(itself), {.lower = -0.1, .upper = 0.1},
              exact::curie_weiss_window(count, 4.5, 0.1).log_probability, effort);
}
Finding both_wells(const Effort& effort) {
  return by_chance(
      log_probability(rare_event::tail_probability(curie_weiss(4.5), 40, mean_of(itself), {.lower = 0.0},
                                                   options(effort), rare_event::Method::Umbrella)),
      -std::numbers::ln2);
}
Finding tail_interval(const Effort& effort) {
  const std::size_t count = effort.of<std::size_t>(80, 20);
  return tail(log_gas(interval, 2.0), count, mean_of(lean), {.lower = -0.6},
              exact::log_gas_on_interval_tail(count, 2.0, -0.6, exact::Side::Above).log_probability, effort);
}
Finding tail_circle(const Effort& effort) {
  const std::size_t count = effort.of<std::size_t>(80, 20);
  return tail(circular(2.0), count, mean_of(chord), {.lower = 0.35},
              exact::log_gas_on_circle_tail(count, 2.0, 0.35, exact::Side::Above).log_probability, effort);
}
Finding tail_gamma(const Effort& effort) {
  const std::size_t count = effort.of<std::size_t>(80, 20);
  return tail(
      log_gas(WholeSpace{2}, 4.0, {QuadraticPotential{1.0}}), count,
      rare_event::mean_of("|x|²", [](std::span<const double> x) { return x[0] * x[0] + x[1] * x[1]; }),
      {.lower = 1.5}, exact::log_gas_radius_tail(2, count, 4.0, 1.0, 1.5).log_probability, effort);
}
Finding tail_scaling(const Effort& effort) {
  const std::size_t count = effort.of<std::size_t>(40, 10);
  return tail(log_gas(interval, 2.0), count,
              rare_event::largest_of("max|x|", [](std::span<const double> x) { return std::abs(x[0]); }),
              {.upper = 0.5}, exact::scaling_tail(1, count, 2.0, 0.5).log_probability, effort);
}
Finding tail_splitting(const Effort& effort) {
  rare_event::Options split = options(effort);
  split.walkers = effort.of<std::size_t>(2000, 400);
  return by_chance(
      log_probability(rare_event::tail_probability(
          log_gas(interval, 2.0), 10,
          rare_event::largest_of("max|x|", [](std::span<const double> x) { return std::abs(x[0]); }),
          {.upper = 0.5}, split, rare_event::Method::Splitting)),
      exact::scaling_tail(1, 10, 2.0, 0.5).log_probability);
}
Finding tail_learned(const Effort& effort) {
  const std::size_t count = effort.of<std::size_t>(160, 40);
  return tail(learned_kernel(2.0), count, mean_of(double_cosine), {.upper = -0.2},
              exact::learned_kernel_tail(count, 2.0, -0.2).log_probability, effort);
}
Finding tail_cold(const Effort& effort) {
  const Model model{.domain = WholeSpace{1},
                    .potentials = {QuadraticPotential{1.0}},
                    .interactions = {QuadraticInteraction{1.0}},
                    .inverse_temperature = 16.0};
  return tail(model, 10, mean_of(itself), {.lower = 1.0},
              exact::harmonic_mean_tail(10, 16.0, 1.0, 1.0).log_probability, effort);
}
Finding tail_features(const Effort& effort) {
  return tail(gaussian_features(8.0), 10, mean_of(cosine), {.upper = 0.5}, std::log(2.3358199e-16), effort);
}

Finding concentration_in_n(const Effort& effort) {
  std::vector<TailPoint> points;
  plot::Markers markers{.x = {}, .y = {}, .error = {}, .label = "N particles"};
  for (const std::size_t count : {10U, 20U, 40U, 80U}) {
    const Estimate log_p = log_probability(rare_event::tail_probability(
        learned_kernel(2.0), count, mean_of(double_cosine), {.upper = -0.2}, options(effort)));
    points.push_back({static_cast<double>(count), log_p});
    markers.x.push_back(points.back().size);
    markers.y.push_back(-log_p.value / points.back().size);
    markers.error.push_back(log_p.standard_error / points.back().size);
  }
  const TailFit fit = fit_tail(points);
  const double limit = 0.424029260367;
  Finding finding = by_chance(fit.rate, limit);
  plot::Curve curve{.x = {}, .y = {}, .label = "I + (½ log N + a + c/N)/N"};
  for (int i = 0; i <= 40; ++i) {
    const double n = 10.0 * std::pow(8.0, i / 40.0);
    curve.x.push_back(n);
    curve.y.push_back(fit.rate.value + (0.5 * std::log(n) + fit.offset + fit.inverse_coefficient / n) / n);
  }
  finding.figures = {{.title = "Learned kernel entry with the wrong sign",
                      .x = {.label = "N", .logarithmic = true},
                      .y = {.label = "−(1/N) log P"},
                      .layers = {curve, markers,
                                 plot::Curve{.x = {10.0, 80.0},
                                             .y = {limit, limit},
                                             .label = "I of the density",
                                             .ink = plot::Ink::Black,
                                             .dashed = true}}}};
  return finding;
}

Finding path_event(const Effort& effort) {
  // The mean of a flock from zero is one Ornstein-Uhlenbeck chain: N(0, v/N) whatever the coupling.
  const double kappa = 1.0, beta = 2.0, h = 0.02, level = 1.0;
  const std::size_t count = effort.of<std::size_t>(40, 20), steps = 50;
  const Model model{.domain = WholeSpace{1},
                    .potentials = {QuadraticPotential{kappa}},
                    .interactions = {QuadraticInteraction{2.0}},
                    .inverse_temperature = beta};
  const rare_event::SmoothStatistic mean{
      mean_of(itself), [](std::span<const double>, std::span<double> out) { out[0] = 1.0; }};
  const rare_event::PathProbability measured =
      rare_event::path_probability(model, std::vector<double>(count, 0.0), mean, {.lower = level},
                                   {.end = h * static_cast<double>(steps),
                                    .timestep = h,
                                    .paths = effort.of<std::size_t>(4000, 500),
                                    .replicates = 32,
                                    .learning_paths = 300,
                                    .seed = effort.seed,
                                    .threads = effort.threads});
  double v = 0.0;
  for (std::size_t s = 0; s < steps; ++s)
    v += 2.0 * h / beta * std::pow(1.0 - kappa * h, 2.0 * static_cast<double>(s));
  return by_chance(
      {.value = measured.log_probability, .standard_error = measured.standard_error, .samples = 32},
      std::log(0.5 * std::erfc(level * std::sqrt(static_cast<double>(count) / (2.0 * v)))));
}

}  // namespace

std::vector<Claim> fluctuation_claims() {
  const char* const hessian = "theory.md section 3, item 7";
  return {
      {"clt_curie_weiss", "Curie-Weiss, βJ = 1.5: N Var(m) → 1/(3 − βJ)", hessian, clt_curie_weiss},
      {"clt_interval", "log gas on [-1,1], β = 2: N Var(x̄) → 3/20", hessian, clt_interval},
      {"clt_interval_square", "log gas on [-1,1], β = 5: N Var of the mean of x²",
       "Chebyshev operator, ten digits", clt_interval_square},
      {"clt_circle", "circular log gas, β = 2: N Var of the mean of cos 2x → (1/2)/(1 + β/4)", hessian,
       clt_circle},
      {"clt_learned", "learned kernel, β = 2: N Var(Re z)", "exact.hpp learned_kernel_variance_real",
       clt_learned},
  };
}

std::vector<Claim> deviation_claims() {
  const char* const selberg = "exact.hpp log_gas_on_interval_tail (products of Beta variables)";
  const char* const morris = "exact.hpp log_gas_on_circle_tail (Morris's integral)";
  const char* const cramer = "exact.hpp curie_weiss_tail (Cramér; Hubbard and Stratonovich)";
  const char* const bessel = "exact.hpp learned_kernel_tail (Bessel integrals)";
  return {
      {"rate_curie_weiss", "Curie-Weiss, βJ = 1.5: I(m > 0.5) = β(inf F − min F)", cramer, rate_curie_weiss},
      {"rate_barrier", "Curie-Weiss, βJ = 4.5: I(|m| < 0.1), not convex", cramer, rate_barrier},
      {"rate_interval", "log gas on [-1,1], β = 2: I of the mean of log((1+x)/2) above −0.6", selberg,
       rate_interval},
      {"rate_circle", "circular log gas, β = 2: I of the mean of log|1 − e^{iθ}| above 0.35", morris,
       rate_circle},
      {"rate_learned", "learned kernel, β = 2: I(Re z < −0.2)", bessel, rate_learned},
      {"tail_curie_weiss", "Curie-Weiss, βJ = 1.5: log P(m > 0.7), N = 160 (quick: 40)", cramer,
       tail_curie_weiss},
      {"tail_barrier",
       "Curie-Weiss, βJ = 4.5: log P(|m| < 0.1), N = 80 (quick: 20), both wells in the normaliser", cramer,
       tail_barrier},
      {"both_wells", "Curie-Weiss, βJ = 4.5, N = 40: both minimisers carry one half", "symmetry", both_wells},
      {"tail_interval", "log gas on [-1,1], β = 2, N = 80 (quick: 20): log P(mean of log((1+x)/2) > −0.6)",
       selberg, tail_interval},
      {"tail_circle", "circular log gas, β = 2, N = 80 (quick: 20): log P(mean of log|1 − e^{iθ}| > 0.35)",
       morris, tail_circle},
      {"tail_gamma", "log gas in |x|²/2 in the plane, β = 4, N = 80 (quick: 20): log P(mean of |x|² > 1.5)",
       "exact.hpp log_gas_radius_tail (Gamma law)", tail_gamma},
      {"tail_scaling", "log gas on [-1,1], β = 2: P(all in [-½,½]) = 2^−(N + (N−1)β/2), N = 40 (quick: 10)",
       "scaling of (3)", tail_scaling},
      {"tail_splitting", "the same with N = 10 by adaptive multilevel splitting", "scaling of (3)",
       tail_splitting},
      {"tail_learned", "learned kernel, β = 2, N = 160 (quick: 40): log P(Re z < −0.2)", bessel,
       tail_learned},
      {"concentration_in_n",
       "learned kernel: −log P(Re z < −0.2) = N I + ½ log N + a + c/N, I of the density", bessel,
       concentration_in_n},
      {"tail_cold", "quadratic model, N = 10, β = 16: log P(m > 1)", "exact.hpp harmonic_mean_tail",
       tail_cold},
      {"tail_features", "Gaussian features, N = 10, β = 8: log P(mean of cos ω < ½)",
       "saddle-point contour integral", tail_features},
      {"concentration_in_beta",
       "Gaussian features, β = 64: I_β(mean of cos ω < ½)/β, slowly towards arccos(½)²/2", "Cramér transform",
       concentration_in_beta},
      {"path_event", "Ornstein-Uhlenbeck flock: log P(mean at t = 1 above 1), by controlled paths",
       "Gaussian law of the Euler chain", path_event},
  };
}

}  // namespace rieszflow::verify
