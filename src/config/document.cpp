#include "config/document.hpp"

#include <fmt/format.h>

// toml++ 3.3 asserts that a key begins as one does, right before it refuses one that does not (`[,]`): an
// abort without NDEBUG, an assumption of clang's optimiser with it. The refusal is what counts.
#include <toml++/impl/preprocessor.h>
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(expr) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "core/expects.hpp"

namespace rieszflow::config {
namespace {

// ---- text ----

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char character : text) {
    if (character == separator) {
      parts.emplace_back();
    } else {
      parts.back() += character;
    }
  }
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string parent_path(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::string key_path(const std::string& table, std::string_view key) {
  if (key.empty()) return table;
  return table.empty() ? std::string(key) : table + "." + std::string(key);
}

// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> distance(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) distance[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) distance[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      distance[i][j] = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1,
                                 distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
      }
    }
  }
  return distance[a.size()][b.size()];
}

// The candidate a typo most likely meant; nothing when none is near.
std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = 1 + std::max<std::size_t>(1, word.size() / 3);
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

// Line of the first byte that is no text (1-based); 0 when all of it is UTF-8 without NUL.
int first_line_that_is_no_text(std::string_view text) {
  int line = 1;
  std::size_t index = 0;
  while (index < text.size()) {
    const auto byte = static_cast<unsigned char>(text[index]);
    if (byte == 0) return line;
    if (byte == '\n') ++line;
    const std::size_t length = byte < 0x80                   ? 1
                               : byte >= 0xc2 && byte < 0xe0 ? 2
                               : byte >= 0xe0 && byte < 0xf0 ? 3
                               : byte >= 0xf0 && byte < 0xf5 ? 4
                                                             : 0;
    if (length == 0 || index + length > text.size()) return line;
    for (std::size_t offset = 1; offset < length; ++offset) {
      if ((static_cast<unsigned char>(text[index + offset]) & 0xc0) != 0x80) return line;
    }
    index += length;
  }
  return 0;
}

// ---- values ----

bool is_integral(double number) { return std::floor(number) == number && std::abs(number) < 9.2e18; }

// "is the text \"abc\"", for messages.
std::string described(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "is the text " + toml_text(std::string(node.as_string()->get()));
    case toml::node_type::integer:
      return fmt::format("is {}", node.as_integer()->get());
    case toml::node_type::floating_point:
      return "is " + toml_text(node.as_floating_point()->get());
    case toml::node_type::boolean:
      return std::string("is ") + (node.as_boolean()->get() ? "true" : "false");
    case toml::node_type::array:
      return node.as_array()->empty() ? "is an empty list" : "is a list";
    case toml::node_type::table:
      return "is a table";
    default:
      return "is a date or a time";
  }
}

// Either a value or what is wrong with it.
struct Checked {
  std::optional<Value> value;
  std::string wrong;
};

Checked wrong(std::string text) { return {std::nullopt, std::move(text)}; }

Checked check(const Integer& range, const toml::node& node) {
  if (const auto* number = node.as_floating_point()) {
    if (is_integral(number->get())) {
      return wrong(fmt::format("{}, which is no integer in TOML: write {}", described(node),
                               static_cast<std::int64_t>(number->get())));
    }
  }
  const auto* number = node.as_integer();
  if (number == nullptr || number->get() < range.lower || number->get() > range.upper)
    return wrong(described(node));
  return {number->get(), ""};
}

Checked check(const Number& range, const toml::node& node) {
  double number = 0.0;
  if (const auto* integer = node.as_integer()) {
    number = static_cast<double>(integer->get());
  } else if (const auto* floating = node.as_floating_point()) {
    number = floating->get();
  } else {
    return wrong(described(node));
  }
  const bool inside =
      (range.lower_included ? number >= range.lower : number > range.lower) && number <= range.upper;
  if (std::isnan(number) || (std::isinf(number) && !range.may_be_infinite) || !inside)
    return wrong(described(node));
  return {number, ""};
}

