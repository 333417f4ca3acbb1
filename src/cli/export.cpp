#include <fmt/format.h>

#include <cstdio>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "io/run_file.hpp"

namespace rieszflow::cli {

Command export_command(CLI::App& program) {
  struct Options {
    std::filesystem::path run, vtk;
  };
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("export", "ParaView files from a run file");
  command->add_option("run", options->run, "run file")
      ->required()
      ->check(CLI::ExistingFile.description(""))
      ->type_name("RUN.h5");
  command->add_option("--vtk", options->vtk, "folder for .pvd, .vti and .vtp files; created")
      ->required()
      ->type_name("DIR");
  command->footer("Example:\n  rieszflow export out/demo/run.h5 --vtk out/demo/vtk");
  return {command, [options]() -> int {
            const auto files = io::export_vtk(io::RunReader(options->run), options->vtk);
            fmt::print("{} files in {}\n", files.size(), options->vtk.string());
            return done;
          }};
}

}  // namespace rieszflow::cli
