#include "io/hdf5.hpp"

#include <hdf5.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>

#include "core/expects.hpp"
#include "io/files.hpp"

namespace rieszflow::io::hdf5 {
namespace {

static_assert(std::is_same_v<hid_t, std::int64_t>);

/// Owner of one HDF5 identifier. While an error travels it closes nothing: closing what could not be written
/// crashes (HDF5 1.10). Closing the file takes what is left open in it.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0 && std::uncaught_exceptions() == errors_) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
  int errors_ = std::uncaught_exceptions();
};

/// The innermost entry of the HDF5 error stack: the operating system's words where it has them.
std::string innermost_error() {
  std::string text = "the HDF5 library gives no reason";
  const auto visit = [](unsigned depth, const H5E_error2_t* error, void* out) -> herr_t {
    if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, visit, &text);
  H5Eclear2(H5E_DEFAULT);
  const std::string marker = "error message = '";
  if (const auto begin = text.find(marker); begin != std::string::npos) {
    const auto end = text.find('\'', begin + marker.size());
    text = text.substr(begin + marker.size(), end - begin - marker.size());
  }
  return text;
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw FileError(path.string() + ": cannot " + what + ": " + innermost_error());
}

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& object,
                          const std::string& why) {
  throw FileError(path.string() + ": cannot read " + object + ": " + why);
}

/// HDF5 prints its errors unless told not to; ours travel in exceptions. And it closes what is open at exit,
/// which crashes for a file that could not be written.
void set_up_library() {
  static const herr_t once = H5dont_atexit() + H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  (void)once;
}

std::size_t product(std::span<const std::size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{1}, std::multiplies<>());
}

/// The name of files in memory: the library wants one that does not exist on the disk.
constexpr const char* nowhere = "/dev/null/in memory";

/// Group files of HDF5 1.8: small groups, and every reader of the last fifteen years opens them.
hid_t access_list(bool locked) {
  set_up_library();
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
  H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
  H5Pset_file_locking(access, locked ? 1 : 0, 1);
  return access;
}

template <class Number>
hid_t memory_type() {
  return std::is_same_v<Number, double> ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64;
}

template <class Number>
hid_t file_type() {
  return std::is_same_v<Number, double> ? H5T_IEEE_F64LE : H5T_STD_I64LE;
}

/// Creation without time stamps: the same run gives the same bytes.
hid_t dataset_creation() {
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(creation, 0);
  return creation;
}

/// Creates the groups above `object` that do not exist yet. Not left to H5Pset_create_intermediate_group: the
/// groups that it makes hold the time of their creation.
void create_parents(const std::filesystem::path& path, hid_t file, const std::string& object) {
  const Handle creation(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation, 0);
  for (std::size_t end = object.find('/', 1); end != std::string::npos; end = object.find('/', end + 1)) {
    const std::string group = object.substr(0, end);
    if (H5Lexists(file, group.c_str(), H5P_DEFAULT) > 0) continue;
    const Handle handle(H5Gcreate2(file, group.c_str(), H5P_DEFAULT, creation, H5P_DEFAULT), H5Gclose);
    if (handle < 0) fail(path, "create group " + group);
  }
}

