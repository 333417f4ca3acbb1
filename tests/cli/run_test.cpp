#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/run_file.hpp"
#include "scratch.hpp"

namespace rieszflow::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Run : public Scratch {
 protected:
  Json summary(const fs::path& folder) const {
    return Json::parse(content(folder_ / folder / "summary.json"));
  }

  // Contents of all files of a result folder.
  std::map<std::string, std::string> contents(const fs::path& folder) const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / folder)) {
      if (entry.is_regular_file())
        all[entry.path().lexically_relative(folder_).string()] = content(entry.path());
    }
    return all;
  }
};

void expect_equal(const std::vector<double>& a, const std::vector<double>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t index = 0; index < a.size(); ++index) {
    const bool same = a[index] == b[index] || (std::isnan(a[index]) && std::isnan(b[index]));
    ASSERT_TRUE(same) << what << "[" << index << "]: " << a[index] << " and " << b[index];
  }
}

// Series, densities and positions of two run files are the same bits.
void expect_same_run(const fs::path& first, const fs::path& second) {
  const io::RunReader a(first / "run.h5"), b(second / "run.h5");
  ASSERT_EQ(a.series_names(), b.series_names());
  ASSERT_FALSE(a.series_names().empty());
  for (const std::string& name : a.series_names()) {
    const io::Series one = a.series(name), other = b.series(name);
    expect_equal(one.time, other.time, name + " time");
    EXPECT_EQ(one.step, other.step) << name;
    expect_equal(one.value, other.value, name);
    expect_equal(one.standard_error, other.standard_error, name + " standard error");
  }
  ASSERT_EQ(a.density_clocks().size(), b.density_clocks().size());
  for (std::size_t snapshot = 0; snapshot < a.density_clocks().size(); ++snapshot) {
    expect_equal(a.density(snapshot).averages, b.density(snapshot).averages, "density");
  }
  ASSERT_EQ(a.position_clocks().size(), b.position_clocks().size());
  for (std::size_t snapshot = 0; snapshot < a.position_clocks().size(); ++snapshot) {
    expect_equal(a.positions(snapshot).positions, b.positions(snapshot).positions, "positions");
  }
}

