#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rieszflow::cli {

/// Options that every command with a config and a result folder shares.
struct ExperimentOptions {
  std::filesystem::path config;
  std::filesystem::path out;  ///< empty: out/NAME, NAME that of the config
  std::vector<std::string> overrides;
  std::optional<std::int64_t> seed;
  int threads = 1;
  std::optional<double> max_wall;  ///< seconds
  bool resume = false;
  bool force = false;
  bool dry_run = false;
  bool quiet = false;
  bool json = false;
};

/// Declares them on a command; `options` must outlive the parsing.
void add_experiment_options(CLI::App& command, ExperimentOptions& options);

/// "90s", "15m", "2h", "1d" and sums like "1h30m" in seconds; nothing when it is no duration.
std::optional<double> duration(const std::string& text);

}  // namespace rieszflow::cli
