#include "potentials/potential.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/expects.hpp"
#include "potentials/expression.hpp"

namespace rieszflow {
namespace {

double center_of(const QuadraticPotential& v, std::size_t axis) {
  return v.center.empty() ? 0.0 : v.center[axis];
}

double sum_over_axes(std::span<const double> point, const auto& f) {
  double sum = 0.0;
  for (const double x : point) sum += f(x);
  return sum;
}

double value_of(const QuadraticPotential& v, std::span<const double> point) {
  double sum = 0.0;
  for (std::size_t k = 0; k < point.size(); ++k)
    sum += (point[k] - center_of(v, k)) * (point[k] - center_of(v, k));
  return 0.5 * v.stiffness * sum;
}

void add_force_of(const QuadraticPotential& v, std::span<const double> point, std::span<double> force) {
  for (std::size_t k = 0; k < point.size(); ++k) force[k] -= v.stiffness * (point[k] - center_of(v, k));
}

double value_of(const DoubleWellPotential& v, std::span<const double> point) {
  return sum_over_axes(point, [&](double x) {
    const double t = (x / v.width) * (x / v.width) - 1.0;
    return v.height * t * t;
  });
}

void add_force_of(const DoubleWellPotential& v, std::span<const double> point, std::span<double> force) {
  for (std::size_t k = 0; k < point.size(); ++k) {
    const double t = point[k] / v.width;
    force[k] -= 4.0 * v.height / v.width * t * (t * t - 1.0);
  }
}

double value_of(const PolynomialPotential& v, std::span<const double> point) {
  return sum_over_axes(point, [&](double x) {
    double sum = 0.0;
    for (std::size_t p = v.coefficients.size(); p-- > 0;) sum = sum * x + v.coefficients[p];
    return sum;
  });
}

void add_force_of(const PolynomialPotential& v, std::span<const double> point, std::span<double> force) {
  for (std::size_t k = 0; k < point.size(); ++k) {
    double derivative = 0.0;
    for (std::size_t p = v.coefficients.size(); p-- > 1;)
      derivative = derivative * point[k] + static_cast<double>(p) * v.coefficients[p];
    force[k] -= derivative;
  }
}

double value_of(const CosinePotential& v, std::span<const double> point) {
  return sum_over_axes(point, [&](double x) { return v.amplitude * std::cos(v.wavenumber * x); });
}

void add_force_of(const CosinePotential& v, std::span<const double> point, std::span<double> force) {
  for (std::size_t k = 0; k < point.size(); ++k)
    force[k] += v.amplitude * v.wavenumber * std::sin(v.wavenumber * point[k]);
}

double value_of(const ExpressionPotential& v, std::span<const double> point) { return (*v.function)(point); }

void add_force_of(const ExpressionPotential& v, std::span<const double> point, std::span<double> force) {
  thread_local std::vector<double> gradient;
  gradient.resize(point.size());
  v.function->value_and_gradient(point, gradient);
  for (std::size_t k = 0; k < point.size(); ++k) force[k] -= gradient[k];
}

double value_of(const TablePotential& v, std::span<const double> point) {
  return v.value_and_gradient(point, {});
}

void add_force_of(const TablePotential& v, std::span<const double> point, std::span<double> force) {
  thread_local std::vector<double> gradient;
  gradient.resize(point.size());
  v.value_and_gradient(point, gradient);
  for (std::size_t k = 0; k < point.size(); ++k) force[k] -= gradient[k];
}

/// Coefficients c of sum_i c_i B(t - i), i = -1 .. n, of the cubic spline through n values on unit nodes.
/// Interpolation: c_{i-1} + 4 c_i + c_{i+1} = 6 f_i. Not-a-knot: the fourth difference of c vanishes at the
/// second and the last but one node; with the interpolation there it reads c_1 = (8 f_1 - f_0 - f_2) / 6, so
/// the interior is one tridiagonal system with known ends.
std::vector<double> spline_coefficients(const std::vector<double>& f) {
  const std::size_t n = f.size();
  std::vector<double> c(n + 2);
  const auto at = [&](std::size_t node) -> double& { return c[node + 1]; };
  if (n <= 3) {  // the polynomial of degree n - 1: c_i = f_i - f'' / 6, continued to i = -1 and n
    const double second = n == 3 ? f[0] - 2.0 * f[1] + f[2] : 0.0;
    const double slope = n == 1 ? 0.0 : (n == 2 ? f[1] - f[0] : 0.5 * (f[2] - f[0]) - second);
    for (std::size_t i = 0; i < c.size(); ++i) {
      const double t = static_cast<double>(i) - 1.0;
      c[i] = f[0] + slope * t + 0.5 * second * t * t - second / 6.0;
    }
    return c;
  }
  at(1) = (8.0 * f[1] - f[0] - f[2]) / 6.0;
  at(n - 2) = (8.0 * f[n - 2] - f[n - 1] - f[n - 3]) / 6.0;
  std::vector<double> ratio(n);  // elimination from node 2 to node n - 3
  double previous_ratio = 0.0;
  for (std::size_t i = 2; i + 2 < n; ++i) {
    const double known = i + 3 == n ? at(n - 2) : 0.0;
    const double pivot = 4.0 - previous_ratio;
    at(i) = (6.0 * f[i] - at(i - 1) - known) / pivot;
    ratio[i] = previous_ratio = 1.0 / pivot;
  }
  for (std::size_t i = n - 3; i-- > 2;) at(i) -= ratio[i] * at(i + 1);
  at(0) = 6.0 * f[1] - 4.0 * at(1) - at(2);
  c[0] = 6.0 * f[0] - 4.0 * at(0) - at(1);
  at(n - 1) = 6.0 * f[n - 2] - 4.0 * at(n - 2) - at(n - 3);
  c[n + 1] = 6.0 * f[n - 1] - 4.0 * at(n - 1) - at(n - 2);
  return c;
}

/// The four cubic B-splines that live on one interval, and their derivatives; t in [0, 1].
struct Weights {
  std::array<double, 4> value;
  std::array<double, 4> slope;
};

Weights spline_weights(double t) {
  const double u = 1.0 - t;
  return {{u * u * u / 6.0, (3.0 * t * t * t - 6.0 * t * t + 4.0) / 6.0,
           (3.0 * u * u * u - 6.0 * u * u + 4.0) / 6.0, t * t * t / 6.0},
          {-0.5 * u * u, 0.5 * t * (3.0 * t - 4.0), -0.5 * u * (3.0 * u - 4.0), 0.5 * t * t}};
}

}  // namespace

TablePotential::TablePotential(std::vector<double> lower, std::vector<double> upper,
                               std::vector<std::size_t> nodes, std::vector<double> values, std::string source)
    : lower_(std::move(lower)),
      upper_(std::move(upper)),
      nodes_(std::move(nodes)),
      source_(std::move(source)) {
  const std::size_t dimension = nodes_.size();
  expects(lower_.size() == dimension && upper_.size() == dimension && dimension > 0, "a table has one shape");
  std::size_t count = 1;
  for (std::size_t k = 0; k < dimension; ++k) {
    expects(nodes_[k] >= 1 && (nodes_[k] == 1 || upper_[k] > lower_[k]),
            "a table's nodes increase along each axis");
    count *= nodes_[k];
  }
  expects(values.size() == count, "a table has one value per node");
  expects(std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); }),
          "a table's values are finite");
  coefficients_ = std::move(values);
  for (std::size_t axis = dimension;
       axis-- > 0;) {  // the last axis first: the later ones are extended already
    std::size_t inner = 1;
    for (std::size_t k = axis + 1; k < dimension; ++k) inner *= nodes_[k] + 2;
    const std::size_t n = nodes_[axis];
    const std::size_t outer = coefficients_.size() / (n * inner);
    std::vector<double> extended(outer * (n + 2) * inner);
    std::vector<double> line(n);
    for (std::size_t o = 0; o < outer; ++o)
      for (std::size_t i = 0; i < inner; ++i) {
        for (std::size_t node = 0; node < n; ++node) line[node] = coefficients_[(o * n + node) * inner + i];
        const std::vector<double> c = spline_coefficients(line);
        for (std::size_t node = 0; node < n + 2; ++node) extended[(o * (n + 2) + node) * inner + i] = c[node];
      }
    coefficients_ = std::move(extended);
  }
}

