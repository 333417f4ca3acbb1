#pragma once
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.hpp"

namespace rieszflow::config {

class Document;

/// One mistake of the user.
struct Problem {
  std::string source;  ///< file name, or "--set"
  int line = 0;        ///< 0: no line (an override, a file that cannot be read)
  std::string key;     ///< full path; empty: the file as a whole
  std::string what;    ///< what is wrong, what is allowed

  std::string text() const;  ///< source:line: key: what
};

/// The user's fault: all problems at once. Exit code 2.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(std::vector<Problem> problems);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// A table that was checked against its section: defaults are filled in. Asking a good table for a key that
/// its section requires or has a default for always succeeds; anything else is a precondition violation.
class Table {
 public:
  const std::string& path() const { return path_; }  ///< "model.interaction[0]"
  const std::string& type() const { return type_; }  ///< chosen variant; empty without variants
  bool good() const { return good_; }                ///< no problem so far
  bool has(std::string_view key) const;
  /// True when the key was given by an override.
  bool overridden(std::string_view key) const;
  /// True when the key, a number or a word, holds the word.
  bool is_word(std::string_view key) const;

  bool boolean(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  const std::string& text(std::string_view key) const;
  const std::vector<std::int64_t>& integers(std::string_view key) const;
  const std::vector<double>& numbers(std::string_view key) const;
  const std::vector<std::string>& texts(std::string_view key) const;

  /// Gives a key of the section a value for the resolved config: the default of an optional key, which
  /// depends on others, or a path made absolute.
  void fill(std::string_view key, Value value);

  /// Adds a problem at the key's place (at the table's where the key was not given).
  void problem(std::string_view key, const std::string& what);

 private:
  friend class Document;
  struct Place {
    bool override = false;
    int line = 0;
  };
  const Value& at(std::string_view key) const;

  std::string path_;
  std::string type_;
  bool good_ = true;
  Place place_;
  const Section* section_ = nullptr;
  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, Place, std::less<>> places_;
  Document* document_ = nullptr;
};

/// A TOML 1.0 config checked against a schema. Problems are collected, here and by the caller
/// (Table::problem), until `throw_problems`. Unknown keys are problems too, with the nearest known key.
///
/// Overrides are "key.path=value": the value is TOML where it parses as TOML, else plain text; elements of
/// repeated tables are addressed by index, `model.potential.0.stiffness` or `model.potential[0].stiffness`.
class Document {
 public:
  /// Names at the top of a file that the schema does not know but others do, and what to say to them.
  using Foreign = std::map<std::string, std::string>;
  /// Of a regular file or of a pipe that is open already (/dev/stdin, the shell's <(...)). Throws ConfigError
  /// when it cannot be read or is no TOML.
  static std::unique_ptr<Document> read(const std::filesystem::path& file, const Schema& schema,
                                        std::span<const std::string> overrides, const Foreign& foreign = {});
  /// The same for text; `source` stands for the file in messages.
  static std::unique_ptr<Document> parse(std::string_view text, std::string source, const Schema& schema,
                                         std::span<const std::string> overrides, const Foreign& foreign = {});
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  ~Document();

  /// The one table of a section; null where it is optional and absent, or was missing or malformed (a
  /// problem).
  Table* table(std::string_view path);
  /// The tables of a repeated section in the order of the file.
  std::vector<Table*> tables(std::string_view path);

  /// Problem with the document as a whole.
  void problem(const std::string& key, const std::string& what);
  bool good() const { return problems_.empty(); }
  /// Throws ConfigError, sorted by line, when there is any problem.
  void throw_problems() const;

  /// The config with every default filled in: itself a valid config that means the same. Only of a good
  /// document.
  std::string resolved() const;

 private:
  friend class Table;
  struct Reader;
  Document(Schema schema, std::string source);
  void add(const Table::Place& place, std::string key, std::string what);

  Schema schema_;
  std::string source_;
  std::deque<Table> tables_;
  std::vector<Problem> problems_;
};

}  // namespace rieszflow::config