Checked check(const NumberOrWord& either, const toml::node& node) {
  const auto* text = node.as_string();
  if (text == nullptr) return check(either.range, node);
  return text->get() == either.word.name ? Checked{text->get(), ""} : wrong(described(node));
}

Checked check(const Boolean&, const toml::node& node) {
  const auto* flag = node.as_boolean();
  if (flag == nullptr) return wrong(described(node));
  return {flag->get(), ""};
}

Checked check(const Text&, const toml::node& node) {
  const auto* text = node.as_string();
  if (text == nullptr || text->get().empty()) return wrong(described(node));
  return {text->get(), ""};
}

Checked check(const Choice& choice, const toml::node& node) {
  const auto* text = node.as_string();
  if (text == nullptr) return wrong(described(node));
  const std::string& word = text->get();
  std::vector<std::string> names;
  for (const Named& option : choice.options) names.push_back(option.name);
  if (std::find(names.begin(), names.end(), word) != names.end()) return {word, ""};
  const auto near = nearest(word, names);
  return wrong(described(node) + (near ? ", did you mean \"" + *near + "\"?" : ""));
}

template <class Element>
Checked check_items(const auto& item, const toml::array& array) {
  std::vector<Element> values;
  for (std::size_t index = 0; index < array.size(); ++index) {
    const Checked checked = check(item, *array.get(index));
    if (!checked.value) return wrong(fmt::format("entry {} of the list {}", index + 1, checked.wrong));
    values.push_back(std::get<Element>(*checked.value));
  }
  return {Value(std::move(values)), ""};
}

Checked check(const List& list, const toml::node& node) {
  const auto* array = node.as_array();
  if (array == nullptr) return wrong(described(node));
  if (array->size() < list.shortest || array->size() > list.longest) {
    return wrong(array->empty() ? "is an empty list" : fmt::format("has {} entries", array->size()));
  }
  if (const auto* item = std::get_if<Integer>(&list.item)) return check_items<std::int64_t>(*item, *array);
  if (const auto* item = std::get_if<Number>(&list.item)) return check_items<double>(*item, *array);
  return check_items<std::string>(std::get<Text>(list.item), *array);
}

// ---- parsing ----

struct SyntaxProblem {
  int line = 0;
  std::string key;
  std::string what;
};

struct Parsed {
  toml::table root;
  std::vector<SyntaxProblem> problems;
  bool usable = false;  ///< all problems sit on lines that could be left out
};

const std::regex key_value_line(R"(^\s*([A-Za-z0-9_.\-]+)\s*=)");
const std::regex header_line(R"(^\s*\[+\s*([A-Za-z0-9_.\-]+)\s*\]+)");

// Path of the table that line `line` (1-based) belongs to, as its header is written.
std::string header_above(const std::vector<std::string>& lines, int line) {
  for (int index = line - 1; index >= 0; --index) {
    std::smatch match;
    if (std::regex_search(lines[static_cast<std::size_t>(index)], match, header_line)) return match[1];
  }
  return "";
}

// The parser stops at its first error. A broken line that stands for itself (`key = value`) is left out and
// the rest read again, so that one typo does not hide the others.
Parsed parse_toml(std::string_view text) {
  Parsed result;
  std::vector<std::string> lines = split(text, '\n');
  constexpr int most_errors = 50;
  for (int attempt = 0; attempt < most_errors; ++attempt) {
    std::string remaining;
    for (const std::string& line : lines) remaining += line + "\n";
    try {
      result.root = toml::parse(remaining);
      result.usable = true;
      return result;
    } catch (const toml::parse_error& error) {
      const int line =
          std::clamp(static_cast<int>(error.source().begin.line), 1, static_cast<int>(lines.size()));
      std::string& content = lines[static_cast<std::size_t>(line - 1)];
      std::string message(error.description());
      const std::string prefix = "Error while parsing ";
      if (message.starts_with(prefix)) message.erase(0, prefix.size());
      const bool duplicate = message.find("cannot redefine existing") != std::string::npos;
      std::smatch match;
      const bool has_key = std::regex_search(content, match, key_value_line);
      std::string key = has_key ? match[1].str() : "";
      if (key.empty() && std::regex_search(content, match, header_line)) {
        key = match[1];
      } else if (has_key) {
        key = key_path(header_above(lines, line), key);
      }
      result.problems.push_back(
          {line, key, duplicate ? "given twice, once is allowed" : "is no valid TOML (" + message + ")"});
      const bool spans_lines = message.find("array") != std::string::npos ||
                               message.find("inline table") != std::string::npos ||
                               message.find("multi-line") != std::string::npos;
      if (!has_key || (spans_lines && !duplicate)) return result;
      content.clear();
    }
  }
  return result;
}

