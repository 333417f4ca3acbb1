#include "experiments/attention/text_data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../io/scratch.hpp"
#include "experiments/attention/vocabulary.hpp"
#include "io/files.hpp"

namespace rieszflow::text {
namespace {

std::filesystem::path written(const Scratch& scratch, const std::string& name, const std::string& content) {
  io::write_text(scratch.path() / name, content);
  return scratch.path() / name;
}

TEST(TextReading, TakesSentencesAndPairsByTheNamesOfTheirColumns) {
  const Scratch scratch;
  const auto sentences =
      read_text(written(scratch, "a.tsv", "sentence\tlabel\na \"fine\" film\t1\r\nnot so\t0\n"));
  EXPECT_TRUE(sentences.problems.empty());
  EXPECT_EQ(sentences.data.first, (std::vector<std::string>{"a \"fine\" film", "not so"}));
  EXPECT_EQ(sentences.data.labels, (std::vector<int>{1, 0}));
  EXPECT_FALSE(sentences.data.pairs);
  const auto glue = read_text(written(scratch, "b.tsv",
                                      "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n7\t1\t2\tHow "
                                      "so?\tWhy so?\t1\n8\t3\t4\tWho?\tWhen?\t0\n"));
  EXPECT_TRUE(glue.problems.empty());
  EXPECT_TRUE(glue.data.pairs);
  EXPECT_EQ(glue.data.second, (std::vector<std::string>{"Why so?", "When?"}));
  EXPECT_EQ(glue.data.labels, (std::vector<int>{1, 0}));
}

TEST(TextReading, NamesFileAndLineOfEachBrokenRowAndKeepsTheOthers) {
  const Scratch scratch;
  const auto file =
      written(scratch, "broken.tsv",
              "sentence\tlabel\ngood\t1\nno label\nempty label\t\n\t1\nthree\t1\tfields\ntwo\t2\n"
              "bytes \xff\t0\nalso good\t0\n");
  const TextReading reading = read_text(file);
  EXPECT_EQ(reading.data.first, (std::vector<std::string>{"good", "also good"}));
  ASSERT_EQ(reading.problems.size(), 6u);
  EXPECT_EQ(reading.problems[0], file.string() + ":3: 1 fields, the header has 2");
  EXPECT_EQ(reading.problems[1], file.string() + ":4: label \"\", must be 0 or 1");
  EXPECT_EQ(reading.problems[2], file.string() + ":5: an empty text");
  EXPECT_EQ(reading.problems[5], file.string() + ":8: bytes that are not UTF-8");
}

TEST(TextReading, CountsTheBrokenRowsBeyondTheFirstTen) {
  const Scratch scratch;
  std::string content = "sentence\tlabel\n";
  for (int k = 0; k < 25; ++k) content += "no label\n";
  const TextReading reading = read_text(written(scratch, "many.tsv", content));
  ASSERT_EQ(reading.problems.size(), most_problems + 1);
  EXPECT_NE(reading.problems.back().find("15 more broken rows"), std::string::npos);
}

TEST(TextReading, RefusesFilesWithoutHeaderRowsOrExistence) {
  const Scratch scratch;
  EXPECT_EQ(read_text(written(scratch, "empty.tsv", "")).problems.size(), 1u);
  EXPECT_EQ(read_text(written(scratch, "header.tsv", "sentence\tlabel\n")).problems.size(), 1u);
  EXPECT_EQ(read_text(written(scratch, "plain.tsv", "just words\n")).problems.size(), 1u);
  EXPECT_THROW(read_text(scratch.path() / "missing.tsv"), io::FileError);
}

TEST(TextReading, OfSentencesToLabelTakesPlainLinesAndTables) {
  const Scratch scratch;
  const auto plain = read_sentences(written(scratch, "plain.txt", "a film\nanother\tfilm\n"), false);
  EXPECT_EQ(plain.data.first, (std::vector<std::string>{"a film", "another\tfilm"}));
  const auto table = read_sentences(written(scratch, "t.tsv", "index\tsentence\n0\ta film\n"), false);
  EXPECT_EQ(table.data.first, std::vector<std::string>{"a film"});
  const auto pairs = read_sentences(written(scratch, "p.txt", "one\ttwo\nlonely\n"), true);
  EXPECT_EQ(pairs.data.second, std::vector<std::string>{"two"});
  EXPECT_EQ(pairs.problems.size(), 1u);
  EXPECT_FALSE(read_sentences(written(scratch, "w.tsv", "sentence\tlabel\na\t1\n"), true).problems.empty());
}

TEST(Splits, OfAFolderWithoutTestLabelsTakeDevForTestingAndATenthOfTrainForDev) {
  const Scratch scratch;
  std::string train = "sentence\tlabel\n";
  for (int k = 0; k < 2000; ++k)
    train += "sentence " + std::to_string(k) + "\t" + std::to_string(k % 2) + "\n";
  written(scratch, "train.tsv", train);
  written(scratch, "dev.tsv", "sentence\tlabel\nx\t0\n");
  written(scratch, "test.tsv", "index\tsentence\n0\tunlabelled\n");
  const Splits splits = read_splits(scratch.path());
  EXPECT_TRUE(splits.problems.empty());
  EXPECT_EQ(splits.notes.size(), 1u);
  EXPECT_EQ(splits.test.first, std::vector<std::string>{"x"});
  EXPECT_EQ(splits.train.count() + splits.dev.count(), 2000u);
  EXPECT_NEAR(static_cast<double>(splits.dev.count()), 200.0, 5 * std::sqrt(180.0));
  EXPECT_EQ(read_splits(scratch.path()).dev.first, splits.dev.first);
}

TEST(Words, KeepApostrophesTogetherAndPunctuationApart) {
  EXPECT_EQ(words("Is n't it? He's 'so' CAFÉ-like ... ok``"),
            (std::vector<std::string>{"is", "n't", "it", "?", "he's", "'so", "'", "cafÉ", "-", "like", "...",
                                      "ok", "``"}));
  EXPECT_TRUE(words("  \t ").empty());
}

TextData sentences(std::vector<std::string> list) { return {.name = "train", .first = std::move(list)}; }

TEST(Vocabulary, HoldsTrainWordsWithTwoOccurrencesAndCoversTheOthersByPieces) {
  const auto train = sentences({"the film the", "film unable", "unstable film", "so unable?"});
  const Vocabulary vocabulary = Vocabulary::learn(train, {.fewest = 2, .most_pieces = 200});
  EXPECT_TRUE(vocabulary.has_word("film"));
  EXPECT_TRUE(vocabulary.has_word("the"));
  EXPECT_FALSE(vocabulary.has_word("unstable")) << "it occurs once";
  const auto known = vocabulary.ids("film the film", 10);
  EXPECT_EQ(known[0], known[2]);
  EXPECT_GT(vocabulary.ids("unstable", 10).size(), 0u);
  for (const std::int32_t id : vocabulary.ids("film zzz", 10))
    EXPECT_LT(static_cast<std::size_t>(id), vocabulary.size());
  EXPECT_EQ(vocabulary.ids("", 10), std::vector<std::int32_t>{Vocabulary::unknown});
  EXPECT_EQ(vocabulary.ids("the the the the", 2).size(), 2u);
}

TEST(Vocabulary, TellsAPieceAtTheBeginningFromTheSameInside) {
  const Vocabulary vocabulary({"word", "^ab", "+ab"}, 1);
  EXPECT_EQ(vocabulary.ids("abab", 10), (std::vector<std::int32_t>{3, 4}));
  EXPECT_EQ(vocabulary.ids("xab", 10), (std::vector<std::int32_t>{Vocabulary::unknown, 4}));
}

TEST(Vocabulary, DependsOnTheSentencesAndNotOnTheirOrder) {
  auto list = std::vector<std::string>{"a b c a b", "b c d d e", "unhappy unhurt", "hurtful a"};
  const Vocabulary once = Vocabulary::learn(sentences(list));
  std::reverse(list.begin(), list.end());
  EXPECT_EQ(Vocabulary::learn(sentences(list)).tokens(), once.tokens());
  const Vocabulary again(once.tokens(), once.word_count());
  EXPECT_EQ(again.ids("unhappy hurt a zz", 20), once.ids("unhappy hurt a zz", 20));
}

TEST(Vocabulary, HasAnIdForTwoTokensThatStandTogetherOftenEnough) {
  const TextData train = sentences({"a b a b c", "b c a a", "c b"});
  const Vocabulary vocabulary = Vocabulary::learn(train, {.fewest = 1, .fewest_bigrams = 2});
  const auto a = vocabulary.ids("a", 1)[0], b = vocabulary.ids("b", 1)[0], c = vocabulary.ids("c", 1)[0];
  // "a b" twice, "b c" twice; "b a", "c a", "a a", "c b" once.
  EXPECT_EQ(vocabulary.bigrams().size(), 2u);
  const std::vector<std::int32_t> ids = vocabulary.ids("a b c b a b", 10), found = vocabulary.bigram_ids(ids);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{a, b, c, b, a, b}));
  EXPECT_EQ(found[0], 0);
  EXPECT_EQ(found[3], 0);
  EXPECT_EQ(found[4], 0);
  EXPECT_EQ(found[1], found[5]);
  EXPECT_NE(found[1], found[2]);
  for (const std::int32_t id : {found[1], found[2]}) {
    EXPECT_GE(static_cast<std::size_t>(id), 2 + vocabulary.tokens().size());
    EXPECT_LT(static_cast<std::size_t>(id), vocabulary.size());
  }
  EXPECT_EQ(Vocabulary(vocabulary.tokens(), vocabulary.word_count(), vocabulary.bigrams()).bigram_ids(ids),
            found);
  EXPECT_TRUE(Vocabulary::learn(train).bigrams().empty());
}

