#include "experiments/table_file.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <vector>

namespace rieszflow {
namespace {

constexpr double spacing_tolerance = 1e-6;  ///< of the spacing: what printing with 7 digits leaves

struct Rows {
  std::vector<double> numbers;  ///< (row, dimension + 1)
  std::vector<int> lines;       ///< (row)
};

std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> result(1);
  for (const char character : line) {
    if (character == '#') break;
    if (character == ' ' || character == '\t' || character == '\r' || character == ',') {
      if (!result.back().empty()) result.emplace_back();
    } else {
      result.back() += character;
    }
  }
  if (result.back().empty()) result.pop_back();
  return result;
}

}  // namespace

TableFile read_table_file(const std::filesystem::path& file, std::size_t dimension) {
  const auto refuse = [&](int line, const std::string& what) {
    const std::string place = line > 0 ? fmt::format("{}:{}", file.string(), line) : file.string();
    return TableFile{std::nullopt, place + ": " + what};
  };
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return refuse(0, "there is no such file");
  std::ifstream stream(file);
  if (!stream) return refuse(0, "cannot be opened");

  Rows rows;
  std::string text;
  for (int line = 1; std::getline(stream, text); ++line) {
    const std::vector<std::string> row = words(text);
    if (row.empty()) continue;
    if (row.size() != dimension + 1) {
      return refuse(line, fmt::format("has {} numbers, must be {}: {} coordinate{} and V", row.size(),
                                      dimension + 1, dimension, dimension == 1 ? "" : "s"));
    }
    for (const std::string& word : row) {
      double number = 0.0;
      const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
      if (fault != std::errc{} || end != word.data() + word.size()) {
        return refuse(line, fmt::format("\"{}\" is no number", word.substr(0, 40)));
      }
      if (!std::isfinite(number)) return refuse(line, fmt::format("\"{}\" is not finite", word));
      rows.numbers.push_back(number);
    }
    rows.lines.push_back(line);
  }
  if (rows.lines.empty()) return refuse(0, "has no rows");

  // The last coordinate runs fastest: its run length is the number of nodes of the last axis, and so on
  // outwards.
  const std::size_t row_count = rows.lines.size(), width = dimension + 1;
  const auto coordinate = [&](std::size_t row, std::size_t axis) { return rows.numbers[row * width + axis]; };
  struct {
    std::vector<double> lower, upper, values;
    std::vector<std::size_t> nodes;
  } table;
  table.nodes.assign(dimension, 1);
  std::size_t stride = 1;
  for (std::size_t axis = dimension; axis-- > 0;) {
    std::size_t nodes = 1;
    while (nodes * stride < row_count &&
           coordinate(nodes * stride, axis) > coordinate((nodes - 1) * stride, axis)) {
      ++nodes;
    }
    table.nodes[axis] = nodes;
    stride *= nodes;
  }
  if (stride != row_count) {
    return refuse(
        rows.lines[stride < row_count ? stride : 0],
        fmt::format("{} rows are no grid: coordinates must increase, the last one fastest", row_count));
  }
  for (std::size_t axis = 0; axis < dimension; ++axis) {
    if (table.nodes[axis] < fewest_nodes) {
      return refuse(0, fmt::format("has {} nodes along coordinate {}, must have at least {}",
                                   table.nodes[axis], axis + 1, fewest_nodes));
    }
    table.lower.push_back(coordinate(0, axis));
    table.upper.push_back(coordinate(row_count - 1, axis));
  }
  for (std::size_t row = 0; row < row_count; ++row) {
    std::size_t rest = row;
    for (std::size_t axis = dimension; axis-- > 0;) {
      const std::size_t index = rest % table.nodes[axis];
      rest /= table.nodes[axis];
      const double spacing =
          (table.upper[axis] - table.lower[axis]) / static_cast<double>(table.nodes[axis] - 1);
      const double node = table.lower[axis] + static_cast<double>(index) * spacing;
      if (std::abs(coordinate(row, axis) - node) > spacing_tolerance * spacing) {
        return refuse(rows.lines[row],
                      fmt::format("coordinate {} is {}, must be {}: nodes are equally spaced", axis + 1,
                                  coordinate(row, axis), node));
      }
    }
    table.values.push_back(rows.numbers[row * width + dimension]);
  }
  return {TablePotential(std::move(table.lower), std::move(table.upper), std::move(table.nodes),
                         std::move(table.values), file.string()),
          ""};
}

}  // namespace rieszflow
