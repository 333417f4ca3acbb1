#include "io/vtk_export.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <vtkCellData.h>
#include <vtkDoubleArray.h>
#include <vtkFieldData.h>
#include <vtkIdTypeArray.h>
#include <vtkImageData.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkXMLImageDataReader.h>
#include <vtkXMLPolyDataReader.h>

#include <algorithm>
#include <charconv>
#include <clocale>
#include <cmath>
#include <csignal>
#include <locale>
#include <vector>

#include "io/run_file.hpp"
#include "scratch.hpp"

namespace {

using namespace rieszflow;
using namespace rieszflow::io;
namespace fs = std::filesystem;

/// Uneven times: none of them is a short decimal.
std::vector<double> uneven_times(int count) {
  std::vector<double> times;
  for (int index = 0; index < count; ++index) times.push_back(std::expm1(0.37 * index) / 3.0);
  return times;
}

Grid grid_of(std::vector<std::size_t> cells) {
  Grid grid{.lower = {}, .upper = {}, .cells = std::move(cells)};
  for (std::size_t axis = 0; axis < grid.cells.size(); ++axis) {
    grid.lower.push_back(-1.0 - static_cast<double>(axis));
    grid.upper.push_back(2.0 + static_cast<double>(axis * axis));
  }
  return grid;
}

/// Runs with densities on `cells` and 2 replicas of 3 particles.
fs::path write_run(const fs::path& folder, std::vector<std::size_t> cells, const std::vector<double>& times) {
  const fs::path path = folder / "run.h5";
  RunFile run = RunFile::create(path, {});
  Density density{.grid = grid_of(std::move(cells)), .averages = {}};
  const std::size_t dimension = density.grid.dimension();
  density.averages.assign(density.grid.cell_count(), 0.0);
  for (std::size_t index = 0; index < times.size(); ++index) {
    const Clock clock{.step = static_cast<std::int64_t>(index), .time = times[index]};
    for (std::size_t cell = 0; cell < density.averages.size(); ++cell)
      density.averages[cell] = static_cast<double>(cell) / 7.0 + static_cast<double>(index);
    run.append_density(clock, density);
    ParticleEnsemble ensemble{
        .replica_count = 2, .particle_count = 3, .dimension = dimension, .positions = {}};
    for (std::size_t value = 0; value < 6 * dimension; ++value)
      ensemble.positions.push_back(static_cast<double>(value) / 11.0);
    run.append_positions(clock, ensemble);
  }
  run.commit();
  return path;
}

/// The values of timestep="..." in order.
std::vector<double> times_in(const std::string& collection) {
  std::vector<double> times;
  const std::string marker = "timestep=\"";
  for (auto at = collection.find(marker); at != std::string::npos; at = collection.find(marker, at + 1)) {
    double time = std::nan("");
    std::from_chars(collection.data() + at + marker.size(), collection.data() + collection.size(), time);
    times.push_back(time);
  }
  return times;
}

TEST(VtkExport, GivesCellDataBackOnAGridWithThreeDifferentAxes) {
  const Scratch folder;
  export_vtk(RunReader(write_run(folder.path(), {2, 3, 4}, {0.0, 0.5})), folder.path() / "vtk");
  vtkNew<vtkXMLImageDataReader> reader;
  reader->SetFileName((folder.path() / "vtk" / "density" / "density_000001.vti").c_str());
  reader->Update();
  vtkImageData* image = reader->GetOutput();
  int extent[6];
  image->GetExtent(extent);
  EXPECT_EQ(std::vector<int>(extent, extent + 6), (std::vector<int>{0, 2, 0, 3, 0, 4}));
  ASSERT_EQ(image->GetNumberOfCells(), 24);
  EXPECT_EQ(image->GetPointData()->GetNumberOfArrays(), 0) << "densities are cell data";
  const Grid grid = grid_of({2, 3, 4});
  auto* values = vtkDoubleArray::SafeDownCast(image->GetCellData()->GetArray("density"));
  ASSERT_NE(values, nullptr);
  for (vtkIdType cell = 0; cell < 24; ++cell) {
    double bounds[6];
    image->GetCellBounds(cell, bounds);
    std::vector<std::size_t> index;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double center = 0.5 * (bounds[2 * axis] + bounds[2 * axis + 1]);
      index.push_back(static_cast<std::size_t>((center - grid.lower[axis]) / grid.spacing(axis)));
      // VTK writes origin and spacing with 11 digits.
      EXPECT_NEAR(center, grid.center(axis, index.back()), 1e-9);
    }
    const std::size_t ours = (index[0] * 3 + index[1]) * 4 + index[2];
    EXPECT_EQ(values->GetValue(cell), static_cast<double>(ours) / 7.0 + 1.0);
  }
  EXPECT_EQ(image->GetFieldData()->GetArray("TimeValue")->GetTuple1(0), 0.5);
}

