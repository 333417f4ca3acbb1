#include "analysis/exact.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/tools/minima.hpp>
#include <boost/math/tools/roots.hpp>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <vector>

#include "analysis/binomial.hpp"
#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow::exact {
namespace {

using Complex = std::complex<double>;
constexpr double pi = std::numbers::pi;
constexpr double egamma = std::numbers::egamma;
constexpr double ln2 = std::numbers::ln2;

double LG(double x) { return std::lgamma(x); }

/// log Gamma(z), Re z > 0, some branch: Stirling's series after a shift to |z| > 12.
Complex LG(Complex z) {
  Complex shift = 0.0;
  while (std::abs(z) < 12.0) {
    shift += std::log(z);
    z += 1.0;
  }
  const Complex w = 1.0 / (z * z);
  const Complex series =
      (1.0 / 12.0 -
       w * (1.0 / 360.0 -
            w * (1.0 / 1260.0 - w * (1.0 / 1680.0 - w * (1.0 / 1188.0 - w * 691.0 / 360360.0))))) /
      z;
  return (z - 0.5) * std::log(z) - z + 0.5 * std::log(2.0 * pi) + series - shift;
}

template <class Function>
double unit_integral(const Function& f) {
  return boost::math::quadrature::gauss<double, 30>::integrate(f, 0.0, 1.0);
}

/// log integral_a^b exp(g): the part of [a, b] where g is within 45 of its maximum, then composite
/// Gauss-Legendre.
template <class Function>
double log_integral(const Function& g, double a, double b) {
  constexpr int scan = 400;
  double top = 0.0;
  for (int pass = 0; pass < 12; ++pass) {
    std::vector<double> values(scan + 1);
    for (int k = 0; k <= scan; ++k)
      values[static_cast<std::size_t>(k)] = g(a + (b - a) * (k + 0.5) / (scan + 1));
    top = *std::max_element(values.begin(), values.end());
    int first = 0, last = scan;
    while (values[static_cast<std::size_t>(first)] < top - 45.0) ++first;
    while (values[static_cast<std::size_t>(last)] < top - 45.0) --last;
    const double step = (b - a) / (scan + 1);
    const double from = std::max(a, a + step * (first - 1)), to = std::min(b, a + step * (last + 2));
    const bool wide = last - first > scan / 4;
    a = from, b = to;
    if (wide) break;
  }
  constexpr int panels = 64;
  CompensatedSum sum;
  for (int k = 0; k < panels; ++k)
    sum.add(boost::math::quadrature::gauss<double, 15>::integrate(
        [&](double x) { return std::exp(g(x) - top); }, a + (b - a) * k / panels,
        a + (b - a) * (k + 1) / panels));
  return top + std::log(sum.value());
}

/// Place of the minimum of a convex function on (a, b), either end may be infinite; finite values inside.
template <class Function>
double minimiser(const Function& f, double a, double b) {
  // An infinite end comes in by doubling until the function rises there.
  if (std::isinf(b)) {
    double step = 1.0;
    while (f(a + 2.0 * step) < f(a + step)) step *= 2.0;
    b = a + 2.0 * step;
  }
  if (std::isinf(a)) {
    double step = 1.0;
    while (f(b - 2.0 * step) < f(b - step)) step *= 2.0;
    a = b - 2.0 * step;
  }
  return boost::math::tools::brent_find_minima(f, a, b, 52).first;
}

/// log(sinh z / z).
double log_sinhc(double x) {
  x = std::abs(x);
  if (x < 1e-2) return x * x / 6.0 * (1.0 - x * x / 30.0 * (1.0 - 4.0 * x * x / 63.0));
  return x + std::log1p(-std::exp(-2.0 * x)) - std::log(2.0 * x);
}
Complex log_sinhc(Complex z) {
  if (z.real() < 0.0) z = -z;
  if (std::abs(z) < 1e-2) return z * z / 6.0 * (1.0 - z * z / 30.0 * (1.0 - 4.0 * z * z / 63.0));
  return z + std::log((1.0 - std::exp(-2.0 * z)) / (2.0 * z));
}

/// I_0(sqrt(w)) by its series sum (w/4)^k / k!^2.
Complex bessel_of_square(Complex w) {
  Complex term = 1.0, sum = 1.0;
  for (int k = 1; k < 400; ++k) {
    term *= w / (4.0 * k * k);
    sum += term;
    if (std::abs(term) < 1e-18 * std::abs(sum) && k * k > std::abs(w) / 4.0) break;
  }
  return sum;
}

/// log I_0(z): the series, beyond |z| = 20 both exponentials of the asymptotic expansion.
Complex log_bessel(Complex z) {
  if (z.real() < 0.0) z = -z;
  if (std::abs(z) < 20.0) return std::log(bessel_of_square(z * z));
  Complex growing = 1.0, decaying = 1.0, up = 1.0, down = 1.0;
  for (int k = 1; k < 20; ++k) {
    const double factor = (2.0 * k - 1.0) * (2.0 * k - 1.0) / (8.0 * k);
    up *= factor / z;
    down *= -factor / z;
    growing += up;
    decaying += down;
  }
  const Complex turn = z.imag() >= 0.0 ? Complex(0.0, 1.0) : Complex(0.0, -1.0);
  return z - 0.5 * std::log(2.0 * pi * z) + std::log(growing + turn * decaying * std::exp(-2.0 * z));
}
double log_bessel(double x) { return log_bessel(Complex(x, 0.0)).real(); }

/// I_1(s)/I_0(s) by the continued fraction of the ratio (modified Lentz not needed: it converges from the
/// tail).
double bessel_ratio(double s) {
  double ratio = 0.0;
  for (int k = 60 + static_cast<int>(s); k >= 1; --k) ratio = 1.0 / (2.0 * k / s + ratio);
  return s > 0.0 ? ratio : 0.0;
}

/// log P(S > x) or log P(S < x) for the law with log E exp(tS) = K(t), analytic for lowest < Re t < highest:
/// the inverse Laplace integral of exp(K(t) - t x)/t through the saddle, trapezoid rule (spectral for
/// analytic integrands; the steps resolve the nearest singularity by exp(-2 pi 6)).
template <class Generating>
double log_tail(const Generating& K, double x, Side side, double lowest, double highest) {
  const auto exponent = [&](double t) { return K(Complex(t, 0.0)).real() - t * x; };
  const double shrink = 1e-9;
  double c = 0.0;
  if (side == Side::Above)
    c = minimiser(exponent, shrink, std::isinf(highest) ? highest : highest * (1.0 - shrink));
  else
    c = minimiser(exponent, std::isinf(lowest) ? lowest : lowest * (1.0 - shrink), -shrink);
  expects(std::abs(c) > 1e-6, "the level lies on the other side of the mean");
  const double reach = std::min({std::abs(c), highest - c, c - lowest});
  const double delta = 1e-3 * reach;
  const double spread =
      std::sqrt((exponent(c + delta) - 2.0 * exponent(c) + exponent(c - delta)) / (delta * delta));
  const double step = std::min(1.0 / (3.0 * spread), reach / 6.0);
  const double top = exponent(c);
  const double sign = side == Side::Above ? 1.0 : -1.0;
  CompensatedSum sum;
  int small = 0;
  for (std::size_t k = 0; k < 4000000 && small < 50; ++k) {
    const Complex t(c, static_cast<double>(k) * step);
    const Complex value = std::exp(K(t) - t * x - top) / (sign * t);
    sum.add((k == 0 ? 0.5 : 1.0) * value.real());
    small = std::abs(value) < 1e-18 / std::abs(c) ? small + 1 : 0;
  }
  return top + std::log(sum.value() * step / pi);
}

/// sup_t (t x - cumulant(t)) over t of the right sign.
template <class Cumulant>
double legendre(const Cumulant& cumulant, double x, Side side, double lowest, double highest) {
  const auto negative = [&](double t) { return cumulant(t) - t * x; };
  const double shrink = 1e-9;
  const double t = side == Side::Above
                       ? minimiser(negative, 0.0, std::isinf(highest) ? highest : highest * (1.0 - shrink))
                       : minimiser(negative, std::isinf(lowest) ? lowest : lowest * (1.0 - shrink), 0.0);
  return -negative(t);
}

constexpr double infinity = std::numeric_limits<double>::infinity();

/// log of the density of the mean m of N uniforms on [-1,1] at m, by the saddle contour.
double log_uniform_mean_density(std::size_t particles, double m) {
  const double n = static_cast<double>(particles);
  m = std::abs(m);
  const auto exponent = [&](double t) { return log_sinhc(t) - t * m; };
  const double c = m > 1e-12 ? minimiser(exponent, 0.0, infinity) : 0.0;
  const double variance = c > 1e-3 ? 1.0 / (c * c) - 1.0 / (std::sinh(c) * std::sinh(c)) : 1.0 / 3.0;
  // Zeros of sinh at multiples of i pi are no singularities of its N-th power: only the Gaussian scale
  // matters.
  const double step = 0.3 / std::sqrt(n * variance);
  const double top = n * exponent(c);
  CompensatedSum sum;
  int small = 0;
  for (std::size_t k = 0; k < 1000000 && small < 30; ++k) {
    const Complex t(c, static_cast<double>(k) * step);
    const Complex value = std::exp(n * (log_sinhc(t) - t * m) - top);
    sum.add((k == 0 ? 0.5 : 1.0) * value.real());
    small = std::abs(value) < 1e-18 ? small + 1 : 0;
  }
  return top + std::log(n / pi * step * sum.value());
}

/// log integral over m in [from, to] of exp(N coupling m^2/2) times the density of the mean of N uniforms.
double log_curie_weiss_mass(std::size_t particles, double coupling, double from, double to) {
  const double n = static_cast<double>(particles);
  return log_integral(
      [&](double m) { return n * coupling * m * m / 2.0 + log_uniform_mean_density(particles, m); }, from,
      to);
}

/// max_u (-coupling u^2/2 + log sinhc(coupling u)), u >= 0, and where.
std::pair<double, double> curie_weiss_maximum(double coupling) {
  const auto negative = [&](double u) { return coupling * u * u / 2.0 - log_sinhc(coupling * u); };
  if (coupling <= 3.0) return {0.0, 0.0};
  const auto found = boost::math::tools::brent_find_minima(negative, 0.0, 1.0, 52);
  return {-found.second, found.first};
}

/// Lambda*(m) of a uniform on [-1,1].
double uniform_rate(double m) {
  return m == 0.0 ? 0.0
                  : legendre([](double t) { return log_sinhc(t); }, std::abs(m), Side::Above, 0.0, infinity);
}

/// -log P rate function of the Curie-Weiss mean, up to its minimum.
double curie_weiss_rate(double coupling, double m) { return uniform_rate(m) - coupling * m * m / 2.0; }

/// The learned-kernel model relative to uniform angles, x = Re z, y = Im z:
/// E exp(tau N x - beta N y^2/4) = sqrt(N/(pi beta)) integral exp(-N q^2/beta) I_0(sqrt(tau^2 - q^2))^N dq on
/// the line tau = tilt + i k step, k = 0, 1, ..., over I_0(tilt)^N.
class LearnedKernelContour {
 public:
  LearnedKernelContour(std::size_t particles, double beta, double tilt)
      : n_(static_cast<double>(particles)), beta_(beta), tilt_(tilt), log_scale_(n_ * log_bessel(tilt)) {}

