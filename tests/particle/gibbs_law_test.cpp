// Stationary laws with interaction, against exact finite-N values.
#include <gtest/gtest.h>

#include <numbers>

#include "helpers.hpp"

namespace rieszflow::particle {
namespace {

const Statistic second_moment = particle_mean([](double x) { return x * x; });

void expect_mean(const Mean& measured, double exact) {
  EXPECT_NEAR(measured.value, exact, 4.0 * measured.standard_error)
      << "standard error " << measured.standard_error;
}

/// Second moment of the log gas on [-1, 1] at finite N, from its loop equation: with A = 2 + beta (1 - 1/N),
/// N (1 - 3 m) + (beta/2) (N - 1) (1 - 2 m) - (beta/2) ((1 - m)/A - m) = 0.
double log_gas_second_moment(double n, double beta) {
  const double a = 2.0 + beta * (1.0 - 1.0 / n), half = 0.5 * beta;
  return (n + half * (n - 1.0) - half / a) / (3.0 * n + beta * (n - 1.0) - half / a - half);
}

Model log_gas(double beta) { return {Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, beta}; }

Mean log_gas_run(Scheme scheme, double timestep, std::size_t particles, double beta, double end) {
  const Model model = log_gas(beta);
  return stationary_mean(model, uniform_ensemble(model.domain, 40, particles),
                         {.scheme = scheme, .timestep = timestep, .seed = 5}, 2.0, end, 0.02, second_moment);
}

TEST(LogGasOnAnInterval, SecondMomentFormulaHasTheKnownValue) {
  EXPECT_NEAR(log_gas_second_moment(10.0, 2.0), 0.4009009009009, 1e-13);
}

TEST(LogGasOnAnInterval, MalaHasTheExactSecondMoment) {
  expect_mean(log_gas_run(Scheme::Mala, 0.01, 10, 2.0, 60.0), log_gas_second_moment(10.0, 2.0));
  expect_mean(log_gas_run(Scheme::Mala, 0.0025, 10, 5.0, 20.0), log_gas_second_moment(10.0, 5.0));
}

TEST(LogGasOnAnInterval, ReflectedHasTheExactSecondMomentAlthoughParticlesMeet) {
  expect_mean(log_gas_run(Scheme::Reflected, 0.0025, 10, 2.0, 40.0), log_gas_second_moment(10.0, 2.0));
  expect_mean(log_gas_run(Scheme::Reflected, 0.0025, 2, 2.0, 40.0), log_gas_second_moment(2.0, 2.0));
  expect_mean(log_gas_run(Scheme::Reflected, 0.001, 10, 20.0, 10.0), log_gas_second_moment(10.0, 20.0));
}

// Schwinger and Dyson: for a field g that does not cross the wall,
// E sum_i [div g(x_i) + beta g(x_i).F_i] = 0 with F the whole force. Here g = (1 - x^2) x on [-1, 1].
TEST(RieszGasOnAnInterval, MalaObeysTheSchwingerDysonIdentity) {
  const double beta = 2.0;
  const Model model{
      Box{{-1.0}, {1.0}}, {QuadraticPotential{.stiffness = 0.5}}, {RieszInteraction{.exponent = 0.5}}, beta};
  const PairSum pair_sum(model, 8, {});
  const Statistic identity = [&](std::span<const double> x) {
    std::vector<double> forces(x.size(), 0.0);
    pair_sum.add_forces(x, 1, forces);
    double sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double force = forces[i] - 0.5 * x[i];
      sum += 1.0 - 3.0 * x[i] * x[i] + beta * (1.0 - x[i] * x[i]) * x[i] * force;
    }
    return sum / static_cast<double>(x.size());
  };
  expect_mean(
      stationary_mean(model, uniform_ensemble(model.domain, 40, 8),
                      {.scheme = Scheme::Mala, .timestep = 0.005, .seed = 6}, 2.0, 40.0, 0.02, identity),
      0.0);
}

TEST(RieszGasOnAnInterval, ReflectedAgreesWithMala) {
  const Model model{Box{{-1.0}, {1.0}}, {}, {RieszInteraction{.exponent = 0.5}}, 2.0};
  const auto start = uniform_ensemble(model.domain, 40, 10);
  const Mean mala = stationary_mean(model, start, {.scheme = Scheme::Mala, .timestep = 0.005, .seed = 1}, 2.0,
                                    30.0, 0.02, second_moment);
  const Mean reflected =
      stationary_mean(model, start, {.scheme = Scheme::Reflected, .timestep = 0.001, .seed = 1}, 2.0, 20.0,
                      0.02, second_moment);
  EXPECT_NEAR(mala.value, reflected.value, 4.0 * std::hypot(mala.standard_error, reflected.standard_error));
}

// Virial theorem of the log gas in a harmonic well of any dimension: E (1/N) sum |x|^2 = (d + (beta/2)(1 -
// 1/N)) / beta.
TEST(LogGasInAWell, ObeysTheVirialTheoremInTheLineThePlaneAndSpace) {
  const double beta = 2.0, n = 12.0;
  for (const std::size_t d : {1, 2, 3}) {
    const Model model{WholeSpace{d}, {QuadraticPotential{}}, {LogarithmicInteraction{}}, beta};
    const double exact = (static_cast<double>(d) + 0.5 * beta * (1.0 - 1.0 / n)) / beta;
    const auto start = uniform_ensemble(Box{std::vector(d, -1.0), std::vector(d, 1.0)}, 20, 12);
    const Statistic squared_radius = [&](std::span<const double> x) {
      return static_cast<double>(d) * second_moment(x);
    };
    expect_mean(stationary_mean(model, start, {.scheme = Scheme::Mala, .timestep = 0.04, .seed = 2}, 4.0,
                                60.0, 0.04, squared_radius),
                exact);
    // Euler in a harmonic well has variance 1 / (beta (1 - h/2)): a relative error of h/2 = 0.1 % here.
    const Mean reflected =
        stationary_mean(model, start, {.scheme = Scheme::Reflected, .timestep = 0.002, .seed = 2}, 4.0, 20.0,
                        0.04, squared_radius);
    EXPECT_NEAR(reflected.value, exact, 4.0 * reflected.standard_error + 0.001 * exact);
  }
}

// Kuramoto: W = -J cos(x-y) on the circle, exact E R^2 at finite N by a Bessel integral: 0.569923175338 for N
// = 10, beta J = 3, R the length of the mean of exp(i x).
TEST(Kuramoto, OrderParameterHasItsExactFiniteValue) {
  const Model model{Torus{{-std::numbers::pi}, {std::numbers::pi}}, {}, {CosineInteraction{3.0}}, 1.0};
  const Statistic order = [](std::span<const double> x) {
    double c = 0.0, s = 0.0;
    for (const double angle : x) c += std::cos(angle), s += std::sin(angle);
    return (c * c + s * s) / static_cast<double>(x.size() * x.size());
  };
  const auto start = uniform_ensemble(model.domain, 40, 10);
  expect_mean(stationary_mean(model, start, {.scheme = Scheme::Mala, .timestep = 0.2, .seed = 3}, 10.0, 300.0,
                              0.2, order),
              0.569923175338);
  expect_mean(stationary_mean(model, start, {.scheme = Scheme::Reflected, .timestep = 0.005, .seed = 3}, 10.0,
                              40.0, 0.1, order),
              0.569923175338);
}

// Dyson's circular gas: the periodised logarithm on the circle is -log |2 sin(x/2)|. With b = beta / N the
// exponent of the circular ensemble, E |sum exp(i x)|^2 = (2/b) N / (N - 1 + 2/b).
TEST(DysonGasOnTheCircle, FirstFourierModeHasItsExactFiniteVariance) {
  const double beta = 2.0, n = 10.0, b = beta / n;
  const Model model{Torus{{0.0}, {2.0 * std::numbers::pi}}, {}, {LogarithmicInteraction{}}, beta};
  const Statistic first_mode = [](std::span<const double> x) {
    double c = 0.0, s = 0.0;
    for (const double angle : x) c += std::cos(angle), s += std::sin(angle);
    return c * c + s * s;
  };
  const double exact = 2.0 / b * n / (n - 1.0 + 2.0 / b);
  const auto start = uniform_ensemble(Box{{0.0}, {6.28}}, 40, 10);
  expect_mean(stationary_mean(model, start, {.scheme = Scheme::Mala, .timestep = 0.1, .seed = 3}, 10.0, 200.0,
                              0.2, first_mode),
              exact);
  expect_mean(stationary_mean(model, start, {.timestep = 0.01, .seed = 3}, 10.0, 60.0, 0.1, first_mode),
              exact);
}

// Curie-Weiss on [-1, 1]: W = (J/2)|x-y|^2 and V = -(J/2) x^2 give H = -(J/2) m^2 - const; N E m^2 at beta J
// = 1.5, N = 10.
TEST(CurieWeiss, MagnetisationHasItsExactFiniteVariance) {
  const Model model{
      Box{{-1.0}, {1.0}}, {QuadraticPotential{.stiffness = -1.5}}, {QuadraticInteraction{1.5}}, 1.0};
  const Statistic magnetisation = [](std::span<const double> x) {
    double sum = 0.0;
    for (const double c : x) sum += c;
    return sum * sum / static_cast<double>(x.size());
  };
  expect_mean(
      stationary_mean(model, uniform_ensemble(model.domain, 40, 10),
                      {.scheme = Scheme::Mala, .timestep = 0.1, .seed = 4}, 5.0, 150.0, 0.2, magnetisation),
      0.6037042004);
}

}  // namespace
}  // namespace rieszflow::particle
