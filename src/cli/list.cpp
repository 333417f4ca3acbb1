#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "experiments/catalogue.hpp"

namespace rieszflow::cli {

Command list_command(CLI::App& program) {
  auto* command = program.add_subcommand("list", "every name that a config can hold, with one line each");
  return {command, []() -> int {
            fmt::print("{}", config::listing(catalogue::run()));
            return done;
          }};
}

}  // namespace rieszflow::cli
