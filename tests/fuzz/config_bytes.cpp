// Any bytes as a config of any command: read, or refused with file, line and key; what was read resolves to a
// config that reads as itself.
#include "config/document.hpp"
#include "experiments/catalogue.hpp"
#include "fuzz.hpp"

namespace rieszflow::fuzz {

void try_input(std::string_view bytes) {
  for (const catalogue::Command& command : catalogue::commands()) {
    try {
      const auto document = config::Document::parse(bytes, "fuzz.toml", command.schema, {});
      document->throw_problems();
      const std::string resolved = document->resolved();
      const auto again = config::Document::parse(resolved, "fuzz.toml", command.schema, {});
      again->throw_problems();
      if (again->resolved() != resolved) broken("the resolved config resolves to another one:\n" + resolved);
    } catch (const config::ConfigError& error) {
      for (const config::Problem& problem : error.problems()) {
        if (problem.source != "fuzz.toml" || problem.what.empty() || problem.line < 0)
          broken("a problem without its place: " + problem.text());
        if (problem.line == 0 && problem.key.empty() && problem.what.size() < 10)
          broken("a problem that says nothing: " + problem.text());
      }
      if (error.problems().empty()) broken("refused without a problem");
    }
  }
}

std::vector<std::string> dictionary() {
  return {"[model]\n",
          "[[model.potential]]\n",
          "[model.domain]\n",
          "type = \"riesz\"\n",
          "nan",
          "inf",
          "-1",
          "1e400",
          "0x",
          "\"\"\"",
          "'''",
          "[",
          "]",
          "{",
          "}",
          "=",
          "\n",
          "#",
          "\\u0000",
          "\\UFFFFFFFF",
          ".",
          ",",
          "true",
          "1979-05-27T07:32:00Z",
          "\xEF\xBB\xBF",
          "\xFF",
          "\r\n"};
}

}  // namespace rieszflow::fuzz
