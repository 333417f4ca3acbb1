#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scratch.hpp"

namespace rieszflow::test {
namespace {

using Commands = Scratch;

TEST_F(Commands, VersionNamesCommitCompilerAndLibraries) {
  const Ran ran = run({"--version"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.out.starts_with("rieszflow 0.")) << ran.out;
  for (const char* word : {"compiler", "libraries", "HDF5", "toml++", "Eigen"}) {
    EXPECT_NE(ran.out.find(word), std::string::npos) << word;
  }
}

TEST_F(Commands, HelpOfTheProgramAndOfRunHasExamplesAndExitCodes) {
  EXPECT_EQ(run({"--help"}).code, 0);
  const Ran ran = run({"run", "--help"});
  EXPECT_EQ(ran.code, 0);
  for (const char* word : {"--out", "--set", "--threads", "--seed", "--resume", "--force", "--dry-run",
                           "--quiet", "--json", "--max-wall", "Examples:", "Exit codes:"}) {
    EXPECT_NE(ran.out.find(word), std::string::npos) << word;
  }
}

TEST_F(Commands, WrongArgumentsAreTheUsersFault) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"rum"},
      {"run"},
      {"run", "small.toml", "--frce"},
      {"run", "small.toml", "--threads", "0"},
      {"run", "small.toml", "--threads", "two"},
      {"run", "small.toml", "--seed", "-1"},
      {"run", "small.toml", "--max-wall", "soon"},
      {"run", "small.toml", "--resume", "--force"},
      {"export", "small.toml"},
      {"export", "none.h5", "--vtk", "vtk"},
      {"info", "none.h5"},
      {"report", "none"},
      {"defaults", "rum"},
  };
  for (const auto& arguments : wrong) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2) << testing::PrintToString(arguments);
    EXPECT_FALSE(ran.err.empty()) << testing::PrintToString(arguments);
  }
  EXPECT_EQ(listing(), "small.toml\n");
}

TEST_F(Commands, AWallTimeHasUnitsEachOnceTheLongerOnesFirst) {
  for (const char* wall : {"90s", "1.5m", "1h30m", "1d2h3m4s", "0s"})
    EXPECT_EQ(run({"run", "small.toml", "--dry-run", "--max-wall", wall}).code, 0) << wall;
  for (const char* wall : {"5", "1h1h", "30m1h", "1h30", "-1s", "1e3s", "h", "1 h", "infs", ""}) {
    const Ran ran = run({"run", "small.toml", "--dry-run", "--max-wall", wall});
    EXPECT_EQ(ran.code, 2) << wall;
    EXPECT_NE(ran.err.find("each at most once and in this order: 90s, 15m, 1h30m"), std::string::npos)
        << ran.err;
  }
}

