#pragma once
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace rieszflow::test {

inline std::string content(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A command that was started: its output goes to files of its folder.
class Process {
 public:
  /// Starts `words[0]` with the folder `working` as its own; `environment` are more NAME=value.
  Process(const std::vector<std::string>& words, const std::filesystem::path& working,
          const std::vector<std::string>& environment = {})
      : out_(working / ".stdout"), err_(working / ".stderr") {
    child_ = fork();
    if (child_ != 0) return;
    if (chdir(working.c_str()) != 0) _exit(127);
    if (freopen(out_.c_str(), "w", stdout) == nullptr || freopen(err_.c_str(), "w", stderr) == nullptr)
      _exit(127);
    for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }

  void send(int signal) const { kill(child_, signal); }

  /// Exit code; 128 + signal when a signal ended it.
  int wait() {
    int status = 0;
    waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  bool runs() const { return waitpid(child_, nullptr, WNOHANG) == 0; }
  std::string out() const { return content(out_); }
  std::string err() const { return content(err_); }

 private:
  std::filesystem::path out_, err_;
  pid_t child_ = -1;
};

struct Ran {
  int code = -1;
  std::string out, err;
};

/// Runs the program with these arguments in the folder `working` to its end.
inline Ran rieszflow(const std::filesystem::path& working, std::vector<std::string> arguments,
                     const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), RIESZFLOW_EXECUTABLE);
  Process process(arguments, working, environment);
  Ran ran;
  ran.code = process.wait();
  ran.out = process.out();
  ran.err = process.err();
  return ran;
}

}  // namespace rieszflow::test
