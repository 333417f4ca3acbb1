#pragma once
#include <cmath>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "potentials/expression.hpp"

namespace rieszflow {

/// W(r) = strength (r^2 + softening^2)^(-s/2) / s, s != 0. s = -1: the 1-d Coulomb -strength r; s = d-2:
/// Coulomb; s = -2: the repulsive parabola. Any s < d; on a torus s > -2 as well (refusal in
/// model/model.hpp).
struct RieszInteraction {
  double exponent = 1.0;   ///< s, s < d
  double strength = 1.0;   ///< repulsive when positive
  double softening = 0.0;  ///< length, >= 0
};

/// W(r) = -(strength/2) log(r^2 + softening^2)
struct LogarithmicInteraction {
  double strength = 1.0;
  double softening = 0.0;
};

/// W(r) = strength exp(-r^2 / (2 length^2))
struct GaussianInteraction {
  double strength = 1.0;
  double length = 1.0;
};

/// W(r) = repulsion_strength exp(-r/repulsion_length) - attraction_strength exp(-r/attraction_length)
struct MorseInteraction {
  double repulsion_strength = 1.0;
  double repulsion_length = 1.0;
  double attraction_strength = 0.5;
  double attraction_length = 2.0;
};

/// W(x, y) = strength |x - y|^2 / 2
struct QuadraticInteraction {
  double strength = 1.0;
};

/// W(x, y) = -strength sum_k cos(x_k - y_k)
struct CosineInteraction {
  double strength = 1.0;
};

/// W(r) given as text in r = |x - y|.
struct ExpressionInteraction {
  std::shared_ptr<const ExpressionFunction> function;
};

/// W(x, y) = strength sum_k g_k(x) g_k(y), each g_k given as text in the coordinates.
struct LowRankInteraction {
  double strength = 1.0;
  std::vector<std::shared_ptr<const ExpressionFunction>> functions;
};

/// Pair interaction W: a closed set. All but cosine and low rank are functions of r^2 alone.
using Interaction =
    std::variant<RieszInteraction, LogarithmicInteraction, GaussianInteraction, MorseInteraction,
                 QuadraticInteraction, CosineInteraction, ExpressionInteraction, LowRankInteraction>;

/// Value and -W'(r)/r of a radial interaction: the force of y on x is force_over_r * (x - y).
struct RadialValue {
  double value = 0.0;
  double force_over_r = 0.0;
};

/// force_over_r where it is finite, else 0: at r = 0 no direction exists.
inline RadialValue without_direction_at_zero(RadialValue w) {
  if (!std::isfinite(w.force_over_r)) w.force_over_r = 0.0;
  return w;
}

// One inline function of r^2 per radial interaction, for the loops of pair sums.

inline RadialValue radial(const RieszInteraction& w, double squared_distance) {
  if (w.strength == 0.0) return {};  // also at r = 0
  const double q = squared_distance + w.softening * w.softening;
  const double power = w.strength * std::pow(q, -0.5 * w.exponent);
  return without_direction_at_zero({power / w.exponent, power / q});
}

inline RadialValue radial(const LogarithmicInteraction& w, double squared_distance) {
  if (w.strength == 0.0) return {};
  const double q = squared_distance + w.softening * w.softening;
  return without_direction_at_zero({-0.5 * w.strength * std::log(q), w.strength / q});
}

inline RadialValue radial(const GaussianInteraction& w, double squared_distance) {
  const double inverse = 1.0 / (w.length * w.length);
  const double value = w.strength * std::exp(-0.5 * inverse * squared_distance);
  return {value, inverse * value};
}

inline RadialValue radial(const MorseInteraction& w, double squared_distance) {
  const double r = std::sqrt(squared_distance);
  const double repulsion = w.repulsion_strength * std::exp(-r / w.repulsion_length);
  const double attraction = w.attraction_strength * std::exp(-r / w.attraction_length);
  return without_direction_at_zero(
      {repulsion - attraction, (repulsion / w.repulsion_length - attraction / w.attraction_length) / r});
}

inline RadialValue radial(const QuadraticInteraction& w, double squared_distance) {
  return {0.5 * w.strength * squared_distance, -w.strength};
}

inline RadialValue radial(const ExpressionInteraction& w, double squared_distance) {
  const double r = std::sqrt(squared_distance);
  double slope = 0.0;
  const double value = w.function->value_and_gradient({&r, 1}, {&slope, 1});
  return without_direction_at_zero({value, -slope / r});
}

/// True when W depends on r = |x - y| only.
bool is_radial(const Interaction& interaction);

/// Radial interactions only. At r = 0 a singular W gives value +-infinity and force_over_r 0 (no direction
/// exists).
RadialValue radial(const Interaction& interaction, double squared_distance);

/// W(x, y) in free space (no periodisation).
double value(const Interaction& interaction, std::span<const double> x, std::span<const double> y);

/// force += -grad_1 W(x, y): what y exerts on x, in free space.
void add_force(const Interaction& interaction, std::span<const double> x, std::span<const double> y,
               std::span<double> force);

/// True when W is unbounded at r = 0 (log, Riesz with s > 0; unsoftened; an expression that is not finite
/// there).
bool is_singular(const Interaction& interaction);

std::string_view name(const Interaction& interaction);

}  // namespace rieszflow
