#pragma once
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#include "core/noise.hpp"
#include "domain/domain.hpp"
#include "model/model.hpp"
#include "solvers/particle/langevin.hpp"

namespace rieszflow::particle {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Mean {
  double value = 0.0;
  double standard_error = 0.0;
};

/// Mean and standard error of independent samples.
inline Mean mean_of(const std::vector<double>& samples) {
  const double n = static_cast<double>(samples.size());
  double sum = 0.0, squares = 0.0;
  for (const double x : samples) sum += x / n;
  for (const double x : samples) squares += (x - sum) * (x - sum);
  return {sum, std::sqrt(squares / (n * (n - 1.0)))};
}

/// Uniform positions in the bounding box, rejected outside of the domain.
inline ParticleEnsemble uniform_ensemble(const Domain& domain, std::size_t replicas, std::size_t particles,
                                         std::uint64_t seed = 1) {
  const std::size_t d = dimension(domain);
  const Box box = bounding_box(domain);
  ParticleEnsemble ensemble{replicas, particles, d, {}};
  const NoiseStream stream(seed, NoisePurpose::InitialPosition);
  std::vector<double> point(d);
  for (std::uint64_t draw = 0; ensemble.positions.size() < replicas * particles * d; ++draw) {
    stream.uniforms(0, draw, 0, point);
    for (std::size_t k = 0; k < d; ++k) point[k] = box.lower[k] + point[k] * (box.upper[k] - box.lower[k]);
    if (contains(domain, point))
      ensemble.positions.insert(ensemble.positions.end(), point.begin(), point.end());
  }
  return ensemble;
}

using Statistic = std::function<double(std::span<const double> replica)>;

/// Mean over particles of f(coordinate).
inline Statistic particle_mean(std::function<double(double)> f) {
  return [f = std::move(f)](std::span<const double> x) {
    double sum = 0.0;
    for (const double c : x) sum += f(c);
    return sum / static_cast<double>(x.size());
  };
}

/// Time average after `burn_in`, replicas as independent samples. Averages use the times every `spacing`.
inline Mean stationary_mean(const Model& model, ParticleEnsemble ensemble, const Options& options,
                            double burn_in, double end, double spacing, const Statistic& statistic) {
  std::vector<double> sums(ensemble.replica_count, 0.0);
  std::size_t count = 0;
  State state{std::move(ensemble), {}};
  run(model, state, options, Schedule::every(spacing, 0.0, end),
      [&](const Clock& clock, const State& s) {
        if (clock.time < burn_in) return;
        ++count;
        for (std::size_t r = 0; r < sums.size(); ++r) sums[r] += statistic(s.ensemble.replica(r));
      },
      {});
  for (double& sum : sums) sum /= static_cast<double>(count);
  return mean_of(sums);
}

}  // namespace rieszflow::particle
