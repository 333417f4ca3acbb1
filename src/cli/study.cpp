#include "experiments/study.hpp"

#include <fmt/format.h>

#include <limits>
#include <tuple>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/ending.hpp"
#include "cli/exit_code.hpp"
#include "cli/experiment_options.hpp"
#include "cli/interruption.hpp"
#include "cli/result_folder.hpp"
#include "core/match.hpp"

namespace rieszflow::cli {
namespace {

int study(const ExperimentOptions& options) {
  Console console(options.json, options.quiet);
  const study::Assembly assembly = study::assemble({.config = options.config,
                                                    .overrides = options.overrides,
                                                    .seed = options.seed,
                                                    .threads = options.threads});
  if (const auto* sweep = std::get_if<study::Sweep>(&assembly.question)) {
    for (const std::string& sentence : sweep::warnings(sweep->study)) console.warn(sentence);
  }
  const std::filesystem::path folder =
      options.out.empty() ? std::filesystem::path("out") / assembly.name : options.out;
  if (options.dry_run) {
    console.say(study::plan(assembly.question) + "folder     " + folder.string() + " (nothing was written)");
    return done;
  }
  const bool resumes = prepare_folder(folder, options, assembly.resolved);
  const Interruption interruption(options.max_wall);
  const auto progress = [&](const auto& now) {
    console.progress(now.text, static_cast<double>(now.row), static_cast<double>(now.rows),
                     std::numeric_limits<double>::quiet_NaN());
  };
  const auto interrupted = [&] { return interruption.wished(); };
  const auto [status, message, summary] = std::visit(
      Match{[&](const large_deviations::Question& question) {
              const auto outcome = large_deviations::run(question, {.directory = folder,
                                                                    .resolved_config = assembly.resolved,
                                                                    .provenance = provenance(),
                                                                    .resume = resumes,
                                                                    .ranks = Ranks::all(),
                                                                    .progress = progress,
                                                                    .interrupted = interrupted});
              return std::tuple(outcome.status, outcome.message, outcome.summary);
            },
            [&](const study::Sweep& sweep) {
              const auto outcome = sweep::run(sweep.study, {.directory = folder,
                                                            .resolved_config = assembly.resolved,
                                                            .provenance = provenance(),
                                                            .resume = resumes,
                                                            .threads = options.threads,
                                                            .ranks = Ranks::all(),
                                                            .progress = progress,
                                                            .interrupted = interrupted});
              return std::tuple(outcome.status, outcome.message, outcome.summary);
            },
            [&](const stationary_states::Question& question) {
              const auto outcome = stationary_states::run(question, {.directory = folder,
                                                                     .resolved_config = assembly.resolved,
                                                                     .provenance = provenance(),
                                                                     .ranks = Ranks::all(),
                                                                     .progress = progress});
              return std::tuple(outcome.status, outcome.message, outcome.summary);
            }},
      assembly.question);
  return conclude(console, "study", folder, status, message, summary);
}

}  // namespace

Command study_command(CLI::App& program) {
  auto* command = program.add_subcommand("study", "a sweep that ends in a fitted rate, against its limit");
  auto options = std::make_shared<ExperimentOptions>();
  add_experiment_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  rieszflow study experiments/convergence/gaussian_mmd.toml\n"
      "  rieszflow study experiments/large_deviations/curie_weiss.toml\n"
      "  rieszflow study experiments/large_deviations/curie_weiss.toml --set study.counts=[10,20] --out "
      "out/quick\n"
      "  rieszflow study experiments/stationary/desai_zwanzig.toml\n"
      "  rieszflow study experiments/convergence/gaussian_mmd.toml --dry-run\n"
      "Rows are independent: --resume measures the missing ones, --threads many at a time.");
  return {command, [options] { return study(*options); }, true};
}

}  // namespace rieszflow::cli
