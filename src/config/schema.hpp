#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

/// What a config may contain, as data. Validation, its messages, the resolved config and the commented sample
/// config all come from one Schema, so that they cannot disagree.
namespace rieszflow::config {

/// What a key can hold once it is read.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                           std::vector<double>, std::vector<std::string>>;

struct Boolean {};

struct Integer {
  std::int64_t lower = std::numeric_limits<std::int64_t>::min();  ///< included
  std::int64_t upper = std::numeric_limits<std::int64_t>::max();  ///< included
};

/// A number; written with or without a decimal point. NaN is never allowed.
struct Number {
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  bool lower_included = true;
  bool may_be_infinite = false;

  static Number any() { return {}; }
  static Number positive() { return {.lower = 0.0, .lower_included = false}; }
  static Number non_negative() { return {.lower = 0.0}; }
};

/// Non-empty text.
struct Text {
  bool is_name = false;  ///< of something that becomes a file: no '/', and no '.' in front
};

/// A word and what it stands for, in one line.
struct Named {
  std::string name;
  std::string meaning;
};

/// One of these words.
struct Choice {
  std::vector<Named> options;
};

/// A number, or one word that stands for a rule which finds it.
struct NumberOrWord {
  Number range;
  Named word;
};

/// A list of equal things.
struct List {
  std::variant<Integer, Number, Text> item;
  std::size_t shortest = 1;
  std::size_t longest = std::numeric_limits<std::size_t>::max();
};

using Kind = std::variant<Boolean, Integer, Number, Text, Choice, NumberOrWord, List>;

enum class Presence {
  Required,   ///< must be given; `value` is only the sample's
  Defaulted,  ///< `value` holds unless another is given
  Optional,   ///< absent unless given; `value` is only the sample's, `meaning` says what absence means
};

struct Key {
  std::string name;
  Kind kind;
  Presence presence = Presence::Required;
  Value value;
  std::string units;  ///< "length", "time", ...; empty: a pure number or no number
  std::string meaning;
};

inline Key required(std::string name, Kind kind, Value sample, std::string units, std::string meaning) {
  return {std::move(name),   std::move(kind),  Presence::Required,
          std::move(sample), std::move(units), std::move(meaning)};
}
inline Key defaulted(std::string name, Kind kind, Value value, std::string units, std::string meaning) {
  return {std::move(name),  std::move(kind),  Presence::Defaulted,
          std::move(value), std::move(units), std::move(meaning)};
}
inline Key optional(std::string name, Kind kind, Value sample, std::string units, std::string meaning) {
  return {std::move(name),   std::move(kind),  Presence::Optional,
          std::move(sample), std::move(units), std::move(meaning)};
}

/// One alternative of a section that is chosen by its key `type`.
struct Variant {
  std::string name;
  std::string meaning;  ///< one line, for `rieszflow list`
  std::vector<Key> keys;
};

enum class Occurrence {
  Required,   ///< exactly one
  Optional,   ///< at most one
  Defaulted,  ///< one; its keys all have defaults, so it may be left out
  Repeated,   ///< any number, [[path]]
};

/// A table of the config.
struct Section {
  std::string path;  ///< "model.domain"; empty: the keys above the first table
  Occurrence occurrence = Occurrence::Required;
  std::string meaning;
  std::vector<Key> keys{};
  std::vector<Variant> variants{};  ///< when not empty the key `type` names one of them
  std::string only_for{};  ///< the `type` of the parent table that has this section; empty: every one
};

/// All tables, parents before children, in the order in which they are written.
using Schema = std::vector<Section>;

/// "an integer >= 1", "\"direct\" | \"fast\"", ...
std::string allowed(const Kind& kind);

/// A value as TOML. Numbers in the fewest digits that read back as the same bits, whatever the locale.
std::string toml_text(const Value& value);

/// Which variant stands for a section in a sample config.
struct Sample {
  std::string path;
  std::string variant;
};

/// Every alternative that the schema offers: for each section with variants and each choice, its heading and
/// one line a name.
std::string listing(const Schema& schema);

/// A complete config made of the schema's sample and default values: each key with its units, meaning and
/// allowed values beside it, alternatives as comments. A section takes its first variant unless `samples`
/// names another.
std::string sample_config(const Schema& schema, const std::vector<Sample>& samples = {});

}  // namespace rieszflow::config
