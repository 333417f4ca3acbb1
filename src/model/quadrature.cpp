#include "model/quadrature.hpp"

#include <cmath>
#include <numbers>

#include "core/expects.hpp"

namespace rieszflow {

QuadratureRule gauss_legendre(std::size_t points) {
  expects(points > 0, "a quadrature rule needs a node");
  QuadratureRule rule{std::vector<double>(points), std::vector<double>(points)};
  for (std::size_t i = 0; i < points; ++i) {
    double x =
        std::cos(std::numbers::pi * (static_cast<double>(i) + 0.75) / (static_cast<double>(points) + 0.5));
    double slope = 0.0;
    for (int iteration = 0; iteration < 100; ++iteration) {
      double p = 1.0, previous = 0.0;
      for (std::size_t k = 0; k < points; ++k) {
        const double degree = static_cast<double>(k);
        const double next = ((2.0 * degree + 1.0) * x * p - degree * previous) / (degree + 1.0);
        previous = p;
        p = next;
      }
      slope = static_cast<double>(points) * (x * p - previous) / (x * x - 1.0);
      const double change = p / slope;
      x -= change;
      if (std::abs(change) < 1e-16) break;
    }
    rule.nodes[points - 1 - i] = 0.5 * (1.0 + x);
    rule.weights[points - 1 - i] = 1.0 / ((1.0 - x * x) * slope * slope);
  }
  return rule;
}

QuadratureRule gauss_hat(std::size_t points) {
  // Recurrence p_{k+1} = t p_k - b_k p_{k-1} of the monic orthogonal polynomials (even weight) by the
  // Stieltjes procedure; its inner products are exact with Gauss-Legendre on either half.
  const QuadratureRule half = gauss_legendre(points + 2);
  std::vector<double> t, weight;
  for (std::size_t i = 0; i < half.nodes.size(); ++i) {
    for (const double sign : {-1.0, 1.0}) {
      t.push_back(sign * half.nodes[i]);
      weight.push_back(half.weights[i] * (1.0 - half.nodes[i]));
    }
  }
  std::vector<double> b(points + 1, 0.0), norm(points + 1, 0.0);
  std::vector<double> p(t.size(), 1.0), previous(t.size(), 0.0);
  for (std::size_t k = 0; k <= points; ++k) {
    for (std::size_t i = 0; i < t.size(); ++i) norm[k] += weight[i] * p[i] * p[i];
    if (k > 0) b[k] = norm[k] / norm[k - 1];
    for (std::size_t i = 0; i < t.size(); ++i) {
      const double next = t[i] * p[i] - b[k] * previous[i];
      previous[i] = p[i];
      p[i] = next;
    }
  }
  const auto polynomial = [&](std::size_t degree, double x) {
    double value = 1.0, before = 0.0;
    for (std::size_t k = 0; k < degree; ++k) {
      const double next = x * value - b[k] * before;
      before = value;
      value = next;
    }
    return value;
  };
  // The roots of p_k separate those of p_{k+1}: bisection between them.
  std::vector<double> roots;
  for (std::size_t degree = 1; degree <= points; ++degree) {
    std::vector<double> ends{-1.0};
    ends.insert(ends.end(), roots.begin(), roots.end());
    ends.push_back(1.0);
    std::vector<double> next;
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      double low = ends[i], high = ends[i + 1];
      const bool low_sign = std::signbit(polynomial(degree, low));
      for (int iteration = 0; iteration < 80; ++iteration) {
        const double middle = 0.5 * (low + high);
        (std::signbit(polynomial(degree, middle)) == low_sign ? low : high) = middle;
      }
      next.push_back(0.5 * (low + high));
    }
    roots = next;
  }
  QuadratureRule rule{roots, {}};
  for (const double x : roots) {
    double sum = 0.0;
    for (std::size_t k = 0; k < points; ++k) sum += polynomial(k, x) * polynomial(k, x) / norm[k];
    rule.weights.push_back(1.0 / sum);
  }
  return rule;
}

}  // namespace rieszflow
