#include "experiments/plan.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace rieszflow {
namespace {

side_by_side::Question question(std::size_t count, std::size_t replicas, std::vector<std::size_t> cells) {
  side_by_side::Question result;
  result.model.domain = Box{std::vector<double>(cells.size(), 0.0), std::vector<double>(cells.size(), 1.0)};
  result.model.interactions = {LogarithmicInteraction{}};
  result.end = 1.0;
  result.output_every = 0.1;
  result.snapshots_every = 0.5;
  result.particles =
      side_by_side::ParticleSide{.count = count, .replicas = replicas, .options = {.timestep = 1e-3}};
  result.density = side_by_side::DensitySide{.cells = std::move(cells)};
  return result;
}

TEST(Plan, CountsWhatIsStored) {
  const Plan small = plan(question(1000, 8, {64, 32}));
  EXPECT_EQ(small.coordinates, 16000.0);
  EXPECT_EQ(small.particle_steps, 1000.0);
  EXPECT_EQ(small.cells, 2048.0);
  EXPECT_EQ(small.output_times, 11.0);
  EXPECT_EQ(small.snapshots, 3.0);
  // Snapshots alone: three times 16000 coordinates and 2048 cells of 8 bytes.
  EXPECT_GT(small.disk_bytes, 3.0 * 8.0 * (16000.0 + 2048.0));
  EXPECT_LT(small.disk_bytes, 1e7);
  EXPECT_FALSE(obstacle(small, std::filesystem::temp_directory_path()));
}

TEST(Plan, RefusesMoreCoordinatesThanMemoryHoldsWithTheNumbers) {
  // 2^20 replicas of 2^40 particles in 2 dimensions: the product does not fit 32, nor the bytes 64 bits.
  const Plan huge = plan(question(std::size_t{1} << 40, std::size_t{1} << 20, {64, 64}));
  EXPECT_EQ(huge.coordinates, 0x1p61);
  const auto sentence = obstacle(huge, std::filesystem::temp_directory_path());
  ASSERT_TRUE(sentence);
  EXPECT_NE(sentence->find("2.30584e+18 particle coordinates"), std::string::npos) << *sentence;
  EXPECT_NE(sentence->find("this machine has"), std::string::npos) << *sentence;
}

TEST(Plan, RefusesCellsBeyondMemory) {
  EXPECT_TRUE(
      obstacle(plan(question(10, 1, {100000, 100000, 100000})), std::filesystem::temp_directory_path()));
}

TEST(Plan, RefusesMoreSnapshotsThanTheDiskHolds) {
  side_by_side::Question many = question(1'000'000, 1, {16});
  many.output_every = many.snapshots_every = 1e-7;
  const auto sentence = obstacle(plan(many), std::filesystem::temp_directory_path() / "not" / "there yet");
  ASSERT_TRUE(sentence);
  EXPECT_NE(sentence->find("raise time.snapshots_every"), std::string::npos) << *sentence;
}

TEST(Plan, CostsGrowWithPairsAndSteps) {
  side_by_side::Question direct = question(1000, 1, {16});
  direct.particles->options.summation.method = PairSum::Method::Direct;
  const double once = plan(direct).particle_seconds;
  direct.particles->count = 100'000;
  EXPECT_GT(plan(direct).particle_seconds, 5000.0 * once) << "pairs grow with the square";
  direct.particles->options.timestep /= 2.0;
  EXPECT_GT(plan(direct).particle_seconds, 10000.0 * once);
}

TEST(Plan, KnowsTheMeshAndTheSpeedOfTheFastSum) {
  side_by_side::Question many = question(1'000'000, 1, {16, 16});
  many.particles->options.summation.method = PairSum::Method::Direct;
  const Plan direct = plan(many);
  many.particles->options.summation.method = PairSum::Method::Fast;
  const Plan fast = plan(many);
  EXPECT_GT(fast.memory_bytes, direct.memory_bytes + 30.0 * 1e6) << "the mesh has about a node a particle";
  EXPECT_LT(fast.memory_bytes, 5e8);
  EXPECT_LT(fast.particle_seconds, direct.particle_seconds / 50.0);
  many.particles->options.summation = {.method = PairSum::Method::Direct,
                                       .precision = PairSum::Precision::Single};
  EXPECT_LT(plan(many).particle_seconds, 0.6 * direct.particle_seconds);
}

TEST(Plan, SaysBytesAndTimesInWords) {
  EXPECT_EQ(bytes_text(1536.0), "1.5 KiB");
  EXPECT_EQ(bytes_text(3.0 * 1024 * 1024 * 1024), "3 GiB");
  EXPECT_EQ(duration_text(0.01), "less than 0.1 s");
  EXPECT_EQ(duration_text(42.0), "42 s");
  EXPECT_EQ(duration_text(600.0), "10 min");
  EXPECT_EQ(duration_text(7260.0), "2 h 1 min");
  EXPECT_EQ(duration_text(86400.0 * 30), "30 days");
}

}  // namespace
}  // namespace rieszflow
