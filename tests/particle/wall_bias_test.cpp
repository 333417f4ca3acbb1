// Weak order of the schemes at a wall. The numbers are E_h f - E f of the stationary laws of the schemes,
// from the integral equations of their one-step kernels, solved by quadrature to nine digits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "helpers.hpp"

namespace rieszflow::particle {
namespace {

constexpr double beta = 2.0;

Model line(std::vector<Potential> potentials) {
  return {Box{{-1.0}, {1.0}}, std::move(potentials), {}, beta};
}
Model slope() { return line({PolynomialPotential{{0.0, 1.0}}}); }
Model disc() { return {Ball{{0.0, 0.0}, 1.0}, {}, {}, beta}; }

const double slope_mean = 0.5 - 1.0 / std::tanh(2.0);  ///< of x under exp(-2x) on [-1, 1]

/// Independent particles, each a sample of its own: `particles` of them over time 40 after a burn-in of 4
/// (the slowest mode decays at a rate of at least pi^2 / 8).
Mean bias(const Model& model, Scheme scheme, double timestep, std::size_t particles, const Statistic& f,
          double exact) {
  const Options options{.scheme = scheme, .timestep = timestep, .seed = 11};
  const auto ensemble = uniform_ensemble(model.domain, 50, particles / 50, 3);
  Mean mean = stationary_mean(model, ensemble, options, 4.0, 44.0, 0.2, f);
  mean.value -= exact;
  fmt::print("{}, d = {}, h = {}: bias {:.3e} +- {:.1e}\n", name(scheme), dimension(model.domain), timestep,
             mean.value, mean.standard_error);
  return mean;
}

const Statistic first_moment = particle_mean([](double x) { return x; });
const Statistic second_moment = particle_mean([](double x) { return x * x; });
const Statistic squared_radius = [](std::span<const double> x) { return 2.0 * second_moment(x); };

void expect_bias(const Mean& measured, double exact) {
  EXPECT_NEAR(measured.value, exact, 4.0 * measured.standard_error);
}

double measured_order(const Mean& coarse, const Mean& fine, double ratio) {
  return std::log(coarse.value / fine.value) / std::log(ratio);
}
double order_error(const Mean& coarse, const Mean& fine, double ratio) {
  return std::hypot(coarse.standard_error / coarse.value, fine.standard_error / fine.value) / std::log(ratio);
}

TEST(ProjectedEuler, HasTheKnownBiasUnderASlopeAndWeakOrderOneHalf) {
  const Mean coarse = bias(slope(), Scheme::Projected, 0.04, 5000, first_moment, slope_mean);
  const Mean fine = bias(slope(), Scheme::Projected, 0.0025, 2500, first_moment, slope_mean);
  expect_bias(coarse, -9.551675138e-2);
  expect_bias(fine, -2.530373844e-2);
  // The exact biases have slope 0.479 between these steps; 1/2 in the limit.
  EXPECT_NEAR(measured_order(coarse, fine, 16.0), Projected::weak_order,
              0.021 + 4.0 * order_error(coarse, fine, 16.0));
}

TEST(ProjectedEuler, HasTheKnownBiasWithoutForces) {
  expect_bias(bias(line({}), Scheme::Projected, 0.04, 5000, second_moment, 1.0 / 3.0), 7.260137151e-2);
  expect_bias(bias(line({}), Scheme::Projected, 0.01, 5000, second_moment, 1.0 / 3.0), 3.752345460e-2);
}

TEST(ProjectedEuler, HasTheKnownBiasOnADisc) {
  expect_bias(bias(disc(), Scheme::Projected, 0.01, 2500, squared_radius, 0.5), 5.510373570e-2);
}

TEST(ProjectedEuler, LeavesTheKnownAtomOnEachWall) {
  const auto on_upper_wall = particle_mean([](double x) { return x == 1.0 ? 1.0 : 0.0; });
  const auto on_lower_wall = particle_mean([](double x) { return x == -1.0 ? 1.0 : 0.0; });
  expect_bias(bias(line({}), Scheme::Projected, 0.01, 2500, on_upper_wall, 0.0), 0.033409);
  expect_bias(bias(line({}), Scheme::Projected, 0.01, 2500, on_lower_wall, 0.0), 0.033409);
}

TEST(ReflectedEuler, HasTheKnownBiasUnderASlopeAndWeakOrderOne) {
  const Mean coarse = bias(slope(), Scheme::Reflected, 0.04, 20000, first_moment, slope_mean);
  const Mean fine = bias(slope(), Scheme::Reflected, 0.01, 20000, first_moment, slope_mean);
  expect_bias(coarse, 1.959130603e-2);
  expect_bias(fine, 4.949434026e-3);
  EXPECT_NEAR(measured_order(coarse, fine, 4.0), Reflected::weak_order,
              0.01 + 4.0 * order_error(coarse, fine, 4.0));
}

TEST(ReflectedEuler, HasTheKnownBiasInASteepWell) {
  const Model well = line({QuadraticPotential{.stiffness = 4.0}});
  // E x^2 of exp(-4 x^2) on [-1, 1].
  const double exact = 0.125 - std::exp(-4.0) / (2.0 * std::sqrt(M_PI) * std::erf(2.0));
  expect_bias(bias(well, Scheme::Reflected, 0.04, 20000, second_moment, exact), 1.056501043e-2);
  expect_bias(bias(well, Scheme::Projected, 0.04, 20000, second_moment, exact), 1.256229263e-2);
}

TEST(ReflectedEuler, IsExactWithoutForcesOnTheLine) {
  for (const double timestep : {0.04, 0.5, 20.0}) {
    expect_bias(bias(line({}), Scheme::Reflected, timestep, 10000, second_moment, 1.0 / 3.0), 0.0);
  }
}

TEST(ReflectedEuler, HasTheKnownBiasOnADisc) {
  expect_bias(bias(disc(), Scheme::Reflected, 0.01, 20000, squared_radius, 0.5), -2.276099096e-3);
}

TEST(Mala, HasNoBiasAtAWallAtAnyStep) {
  for (const double timestep : {0.04, 0.2}) {
    expect_bias(bias(slope(), Scheme::Mala, timestep, 5000, first_moment, slope_mean), 0.0);
    expect_bias(bias(disc(), Scheme::Mala, timestep, 2000, squared_radius, 0.5), 0.0);
  }
}

TEST(Mala, HasNoBiasInABallOfThreeDimensions) {
  // V = 2x in the unit ball: E x = (d/dt) log of the mgf of the uniform law at t = -4 (beta = 2), 3 (t cosh t
  // - sinh t) / t^3.
  const Model model{Ball{{0.0, 0.0, 0.0}, 1.0}, {PolynomialPotential{{0.0, 2.0}}}, {}, beta};
  // V acts on every axis: the field is along (1,1,1) with size 2 sqrt 3.
  const double t = beta * 2.0 * std::sqrt(3.0);
  const double along = -(t * t * std::sinh(t) - 3.0 * (t * std::cosh(t) - std::sinh(t))) /
                       (t * (t * std::cosh(t) - std::sinh(t)));
  expect_bias(bias(model, Scheme::Mala, 0.1, 5000, first_moment, along / std::sqrt(3.0)), 0.0);
}

}  // namespace
}  // namespace rieszflow::particle
