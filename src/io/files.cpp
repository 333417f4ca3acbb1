#include "io/files.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace rieszflow::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw FileError(path.string() + ": cannot " + what + ": " + std::strerror(errno));
}

/// An open POSIX file; EINTR is retried by every function that can meet it.
class Descriptor {
 public:
  /// `name` is for messages.
  Descriptor(const fs::path& path, int flags, fs::path name) : name_(std::move(name)) {
    do number_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    while (number_ < 0 && errno == EINTR);
    if (number_ < 0) fail(name_, (flags & O_CREAT) != 0 ? "create" : "open");
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

  std::size_t read(char* data, std::size_t size) {
    for (;;) {
      const ssize_t count = ::read(number_, data, size);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR) fail(name_, "read");
    }
  }

  void write(const char* data, std::size_t size) {
    while (size > 0) {
      const ssize_t count = ::write(number_, data, size);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(name_, "write");
      data += count;
      size -= static_cast<std::size_t>(count);
    }
  }

  void sync() {
    while (::fsync(number_) != 0) {
      if (errno == EINVAL || errno == EROFS) return;  // a kind of file that has nothing to synchronise
      if (errno != EINTR) fail(name_, "write");
    }
  }

  /// Network file systems report a full disk only here.
  void close() {
    const int status = ::close(number_);
    number_ = -1;
    if (status != 0 && errno != EINTR) fail(name_, "write");
  }

 private:
  fs::path name_;
  int number_ = -1;
};

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

Replacement::Replacement(fs::path target)
    : target_(std::move(target)),
      temporary_(folder_of(target_) / ("." + target_.filename().string() + ".new")) {
  if (::unlink(temporary_.c_str()) != 0 && errno != ENOENT) fail(target_, "create");
}

Replacement::~Replacement() { ::unlink(temporary_.c_str()); }

void Replacement::publish() {
  {
    Descriptor file(temporary_, O_RDONLY, target_);
    file.sync();
    file.close();
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(target_, "replace");
  Descriptor(folder_of(target_), O_RDONLY | O_DIRECTORY, target_).sync();
}

void copy_content(const fs::path& from, const fs::path& to, const fs::path& name) {
  Descriptor source(from, O_RDONLY, from);
  Descriptor target(to, O_WRONLY | O_CREAT | O_EXCL, name);
  if (::ioctl(target.number(), FICLONE, source.number()) == 0) return target.close();
  // In the kernel where it can; the loop below takes over where it cannot (other file system, old kernel).
  constexpr std::size_t stride = std::size_t{1} << 30;
  for (;;) {
    const ssize_t count = ::copy_file_range(source.number(), nullptr, target.number(), nullptr, stride, 0);
    if (count == 0) break;
    if (count > 0 || errno == EINTR) continue;
    if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT || errno == EIO) fail(name, "write");
    break;
  }
  std::vector<char> buffer(std::size_t{1} << 20);
  while (const std::size_t count = source.read(buffer.data(), buffer.size()))
    target.write(buffer.data(), count);
  target.close();
}

void write_text(const fs::path& path, const std::string& text) {
  Replacement replacement(path);
  {
    Descriptor file(replacement.temporary(), O_WRONLY | O_CREAT | O_EXCL, path);
    file.write(text.data(), text.size());
    file.close();
  }
  replacement.publish();
}

void expect_regular(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw FileError(path.string() + ": cannot read: not a regular file");
}

std::string read_text(const fs::path& path) {
  expect_regular(path);
  Descriptor file(path, O_RDONLY, path);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail(path, "read");
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const std::size_t count = file.read(text.data() + size, text.size() - size);
    if (count == 0) break;
    size += count;
  }
  text.resize(size);
  return text;
}

}  // namespace rieszflow::io
