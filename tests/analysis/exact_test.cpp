#include "analysis/exact.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "analysis/rate_fit.hpp"
#include "core/noise.hpp"

// Each closed form against a quadrature that does not use it: N = 1, 2, 3 by direct integration, limits by
// their Euler-Lagrange equations, large N by the next order of the expansion.
namespace rieszflow::exact {
namespace {

constexpr double pi = std::numbers::pi;

double midpoint(const std::function<double(double)>& f, double a, double b, int points) {
  const double h = (b - a) / points;
  double sum = 0.0;
  for (int i = 0; i < points; ++i) sum += f(a + (i + 0.5) * h);
  return sum * h;
}

/// integral over [-1,1] with nodes crowding at the walls, x = cos(angle).
double cosine_rule(const std::function<double(double)>& f, int points) {
  return midpoint([&](double angle) { return f(std::cos(angle)) * std::sin(angle); }, 0.0, pi, points);
}

/// (1/Z) double-integral f(x, y) |x-y|^power over [-1,1]^2 by Gauss-like midpoint sums in centre and gap.
double pair_mean(double power, const std::function<double(double, double)>& f) {
  double sum = 0.0, mass = 0.0;
  const int points = 400;
  for (int i = 0; i < points; ++i) {
    // gap = 2 s^3 crowds the nodes where |gap|^power is not smooth.
    const double s = (i + 0.5) / points, gap = 2.0 * s * s * s, jacobian = 6.0 * s * s;
    for (int j = 0; j < points; ++j) {
      const double x = -1.0 + (2.0 - gap) * (j + 0.5) / points;
      const double weight = jacobian * (2.0 - gap) * std::pow(gap, power);
      sum += weight * 0.5 * (f(x, x + gap) + f(x + gap, x));
      mass += weight;
    }
  }
  return sum / mass;
}

TEST(ExactPartition, OfOneParticleIsTheVolume) {
  EXPECT_NEAR(log_gas_on_interval(1, 3.0).log_z, std::log(2.0), 1e-14);
  EXPECT_NEAR(log_gas_on_interval(1, 3.0, 2.5, 1.7).log_z, std::log(2.0 * std::beta(2.5, 1.7)), 1e-13);
  EXPECT_NEAR(log_gas_on_line(1, 3.0, 0.7).log_z, 0.5 * std::log(2.0 * pi / 2.1), 1e-14);
  EXPECT_NEAR(log_gas_on_circle(1, 3.0).log_z, std::log(2.0 * pi), 1e-14);
  EXPECT_NEAR(coulomb_on_interval(1, 3.0).log_z, std::log(2.0), 1e-14);
  EXPECT_NEAR(plane_rotators(1, 1.3).log_z, std::log(2.0 * pi), 1e-12);
  EXPECT_NEAR(curie_weiss(1, 1.3).log_z,
              std::log(midpoint([](double x) { return std::exp(0.65 * x * x); }, -1, 1, 20000)), 1e-8);
}

TEST(ExactPartition, OfTwoParticlesIsTheDoubleIntegral) {
  const double beta = 3.0, p = beta / 2.0;
  EXPECT_NEAR(log_gas_on_interval(2, beta).log_z, std::log(std::pow(2.0, p + 3.0) / ((p + 1.0) * (p + 2.0))),
              1e-13);
  const double stiffness = 0.7, b = beta * stiffness;
  EXPECT_NEAR(log_gas_on_line(2, beta, stiffness).log_z,
              0.5 * std::log(2.0 * pi / b) + p / 2.0 * std::log(2.0) + (p + 1.0) / 2.0 * std::log(2.0 / b) +
                  std::lgamma((p + 1.0) / 2.0),
              1e-13);
  EXPECT_NEAR(
      log_gas_on_circle(2, beta).log_z,
      std::log(2.0 * pi *
               midpoint([&](double t) { return std::pow(2.0 * std::sin(t / 2.0), p); }, 0, 2 * pi, 200000)),
      1e-9);
  EXPECT_NEAR(
      coulomb_on_interval(2, beta).log_z,
      std::log(midpoint([&](double r) { return 2.0 * (2.0 - r) * std::exp(beta * r / 2.0); }, 0, 2, 200000)),
      1e-9);
  EXPECT_NEAR(plane_rotators(2, 1.3).log_z, std::log(4.0 * pi * pi * std::cyl_bessel_i(0.0, 0.65)), 1e-12);
}

TEST(ExactPartition, OfTheMeanFieldModelsAtTwoParticlesIsTheDoubleIntegral) {
  const double coupling = 2.2, beta = 3.0;
  double weiss = 0.0, kernel = 0.0;
  const int points = 1000;
  for (int i = 0; i < points; ++i)
    for (int j = 0; j < points; ++j) {
      const double x = -1.0 + 2.0 * (i + 0.5) / points, y = -1.0 + 2.0 * (j + 0.5) / points;
      weiss += 4.0 / points / points * std::exp(coupling * (x + y) * (x + y) / 4.0);
      const double a = pi * (i + 0.5) / points, b = pi * (j + 0.5) / points;
      // beta N H of the model as a particle code sums it: V and pairs i != j.
      const double v = -0.5 * (2.0 + std::cos(2.0 * a) + std::cos(2.0 * b)),
                   w = 0.5 * (1.0 + std::cos(2.0 * (a - b)));
      kernel += pi * pi / points / points * std::exp(-beta * (v + w / 2.0));
    }
  EXPECT_NEAR(curie_weiss(2, coupling).log_z, std::log(weiss), 1e-5);  // midpoint rule: (1/points)^2
  EXPECT_NEAR(learned_kernel(2, beta).log_z, std::log(kernel), 1e-11);
}

TEST(ExactPartition, OfThreeCoulombParticlesIsTheTripleIntegral) {
  // Ordered: 3! integral over gaps g, h >= 0, g + h <= 2, of (2 - g - h) exp((beta/3) 2 (g + h)).
  const double beta = 2.5;
  const double direct = midpoint(
      [&](double u) { return 6.0 * (2.0 - u) * u * std::exp(2.0 * beta / 3.0 * u); }, 0.0, 2.0, 400000);
  EXPECT_NEAR(coulomb_on_interval(3, beta).log_z, std::log(direct), 1e-9);
}

TEST(ExactPartition, ExpandsAsLimitPlusCorrection) {
  struct Model {
    std::string name;
    std::function<Partition(std::size_t)> partition;
  };
  const std::vector<Model> models = {
      {"interval", [](std::size_t n) { return log_gas_on_interval(n, 3.0); }},
      {"interval, Jacobi weight", [](std::size_t n) { return log_gas_on_interval(n, 3.0, 1.6, 2.5); }},
      {"line", [](std::size_t n) { return log_gas_on_line(n, 3.0, 0.7); }},
      {"circle", [](std::size_t n) { return log_gas_on_circle(n, 3.0); }},
      {"coulomb", [](std::size_t n) { return coulomb_on_interval(n, 3.0); }},
      {"curie-weiss, disordered", [](std::size_t n) { return curie_weiss(n, 1.8); }},
      {"curie-weiss, ordered", [](std::size_t n) { return curie_weiss(n, 5.0); }},
      {"rotators", [](std::size_t n) { return plane_rotators(n, 0.9); }},
      {"learned kernel", [](std::size_t n) { return learned_kernel(n, 4.0); }}};
  for (const Model& model : models) {
    const auto rest = [&](std::size_t n) {
      const Partition z = model.partition(n);
      return z.log_z - static_cast<double>(n) * z.limit - *z.correction;
    };
    const double at_400 = rest(400), at_800 = rest(800);
    EXPECT_LT(std::abs(at_400), 0.02) << model.name;
    EXPECT_NEAR(at_400 / at_800, 2.0, 0.05) << model.name;  // the next order is 1/N
  }
  EXPECT_FALSE(curie_weiss(50, 3.0).correction.has_value());
  EXPECT_FALSE(plane_rotators(50, 2.5).correction.has_value());
}

TEST(ExactPartition, LimitsAreMinusBetaTimesTheFreeEnergyOfTheDensity) {
  // With V + W*rho + log rho / beta = mu: F = mu/2 + (1/2) integral V rho + (1/(2 beta)) integral rho log
  // rho.
  const double beta = 3.0;
  const auto free_energy = [&](double mu, double potential, double entropy_term) {
    return mu / 2.0 + potential / 2.0 + entropy_term / (2.0 * beta);
  };
  {
    const auto rho = [&](double x) { return log_gas_on_interval_density(beta, x); };
    // integral log|y| rho near 0: y = s^3 removes the singularity of the quadrature.
    const double u0 = -midpoint(
        [&](double s) { return 2.0 * std::log(s * s * s) * rho(s * s * s) * 3.0 * s * s; }, 0, 1, 200000);
    const double mu = u0 + std::log(rho(0.0)) / beta;
    const double entropy_term = cosine_rule([&](double x) { return rho(x) * std::log(rho(x)); }, 20000);
    EXPECT_NEAR(log_gas_on_interval(10, beta).limit, -beta * free_energy(mu, 0.0, entropy_term), 1e-6);
  }
  {
    const double stiffness = 0.7;
    const auto rho = [&](double x) { return log_gas_on_line_density(beta, stiffness, x); };
    const double u0 = -midpoint(
        [&](double s) { return 2.0 * std::log(s * s * s) * rho(s * s * s) * 3.0 * s * s; }, 0, 2.2, 200000);
    const double mu = u0 + std::log(rho(0.0)) / beta;
    const double potential =
        midpoint([&](double x) { return rho(x) * stiffness * x * x / 2.0; }, -10, 10, 20000);
    const double entropy_term = midpoint([&](double x) { return rho(x) * std::log(rho(x)); }, -10, 10, 20000);
    EXPECT_NEAR(log_gas_on_line(10, beta, stiffness).limit, -beta * free_energy(mu, potential, entropy_term),
                1e-6);
  }
  {
    const auto rho = [&](double x) { return coulomb_on_interval_density(beta, x); };
    const double u0 = -midpoint([&](double x) { return 2.0 * x * rho(x); }, 0, 1, 20000);
    const double mu = u0 + std::log(rho(0.0)) / beta;
    const double entropy_term = midpoint([&](double x) { return rho(x) * std::log(rho(x)); }, -1, 1, 20000);
    EXPECT_NEAR(coulomb_on_interval(10, beta).limit, -beta * free_energy(mu, 0.0, entropy_term), 1e-7);
  }
  {
    const auto rho = [&](double r) { return log_gas_on_disc_density(beta, r); };
    const double u0 = -midpoint([&](double r) { return 2.0 * pi * r * std::log(r) * rho(r); }, 0, 1, 20000);
    const double mu = u0 + std::log(rho(0.0)) / beta;
    const double entropy_term =
        midpoint([&](double r) { return 2.0 * pi * r * rho(r) * std::log(rho(r)); }, 0, 1, 20000);
    EXPECT_NEAR(log_gas_on_disc_limit(beta), -beta * free_energy(mu, 0.0, entropy_term), 1e-7);
  }
}

TEST(ExactDensity, HasMassOneAndItsSecondMoment) {
  for (double beta : {0.3, 1.0, 2.0, 3.7, 12.0}) {
    const auto interval = [&](double x) { return log_gas_on_interval_density(beta, x); };
    EXPECT_NEAR(cosine_rule(interval, 20000), 1.0, 2e-8) << beta;
    EXPECT_NEAR(cosine_rule([&](double x) { return x * x * interval(x); }, 20000),
                (1.0 + beta / 2.0) / (3.0 + beta), 2e-8);
    const double stiffness = 1.3, edge = 20.0 / std::sqrt(beta);
    const auto line = [&](double x) { return log_gas_on_line_density(beta, stiffness, x); };
    EXPECT_NEAR(midpoint(line, -edge, edge, 20000), 1.0, 1e-12) << beta;
    EXPECT_NEAR(midpoint([&](double x) { return x * x * line(x); }, -edge, edge, 20000),
                (1.0 + beta / 2.0) / (beta * stiffness), 1e-12);
    EXPECT_NEAR(midpoint([&](double x) { return coulomb_on_interval_density(beta, x); }, -1, 1, 20000), 1.0,
                1e-6);
    EXPECT_NEAR(
        midpoint([&](double r) { return 2.0 * pi * r * log_gas_on_disc_density(beta, r); }, 0, 1, 20000), 1.0,
        1e-7);
    EXPECT_NEAR(
        midpoint([&](double x) { return attractive_line_density(beta, x); }, -edge * 10, edge * 10, 200000),
        1.0, 1e-6);
  }
  EXPECT_NEAR(log_gas_on_interval_density(3.0, 1.0), 1.25, 1e-14);
  EXPECT_NEAR(log_gas_on_interval_density(3.0, 1.0 - 1e-12), 1.25, 1e-4);
}

TEST(ExactDensity, BalancesEntropyAndInteraction) {
  // rho'/rho = beta PV integral rho(y)/(x-y) dy - beta V'.
  const double beta = 2.6, h = 1e-4;
  for (double x : {0.1, 0.5, 0.8}) {
    const auto rho = [&](double y) { return log_gas_on_interval_density(beta, y); };
    const double field = cosine_rule([&](double y) { return (rho(y) - rho(x)) / (x - y); }, 20001) +
                         rho(x) * std::log((1.0 + x) / (1.0 - x));
    EXPECT_NEAR(std::log(rho(x + h) / rho(x - h)) / (2.0 * h), beta * field, 1e-4) << x;
  }
  const double stiffness = 1.3;
  for (double x : {0.2, 1.1}) {
    const auto rho = [&](double y) { return log_gas_on_line_density(beta, stiffness, y); };
    const double field = midpoint([&](double t) { return (rho(x - t) - rho(x + t)) / t; }, 0.0, 12.0, 20000);
    EXPECT_NEAR(std::log(rho(x + h) / rho(x - h)) / (2.0 * h), beta * field - beta * stiffness * x, 1e-4)
        << x;
  }
}

TEST(ExactIdentity, OfTwoParticlesIsTheDoubleIntegral) {
  const double beta = 3.0, p = beta / 2.0;
  EXPECT_NEAR(log_gas_on_interval_second_moment(2, beta),
              pair_mean(p, [](double x, double) { return x * x; }), 1e-4);
  EXPECT_NEAR(log_gas_on_interval_mean_variance(2, beta),
              pair_mean(p, [](double x, double y) { return 0.5 * (x + y) * (x + y); }), 1e-4);
  EXPECT_NEAR(log_gas_on_interval_second_moment(1, beta), 1.0 / 3.0, 1e-14);
  // Both wall densities of N = 2: (integral |1-y|^p dy) / Z each.
  const double z = std::pow(2.0, p + 3.0) / ((p + 1.0) * (p + 2.0));
  EXPECT_NEAR(contact_flux(1, beta, 2, 0.0, -1.0), 2.0 * std::pow(2.0, p + 1.0) / (p + 1.0) / z, 1e-13);
  // W = +|x|: one gap with law Exp(beta/2).
  EXPECT_NEAR(attractive_line_variance(2, beta), 2.0 / (beta * beta), 1e-14);
  EXPECT_NEAR(attractive_line_variance(4000, beta), pi * pi / (3.0 * beta * beta), 2e-3);
  EXPECT_NEAR(log_gas_second_moment(1, 2, beta, 1.3), 0.5 / (beta * 1.3) + 0.5 * (p + 1.0) / (beta * 1.3),
              1e-14);
}

TEST(ExactFluctuation, OfTwoParticlesIsTheDoubleIntegral) {
  const double beta = 3.0, coupling = 2.2;
  for (int mode : {1, 2}) {
    const auto weight = [&](double t) { return std::pow(2.0 * std::sin(t / 2.0), beta / 2.0); };
    const double exact =
        midpoint([&](double t) { return weight(t) * (1.0 + std::cos(mode * t)); }, 0, 2 * pi, 200000) /
        midpoint(weight, 0, 2 * pi, 200000);
    EXPECT_NEAR(circle_mode_variance(2, beta, mode), exact, 1e-8);
    EXPECT_NEAR(circle_mode_variance(100000, beta, mode), 1.0 / (1.0 + beta / (2.0 * mode)), 1e-4);
  }
  double sum = 0.0, mass = 0.0;
  for (int i = 0; i < 1000; ++i)
    for (int j = 0; j < 1000; ++j) {
      const double m = -1.0 + (i + j + 1.0) / 1000.0, weight = std::exp(coupling * m * m);
      sum += weight * m * m;
      mass += weight;
    }
  EXPECT_NEAR(curie_weiss_variance(2, coupling), 2.0 * sum / mass, 1e-5);
  EXPECT_NEAR(curie_weiss_variance(20000, coupling), 1.0 / (3.0 - coupling), 1e-3);
}

TEST(ExactFluctuation, OfTheLearnedKernelIsTheCurvatureOfTheRate) {
  // Near the minimiser I(c) = (c - r)^2 / (2 variance).
  const double beta = 3.0, r = learned_kernel_order(beta), step = 1e-3;
  EXPECT_NEAR(learned_kernel_tail(40, beta, r - step).rate,
              step * step / (2.0 * learned_kernel_variance_real(beta)), 2e-3 * step * step);
  EXPECT_LT(learned_kernel_variance_imaginary(beta), 0.5);
}

TEST(ExactTail, OfUniformMeansIsIrwinHall) {
  // P(mean > l) = (1/N!) sum_k (-1)^k C(N,k) (s-k)_+^N, s = N(1-l)/2.
  const int n = 9;
  for (double level : {0.35, 0.8}) {
    const double s = n * (1.0 - level) / 2.0;
    double sum = 0.0, binomial = 1.0;
    for (int k = 0; k <= n && k < s; ++k) {
      sum += (k % 2 == 0 ? 1.0 : -1.0) * binomial * std::pow(s - k, n);
      binomial *= static_cast<double>(n - k) / (k + 1);
    }
    const double exact = std::log(sum) - std::lgamma(n + 1.0);
    EXPECT_NEAR(uniform_mean_tail(n, level, Side::Above).log_probability, exact, 1e-10);
    EXPECT_NEAR(uniform_mean_tail(n, -level, Side::Below).log_probability, exact, 1e-10);
  }
}

TEST(ExactTail, OfBothSidesIsEverything) {
  EXPECT_NEAR(2.0 * std::exp(curie_weiss_tail(12, 3.7, 0.3).log_probability) +
                  std::exp(curie_weiss_window(12, 3.7, 0.3).log_probability),
              1.0, 1e-9);
  EXPECT_NEAR(std::exp(random_cosine_tail(12, 0.3, Side::Above).log_probability),
              std::exp(random_cosine_tail(12, -0.3, Side::Below).log_probability), 1e-10);
}

TEST(ExactTail, OfTheLogGasesAtTwoParticlesIsTheDoubleIntegral) {
  const double beta = 8.0, level = -0.7;  // |x-y|^4
  const double interval = pair_mean(beta / 2.0, [&](double x, double y) {
    return std::log((1.0 + x) / 2.0) + std::log((1.0 + y) / 2.0) > 2.0 * level ? 1.0 : 0.0;
  });
  EXPECT_NEAR(std::exp(log_gas_on_interval_tail(2, beta, level, Side::Above).log_probability), interval,
              2e-3);
  double above = 0.0, mass = 0.0;
  for (int i = 0; i < 1000; ++i)
    for (int j = 0; j < 1000; ++j) {
      const double a = 2.0 * std::sin(pi * (i + 0.5) / 1000.0), b = 2.0 * std::sin(pi * (j + 0.25) / 1000.0);
      const double weight = std::pow(std::abs(2.0 * std::sin(pi * (i - j + 0.25) / 1000.0)), beta / 2.0);
      mass += weight;
      above += a * b > std::exp(2.0 * 0.25) ? weight : 0.0;
    }
  EXPECT_NEAR(std::exp(log_gas_on_circle_tail(2, beta, 0.25, Side::Above).log_probability), above / mass,
              2e-3);
}

TEST(ExactTail, OfTheLearnedKernelIsWhatReweightedAnglesGive) {
  const std::size_t n = 10, samples = 100000;
  const double beta = 1.5, level = 0.05;
  std::vector<double> below(samples), mass(samples), angles(n);
  const NoiseStream noise(51, NoisePurpose::ReferenceSample);
  for (std::size_t k = 0; k < samples; ++k) {
    noise.uniforms(0, k, 0, angles);
    double x = 0.0, y = 0.0;
    for (double angle : angles) {
      x += std::cos(2.0 * pi * angle) / static_cast<double>(n);
      y += std::sin(2.0 * pi * angle) / static_cast<double>(n);
    }
    mass[k] = std::exp(-beta * static_cast<double>(n) * ((1.0 - x) * (1.0 - x) + y * y) / 4.0);
    below[k] = x < level ? mass[k] : 0.0;
  }
  const double total = mean_estimate(mass).value, p = mean_estimate(below).value / total;
  // Delta method for the error of the ratio.
  std::vector<double> deviation(samples);
  for (std::size_t k = 0; k < samples; ++k) deviation[k] = (below[k] - p * mass[k]) / total;
  const double error = 4.0 * mean_estimate(std::span(deviation)).standard_error;
  EXPECT_NEAR(std::exp(learned_kernel_tail(n, beta, level).log_probability), p, error);
  EXPECT_LT(error, 0.05 * p);
}

TEST(ExactTail, OfTheGaussianModelsIsClosedForm) {
  EXPECT_NEAR(log_gas_radius_tail(2, 1, 3.0, 0.7, 2.4).log_probability, -3.0 * 0.7 * 2.4 / 2.0, 1e-12);
  EXPECT_NEAR(scaling_tail(1, 2, 3.0, 0.6).log_probability, (2.0 + 1.5) * std::log(0.6), 1e-14);
  // erfc in logarithms where it would underflow: its asymptotic series to x^-6.
  const double x2 = 0.5 * 2.0 * 1.0 * 1.0 * 900.0;  // beta kappa level^2 N / 2
  const double series = 1.0 - 1.0 / (2.0 * x2) + 3.0 / (4.0 * x2 * x2) - 15.0 / (8.0 * x2 * x2 * x2);
  EXPECT_NEAR(harmonic_mean_tail(900, 2.0, 1.0, 1.0).log_probability,
              -x2 - 0.5 * std::log(4.0 * pi * x2) + std::log(series), 1e-9);
}

TEST(ExactTail, HasTheRateThatItsExpansionFits) {
  struct Case {
    std::string name;
    std::function<Tail(std::size_t)> tail;
  };
  const std::vector<Case> cases = {
      {"uniform", [](std::size_t n) { return uniform_mean_tail(n, 0.4, Side::Above); }},
      {"cosine", [](std::size_t n) { return random_cosine_tail(n, 0.6, Side::Above); }},
      {"curie-weiss", [](std::size_t n) { return curie_weiss_tail(n, 2.0, 0.6); }},
      {"interval above", [](std::size_t n) { return log_gas_on_interval_tail(n, 3.0, -0.6, Side::Above); }},
      {"interval below", [](std::size_t n) { return log_gas_on_interval_tail(n, 3.0, -1.7, Side::Below); }},
      {"circle above", [](std::size_t n) { return log_gas_on_circle_tail(n, 3.0, 0.3, Side::Above); }},
      {"circle below", [](std::size_t n) { return log_gas_on_circle_tail(n, 3.0, -0.4, Side::Below); }},
      {"radius", [](std::size_t n) { return log_gas_radius_tail(2, n, 3.0, 1.0, 1.8); }},
      {"learned kernel", [](std::size_t n) { return learned_kernel_tail(n, 3.0, -0.1); }},
      {"harmonic", [](std::size_t n) { return harmonic_mean_tail(n, 2.0, 1.0, 0.6); }}};
  for (const Case& one : cases) {
    std::vector<TailPoint> points;
    for (std::size_t n : {20u, 40u, 80u, 160u, 320u})
      points.push_back({static_cast<double>(n), {one.tail(n).log_probability, 0.0, 1}});
    const double rate = one.tail(20).rate;
    EXPECT_NEAR(fit_tail(points).rate.value, rate, 1e-3 * rate) << one.name;
    EXPECT_NEAR(fit_tail(points, {std::nullopt, true}).log_coefficient.value, 0.5, 0.05) << one.name;
  }
  // A barrier costs its height at the end of the window, which is no smooth dominating point: the logarithm
  // differs.
  EXPECT_NEAR(-curie_weiss_window(320, 4.0, 0.2).log_probability / 320.0,
              curie_weiss_window(320, 4.0, 0.2).rate, 0.01);
}

TEST(GaussianWasserstein, HasTheOrderStatisticValues) {
  const auto phi = [](double z) { return std::exp(-0.5 * z * z) / std::sqrt(2.0 * pi); };
  EXPECT_NEAR(gaussian_squared_wasserstein2(1), 2.0, 1e-12);
  EXPECT_NEAR(gaussian_squared_wasserstein2(2), 2.0 * (1.0 - 2.0 * phi(0.0) / std::sqrt(pi)), 1e-12);
  EXPECT_NEAR(gaussian_squared_wasserstein2(3), 2.0 * (1.0 - 3.0 * phi(0.43072729929545749) / std::sqrt(pi)),
              1e-12);
}

TEST(OrnsteinUhlenbeck, OfOneParticleIsTheLinearLaw) {
  const OrnsteinUhlenbeck model{1.2, 0.8, 3.0, 0.5, 0.3};
  const double t = 0.4, s = model.variance(t), v = model.mean_variance(t);
  EXPECT_NEAR(model.particle_variance(t, 1), v, 1e-15);
  EXPECT_NEAR(model.squared_wasserstein2(t, 1), v + s, 1e-12);
  const auto g = [](double tau) { return 1.0 / std::sqrt(1.0 + tau / 0.49); };
  EXPECT_NEAR(model.squared_discrepancy(t, 1, 0.7), 1.0 + g(2.0 * s) - 2.0 * g(s + v), 1e-14);
  // ds/dt = -2 a s + 2/beta.
  const double h = 1e-5, slope = (model.variance(t + h) - model.variance(t - h)) / (2.0 * h);
  EXPECT_NEAR(slope, -2.0 * 2.0 * s + 2.0 / 3.0, 1e-8);
  EXPECT_NEAR((OrnsteinUhlenbeck{0.0, 0.8, 3.0, 0.5, 0.3}.mean_variance(t)), 0.3 + 2.0 * t / 3.0, 1e-14);
  EXPECT_NEAR(model.stationary_marginal_entropy(2, 1000) / model.stationary_marginal_entropy(1, 1000), 4.0,
              0.01);
}

}  // namespace
}  // namespace rieszflow::exact
