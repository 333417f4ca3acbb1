#include "potentials/expression.hpp"

#include <muParser.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

// clang-format off
enum class Operation {
  Variable, Constant,
  Add, Subtract, Multiply, Divide, Power, Arctangent2, Minimum, Maximum,
  Less, LessEqual, Equal, NotEqual, And, Or,
  Negate, Sine, Cosine, Tangent, Arcsine, Arccosine, Arctangent, HyperbolicSine, HyperbolicCosine, HyperbolicTangent,
  Exponential, Logarithm, Logarithm2, Logarithm10, SquareRoot, Absolute, ErrorFunction, Sign,
  Select,
};
// clang-format on

/// One instruction; its result is a slot of its own. a, b, c are earlier slots.
struct Node {
  Operation operation;
  std::size_t a = 0;  ///< Variable: which
  std::size_t b = 0;
  std::size_t c = 0;
  double constant = 0.0;

  bool operator==(const Node&) const = default;
};

/// Slots: variables, constants, one per instruction; the last is the result.
struct Program {
  std::size_t variable_count = 0;
  std::vector<double> constants;
  std::vector<Node> instructions;

  std::size_t slot_count() const { return variable_count + constants.size() + instructions.size(); }
  std::size_t input_count() const { return variable_count + constants.size(); }
  bool is_constant(std::size_t slot) const { return slot >= variable_count && slot < input_count(); }
};

double sign(double x) { return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : x); }

/// out <- result of `node`, for `lanes` points at once (single: for one); slots: (slot, lane).
/// Every loop is one line of arithmetic over contiguous lanes, so that the compiler vectorises what has no
/// library call.
template <bool single>
void execute(const Node& node, std::size_t lanes, const double* slots, double* out) {
  if constexpr (single) lanes = 1;
  const double* a = slots + node.a * lanes;
  const double* b = slots + node.b * lanes;
  const double* c = slots + node.c * lanes;
  const auto each = [&](const auto& f) {
    for (std::size_t l = 0; l < lanes; ++l) out[l] = f(l);
  };
  using enum Operation;
  // clang-format off
  switch (node.operation) {
    case Variable: case Constant: return;  // loaded, not computed
    case Add: return each([&](std::size_t l) { return a[l] + b[l]; });
    case Subtract: return each([&](std::size_t l) { return a[l] - b[l]; });
    case Multiply: return each([&](std::size_t l) { return a[l] * b[l]; });
    case Divide: return each([&](std::size_t l) { return a[l] / b[l]; });
    case Power: return each([&](std::size_t l) { return std::pow(a[l], b[l]); });
    case Arctangent2: return each([&](std::size_t l) { return std::atan2(a[l], b[l]); });
    case Minimum: return each([&](std::size_t l) { return b[l] < a[l] ? b[l] : a[l]; });
    case Maximum: return each([&](std::size_t l) { return b[l] > a[l] ? b[l] : a[l]; });
    case Less: return each([&](std::size_t l) { return a[l] < b[l] ? 1.0 : 0.0; });
    case LessEqual: return each([&](std::size_t l) { return a[l] <= b[l] ? 1.0 : 0.0; });
    case Equal: return each([&](std::size_t l) { return a[l] == b[l] ? 1.0 : 0.0; });
    case NotEqual: return each([&](std::size_t l) { return a[l] != b[l] ? 1.0 : 0.0; });
    case And: return each([&](std::size_t l) { return a[l] != 0.0 && b[l] != 0.0 ? 1.0 : 0.0; });
    case Or: return each([&](std::size_t l) { return a[l] != 0.0 || b[l] != 0.0 ? 1.0 : 0.0; });
    case Negate: return each([&](std::size_t l) { return -a[l]; });
    case Sine: return each([&](std::size_t l) { return std::sin(a[l]); });
    case Cosine: return each([&](std::size_t l) { return std::cos(a[l]); });
    case Tangent: return each([&](std::size_t l) { return std::tan(a[l]); });
    case Arcsine: return each([&](std::size_t l) { return std::asin(a[l]); });
    case Arccosine: return each([&](std::size_t l) { return std::acos(a[l]); });
    case Arctangent: return each([&](std::size_t l) { return std::atan(a[l]); });
    case HyperbolicSine: return each([&](std::size_t l) { return std::sinh(a[l]); });
    case HyperbolicCosine: return each([&](std::size_t l) { return std::cosh(a[l]); });
    case HyperbolicTangent: return each([&](std::size_t l) { return std::tanh(a[l]); });
    case Exponential: return each([&](std::size_t l) { return std::exp(a[l]); });
    case Logarithm: return each([&](std::size_t l) { return std::log(a[l]); });
    case Logarithm2: return each([&](std::size_t l) { return std::log2(a[l]); });
    case Logarithm10: return each([&](std::size_t l) { return std::log10(a[l]); });
    case SquareRoot: return each([&](std::size_t l) { return std::sqrt(a[l]); });
    case Absolute: return each([&](std::size_t l) { return std::abs(a[l]); });
    case ErrorFunction: return each([&](std::size_t l) { return std::erf(a[l]); });
    case Sign: return each([&](std::size_t l) { return sign(a[l]); });
    case Select: return each([&](std::size_t l) { return a[l] != 0.0 ? b[l] : c[l]; });
  }
  // clang-format on
}

