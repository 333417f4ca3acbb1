#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "experiments/attention_schema.hpp"
#include "experiments/catalogue.hpp"
#include "experiments/learning_config.hpp"
#include "experiments/verify.hpp"

namespace rieszflow::cli {

Command list_command(CLI::App& program) {
  auto* command = program.add_subcommand("list", "every name that a config can hold, with one line each");
  return {command, []() -> int {
            config::Schema all = catalogue::run();
            for (const config::Section& section : catalogue::study()) {
              if (section.path.starts_with("study")) all.push_back(section);  // its model is that of a run
            }
            const config::Schema& learn = catalogue::learn();
            all.insert(all.end(), learn.begin(), learn.end());
            fmt::print("{}", config::listing(all));
            fmt::print("\nmethods of learn\n");
            for (const learning::Method method : learning::methods())
              fmt::print("  {:<24} {}\n", learning::name(method), learning::meaning(method));
            fmt::print("\nattention of a variant\n");
            for (const auto& [name, meaning] : catalogue::attention_kinds())
              fmt::print("  {:<24} {}\n", name, meaning);
            for (const verify::Chapter& chapter : verify::catalogue()) {
              fmt::print("\nclaims of verify: {}\n", chapter.title);
              for (const verify::Claim& claim : chapter.claims)
                fmt::print("  {:<24} {}\n", claim.name, claim.claim);
            }
            return done;
          }};
}

}  // namespace rieszflow::cli