// ---- overrides ----

// "model.potential[0].stiffness" and "model.potential.0.stiffness" as {"model", "potential", "0",
// "stiffness"}.
std::vector<std::string> path_steps(const std::string& path) {
  std::string flat;
  for (const char character : path) {
    if (character == '[') {
      flat += '.';
    } else if (character != ']') {
      flat += character;
    }
  }
  return split(flat, '.');
}

bool is_index(const std::string& step) {
  return !step.empty() && step.size() < 9 && step.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

// ---- errors ----

std::string Problem::text() const {
  std::string result = source;
  if (line > 0) result += fmt::format(":{}", line);
  if (!key.empty()) result += ": " + key;
  return result + ": " + what;
}

ConfigError::ConfigError(std::vector<Problem> problems)
    : std::runtime_error([&] {
        std::string text;
        for (const Problem& problem : problems) text += (text.empty() ? "" : "\n") + problem.text();
        return text;
      }()),
      problems_(std::move(problems)) {}

// ---- table ----

bool Table::is_word(std::string_view key) const { return std::holds_alternative<std::string>(at(key)); }

bool Table::has(std::string_view key) const { return values_.find(key) != values_.end(); }

bool Table::overridden(std::string_view key) const {
  const auto place = places_.find(key);
  return place != places_.end() && place->second.override;
}

const Value& Table::at(std::string_view key) const {
  const auto found = values_.find(key);
  expects(found != values_.end(), "the table has this key: ask only good tables, for keys of their section");
  return found->second;
}

bool Table::boolean(std::string_view key) const { return std::get<bool>(at(key)); }
std::int64_t Table::integer(std::string_view key) const { return std::get<std::int64_t>(at(key)); }
double Table::number(std::string_view key) const { return std::get<double>(at(key)); }
const std::string& Table::text(std::string_view key) const { return std::get<std::string>(at(key)); }
const std::vector<std::int64_t>& Table::integers(std::string_view key) const {
  return std::get<std::vector<std::int64_t>>(at(key));
}
const std::vector<double>& Table::numbers(std::string_view key) const {
  return std::get<std::vector<double>>(at(key));
}
const std::vector<std::string>& Table::texts(std::string_view key) const {
  return std::get<std::vector<std::string>>(at(key));
}

void Table::fill(std::string_view key, Value value) {
  values_.insert_or_assign(std::string(key), std::move(value));
}

void Table::problem(std::string_view key, const std::string& what) {
  good_ = false;
  const auto place = places_.find(key);
  document_->add(place == places_.end() ? place_ : place->second, key_path(path_, key), what);
}

// ---- reader ----

// Walks the schema and the parsed tree together.
struct Document::Reader {
  Document& document;
  toml::table root;
  std::set<std::string> damaged{};  ///< paths of keys whose lines could not be parsed: not "missing" as well
  std::set<const toml::node*> overridden{};

  using Misspelt = std::map<std::string, std::string>;  ///< right name -> the near miss in the file

  // Lines of the nodes made by overrides count as overrides.
  Table::Place place_of(const toml::node& node, int fallback) const {
    if (overridden.contains(&node)) return {.override = true};
    const auto line = static_cast<int>(node.source().begin.line);
    return {.override = false, .line = line > 0 ? line : fallback};
  }

  Table::Place place_of(const toml::key& key, const toml::node& node, int fallback) const {
    if (overridden.contains(&node)) return {.override = true};
    const auto line = static_cast<int>(key.source().begin.line);
    return line > 0 ? Table::Place{.override = false, .line = line} : place_of(node, fallback);
  }

  void mark_overridden(toml::node& node) {
    overridden.insert(&node);
    if (auto* table = node.as_table()) {
      for (auto&& [key, child] : *table) mark_overridden(child);
    } else if (auto* array = node.as_array()) {
      for (auto& child : *array) mark_overridden(child);
    }
  }

  void apply_override(const std::string& text) {
    const Table::Place place{.override = true};
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      document.add(place, "", toml_text(text) + " is no override, must be key.path=value");
      return;
    }
    const auto trimmed = [](std::string part) {
      part.erase(0, std::min(part.size(), part.find_first_not_of(" \t")));
      part.erase(part.find_last_not_of(" \t") + 1);
      return part;
    };
    const std::string path = trimmed(text.substr(0, equals));
    const std::string value = trimmed(text.substr(equals + 1));
    const std::vector<std::string> steps = path_steps(path);
    if (std::any_of(steps.begin(), steps.end(), [](const std::string& step) { return step.empty(); })) {
      document.add(place, path, "is no path, must be names and indices joined by dots");
      return;
    }
    toml::table parsed;
    try {
      parsed = toml::parse("value = " + value + "\n");
      if (parsed.size() != 1) throw toml::parse_error("more than a value", toml::source_region{});
    } catch (const toml::parse_error&) {
      parsed = toml::table{};
      parsed.insert("value", value);
    }
    toml::node* node = &root;
    for (std::size_t index = 0; index + 1 < steps.size(); ++index) {
      node = child(*node, steps[index], path);
      if (node == nullptr) return;
    }
    toml::node& leaf = *parsed.get("value");
    if (auto* table = node->as_table()) {
      table->insert_or_assign(steps.back(), std::move(leaf));
      mark_overridden(*table->get(steps.back()));
    } else if (auto* array = node->as_array(); array != nullptr && is_index(steps.back())) {
      const std::size_t index = std::stoul(steps.back());
      if (index >= array->size()) {
        document.add(place, path,
                     fmt::format("there are {} entries, the index counts from 0", array->size()));
        return;
      }
      array->replace(array->cbegin() + static_cast<std::ptrdiff_t>(index), std::move(leaf));
      mark_overridden(*array->get(index));
    } else {
      document.add(place, path, "leads through a value, must lead through tables");
    }
  }

  // The child that an override's path leads through; tables that are not there are made.
  toml::node* child(toml::node& node, const std::string& step, const std::string& path) {
    const Table::Place place{.override = true};
    if (auto* table = node.as_table()) {
      if (table->get(step) == nullptr) {
        table->insert(step, toml::table{});
        overridden.insert(table->get(step));
      }
      return table->get(step);
    }
    if (auto* array = node.as_array(); array != nullptr) {
      if (is_index(step) && std::stoul(step) < array->size()) return array->get(std::stoul(step));
      document.add(
          place, path,
          fmt::format("\"{}\" is no index of {} entries, the index counts from 0", step, array->size()));
      return nullptr;
    }
    document.add(place, path, "leads through a value, must lead through tables");
    return nullptr;
  }

  const Section& section(const std::string& path) const {
    const auto found = std::find_if(document.schema_.begin(), document.schema_.end(),
                                    [&](const Section& candidate) { return candidate.path == path; });
    expects(found != document.schema_.end(), "the schema has the parents of its sections");
    return *found;
  }

  // Sections directly below `parent`, as they apply to its type.
  std::vector<const Section*> children(const Section& parent, const std::string& type) const {
    std::vector<const Section*> result;
    for (const Section& candidate : document.schema_) {
      if (candidate.path.empty() || parent_path(candidate.path) != parent.path) continue;
      if (candidate.only_for.empty() || candidate.only_for == type) result.push_back(&candidate);
    }
    return result;
  }

  void read_table(const Section& section, const std::string& path, const toml::table& node,
                  Table::Place place) {
    Table& table = document.tables_.emplace_back();
    table.path_ = path;
    table.place_ = place;
    table.section_ = &section;
    table.document_ = &document;
    for (auto&& [key, value] : node) table.places_[std::string(key.str())] = place_of(key, value, place.line);

    std::vector<const Key*> keys;
    const bool type_known = section.variants.empty() || read_type(section, table, node);
    for (const Variant& variant : section.variants) {
      if (variant.name != table.type_) continue;
      for (const Key& key : variant.keys) keys.push_back(&key);
    }
    for (const Key& key : section.keys) keys.push_back(&key);
    const auto below = children(section, table.type_);
    const Misspelt misspelt = type_known ? report_unknown(section, table, node, keys, below) : Misspelt{};
    for (const Key* key : keys) read_key(*key, table, node, misspelt);
    for (const Section* subsection : below) read_section(*subsection, table, node, misspelt);
  }

  bool read_type(const Section& section, Table& table, const toml::table& node) {
    Choice choice;
    for (const Variant& variant : section.variants) choice.options.push_back({variant.name, variant.meaning});
    const toml::node* value = node.get("type");
    if (value == nullptr) {
      std::string given = "type", what = "is missing, must be ";
      for (auto&& [key, child] : node) {
        if (edit_distance(key.str(), "type") > 1) continue;
        given = key.str();
        what = "unknown key, did you mean \"type\"? It must be ";
      }
      if (!damaged.contains(key_path(section.path, "type"))) table.problem(given, what + allowed(choice));
      table.good_ = false;
      return false;
    }
    const Checked checked = check(choice, *value);
    if (!checked.value) {
      table.problem("type", checked.wrong + (checked.wrong.ends_with('?') ? " Must be " : ", must be ") +
                                allowed(choice));
      return false;
    }
    table.type_ = std::get<std::string>(*checked.value);
    return true;
  }

  void read_key(const Key& key, Table& table, const toml::table& node, const Misspelt& misspelt) {
    const toml::node* value = node.get(key.name);
    if (value == nullptr) {
      if (misspelt.contains(key.name) || damaged.contains(key_path(table.section_->path, key.name))) {
        table.good_ = false;
      } else if (key.presence == Presence::Required) {
        table.problem(key.name, "is missing, must be " + allowed(key.kind) + " (" + key.meaning + ")");
      } else if (key.presence == Presence::Defaulted) {
        table.values_[key.name] = key.value;
      }
      return;
    }
    const Checked checked = std::visit([&](const auto& kind) { return check(kind, *value); }, key.kind);
    if (checked.value) {
      table.values_[key.name] = *checked.value;
      return;
    }
    std::string example;
    if (std::holds_alternative<List>(key.kind) && !value->is_array())
      example = ", for instance " + toml_text(key.value);
    table.problem(key.name, checked.wrong + (checked.wrong.ends_with('?') ? " Must be " : ", must be ") +
                                allowed(key.kind) + example);
  }

  // Reports the keys that this table does not know; returns what each near miss stands for.
  Misspelt report_unknown(const Section& section, Table& table, const toml::table& node,
                          const std::vector<const Key*>& keys, const std::vector<const Section*>& below) {
    Misspelt misspelt;
    std::vector<std::string> known;
    if (!section.variants.empty()) known.emplace_back("type");
    for (const Key* key : keys) known.push_back(key->name);
    for (const Section* subsection : below) known.push_back(last_name(subsection->path));
    for (auto&& [key, value] : node) {
      const std::string name(key.str());
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      std::string what = "unknown key";
      if (const std::string home = other_home(section, table.type_, name); !home.empty()) {
        what += ", " + home;
      } else if (const auto near = nearest(name, known)) {
        what += ", did you mean \"" + *near + "\"?";
        if (node.get(*near) == nullptr) misspelt[*near] = name;
      }
      const std::string scope = table.type_.empty() ? "" : " for type = \"" + table.type_ + "\"";
      table.problem(name,
                    what + (what.ends_with('?') ? " Allowed" : "; allowed") + scope + ": " + joined(known));
    }
    return misspelt;
  }

  // Where a key that this table does not know is known.
  std::string other_home(const Section& section, const std::string& type, const std::string& name) const {
    const auto holds = [&](const std::vector<Key>& keys) {
      return std::any_of(keys.begin(), keys.end(), [&](const Key& key) { return key.name == name; });
    };
    std::vector<std::string> types;
    for (const Variant& variant : section.variants) {
      if (variant.name != type && holds(variant.keys)) types.push_back("\"" + variant.name + "\"");
    }
    if (!types.empty()) return "this key belongs to type = " + joined(types);
    std::vector<std::string> homes;
    for (const Section& other : document.schema_) {
      const bool inside =
          holds(other.keys) || std::any_of(other.variants.begin(), other.variants.end(),
                                           [&](const Variant& variant) { return holds(variant.keys); });
      const std::string heading = other.path.empty()                         ? "the top of the file"
                                  : other.occurrence == Occurrence::Repeated ? "[[" + other.path + "]]"
                                                                             : "[" + other.path + "]";
      if (inside && &other != &section) homes.push_back(heading);
      if (!other.path.empty() && last_name(other.path) == name) return "this table is written " + heading;
    }
    return homes.empty() ? "" : "this key belongs to " + joined(homes);
  }

  // The table or tables of `section`, looked for in its parent.
  void read_section(const Section& section, Table& parent, const toml::table& parent_node,
                    const Misspelt& misspelt) {
    const auto near_miss = misspelt.find(last_name(section.path));
    const std::string name = near_miss == misspelt.end() ? last_name(section.path) : near_miss->second;
    const std::string path = key_path(parent.path_, name);
    const toml::node* node = parent_node.get(name);
    const bool repeated = section.occurrence == Occurrence::Repeated;
    const std::string heading = repeated ? "[[" + section.path + "]]" : "[" + section.path + "]";
    if (node == nullptr) {
      if (section.occurrence == Occurrence::Required) {
        parent.problem(name, "the table " + heading + " is missing (" + section.meaning + ")");
      } else if (section.occurrence == Occurrence::Defaulted) {
        read_table(section, path, toml::table{}, parent.place_);
      }
      return;
    }
    if (!repeated) {
      const auto* table = node->as_table();
      if (table == nullptr) {
        parent.problem(name, described(*node) + ", must be a table " + heading);
        return;
      }
      read_table(section, path, *table, parent.places_[name]);
      return;
    }
    const auto* array = node->as_array();
    const bool all_tables =
        array != nullptr &&
        std::all_of(array->begin(), array->end(), [](const toml::node& item) { return item.is_table(); });
    if (!all_tables) {
      parent.problem(name, described(*node) + ", must be one or more tables " + heading);
      if (node->is_table()) read_table(section, path + "[0]", *node->as_table(), parent.places_[name]);
      return;
    }
    for (std::size_t index = 0; index < array->size(); ++index) {
      const toml::node& item = *array->get(index);
      read_table(section, fmt::format("{}[{}]", path, index), *item.as_table(),
                 place_of(item, parent.places_[name].line));
    }
  }
};