/// adjoint_operand += adjoint of `node` times the partial derivative of its result by that operand; one lane.
void pull_back(const Node& node, bool constant_exponent, double value, double adjoint, const double* slots,
               double* adjoints) {
  const double a = slots[node.a];
  const double b = slots[node.b];
  double& da = adjoints[node.a];
  double& db = adjoints[node.b];
  using enum Operation;
  // clang-format off
  switch (node.operation) {
    case Variable: case Constant: case Less: case LessEqual: case Equal: case NotEqual: case And: case Or: case Sign:
      return;
    case Add: da += adjoint; db += adjoint; return;
    case Subtract: da += adjoint; db -= adjoint; return;
    case Multiply: da += adjoint * b; db += adjoint * a; return;
    case Divide: da += adjoint / b; db -= adjoint * value / b; return;
    case Power:
      da += adjoint * b * std::pow(a, b - 1.0);
      if (!constant_exponent) db += value == 0.0 ? 0.0 : adjoint * value * std::log(a);
      return;
    case Arctangent2: da += adjoint * b / (a * a + b * b); db -= adjoint * a / (a * a + b * b); return;
    case Minimum: (b < a ? db : da) += adjoint; return;
    case Maximum: (b > a ? db : da) += adjoint; return;
    case Negate: da -= adjoint; return;
    case Sine: da += adjoint * std::cos(a); return;
    case Cosine: da -= adjoint * std::sin(a); return;
    case Tangent: da += adjoint * (1.0 + value * value); return;
    case Arcsine: da += adjoint / std::sqrt((1.0 - a) * (1.0 + a)); return;
    case Arccosine: da -= adjoint / std::sqrt((1.0 - a) * (1.0 + a)); return;
    case Arctangent: da += adjoint / (1.0 + a * a); return;
    case HyperbolicSine: da += adjoint * std::cosh(a); return;
    case HyperbolicCosine: da += adjoint * std::sinh(a); return;
    case HyperbolicTangent: { const double c = std::cosh(a); da += adjoint / (c * c); return; }
    case Exponential: da += adjoint * value; return;
    case Logarithm: da += adjoint / a; return;
    case Logarithm2: da += adjoint * std::numbers::log2e / a; return;
    case Logarithm10: da += adjoint * std::numbers::log10e / a; return;
    case SquareRoot: da += 0.5 * adjoint / value; return;
    case Absolute: da += adjoint * sign(a); return;
    case ErrorFunction: da += adjoint * 2.0 * std::numbers::inv_sqrtpi * std::exp(-a * a); return;
    case Select: (a != 0.0 ? db : adjoints[node.c]) += adjoint; return;
  }
  // clang-format on
}

/// Builds the program while muParser evaluates the text once: every "number" that muParser hands around is
/// the index of a slot, every operator appends an instruction. Negative numbers are pairs "b : c" that wait
/// for their "?".
class Recorder {
 public:
  explicit Recorder(std::size_t variable_count) {
    for (std::size_t k = 0; k < variable_count; ++k) nodes_.push_back({Operation::Variable, k});
  }

  double constant(double x) { return append({Operation::Constant, 0, 0, 0, x}); }

  double apply(Operation operation, double a, double b, double c) {
    Node node{operation, slot(a), slot(b), slot(c)};
    bool foldable = true;
    for (const std::size_t operand : {node.a, node.b, node.c}) foldable &= is_constant(operand);
    if (!foldable) return append(node);
    const double slots[] = {nodes_[node.a].constant, nodes_[node.b].constant, nodes_[node.c].constant};
    double result = 0.0;
    execute<true>({operation, 0, 1, 2}, 1, slots, &result);
    return constant(result);
  }
  double apply(Operation operation, double a) { return apply(operation, a, a, a); }
  double apply(Operation operation, double a, double b) { return apply(operation, a, b, b); }

