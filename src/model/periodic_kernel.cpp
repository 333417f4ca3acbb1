#include "model/periodic_kernel.hpp"

#include <algorithm>
#include <array>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>

#include "core/expects.hpp"
#include "model/cell_kernel.hpp"

namespace rieszflow {
namespace {

constexpr double pi = std::numbers::pi;
constexpr double negligible = 38.0;  ///< exp(-38) is below the rounding of 1

struct QuadratureNode {
  double t;
  double weight;
};

/// Gauss-Legendre with 16 nodes on panels of at most `panel`.
std::vector<QuadratureNode> legendre(double from, double to, double panel) {
  using Rule = boost::math::quadrature::gauss<double, 16>;
  std::vector<QuadratureNode> nodes;
  if (!(to > from)) return nodes;
  const auto panels = static_cast<std::size_t>(std::ceil((to - from) / panel));
  const double half = 0.5 * (to - from) / static_cast<double>(panels);
  for (std::size_t p = 0; p < panels; ++p) {
    const double middle = from + half * static_cast<double>(2 * p + 1);
    for (std::size_t k = 0; k < Rule::abscissa().size(); ++k)
      for (const double side : {-1.0, 1.0})
        nodes.push_back({middle + side * half * Rule::abscissa()[k], half * Rule::weights()[k]});
  }
  return nodes;
}

/// The same for integral f(t) dt with t = exp(y): the weight holds the factor t.
std::vector<QuadratureNode> logarithmic(double from, double to) {
  std::vector<QuadratureNode> nodes = legendre(std::log(from), std::log(to), 1.0);
  for (QuadratureNode& node : nodes) {
    node.t = std::exp(node.t);
    node.weight *= node.t;
  }
  return nodes;
}

double sum_over(const std::vector<QuadratureNode>& nodes, const auto& f) {
  double sum = 0.0;
  for (const QuadratureNode& node : nodes) sum += node.weight * f(node.t);
  return sum;
}

/// E_p(x) = integral_1^infinity exp(-x u) u^-p du for p = c + 1, c > 0, x >= 0.
double exponential_integral(double c, double x) {
  if (x == 0.0) return 1.0 / c;
  const double end = std::min(negligible / c, std::log(std::max(1.0, negligible / x)) + 1.0);
  return sum_over(legendre(0.0, end, 0.5), [&](double y) { return std::exp(-x * std::exp(y) - c * y); });
}

/// (x^a - 1) / a, log x at a = 0.
double power_ratio(double x, double a) {
  const double logarithm = std::log(x);
  return a == 0.0 ? logarithm : std::expm1(a * logarithm) / a;
}

/// M(x) = integral_0^1 u^(a-1) (1 - exp(-x u)) du, entire in x, for a > -1: what the Gaussians below the
/// split hold of |z|^-2a, up to a constant. Series up to 2; beyond, x^a M(x) = integral_0^x v^(a-1) (1 -
/// exp(-v)) dv goes on from 2.
double lower_part(double a, double x) {
  const auto series = [a](double y) {
    double term = -1.0;
    double sum = 0.0;
    for (int k = 1; k < 40; ++k) {
      term *= -y / k;
      sum += term / (a + k);
    }
    return sum;
  };
  if (x <= 2.0) return series(x);
  const double beyond = sum_over(legendre(2.0, std::min(x, negligible + 2.0), 1.0),
                                 [&](double v) { return std::pow(v, a - 1.0) * std::exp(-v); });
  const double to_two = std::pow(2.0, a);
  return (to_two * (series(2.0) + power_ratio(0.5 * x, a)) - beyond) / std::pow(x, a);
}

/// Chebyshev coefficients of f on [-1, 1] from its values at the roots cos(pi (j + 1/2) / n).
void to_chebyshev(std::span<double> values) {
  const std::size_t n = values.size();
  std::vector<double> result(n);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t j = 0; j < n; ++j)
      result[k] += values[j] *
                   std::cos(pi * static_cast<double>(k * (2 * j + 1) % (4 * n)) / static_cast<double>(2 * n));
    result[k] *= (k == 0 ? 1.0 : 2.0) / static_cast<double>(n);
  }
  std::copy(result.begin(), result.end(), values.begin());
}

