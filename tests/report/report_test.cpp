#include "experiments/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>

#include "../io/scratch.hpp"
#include "example_run.hpp"
#include "experiments/report_figures.hpp"

namespace {

using namespace rieszflow;
namespace fs = std::filesystem;

std::string page_of(const fs::path& folder, const example::Options& options) {
  example::write(folder, options);
  write_report(folder);
  return io::read_text(folder / "report.html");
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

const report::CaptionedFigure& figure_named(const std::vector<report::Section>& sections,
                                            const std::string& name) {
  for (const report::Section& section : sections)
    for (const report::CaptionedFigure& figure : section.figures)
      if (figure.name == name) return figure;
  throw std::out_of_range(name);
}

template <class Layer>
const Layer& layer(const report::CaptionedFigure& figure) {
  for (const plot::Layer& any : figure.figure.layers)
    if (const auto* found = std::get_if<Layer>(&any)) return *found;
  throw std::out_of_range("no such layer");
}

TEST(Report, IsOneSelfContainedPageWithAllFiguresOfBothSides) {
  const Scratch folder;
  const std::string page = page_of(folder.path(), {});
  EXPECT_FALSE(contains(page, "<script"));
  EXPECT_FALSE(contains(page, "<link"));
  EXPECT_FALSE(contains(page, "http://"));
  EXPECT_FALSE(contains(page, "https://"));
  EXPECT_EQ(count(page, "<img "), count(page, "src=\"data:image/svg+xml;base64,"));
  // Four energies and the dissipation, six states, two distances, two moments.
  EXPECT_EQ(count(page, "<img "), 15u);
  for (const std::string name :
       {"free_energy", "dissipation", "state_0", "state_5", "distance_mmd", "second_moment"})
    EXPECT_TRUE(contains(io::read_text(folder.path() / "figures" / (name + ".svg")), "</svg>")) << name;
  for (const std::string text :
       {"ornstein_uhlenbeck", "Completed.", "V(x) = 1 |x|^2 / 2", "N = 1000 in 4 replicas", "256 cells",
        "How to read this page", "accepted steps", "0123abc", "GCC 12.2"})
    EXPECT_TRUE(contains(page, text)) << text;
}

TEST(Report, IsWellFormed) {
  if (shell("xmllint --version").code != 0) GTEST_SKIP() << "no xmllint";
  for (const example::Options& options :
       {example::Options{}, example::Options{.dimension = 2}, example::Options{.density = false},
        example::Options{.particles = false}, example::Options{.particles = false, .density = false}}) {
    const Scratch folder;
    page_of(folder.path(), options);
    const Command result = shell("xmllint --noout " + quoted(folder.path() / "report.html"));
    EXPECT_EQ(result.code, 0) << result.output;
  }
}

TEST(Report, ShowsTextOfTheUserAsText) {
  const Scratch folder;
  const std::string page = page_of(folder.path(), {});
  EXPECT_TRUE(contains(page, "&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_TRUE(contains(page, "&lt;beta&gt; &amp; &quot;quotes&quot;"));
}

TEST(Report, TellsTheFinalValuesWithTheirErrors) {
  const Scratch folder;
  const std::string page = page_of(folder.path(), {});
  const io::RunReader run(folder.path() / "run.h5");
  const io::Series particles = run.series("particles/free_energy");
  char text[64];
  std::snprintf(text, sizeof text, "−%.4f ± %.4f", -particles.value.back(), particles.standard_error.back());
  EXPECT_TRUE(contains(page, text)) << text;
  std::snprintf(text, sizeof text, "−%.6g", -example::free_energy_at(2.0, 1.0));
  EXPECT_TRUE(contains(page, text)) << text;
  std::snprintf(
      text, sizeof text, "%.1f s.e.",
      std::abs(particles.value.back() - example::free_energy_at(2.0, 1.0)) / particles.standard_error.back());
  EXPECT_TRUE(contains(page, text)) << text;
}

TEST(Report, ShowsParticlesAlone) {
  const Scratch folder;
  const std::string page = page_of(folder.path(), {.replicas = 1, .density = false});
  EXPECT_FALSE(contains(page, "Mass of the density"));
  EXPECT_FALSE(contains(page, "Distance between"));
  EXPECT_TRUE(contains(page, "1000 in 1 replica,"));
  EXPECT_TRUE(fs::exists(folder.path() / "figures" / "free_energy.svg"));
}

TEST(Report, ShowsTheDensityAlone) {
  const Scratch folder;
  const std::string page = page_of(folder.path(), {.particles = false});
  EXPECT_FALSE(contains(page, "replica"));
  EXPECT_TRUE(contains(page, "never increases between outputs"));
  EXPECT_TRUE(fs::exists(folder.path() / "figures" / "dissipation.svg"));
}

TEST(Report, ShowsAnInterruptedRunAndSaysHowToGoOn) {
  const Scratch folder;
  const std::string page =
      page_of(folder.path(), {.status = "interrupted", .density_end = 2.0, .particle_end = 0.6});
  EXPECT_TRUE(contains(page, "Status: interrupted"));
  EXPECT_TRUE(contains(page, "--resume"));
  EXPECT_TRUE(contains(page, "Particles at t = 0.55, density at t = 2: not comparable"));
  EXPECT_FALSE(contains(page, " s.e."));
}

TEST(Report, IsMadeForARunWithoutAnyRow) {
  const Scratch folder;
  const std::string page =
      page_of(folder.path(), {.particles = false, .density = false, .status = "running"});
  EXPECT_TRUE(contains(page, "no snapshot yet"));
}

TEST(Report, IsRebuiltWithTheSameBytesInAnyLocale) {
  const Scratch folder;
  const std::string page = page_of(folder.path(), {});
  if (std::setlocale(LC_ALL, "de_DE.UTF-8") == nullptr) GTEST_SKIP() << "no locale de_DE.UTF-8";
  write_report(folder.path());
  std::setlocale(LC_ALL, "C");
  EXPECT_TRUE(io::read_text(folder.path() / "report.html") == page);
}

TEST(Report, NamesTheFileThatIsMissingOrBroken) {
  const Scratch folder;
  EXPECT_THROW(write_report(folder.path()), io::FileError);
  example::write(folder.path(), {.particles = false});
  io::write_text(folder.path() / "summary.json", "{\"status\": ");
  try {
    write_report(folder.path());
    FAIL();
  } catch (const io::FileError& error) {
    EXPECT_TRUE(contains(error.what(), "summary.json"));
  }
}

TEST(ReportFigures, HistogramsHaveMassOneAndLieUnderTheDensity) {
  const Scratch folder;
  example::write(folder.path(), {});
  const auto sections = report::sections(io::RunReader(folder.path() / "run.h5"));
  const auto& figure = figure_named(sections, "state_5");
  const auto& steps = layer<plot::Steps>(figure);
  const auto& line = layer<plot::Curve>(figure);
  const double width = (steps.upper - steps.lower) / static_cast<double>(steps.heights.size());
  double histogram_mass = 0.0, line_mass = 0.0, mean = 0.0;
  for (std::size_t bin = 0; bin < steps.heights.size(); ++bin) {
    histogram_mass += width * steps.heights[bin];
    mean += width * steps.heights[bin] * (steps.lower + (static_cast<double>(bin) + 0.5) * width);
  }
  for (const double value : line.y) line_mass += value * 6.0 / static_cast<double>(line.y.size());
  EXPECT_NEAR(histogram_mass, 1.0, 1e-12);
  EXPECT_NEAR(line_mass, 1.0, 1e-6);  // the Gaussian beyond |x| = 3
  // 4000 samples of standard deviation 0.577, and bins.
  EXPECT_NEAR(mean, example::mean_at(2.0), 5 * 0.577 / std::sqrt(4000.0));
}

TEST(ReportFigures, DifferencesOfTheFreeEnergyLieOnTheDissipation) {
  const Scratch folder;
  example::write(folder.path(), {.particles = false});
  const auto sections = report::sections(io::RunReader(folder.path() / "run.h5"));
  const auto& slope = layer<plot::Markers>(figure_named(sections, "dissipation"));
  ASSERT_EQ(slope.x.size(), 40u);
  for (std::size_t row = 0; row < slope.x.size(); ++row) {
    const double v = example::variance_at(slope.x[row]), m = example::mean_at(slope.x[row]);
    const double dissipation = m * m + std::pow(1.5 * v - 0.5, 2) / v;
    // Central difference over 0.05: relative error (0.05)^2 / 24 times the third derivative; terms beyond
    // exp(-9 t) are small.
    EXPECT_NEAR(slope.y[row], dissipation, 0.05 * 0.05 / 24 * 81 * dissipation + 1e-12);
  }
}

TEST(ReportFigures, MarginalsOfASolidDensityHaveMassOne) {
  const Scratch folder;
  example::write(folder.path(), {.dimension = 3, .replicas = 1});
  const auto sections = report::sections(io::RunReader(folder.path() / "run.h5"));
  for (const char* name : {"state_0", "state_1", "state_2"}) {
    const auto& line = layer<plot::Curve>(figure_named(sections, name));
    double mass = 0.0, mean = 0.0;
    for (std::size_t i = 0; i < line.y.size(); ++i) {
      mass += line.y[i] * 6.0 / 16.0;
      mean += line.y[i] * line.x[i] * 6.0 / 16.0;
    }
    EXPECT_NEAR(mass, 1.0, 1e-5) << name;
    EXPECT_NEAR(mean, name == std::string("state_0") ? example::mean_at(2.0) : 0.0, 1e-5) << name;
  }
}

TEST(ReportFigures, HeatMapsKeepTheValuesAndLeaveTheOutsideOfABallWhite) {
  const Scratch folder;
  io::RunFile run = io::RunFile::create(folder.path() / "run.h5", {});
  const Grid grid{
      .lower = {-1, -1}, .upper = {1, 1}, .cells = {2, 3}, .volume_fractions = {0, 1, 0.5, 1, 1, 1}};
  const Density density{.grid = grid, .averages = {9, 1, 2, 3, 4, 5}};
  run.append_density({}, density);
  run.commit();
  const auto sections = report::sections(io::RunReader(folder.path() / "run.h5"));
  const auto& map = layer<plot::HeatMap>(figure_named(sections, "state_0"));
  ASSERT_EQ(map.values.size(), 6U);
  EXPECT_TRUE(std::isnan(map.values[0]));
  for (std::size_t k = 1; k < 6; ++k) EXPECT_EQ(map.values[k], density.averages[k]) << k;
}

TEST(ReportFigures, ShowEveryDistanceWithItsReference) {
  const Scratch folder;
  example::write(folder.path(), {});
  const io::RunReader run(folder.path() / "run.h5");
  EXPECT_EQ(report::distances(run), (std::vector<std::string>{"mmd", "wasserstein_1"}));
  EXPECT_EQ(figure_named(report::sections(run), "distance_mmd").figure.layers.size(), 2u);
}

}  // namespace
