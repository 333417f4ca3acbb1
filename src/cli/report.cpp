#include "experiments/report.hpp"

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"

namespace rieszflow::cli {

Command report_command(CLI::App& program) {
  auto folder = std::make_shared<std::filesystem::path>();
  auto* command = program.add_subcommand("report", "(re)build the HTML report of a result folder");
  command->add_option("folder", *folder, "result folder")
      ->required()
      ->check(CLI::ExistingDirectory.description(""))
      ->type_name("DIR");
  command->footer("Example:\n  rieszflow report out/demo");
  return {command, [folder]() -> int {
            write_report(*folder);
            fmt::print("{}\n", (*folder / "report.html").string());
            return done;
          }};
}

}  // namespace rieszflow::cli
