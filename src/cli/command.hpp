#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

namespace rieszflow::cli {

/// One command of the program: how it reads its options and what it does. Returns an ExitCode.
struct Command {
  CLI::App* options = nullptr;
  std::function<int()> action;
  bool spreads = false;  ///< over the ranks of mpirun
};

// Each declares its options below `program`; defined in the file of its name.
Command run_command(CLI::App& program);
Command learn_command(CLI::App& program);
Command attention_command(CLI::App& program);
Command export_command(CLI::App& program);
Command report_command(CLI::App& program);
Command info_command(CLI::App& program);
Command defaults_command(CLI::App& program);
Command list_command(CLI::App& program);
Command man_command(CLI::App& program);
Command completion_command(CLI::App& program);
Command study_command(CLI::App& program);
Command verify_command(CLI::App& program);

/// "rieszflow run a.toml --out 'b c'": quoted for a shell, kept with the results.
std::string command_line();

}  // namespace rieszflow::cli
