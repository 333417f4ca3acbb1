// Any bytes as a table of numbers (CSV) and as labelled text (TSV): read, or refused with file and line;
// every number that was read is finite, every row whole.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "experiments/attention/text_data.hpp"
#include "experiments/learning_data.hpp"
#include "fuzz.hpp"
#include "io/csv.hpp"

namespace rieszflow::fuzz {
namespace {

/// One file, written again for each input; in memory where the system has such a place.
const std::filesystem::path& scratch_file() {
  static const std::filesystem::path file = [] {
    const std::filesystem::path memory = "/dev/shm";
    const auto folder =
        std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    return folder / ("rieszflow_fuzz_" + std::to_string(getpid()) + ".table");
  }();
  return file;
}

void expect_places(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    if (problem.find(scratch_file().filename().string()) == std::string::npos)
      broken("a problem without its file: " + problem);
  }
}

}  // namespace

void try_input(std::string_view bytes) {
  std::ofstream(scratch_file(), std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const io::CsvReading numbers = io::read_csv(scratch_file());
  expect_places(numbers.problems);
  if (numbers.problems.empty()) {
    const io::NumberTable& table = numbers.table;
    if (table.values.size() != table.rows * table.columns.size()) broken("a table with incomplete rows");
    for (const double value : table.values)
      if (!std::isfinite(value)) broken("a table with a number that is not finite");
  }
  expect_places(learning::read_dataset(scratch_file(), "label").problems);
  const text::TextReading labelled = text::read_text(scratch_file());
  expect_places(labelled.problems);
  const text::TextData& data = labelled.data;
  if (!data.labels.empty() && data.labels.size() != data.first.size())
    broken("labels and sentences differ in number");
  if (data.pairs && data.second.size() != data.first.size()) broken("a pair without its second sentence");
  for (const std::string& sentence : data.first) {
    if (sentence.empty()) broken("an empty sentence");
    for (const std::string& word : text::words(sentence))
      if (word.empty()) broken("an empty word");
  }
  for (const bool pairs : {false, true}) expect_places(text::read_sentences(scratch_file(), pairs).problems);
  std::filesystem::remove(scratch_file());
}

std::vector<std::string> dictionary() {
  return {"sentence\tlabel\n",
          "question1\tquestion2\tis_duplicate\n",
          "label",
          ",",
          "\t",
          "\n",
          "\r\n",
          "\"",
          "\"\"",
          "nan",
          "inf",
          "1e400",
          "-0",
          "0x1p3",
          "1,5",
          "\xEF\xBB\xBF",
          "\xC3",
          "\xFF",
          "\0",
          ";",
          " ",
          "1",
          "0"};
}

}  // namespace rieszflow::fuzz