/// Coefficients of T_k become coefficients of v^k.
void to_powers(std::span<double> chebyshev) {
  const std::size_t n = chebyshev.size();
  std::vector<double> previous(n), current(n), next(n), result(n);
  previous[0] = 1.0;  // T_0
  if (n > 1) current[1] = 1.0;
  for (std::size_t k = 0; k < n; ++k) {
    const std::vector<double>& polynomial = k == 0 ? previous : current;
    for (std::size_t p = 0; p <= k; ++p) result[p] += chebyshev[k] * polynomial[p];
    if (k == 0) continue;
    for (std::size_t p = 0; p < n; ++p) next[p] = (p > 0 ? 2.0 * current[p - 1] : 0.0) - previous[p];
    previous = current;
    current = next;
  }
  std::copy(result.begin(), result.end(), chebyshev.begin());
}

/// Applies `transform` to every line along `axis` of an n^3 array whose sizes are `size`.
void along(std::size_t axis, const std::size_t (&size)[3], std::vector<double>& array,
           const std::function<void(std::span<double>)>& transform) {
  std::size_t inner = 1;
  for (std::size_t k = axis + 1; k < 3; ++k) inner *= size[k];
  const std::size_t n = size[axis];
  std::vector<double> line(n);
  for (std::size_t o = 0; o < array.size() / (n * inner); ++o)
    for (std::size_t i = 0; i < inner; ++i) {
      for (std::size_t k = 0; k < n; ++k) line[k] = array[(o * n + k) * inner + i];
      transform(line);
      for (std::size_t k = 0; k < n; ++k) array[(o * n + k) * inner + i] = line[k];
    }
}

/// A kernel as a mixture of Gaussians.
struct Mixture {
  /// Riesz, log: W = amplitude (integral_0^infinity t^(a-1) exp(-t (r^2 + softening^2)) dt, continued in a).
  struct Homogeneous {
    double amplitude;
    double half_exponent;  ///< a = s/2; 0 for log
    double squared_softening;
  };
  std::optional<Homogeneous> homogeneous;
  /// Gaussian, Morse: W = sum of weight exp(-t r^2).
  std::vector<QuadratureNode> gaussians;
};

/// exp(-r/l) = integral (2 l sqrt(pi))^-1 t^(-3/2) exp(-1/(4 l^2 t)) exp(-t r^2) dt (Laplace transform of
/// Levy's law); t beyond `last` belongs to nearest images alone.
void append_exponential(double strength, double length, double last, std::vector<QuadratureNode>& gaussians) {
  const double scale = 0.25 / (length * length);
  for (const QuadratureNode& node : logarithmic(std::min(scale / (2.0 * negligible), 0.5 * last), last)) {
    const double density =
        std::exp(-scale / node.t) / (2.0 * length * std::sqrt(pi) * node.t * std::sqrt(node.t));
    gaussians.push_back({node.t, strength * density * node.weight});
  }
}

Mixture mixture_of(const Interaction& interaction, double last) {
  Mixture mixture;
  const auto riesz = [&](const RieszInteraction& w) {
    const double a = 0.5 * w.exponent;
    mixture.homogeneous = {0.5 * w.strength / std::tgamma(1.0 + a), a, w.softening * w.softening};
  };
  const auto logarithm = [&](const LogarithmicInteraction& w) {
    mixture.homogeneous = {0.5 * w.strength, 0.0, w.softening * w.softening};
  };
  const auto gaussian = [&](const GaussianInteraction& w) {
    mixture.gaussians = {{0.5 / (w.length * w.length), w.strength}};
  };
  const auto morse = [&](const MorseInteraction& w) {
    append_exponential(w.repulsion_strength, w.repulsion_length, last, mixture.gaussians);
    append_exponential(-w.attraction_strength, w.attraction_length, last, mixture.gaussians);
  };
  if (const auto* w = std::get_if<RieszInteraction>(&interaction))
    riesz(*w);
  else if (const auto* v = std::get_if<LogarithmicInteraction>(&interaction))
    logarithm(*v);
  else if (const auto* g = std::get_if<GaussianInteraction>(&interaction))
    gaussian(*g);
  else if (const auto* m = std::get_if<MorseInteraction>(&interaction))
    morse(*m);
  else
    expects(false, "periodised kernels are riesz, log, gaussian and morse");
  return mixture;
}

