#include "solvers/rare_event/proposal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "core/expects.hpp"

namespace rieszflow::rare_event {
namespace {

constexpr std::size_t most_bins = 512;
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
    Axis axis{.edges = std::move(edges), .log_densities = {}};
    for (std::size_t b = 0; b + 1 < axis.edges.size(); ++b)
      axis.log_densities.push_back(
          -std::log(static_cast<double>(axis.edges.size() - 1) * (axis.edges[b + 1] - axis.edges[b])));
    axes_.push_back(std::move(axis));
  }
}

double Proposal::draw(std::span<const double> uniforms, std::span<double> point) const {
  double log_density = 0.0;
  for (std::size_t k = 0; k < axes_.size(); ++k) {
    const auto& [edges, log_densities] = axes_[k];
    if (log_densities.empty()) {  // one sample: its place is all that is known
      point[k] = edges[0];
      return -std::numeric_limits<double>::infinity();
    }
    const double place = uniforms[k] * static_cast<double>(log_densities.size());
    const std::size_t b = std::min(static_cast<std::size_t>(place), log_densities.size() - 1);
    point[k] = edges[b] + (place - static_cast<double>(b)) * (edges[b + 1] - edges[b]);
    log_density += log_densities[b];
  }
  return log_density;
}

double Proposal::log_density(std::span<const double> point) const {
  double log_density = 0.0;
  for (std::size_t k = 0; k < axes_.size(); ++k) {
    const auto& [edges, log_densities] = axes_[k];
    if (log_densities.empty() || !(point[k] >= edges.front() && point[k] <= edges.back()))
      return -std::numeric_limits<double>::infinity();
    const auto above = std::upper_bound(edges.begin() + 1, edges.end() - 1, point[k]);
    log_density += log_densities[static_cast<std::size_t>(above - edges.begin() - 1)];
  }
  return log_density;
}

}  // namespace rieszflow::rare_event
