#include "cli/answer.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "config/document.hpp"
#include "core/build_info.hpp"
#include "core/expects.hpp"
#include "core/ranks.hpp"
#include "io/files.hpp"

namespace rieszflow::cli {
namespace {

std::optional<MpiSession> session;

// Says what is wrong, to people and scripts, and gives the exit code back.
int failed(bool wants_json, int code, const std::string& message,
           const std::vector<config::Problem>& problems = {}) {
  Console console(wants_json, false);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const config::Problem& problem : problems) {
    list.push_back(
        {{"file", problem.source}, {"line", problem.line}, {"key", problem.key}, {"what", problem.what}});
  }
  console.event({{"event", "error"}, {"exit_code", code}, {"message", message}, {"problems", list}});
  // The user's fault is seen by every rank, the machine's by one.
  if (code == user_fault && !Ranks::all().first()) return code;
  console.complain(problems.empty() ? "rieszflow: " + message : message);
  return code;
}

}  // namespace

namespace {

int code_of(bool wants_json, const std::function<int()>& action) {
  try {
    return action();
  } catch (const config::ConfigError& error) {
    return failed(wants_json, user_fault, error.what(), error.problems());
  } catch (const UsageError& error) {
    return failed(wants_json, user_fault, error.what());
  } catch (const RefusedByFirstRank&) {
    return user_fault;
  } catch (const io::FileError& error) {
    return failed(wants_json, machine_fault, error.what());
  } catch (const ResourceError& error) {
    return failed(wants_json, machine_fault, error.what());
  } catch (const std::bad_alloc&) {
    return failed(wants_json, machine_fault, "out of memory; --dry-run says how much a run needs");
  } catch (const PreconditionViolation& error) {
    return failed(wants_json, program_fault,
                  fmt::format("internal error, please report it with the config: {} ({})", error.what(),
                              build_info().commit));
  } catch (const std::exception& error) {
    return failed(wants_json, machine_fault, error.what());
  }
}

}  // namespace

int answer(int argc, char** argv, const std::function<int()>& action) {
  const bool wants_json =
      std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of a write, with the file's name
  const int code = code_of(wants_json, action);
  const Ranks ranks = Ranks::all();
  if (code == machine_fault || code == program_fault) ranks.abandon(code);  // the others wait for this one
  std::int64_t first = code;
  ranks.share(first);
  session.reset();
  return static_cast<int>(first);
}

void start_again_with(char** argv, std::initializer_list<std::pair<const char*, const char*>> variables) {
  bool news = false;
  for (const auto& [name, value] : variables) {
    if (std::getenv(name) != nullptr) continue;
    setenv(name, value, 1);
    news = true;
  }
  if (!news) return;
  std::error_code error;
  // By its own path, so that process lists show its name.
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(program.c_str(), argv);
}

void join_ranks() { session.emplace(); }

}  // namespace rieszflow::cli