hid_t text_type() {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

void replace_attribute(const std::filesystem::path& path, hid_t file, const std::string& object,
                       const std::string& attribute, hid_t type, hid_t memory,
                       const std::vector<hsize_t>& shape, const void* values) {
  const std::string what = "write attribute " + attribute + " of " + object;
  const Handle owner(H5Oopen(file, object.c_str(), H5P_DEFAULT), H5Oclose);
  if (owner < 0) fail(path, what);
  if (H5Aexists(owner, attribute.c_str()) > 0 && H5Adelete(owner, attribute.c_str()) < 0) fail(path, what);
  const Handle space(shape.empty() ? H5Screate(H5S_SCALAR)
                                   : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
                     H5Sclose);
  const Handle handle(H5Acreate2(owner, attribute.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (handle < 0 || H5Awrite(handle, memory, values) < 0) fail(path, what);
}

/// The attribute of one file's root in another file, as it is stored.
void copy_root_attribute(const std::filesystem::path& path, hid_t from, hid_t to,
                         const std::string& attribute) {
  const Handle source(H5Aopen(from, attribute.c_str(), H5P_DEFAULT), H5Aclose);
  const Handle type(H5Aget_type(source), H5Tclose);
  const Handle space(H5Aget_space(source), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count < 0) fail(path, "read attribute " + attribute);
  std::vector<std::byte> values(static_cast<std::size_t>(count) * H5Tget_size(type));
  if (H5Aread(source, type, values.data()) < 0) fail(path, "read attribute " + attribute);
  const Handle target(H5Acreate2(to, attribute.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  const bool written = target >= 0 && H5Awrite(target, type, values.data()) >= 0;
  if (H5Tis_variable_str(type) > 0) H5Dvlen_reclaim(type, space, H5P_DEFAULT, values.data());
  if (!written) fail(path, "write attribute " + attribute);
}

template <class Number>
std::vector<Number> numeric_attribute(const std::filesystem::path& path, hid_t file,
                                      const std::string& object, const std::string& attribute) {
  const std::string what = "read attribute " + attribute + " of " + object;
  const Handle handle(H5Aopen_by_name(file, object.c_str(), attribute.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                      H5Aclose);
  if (handle < 0) fail(path, what);
  const Handle space(H5Aget_space(handle), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count < 0 || static_cast<std::size_t>(H5Aget_storage_size(handle)) < static_cast<std::size_t>(count))
    damaged(path, "attribute " + attribute + " of " + object, "its size is wrong");
  std::vector<Number> values(static_cast<std::size_t>(count));
  if (H5Aread(handle, memory_type<Number>(), values.data()) < 0) fail(path, what);
  return values;
}

template <class Number>
void write_array(const std::filesystem::path& path, hid_t file, const std::string& array, const Shape& shape,
                 std::span<const Number> values) {
  expects(values.size() == product(shape), "an array has as many values as its shape says");
  const std::vector<hsize_t> extent(shape.begin(), shape.end());
  const Handle space(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), H5Sclose);
  const Handle creation(dataset_creation(), H5Pclose);
  create_parents(path, file, array);
  const Handle dataset(
      H5Dcreate2(file, array.c_str(), file_type<Number>(), space, H5P_DEFAULT, creation, H5P_DEFAULT),
      H5Dclose);
  if (dataset < 0) fail(path, "write " + array);
  if (!values.empty() &&
      H5Dwrite(dataset, memory_type<Number>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
    fail(path, "write " + array);
}

/// Chunks of at most 1 MiB: several short rows, or a part of a long one.
std::vector<hsize_t> chunk_of(const Shape& row_shape) {
  constexpr std::size_t longest = std::size_t{1} << 17;  // values
  constexpr std::size_t shortest = std::size_t{1} << 10;
  std::vector<hsize_t> chunk(row_shape.begin(), row_shape.end());
  std::size_t values = product(row_shape);
  for (hsize_t& axis : chunk) {  // slowest axis first
    if (values <= longest) break;
    const std::size_t others = values / axis;
    axis = std::max<hsize_t>(1, longest / others);
    values = axis * others;
  }
  chunk.insert(chunk.begin(), std::max<hsize_t>(1, shortest / std::max<std::size_t>(1, values)));
  return chunk;
}

void create_growing(const std::filesystem::path& path, hid_t file, const std::string& array,
                    const Shape& row_shape, Storage storage, hid_t type) {
  std::vector<hsize_t> extent(row_shape.begin(), row_shape.end());
  extent.insert(extent.begin(), 0);
  std::vector<hsize_t> limit = extent;
  limit[0] = H5S_UNLIMITED;
  const std::vector<hsize_t> chunk = chunk_of(row_shape);
  const Handle space(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), limit.data()),
                     H5Sclose);
  const Handle creation(dataset_creation(), H5Pclose);
  H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
  if (storage == Storage::Compressed) {
    H5Pset_shuffle(creation);
    H5Pset_deflate(creation, 4);
  }
  H5Pset_fletcher32(creation);
  create_parents(path, file, array);
  const Handle dataset(H5Dcreate2(file, array.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT),
                       H5Dclose);
  if (dataset < 0) fail(path, "create " + array);
}

std::vector<hsize_t> extent_of(const std::filesystem::path& path, hid_t dataset, const std::string& array) {
  const Handle space(H5Dget_space(dataset), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0) fail(path, "read " + array);
  std::vector<hsize_t> extent(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, extent.data(), nullptr);
  return extent;
}

template <class Number>
void append(const std::filesystem::path& path, hid_t file, const std::string& array,
            std::span<const Number> values) {
  const std::string what = "write " + array;
  const Handle dataset(H5Dopen2(file, array.c_str(), H5P_DEFAULT), H5Dclose);
  if (dataset < 0) fail(path, what);
  std::vector<hsize_t> extent = extent_of(path, dataset, array);
  std::vector<hsize_t> start(extent.size(), 0);
  std::vector<hsize_t> count = extent;
  count[0] = 1;
  const std::size_t row = std::accumulate(count.begin(), count.end(), std::size_t{1}, std::multiplies<>());
  expects(row > 0 && values.size() % row == 0, "rows are appended whole");
  if (values.empty()) return;
  count[0] = values.size() / row;
  start[0] = extent[0];
  extent[0] += count[0];
  if (H5Dset_extent(dataset, extent.data()) < 0) fail(path, what);
  const Handle space(H5Dget_space(dataset), H5Sclose);
  const Handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
  if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) < 0 ||
      H5Dwrite(dataset, memory_type<Number>(), memory, space, H5P_DEFAULT, values.data()) < 0 ||
      H5Dflush(dataset) < 0)  // else closing would write, and hide its failure
    fail(path, what);
}

/// All of an array, or one row of it.
template <class Number>
std::vector<Number> read_array(const std::filesystem::path& path, hid_t file, const std::string& array,
                               std::size_t largest, const std::size_t* row) {
  const std::string what = "read " + array;
  const Handle dataset(H5Dopen2(file, array.c_str(), H5P_DEFAULT), H5Dclose);
  if (dataset < 0) fail(path, what);
  std::vector<hsize_t> extent = extent_of(path, dataset, array);
  const Handle space(H5Dget_space(dataset), H5Sclose);
  std::vector<hsize_t> start(extent.size(), 0);
  if (row != nullptr) {
    if (extent.empty() || *row >= extent[0]) damaged(path, array, "it has no row " + std::to_string(*row));
    start[0] = *row;
    extent[0] = 1;
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr) < 0)
      fail(path, what);
  }
  std::size_t size = 1;
  for (const hsize_t axis : extent) {
    if (axis != 0 && size > largest / sizeof(Number) / axis)
      damaged(path, array, "the file is too short for its shape");
    size *= axis;
  }
  std::vector<Number> values(size);
  const Handle memory(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), H5Sclose);
  if (size > 0 && H5Dread(dataset, memory_type<Number>(), memory, space, H5P_DEFAULT, values.data()) < 0)
    fail(path, what);
  return values;
}

