#pragma once
#include <string>
#include <vector>

#include "config/schema.hpp"

/// What the program knows by name: the one list behind validation, `rieszflow list` and `rieszflow defaults`.
namespace rieszflow::catalogue {

/// The config of `rieszflow run`: one model, its particles and its density.
const config::Schema& run();

/// The config of `rieszflow study`: a model and the question asked about it, [study]; its `type` names the
/// question.
const config::Schema& study();

/// Types of [study], and a complete commented config of one of them, with the sections that it reads.
std::vector<std::string> study_types();
std::string study_sample(const std::string& type);
/// Types of study that ask about the model alone: no [initial], [time], [particles], [density].
bool asks_the_model_alone(std::string_view type);

/// A command that takes a config.
struct Command {
  std::string name;
  const config::Schema& schema;
};

/// Every command that takes a config.
const std::vector<Command>& commands();

}  // namespace rieszflow::catalogue
