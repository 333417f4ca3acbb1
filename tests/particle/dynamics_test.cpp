// Laws at finite times, against exact values.
#include <gtest/gtest.h>

#include "helpers.hpp"

namespace rieszflow::particle {
namespace {

// V = kappa x^2 / 2, W = alpha |x-y|^2 / 2 from N(m0, s0^2): the mean is m0 exp(-kappa t) and the variance
// about the sample mean, times N/(N-1), is s(t)^2, both for every N. references: theory.md (2) is linear
// here.
struct GaussianModel {
  double kappa = 1.0, alpha = 0.5, beta = 2.0, m0 = 0.7, s0 = 0.4;
  Model model() const {
    return {WholeSpace{1}, {QuadraticPotential{.stiffness = kappa}}, {QuadraticInteraction{alpha}}, beta};
  }
  ParticleEnsemble start(std::size_t replicas, std::size_t particles) const {
    ParticleEnsemble ensemble{replicas, particles, 1, std::vector<double>(replicas * particles)};
    NoiseStream(77, NoisePurpose::InitialPosition)
        .gaussian_block(0, 0, replicas * particles, 1, ensemble.positions);
    for (double& x : ensemble.positions) x = m0 + s0 * x;
    return ensemble;
  }
  double mean(double t) const { return m0 * std::exp(-kappa * t); }
  double variance(double t) const {
    const double limit = 1.0 / (beta * (kappa + alpha));
    return limit + (s0 * s0 - limit) * std::exp(-2.0 * (kappa + alpha) * t);
  }
  /// What Euler with step h has in place of them: a linear recursion.
  double euler_mean(double t, double h) const { return m0 * std::pow(1.0 - h * kappa, std::round(t / h)); }
  double euler_variance(double t, double h) const {
    double v = s0 * s0;
    for (std::int64_t k = 0; k < std::llround(t / h); ++k) {
      v = (1.0 - h * (kappa + alpha)) * (1.0 - h * (kappa + alpha)) * v + 2.0 * h / beta;
    }
    return v;
  }
};

struct Moments {
  Mean mean, variance;
};

Moments moments_at(const GaussianModel& g, Scheme scheme, double timestep, double time, std::size_t replicas,
                   std::size_t particles) {
  State state{g.start(replicas, particles), {}};
  const Result result = run(g.model(), state, {.scheme = scheme, .timestep = timestep, .seed = 8},
                            Schedule::at({0.0, time}), {}, {});
  EXPECT_EQ(result.status, RunStatus::Completed);
  std::vector<double> means, variances;
  for (std::size_t r = 0; r < replicas; ++r) {
    double m = 0.0, v = 0.0;
    for (const double x : state.ensemble.replica(r)) m += x / static_cast<double>(particles);
    for (const double x : state.ensemble.replica(r))
      v += (x - m) * (x - m) / static_cast<double>(particles - 1);
    means.push_back(m);
    variances.push_back(v);
  }
  return {mean_of(means), mean_of(variances)};
}

TEST(GaussianModelInTime, ExactValuesAreTheReference) {
  const GaussianModel g;
  EXPECT_NEAR(g.mean(0.5), 0.424571461799, 1e-12);
  EXPECT_NEAR(g.variance(0.5), 0.294657438908, 1e-12);
}

TEST(GaussianModelInTime, ReflectedFollowsTheEulerRecursionForAnyNumberOfParticles) {
  const GaussianModel g;
  for (const std::size_t particles : {2, 5, 200}) {
    const double h = 0.05;
    const Moments m = moments_at(g, Scheme::Reflected, h, 0.5, 40000 / particles, particles);
    EXPECT_NEAR(m.mean.value, g.euler_mean(0.5, h), 4.0 * m.mean.standard_error) << particles;
    EXPECT_NEAR(m.variance.value, g.euler_variance(0.5, h), 4.0 * m.variance.standard_error) << particles;
  }
}

TEST(GaussianModelInTime, ReflectedTendsToTheExactMomentsAtOrderOne) {
  const GaussianModel g;
  // The bias of the variance at h = 0.1 against that of the recursion at h = 0.05: its halving is the
  // declared order.
  const double coarse = g.euler_variance(0.5, 0.1) - g.variance(0.5),
               fine = g.euler_variance(0.5, 0.05) - g.variance(0.5);
  EXPECT_NEAR(std::log2(coarse / fine), Reflected::weak_order, 0.15);
  const Moments m = moments_at(g, Scheme::Reflected, 0.001, 0.5, 2000, 20);
  EXPECT_NEAR(m.mean.value, g.mean(0.5), 4.0 * m.mean.standard_error + 3e-4);
  EXPECT_NEAR(m.variance.value, g.variance(0.5), 4.0 * m.variance.standard_error + 1e-3);
}

TEST(GaussianModelInTime, ASweepOfMalaAdvancesTimeByTheStep) {
  const GaussianModel g;
  double previous = 0.0;
  for (const double h : {0.1, 0.025}) {
    const Moments m = moments_at(g, Scheme::Mala, h, 0.5, 4000, 10);
    const double error = std::abs(m.mean.value - g.mean(0.5));
    // Measured: bias of the mean 0.18 h, of the variance below 0.35 h.
    EXPECT_LT(error, 0.3 * h + 4.0 * m.mean.standard_error) << h;
    EXPECT_LT(std::abs(m.variance.value - g.variance(0.5)), 0.6 * h + 4.0 * m.variance.standard_error) << h;
    previous = error;
  }
  EXPECT_LT(previous, 0.02);
}

TEST(GaussianModelInTime, ThermalEquilibriumIsReachedAndKept) {
  const GaussianModel g{.kappa = 2.0, .alpha = 0.0, .beta = 5.0, .m0 = 0.0, .s0 = 0.01};
  const double h = 0.01;
  const Moments m = moments_at(g, Scheme::Reflected, h, 6.0, 200, 200);
  // Euler's equilibrium: 1 / (beta kappa (1 - h kappa / 2)).
  EXPECT_NEAR(m.variance.value, 1.0 / (5.0 * 2.0 * (1.0 - 0.5 * h * 2.0)), 4.0 * m.variance.standard_error);
}

TEST(GradientFlow, TwoRepellingParticlesFollowTheExactTrajectory) {
  // W = r^-s / s: d r / dt = (2/N) r^-(s+1), so r^(s+2) = r0^(s+2) + (s+2) t for N = 2; -log r is s = 0.
  for (const double s : {0.0, 0.5, 1.0}) {
    const Interaction w =
        s == 0.0 ? Interaction{LogarithmicInteraction{}} : Interaction{RieszInteraction{.exponent = s}};
    for (const double r0 : {0.5, 1e-9}) {
      State state{{1, 2, 3, {0.0, 0.0, 0.0, r0, 0.0, 0.0}}, {}};
      const Model model{WholeSpace{3}, {}, {w}, infinity};
      ASSERT_EQ(run(model, state, {.timestep = 1e-3}, Schedule::at({0.0, 0.7}), {}, {}).status,
                RunStatus::Completed);
      const double exact = std::pow(std::pow(r0, s + 2.0) + (s + 2.0) * 0.7, 1.0 / (s + 2.0));
      EXPECT_NEAR(state.ensemble.positions[3] - state.ensemble.positions[0], exact, 2e-3) << s << ' ' << r0;
    }
  }
}

TEST(GradientFlow, EnergyNeverGrows) {
  const Model model{
      Box{{-1.0, -1.0}, {1.0, 1.0}}, {QuadraticPotential{}}, {LogarithmicInteraction{}}, infinity};
  State state{uniform_ensemble(model.domain, 1, 50), {}};
  const PairSum pair_sum(model, 50, {});
  double previous = infinity;
  run(model, state, {.timestep = 1e-3}, Schedule::every(0.05, 0.0, 2.0),
      [&](const Clock&, const State& s) {
        std::vector<double> forces(100, 0.0);
        double energy = 0.0;
        pair_sum.add_forces(s.ensemble.positions, 1, forces, std::span(&energy, 1));
        for (std::size_t i = 0; i < 50; ++i)
          energy += potential(model, std::span(&s.ensemble.positions[2 * i], 2)) / 50.0;
        EXPECT_LT(energy, previous);
        previous = energy;
      },
      {});
  EXPECT_LT(previous, infinity);
}

}  // namespace
}  // namespace rieszflow::particle
