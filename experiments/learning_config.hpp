#pragma once
#include <string>

#include "config/document.hpp"
#include "experiments/assemble.hpp"
#include "experiments/kernel_learning.hpp"

namespace rieszflow::catalogue {

/// The config of `rieszflow learn`. Every section has defaults: an empty config is a complete experiment.
const config::Schema& learn();

/// The feature maps and the alignments by name, for `learn` and for the potential "alignment" of `run`.
config::Choice feature_choice();
config::Choice alignment_choice();

}  // namespace rieszflow::catalogue

namespace rieszflow::learning {

struct Assembly {
  Question question;
  std::string resolved;  ///< the config with every default filled in; assembles to the same question
};

/// Throws config::ConfigError with all problems at once, those of the data files included. An empty
/// `request.config` is the default config.
Assembly assemble(const Request& request);

}  // namespace rieszflow::learning
