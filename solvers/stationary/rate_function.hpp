#pragma once
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "solvers/stationary/self_consistency.hpp"

/// Large deviations, fluctuations and the first correction of the free energy, all from the mean-field side:
/// theory.md section 3, items 3, 4 and 7.
namespace rieszflow::stationary {

/// g(rho) through component integrals c_k = integral f_k rho:
///     Mean      g = c_0,
///     Distance  g = sqrt( sum_k weights_k (c_k - target_k)^2 ).
struct Observable {
  enum class Kind { Mean, Distance };
  Kind kind = Kind::Mean;
  std::vector<std::vector<double>> components;  ///< (component)(cell): cell averages of f_k
  std::vector<double> target{};                 ///< (component), Distance
  std::vector<double> weights{};                ///< (component) >= 0, Distance
};

/// Cell averages of a function of the point, by Gauss-Legendre in each cell (not at its faces: an integrable
/// singularity on a face is harmless).
std::vector<double> cell_averages(const Grid& grid,
                                  const std::function<double(std::span<const double> point)>& function);

/// g of a density.
double value(const Observable& observable, const Grid& grid, std::span<const double> averages);

struct RateOptions {
  Options solve{.tolerance = 1e-11};
  double tolerance = 1e-9;  ///< on g = level, relative to the deviation of f under the minimiser
  int iterations = 60;      ///< of the tilt
};

/// The minimisers of F found from several starts (uniform, tilted both ways along each component), lowest
/// first; equal ones (L1 distance below 1e-4) once. Local minimisers are among them.
std::vector<Result> minimisers(const MeanField& field, const Observable& observable,
                               const RateOptions& options);

struct RatePoint {
  RunStatus status = RunStatus::Completed;
  std::string message{};
  double level = 0.0;        ///< a
  double rate = 0.0;         ///< I(a) >= 0
  double tilt = 0.0;         ///< Lagrange multiplier: dI/da
  bool constrained = false;  ///< the tilt alone does not reach the level: I is not convex there
  Density density{};         ///< the minimiser under the constraint
};

/// I(a) = inf { beta (F[rho] - min F) : g(rho) = a }.
///
/// Stationarity: rho = Z^-1 exp(-beta (V + W*rho) + t dg/drho) with the tilt t such that g(rho) = a; t =
/// I'(a). For a Mean the tilt is found by Newton's method with secant slopes, kept in its bracket. Where I is
/// not convex no tilt is stable; then F + (stiffness/2)(g - a)^2 - (t/beta) g is minimised, the multiplier t
/// updated until g = a (augmented Lagrangian; R. Rockafellar, Math. Program. 5 (1973) 354-373), from every
/// known minimiser of F, and the lowest is taken. So it is for a Distance.
RatePoint rate(const MeanField& field, const Observable& observable, double level,
               const std::vector<Result>& minima, const RateOptions& options);

/// inf I over {lower < g < upper}: zero when a global minimiser lies inside, else the lower of I at the
/// finite ends. Right when I grows from its zeros towards the event.
RatePoint rate_of_event(const MeanField& field, const Observable& observable, double lower, double upper,
                        const std::vector<Result>& minima, const RateOptions& options);

/// Fluctuations about a minimiser: Cov(sqrt N mu_N f, sqrt N mu_N g) -> <f, (I + beta C W)^-1 C g>, C = rho
/// (delta - rho) (the inverse Hessian of beta F). f, g: (cell). Dense algebra: at most a few thousand cells.
/// No functionals.
double limit_covariance(const MeanField& field, const Density& density, std::span<const double> f,
                        std::span<const double> g);

/// c0 = lim (log Z_N + beta N min F) = -(1/2) sum_k [log(1 + l_k) - l_k] + (beta/2) double-integral W rho
/// rho, with the eigenvalues l_k of beta C^(1/2) W C^(1/2): a regularised determinant, finite where W is
/// square integrable (s < d/2). On a grid of n cells the error falls like the sum of l_k^2 over k > n. NaN
/// when 1 + l_k <= 0: not a minimiser. No functionals.
double partition_correction(const MeanField& field, const Density& density);

}  // namespace rieszflow::stationary
