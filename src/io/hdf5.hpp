#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// The part of HDF5 that this project needs: files of groups, text and integer attributes, and arrays of
/// doubles and 64-bit integers. Objects are named by their path inside the file ("observables/mass/value").
/// Every failure is a FileError "FILE: cannot DO SOMETHING: reason". The HDF5 library is used by one thread
/// at a time.
namespace rieszflow::io::hdf5 {

/// Shape of an array, slowest axis first.
using Shape = std::vector<std::size_t>;

/// How the rows of a growing array are stored.
enum class Storage {
  Compressed,  ///< shuffle and deflate: smooth data
  Plain        ///< noise, which does not compress
};

class File {
 public:
  /// New file; it must not exist. Locked against other writers while it is open; `name` is for messages.
  static File create(const std::filesystem::path& path, const std::filesystem::path& name);
  static File open_to_write(const std::filesystem::path& path, const std::filesystem::path& name);
  /// Takes no lock: files are replaced as a whole, never changed in place.
  static File open_to_read(const std::filesystem::path& path);
  /// New file in memory, for `image`, made to follow a user block of that size; `name` is for messages.
  static File create_in_memory(const std::filesystem::path& name, std::size_t user_block);
  /// Opens the bytes of a file; they are copied.
  static File open_image(const std::filesystem::path& name, std::span<const char> bytes);

  ~File();
  File(File&& other) noexcept
      : path_(std::move(other.path_)),
        id_(std::exchange(other.id_, -1)),
        largest_array_(other.largest_array_) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// Everything to the operating system (not yet to the disk).
  void flush();
  /// The same content in a new file, which must not exist: objects in alphabetical order, without gaps. Its
  /// bytes depend on the content alone, not on when which row was written.
  void copy_compactly(const std::filesystem::path& target, const std::filesystem::path& name) const;
  /// All bytes of the file after its user block.
  std::string image();

  bool exists(const std::string& object) const;
  /// Makes a group and the groups above it; no error when it exists.
  void make_group(const std::string& group);
  /// Names of the members of a group in alphabetical order; none when the group does not exist.
  std::vector<std::string> members(const std::string& group) const;

  /// UTF-8 text without zero bytes; replaces what was there.
  void set_text(const std::string& object, const std::string& attribute, const std::string& text);
  void set_texts(const std::string& object, const std::string& attribute,
                 const std::vector<std::string>& texts);
  void set_integers(const std::string& object, const std::string& attribute,
                    std::span<const std::int64_t> values);
  void set_numbers(const std::string& object, const std::string& attribute, std::span<const double> values);
  bool has_attribute(const std::string& object, const std::string& attribute) const;
  /// Names of the attributes that hold one text.
  std::vector<std::string> text_attributes(const std::string& object) const;
  /// Names of all attributes.
  std::vector<std::string> attributes(const std::string& object) const;
  std::string text(const std::string& object, const std::string& attribute) const;
  std::vector<std::int64_t> integers(const std::string& object, const std::string& attribute) const;
  std::vector<double> numbers(const std::string& object, const std::string& attribute) const;

  /// Writes a new array of fixed shape, row-major; makes the groups above it.
  void write(const std::string& array, const Shape& shape, std::span<const double> values);
  void write(const std::string& array, const Shape& shape, std::span<const std::int64_t> values);
  /// New empty array (row, row_shape...) of doubles or of integers that grows by whole rows.
  void create_rows(const std::string& array, const Shape& row_shape, Storage storage);
  void create_integer_rows(const std::string& array);
  void append_rows(const std::string& array, std::span<const double> values);
  void append_rows(const std::string& array, std::span<const std::int64_t> values);
  /// Keeps the first `count` rows.
  void truncate_rows(const std::string& array, std::size_t count);

  Shape shape(const std::string& array) const;
  std::vector<double> read(const std::string& array) const;
  std::vector<std::int64_t> read_integers(const std::string& array) const;
  /// One row of a growing array.
  std::vector<double> read_row(const std::string& array, std::size_t row) const;

 private:
  File(std::filesystem::path path, std::int64_t id, std::size_t largest_array)
      : path_(std::move(path)), id_(id), largest_array_(largest_array) {}

  /// Runs `action`; when it fails the file is given up, open and unusable: it cannot be closed safely any
  /// more.
  template <class Action>
  void writing(Action action);

  std::filesystem::path path_;
  std::int64_t id_ = -1;
  std::size_t largest_array_ =
      0;  ///< bytes; a damaged file that claims more is refused before memory is taken
};

}  // namespace rieszflow::io::hdf5
