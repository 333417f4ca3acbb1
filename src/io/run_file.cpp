#include "io/run_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <sstream>
#include <thread>

#include "core/expects.hpp"
#include "io/hdf5.hpp"

namespace rieszflow::io {
namespace {

namespace fs = std::filesystem;
using Stopwatch = std::chrono::steady_clock;

/// Hidden, beside the run file.
fs::path working_path(const fs::path& path) {
  return path.parent_path() / ("." + path.filename().string() + ".working");
}

/// Removes the working file of a killed run; refuses when its run is alive (HDF5 holds a lock on it). Some
/// systems let go of a killed process's lock a moment after they have reported its death: worth a wait.
void remove_stale(const fs::path& path) {
  using namespace std::chrono_literals;
  const fs::path working = working_path(path);
  const int number = ::open(working.c_str(), O_RDWR | O_CLOEXEC);
  if (number < 0) return;
  const auto in_use_now = [&] { return ::flock(number, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; };
  bool in_use = in_use_now();
  for (int wait = 0; in_use && wait < 20; ++wait) {
    std::this_thread::sleep_for(100ms);
    in_use = in_use_now();
  }
  ::close(number);
  if (in_use) throw FileError(path.string() + ": another process is writing this run");
  ::unlink(working.c_str());
}

/// Groups at or below `group` that hold step, time and value.
void collect_elements(const hdf5::File& file, const std::string& group, std::vector<std::string>& out) {
  const std::vector<std::string> members = file.members(group);
  const auto has = [&](const char* name) {
    return std::find(members.begin(), members.end(), name) != members.end();
  };
  if (has("step") && has("time") && has("value")) {
    out.push_back(group);
    return;
  }
  for (const std::string& name : members) collect_elements(file, group + "/" + name, out);
}

std::vector<std::string> elements(const hdf5::File& file) {
  std::vector<std::string> found;
  for (const char* group : {"observables", "density", "particles"}) collect_elements(file, group, found);
  return found;
}

/// What a run file says it holds, on its group h5md: `series` the elements but those of particles, a line
/// each, `replicas` the number of particles/replicaK. A group whose name is damaged is then missing, not
/// absent.
constexpr const char* contents = "h5md";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string replica_group(std::size_t replica) { return fmt::format("particles/replica{}", replica); }

std::string grid_path(const char* name) { return std::string("density/grid/") + name; }

std::vector<std::int64_t> as_integers(std::span<const std::size_t> sizes) {
  return {sizes.begin(), sizes.end()};
}

}  // namespace

/// Rows that wait for the working file, and what the file holds of the same element (H5MD's word for a group
/// with step, time and value).
struct Element {
  hdf5::Shape row_shape;
  bool has_standard_error = false;
  double last_time = -std::numeric_limits<double>::infinity();
  std::vector<std::int64_t> step{};
  std::vector<double> time{};
  std::vector<double> value{};
  std::vector<double> standard_error{};
};

struct RunFile::Implementation {
  fs::path path;
  fs::path working;
  hdf5::File file;
  std::map<std::string, Element> elements{};  ///< by path
  std::size_t waiting = 0;                    ///< values in memory
  std::optional<Box> box{};
  bool periodic = false;
  Stopwatch::time_point last_commit = Stopwatch::now();
  Stopwatch::duration last_commit_took{};

  Implementation(fs::path path_in, hdf5::File file_in)
      : path(std::move(path_in)), working(working_path(path)), file(std::move(file_in)) {}
  ~Implementation() { ::unlink(working.c_str()); }

