#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "attention/encoder.hpp"
#include "experiments/attention/text_data.hpp"

namespace rieszflow::text {

struct VocabularyOptions {
  std::size_t fewest = 2;  ///< occurrences of a word in train that make it a token of its own
  std::size_t most_words = 50000;
  std::size_t most_pieces = 2000;  ///< parts of words, single characters included
  std::size_t longest_piece = 6;   ///< bytes
  /// Occurrences in train of two tokens in a row that make them a bigram with an id of its own; 0: none.
  std::size_t fewest_bigrams = 0;
};

/// Token ids of words: 0 is padding and no bigram, 1 what nothing covers, then words, pieces, bigrams. A word
/// outside the vocabulary becomes the longest pieces that cover it from left to right; a piece inside a word
/// is another token than the same piece at its beginning. Words and pieces come from the training sentences
/// only (pieces: the most frequent parts of the words that are too rare), in an order that depends on nothing
/// else.
class Vocabulary {
 public:
  static constexpr std::int32_t padding = 0, unknown = 1;

  Vocabulary() = default;
  using Bigram = std::array<std::int32_t, 2>;

  /// From a model file: tokens in the order of their ids from 2 on; pieces as `tokens()` gives them; then the
  /// bigrams of their ids.
  Vocabulary(std::vector<std::string> tokens, std::size_t word_count, std::vector<Bigram> bigrams = {});
  static Vocabulary learn(const TextData& train, const VocabularyOptions& options = {});

  std::size_t size() const { return tokens_.size() + 2 + bigrams_.size(); }
  std::size_t word_count() const { return word_count_; }
  /// Words, then pieces: "^un" at the beginning of a word, "+able" inside.
  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::vector<Bigram>& bigrams() const { return bigrams_; }

  bool has_word(const std::string& word) const;
  /// At most `most` ids, never none: an empty sentence is one unknown token.
  std::vector<std::int32_t> ids(std::string_view sentence, std::size_t most) const;
  /// Of each token, the id of the bigram of the one before it and itself, 0 for none.
  std::vector<std::int32_t> bigram_ids(std::span<const std::int32_t> ids) const;

 private:
  std::vector<std::string> tokens_;
  std::size_t word_count_ = 0;
  std::size_t longest_piece_ = 0;
  std::unordered_map<std::string, std::int32_t> words_, pieces_;
  std::vector<Bigram> bigrams_;
  std::unordered_map<std::uint64_t, std::int32_t> bigram_ids_;
};

/// Sequences of ids of labelled rows; of pairs, sequences 2i and 2i + 1 belong to row i, and what occurs in
/// the other sentence too is another token: its id is raised by the size of the vocabulary.
struct TokenSet {
  bool pairs = false;
  std::vector<std::vector<std::int32_t>> sequences{};
  std::vector<std::vector<std::int32_t>> bigrams{};  ///< as `sequences`; empty without bigrams
  std::vector<std::vector<std::uint8_t>>
      match{};                ///< as `sequences`: 1 where the id occurs in the other one; pairs
  std::vector<int> labels{};  ///< (row)

  std::size_t count() const { return pairs ? sequences.size() / 2 : sequences.size(); }
};

TokenSet encode(const TextData& data, const Vocabulary& vocabulary, std::size_t max_length);

/// The given rows, padded to the longest of them.
attention::TokenBatch batch(const TokenSet& set, std::span<const std::size_t> rows);

/// What a table says of a data set.
struct TextStatistics {
  std::string name;
  std::size_t rows = 0;
  double positive = 0.0;    ///< share of label 1
  double mean_words = 0.0;  ///< of one row, both sentences of a pair
  std::size_t p99_words = 0, longest = 0;
  double unknown_words = 0.0;     ///< share of words that are no token of their own
  std::size_t repeated = 0;       ///< rows whose text (case and blanks aside) is that of an earlier row
  std::size_t contradicting = 0;  ///< of them, with another label
  std::size_t in_train = 0;       ///< rows whose text is in train; 0 for train itself
};

/// Of train, dev and test.
std::vector<TextStatistics> statistics(const Splits& splits, const Vocabulary& vocabulary);

}  // namespace rieszflow::text
