#pragma once
#include <string>
#include <variant>

#include "experiments/assemble.hpp"
#include "experiments/large_deviations.hpp"

/// `rieszflow study`: one model and a question about its limits. The `type` of [study] names the question.
namespace rieszflow::study {

/// One alternative for each type.
using Question = std::variant<large_deviations::Question>;

struct Assembly {
  std::string name;
  Question question;
  std::string resolved;  ///< the config with every default filled in; assembles to the same question
};

/// Throws config::ConfigError with all problems at once.
Assembly assemble(const Request& request);

/// What it will do, in words.
std::string plan(const Question& question);

}  // namespace rieszflow::study
