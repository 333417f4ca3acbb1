// The Python module `rieszflow`: runs a config or a dict, steps a model, and shows its state as NumPy arrays.
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/result_folder.hpp"
#include "core/build_info.hpp"
#include "experiments/assemble.hpp"
#include "experiments/side_by_side.hpp"
#include "io/files.hpp"
#include "io/run_file.hpp"
#include "model/mean_field.hpp"
#include "summation/energy.hpp"

namespace py = pybind11;

namespace rieszflow::python {
namespace {

// ------------------------------------------------------------------------------------------------ configs

std::string json_text(const py::handle& value) {
  return py::str(py::module_::import("json").attr("dumps")(value));
}

/// A value as TOML writes it.
std::string toml_value(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>() ? "true" : "false";
  if (py::isinstance<py::int_>(value)) return py::str(value);
  if (py::isinstance<py::float_>(value)) {
    const auto number = value.cast<double>();
    return std::isnan(number)   ? "nan"
           : std::isinf(number) ? (number > 0 ? "inf" : "-inf")
                                : std::string(py::repr(value));
  }
  if (py::isinstance<py::str>(value)) return json_text(value);  // JSON's escapes are TOML's
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    std::string text = "[";
    for (const py::handle item : value) text += (text.size() > 1 ? ", " : "") + toml_value(item);
    return text + "]";
  }
  throw py::type_error("a config holds dicts, lists, texts, numbers and booleans, not " +
                       std::string(py::str(value.get_type())));
}

bool is_list_of_tables(const py::handle& value) {
  if (!py::isinstance<py::list>(value) || py::len(value) == 0) return false;
  for (const py::handle item : value)
    if (!py::isinstance<py::dict>(item)) return false;
  return true;
}

/// A dict as a TOML table: plain keys first, then the tables below it.
void append_toml(std::string& text, const py::dict& table, const std::string& path) {
  for (const auto& [key, value] : table)
    if (!py::isinstance<py::dict>(value) && !is_list_of_tables(value))
      text += json_text(key) + " = " + toml_value(value) + "\n";
  for (const auto& [key, value] : table) {
    const std::string below = path + (path.empty() ? "" : ".") + json_text(key);
    if (py::isinstance<py::dict>(value)) {
      text += "[" + below + "]\n";
      append_toml(text, value.cast<py::dict>(), below);
    } else if (is_list_of_tables(value)) {
      for (const py::handle item : value) {
        text += "[[" + below + "]]\n";
        append_toml(text, item.cast<py::dict>(), below);
      }
    }
  }
}

/// The config as a file: that of the user, or one made of a dict that goes when this object goes.
class ConfigFile {
 public:
  explicit ConfigFile(const py::object& config) {
    if (!py::isinstance<py::dict>(config)) {
      path_ = config.cast<std::filesystem::path>();
      return;
    }
    std::string text;
    append_toml(text, config.cast<py::dict>(), "");
    const py::object folder = py::module_::import("tempfile").attr("mkdtemp")("", "rieszflow_");
    made_ = folder.cast<std::filesystem::path>();
    path_ = *made_ / "python.toml";
    io::write_text(path_, text);
  }
  ~ConfigFile() {
    std::error_code ignored;
    if (made_) std::filesystem::remove_all(*made_, ignored);
  }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::optional<std::filesystem::path> made_;
};

Assembly assembly_of(const py::object& config, const py::dict& overrides, std::optional<std::int64_t> seed,
                     int threads) {
  std::vector<std::string> words;
  for (const auto& [key, value] : overrides)
    words.push_back(std::string(py::str(key)) + "=" + toml_value(value));
  const ConfigFile file(config);
  return assemble(Request{.config = file.path(), .overrides = words, .seed = seed, .threads = threads});
}

// ------------------------------------------------------------------------------------------------ arrays

/// Read-only view of numbers that `owner` keeps alive.
template <class Owner>
py::array view(const std::vector<double>& numbers, std::vector<py::ssize_t> shape,
               std::shared_ptr<Owner> owner) {
  auto* keeper = new std::shared_ptr<Owner>(std::move(owner));
  py::capsule capsule(keeper, [](void* pointer) { delete static_cast<std::shared_ptr<Owner>*>(pointer); });
  py::array_t<double> array(std::move(shape), numbers.data(), capsule);
  array.attr("flags").attr("writeable") = false;
  return array;
}

py::dict energy_dict(const FreeEnergy& energy) {
  py::dict result;
  result["potential_energy"] = energy.potential_energy;
  result["interaction_energy"] = energy.interaction_energy;
  result["entropy"] = energy.entropy;
  result["free_energy"] = energy.free_energy;
  return result;
}

/// True when Python has an exception waiting (Ctrl-C): the run stops with Interrupted.
bool python_interrupts() {
  const py::gil_scoped_acquire lock;
  return PyErr_CheckSignals() != 0;
}

/// Mathematics' fault as an exception of Python: the state is the last good one.
void require_completed(const RunResult& result, const char* side) {
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (result.status != RunStatus::Completed)
    throw std::runtime_error(fmt::format("{}: {}: {}", side, name(result.status), result.message));
}

// ------------------------------------------------------------------------------------------------ a model
// that is stepped

/// Both sides of a config, moved by hand. A view that Python holds is a snapshot: the next `advance` moves on
/// in memory of its own, and nothing is copied while nobody looks.
class Simulation {
 public:
  Simulation(const py::object& config, const py::dict& overrides, std::optional<std::int64_t> seed,
             int threads)
      : question_(assembly_of(config, overrides, seed, threads).question) {
    if (question_.density) {
      field_.emplace(question_.model, grid_on(question_.model.domain, question_.density->cells),
                     MeanField::Options{.threads = threads, .weights = question_.density->weights});
      density_ = std::make_shared<pde::State>();
      density_->density = cell_averages(question_.initial, question_.model.domain, field_->grid());
    }
    if (question_.particles) {
      const side_by_side::ParticleSide& side = *question_.particles;
      particles_ = std::make_shared<particle::State>();
      particles_->ensemble =
          sample(question_.initial, question_.model.domain, side.replicas, side.count, question_.seed);
    }
  }

