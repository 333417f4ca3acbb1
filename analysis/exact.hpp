#pragma once
#include <cstddef>
#include <optional>

/// Closed forms for finite N and for the mean-field limit: what simulations and solvers are checked against.
///
/// Conventions of theory.md (1)-(7): P_N ~ exp(-beta N H_N) with pairs i != j, so W = -log|x| gives the
/// factor |x_i - x_j|^(beta/N). Abbreviations in the formulas: kappa = beta/2, gamma = beta/(2N), LG = log
/// Gamma, psi = digamma, g = Euler's constant. "W = -log|x|" is the logarithmic interaction of strength 1.
namespace rieszflow::exact {

/// log Z_N = N limit + correction + o(1), limit = -beta min F.
struct Partition {
  double log_z = 0.0;  ///< of (3), exact
  double limit = 0.0;
  std::optional<double> correction;  ///< c0; empty where log Z_N - N limit has no finite limit
};

/// W = -log|x| on [-1,1], beta V = -(left-1) log((1+x)/2) - (right-1) log((1-x)/2); left = right = 1: V = 0.
/// log Z = (N + gamma N(N-1)) log 2 + sum_{j<N} [LG(left+j gamma) + LG(right+j gamma) + LG(1+(j+1)gamma)
///         - LG(left+right+(N+j-1)gamma)] - N LG(1+gamma).
/// Source: A. Selberg, Norsk Mat. Tidsskr. 26 (1944) 71-78; P. Forrester, S. Warnaar, Bull. AMS 45 (2008)
/// 489-534.
Partition log_gas_on_interval(std::size_t particles, double beta, double left = 1.0, double right = 1.0);

/// W = -log|x| on R, V = stiffness x^2/2.
/// log Z = (N/2) log 2 pi - (1/2)(N + gamma N(N-1)) log(beta stiffness) + sum_{j=1}^N LG(1+j gamma) - N
/// LG(1+gamma). Source: M. Mehta, Random Matrices, 3rd ed. (2004), (17.6.7).
Partition log_gas_on_line(std::size_t particles, double beta, double stiffness);

/// W = -log|2 sin(x/2)| on the circle of length 2 pi, V = 0: log Z = N log 2 pi + LG(1+kappa) - N
/// LG(1+gamma). Source: F. Dyson, J. Math. Phys. 3 (1962) 140-156.
Partition log_gas_on_circle(std::size_t particles, double beta);

/// W = -|x| on [-1,1], V = 0: Z = N! 2^N exp[sigma_0, ..., sigma_N], a divided difference at sigma_j = (2
/// beta/N) j(N-j) (Hermite-Genocchi for the ordered gaps). It is an entry of the exponential of a bidiagonal
/// matrix, summed here as a series of positive terms. Limit with k tan k = beta/2: -log(k^2/beta) + beta/2 +
/// 2 log cos k + 1 - 2 k^2/beta.
Partition coulomb_on_interval(std::size_t particles, double beta);

/// H = -(J/2) m^2 on [-1,1]^N, m the mean; as a model W = (J/2) r^2, V = -(J/2) x^2, beta J = coupling.
/// log Z = N log 2 + (1/2) log(N coupling/2 pi) + log integral exp(-N coupling u^2/2) (sinh(coupling
/// u)/(coupling u))^N du. Critical coupling 3, where there is no finite correction; above it two minimisers.
Partition curie_weiss(std::size_t particles, double coupling);

/// W = -J cos(x-y) on the circle of length 2 pi, V = 0, beta J = coupling.
/// log Z = N log 2 pi - coupling/2 + log integral_0^inf coupling N u exp(-N coupling u^2/2) I_0(coupling u)^N
/// du. Critical coupling 2; from there on the rotations of the minimiser leave no finite correction.
Partition plane_rotators(std::size_t particles, double coupling);

/// V = -(1+cos 2x)/2, W = (1+cos 2r)/2 on [-pi/2, pi/2] (or the circle of length pi): squared-loss learning
/// of a kernel with one feature, H_N = |1-z|^2/4 - 1/2 - 1/(2N), z = (1/N) sum exp(2 i x).
Partition learned_kernel(std::size_t particles, double beta);

/// -beta min F and c0 of W = -log|x| on the unit disc, V = 0:
/// limit = log pi + 1 - ((beta+4)/beta) log(1+beta/4), c0 = (1/2) log(1+b) + LG(1+r_1) + LG(1+r_2) + 2 b g, b
/// = beta/4, r_1,2 = ((1+2b) +- sqrt(1-4b-4b^2))/2. log Z_N itself is known for beta = 2N: N log pi.
double log_gas_on_disc_limit(double beta);
double log_gas_on_disc_correction(double beta);

// Equilibrium densities: minimisers of F
// ------------------------------------------------------------------------------

/// W = -log|x| on [-1,1], V = 0, nu = beta/2, Legendre functions on the cut:
/// rho(x) = (1+nu) / (2 (1-x^2)^2 [Q_nu'(x)^2 + (pi^2/4) P_nu'(x)^2]); rho(+-1) = (1+nu)/2. From the Riccati
/// equation (1-z^2)(S' - nu S^2) = 1+nu of the Stieltjes transform S of rho. integral x^2 rho = (1+nu)/(3+2
/// nu).
double log_gas_on_interval_density(double beta, double x);

/// W = -log|x| on R, V = stiffness x^2/2: rho(x) = sqrt(beta stiffness) / (sqrt(2 pi) Gamma(1+c)
/// |D_{-c}(iy)|^2), y = sqrt(beta stiffness) x, c = beta/2, D the parabolic cylinder function. Source: R.
/// Allez, J.-P. Bouchaud, A. Guionnet, Phys. Rev. Lett. 109 (2012) 094102.
double log_gas_on_line_density(double beta, double stiffness, double x);

/// k of k tan k = beta/2, 0 < k < pi/2.
double coulomb_wavenumber(double beta);
/// W = -|x| on [-1,1], V = 0: rho(x) = (k^2/beta) / cos^2(k x).
double coulomb_on_interval_density(double beta, double x);

/// W = -log r on the unit disc, V = 0: rho(r) = 4/(pi(4+beta)) (1 - beta r^2/(4+beta))^-2. W = +log r: beta
/// negative, > -4.
double log_gas_on_disc_density(double beta, double radius);

/// W = +|x| on R, V = 0, centred: rho(x) = (beta/4) / cosh^2(beta x/2).
double attractive_line_density(double beta, double x);

// Exact identities at finite N
// ----------------------------------------------------------------------------------------

/// Integral of rho_N (x . n) over the boundary of a convex domain around 0, rho_N the one-particle density of
/// (3): d - beta E[x . grad V] - (beta/2)(1-1/N) E[r W'(r)] (integrate div(x p_N)). Log: r W' = -1.
double contact_flux(std::size_t dimension, double beta, std::size_t particles, double mean_x_grad_v,
                    double mean_r_w_prime);

/// W = -log|x| on [-1,1], V = 0: E x^2 and N Var(mean) for all N, from the Schwinger-Dyson identities of
/// (1-x^2) and (1-x^2) x.
double log_gas_on_interval_second_moment(std::size_t particles, double beta);
double log_gas_on_interval_mean_variance(std::size_t particles, double beta);

/// W = -log|x| on R^d, V = stiffness |x|^2/2: E (1/N) sum |x|^2 = (d + (beta/2)(1-1/N)) / (beta stiffness).
double log_gas_second_moment(std::size_t dimension, std::size_t particles, double beta, double stiffness);

/// W = +|x| on R, V = 0: E (1/N) sum (x_i - mean)^2; the gaps are independent Exp(beta j(N-j)/N). Limit
/// pi^2/(3 beta^2).
double attractive_line_variance(std::size_t particles, double beta);

// Fluctuations
// --------------------------------------------------------------------------------------------------------

/// N E|(1/N) sum exp(i k theta)|^2 of the circular log gas: k = 1: 1/(1+(beta/2)(1-1/N)); k = 2 (Jack
/// polynomials), alpha = 2N/beta: (2 alpha/((1+alpha)(N+alpha-1))) [alpha(N+alpha)/(N+2 alpha-1) +
/// (N-1)/(N+alpha-2)]. Limit 1/(1+beta/(2k)).
double circle_mode_variance(std::size_t particles, double beta, int mode);

/// N E m^2 of `curie_weiss`. Limit below the critical coupling: 1/(3 - coupling).
double curie_weiss_variance(std::size_t particles, double coupling);

/// N Var(Re z) and N Var(Im z) of `learned_kernel` in the limit: v/(1+beta v/2), v the variances of cos 2x
/// and sin 2x under the minimiser.
double learned_kernel_variance_real(double beta);
double learned_kernel_variance_imaginary(double beta);
/// Re z of the minimiser: r = I_1(s)/I_0(s), s = beta(1-r)/2.
double learned_kernel_order(double beta);

// Large deviations
// ----------------------------------------------------------------------------------------------------

/// A probability and the rate -lim (1/N) log P.
struct Tail {
  double log_probability = 0.0;  ///< natural logarithm, exact for this N
  double rate = 0.0;
};

/// The half line on which the statistic must lie.
enum class Side { Above, Below };

/// W = 0: the mean of N uniforms on [-1,1]. level != 0.
Tail uniform_mean_tail(std::size_t particles, double level, Side side);

/// W = 0: (1/N) sum cos(phi_i), phi uniform: one entry of a random-feature kernel. level != 0.
Tail random_cosine_tail(std::size_t particles, double level, Side side);

/// m > level of `curie_weiss`, level > 0.
Tail curie_weiss_tail(std::size_t particles, double coupling, double level);
/// |m| < half_width of `curie_weiss`.
Tail curie_weiss_window(std::size_t particles, double coupling, double half_width);

/// L = (1/N) sum log((1+x_i)/2) of `log_gas_on_interval`, V = 0: exp(N L) has the law of a product of
/// independent Beta(1+j gamma, 1+(N-1) gamma), j < N. Its mean tends to [LG(1+kappa) + LG(2+kappa) - LG(2+2
/// kappa)]/kappa; `level` lies on that side of it which `side` names.
Tail log_gas_on_interval_tail(std::size_t particles, double beta, double level, Side side);

/// L = (1/N) sum log|1 - exp(i theta)| of `log_gas_on_circle`:
/// E exp(t N L) = prod_{j<N} Gamma(1+j gamma) Gamma(1+t+j gamma) / Gamma(1+t/2+j gamma)^2. Mean 0; level !=
/// 0.
Tail log_gas_on_circle_tail(std::size_t particles, double beta, double level, Side side);

/// (1/N) sum |x|^2 > level for W = -log|x| on R^d, V = stiffness |x|^2/2: (beta stiffness/2) sum |x|^2 has
/// the law Gamma(k_N, 1), k_N = (dN + beta(N-1)/2)/2. level above the limiting mean (d+beta/2)/(beta
/// stiffness).
Tail log_gas_radius_tail(std::size_t dimension, std::size_t particles, double beta, double stiffness,
                         double level);

/// All particles in ratio D, 0 < ratio < 1, for W = -log|x|, V = 0 on a star-shaped D around 0:
/// P = ratio^(dN + beta(N-1)/2).
Tail scaling_tail(std::size_t dimension, std::size_t particles, double beta, double ratio);

/// Re z < level of `learned_kernel`, level below `learned_kernel_order`; N >= 10.
Tail learned_kernel_tail(std::size_t particles, double beta, double level);

/// m > level of H = (stiffness/2N) sum x^2 + translation-invariant quadratic interaction: m is N(0, 1/(beta
/// stiffness N)).
Tail harmonic_mean_tail(std::size_t particles, double beta, double stiffness, double level);

// Time-dependent: V = stiffness x^2/2, W = coupling r^2/2 on R, x_i(0) independent N(mean, variance)
// ------------------

struct OrnsteinUhlenbeck {
  double stiffness = 1.0;
  double coupling = 0.0;
  double beta = 1.0;
  double initial_mean = 0.0;
  double initial_variance = 1.0;

