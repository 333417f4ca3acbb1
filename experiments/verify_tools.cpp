#include "experiments/verify_tools.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "solvers/rare_event/gibbs_chain.hpp"
#include "solvers/rare_event/ladder.hpp"
#include "solvers/stationary/rate_function.hpp"

namespace rieszflow::verify {
namespace {

constexpr double standard_errors = 4.0;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double interaction_energy(const rare_event::GibbsChain& chain) { return chain.interaction_energy(); }

InitialLaw scattered(const Domain& domain) {
  if (!std::holds_alternative<WholeSpace>(domain)) return UniformLaw{};
  const std::size_t d = dimension(domain);
  return GaussianLaw{std::vector<double>(d, 0.0), std::vector<double>(d, 1.0)};
}

/// Every later use of the numbers fails.
void spoil(std::vector<double>& values) { std::fill(values.begin(), values.end(), not_a_number); }

}  // namespace

Finding by_chance(const Estimate& measured, double expected) {
  return {.measured = measured,
          .expected = expected,
          .tolerance = standard_errors * measured.standard_error,
          .rule = fmt::format("{} standard errors", standard_errors)};
}

Finding by_resolution(const std::function<double(std::size_t cells)>& value, std::size_t cells, double order,
                      double expected) {
  const double coarse = value(cells), fine = value(2 * cells);
  return {.measured = {.value = fine, .standard_error = 0.0, .samples = 1},
          .expected = expected,
          .tolerance = 2.0 * std::abs(fine - coarse) / (std::pow(2.0, order) - 1.0),
          .rule = fmt::format("twice the error of order {:g} seen between {} and {} cells", order, cells,
                              2 * cells)};
}

Finding by_bound(double measured, double expected, double tolerance, std::string rule) {
  return {.measured = {.value = measured, .standard_error = 0.0, .samples = 1},
          .expected = expected,
          .tolerance = tolerance,
          .rule = std::move(rule)};
}

Density uniform(const Model& model, std::vector<std::size_t> cells) {
  const Grid grid = grid_on(model.domain, std::move(cells));
  return cell_averages(UniformLaw{}, model.domain, grid);
}

std::vector<double> averages(const Grid& grid, const std::function<double(double)>& function) {
  return stationary::cell_averages(grid, [&](std::span<const double> x) { return function(x[0]); });
}

double l1_distance(const Grid& grid, std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t cell = 0; cell < a.size(); ++cell) {
    const double fraction = grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell];
    sum += std::abs(a[cell] - b[cell]) * fraction;
  }
  return sum * grid.cell_volume();
}

stationary::Result minimiser(const Model& model, std::vector<std::size_t> cells) {
  return minimiser(model, uniform(model, std::move(cells)));
}

stationary::Result minimiser(const Model& model, const Density& start) {
  const MeanField field(model, start.grid, {});
  stationary::Result result = stationary::solve(field, start, {});
  if (result.status != RunStatus::Completed) {
    spoil(result.density.averages);
    result.energy.free_energy = not_a_number;
  }
  return result;
}

Density evolved(const Model& model, Density start, double end, double tolerance) {
  const MeanField field(model, start.grid, {});
  pde::State state{.density = std::move(start)};
  const pde::Options options{.tolerance = tolerance};
  const pde::Result result = pde::run(field, state, options, Schedule::at({0.0, end}), {}, {});
  if (result.status != RunStatus::Completed) spoil(state.density.averages);
  return std::move(state.density);
}

double at_face(const Density& density, double x) {
  const double h = density.grid.spacing(0);
  const auto face = static_cast<std::size_t>(std::lround((x - density.grid.lower[0]) / h));
  return 0.5 * (density.averages[face - 1] + density.averages[face]);
}