TEST(VtkExport, WritesOneCellPerCellInOneAndTwoDimensions) {
  for (const std::vector<std::size_t>& cells :
       {std::vector<std::size_t>{5}, std::vector<std::size_t>{3, 2}}) {
    const Scratch folder;
    export_vtk(RunReader(write_run(folder.path(), cells, {0.0})), folder.path());
    vtkNew<vtkXMLImageDataReader> reader;
    reader->SetFileName((folder.path() / "density" / "density_000000.vti").c_str());
    reader->Update();
    vtkImageData* image = reader->GetOutput();
    const auto count = static_cast<vtkIdType>(grid_of(cells).cell_count());
    ASSERT_EQ(image->GetNumberOfCells(), count);
    ASSERT_EQ(image->GetCellData()->GetArray("density")->GetNumberOfTuples(), count);
    double bounds[6];
    image->GetCellBounds(1, bounds);  // the second cell along the first axis
    EXPECT_NEAR(bounds[0], -1.0 + grid_of(cells).spacing(0), 1e-9);
    EXPECT_EQ(image->GetCellData()->GetArray("density")->GetTuple1(1),
              cells.size() == 1 ? 1.0 / 7.0 : static_cast<double>(cells[1]) / 7.0);
  }
}

TEST(VtkExport, GivesParticlesBackWithTheirReplicas) {
  const Scratch folder;
  export_vtk(RunReader(write_run(folder.path(), {2, 2}, {0.0})), folder.path());
  vtkNew<vtkXMLPolyDataReader> reader;
  reader->SetFileName((folder.path() / "particles" / "particles_000000.vtp").c_str());
  reader->Update();
  vtkPolyData* cloud = reader->GetOutput();
  ASSERT_EQ(cloud->GetNumberOfPoints(), 6);
  EXPECT_EQ(cloud->GetNumberOfVerts(), 6);
  for (vtkIdType point = 0; point < 6; ++point) {
    EXPECT_EQ(cloud->GetPoint(point)[0], static_cast<double>(2 * point) / 11.0);
    EXPECT_EQ(cloud->GetPoint(point)[1], static_cast<double>(2 * point + 1) / 11.0);
    EXPECT_EQ(cloud->GetPoint(point)[2], 0.0);
    EXPECT_EQ(cloud->GetPointData()->GetArray("replica")->GetTuple1(point), point < 3 ? 0 : 1);
    EXPECT_EQ(cloud->GetPointData()->GetArray("particle")->GetTuple1(point), point % 3);
  }
}

