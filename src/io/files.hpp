#pragma once
#include <filesystem>
#include <stdexcept>
#include <string>

/// Files that appear whole or not at all.
namespace rieszflow::io {

/// The machine's fault (disk full, no permission, damaged file): names the file and the reason. Exit code 4.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file that is written under a hidden name beside its own and then takes its own name in one step: whoever
/// looks, at whatever instant the program dies, finds the old content or the new one, never a part.
class Replacement {
 public:
  /// Nothing is created yet; a left-over temporary of a killed program is removed.
  explicit Replacement(std::filesystem::path target);
  /// Removes the temporary unless it was published.
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  const std::filesystem::path& temporary() const { return temporary_; }
  /// fsync of the temporary, rename to the target, fsync of the directory.
  void publish();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
};

/// Copies the bytes of `from` into the new file `to`; shares the blocks where the file system can (reflink).
/// `name` is for messages.
void copy_content(const std::filesystem::path& from, const std::filesystem::path& to,
                  const std::filesystem::path& name);

/// Writes all bytes of `text` by a Replacement.
void write_text(const std::filesystem::path& path, const std::string& text);
/// FileError where `path` is there but is no regular file: a named pipe may wait for ever, a device never end.
void expect_regular(const std::filesystem::path& path);
/// All bytes of a regular file.
std::string read_text(const std::filesystem::path& path);

}  // namespace rieszflow::io
