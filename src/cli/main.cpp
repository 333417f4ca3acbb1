#include <fmt/format.h>
#include <malloc.h>

#include <cstdlib>
#include <span>

#include "cli/answer.hpp"
#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/result_folder.hpp"
#include "core/build_info.hpp"

namespace rieszflow::cli {
namespace {

std::string shell_line = "rieszflow";

std::string version_text() {
  const BuildInfo& info = build_info();
  return fmt::format("rieszflow {} ({})\ncompiler  {}\nlibraries {}", info.version, info.commit,
                     info.compiler, info.libraries);
}

/// Arrays of megabytes go back to the system when they are freed. By glibc's default each one that is freed
/// raises the size from which that is so, up to 32 MB, and a run keeps holes of that size.
void give_large_arrays_back() {
#if defined(M_MMAP_THRESHOLD)
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") == nullptr) mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
}

int front_door(int argc, char** argv) {
  give_large_arrays_back();
  for (const char* argument : std::span(argv + 1, static_cast<std::size_t>(argc - 1))) {
    shell_line += " " + shell_quoted(argument);
  }
  CLI::App program("Particles and densities of one mean-field model, side by side.", "rieszflow");
  program.set_version_flag("--version", version_text);
  program.require_subcommand(0, 1);
  program.footer("`rieszflow COMMAND --help` says more. A first run:\n  rieszflow run experiments/demo.toml");
  const Command commands[] = {
      run_command(program),    study_command(program),     verify_command(program),
      learn_command(program),  attention_command(program), export_command(program),
      report_command(program), info_command(program),      defaults_command(program),
      list_command(program),   man_command(program),       completion_command(program)};
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? done : user_fault;
  }
  for (const Command& command : commands) {
    if (!command.options->parsed()) continue;
    if (command.spreads) join_ranks();
    return command.action();
  }
  fmt::print(stderr, "{}", program.help());
  return user_fault;
}

}  // namespace

std::string command_line() { return shell_line; }

}  // namespace rieszflow::cli

/// Threads that wait for one another at the end of a parallel loop spin for milliseconds by libgomp's
/// default. Beside other work on the same cores that spinning costs twenty times the work itself, so they
/// sleep after some twenty microseconds, unless the user has a wish of his own.
int main(int argc, char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr)
    rieszflow::cli::start_again_with(argv, {{"GOMP_SPINCOUNT", "2000"}});
  return rieszflow::cli::answer(argc, argv, [&] { return rieszflow::cli::front_door(argc, argv); });
}
