// Cost of the density solver in units of its floor, one forward and one inverse real transform of the padded
// grid.
//
//   bench_density            prints, per grid: the pair (FFTW_MEASURE plans), one right-hand side (W*rho and
//   the
//                            Scharfetter-Gummel rates), one accepted semi-implicit step, and the ratios.
//
// Processor time, best of several repetitions, one thread.
#include <fftw3.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "model/mean_field.hpp"
#include "solvers/pde/evolution.hpp"
#include "solvers/pde/scharfetter_gummel.hpp"

namespace {

using namespace rieszflow;

/// Processor time of this process: what other programs on the machine take is not counted.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double best_seconds(const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity(), total = 0.0;
  for (int repetition = 0; repetition < 200 && (repetition < 3 || total < 0.5); ++repetition) {
    const double begin = processor_seconds();
    work();
    const double seconds = processor_seconds() - begin;
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

double pair_seconds(const std::vector<std::size_t>& cells) {
  std::vector<int> length;
  std::size_t real_size = 1, complex_size = 1;
  for (std::size_t axis = 0; axis < cells.size(); ++axis) {
    length.push_back(static_cast<int>(2 * cells[axis]));
    real_size *= 2 * cells[axis];
    complex_size *= axis + 1 == cells.size() ? cells[axis] + 1 : 2 * cells[axis];
  }
  double* real = fftw_alloc_real(real_size);
  fftw_complex* transform = fftw_alloc_complex(complex_size);
  const int rank = static_cast<int>(cells.size());
  fftw_plan forward = fftw_plan_dft_r2c(rank, length.data(), real, transform, FFTW_MEASURE);
  fftw_plan backward = fftw_plan_dft_c2r(rank, length.data(), transform, real, FFTW_MEASURE);
  std::fill(real, real + real_size, 1.0);
  const double seconds = best_seconds([&] {
    fftw_execute(forward);
    fftw_execute(backward);
    const double scale = 1.0 / static_cast<double>(real_size);
    real[0] *= scale;
  });
  fftw_destroy_plan(forward);
  fftw_destroy_plan(backward);
  fftw_free(real);
  fftw_free(transform);
  return seconds;
}

/// V = 4 (x^2 - 1/4)^2 per axis; a repulsive core with an attractive ring.
Model test_model(std::size_t dimension) {
  return Model{Box{std::vector<double>(dimension, -1.0), std::vector<double>(dimension, 1.0)},
               {DoubleWellPotential{0.25, 0.5}},
               {GaussianInteraction{1.0, 0.1}, GaussianInteraction{-0.5, 0.3}},
               20.0};
}

void report(const std::vector<std::size_t>& cells) {
  const std::size_t dimension = cells.size();
  const Model model = test_model(dimension);
  const Grid grid = grid_on(model.domain, cells);
  const double set_up = processor_seconds();
  const MeanField field(model, grid, {});
  const double set_up_seconds = processor_seconds() - set_up;
  pde::State state{.density = {grid, std::vector<double>(grid.cell_count())}, .clock = {}};
  double sum = 0.0;
  std::vector<double> centre(dimension);
  for (std::size_t cell = 0; cell < grid.cell_count(); ++cell) {
    grid.cell_center(cell, centre);
    state.density.averages[cell] =
        1.0 + 0.5 * std::sin(2.0 * centre[0]) + 0.2 * std::cos(3.0 * centre.back());
    sum += state.density.averages[cell];
  }
  for (double& value : state.density.averages) value /= sum * grid.cell_volume();

  const double pair = pair_seconds(cells);
  std::vector<double> potential(grid.cell_count()), rate(grid.cell_count());
  pde::ScharfetterGummel fluxes(grid, model.inverse_temperature, 1);
  const double convolution =
      best_seconds([&] { field.interaction_potential(state.density.averages, potential); });
  const double right_hand_side = best_seconds([&] {
    field.interaction_potential(state.density.averages, potential);
    const std::span<const double> external = field.external_potential();
    for (std::size_t i = 0; i < potential.size(); ++i) potential[i] += external[i];
    fluxes.rate_of_change(potential, state.density.averages, rate);
  });
  const double sweep =
      best_seconds([&] { fluxes.implicit_step(potential, 1e-3, state.density.averages, rate); });
  // Accepted steps of a run with a fixed timestep.
  const int steps = grid.cell_count() > 100000 ? 12 : 60;
  const double step = best_seconds([&] {
                        pde::State copy = state;
                        pde::run(field, copy, {.timestep = 1e-4}, Schedule::at({0.0, 1e-4 * steps}), {}, {});
                      }) /
                      steps;
  std::string name;
  for (const std::size_t n : cells) name += (name.empty() ? "" : " x ") + std::to_string(n);
  std::printf(
      "%-18s pair %9.3f ms | W*rho %5.2f | right-hand side %5.2f | implicit step %5.2f | accepted step %5.2f "
      "pairs | set-up %6.1f pairs\n",
      name.c_str(), 1e3 * pair, convolution / pair, right_hand_side / pair, sweep / pair, step / pair,
      set_up_seconds / pair);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  const bool quick = count > 1 && std::string(arguments[1]) == "--quick";
  for (const std::size_t n : {4096U, 65536U, 1048576U}) report({n});
  for (const std::size_t n : {256U, 512U, 1024U}) {
    if (!quick || n < 1024) report({n, n});
  }
  for (const std::size_t n : {32U, 64U, 128U}) {
    if (!quick || n < 128) report({n, n, n});
  }
  return 0;
}