  /// Whole powers up to 16 are products, exact for negative bases and cheap to differentiate; ^0.5 is a root.
  double power(double a, double b) {
    const std::size_t exponent_slot = slot(b);
    if (is_constant(exponent_slot)) {
      const double exponent = nodes_[exponent_slot].constant;
      if (exponent == 0.5) return apply(Operation::SquareRoot, a);
      if (exponent == std::floor(exponent) && std::abs(exponent) <= 16.0 && exponent != 0.0) {
        const double product = whole_power(a, static_cast<int>(std::abs(exponent)));
        return exponent > 0.0 ? product : apply(Operation::Divide, constant(1.0), product);
      }
    }
    return apply(Operation::Power, a, b);
  }

  double pair(double b, double c) {
    pairs_.push_back({b, c});
    return -static_cast<double>(pairs_.size());
  }

  /// condition ? b : c, with ":" binding tighter than "?" and both grouped by muParser as plain binary
  /// operators: a pair on the left is an outer conditional whose last branch goes on, a pair inside the first
  /// branch an inner conditional.
  double choose(double condition, double branches) {
    const auto [b, c] = branches_of(branches);
    if (condition < 0.0) {
      const auto [outer, rest] = branches_of(condition);
      return pair(outer, choose(rest, branches));
    }
    if (b < 0.0) return pair(choose(condition, b), c);
    return apply(Operation::Select, condition, b, c);
  }

  /// What the result needs: constants, then instructions in order, the result last.
  Program program(double result, std::size_t variable_count) const {
    std::vector<bool> needed(nodes_.size());
    needed[slot(result)] = true;
    for (std::size_t k = nodes_.size(); k-- > 0;)
      if (needed[k] && is_computed(k)) needed[nodes_[k].a] = needed[nodes_[k].b] = needed[nodes_[k].c] = true;
    Program program{variable_count, {}, {}};
    std::vector<std::size_t> moved(nodes_.size());
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      if (k < variable_count) moved[k] = k;
      if (!needed[k] || !is_constant(k)) continue;
      moved[k] = variable_count + program.constants.size();
      program.constants.push_back(nodes_[k].constant);
    }
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      if (!needed[k] || !is_computed(k)) continue;
      moved[k] = program.slot_count();
      const Node& node = nodes_[k];
      program.instructions.push_back({node.operation, moved[node.a], moved[node.b], moved[node.c]});
    }
    const std::size_t last = moved[slot(result)];
    if (!is_computed(slot(result)))
      program.instructions.push_back({Operation::Maximum, last, last, last});  // a copy
    return program;
  }

 private:
  std::size_t slot(double number) const {
    if (number < 0.0) throw std::invalid_argument("\":\" without its \"?\"");
    return static_cast<std::size_t>(number);
  }
  bool is_constant(std::size_t index) const { return nodes_[index].operation == Operation::Constant; }
  bool is_computed(std::size_t index) const { return nodes_[index].operation > Operation::Constant; }

  std::pair<double, double> branches_of(double number) const {
    if (number >= 0.0) throw std::invalid_argument("\"?\" without its \":\"");
    return pairs_[static_cast<std::size_t>(-number) - 1];
  }

  double append(const Node& node) {
    const auto same = std::find(nodes_.begin(), nodes_.end(), node);
    if (same != nodes_.end()) return static_cast<double>(same - nodes_.begin());
    nodes_.push_back(node);
    return static_cast<double>(nodes_.size() - 1);
  }

  double whole_power(double a, int exponent) {
    if (exponent == 1) return a;
    const double half = whole_power(a, exponent / 2);
    const double square = apply(Operation::Multiply, half, half);
    return exponent % 2 == 0 ? square : apply(Operation::Multiply, square, a);
  }

  std::vector<Node> nodes_;
  std::vector<std::pair<double, double>> pairs_;
};

/// muParser's callbacks are plain functions: the recorder of the text that this thread parses.
thread_local Recorder* recorder = nullptr;

template <Operation operation>
double unary(double a) {
  return recorder->apply(operation, a);
}
template <Operation operation>
double binary(double a, double b) {
  return recorder->apply(operation, a, b);
}
template <Operation operation>
double swapped(double a, double b) {
  return recorder->apply(operation, b, a);
}
template <Operation operation>
double of_several(const double* arguments, int count) {
  double result = arguments[0];
  for (int k = 1; k < count; ++k) result = recorder->apply(operation, result, arguments[k]);
  return result;
}