TEST_F(Commands, ResultsAreNeverPlannedOutsideOfOut) {
  const Ran ran = run({"run", "small.toml", "--dry-run", "--set", "name=../x"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(
      ran.err.starts_with("--set: name: is the text \"../x\", must be a non-empty text in quotes, without"))
      << ran.err;
  write("named.toml", "name = \"a/b\"\n" + small_config);
  EXPECT_TRUE(run({"run", "named.toml", "--dry-run"}).err.starts_with("named.toml:1: name: ")) << ran.err;
  write(".hidden.toml", small_config);
  EXPECT_NE(run({"run", ".hidden.toml", "--dry-run"}).out.find("out/hidden"), std::string::npos);
}

TEST_F(Commands, AConfigOfAnotherCommandNamesThatCommand) {
  write("study.toml", run({"defaults", "study"}).out);
  const Ran study_as_run = run({"run", "study.toml"});
  EXPECT_EQ(study_as_run.code, 2);
  EXPECT_NE(study_as_run.err.find("study: unknown key, this table is one of `rieszflow study`"),
            std::string::npos)
      << study_as_run.err;
  const Ran run_as_study = run({"study", "small.toml"});
  EXPECT_EQ(run_as_study.code, 2);
  EXPECT_NE(run_as_study.err.find("a config without it is one of `rieszflow run`"), std::string::npos)
      << run_as_study.err;
  const Ran run_as_learn = run({"learn", "small.toml"});
  EXPECT_NE(run_as_learn.err.find("this table is one of `rieszflow run` or `rieszflow study`"),
            std::string::npos)
      << run_as_learn.err;
}

TEST_F(Commands, AConfigMayComeThroughAPipe) {
  const std::string program = "\"" RIESZFLOW_EXECUTABLE "\" run ";
  for (const std::string words :
       {"<(cat small.toml) --dry-run", "/dev/stdin --dry-run < <(cat small.toml)"}) {
    Process process({"/bin/bash", "-c", program + words}, folder_);
    EXPECT_EQ(process.wait(), 0) << process.err();
  }
}

TEST_F(Commands, ListNamesEveryTypeAndScheme) {
  const Ran ran = run({"list"});
  EXPECT_EQ(ran.code, 0);
  for (const char* name : {"box",           "ball",
                           "torus",         "whole_space",
                           "quadratic",     "double_well",
                           "polynomial",    "cosine",
                           "expression",    "table",
                           "riesz",         "log",
                           "coulomb",       "gaussian",
                           "morse",         "low_rank",
                           "uniform",       "mixture",
                           "file",          "projected",
                           "reflected",     "mala",
                           "direct",        "fast",
                           "semi_implicit", "method_of_lines",
                           "favor",         "softmaxfeat"}) {
    EXPECT_NE(ran.out.find("\n  " + std::string(name) + " "), std::string::npos) << name;
  }
}

TEST_F(Commands, DefaultsArePrintedReadyToRun) {
  const Ran printed = run({"defaults", "run"});
  EXPECT_EQ(printed.code, 0);
  write("defaults.toml", printed.out);
  const Ran planned = run({"run", "defaults.toml", "--dry-run"});
  EXPECT_EQ(planned.code, 0) << planned.err;
}

TEST_F(Commands, DryRunPrintsThePlanAndWritesNothing) {
  const Ran ran = run({"run", "small.toml", "--dry-run"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("2 replicas of N = 20 in 1 dimension: 40 coordinates, 10 steps"), std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("32 cells"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("memory"), std::string::npos) << ran.out;
  EXPECT_EQ(listing(), "small.toml\n");
}

TEST_F(Commands, MoreThanMemoryHoldsIsRefusedWithTheNumbers) {
  for (const char* option : {"--dry-run", "--quiet"}) {
    const Ran ran = run({"run", "small.toml", option, "--set", "particles.count=1000000000000"});
    EXPECT_EQ(ran.code, 4);
    EXPECT_NE(ran.err.find("2e+12 particle coordinates"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("TiB of memory"), std::string::npos) << ran.err;
  }
  EXPECT_EQ(listing(), "small.toml\n");
}

TEST_F(Commands, EveryMistakeOfAConfigIsReportedWithItsLineAndNothingIsWritten) {
  std::string text = small_config;
  const auto replace = [&](const std::string& old, const std::string& with) {
    text.replace(text.find(old), old.size(), with);
  };
  replace("exponent = 0.5", "exponnent = 0.5");
  replace("[[model.potential]]", "[[model.potentail]]");
  replace("cells = [32]", "cells = [32]\ncount = 3\ncells = [16]");
  write("wrong.toml", text);
  const Ran ran = run({"run", "wrong.toml"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err,
            "wrong.toml:7: model.potentail: unknown key, did you mean \"potential\"? Allowed: "
            "inverse_temperature, domain, "
            "potential, interaction\n"
            "wrong.toml:12: model.interaction[0].exponnent: unknown key, did you mean \"exponent\"? Allowed "
            "for type = "
            "\"riesz\": type, exponent, strength, softening\n"
            "wrong.toml:28: density.count: unknown key, this key belongs to [particles]; allowed: cells, "
            "scheme, weights, timestep, "
            "tolerance\n"
            "wrong.toml:29: density.cells: given twice, once is allowed, must be a list of 1 to 3 integers "
            "from 1 to "
            "1000000000\n");
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(listing(), "small.toml\nwrong.toml\n");
}

TEST_F(Commands, ProblemsAreJsonToo) {
  const Ran ran = run({"run", "small.toml", "--json", "--set", "particles.count=0"});
  EXPECT_EQ(ran.code, 2);
  const auto event = nlohmann::json::parse(ran.out);
  EXPECT_EQ(event["event"], "error");
  EXPECT_EQ(event["exit_code"], 2);
  EXPECT_EQ(event["problems"][0]["file"], "--set");
  EXPECT_EQ(event["problems"][0]["key"], "particles.count");
  EXPECT_EQ(ran.err, "--set: particles.count: is 0, must be an integer from 1 to 1000000000000\n");
}

TEST_F(Commands, NumbersOutOfRangeAreRefusedWithoutACrash) {
  for (const char* override :
       {"particles.count=0", "particles.count=-1", "particles.replicas=0", "density.cells=[0]",
        "density.cells=[]", "model.inverse_temperature=0", "model.inverse_temperature=-1",
        "model.inverse_temperature=nan", "time.end=-1", "time.end=nan", "time.end=inf", "time.output_every=0",
        "particles.timestep=0", "particles.timestep=inf", "model.domain.upper=[-1.0]",
        "model.domain.upper=[-2.0]", "model.domain.upper=[nan]"}) {
    const Ran ran = run({"run", "small.toml", "--set", override});
    EXPECT_EQ(ran.code, 2) << override;
    EXPECT_NE(ran.err.find("must be"), std::string::npos) << override << ": " << ran.err;
  }
  EXPECT_EQ(listing(), "small.toml\n");
}

TEST_F(Commands, FilesThatAreNoConfigAreRefused) {
  write("empty.toml", "");
  write("binary.toml", std::string("\0\1\2\3", 4));
  for (const char* file : {"empty.toml", "binary.toml", ".", "none.toml", "/dev/null"}) {
    const Ran ran = run({"run", file});
    EXPECT_EQ(ran.code, 2) << file;
    EXPECT_TRUE(ran.err.starts_with(file)) << ran.err;
  }
}

TEST_F(Commands, AFolderThatCannotBeMadeIsTheMachinesFaultAndNamed) {
  const Ran ran = run({"run", "small.toml", "--out", "small.toml/results"});
  EXPECT_EQ(ran.code, 4);
  EXPECT_NE(ran.err.find("small.toml/results: the folder cannot be created"), std::string::npos) << ran.err;
}

TEST_F(Commands, OutMustNotBeAFile) {
  EXPECT_EQ(run({"run", "small.toml", "--out", "small.toml"}).code, 2);
  EXPECT_EQ(content(folder_ / "small.toml"), small_config);
}

}  // namespace
}  // namespace rieszflow::test
