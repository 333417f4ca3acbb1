#pragma once
#include <string>
#include <utility>
#include <vector>

#include "config/schema.hpp"

namespace rieszflow::catalogue {

/// The config of `rieszflow attention`. An empty config is a complete experiment on the built-in selection
/// task.
const config::Schema& attention();

/// Names of the attentions that a variant can begin with, and a line on each.
std::vector<std::pair<std::string, std::string>> attention_kinds();

}  // namespace rieszflow::catalogue
