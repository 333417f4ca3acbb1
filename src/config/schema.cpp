#include "config/schema.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/match.hpp"

namespace rieszflow::config {
namespace {

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      result += '\\';
      result += character;
    } else if (code < 0x20 || code == 0x7f) {
      result += fmt::format("\\u{:04X}", code);
    } else {
      result += character;
    }
  }
  return result + '"';
}

template <class Item, class Function>
std::string list_text(const std::vector<Item>& items, Function&& item_text) {
  std::string result = "[";
  for (std::size_t index = 0; index < items.size(); ++index) {
    if (index > 0) result += ", ";
    result += item_text(items[index]);
  }
  return result + "]";
}

// Bounds people write: 1 rather than 1.0.
std::string bound_text(double bound) {
  std::string text = float_text(bound);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string range_text(const Integer& range) {
  const bool below = range.lower > std::numeric_limits<std::int64_t>::min();
  const bool above = range.upper < std::numeric_limits<std::int64_t>::max();
  if (below && above) return fmt::format(" from {} to {}", range.lower, range.upper);
  if (below) return fmt::format(" >= {}", range.lower);
  if (above) return fmt::format(" <= {}", range.upper);
  return "";
}

std::string range_text(const Number& range) {
  std::string text;
  if (std::isfinite(range.lower)) {
    text += (range.lower_included ? " >= " : " > ") + bound_text(range.lower);
  }
  if (std::isfinite(range.upper)) {
    text += (text.empty() ? " <= " : " and <= ") + bound_text(range.upper);
  }
  if (range.may_be_infinite) text += " or inf";
  return text;
}

std::string lengths_text(const List& list) {
  if (list.shortest == list.longest) return fmt::format("{} ", list.shortest);
  if (list.longest == std::numeric_limits<std::size_t>::max()) {
    return list.shortest <= 1 ? "" : fmt::format("at least {} ", list.shortest);
  }
  return fmt::format("{} to {} ", list.shortest, list.longest);
}

constexpr std::size_t comment_column = 34;

// `text  # comment`, the comment at a fixed column.
std::string commented(std::string text, const std::string& comment) {
  if (comment.empty()) return text + "\n";
  if (text.size() + 1 < comment_column) text.resize(comment_column - 1, ' ');
  return text + " # " + comment + "\n";
}

std::string key_comment(const Key& key) {
  std::string comment = key.meaning;
  if (!key.units.empty()) comment += " [" + key.units + "]";
  comment += "; " + allowed(key.kind);
  if (key.presence == Presence::Required) comment += "; required";
  return comment;
}

std::string key_line(const Key& key, const std::string& prefix) {
  return commented(prefix + key.name + " = " + toml_text(key.value), key_comment(key));
}

// Optional keys stay comments: their absence means something.
std::string key_lines(const std::vector<Key>& keys, const std::string& prefix) {
  std::string text;
  for (const Key& key : keys) {
    const bool comment_out = key.presence == Presence::Optional && prefix.empty();
    text += key_line(key, comment_out ? "# " : prefix);
  }
  return text;
}

std::string heading(const Section& section) {
  return section.occurrence == Occurrence::Repeated ? "[[" + section.path + "]]" : "[" + section.path + "]";
}

std::string occurrence_text(Occurrence occurrence) {
  switch (occurrence) {
    case Occurrence::Required:
      return "required";
    case Occurrence::Optional:
      return "optional";
    case Occurrence::Defaulted:
      return "may be left out";
    case Occurrence::Repeated:
      return "any number of these tables";
  }
  return "";
}

std::string parent_path(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

}  // namespace

std::string allowed(const Kind& kind) {
  return std::visit(Match{
                        [](const Boolean&) -> std::string { return "true or false"; },
                        [](const Integer& range) { return "an integer" + range_text(range); },
                        [](const Number& range) {
                          return (range.may_be_infinite ? "a number" : "a finite number") + range_text(range);
                        },
                        [](const Text& text) -> std::string {
                          return text.is_name ? "a non-empty text in quotes, without \"/\" and with no \".\" in front"
                                              : "a non-empty text in quotes";
                        },
                        [](const Choice& choice) {
                          std::string names;
                          for (const Named& option : choice.options) {
                            names += (names.empty() ? "\"" : " | \"") + option.name + "\"";
                          }
                          return names;
                        },
                        [](const NumberOrWord& either) {
                          return "\"" + either.word.name + "\" (" + either.word.meaning +
                                 ") or a finite number" + range_text(either.range);
                        },
                        [](const List& list) {
                          const std::string items = std::visit(
                              Match{[](const Integer& range) { return "integers" + range_text(range); },
                                    [](const Number& range) { return "finite numbers" + range_text(range); },
                                    [](const Text&) -> std::string { return "texts in quotes"; }},
                              list.item);
                          return "a list of " + lengths_text(list) + items;
                        },
                    },
                    kind);
}

std::string toml_text(const Value& value) {
  return std::visit(Match{
                        [](bool flag) -> std::string { return flag ? "true" : "false"; },
                        [](std::int64_t number) { return fmt::format("{}", number); },
                        [](double number) { return float_text(number); },
                        [](const std::string& text) { return quoted(text); },
                        [](const std::vector<std::int64_t>& list) {
                          return list_text(list, [](std::int64_t item) { return fmt::format("{}", item); });
                        },
                        [](const std::vector<double>& list) { return list_text(list, float_text); },
                        [](const std::vector<std::string>& list) { return list_text(list, quoted); },
                    },
                    value);
}

std::string listing(const Schema& schema) {
  std::string text;
  const auto add = [&](const std::string& title, const std::vector<Named>& options) {
    text += (text.empty() ? "" : "\n") + title + "\n";
    for (const Named& option : options) text += fmt::format("  {:<24} {}\n", option.name, option.meaning);
  };
  for (const Section& section : schema) {
    std::vector<Named> types;
    for (const Variant& variant : section.variants) types.push_back({variant.name, variant.meaning});
    if (!types.empty()) add(heading(section) + " type", types);
    for (const Key& key : section.keys) {
      if (const auto* choice = std::get_if<Choice>(&key.kind))
        add(heading(section) + " " + key.name, choice->options);
    }
  }
  return text;
}

std::string sample_config(const Schema& schema, const std::vector<Sample>& samples) {
  const auto variant_of = [&](const std::string& path) -> std::string {
    for (const Sample& sample : samples) {
      if (sample.path == path) return sample.variant;
    }
    for (const Section& section : schema) {
      if (section.path == path && !section.variants.empty()) return section.variants.front().name;
    }
    return "";
  };
  std::string text;
  for (const Section& section : schema) {
    if (!section.only_for.empty() && section.only_for != variant_of(parent_path(section.path))) {
      text +=
          commented("#   " + heading(section), section.meaning + "; for type = " + quoted(section.only_for));
      text += key_lines(section.keys, "#   ");
      continue;
    }
    if (!section.path.empty()) {
      text +=
          "\n" + commented(heading(section), section.meaning + "; " + occurrence_text(section.occurrence));
    }
    const std::string chosen = variant_of(section.path);
    for (const Variant& variant : section.variants) {
      if (variant.name != chosen) continue;
      text += commented("type = " + quoted(variant.name), variant.meaning);
      text += key_lines(variant.keys, "");
    }
    text += key_lines(section.keys, "");
    for (const Variant& variant : section.variants) {
      if (variant.name == chosen) continue;
      text += commented("#   type = " + quoted(variant.name), variant.meaning);
      text += key_lines(variant.keys, "#     ");
    }
  }
  return text;
}

}  // namespace rieszflow::config
