#include "cli/result_folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "cli/exit_code.hpp"
#include "core/ranks.hpp"
#include "io/files.hpp"
#include "io/run_file.hpp"

namespace rieszflow::cli {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> result_files = {
    "run.h5",      "config.toml",   "summary.json",           "predictions.csv", "features.csv",
    "report.html", "checkpoint.h5", "checkpoint.previous.h5", "rows.json"};

struct Subfolder {
  std::string name;
  std::vector<std::string> endings;
};
const std::vector<Subfolder> result_subfolders = {
    {"rows", {".json"}}, {"figures", {".svg", ".png"}}, {"vtk", {".vti", ".vtp", ".pvd"}}};

// The first line in which two configs differ, for a message.
std::string first_difference(const std::string& earlier, const std::string& now) {
  std::istringstream earlier_lines(earlier), now_lines(now);
  std::string a, b, table;
  while (true) {
    const bool has_a = static_cast<bool>(std::getline(earlier_lines, a));
    const bool has_b = static_cast<bool>(std::getline(now_lines, b));
    if (!has_a && !has_b) return "";
    if (!has_a) a = "nothing";
    if (!has_b) b = "nothing";
    if (a != b) return fmt::format("{}{}{} there, {} here", table, table.empty() ? "" : " ", a, b);
    if (a.starts_with('[')) table = a;
  }
}

std::string option_text(const fs::path& folder) {
  return fmt::format(
      "--resume continues them, --force replaces them, --out DIR writes elsewhere; {} was not touched",
      folder.string());
}

}  // namespace

std::string shell_quoted(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char character) {
    return std::isalnum(character) || character >= 0x80 || std::strchr("_-./=:,+@%", character) != nullptr;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char character : text)
    quoted += character == '\'' ? std::string("'\\''") : std::string(1, character);
  return quoted + "'";
}

std::vector<fs::path> results_in(const fs::path& folder) {
  std::vector<fs::path> results;
  std::error_code error;
  for (const std::string& name : result_files) {
    if (fs::is_regular_file(folder / name, error)) results.push_back(folder / name);
  }
  for (const Subfolder& subfolder : result_subfolders) {
    for (const auto& entry : fs::directory_iterator(folder / subfolder.name, error)) {
      const std::string ending = entry.path().extension().string();
      const bool ours =
          std::find(subfolder.endings.begin(), subfolder.endings.end(), ending) != subfolder.endings.end();
      if (ours && entry.is_regular_file(error)) results.push_back(entry.path());
    }
  }
  return results;
}

namespace {

/// Of one process: whether the folder's results are to be continued.
bool prepare(const fs::path& folder, const ExperimentOptions& options, const std::string& resolved_config) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) {
    throw UsageError(fmt::format("{} is a file: --out must be a folder", folder.string()));
  }
  const std::vector<fs::path> results = results_in(folder);
  if (!results.empty() && !options.resume && !options.force) {
    throw UsageError(fmt::format("{} already holds results ({}): {}", folder.string(),
                                 results.front().lexically_relative(folder).string(), option_text(folder)));
  }
  const bool resumes = !results.empty() && options.resume;
  if (resumes) {
    const std::string earlier =
        fs::exists(folder / "config.toml") ? io::read_text(folder / "config.toml") : "";
    if (earlier != resolved_config) {
      throw UsageError(
          fmt::format("{} holds the results of another config ({}): --resume needs the same one, for "
                      "instance {}; {} was not touched",
                      folder.string(), first_difference(earlier, resolved_config),
                      (folder / "config.toml").string(), folder.string()));
    }
  }
  fs::create_directories(folder, error);
  if (error) {
    throw io::FileError(
        fmt::format("{}: the folder cannot be created: {}", folder.string(), error.message()));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw io::FileError(
        fmt::format("{}: the folder cannot be written: {}", folder.string(), std::strerror(errno)));
  }
  if (options.force) {
    io::RunFile::expect_no_writer(folder / "run.h5");
    for (const fs::path& result : results) {
      fs::remove(result, error);
      if (error)
        throw io::FileError(fmt::format("{}: cannot be removed: {}", result.string(), error.message()));
    }
  }
  return resumes;
}

}  // namespace

bool prepare_folder(const fs::path& folder, const ExperimentOptions& options,
                    const std::string& resolved_config) {
  enum : std::int64_t { fresh, resumes, refused };
  const Ranks ranks = Ranks::all();
  std::int64_t answer = refused;
  if (ranks.first()) {
    try {
      answer = prepare(folder, options, resolved_config) ? resumes : fresh;
    } catch (const UsageError&) {
      ranks.share(answer);
      throw;
    }
  }
  ranks.share(answer);
  if (answer == refused) throw RefusedByFirstRank();
  return answer == resumes;
}

}  // namespace rieszflow::cli
