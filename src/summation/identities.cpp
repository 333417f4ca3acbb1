#include "summation/identities.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <span>
#include <utility>

#include "core/match.hpp"

namespace rieszflow {
namespace {

constexpr double layer = 0.02;  ///< thickness of the first wall layer, in units of the domain's half width

/// g(x) into `out`, returns div g(x).
struct Field {
  std::string name;
  std::function<double(std::span<const double> point, std::span<double> out)> value;
};

std::string along(std::size_t axis, std::size_t dimension) {
  return dimension == 1 ? "" : ", axis " + std::to_string(axis + 1);
}

std::vector<Field> fields_of(const Domain& domain) {
  return std::visit(
      Match{[](const Box& box) {
              std::vector<Field> fields;
              for (std::size_t k = 0; k < box.lower.size(); ++k) {
                const double middle = 0.5 * (box.lower[k] + box.upper[k]),
                             half = 0.5 * (box.upper[k] - box.lower[k]);
                for (const int power : {0, 1}) {
                  fields.push_back({(power == 0 ? "Schwinger-Dyson 1 - t^2" : "Schwinger-Dyson (1 - t^2) t") +
                                        along(k, box.lower.size()),
                                    [=](std::span<const double> x, std::span<double> out) {
                                      const double t = (x[k] - middle) / half;
                                      std::ranges::fill(out, 0.0);
                                      out[k] = half * (1.0 - t * t) * (power == 0 ? 1.0 : t);
                                      return power == 0 ? -2.0 * t : 1.0 - 3.0 * t * t;
                                    }});
                }
              }
              return fields;
            },
            [](const Ball& ball) {
              std::vector<Field> fields;
              const std::size_t d = ball.center.size();
              const auto squared = [ball](std::span<const double> x) {
                double sum = 0.0;
                for (std::size_t k = 0; k < x.size(); ++k)
                  sum += (x[k] - ball.center[k]) * (x[k] - ball.center[k]);
                return sum / (ball.radius * ball.radius);
              };
              for (std::size_t k = 0; k < d; ++k) {
                fields.push_back({"Schwinger-Dyson 1 - |t|^2" + along(k, d),
                                  [=](std::span<const double> x, std::span<double> out) {
                                    std::ranges::fill(out, 0.0);
                                    out[k] = ball.radius * (1.0 - squared(x));
                                    return -2.0 * (x[k] - ball.center[k]) / ball.radius;
                                  }});
              }
              fields.push_back(
                  {"Schwinger-Dyson (1 - |t|^2) t", [=](std::span<const double> x, std::span<double> out) {
                     const double q = squared(x);
                     for (std::size_t k = 0; k < d; ++k) out[k] = (1.0 - q) * (x[k] - ball.center[k]);
                     return static_cast<double>(d) * (1.0 - q) - 2.0 * q;
                   }});
              return fields;
            },
            [](const Torus& torus) {
              std::vector<Field> fields;
              for (std::size_t k = 0; k < torus.lower.size(); ++k) {
                const double wavenumber = 2.0 * std::numbers::pi / (torus.upper[k] - torus.lower[k]),
                             lower = torus.lower[k];
                fields.push_back({"Schwinger-Dyson sin" + along(k, torus.lower.size()),
                                  [=](std::span<const double> x, std::span<double> out) {
                                    std::ranges::fill(out, 0.0);
                                    out[k] = std::sin(wavenumber * (x[k] - lower)) / wavenumber;
                                    return std::cos(wavenumber * (x[k] - lower));
                                  }});
                fields.push_back({"Schwinger-Dyson cos" + along(k, torus.lower.size()),
                                  [=](std::span<const double> x, std::span<double> out) {
                                    std::ranges::fill(out, 0.0);
                                    out[k] = std::cos(wavenumber * (x[k] - lower)) / wavenumber;
                                    return -std::sin(wavenumber * (x[k] - lower));
                                  }});
              }
              return fields;
            },
            [](const WholeSpace& space) {
              std::vector<Field> fields;
              const std::size_t d = space.space_dimension;
              for (std::size_t k = 0; k < d; ++k) {
                fields.push_back({"Schwinger-Dyson sin x" + along(k, d),
                                  [=](std::span<const double> x, std::span<double> out) {
                                    std::ranges::fill(out, 0.0);
                                    out[k] = std::sin(x[k]);
                                    return std::cos(x[k]);
                                  }});
              }
              fields.push_back(
                  {"Schwinger-Dyson x (virial)", [=](std::span<const double> x, std::span<double> out) {
                     std::ranges::copy(x, out.begin());
                     return static_cast<double>(d);
                   }});
              return fields;
            }},
      domain);
}

/// Centre, and the factor by which the domain shrinks about it so that the point is on its wall; no centre
/// without a wall.
std::vector<double> center_of(const Domain& domain) {
  if (const auto* ball = std::get_if<Ball>(&domain)) return ball->center;
  const auto* box = std::get_if<Box>(&domain);
  if (box == nullptr) return {};
  std::vector<double> center(box->lower.size());
  for (std::size_t k = 0; k < center.size(); ++k) center[k] = 0.5 * (box->lower[k] + box->upper[k]);
  return center;
}

double gauge(const Domain& domain, std::span<const double> center, std::span<const double> x) {
  double largest = 0.0, squared = 0.0;
  const auto* box = std::get_if<Box>(&domain);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double y = x[k] - center[k];
    squared += y * y;
    if (box != nullptr) largest = std::max(largest, std::abs(y) / (0.5 * (box->upper[k] - box->lower[k])));
  }
  return box != nullptr ? largest : std::sqrt(squared) / std::get<Ball>(domain).radius;
}

}  // namespace

