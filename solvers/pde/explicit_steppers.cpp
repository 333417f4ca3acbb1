#include <algorithm>
#include <array>
#include <boost/numeric/odeint/stepper/runge_kutta_dopri5.hpp>
#include <cmath>

#include "core/expects.hpp"
#include "solvers/pde/stepper.hpp"
#include "solvers/pde/upwind.hpp"

namespace rieszflow::pde {
namespace {

/// Equation: (4), Scharfetter-Gummel in space. Update: Dormand-Prince 5(4), controlled (Boost.Odeint).
/// Preserves mass; positivity and decay of F by refusing steps. Order 5. Reference: J. R. Dormand and P. J.
/// Prince (1980).
class MethodOfLinesStepper : public Stepper {
 public:
  MethodOfLinesStepper(const Workspace& work, double tolerance)
      : potential_(work.trial.size()),
        stage_(work.trial.size()),
        error_(work.trial.size()),
        tolerance_(tolerance) {}

  Trial attempt(Workspace& work, std::span<const double> averages, double timestep, bool adaptive) override {
    const auto system = [&](const std::vector<double>& rho, std::vector<double>& rate, double) {
      work.effective_potential(rho, potential_);
      work.fluxes.rate_of_change(potential_, rho, rate);
    };
    stage_.assign(averages.begin(), averages.end());
    // A fresh stepper state per trial (no reuse of the last stage), so that a resumed run repeats every bit.
    formula_.reset();
    formula_.do_step(system, stage_, 0.0, timestep, error_);
    if (!all_finite(stage_)) return {Refusal::NotFinite, 0.25};
    if (!all_non_negative(stage_)) return {Refusal::Negative, 0.5};
    work.trial = stage_;
    if (!adaptive) return {};
    const double volume = work.field.grid().cell_volume();
    double error = 0.0;
    for (const double local : error_) error += std::abs(local) * volume;
    return verdict(error, tolerance_ * timestep, 4.0);
  }

 private:
  boost::numeric::odeint::runge_kutta_dopri5<std::vector<double>> formula_;
  std::vector<double> potential_, stage_, error_;
  double tolerance_;
};

/// Equation: (4), Scharfetter-Gummel in space. Update: the Runge-Kutta-Chebyshev formula of second order with
/// as many stages as the stiffness of the step needs (their number grows like the root of timestep times
/// spectral radius). Preserves mass; positivity and decay of F by refusing steps. Order 2; error estimate
/// |0.8 (y0 - y1) + 0.4 tau (f0 + f1)|_1. Reference: B. P. Sommeijer, L. F. Shampine and J. G. Verwer, RKC:
/// an explicit solver for parabolic PDEs, J. Comput. Appl. Math. 88 (1997) 315-326.
///
/// The spectral radius is bounded, not followed from step to step, so that a resumed run repeats every bit:
/// the local part by Gershgorin's circles, the nonlocal one, delta -> div(rho grad(W*delta)), by the largest
/// rho times its norm at unit density (power iteration, once).
class StabilisedExplicitStepper : public Stepper {
 public:
  StabilisedExplicitStepper(const Workspace& work, double tolerance)
      : first_rate_(work.trial.size()),
        rate_(work.trial.size()),
        stage_potential_(work.trial.size()),
        before_(work.trial.size()),
        here_(work.trial.size()),
        tolerance_(tolerance),
        nonlocal_stiffness_(nonlocal_stiffness(work)) {}

  Trial attempt(Workspace& work, std::span<const double> averages, double timestep, bool adaptive) override {
    const double densest = *std::max_element(averages.begin(), averages.end());
    const double radius =
        2.0 * work.fluxes.largest_rate(work.potential, rate_) + densest * nonlocal_stiffness_ + 1e-300;
    const double longest = static_cast<double>(most_stages * most_stages - 1) / (1.54 * radius);
    if (timestep > longest) return {Refusal::Error, std::max(0.01, 0.9 * longest / timestep)};
    const int stages = std::max(2, 1 + static_cast<int>(std::sqrt(1.54 * timestep * radius + 1.0)));
    work.fluxes.rate_of_change(work.potential, averages, first_rate_);
    integrate(work, averages, timestep, stages);
    if (!all_finite(work.trial)) return {Refusal::NotFinite, 0.25};
    if (!all_non_negative(work.trial)) return {Refusal::Negative, 0.5};
    if (!adaptive) return {};
    work.trial_interaction_energy = work.effective_potential(work.trial, work.trial_potential);
    work.trial_potential_known = true;
    work.fluxes.rate_of_change(work.trial_potential, work.trial, rate_);
    const std::span<const double> volumes = work.field.volumes();
    double error = 0.0;
    for (std::size_t i = 0; i < rate_.size(); ++i) {
      const double local = 0.8 * (averages[i] - work.trial[i]) + 0.4 * timestep * (first_rate_[i] + rate_[i]);
      error += std::abs(local) * (volumes.empty() ? work.field.grid().cell_volume() : volumes[i]);
    }
    Trial trial = verdict(error, tolerance_ * timestep, 2.0);
    trial.growth = std::min(trial.growth, std::max(1.0, 0.9 * longest / timestep));
    return trial;
  }

