#pragma once
#include <chrono>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace rieszflow::cli {

/// Where text goes; of several ranks only the first one talks, but for complaints. Problems: stderr. Results:
/// stdout, or stderr beside JSON lines, which own stdout. Progress: one line that is rewritten on a terminal,
/// else a line now and then, on stderr.
class Console {
 public:
  Console(bool json, bool quiet);

  /// Text for people; not with --quiet.
  void say(const std::string& text);
  /// Text for people, always.
  void complain(const std::string& text);
  /// A sentence about what will spoil the results: an event, and a complaint of the first rank.
  void warn(const std::string& sentence);
  /// One JSON object a line on stdout, with --json only.
  void event(const nlohmann::ordered_json& object);
  /// Called often; prints when it is time to. seconds_left: NaN when unknown.
  void progress(const std::string& part, double time, double end, double seconds_left);

 private:
  void clear_line();

  bool json_, quiet_, terminal_;
  bool line_is_open_ = false;
  std::chrono::steady_clock::time_point last_, start_;
  std::string last_part_;
  std::mutex mutex_;
};

}  // namespace rieszflow::cli
