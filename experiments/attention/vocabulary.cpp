#include "experiments/attention/vocabulary.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "core/expects.hpp"

namespace rieszflow::text {
namespace {

template <class Call>
void each_sentence(const TextData& data, Call call) {
  for (const std::string& sentence : data.first) call(sentence);
  for (const std::string& sentence : data.second) call(sentence);
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }

/// The most frequent first, equal ones in byte order.
std::vector<std::string> by_count(const std::map<std::string, std::size_t>& counts, std::size_t fewest,
                                  std::size_t most) {
  std::vector<const std::pair<const std::string, std::size_t>*> order;
  for (const auto& entry : counts)
    if (entry.second >= fewest) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->second > b->second; });
  std::vector<std::string> out;
  for (std::size_t k = 0; k < std::min(most, order.size()); ++k) out.push_back(order[k]->first);
  return out;
}

/// Case and blanks aside: what makes two rows the same text.
std::string text_of(const TextData& data, std::size_t a) {
  std::string out;
  for (const std::string& word : words(data.first[a])) out.append(word).append(" ");
  if (data.pairs) {
    out.append("\t");
    for (const std::string& word : words(data.second[a])) out.append(word).append(" ");
  }
  return out;
}

std::uint64_t key(const Vocabulary::Bigram& bigram) {
  return static_cast<std::uint64_t>(bigram[0]) << 32U | static_cast<std::uint64_t>(bigram[1]);
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> tokens, std::size_t word_count, std::vector<Bigram> bigrams)
    : tokens_(std::move(tokens)), word_count_(word_count), bigrams_(std::move(bigrams)) {
  expects(word_count_ <= tokens_.size(), "words are tokens");
  for (std::size_t k = 0; k < tokens_.size(); ++k) {
    (k < word_count_ ? words_ : pieces_).emplace(tokens_[k], static_cast<std::int32_t>(k + 2));
    if (k >= word_count_) longest_piece_ = std::max(longest_piece_, tokens_[k].size() - 1);
  }
  for (std::size_t k = 0; k < bigrams_.size(); ++k)
    bigram_ids_.emplace(key(bigrams_[k]), static_cast<std::int32_t>(tokens_.size() + 2 + k));
}

Vocabulary Vocabulary::learn(const TextData& train, const VocabularyOptions& options) {
  std::map<std::string, std::size_t> counts;
  each_sentence(train, [&](const std::string& sentence) {
    for (std::string& word : words(sentence)) ++counts[std::move(word)];
  });
  std::vector<std::string> tokens = by_count(counts, options.fewest, options.most_words);
  const std::size_t word_count = tokens.size();
  const std::unordered_set<std::string> known(tokens.begin(), tokens.end());

  std::map<std::string, std::size_t> pieces;
  for (const auto& [word, count] : counts) {
    if (known.contains(word)) continue;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (!begins_character(word[i])) continue;
      const std::string mark(1, i == 0 ? '^' : '+');
      for (std::size_t end = i + 1; end <= std::min(word.size(), i + options.longest_piece); ++end)
        if (end == word.size() || begins_character(word[end]))
          pieces[std::string(mark).append(word, i, end - i)] += count;
    }
  }
  for (std::string& piece : by_count(pieces, options.fewest, options.most_pieces))
    tokens.push_back(std::move(piece));
  Vocabulary out(std::move(tokens), word_count);
  if (options.fewest_bigrams == 0) return out;
  std::map<Bigram, std::size_t> together;
  each_sentence(train, [&](const std::string& sentence) {
    const std::vector<std::int32_t> ids = out.ids(sentence, sentence.size() + 1);
    for (std::size_t t = 1; t < ids.size(); ++t) ++together[{ids[t - 1], ids[t]}];
  });
  std::vector<Bigram> bigrams;
  for (const auto& [bigram, count] : together)
    if (count >= options.fewest_bigrams) bigrams.push_back(bigram);
  return {out.tokens_, word_count, std::move(bigrams)};
}

bool Vocabulary::has_word(const std::string& word) const { return words_.contains(word); }

std::vector<std::int32_t> Vocabulary::ids(std::string_view sentence, std::size_t most) const {
  expects(most > 0, "at least one token");
  std::vector<std::int32_t> out;
  for (const std::string& word : words(sentence)) {
    if (out.size() >= most) break;
    if (const auto found = words_.find(word); found != words_.end()) {
      out.push_back(found->second);
      continue;
    }
    for (std::size_t i = 0; i < word.size() && out.size() < most;) {
      std::size_t end = std::min(word.size(), i + longest_piece_);
      std::int32_t id = unknown;
      for (; end > i; --end) {
        const auto found = pieces_.find(std::string(1, i == 0 ? '^' : '+').append(word, i, end - i));
        if (found == pieces_.end()) continue;
        id = found->second;
        break;
      }
      if (end == i) {  // one character that no piece begins with
        ++end;
        while (end < word.size() && !begins_character(word[end])) ++end;
      }
      if (id != unknown || out.empty() || out.back() != unknown) out.push_back(id);
      i = end;
    }
  }
  if (out.empty()) out.push_back(unknown);
  return out;
}