/// One axis of the torus at the fit's nodes for one Gaussian exp(-t z^2).
struct AxisTable {
  std::vector<double> near;  ///< sum over the explicit images
  std::vector<double> far;   ///< sum over the others (t above the split)
  std::vector<double>
      waves;  ///< theta L sqrt(t / pi) - 1: the non-constant Fourier modes (t below the split)
};

}  // namespace

/// Computes the polynomial of a PeriodicKernel.
class PeriodicKernelFit {
 public:
  PeriodicKernelFit(const Torus& torus, PeriodicKernel::Range range, PeriodicKernel& kernel)
      : kernel_(kernel), dimension_(torus.lower.size()) {
    for (std::size_t k = 0; k < dimension_; ++k) {
      periods_.push_back(torus.upper[k] - torus.lower[k]);
      kernel_.range_.push_back(range == PeriodicKernel::Range::Pairs ? 0.5 * periods_[k] : periods_[k]);
    }
    const double longest_range = *std::max_element(kernel_.range_.begin(), kernel_.range_.end());
    for (std::size_t k = 0; k < dimension_; ++k)  // the next image is at least the longest range away
      layers_.push_back(
          static_cast<int>(std::ceil((longest_range + kernel_.range_[k]) / periods_[k] - 1e-9)) - 1);
    const double longest = *std::max_element(periods_.begin(), periods_.end());
    split_ = pi / (longest * longest);
    last_ = negligible / (longest_range * longest_range);
    nodes_.resize(node_count);
    for (std::size_t j = 0; j < node_count; ++j) {
      const double v = std::cos(pi * (static_cast<double>(j) + 0.5) / static_cast<double>(node_count));
      nodes_[j] = std::sqrt(0.5 * (1.0 + v));  // z / range
    }
    list_images();
  }

  void fit() {
    const std::size_t first_axis = 3 - dimension_;
    for (std::size_t k = 0; k < 3; ++k) kernel_.size_[k] = k < first_axis ? 1 : node_count;
    std::vector<double> values = corrections();
    for (std::size_t axis = first_axis; axis < 3; ++axis) along(axis, kernel_.size_, values, &to_chebyshev);
    truncate(values);
  }

 private:
  static constexpr std::size_t node_count =
      26;  ///< per axis; the coefficients fall by 5.8 from one to the next

  void list_images() {
    std::vector<int> shift(dimension_);
    const auto append = [&] {
      for (std::size_t k = 0; k < dimension_; ++k) kernel_.images_.push_back(shift[k] * periods_[k]);
    };
    append();
    for (std::size_t k = 0; k < dimension_; ++k) shift[k] = -layers_[k];
    for (;;) {
      if (std::any_of(shift.begin(), shift.end(), [](int n) { return n != 0; })) append();
      std::size_t axis = 0;
      while (axis < dimension_ && shift[axis] == layers_[axis]) {
        shift[axis] = -layers_[axis];
        ++axis;
      }
      if (axis == dimension_) return;
      ++shift[axis];
    }
  }

  AxisTable axis_table(std::size_t axis, double t) const {
    const double period = periods_[axis];
    AxisTable table{std::vector<double>(node_count), std::vector<double>(node_count),
                    std::vector<double>(node_count)};
    for (std::size_t j = 0; j < node_count; ++j) {
      const double z = nodes_[j] * kernel_.range_[axis];
      const auto gaussian = [&](double x) { return std::exp(-t * x * x); };
      for (int n = -layers_[axis]; n <= layers_[axis]; ++n) table.near[j] += gaussian(z + n * period);
      if (t >= split_) {
        for (int n = layers_[axis] + 1;; ++n) {
          const double nearest = gaussian(n * period - z);
          table.far[j] += nearest + gaussian(n * period + z);
          if (nearest < 1e-20) break;
        }
      } else {
        for (int k = 1;; ++k) {
          const double wave = 2.0 * pi * k / period;
          const double amplitude = 2.0 * std::exp(-0.25 * wave * wave / t);
          table.waves[j] += amplitude * std::cos(wave * z);
          if (amplitude < 1e-20) break;
        }
      }
    }
    return table;
  }