  double step() const { return 0.2 * std::sqrt(2.0 / n_); }  // the variance of a cosine is at most about 1/2
  double log_scale() const { return log_scale_; }
  Complex value(double y) const {
    const Complex tau(tilt_, y);
    const double width = 0.25 / std::sqrt(2.0 * n_ / beta_ + 0.5 * n_);
    Complex sum = 0.0;
    int small = 0;
    for (int k = 0; small < 10; ++k) {
      const double q = k * width;
      const Complex term =
          std::exp(n_ * (log_bessel(std::sqrt(tau * tau - q * q)) - q * q / beta_) - log_scale_);
      sum += (k == 0 ? 1.0 : 2.0) * term;
      small = std::abs(term) <= 1e-18 * std::abs(sum) || n_ * q * q / beta_ > 60.0 ? small + 1 : 0;
    }
    return sum * width * std::sqrt(n_ / (pi * beta_));
  }

 private:
  double n_, beta_, tilt_, log_scale_;
};

/// log E exp(-beta N |1-z|^2/4): the Gaussian in x is integrated in closed form,
/// (N/pi) sqrt(4 pi/(beta N)) Re integral_0^inf exp(N tau^2/beta - N tau) (...) dy, through the saddle.
double log_learned_kernel_partition(std::size_t particles, double beta) {
  const double n = static_cast<double>(particles), tilt = beta * (1.0 - learned_kernel_order(beta)) / 2.0;
  const LearnedKernelContour contour(particles, beta, tilt);
  const double step = std::min(contour.step(), 0.2 * std::sqrt(beta / (2.0 * n)));
  CompensatedSum sum;
  for (int k = 0; n * k * k * step * step / beta < 45.0; ++k) {
    const double y = k * step;
    const Complex tau(tilt, y);
    const Complex gauss = std::exp(n * (tau * tau - tilt * tilt) / beta - n * (tau - tilt));
    sum.add((k == 0 ? 0.5 : 1.0) * (gauss * contour.value(y)).real());
  }
  return contour.log_scale() + n * tilt * tilt / beta - n * tilt +
         std::log(sum.value() * step * std::sqrt(4.0 * n / (pi * beta)));
}

/// log E [exp(-beta N |1-z|^2/4); x < level]. The contour goes through the saddle of the level, so that no x
/// below it has a larger term. Ten particles or more: the transform
/// falls only like y^(-N/2).
double log_learned_kernel_mass(std::size_t particles, double beta, double tilt, double level) {
  expects(particles >= 10, "ten particles or more");
  const double n = static_cast<double>(particles);
  const LearnedKernelContour contour(particles, beta, tilt);
  const double step = contour.step();
  std::vector<Complex> values;
  for (int small = 0; small < 10;) {
    values.push_back(contour.value(static_cast<double>(values.size()) * step));
    small = std::abs(values.back()) < 1e-15 * std::abs(values.front()) ? small + 1 : 0;
  }
  const auto density = [&](double x) {
    CompensatedSum sum;
    const Complex turn = std::exp(Complex(0.0, -step * n * x));
    Complex phase = 1.0;
    for (std::size_t k = 0; k < values.size(); ++k, phase *= turn)
      sum.add((k == 0 ? 0.5 : 1.0) * (values[k] * phase).real());
    return sum.value() * step * n / pi;
  };
  const auto weight = [&](double x) { return -beta * n * (1.0 - x) * (1.0 - x) / 4.0 - tilt * n * x; };
  const double peak = weight(level);
  constexpr int panels = 200;
  CompensatedSum sum;
  for (int k = 0; k < panels; ++k)
    sum.add(boost::math::quadrature::gauss<double, 10>::integrate(
        [&](double x) { return weight(x) > peak - 45.0 ? std::exp(weight(x) - peak) * density(x) : 0.0; },
        -1.0 + (level + 1.0) * k / panels, -1.0 + (level + 1.0) * (k + 1) / panels));
  return contour.log_scale() + peak + std::log(sum.value());
}

struct Legendre {
  double p = 0.0;  ///< P_nu
  double q = 0.0;  ///< Q_nu on the cut
};

/// P_nu and Q_nu at 0 <= x < 1 by the two Frobenius series in z = (1-x)/2 at the regular singular point x =
/// 1: P = u, Q = -v/2 - (g + psi(nu+1)) u, v = u log z + sum d_k z^k, d_k the derivative of the coefficients
/// with respect to the exponent. Small nu only: terms grow like (3.7)^nu.
Legendre legendre_series(double nu, double x) {
  const double z = 0.5 * (1.0 - x), a = -nu, b = nu + 1.0;
  double coefficient = 1.0, derivative = 0.0, power = 1.0, u = 1.0, tail = 0.0;
  for (int k = 0; k < 200; ++k) {
    const double next = (k + 1.0) * (k + 1.0);
    const double ratio = (a + k) * (b + k) / next;
    const double slope = (a + b + 2.0 * k) / next - 2.0 * ratio / (k + 1.0);
    derivative = derivative * ratio + coefficient * slope;
    coefficient *= ratio;
    power *= z;
    u += coefficient * power;
    tail += derivative * power;
  }
  const double v = u * std::log(z) + tail;
  return {u, -0.5 * v - (egamma + boost::math::digamma(nu + 1.0)) * u};
}

}  // namespace

