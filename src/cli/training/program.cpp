#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/answer.hpp"
#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/ending.hpp"
#include "cli/exit_code.hpp"
#include "cli/experiment_options.hpp"
#include "cli/interruption.hpp"
#include "cli/result_folder.hpp"
#include "experiments/attention/training/attention_study.hpp"

// The part of `rieszflow attention` that trains: a program of its own, because loading LibTorch takes a
// second.
namespace rieszflow::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string shell_line = "rieszflow attention";

int study(const ExperimentOptions& options) {
  Console console(options.json, options.quiet);
  const attention::Assembly assembly = attention::assemble(Request{.config = options.config,
                                                                   .overrides = options.overrides,
                                                                   .seed = options.seed,
                                                                   .threads = options.threads});
  const attention::Question& question = assembly.question;
  const std::filesystem::path folder =
      options.out.empty() ? std::filesystem::path("out") / question.name : options.out;
  const std::size_t rows = attention::row_count(question);
  console.event({{"event", "plan"}, {"rows", rows}, {"data_sets", question.sources.size()}});
  if (options.dry_run) {
    for (const std::string& line : attention::data_summary(question)) console.say(line);
    console.say(fmt::format("{} rows (encoders to train), {} data sets\nfolder {} (nothing was written)",
                            rows, question.sources.size(), folder.string()));
    return done;
  }
  attention::prepare_training(1);  // rows run side by side, each on one thread
  if (const double rate = attention::matrix_product_rate(); rate < attention::slow_matrix_product)
    console.complain(
        fmt::format("matrix products run at {:.1f} Gflop/s: the reference BLAS is at work and training will "
                    "be some 30 times slower than with libopenblas0-pthread",
                    rate));
  const bool resumes = prepare_folder(folder, options, assembly.resolved);
  const Interruption interruption(options.max_wall);
  const side_by_side::Outcome outcome =
      attention::run(question, setting(console, interruption, folder, assembly.resolved, resumes));
  const Json summary = outcome.summary.empty() ? Json::object() : Json::parse(outcome.summary);
  for (const char* key : {"claims", "findings"})
    for (const Json& sentence : summary.value(key, Json::array())) console.say(sentence.get<std::string>());
  return conclude(console, "attention", folder, outcome.status, outcome.message, outcome.summary);
}

int front_door(int argc, char** argv) {
  for (const char* argument : std::span(argv + 1, static_cast<std::size_t>(argc - 1)))
    shell_line += " " + shell_quoted(argument);
  CLI::App program("Transformer attention with fixed and learned random features.", "rieszflow-attention");
  ExperimentOptions options;
  add_experiment_options(program, options);
  program.get_option("config")->required(false)->description(
      "the experiment (TOML); without it: the defaults");
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? done : user_fault;
  }
  join_ranks();
  return study(options);
}

}  // namespace

std::string command_line() { return shell_line; }

}  // namespace rieszflow::cli

/// Threads of the matrix library would only wait for one another beside rows that run side by side.
int main(int argc, char** argv) {
  rieszflow::cli::start_again_with(argv, {{"OPENBLAS_NUM_THREADS", "1"}, {"OMP_WAIT_POLICY", "passive"}});
  return rieszflow::cli::answer(argc, argv, [&] { return rieszflow::cli::front_door(argc, argv); });
}
