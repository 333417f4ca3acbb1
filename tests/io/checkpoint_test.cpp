#include "io/checkpoint.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <random>

#include "io/files.hpp"
#include "scratch.hpp"

namespace {

using namespace rieszflow::io;
namespace fs = std::filesystem;

Checkpoint example(std::int64_t step) {
  Checkpoint checkpoint;
  checkpoint.integers = {{"step", step}, {"smallest", std::numeric_limits<std::int64_t>::min()}};
  checkpoint.numbers = {{"time", 0.1 + 0.2}, {"tiny", 5e-324}, {"minus_zero", -0.0}};
  checkpoint.arrays = {{"empty", {}}, {"positions", {}}};
  for (int index = 0; index < 1000; ++index) checkpoint.arrays["positions"].push_back(std::sin(index + step));
  checkpoint.texts = {{"config", std::string(100000, 'x') + " ρ"}, {"empty", ""}};
  return checkpoint;
}

std::string refusal(const fs::path& folder) {
  try {
    load_checkpoint(folder);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

TEST(Checkpoint, ComesBackBitForBit) {
  const Scratch folder;
  save_checkpoint(folder.path(), example(3));
  const Checkpoint back = load_checkpoint(folder.path()).value();
  const Checkpoint written = example(3);
  EXPECT_EQ(back.integers, written.integers);
  EXPECT_EQ(back.numbers, written.numbers);
  EXPECT_TRUE(std::signbit(back.numbers.at("minus_zero")));
  EXPECT_EQ(back.arrays, written.arrays);
  EXPECT_EQ(back.texts, written.texts);
}

TEST(Checkpoint, IsNothingWhereThereIsNone) {
  const Scratch folder;
  EXPECT_FALSE(load_checkpoint(folder.path()));
  EXPECT_FALSE(load_checkpoint(folder.path(), true));
}

TEST(Checkpoint, KeepsTheOneBefore) {
  const Scratch folder;
  for (const std::int64_t step : {1, 2, 3}) save_checkpoint(folder.path(), example(step));
  EXPECT_EQ(load_checkpoint(folder.path())->integers.at("step"), 3);
  EXPECT_EQ(load_checkpoint(folder.path(), true)->integers.at("step"), 2);
  fs::remove(folder.path() / "checkpoint.h5");
  EXPECT_EQ(load_checkpoint(folder.path())->integers.at("step"), 2);
}

TEST(Checkpoint, IsAnHdf5FileForOthers) {
  const std::string python = python_with("h5py");
  if (python.empty()) GTEST_SKIP() << "python3 has no h5py";
  const Scratch folder;
  save_checkpoint(folder.path(), example(3));
  const Command result = shell(python +
                               " -c 'import h5py,sys; f = h5py.File(sys.argv[1], \"r\"); "
                               "assert f[\"integers\"].attrs[\"step\"] == 3; "
                               "assert f[\"numbers\"].attrs[\"time\"] == 0.1 + 0.2; "
                               "assert f[\"arrays/positions\"].shape == (1000,)' " +
                               quoted(folder.path() / "checkpoint.h5"));
  EXPECT_EQ(result.code, 0) << result.output;
}

TEST(Checkpoint, RefusesOneChangedByteAnywhereAndOffersThePreviousOne) {
  const Scratch folder;
  const fs::path path = folder.path() / "checkpoint.h5";
  save_checkpoint(folder.path(), example(1));
  save_checkpoint(folder.path(), example(2));
  const std::string good = read_text(path);
  std::mt19937 generator(7);
  std::vector<std::size_t> places{0, 100, 511, 512,
                                  good.size() - 1};  // both ends of the header and of the content
  while (places.size() < 205) places.push_back(generator() % good.size());
  for (const std::size_t place : places) {
    std::string bad = good;
    bad[place] = static_cast<char>(bad[place] ^ (1u << (generator() % 8)));
    write_text(path, bad);
    const std::string sentence = refusal(folder.path());
    ASSERT_NE(sentence.find(path.string()), std::string::npos) << "byte " << place << ": " << sentence;
    ASSERT_NE(sentence.find("checkpoint.previous.h5, is intact"), std::string::npos) << sentence;
  }
  EXPECT_EQ(load_checkpoint(folder.path(), true)->integers.at("step"), 1);
}

TEST(Checkpoint, RefusesTruncationAndForeignFiles) {
  const Scratch folder;
  const fs::path path = folder.path() / "checkpoint.h5";
  save_checkpoint(folder.path(), example(1));
  const std::string good = read_text(path);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{511}, std::size_t{512},
                                 good.size() / 2, good.size() - 1}) {
    write_text(path, good.substr(0, size));
    const std::string sentence = refusal(folder.path());
    EXPECT_NE(sentence.find(path.string()), std::string::npos) << size << " bytes";
    EXPECT_NE(sentence.find("there is no previous checkpoint"), std::string::npos) << sentence;
  }
  write_text(path, good + "x");
  EXPECT_NE(refusal(folder.path()), "");
  write_text(path, good.substr(512));  // the HDF5 part alone: no checksum
  EXPECT_NE(refusal(folder.path()), "");
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_NE(refusal(folder.path()), "");
}

TEST(Checkpoint, SaysSoWhenThePreviousOneIsDamagedToo) {
  const Scratch folder;
  write_text(folder.path() / "checkpoint.h5", "garbage");
  write_text(folder.path() / "checkpoint.previous.h5", "garbage");
  EXPECT_NE(refusal(folder.path()).find("damaged too"), std::string::npos);
}

[[noreturn]] void save_on_a_full_disk(const fs::path& folder) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  try {
    save_checkpoint(folder, example(9));
  } catch (const FileError& error) {
    std::_Exit(std::string(error.what()).find("checkpoint.h5") != std::string::npos ? 0 : 2);
  }
  std::_Exit(1);
}

TEST(Checkpoint, LeavesTheOldOneWhenTheDiskIsFull) {
  const Scratch folder;
  save_checkpoint(folder.path(), example(1));
  EXPECT_EXIT(save_on_a_full_disk(folder.path()), testing::ExitedWithCode(0), "^$");
  EXPECT_EQ(load_checkpoint(folder.path())->integers.at("step"), 1);
}

}  // namespace