  /// The element at `group`, made in the file when it is new.
  Element& element(const std::string& group, const hdf5::Shape& row_shape, bool has_standard_error,
                   hdf5::Storage storage, const std::string& units, const std::string& meaning,
                   const std::string& shape_in_words) {
    if (const auto found = elements.find(group); found != elements.end()) return found->second;
    Element element{.row_shape = row_shape, .has_standard_error = has_standard_error};
    if (file.exists(group + "/value")) {
      hdf5::Shape shape = file.shape(group + "/value");
      shape.erase(shape.begin());
      if (shape != row_shape || file.exists(group + "/standard_error") != has_standard_error)
        throw FileError(
            fmt::format("{}: cannot continue {}: its rows have another shape", path.string(), group));
      const std::vector<double> times = file.read(group + "/time");
      if (!times.empty()) element.last_time = times.back();
    } else {
      file.create_integer_rows(group + "/step");
      file.create_rows(group + "/time", {}, hdf5::Storage::Compressed);
      file.create_rows(group + "/value", row_shape, storage);
      if (has_standard_error) file.create_rows(group + "/standard_error", row_shape, storage);
      for (const std::string& object : {group, group + "/value"}) {
        file.set_text(object, "units", units);
        file.set_text(object, "meaning", meaning);
        file.set_text(object, "shape", shape_in_words);
      }
      if (!group.starts_with("particles/")) {
        const bool is_first = !file.has_attribute(contents, "series");
        file.set_text(contents, "series", (is_first ? "" : file.text(contents, "series") + "\n") + group);
      }
    }
    return elements.emplace(group, std::move(element)).first->second;
  }

  void append(Element& element, const Clock& clock, std::span<const double> value,
              std::span<const double> standard_error) {
    expects(clock.time > element.last_time, "the times of a run file's rows increase strictly");
    expects(element.has_standard_error ? standard_error.size() == value.size() : standard_error.empty(),
            "a row has a standard error for each value, or its series has none");
    element.last_time = clock.time;
    element.step.push_back(clock.step);
    element.time.push_back(clock.time);
    element.value.insert(element.value.end(), value.begin(), value.end());
    element.standard_error.insert(element.standard_error.end(), standard_error.begin(), standard_error.end());
    waiting += value.size() + standard_error.size() + 2;
  }

  void write_when_much_waits() {
    constexpr std::size_t much = std::size_t{1} << 20;
    if (waiting > much) write_waiting();
  }

  void write_waiting() {
    for (auto& [group, element] : elements) {
      if (element.time.empty()) continue;
      file.append_rows(group + "/step", std::span<const std::int64_t>(element.step));
      file.append_rows(group + "/time", std::span<const double>(element.time));
      file.append_rows(group + "/value", std::span<const double>(element.value));
      if (element.has_standard_error)
        file.append_rows(group + "/standard_error", std::span<const double>(element.standard_error));
      element.step.clear();
      element.time.clear();
      element.value.clear();
      element.standard_error.clear();
    }
    waiting = 0;
  }

