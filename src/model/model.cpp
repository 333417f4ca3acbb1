#include "model/model.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/expects.hpp"
#include "core/match.hpp"
#include "model/probe.hpp"

namespace rieszflow {
namespace {

using Sentence = std::optional<std::string>;

std::string as_text(std::span<const double> point) { return fmt::format("({})", fmt::join(point, ", ")); }

/// Largest |f(x on the upper face) - f(x on the lower face)| over the faces of a torus, in units of 1 + max
/// |f|.
template <class Function>
double jump_across_faces(const Torus& torus, const Function& f) {
  const std::size_t d = torus.lower.size();
  const std::vector<double> points = probe_points(torus);
  const std::size_t count = points.size() / d;
  const std::size_t stride = std::max<std::size_t>(1, count / 512);
  double jump = 0.0;
  double scale = 1.0;
  for (std::size_t axis = 0; axis < d; ++axis)
    for (std::size_t p = 0; p < count; p += stride) {
      std::vector<double> point(points.begin() + static_cast<std::ptrdiff_t>(p * d),
                                points.begin() + static_cast<std::ptrdiff_t>((p + 1) * d));
      point[axis] = torus.lower[axis];
      const double below = f(point);
      point[axis] = torus.upper[axis];
      const double above = f(point);
      if (!std::isfinite(below) || !std::isfinite(above)) continue;
      scale = std::max({scale, std::abs(below), std::abs(above)});
      jump = std::max(jump, std::abs(above - below));
    }
  return jump / scale;
}

Sentence refusal_of_riesz(const RieszInteraction& w, std::size_t d) {
  if (!std::isfinite(w.exponent) || !std::isfinite(w.strength))
    return "riesz: exponent and strength must be finite";
  if (w.exponent == 0.0) return "riesz: exponent 0 is the logarithm: use type = \"log\"";
  if (w.exponent >= static_cast<double>(d))
    return fmt::format(
        "riesz: exponent {} must be below the dimension {}: |x|^-s is integrable at 0 only for s < d",
        w.exponent, d);
  if (!(w.softening >= 0.0) || std::isinf(w.softening))
    return "riesz: softening must be finite and not negative";
  return {};
}

/// What is wrong with the interaction itself, on any domain of dimension d.
Sentence refusal_everywhere(const Interaction& interaction, std::size_t d) {
  const auto finite = [](std::string_view name, double strength) -> Sentence {
    if (std::isfinite(strength)) return {};
    return fmt::format("{}: strength must be finite", name);
  };
  return std::visit(Match{[&](const RieszInteraction& w) { return refusal_of_riesz(w, d); },
                          [&](const LogarithmicInteraction& w) -> Sentence {
                            if (!(w.softening >= 0.0) || std::isinf(w.softening))
                              return "log: softening must be finite and not negative";
                            return finite("log", w.strength);
                          },
                          [&](const GaussianInteraction& w) -> Sentence {
                            if (!(w.length > 0.0)) return "gaussian: length must be positive";
                            return finite("gaussian", w.strength);
                          },
                          [&](const MorseInteraction& w) -> Sentence {
                            if (!(w.repulsion_length > 0.0) || !(w.attraction_length > 0.0))
                              return "morse: both lengths must be positive";
                            return finite("morse", w.repulsion_strength + w.attraction_strength);
                          },
                          [&](const QuadraticInteraction& w) { return finite("quadratic", w.strength); },
                          [&](const CosineInteraction& w) { return finite("cosine", w.strength); },
                          [&](const ExpressionInteraction& w) -> Sentence {
                            expects(w.function && w.function->variable_count() == 1,
                                    "an expression interaction is a text in r alone");
                            return {};
                          },
                          [&](const LowRankInteraction& w) -> Sentence {
                            for (const auto& g : w.functions)
                              expects(g && g->variable_count() == d,
                                      "a low-rank function is a text in the coordinates");
                            return finite("low_rank", w.strength);
                          }},
                    interaction);
}

Sentence refusal_on_torus(const Torus& torus, const Interaction& interaction) {
  const std::size_t d = torus.lower.size();
  const auto periodised = [&](std::string_view name) -> Sentence {
    if (d <= 3) return {};
    return fmt::format("{}: periodised kernels exist for dimensions 1 to 3, the torus has {}", name, d);
  };
  return std::visit(
      Match{
          [&](const RieszInteraction& w) -> Sentence {
            if (w.exponent <= -2.0)
              return fmt::format(
                  "riesz: on a torus the exponent must exceed -2, it is {}: the Fourier series of r^-s "
                  "is a repulsion only there",
                  w.exponent);
            return periodised("riesz");
          },
          [&](const LogarithmicInteraction&) { return periodised("log"); },
          [&](const GaussianInteraction&) { return periodised("gaussian"); },
          [&](const MorseInteraction&) { return periodised("morse"); },
          [&](const QuadraticInteraction&) -> Sentence {
            return "quadratic: |x - y|^2 has no periodic meaning on a torus: use type = \"cosine\" or a box";
          },
          [&](const CosineInteraction&) -> Sentence {
            for (std::size_t k = 0; k < d; ++k) {
              const double turns = (torus.upper[k] - torus.lower[k]) / (2.0 * std::numbers::pi);
              if (std::round(turns) < 1.0 || std::abs(turns - std::round(turns)) > 1e-9 * turns)
                return fmt::format(
                    "cosine: on a torus each period must be a multiple of 2 pi, along axis {} it is {}", k,
                    torus.upper[k] - torus.lower[k]);
            }
            return {};
          },
          [&](const ExpressionInteraction& w) -> Sentence {
            return fmt::format(
                "expression: \"{}\" is a function of the distance and has no periodic meaning on a torus: "
                "use a box, or gaussian, morse, riesz or log, which are summed over the images",
                w.function->text());
          },
          [&](const LowRankInteraction& w) -> Sentence {
            for (const auto& g : w.functions)
              if (jump_across_faces(torus, *g) > 1e-10)
                return fmt::format(
                    "low_rank: \"{}\" is not periodic on the torus: its values on opposite faces differ",
                    g->text());
            return {};
          }},
      interaction);
}

Sentence problem_of_potential(const Domain& domain, const Potential& potential,
                              std::span<const double> points) {
  const std::size_t d = dimension(domain);
  if (const auto* v = std::get_if<QuadraticPotential>(&potential);
      v && !v->center.empty() && v->center.size() != d)
    return fmt::format("quadratic potential: center has {} coordinates, the domain has dimension {}",
                       v->center.size(), d);
  if (const auto* v = std::get_if<TablePotential>(&potential)) {
    if (v->lower().size() != d)
      return fmt::format("table {}: it has {} axes, the domain has dimension {}", v->source(),
                         v->lower().size(), d);
    if (std::holds_alternative<WholeSpace>(domain))
      return fmt::format("table {}: it cannot cover the whole space", v->source());
    const Box box = bounding_box(domain);
    for (std::size_t k = 0; k < d; ++k) {
      const double slack = 1e-9 * (box.upper[k] - box.lower[k]);
      if (v->lower()[k] > box.lower[k] + slack || v->upper()[k] < box.upper[k] - slack)
        return fmt::format("table {}: along axis {} it covers [{}, {}], the domain needs [{}, {}]",
                           v->source(), k, v->lower()[k], v->upper()[k], box.lower[k], box.upper[k]);
    }
  }
  if (const auto* v = std::get_if<ExpressionPotential>(&potential))
    expects(v->function && v->function->variable_count() == d,
            "an expression potential is a text in the coordinates");

  const auto described = [&] {
    const auto* text = std::get_if<ExpressionPotential>(&potential);
    return text ? fmt::format("expression potential \"{}\"", text->function->text())
                : fmt::format("{} potential", name(potential));
  };
  for (std::size_t p = 0; p < points.size(); p += d) {
    const auto point = points.subspan(p, d);
    const double v = value(potential, point);
    if (std::isfinite(v)) continue;
    if (std::isnan(v)) return fmt::format("{}: it is not a number at {}", described(), as_text(point));
    if (v < 0.0) return fmt::format("{}: it is -infinity at {}", described(), as_text(point));
    // +infinity is a hard wall on the boundary and a fault inside: pushed outwards, a boundary point is no
    // longer inside.
    std::vector<double> pushed(point.begin(), point.end());
    bool on_boundary = false;
    for (std::size_t k = 0; k < d; ++k)
      for (const double step : {1e-9, -1e-9}) {
        pushed[k] = point[k] + step * (1.0 + std::abs(point[k]));
        on_boundary = on_boundary || (!std::holds_alternative<Torus>(domain) && !contains(domain, pushed));
        pushed[k] = point[k];
      }
    if (!on_boundary)
      return fmt::format("{}: it is infinite inside the domain, at {}", described(), as_text(point));
  }
  if (const auto* torus = std::get_if<Torus>(&domain))
    if (jump_across_faces(*torus, [&](const std::vector<double>& x) { return value(potential, x); }) > 1e-9)
      return fmt::format("{}: it is not periodic on the torus: its values on opposite faces differ",
                         described());
  return {};
}

Sentence problem_of_expression(const Domain& domain, const ExpressionInteraction& w) {
  double diameter = 10.0;
  if (!std::holds_alternative<WholeSpace>(domain)) {
    const Box box = bounding_box(domain);
    diameter = 0.0;
    for (std::size_t k = 0; k < box.lower.size(); ++k)
      diameter = std::hypot(diameter, box.upper[k] - box.lower[k]);
  }
  constexpr int samples = 1000;
  for (int k = 0; k <= samples; ++k) {
    const double r = diameter * k / samples;
    const double value = (*w.function)({&r, 1});
    if (std::isnan(value))
      return fmt::format("expression interaction \"{}\": it is not a number at r = {}{}", w.function->text(),
                         r, k == 0 ? "; give its limit there, for instance r == 0 ? 1 : sin(r)/r" : "");
    if (k > 0 && std::isinf(value))
      return fmt::format(
          "expression interaction \"{}\": it is infinite at r = {}; only r = 0 may be singular",
          w.function->text(), r);
  }
  return {};
}

}  // namespace

std::optional<std::string> refusal(const Domain& domain, const Interaction& interaction) {
  if (Sentence fault = refusal_everywhere(interaction, dimension(domain))) return fault;
  if (const auto* torus = std::get_if<Torus>(&domain)) return refusal_on_torus(*torus, interaction);
  return {};
}

std::optional<std::string> problem(const Model& model) {
  if (!(model.inverse_temperature > 0.0))
    return "the inverse temperature must be positive (inf: zero temperature)";
  for (const Interaction& interaction : model.interactions) {
    if (Sentence fault = refusal(model.domain, interaction)) return fault;
    if (const auto* expression = std::get_if<ExpressionInteraction>(&interaction))
      if (Sentence fault = problem_of_expression(model.domain, *expression)) return fault;
    if (const auto* low_rank = std::get_if<LowRankInteraction>(&interaction))
      for (const auto& g : low_rank->functions) {
        const std::vector<double> points = probe_points(model.domain);
        std::vector<double> values(points.size() / dimension(model.domain));
        g->values(points, values);
        const auto bad =
            std::find_if(values.begin(), values.end(), [](double v) { return !std::isfinite(v); });
        if (bad != values.end()) {
          const std::size_t p = static_cast<std::size_t>(bad - values.begin()) * dimension(model.domain);
          return fmt::format("low_rank: \"{}\" is not finite at {}", g->text(),
                             as_text(std::span(points).subspan(p, dimension(model.domain))));
        }
      }
  }
  if (model.potentials.empty()) return {};
  const std::vector<double> points = probe_points(model.domain);
  for (const Potential& potential : model.potentials)
    if (Sentence fault = problem_of_potential(model.domain, potential, points)) return fault;
  return {};
}

double potential(const Model& model, std::span<const double> point) {
  double sum = 0.0;
  for (const Potential& term : model.potentials) sum += value(term, point);
  return sum;
}

void potentials(const Model& model, std::span<const double> points, std::span<double> out) {
  const std::size_t d = dimension(model.domain);
  expects(points.size() == out.size() * d, "one value per point");
  std::fill(out.begin(), out.end(), 0.0);
  std::vector<double> term_values;
  for (const Potential& term : model.potentials) {
    if (const auto* expression = std::get_if<ExpressionPotential>(&term)) {
      term_values.resize(out.size());
      expression->function->values(points, term_values);
      for (std::size_t p = 0; p < out.size(); ++p) out[p] += term_values[p];
    } else {
      for (std::size_t p = 0; p < out.size(); ++p) out[p] += value(term, points.subspan(p * d, d));
    }
  }
}

void add_potential_force(const Model& model, std::span<const double> point, std::span<double> force) {
  for (const Potential& term : model.potentials) add_force(term, point, force);
}

bool has_singular_interaction(const Model& model) {
  return std::any_of(model.interactions.begin(), model.interactions.end(), &is_singular);
}

}  // namespace rieszflow
