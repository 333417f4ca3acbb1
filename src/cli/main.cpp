#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "cli/result_folder.hpp"
#include "config/document.hpp"
#include "core/build_info.hpp"
#include "core/expects.hpp"
#include "io/files.hpp"

namespace rieszflow::cli {
namespace {

std::string shell_line = "rieszflow";
bool wants_json = false;

std::string version_text() {
  const BuildInfo& info = build_info();
  return fmt::format("rieszflow {} ({})\ncompiler  {}\nlibraries {}", info.version, info.commit,
                     info.compiler, info.libraries);
}

// Says what is wrong, to people and scripts, and gives the exit code back.
int failed(int code, const std::string& message, const std::vector<config::Problem>& problems = {}) {
  Console console(wants_json, false);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const config::Problem& problem : problems) {
    list.push_back(
        {{"file", problem.source}, {"line", problem.line}, {"key", problem.key}, {"what", problem.what}});
  }
  console.event({{"event", "error"}, {"exit_code", code}, {"message", message}, {"problems", list}});
  console.complain(problems.empty() ? "rieszflow: " + message : message);
  return code;
}

int answer(const std::function<int()>& action) {
  try {
    return action();
  } catch (const config::ConfigError& error) {
    return failed(user_fault, error.what(), error.problems());
  } catch (const UsageError& error) {
    return failed(user_fault, error.what());
  } catch (const io::FileError& error) {
    return failed(machine_fault, error.what());
  } catch (const ResourceError& error) {
    return failed(machine_fault, error.what());
  } catch (const std::bad_alloc&) {
    return failed(machine_fault, "out of memory; --dry-run says how much a run needs");
  } catch (const PreconditionViolation& error) {
    return failed(program_fault, fmt::format("internal error, please report it with the config: {} ({})",
                                             error.what(), build_info().commit));
  } catch (const std::exception& error) {
    return failed(machine_fault, error.what());
  }
}

int front_door(int argc, char** argv) {
  for (const char* argument : std::span(argv + 1, static_cast<std::size_t>(argc - 1))) {
    shell_line += " " + shell_quoted(argument);
    wants_json = wants_json || std::string_view(argument) == "--json";
  }
  CLI::App program("Particles and densities of one mean-field model, side by side.", "rieszflow");
  program.set_version_flag("--version", version_text);
  program.require_subcommand(0, 1);
  program.footer("`rieszflow COMMAND --help` says more. A first run:\n  rieszflow run experiments/demo.toml");
  const Command commands[] = {run_command(program),    study_command(program),     verify_command(program),
                              learn_command(program),  attention_command(program), export_command(program),
                              report_command(program), info_command(program),      defaults_command(program),
                              list_command(program)};
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? done : user_fault;
  }
  for (const Command& command : commands) {
    if (command.options->parsed()) return command.action();
  }
  fmt::print(stderr, "{}", program.help());
  return user_fault;
}

}  // namespace

std::string command_line() { return shell_line; }

}  // namespace rieszflow::cli

namespace {

/// Threads that wait for one another at the end of a parallel loop spin for milliseconds by libgomp's
/// default. Beside other work on the same cores that spinning costs twenty times the work itself, so they
/// sleep after some twenty microseconds, unless the user has a wish of his own. libgomp reads this before
/// main, hence a second start.
void wait_without_spinning(char** argv) {
  if (getenv("OMP_WAIT_POLICY") != nullptr || getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "2000", 1);
  execv("/proc/self/exe", argv);  // comes back only where there is no /proc: then they spin
}

}  // namespace

int main(int argc, char** argv) {
  wait_without_spinning(argv);
  return rieszflow::cli::answer([&] { return rieszflow::cli::front_door(argc, argv); });
}