herr_t add_name(hid_t, const char* name, const H5L_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

herr_t add_attribute_name(hid_t, const char* name, const H5A_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

}  // namespace

File File::create(const std::filesystem::path& path, const std::filesystem::path& name) {
  const Handle access(access_list(true), H5Pclose);
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation, 0);
  const hid_t id = H5Fcreate(path.c_str(), H5F_ACC_EXCL, creation, access);
  if (id < 0) fail(name, "create");
  return {name, id, std::numeric_limits<std::size_t>::max()};
}

File File::open_to_write(const std::filesystem::path& path, const std::filesystem::path& name) {
  const Handle access(access_list(true), H5Pclose);
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDWR, access);
  if (id < 0) fail(name, "open");
  return {name, id, std::numeric_limits<std::size_t>::max()};
}

File File::open_to_read(const std::filesystem::path& path) {
  expect_regular(path);
  const Handle access(access_list(false), H5Pclose);
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  if (id < 0) fail(path, "open");
  hsize_t bytes = 0;
  H5Fget_filesize(id, &bytes);
  return {path, id, 2048 * static_cast<std::size_t>(bytes)};  // deflate shrinks by 1032 at most
}

File File::create_in_memory(const std::filesystem::path& name, std::size_t user_block) {
  const Handle access(access_list(false), H5Pclose);
  // The library clears a flag in an image's superblock and forgets its checksum: take the format without one.
  H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
  H5Pset_fapl_core(access, std::size_t{1} << 20, 0);
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_userblock(creation, user_block);
  H5Pset_obj_track_times(creation, 0);
  const hid_t id = H5Fcreate(nowhere, H5F_ACC_TRUNC, creation, access);
  if (id < 0) fail(name, "create");
  return {name, id, std::numeric_limits<std::size_t>::max()};
}