  /// H5MD 1.1 box group; `lower` is ours: H5MD leaves the origin open.
  void write_box(const std::string& particles_group, std::size_t dimension) {
    const std::string group = particles_group + "/box";
    file.make_group(group);
    const std::int64_t space_dimension = static_cast<std::int64_t>(dimension);
    file.set_integers(group, "dimension", {&space_dimension, 1});
    file.set_texts(group, "boundary", std::vector<std::string>(dimension, periodic ? "periodic" : "none"));
    if (!box || file.exists(group + "/edges")) return;
    expects(box->lower.size() == dimension, "the box has the dimension of the particles");
    std::vector<double> edges(dimension);
    for (std::size_t axis = 0; axis < dimension; ++axis) edges[axis] = box->upper[axis] - box->lower[axis];
    file.write(group + "/edges", {dimension}, std::span<const double>(edges));
    file.write(group + "/lower", {dimension}, std::span<const double>(box->lower));
  }
};

RunFile::RunFile(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
RunFile::~RunFile() = default;
RunFile::RunFile(RunFile&&) noexcept = default;
RunFile& RunFile::operator=(RunFile&&) noexcept = default;

void RunFile::expect_no_writer(const fs::path& path) { remove_stale(path); }

RunFile RunFile::create(const fs::path& path, const Manifest& manifest) {
  if (fs::exists(path)) throw FileError(path.string() + ": cannot create: it exists");
  remove_stale(path);
  RunFile run(std::make_unique<Implementation>(path, hdf5::File::create(working_path(path), path)));
  hdf5::File& file = run.implementation_->file;
  // https://www.nongnu.org/h5md/h5md.html, version 1.1
  const auto text_or = [&](const char* name, const char* otherwise) {
    const auto found = manifest.find(name);
    return found != manifest.end() ? found->second : std::string(otherwise);
  };
  file.make_group("h5md/author");
  file.make_group("h5md/creator");
  file.set_integers("h5md", "version", std::vector<std::int64_t>{1, 1});
  file.set_text("h5md/author", "name", text_or("author", "not stated"));
  file.set_text("h5md/creator", "name", "rieszflow");
  file.set_text("h5md/creator", "version", text_or("version", "not stated"));
  file.make_group("observables");
  for (const auto& [name, text] : manifest) file.set_text("/", name, text);
  return run;
}

RunFile RunFile::resume(const fs::path& path) {
  remove_stale(path);
  const fs::path working = working_path(path);
  try {
    copy_content(path, working, path);
    return RunFile(std::make_unique<Implementation>(path, hdf5::File::open_to_write(working, path)));
  } catch (const FileError&) {
    ::unlink(working.c_str());
    throw;
  }
}

void RunFile::append(const SeriesDescription& series, const Clock& clock, std::span<const double> value,
                     std::span<const double> standard_error) {
  expects(value.size() == series.columns, "a row has as many values as its series has columns");
  const hdf5::Shape row_shape = series.columns == 1 ? hdf5::Shape{} : hdf5::Shape{series.columns};
  Element& element = implementation_->element(
      "observables/" + series.name, row_shape, series.has_standard_error, hdf5::Storage::Compressed,
      series.units, series.meaning, series.columns == 1 ? "(row)" : "(row, column)");
  implementation_->append(element, clock, value, standard_error);
  implementation_->write_when_much_waits();
}

void RunFile::append_density(const Clock& clock, const Density& density) {
  const Grid& grid = density.grid;
  hdf5::File& file = implementation_->file;
  Element& element = implementation_->element(
      "density", grid.cells, false, hdf5::Storage::Compressed, "1 / length^dimension",
      "cell averages of the probability density; the grid is in density/grid",
      "(row, cell of axis 0, axis 1, ...)");
  expects(density.averages.size() ==
              std::accumulate(grid.cells.begin(), grid.cells.end(), std::size_t{1}, std::multiplies<>()),
          "a density has one average per cell");
  expects(element.row_shape == grid.cells, "all densities of a run have one grid");
  if (!file.exists(grid_path("cells"))) {
    file.write(grid_path("lower"), {grid.lower.size()}, std::span<const double>(grid.lower));
    file.write(grid_path("upper"), {grid.upper.size()}, std::span<const double>(grid.upper));
    file.write(grid_path("cells"), {grid.cells.size()},
               std::span<const std::int64_t>(as_integers(grid.cells)));
    const std::int64_t periodic = grid.periodic ? 1 : 0;
    file.set_integers("density/grid", "periodic", {&periodic, 1});
    if (!grid.volume_fractions.empty())
      file.write(grid_path("volume_fractions"), grid.cells, std::span<const double>(grid.volume_fractions));
  }
  implementation_->append(element, clock, density.averages, {});
  implementation_->write_when_much_waits();
}

void RunFile::append_positions(const Clock& clock, const ParticleEnsemble& ensemble) {
  expects(ensemble.particle_count > 0 && ensemble.dimension > 0, "an ensemble has particles and a dimension");
  if (!implementation_->file.exists(replica_group(0))) {
    const auto replicas = static_cast<std::int64_t>(ensemble.replica_count);
    implementation_->file.set_integers(contents, "replicas", {&replicas, 1});
  }
  for (std::size_t replica = 0; replica < ensemble.replica_count; ++replica) {
    const std::string group = replica_group(replica);
    const bool is_new = !implementation_->file.exists(group + "/box");
    Element& element = implementation_->element(
        group + "/position", {ensemble.particle_count, ensemble.dimension}, false, hdf5::Storage::Plain,
        "length", "particle positions", "(row, particle, dimension)");
    if (is_new) implementation_->write_box(group, ensemble.dimension);
    implementation_->append(element, clock, ensemble.replica(replica), {});
  }
  implementation_->write_when_much_waits();
}

void RunFile::set_box(const Box& box, bool periodic) {
  implementation_->box = box;
  implementation_->periodic = periodic;
  for (const std::string& name : implementation_->file.members("particles"))
    implementation_->write_box("particles/" + name, box.lower.size());
}

void RunFile::set_attribute(const std::string& name, const std::string& text) {
  implementation_->file.set_text("/", name, text);
}

void RunFile::drop_after(const std::string& prefix, const Clock& clock) {
  implementation_->write_waiting();
  hdf5::File& file = implementation_->file;
  for (const std::string& group : elements(file)) {
    if (!group.starts_with(prefix)) continue;
    const std::vector<double> times = file.read(group + "/time");
    const auto first_later =
        std::find_if(times.begin(), times.end(), [&](double time) { return time > clock.time; });
    const auto kept = static_cast<std::size_t>(first_later - times.begin());
    for (const std::string& name : file.members(group))
      if (name == "step" || name == "time" || name == "value" || name == "standard_error")
        file.truncate_rows(group + "/" + name, kept);
    implementation_->elements.erase(group);  // read again with the next row
  }
}

void RunFile::commit() {
  const auto begin = Stopwatch::now();
  implementation_->write_waiting();
  implementation_->file.flush();
  Replacement replacement(implementation_->path);
  copy_content(implementation_->working, replacement.temporary(), implementation_->path);
  replacement.publish();
  implementation_->last_commit = Stopwatch::now();
  implementation_->last_commit_took = implementation_->last_commit - begin;
}

void RunFile::finish() {
  implementation_->write_waiting();
  Replacement replacement(implementation_->path);
  implementation_->file.copy_compactly(replacement.temporary(), implementation_->path);
  replacement.publish();
}

bool RunFile::commit_is_due() const {
  return Stopwatch::now() - implementation_->last_commit >= 20 * implementation_->last_commit_took;
}

struct RunReader::Implementation {
  fs::path path;
  hdf5::File file;

  std::vector<Clock> clocks(const std::string& group) const {
    std::vector<Clock> clocks;
    if (!file.exists(group + "/step")) return clocks;
    const std::vector<std::int64_t> steps = file.read_integers(group + "/step");
    const std::vector<double> times = file.read(group + "/time");
    check(steps.size() == times.size(), group, "step and time have different lengths");
    for (std::size_t row = 0; row < steps.size(); ++row)
      clocks.push_back({.step = steps[row], .time = times[row]});
    return clocks;
  }

  void check(bool condition, const std::string& group, const char* why) const {
    if (!condition) throw FileError(fmt::format("{}: cannot read {}: {}", path.string(), group, why));
  }
};

RunReader::RunReader(const fs::path& path)
    : implementation_(new Implementation{.path = path, .file = hdf5::File::open_to_read(path)}) {
  const hdf5::File& file = implementation_->file;
  implementation_->check(file.exists(contents), contents, "this is not a run file");
  const auto require = [&](const std::string& group) {
    implementation_->check(file.exists(group), group,
                           "the file counts it among its contents, but it is missing: damaged");
  };
  if (file.has_attribute(contents, "series"))
    for (const std::string& group : lines_of(file.text(contents, "series"))) require(group);
  if (!file.has_attribute(contents, "replicas")) return;
  const std::vector<std::int64_t> replicas = file.integers(contents, "replicas");
  implementation_->check(replicas.size() == 1, contents, "the number of replicas is not one number");
  for (std::int64_t replica = 0; replica < replicas[0]; ++replica)
    require(replica_group(static_cast<std::size_t>(replica)) + "/position");
}
RunReader::~RunReader() = default;
RunReader::RunReader(RunReader&&) noexcept = default;
RunReader& RunReader::operator=(RunReader&&) noexcept = default;

Manifest RunReader::manifest() const {
  Manifest manifest;
  for (const std::string& name : implementation_->file.text_attributes("/"))
    manifest[name] = implementation_->file.text("/", name);
  return manifest;
}

std::vector<std::string> RunReader::series_names() const {
  std::vector<std::string> names;
  collect_elements(implementation_->file, "observables", names);
  for (std::string& name : names) name.erase(0, std::string("observables/").size());
  return names;
}

Series RunReader::series(const std::string& name) const {
  const hdf5::File& file = implementation_->file;
  const std::string group = "observables/" + name;
  Series series;
  series.step = file.read_integers(group + "/step");
  series.time = file.read(group + "/time");
  series.value = file.read(group + "/value");
  const hdf5::Shape shape = file.shape(group + "/value");
  series.description = {.name = name,
                        .units = file.text(group, "units"),
                        .meaning = file.text(group, "meaning"),
                        .columns = shape.size() > 1 ? shape[1] : 1,
                        .has_standard_error = file.exists(group + "/standard_error")};
  if (series.description.has_standard_error) series.standard_error = file.read(group + "/standard_error");
  const std::size_t rows = series.time.size();
  implementation_->check(
      series.step.size() == rows && series.value.size() == rows * series.description.columns &&
          (series.standard_error.empty() || series.standard_error.size() == series.value.size()),
      group, "its parts have different lengths");
  return series;
}

std::vector<Clock> RunReader::density_clocks() const { return implementation_->clocks("density"); }

Density RunReader::density(std::size_t snapshot) const {
  const hdf5::File& file = implementation_->file;
  Density density;
  Grid& grid = density.grid;
  grid.lower = file.read(grid_path("lower"));
  grid.upper = file.read(grid_path("upper"));
  for (const std::int64_t cells : file.read_integers(grid_path("cells")))
    grid.cells.push_back(static_cast<std::size_t>(cells));
  grid.periodic = file.integers("density/grid", "periodic") == std::vector<std::int64_t>{1};
  if (file.exists(grid_path("volume_fractions")))
    grid.volume_fractions = file.read(grid_path("volume_fractions"));
  hdf5::Shape shape = file.shape("density/value");
  implementation_->check(!shape.empty() && hdf5::Shape(shape.begin() + 1, shape.end()) == grid.cells &&
                             grid.lower.size() == grid.cells.size() && grid.upper.size() == grid.cells.size(),
                         "density", "grid and values do not fit");
  density.averages = file.read_row("density/value", snapshot);
  implementation_->check(
      grid.volume_fractions.empty() || grid.volume_fractions.size() == density.averages.size(),
      "density/grid", "grid and volume fractions do not fit");
  return density;
}

std::vector<Clock> RunReader::position_clocks() const {
  return implementation_->clocks(replica_group(0) + "/position");
}

ParticleEnsemble RunReader::positions(std::size_t snapshot) const {
  const hdf5::File& file = implementation_->file;
  ParticleEnsemble ensemble;
  for (; file.exists(replica_group(ensemble.replica_count)); ++ensemble.replica_count) {
    const std::string value = replica_group(ensemble.replica_count) + "/position/value";
    const hdf5::Shape shape = file.shape(value);
    implementation_->check(shape.size() == 3, value, "it is not (row, particle, dimension)");
    if (ensemble.replica_count == 0) {
      ensemble.particle_count = shape[1];
      ensemble.dimension = shape[2];
    }
    implementation_->check(shape[1] == ensemble.particle_count && shape[2] == ensemble.dimension, value,
                           "the replicas have different shapes");
    const std::vector<double> positions = file.read_row(value, snapshot);
    ensemble.positions.insert(ensemble.positions.end(), positions.begin(), positions.end());
  }
  implementation_->check(ensemble.replica_count > 0, "particles", "there are none");
  return ensemble;
}

std::optional<Box> RunReader::box() const {
  const hdf5::File& file = implementation_->file;
  const std::string group = replica_group(0) + "/box";
  if (!file.exists(group + "/edges") || !file.exists(group + "/lower")) return std::nullopt;
  Box box{.lower = file.read(group + "/lower"), .upper = file.read(group + "/edges")};
  implementation_->check(box.lower.size() == box.upper.size(), group, "edges and lower do not fit");
  for (std::size_t axis = 0; axis < box.lower.size(); ++axis) box.upper[axis] += box.lower[axis];
  return box;
}

}  // namespace rieszflow::io
