#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "experiments/attention/text_data.hpp"

namespace rieszflow::text {

enum class Corruption {
  WordDropout,  ///< each word is left out with the given probability; the last one of a sentence stays
  Swap,         ///< each word changes places with the next one with the given probability
  Typo,         ///< each word gets, with the given probability, one letter swapped, lost, doubled or replaced
};

std::span<const Corruption> corruptions();
std::string_view name(Corruption corruption);  ///< "word_dropout", "swap", "typo"

/// The rows with their sentences damaged; keyed by (seed, TextCorruption, kind, row). 0 <= rate <= 1; rate 0
/// gives back the rows themselves.
TextData corrupted(const TextData& data, Corruption corruption, double rate, std::uint64_t seed);

}  // namespace rieszflow::text
