#include "model/probe.hpp"

#include <array>
#include <cmath>
#include <span>

namespace rieszflow {
namespace {

/// The radical inverse of `index` to a base: coordinate of the Halton sequence.
double radical_inverse(std::size_t index, std::size_t base) {
  double result = 0.0;
  double scale = 1.0;
  for (; index > 0; index /= base) {
    scale /= static_cast<double>(base);
    result += scale * static_cast<double>(index % base);
  }
  return result;
}

/// The axis-th prime, found by trial: dimensions are small.
std::size_t prime(std::size_t axis) {
  std::size_t candidate = 2;
  for (std::size_t found = 0;; ++candidate) {
    bool is_prime = true;
    for (std::size_t d = 2; d * d <= candidate; ++d) is_prime = is_prime && candidate % d != 0;
    if (is_prime && found++ == axis) return candidate;
  }
}

}  // namespace

std::vector<double> probe_points(const Domain& domain) {
  const std::size_t d = dimension(domain);
  const Box box = std::holds_alternative<WholeSpace>(domain)
                      ? Box{std::vector<double>(d, -5.0), std::vector<double>(d, 5.0)}
                      : bounding_box(domain);
  constexpr std::array<std::size_t, 4> nodes_of = {0, 1025, 65, 17};
  const std::size_t nodes = d <= 3 ? nodes_of[d] : 0;
  const std::size_t count = nodes > 0 ? static_cast<std::size_t>(std::pow(nodes, d) + 0.5) : 4096;
  const double intervals = static_cast<double>(nodes) - (std::holds_alternative<Torus>(domain) ? 0.0 : 1.0);
  std::vector<std::size_t> bases;
  if (nodes == 0)
    for (std::size_t k = 0; k < d; ++k) bases.push_back(prime(k));
  std::vector<double> points(count * d);
  for (std::size_t p = 0; p < count; ++p) {
    const std::span<double> point(points.data() + p * d, d);
    std::size_t rest = p;
    for (std::size_t k = d; k-- > 0;) {
      const double fraction =
          nodes > 0 ? static_cast<double>(rest % nodes) / intervals : radical_inverse(p + 1, bases[k]);
      point[k] = fraction == 1.0 ? box.upper[k] : box.lower[k] + fraction * (box.upper[k] - box.lower[k]);
      if (nodes > 0) rest /= nodes;
    }
    project(domain, point);
  }
  return points;
}

}  // namespace rieszflow
