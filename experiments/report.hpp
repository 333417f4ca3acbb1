#pragma once
#include <filesystem>

namespace rieszflow {

/// The report of a result folder: DIR/report.html, one self-contained page that needs no script and no
/// network, and its figures DIR/figures/*.svg. Made from DIR/run.h5 and, where it exists, DIR/summary.json;
/// whatever one of both sides or an interrupted run has left is shown. Without gnuplot the page says so in
/// place of the figures. Errors: io::FileError.
void write_report(const std::filesystem::path& directory);

}  // namespace rieszflow