std::vector<Estimate> gibbs_means(const Model& model, std::size_t particle_count,
                                  const std::vector<Statistic>& statistics, std::size_t replicas,
                                  std::int64_t sweeps, const Effort& effort) {
  std::vector<std::vector<double>> means(statistics.size(), std::vector<double>(replicas, 0.0));
#pragma omp parallel for schedule(dynamic) num_threads(effort.threads)
  for (std::size_t r = 0; r < replicas; ++r) {
    rare_event::GibbsChain chain(model, particle_count, nullptr, effort.seed, r + 1);
    chain.scatter();
    rare_event::settle(chain, std::max<std::int64_t>(200, sweeps / 10), interaction_energy);
    for (std::int64_t s = 0; s < sweeps; ++s) {
      chain.sweep();
      for (std::size_t k = 0; k < statistics.size(); ++k) means[k][r] += statistics[k](chain.positions());
    }
    for (std::size_t k = 0; k < statistics.size(); ++k) means[k][r] /= static_cast<double>(sweeps);
  }
  std::vector<Estimate> estimates;
  for (const std::vector<double>& values : means) estimates.push_back(mean_estimate(values));
  return estimates;
}

Estimate gibbs_mean(const Model& model, std::size_t particle_count, const Statistic& statistic,
                    std::size_t replicas, std::int64_t sweeps, const Effort& effort) {
  return gibbs_means(model, particle_count, {statistic}, replicas, sweeps, effort).front();
}

Estimate langevin_mean(const Model& model, std::size_t replicas, std::size_t particle_count,
                       particle::Options options, double burn_in, double end, double spacing,
                       const Statistic& statistic, const Effort& effort) {
  std::vector<double> means(replicas, 0.0);
  double count = 0.0;
  options.seed = effort.seed;
  options.summation.threads = 1;  // a step is too short to share
  particle::State state{sample(scattered(model.domain), model.domain, replicas, particle_count, effort.seed),
                        {}};
  const RunResult result = particle::run(model, state, options, Schedule::every(spacing, 0.0, end),
                                         [&](const Clock& clock, const particle::State& now) {
                                           if (clock.time < burn_in) return;
                                           count += 1.0;
                                           for (std::size_t r = 0; r < replicas; ++r)
                                             means[r] += statistic(now.ensemble.replica(r));
                                         },
                                         {});
  if (result.status != RunStatus::Completed) spoil(means);
  for (double& mean : means) mean /= count;
  return mean_estimate(means);
}

ParticleEnsemble langevin_end(const Model& model, const InitialLaw& start, std::size_t replicas,
                              std::size_t particle_count, particle::Options options, double end,
                              const Effort& effort) {
  options.seed = effort.seed;
  options.summation.threads = 1;  // a step is too short to share
  particle::State state{sample(start, model.domain, replicas, particle_count, effort.seed), {}};
  const RunResult result = particle::run(model, state, options, Schedule::at({0.0, end}), {}, {});
  if (result.status != RunStatus::Completed) spoil(state.ensemble.positions);
  return std::move(state.ensemble);
}

Statistic particle_mean(std::function<double(double)> function) {
  return [function = std::move(function)](std::span<const double> positions) {
    double sum = 0.0;
    for (const double x : positions) sum += function(x);
    return sum / static_cast<double>(positions.size());
  };
}

plot::Figure density_figure(const std::string& title, const Density& measured,
                            const std::function<double(double)>& exact) {
  plot::Markers cells{.x = {}, .y = {}, .label = "grid", .size = 0.5};
  plot::Curve curve{.x = {}, .y = {}, .label = "exact", .ink = plot::Ink::Black};
  const Grid& grid = measured.grid;
  const std::size_t stride = std::max<std::size_t>(1, grid.cells[0] / 80);
  for (std::size_t i = 0; i < grid.cells[0]; ++i) {
    const double x = grid.center(0, i);
    curve.x.push_back(x);
    curve.y.push_back(exact(x));
    if (i % stride == stride / 2) {
      cells.x.push_back(x);
      cells.y.push_back(measured.averages[i]);
    }
  }
  return {.title = title,
          .x = {.label = "x  [length]"},
          .y = {.label = "ρ  [1/length]"},
          .layers = {curve, cells}};
}

}  // namespace rieszflow::verify