// ---- document ----

Document::Document(Schema schema, std::string source)
    : schema_(std::move(schema)), source_(std::move(source)) {}
Document::~Document() = default;

void Document::add(const Table::Place& place, std::string key, std::string what) {
  problems_.push_back(
      {place.override ? "--set" : source_, place.override ? 0 : place.line, std::move(key), std::move(what)});
}

void Document::problem(const std::string& key, const std::string& what) {
  add({.override = false, .line = 1}, key, what);
}

void Document::throw_problems() const {
  if (problems_.empty()) return;
  std::vector<Problem> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    const bool a_is_override = a.source == "--set", b_is_override = b.source == "--set";
    return a_is_override != b_is_override ? b_is_override : a.line < b.line;
  });
  throw ConfigError(std::move(sorted));
}

std::unique_ptr<Document> Document::read(const std::filesystem::path& file, const Schema& schema,
                                         std::span<const std::string> overrides) {
  const auto refuse = [&](const std::string& what) -> void {
    throw ConfigError({{file.string(), 0, "", what + "; give the path of a TOML config"}});
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) refuse("there is no such file");
  if (std::filesystem::is_directory(status)) refuse("is a directory");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(std::string("cannot be opened (") + std::strerror(errno) + ")");
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  if (stream.bad()) refuse("cannot be read");
  return parse(text, file.string(), schema, overrides);
}

