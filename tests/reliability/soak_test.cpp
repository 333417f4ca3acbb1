#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "experiments/side_by_side.hpp"

namespace rieszflow::side_by_side {
namespace {

/// Pages of this process in memory, bytes; 0 where the system does not say.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0.0, resident = 0.0;
  return file >> total >> resident ? resident * static_cast<double>(sysconf(_SC_PAGESIZE)) : 0.0;
}

TEST(Soak, AMillionStepsGrowByLessThanAMegabyte) {
  if (resident_bytes() == 0.0) GTEST_SKIP() << "this system does not say how much memory a process has";
  const auto folder = std::filesystem::temp_directory_path() / ("rieszflow_soak_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  Question question;
  question.name = "soak";
  question.model = {.domain = Box{{-1.0}, {1.0}},
                    .potentials = {},
                    .interactions = {LogarithmicInteraction{}},
                    .inverse_temperature = 2.0};
  question.initial = UniformLaw{};
  constexpr double steps = 1e6, timestep = 1e-4;
  question.end = steps * timestep;
  question.output_every = question.end / 50;  // HDF5's own buffers grow with the rows of the file
  question.snapshots_every = question.end / 10;
  question.particles = ParticleSide{.count = 4, .replicas = 1, .options = {.timestep = timestep, .seed = 1}};
  std::array<double, 5> highest{};  // of each fifth of the steps
  std::int64_t step = 0;
  const auto watch = [&] {
    if (step % 10000 == 0) {
      double& fifth = highest[std::min<std::size_t>(
          4, static_cast<std::size_t>(5.0 * static_cast<double>(step) / steps))];
      fifth = std::max(fifth, resident_bytes());
    }
    ++step;
    return false;
  };
  const Outcome outcome = run(
      question,
      {.directory = folder, .resolved_config = "", .provenance = {}, .progress = {}, .interrupted = watch});
  std::filesystem::remove_all(folder);
  ASSERT_EQ(outcome.status, RunStatus::Completed) << outcome.message;
  ASSERT_GE(step, static_cast<std::int64_t>(steps) - 1) << "asked after every step but the last";
  // A leak grows in every fifth. An allocator takes one more block at one moment, and then no more.
  std::array<double, 4> growth{};
  for (std::size_t k = 0; k < 4; ++k) growth[k] = std::max(0.0, highest[k + 1] - highest[k]);
  const double all = std::accumulate(growth.begin(), growth.end(), 0.0);
  const double lasting = all - *std::max_element(growth.begin(), growth.end());
  std::printf("growth over four fifths of a million steps: %.0f kB, without its largest step %.0f kB\n",
              all / 1000, lasting / 1000);
  EXPECT_LT(lasting, 0.75e6) << "three quarters of a megabyte in three of four fifths";
}

}  // namespace
}  // namespace rieszflow::side_by_side