// Partition functions
// -------------------------------------------------------------------------------------------------

Partition log_gas_on_interval(std::size_t particles, double beta, double left, double right) {
  expects(particles > 0 && beta > 0.0 && left > 0.0 && right > 0.0, "a law with finite mass");
  const double n = static_cast<double>(particles), kappa = beta / 2.0, gamma = kappa / n, both = left + right;
  CompensatedSum sum;
  sum.add((n + gamma * n * (n - 1.0)) * ln2 - n * LG(1.0 + gamma));
  for (std::size_t i = 0; i < particles; ++i) {
    const double j = static_cast<double>(i);
    sum.add(LG(left + j * gamma) + LG(right + j * gamma) + LG(1.0 + (j + 1.0) * gamma) -
            LG(both + (n + j - 1.0) * gamma));
  }
  const double limit = (1.0 + kappa) * ln2 + unit_integral([&](double u) {
                         return LG(left + kappa * u) + LG(right + kappa * u) + LG(1.0 + kappa * u) -
                                LG(both + kappa * (1.0 + u));
                       });
  const double correction = -0.5 * (LG(left + kappa) - LG(left)) - 0.5 * (LG(right + kappa) - LG(right)) +
                            0.5 * LG(1.0 + kappa) + 1.5 * (LG(both + 2.0 * kappa) - LG(both + kappa)) +
                            egamma * kappa - kappa * ln2;
  return {sum.value(), limit, correction};
}

