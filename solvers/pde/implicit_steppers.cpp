#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "core/expects.hpp"
#include "solvers/pde/stepper.hpp"

namespace rieszflow::pde {
namespace {

/// Sums over cells that the extrapolation needs; y = two half steps, x = one step, rho = the start.
struct Changes {
  double gain = 0.0;   ///< integral of (y - x)+
  double loss = 0.0;   ///< integral of (y - x)-
  double cut = 0.0;    ///< how far y - x lies below -y/2
  double moved = 0.0;  ///< integral of |y - rho|
};

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
Changes
changes(const double* y, const double* x, const double* rho, const double* volumes, double cell_volume,
        std::size_t count) {
  double gain = 0.0, loss = 0.0, cut = 0.0, moved = 0.0;
  if (volumes == nullptr) {
#pragma omp simd reduction(+ : gain, loss, cut, moved)
    for (std::size_t i = 0; i < count; ++i) {
      const double change = y[i] - x[i], floor = -0.5 * y[i];
      gain += change > 0.0 ? change : 0.0;
      loss -= change < 0.0 ? change : 0.0;
      cut += change < floor ? floor - change : 0.0;
      moved += std::abs(y[i] - rho[i]);
    }
    return {gain * cell_volume, loss * cell_volume, cut * cell_volume, moved * cell_volume};
  }
#pragma omp simd reduction(+ : gain, loss, cut, moved)
  for (std::size_t i = 0; i < count; ++i) {
    const double change = y[i] - x[i], floor = -0.5 * y[i];
    gain += (change > 0.0 ? change : 0.0) * volumes[i];
    loss -= (change < 0.0 ? change : 0.0) * volumes[i];
    cut += (change < floor ? floor - change : 0.0) * volumes[i];
    moved += std::abs(y[i] - rho[i]) * volumes[i];
  }
  return {gain, loss, cut, moved};
}

/// y <- y + (y - x), a loss cut at y/2, gains times theta.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void extrapolate(double* __restrict y, const double* __restrict x, double theta, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double change = y[i] - x[i], floor = -0.5 * y[i];
    y[i] += change > 0.0 ? theta * change : (change > floor ? change : floor);
  }
}

/// Equation: (4), Scharfetter-Gummel in space. Update: y1 = S(Phi(rho), tau) rho; z = S(Phi(rho), tau/2) rho;
/// y2 = S(Phi(z), tau/2) z; result y2 + theta (y2 - y1), theta = 1 (Richardson) except where that would take
/// more than half of a cell's mass: there it is cut, and the growth of the other cells is scaled so that mass
/// stays. Preserves mass, positivity, Gibbs states; order 2. Error estimate: |y2 - y1|_1.
class SemiImplicitStepper : public Stepper {
 public:
  SemiImplicitStepper(const Workspace& work, Fluxes fluxes, double tolerance)
      : full_(work.trial.size()),
        half_(work.trial.size()),
        half_potential_(work.trial.size()),
        fluxes_(fluxes),
        tolerance_(tolerance) {}

  Trial attempt(Workspace& work, std::span<const double> averages, double timestep, bool adaptive) override {
    const Fluxes fluxes = chosen(work, averages);
    work.limited = fluxes == Fluxes::Limited;
    work.fluxes.implicit_step(work.potential, timestep, averages, full_, fluxes);
    work.fluxes.implicit_step(work.potential, 0.5 * timestep, averages, half_, fluxes);
    work.effective_potential(half_, half_potential_);
    work.fluxes.implicit_step(half_potential_, 0.5 * timestep, half_, work.trial, fluxes);
    const std::span<const double> volumes = work.field.volumes();
    const Changes sums =
        changes(work.trial.data(), full_.data(), averages.data(), volumes.empty() ? nullptr : volumes.data(),
                work.field.grid().cell_volume(), averages.size());
    const double theta = sums.cut > 0.0 && sums.gain > 0.0 ? std::max(0.0, 1.0 - sums.cut / sums.gain) : 1.0;
    extrapolate(work.trial.data(), full_.data(), theta, averages.size());
    const double error = sums.gain + sums.loss;
    if (!std::isfinite(error)) return {Refusal::NotFinite, 0.25};
    if (!adaptive) return {};
    // The estimate belongs to y2 and is O(tau^2); the result is one order better: error^(3/2) models its
    // error. A gradient flow forgets: of the errors of many steps the sum of late ones counts, of early ones
    // little. Hence neither error per step nor error per unit time, but between: error^(3/2) proportional to
    // tau^(1/2), where steps for a given accuracy at times of order one are fewest; the factor and the power
    // of the tolerance make it the error then. Near equilibrium that would allow any step; but where the
    // frozen Phi overshoots, y1 and y2 differ as much as they differ from rho, while for a linear decay their
    // distance is at most a tenth.
    const double allowed =
        std::min(2.2 * std::pow(tolerance_, 5.0 / 6.0) * std::cbrt(timestep), 0.25 * sums.moved + 1e-13);
    return verdict(error, allowed, 5.0 / 3.0);
  }

