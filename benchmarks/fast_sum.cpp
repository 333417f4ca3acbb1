// The fast pair sum against its goals: error against the direct sum, time by cloud and by number of
// particles, crossover with the direct sum. CPU seconds of one thread, medians. Run, on a machine that is
// otherwise quiet:
//   cmake -DRIESZFLOW_BENCHMARKS=ON ... && ninja bench_fast_sum
//   ./bench_fast_sum errors     relative L2 error of the forces at N = 1e5, every exponent, dimension,
//   tolerance
//   ./bench_fast_sum clouds     N = 1e5: clusters and walls against the uniform cloud, error at a thousand
//   particles
//   ./bench_fast_sum times      N = 1e4 .. 1e6
//   ./bench_fast_sum crossover  where the direct sum stops being quicker, and what `auto` loses
//   ./bench_fast_sum million    N = 1e6: error at a hundred particles, time
//   ./bench_fast_sum direct     the direct sum at N = 1e6: minutes
// A second argument limits the dimension, 0: all; a third the number of particles of `times`, the kernels of
// `crossover` to one name.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "core/noise.hpp"
#include "model/model.hpp"
#include "summation/pair_sum.hpp"

namespace {

using namespace rieszflow;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Median of a few calls, for up to `seconds`, after one that prepares.
double median_seconds(const std::function<void()>& call, double most_seconds = 2.0,
                      std::size_t most_calls = 15) {
  call();
  std::vector<double> seconds;
  double spent = 0.0;
  while (seconds.size() < 3 || (seconds.size() < most_calls && spent < most_seconds)) {
    const double begin = cpu_seconds();
    call();
    seconds.push_back(cpu_seconds() - begin);
    spent += seconds.back();
    if (spent > 20.0) break;
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

enum class Cloud { Uniform, Walls, Surface, Cluster, TwoClusters, HundredClusters, Gaussian };

/// In [-1, 1]^d, but for what Gaussians have beyond. Walls: the arcsine law along each axis. Surface: all on
/// the boundary of the box. Cluster: half of the particles Gaussian with this deviation, the others uniform.
/// Two, a hundred clusters: all of them in these.
std::vector<double> cloud(Cloud kind, std::size_t count, std::size_t d, double deviation = 0.0) {
  std::vector<double> x(count * d), g(count * d), centres(100 * d);
  NoiseStream(5, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, x);
  NoiseStream(6, NoisePurpose::ReferenceSample).gaussian_block(0, 0, 0, count, d, g);
  NoiseStream(7, NoisePurpose::ReferenceSample).uniforms(0, 0, 0, centres);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < d; ++k) {
      double& c = x[i * d + k];
      c = 2.0 * c - 1.0;
      const double spread = deviation * g[i * d + k];
      if (kind == Cloud::Walls) c = std::sin(0.5 * std::numbers::pi * c);
      if (kind == Cloud::Surface && d > 1 && k == i % d) c = c < 0.0 ? -1.0 : 1.0;
      if (kind == Cloud::Cluster && i % 2 == 0) c = 0.3 + spread;
      if (kind == Cloud::TwoClusters) c = (i % 2 == 0 ? -0.5 : 0.5) + spread;
      if (kind == Cloud::HundredClusters) c = 1.8 * centres[i % 100 * d + k] - 0.9 + spread;
      if (kind == Cloud::Gaussian) c = spread;
    }
  }
  return x;
}

struct NamedCloud {
  Cloud kind;
  const char* name;
  double deviation = 0.0;
};
const std::vector<NamedCloud> clouds = {{Cloud::Uniform, "uniform"},
                                        {Cloud::Walls, "arcsine walls"},
                                        {Cloud::Surface, "box surface"},
                                        {Cloud::Cluster, "half in a cluster", 0.05},
                                        {Cloud::Cluster, "half in a cluster", 0.005},
                                        {Cloud::Cluster, "half in a cluster", 0.0002},
                                        {Cloud::TwoClusters, "two clusters", 0.1},
                                        {Cloud::TwoClusters, "two clusters", 0.003},
                                        {Cloud::HundredClusters, "a hundred clusters", 0.004},
                                        {Cloud::Gaussian, "Gaussian", 0.3}};

Interaction riesz(double s) {
  if (s == 0.0) return LogarithmicInteraction{};
  return RieszInteraction{.exponent = s};
}

Model model_of(double s, std::size_t d) { return {WholeSpace{d}, {}, {riesz(s)}, 1.0}; }

std::vector<double> forces_of(const PairSum& sum, const std::vector<double>& x) {
  std::vector<double> forces(x.size(), 0.0);
  sum.add_forces(x, 1, forces);
  return forces;
}

double relative_error(const std::vector<double>& a, const std::vector<double>& exact) {
  double error = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - exact[i]) * (a[i] - exact[i]);
    size += exact[i] * exact[i];
  }
  return std::sqrt(error / size);
}

