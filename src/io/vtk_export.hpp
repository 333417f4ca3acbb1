#pragma once
#include <filesystem>
#include <vector>

namespace rieszflow::io {

class RunReader;

/// ParaView files of a run: density as .vti (cell data), particles as .vtp, one .pvd each with the exact
/// times. Returns what was written.
std::vector<std::filesystem::path> export_vtk(const RunReader& run, const std::filesystem::path& directory);

}  // namespace rieszflow::io