TEST(VtkExport, KeepsAllCoordinatesBeyondThreeDimensions) {
  const Scratch folder;
  RunFile run = RunFile::create(folder.path() / "run.h5", {});
  run.append_positions(
      {},
      {.replica_count = 1, .particle_count = 2, .dimension = 5, .positions = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
  run.commit();
  export_vtk(RunReader(folder.path() / "run.h5"), folder.path());
  vtkNew<vtkXMLPolyDataReader> reader;
  reader->SetFileName((folder.path() / "particles" / "particles_000000.vtp").c_str());
  reader->Update();
  auto* position = reader->GetOutput()->GetPointData()->GetArray("position");
  ASSERT_NE(position, nullptr);
  EXPECT_EQ(position->GetNumberOfComponents(), 5);
  EXPECT_EQ(position->GetComponent(1, 4), 9.0);
  EXPECT_EQ(reader->GetOutput()->GetPoint(1)[2], 7.0);
}

TEST(VtkExport, WritesExactTimesInOrder) {
  const Scratch folder;
  const std::vector<double> times = uneven_times(12);
  const auto written = export_vtk(RunReader(write_run(folder.path(), {4}, times)), folder.path() / "vtk");
  EXPECT_EQ(written.size(), 26u);
  for (const char* name : {"density.pvd", "particles.pvd"})
    EXPECT_EQ(times_in(read_text(folder.path() / "vtk" / name)), times);
}

TEST(VtkExport, IsTheSameBytesInAnyLocale) {
  const Scratch folder;
  const fs::path path = write_run(folder.path(), {3, 2}, uneven_times(3));
  const auto plain = export_vtk(RunReader(path), folder.path() / "plain");
  if (std::setlocale(LC_ALL, "de_DE.UTF-8") == nullptr) GTEST_SKIP() << "no locale de_DE.UTF-8";
  const std::locale before = std::locale::global(std::locale("de_DE.UTF-8"));
  const auto german = export_vtk(RunReader(path), folder.path() / "german");
  std::locale::global(before);
  std::setlocale(LC_ALL, "C");
  ASSERT_EQ(plain.size(), german.size());
  for (std::size_t index = 0; index < plain.size(); ++index)
    EXPECT_EQ(read_text(plain[index]), read_text(german[index])) << plain[index];
}

TEST(VtkExport, IsValidXml) {
  if (shell("xmllint --version").code != 0) GTEST_SKIP() << "no xmllint";
  const Scratch folder;
  for (const auto& file :
       export_vtk(RunReader(write_run(folder.path(), {30, 20}, {0.0, 1.0})), folder.path())) {
    const Command result = shell("xmllint --noout " + quoted(file));
    EXPECT_EQ(result.code, 0) << result.output;
  }
}

TEST(VtkExport, WritesNothingForAnEmptyRun) {
  const Scratch folder;
  RunFile run = RunFile::create(folder.path() / "run.h5", {});
  run.commit();
  EXPECT_TRUE(export_vtk(RunReader(folder.path() / "run.h5"), folder.path() / "vtk").empty());
  EXPECT_FALSE(fs::exists(folder.path() / "vtk"));
}

TEST(VtkExport, SaysSoWhereItCannotWrite) {
  const Scratch folder;
  const RunReader run(write_run(folder.path(), {2}, {0.0}));
  write_text(folder.path() / "file", "not a folder");
  EXPECT_THROW(export_vtk(run, folder.path() / "file" / "vtk"), FileError);
  EXPECT_THROW(export_vtk(run, folder.path() / "file"), FileError);
}

[[noreturn]] void export_to_a_full_disk(const fs::path& run, const fs::path& folder) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 2000, .rlim_max = 2000};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  try {
    export_vtk(RunReader(run), folder);
  } catch (const FileError& error) {
    const bool named =
        std::string(error.what()).find("density_000000.vti: cannot write") != std::string::npos;
    std::_Exit(named && !fs::exists(folder / "density" / "density_000000.vti") ? 0 : 2);
  }
  std::_Exit(1);
}

TEST(VtkExport, LeavesNoShortFileOnAFullDisk) {
  const Scratch folder;
  const fs::path run = write_run(folder.path(), {100, 100}, {0.0});
  EXPECT_EXIT(export_to_a_full_disk(run, folder.path() / "vtk"), testing::ExitedWithCode(0), "^$");
}

}  // namespace
