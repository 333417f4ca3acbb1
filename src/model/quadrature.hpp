#pragma once
#include <cstddef>
#include <vector>

namespace rieszflow {

/// Nodes and positive weights of a one-dimensional rule.
struct QuadratureRule {
  std::vector<double> nodes;
  std::vector<double> weights;
};

/// Gauss-Legendre on [0, 1], exact for polynomials of degree 2 points - 1.
QuadratureRule gauss_legendre(std::size_t points);

/// Gauss rule for the hat weight: integral of (1 - |t|) f(t) over [-1, 1], exact for degree 2 points - 1.
/// The hat is the law of the difference of two uniform variables: the mean of f(x - y) over two cells is one
/// such integral.
QuadratureRule gauss_hat(std::size_t points);

}  // namespace rieszflow