/// The same without the closest pairs, whose forces are near pairs alone and dominate a norm: relative to the
/// median force.
double error_by_median(const std::vector<double>& a, const std::vector<double>& exact, std::size_t d) {
  const std::size_t n = a.size() / d;
  std::vector<double> errors(n), sizes(n);
  for (std::size_t i = 0; i < n; ++i) {
    double error = 0.0, size = 0.0;
    for (std::size_t k = 0; k < d; ++k) {
      error += std::pow(a[i * d + k] - exact[i * d + k], 2);
      size += std::pow(exact[i * d + k], 2);
    }
    errors[i] = error, sizes[i] = size;
  }
  double sum = 0.0;
  for (const double e : errors) sum += e;
  std::ranges::nth_element(sizes, sizes.begin() + static_cast<std::ptrdiff_t>(n / 2));
  return std::sqrt(sum / static_cast<double>(n) / sizes[n / 2]);
}

PairSum fast_sum(const Model& model, std::size_t n, double tolerance) {
  return {model, n, {.method = PairSum::Method::Fast, .tolerance = tolerance}};
}
PairSum direct_sum(const Model& model, std::size_t n) {
  return {model, n, {.method = PairSum::Method::Direct}};
}

int errors(std::size_t d) {
  int failures = 0;
  const std::size_t n = 100000;
  const auto x = cloud(Cloud::Uniform, n, d);
  for (const double s : {-0.5, 0.0, 0.5, 1.0, 1.7}) {
    if (s >= static_cast<double>(d)) continue;
    const Model model = model_of(s, d);
    const auto exact = forces_of(direct_sum(model, n), x);
    for (const double tolerance : {1e-3, 1e-6, 1e-9}) {
      const auto sum = fast_sum(model, n, tolerance);
      const auto forces = forces_of(sum, x);
      const double error = relative_error(forces, exact);
      failures += !(error <= tolerance);
      fmt::print("| {} | {} | {:.0e} | {:.1e} | {:.1e} | {:.3f} |\n", d, s, tolerance, error,
                 error_by_median(forces, exact, d), median_seconds([&] { forces_of(sum, x); }));
      std::fflush(stdout);
    }
  }
  return failures;
}

/// The forces at particles 0, stride, 2 stride, ...
std::vector<double> every(const std::vector<double>& forces, std::size_t d, std::size_t stride) {
  std::vector<double> some;
  for (std::size_t i = 0; i * d < forces.size(); i += stride) {
    const auto at = forces.begin() + static_cast<std::ptrdiff_t>(i * d);
    some.insert(some.end(), at, at + static_cast<std::ptrdiff_t>(d));
  }
  return some;
}

/// The forces of the log (d < 3) or Coulomb kernel at every stride-th particle, pair by pair.
std::vector<double> exact_at_every(const std::vector<double>& x, std::size_t d, std::size_t stride) {
  const std::size_t n = x.size() / d;
  std::vector<double> exact;
  for (std::size_t i = 0; i < n; i += stride) {
    std::array<double, 3> sum{};
    for (std::size_t j = 0; j < n; ++j) {
      if (j == i) continue;
      std::array<double, 3> apart{};
      double squared = 0.0;
      for (std::size_t k = 0; k < d; ++k) {
        apart[k] = x[i * d + k] - x[j * d + k];
        squared += apart[k] * apart[k];
      }
      const double over_r = d < 3 ? 1.0 / squared : 1.0 / (squared * std::sqrt(squared));
      for (std::size_t k = 0; k < d; ++k) sum[k] += over_r * apart[k];
    }
    for (std::size_t k = 0; k < d; ++k) exact.push_back(sum[k] / static_cast<double>(n));
  }
  return exact;
}

