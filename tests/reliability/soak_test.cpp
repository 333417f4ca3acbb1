#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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
  question.model = {
      .domain = Box{{-1.0}, {1.0}}, .interactions = {LogarithmicInteraction{}}, .inverse_temperature = 2.0};
  question.initial = UniformLaw{};
  constexpr double steps = 1e6, timestep = 1e-4;
  question.end = steps * timestep;
  question.output_every = question.end / 500;
  question.snapshots_every = question.end / 10;
  question.particles = ParticleSide{.count = 4, .replicas = 1, .options = {.timestep = timestep, .seed = 1}};
  double early = 0.0, late = 0.0;
  const Outcome outcome = run(question, {.directory = folder,
                                         .resolved_config = "",
                                         .progress =
                                             [&](const Progress& now) {
                                               if (now.part != "particles") return;
                                               if (now.time < 0.2 * question.end)
                                                 early = std::max(early, resident_bytes());
                                               if (now.time > 0.8 * question.end)
                                                 late = std::max(late, resident_bytes());
                                             },
                                         .interrupted = {}});
  std::filesystem::remove_all(folder);
  ASSERT_EQ(outcome.status, RunStatus::Completed) << outcome.message;
  ASSERT_GT(early, 0.0);
  ASSERT_GT(late, 0.0);
  std::printf("growth between the first and the last fifth of a million steps: %.0f kB\n",
              (late - early) / 1000);
  EXPECT_LT(late - early, 1e6);
}

}  // namespace
}  // namespace rieszflow::side_by_side
