#include "experiments/verify_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/document.hpp"
#include "experiments/verify.hpp"

namespace rieszflow {
namespace {

using config::Integer;
using config::Key;
using config::List;
using config::Occurrence;
using config::Presence;
using config::Text;

config::Schema schema_with(Key only) {
  return {{.path = "",
           .occurrence = Occurrence::Required,
           .meaning = "",
           .keys = {{"name", Text{.is_name = true}, Presence::Defaulted, std::string("verify"), "",
                     "of the experiment"}}},
          {.path = "verify",
           .occurrence = Occurrence::Defaulted,
           .meaning = "the catalogue of theoretical limits",
           .keys = {{"quick", config::Boolean{}, Presence::Defaulted, false, "",
                     "smaller N and fewer samples: minutes instead of an hour, the same claims"},
                    std::move(only),
                    {"seed", Integer{.lower = 0}, Presence::Defaulted, std::int64_t{1}, "",
                     "of all random numbers"}}}};
}

Key only(Presence presence, std::string claim) {
  return {"only",   List{Text{}},
          presence, std::vector<std::string>{std::move(claim)},
          "",       "names of the claims that are tried; absent: all; `rieszflow list` prints them"};
}

}  // namespace

namespace catalogue {

const config::Schema& verify() {
  static const config::Schema schema = schema_with(only(Presence::Optional, "interval_density"));
  return schema;
}

std::vector<std::string> claim_names() {
  std::vector<std::string> names;
  for (const verify::Chapter& chapter : verify::catalogue()) {
    for (const verify::Claim& claim : chapter.claims) names.push_back(claim.name);
  }
  return names;
}

std::string verify_sample(const std::string& claim) {
  return config::sample_config(claim.empty() ? verify() : schema_with(only(Presence::Required, claim)));
}

}  // namespace catalogue

namespace verify {

Assembly assemble(const Request& request) {
  const auto document = read_config(request, "verify", "[verify]\n");
  Assembly assembly;
  config::Table* table = document->table("verify");
  if (table != nullptr && table->good()) {
    if (request.seed) table->fill("seed", *request.seed);
    assembly.question = {.quick = table->boolean("quick"),
                         .only = table->has("only") ? table->texts("only") : std::vector<std::string>{},
                         .seed = static_cast<std::uint64_t>(table->integer("seed")),
                         .threads = request.threads};
    const std::vector<std::string> names = catalogue::claim_names();
    for (const std::string& name : assembly.question.only) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        table->problem(
            "only", fmt::format("holds \"{}\", must be names of claims: {}", name, fmt::join(names, ", ")));
    }
  }
  document->throw_problems();
  assembly.resolved = document->resolved();
  return assembly;
}

}  // namespace verify
}  // namespace rieszflow