int by_cloud(std::size_t d) {
  int failures = 0;
  const std::size_t n = 100000, stride = 97;
  const Model model = model_of(std::max(0.0, static_cast<double>(d) - 2.0), d);
  double uniform = 0.0;
  for (const auto& [kind, name, deviation] : clouds) {
    if (kind == Cloud::Surface && d == 1) continue;
    const auto x = cloud(kind, n, d, deviation);
    const auto sum = fast_sum(model, n, 1e-6);
    const double error = relative_error(every(forces_of(sum, x), d, stride), exact_at_every(x, d, stride));
    const double seconds = median_seconds([&] { forces_of(sum, x); });
    if (kind == Cloud::Uniform) uniform = seconds;
    failures += !(error <= 1e-6) + !(seconds <= 3.0 * uniform);
    fmt::print("| {} | {} | {} | {:.1e} | {:.4f} | {:.2f} |\n", d, name, deviation, error, seconds,
               seconds / uniform);
    std::fflush(stdout);
  }
  return failures;
}

std::size_t most_particles = 1000000;
std::string only_kernel;

int times(std::size_t d) {
  for (const double s : {std::max(0.0, static_cast<double>(d) - 2.0), 0.7}) {
    for (const std::size_t n : {10000UL, 100000UL, 1000000UL}) {
      if (n > most_particles) continue;
      const auto x = cloud(Cloud::Uniform, n, d);
      const Model model = model_of(s, d);
      fmt::print("| {} | {} | {} |", d, s, n);
      for (const double tolerance : {1e-3, 1e-6, 1e-10}) {
        const auto sum = fast_sum(model, n, tolerance);
        std::vector<double> energies(1), forces(x.size());
        fmt::print(" {:.4f} |", median_seconds([&] { sum.add_forces(x, 1, forces); }));
        if (tolerance == 1e-6) {
          fmt::print(" {:.4f} |", median_seconds([&] { sum.add_forces(x, 1, forces, energies); }));
        }
        std::fflush(stdout);
      }
      fmt::print("\n");
    }
  }
  return 0;
}

/// Medians over runs of calls, the two in turn, so that both meet the same machine.
std::pair<double, double> medians_in_turn(const std::function<void()>& first,
                                          const std::function<void()>& second, double seconds) {
  constexpr double run = 1e-3;  // as long as this, as in a time loop
  std::array<std::vector<double>, 2> taken;
  std::array<int, 2> calls{};
  for (double spent = 0.0; taken[0].size() < 5 || spent < seconds;) {
    for (const std::size_t which : {0, 1}) {
      const auto& call = which == 0 ? first : second;
      if (calls[which] == 0) {
        call();
        const double begin = cpu_seconds();
        call();
        calls[which] = 1 + static_cast<int>(run / std::max(1e-9, cpu_seconds() - begin));
      }
      const double begin = cpu_seconds();
      for (int c = 0; c < calls[which]; ++c) call();
      const double all = cpu_seconds() - begin;
      spent += all;
      taken[which].push_back(all / calls[which]);
    }
  }
  const auto median = [](std::vector<double>& list) {
    std::ranges::sort(list);
    return list[list.size() / 2];
  };
  return {median(taken[0]), median(taken[1])};
}

