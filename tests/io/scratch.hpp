#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

/// An empty folder of one test; its name holds a space and letters beyond ASCII, as users' folders do.
class Scratch {
 public:
  Scratch() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            (std::string("rieszflow ümlaut ρ ") + test->test_suite_name() + "." + test->name() + "." +
             std::to_string(::getpid()));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Exit code and output of a shell command.
struct Command {
  int code = -1;
  std::string output;
};

inline Command shell(const std::string& text) {
  Command result;
  FILE* pipe = ::popen((text + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
    result.output.append(buffer, count);
  const int status = ::pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

/// A python that has `module`, or nothing.
inline std::string python_with(const std::string& module) {
  for (const std::string python : {"python3", "/usr/bin/python3"})
    if (shell(python + " -c 'import " + module + "'").code == 0) return python;
  return "";
}

inline std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }
