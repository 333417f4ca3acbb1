#pragma once
#include <cmath>
#include <filesystem>
#include <numbers>
#include <random>

#include "io/files.hpp"
#include "io/run_file.hpp"

/// Result folders whose content is known in closed form: the Ornstein-Uhlenbeck law with quadratic
/// interaction, V = |x|^2/2, W = |x-y|^2/4, beta = 2, started at N(0.7 e_1, 0.4^2), on a grid and as
/// independent samples.
namespace example {

using namespace rieszflow;

struct Options {
  std::size_t dimension = 1;
  std::size_t replicas = 4;
  bool particles = true;
  bool density = true;
  std::string status = "completed";
  double density_end = 2.0;
  double particle_end = 2.0;
};

inline double mean_at(double time) { return 0.7 * std::exp(-time); }
inline double variance_at(double time) { return 1.0 / 3.0 + (0.16 - 1.0 / 3.0) * std::exp(-3.0 * time); }
inline double free_energy_at(double time, double d) {
  const double v = variance_at(time);
  return d * (0.75 * v - 0.25 * std::log(2.0 * std::numbers::pi * std::numbers::e * v)) +
         0.5 * std::pow(mean_at(time), 2);
}

inline Density density_at(double time, std::size_t dimension) {
  const std::size_t cells = dimension == 1 ? 256 : dimension == 2 ? 48 : 16;
  Density density{.grid = {.lower = std::vector<double>(dimension, -3.0),
                           .upper = std::vector<double>(dimension, 3.0),
                           .cells = std::vector<std::size_t>(dimension, cells)},
                  .averages = {}};
  const double v = variance_at(time);
  std::vector<double> center(dimension);
  for (std::size_t cell = 0; cell < density.grid.cell_count(); ++cell) {
    density.grid.cell_center(cell, center);
    double exponent = 0.0;
    for (std::size_t axis = 0; axis < dimension; ++axis)
      exponent += std::pow(center[axis] - (axis == 0 ? mean_at(time) : 0.0), 2) / (2.0 * v);
    density.averages.push_back(std::exp(-exponent) /
                               std::pow(2.0 * std::numbers::pi * v, static_cast<double>(dimension) / 2.0));
  }
  return density;
}

inline void write(const std::filesystem::path& folder, const Options& options) {
  const double d = static_cast<double>(options.dimension);
  std::mt19937_64 generator(42);
  std::normal_distribution<double> normal;
  const std::string text = "[model]\ninverse_temperature = 2.0  # <beta> & \"quotes\"\n";
  io::RunFile run = io::RunFile::create(
      folder / "run.h5",
      {{"name", "ornstein_uhlenbeck"},
       {"model", "V(x) = 1 |x|^2 / 2; W(x, y) = 0.5 r^2 / 2; box [-3, 3]; beta = 2"},
       {"version", "0.1.0"},
       {"commit", "0123abc"},
       {"compiler", "GCC 12.2"},
       {"seed", "1"},
       {"command_line", "rieszflow run ou.toml --out \"out dir/ümlaut ρ\" <script>alert(1)</script>"},
       {"config", text},
       {"status", options.status}});
  const auto append = [&](const std::string& name, const std::string& units, const std::string& meaning,
                          const Clock& clock, std::vector<double> value, std::vector<double> error = {}) {
    run.append({.name = name,
                .units = units,
                .meaning = meaning,
                .columns = value.size(),
                .has_standard_error = !error.empty()},
               clock, value, error);
  };
  const std::size_t count = options.dimension == 1 ? 1000 : 500;
  for (int row = 0; row <= 40; ++row) {
    const double time = 0.05 * row;
    const Clock clock{.step = 10 * row, .time = time};
    const double v = variance_at(time), m = mean_at(time);
    const double potential = 0.5 * (d * v + m * m), interaction = 0.25 * d * v;
    const double entropy = 0.5 * d * std::log(2.0 * std::numbers::pi * std::numbers::e * v);
    if (options.density && time <= options.density_end) {
      append("density/free_energy", "energy", "F of (5)", clock, {free_energy_at(time, d)});
      append("density/potential_energy", "energy", "integral V rho", clock, {potential});
      append("density/interaction_energy", "energy", "half the double integral of W", clock, {interaction});
      append("density/entropy", "1", "differential entropy", clock, {entropy});
      append("density/dissipation", "energy/time", "-dF/dt of (6)", clock,
             {m * m + d * std::pow(1.5 * v - 0.5, 2) / v});
      append("density/mass", "1", "integral rho", clock, {1.0 + 2e-16});
      std::vector<double> mean(options.dimension, 0.0);
      mean[0] = m;
      append("density/mean", "length", "integral x rho", clock, mean);
      append("density/second_moment", "length^2", "integral |x|^2 rho", clock, {d * v + m * m});
      if (row % 5 == 0) run.append_density(clock, density_at(time, options.dimension));
    }
    if (options.particles && time <= options.particle_end) {
      const double nan = std::nan("");
      const auto noisy = [&](double value, double scale) {
        const double error = scale / std::sqrt(static_cast<double>(count * options.replicas));
        return std::pair{value + error * normal(generator), options.replicas > 1 ? error : nan};
      };
      const auto add = [&](const std::string& name, const std::string& units, double value, double scale) {
        const auto [estimate, error] = noisy(value, scale);
        append("particles/" + name, units, "estimate", clock, {estimate}, {error});
      };
      add("free_energy", "energy", free_energy_at(time, d), 0.5);
      add("potential_energy", "energy", potential, 0.5);
      add("interaction_energy", "energy", interaction, 0.3);
      add("entropy", "1", entropy, 0.8);
      std::vector<double> mean(options.dimension, 0.0), error(options.dimension, 0.0);
      for (std::size_t axis = 0; axis < options.dimension; ++axis)
        std::tie(mean[axis], error[axis]) = noisy(axis == 0 ? m : 0.0, std::sqrt(v));
      append("particles/mean", "length", "mean position", clock, mean, error);
      add("second_moment", "length^2", d * v + m * m, 0.7);
      if (row % 5 == 0) {
        ParticleEnsemble ensemble{.replica_count = options.replicas,
                                  .particle_count = count,
                                  .dimension = options.dimension,
                                  .positions = {}};
        for (std::size_t index = 0; index < options.replicas * count * options.dimension; ++index)
          ensemble.positions.push_back((index % options.dimension == 0 ? m : 0.0) +
                                       std::sqrt(v) * normal(generator));
        run.append_positions(clock, ensemble);
        if (options.density && time <= options.density_end) {
          for (const std::string name : {"wasserstein_1", "mmd"}) {
            const double expected = (name == "mmd" ? 0.4 : 1.0) * std::sqrt(v / static_cast<double>(count));
            append("comparison/" + name, name == "mmd" ? "1" : "length",
                   "mean over replicas of the distance of mu_N and rho_t", clock,
                   {expected * (1.0 + 0.1 * normal(generator))}, {0.1 * expected});
            append("comparison/" + name + "_reference", name == "mmd" ? "1" : "length",
                   "expected for N exact samples", clock, {expected}, {0.02 * expected});
          }
        }
      }
    }
  }
  run.commit();
  if (options.status == "completed")
    io::write_text(
        folder / "summary.json",
        "{\"status\": \"completed\", \"timing\": {\"density\": {\"seconds\": 0.0123, \"accepted_steps\": "
        "91}, "
        "\"particles\": {\"seconds\": 4.5, \"summation\": \"direct\"}, \"total_seconds\": 4.6}}\n");
}

}  // namespace example
