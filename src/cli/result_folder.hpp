#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "cli/experiment_options.hpp"

namespace rieszflow::cli {

/// What this program wrote into a folder earlier: files that --force may remove. Nothing else is ever
/// touched.
std::vector<std::filesystem::path> results_in(const std::filesystem::path& folder);

/// Makes `folder` ready for a run with this resolved config: creates it with its parents, refuses a folder
/// that holds results (UsageError) unless the options say --force or --resume. Returns whether there is
/// something to resume.
/// --resume wants the config of the results. Throws io::FileError when the folder cannot be written.
bool prepare_folder(const std::filesystem::path& folder, const ExperimentOptions& options,
                    const std::string& resolved_config);

/// `text` so that a shell reads it as one word.
std::string shell_quoted(const std::string& text);

}  // namespace rieszflow::cli
