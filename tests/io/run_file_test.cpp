#include "io/run_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <clocale>
#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>
#include <random>
#include <thread>
#include <tuple>

#include "core/expects.hpp"
#include "io/hdf5.hpp"
#include "scratch.hpp"

namespace {

using namespace rieszflow;
using namespace rieszflow::io;
namespace fs = std::filesystem;

const SeriesDescription energy{
    .name = "density/free_energy", .units = "energy per particle", .meaning = "F of theory.md (5)"};
const SeriesDescription moments{.name = "particles/mean",
                                .units = "length",
                                .meaning = "mean position",
                                .columns = 2,
                                .has_standard_error = true};

Density checkered_density(double scale) {
  Density density{
      .grid = {.lower = {-1.0, 0.0}, .upper = {1.0, 1.0 / 3.0}, .cells = {2, 3}, .periodic = true},
      .averages = {}};
  for (int cell = 0; cell < 6; ++cell) density.averages.push_back(scale * (cell + 1) / 3.0);
  return density;
}

ParticleEnsemble ramp(double shift) {
  ParticleEnsemble ensemble{.replica_count = 2, .particle_count = 3, .dimension = 2, .positions = {}};
  for (int index = 0; index < 12; ++index) ensemble.positions.push_back(shift + index / 7.0);
  return ensemble;
}

/// A small file with all kinds of content, `rows` rows each at times 0.1 k.
void write_example(const fs::path& path, int rows) {
  RunFile run =
      RunFile::create(path, {{"version", "1.2.3"}, {"seed", "7"}, {"command_line", "rieszflow run ρ.toml"}});
  run.set_box({.lower = {-1.0, -2.0}, .upper = {3.0, 4.0}}, true);
  for (int row = 0; row < rows; ++row) {
    const Clock clock{.step = 10 * row, .time = 0.1 * row};
    run.append(energy, clock, std::vector{1.0 / (3.0 + row)});
    run.append(moments, clock, std::vector{0.1 + row, -0.2}, std::vector{1e-308, 0.5 / 3.0});
    run.append_density(clock, checkered_density(1.0 + row));
    run.append_positions(clock, ramp(row));
  }
  run.commit();
}

TEST(RunFile, GivesEveryNumberBackBitForBit) {
  const Scratch folder;
  const fs::path path = folder.path() / "run.h5";
  const std::vector<double> awkward{0.1 + 0.2,
                                    1e-308,
                                    1.0 / 3.0,
                                    5e-324,
                                    -0.0,
                                    std::numeric_limits<double>::max(),
                                    std::numeric_limits<double>::infinity()};
  {
    RunFile run = RunFile::create(path, {});
    for (std::size_t row = 0; row < awkward.size(); ++row)
      run.append(energy, {.step = static_cast<std::int64_t>(row), .time = awkward[0] * (1.0 + row)},
                 std::vector{awkward[row]});
    run.commit();
  }
  const Series series = RunReader(path).series("density/free_energy");
  ASSERT_EQ(series.value.size(), awkward.size());
  for (std::size_t row = 0; row < awkward.size(); ++row) {
    EXPECT_EQ(std::signbit(series.value[row]), std::signbit(awkward[row]));
    EXPECT_EQ(series.value[row], awkward[row]);
    EXPECT_EQ(series.time[row], awkward[0] * (1.0 + row));
    EXPECT_EQ(series.step[row], static_cast<std::int64_t>(row));
  }
}

TEST(RunFile, GivesSeriesDensitiesPositionsAndManifestBack) {
  const Scratch folder;
  const fs::path path = folder.path() / "run.h5";
  write_example(path, 4);
  const RunReader run(path);
  EXPECT_EQ(run.manifest().at("command_line"), "rieszflow run ρ.toml");
  EXPECT_EQ(run.series_names(), (std::vector<std::string>{"density/free_energy", "particles/mean"}));
  const Series mean = run.series("particles/mean");
  EXPECT_EQ(mean.description.columns, 2u);
  EXPECT_EQ(mean.description.units, "length");
  EXPECT_EQ(mean.description.meaning, "mean position");
  ASSERT_EQ(mean.value.size(), 8u);
  EXPECT_EQ(mean.value[6], 3.1);
  EXPECT_EQ(mean.standard_error[7], 0.5 / 3.0);
  ASSERT_EQ(run.density_clocks().size(), 4u);
  EXPECT_EQ(run.density_clocks()[3].time, 0.1 * 3);
  EXPECT_EQ(run.density_clocks()[3].step, 30);
  const Density density = run.density(2);
  EXPECT_EQ(density.averages, checkered_density(3.0).averages);
  EXPECT_EQ(density.grid.cells, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(density.grid.upper[1], 1.0 / 3.0);
  EXPECT_TRUE(density.grid.periodic);
  EXPECT_TRUE(density.grid.volume_fractions.empty());
  ASSERT_EQ(run.position_clocks().size(), 4u);
  const ParticleEnsemble ensemble = run.positions(3);
  EXPECT_EQ(ensemble.replica_count, 2u);
  EXPECT_EQ(ensemble.positions, ramp(3.0).positions);
  EXPECT_EQ(run.box()->upper, (std::vector{3.0, 4.0}));
}

TEST(RunFile, KeepsTheVolumeFractionsOfABall) {
  const Scratch folder;
  Density density = checkered_density(1.0);
  density.grid.volume_fractions = {0.1, 1.0, 0.1, 0.2, 1.0, 1.0 / 3.0};
  RunFile run = RunFile::create(folder.path() / "run.h5", {});
  run.append_density({}, density);
  run.commit();
  EXPECT_EQ(RunReader(folder.path() / "run.h5").density(0).grid.volume_fractions,
            density.grid.volume_fractions);
}

TEST(RunFile, StoresRowsLongerThanOneChunk) {
  const Scratch folder;
  Density density{.grid = {.lower = {0.0, 0.0, 0.0}, .upper = {1.0, 1.0, 1.0}, .cells = {3, 300, 500}},
                  .averages = {}};
  for (int cell = 0; cell < 450000; ++cell) density.averages.push_back(std::sin(cell));
  RunFile run = RunFile::create(folder.path() / "run.h5", {});
  run.append_density({.step = 0, .time = 0.0}, density);
  density.averages[449999] = 0.25;
  run.append_density({.step = 1, .time = 1.0}, density);
  run.commit();
  EXPECT_EQ(RunReader(folder.path() / "run.h5").density(1).averages, density.averages);
}

TEST(RunFile, HasNoSnapshotsWhereNoneWereWritten) {
  const Scratch folder;
  RunFile run = RunFile::create(folder.path() / "run.h5", {});
  run.commit();
  const RunReader reader(folder.path() / "run.h5");
  EXPECT_TRUE(reader.density_clocks().empty());
  EXPECT_TRUE(reader.position_clocks().empty());
  EXPECT_TRUE(reader.series_names().empty());
  EXPECT_FALSE(reader.box());
  EXPECT_THROW(reader.density(0), FileError);
  EXPECT_THROW(reader.positions(0), FileError);
  EXPECT_THROW(reader.series("no/such"), FileError);
}

TEST(RunFile, IsReadByH5pyWithTheLayoutOfH5md) {
  const std::string python = python_with("h5py");
  if (python.empty()) GTEST_SKIP() << "python3 has no h5py";
  const Scratch folder;
  write_example(folder.path() / "run.h5", 3);
  write_text(folder.path() / "check.py", R"(
import h5py, sys
f = h5py.File(sys.argv[1], 'r')
assert list(f['h5md'].attrs['version']) == [1, 1]
assert f['h5md/author'].attrs['name'] == 'not stated'
assert f['h5md/creator'].attrs['name'] == 'rieszflow' and f['h5md/creator'].attrs['version'] == '1.2.3'
assert f.attrs['seed'] == '7' and f.attrs['command_line'] == 'rieszflow run ρ.toml'
for k in range(2):
    p = f[f'particles/replica{k}/position']
    assert p['value'].shape == (3, 3, 2) and p['step'].shape == (3,) and p['time'].shape == (3,)
    assert p['value'][2, 1, 1] == 2 + (6 * k + 3) / 7
    b = f[f'particles/replica{k}/box']
    assert b.attrs['dimension'] == 2 and list(b.attrs['boundary']) == ['periodic', 'periodic']
    assert list(b['edges']) == [4, 6]
d = f['density']
assert d['value'].shape == (3, 2, 3) and d['value'][1, 1, 0] == 2.0 * 4 / 3
assert list(d['grid/lower']) == [-1, 0] and list(d['grid/upper']) == [1, 1 / 3] and list(d['grid/cells']) == [2, 3]
assert list(d['step']) == [0, 10, 20] and list(d['time']) == [0, 0.1, 0.2]
m = f['observables/particles/mean']
assert m['value'].shape == (3, 2) and m['standard_error'].shape == (3, 2)
assert m.attrs['units'] == 'length' and m['value'].attrs['meaning'] == 'mean position'
assert m['value'].attrs['shape'] == '(row, column)'
assert f['observables/density/free_energy/value'].shape == (3,)
)");
  const Command result =
      shell(python + " " + quoted(folder.path() / "check.py") + " " + quoted(folder.path() / "run.h5"));
  EXPECT_EQ(result.code, 0) << result.output;
}

TEST(RunFile, IsInvisibleBeforeTheFirstCommitAndShowsOnlyWhatWasCommitted) {
  const Scratch folder;
  const fs::path path = folder.path() / "run.h5";
  RunFile run = RunFile::create(path, {});
  run.append(energy, {.step = 0, .time = 0.0}, std::vector{1.0});
  EXPECT_FALSE(fs::exists(path));
  run.commit();
  run.append(energy, {.step = 1, .time = 1.0}, std::vector{2.0});
  EXPECT_EQ(RunReader(path).series(energy.name).time.size(), 1u);
  run.commit();
  EXPECT_EQ(RunReader(path).series(energy.name).time.size(), 2u);
}

TEST(RunFile, DoesNotChangeUnderAReader) {
  const Scratch folder;
  const fs::path path = folder.path() / "run.h5";
  RunFile run = RunFile::create(path, {});
  run.append(energy, {.step = 0, .time = 0.0}, std::vector{1.0});
  run.commit();
  const RunReader reader(path);
  for (int row = 1; row < 50; ++row) {
    run.append(energy, {.step = row, .time = 1.0 * row}, std::vector{2.0});
    run.commit();
  }
  EXPECT_EQ(reader.series(energy.name).value, std::vector{1.0});
}

TEST(RunFile, LeavesNothingBesideTheRunFile) {
  const Scratch folder;
  write_example(folder.path() / "run.h5", 2);
  { const RunFile abandoned = RunFile::create(folder.path() / "other.h5", {}); }
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  EXPECT_EQ(names, std::vector<std::string>{"run.h5"});
}

TEST(RunFile, RefusesToReplaceAFile) {
  const Scratch folder;
  write_example(folder.path() / "run.h5", 2);
  EXPECT_THROW(RunFile::create(folder.path() / "run.h5", {}), FileError);
  EXPECT_EQ(RunReader(folder.path() / "run.h5").density_clocks().size(), 2u);
}

TEST(RunFile, RefusesASecondWriter) {
  const Scratch folder;
  write_example(folder.path() / "run.h5", 2);
  RunFile first = RunFile::resume(folder.path() / "run.h5");
  EXPECT_THROW(RunFile::resume(folder.path() / "run.h5"), FileError);
  first.append(energy, {.step = 20, .time = 2.0}, std::vector{1.0});
  first.commit();  // undisturbed
  EXPECT_EQ(RunReader(folder.path() / "run.h5").series(energy.name).time.size(), 3u);
}

TEST(RunFile, ContinuesAfterAResumeWithoutTheRowsAfterTheCheckpoint) {
  const Scratch folder;
  const fs::path path = folder.path() / "run.h5";
  write_example(path, 5);
  {
    RunFile run = RunFile::resume(path);
    run.drop_after("observables/density", {.step = 20, .time = 0.1 * 2});
    run.drop_after("density", {.step = 20, .time = 0.1 * 2});
    run.append(energy, {.step = 30, .time = 0.3}, std::vector{42.0});
    run.append_density({.step = 30, .time = 0.3}, checkered_density(9.0));
    run.set_attribute("status", "completed");
    run.finish();
  }
  const RunReader run(path);
  const Series series = run.series(energy.name);
  EXPECT_EQ(series.time, (std::vector{0.0, 0.1, 0.1 * 2, 0.3}));
  EXPECT_EQ(series.value, (std::vector{1.0 / 3.0, 1.0 / 4.0, 1.0 / 5.0, 42.0}));
  EXPECT_EQ(run.density_clocks().size(), 4u);
  EXPECT_EQ(run.density(3).averages, checkered_density(9.0).averages);
  EXPECT_EQ(run.series(moments.name).time.size(), 5u) << "another prefix is left alone";
  EXPECT_EQ(run.position_clocks().size(), 5u);
  EXPECT_EQ(run.manifest().at("status"), "completed");
}

TEST(RunFile, RefusesATimeThatDoesNotIncrease) {
  const Scratch folder;
  write_example(folder.path() / "run.h5", 3);
  RunFile run = RunFile::resume(folder.path() / "run.h5");
  EXPECT_THROW(run.append(energy, {.step = 30, .time = 0.1 * 2}, std::vector{1.0}), PreconditionViolation);
  EXPECT_THROW(run.append(energy, {.step = 30, .time = std::nan("")}, std::vector{1.0}),
               PreconditionViolation);
}

TEST(RunFile, RefusesToContinueASeriesOfAnotherShape) {
  const Scratch folder;
  write_example(folder.path() / "run.h5", 2);
  RunFile run = RunFile::resume(folder.path() / "run.h5");
  ParticleEnsemble other = ramp(0.0);
  other.particle_count = 2;
  other.replica_count = 3;
  EXPECT_THROW(run.append_positions({.step = 50, .time = 5.0}, other), FileError);
}

TEST(RunFile, RefusesGarbageWithASentenceThatNamesTheFile) {
  const Scratch folder;
  const fs::path path = folder.path() / "run.h5";
  write_example(path, 3);
  const std::string good = read_text(path);
  for (const std::string& bad :
       {std::string(), std::string("x"), good.substr(0, good.size() / 2), good.substr(0, 1),
        std::string(100000, '\x7f'), std::string("[model]\ninverse_temperature = 1\n")}) {
    write_text(path, bad);
    try {
      const RunReader reader(path);
      FAIL() << "accepted " << bad.size() << " bytes of garbage";
    } catch (const FileError& error) {
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(RunReader(folder.path()), FileError) << "a folder";
  EXPECT_THROW(RunReader(folder.path() / "none.h5"), FileError);
}

TEST(RunFile, WaitsForNoPipeAndReadsNoDevice) {
  const Scratch folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& path : {pipe, fs::path("/dev/zero")}) {
    EXPECT_THROW(RunReader reader(path), FileError) << path;
    EXPECT_THROW(read_text(path), FileError) << path;
  }
}

TEST(RunFile, NoticesADamagedValue) {
  const Scratch folder;
  const fs::path path = folder.path() / "run.h5";
  {
    RunFile run = RunFile::create(path, {});
    run.append_positions(
        {}, {.replica_count = 1, .particle_count = 2, .dimension = 1, .positions = {0.123, 0.456}});
    run.commit();
  }
  std::string bytes = read_text(path);
  const double value = 0.456;
  const std::string needle(reinterpret_cast<const char*>(&value), sizeof value);
  const std::size_t at = bytes.find(needle);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  write_text(path, bytes);
  EXPECT_THROW(RunReader(path).positions(0), FileError);
}

TEST(RunFile, WhatItSaysToHoldAndDoesNotIsMissingNotAbsent) {
  const Scratch folder;
  const fs::path path = folder.path() / "run.h5";
  const auto refusal = [&]() -> std::string {
    try {
      RunReader reader(path);
      return "";
    } catch (const FileError& error) {
      return error.what();
    }
  };
  write_example(path, 2);
  EXPECT_EQ(refusal(), "");
  {
    hdf5::File file = hdf5::File::open_to_write(path, path);
    EXPECT_EQ(file.integers("h5md", "replicas"), std::vector<std::int64_t>{2});
    EXPECT_EQ(file.text("h5md", "series"),
              "observables/density/free_energy\nobservables/particles/mean\ndensity");
    file.set_integers("h5md", "replicas", std::vector<std::int64_t>{3});
  }
  EXPECT_NE(refusal().find("cannot read particles/replica2/position: "), std::string::npos) << refusal();
  {
    hdf5::File file = hdf5::File::open_to_write(path, path);
    file.set_integers("h5md", "replicas", std::vector<std::int64_t>{2});
    file.set_text("h5md", "series", "observables/particles/mean\nobservables/particles/entropy");
  }
  EXPECT_NE(refusal().find("cannot read observables/particles/entropy: "), std::string::npos) << refusal();
}

TEST(RunFile, ADamagedObjectIsNoAbsentOne) {
  const Scratch folder;
  const fs::path path = folder.path() / "run.h5";
  write_example(path, 3);
  const std::string good = read_text(path);
  const auto contents = [&] {
    const RunReader reader(path);
    return std::tuple(reader.series_names(), reader.density_clocks().size(), reader.position_clocks().size());
  };
  const auto whole = contents();
  const std::string header = "OHDR";  // of every object, before what its checksum covers
  int objects = 0, refused = 0;
  for (std::size_t at = good.find(header); at != std::string::npos;
       at = good.find(header, at + 1), ++objects) {
    std::string bytes = good;
    bytes[at + 8] = static_cast<char>(bytes[at + 8] ^ 4);
    write_text(path, bytes);
    try {
      EXPECT_EQ(contents(), whole) << "object at byte " << at;
    } catch (const FileError& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(objects, 10);
  EXPECT_GT(refused, 5);
}

TEST(RunFile, SaysSoWhenAFolderCannotHoldIt) {
  const Scratch folder;
  write_text(folder.path() / "file", "not a folder");
  for (const fs::path& path : {folder.path() / "file" / "run.h5", folder.path() / "missing" / "run.h5"}) {
    try {
      RunFile::create(path, {});
      FAIL();
    } catch (const FileError& error) {
      EXPECT_NE(std::string(error.what()).find("run.h5"), std::string::npos) << error.what();
    }
  }
}

/// Writes until the limit on the size of a file is met, as on a full disk; exits with 0 when all is as
/// promised.
[[noreturn]] void write_until_full(const fs::path& path) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 300000, .rlim_max = 300000};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  int committed = 0;
  try {
    RunFile run = RunFile::create(path, {});
    for (int row = 0; row < 100; ++row) {
      ParticleEnsemble ensemble{.replica_count = 1, .particle_count = 1000, .dimension = 1, .positions = {}};
      ensemble.positions.assign(1000, 1.0 * row);
      run.append_positions({.step = row, .time = 1.0 * row}, ensemble);
      run.commit();
      committed = row + 1;
    }
    std::_Exit(1);
  } catch (const FileError& error) {
    const std::string text = error.what();
    if (text.find("/run.h5: cannot write") == std::string::npos ||
        text.find("File too large") == std::string::npos)
      std::_Exit(2);
  }
  const RunReader reader(path);
  if (committed < 10 || reader.position_clocks().size() != static_cast<std::size_t>(committed)) std::_Exit(3);
  if (reader.positions(static_cast<std::size_t>(committed) - 1).positions[999] != committed - 1) std::_Exit(4);
  if (std::distance(fs::directory_iterator(path.parent_path()), fs::directory_iterator()) != 1) std::_Exit(5);
  std::_Exit(0);
}

TEST(RunFile, KeepsWhatWasCommittedWhenTheDiskIsFull) {
  const Scratch folder;
  EXPECT_EXIT(write_until_full(folder.path() / "run.h5"), testing::ExitedWithCode(0), "^$");
}

/// One life of a run: goes on from the last checkpoint, writes a row per step, commits, and tells each
/// committed step.
[[noreturn]] void write_rows_for_ever(const fs::path& folder, int told) {
  const fs::path path = folder / "run.h5";
  const std::optional<Checkpoint> checkpoint = load_checkpoint(folder);
  std::int64_t step = checkpoint ? checkpoint->integers.at("step") : 0;
  RunFile run = fs::exists(path) ? RunFile::resume(path) : RunFile::create(path, {});
  run.drop_after("", {.step = step, .time = 0.5 * static_cast<double>(step)});
  for (;;) {
    ++step;
    const Clock clock{.step = step, .time = 0.5 * static_cast<double>(step)};
    run.append(energy, clock, std::vector{1.0 / static_cast<double>(step)});
    run.append_positions(clock, ramp(static_cast<double>(step)));
    run.commit();
    if (step % 3 == 0)
      save_checkpoint(folder, {.integers = {{"step", step}}, .numbers{}, .arrays{}, .texts{}});
    [[maybe_unused]] const auto written = ::write(told, &step, sizeof step);
  }
}

TEST(RunFile, IsWholeAfterAKillAtAnyInstantAndResumesWithoutMissingOrDoubleRows) {
  const Scratch folder;
  const fs::path path = folder.path() / "run.h5";
  std::mt19937 generator(20240611);
  std::uniform_int_distribution<int> microseconds(0, 40000);
  for (int life = 0; life < 60; ++life) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(pipe[0]);
      write_rows_for_ever(folder.path(), pipe[1]);
    }
    ::close(pipe[1]);
    std::int64_t told = 0;
    if (life % 2 == 1) {  // every other life gets as far as a checkpoint, however slow the disk is
      for (int count = 0; count < 3; ++count) ASSERT_EQ(::read(pipe[0], &told, sizeof told), sizeof told);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds(generator)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (std::int64_t step = 0; ::read(pipe[0], &step, sizeof step) == sizeof step;) told = step;
    ::close(pipe[0]);
    if (!fs::exists(path)) {
      EXPECT_EQ(told, 0);
      continue;
    }
    const RunReader run(path);
    const Series series = run.series(energy.name);
    ASSERT_GE(static_cast<std::int64_t>(series.step.size()), told) << "a committed row is missing";
    for (std::size_t row = 0; row < series.step.size(); ++row) {
      ASSERT_EQ(series.step[row], static_cast<std::int64_t>(row + 1));
      ASSERT_EQ(series.value[row], 1.0 / static_cast<double>(row + 1));
    }
    ASSERT_EQ(run.position_clocks().size(), series.step.size());
    ASSERT_EQ(run.positions(series.step.size() - 1).positions,
              ramp(static_cast<double>(series.step.size())).positions);
    ASSERT_NO_THROW(load_checkpoint(folder.path()));
  }
  EXPECT_GE(RunReader(path).position_clocks().size(), 90u) << "30 lives of three steps";
}

TEST(RunFile, IsTheSameBytesInAnyLocale) {
  const Scratch folder;
  write_example(folder.path() / "plain.h5", 3);
  if (std::setlocale(LC_ALL, "de_DE.UTF-8") == nullptr) GTEST_SKIP() << "no locale de_DE.UTF-8";
  write_example(folder.path() / "german.h5", 3);
  std::setlocale(LC_ALL, "C");
  EXPECT_EQ(read_text(folder.path() / "plain.h5"), read_text(folder.path() / "german.h5"));
}

TEST(RunFile, IsTheSameBytesHoweverOftenItWasCommittedAndLater) {
  const Scratch folder;
  Density density{.grid = {{0.0}, {1.0}, {600}, false, {}}, .averages = {}};
  for (const bool often : {false, true}) {
    RunFile run = RunFile::create(folder.path() / (often ? "often.h5" : "once.h5"), {{"name", "same"}});
    for (std::int64_t step = 0; step < 40; ++step) {
      const Clock clock{.step = step, .time = 0.1 * static_cast<double>(step)};
      const std::vector<double> value = {std::sin(clock.time), std::cos(clock.time)};
      run.append({.name = "circle", .units = "1", .meaning = "a point", .columns = 2}, clock, value);
      density.averages.assign(600, 1.0 + clock.time);
      run.append_density(clock, density);
      if (often) run.commit();
    }
    run.set_attribute("status", "completed");
    run.finish();
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5 counts time stamps in seconds
  }
  EXPECT_TRUE(read_text(folder.path() / "once.h5") == read_text(folder.path() / "often.h5"));
  EXPECT_EQ(RunReader(folder.path() / "often.h5").density_clocks().size(), 40u);
}

TEST(RunFile, CommitsAreDueOnlyAfterTwentyTimesTheirDuration) {
  const Scratch folder;
  RunFile run = RunFile::create(folder.path() / "run.h5", {});
  EXPECT_TRUE(run.commit_is_due());
  const auto begin = std::chrono::steady_clock::now();
  run.commit();
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_FALSE(run.commit_is_due());
  std::this_thread::sleep_for(20 * took);
  EXPECT_TRUE(run.commit_is_due());
}

}  // namespace
