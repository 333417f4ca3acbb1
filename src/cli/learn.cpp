#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/ending.hpp"
#include "cli/exit_code.hpp"
#include "cli/experiment_options.hpp"
#include "cli/interruption.hpp"
#include "cli/result_folder.hpp"
#include "experiments/learning_config.hpp"

namespace rieszflow::cli {
namespace {

using Json = nlohmann::ordered_json;

int learn(const ExperimentOptions& options) {
  Console console(options.json, options.quiet);
  const learning::Assembly assembly = learning::assemble(Request{.config = options.config,
                                                                 .overrides = options.overrides,
                                                                 .seed = options.seed,
                                                                 .threads = options.threads});
  const learning::Question& question = assembly.question;
  const std::filesystem::path folder =
      options.out.empty() ? std::filesystem::path("out") / question.name : options.out;
  const std::size_t parts = learning::job_count(question);
  console.event({{"event", "plan"},
                 {"splits", parts},
                 {"methods", question.methods.size()},
                 {"classifiers", parts * question.methods.size()}});
  for (const std::string& sentence : question.skipped) console.say(sentence);
  if (options.dry_run) {
    for (const learning::Dataset& table : question.tables)
      console.say(fmt::format("{}: {} rows, {} inputs, {} classes", table.name, table.count(),
                              table.dimension, table.classes));
    console.say(fmt::format("{} splits, {} methods, {} classifiers\nfolder {} (nothing was written)", parts,
                            question.methods.size(), parts * question.methods.size(), folder.string()));
    return done;
  }
  const bool resumes = prepare_folder(folder, options, assembly.resolved);
  const Interruption interruption(options.max_wall);
  const side_by_side::Outcome outcome =
      learning::run(question, setting(console, interruption, folder, assembly.resolved, resumes));
  if (outcome.status == RunStatus::Completed && !outcome.summary.empty()) {
    for (const Json& sentence : Json::parse(outcome.summary).at("findings"))
      console.say(sentence.get<std::string>());
  }
  return conclude(console, "learn", folder, outcome.status, outcome.message, outcome.summary);
}

}  // namespace

Command learn_command(CLI::App& program) {
  auto* command = program.add_subcommand("learn", "learned random features against their baselines");
  auto options = std::make_shared<ExperimentOptions>();
  add_experiment_options(*command, *options);
  command->get_option("config")->required(false)->description(
      "the experiment (TOML); without it: the defaults");
  command->footer(
      "Examples:\n"
      "  rieszflow learn\n"
      "  rieszflow learn --set data.file=mine.csv --set data.label=class --out out/mine\n"
      "  rieszflow learn experiments/kernel_learning/synthetic.toml\n"
      "  rieszflow learn experiments/kernel_learning/uci.toml --set 'data.files=[\"a.csv\", \"b.csv\"]'\n"
      "Predictions of the first run are in predictions.csv, its learned features in features.csv and "
      "run.h5.");
  return {command, [options] { return learn(*options); }, true};
}

}  // namespace rieszflow::cli
