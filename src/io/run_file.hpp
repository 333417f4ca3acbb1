#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "domain/domain.hpp"
#include "io/checkpoint.hpp"
#include "io/files.hpp"
#include "io/vtk_export.hpp"
#include "model/clock.hpp"
#include "model/density.hpp"
#include "model/ensemble.hpp"

/// The run file: one HDF5 file that is readable without this program, and complete after every commit.
namespace rieszflow::io {

/// Text attributes of the file: version, commit, compiler, seed, command line, config text, model in words.
using Manifest = std::map<std::string, std::string>;

struct SeriesDescription {
  std::string name;  ///< dataset group below observables/, e.g. "density/free_energy"
  std::string units;
  std::string meaning;
  std::size_t columns = 1;  ///< values per row
  bool has_standard_error = false;
};

/// Writer. Data goes to a hidden working file beside the run file; `commit` publishes a copy of it. A run
/// file is therefore never seen half written, and never changes under a program that reads it.
///
/// Times of one series, of the density and of the positions increase strictly. Errors: FileError; what was
/// committed before stays as it was, and the writer is of no further use.
class RunFile {
 public:
  /// New file; the target must not exist. It appears with the first commit.
  static RunFile create(const std::filesystem::path& path, const Manifest& manifest);
  /// FileError when another process is writing it.
  static void expect_no_writer(const std::filesystem::path& path);
  /// Continues a committed file. What a killed run had not committed is gone; what it committed after its
  /// last checkpoint is removed by `drop_after`.
  static RunFile resume(const std::filesystem::path& path);
  /// Drops what was not committed.
  ~RunFile();
  RunFile(RunFile&&) noexcept;
  RunFile& operator=(RunFile&&) noexcept;

  /// value and standard_error: (column).
  void append(const SeriesDescription& series, const Clock& clock, std::span<const double> value,
              std::span<const double> standard_error = {});
  /// The grid is written with the first one; all have the same.
  void append_density(const Clock& clock, const Density& density);
  /// H5MD 1.1: particles/replicaK/position/{step,time,value}.
  void append_positions(const Clock& clock, const ParticleEnsemble& ensemble);
  /// H5MD's box of the particles: the domain, or the smallest box around it. Without it: no boundary, no
  /// edges.
  void set_box(const Box& box, bool periodic);
  /// Attribute of the whole file, like those of the manifest; replaces what was there.
  void set_attribute(const std::string& name, const std::string& text);
  /// Drops rows later than `clock` in every dataset whose path starts with `prefix` ("observables/particles",
  /// "density", "particles", "").
  void drop_after(const std::string& prefix, const Clock& clock);

  /// Everything so far becomes visible under the file's name, on the disk. Costs a copy of the file.
  void commit();
  /// The last commit of a run that has ended. What the file holds decides its bytes: the same run is the same
  /// file, whenever it committed on its way, and no larger than it need be.
  void finish();
  /// True once 20 times the duration of the last commit has passed since then: whoever commits only then
  /// spends at most 5 % of the time on it, whatever the size of the file.
  bool commit_is_due() const;

 private:
  struct Implementation;
  explicit RunFile(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

struct Series {
  SeriesDescription description;
  std::vector<std::int64_t> step;      ///< (row)
  std::vector<double> time;            ///< (row)
  std::vector<double> value;           ///< (row, column)
  std::vector<double> standard_error;  ///< (row, column) or empty
};

/// Reader; everything by value. Errors: FileError, also for what does not exist.
class RunReader {
 public:
  explicit RunReader(const std::filesystem::path& path);
  ~RunReader();
  RunReader(RunReader&&) noexcept;
  RunReader& operator=(RunReader&&) noexcept;

  Manifest manifest() const;
  std::vector<std::string> series_names() const;  ///< in alphabetical order
  Series series(const std::string& name) const;
  std::vector<Clock> density_clocks() const;  ///< empty when there is no density
  Density density(std::size_t snapshot) const;
  std::vector<Clock> position_clocks() const;
  ParticleEnsemble positions(std::size_t snapshot) const;
  std::optional<Box> box() const;  ///< of the particles

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rieszflow::io
