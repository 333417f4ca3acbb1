#include "io/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <set>

#include "core/expects.hpp"
#include "io/files.hpp"

namespace rieszflow::io {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Fields of one line; nothing when a quotation mark is not closed.
std::optional<std::vector<std::string>> fields(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (std::size_t k = 0; k < line.size(); ++k) {
    if (line[k] == '"') {
      if (quoted && k + 1 < line.size() && line[k + 1] == '"') {
        out.back() += line[++k];
      } else {
        quoted = !quoted;
      }
    } else if (line[k] == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += line[k];
    }
  }
  if (quoted) return std::nullopt;
  for (std::string& field : out) field = trimmed(field);
  return out;
}

std::optional<double> number(const std::string& text) {
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* end = text.data() + text.size();
  double value = 0.0;
  const auto [stop, fault] = std::from_chars(begin, end, value);
  if (stop != end || begin == end) return std::nullopt;
  if (fault == std::errc::result_out_of_range)  // below the smallest number, or beyond the largest
    return text.find("e-") != std::string::npos || text.find("E-") != std::string::npos ? 0.0 : HUGE_VAL;
  if (fault != std::errc{}) return std::nullopt;
  return value;
}

}  // namespace

CsvReading read_csv(const std::filesystem::path& file) {
  CsvReading out;
  std::size_t found = 0;
  const auto problem = [&](std::size_t line, const std::string& what) {
    if (++found <= most_problems)
      out.problems.push_back(line > 0 ? fmt::format("{}:{}: {}", file.string(), line, what)
                                      : fmt::format("{}: {}", file.string(), what));
  };
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    problem(0, "there is no such file");
    return out;
  }
  if (!std::filesystem::is_regular_file(file, error)) {
    problem(0, "is no regular file");
    return out;
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    problem(0, "cannot be opened");
    return out;
  }

  NumberTable& table = out.table;
  std::string text;
  for (std::size_t line = 1; std::getline(stream, text); ++line) {
    if (line == 1 && text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
    if (text.ends_with('\r')) text.pop_back();
    if (trimmed(text).empty()) continue;
    if (text.find('\0') != std::string::npos) {
      problem(line, "holds a zero byte: this is no text file");
      break;
    }
    const auto row = fields(text);
    if (!row) {
      problem(line, "a quotation mark is not closed");
      continue;
    }
    if (table.columns.empty()) {
      std::set<std::string> names;
      bool numbers = true;
      for (const std::string& name : *row) {
        if (name.empty()) problem(line, "a column has no name");
        if (!names.insert(name).second && !name.empty())
          problem(line, fmt::format("two columns are named \"{}\"", name));
        numbers = numbers && number(name).has_value();
      }
      if (numbers) problem(line, "the first line must name the columns, but holds numbers");
      table.columns = *row;
      continue;
    }
    if (row->size() != table.columns.size()) {
      problem(line,
              fmt::format("has {} fields, must have {} as the header", row->size(), table.columns.size()));
      continue;
    }
    for (std::size_t k = 0; k < row->size(); ++k) {
      const std::string& field = (*row)[k];
      const auto value = number(field);
      if (field.empty()) {
        problem(line, fmt::format("column \"{}\" is missing", table.columns[k]));
      } else if (!value) {
        problem(line, fmt::format("column \"{}\" is \"{}\", must be a number", table.columns[k],
                                  field.substr(0, 40)));
      } else if (!std::isfinite(*value)) {
        problem(line, fmt::format("column \"{}\" is {}, must be finite", table.columns[k], field));
      }
      table.values.push_back(value.value_or(0.0));
    }
    ++table.rows;
  }
  if (table.columns.empty()) {
    problem(0, "is empty, must have a header line and rows of numbers");
  } else if (table.rows == 0 && found == 0) {
    problem(0, "has a header but no rows");
  }
  if (found > most_problems)
    out.problems.push_back(fmt::format("{}: and {} more", file.string(), found - most_problems));
  if (found > 0) table = {};
  return out;
}

void write_csv(const std::filesystem::path& file, const std::vector<std::string>& columns,
               std::span<const double> values) {
  expects(!columns.empty() && values.size() % columns.size() == 0, "whole rows");
  std::string text;
  for (std::size_t k = 0; k < columns.size(); ++k) text += (k > 0 ? "," : "") + columns[k];
  text += '\n';
  for (std::size_t k = 0; k < values.size(); ++k)
    text += fmt::format("{}{}", values[k], (k + 1) % columns.size() == 0 ? '\n' : ',');
  write_text(file, text);
}

}  // namespace rieszflow::io