double TablePotential::value_and_gradient(std::span<const double> point, std::span<double> gradient) const {
  const std::size_t dimension = nodes_.size();
  expects(point.size() == dimension && dimension <= 8, "a point has the dimension of its table, at most 8");
  std::array<Weights, 8> weights;
  std::array<double, 8> scale;
  std::array<std::size_t, 8> first;
  for (std::size_t k = 0; k < dimension; ++k) {
    const double intervals = static_cast<double>(std::max<std::size_t>(nodes_[k], 2) - 1);
    scale[k] = nodes_[k] > 1 ? intervals / (upper_[k] - lower_[k]) : 0.0;
    const double position = (point[k] - lower_[k]) * scale[k];
    if (!std::isfinite(position)) return position - position;
    const double cell = std::clamp(std::floor(position), 0.0, nodes_[k] > 1 ? intervals - 1.0 : 0.0);
    first[k] = static_cast<std::size_t>(cell);
    weights[k] = spline_weights(position - cell);
    if (nodes_[k] == 1) weights[k] = {{1.0, 0.0, 0.0, 0.0}, {}};
  }
  double sum = 0.0;
  if (!gradient.empty()) std::fill(gradient.begin(), gradient.end(), 0.0);
  const std::size_t terms = std::size_t{1} << (2 * dimension);  // 4^dimension products of B-splines
  for (std::size_t term = 0; term < terms; ++term) {
    std::size_t index = 0;
    double product = 1.0;
    bool inside = true;
    for (std::size_t k = 0; k < dimension; ++k) {
      const std::size_t digit = (term >> (2 * k)) & 3;
      inside = inside && first[k] + digit < nodes_[k] + 2;  // an axis of one node has three coefficients
      index = index * (nodes_[k] + 2) + first[k] + digit;
      product *= weights[k].value[digit];
    }
    if (!inside) continue;
    sum += coefficients_[index] * product;
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      double partial = scale[k];
      for (std::size_t j = 0; j < dimension; ++j) {
        const std::size_t digit = (term >> (2 * j)) & 3;
        partial *= j == k ? weights[j].slope[digit] : weights[j].value[digit];
      }
      gradient[k] += coefficients_[index] * partial;
    }
  }
  return sum;
}

double value(const Potential& potential, std::span<const double> point) {
  return std::visit([&](const auto& v) { return value_of(v, point); }, potential);
}

void add_force(const Potential& potential, std::span<const double> point, std::span<double> force) {
  expects(force.size() == point.size(), "a force has the dimension of its point");
  std::visit([&](const auto& v) { add_force_of(v, point, force); }, potential);
}

std::string_view name(const Potential& potential) {
  static constexpr std::array<std::string_view, std::variant_size_v<Potential>> names = {
      "quadratic", "double_well", "polynomial", "cosine", "expression", "table"};
  return names[potential.index()];
}

}  // namespace rieszflow
