#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "core/ranks.hpp"
#include "solvers/observer.hpp"

/// How a command runs a study of any kind, and what comes back.
namespace rieszflow::study {

struct Progress {
  std::size_t row = 0;  ///< rows (units, claims) that are done
  std::size_t rows = 0;
  std::string text;  ///< of one at work
};

struct Setting {
  std::filesystem::path directory;                  ///< result folder; exists
  std::string resolved_config;                      ///< text of DIR/config.toml
  std::map<std::string, std::string> provenance{};  ///< version, commit, compiler, command_line
  bool resume = false;                              ///< what DIR/rows.json has is kept
  int threads = 1;                                  ///< rows side by side; never changes a result
  Ranks ranks{};  ///< spread the rows, or their windows; never change a result. The first one writes the rest
  std::function<void(const Progress&)> progress{};
  std::function<bool()> interrupted{};  ///< asked between rows and within long ones

  std::string command_line() const {  ///< empty when it is not known
    const auto at = provenance.find("command_line");
    return at == provenance.end() ? "" : at->second;
  }
};

struct Outcome {
  RunStatus status = RunStatus::Completed;
  std::string message;
  std::string summary;  ///< text of DIR/summary.json
};

}  // namespace rieszflow::study
