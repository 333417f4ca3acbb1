#include "io/checkpoint.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <string_view>

#include "io/files.hpp"
#include "io/hdf5.hpp"

namespace rieszflow::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* newest_name = "checkpoint.h5";
constexpr const char* previous_name = "checkpoint.previous.h5";
constexpr std::size_t header_size = 512;  ///< the smallest HDF5 user block

/// 64-bit FNV-1a: each step is a bijection of the state, so one changed byte always changes the result.
std::uint64_t checksum(std::span<const char> bytes) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  return hash;
}

/// The user block that belongs to a body; the whole block is compared, so it cannot be damaged unnoticed
/// either.
std::string header_of(std::span<const char> body) {
  std::string text =
      fmt::format("rieszflow checkpoint, format 1\nbytes after this block of {}: {}\nFNV-1a: {:016x}\n",
                  header_size, body.size(), checksum(body));
  text.resize(header_size, '\0');
  return text;
}

std::string body_of(const fs::path& path, const Checkpoint& checkpoint) {
  hdf5::File file = hdf5::File::create_in_memory(path, header_size);
  for (const char* group : {"integers", "numbers", "texts", "arrays"}) file.make_group(group);
  for (const auto& [name, value] : checkpoint.integers) file.set_integers("integers", name, {&value, 1});
  for (const auto& [name, value] : checkpoint.numbers) file.set_numbers("numbers", name, {&value, 1});
  for (const auto& [name, value] : checkpoint.texts) file.set_text("texts", name, value);
  for (const auto& [name, values] : checkpoint.arrays)
    file.write("arrays/" + name, {values.size()}, std::span<const double>(values));
  return file.image();
}

/// The content, or FileError when a single bit is not as it was written.
Checkpoint intact_checkpoint(const fs::path& path) {
  const std::string bytes = read_text(path);
  const std::string_view all(bytes);
  if (all.size() < header_size) throw FileError(path.string() + ": the checkpoint is cut off");
  const std::span<const char> body(bytes.data() + header_size, bytes.size() - header_size);
  if (all.substr(0, header_size) != header_of(body))
    throw FileError(path.string() + ": the checkpoint is damaged (its checksum or length is wrong)");
  const hdf5::File file = hdf5::File::open_image(path, body);
  Checkpoint checkpoint;
  for (const auto& name : file.attributes("integers"))
    checkpoint.integers[name] = file.integers("integers", name).at(0);
  for (const auto& name : file.attributes("numbers"))
    checkpoint.numbers[name] = file.numbers("numbers", name).at(0);
  for (const auto& name : file.attributes("texts")) checkpoint.texts[name] = file.text("texts", name);
  for (const auto& name : file.members("arrays")) checkpoint.arrays[name] = file.read("arrays/" + name);
  return checkpoint;
}

/// Gives the newest checkpoint its second name while it keeps the first.
void keep_as_previous(const fs::path& newest, const fs::path& previous) {
  if (!fs::exists(newest)) return;
  Replacement replacement(previous);
  if (::link(newest.c_str(), replacement.temporary().c_str()) != 0)
    copy_content(newest, replacement.temporary(), previous);
  replacement.publish();
}

}  // namespace

void save_checkpoint(const fs::path& directory, const Checkpoint& checkpoint) {
  const fs::path newest = directory / newest_name;
  const std::string body = body_of(newest, checkpoint);
  keep_as_previous(newest, directory / previous_name);
  write_text(newest, header_of(body) + body);
}

std::optional<Checkpoint> load_checkpoint(const fs::path& directory, bool previous) {
  const fs::path newest = directory / newest_name;
  const fs::path before = directory / previous_name;
  if (previous) return fs::exists(before) ? std::optional(intact_checkpoint(before)) : std::nullopt;
  if (!fs::exists(newest)) return load_checkpoint(directory, true);
  try {
    return intact_checkpoint(newest);
  } catch (const FileError& error) {
    std::string offer = "; there is no previous checkpoint";
    if (fs::exists(before)) {
      try {
        intact_checkpoint(before);
        offer = fmt::format("; the previous one, {}, is intact: remove {} to resume from it", before.string(),
                            newest.string());
      } catch (const FileError&) {
        offer = fmt::format("; the previous one, {}, is damaged too", before.string());
      }
    }
    throw FileError(error.what() + offer);
  }
}

}  // namespace rieszflow::io