int number_in_text(const char* text, int* position, double* slot) {
  if ((*text < '0' || *text > '9') && *text != '.') return 0;  // from_chars would also read "inf" and "nan"
  const char* end = text + std::char_traits<char>::length(text);
  double number = 0.0;
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc()) throw std::invalid_argument("a number beyond the range of double precision");
  *position += static_cast<int>(stop - text);
  *slot = recorder->constant(number);
  return 1;
}

/// The language: muParser's scanner and grammar, nothing of its arithmetic.
class Language : public mu::ParserBase {
 public:
  Language() {
    AddValIdent(&number_in_text);
    EnableOptimizer(false);  // nothing may be computed with slot indices
    EnableBuiltInOprt(false);
    InitCharSets();
    InitFun();
    InitConst();
    InitOprt();
  }

  void InitCharSets() override {
    DefineNameChars("0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    DefineOprtChars("+-*^/?<>=!&|:");
    DefineInfixOprtChars("+-");
  }
  void InitConst() override {
    DefineConst("pi", recorder->constant(std::numbers::pi));
    DefineConst("e", recorder->constant(std::numbers::e));
  }
  void InitOprt() override {
    using enum Operation;
    const auto left = mu::oaLEFT;
    DefineOprtChars("+-*^/?<>=!&|:");
    DefineOprt(
        "?", [](double a, double b) { return recorder->choose(a, b); }, 0, mu::oaRIGHT);
    DefineOprt(
        ":", [](double a, double b) { return recorder->pair(a, b); }, 1, left);
    DefineOprt("||", &binary<Or>, 2, left);
    DefineOprt("&&", &binary<And>, 3, left);
    DefineOprt("<", &binary<Less>, 4, left);
    DefineOprt(">", &swapped<Less>, 4, left);
    DefineOprt("<=", &binary<LessEqual>, 4, left);
    DefineOprt(">=", &swapped<LessEqual>, 4, left);
    DefineOprt("==", &binary<Equal>, 4, left);
    DefineOprt("!=", &binary<NotEqual>, 4, left);
    DefineOprt("+", &binary<Add>, 5, left);
    DefineOprt("-", &binary<Subtract>, 5, left);
    DefineInfixOprt("-", &unary<Negate>, 6, false);
    DefineInfixOprt(
        "+", [](double a) { return a; }, 6, false);
    DefineOprt("*", &binary<Multiply>, 7, left);
    DefineOprt("/", &binary<Divide>, 7, left);
    DefineOprt(
        "^", [](double a, double b) { return recorder->power(a, b); }, 8, mu::oaRIGHT);
  }
  void InitFun() override {
    using enum Operation;
    DefineFun("sin", &unary<Sine>, false);
    DefineFun("cos", &unary<Cosine>, false);
    DefineFun("tan", &unary<Tangent>, false);
    DefineFun("asin", &unary<Arcsine>, false);
    DefineFun("acos", &unary<Arccosine>, false);
    DefineFun("atan", &unary<Arctangent>, false);
    DefineFun("atan2", &binary<Arctangent2>, false);
    DefineFun("sinh", &unary<HyperbolicSine>, false);
    DefineFun("cosh", &unary<HyperbolicCosine>, false);
    DefineFun("tanh", &unary<HyperbolicTangent>, false);
    DefineFun("exp", &unary<Exponential>, false);
    DefineFun("log", &unary<Logarithm>, false);
    DefineFun("ln", &unary<Logarithm>, false);
    DefineFun("log2", &unary<Logarithm2>, false);
    DefineFun("log10", &unary<Logarithm10>, false);
    DefineFun("sqrt", &unary<SquareRoot>, false);
    DefineFun("abs", &unary<Absolute>, false);
    DefineFun("erf", &unary<ErrorFunction>, false);
    DefineFun("sign", &unary<Sign>, false);
    DefineFun("min", &of_several<Minimum>, false);
    DefineFun("max", &of_several<Maximum>, false);
  }
};

std::string listed(const std::vector<std::string>& names) {
  std::string result;
  for (const std::string& name : names) result += (result.empty() ? "" : ", ") + name;
  return result;
}

/// Parses with muParser; throws std::invalid_argument.
Program recorded(const std::string& text, const std::vector<std::string>& variables) {
  Recorder here(variables.size());
  recorder = &here;
  const auto complaint = [&](const std::string& what) { return what + " in \"" + text + "\""; };
  try {
    Language parser;
    std::vector<double> slots(variables.size());
    for (std::size_t k = 0; k < variables.size(); ++k) {
      slots[k] = static_cast<double>(k);
      parser.DefineVar(variables[k], &slots[k]);
    }
    parser.SetExpr(text);
    const double result = parser.Eval();
    if (parser.GetNumResults() != 1) throw std::invalid_argument("more than one expression");
    return here.program(result, variables.size());
  } catch (const mu::ParserError& error) {
    std::string what = error.GetMsg();
    while (!what.empty() && (what.back() == '.' || what.back() == ' ')) what.pop_back();
    if (error.GetCode() == mu::ecUNASSIGNABLE_TOKEN) what += " (variables here: " + listed(variables) + ")";
    throw std::invalid_argument(complaint(what));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(complaint(error.what()));
  }
}

}  // namespace