Partition log_gas_on_line(std::size_t particles, double beta, double stiffness) {
  expects(particles > 0 && beta > 0.0 && stiffness > 0.0, "a law with finite mass");
  const double n = static_cast<double>(particles), kappa = beta / 2.0, gamma = kappa / n;
  const double scale = std::log(beta * stiffness);
  CompensatedSum sum;
  sum.add(0.5 * n * std::log(2.0 * pi) - 0.5 * (n + gamma * n * (n - 1.0)) * scale - n * LG(1.0 + gamma));
  for (std::size_t j = 1; j <= particles; ++j) sum.add(LG(1.0 + static_cast<double>(j) * gamma));
  return {sum.value(), 0.5 * std::log(2.0 * pi) - 0.5 * (1.0 + kappa) * scale + unit_integral([&](double u) {
                         return LG(1.0 + kappa * u);
                       }),
          0.5 * LG(1.0 + kappa) + egamma * kappa + 0.5 * kappa * scale};
}

Partition log_gas_on_circle(std::size_t particles, double beta) {
  expects(particles > 0 && beta > 0.0, "a law with finite mass");
  const double n = static_cast<double>(particles), kappa = beta / 2.0;
  return {n * std::log(2.0 * pi) + LG(1.0 + kappa) - n * LG(1.0 + kappa / n), std::log(2.0 * pi),
          LG(1.0 + kappa) + egamma * kappa};
}

Partition coulomb_on_interval(std::size_t particles, double beta) {
  expects(particles > 0 && beta > 0.0, "a law with finite mass");
  const double n = static_cast<double>(particles);
  // exp of the matrix with sigma on the diagonal and N (a free scale, divided out) above it: e_0 B^k / k!,
  // all terms non-negative, so nothing cancels.
  std::vector<double> sigma(particles + 1), vector(particles + 1, 0.0);
  double largest = 0.0;
  for (std::size_t j = 0; j <= particles; ++j) {
    sigma[j] = 2.0 * beta / n * static_cast<double>(j) * static_cast<double>(particles - j);
    largest = std::max(largest, sigma[j]);
  }
  vector[0] = 1.0;
  double sum = 0.0, log_scale = 0.0;
  for (std::size_t k = 1;; ++k) {
    double top = 0.0;
    for (std::size_t j = particles + 1; j-- > 0;) {
      vector[j] = (vector[j] * sigma[j] + (j > 0 ? n * vector[j - 1] : 0.0)) / static_cast<double>(k);
      top = std::max(top, vector[j]);
    }
    sum += vector[particles];
    if (static_cast<double>(k) > n + largest && top < 1e-18 * sum) break;
    const double size = std::max(top, sum);
    if (size > 1e200 || size < 1e-200) {
      for (double& entry : vector) entry /= size;
      sum /= size;
      log_scale += std::log(size);
    }
  }
  const double k = coulomb_wavenumber(beta), cosine = std::cos(k);
  const double wall = k * k / (beta * cosine * cosine);
  return {LG(n + 1.0) + n * ln2 + std::log(sum) + log_scale - n * std::log(n),
          -std::log(k * k / beta) + beta / 2.0 + 2.0 * std::log(cosine) + 1.0 - 2.0 * k * k / beta,
          -0.5 * std::log(wall * (1.0 / (cosine * cosine) + std::tan(k) / k))};
}

Partition curie_weiss(std::size_t particles, double coupling) {
  expects(particles > 0 && coupling > 0.0, "a positive coupling");
  const double n = static_cast<double>(particles);
  const double edge = 2.0 + std::sqrt(90.0 / (n * coupling));
  Partition result;
  result.log_z =
      n * ln2 + 0.5 * std::log(n * coupling / (2.0 * pi)) +
      log_integral([&](double u) { return n * (log_sinhc(coupling * u) - coupling * u * u / 2.0); }, -edge,
                   edge);
  const auto [value, place] = curie_weiss_maximum(coupling);
  result.limit = ln2 + value;
  if (coupling < 3.0) result.correction = -0.5 * std::log(1.0 - coupling / 3.0);
  if (coupling > 3.0) {
    const double t = coupling * place, sine = std::sinh(t);
    result.correction = ln2 - 0.5 * std::log(1.0 - coupling * (1.0 / (t * t) - 1.0 / (sine * sine)));
  }
  return result;
}

