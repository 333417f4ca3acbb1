#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rieszflow {

/// A function of named variables given as text (muParser: + - * / ^, comparisons, ?:, sin cos tan asin acos atan sinh
/// cosh tanh exp log sqrt abs min max sign, pi, e). Immutable and safe to evaluate from several threads.
class ExpressionFunction {
 public:
  /// Throws std::invalid_argument whose message gives what is wrong and the position in the text.
  ExpressionFunction(std::string text, std::vector<std::string> variables);
  ~ExpressionFunction();
  ExpressionFunction(const ExpressionFunction&) = delete;
  ExpressionFunction& operator=(const ExpressionFunction&) = delete;

  const std::string& text() const { return text_; }
  std::size_t variable_count() const { return variables_.size(); }

  /// f(arguments); not finite where the text says so (log of a negative number, 1/0).
  double operator()(std::span<const double> arguments) const;
  /// Partial derivative by a fourth-order central difference with a step of (machine epsilon)^(1/5) times the scale.
  double derivative(std::span<const double> arguments, std::size_t variable) const;

 private:
  struct Parser;
  std::string text_;
  std::vector<std::string> variables_;
  std::unique_ptr<Parser> parser_;
};

/// The coordinate names of a d-dimensional space: x, y, z up to d = 3, else x1 .. xd.
std::vector<std::string> coordinate_names(std::size_t dimension);

}  // namespace rieszflow