TEST_F(Run, WritesTheResultFolderNamedAfterTheConfig) {
  const Ran ran = run({"run", "small.toml"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("out/small/report.html"), std::string::npos) << ran.out;
  for (const char* file : {"run.h5", "config.toml", "summary.json", "report.html"}) {
    EXPECT_TRUE(fs::is_regular_file(folder_ / "out/small" / file)) << file;
  }
  const Json result = summary("out/small");
  EXPECT_EQ(result["status"], "completed");
  EXPECT_NEAR(result["density"]["final"]["mass"].get<double>(), 1.0, 1e-13);
  EXPECT_TRUE(result["particles"]["final"]["free_energy"].is_number());
  EXPECT_EQ(result["comparison"]["free_energy"]["time"].size(), 3u);
}

TEST_F(Run, TheSameCommandTwiceIsRefusedAndTouchesNothing) {
  ASSERT_EQ(run({"run", "small.toml", "--out", "results"}).code, 0);
  const auto before = contents("results");
  const Ran second = run({"run", "small.toml", "--out", "results"});
  EXPECT_EQ(second.code, 2);
  for (const char* option : {"--resume", "--force", "--out"}) {
    EXPECT_NE(second.err.find(option), std::string::npos) << second.err;
  }
  EXPECT_EQ(contents("results"), before);
}

TEST_F(Run, ForceReplacesResultsAndLeavesOtherFiles) {
  ASSERT_EQ(run({"run", "small.toml", "--out", "results"}).code, 0);
  write("results/notes.txt", "mine");
  write("results/figures/mine.dat", "mine");
  ASSERT_EQ(run({"run", "small.toml", "--out", "results", "--force", "--set", "time.end=0.05"}).code, 0);
  EXPECT_EQ(summary("results")["density"]["final"]["time"], 0.05);
  EXPECT_EQ(content(folder_ / "results/notes.txt"), "mine");
  EXPECT_EQ(content(folder_ / "results/figures/mine.dat"), "mine");
}

TEST_F(Run, ForceTouchesNothingThatAnotherProcessIsWriting) {
  ASSERT_EQ(run({"run", "small.toml", "--out", "results"}).code, 0);
  const auto writer = io::RunFile::resume(folder_ / "results/run.h5");
  const auto before = contents("results");
  const Ran second = run({"run", "small.toml", "--out", "results", "--force"});
  EXPECT_EQ(second.code, 4);
  EXPECT_NE(second.err.find("another process is writing this run"), std::string::npos) << second.err;
  EXPECT_EQ(contents("results"), before);
}

TEST_F(Run, ASeedThatIsNoSeedIsRefusedNotBent) {
  for (const char* seed : {"99999999999999999999", "9223372036854775808", "-3", "1.5", "0x10", "seven"}) {
    const Ran ran = run({"run", "small.toml", "--out", "seeded", "--seed", seed});
    EXPECT_EQ(ran.code, 2) << seed;
    EXPECT_NE(ran.err.find("must be an integer from 0"), std::string::npos) << ran.err;
  }
  ASSERT_EQ(run({"run", "small.toml", "--out", "seeded", "--seed", "010"}).code, 0);
  EXPECT_EQ(summary("seeded")["seed"], 10);
}

TEST_F(Run, AnOverrideThatIsNoTextIsRefusedAndTouchesNothing) {
  ASSERT_EQ(run({"run", "small.toml", "--out", "results"}).code, 0);
  const auto before = contents("results");
  EXPECT_EQ(run({"run", "small.toml", "--out", "results", "--force", "--set", "name=\xff\xfe"}).code, 2);
  EXPECT_EQ(contents("results"), before);
}

TEST_F(Run, TheResolvedConfigRepeatsTheRun) {
  ASSERT_EQ(run({"run", "small.toml", "--out", "first", "--set", "particles.count=30", "--seed", "9"}).code,
            0);
  ASSERT_EQ(run({"run", "first/config.toml", "--out", "second"}).code, 0);
  EXPECT_EQ(content(folder_ / "first/config.toml"), content(folder_ / "second/config.toml"));
  expect_same_run(folder_ / "first", folder_ / "second");
}

TEST_F(Run, IsTheSameBitsForEveryNumberOfThreads) {
  for (const char* threads : {"1", "2", "3"}) {
    ASSERT_EQ(run({"run", "small.toml", "--threads", threads, "--out", threads}).code, 0);
  }
  expect_same_run(folder_ / "1", folder_ / "2");
  expect_same_run(folder_ / "1", folder_ / "3");
}

TEST_F(Run, IsTheSameInALocaleWithDecimalCommas) {
  ASSERT_EQ(
      run({"run", "small.toml", "--set", "particles.timestep=1.5e-3", "--out", "english"}, {"LC_ALL=C"}).code,
      0);
  ASSERT_EQ(run({"run", "small.toml", "--set", "particles.timestep=1.5e-3", "--out", "german"},
                {"LC_ALL=de_DE.UTF-8"})
                .code,
            0);
  expect_same_run(folder_ / "english", folder_ / "german");
  EXPECT_EQ(content(folder_ / "english/config.toml"), content(folder_ / "german/config.toml"));
  Json english = summary("english"), german = summary("german");
  for (Json* result : {&english, &german}) {
    result->erase("timing");
    result->erase("command_line");
  }
  EXPECT_EQ(english, german);
}

TEST_F(Run, PathsMayHoldSpacesAndAnyLetter) {
  const std::string out = "out dir/ümlaut ρ";
  const Ran ran = run({"run", "small.toml", "--out", out});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(fs::is_regular_file(folder_ / out / "report.html"));
  EXPECT_EQ(run({"info", out + "/run.h5"}).code, 0);
  EXPECT_EQ(run({"export", out + "/run.h5", "--vtk", out + "/vtk"}).code, 0);
  EXPECT_EQ(run({"report", out}).code, 0);
  int pvd_files = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / out / "vtk"))
    pvd_files += entry.path().extension() == ".pvd";
  EXPECT_EQ(pvd_files, 2) << "density and particles";
}