Partition plane_rotators(std::size_t particles, double coupling) {
  expects(particles > 0 && coupling > 0.0, "a positive coupling");
  const double n = static_cast<double>(particles);
  const double edge = 2.0 + std::sqrt(90.0 / (n * coupling));
  const auto exponent = [&](double u) { return log_bessel(coupling * u) - coupling * u * u / 2.0; };
  Partition result;
  result.log_z =
      n * std::log(2.0 * pi) - coupling / 2.0 +
      log_integral([&](double u) { return std::log(coupling * n * u) + n * exponent(u); }, 0.0, edge);
  result.limit = std::log(2.0 * pi);
  if (coupling < 2.0) {
    result.correction = -coupling / 2.0 - std::log(1.0 - coupling / 2.0);
  } else {
    result.limit -=
        boost::math::tools::brent_find_minima([&](double u) { return -exponent(u); }, 0.0, 1.0, 52).second;
  }
  return result;
}

Partition learned_kernel(std::size_t particles, double beta) {
  expects(particles > 0 && beta > 0.0, "a positive inverse temperature");
  const double n = static_cast<double>(particles);
  const double r = learned_kernel_order(beta), s = beta * (1.0 - r) / 2.0;
  const double v_cosine = 1.0 - r / s - r * r, v_sine = r / s;
  return {log_learned_kernel_partition(particles, beta) + n * (std::log(pi) + beta / 2.0) + beta / 2.0,
          -beta * (1.0 - r) * (1.0 - r) / 4.0 - s * r + log_bessel(s) + std::log(pi) + beta / 2.0,
          -0.5 * std::log((1.0 + beta * v_cosine / 2.0) * (1.0 + beta * v_sine / 2.0)) + beta / 2.0};
}

double log_gas_on_disc_limit(double beta) {
  expects(beta > -4.0 && beta != 0.0, "beta > -4");
  return std::log(pi) + 1.0 - (beta + 4.0) / beta * std::log1p(beta / 4.0);
}

double log_gas_on_disc_correction(double beta) {
  const double b = beta / 4.0;
  const Complex root = std::sqrt(Complex(1.0 - 4.0 * b - 4.0 * b * b, 0.0));
  const Complex one = 0.5 * (1.0 + 2.0 * b + root), two = 0.5 * (1.0 + 2.0 * b - root);
  return 0.5 * std::log1p(b) + (LG(1.0 + one) + LG(1.0 + two)).real() + 2.0 * b * egamma;
}

// Densities
// -----------------------------------------------------------------------------------------------------------

double log_gas_on_interval_density(double beta, double x) {
  expects(beta > 0.0 && std::abs(x) <= 1.0, "a point of [-1, 1]");
  const double nu = beta / 2.0;
  x = std::abs(x);
  if (x == 1.0) return 0.5 * (1.0 + nu);
  // Upwards in nu from [0, 1): both functions oscillate on the cut, so the three-term recurrence is stable.
  const double start = nu - std::floor(nu);
  Legendre now = legendre_series(start, x), next = legendre_series(start + 1.0, x);
  double degree = start;
  for (int step = 0; step < static_cast<int>(std::floor(nu)); ++step) {
    const double a = (2.0 * degree + 3.0) / (degree + 2.0), b = (degree + 1.0) / (degree + 2.0);
    const Legendre above{a * x * next.p - b * now.p, a * x * next.q - b * now.q};
    now = next;
    next = above;
    degree += 1.0;
  }
  // (1-x^2) f_nu' = (nu+1)(x f_nu - f_{nu+1}).
  const double p = (nu + 1.0) * (x * now.p - next.p), q = (nu + 1.0) * (x * now.q - next.q);
  return (1.0 + nu) / (2.0 * (q * q + pi * pi / 4.0 * p * p));
}

double log_gas_on_line_density(double beta, double stiffness, double x) {
  expects(beta > 0.0 && stiffness > 0.0, "a law with finite mass");
  const double scale = std::sqrt(beta * stiffness), y = scale * x, c = beta / 2.0, half = y * y / 2.0;
  if (half > 700.0) return 0.0;  // below the smallest double
  // Gamma(c) D_{-c}(iy) = exp(y^2/4) integral t^(c-1) exp(-t^2/2 - iyt) dt: even and odd part are Kummer
  // functions exp(-y^2/2) M(b-a, b, y^2/2).
  const auto kummer = [half](double a, double b) {
    double term = std::exp(-half), sum = term;
    for (int k = 0; k < 100000; ++k) {
      term *= (a + k) / (b + k) * half / (k + 1.0);
      sum += term;
      if (std::abs(term) < 1e-18 * std::abs(sum) && k > half) break;
    }
    return sum;
  };
  const double even = std::exp2(c / 2.0 - 1.0) * std::tgamma(c / 2.0) * kummer(0.5 - c / 2.0, 0.5);
  const double odd =
      std::exp2((c - 1.0) / 2.0) * std::tgamma((c + 1.0) / 2.0) * y * kummer(1.0 - c / 2.0, 1.5);
  return scale / std::sqrt(2.0 * pi) * std::tgamma(c) / c * std::exp(-half) / (even * even + odd * odd);
}

double coulomb_wavenumber(double beta) {
  expects(beta > 0.0, "a positive inverse temperature");
  // k sin k - (beta/2) cos k rises on (0, pi/2) from negative to positive.
  const auto f = [&](double k) { return k * std::sin(k) - beta / 2.0 * std::cos(k); };
  std::uintmax_t iterations = 200;
  const auto bracket = boost::math::tools::toms748_solve(
      f, 0.0, pi / 2.0, boost::math::tools::eps_tolerance<double>(52), iterations);
  return 0.5 * (bracket.first + bracket.second);
}

