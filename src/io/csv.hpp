#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace rieszflow::io {

/// A table of numbers with one name per column.
struct NumberTable {
  std::vector<std::string> columns;
  std::size_t rows = 0;
  std::vector<double> values;  ///< (row, column), row-major; all finite
};

/// What reading gave: a table, or what is wrong with the file.
struct CsvReading {
  NumberTable table;
  std::vector<std::string> problems;  ///< "data.csv:12: what is wrong"; empty when the table is good
};

/// Comma-separated numbers (RFC 4180): a header line of unique, non-empty names, then rows of as many finite
/// numbers in C notation. Names and numbers may be quoted and surrounded by blanks; a UTF-8 byte order mark
/// and CRLF line ends are accepted. Missing fields, text, NaN and infinities are problems, the first
/// `most_problems` of them with their lines.
CsvReading read_csv(const std::filesystem::path& file);

inline constexpr std::size_t most_problems = 10;

/// Header and rows with the fewest digits that read back the same bits. values: (row, column). Throws
/// FileError.
void write_csv(const std::filesystem::path& file, const std::vector<std::string>& columns,
               std::span<const double> values);

}  // namespace rieszflow::io
