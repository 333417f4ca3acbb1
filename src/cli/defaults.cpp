#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "experiments/catalogue.hpp"
#include "experiments/verify_config.hpp"

namespace rieszflow::cli {

Command defaults_command(CLI::App& program) {
  auto name = std::make_shared<std::string>();
  auto* command =
      program.add_subcommand("defaults", "a complete, commented config for a command, ready to run");
  std::vector<std::string> names;
  for (const catalogue::Command& known : catalogue::commands()) names.push_back(known.name);
  command->add_option("command", *name, "the command that will read the config")
      ->required()
      ->check(CLI::IsMember(names))
      ->type_name("COMMAND");
  auto type = std::make_shared<std::string>();
  command
      ->add_option("name", *type,
                   "type of the study (default: the first), or the claim that verify tries (default: all)")
      ->type_name("NAME");
  command->footer(
      "Example:\n  rieszflow defaults run > mine.toml && rieszflow run mine.toml\n"
      "  rieszflow defaults study particle_number > mine.toml\n"
      "  rieszflow defaults verify interval_density > mine.toml");
  return {
      command, [name, type]() -> int {
        if (!type->empty()) {
          const std::vector<std::string> known = *name == "study"    ? catalogue::study_types()
                                                 : *name == "verify" ? catalogue::claim_names()
                                                                     : std::vector<std::string>{};
          if (known.empty())
            throw UsageError("only the commands \"study\" and \"verify\" have configs with a name");
          if (std::find(known.begin(), known.end(), *type) == known.end())
            throw UsageError(
                fmt::format("{} has no \"{}\", must be one of: {}", *name, *type, fmt::join(known, ", ")));
        }
        if (*name == "verify") {
          fmt::print("{}", catalogue::verify_sample(*type));
          return done;
        }
        if (*name == "study") {
          fmt::print("{}", catalogue::study_sample(type->empty() ? catalogue::study_types().front() : *type));
          return done;
        }
        for (const catalogue::Command& known : catalogue::commands()) {
          if (known.name == *name) fmt::print("{}", config::sample_config(known.schema));
        }
        return done;
      }};
}

}  // namespace rieszflow::cli