std::unique_ptr<Document> Document::parse(std::string_view text, std::string source, const Schema& schema,
                                          std::span<const std::string> overrides) {
  if (const int line = first_line_that_is_no_text(text); line > 0) {
    throw ConfigError({{source, line, "", "is no text (a NUL byte or no UTF-8), must be TOML"}});
  }
  if (text.find_first_not_of(" \t\r\n\xef\xbb\xbf") == std::string_view::npos) {
    throw ConfigError(
        {{source, 1, "", "the file is empty; `rieszflow defaults run` prints a complete config"}});
  }
  Parsed parsed = parse_toml(text);
  std::unique_ptr<Document> document(new Document(schema, std::move(source)));
  Reader reader{*document, std::move(parsed.root)};
  for (const SyntaxProblem& problem : parsed.problems) {
    std::string what = problem.what;
    for (const Section& section : schema) {
      std::vector<Key> keys = section.keys;
      for (const Variant& variant : section.variants)
        keys.insert(keys.end(), variant.keys.begin(), variant.keys.end());
      const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& candidate) {
        return key_path(section.path, candidate.name) == problem.key;
      });
      if (key == keys.end()) continue;
      what += ", must be " + allowed(key->kind);
      break;
    }
    document->add({.override = false, .line = problem.line}, problem.key, what);
    reader.damaged.insert(problem.key);
  }
  if (!parsed.usable) document->throw_problems();
  for (const std::string& text_of_override : overrides) reader.apply_override(text_of_override);
  const Section root{.path = "", .occurrence = Occurrence::Required, .meaning = ""};
  const bool has_root = std::any_of(document->schema_.begin(), document->schema_.end(),
                                    [](const Section& section) { return section.path.empty(); });
  if (!has_root) document->schema_.insert(document->schema_.begin(), root);
  reader.read_table(reader.section(""), "", reader.root, {.override = false, .line = 1});
  return document;
}