  /// sum[node] += weight f(tables, indices) over all nodes of the tensor lattice.
  void add(std::vector<double>& sum, double weight, double t, const auto& f) const {
    std::array<AxisTable, 3> tables;
    const std::size_t first_axis = 3 - dimension_;
    for (std::size_t k = 0; k < dimension_; ++k) tables[first_axis + k] = axis_table(k, t);
    for (std::size_t k = 0; k < first_axis; ++k) tables[k] = {{1.0}, {0.0}, {0.0}};
    for (std::size_t i = 0, node = 0; i < kernel_.size_[0]; ++i)
      for (std::size_t j = 0; j < kernel_.size_[1]; ++j)
        for (std::size_t k = 0; k < kernel_.size_[2]; ++k, ++node) sum[node] += weight * f(tables, i, j, k);
  }

  /// product (near + far) - product near, without cancellation.
  static double beyond_images(const std::array<AxisTable, 3>& q, std::size_t i, std::size_t j,
                              std::size_t k) {
    const double all_1 = q[1].near[j] + q[1].far[j];
    const double all_2 = q[2].near[k] + q[2].far[k];
    return q[0].far[i] * all_1 * all_2 + q[0].near[i] * (q[1].far[j] * all_2 + q[1].near[j] * q[2].far[k]);
  }

  /// product (1 + waves) - 1, without cancellation.
  static double all_waves(const std::array<AxisTable, 3>& q, std::size_t i, std::size_t j, std::size_t k) {
    const double a = q[0].waves[i], b = q[1].waves[j], c = q[2].waves[k];
    return a + b * (1.0 + a) + c * (1.0 + a) * (1.0 + b);
  }

  /// theta = constant (1 + waves) per axis; the product of the constants.
  double mean_density(double t) const {
    double product = 1.0;
    for (const double period : periods_) product *= std::sqrt(pi / t) / period;
    return product;
  }

  /// W_L(z) - sum over images of W(z + nL) at the nodes.
  std::vector<double> corrections() const {
    std::vector<double> sum(kernel_.size_[0] * kernel_.size_[1] * kernel_.size_[2]);
    const Mixture mixture = mixture_of(kernel_.interaction_, last_);
    if (mixture.homogeneous) add_homogeneous(*mixture.homogeneous, sum);
    for (const auto& [t, weight] : mixture.gaussians) {
      if (t > last_ || weight == 0.0) continue;
      if (t >= split_) {
        add(sum, weight, t, &beyond_images);
      } else {
        const double constant = mean_density(t);
        add(sum, weight, t, [&](const auto& q, std::size_t i, std::size_t j, std::size_t k) {
          return constant * (1.0 + all_waves(q, i, j, k)) - q[0].near[i] * q[1].near[j] * q[2].near[k];
        });
      }
    }
    return sum;
  }

  /// With A, a, epsilon as in Mixture, c(t) the mean density of exp(-t r^2), q = |z + nL|^2 + epsilon^2:
  ///
  ///   correction / A = integral_0^T t^(a-1) e^(-t eps^2) c(t) waves dt + integral_T^inf t^(a-1) e^(-t eps^2)
  ///   (far part) dt
  ///                    + sum over images of (T^a M(T q) - kappa) - integral_T^inf t^(a-1) e^(-t eps^2) c(t)
  ///                    dt,
  ///
  /// kappa = T^a / a; for log, where W itself is the limit without T^a / a: kappa = gamma + log T.
  void add_homogeneous(const Mixture::Homogeneous& w, std::vector<double>& sum) const {
    const double a = w.half_exponent;
    const double softened = w.squared_softening;
    const auto density = [&](double t) {
      return w.amplitude * std::pow(t, a - 1.0) * std::exp(-t * softened);
    };
    for (const auto& [t, weight] : logarithmic(split_ * pi / (negligible + 4.0), split_))
      add(sum, weight * density(t) * mean_density(t), t, &all_waves);
    for (const auto& [t, weight] : logarithmic(split_, last_))
      add(sum, weight * density(t), t, &beyond_images);

    const double scale = std::pow(split_, a);
    const double images = static_cast<double>(kernel_.images_.size() / dimension_);
    const double kappa = a == 0.0 ? std::numbers::egamma + std::log(split_) : scale / a;
    const double c = 0.5 * static_cast<double>(dimension_) - a;
    const double background = scale * mean_density(split_) * exponential_integral(c, split_ * softened);
    add_lower_parts(w, sum);
    for (double& value : sum) value -= w.amplitude * (images * kappa + background);
  }