TEST(Encoding, RaisesABigramThatBothSentencesHave) {
  const Vocabulary vocabulary({"why", "how", "so"}, 3, {{2, 4}, {3, 4}});
  const TextData pair{
      .name = "", .pairs = true, .first = {"why so"}, .second = {"how so why so"}, .labels = {1}};
  const TokenSet set = encode(pair, vocabulary, 8);
  const auto shared = static_cast<std::int32_t>(5 + vocabulary.size());
  EXPECT_EQ(set.bigrams[0], (std::vector<std::int32_t>{0, shared}));
  EXPECT_EQ(set.bigrams[1], (std::vector<std::int32_t>{0, 6, 0, shared}));
  EXPECT_EQ(batch(set, std::vector<std::size_t>{0}).bigrams,
            (std::vector<std::int32_t>{0, shared, 0, 0, 0, 6, 0, shared}));
}

TEST(Encoding, MarksTokensOfAPairThatTheOtherSentenceHas) {
  const Vocabulary vocabulary({"why", "how", "so"}, 3);
  const TextData pair{.name = "", .pairs = true, .first = {"why so"}, .second = {"how so so"}, .labels = {1}};
  const TokenSet set = encode(pair, vocabulary, 8);
  EXPECT_EQ(set.count(), 1u);
  EXPECT_EQ(set.match[0], (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(set.match[1], (std::vector<std::uint8_t>{0, 1, 1}));
  const auto raised = static_cast<std::int32_t>(4 + vocabulary.size());
  EXPECT_EQ(set.sequences[0], (std::vector<std::int32_t>{2, raised}));
  EXPECT_EQ(set.sequences[1], (std::vector<std::int32_t>{3, raised, raised}));
  const auto padded = batch(set, std::vector<std::size_t>{0});
  EXPECT_EQ(padded.length, 3u);
  EXPECT_EQ(padded.valid, (std::vector<std::uint8_t>{1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(padded.tokens[2], Vocabulary::padding);
}

TEST(Statistics, CountRepeatedContradictingAndLeakedRows) {
  Splits splits;
  splits.train = {.name = "train", .first = {"good film", "Good  film", "bad film"}, .labels = {1, 0, 0}};
  splits.dev = {.name = "dev", .first = {"bad film", "strange words"}, .labels = {0, 1}};
  splits.test = {.name = "test", .first = {"good film"}, .labels = {1}};
  const auto all = statistics(splits, Vocabulary::learn(splits.train));
  EXPECT_EQ(all[0].repeated, 1u);
  EXPECT_EQ(all[0].contradicting, 1u);
  EXPECT_EQ(all[0].in_train, 0u);
  EXPECT_EQ(all[1].in_train, 1u);
  EXPECT_EQ(all[2].in_train, 1u);
  EXPECT_NEAR(all[0].positive, 1.0 / 3, 1e-15);
  EXPECT_NEAR(all[0].mean_words, 2.0, 1e-15);
  EXPECT_NEAR(all[1].unknown_words, 3.0 / 4, 1e-15)
      << "bad, strange and words occur less than twice in train";
}

TEST(SharedData, IsReadWithoutAProblemAndHasTheCountsOfItsDescription) {
  const std::filesystem::path folder = std::filesystem::path(RIESZFLOW_SOURCE_DIR) / ".." / "shared" / "data";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no data folder " << folder;
  for (const auto& [name, train, dev, test] : {std::tuple("rt", 8530u, 1066u, 1066u),
                                               {"sst2", 67349u, 872u, 1821u},
                                               {"qqp", 30406u, 10000u, 10000u}}) {
    const Splits splits = read_splits(folder / name);
    EXPECT_TRUE(splits.problems.empty());
    EXPECT_EQ(splits.train.count(), train);
    EXPECT_EQ(splits.dev.count(), dev);
    EXPECT_EQ(splits.test.count(), test);
  }
}

}  // namespace
}  // namespace rieszflow::text
