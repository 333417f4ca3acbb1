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

/// V(x) given as text in the coordinates x, y, z (or x1, x2, ...); its force is the exact derivative of the
/// text.
struct ExpressionPotential {
  std::shared_ptr<const ExpressionFunction> function;
};

/// V on a uniform grid of points: the tensor product of interpolating cubic splines, twice continuously
/// differentiable, with not-a-knot ends (error O(h^4) up to the ends). The force is the exact gradient of the
/// interpolant. Along an axis with fewer than four nodes: the polynomial through them. Beyond the outer nodes
/// the last cubic piece continues. Source: C. de Boor, A Practical Guide to Splines (2001), chapters IV and
/// XVII.
class TablePotential {
 public:
  /// lower, upper: first and last node, (dimension), equal along an axis of one node; nodes: (dimension);
  /// values: (node), last axis fastest, finite; source: the file it came from, for messages.
  TablePotential(std::vector<double> lower, std::vector<double> upper, std::vector<std::size_t> nodes,
                 std::vector<double> values, std::string source);

  const std::vector<double>& lower() const { return lower_; }
  const std::vector<double>& upper() const { return upper_; }
  const std::string& source() const { return source_; }

  /// V(point); gradient, if not empty: (dimension), overwritten.
  double value_and_gradient(std::span<const double> point, std::span<double> gradient) const;

 private:
  std::vector<double> lower_;
  std::vector<double> upper_;
  std::vector<std::size_t> nodes_;
  std::vector<double> coefficients_;  ///< of the cubic B-splines, (node + 2 per axis), last axis fastest
  std::string source_;
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
