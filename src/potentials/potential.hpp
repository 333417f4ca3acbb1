#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rieszflow {

/// V(x) = stiffness |x - center|^2 / 2
struct QuadraticPotential {
  double stiffness = 1.0;
  std::vector<double> center{};  ///< (dimension); empty: the origin
};

/// V(x) = height sum_k ((x_k / width)^2 - 1)^2
struct DoubleWellPotential {
  double height = 1.0;
  double width = 1.0;  ///< distance of a minimum from the origin, > 0
};

/// V(x) = sum_k sum_p coefficients[p] x_k^p
struct PolynomialPotential {
  std::vector<double> coefficients;  ///< (power), the constant first
};

/// V(x) = amplitude sum_k cos(wavenumber x_k)
struct CosinePotential {
  double amplitude = 1.0;
  double wavenumber = 1.0;
};

class ExpressionFunction;  // expression.hpp

/// V(x) given as text in the coordinates x, y, z (or x1, x2, ...); its force by symbolic-free central differences of
/// fourth order, see expression.hpp.
struct ExpressionPotential {
  std::shared_ptr<const ExpressionFunction> function;
};

/// V on a uniform grid of points, cubic-spline (d = 1) or multilinear-gradient consistent tensor cubic interpolation.
struct TablePotential {
  std::vector<double> lower;         ///< (dimension) first node
  std::vector<double> upper;         ///< (dimension) last node
  std::vector<std::size_t> nodes;    ///< (dimension)
  std::vector<double> values;        ///< (node), last axis fastest
  std::string source;                ///< file it came from, for messages
};

/// External potential V: a closed set with one contract, `value` and `add_force`.
using Potential = std::variant<QuadraticPotential, DoubleWellPotential, PolynomialPotential, CosinePotential,
                               ExpressionPotential, TablePotential>;

/// V(point).
double value(const Potential& potential, std::span<const double> point);

/// force += -grad V(point); force: (dimension).
void add_force(const Potential& potential, std::span<const double> point, std::span<double> force);

/// Name in config files and in `rieszflow list`.
std::string_view name(const Potential& potential);

}  // namespace rieszflow
