// One model, two states: the mean of x^2 over 40 replicas of 500 particles and of the density, at a few
// times. Particles of one replica are correlated, so the standard error comes from the spread of the
// replicas.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "model/initial_law.hpp"
#include "model/mean_field.hpp"
#include "solvers/particle/langevin.hpp"
#include "solvers/pde/evolution.hpp"

using namespace rieszflow;

int main() {
  const Model model{.domain = Box{{-3.0}, {3.0}},
                    .potentials = {DoubleWellPotential{.height = 0.5, .width = 1.0}},
                    .interactions = {QuadraticInteraction{.strength = 0.7}},
                    .inverse_temperature = 4.0};
  if (const auto sentence = problem(model)) {
    std::fprintf(stderr, "%s\n", sentence->c_str());
    return 1;
  }
  const InitialLaw initial = GaussianLaw{.mean = {0.5}, .standard_deviation = {0.4}};
  const Schedule schedule = Schedule::every(0.5, 0.0, 2.0);

  std::map<double, double> of_density;
  const MeanField field(model, grid_on(model.domain, std::vector<std::size_t>{256}), {});
  pde::State density{.density = cell_averages(initial, model.domain, field.grid())};
  const pde::Result solved = pde::run(field, density, {}, schedule,
                                      [&](const Clock& clock, const pde::State& state) {
                                        of_density[clock.time] = second_moment(state.density);
                                      },
                                      {});

  constexpr std::size_t replicas = 40, count = 500;
  double largest = 0.0;  // difference in standard errors
  particle::State particles{.ensemble = sample(initial, model.domain, replicas, count, 1)};
  const particle::Result moved =
      particle::run(model, particles, {.timestep = 0.005, .seed = 1}, schedule,
                    [&](const Clock& clock, const particle::State& state) {
                      double sum = 0.0, squares = 0.0;
                      for (std::size_t replica = 0; replica < replicas; ++replica) {
                        double moment = 0.0;
                        for (std::size_t i = 0; i < count; ++i) {
                          const double x = state.ensemble.positions[replica * count + i];
                          moment += x * x / count;
                        }
                        sum += moment;
                        squares += moment * moment;
                      }
                      const double mean = sum / replicas;
                      const double error = std::sqrt((squares / replicas - mean * mean) / (replicas - 1));
                      std::printf("t = %.1f   particles %.4f(%.4f)   density %.4f\n", clock.time, mean, error,
                                  of_density[clock.time]);
                      largest = std::max(largest, std::abs(mean - of_density[clock.time]) / error);
                    },
                    {});

  std::printf("largest difference: %.1f standard errors\n", largest);
  return solved.status == RunStatus::Completed && moved.status == RunStatus::Completed && largest < 5.0 ? 0
                                                                                                        : 1;
}
