#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/clock.hpp"
#include "model/density.hpp"
#include "model/ensemble.hpp"

/// The run file: one HDF5 file that is readable without this program, and complete after every commit.
namespace rieszflow::io {

/// The machine's fault (disk full, no permission, damaged file): names the file. Exit code 4.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Text attributes of the file: version, commit, compiler, seed, command line, config text, model in words.
using Manifest = std::map<std::string, std::string>;

struct SeriesDescription {
  std::string name;                ///< dataset group below observables/, e.g. "density/free_energy"
  std::string units;
  std::string meaning;
  std::size_t columns = 1;         ///< values per row
  bool has_standard_error = false;
};

/// Writer. Data goes to a hidden working file; `commit` makes it visible under its name by fsync and rename.
class RunFile {
 public:
  /// New file; the target must not exist.
  static RunFile create(const std::filesystem::path& path, const Manifest& manifest);
  /// Continues a committed file: drops every row with a step of its writer later than the checkpoint's counts.
  static RunFile resume(const std::filesystem::path& path);
  ~RunFile();
  RunFile(RunFile&&) noexcept;

  void append(const SeriesDescription& series, const Clock& clock, std::span<const double> value,
              std::span<const double> standard_error = {});
  void append_density(const Clock& clock, const Density& density);
  /// H5MD 1.1: particles/replica<k>/position/{step,time,value}.
  void append_positions(const Clock& clock, const ParticleEnsemble& ensemble);
  void set_attribute(const std::string& name, const std::string& text);
  /// Drops rows later than `clock` in every dataset whose path starts with `prefix` (resume after a crash).
  void drop_after(const std::string& prefix, const Clock& clock);
  void commit();

 private:
  struct Implementation;
  explicit RunFile(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

struct Series {
  SeriesDescription description;
  std::vector<std::int64_t> step;
  std::vector<double> time;
  std::vector<double> value;           ///< (row, column)
  std::vector<double> standard_error;  ///< (row, column) or empty
};

/// Reader; everything by value.
class RunReader {
 public:
  explicit RunReader(const std::filesystem::path& path);
  ~RunReader();
  RunReader(RunReader&&) noexcept;
  Manifest manifest() const;
  std::vector<std::string> series_names() const;
  Series series(const std::string& name) const;
  std::vector<Clock> density_clocks() const;  ///< empty when there is no density
  Density density(std::size_t snapshot) const;
  std::vector<Clock> position_clocks() const;
  ParticleEnsemble positions(std::size_t snapshot) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// A checkpoint: named numbers and arrays, with a checksum. Two generations are kept.
struct Checkpoint {
  std::map<std::string, std::int64_t> integers;
  std::map<std::string, double> numbers;
  std::map<std::string, std::vector<double>> arrays;
  std::map<std::string, std::string> texts;
};

/// DIR/checkpoint.h5 by temporary file, fsync, rename; the one before becomes DIR/checkpoint.previous.h5.
void save_checkpoint(const std::filesystem::path& directory, const Checkpoint& checkpoint);
/// Nothing when there is none. A damaged newest one: FileError that names it and offers the previous one.
std::optional<Checkpoint> load_checkpoint(const std::filesystem::path& directory, bool previous = false);

/// Writes text by temporary file, fsync, rename.
void write_text(const std::filesystem::path& path, const std::string& text);
std::string read_text(const std::filesystem::path& path);

/// ParaView files of a run: density as .vti (cell data), particles as .vtp, one .pvd each. Returns what was written.
std::vector<std::filesystem::path> export_vtk(const RunReader& run, const std::filesystem::path& directory);

}  // namespace rieszflow::io