std::vector<Identity> equilibrium_identities(const Model& model, const PairSum& pair_sum,
                                             const ParticleEnsemble& ensemble) {
  if (std::isinf(model.inverse_temperature) ||
      std::ranges::any_of(model.functionals, [](const auto& term) { return term->is_stochastic(); }))
    return {};
  const std::size_t n = ensemble.particle_count, d = ensemble.dimension, replicas = ensemble.replica_count;
  std::vector<double> forces(ensemble.positions.size(), 0.0);
  pair_sum.add_forces(ensemble.positions, replicas, forces);
  for (std::size_t i = 0; i < replicas * n; ++i)
    add_potential_force(model, std::span(ensemble.positions).subspan(i * d, d),
                        std::span(forces).subspan(i * d, d));
  for (const auto& term : model.functionals) {
    for (std::size_t r = 0; r < replicas; ++r)
      term->add_forces(ensemble.replica(r), n, r, 0, std::span(forces).subspan(r * n * d, n * d));
  }

  const double weight = 1.0 / static_cast<double>(n), beta = model.inverse_temperature;
  std::vector<Identity> identities;
  std::vector<double> g(d);
  for (const Field& field : fields_of(model.domain)) {
    Identity identity{field.name, std::vector<double>(replicas, 0.0)};
    for (std::size_t i = 0; i < replicas * n; ++i) {
      double sum = field.value(std::span(ensemble.positions).subspan(i * d, d), g);
      for (std::size_t k = 0; k < d; ++k) sum += beta * g[k] * forces[i * d + k];
      identity.residuals[i / n] += weight * sum;
    }
    identities.push_back(std::move(identity));
  }
  const std::vector<double> center = center_of(model.domain);
  if (center.empty()) return identities;
  Identity contact{"contact theorem", std::vector<double>(replicas, -static_cast<double>(d))};
  // q(e) / e = a + b e + c e^2 with q the fraction outside of (1 - e) K: a = 3 q_1/e - 3 q_2/(2e) + q_3/(3e).
  const double layer_weights[] = {3.0 / layer, -1.5 / layer, 1.0 / (3.0 * layer)};
  for (std::size_t i = 0; i < replicas * n; ++i) {
    const auto x = std::span(ensemble.positions).subspan(i * d, d);
    const double depth = 1.0 - gauge(model.domain, center, x);
    double sum = 0.0;
    for (int k = 0; k < 3; ++k) sum += depth < (k + 1) * layer ? layer_weights[k] : 0.0;
    for (std::size_t k = 0; k < d; ++k) sum -= beta * (x[k] - center[k]) * forces[i * d + k];
    contact.residuals[i / n] += weight * sum;
  }
  identities.push_back(std::move(contact));
  return identities;
}

}  // namespace rieszflow
