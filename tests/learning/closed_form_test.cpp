// The learned-kernel model with closed forms: x uniform on the circle, y = sqrt2 cos x, phi = sqrt2 cos(x -
// omega), squared loss |1 - z|^2 / 4 with z = (1/N) sum_i exp(2 i omega_i). Everything is checked against
// independent calculations.
#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <boost/math/special_functions/bessel.hpp>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "analysis/estimate.hpp"
#include "analysis/exact.hpp"
#include "core/noise.hpp"
#include "model/alignment.hpp"
#include "model/initial_law.hpp"
#include "model/mean_field.hpp"
#include "solvers/particle/langevin.hpp"
#include "solvers/pde/evolution.hpp"
#include "solvers/rare_event/partition_function.hpp"
#include "solvers/stationary/self_consistency.hpp"
#include "summation/energy.hpp"

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

/// Rate of the slowest mode of the linearised density: exp(i n omega) with odd n, where W * rho does not
/// change, so that it is the Fokker-Planck equation in the potential -(s / beta) cos 2 omega with
/// d rho_n / dt = (-n^2 rho_n + n s (rho_{n-2} - rho_{n+2})) / beta. It exchanges mass of the wells 0 and pi.
double slowest_rate(double beta) {
  const double s = 0.5 * beta * (1 - order(beta));
  constexpr int size = 40;
  Eigen::MatrixXd generator = Eigen::MatrixXd::Zero(size, size);
  for (int k = 0; k < size; ++k) {
    const double n = 2 * k - size + 1;
    generator(k, k) = -n * n / beta;
    if (k > 0) generator(k, k - 1) = n * s / beta;
    if (k + 1 < size) generator(k, k + 1) = -n * s / beta;
  }
  return -Eigen::EigenSolver<Eigen::MatrixXd>(generator, false).eigenvalues().real().maxCoeff();
}

TEST(ClosedFormModel, TheDensityRelaxesAtTheRateOfItsSlowestMode) {
  // F - min F is quadratic in the distance: exp(-2 rate t). From one well that takes longer than the descent
  // into it. Second order in the spacing 0.049, first order in time at tolerance 1e-6: 1 %.
  const double beta = 3.0, rate = slowest_rate(beta);
  const Model model = circle_model(beta);
  const Grid grid = grid_on(model.domain, {128});
  const MeanField field(model, grid, {});
  pde::State state{.density = cell_averages(GaussianLaw{{0.9}, {0.4}}, model.domain, grid)};
  const double least = stationary::solve(field, state.density, {}).energy.free_energy;
  std::vector<double> above;
  const auto observe = [&](const Clock&, const pde::State& now) {
    above.push_back(now.diagnostics.energy.free_energy - least);
  };
  const auto result =
      pde::run(field, state, {.tolerance = 1e-6}, Schedule::at({0.0, 10.0, 20.0}), observe, {});
  ASSERT_EQ(result.status, RunStatus::Completed);
  ASSERT_EQ(above.size(), 3u);
  EXPECT_GT(above[2], 1e-5) << "far enough from the end for a rate";
  EXPECT_NEAR(std::log(above[1] / above[2]) / 10.0, 2 * rate, 0.02 * rate);
}

TEST(ClosedFormModel, ItsPartitionFunctionIsTheBesselIntegral) {
  // exact::learned_kernel counts pairs i != j on the circle of length pi: N (log pi + beta/2) + beta/2 more.
  const double beta = 3.0, count = 10;
  const double shift = count * (std::log(pi) + 0.5 * beta) + 0.5 * beta;
  const double exact = exact::learned_kernel(10, beta).log_z - shift + count * std::log(2 * pi);
  const auto measured = rare_event::partition_function(circle_model(beta), 10, {.sweeps = 1000, .seed = 1});
  ASSERT_EQ(measured.status, RunStatus::Completed) << measured.message;
  EXPECT_NEAR(measured.log_partition, exact, 4 * measured.standard_error);
  EXPECT_LT(measured.standard_error, 0.05) << "sharp enough to tell it from the limit";
}

TEST(ClosedFormModel, TheEstimateOfItsEnergyHasNoBiasFromOneOverN) {
  // Independent uniform particles: A[rho] = 1/4, but E A(mu_N) = 1/4 + 1/(4N). And where the particles of a
  // replica repel each other perfectly, equally spaced with a random shift, A(mu_N) = 1/4 without a diagonal.
  const Model model = circle_model(3.0);
  const std::size_t count = 4, replicas = 4000;
  const ParticleEnsemble independent = sample(UniformLaw{}, model.domain, replicas, count, 3);
  std::vector<double> plain(replicas), corrected(replicas);
  functional_values(model, independent, plain);
  mean_field_functional_values(model, independent, corrected);
  const Estimate biased = mean_estimate(plain), unbiased = mean_estimate(corrected);
  EXPECT_NEAR(biased.value, 0.25 + 0.0625, 4 * biased.standard_error);
  EXPECT_NEAR(unbiased.value, 0.25, 4 * unbiased.standard_error);
  ParticleEnsemble spaced = sample(UniformLaw{}, model.domain, 5, count, 4);
  for (std::size_t k = 0; k < spaced.positions.size(); ++k)
    spaced.positions[k] = spaced.positions[k - k % count] + pi / count * static_cast<double>(k % count);
  std::vector<double> values(5);
  mean_field_functional_values(model, spaced, values);
  for (const double value : values) EXPECT_NEAR(value, 0.25, 1e-12);
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
  EXPECT_GT(result.statistics.acceptance(), 0.5);
  for (double& mean : means) mean /= static_cast<double>(visits);
  const Estimate measured = mean_estimate(means);
  EXPECT_NEAR(measured.value, exact, 4 * std::hypot(measured.standard_error, exact_error));
  EXPECT_LT(measured.standard_error, 0.01) << "sharp enough to tell N = 6 from the limit " << order(beta);
}

TEST(ClosedFormModel, AWrongSignOfTheKernelIsAsRareAsItsExactProbability) {
  // K(x, -x) = cos 2x + Re z. P(Re z < 0) for N = 10 at beta = 3, counted along Metropolised paths.
  const double beta = 3.0, exact = std::exp(exact::learned_kernel_tail(10, beta, 0.0).log_probability);
  const std::size_t replicas = 500;
  const Model model = circle_model(beta);
  particle::State state{.ensemble = sample(UniformLaw{}, model.domain, replicas, 10, 9), .clock = {}};
  std::vector<double> shares(replicas, 0.0);
  double visits = 0.0;
  const auto observe = [&](const Clock& clock, const particle::State& now) {
    if (clock.time < 5.0) return;
    visits += 1.0;
    for (std::size_t r = 0; r < replicas; ++r)
      shares[r] += first_mode(now.ensemble.replica(r)).real() < 0.0 ? 1.0 : 0.0;
  };
  ASSERT_EQ(particle::run(model, state, {.scheme = particle::Scheme::Mala, .timestep = 0.2, .seed = 8},
                          Schedule::every(0.6, 0.0, 60.0), observe, {})
                .status,
            RunStatus::Completed);
  for (double& share : shares) share /= visits;
  const Estimate measured = mean_estimate(shares);
  EXPECT_NEAR(measured.value, exact, 4 * measured.standard_error);
  EXPECT_LT(measured.standard_error, 0.1 * exact);
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