Table* Document::table(std::string_view path) {
  for (Table& candidate : tables_) {
    if (candidate.section_->path == path) return &candidate;
  }
  return nullptr;
}

std::vector<Table*> Document::tables(std::string_view path) {
  std::vector<Table*> result;
  for (Table& candidate : tables_) {
    if (candidate.section_->path == path) result.push_back(&candidate);
  }
  return result;
}

std::string Document::resolved() const {
  expects(good(), "only a document without problems has a resolved config");
  std::string text;
  for (const Section& section : schema_) {
    for (const Table& table : tables_) {
      if (table.section_ != &section) continue;
      if (!section.path.empty()) {
        const bool repeated = section.occurrence == Occurrence::Repeated;
        text += (text.empty() ? "" : "\n") +
                (repeated ? "[[" + section.path + "]]" : "[" + section.path + "]") + "\n";
      }
      if (!table.type_.empty()) text += "type = " + toml_text(table.type_) + "\n";
      const auto write_keys = [&](const std::vector<Key>& keys) {
        for (const Key& key : keys) {
          if (const auto value = table.values_.find(key.name); value != table.values_.end()) {
            text += key.name + " = " + toml_text(value->second) + "\n";
          }
        }
      };
      for (const Variant& variant : section.variants) {
        if (variant.name == table.type_) write_keys(variant.keys);
      }
      write_keys(section.keys);
    }
  }
  return text;
}

}  // namespace rieszflow::config
