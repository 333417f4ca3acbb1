#include "io/vtk_export.hpp"

#include <fmt/format.h>
#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkDoubleArray.h>
#include <vtkErrorCode.h>
#include <vtkFieldData.h>
#include <vtkIdTypeArray.h>
#include <vtkImageData.h>
#include <vtkIntArray.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkXMLImageDataWriter.h>
#include <vtkXMLPolyDataWriter.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <functional>

#include "io/run_file.hpp"

namespace rieszflow::io {
namespace {

namespace fs = std::filesystem;

/// Shortest text that reads back as the same number, whatever the locale.
std::string exact(double value) {
  std::array<char, 32> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

/// ParaView's own mark of the time of a data set.
void set_time(vtkDataObject& data, double time) {
  vtkNew<vtkDoubleArray> array;
  array->SetName("TimeValue");
  array->InsertNextValue(time);
  data.GetFieldData()->AddArray(array);
}

/// Writes through memory, so that the file appears whole or not at all. Base64 keeps the XML valid.
void write_xml(vtkXMLWriter& writer, const fs::path& path) {
  writer.SetDataModeToAppended();
  writer.EncodeAppendedDataOn();
  writer.SetHeaderTypeToUInt64();
  writer.SetCompressorTypeToZLib();
  writer.WriteToOutputStringOn();
  writer.Write();
  if (const auto code = writer.GetErrorCode(); code != vtkErrorCode::NoError)
    throw FileError(fmt::format("{}: cannot write: VTK's writer stopped with error {}", path.string(), code));
  write_text(path, writer.GetOutputString());
}

/// The array of a cell quantity; ours has the last axis fastest, VTK the first.
vtkNew<vtkDoubleArray> cell_array(const char* name, const Grid& grid, const std::vector<double>& values) {
  std::array<std::size_t, 3> cells{1, 1, 1};
  for (std::size_t axis = 0; axis < grid.dimension(); ++axis) cells[axis] = grid.cells[axis];
  vtkNew<vtkDoubleArray> array;
  array->SetName(name);
  array->SetNumberOfValues(static_cast<vtkIdType>(values.size()));
  vtkIdType index = 0;
  for (std::size_t k = 0; k < cells[2]; ++k)
    for (std::size_t j = 0; j < cells[1]; ++j)
      for (std::size_t i = 0; i < cells[0]; ++i)
        array->SetValue(index++, values[(i * cells[1] + j) * cells[2] + k]);
  return array;
}

/// Cells of a d-dimensional grid in space: the axes beyond d are flat, so that integrals over cells keep
/// their meaning and particles lie in the grid.
void write_density(const Density& density, double time, const fs::path& path) {
  const Grid& grid = density.grid;
  vtkNew<vtkImageData> image;
  std::array<int, 6> extent{};
  std::array<double, 3> origin{};
  std::array<double, 3> spacing{1.0, 1.0, 1.0};
  for (std::size_t axis = 0; axis < grid.dimension(); ++axis) {
    extent[2 * axis + 1] = static_cast<int>(grid.cells[axis]);
    origin[axis] = grid.lower[axis];
    spacing[axis] = grid.spacing(axis);
  }
  image->SetExtent(extent.data());
  image->SetOrigin(origin.data());
  image->SetSpacing(spacing.data());
  image->GetCellData()->SetScalars(cell_array("density", grid, density.averages));
  if (!grid.volume_fractions.empty())
    image->GetCellData()->AddArray(cell_array("volume_fraction", grid, grid.volume_fractions));
  set_time(*image, time);
  vtkNew<vtkXMLImageDataWriter> writer;
  writer->SetInputData(image);
  write_xml(*writer, path);
}

/// Vertices; beyond three dimensions the first three coordinates are drawn and all are in the array
/// `position`.
void write_particles(const ParticleEnsemble& ensemble, double time, const fs::path& path) {
  const std::size_t count = ensemble.replica_count * ensemble.particle_count;
  vtkNew<vtkPoints> points;
  points->SetDataTypeToDouble();
  points->SetNumberOfPoints(static_cast<vtkIdType>(count));
  vtkNew<vtkCellArray> vertices;
  vtkNew<vtkIntArray> replica;
  replica->SetName("replica");
  replica->SetNumberOfValues(static_cast<vtkIdType>(count));
  vtkNew<vtkIdTypeArray> particle;
  particle->SetName("particle");
  particle->SetNumberOfValues(static_cast<vtkIdType>(count));
  for (std::size_t index = 0; index < count; ++index) {
    std::array<double, 3> point{};
    for (std::size_t axis = 0; axis < std::min<std::size_t>(3, ensemble.dimension); ++axis)
      point[axis] = ensemble.positions[index * ensemble.dimension + axis];
    const auto id = static_cast<vtkIdType>(index);
    points->SetPoint(id, point.data());
    vertices->InsertNextCell(1, &id);
    replica->SetValue(id, static_cast<int>(index / ensemble.particle_count));
    particle->SetValue(id, static_cast<vtkIdType>(index % ensemble.particle_count));
  }
  vtkNew<vtkPolyData> cloud;
  cloud->SetPoints(points);
  cloud->SetVerts(vertices);
  cloud->GetPointData()->AddArray(replica);
  cloud->GetPointData()->AddArray(particle);
  if (ensemble.dimension > 3) {
    vtkNew<vtkDoubleArray> position;
    position->SetName("position");
    position->SetNumberOfComponents(static_cast<int>(ensemble.dimension));
    position->SetNumberOfTuples(static_cast<vtkIdType>(count));
    std::copy(ensemble.positions.begin(), ensemble.positions.end(), position->GetPointer(0));
    cloud->GetPointData()->AddArray(position);
  }
  set_time(*cloud, time);
  vtkNew<vtkXMLPolyDataWriter> writer;
  writer->SetInputData(cloud);
  write_xml(*writer, path);
}

/// One file per snapshot in DIR/NAME/, then DIR/NAME.pvd, which lists them with their times.
void export_snapshots(const fs::path& directory, const std::string& name, const std::string& ending,
                      const std::vector<Clock>& clocks,
                      const std::function<void(std::size_t snapshot, double time, const fs::path&)>& write,
                      std::vector<fs::path>& written) {
  if (clocks.empty()) return;
  fs::create_directories(directory / name);
  std::string list = fmt::format(
      "<?xml version=\"1.0\"?>\n"
      "<VTKFile type=\"Collection\" version=\"1.0\" byte_order=\"{}\" header_type=\"UInt64\">\n"
      "  <Collection>\n",
      std::endian::native == std::endian::little ? "LittleEndian" : "BigEndian");
  for (std::size_t snapshot = 0; snapshot < clocks.size(); ++snapshot) {
    const std::string file = fmt::format("{}/{}_{:06}.{}", name, name, snapshot, ending);
    write(snapshot, clocks[snapshot].time, directory / file);
    written.push_back(directory / file);
    list += fmt::format("    <DataSet timestep=\"{}\" group=\"\" part=\"0\" file=\"{}\"/>\n",
                        exact(clocks[snapshot].time), file);
  }
  list += "  </Collection>\n</VTKFile>\n";
  const fs::path collection = directory / (name + ".pvd");
  write_text(collection, list);
  written.push_back(collection);
}

}  // namespace

std::vector<fs::path> export_vtk(const RunReader& run, const fs::path& directory) {
  std::vector<fs::path> written;
  try {
    export_snapshots(
        directory, "density", "vti", run.density_clocks(),
        [&](std::size_t snapshot, double time, const fs::path& path) {
          const Density density = run.density(snapshot);
          if (density.grid.dimension() > 3)
            throw FileError(directory.string() + ": cannot write: ParaView shows at most 3 dimensions");
          write_density(density, time, path);
        },
        written);
    export_snapshots(
        directory, "particles", "vtp", run.position_clocks(),
        [&](std::size_t snapshot, double time, const fs::path& path) {
          write_particles(run.positions(snapshot), time, path);
        },
        written);
  } catch (const fs::filesystem_error& error) {
    throw FileError(fmt::format("{}: cannot create: {}", directory.string(), error.code().message()));
  }
  return written;
}

}  // namespace rieszflow::io
