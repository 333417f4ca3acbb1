#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "attention/encoder.hpp"
#include "experiments/attention/vocabulary.hpp"

namespace rieszflow::text {

/// A trained classifier, ready to label sentences.
struct TextModel {
  attention::EncoderWeights weights;
  Vocabulary vocabulary;
  double temperature = 1.0;              ///< logits are divided by it
  std::vector<std::string> class_names;  ///< (class)
  std::string description;               ///< how it was trained, one line
};

/// One file: a line "rieszflow text model 1", a JSON header (shape, tokens, arrays with shapes, fingerprint
/// of all that follows), then the float32 weights, little-endian, in the order of attention::weight_arrays.
/// It appears whole or not at all. Throws io::FileError.
void write_model(const std::filesystem::path& file, const TextModel& model);

/// Throws io::FileError, which names the file and says what is wrong: not such a file, another version, too
/// short or too long, a byte that changed.
TextModel read_model(const std::filesystem::path& file);

}  // namespace rieszflow::text
