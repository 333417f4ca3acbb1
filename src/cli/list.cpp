#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "experiments/catalogue.hpp"
#include "experiments/learning_config.hpp"
#include "experiments/verify.hpp"

namespace rieszflow::cli {

Command list_command(CLI::App& program) {
  auto* command = program.add_subcommand("list", "every name that a config can hold, with one line each");
  return {command, []() -> int {
            fmt::print("{}", config::listing(catalogue::run()));
            config::Schema question;  // the model of a study is that of a run
            for (const config::Section& section : catalogue::study()) {
              if (section.path.starts_with("study")) question.push_back(section);
            }
            fmt::print("{}", config::listing(question));
            fmt::print("{}", config::listing(catalogue::learn()));
            fmt::print("\nmethods of learn\n");
            for (const learning::Method method : learning::methods())
              fmt::print("  {:<22} {}\n", learning::name(method), learning::meaning(method));
            for (const verify::Chapter& chapter : verify::catalogue()) {
              fmt::print("\nclaims of verify: {}\n", chapter.title);
              for (const verify::Claim& claim : chapter.claims)
                fmt::print("  {:<24} {}\n", claim.name, claim.claim);
            }
            return done;
          }};
}

}  // namespace rieszflow::cli
