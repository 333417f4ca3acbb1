#include "experiments/exact_tails.hpp"

#include <cmath>
#include <functional>
#include <numbers>
#include <variant>
#include <vector>

#include "analysis/exact.hpp"

namespace rieszflow::large_deviations {
namespace {

using Function = std::function<double(double)>;

constexpr double fractions[] = {0.03, 0.17, 0.29, 0.41, 0.58, 0.66, 0.79, 0.93};

/// Equal at a few points of (lower, upper), up to a constant where `up_to_constant`.
bool equal(const Function& a, const Function& b, double lower, double upper, bool up_to_constant) {
  const auto at = [&](double t) { return lower + (upper - lower) * t; };
  const double shift = up_to_constant ? a(at(0.5)) - b(at(0.5)) : 0.0;
  for (const double t : fractions) {
    if (!(std::abs(a(at(t)) - b(at(t)) - shift) < 1e-9)) return false;
  }
  return true;
}

bool is_box(const Domain& domain, double lower, double upper) {
  const auto* box = std::get_if<Box>(&domain);
  return box != nullptr && box->lower == std::vector{lower} && box->upper == std::vector{upper};
}

/// A period of the circle that starts anywhere.
bool has_period(const Domain& domain, double period) {
  const auto* torus = std::get_if<Torus>(&domain);
  return torus != nullptr && torus->lower.size() == 1 &&
         std::abs(torus->upper[0] - torus->lower[0] - period) < 1e-9;
}

template <class W>
const W* only(const Model& model) {
  return model.interactions.size() == 1 && model.functionals.empty()
             ? std::get_if<W>(&model.interactions.front())
             : nullptr;
}

bool is_log_gas(const Model& model) {
  const auto* w = only<LogarithmicInteraction>(model);
  return w != nullptr && w->strength == 1.0 && w->softening == 0.0;
}

/// sum_k strength g_k(x) g_k(y) = cos(2 (x - y))/2.
bool is_learned_kernel(const LowRankInteraction& w) {
  for (const double y : {0.0, 0.4, 1.1}) {
    const Function value = [&](double x) {
      double sum = 0.0;
      for (const auto& g : w.functions) sum += w.strength * (*g)({&x, 1}) * (*g)({&y, 1});
      return sum;
    };
    if (!equal(
            value, [&](double x) { return 0.5 * std::cos(2.0 * (x - y)); }, -1.5, 1.5, false))
      return false;
  }
  return true;
}

}  // namespace

std::optional<double> exact_log_probability(const Question& question, std::size_t count, double beta,
                                            double level) {
  using Kind = StatisticChoice::Kind;
  const Model& model = question.model;
  const Kind kind = question.statistic.kind;
  if (kind == Kind::KernelEntry || kind == Kind::KernelDistance) return {};
  const std::size_t d = dimension(model.domain);
  const rare_event::Statistic statistic = statistic_of(question.statistic, {});
  // f and V along the first axis.
  const auto along = [d](double x) {
    std::vector<double> point(d, 0.0);
    point[0] = x;
    return point;
  };
  const Function f = [&](double x) {
    double value = 0.0;
    statistic.components(along(x), {&value, 1});
    return value;
  };
  const Function v = [&](double x) { return potential(model, along(x)); };
  const Function zero = [](double) { return 0.0; };
  const bool above = question.side == Side::Above, below = question.side == Side::Below,
             linear = kind != Kind::Largest;
  const exact::Side side = above ? exact::Side::Above : exact::Side::Below;
  const bool whole = std::holds_alternative<WholeSpace>(model.domain);

  if (const auto* w = only<QuadraticInteraction>(model); w != nullptr && linear && d == 1) {
    const Function identity = [](double x) { return x; };
    if (!equal(f, identity, -1.0, 1.0, false)) return {};
    const Function spins = [&](double x) { return -0.5 * w->strength * x * x; };
    if (is_box(model.domain, -1.0, 1.0) && level > 0.0 && !below && equal(v, spins, -1.0, 1.0, true)) {
      const double coupling = beta * w->strength;
      return (above ? exact::curie_weiss_tail(count, coupling, level)
                    : exact::curie_weiss_window(count, coupling, level))
          .log_probability;
    }
    const double stiffness = 2.0 * (v(1.0) - v(0.0));
    const Function harmonic = [&](double x) { return 0.5 * stiffness * x * x; };
    if (whole && above && stiffness > 0.0 && equal(v, harmonic, -2.0, 2.0, true))
      return exact::harmonic_mean_tail(count, beta, stiffness, level).log_probability;
    return {};
  }
  if (const auto* w = only<LowRankInteraction>(model);
      w != nullptr && linear && below && d == 1 && count >= 10) {
    const Function cosine = [](double x) { return std::cos(2.0 * x); };
    const Function target = [](double x) { return -0.5 * std::cos(2.0 * x); };
    if (has_period(model.domain, std::numbers::pi) && is_learned_kernel(*w) &&
        equal(f, cosine, -1.5, 1.5, false) && equal(v, target, -1.5, 1.5, true))
      return exact::learned_kernel_tail(count, beta, level).log_probability;
    return {};
  }
  if (!is_log_gas(model)) return {};
  const bool free = equal(v, zero, -1.0, 1.0, true);
  if (kind == Kind::Largest) {
    const Function size = [](double x) { return std::abs(x); };
    if (is_box(model.domain, -1.0, 1.0) && free && below && level > 0.0 && level < 1.0 &&
        equal(f, size, -1.0, 1.0, false))
      return exact::scaling_tail(1, count, beta, level).log_probability;
    return {};
  }
  if (question.side == Side::Within) return {};
  if (is_box(model.domain, -1.0, 1.0) && free &&
      equal(
          f, [](double x) { return std::log(0.5 * (1.0 + x)); }, -1.0, 1.0, false))
    return exact::log_gas_on_interval_tail(count, beta, level, side).log_probability;
  if (has_period(model.domain, 2.0 * std::numbers::pi) && free && level != 0.0 &&
      equal(
          f, [](double x) { return std::log(std::abs(2.0 * std::sin(0.5 * x))); }, -3.1, 3.1, false))
    return exact::log_gas_on_circle_tail(count, beta, level, side).log_probability;
  if (whole && above && kind == Kind::Moment && question.statistic.power == 2) {
    const double stiffness = 2.0 * (v(1.0) - v(0.0));
    const bool isotropic =
        model.potentials.size() == 1 && std::holds_alternative<QuadraticPotential>(model.potentials[0]);
    const Function harmonic = [&](double x) { return 0.5 * stiffness * x * x; };
    if (isotropic && stiffness > 0.0 && equal(v, harmonic, -2.0, 2.0, true))
      return exact::log_gas_radius_tail(d, count, beta, stiffness, level).log_probability;
  }
  return {};
}

}  // namespace rieszflow::large_deviations
