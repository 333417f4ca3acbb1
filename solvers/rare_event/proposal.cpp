#include "solvers/rare_event/proposal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "core/expects.hpp"

namespace rieszflow::rare_event {
namespace {

constexpr std::size_t most_bins = 128;
constexpr std::size_t samples_per_bin = 16;  ///< the widths of the bins scatter by a quarter

}  // namespace

Proposal::Proposal(const Domain& domain, std::span<const double> samples) {
  const std::size_t d = dimension(domain), count = samples.size() / d;
  expects(count > 0 && samples.size() % d == 0, "samples: (sample, dimension)");
  Box walls;
  if (const auto* box = std::get_if<Box>(&domain)) walls = *box;
  if (const auto* torus = std::get_if<Torus>(&domain)) walls = {torus->lower, torus->upper};
  for (std::size_t k = 0; k < d; ++k) {
    std::vector<double> sorted(count);
    for (std::size_t i = 0; i < count; ++i) sorted[i] = samples[i * d + k];
    std::sort(sorted.begin(), sorted.end());
    // A chain repeats what it does not leave: such bins would have no width.
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    const std::size_t bins = std::clamp<std::size_t>(sorted.size() / samples_per_bin, 1, most_bins);
    std::vector<double> edges{walls.lower.empty() ? sorted.front() : walls.lower[k]};
    for (std::size_t b = 1; b < bins; ++b) {
      const double edge = sorted[b * sorted.size() / bins];
      if (edge > edges.back()) edges.push_back(edge);
    }
    const double last = walls.upper.empty() ? sorted.back() : walls.upper[k];
    if (last > edges.back()) edges.push_back(last);
    edges_.push_back(std::move(edges));
  }
}

double Proposal::draw(std::span<const double> uniforms, std::span<double> point) const {
  double density = 1.0;
  for (std::size_t k = 0; k < edges_.size(); ++k) {
    const std::vector<double>& edges = edges_[k];
    if (edges.size() < 2) {  // one sample: its place is all that is known
      point[k] = edges[0];
      return -std::numeric_limits<double>::infinity();
    }
    const double bins = static_cast<double>(edges.size() - 1), place = uniforms[k] * bins;
    const std::size_t b = std::min(static_cast<std::size_t>(place), edges.size() - 2);
    const double width = edges[b + 1] - edges[b];
    point[k] = edges[b] + (place - static_cast<double>(b)) * width;
    density /= bins * width;
  }
  return std::log(density);
}

double Proposal::log_density(std::span<const double> point) const {
  double density = 1.0;
  for (std::size_t k = 0; k < edges_.size(); ++k) {
    const std::vector<double>& edges = edges_[k];
    if (edges.size() < 2 || !(point[k] >= edges.front() && point[k] <= edges.back()))
      return -std::numeric_limits<double>::infinity();
    const auto upper = std::upper_bound(edges.begin() + 1, edges.end() - 1, point[k]);
    density /= static_cast<double>(edges.size() - 1) * (*upper - *(upper - 1));
  }
  return std::log(density);
}

}  // namespace rieszflow::rare_event
