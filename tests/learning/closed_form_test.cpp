// The learned-kernel model with closed forms: x uniform on the circle, y = sqrt2 cos x, phi = sqrt2 cos(x -
// omega), squared loss |1 - z|^2 / 4 with z = (1/N) sum_i exp(2 i omega_i). Everything is checked against
// independent calculations.
#include <gtest/gtest.h>

#include <boost/math/special_functions/bessel.hpp>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "analysis/estimate.hpp"
#include "core/noise.hpp"
#include "model/alignment.hpp"
#include "model/initial_law.hpp"
#include "model/mean_field.hpp"
#include "solvers/particle/langevin.hpp"
#include "solvers/pde/evolution.hpp"
#include "solvers/stationary/self_consistency.hpp"

namespace rieszflow {
namespace {

constexpr double pi = std::numbers::pi;

Model circle_model(double beta) {
  LabelledData data{.count = 5, .dimension = 1, .label_columns = 1, .points = {}, .labels = {}};
  for (int k = 0; k < 5; ++k) {
    data.points.push_back(2 * pi * k / 5);
    data.labels.push_back(std::numbers::sqrt2 * std::cos(data.points.back()));
  }
  Model model{
      .domain = Torus{{-pi}, {pi}}, .potentials = {}, .interactions = {}, .inverse_temperature = beta};
  model.functionals.push_back(std::make_shared<Alignment>(
      FeatureMap::Circle, data, Alignment::Options{.kind = AlignmentKind::SquaredLoss}));
  return model;
}

/// r = I_1(s) / I_0(s), s = beta (1 - r) / 2: the mean of exp(2 i omega) at equilibrium, by bisection.
double order(double beta) {
  double low = 0.0, high = 1.0;
  for (int k = 0; k < 100; ++k) {
    const double r = 0.5 * (low + high), s = 0.5 * beta * (1 - r);
    (boost::math::cyl_bessel_i(1, s) / boost::math::cyl_bessel_i(0, s) > r ? low : high) = r;
  }
  return 0.5 * (low + high);
}

std::complex<double> first_mode(std::span<const double> positions) {
  std::complex<double> z = 0.0;
  for (const double omega : positions)
    z += std::polar(1.0 / static_cast<double>(positions.size()), 2 * omega);
  return z;
}

TEST(ClosedFormModel, ItsStationaryDensityAndFreeEnergyAreTheBesselFormulas) {
  for (const double beta : {3.0, 12.0}) {
    const Model model = circle_model(beta);
    const Grid grid = grid_on(model.domain, {256});
    const MeanField field(model, grid, {});
    const auto result = stationary::solve(field, cell_averages(UniformLaw{}, model.domain, grid), {});
    ASSERT_EQ(result.status, RunStatus::Completed);
    const double r = order(beta), s = 0.5 * beta * (1 - r);
    // min F = (1 - r)^2/4 + (s r - log I_0(s) - log 2 pi) / beta; cell centres: second order, h = 0.025
    const double expected = 0.25 * (1 - r) * (1 - r) +
                            (s * r - std::log(boost::math::cyl_bessel_i(0, s)) - std::log(2 * pi)) / beta;
    EXPECT_NEAR(result.energy.free_energy, expected, 1e-4);
    double mode = 0.0;
    for (std::size_t cell = 0; cell < 256; ++cell)
      mode += result.density.averages[cell] * grid.cell_volume() * std::cos(2 * grid.center(0, cell));
    EXPECT_NEAR(mode, r, 2e-4);
  }
}

TEST(ClosedFormModel, TheDensityRelaxesToItsStationaryState) {
  const double beta = 3.0;
  const Model model = circle_model(beta);
  const Grid grid = grid_on(model.domain, {128});
  const MeanField field(model, grid, {});
  pde::State state{.density = cell_averages(GaussianLaw{{0.9}, {0.4}}, model.domain, grid)};
  const auto result = pde::run(field, state, {}, Schedule::at({0.0, 120.0}), {},
                               {});  // the wells at 0 and pi trade mass slowly
  ASSERT_EQ(result.status, RunStatus::Completed);
  const auto stationary = stationary::solve(field, state.density, {});
  EXPECT_NEAR(state.diagnostics.energy.free_energy, stationary.energy.free_energy, 1e-6);
}

TEST(ClosedFormModel, MetropolisedParticlesHaveTheExactMeanOfTheFiniteSystem) {
  const double beta = 3.0;
  const std::size_t count = 6, replicas = 400;
  // The exact mean of Re z under exp(-beta N |1 - z|^2 / 4): uniform samples, reweighted.
  const NoiseStream noise(5, NoisePurpose::ReferenceSample);
  std::vector<double> numerators, denominators, angles(count);
  for (std::uint64_t sample = 0; sample < 200000; ++sample) {
    noise.uniforms(0, sample, 0, angles);
    for (double& angle : angles) angle *= 2 * pi;
    const auto z = first_mode(angles);
    const double weight = std::exp(-beta * count * std::norm(1.0 - z) / 4);
    numerators.push_back(weight * z.real());
    denominators.push_back(weight);
  }
  double sum = 0.0, total = 0.0, squares = 0.0;
  for (std::size_t k = 0; k < numerators.size(); ++k) sum += numerators[k], total += denominators[k];
  const double exact = sum / total;
  for (std::size_t k = 0; k < numerators.size(); ++k)
    squares += std::pow(numerators[k] - exact * denominators[k], 2);
  const double exact_error = std::sqrt(squares) / total;

  const Model model = circle_model(beta);
  particle::State state{.ensemble = sample(UniformLaw{}, model.domain, replicas, count, 7), .clock = {}};
  std::vector<double> means(replicas, 0.0);
  std::size_t visits = 0;
  const auto observe = [&](const Clock& clock, const particle::State& now) {
    if (clock.time < 5.0) return;
    ++visits;
    for (std::size_t r = 0; r < replicas; ++r) means[r] += first_mode(now.ensemble.replica(r)).real();
  };
  const auto result =
      particle::run(model, state, {.scheme = particle::Scheme::Mala, .timestep = 0.25, .seed = 3},
                    Schedule::every(0.5, 0.0, 40.0), observe, {});
  ASSERT_EQ(result.status, RunStatus::Completed);
  EXPECT_GT(result.statistics.acceptance, 0.5);
  for (double& mean : means) mean /= static_cast<double>(visits);
  const Estimate measured = mean_estimate(means);
  EXPECT_NEAR(measured.value, exact, 4 * std::hypot(measured.standard_error, exact_error));
  EXPECT_LT(measured.standard_error, 0.01) << "sharp enough to tell N = 6 from the limit " << order(beta);
}

TEST(ClosedFormModel, FluctuationsOfManyParticlesAreThoseOfTheHessian) {
  // N Var(Re z) -> v / (1 + beta v / 2), v = (1 + I_2/I_0)/2 - r^2; N Var(Im z) -> 2 r / beta. At N = 64 the
  // corrections are of order 1/N = 1.6 %, the sampling error of 600 replicas 6 %.
  const double beta = 3.0, r = order(beta), s = 0.5 * beta * (1 - r);
  const double v = 0.5 * (1 + boost::math::cyl_bessel_i(2, s) / boost::math::cyl_bessel_i(0, s)) - r * r;
  const std::size_t count = 64, replicas = 600;
  const Model model = circle_model(beta);
  particle::State state{.ensemble = sample(UniformLaw{}, model.domain, replicas, count, 11), .clock = {}};
  ASSERT_EQ(particle::run(model, state, {.scheme = particle::Scheme::Reflected, .timestep = 0.02, .seed = 2},
                          Schedule::at({0.0, 6.0}), {}, {})
                .status,
            RunStatus::Completed);
  std::vector<double> real, imaginary;
  for (std::size_t k = 0; k < replicas; ++k) {
    const auto z = first_mode(state.ensemble.replica(k));
    real.push_back(z.real() - r);
    imaginary.push_back(z.imag());
  }
  const auto scaled_variance = [&](std::vector<double> values) {
    for (double& value : values) value = static_cast<double>(count) * value * value;
    return mean_estimate(values);
  };
  const Estimate re = scaled_variance(real), im = scaled_variance(imaginary);
  EXPECT_NEAR(re.value, v / (1 + 0.5 * beta * v), 4 * re.standard_error);
  EXPECT_NEAR(im.value, 2 * r / beta, 4 * im.standard_error);
}

}  // namespace
}  // namespace rieszflow