double coulomb_on_interval_density(double beta, double x) {
  expects(std::abs(x) <= 1.0, "a point of [-1, 1]");
  const double k = coulomb_wavenumber(beta), cosine = std::cos(k * x);
  return k * k / (beta * cosine * cosine);
}

double log_gas_on_disc_density(double beta, double radius) {
  expects(beta > -4.0 && radius >= 0.0 && radius <= 1.0, "a point of the unit disc");
  const double factor = 1.0 - beta * radius * radius / (4.0 + beta);
  return 4.0 / (pi * (4.0 + beta)) / (factor * factor);
}

double attractive_line_density(double beta, double x) {
  const double cosine = std::cosh(beta * x / 2.0);
  return beta / 4.0 / (cosine * cosine);
}

// Identities
// ----------------------------------------------------------------------------------------------------------

double contact_flux(std::size_t dimension, double beta, std::size_t particles, double mean_x_grad_v,
                    double mean_r_w_prime) {
  return static_cast<double>(dimension) - beta * mean_x_grad_v -
         beta / 2.0 * (1.0 - 1.0 / static_cast<double>(particles)) * mean_r_w_prime;
}

double log_gas_on_interval_second_moment(std::size_t particles, double beta) {
  const double n = static_cast<double>(particles), kappa = beta / 2.0;
  const double inverse = kappa / (2.0 + beta * (1.0 - 1.0 / n));
  return (n + kappa * (n - 1.0) - inverse) / (3.0 * n + beta * (n - 1.0) - inverse - kappa);
}

double log_gas_on_interval_mean_variance(std::size_t particles, double beta) {
  const double n = static_cast<double>(particles);
  return (1.0 - log_gas_on_interval_second_moment(particles, beta)) / (2.0 + beta * (1.0 - 1.0 / n));
}

double log_gas_second_moment(std::size_t dimension, std::size_t particles, double beta, double stiffness) {
  return (static_cast<double>(dimension) + beta / 2.0 * (1.0 - 1.0 / static_cast<double>(particles))) /
         (beta * stiffness);
}

double attractive_line_variance(std::size_t particles, double beta) {
  expects(beta > 0.0, "a positive inverse temperature");
  const double n = static_cast<double>(particles);
  CompensatedSum sum;
  for (std::size_t i = 1; i < particles; ++i) {
    double mean = 0.0, variance = 0.0;
    for (std::size_t j = i; j < particles; ++j) {
      const double gap = n / (beta * static_cast<double>(j) * static_cast<double>(particles - j));
      mean += gap;
      variance += gap * gap;
      sum.add(variance + mean * mean);
    }
  }
  return sum.value() / (n * n);
}

// Fluctuations
// --------------------------------------------------------------------------------------------------------

double circle_mode_variance(std::size_t particles, double beta, int mode) {
  expects(mode == 1 || mode == 2, "modes 1 and 2");
  const double n = static_cast<double>(particles);
  if (particles == 1) return 1.0;
  if (mode == 1) return 1.0 / (1.0 + beta / 2.0 * (1.0 - 1.0 / n));
  const double alpha = 2.0 * n / beta;
  return 2.0 * alpha / ((1.0 + alpha) * (n + alpha - 1.0)) *
         (alpha * (n + alpha) / (n + 2.0 * alpha - 1.0) + (n - 1.0) / (n + alpha - 2.0));
}

double curie_weiss_variance(std::size_t particles, double coupling) {
  // E m^2 = (2/N) d log Z / d coupling; under the field u, E m^2 = E u^2 - 1/(N coupling).
  const double n = static_cast<double>(particles);
  const double edge = 2.0 + std::sqrt(90.0 / (n * coupling));
  const auto exponent = [&](double u) { return n * (log_sinhc(coupling * u) - coupling * u * u / 2.0); };
  const double mass = log_integral(exponent, 0.0, edge);
  const double second = log_integral([&](double u) { return exponent(u) + 2.0 * std::log(u); }, 0.0, edge);
  return n * std::exp(second - mass) - 1.0 / coupling;
}

double learned_kernel_order(double beta) {
  expects(beta > 0.0, "a positive inverse temperature");
  const auto f = [&](double r) { return r - bessel_ratio(beta * (1.0 - r) / 2.0); };
  std::uintmax_t iterations = 200;
  const auto bracket = boost::math::tools::toms748_solve(
      f, 0.0, 1.0, boost::math::tools::eps_tolerance<double>(52), iterations);
  return 0.5 * (bracket.first + bracket.second);
}

double learned_kernel_variance_real(double beta) {
  const double r = learned_kernel_order(beta), s = beta * (1.0 - r) / 2.0;
  const double v = 1.0 - r / s - r * r;  // (1 + I_2/I_0)/2 - r^2, I_2 = I_0 - 2 I_1/s
  return v / (1.0 + beta * v / 2.0);
}

double learned_kernel_variance_imaginary(double beta) { return 2.0 * learned_kernel_order(beta) / beta; }

// Large deviations
// ----------------------------------------------------------------------------------------------------

Tail uniform_mean_tail(std::size_t particles, double level, Side side) {
  const double n = static_cast<double>(particles);
  return {log_tail([n](Complex t) { return n * log_sinhc(t); }, n * level, side, -infinity, infinity),
          legendre([](double t) { return log_sinhc(t); }, level, side, -infinity, infinity)};
}

Tail random_cosine_tail(std::size_t particles, double level, Side side) {
  const double n = static_cast<double>(particles);
  return {log_tail([n](Complex t) { return n * log_bessel(t); }, n * level, side, -infinity, infinity),
          legendre([](double t) { return log_bessel(t); }, level, side, -infinity, infinity)};
}

