#pragma once
#include <cstddef>
#include <cstdint>

#include "experiments/attention/vocabulary.hpp"

namespace rieszflow::text {

/// A task that needs attention. A token is a (key, value) pair, and there is one query token for each key. A
/// sequence is one query token and length - 1 (key, value) tokens at random places: `targets` of them have
/// the key that the query asks for, all with the value that is the label, the others other keys and random
/// values. Of two sequences with the same mean embedding up to the query, either label may be right: the mean
/// of tokens, and any linear function of it, says nothing about the label.
struct SelectionTask {
  std::size_t length = 64;   ///< tokens, the query included
  std::size_t keys = 16;     ///< distinct keys, at least 2
  std::size_t values = 2;    ///< classes
  std::size_t targets = 1;   ///< tokens that hold the label, at least 1, below length
  double label_noise = 0.0;  ///< probability that the label is drawn at random instead

  std::size_t vocabulary() const { return 2 + keys + keys * values; }  ///< padding, unknown, queries, tokens
};

/// Rows first, first + 1, ...: each a function of (seed, SelectionTask, stream, its number) alone, so that
/// fresh mini-batches never repeat and never overlap a test set of another stream.
TokenSet selection_rows(const SelectionTask& task, std::size_t first, std::size_t count, std::uint64_t seed,
                        std::uint64_t stream);

}  // namespace rieszflow::text