 private:
  static constexpr int most_stages = 200;

  /// Chebyshev polynomial of the first kind and its derivatives at one point.
  struct Chebyshev {
    double value, slope, curvature;
  };

  /// work.trial = y after `stages` stages from `averages`, whose rate is first_rate_.
  void integrate(Workspace& work, std::span<const double> averages, double timestep, int stages) {
    const double s = stages, damping = 2.0 / 13.0, w0 = 1.0 + damping / (s * s);
    const auto next = [w0](const Chebyshev& t, const Chebyshev& before) {
      return Chebyshev{2.0 * w0 * t.value - before.value, 2.0 * t.value + 2.0 * w0 * t.slope - before.slope,
                       4.0 * t.slope + 2.0 * w0 * t.curvature - before.curvature};
    };
    const Chebyshev zeroth{1.0, 0.0, 0.0}, linear{w0, 1.0, 0.0};
    Chebyshev before = zeroth, here = linear;
    for (int j = 2; j <= stages; ++j) {
      const Chebyshev after = next(here, before);
      before = here;
      here = after;
    }
    const double w1 = here.slope / here.curvature;
    before = linear;
    here = next(linear, zeroth);
    double b2 = here.curvature / (here.slope * here.slope), b1 = b2, b0 = b2;
    // before_ and here_ are stages minus y0: the mass of a difference is zero up to its own round-off.
    const std::size_t size = averages.size();
    std::fill(before_.begin(), before_.end(), 0.0);
    for (std::size_t i = 0; i < size; ++i) here_[i] = b1 * w1 * timestep * first_rate_[i];
    double a = 1.0 - b1 * w0;
    for (int j = 2; j <= stages; ++j) {
      for (std::size_t i = 0; i < size; ++i) work.trial[i] = averages[i] + here_[i];
      work.effective_potential(work.trial, stage_potential_);
      work.fluxes.rate_of_change(stage_potential_, work.trial, rate_);
      const double mu = 2.0 * b2 * w0 / b1, nu = -b2 / b0, weight = 2.0 * b2 * w1 / b1;
      for (std::size_t i = 0; i < size; ++i) {
        const double after =
            mu * here_[i] + nu * before_[i] + weight * timestep * (rate_[i] - a * first_rate_[i]);
        before_[i] = here_[i];
        here_[i] = after;
      }
      a = 1.0 - b2 * here.value;
      const Chebyshev after = next(here, before);
      before = here;
      here = after;
      b0 = b1;
      b1 = b2;
      b2 = here.curvature / (here.slope * here.slope);
    }
    for (std::size_t i = 0; i < size; ++i) work.trial[i] = averages[i] + here_[i];
  }

  /// Norm of delta -> div(grad(W*delta)) on the grid, from the fastest growth of a rough start.
  static double nonlocal_stiffness(const Workspace& work) {
    const std::size_t size = work.trial.size();
    const double beta = work.field.model().inverse_temperature;
    const std::vector<double> zero(size, 0.0), uniform(size, 1.0);
    std::vector<double> direction(size), base(size), changed(size), potential(size);
    ScharfetterGummel diffusion = work.fluxes;
    work.field.interaction_potential(uniform, base);
    for (std::size_t i = 0; i < size; ++i)  // no mode of the grid is orthogonal to it
      direction[i] = static_cast<double>((i * 2654435761U + 12345U) % 1000003U) / 500001.5 - 1.0;
    double growth = 0.0;
    for (int round = 0; round < 20; ++round) {
      double norm = 0.0;
      for (const double value : direction) norm = std::max(norm, std::abs(value));
      if (!(norm > 0.0) || !std::isfinite(norm)) break;
      if (round > 0) growth = norm / 0.5;
      for (double& value : direction) value *= 0.5 / norm;
      for (std::size_t i = 0; i < size; ++i) changed[i] = uniform[i] + direction[i];
      work.field.interaction_potential(changed, potential);
      for (std::size_t i = 0; i < size; ++i) potential[i] -= base[i];
      diffusion.rate_of_change(zero, potential, direction);
      for (double& value : direction) value *= beta;
    }
    return 1.2 * growth;
  }