  double dissipation(Workspace& work, std::span<const double> averages, std::span<double> scratch) override {
    return work.fluxes.dissipation(work.potential, averages, scratch, chosen(work, averages));
  }

 private:
  Fluxes chosen(Workspace& work, std::span<const double> averages) const {
    if (fluxes_ != Fluxes::Automatic) return fluxes_;
    return work.fluxes.mean_peclet_number(work.potential, averages) > 2.0 ? Fluxes::Limited : Fluxes::Fitted;
  }

  std::vector<double> full_, half_, half_potential_;
  Fluxes fluxes_;
  double tolerance_;
};

/// Equation: (4), Scharfetter-Gummel in space. Update: rho' = S(Phi, tau) rho with Phi = V + W*(rho +
/// rho')/2: then integral Phi (rho' - rho) = E(rho') - E(rho), and a step with Phi frozen never raises
/// integral Phi rho minus entropy / beta. Preserves mass, positivity, Gibbs states; F decreases for every W
/// and timestep at which the equation is solved; order 1. Error estimate: |S(Phi, tau) rho' - 2 rho' + rho|_1
/// / 2, the local error of the implicit Euler step. Reference: A. Schlichting and C. Seis (2021); R. Bailo,
/// J. A. Carrillo and J. Hu, Commun. Math. Sci. 18 (2020).
///
/// The equation is solved for Phi by Anderson mixing; every iterate is a density with the mass of rho. Solved
/// means that two iterates in a row move the density by less than `solved` in L1; else the step is refused.
class EnergyStableStepper : public Stepper {
 public:
  EnergyStableStepper(const Workspace& work, double tolerance)
      : midpoint_(work.trial.size()),
        residual_(work.trial.size()),
        previous_(work.trial.size()),
        tolerance_(tolerance) {}

  Trial attempt(Workspace& work, std::span<const double> averages, double timestep, bool adaptive) override {
    midpoint_ = work.potential;
    previous_.assign(averages.begin(), averages.end());
    history_ = 0;
    bool is_solved = false;
    for (int iteration = 0; iteration < most_iterations && !is_solved; ++iteration) {
      work.fluxes.implicit_step(midpoint_, timestep, averages, work.trial);
      if (!all_finite(work.trial)) return {Refusal::NotFinite, 0.25};
      work.trial_interaction_energy = work.effective_potential(work.trial, work.trial_potential);
      work.trial_potential_known = true;
      is_solved = distance(work, work.trial, previous_) <= solved;
      if (is_solved) break;
      std::copy(work.trial.begin(), work.trial.end(), previous_.begin());
      for (std::size_t i = 0; i < residual_.size(); ++i)
        residual_[i] = 0.5 * (work.potential[i] + work.trial_potential[i]) - midpoint_[i];
      if (!all_finite(residual_)) return {Refusal::NotFinite, 0.25};
      mix();
    }
    if (!is_solved) return {Refusal::Unsolved, 0.5};
    if (!adaptive) return {};
    work.fluxes.implicit_step(midpoint_, timestep, work.trial, previous_);
    double error = 0.0;
    const std::span<const double> volumes = work.field.volumes();
    for (std::size_t i = 0; i < previous_.size(); ++i) {
      error += 0.5 * std::abs(previous_[i] - 2.0 * work.trial[i] + averages[i]) *
               (volumes.empty() ? work.field.grid().cell_volume() : volumes[i]);
    }
    // Between error per step and per unit time, as in SemiImplicitStepper.
    return verdict(error, 2.0 * std::pow(tolerance_, 1.5) * std::sqrt(timestep), 1.5);
  }

 private:
  static constexpr int most_iterations = 60;
  static constexpr std::size_t depth = 12;  ///< pairs of differences that the mixing remembers
  static constexpr double solved = 1e-11;
  static constexpr int largest = static_cast<int>(depth) + 1;  // bounded: nothing is allocated
  using Small = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, largest, largest>;
  using SmallVector = Eigen::Matrix<double, Eigen::Dynamic, 1, 0, largest, 1>;

