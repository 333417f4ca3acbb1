#pragma once
#include <gtest/gtest.h>

#include <algorithm>

#include "process.hpp"

namespace rieszflow::test {

/// Both sides of a Riesz gas in an interval, some hundredths of a second.
inline const std::string small_config =
    "[model]\ninverse_temperature = 4.0\n"
    "[model.domain]\ntype = \"box\"\nlower = [-1.0]\nupper = [1.0]\n"
    "[[model.potential]]\ntype = \"quadratic\"\nstiffness = 1.0\n"
    "[[model.interaction]]\ntype = \"riesz\"\nexponent = 0.5\nstrength = 1.0\n"
    "[initial]\ntype = \"gaussian\"\nmean = [0.0]\nstd = [0.3]\n"
    "[time]\nend = 0.1\noutput_every = 0.05\n"
    "[particles]\ncount = 20\nreplicas = 2\ntimestep = 0.01\nseed = 3\n"
    "[density]\ncells = [32]\n";

/// A fresh folder with the config small.toml in it, for one test.
class Scratch : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("rieszflow-" + std::string(test->name()) + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    write("small.toml", small_config);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  Ran run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {}) {
    return rieszflow(folder_, arguments, environment);
  }
  /// Names below the folder, a line each; the output files of the test itself are left out.
  std::string listing() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      const std::string name = entry.path().lexically_relative(folder_).string();
      if (name != ".stdout" && name != ".stderr") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    std::string text;
    for (const std::string& name : names) text += name + "\n";
    return text;
  }

  std::filesystem::path folder_;
};

}  // namespace rieszflow::test
