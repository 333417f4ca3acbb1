// Direct pair sums against the processor's own limit and against a plain loop, one thread, CPU time. Run:
//   cmake -DRIESZFLOW_BENCHMARKS=ON ... && ninja bench_pair_sum && ./bench_pair_sum
// Counters: pairs/s are ordered pairs N (N-1) a second; the first benchmark is the multiply-add peak of one
// core.
#include "summation/pair_sum.hpp"

#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/noise.hpp"
#include "model/model.hpp"

namespace {

using namespace rieszflow;

/// Sixteen chains of independent vector multiply-adds: the peak that every rate below may be divided by.
#if defined(__x86_64__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), noinline))
#endif
double
multiply_add_chains(int repetitions) {
  using Vec = double __attribute__((vector_size(64)));
  Vec a[16];
  for (int i = 0; i < 16; ++i) a[i] = Vec{} + static_cast<double>(i);
  for (int r = 0; r < repetitions; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) a[i] = a[i] * 0.999 + 0.01;
  }
  double sum = 0.0;
  for (int i = 0; i < 16; ++i) sum += a[i][0];
  return sum;
}

void multiply_add_peak(benchmark::State& state) {
  const int repetitions = 100000;
  for (auto _ : state) benchmark::DoNotOptimize(multiply_add_chains(repetitions));
  state.counters["flop/s"] = benchmark::Counter(
      16.0 * 16.0 * repetitions * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(multiply_add_peak);

std::vector<double> cloud(std::size_t count, std::size_t dimension) {
  std::vector<double> positions(count * dimension);
  NoiseStream(5, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, positions);
  for (double& x : positions) x = 2.0 * x - 1.0;
  return positions;
}

/// What one writes first: all ordered pairs, the library's pow and log, no blocking.
void plain_loop(benchmark::State& state, double exponent) {
  const auto n = static_cast<std::size_t>(state.range(0)), d = static_cast<std::size_t>(state.range(1));
  const auto x = cloud(n, d);
  std::vector<double> forces(x.size());
  for (auto _ : state) {
    double energy = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (i == j) continue;
        double squared = 0.0;
        for (std::size_t k = 0; k < d; ++k)
          squared += (x[i * d + k] - x[j * d + k]) * (x[i * d + k] - x[j * d + k]);
        const double power = std::pow(squared, -0.5 * exponent - 1.0);
        energy += exponent == 0.0 ? -0.5 * std::log(squared) : power * squared;
        for (std::size_t k = 0; k < d; ++k) forces[i * d + k] += power * (x[i * d + k] - x[j * d + k]);
      }
    }
    benchmark::DoNotOptimize(energy);
    benchmark::DoNotOptimize(forces.data());
  }
  state.counters["pairs/s"] = benchmark::Counter(
      static_cast<double>(n) * static_cast<double>(n - 1) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

void pair_sum(benchmark::State& state, const Interaction& interaction, bool with_energy,
              PairSum::Method method, double tolerance,
              PairSum::Precision precision = PairSum::Precision::Double) {
  const auto n = static_cast<std::size_t>(state.range(0)), d = static_cast<std::size_t>(state.range(1));
  const Model model{WholeSpace{d}, {}, {interaction}, 1.0};
  const PairSum sum(model, n, {.method = method, .precision = precision, .tolerance = tolerance});
  const auto x = cloud(n, d);
  std::vector<double> forces(x.size(), 0.0);
  double energy = 0.0;
  sum.add_forces(x, 1, forces);  // the mesh is prepared once, on the first call
  for (auto _ : state) {
    if (with_energy) {
      sum.add_forces(x, 1, forces, std::span(&energy, 1));
    } else {
      sum.add_forces(x, 1, forces);
    }
    benchmark::DoNotOptimize(forces.data());
  }
  state.counters["pairs/s"] = benchmark::Counter(
      static_cast<double>(n) * static_cast<double>(n - 1) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

/// Many small systems at once: range(0) replicas of range(1) particles in the plane.
void replicas(benchmark::State& state, const Interaction& interaction) {
  const auto count = static_cast<std::size_t>(state.range(0)), n = static_cast<std::size_t>(state.range(1));
  const Model model{WholeSpace{2}, {}, {interaction}, 1.0};
  const PairSum sum(model, n, {.method = PairSum::Method::Direct});
  const auto x = cloud(count * n, 2);
  std::vector<double> forces(x.size(), 0.0);
  for (auto _ : state) {
    sum.add_forces(x, count, forces);
    benchmark::DoNotOptimize(forces.data());
  }
  state.counters["pairs/s"] =
      benchmark::Counter(static_cast<double>(count) * static_cast<double>(n) * static_cast<double>(n - 1) *
                             static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

/// Wall time with range(1) threads, N = range(0) in the plane: needs a quiet machine.
void threads(benchmark::State& state, const Interaction& interaction) {
  const auto n = static_cast<std::size_t>(state.range(0));
  const Model model{WholeSpace{2}, {}, {interaction}, 1.0};
  const PairSum sum(model, n,
                    {.method = PairSum::Method::Direct, .threads = static_cast<int>(state.range(1))});
  const auto x = cloud(n, 2);
  std::vector<double> forces(x.size(), 0.0);
  for (auto _ : state) {
    sum.add_forces(x, 1, forces);
    benchmark::DoNotOptimize(forces.data());
  }
}

/// The noise of one Langevin step of range(0) particles in the plane, beside its pair sum above.
void noise(benchmark::State& state) {
  const auto n = static_cast<std::size_t>(state.range(0));
  const NoiseStream stream(1, NoisePurpose::LangevinIncrement);
  std::vector<double> gaussians(2 * n);
  std::uint64_t step = 0;
  for (auto _ : state) {
    stream.gaussian_block(0, step++, n, 2, gaussians);
    benchmark::DoNotOptimize(gaussians.data());
  }
}

const Interaction logarithm = LogarithmicInteraction{}, coulomb = RieszInteraction{.exponent = 1.0},
                  riesz = RieszInteraction{.exponent = 0.7};
constexpr auto direct = PairSum::Method::Direct;
constexpr auto single = PairSum::Precision::Single;

BENCHMARK_CAPTURE(plain_loop, log, 0.0)->ArgsProduct({{1000}, {1, 2}});
BENCHMARK_CAPTURE(plain_loop, coulomb, 1.0)->Args({1000, 3});
BENCHMARK_CAPTURE(plain_loop, riesz_0_7, 0.7)->ArgsProduct({{1000}, {1, 2, 3}});
BENCHMARK_CAPTURE(pair_sum, log_force, logarithm, false, direct, 1e-6)
    ->ArgsProduct({{100, 1000, 10000, 100000}, {1, 2, 3}});
BENCHMARK_CAPTURE(pair_sum, log_force_single, logarithm, false, direct, 1e-6, single)
    ->ArgsProduct({{1000, 10000}, {1, 2, 3}});
BENCHMARK_CAPTURE(pair_sum, coulomb_force_energy_single, coulomb, true, direct, 1e-6, single)
    ->ArgsProduct({{1000, 10000}, {3}});
BENCHMARK_CAPTURE(pair_sum, riesz_0_7_force_energy_single, riesz, true, direct, 1e-6, single)
    ->ArgsProduct({{10000}, {1, 2, 3}});
BENCHMARK_CAPTURE(pair_sum, log_force_energy, logarithm, true, direct, 1e-6)
    ->ArgsProduct({{1000, 10000}, {1, 2, 3}});
BENCHMARK_CAPTURE(pair_sum, coulomb_force_energy, coulomb, true, direct, 1e-6)
    ->ArgsProduct({{100, 1000, 10000, 100000}, {3}})
    ->ArgsProduct({{2000}, {8, 16, 64, 512}});
BENCHMARK_CAPTURE(pair_sum, riesz_0_7_force_energy, riesz, true, direct, 1e-6)
    ->ArgsProduct({{1000, 10000}, {1, 2, 3}});
BENCHMARK_CAPTURE(pair_sum, gaussian_force_energy, Interaction{GaussianInteraction{1.0, 0.3}}, true, direct,
                  1e-6)
    ->ArgsProduct({{10000}, {1, 2, 3}});

BENCHMARK_CAPTURE(replicas, log_force, logarithm)
    ->Args({10000, 10})
    ->Args({1000, 30})
    ->Args({8, 100})
    ->Args({1000, 100})
    ->Args({100, 1000})
    ->Args({1, 10000});
BENCHMARK_CAPTURE(threads, log_force, logarithm)->ArgsProduct({{20000}, {1, 2}})->UseRealTime();
BENCHMARK(noise)->Arg(1000);

constexpr auto fast = PairSum::Method::Fast;
BENCHMARK_CAPTURE(pair_sum, log_fast_1e_5, logarithm, true, fast, 1e-5)
    ->ArgsProduct({{10000, 100000}, {1, 2, 3}});
BENCHMARK_CAPTURE(pair_sum, log_fast_1e_8, logarithm, true, fast, 1e-8)->ArgsProduct({{100000}, {1, 2, 3}});
BENCHMARK_CAPTURE(pair_sum, riesz_0_7_fast_1e_5, riesz, true, fast, 1e-5)->ArgsProduct({{100000}, {1, 2, 3}});
BENCHMARK_CAPTURE(pair_sum, coulomb_fast_1e_5, coulomb, true, fast, 1e-5)->ArgsProduct({{100000}, {3}});

}  // namespace

BENCHMARK_MAIN();
