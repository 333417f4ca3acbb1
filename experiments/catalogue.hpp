#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.hpp"

/// What the program knows by name: the one list behind validation, `rieszflow list` and `rieszflow defaults`.
namespace rieszflow::catalogue {

/// The config of `rieszflow run`: one model, its particles and its density.
const config::Schema& run();

/// The config of `rieszflow study`: a model and the question asked about it, [study]; its `type` names the
/// question.
const config::Schema& study();

/// Types of [study], and the sections that one of them reads, as a sample config needs them.
std::vector<std::string> study_types();
config::Schema study_sample(std::string_view type);

/// A command that takes a config.
struct Command {
  std::string name;
  const config::Schema& schema;
};

/// Every command that takes a config.
const std::vector<Command>& commands();

}  // namespace rieszflow::catalogue