TEST_F(Run, JsonLinesOwnStandardOutput) {
  const Ran ran = run({"run", "small.toml", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::istringstream lines(ran.out);
  std::vector<Json> events;
  for (std::string line; std::getline(lines, line);) events.push_back(Json::parse(line));
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events.front()["event"], "plan");
  EXPECT_EQ(events.back()["event"], "result");
  EXPECT_EQ(events.back()["exit_code"], 0);
  EXPECT_EQ(events.back()["summary"]["status"], "completed");
}

TEST_F(Run, QuietSaysNothing) {
  const Ran ran = run({"run", "small.toml", "--quiet"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out + ran.err, "");
}

TEST_F(Run, OneSideAloneIsARun) {
  write("particles.toml", small_config.substr(0, small_config.find("[density]")));
  std::string density = small_config;
  density.erase(density.find("[particles]"), density.find("[density]") - density.find("[particles]"));
  write("density.toml", density);
  ASSERT_EQ(run({"run", "particles.toml"}).code, 0);
  EXPECT_FALSE(summary("out/particles").contains("density"));
  const Ran ran = run({"run", "density.toml", "--seed", "1"});
  ASSERT_EQ(ran.code, 0);
  EXPECT_NE(ran.err.find("nothing is random"), std::string::npos) << ran.err;
  EXPECT_FALSE(summary("out/density").contains("particles"));
}

TEST_F(Run, LimitsOfTheNumbersNeverCrash) {
  for (const char* override :
       {"time.end=0", "time.output_every=10", "particles.count=1", "particles.count=2", "density.cells=[1]",
        "density.cells=[2]", "density.cells=[3]", "model.inverse_temperature=1e308",
        "model.inverse_temperature=inf", "particles.timestep=1e6", "particles.replicas=1"}) {
    const Ran ran = run({"run", "small.toml", "--force", "--out", "limit", "--set", override});
    EXPECT_TRUE(ran.code == 0 || ran.code == 3) << override << ": " << ran.code << "\n" << ran.err;
    EXPECT_EQ(ran.code == 3, !ran.err.empty()) << override << ": a fault is said";
  }
}

TEST_F(Run, AnUnstableTimestepIsSaidBeforeAndKeptWithTheResults) {
  // Euler steps h of a force of stiffness 100 multiply a displacement by 1 - 100 h: 5 - 1 = 4 here.
  const std::vector<std::string> unstable = {"run",   "small.toml",
                                             "--set", "model.potential[0].stiffness=100",
                                             "--set", "particles.timestep=0.05",
                                             "--set", "particles.scheme=reflected"};
  const Ran ran = run(unstable);
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const std::string& text : {ran.err, summary("out/small")["warnings"].at(0).get<std::string>(),
                                  io::RunReader(folder_ / "out/small/run.h5").manifest().at("warning"),
                                  content(folder_ / "out/small/report.html")}) {
    EXPECT_NE(text.find("particles.timestep is too long: a step of 0.05 is unstable"), std::string::npos)
        << text;
    EXPECT_NE(text.find("2/stiffness = 0.02"), std::string::npos) << text;
  }
  std::vector<std::string> plan = unstable;
  plan.push_back("--dry-run");
  EXPECT_NE(run(plan).err.find("warning: particles.timestep"), std::string::npos);
  const Ran stable = run({"run", "small.toml", "--force"});
  EXPECT_EQ(stable.err, "");
  EXPECT_FALSE(summary("out/small").contains("warnings"));
}

TEST_F(Run, AStudyNamesItsRowsWithAnUnstableTimestep) {
  // The reflected scheme is unstable from h = 2/stiffness = 0.1 on: one row of the two.
  write("steps.toml",
        "[model]\ninverse_temperature = 1\n[model.domain]\ntype = \"box\"\nlower = [-1]\nupper = [1]\n"
        "[[model.potential]]\ntype = \"quadratic\"\nstiffness = 20\n[initial]\ntype = \"uniform\"\n"
        "[time]\nend = 0.2\noutput_every = 0.2\n[particles]\ncount = 10\nreplicas = 4\n"
        "[study]\ntype = \"timestep\"\nvalues = [0.2, 0.05]\nstatistic = \"second_moment\"\n"
        "reference = \"exact\"\nexact = 0.05\n");
  const Ran ran = run({"study", "steps.toml"});
  const Json sentences = summary("out/steps")["warnings"];
  ASSERT_EQ(sentences.size(), 1U) << ran.err;
  for (const std::string& text :
       {ran.err, sentences[0].get<std::string>(), content(folder_ / "out/steps/report.html")}) {
    EXPECT_NE(text.find("= 0.2"), std::string::npos) << text;
    EXPECT_NE(text.find("particles.timestep is too long: a step of 0.2 is unstable"), std::string::npos)
        << text;
  }
  EXPECT_NE(run({"study", "steps.toml", "--dry-run"}).err.find("warning: "), std::string::npos);
  // Its report needs the study: --resume measures nothing again and writes it.
  const Ran report = run({"report", "out/steps"});
  EXPECT_EQ(report.code, 4);
  EXPECT_NE(report.err.find("the same command with --resume"), std::string::npos) << report.err;
  fs::remove(folder_ / "out/steps/report.html");
  EXPECT_EQ(run({"study", "steps.toml", "--resume"}).code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "out/steps/report.html"));
}

