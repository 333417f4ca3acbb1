#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace rieszflow::attention {

/// Adds to a summary with `rows` what follows from them: `table`, means over seeds with 95 % intervals
/// (Student); `differences`, paired by seed; `phase_a`, alignments before and after; `findings` and `claims`,
/// sentences.
void conclude(nlohmann::ordered_json& summary);

/// report.html and its figures from DIR/summary.json. Throws io::FileError.
void write_report(const std::filesystem::path& directory);

}  // namespace rieszflow::attention