  std::vector<double> first_rate_, rate_, stage_potential_, before_, here_;
  double tolerance_, nonlocal_stiffness_;
};

/// Equation: (4) at beta = infinity, second-order upwind in space. Update: Heun, y = rho + tau (k1 + k2)/2: a
/// mean of Euler steps, each within the bound that keeps rho >= 0. Preserves mass and positivity; order 2.
/// Error estimate: tau |k2 - k1|_1 / 2. Reference: C.-W. Shu and S. Osher, J. Comput. Phys. 77 (1988).
class UpwindStepper : public Stepper {
 public:
  UpwindStepper(const Workspace& work, double tolerance)
      : fluxes_(work.field.grid()),
        first_(work.trial.size()),
        second_(work.trial.size()),
        stage_potential_(work.trial.size()),
        tolerance_(tolerance) {}

  Trial attempt(Workspace& work, std::span<const double> averages, double timestep, bool adaptive) override {
    const double longest = fluxes_.stable_timestep(work.potential);
    if (timestep > longest) return {Refusal::Negative, std::max(0.01, 0.9 * longest / timestep)};
    fluxes_.rate_of_change(work.potential, averages, first_);
    for (std::size_t i = 0; i < first_.size(); ++i) work.trial[i] = averages[i] + timestep * first_[i];
    if (!all_finite(work.trial)) return {Refusal::NotFinite, 0.25};
    work.effective_potential(work.trial, stage_potential_);
    if (timestep > fluxes_.stable_timestep(stage_potential_)) return {Refusal::Negative, 0.5};
    fluxes_.rate_of_change(stage_potential_, work.trial, second_);
    const std::span<const double> volumes = work.field.volumes();
    const double cell_volume = work.field.grid().cell_volume();
    double error = 0.0;
    for (std::size_t i = 0; i < first_.size(); ++i) {
      // The mean of rho and of an Euler step from the stage: both are >= 0.
      work.trial[i] = 0.5 * averages[i] + 0.5 * (work.trial[i] + timestep * second_[i]);
      error +=
          0.5 * timestep * std::abs(second_[i] - first_[i]) * (volumes.empty() ? cell_volume : volumes[i]);
    }
    if (!all_non_negative(work.trial)) return {Refusal::Negative, 0.5};
    if (!adaptive) return {};
    Trial trial = verdict(error, std::pow(tolerance_ * timestep, 2.0 / 3.0), 4.0 / 3.0);
    trial.growth = std::min(trial.growth, 0.9 * longest / timestep);
    return trial;
  }

  double dissipation(Workspace& work, std::span<const double> averages, std::span<double>) override {
    return fluxes_.rate_of_change(work.potential, averages, first_);
  }

 private:
  SecondOrderUpwind fluxes_;
  std::vector<double> first_, second_, stage_potential_;
  double tolerance_;
};

}  // namespace

std::unique_ptr<Stepper> explicit_stepper(const Workspace& work, const Options& options) {
  const double beta = work.field.model().inverse_temperature;
  switch (*options.scheme) {
    case Scheme::MethodOfLines:
      return std::make_unique<MethodOfLinesStepper>(work, options.tolerance);
    case Scheme::StabilisedExplicit:
      expects(std::isfinite(beta), "the stabilised explicit scheme is for finite beta");
      return std::make_unique<StabilisedExplicitStepper>(work, options.tolerance);
    case Scheme::SecondOrderUpwind:
      expects(std::isinf(beta), "the upwind scheme is for beta = infinity");
      return std::make_unique<UpwindStepper>(work, options.tolerance);
    case Scheme::SemiImplicit:
    case Scheme::LimitedSemiImplicit:
    case Scheme::EnergyStable:
      break;
  }
  expects(false, "not an explicit scheme");
  return nullptr;
}

}  // namespace rieszflow::pde