TEST_F(Run, ABlowUpIsAFaultOfTheMathematicsAndKeepsWhatWasComputed) {
  // Particles in V = -x^4 leave every bound in finite time: x' = 4 x^3 from x = 2 at t = 1/32.
  write("blow_up.toml",
        "[model]\ninverse_temperature = 1\n[model.domain]\ntype = \"whole_space\"\ndimension = 1\n"
        "[[model.potential]]\ntype = \"polynomial\"\ncoefficients = [0, 0, 0, 0, -1]\n"
        "[initial]\ntype = \"gaussian\"\nmean = [2]\nstd = [0.1]\n[time]\nend = 1\noutput_every = 0.01\n"
        "[particles]\ncount = 4\ntimestep = 1e-3\n");
  const Ran ran = run({"run", "blow_up.toml", "--out", "blow up"});
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_NE(ran.err.find("not_finite"), std::string::npos) << ran.err;
  EXPECT_EQ(summary("blow up")["status"], "not_finite");
  EXPECT_FALSE(io::RunReader(folder_ / "blow up/run.h5").position_clocks().empty());
}

// A wish to stop is heard after every step, and "0s" is one from the start: each part is one step, however
// fast or loaded the machine is.
TEST_F(Run, AnInterruptedRunResumesToTheSameBits) {
  const auto command = [](const std::string& out) -> std::vector<std::string> {
    return {"run",   "small.toml",
            "--out", out,
            "--set", "particles.timestep=0.025",
            "--set", "density.timestep=0.025"};
  };
  ASSERT_EQ(run(command("whole")).code, 0);
  std::vector<std::string> first = command("parts");
  first.insert(first.end(), {"--max-wall", "0s"});
  Ran ran = run(first);
  ASSERT_EQ(ran.code, 130) << ran.err;
  EXPECT_NE(ran.err.find("continue with: rieszflow run parts/config.toml --out parts --resume"),
            std::string::npos)
      << ran.err;
  int parts = 1;
  for (; ran.code == 130 && parts < 100; ++parts) {
    EXPECT_EQ(summary("parts")["status"], "interrupted");
    ran = run({"run", "parts/config.toml", "--out", "parts", "--resume", "--max-wall", "0s"});
  }
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_GE(parts, 4) << "the steps of the particles at least";
  expect_same_run(folder_ / "whole", folder_ / "parts");
  EXPECT_EQ(summary("parts")["status"], "completed");
}

