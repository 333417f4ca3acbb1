#pragma once
#include <filesystem>

namespace rieszflow::learning {

/// DIR/report.html of a kernel-learning experiment and its figures DIR/figures/*.svg, from DIR/summary.json
/// and, where it exists, the traces in DIR/run.h5. Errors: io::FileError.
void write_learning_report(const std::filesystem::path& directory);

}  // namespace rieszflow::learning
