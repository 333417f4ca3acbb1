#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// Labelled sentences and sentence pairs, read from tables of text.
namespace rieszflow::text {

struct TextData {
  std::string name;
  bool pairs = false;
  std::vector<std::string> first{};   ///< (row) the sentence, or the first of a pair
  std::vector<std::string> second{};  ///< (row) of pairs, else empty
  std::vector<int> labels{};          ///< (row) 0 or 1; empty where the file has none

  std::size_t count() const { return first.size(); }
};

/// What reading gave: the good rows, and the bad ones as "train.tsv:12: what is wrong" (the first
/// most_problems, then how many more). Callers refuse a file with problems unless they were told to skip its
/// broken rows.
struct TextReading {
  TextData data;
  std::vector<std::string> problems;
};

inline constexpr std::size_t most_problems = 10;

/// A tab-separated table with a header, UTF-8, no quoting, LF or CRLF. Columns by name, in any order, others
/// ignored: `sentence` and `label` (SST-2 of GLUE, Rotten Tomatoes), or `question1`, `question2` and `label`
/// or `is_duplicate` (QQP of GLUE). A file without a label column has no labels. Problems: wrong number of
/// fields, an empty text, a label that is neither 0 nor 1, bytes that are not UTF-8, no such columns, no
/// rows.
TextReading read_text(const std::filesystem::path& file);

/// Sentences to be labelled: a table as above (labels are ignored), or, where the first line is no such
/// header, one sentence a line; pairs: two of them with a tab between.
TextReading read_sentences(const std::filesystem::path& file, bool pairs);

struct Splits {
  TextData train, dev, test;
  std::vector<std::string> notes;     ///< what was done beyond reading
  std::vector<std::string> problems;  ///< of all files
};

/// train.tsv, dev.tsv and test.tsv of a folder. Where test.tsv is missing or has no labels (GLUE), dev
/// becomes the test set and every tenth row of train, by a hash of its text, the dev set; a note says so.
Splits read_splits(const std::filesystem::path& folder);

/// The given rows, in that order.
TextData rows(const TextData& data, const std::vector<std::size_t>& chosen);

/// Words in order: lower case (ASCII letters), split at blanks; runs of letters, digits and non-ASCII
/// characters with inner or leading apostrophes are words, runs of one punctuation mark too. Source of all
/// token counts.
std::vector<std::string> words(std::string_view sentence);

}  // namespace rieszflow::text
