#include "cli/experiment_options.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <thread>

namespace rieszflow::cli {

std::optional<double> duration(const std::string& text) {
  double seconds = 0.0;
  const char *position = text.data(), *const end = text.data() + text.size();
  if (position == end) return std::nullopt;
  constexpr std::pair<char, double> units[] = {{'d', 86400.0}, {'h', 3600.0}, {'m', 60.0}, {'s', 1.0}};
  const auto* unit = std::begin(units);
  while (position != end) {
    double number = 0.0;
    const auto [after, fault] = std::from_chars(position, end, number, std::chars_format::fixed);
    if (fault != std::errc{} || !(number >= 0.0) || after == end) return std::nullopt;
    while (unit != std::end(units) && unit->first != *after) ++unit;
    if (unit == std::end(units)) return std::nullopt;
    seconds += number * unit->second;
    ++unit;  // each unit once, the longer ones first
    position = after + 1;
  }
  return std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
}

void add_experiment_options(CLI::App& command, ExperimentOptions& options) {
  options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  command
      .add_option("config", options.config,
                  "the experiment (TOML), a file or a pipe <(...); `rieszflow defaults` prints one")
      ->required()
      ->type_name("CONFIG.toml");
  command.add_option("--out", options.out, "result folder (default: out/<name of the config>)")
      ->type_name("DIR");
  command.add_option("--set", options.overrides, "another value for a key of the config; repeatable")
      ->type_name("key.path=value")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>(
          "--seed",
          [&options](const std::string& text) {
            std::int64_t seed = -1;
            const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), seed);
            if (fault != std::errc{} || end != text.data() + text.size() || seed < 0)
              throw CLI::ValidationError("--seed",
                                         "\"" + text + "\" is no seed, must be an integer from 0 to " +
                                             std::to_string(std::numeric_limits<std::int64_t>::max()));
            options.seed = seed;
          },
          "seed of all random numbers, instead of the config's")
      ->type_name("INT");
  command.add_option("--threads", options.threads, "threads (default: all cores); never changes a result")
      ->check(CLI::Range(1, 4096).description(""));
  command
      .add_option_function<std::string>(
          "--max-wall",
          [&options](const std::string& text) {
            options.max_wall = duration(text);
            if (!options.max_wall) {
              throw CLI::ValidationError("--max-wall", "\"" + text +
                                                           "\" is no duration, must be numbers with the "
                                                           "units d, h, m, s, each at most once and in "
                                                           "this order: 90s, 15m, 1h30m, 1d12h");
            }
          },
          "stop with a checkpoint after this time, as if interrupted (90s, 15m, 1h30m)")
      ->type_name("DURATION");
  auto* resume = command.add_flag("--resume", options.resume, "continue from the folder's checkpoint");
  command.add_flag("--force", options.force, "replace the results in the folder")->excludes(resume);
  command.add_flag("--dry-run", options.dry_run, "check the config, print the plan, write nothing");
  command.add_flag("--quiet", options.quiet, "print problems only");
  command.add_flag("--json", options.json,
                   "progress and result as JSON lines on stdout, other text on stderr");
}

}  // namespace rieszflow::cli