  /// sum += A T^a M(T q) over images and nodes, M interpolated once.
  void add_lower_parts(const Mixture::Homogeneous& w, std::vector<double>& sum) const {
    double largest = 0.0;
    for (std::size_t k = 0; k < dimension_; ++k) {
      const double reach = layers_[k] * periods_[k] + kernel_.range_[k];
      largest += split_ * reach * reach;
    }
    const double base = split_ * w.squared_softening;
    std::vector<double> chebyshev(72);
    for (std::size_t j = 0; j < chebyshev.size(); ++j) {
      const double v = std::cos(pi * (static_cast<double>(j) + 0.5) / static_cast<double>(chebyshev.size()));
      chebyshev[j] = lower_part(w.half_exponent, base + 0.5 * largest * (1.0 + v));
    }
    to_chebyshev(chebyshev);
    const auto interpolated = [&](double x) {  // Clenshaw
      const double v = 2.0 * x / largest - 1.0;
      double b1 = 0.0, b2 = 0.0;
      for (std::size_t k = chebyshev.size(); k-- > 1;) {
        const double b = 2.0 * v * b1 - b2 + chebyshev[k];
        b2 = b1;
        b1 = b;
      }
      return v * b1 - b2 + chebyshev[0];
    };
    const double scale = w.amplitude * std::pow(split_, w.half_exponent);
    const std::size_t first_axis = 3 - dimension_;
    for (std::size_t image = 0; image < kernel_.images_.size(); image += dimension_) {
      std::array<std::vector<double>, 3> squares = {std::vector<double>{0.0}, {0.0}, {0.0}};
      for (std::size_t k = 0; k < dimension_; ++k) {
        squares[first_axis + k].clear();
        for (const double node : nodes_) {
          const double z = node * kernel_.range_[k] + kernel_.images_[image + k];
          squares[first_axis + k].push_back(split_ * z * z);
        }
      }
      std::size_t node = 0;
      for (const double x : squares[0])
        for (const double y : squares[1])
          for (const double z : squares[2]) sum[node++] += scale * interpolated(x + y + z);
    }
  }

  /// Keeps the Chebyshev coefficients above the rounding of the largest, in rows whose lengths fall in both
  /// indices, and turns them into powers.
  void truncate(std::vector<double>& chebyshev) const {
    auto& size = kernel_.size_;
    double largest = 0.0;
    for (const double c : chebyshev) largest = std::max(largest, std::abs(c));
    const auto index = [&](std::size_t i, std::size_t j, std::size_t k) {
      return (i * size[1] + j) * size[2] + k;
    };
    std::vector<std::size_t> lengths((size[0] + 1) * (size[1] + 1));
    const auto length = [&](std::size_t i, std::size_t j) -> std::size_t& {
      return lengths[i * (size[1] + 1) + j];
    };
    for (std::size_t i = size[0]; i-- > 0;)
      for (std::size_t j = size[1]; j-- > 0;) {
        std::size_t& n = length(i, j);
        n = std::max(length(i + 1, j), length(i, j + 1));
        for (std::size_t k = n; k < size[2]; ++k)
          if (std::abs(chebyshev[index(i, j, k)]) > 1e-15 * largest) n = k + 1;
        for (std::size_t k = n; k < size[2]; ++k) chebyshev[index(i, j, k)] = 0.0;
      }
    for (std::size_t axis = 3 - dimension_; axis < 3; ++axis) along(axis, size, chebyshev, &to_powers);
    std::size_t rows = 1, columns = 1;
    for (std::size_t i = 0; i < size[0]; ++i)
      for (std::size_t j = 0; j < size[1]; ++j)
        if (length(i, j) > 0) {
          rows = std::max(rows, i + 1);
          columns = std::max(columns, j + 1);
        }
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) {
        kernel_.row_start_.push_back(kernel_.coefficients_.size());
        for (std::size_t k = 0; k < length(i, j); ++k)
          kernel_.coefficients_.push_back(chebyshev[index(i, j, k)]);
      }
    kernel_.row_start_.push_back(kernel_.coefficients_.size());
    size[0] = rows;
    size[1] = columns;
    size[2] = length(0, 0);
  }

  PeriodicKernel& kernel_;
  std::size_t dimension_;
  std::vector<double> periods_;
  std::vector<int> layers_;  ///< explicit images per axis: -layers .. layers
  double split_ = 0.0;       ///< T
  double last_ = 0.0;        ///< beyond this t the other images are below round-off
  std::vector<double> nodes_;
};