std::vector<std::int32_t> Vocabulary::bigram_ids(std::span<const std::int32_t> ids) const {
  std::vector<std::int32_t> out(ids.size(), padding);
  for (std::size_t t = 1; t < ids.size(); ++t)
    if (const auto found = bigram_ids_.find(key({ids[t - 1], ids[t]})); found != bigram_ids_.end())
      out[t] = found->second;
  return out;
}

TokenSet encode(const TextData& data, const Vocabulary& vocabulary, std::size_t max_length) {
  TokenSet out{.pairs = data.pairs, .labels = data.labels};
  const bool bigrams = !vocabulary.bigrams().empty();
  const auto raise = static_cast<std::int32_t>(vocabulary.size());
  for (std::size_t a = 0; a < data.count(); ++a) {
    for (const std::string* sentence : {&data.first[a], data.pairs ? &data.second[a] : nullptr}) {
      if (sentence == nullptr) continue;
      out.sequences.push_back(vocabulary.ids(*sentence, max_length));
      if (bigrams) out.bigrams.push_back(vocabulary.bigram_ids(out.sequences.back()));
    }
    if (!data.pairs) continue;
    for (auto* kind : {&out.sequences, bigrams ? &out.bigrams : nullptr}) {
      if (kind == nullptr) continue;
      auto& first = (*kind)[2 * a];
      auto& second = (*kind)[2 * a + 1];
      const std::unordered_set<std::int32_t> in_first(first.begin(), first.end()),
          in_second(second.begin(), second.end());
      const auto mark = [&](std::vector<std::int32_t>& ids, const std::unordered_set<std::int32_t>& others) {
        std::vector<std::uint8_t> flags;
        for (std::int32_t& id : ids) {
          const bool there = id != Vocabulary::padding && others.contains(id);
          flags.push_back(there ? 1 : 0);
          if (there) id += raise;
        }
        if (kind == &out.sequences) out.match.push_back(std::move(flags));
      };
      mark(first, in_second);
      mark(second, in_first);
    }
  }
  return out;
}

attention::TokenBatch batch(const TokenSet& set, std::span<const std::size_t> rows) {
  const std::size_t per_row = set.pairs ? 2 : 1;
  attention::TokenBatch out{.sequences = rows.size() * per_row};
  for (const std::size_t row : rows)
    for (std::size_t s = row * per_row; s < (row + 1) * per_row; ++s)
      out.length = std::max(out.length, set.sequences[s].size());
  out.tokens.assign(out.sequences * out.length, Vocabulary::padding);
  out.valid.assign(out.sequences * out.length, 0);
  if (!set.bigrams.empty()) out.bigrams.assign(out.sequences * out.length, Vocabulary::padding);
  if (set.pairs) out.match.assign(out.sequences * out.length, 0);
  std::size_t at = 0;
  for (const std::size_t row : rows) {
    for (std::size_t s = row * per_row; s < (row + 1) * per_row; ++s, at += out.length) {
      for (std::size_t t = 0; t < set.sequences[s].size(); ++t) {
        out.tokens[at + t] = set.sequences[s][t];
        out.valid[at + t] = 1;
        if (!set.bigrams.empty()) out.bigrams[at + t] = set.bigrams[s][t];
        if (set.pairs) out.match[at + t] = set.match[s][t];
      }
    }
  }
  return out;
}

std::vector<TextStatistics> statistics(const Splits& splits, const Vocabulary& vocabulary) {
  std::unordered_set<std::string> in_train;
  for (std::size_t a = 0; a < splits.train.count(); ++a) in_train.insert(text_of(splits.train, a));
  std::vector<TextStatistics> out;
  for (const TextData* part : {&splits.train, &splits.dev, &splits.test}) {
    TextStatistics now{.name = part->name, .rows = part->count()};
    std::vector<std::size_t> lengths;
    std::unordered_map<std::string, int> seen;
    std::size_t all = 0, strange = 0, ones = 0;
    for (std::size_t a = 0; a < part->count(); ++a) {
      const std::size_t before = all;
      for (const std::string* sentence : {&part->first[a], part->pairs ? &part->second[a] : nullptr}) {
        if (sentence == nullptr) continue;
        for (const std::string& word : words(*sentence)) {
          ++all;
          strange += vocabulary.has_word(word) ? 0 : 1;
        }
      }
      lengths.push_back(all - before);
      const std::string text = text_of(*part, a);
      const int label = part->labels.empty() ? 0 : part->labels[a];
      ones += label == 1 ? 1 : 0;
      const auto [found, fresh] = seen.emplace(text, label);
      if (!fresh) {
        ++now.repeated;
        now.contradicting += found->second != label ? 1 : 0;
      }
      if (part != &splits.train) now.in_train += in_train.contains(text) ? 1 : 0;
    }
    if (now.rows > 0) {
      std::sort(lengths.begin(), lengths.end());
      const auto rows = static_cast<double>(now.rows);
      now.positive = static_cast<double>(ones) / rows;
      now.mean_words = static_cast<double>(all) / rows;
      now.p99_words = lengths[(lengths.size() - 1) * 99 / 100];
      now.longest = lengths.back();
      now.unknown_words = all > 0 ? static_cast<double>(strange) / static_cast<double>(all) : 0.0;
    }
    out.push_back(std::move(now));
  }
  return out;
}

}  // namespace rieszflow::text