  double time() const { return time_; }

  void advance(double duration) {
    if (!(duration > 0.0)) throw py::value_error("advance(duration): the duration must be > 0");
    const double target = time_ + duration;
    const Schedule schedule = Schedule::at({time_, target});
    const StopRule stop = [](const Clock&) {
      return python_interrupts() ? std::optional(RunStatus::Interrupted) : std::nullopt;
    };
    const auto own = [](auto& state) {
      if (state.use_count() > 1) state = std::make_shared<std::decay_t<decltype(*state)>>(*state);
    };
    if (density_) {
      own(density_);
      const auto result = [&] {
        const py::gil_scoped_release unlocked;
        return pde::run(*field_, *density_, question_.density->options, schedule, {}, stop);
      }();
      require_completed(result, "density");
    }
    if (particles_) {
      own(particles_);
      const auto result = [&] {
        const py::gil_scoped_release unlocked;
        return particle::run(question_.model, *particles_, question_.particles->options, schedule, {}, stop);
      }();
      require_completed(result, "particles");
    }
    time_ = target;
  }

  py::object positions() const {
    if (!particles_) return py::none();
    const ParticleEnsemble& e = particles_->ensemble;
    const auto size = [](std::size_t n) { return static_cast<py::ssize_t>(n); };
    return view(e.positions, {size(e.replica_count), size(e.particle_count), size(e.dimension)}, particles_);
  }

  py::object density() const {
    if (!density_) return py::none();
    const Grid& grid = density_->density.grid;
    return view(density_->density.averages, {grid.cells.begin(), grid.cells.end()}, density_);
  }

  py::list axes() const {
    py::list list;
    if (!density_) return list;
    const Grid& grid = density_->density.grid;
    for (std::size_t axis = 0; axis < grid.dimension(); ++axis) {
      py::array_t<double> centers(static_cast<py::ssize_t>(grid.cells[axis]));
      for (std::size_t i = 0; i < grid.cells[axis]; ++i)
        centers.mutable_at(static_cast<py::ssize_t>(i)) =
            grid.lower[axis] + (static_cast<double>(i) + 0.5) * grid.spacing(axis);
      list.append(centers);
    }
    return list;
  }

  py::object free_energy() const {
    if (!density_) return py::none();
    return energy_dict(field_->free_energy(density_->density));
  }

 private:
  side_by_side::Question question_;
  std::optional<MeanField> field_;
  std::shared_ptr<pde::State> density_;
  std::shared_ptr<particle::State> particles_;
  double time_ = 0.0;
};

// ------------------------------------------------------------------------------------------------ results

/// A result folder of `rieszflow run`.
class Result {
 public:
  explicit Result(const std::filesystem::path& folder) : folder_(folder), reader_(folder / "run.h5") {}