  /// Of the McKean-Vlasov law at time t, which is Gaussian: mean m0 exp(-kappa t), variance s(t) with rate
  /// a = kappa + coupling: s = s0 exp(-2at) + (1 - exp(-2at))/(beta a).
  double mean(double time) const;
  double variance(double time) const;
  /// N Var((1/N) sum x_i) for every N: v(t) as s(t) with a = kappa.
  double mean_variance(double time) const;
  /// Variance of one particle of N: s + (v - s)/N.
  double particle_variance(double time, std::size_t particles) const;
  /// E W_2^2(mu_N, rho_t) = (v-s)/N + s w_N, w_N that of N independent standard Gaussians.
  double squared_wasserstein2(double time, std::size_t particles) const;
  /// E MMD^2 (biased) with exp(-r^2/(2 length^2)): (1-g(2s))/N + 2 (g(2s) - g(2s+(v-s)/N)), g(tau) =
  /// (1+tau/length^2)^-1/2.
  double squared_discrepancy(double time, std::size_t particles, double length) const;
  /// MMD^2, same kernel, of the law of one particle of N against rho_t, both Gaussian: with s' its variance,
  /// g(2s') + g(2s) - 2 g(s+s'), of order 1/N^2.
  double squared_marginal_discrepancy(double time, std::size_t particles, double length) const;
  /// E |X_i - Y_i|^2 of a particle X_i and the independent copy Y_i, dY = -(kappa Y + coupling (Y - mean)) dt
  /// + noise, with the same start and noise. e = X_i - Y_i is the same for all i: de = (-kappa e + coupling
  /// M) dt with M = mean of the copies minus mean(t), Var M = s/N; so with B = N E[e M], A = N E e^2:
  ///     B' = -(2 kappa + coupling) B + coupling s,   A' = -2 kappa A + 2 coupling B,   A(0) = B(0) = 0.
  double squared_path_distance(double time, std::size_t particles) const;
  /// Relative entropy of k particles of N against rho_t^(x k): (k tau - log(1+k tau))/2 with tau = (v-s)/(N
  /// s), v and s as above, the covariance of two particles in units of s: of order (k/N)^2.
  double marginal_entropy(double time, std::size_t marginal, std::size_t particles) const;
  /// The same in the stationary law: tau = coupling/(stiffness N).
  double stationary_marginal_entropy(std::size_t marginal, std::size_t particles) const;
};

/// E W_2^2 of N independent standard Gaussians: w_N = 2 (1 - integral E phi(Phi^-1(B/N)) dx), B binomial(N,
/// Phi(x)).
double gaussian_squared_wasserstein2(std::size_t particles);

}  // namespace rieszflow::exact
