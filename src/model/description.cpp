#include "model/description.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "core/match.hpp"
#include "potentials/expression.hpp"

namespace rieszflow {

namespace {

std::string intervals(const std::vector<double>& lower, const std::vector<double>& upper, char closing) {
  std::string text;
  for (std::size_t axis = 0; axis < lower.size(); ++axis) {
    text += fmt::format("{}[{}, {}{}", axis == 0 ? "" : " x ", lower[axis], upper[axis], closing);
  }
  return text;
}

std::string softened(const char* r, double softening) {
  return softening == 0.0 ? std::string(r) : fmt::format("sqrt(r^2 + {}^2)", softening);
}

}  // namespace

std::string description(const Domain& domain) {
  return std::visit(
      Match{
          [](const Box& box) { return "box " + intervals(box.lower, box.upper, ']'); },
          [](const Ball& ball) {
            return fmt::format("ball of radius {} around ({})", ball.radius, fmt::join(ball.center, ", "));
          },
          [](const Torus& torus) { return "torus " + intervals(torus.lower, torus.upper, ')'); },
          [](const WholeSpace& space) { return fmt::format("R^{}", space.space_dimension); },
      },
      domain);
}

std::string description(const Potential& potential) {
  return std::visit(
      Match{
          [](const QuadraticPotential& v) {
            return v.center.empty()
                       ? fmt::format("{} |x|^2 / 2", v.stiffness)
                       : fmt::format("{} |x - ({})|^2 / 2", v.stiffness, fmt::join(v.center, ", "));
          },
          [](const DoubleWellPotential& v) {
            return fmt::format("{} sum_k ((x_k / {})^2 - 1)^2", v.height, v.width);
          },
          [](const PolynomialPotential& v) {
            return fmt::format("sum_k sum_p c_p x_k^p, c = ({})", fmt::join(v.coefficients, ", "));
          },
          [](const CosinePotential& v) {
            return fmt::format("{} sum_k cos({} x_k)", v.amplitude, v.wavenumber);
          },
          [](const ExpressionPotential& v) { return v.function->text(); },
          [](const TablePotential& v) { return fmt::format("table {}", v.source()); },
      },
      potential);
}

std::string description(const Interaction& interaction) {
  return std::visit(
      Match{
          [](const RieszInteraction& w) {
            return fmt::format("{} ({})^{} / {}", w.strength, softened("r", w.softening), -w.exponent,
                               w.exponent);
          },
          [](const LogarithmicInteraction& w) {
            return fmt::format("{} log({})", -w.strength, softened("r", w.softening));
          },
          [](const GaussianInteraction& w) {
            return fmt::format("{} exp(-r^2 / (2 {}^2))", w.strength, w.length);
          },
          [](const MorseInteraction& w) {
            return fmt::format("{} exp(-r / {}) - {} exp(-r / {})", w.repulsion_strength, w.repulsion_length,
                               w.attraction_strength, w.attraction_length);
          },
          [](const QuadraticInteraction& w) { return fmt::format("{} r^2 / 2", w.strength); },
          [](const CosineInteraction& w) { return fmt::format("{} sum_k cos(x_k - y_k)", -w.strength); },
          [](const ExpressionInteraction& w) { return w.function->text(); },
          [](const LowRankInteraction& w) {
            std::string text;
            for (const auto& g : w.functions)
              text += (text.empty() ? "" : " + ") + fmt::format("g(x) g(y), g = {}", g->text());
            return fmt::format("{} ({})", w.strength, text);
          },
      },
      interaction);
}

std::string description(const Model& model) {
  std::string v;
  for (const auto& term : model.potentials) v += (v.empty() ? "" : " + ") + description(term);
  std::string w;
  for (const auto& term : model.interactions) w += (w.empty() ? "" : " + ") + description(term);
  std::string a;
  for (const auto& term : model.functionals) a += "; A[mu] = " + term->description();
  return fmt::format("V(x) = {}; W(x, y) = {}{}; {}; beta = {}", v.empty() ? "0" : v, w.empty() ? "0" : w, a,
                     description(model.domain), model.inverse_temperature);
}

}  // namespace rieszflow
