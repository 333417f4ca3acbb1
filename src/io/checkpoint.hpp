#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Checkpoints: all that a run needs to go on, in a file that is either intact or refused.
namespace rieszflow::io {

/// Named numbers, arrays and texts (without zero bytes); read back bit for bit. Names are not empty and hold
/// no '/'.
struct Checkpoint {
  std::map<std::string, std::int64_t> integers;
  std::map<std::string, double> numbers;
  std::map<std::string, std::vector<double>> arrays;
  std::map<std::string, std::string> texts;
};

/// DIR/checkpoint.h5, appearing whole; the one before becomes DIR/checkpoint.previous.h5. At every instant
/// the newest complete one has the first name. The file is HDF5 with a 512-byte user block: its length and
/// checksum in words.
void save_checkpoint(const std::filesystem::path& directory, const Checkpoint& checkpoint);

/// Nothing when there is none. The newest one; when only the previous one is left (the user removed a damaged
/// newest one), that. A damaged file: FileError that names it and says whether the previous one can serve.
/// `previous`: reads the previous one.
std::optional<Checkpoint> load_checkpoint(const std::filesystem::path& directory, bool previous = false);

}  // namespace rieszflow::io
