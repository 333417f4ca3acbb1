#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "core/build_info.hpp"

namespace {

std::string version_text() {
  const auto& info = rieszflow::build_info();
  return fmt::format("rieszflow {} ({})\ncompiler  {}\nlibraries {}", info.version, info.commit, info.compiler,
                     info.libraries);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Particles and densities of one mean-field model, side by side.", "rieszflow");
  program.set_version_flag("--version", version_text);
  CLI11_PARSE(program, argc, argv);
  return 0;
}
