#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "cli/interruption.hpp"
#include "experiments/side_by_side.hpp"

namespace rieszflow::cli {

/// Version, commit, compiler, libraries and command line: what a run file says of the program that made it.
std::map<std::string, std::string> provenance();

/// How a command runs its experiment in `folder`: told to the console, stopped by the interruption, spread
/// over all ranks. Both must outlive the run.
side_by_side::Setting setting(Console& console, const Interruption& interruption,
                              const std::filesystem::path& folder, const std::string& resolved_config,
                              bool resumes);

/// Says how a command with a result folder ended, as JSON and for people: where its results are, and how to
/// go on after an interruption. Returns the exit code: `code_when_completed` where nothing stopped it.
int conclude(Console& console, const std::string& command, const std::filesystem::path& folder,
             RunStatus status, const std::string& message, const std::string& summary,
             int code_when_completed = done);

}  // namespace rieszflow::cli
