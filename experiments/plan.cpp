#include "experiments/plan.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace rieszflow {
namespace {

// Numbers per coordinate that a run holds beside the pair sum: positions, forces, noise, next positions; MALA
// moves columns of its own. The estimator of the entropy takes 40 bytes more per coordinate at output times,
// when the pair sum holds its mesh only.
constexpr double particle_arrays = 4.0, mala_arrays = 5.0, entropy_bytes = 48.0;
// Arrays of the size of the grid: densities of three half steps, potentials, coefficients of the sweeps,
// diagnostics.
constexpr double density_arrays = 24.0;
// Of the zero-padded grid: kernel transform, work array and its transform.
constexpr double padded_arrays = 3.0;
constexpr double program_bytes = 64.0 * 1024 * 1024;  ///< libraries, plots
constexpr double series_columns = 40.0;               ///< numbers a row over all series, with steps and times

constexpr double particle_step_seconds = 3e-8;  ///< noise, walls, V, close pairs: a particle and dimension
/// A sweep asks twice for all pairs of each particle, energies included, and uses no pair for both of its
/// particles.
constexpr double mala_pair_sums = 4.0, mala_move_seconds = 6e-7;  ///< a move: proposal both ways, walls, V
// Seconds a step of the density: sweeps and transforms of three half steps, a cell.
constexpr double density_seconds_per_cell = 4e-7;

// A share of memory is left to the system and to the estimate's error.
constexpr double usable_share = 0.9;

std::filesystem::path existing_parent(std::filesystem::path folder) {
  std::error_code error;
  folder = std::filesystem::absolute(folder, error);
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

}  // namespace

Plan plan(const side_by_side::Question& question) {
  Plan plan;
  constexpr double number_bytes = sizeof(double);
  const auto dimensions = static_cast<double>(dimension(question.model.domain));
  plan.output_times = std::floor(question.end / question.output_every + 1e-9) + 1.0;
  plan.snapshots = std::floor(question.end / question.snapshots_every + 1e-9) + 1.0;
  plan.memory_bytes = program_bytes;
  plan.disk_bytes = plan.output_times * series_columns * number_bytes;
  double particle_bytes = 0.0, density_bytes = 0.0;
  if (question.particles) {
    const auto& side = *question.particles;
    const auto count = static_cast<double>(side.count), replicas = static_cast<double>(side.replicas);
    plan.coordinates = count * replicas * dimensions;
    plan.particle_steps = std::ceil(question.end / side.options.timestep);
    const bool mala = side.options.scheme == particle::Scheme::Mala;
    PairSum::Options summation = side.options.summation;
    if (mala) summation.method = PairSum::Method::Direct;
    const PairSum::Cost sum = PairSum::expected_cost(question.model, side.count, summation);
    particle_bytes = plan.coordinates * number_bytes * (mala ? mala_arrays : particle_arrays) +
                     std::max(sum.bytes, plan.coordinates * entropy_bytes);
    plan.disk_bytes += plan.coordinates * number_bytes * (plan.snapshots + 2.0);  // and two checkpoints
    const double move = mala ? mala_move_seconds : dimensions * particle_step_seconds;
    const double step = replicas * (sum.seconds * (mala ? mala_pair_sums : 1.0) + count * move);
    plan.particle_seconds = plan.particle_steps * step / std::max(1, question.threads);
  }
  if (question.density) {
    plan.cells = 1.0;
    double padded = 1.0;
    for (const std::size_t cells : question.density->cells) {
      plan.cells *= static_cast<double>(cells);
      padded *= 2.0 * static_cast<double>(cells);
    }
    density_bytes = number_bytes * (plan.cells * density_arrays + padded * padded_arrays);
    plan.disk_bytes += plan.cells * number_bytes * (plan.snapshots + 2.0);
    plan.density_seconds_per_step = plan.cells * density_seconds_per_cell;
  }
  plan.memory_bytes += particle_bytes + density_bytes;
  return plan;
}

std::string bytes_text(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  while (bytes >= 1024.0 && unit + 1 < std::size(units)) {
    bytes /= 1024.0;
    ++unit;
  }
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

std::string duration_text(double seconds) {
  if (seconds < 0.1) return "less than 0.1 s";
  if (seconds < 120.0) return fmt::format("{:.2g} s", seconds);
  const double minutes = seconds / 60.0;
  if (minutes < 120.0) return fmt::format("{:.0f} min", minutes);
  const double hours = minutes / 60.0;
  if (hours < 48.0) return fmt::format("{:.0f} h {:.0f} min", std::floor(hours), std::fmod(minutes, 60.0));
  const double days = hours / 24.0;
  return days < 1000.0 ? fmt::format("{:.0f} days", days) : fmt::format("{:.2g} years", days / 365.25);
}

std::string text(const Plan& plan, const side_by_side::Question& question) {
  std::string result;
  if (question.particles) {
    result += fmt::format(
        "particles  {} replicas of N = {} in {} dimension{}: {:.6g} coordinates, {:.6g} steps, about {}{}\n",
        question.particles->replicas, question.particles->count, dimension(question.model.domain),
        dimension(question.model.domain) == 1 ? "" : "s", plan.coordinates, plan.particle_steps,
        duration_text(plan.particle_seconds),
        has_singular_interaction(question.model) ? ", far more where close pairs need shorter steps" : "");
  }
  if (question.density) {
    std::string shape;
    for (const std::size_t cells : question.density->cells)
      shape += (shape.empty() ? "" : " x ") + std::to_string(cells);
    const double timestep = question.density->options.timestep;
    const std::string steps = timestep > 0.0 ? fmt::format("{:.6g} steps", std::ceil(question.end / timestep))
                                             : std::string("adaptive steps");
    result += fmt::format("density    {} cells, {}, about {:.1g} s a step\n", shape, steps,
                          plan.density_seconds_per_step);
  }
  result += fmt::format("output     {:.6g} times, {:.6g} snapshots\n", plan.output_times, plan.snapshots);
  result += fmt::format("memory     about {}\n", bytes_text(plan.memory_bytes));
  result += fmt::format("disk       about {}\n", bytes_text(plan.disk_bytes));
  return result;
}

std::optional<double> available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  double kibibytes = 0.0;
  while (file >> name >> kibibytes) {
    std::getline(file, unit);
    if (name == "MemAvailable:") return kibibytes * 1024.0;
  }
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || page <= 0) return std::nullopt;
  return static_cast<double>(pages) * static_cast<double>(page);
}

std::optional<double> available_disk(const std::filesystem::path& folder) {
  std::error_code error;
  const auto space = std::filesystem::space(existing_parent(folder), error);
  if (error || space.capacity == 0) return std::nullopt;  // file systems that are no disk
  return static_cast<double>(space.available);
}

std::optional<std::string> obstacle(const Plan& plan, const std::filesystem::path& folder) {
  const auto memory = available_memory();
  if (memory && plan.memory_bytes > usable_share * *memory) {
    return fmt::format(
        "the run needs about {} of memory ({:.6g} particle coordinates, {:.6g} cells), this machine has {} "
        "free: take fewer particles, replicas or cells",
        bytes_text(plan.memory_bytes), plan.coordinates, plan.cells, bytes_text(*memory));
  }
  const auto disk = available_disk(folder);
  if (disk && plan.disk_bytes > *disk) {
    return fmt::format(
        "the run writes about {} ({:.6g} snapshots), {} has {} free: raise time.snapshots_every or give "
        "another --out",
        bytes_text(plan.disk_bytes), plan.snapshots, existing_parent(folder).string(), bytes_text(*disk));
  }
  return std::nullopt;
}

}  // namespace rieszflow
