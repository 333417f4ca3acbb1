#include <gtest/gtest.h>

#include <fstream>

#include "../text/models.hpp"
#include "scratch.hpp"

namespace rieszflow::test {
namespace {

using Attention = Scratch;

TEST_F(Attention, PredictsTheSentencesOfAFileByAModelFile) {
  text::write_model(folder_ / "small.model",
                    text::small_model(attention::AttentionKind::PorfSoftplus, false));
  write("sentences.txt", "good film\nbad bad film\n");
  const Ran ran = run({"attention", "--predict", "sentences.txt", "--model", "small.model"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("label\tp_negative\tp_positive\tsentence\n")) << ran.out;
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 3);
  EXPECT_NE(ran.out.find("\tbad bad film\n"), std::string::npos);
  const Ran to_file = run({"attention", "--model", "small.model", "--predict", "sentences.txt", "--table",
                           "out.tsv", "--threads", "2"});
  EXPECT_EQ(to_file.code, 0) << to_file.err;
  std::ifstream file(folder_ / "out.tsv");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), ran.out) << "threads change no byte";
}

TEST_F(Attention, RefusesToPredictWithoutAModelFromADamagedOneAndFromBrokenRows) {
  text::write_model(folder_ / "small.model", text::small_model(attention::AttentionKind::Favor, true));
  write("pairs.txt", "one\ttwo\nonly one\n");
  const Ran without = run({"attention", "--predict", "pairs.txt"});
  EXPECT_EQ(without.code, 2);
  EXPECT_NE(without.err.find("--model"), std::string::npos) << without.err;
  const Ran broken = run({"attention", "--predict", "pairs.txt", "--model", "small.model"});
  EXPECT_EQ(broken.code, 2);
  EXPECT_NE(broken.err.find("pairs.txt:2: "), std::string::npos) << broken.err;
  write("cut.model", "rieszflow text model 2\n");
  const Ran cut = run({"attention", "--predict", "pairs.txt", "--model", "cut.model"});
  EXPECT_EQ(cut.code, 4);
  EXPECT_NE(cut.err.find("cut.model: damaged"), std::string::npos) << cut.err;
  const Ran missing = run({"attention", "--predict", "pairs.txt", "--model", "none.model"});
  EXPECT_EQ(missing.code, 4);
  const Ran unknown = run({"attention", "--predict", "pairs.txt", "--model", "small.model", "--sed", "3"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("--sed"), std::string::npos) << unknown.err;
}

TEST_F(Attention, PassesEverythingElseToTheProgramBesideItOrSaysWhatIsMissing) {
  // A copy of the program alone, then with a stand-in for the one that trains.
  const auto bin = folder_ / "bin";
  std::filesystem::create_directories(bin);
  std::filesystem::copy_file(RIESZFLOW_EXECUTABLE, bin / "rieszflow");
  const auto start = [&](std::vector<std::string> words) {
    words.insert(words.begin(), (bin / "rieszflow").string());
    Process process(words, folder_);
    const int code = process.wait();
    return Ran{code, process.out(), process.err()};
  };
  const Ran alone = start({"attention", "small.toml"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("libtorch-dev"), std::string::npos) << alone.err;
  const Ran help = start({"attention", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("--predict"), std::string::npos) << help.out;
  EXPECT_NE(help.out.find("Usage: rieszflow attention"), std::string::npos) << help.out;
  write("bin/rieszflow-attention", "#!/bin/sh\nprintf '%s|' \"$@\"\nexit 7\n");
  std::filesystem::permissions(bin / "rieszflow-attention", std::filesystem::perms::owner_all);
  const Ran passed =
      start({"attention", "small.toml", "--set", "study.size=quick", "--out", "a b", "--threads", "2"});
  EXPECT_EQ(passed.code, 7);
  EXPECT_EQ(passed.out, "small.toml|--set|study.size=quick|--out|a b|--threads|2|");
}

}  // namespace
}  // namespace rieszflow::test