/// About the number of particles from which `auto` takes the fast sum, half to twice that, where the direct
/// sum stops being quicker, and what the choice of `auto` takes over the quicker one at worst.
int crossover(std::size_t d) {
  const std::vector<std::pair<const char*, Interaction>> kernels = {
      {d < 3 ? "log" : "Coulomb", riesz(std::max(0.0, static_cast<double>(d) - 2.0))},
      {"s = 0.7", riesz(0.7)},
      {"Gaussian", GaussianInteraction{.strength = 1.0, .length = 0.3}},
      {"Morse", MorseInteraction{.repulsion_length = 0.1, .attraction_length = 0.3}}};
  for (const auto& [name, interaction] : kernels) {
    if (!only_kernel.empty() && only_kernel != name) continue;
    const Model model{WholeSpace{d}, {}, {interaction}, 1.0};
    for (const double tolerance : {1e-3, 1e-6, 1e-9}) {
      const auto is_fast = [&](std::size_t n) {
        return PairSum(model, n, {.tolerance = tolerance}).method_name() == "fast";
      };
      std::size_t from = 16;
      while (!is_fast(from)) from += from / 32 + 1;
      double worst = 1.0, crossing = 0.0, previous = 0.0;
      std::string ratios;
      for (int step = -4; step <= 4; ++step) {
        const auto n = static_cast<std::size_t>(static_cast<double>(from) * std::exp2(0.25 * step));
        const auto x = cloud(Cloud::Uniform, n, d);
        const auto fast = fast_sum(model, n, tolerance), direct = direct_sum(model, n);
        std::vector<double> forces(x.size());
        const auto [slow, quick] = medians_in_turn([&] { direct.add_forces(x, 1, forces); },
                                                   [&] { fast.add_forces(x, 1, forces); }, 0.1);
        const double ratio = slow / quick;
        worst = std::max(worst, is_fast(n) ? 1.0 / ratio : ratio);
        if (previous < 1.0 && ratio >= 1.0) {
          const double share =
              previous > 0.0 ? std::log(previous) / (std::log(previous) - std::log(ratio)) : 1.0;
          crossing = static_cast<double>(n) * std::exp2(0.25 * (share - 1.0));
        }
        previous = ratio;
        ratios += fmt::format(" {:.2f}", ratio);
      }
      fmt::print("| {} | {} | {:.0e} | {:.0f} | {} | {:.2f} |{} |\n", d, name, tolerance, crossing, from,
                 worst, ratios);
      std::fflush(stdout);
    }
  }
  return 0;
}

/// A million particles: seconds, and the error at a hundred of them against their direct sums.
int million(std::size_t d) {
  const std::size_t n = 1000000, stride = 10007;
  const Model model = model_of(std::max(0.0, static_cast<double>(d) - 2.0), d);
  const auto x = cloud(Cloud::Uniform, n, d);
  const auto exact = exact_at_every(x, d, stride);
  int failures = 0;
  for (const double tolerance : {1e-6, 1e-10}) {
    const auto sum = fast_sum(model, n, tolerance);
    const auto found = every(forces_of(sum, x), d, stride);
    const double error = relative_error(found, exact);
    failures += !(error <= tolerance);
    fmt::print("| {} | {:.0e} | {:.1e} | {:.1e} | {:.2f} |\n", d, tolerance, error,
               error_by_median(found, exact, d), median_seconds([&] { forces_of(sum, x); }));
    std::fflush(stdout);
  }
  return failures;
}

/// One direct sum of a million particles, forces and energy: minutes.
int direct_million(std::size_t d) {
  const std::size_t n = 1000000;
  const auto sum = direct_sum(model_of(std::max(0.0, static_cast<double>(d) - 2.0), d), n);
  const auto x = cloud(Cloud::Uniform, n, d);
  std::vector<double> forces(x.size()), energies(1);
  const double begin = cpu_seconds();
  sum.add_forces(x, 1, forces, energies);
  const double seconds = cpu_seconds() - begin, pairs = static_cast<double>(n) * static_cast<double>(n - 1);
  fmt::print("| {} | {:.1f} | {:.2f} |\n", d, seconds, 1e-9 * pairs / seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::size_t only = argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : 0;
  if (argc > 3 && what == "times") most_particles = static_cast<std::size_t>(std::atof(argv[3]));
  if (argc > 3 && what == "crossover") only_kernel = argv[3];
  const auto table = [&](const char* head, int (*rows)(std::size_t)) {
    fmt::print("{}\n", head);
    int failures = 0;
    for (const std::size_t d : {1UL, 2UL, 3UL}) {
      if (only == 0 || only == d) failures += rows(d);
    }
    return failures == 0 ? 0 : 1;
  };
  if (what == "errors") return table("| d | s | tolerance | error | by median force | seconds |", errors);
  if (what == "clouds") return table("| d | cloud | deviation | error | seconds | by uniform |", by_cloud);
  if (what == "times") return table("| d | s | N | 1e-3 | 1e-6 | with energy | 1e-10 |", times);
  if (what == "crossover")
    return table(
        "| d | kernel | tolerance | fast is quicker from N | auto takes it from | auto over the quicker, at "
        "worst | "
        "direct over fast, half to twice that N |",
        crossover);
  if (what == "million") return table("| d | tolerance | error | by median force | seconds |", million);
  if (what == "direct") return table("| d | seconds | billion ordered pairs a second |", direct_million);
  fmt::print(
      stderr,
      "usage: {} errors | clouds | times | crossover | million | direct [dimension [particles or kernel]]\n",
      argv[0]);
  return 2;
}