PeriodicKernel::PeriodicKernel(const Torus& torus, const Interaction& interaction, Range range)
    : covers_(range), interaction_(interaction) {
  expects(!torus.lower.empty() && torus.lower.size() <= 3, "periodised kernels exist for d = 1, 2, 3");
  PeriodicKernelFit(torus, range, *this).fit();
}

namespace {

/// The coefficients of a PeriodicKernel, as it holds them.
struct PolynomialView {
  const std::size_t* size;
  const std::size_t* row_start;
  const double* coefficients;
};

/// `count` registers of eight pairs each (compiler vectors: lowered to what the processor has). One Horner
/// step waits for the last; several registers hide that.
using Register = double __attribute__((vector_size(64)));
constexpr std::size_t lanes_per_register = 8;

/// The polynomial and its derivatives by v_1, v_2, v_3; v, derivative: (axis, register). Horner in the last
/// variable per row, in the second per slab, in the first overall. Lane: double or Register.
template <class Lane, std::size_t count>
[[gnu::always_inline]] inline void evaluate(const PolynomialView& p, const Lane (&v)[3][count],
                                            Lane (&value)[count], Lane (&derivative)[3][count]) {
  for (std::size_t l = 0; l < count; ++l)
    value[l] = derivative[0][l] = derivative[1][l] = derivative[2][l] = Lane{};
  for (std::size_t i = p.size[0]; i-- > 0;) {
    Lane slab[count] = {}, slab_1[count] = {}, slab_2[count] = {};
    for (std::size_t j = p.size[1]; j-- > 0;) {
      const std::size_t start = p.row_start[i * p.size[1] + j];
      const std::size_t end = p.row_start[i * p.size[1] + j + 1];
      Lane row[count] = {}, row_2[count] = {};
      for (std::size_t k = end; k-- > start;) {
        const double c = p.coefficients[k];
        for (std::size_t l = 0; l < count; ++l) {
          row_2[l] = row_2[l] * v[2][l] + row[l];
          row[l] = row[l] * v[2][l] + c;
        }
      }
      for (std::size_t l = 0; l < count; ++l) {
        slab_1[l] = slab_1[l] * v[1][l] + slab[l];
        slab_2[l] = slab_2[l] * v[1][l] + row_2[l];
        slab[l] = slab[l] * v[1][l] + row[l];
      }
    }
    for (std::size_t l = 0; l < count; ++l) {
      derivative[0][l] = derivative[0][l] * v[0][l] + value[l];
      derivative[1][l] = derivative[1][l] * v[0][l] + slab_1[l];
      derivative[2][l] = derivative[2][l] * v[0][l] + slab_2[l];
      value[l] = value[l] * v[0][l] + slab[l];
    }
  }
}

}  // namespace

