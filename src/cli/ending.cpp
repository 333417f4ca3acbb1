#include "cli/ending.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/result_folder.hpp"
#include "core/build_info.hpp"
#include "core/ranks.hpp"

namespace rieszflow::cli {
namespace {

int exit_code(RunStatus status) {
  switch (status) {
    case RunStatus::Completed:
    case RunStatus::StoppedByRule:
      return done;
    case RunStatus::Interrupted:
      return interrupted;
    case RunStatus::NotFinite:
    case RunStatus::LostPositivity:
    case RunStatus::NotConverged:
    case RunStatus::Concentrated:
      return mathematics;
  }
  return mathematics;
}

}  // namespace

std::map<std::string, std::string> provenance() {
  const BuildInfo& info = build_info();
  // Words of a command line need not be UTF-8; what is kept with the results is.
  using Json = nlohmann::ordered_json;
  const std::string line =
      Json::parse(Json(command_line()).dump(-1, ' ', false, Json::error_handler_t::replace))
          .get<std::string>();
  return {{"version", info.version},
          {"commit", info.commit},
          {"compiler", info.compiler},
          {"libraries", info.libraries},
          {"command_line", line}};
}

side_by_side::Setting setting(Console& console, const Interruption& interruption,
                              const std::filesystem::path& folder, const std::string& resolved_config,
                              bool resumes) {
  return {.directory = folder,
          .resolved_config = resolved_config,
          .provenance = provenance(),
          .resume = resumes,
          .ranks = Ranks::all(),
          .progress =
              [&console](const side_by_side::Progress& now) {
                console.progress(now.part, now.time, now.end, now.seconds_left);
              },
          .interrupted = [&interruption] { return interruption.wished(); }};
}

int conclude(Console& console, const std::string& command, const std::filesystem::path& folder,
             RunStatus status, const std::string& message, const std::string& summary,
             int code_when_completed) {
  using Json = nlohmann::ordered_json;
  const int code = status == RunStatus::Completed ? code_when_completed : exit_code(status);
  if (!Ranks::all().first()) return code;
  Json result{
      {"event", "result"}, {"status", name(status)}, {"exit_code", code}, {"directory", folder.string()}};
  if (!message.empty()) result["message"] = message;
  const Json parsed = Json::parse(summary, nullptr, false);
  result["summary"] = parsed.is_discarded() ? Json() : parsed;
  console.event(result);
  if (code == done || code == verdict_failed) {
    console.say(fmt::format("{}: {}", name(status), (folder / "report.html").string()));
  } else {
    console.complain(fmt::format("rieszflow: {}{}{}", name(status), message.empty() ? "" : ": ", message));
  }
  if (code == interrupted) {
    console.complain(fmt::format("continue with: rieszflow {} {} --out {} --resume", command,
                                 shell_quoted((folder / "config.toml").string()),
                                 shell_quoted(folder.string())));
  }
  if (code == mathematics) console.complain("what was computed until then is in " + folder.string());
  return code;
}

}  // namespace rieszflow::cli
