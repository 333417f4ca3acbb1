#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "cli/experiment_options.hpp"
#include "cli/interruption.hpp"
#include "cli/result_folder.hpp"
#include "core/build_info.hpp"
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
  const BuildInfo& info = build_info();
  const side_by_side::Outcome outcome =
      learning::run(question, {.directory = folder,
                               .resolved_config = assembly.resolved,
                               .provenance = {{"version", info.version},
                                              {"commit", info.commit},
                                              {"compiler", info.compiler},
                                              {"libraries", info.libraries},
                                              {"command_line", command_line()}},
                               .resume = resumes,
                               .progress =
                                   [&](const side_by_side::Progress& now) {
                                     console.progress(now.part, now.time, now.end, now.seconds_left);
                                   },
                               .interrupted = [&] { return interruption.wished(); }});
  const int code = outcome.status == RunStatus::Completed     ? done
                   : outcome.status == RunStatus::Interrupted ? interrupted
                                                              : mathematics;
  Json result{{"event", "result"},
              {"status", name(outcome.status)},
              {"exit_code", code},
              {"directory", folder.string()}};
  if (!outcome.message.empty()) result["message"] = outcome.message;
  const Json summary = Json::parse(outcome.summary, nullptr, false);
  result["summary"] = summary.is_discarded() ? Json() : summary;
  console.event(result);
  if (code != done) {
    console.complain(fmt::format("rieszflow: {}: {}", name(outcome.status), outcome.message));
    if (code == interrupted)
      console.complain(fmt::format("continue with: rieszflow learn {} --out {} --resume",
                                   shell_quoted((folder / "config.toml").string()),
                                   shell_quoted(folder.string())));
    return code;
  }
  for (const Json& sentence : summary.at("findings")) console.say(sentence.get<std::string>());
  console.say(fmt::format("{}: {}", name(outcome.status), (folder / "report.html").string()));
  return code;
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
  return {command, [options] { return learn(*options); }};
}

}  // namespace rieszflow::cli
