#include "cli/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/ranks.hpp"
#include "experiments/plan.hpp"

namespace rieszflow::cli {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr double terminal_interval = 0.2, first_line_after = 2.0, line_interval = 30.0,
                 json_interval = 1.0;  // seconds

}  // namespace

Console::Console(bool json, bool quiet)
    : json_(json && Ranks::all().first()),
      quiet_(quiet || !Ranks::all().first()),
      terminal_(isatty(STDERR_FILENO) == 1),
      last_(steady_clock::now()),
      start_(last_) {}

void Console::clear_line() {
  if (!line_is_open_) return;
  std::fputs("\r\033[K", stderr);
  line_is_open_ = false;
}

void Console::say(const std::string& text) {
  if (quiet_) return;
  const std::lock_guard lock(mutex_);
  clear_line();
  std::FILE* stream = json_ ? stderr : stdout;
  std::fputs((text + "\n").c_str(), stream);
  std::fflush(stream);
}

void Console::complain(const std::string& text) {
  const std::lock_guard lock(mutex_);
  clear_line();
  std::fputs((text + "\n").c_str(), stderr);
}

void Console::warn(const std::string& sentence) {
  event({{"event", "warning"}, {"message", sentence}});
  if (Ranks::all().first()) complain("rieszflow: warning: " + sentence);
}

void Console::event(const nlohmann::ordered_json& object) {
  if (!json_) return;
  const std::lock_guard lock(mutex_);
  // Paths need not be UTF-8; JSON must be.
  std::fputs((object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n").c_str(),
             stdout);
  std::fflush(stdout);
}

void Console::progress(const std::string& part, double time, double end, double seconds_left) {
  const auto now = steady_clock::now();
  const double since_last = duration<double>(now - last_).count(),
               since_start = duration<double>(now - start_).count();
  const bool new_part = part != last_part_;
  if (json_) {
    if (!new_part && since_last < json_interval) return;
    nlohmann::ordered_json object{{"event", "progress"}, {"part", part}, {"time", time}, {"end", end}};
    object["seconds_left"] = std::isfinite(seconds_left) ? nlohmann::ordered_json(seconds_left) : nullptr;
    event(object);
  } else if (quiet_) {
    return;
  } else {
    const double interval = terminal_ ? terminal_interval : line_interval;
    if (since_start < first_line_after || (!new_part && since_last < interval)) return;
    std::string line = part;
    if (time < end) line = fmt::format("{:<10} t = {:.4g} of {:.4g}", part, time, end);
    if (time < end && std::isfinite(seconds_left)) line += ", " + duration_text(seconds_left) + " to go";
    const std::lock_guard lock(mutex_);
    clear_line();
    std::fputs((terminal_ ? line : line + "\n").c_str(), stderr);
    std::fflush(stderr);
    line_is_open_ = terminal_;
  }
  last_ = now;
  last_part_ = part;
}

}  // namespace rieszflow::cli
