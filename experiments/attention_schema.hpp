#pragma once
#include "config/schema.hpp"

namespace rieszflow::catalogue {

/// The config of `rieszflow attention`. An empty config is a complete experiment on the built-in selection
/// task.
const config::Schema& attention();

}  // namespace rieszflow::catalogue