File File::open_image(const std::filesystem::path& name, std::span<const char> bytes) {
  const Handle access(access_list(false), H5Pclose);
  H5Pset_fapl_core(access, std::size_t{1} << 20, 0);
  std::string copy(bytes.begin(), bytes.end());
  H5Pset_file_image(access, copy.data(), copy.size());
  const hid_t id = H5Fopen(nowhere, H5F_ACC_RDONLY, access);
  if (id < 0) fail(name, "open");
  return {name, id, 2048 * bytes.size()};
}

File::~File() {
  if (id_ >= 0) H5Fclose(id_);
}

template <class Action>
void File::writing(Action action) {
  try {
    action();
  } catch (const FileError&) {
    id_ = -1;
    throw;
  }
}

void File::flush() {
  writing([&] {
    if (H5Fflush(id_, H5F_SCOPE_GLOBAL) < 0) fail(path_, "write");
  });
}

void File::copy_compactly(const std::filesystem::path& target, const std::filesystem::path& name) const {
  std::vector<std::string> names;
  if (H5Literate(id_, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_name, &names) < 0) fail(path_, "list /");
  File copy = create(target, name);
  copy.writing([&] {
    for (const std::string& object : names) {
      if (H5Ocopy(id_, object.c_str(), copy.id_, object.c_str(), H5P_DEFAULT, H5P_DEFAULT) < 0)
        fail(name, "write " + object);
    }
    for (const std::string& attribute : attributes("/")) copy_root_attribute(name, id_, copy.id_, attribute);
  });
  copy.flush();
}

std::string File::image() {
  flush();
  const ssize_t size = H5Fget_file_image(id_, nullptr, 0);
  if (size < 0) fail(path_, "write");
  std::string bytes(static_cast<std::size_t>(size), '\0');
  if (H5Fget_file_image(id_, bytes.data(), bytes.size()) < 0) fail(path_, "write");
  return bytes;
}

bool File::exists(const std::string& object) const {
  for (std::size_t end = object.find('/');; end = object.find('/', end + 1)) {  // each link on the way
    const htri_t found = H5Lexists(id_, object.substr(0, end).c_str(), H5P_DEFAULT);
    if (found < 0) fail(path_, "look for " + object);  // a damaged group is no absent one
    if (found == 0) return false;
    if (end == std::string::npos) return true;
  }
}

void File::make_group(const std::string& group) {
  if (exists(group)) return;
  writing([&] { create_parents(path_, id_, group + "/"); });
}

std::vector<std::string> File::members(const std::string& group) const {
  std::vector<std::string> names;
  if (!exists(group)) return names;
  const Handle handle(H5Oopen(id_, group.c_str(), H5P_DEFAULT), H5Oclose);
  if (handle < 0) fail(path_, "open " + group);
  if (H5Iget_type(handle) != H5I_GROUP) return names;  // a dataset has no members
  if (H5Literate(handle, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_name, &names) < 0)
    fail(path_, "list " + group);
  return names;
}

void File::set_text(const std::string& object, const std::string& attribute, const std::string& text) {
  const Handle type(text_type(), H5Tclose);
  const char* pointer = text.c_str();
  writing([&] { replace_attribute(path_, id_, object, attribute, type, type, {}, &pointer); });
}

void File::set_texts(const std::string& object, const std::string& attribute,
                     const std::vector<std::string>& texts) {
  const Handle type(text_type(), H5Tclose);
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  writing([&] {
    replace_attribute(path_, id_, object, attribute, type, type, {pointers.size()}, pointers.data());
  });
}

void File::set_integers(const std::string& object, const std::string& attribute,
                        std::span<const std::int64_t> values) {
  const std::vector<hsize_t> shape =
      values.size() == 1 ? std::vector<hsize_t>{} : std::vector<hsize_t>{values.size()};
  writing([&] {
    replace_attribute(path_, id_, object, attribute, H5T_STD_I64LE, H5T_NATIVE_INT64, shape, values.data());
  });
}

void File::set_numbers(const std::string& object, const std::string& attribute,
                       std::span<const double> values) {
  const std::vector<hsize_t> shape =
      values.size() == 1 ? std::vector<hsize_t>{} : std::vector<hsize_t>{values.size()};
  writing([&] {
    replace_attribute(path_, id_, object, attribute, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, shape, values.data());
  });
}

bool File::has_attribute(const std::string& object, const std::string& attribute) const {
  const bool found = H5Aexists_by_name(id_, object.c_str(), attribute.c_str(), H5P_DEFAULT) > 0;
  H5Eclear2(H5E_DEFAULT);
  return found;
}

