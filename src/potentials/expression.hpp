#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rieszflow {

/// A function of named variables given as text, for instance "x^2/2 + cos(3*y)" or "r < 1 ? 1 - r : 0".
///
/// Operators, by falling precedence: ^ (to the right), * /, unary -, + -, comparisons, &&, ||, ?: (to the
/// right). Functions: sin cos tan asin acos atan atan2 sinh cosh tanh exp log (natural, also ln) log2 log10
/// sqrt abs erf min max sign. Constants: pi, e. The decimal mark is a point in every locale.
///
/// muParser parses the text once; the parse is recorded as a straight-line program in which equal terms are
/// shared. The program is evaluated for one point or for a batch, and swept backwards for the derivatives,
/// which are exact to round-off: those of the branch taken at ?:, min, max and abs. Reverse mode: Griewank
/// and Walther, Evaluating Derivatives (2008), chapter 3. Immutable and safe to evaluate from several
/// threads.
class ExpressionFunction {
 public:
  /// Throws std::invalid_argument whose message gives what is wrong and the position in the text.
  ExpressionFunction(std::string text, std::vector<std::string> variables);
  ~ExpressionFunction();
  ExpressionFunction(const ExpressionFunction&) = delete;
  ExpressionFunction& operator=(const ExpressionFunction&) = delete;

  const std::string& text() const { return text_; }
  std::size_t variable_count() const { return variables_.size(); }

  /// f(arguments); arguments: (variable). Not finite where the text says so (log of a negative number, 1/0).
  double operator()(std::span<const double> arguments) const;
  /// f and its partial derivatives; gradient: (variable), overwritten.
  double value_and_gradient(std::span<const double> arguments, std::span<double> gradient) const;
  /// One partial derivative.
  double derivative(std::span<const double> arguments, std::size_t variable) const;
  /// out_p = f(arguments_p) for a batch, several times faster than point by point; arguments: (point,
  /// variable), row-major; out: (point).
  void values(std::span<const double> arguments, std::span<double> out) const;

 private:
  struct Code;
  std::string text_;
  std::vector<std::string> variables_;
  std::unique_ptr<const Code> code_;
};

/// The coordinate names of a d-dimensional space: x, y, z up to d = 3, else x1 .. xd.
std::vector<std::string> coordinate_names(std::size_t dimension);

}  // namespace rieszflow