// Particles only, with steps of about ten milliseconds: hours unless it is stopped.
const std::string long_config = small_config.substr(0, small_config.find("[particles]")) +
                                "[particles]\ncount = 5000\nsummation = \"direct\"\ntimestep = 1e-6\n";

class Signals : public Run {
 protected:
  // The program in the middle of its first steps.
  Process started(const std::string& out) {
    write("long.toml", long_config);
    Process process({RIESZFLOW_EXECUTABLE, "run", "long.toml", "--out", out}, folder_);
    while (process.runs() && !fs::exists(folder_ / out / "config.toml")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return process;
  }
};

TEST_F(Signals, TheFirstFinishesTheStepAndLeavesAnInterruptedRun) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string out = signal == SIGINT ? "interrupt" : "terminate";
    Process process = started(out);
    process.send(signal);
    EXPECT_EQ(process.wait(), 130);
    EXPECT_NE(process.err().find("rieszflow run " + out + "/config.toml --out " + out + " --resume"),
              std::string::npos)
        << process.err();
    EXPECT_EQ(summary(out)["status"], "interrupted");
  }
}

TEST_F(Signals, TheSecondEndsTheProgramAtOnce) {
  Process process = started("twice");
  process.send(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  process.send(SIGINT);
  EXPECT_EQ(process.wait(), 130);
  EXPECT_NE(process.err().find("stopped at once"), std::string::npos) << process.err();
}

TEST_F(Run, ResumeRefusesAnotherConfig) {
  ASSERT_EQ(run({"run", "small.toml", "--out", "results"}).code, 0);
  const auto before = contents("results");
  const Ran ran = run({"run", "small.toml", "--out", "results", "--resume", "--set", "particles.count=21"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("[particles] count = 20 there, count = 21 here"), std::string::npos) << ran.err;
  EXPECT_EQ(contents("results"), before);
}

TEST_F(Run, ResumeWithoutResultsStartsAnew) {
  const Ran ran = run({"run", "small.toml", "--resume"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("starting anew"), std::string::npos) << ran.out;
}

TEST_F(Run, InfoNamesModelStatusVersionsSeriesAndSnapshots) {
  ASSERT_EQ(run({"run", "small.toml", "--out", "results"}).code, 0);
  const Ran ran = run({"info", "results/run.h5"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* word :
       {"version", "commit", "compiler", "command_line", "rieszflow run small.toml --out results",
        "completed", "particles/free_energy", "density/free_energy", "density snapshots    3",
        "particle snapshots   3", "2 replicas of N = 20 in d = 1"}) {
    EXPECT_NE(ran.out.find(word), std::string::npos) << word << "\n" << ran.out;
  }
}

TEST_F(Run, TheReportIsRebuilt) {
  ASSERT_EQ(run({"run", "small.toml", "--out", "results"}).code, 0);
  fs::remove(folder_ / "results/report.html");
  ASSERT_EQ(run({"report", "results"}).code, 0);
  EXPECT_GT(fs::file_size(folder_ / "results/report.html"), 1000u);
}

TEST_F(Run, AReportOfASummaryOfAnotherVersionIsRefusedByName) {
  fs::create_directory(folder_ / "old");
  for (const char* experiment : {"learn", "attention"}) {
    write("old/summary.json",
          std::string("{\"experiment\": \"") + experiment + "\", \"table\": [], \"differences\": [{}]}");
    const Ran ran = run({"report", "old"});
    EXPECT_EQ(ran.code, 4);
    EXPECT_NE(ran.err.find("old/summary.json: cannot read: another version wrote it"), std::string::npos)
        << ran.err;
  }
}

}  // namespace
}  // namespace rieszflow::test
