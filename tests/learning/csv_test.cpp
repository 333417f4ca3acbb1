#include "io/csv.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rieszflow::io {
namespace {

class Csv : public testing::Test {
 protected:
  std::filesystem::path file =
      std::filesystem::temp_directory_path() /
      ("rieszflow_csv_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
       ".csv");
  ~Csv() override { std::filesystem::remove_all(file); }

  CsvReading read(const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
    return read_csv(file);
  }
  /// The one problem, without the file's name.
  std::string problem(const std::string& text) {
    const CsvReading reading = read(text);
    EXPECT_EQ(reading.problems.size(), 1u);
    EXPECT_TRUE(reading.table.columns.empty() && reading.table.values.empty()) << "no half-read table";
    if (reading.problems.empty()) return "";
    EXPECT_TRUE(reading.problems[0].starts_with(file.string()));
    return reading.problems[0].substr(file.string().size());
  }
};

TEST_F(Csv, ReadsNamesAndNumbersBitForBit) {
  const auto reading = read(
      "\xEF\xBB\xBFx , \"a \"\"b\"\"\",label\r\n0.30000000000000004, 1e-308 "
      ",+1\r\n\r\n-.5,\"2\",3e2\n1e-400,0,0");
  EXPECT_TRUE(reading.problems.empty());
  EXPECT_EQ(reading.table.columns, (std::vector<std::string>{"x", "a \"b\"", "label"}));
  EXPECT_EQ(reading.table.rows, 3u);
  EXPECT_EQ(reading.table.values,
            (std::vector<double>{0.1 + 0.2, 1e-308, 1.0, -0.5, 2.0, 300.0, 0.0, 0.0, 0.0}));
}

TEST_F(Csv, SaysWhereAndWhatIsWrong) {
  EXPECT_EQ(problem(""), ": is empty, must have a header line and rows of numbers");
  EXPECT_EQ(problem("a,b\n"), ": has a header but no rows");
  EXPECT_EQ(problem("a,b\n1,2\n3\n"), ":3: has 1 fields, must have 2 as the header");
  EXPECT_EQ(problem("a,b\n1,\n"), ":2: column \"b\" is missing");
  EXPECT_EQ(problem("a,b\n1,two\n"), ":2: column \"b\" is \"two\", must be a number");
  EXPECT_EQ(problem("a,b\n1,1.5x\n"), ":2: column \"b\" is \"1.5x\", must be a number");
  EXPECT_EQ(problem("a,b\nnan,1\n"), ":2: column \"a\" is nan, must be finite");
  EXPECT_EQ(problem("a,b\n1e999,1\n"), ":2: column \"a\" is 1e999, must be finite");
  EXPECT_EQ(problem("a,a\n1,2\n"), ":1: two columns are named \"a\"");
  EXPECT_EQ(problem("a,\n1,2\n"), ":1: a column has no name");
  EXPECT_EQ(problem("1,2\n3,4\n"), ":1: the first line must name the columns, but holds numbers");
  EXPECT_EQ(problem("a,b\n1,\"2\n"), ":2: a quotation mark is not closed");
  EXPECT_EQ(problem(std::string("a,b\n1,\0\n", 8)), ":2: holds a zero byte: this is no text file");
}

TEST_F(Csv, ReportsManyProblemsAtOnceButNotAllOfThem) {
  std::string text = "a\n";
  for (int k = 0; k < 25; ++k) text += "x\n";
  const auto reading = read(text);
  EXPECT_EQ(reading.problems.size(), most_problems + 1);
  EXPECT_TRUE(reading.problems.back().ends_with(": and 15 more"));
}

TEST_F(Csv, RefusesAMissingFileAndAFolder) {
  EXPECT_EQ(read_csv(file / "absent.csv").problems.at(0),
            (file / "absent.csv").string() + ": there is no such file");
  std::filesystem::create_directory(file);
  EXPECT_EQ(read_csv(file).problems.at(0), file.string() + ": is no regular file");
}

TEST_F(Csv, WhatIsWrittenReadsBackTheSame) {
  const std::vector<double> values{1.0 / 3, -1e-300, 0.1, 123456789.125};
  write_csv(file, {"p", "q"}, values);
  const auto reading = read_csv(file);
  EXPECT_TRUE(reading.problems.empty());
  EXPECT_EQ(reading.table.values, values);
}

}  // namespace
}  // namespace rieszflow::io
