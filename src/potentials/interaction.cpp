#include "potentials/interaction.hpp"

#include <array>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

template <class W>
constexpr bool depends_on_distance =
    !std::is_same_v<W, CosineInteraction> && !std::is_same_v<W, LowRankInteraction>;

double squared_distance(std::span<const double> x, std::span<const double> y) {
  double sum = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) sum += (x[k] - y[k]) * (x[k] - y[k]);
  return sum;
}

double value_of(const CosineInteraction& w, std::span<const double> x, std::span<const double> y) {
  double sum = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) sum += std::cos(x[k] - y[k]);
  return -w.strength * sum;
}

void add_force_of(const CosineInteraction& w, std::span<const double> x, std::span<const double> y,
                  std::span<double> force) {
  for (std::size_t k = 0; k < x.size(); ++k) force[k] -= w.strength * std::sin(x[k] - y[k]);
}

double value_of(const LowRankInteraction& w, std::span<const double> x, std::span<const double> y) {
  double sum = 0.0;
  for (const auto& g : w.functions) sum += (*g)(x) * (*g)(y);
  return w.strength * sum;
}

void add_force_of(const LowRankInteraction& w, std::span<const double> x, std::span<const double> y,
                  std::span<double> force) {
  thread_local std::vector<double> gradient;
  gradient.resize(x.size());
  for (const auto& g : w.functions) {
    g->value_and_gradient(x, gradient);
    const double factor = w.strength * (*g)(y);
    for (std::size_t k = 0; k < x.size(); ++k) force[k] -= factor * gradient[k];
  }
}

}  // namespace

bool is_radial(const Interaction& interaction) {
  return std::visit([]<class W>(const W&) { return depends_on_distance<W>; }, interaction);
}

RadialValue radial(const Interaction& interaction, double squared_distance) {
  return std::visit(
      [&]<class W>(const W& w) -> RadialValue {
        if constexpr (depends_on_distance<W>) return radial(w, squared_distance);
        expects(false, "radial() is for interactions of r alone");
        return {};
      },
      interaction);
}

double value(const Interaction& interaction, std::span<const double> x, std::span<const double> y) {
  expects(x.size() == y.size(), "a pair lives in one space");
  return std::visit(
      [&]<class W>(const W& w) {
        if constexpr (depends_on_distance<W>)
          return radial(w, squared_distance(x, y)).value;
        else
          return value_of(w, x, y);
      },
      interaction);
}

void add_force(const Interaction& interaction, std::span<const double> x, std::span<const double> y,
               std::span<double> force) {
  expects(x.size() == y.size() && force.size() == x.size(), "a pair and its force live in one space");
  std::visit(
      [&]<class W>(const W& w) {
        if constexpr (depends_on_distance<W>) {
          const double force_over_r = radial(w, squared_distance(x, y)).force_over_r;
          for (std::size_t k = 0; k < x.size(); ++k) force[k] += force_over_r * (x[k] - y[k]);
        } else {
          add_force_of(w, x, y, force);
        }
      },
      interaction);
}

bool is_singular(const Interaction& interaction) {
  return is_radial(interaction) && !std::isfinite(radial(interaction, 0.0).value);
}

std::string_view name(const Interaction& interaction) {
  static constexpr std::array<std::string_view, std::variant_size_v<Interaction>> names = {
      "riesz", "log", "gaussian", "morse", "quadratic", "cosine", "expression", "low_rank"};
  return names[interaction.index()];
}

}  // namespace rieszflow
