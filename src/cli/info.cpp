#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "io/run_file.hpp"

namespace rieszflow::cli {
namespace {

// Long attributes (the config) by their first line.
std::string first_line(const std::string& text) {
  const auto end = text.find('\n');
  return end == std::string::npos ? text : text.substr(0, end) + " ...";
}

std::string snapshots_text(const std::vector<Clock>& clocks) {
  if (clocks.empty()) return "none";
  return fmt::format("{}, t = {} to {}", clocks.size(), clocks.front().time, clocks.back().time);
}

std::string size_text(const io::RunReader& run) {
  std::string text;
  if (!run.density_clocks().empty()) {
    const Density density = run.density(0);
    for (const std::size_t cells : density.grid.cells)
      text += fmt::format("{}{}", text.empty() ? "" : " x ", cells);
    text = fmt::format("density snapshots    {} ({} cells)\n", snapshots_text(run.density_clocks()), text);
  } else {
    text = "density snapshots    none\n";
  }
  if (run.position_clocks().empty()) return text + "particle snapshots   none\n";
  const ParticleEnsemble ensemble = run.positions(0);
  return text + fmt::format("particle snapshots   {} ({} replicas of N = {} in d = {})\n",
                            snapshots_text(run.position_clocks()), ensemble.replica_count,
                            ensemble.particle_count, ensemble.dimension);
}

void print_info(const std::filesystem::path& file) {
  const io::RunReader run(file);
  for (const auto& [name, value] : run.manifest()) fmt::print("{:<20} {}\n", name, first_line(value));
  fmt::print("{}", size_text(run));
  fmt::print("series\n");
  for (const std::string& name : run.series_names()) {
    const io::Series series = run.series(name);
    fmt::print("  {:<40} {:>6} rows  {}{}{}{}\n", name, series.time.size(), series.description.meaning,
               series.description.units.empty() ? "" : " [", series.description.units,
               series.description.units.empty() ? "" : "]");
  }
}

}  // namespace

Command info_command(CLI::App& program) {
  auto file = std::make_shared<std::filesystem::path>();
  auto* command = program.add_subcommand(
      "info", "what is in a run file: model, status, versions, seeds, series, snapshots");
  command->add_option("run", *file, "run file")
      ->required()
      ->check(CLI::ExistingFile.description(""))
      ->type_name("RUN.h5");
  command->footer("Example:\n  rieszflow info out/demo/run.h5");
  return {command, [file]() -> int {
            print_info(*file);
            return done;
          }};
}

}  // namespace rieszflow::cli
