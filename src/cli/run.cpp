#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/ending.hpp"
#include "cli/exit_code.hpp"
#include "cli/experiment_options.hpp"
#include "cli/interruption.hpp"
#include "cli/result_folder.hpp"
#include "experiments/assemble.hpp"
#include "experiments/plan.hpp"
#include "experiments/side_by_side.hpp"

namespace rieszflow::cli {
namespace {

using Json = nlohmann::ordered_json;

Json plan_json(const Plan& plan) {
  return {{"event", "plan"},
          {"coordinates", plan.coordinates},
          {"particle_steps", plan.particle_steps},
          {"cells", plan.cells},
          {"output_times", plan.output_times},
          {"snapshots", plan.snapshots},
          {"memory_bytes", plan.memory_bytes},
          {"disk_bytes", plan.disk_bytes},
          {"particle_seconds", plan.particle_seconds},
          {"density_seconds_per_step", plan.density_seconds_per_step}};
}

int run(const ExperimentOptions& options) {
  Console console(options.json, options.quiet);
  const Assembly assembly = assemble(Request{.config = options.config,
                                             .overrides = options.overrides,
                                             .seed = options.seed,
                                             .threads = options.threads});
  const side_by_side::Question& question = assembly.question;
  if (options.seed && !question.particles) {
    console.complain("rieszflow: --seed does nothing here: the config has no [particles], nothing is random");
  }
  const std::filesystem::path folder =
      options.out.empty() ? std::filesystem::path("out") / question.name : options.out;

  const Plan needs = plan(question);
  console.event(plan_json(needs));
  if (options.dry_run)
    console.say(text(needs, question) + "folder     " + folder.string() + " (nothing was written)");
  if (const auto sentence = obstacle(needs, folder)) throw ResourceError(*sentence);
  for (const std::string& sentence : side_by_side::warnings(question)) console.warn(sentence);
  if (options.dry_run) return done;

  const bool resumes = prepare_folder(folder, options, assembly.resolved);
  if (options.resume && !resumes)
    console.say(fmt::format("{} holds no results: starting anew", folder.string()));

  const Interruption interruption(options.max_wall);
  const side_by_side::Outcome outcome =
      side_by_side::run(question, setting(console, interruption, folder, assembly.resolved, resumes));
  return conclude(console, "run", folder, outcome.status, outcome.message, outcome.summary);
}

}  // namespace

Command run_command(CLI::App& program) {
  auto* command = program.add_subcommand("run", "one model: particles, density, or both side by side");
  auto options = std::make_shared<ExperimentOptions>();
  add_experiment_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  rieszflow run experiments/demo.toml\n"
      "  rieszflow run experiments/demo.toml --out out/cold --set model.inverse_temperature=20\n"
      "  rieszflow run experiments/demo.toml --set 'model.interaction[0].strength=2' --seed 7 --force\n"
      "  rieszflow run experiments/demo.toml --dry-run\n"
      "  rieszflow run out/demo/config.toml --out out/demo --resume\n"
      "  mpirun -n 4 rieszflow run experiments/demo.toml --threads 1\n"
      "Exit codes: 0 done, 2 the input, 3 the mathematics (blow-up, no convergence), 4 the machine (disk, "
      "memory),\n"
      "130 interrupted: the step is finished, a checkpoint written, and --resume continues.");
  return {command, [options] { return run(*options); }, true};
}

}  // namespace rieszflow::cli
