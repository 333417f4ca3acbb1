#pragma once
#include <string>
#include <variant>

#include "experiments/assemble.hpp"
#include "experiments/large_deviations.hpp"
#include "experiments/stationary_states.hpp"
#include "experiments/sweep.hpp"

/// `rieszflow study`: one model and a question about its limits. The `type` of [study] names the question.
namespace rieszflow::study {

/// A study of independent rows that ends in fitted rates, and what it will cost.
struct Sweep {
  sweep::Study study;
  std::string plan;
};

using Question = std::variant<large_deviations::Question, Sweep, stationary_states::Question>;

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