struct ExpressionFunction::Code : Program {};

ExpressionFunction::ExpressionFunction(std::string text, std::vector<std::string> variables)
    : text_(std::move(text)),
      variables_(std::move(variables)),
      code_(std::make_unique<Code>(Code{recorded(text_, variables_)})) {}

ExpressionFunction::~ExpressionFunction() = default;

namespace {

/// Room for the slots of one point: on the stack for programs of ordinary length.
class Workspace {
 public:
  explicit Workspace(std::size_t size) : long_(size > short_.size() ? size : 0) {}
  double* data() { return long_.empty() ? short_.data() : long_.data(); }

 private:
  std::array<double, 128> short_;
  std::vector<double> long_;
};

void load_and_execute(const Program& program, std::span<const double> arguments, double* slots) {
  double* out = std::copy(arguments.begin(), arguments.end(), slots);
  out = std::copy(program.constants.begin(), program.constants.end(), out);
  for (const Node& node : program.instructions) execute<true>(node, 1, slots, out++);
}

}  // namespace

double ExpressionFunction::operator()(std::span<const double> arguments) const {
  expects(arguments.size() == variable_count(), "one argument per variable");
  Workspace slots(code_->slot_count());
  load_and_execute(*code_, arguments, slots.data());
  return slots.data()[code_->slot_count() - 1];
}

double ExpressionFunction::value_and_gradient(std::span<const double> arguments,
                                              std::span<double> gradient) const {
  expects(arguments.size() == variable_count() && gradient.size() == variable_count(),
          "one argument and one derivative per variable");
  const Program& program = *code_;
  const std::size_t count = program.slot_count();
  Workspace work(2 * count);
  double* slots = work.data();
  double* adjoints = slots + count;
  load_and_execute(program, arguments, slots);
  std::fill_n(adjoints, count, 0.0);
  adjoints[count - 1] = 1.0;
  for (std::size_t k = count; k-- > program.input_count();) {
    // A zero adjoint adds nothing; without this test a branch not taken, infinite there, would add 0 *
    // infinity.
    if (adjoints[k] == 0.0) continue;
    const Node& node = program.instructions[k - program.input_count()];
    pull_back(node, program.is_constant(node.b), slots[k], adjoints[k], slots, adjoints);
  }
  std::copy_n(adjoints, arguments.size(), gradient.begin());
  return slots[count - 1];
}

double ExpressionFunction::derivative(std::span<const double> arguments, std::size_t variable) const {
  expects(variable < variable_count(), "a variable of the expression");
  std::vector<double> gradient(variable_count());
  value_and_gradient(arguments, gradient);
  return gradient[variable];
}

void ExpressionFunction::values(std::span<const double> arguments, std::span<double> out) const {
  const Program& program = *code_;
  const std::size_t variables = program.variable_count;
  expects(arguments.size() == out.size() * variables, "one argument per point and variable");
  constexpr std::size_t block = 64;  // a program of 64 slots stays in the 32 kB of a first-level cache
  std::vector<double> slots(program.slot_count() * block);
  for (std::size_t start = 0; start < out.size(); start += block) {
    const std::size_t lanes = std::min(block, out.size() - start);
    for (std::size_t v = 0; v < variables; ++v)
      for (std::size_t l = 0; l < lanes; ++l) slots[v * lanes + l] = arguments[(start + l) * variables + v];
    double* result = slots.data() + variables * lanes;
    for (const double constant : program.constants) result = std::fill_n(result, lanes, constant);
    for (const Node& node : program.instructions) {
      execute<false>(node, lanes, slots.data(), result);
      result += lanes;
    }
    std::copy_n(result - lanes, lanes, out.data() + start);
  }
}

std::vector<std::string> coordinate_names(std::size_t dimension) {
  if (dimension <= 3) {
    std::vector<std::string> names{"x", "y", "z"};
    names.resize(dimension);
    return names;
  }
  std::vector<std::string> names;
  for (std::size_t k = 1; k <= dimension; ++k) names.push_back(std::string("x").append(std::to_string(k)));
  return names;
}

}  // namespace rieszflow
