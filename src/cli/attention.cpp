#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "experiments/attention/predict.hpp"
#include "io/files.hpp"

namespace rieszflow::cli {
namespace {

namespace fs = std::filesystem;

struct AttentionOptions {
  fs::path sentences, model, table;
  int threads = 1;
};

int label_sentences(const AttentionOptions& options) {
  if (options.model.empty()) throw UsageError("--predict needs the model: --model FILE");
  const text::TextModel model = text::read_model(options.model);
  const text::TextReading reading = text::read_sentences(options.sentences, model.weights.shape.pairs);
  if (!reading.problems.empty()) {
    std::string list;
    for (const std::string& problem : reading.problems) list += "\n" + problem;
    throw UsageError("the sentences cannot be read:" + list);
  }
  const text::Predictions predictions = text::predict(model, reading.data, options.threads);
  if (predictions.status != attention::AttentionStatus::Fine) {
    fmt::print(stderr, "rieszflow: {}: its weights give results that are no finite numbers\n",
               options.model.string());
    return mathematics;
  }
  const std::string table = text::prediction_table(model, reading.data, predictions);
  if (options.table.empty()) {
    if (std::fwrite(table.data(), 1, table.size(), stdout) != table.size() || std::fflush(stdout) != 0)
      throw io::FileError(std::string("standard output: cannot write: ") + std::strerror(errno));
  } else {
    io::write_text(options.table, table);
  }
  return done;
}

fs::path training_program() {
  return fs::read_symlink("/proc/self/exe").parent_path() / "rieszflow-attention";
}

/// Becomes the program that trains, which lies beside this one.
int start_training_program(const std::vector<std::string>& arguments) {
  const fs::path program = training_program();
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  if (errno != ENOENT)
    throw ResourceError(fmt::format("{}: cannot start: {}", program.string(), std::strerror(errno)));
  throw UsageError(fmt::format(
      "the program that trains, {}, is not there: it needs LibTorch when rieszflow is built "
      "(apt-get install libtorch-dev, then configure and build again). `rieszflow attention --predict` works "
      "without it.",
      program.string()));
}

}  // namespace

Command attention_command(CLI::App& program) {
  auto* command = program.add_subcommand(
      "attention", "Transformers with learned kernels: a study on text, or labels for sentences");
  auto options = std::make_shared<AttentionOptions>();
  auto* predict =
      command
          ->add_option("--predict", options->sentences,
                       "label the sentences of FILE (one a line, or a table with a header) by a model")
          ->type_name("FILE");
  auto* model = command->add_option("--model", options->model, "model file of a study")->type_name("FILE");
  auto* table =
      command->add_option("--table", options->table, "where the labels go (default: standard output)")
          ->type_name("FILE");
  model->needs(predict);
  table->needs(predict);
  auto* threads = command->add_option("--threads", options->threads, "threads; never changes a result")
                      ->check(CLI::Range(1, 4096).description(""));
  // Everything else belongs to the program that trains; help is that of both.
  command->allow_extras();
  command->set_help_flag();
  command->footer(
      "Without --predict: the study of CONFIG.toml, by the program rieszflow-attention beside this one "
      "(needs LibTorch).\n"
      "Examples:\n"
      "  rieszflow attention experiments/attention/study.toml --set study.size=quick\n"
      "  rieszflow attention --predict sentences.txt --model out/study/rt.model");
  return {command, [command, options, predict, threads]() -> int {
            std::vector<std::string> arguments = command->remaining();
            if (predict->count() > 0) {
              if (!arguments.empty())
                throw UsageError("unknown with --predict: " + arguments.front() +
                                 "; it takes --model, --table and --threads");
              return label_sentences(*options);
            }
            const bool asks_for_help =
                std::any_of(arguments.begin(), arguments.end(),
                            [](const std::string& word) { return word == "--help" || word == "-h"; });
            if (asks_for_help) {
              fmt::print("{}\n", command->help("rieszflow"));
              std::fflush(stdout);
              if (!fs::exists(training_program())) return done;
            }
            if (threads->count() > 0)
              arguments.insert(arguments.end(), {"--threads", std::to_string(options->threads)});
            return start_training_program(arguments);
          }};
}

}  // namespace rieszflow::cli