  static double distance(const Workspace& work, std::span<const double> a, std::span<const double> b) {
    const std::span<const double> volumes = work.field.volumes();
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i)
      sum += std::abs(a[i] - b[i]) * (volumes.empty() ? work.field.grid().cell_volume() : volumes[i]);
    return sum;
  }

  static double product(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  }

  /// midpoint <- the point with the smallest linearised residual, plus that residual. The differences of the
  /// last `depth` iterates are kept in a ring; the newest slot holds the iterate itself until the next call.
  void mix() {
    const std::size_t size = residual_.size();
    if (points_.empty()) {
      points_.assign(depth + 1, std::vector<double>(size));
      residuals_.assign(depth + 1, std::vector<double>(size));
    }
    const std::size_t slots = depth + 1, newest = history_ % slots;
    if (history_ > 0) {
      const std::size_t last = (history_ - 1) % slots;
      for (std::size_t i = 0; i < size; ++i) {
        points_[last][i] = midpoint_[i] - points_[last][i];
        residuals_[last][i] = residual_[i] - residuals_[last][i];
      }
      for (std::size_t k = 0; k < std::min(history_, depth); ++k) {
        const std::size_t other = (history_ - 1 - k) % slots;
        gram_(static_cast<Eigen::Index>(last), static_cast<Eigen::Index>(other)) =
            gram_(static_cast<Eigen::Index>(other), static_cast<Eigen::Index>(last)) =
                product(residuals_[last], residuals_[other]);
      }
    }
    std::copy(midpoint_.begin(), midpoint_.end(), points_[newest].begin());
    std::copy(residual_.begin(), residual_.end(), residuals_[newest].begin());
    const auto used = static_cast<Eigen::Index>(std::min(history_, depth));
    for (std::size_t i = 0; i < size; ++i) midpoint_[i] += residual_[i];
    if (used > 0) {
      Small normal(used, used);
      SmallVector right(used);
      const auto slot = [&](Eigen::Index k) { return (history_ - 1 - static_cast<std::size_t>(k)) % slots; };
      for (Eigen::Index j = 0; j < used; ++j) {
        right(j) = product(residuals_[slot(j)], residual_);
        for (Eigen::Index k = 0; k < used; ++k) {
          normal(j, k) = gram_(static_cast<Eigen::Index>(slot(j)), static_cast<Eigen::Index>(slot(k)));
        }
      }
      // Columns of very different lengths: scaled to unit diagonal before the rank is judged.
      const SmallVector length = normal.diagonal().cwiseSqrt().cwiseMax(1e-300);
      const Small scaled = length.cwiseInverse().asDiagonal() * normal * length.cwiseInverse().asDiagonal();
      Eigen::CompleteOrthogonalDecomposition<Small> solver(used, used);
      solver.setThreshold(1e-12);
      solver.compute(scaled);
      const SmallVector weights = solver.solve(right.cwiseQuotient(length)).cwiseQuotient(length);
      for (Eigen::Index k = 0; k < used; ++k) {
        const std::vector<double>& point = points_[slot(k)];
        const std::vector<double>& difference = residuals_[slot(k)];
        const double weight = weights(k);
        for (std::size_t i = 0; i < size; ++i) midpoint_[i] -= weight * (point[i] + difference[i]);
      }
    }
    ++history_;
  }

  std::vector<double> midpoint_, residual_, previous_;
  std::vector<std::vector<double>> points_, residuals_;  ///< (slot): differences of iterates and residuals
  Small gram_ = Small::Zero(depth + 1, depth + 1);
  std::size_t history_ = 0;  ///< iterates since the step began
  double tolerance_;
};

}  // namespace

std::unique_ptr<Stepper> implicit_stepper(const Workspace& work, const Options& options) {
  if (!options.scheme) {
    return std::make_unique<SemiImplicitStepper>(work, Fluxes::Automatic, options.tolerance);
  }
  switch (*options.scheme) {
    case Scheme::SemiImplicit:
      return std::make_unique<SemiImplicitStepper>(work, Fluxes::Fitted, options.tolerance);
    case Scheme::LimitedSemiImplicit:
      return std::make_unique<SemiImplicitStepper>(work, Fluxes::Limited, options.tolerance);
    case Scheme::EnergyStable:
      return std::make_unique<EnergyStableStepper>(work, options.tolerance);
    case Scheme::MethodOfLines:
    case Scheme::StabilisedExplicit:
    case Scheme::SecondOrderUpwind:
      break;
  }
  expects(false, "not an implicit scheme");
  return nullptr;
}

}  // namespace rieszflow::pde
