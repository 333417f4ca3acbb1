// Cost of the density solver.
//
//   bench_density grids [THREADS] [GRID...]   per grid (65536, 256x256, 64x64x64, ...): one forward and one
//   inverse
//                                             real FFTW transform of the padded grid (FFTW_MEASURE), and in
//                                             units of that pair W*rho, a right-hand side, an implicit step,
//                                             an accepted semi-implicit step; memory in doubles per cell
//                                             beyond the padded transform
//   bench_density schemes [GRID] [BETA]       seconds and L1 error of every scheme up to t = 1
//   bench_density stiff                       the same for a repulsive log gas at beta = 10, 100, 1000
//
// Processor time of the whole process, best of several repetitions.
#include <fftw3.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "model/mean_field.hpp"
#include "potentials/expression.hpp"
#include "solvers/pde/evolution.hpp"
#include "solvers/pde/scharfetter_gummel.hpp"

namespace {

using namespace rieszflow;
using Cells = std::vector<std::size_t>;

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Processor time with one thread: what other programs on the machine take is not counted. With more, elapsed
/// time.
double best_seconds(const std::function<void()>& work, int threads) {
  const clockid_t clock = threads > 1 ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
  double best = std::numeric_limits<double>::infinity(), total = 0.0;
  for (int repetition = 0; repetition < 200 && (repetition < 3 || total < 0.4); ++repetition) {
    const double begin = seconds_of(clock);
    work();
    const double seconds = seconds_of(clock) - begin;
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

std::size_t heap_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

double pair_seconds(const Cells& cells) {
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
  fftw_set_timelimit(20.0);
  double seconds = std::numeric_limits<double>::infinity();
  for (const unsigned effort : {FFTW_ESTIMATE, FFTW_MEASURE, FFTW_MEASURE}) {
    fftw_plan forward = fftw_plan_dft_r2c(rank, length.data(), real, transform, effort);
    fftw_plan backward = fftw_plan_dft_c2r(rank, length.data(), transform, real, effort);
    std::fill(real, real + real_size, 1.0);
    seconds = std::min(seconds, best_seconds(
                                    [&] {
                                      fftw_execute(forward);
                                      fftw_execute(backward);
                                      real[0] /= static_cast<double>(real_size);
                                    },
                                    1));
    fftw_destroy_plan(forward);
    fftw_destroy_plan(backward);
    fftw_forget_wisdom();
  }
  fftw_free(real);
  fftw_free(transform);
  return seconds;
}

/// V = 4 (x^2 - 1/4)^2 + y^2 + 0.3 x y; a repulsive core with an attractive ring.
Model test_model(std::size_t dimension, double inverse_temperature) {
  const std::string text = dimension == 1 ? "4*(x^2-0.25)^2" : "4*(x^2-0.25)^2+y^2+0.3*x*y";
  const std::vector<std::string> names{"x", "y", "z"};
  return Model{
      Box{std::vector<double>(dimension, -1.0), std::vector<double>(dimension, 1.0)},
      {ExpressionPotential{std::make_shared<ExpressionFunction>(
          text, std::vector<std::string>(names.begin(), names.begin() + static_cast<long>(dimension)))}},
      {GaussianInteraction{1.0, 0.1}, GaussianInteraction{-0.5, 0.3}},
      inverse_temperature};
}

pde::State start_on(const Grid& grid) {
  pde::State state{.density = {grid, std::vector<double>(grid.cell_count())}, .clock = {}};
  double sum = 0.0;
  std::vector<double> centre(grid.dimension());
  for (std::size_t cell = 0; cell < grid.cell_count(); ++cell) {
    grid.cell_center(cell, centre);
    state.density.averages[cell] =
        1.0 + 0.5 * std::sin(2.0 * centre[0]) + 0.2 * std::cos(3.0 * centre.back());
    sum += state.density.averages[cell];
  }
  for (double& value : state.density.averages) value /= sum * grid.cell_volume();
  return state;
}

std::string text_of(const Cells& cells) {
  std::string text;
  for (const std::size_t n : cells) text += (text.empty() ? "" : "x") + std::to_string(n);
  return text;
}

Cells cells_of(const std::string& text) {
  Cells cells;
  for (std::size_t at = 0; at < text.size();
       at = text.find('x', at) == std::string::npos ? text.size() : text.find('x', at) + 1)
    cells.push_back(static_cast<std::size_t>(std::atoll(text.c_str() + at)));
  return cells;
}

void report_grid(const Cells& cells, int threads) {
  const std::size_t dimension = cells.size();
  const double pair = pair_seconds(cells);
  const Model model = test_model(dimension, 20.0);
  const Grid grid = grid_on(model.domain, cells);
  const pde::State state = start_on(grid);
  const std::size_t heap = heap_in_use();
  const MeanField field(model, grid, {.threads = threads});
  const auto best = [&](const std::function<void()>& work) { return best_seconds(work, threads); };
  std::size_t largest_heap = 0;
  const auto run_steps = [&](int steps) {
    pde::State copy = state;
    pde::run(field, copy, {.scheme = pde::Scheme::SemiImplicit, .timestep = 1e-4},
             Schedule::at({0.0, 1e-4 * steps}), {}, [&](const Clock&) -> std::optional<RunStatus> {
               largest_heap = std::max(largest_heap, heap_in_use());
               return {};
             });
  };
  const int steps = grid.cell_count() > 100000 ? 4 : 20;
  const double short_run = best([&] { run_steps(steps); }), long_run = best([&] { run_steps(3 * steps); });
  const double step = (long_run - short_run) / (2 * steps);
  double padded = 2.0;
  for (std::size_t axis = 0; axis < dimension; ++axis)
    padded *= static_cast<double>(axis + 1 == dimension ? cells[axis] + 1 : 2 * cells[axis]);
  const double memory = (static_cast<double>(largest_heap - heap) / sizeof(double) - padded) /
                        static_cast<double>(grid.cell_count());

  std::vector<double> potential(grid.cell_count()), rate(grid.cell_count());
  pde::ScharfetterGummel fluxes(grid, model.inverse_temperature, threads);
  const double convolution = best([&] { field.interaction_potential(state.density.averages, potential); });
  const double right_hand_side = best([&] {
    field.interaction_potential(state.density.averages, potential);
    const std::span<const double> external = field.external_potential();
    for (std::size_t i = 0; i < potential.size(); ++i) potential[i] += external[i];
    fluxes.rate_of_change(potential, state.density.averages, rate);
  });
  const double sweep = best([&] { fluxes.implicit_step(potential, 1e-3, state.density.averages, rate); });
  std::printf(
      "%-12s %d thread%s pair %8.3f ms | W*rho %5.2f | right-hand side %5.2f | implicit step %5.2f | "
      "accepted "
      "step %5.2f pairs = %8.3f ms | %5.1f doubles per cell beyond the transform\n",
      text_of(cells).c_str(), threads, threads > 1 ? "s" : " ", 1e3 * pair, convolution / pair,
      right_hand_side / pair, sweep / pair, step / pair, 1e3 * step, memory);
  std::fflush(stdout);
}

/// Seconds and errors at t = 1/20, 1/5 and 1 of the semi-discrete solution.
using Path = std::vector<std::vector<double>>;

Path path_of(const MeanField& field, const pde::State& start, const pde::Options& options,
             const std::vector<double>& times, pde::Result& result, double& seconds) {
  Path path;
  pde::State state = start;
  const double begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  result = pde::run(field, state, options, Schedule::at(times),
                    [&](const Clock& clock, const pde::State& seen) {
                      if (clock.time > 0.0) path.push_back(seen.density.averages);
                    },
                    {});
  seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
  return path;
}

void compare(const MeanField& field, const pde::State& start, const std::vector<double>& times,
             const std::vector<std::pair<pde::Scheme, std::vector<double>>>& trials,
             double reference_tolerance) {
  pde::Result result;
  double seconds = 0.0;
  const Path exact =
      path_of(field, start, {.scheme = pde::Scheme::SemiImplicit, .tolerance = reference_tolerance}, times,
              result, seconds);
  for (const auto& [scheme, tolerances] : trials) {
    for (const double tolerance : tolerances) {
      const Path path =
          path_of(field, start, {.scheme = scheme, .tolerance = tolerance}, times, result, seconds);
      double error = 0.0;
      for (std::size_t k = 0; k < path.size(); ++k) {
        double distance = 0.0;
        for (std::size_t i = 0; i < path[k].size(); ++i) distance += std::abs(path[k][i] - exact[k][i]);
        error = std::max(error, distance * field.grid().cell_volume());
      }
      std::printf("  %-22s tolerance %7.0e  largest L1 error %8.1e  %8.3f s  %6lld steps  (%s)\n",
                  std::string(pde::name(scheme)).c_str(), tolerance, error, seconds,
                  static_cast<long long>(result.statistics.accepted),
                  std::string(name(result.status)).c_str());
      std::fflush(stdout);
    }
  }
}

void report_schemes(const Cells& cells, double beta) {
  const Model model = test_model(cells.size(), beta);
  const Grid grid = grid_on(model.domain, cells);
  const MeanField field(model, grid, {});
  std::printf("%s, beta = %g, t = 0.05, 0.2, 1\n", text_of(cells).c_str(), beta);
  std::vector<std::pair<pde::Scheme, std::vector<double>>> trials{
      {pde::Scheme::SemiImplicit, {5e-4, 5e-5}},
      {pde::Scheme::EnergyStable, {1e-2}},
      {pde::Scheme::StabilisedExplicit, {2e-3, 2e-4}}};
  if (grid.cell_count() <= 256) trials.push_back({pde::Scheme::MethodOfLines, {1e-4}});
  compare(field, start_on(grid), {0.0, 0.05, 0.2, 1.0}, trials, 2e-6);
}

void report_stiff() {
  for (const double beta : {10.0, 100.0, 1000.0}) {
    const Model model{Box{{-1.0}, {1.0}}, {}, {LogarithmicInteraction{}}, beta};
    const Grid grid = grid_on(model.domain, {1024});
    const MeanField field(model, grid, {});
    std::printf("log gas on [-1, 1], 1024 cells, beta = %g, t = 0.5\n", beta);
    compare(field, start_on(grid), {0.0, 0.5},
            {{pde::Scheme::SemiImplicit, {3e-4}},
             {pde::Scheme::EnergyStable, {1e-2}},
             {pde::Scheme::StabilisedExplicit, {1e-3}}},
            1e-6);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const std::string what = words.empty() ? "grids" : words[0];
  if (what == "schemes") {
    report_schemes(words.size() > 1 ? cells_of(words[1]) : Cells{256, 256},
                   words.size() > 2 ? std::atof(words[2].c_str()) : 20.0);
  } else if (what == "stiff") {
    report_stiff();
  } else {
    const int threads = words.size() > 1 ? std::max(1, std::atoi(words[1].c_str())) : 1;
    std::vector<std::string> grids(words.begin() + std::min<long>(2, static_cast<long>(words.size())),
                                   words.end());
    if (grids.empty()) {
      grids = {"4096",      "65536",    "1048576",  "256x256",    "512x512",
               "1024x1024", "32x32x32", "64x64x64", "128x128x128"};
    }
    for (const std::string& grid : grids) report_grid(cells_of(grid), threads);
  }
  return 0;
}
