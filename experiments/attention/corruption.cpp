#include "experiments/attention/corruption.hpp"

#include <algorithm>
#include <array>

#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow::text {
namespace {

constexpr std::array kinds{Corruption::WordDropout, Corruption::Swap, Corruption::Typo};

std::vector<std::string> blank_separated(const std::string& sentence) {
  std::vector<std::string> out;
  for (std::size_t at = sentence.find_first_not_of(' '); at != std::string::npos;) {
    const auto end = std::min(sentence.find(' ', at), sentence.size());
    out.push_back(sentence.substr(at, end - at));
    at = sentence.find_first_not_of(' ', end);
  }
  return out;
}

/// One fault in an ASCII word: which and where from two uniforms, the new letter from a third. Other words
/// stay.
void mistype(std::string& word, double which, double where, double letter) {
  if (!std::all_of(word.begin(), word.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return;
  const auto pick = [](double u, std::size_t n) {
    return std::min(static_cast<std::size_t>(u * static_cast<double>(n)), n - 1);
  };
  const std::size_t at = pick(where, word.size());
  const char other = static_cast<char>('a' + pick(letter, 26));
  switch (pick(which, 4)) {
    case 0:
      if (word.size() > 1) std::swap(word[at], word[at + 1 < word.size() ? at + 1 : at - 1]);
      break;
    case 1:
      if (word.size() > 1) word.erase(at, 1);
      break;
    case 2:
      word.insert(at, 1, word[at]);
      break;
    default:
      word[at] = other;
  }
}

std::string damaged(const std::string& sentence, Corruption kind, double rate, const NoiseStream& noise,
                    std::uint64_t row, std::uint64_t which_sentence) {
  std::vector<std::string> list = blank_separated(sentence);
  std::vector<double> draws(4 * list.size());  // (word, whether and how)
  noise.uniforms(static_cast<std::uint64_t>(kind), which_sentence, row, draws);
  const auto hit = [&](std::size_t k) { return draws[4 * k] < rate; };
  std::vector<std::string> out;
  for (std::size_t k = 0; k < list.size(); ++k) {
    switch (kind) {
      case Corruption::WordDropout:
        if (!hit(k) || (out.empty() && k + 1 == list.size())) out.push_back(list[k]);
        break;
      case Corruption::Swap:
        if (hit(k) && k + 1 < list.size()) {
          out.push_back(list[k + 1]);
          out.push_back(list[k]);
          ++k;
        } else {
          out.push_back(list[k]);
        }
        break;
      case Corruption::Typo:
        out.push_back(list[k]);
        if (hit(k)) mistype(out.back(), draws[4 * k + 1], draws[4 * k + 2], draws[4 * k + 3]);
    }
  }
  std::string text;
  for (const std::string& word : out) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

}  // namespace

std::span<const Corruption> corruptions() { return kinds; }

std::string_view name(Corruption corruption) {
  switch (corruption) {
    case Corruption::WordDropout:
      return "word_dropout";
    case Corruption::Swap:
      return "swap";
    case Corruption::Typo:
      return "typo";
  }
  return "";
}

TextData corrupted(const TextData& data, Corruption corruption, double rate, std::uint64_t seed) {
  expects(rate >= 0.0 && rate <= 1.0, "a rate between 0 and 1");
  TextData out = data;
  if (rate == 0.0) return out;
  const NoiseStream noise(seed, NoisePurpose::TextCorruption);
  for (std::size_t row = 0; row < data.count(); ++row) {
    out.first[row] = damaged(data.first[row], corruption, rate, noise, row, 0);
    if (data.pairs) out.second[row] = damaged(data.second[row], corruption, rate, noise, row, 1);
  }
  return out;
}

}  // namespace rieszflow::text
