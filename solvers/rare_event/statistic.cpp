#include "solvers/rare_event/statistic.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/expects.hpp"

namespace rieszflow::rare_event {

Statistic mean_of(std::string name, std::function<double(std::span<const double> point)> function) {
  return {.name = std::move(name),
          .kind = Statistic::Kind::Mean,
          .component_count = 1,
          .components = [f = std::move(function)](std::span<const double> point, std::span<double> out) {
            out[0] = f(point);
          }};
}

Statistic largest_of(std::string name, std::function<double(std::span<const double> point)> function) {
  Statistic statistic = mean_of(std::move(name), std::move(function));
  statistic.kind = Statistic::Kind::Largest;
  return statistic;
}

double value(const Statistic& statistic, std::span<const double> sums, std::span<const double> values,
             std::size_t particle_count) {
  const double n = static_cast<double>(particle_count);
  switch (statistic.kind) {
    case Statistic::Kind::Mean:
      return sums[0] / n;
    case Statistic::Kind::Distance: {
      double sum = 0.0;
      for (std::size_t k = 0; k < statistic.component_count; ++k) {
        const double difference = sums[k] / n - statistic.target[k];
        sum += statistic.weights[k] * difference * difference;
      }
      return std::sqrt(sum);
    }
    case Statistic::Kind::Largest:
      return *std::max_element(values.begin(), values.end());
  }
  expects(false, "a statistic of a known kind");
  return 0.0;
}

double value(const Statistic& statistic, std::span<const double> positions, std::size_t particle_count) {
  expects(particle_count > 0 && positions.size() % particle_count == 0, "positions: (particle, dimension)");
  const std::size_t d = positions.size() / particle_count, k = statistic.component_count;
  std::vector<double> values(particle_count * k), sums(k, 0.0);
  for (std::size_t i = 0; i < particle_count; ++i) {
    const std::span<double> own(values.data() + i * k, k);
    statistic.components(positions.subspan(i * d, d), own);
    for (std::size_t c = 0; c < k; ++c) sums[c] += own[c];
  }
  return value(statistic, sums, values, particle_count);
}

}  // namespace rieszflow::rare_event