  const std::filesystem::path& folder() const { return folder_; }
  py::object summary() const {
    return py::module_::import("json").attr("loads")(
        py::module_::import("pathlib").attr("Path")(folder_ / "summary.json").attr("read_text")());
  }
  std::vector<std::string> names() const { return reader_.series_names(); }

  py::dict series(const std::string& name) const {
    const auto data = std::make_shared<io::Series>(reader_.series(name));
    const auto rows = static_cast<py::ssize_t>(data->time.size()),
               columns = static_cast<py::ssize_t>(data->description.columns);
    const auto shape =
        columns == 1 ? std::vector<py::ssize_t>{rows} : std::vector<py::ssize_t>{rows, columns};
    py::dict result;
    result["time"] = view(data->time, {rows}, data);
    result["value"] = view(data->value, shape, data);
    if (!data->standard_error.empty()) result["standard_error"] = view(data->standard_error, shape, data);
    result["units"] = data->description.units;
    result["meaning"] = data->description.meaning;
    return result;
  }

 private:
  std::filesystem::path folder_;
  io::RunReader reader_;
};

Result run(const py::object& config, const std::optional<std::filesystem::path>& out,
           const py::dict& overrides, std::optional<std::int64_t> seed, int threads, bool force,
           bool resume) {
  const Assembly assembly = assembly_of(config, overrides, seed, threads);
  const std::filesystem::path folder = out.value_or(std::filesystem::path("out") / assembly.question.name);
  cli::ExperimentOptions options;
  options.resume = resume;
  options.force = force;
  const bool resumes = cli::prepare_folder(folder, options, assembly.resolved);
  const BuildInfo& info = build_info();
  const side_by_side::Outcome outcome = [&] {
    const py::gil_scoped_release unlocked;
    return side_by_side::run(assembly.question,
                             {.directory = folder,
                              .resolved_config = assembly.resolved,
                              .provenance = {{"version", info.version},
                                             {"commit", info.commit},
                                             {"compiler", info.compiler},
                                             {"libraries", info.libraries},
                                             {"command_line", "rieszflow.run of the Python module"}},
                              .resume = resumes,
                              .progress = {},
                              .interrupted = python_interrupts});
  }();
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  return Result(folder);
}

}  // namespace
}  // namespace rieszflow::python

PYBIND11_MODULE(rieszflow, module) {
  using namespace rieszflow;
  using namespace rieszflow::python;
  using namespace py::literals;
  module.doc() = "Particles and densities of one mean-field model, side by side.";
  module.attr("__version__") = build_info().version;
  py::register_exception<config::ConfigError>(module, "ConfigError", PyExc_ValueError);
  py::register_exception<io::FileError>(module, "FileError", PyExc_OSError);

  py::class_<Result>(module, "Result", "A result folder of `rieszflow run`.")
      .def(py::init<std::filesystem::path>(), "folder"_a)
      .def_property_readonly("folder", &Result::folder)
      .def_property_readonly("summary", &Result::summary, "summary.json as a dict")
      .def_property_readonly("status",
                             [](const Result& result) -> py::object { return result.summary()["status"]; })
      .def_property_readonly("names", &Result::names, "names of the series")
      .def("series", &Result::series, "name"_a,
           "dict of arrays: time (row), value (row[, column]), standard_error; units and meaning");

  module.def(
      "run", &python::run, "config"_a, "out"_a = py::none(), "set"_a = py::dict(), "seed"_a = py::none(),
      "threads"_a = 1, "force"_a = false, "resume"_a = false,
      "Runs a config (a path or a dict) like `rieszflow run`. ConfigError says what is wrong with it.");

  py::class_<Simulation>(module, "Simulation", "Both sides of a config, moved by hand.")
      .def(py::init<py::object, py::dict, std::optional<std::int64_t>, int>(), "config"_a,
           "set"_a = py::dict(), "seed"_a = py::none(), "threads"_a = 1)
      .def("advance", &Simulation::advance, "duration"_a,
           "moves both sides by this time; RuntimeError on blow-up")
      .def_property_readonly("time", &Simulation::time)
      .def_property_readonly("positions", &Simulation::positions,
                             "(replica, particle, dimension), read-only view, or None")
      .def_property_readonly("density", &Simulation::density,
                             "cell averages (cell per axis), read-only view, or None")
      .def_property_readonly("axes", &Simulation::axes, "cell centres of each axis")
      .def_property_readonly("free_energy", &Simulation::free_energy,
                             "of the density: potential_energy, interaction_energy, entropy, free_energy");
}