double PeriodicKernel::correction(std::span<const double> displacement, std::span<double> force) const {
  const std::size_t d = dimension();
  expects(displacement.size() == d && (force.empty() || force.size() == d), "a displacement of this torus");
  double v[3][1] = {{-1.0}, {-1.0}, {-1.0}};
  for (std::size_t k = 0; k < d; ++k) {
    const double ratio = displacement[k] / range_[k];
    v[3 - d + k][0] = 2.0 * ratio * ratio - 1.0;
  }
  double value[1], derivative[3][1];
  evaluate<double, 1>({size_, row_start_.data(), coefficients_.data()}, v, value, derivative);
  for (std::size_t k = 0; k < force.size(); ++k)
    force[k] -= derivative[3 - d + k][0] * 4.0 * displacement[k] / (range_[k] * range_[k]);
  return value[0];
}

namespace {

constexpr std::size_t registers = 4;
constexpr std::size_t lanes = registers * lanes_per_register;

// The sanitizers cannot instrument the resolver that chooses between clones.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RIESZFLOW_WIDEST_VECTORS
#else
#define RIESZFLOW_WIDEST_VECTORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

RIESZFLOW_WIDEST_VECTORS void evaluate_block(const PolynomialView& p, const Register (&v)[3][registers],
                                             Register (&value)[registers],
                                             Register (&derivative)[3][registers]) {
  evaluate(p, v, value, derivative);
}

}  // namespace

void PeriodicKernel::add_corrections(std::size_t pair_count, std::span<const double> displacements,
                                     std::span<double> values, std::span<double> forces) const {
  const std::size_t d = dimension();
  expects(displacements.size() == d * pair_count && (values.empty() || values.size() == pair_count) &&
              (forces.empty() || forces.size() == d * pair_count),
          "one displacement, value and force per pair");
  const PolynomialView polynomial{size_, row_start_.data(), coefficients_.data()};
  Register v[3][registers] = {}, value[registers], derivative[3][registers];
  for (auto& axis : v)
    for (Register& lane : axis) lane -= 1.0;  // an axis that is missing
  for (std::size_t start = 0; start < pair_count; start += lanes) {
    const std::size_t count = std::min(lanes, pair_count - start);
    for (std::size_t k = 0; k < d; ++k) {
      const double* z = displacements.data() + k * pair_count + start;
      const double factor = 2.0 / (range_[k] * range_[k]);
      for (std::size_t l = 0; l < count; ++l)
        v[3 - d + k][l / lanes_per_register][l % lanes_per_register] = factor * z[l] * z[l] - 1.0;
    }
    evaluate_block(polynomial, v, value, derivative);
    if (!values.empty())
      for (std::size_t l = 0; l < count; ++l)
        values[start + l] += value[l / lanes_per_register][l % lanes_per_register];
    if (forces.empty()) continue;
    for (std::size_t k = 0; k < d; ++k) {
      const double* z = displacements.data() + k * pair_count + start;
      double* force = forces.data() + k * pair_count + start;
      const double factor = 4.0 / (range_[k] * range_[k]);
      for (std::size_t l = 0; l < count; ++l)
        force[l] -= derivative[3 - d + k][l / lanes_per_register][l % lanes_per_register] * factor * z[l];
    }
  }
}

double PeriodicKernel::add_force(std::span<const double> displacement, std::span<double> force) const {
  const std::size_t d = dimension();
  double sum = correction(displacement, force);
  for (std::size_t image = 0; image < images_.size(); image += d) {
    double squared = 0.0;
    for (std::size_t k = 0; k < d; ++k) {
      const double z = displacement[k] + images_[image + k];
      squared += z * z;
    }
    const RadialValue w = radial(interaction_, squared);
    sum += w.value;
    for (std::size_t k = 0; k < force.size(); ++k)
      force[k] += w.force_over_r * (displacement[k] + images_[image + k]);
  }
  return sum;
}

double PeriodicKernel::value(std::span<const double> displacement) const {
  return add_force(displacement, {});
}

