// Bias and spread of the entropy and density estimators on laws with a known answer.
//   bench_estimators [REPETITIONS]     default 100 of each row
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "analysis/density_estimate.hpp"
#include "analysis/entropy.hpp"
#include "analysis/estimate.hpp"
#include "analysis/exact.hpp"
#include "analysis/sampling.hpp"
#include "core/noise.hpp"
#include "domain/grid.hpp"

namespace {

using namespace rieszflow;

constexpr std::size_t replicas = 16;

/// A law with a density that is known: independent particles of it.
struct Law {
  std::string name;
  Domain domain;
  double entropy = 0.0;
  std::function<ParticleEnsemble(std::size_t particles, std::uint64_t seed)> sample;
  std::function<double(std::span<const double>)> density;
  Grid grid{};  ///< of the density estimate; none for a ball
};

/// The exact law of one axis as cell averages fine enough to be exact here.
Density line(const Box& box, const std::function<double(double)>& density) {
  Density law{grid_on(box, {8192}), {}};
  double mass = 0.0;
  for (std::size_t cell = 0; cell < 8192; ++cell) {
    law.averages.push_back(density(law.grid.center(0, cell)));
    mass += law.averages.back() * law.grid.cell_volume();
  }
  for (double& value : law.averages) value /= mass;
  return law;
}

double entropy_of(const Density& law) {
  double sum = 0.0;
  for (const double value : law.averages) sum -= value * std::log(value) * law.grid.cell_volume();
  return sum;
}

Law gaussian(std::size_t d) {
  const double dimensions = static_cast<double>(d);
  const auto sample = [d](std::size_t particles, std::uint64_t seed) {
    ParticleEnsemble ensemble{replicas, particles, d, std::vector<double>(replicas * particles * d)};
    const NoiseStream noise(seed, NoisePurpose::ReferenceSample);
    for (std::size_t r = 0; r < replicas; ++r) noise.gaussian_block(r, 0, particles, d, ensemble.replica(r));
    return ensemble;
  };
  const auto density = [](std::span<const double> x) {
    double exponent = 0.0;
    for (const double c : x) exponent -= 0.5 * c * c + 0.5 * std::log(2.0 * std::numbers::pi);
    return std::exp(exponent);
  };
  const std::size_t cells = d == 1 ? 1200 : d == 2 ? 120 : 48;
  return {.name = "Gaussian",
          .domain = WholeSpace{d},
          .entropy = 0.5 * dimensions * std::log(2.0 * std::numbers::pi * std::numbers::e),
          .sample = sample,
          .density = density,
          .grid = {std::vector<double>(d, -6.0), std::vector<double>(d, 6.0),
                   std::vector<std::size_t>(d, cells)}};
}

/// The product of one law over d axes of a box.
Law product(std::string name, std::size_t d, const std::function<double(double)>& density) {
  const Box side{{-1.0}, {1.0}}, box{std::vector<double>(d, -1.0), std::vector<double>(d, 1.0)};
  const Density law = line(side, density);
  const auto sample = [law, side, d](std::size_t particles, std::uint64_t seed) {
    ParticleEnsemble ensemble{replicas, particles, d, std::vector<double>(replicas * particles * d)};
    for (std::size_t k = 0; k < d; ++k) {
      const ParticleEnsemble axis = independent_samples(law, side, replicas, particles, seed + 1000003 * k);
      for (std::size_t i = 0; i < replicas * particles; ++i)
        ensemble.positions[i * d + k] = axis.positions[i];
    }
    return ensemble;
  };
  const auto value = [law](std::span<const double> x) {
    double result = 1.0;
    for (const double c : x) result *= law.averages[law.grid.cell_of({&c, 1})];
    return result;
  };
  const std::size_t cells = d == 1 ? 400 : d == 2 ? 80 : 32;
  return {.name = std::move(name),
          .domain = box,
          .entropy = static_cast<double>(d) * entropy_of(law),
          .sample = sample,
          .density = value,
          .grid = grid_on(box, std::vector<std::size_t>(d, cells))};
}

/// The limit of W = -log r on the unit disc: r^2 = u (4 + beta)/(4 + beta u) for a uniform u.
Law disc(double beta) {
  const auto sample = [beta](std::size_t particles, std::uint64_t seed) {
    ParticleEnsemble ensemble{replicas, particles, 2, std::vector<double>(replicas * particles * 2)};
    const NoiseStream noise(seed, NoisePurpose::ReferenceSample);
    for (std::size_t i = 0; i < replicas * particles; ++i) {
      double u[2];
      noise.uniforms(0, 0, i, u);
      const double radius = std::sqrt(u[0] * (4.0 + beta) / (4.0 + beta * u[0]));
      ensemble.positions[2 * i] = radius * std::cos(2.0 * std::numbers::pi * u[1]);
      ensemble.positions[2 * i + 1] = radius * std::sin(2.0 * std::numbers::pi * u[1]);
    }
    return ensemble;
  };
  double entropy = 0.0;
  constexpr int nodes = 100000;
  for (int i = 0; i < nodes; ++i) {
    const double u = (i + 0.5) / nodes;
    entropy -=
        std::log(exact::log_gas_on_disc_density(beta, std::sqrt(u * (4.0 + beta) / (4.0 + beta * u)))) /
        nodes;
  }
  return {.name = fmt::format("log gas, disc, beta = {:g}", beta),
          .domain = Ball{{0.0, 0.0}, 1.0},
          .entropy = entropy,
          .sample = sample,
          .density = {}};
}

std::vector<Law> laws() {
  std::vector<Law> result;
  for (const std::size_t d : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) result.push_back(gaussian(d));
  for (const std::size_t d : {std::size_t{1}, std::size_t{2}, std::size_t{3}})
    result.push_back(product("V = 3x per axis, box", d, [](double x) { return std::exp(-3.0 * x); }));
  result.push_back(product("log gas, interval, beta = 10", 1, [](double x) {
    return exact::log_gas_on_interval_density(10.0, std::clamp(x, -0.9999, 0.9999));
  }));
  result.push_back(disc(10.0));
  return result;
}

std::uint64_t seed_of(std::size_t law, std::size_t particles, std::size_t repetition) {
  return 1 + repetition + 1000 * particles + 1000000000ULL * law;
}

void entropies(std::size_t repetitions) {
  fmt::print("## Entropy, {} replicas pooled\n\n", replicas);
  fmt::print(
      "| law | d | N | exact | bias | error of the bias | spread of one estimate | its stated error |\n");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  const std::vector<Law> all = laws();
  for (std::size_t l = 0; l < all.size(); ++l) {
    for (const std::size_t particles : {std::size_t{25}, std::size_t{100}, std::size_t{400}}) {
      std::vector<double> errors;
      double stated = 0.0;
      for (std::size_t r = 0; r < repetitions; ++r) {
        const EntropyEstimate e = entropy(all[l].sample(particles, seed_of(l, particles, r)), all[l].domain);
        errors.push_back(e.estimate.value - all[l].entropy);
        stated += e.estimate.standard_error / static_cast<double>(repetitions);
      }
      const Estimate bias = mean_estimate(errors);
      fmt::print("| {} | {} | {} | {:.5f} | {:.5f} | {:.5f} | {:.5f} | {:.5f} |\n", all[l].name,
                 dimension(all[l].domain), particles, all[l].entropy, bias.value, bias.standard_error,
                 bias.standard_error * std::sqrt(static_cast<double>(repetitions)), stated);
      std::fflush(stdout);
    }
  }
}

void densities(std::size_t repetitions) {
  fmt::print("\n## Kernel density with reflection, {} replicas pooled\n\n", replicas);
  fmt::print(
      "| law | d | N | bandwidth | L1 error | L1 of the mean estimate | exact at the wall | estimate there | "
      "without reflection |\n|---|---|---|---|---|---|---|---|---|\n");
  const std::vector<Law> all = laws();
  for (std::size_t l = 0; l < all.size(); ++l) {
    const Law& law = all[l];
    if (law.grid.dimension() == 0) continue;
    const std::size_t d = law.grid.dimension(), cells = law.grid.cell_count();
    std::vector<double> truth(cells), point(d);
    for (std::size_t c = 0; c < cells; ++c) {
      law.grid.cell_center(c, point);
      truth[c] = law.density(point);
    }
    const auto l1 = [&](const std::vector<double>& values) {
      double sum = 0.0;
      for (std::size_t c = 0; c < cells; ++c) sum += std::abs(values[c] - truth[c]) * law.grid.cell_volume();
      return sum;
    };
    // The middle of the wall x_1 = -1, where V = 3x has its largest density.
    std::vector<double> at(d, 1e-6);
    at[0] = law.grid.lower[0];
    const std::size_t wall = law.grid.cell_of(at);
    for (const std::size_t particles : {std::size_t{25}, std::size_t{100}, std::size_t{400}}) {
      double error = 0.0, bandwidth = 0.0, bare = 0.0;
      std::vector<double> mean(cells, 0.0);
      for (std::size_t r = 0; r < repetitions; ++r) {
        const ParticleEnsemble sample = law.sample(particles, seed_of(l, particles, r));
        const DensityEstimate e = kernel_density(sample, law.domain, law.grid);
        const double share = 1.0 / static_cast<double>(repetitions);
        error += l1(e.density.averages) * share;
        bandwidth += e.bandwidths[0] * share;
        bare += kernel_density(sample, WholeSpace{d}, law.grid).density.averages[wall] * share;
        for (std::size_t c = 0; c < cells; ++c) mean[c] += e.density.averages[c] * share;
      }
      const bool walls = std::holds_alternative<Box>(law.domain);
      fmt::print("| {} | {} | {} | {:.4f} | {:.4f} | {:.4f} | {} |\n", law.name, d, particles, bandwidth,
                 error, l1(mean),
                 walls ? fmt::format("{:.4f} | {:.4f} | {:.4f}", truth[wall], mean[wall], bare)
                       : std::string("- | - | -"));
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::size_t repetitions = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 100;
  if (repetitions < 2) {
    fmt::print(stderr, "bench_estimators [REPETITIONS]: at least 2\n");
    return 1;
  }
  entropies(repetitions);
  densities(std::max<std::size_t>(2, repetitions / 4));
  return 0;
}
