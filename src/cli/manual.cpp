#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "core/build_info.hpp"
#include "experiments/catalogue.hpp"
#include "experiments/verify_config.hpp"

/// The manual page and the shell completion, written from the options that the program reads.
namespace rieszflow::cli {
namespace {

/// Text as roff sets it: no backslash escapes, no hyphenated options, no line that roff takes for a request.
std::string roff(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    const bool line_begins = safe.empty() || safe.back() == '\n';
    if (line_begins && (letter == '.' || letter == '\'')) safe += "\\&";
    if (letter == '\\')
      safe += "\\e";
    else if (letter == '-')
      safe += "\\-";
    else
      safe += letter;
  }
  return safe;
}

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<const CLI::Option*> options_of(const CLI::App& command, bool positional) {
  return command.get_options(
      [positional](const CLI::Option* option) { return option->get_positional() == positional; });
}

std::vector<std::string> words_of(const CLI::Option& option) {
  std::vector<std::string> words;
  for (const std::string& name : option.get_snames()) words.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) words.push_back("--" + name);
  return words;
}

bool takes_value(const CLI::Option& option) { return option.get_expected_max() > 0; }

std::string entry(const CLI::Option& option) {
  std::string head =
      option.get_positional()
          ? option.get_type_name()
          : fmt::format("\\fB{}\\fR", roff(fmt::format("{}", fmt::join(words_of(option), ", "))));
  if (!option.get_positional() && takes_value(option))
    head += fmt::format(" \\fI{}\\fR", option.get_type_name());
  return fmt::format(".TP\n{}\n{}\n", head, roff(option.get_description()));
}

std::string manual_page(const CLI::App& program) {
  std::string page = fmt::format(".TH RIESZFLOW 1 \"\" \"rieszflow {}\"\n.SH NAME\nrieszflow \\- {}\n",
                                 build_info().version, roff(program.get_description()));
  page += ".SH SYNOPSIS\n.B rieszflow\n.I COMMAND\n[\\fIOPTIONS\\fR]\n";
  page +=
      ".SH DESCRIPTION\nN interacting Langevin particles and the McKean\\-Vlasov density of the same model, "
      "side by "
      "side; convergence studies, large deviations, verdicts on theoretical limits, and learned kernels. "
      "Every command "
      "writes one result folder: run.h5 (HDF5), summary.json, config.toml (every default filled in) and "
      "report.html.\n"
      ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(program)) {
    page += fmt::format(".SS rieszflow {}\n{}\n", command->get_name(), roff(command->get_description()));
    for (const bool positional : {true, false}) {
      for (const CLI::Option* option : options_of(*command, positional)) page += entry(*option);
    }
    if (const std::string footer = command->get_footer(); !footer.empty())
      page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(footer));
  }
  page +=
      ".SH EXIT STATUS\n0 done; 1 a verdict failed; 2 the input; 3 the mathematics (blow\\-up, no "
      "convergence); 4 the "
      "machine (disk, memory); 70 a fault of the program; 130 interrupted: a checkpoint is written and "
      "\\fB\\-\\-resume\\fR goes on.\n";
  return page;
}

/// Names that complete a value: of the positional of `defaults`, of `--only` of `verify`.
std::vector<std::string> values_of(const CLI::App& command, const CLI::Option& option) {
  std::vector<std::string> values;
  if (command.get_name() == "defaults" && option.get_name() == "command") {
    for (const catalogue::Command& known : catalogue::commands()) values.push_back(known.name);
  }
  if (command.get_name() == "verify" && option.check_lname("only")) values = catalogue::claim_names();
  return values;
}

std::string bash_completion(const CLI::App& program) {
  std::vector<std::string> names;
  std::string cases, values;
  for (const CLI::App* command : commands_of(program)) {
    names.push_back(command->get_name());
    std::vector<std::string> words;
    for (const bool positional : {true, false}) {
      for (const CLI::Option* option : options_of(*command, positional)) {
        const std::vector<std::string> known = values_of(*command, *option);
        if (positional) {
          words.insert(words.end(), known.begin(), known.end());
        } else {
          const std::vector<std::string> own = words_of(*option);
          words.insert(words.end(), own.begin(), own.end());
          if (!known.empty())
            values += fmt::format("    {},{}) words='{}' ;;\n", command->get_name(), own.back(),
                                  fmt::join(known, " "));
        }
      }
    }
    cases += fmt::format("      {}) words='{}' ;;\n", command->get_name(), fmt::join(words, " "));
  }
  return fmt::format(R"(# bash completion of rieszflow {}; for one shell: source <(rieszflow completion)
_rieszflow() {{
  local words='' word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$word"))
    return
  fi
  case "$command,$before" in
{}    *) case "$command" in
{}    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -o bashdefault -F _rieszflow rieszflow
)",
                     build_info().version, fmt::join(names, " "), values, cases);
}

}  // namespace

Command man_command(CLI::App& program) {
  auto* command = program.add_subcommand("man", "this program's manual page (roff, for man(1))");
  command->footer("Example:\n  rieszflow man | man -l -");
  return {command, [&program]() -> int {
            fmt::print("{}", manual_page(program));
            return done;
          }};
}

Command completion_command(CLI::App& program) {
  auto* command = program.add_subcommand("completion", "completion of commands, options and names for bash");
  command->footer("Example:\n  source <(rieszflow completion)");
  return {command, [&program]() -> int {
            fmt::print("{}", bash_completion(program));
            return done;
          }};
}

}  // namespace rieszflow::cli