std::vector<double> PeriodicKernel::correction_weights(std::span<const std::size_t> cells,
                                                       CellWeights kind) const {
  const bool hat = kind == CellWeights::Galerkin;
  const std::size_t d = dimension();
  expects(cells.size() == d && covers_ == Range::Cells, "one number of cells per axis, a kernel for cells");
  // tables[axis][offset][power]: mean of v^power over the pair of cells, by a rule that is exact for it.
  std::array<std::vector<std::vector<double>>, 3> tables;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (axis < 3 - d) {
      tables[axis] = {{1.0}};
      continue;
    }
    const std::size_t n = cells[axis - (3 - d)];
    for (std::size_t offset = 0; offset <= n / 2; ++offset) {
      std::vector<double> row(size_[axis]);
      for (const double side : {-1.0, 1.0})
        for (const auto& [t, weight] : legendre(0.0, hat ? 1.0 : 0.5, n < 8 ? 0.25 : 1.0)) {
          const double ratio =
              (static_cast<double>(offset) + side * t) / static_cast<double>(n);  // z / range
          const double v = 2.0 * ratio * ratio - 1.0;
          double power = weight * (hat ? 1.0 - t : 1.0);
          for (double& mean : row) {
            mean += power;
            power *= v;
          }
        }
      tables[axis].push_back(std::move(row));
    }
  }
  std::vector<double> result;
  std::vector<double> sheet;  // (j, k) after the first axis, then (k) after the second
  for (const auto& first : tables[0]) {
    sheet.assign(size_[1] * size_[2], 0.0);
    for (std::size_t i = 0; i < size_[0]; ++i)
      for (std::size_t j = 0; j < size_[1]; ++j) {
        const std::size_t start = row_start_[i * size_[1] + j];
        const std::size_t end = row_start_[i * size_[1] + j + 1];
        for (std::size_t k = start; k < end; ++k)
          sheet[j * size_[2] + k - start] += first[i] * coefficients_[k];
      }
    for (const auto& second : tables[1]) {
      std::vector<double> line(size_[2]);
      for (std::size_t j = 0; j < size_[1]; ++j)
        for (std::size_t k = 0; k < size_[2]; ++k) line[k] += second[j] * sheet[j * size_[2] + k];
      for (const auto& third : tables[2]) {
        double sum = 0.0;
        for (std::size_t k = 0; k < size_[2]; ++k) sum += third[k] * line[k];
        result.push_back(sum);
      }
    }
  }
  return result;
}

std::vector<double> periodic_kernel_weights(const Torus& torus, const Interaction& interaction,
                                            std::span<const std::size_t> cells, CellWeights kind) {
  const PeriodicKernel kernel(torus, interaction, PeriodicKernel::Range::Cells);
  const std::size_t d = kernel.dimension();
  std::vector<double> weights = kernel.correction_weights(cells, kind);
  std::vector<double> spacing(d);
  std::vector<long> layers(d);  // images are shifts by whole grids
  std::vector<std::size_t> counts(d);
  for (std::size_t k = 0; k < d; ++k) {
    const double period = torus.upper[k] - torus.lower[k];
    spacing[k] = period / static_cast<double>(cells[k]);
    for (std::size_t image = k; image < kernel.images().size(); image += d)
      layers[k] = std::max(layers[k], std::lround(kernel.images()[image] / period));
    counts[k] = static_cast<std::size_t>(layers[k]) * cells[k] + cells[k] / 2 + 1;
  }
  const std::vector<double> free_space = kernel_weights(interaction, spacing, counts, kind);
  std::vector<std::size_t> offset(d);
  std::vector<long> image(d);
  for (double& weight : weights) {
    for (std::size_t k = 0; k < d; ++k) image[k] = -layers[k];
    for (bool more = true; more;) {
      std::size_t index = 0;
      for (std::size_t k = 0; k < d; ++k) {
        const long shifted = static_cast<long>(offset[k]) + image[k] * static_cast<long>(cells[k]);
        index = index * counts[k] + static_cast<std::size_t>(std::abs(shifted));
      }
      weight += free_space[index];
      more = false;
      for (std::size_t k = 0; k < d && !more; ++k) {
        more = image[k] < layers[k];
        image[k] = more ? image[k] + 1 : -layers[k];
      }
    }
    for (std::size_t k = d; k-- > 0;) {  // the next offset, last axis fastest
      if (++offset[k] <= cells[k] / 2) break;
      offset[k] = 0;
    }
  }
  return weights;
}

}  // namespace rieszflow
