#include "experiments/study.hpp"

#include <fmt/format.h>

#include <limits>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/ending.hpp"
#include "cli/exit_code.hpp"
#include "cli/experiment_options.hpp"
#include "cli/interruption.hpp"
#include "cli/result_folder.hpp"

namespace rieszflow::cli {
namespace {

int study(const ExperimentOptions& options) {
  Console console(options.json, options.quiet);
  const study::Assembly assembly = study::assemble({.config = options.config,
                                                    .overrides = options.overrides,
                                                    .seed = options.seed,
                                                    .threads = options.threads});
  const std::filesystem::path folder =
      options.out.empty() ? std::filesystem::path("out") / assembly.name : options.out;
  if (options.dry_run) {
    console.say(study::plan(assembly.question) + "folder     " + folder.string() + " (nothing was written)");
    return done;
  }
  const bool resumes = prepare_folder(folder, options, assembly.resolved);
  const Interruption interruption(options.max_wall);
  const auto outcome = std::visit(
      [&](const large_deviations::Question& question) {
        return large_deviations::run(question, {.directory = folder,
                                                .resolved_config = assembly.resolved,
                                                .resume = resumes,
                                                .progress =
                                                    [&](const large_deviations::Progress& now) {
                                                      console.progress(
                                                          now.text, static_cast<double>(now.row),
                                                          static_cast<double>(now.rows),
                                                          std::numeric_limits<double>::quiet_NaN());
                                                    },
                                                .interrupted = [&] { return interruption.wished(); }});
      },
      assembly.question);
  return conclude(console, "study", folder, outcome.status, outcome.message, outcome.summary);
}

}  // namespace

Command study_command(CLI::App& program) {
  auto* command = program.add_subcommand("study", "a sweep that ends in a fitted rate, against its limit");
  auto options = std::make_shared<ExperimentOptions>();
  add_experiment_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  rieszflow study experiments/large_deviations/curie_weiss.toml\n"
      "  rieszflow study experiments/large_deviations/curie_weiss.toml --set study.counts=[10,20] --out "
      "out/quick");
  return {command, [options] { return study(*options); }};
}

}  // namespace rieszflow::cli