Tail curie_weiss_tail(std::size_t particles, double coupling, double level) {
  expects(level > 0.0 && level < 1.0, "a level in (0, 1)");
  const double n = static_cast<double>(particles);
  const Partition whole = curie_weiss(particles, coupling);
  // Beyond the minimiser the half line holds it and costs nothing.
  const double best = curie_weiss_maximum(coupling).second;
  const double rate = level > best ? curie_weiss_rate(coupling, level) + whole.limit - ln2 : 0.0;
  return {log_curie_weiss_mass(particles, coupling, level, 1.0) + n * ln2 - whole.log_z, rate};
}

Tail curie_weiss_window(std::size_t particles, double coupling, double half_width) {
  expects(half_width > 0.0 && half_width < 1.0, "a width in (0, 1)");
  const double n = static_cast<double>(particles);
  const Partition whole = curie_weiss(particles, coupling);
  const double best = curie_weiss_maximum(coupling).second;
  const double rate = half_width < best ? curie_weiss_rate(coupling, half_width) + whole.limit - ln2 : 0.0;
  return {ln2 + log_curie_weiss_mass(particles, coupling, 0.0, half_width) + n * ln2 - whole.log_z, rate};
}

Tail log_gas_on_interval_tail(std::size_t particles, double beta, double level, Side side) {
  const double n = static_cast<double>(particles), kappa = beta / 2.0, gamma = kappa / n;
  const auto generating = [&](Complex t) {
    Complex sum = 0.0;
    for (std::size_t i = 0; i < particles; ++i) {
      const double a = 1.0 + static_cast<double>(i) * gamma, both = a + 1.0 + (n - 1.0) * gamma;
      sum += LG(a + t) - LG(a) - LG(both + t) + LG(both);
    }
    return sum;
  };
  const auto cumulant = [&](double t) {
    return unit_integral([&](double u) {
      return LG(1.0 + t + kappa * u) - LG(1.0 + kappa * u) - LG(2.0 + t + kappa * (1.0 + u)) +
             LG(2.0 + kappa * (1.0 + u));
    });
  };
  return {log_tail(generating, n * level, side, -1.0, infinity),
          legendre(cumulant, level, side, -1.0, infinity)};
}

Tail log_gas_on_circle_tail(std::size_t particles, double beta, double level, Side side) {
  const double n = static_cast<double>(particles), kappa = beta / 2.0, gamma = kappa / n;
  const auto generating = [&](Complex t) {
    Complex sum = 0.0;
    for (std::size_t i = 0; i < particles; ++i) {
      const double a = 1.0 + static_cast<double>(i) * gamma;
      sum += LG(a) + LG(a + t) - 2.0 * LG(a + 0.5 * t);
    }
    return sum;
  };
  const auto cumulant = [&](double t) {
    return unit_integral([&](double u) {
      const double a = 1.0 + kappa * u;
      return LG(a) + LG(a + t) - 2.0 * LG(a + t / 2.0);
    });
  };
  return {log_tail(generating, n * level, side, -1.0, infinity),
          legendre(cumulant, level, side, -1.0, infinity)};
}

Tail log_gas_radius_tail(std::size_t dimension, std::size_t particles, double beta, double stiffness,
                         double level) {
  const double n = static_cast<double>(particles), d = static_cast<double>(dimension);
  const double shape = (d * n + beta * (n - 1.0) / 2.0) / 2.0, x = beta * stiffness * level / 2.0;
  const double k = (d + beta / 2.0) / 2.0;
  expects(x > k, "a level above the mean");
  // The complement in logarithms: Q(a, y) = y^a e^-y / Gamma(a) times a continued fraction for y > a (Lentz).
  const double y = n * x;
  double b = y + 1.0 - shape, c = 1e300, inverse = 1.0 / b, fraction = inverse;
  for (int i = 1; i < 100000; ++i) {
    const double numerator = -i * (i - shape);
    b += 2.0;
    inverse = 1.0 / (numerator * inverse + b);
    c = b + numerator / c;
    const double factor = c * inverse;
    fraction *= factor;
    if (std::abs(factor - 1.0) < 1e-16) break;
  }
  return {shape * std::log(y) - y - LG(shape) + std::log(fraction), x - k - k * std::log(x / k)};
}

Tail scaling_tail(std::size_t dimension, std::size_t particles, double beta, double ratio) {
  expects(ratio > 0.0 && ratio < 1.0, "a ratio in (0, 1)");
  const double n = static_cast<double>(particles), d = static_cast<double>(dimension);
  return {(d * n + beta * (n - 1.0) / 2.0) * std::log(ratio), -(d + beta / 2.0) * std::log(ratio)};
}

Tail learned_kernel_tail(std::size_t particles, double beta, double level) {
  const double r = learned_kernel_order(beta), s = beta * (1.0 - r) / 2.0;
  expects(level > -1.0 && level < r, "a level below the minimiser's value");
  // Saddle of log I_0 at the level; negative for a negative level.
  const double magnitude =
      minimiser([&](double t) { return log_bessel(t) - t * std::abs(level); }, 0.0, infinity);
  const double tilt = level < 0.0 ? -magnitude : magnitude;
  const double rate = tilt * level - log_bessel(tilt) + beta * (1.0 - level) * (1.0 - level) / 4.0 -
                      (s * r - log_bessel(s) + beta * (1.0 - r) * (1.0 - r) / 4.0);
  return {
      log_learned_kernel_mass(particles, beta, tilt, level) - log_learned_kernel_partition(particles, beta),
      rate};
}

