#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/document.hpp"
#include "experiments/side_by_side.hpp"

/// The only place that maps config keys to models and options. experiments/catalogue says which keys there
/// are; here is what they mean together, and which combinations can only fail.
namespace rieszflow {

/// A config and what the command line adds to it.
struct Request {
  std::filesystem::path config;
  std::vector<std::string> overrides{};  ///< "key.path=value"
  std::optional<std::int64_t> seed{};    ///< instead of [particles] seed; without particles nothing is random
  int threads = 1;                       ///< no key of the config: it never changes a result
};

/// The config of a command of catalogue::commands(), checked against its schema; a table of another command
/// is a problem that says whose. `otherwise` is read where the request names no file.
std::unique_ptr<config::Document> read_config(const Request& request, const std::string& command,
                                              const std::string& otherwise = "");

/// Of the experiment: the key `name`, else that of the file, else that of the command; filled in.
std::string name_of(config::Document& document, const Request& request, const std::string& command);

struct Assembly {
  side_by_side::Question question;
  std::string resolved;  ///< the config with every default filled in; assembles to the same question
};

/// Throws config::ConfigError with all problems at once.
Assembly assemble(const Request& request);

/// The same for a document that was read with a schema that contains catalogue::run(). Paths in it are
/// relative to the folder of `request.config`. The caller may have added problems of its own; they are thrown
/// together.
Assembly assemble(config::Document& document, const Request& request);

/// Of the word in a config: "galerkin" | "cell_average".
CellWeights cell_weights_named(std::string_view word);

/// The model alone, of a document that was read with a schema that contains the [model] sections; nothing
/// when there are problems. `folder`: of the config, for relative paths.
std::optional<Model> assemble_model(config::Document& document, const std::filesystem::path& folder);

}  // namespace rieszflow
