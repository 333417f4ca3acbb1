#include "experiments/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/ending.hpp"
#include "cli/exit_code.hpp"
#include "cli/experiment_options.hpp"
#include "cli/interruption.hpp"
#include "cli/result_folder.hpp"
#include "config/schema.hpp"

namespace rieszflow::cli {
namespace {

struct VerifyOptions {
  ExperimentOptions common;
  bool quick = false;
  std::vector<std::string> only;
};

int verify(const VerifyOptions& options) {
  const ExperimentOptions& common = options.common;
  Console console(common.json, common.quiet);
  std::vector<std::string> overrides = common.overrides;
  if (options.quick) overrides.push_back("verify.quick=true");
  if (!options.only.empty()) overrides.push_back("verify.only=" + config::toml_text(options.only));
  const verify::Assembly assembly = verify::assemble(
      {.config = common.config, .overrides = overrides, .seed = common.seed, .threads = common.threads});
  const std::filesystem::path folder =
      common.out.empty() ? std::filesystem::path("out") / "verify" : common.out;
  if (common.dry_run) {
    for (const verify::Chapter& chapter : verify::catalogue()) {
      for (const verify::Claim& claim : chapter.claims) {
        const auto& only = assembly.question.only;
        if (only.empty() || std::find(only.begin(), only.end(), claim.name) != only.end())
          console.say(fmt::format("{:<24} {}", claim.name, claim.claim));
      }
    }
    console.say("folder " + folder.string() + " (nothing was written)");
    return done;
  }
  const bool resumes = prepare_folder(folder, common, assembly.resolved);
  const Interruption interruption(common.max_wall);
  const verify::Outcome outcome = verify::run(
      assembly.question,
      {.directory = folder,
       .resolved_config = assembly.resolved,
       .provenance = provenance(),
       .resume = resumes,
       .ranks = Ranks::all(),
       .progress =
           [&](const study::Progress& now) {
             console.progress(now.text, static_cast<double>(now.row), static_cast<double>(now.rows),
                              std::numeric_limits<double>::quiet_NaN());
           },
       .interrupted = [&] { return interruption.wished(); }},
      [&](const Verdict& verdict) {
        console.event({{"event", "verdict"}, {"name", verdict.name}, {"passed", verdict.passed}});
        console.say(fmt::format("{}  {:<24} {:.6g} ± {:.2g}, expected {:.6g} ± {:.2g}",
                                verdict.passed ? "passed" : "FAILED", verdict.name, verdict.measured.value,
                                verdict.measured.standard_error, verdict.expected, verdict.tolerance));
      });
  const int code = conclude(console, "verify", folder, outcome.status, outcome.message, outcome.summary,
                            outcome.failed == 0 ? done : verdict_failed);
  if (outcome.status == RunStatus::Completed)
    console.say(fmt::format("{} {} passed, {} failed", outcome.passed,
                            outcome.passed == 1 ? "claim" : "claims", outcome.failed));
  return code;
}

}  // namespace

Command verify_command(CLI::App& program) {
  auto* command =
      program.add_subcommand("verify", "the catalogue of theoretical limits, each ending in a verdict");
  auto options = std::make_shared<VerifyOptions>();
  add_experiment_options(*command, options->common);
  command->get_option("config")->required(false)->description("which claims (TOML); without it: all of them");
  command->add_flag("--quick", options->quick, "smaller N and fewer samples: the same claims in minutes");
  command->add_option("--only", options->only, "only this claim; repeatable; `rieszflow list` names them")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->footer(
      "Examples:\n"
      "  rieszflow verify --quick\n"
      "  rieszflow verify --only interval_density --only tail_barrier --out out/two\n"
      "Exit codes: 0 every claim passed, 1 some claim failed, 2 the input, 4 the machine, 130 interrupted "
      "(--resume "
      "goes on).");
  return {command, [options] { return verify(*options); }, true};
}

}  // namespace rieszflow::cli