std::vector<std::string> File::attributes(const std::string& object) const {
  std::vector<std::string> names;
  if (H5Aiterate_by_name(id_, object.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr, add_attribute_name, &names,
                         H5P_DEFAULT) < 0)
    fail(path_, "list the attributes of " + object);
  return names;
}

std::vector<std::string> File::text_attributes(const std::string& object) const {
  std::vector<std::string> names = attributes(object);
  std::erase_if(names, [&](const std::string& name) {
    const Handle handle(H5Aopen_by_name(id_, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                        H5Aclose);
    const Handle type(H5Aget_type(handle), H5Tclose);
    const Handle space(H5Aget_space(handle), H5Sclose);
    return H5Tis_variable_str(type) <= 0 || H5Sget_simple_extent_type(space) != H5S_SCALAR;
  });
  return names;
}

std::string File::text(const std::string& object, const std::string& attribute) const {
  const std::string what = "read attribute " + attribute + " of " + object;
  const Handle handle(H5Aopen_by_name(id_, object.c_str(), attribute.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                      H5Aclose);
  if (handle < 0) fail(path_, what);
  const Handle stored(H5Aget_type(handle), H5Tclose);
  const Handle space(H5Aget_space(handle), H5Sclose);
  if (H5Tis_variable_str(stored) <= 0 || H5Sget_simple_extent_type(space) != H5S_SCALAR)
    damaged(path_, "attribute " + attribute + " of " + object, "it is not a text");
  const Handle type(text_type(), H5Tclose);
  char* pointer = nullptr;
  if (H5Aread(handle, type, &pointer) < 0) fail(path_, what);
  std::string text = pointer != nullptr ? pointer : "";
  H5free_memory(pointer);
  return text;
}

std::vector<std::int64_t> File::integers(const std::string& object, const std::string& attribute) const {
  return numeric_attribute<std::int64_t>(path_, id_, object, attribute);
}

std::vector<double> File::numbers(const std::string& object, const std::string& attribute) const {
  return numeric_attribute<double>(path_, id_, object, attribute);
}

void File::write(const std::string& array, const Shape& shape, std::span<const double> values) {
  writing([&] { write_array(path_, id_, array, shape, values); });
}

void File::write(const std::string& array, const Shape& shape, std::span<const std::int64_t> values) {
  writing([&] { write_array(path_, id_, array, shape, values); });
}

void File::create_rows(const std::string& array, const Shape& row_shape, Storage storage) {
  writing([&] { create_growing(path_, id_, array, row_shape, storage, H5T_IEEE_F64LE); });
}

void File::create_integer_rows(const std::string& array) {
  writing([&] { create_growing(path_, id_, array, {}, Storage::Compressed, H5T_STD_I64LE); });
}

void File::append_rows(const std::string& array, std::span<const double> values) {
  writing([&] { append(path_, id_, array, values); });
}

void File::append_rows(const std::string& array, std::span<const std::int64_t> values) {
  writing([&] { append(path_, id_, array, values); });
}

void File::truncate_rows(const std::string& array, std::size_t count) {
  writing([&] {
    const Handle dataset(H5Dopen2(id_, array.c_str(), H5P_DEFAULT), H5Dclose);
    if (dataset < 0) fail(path_, "write " + array);
    std::vector<hsize_t> extent = extent_of(path_, dataset, array);
    expects(!extent.empty() && count <= extent[0], "only rows that exist are kept");
    extent[0] = count;
    if (H5Dset_extent(dataset, extent.data()) < 0 || H5Dflush(dataset) < 0) fail(path_, "write " + array);
  });
}

Shape File::shape(const std::string& array) const {
  const Handle dataset(H5Dopen2(id_, array.c_str(), H5P_DEFAULT), H5Dclose);
  if (dataset < 0) fail(path_, "read " + array);
  const std::vector<hsize_t> extent = extent_of(path_, dataset, array);
  return {extent.begin(), extent.end()};
}

std::vector<double> File::read(const std::string& array) const {
  return read_array<double>(path_, id_, array, largest_array_, nullptr);
}

std::vector<std::int64_t> File::read_integers(const std::string& array) const {
  return read_array<std::int64_t>(path_, id_, array, largest_array_, nullptr);
}

std::vector<double> File::read_row(const std::string& array, std::size_t row) const {
  return read_array<double>(path_, id_, array, largest_array_, &row);
}

}  // namespace rieszflow::io::hdf5