Tail harmonic_mean_tail(std::size_t particles, double beta, double stiffness, double level) {
  expects(level > 0.0, "a level above the mean");
  const double rate = beta * stiffness * level * level / 2.0,
               x = std::sqrt(rate * static_cast<double>(particles));
  // erfc underflows beyond 26; its continued fraction in logarithms does not (Lentz's is not needed: from the
  // tail).
  double log_erfc = 0.0;
  if (x < 20.0) {
    log_erfc = std::log(std::erfc(x));
  } else {
    double fraction = x;
    for (int k = 60; k >= 1; --k) fraction = x + k / 2.0 / fraction;
    log_erfc = -x * x - std::log(fraction) - 0.5 * std::log(pi);
  }
  return {log_erfc - ln2, rate};
}

// Ornstein-Uhlenbeck
// --------------------------------------------------------------------------------------------------

namespace {
double relaxed_variance(double initial, double rate, double beta, double time) {
  // (1 - exp(-2at))/(beta a) also at a = 0.
  const double grown = rate == 0.0 ? 2.0 * time / beta : -std::expm1(-2.0 * rate * time) / (beta * rate);
  return initial * std::exp(-2.0 * rate * time) + grown;
}
}  // namespace

double OrnsteinUhlenbeck::mean(double time) const { return initial_mean * std::exp(-stiffness * time); }
double OrnsteinUhlenbeck::variance(double time) const {
  return relaxed_variance(initial_variance, stiffness + coupling, beta, time);
}
double OrnsteinUhlenbeck::mean_variance(double time) const {
  return relaxed_variance(initial_variance, stiffness, beta, time);
}
double OrnsteinUhlenbeck::particle_variance(double time, std::size_t particles) const {
  const double s = variance(time);
  return s + (mean_variance(time) - s) / static_cast<double>(particles);
}
double OrnsteinUhlenbeck::squared_wasserstein2(double time, std::size_t particles) const {
  const double s = variance(time);
  return (mean_variance(time) - s) / static_cast<double>(particles) +
         s * gaussian_squared_wasserstein2(particles);
}
double OrnsteinUhlenbeck::squared_discrepancy(double time, std::size_t particles, double length) const {
  const double s = variance(time), n = static_cast<double>(particles);
  const auto g = [&](double tau) { return 1.0 / std::sqrt(1.0 + tau / (length * length)); };
  return (1.0 - g(2.0 * s)) / n + 2.0 * (g(2.0 * s) - g(2.0 * s + (mean_variance(time) - s) / n));
}
double OrnsteinUhlenbeck::squared_marginal_discrepancy(double time, std::size_t particles,
                                                       double length) const {
  const double s = variance(time), one = particle_variance(time, particles);
  const auto g = [&](double tau) { return 1.0 / std::sqrt(1.0 + tau / (length * length)); };
  return g(2.0 * one) + g(2.0 * s) - 2.0 * g(s + one);
}
double OrnsteinUhlenbeck::squared_path_distance(double time, std::size_t particles) const {
  if (coupling == 0.0) return 0.0;
  // s = limit + (initial - limit) exp(-2at): B and A are sums of exponentials, integrated by Duhamel's
  // formula.
  const double a = stiffness + coupling, limit = 1.0 / (beta * a), excess = initial_variance - limit;
  const double p = stiffness + a;  // decay of B; p - 2a = -coupling
  // integral_0^t exp(-x(t-u)) exp(-y u) du
  const auto convolved = [](double x, double y, double t) {
    return std::abs(x - y) * t < 1e-9 ? t * std::exp(-x * t)
                                      : (std::exp(-y * t) - std::exp(-x * t)) / (x - y);
  };
  const double q = 2.0 * stiffness;
  // B(u) = coupling [limit c(p, 0, u) + excess c(p, 2a, u)], again convolved with exp(-q(t-u)).
  const auto twice = [&](double y) { return (convolved(q, y, time) - convolved(q, p, time)) / (p - y); };
  return 2.0 * coupling * coupling * (limit * twice(0.0) + excess * twice(2.0 * a)) /
         static_cast<double>(particles);
}
double OrnsteinUhlenbeck::marginal_entropy(double time, std::size_t marginal, std::size_t particles) const {
  const double s = variance(time);
  const double k_tau =
      static_cast<double>(marginal) * (mean_variance(time) - s) / (s * static_cast<double>(particles));
  return 0.5 * (k_tau - std::log1p(k_tau));
}
double OrnsteinUhlenbeck::stationary_marginal_entropy(std::size_t marginal, std::size_t particles) const {
  const double k_tau =
      static_cast<double>(marginal) * coupling / (stiffness * static_cast<double>(particles));
  return 0.5 * (k_tau - std::log1p(k_tau));
}

double gaussian_squared_wasserstein2(std::size_t particles) {
  expects(particles > 0, "an empirical law needs an atom");
  const double n = static_cast<double>(particles);
  std::vector<double> height(particles + 1, 0.0);  // phi(Phi^-1(k/N))
  for (std::size_t k = 1; k < particles; ++k) {
    const double z = std::numbers::sqrt2 * boost::math::erfc_inv(2.0 * static_cast<double>(k) / n);
    height[k] = std::exp(-0.5 * z * z) / std::sqrt(2.0 * pi);
  }
  // Trapezoid rule: the integrand is analytic and vanishes with all derivatives at both ends.
  const double step = std::min(0.02, 0.25 / std::sqrt(n));
  CompensatedSum sum;
  const int last = static_cast<int>(std::ceil(9.0 / step));
  for (int k = -last; k <= last; ++k) {
    const double p = 0.5 * std::erfc(-k * step / std::numbers::sqrt2);
    sum.add(step * binomial_mean(particles, p, [&](std::size_t j) { return height[j]; }));
  }
  return 2.0 * (1.0 - sum.value());
}

}  // namespace rieszflow::exact
