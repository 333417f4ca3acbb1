#include "analysis/plot.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "../io/scratch.hpp"

namespace {

using namespace rieszflow;
using namespace rieszflow::plot;

const double nan_value = std::nan("");
const double infinity = std::numeric_limits<double>::infinity();

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A figure with every kind of layer.
Figure example() {
  return {
      .title = "all",
      .x = {.label = "x"},
      .y = {.label = "y"},
      .layers = {Steps{.lower = 0, .upper = 2, .heights = {1, 2}, .label = "steps"},
                 Curve{.x = {0, 1, 2}, .y = {1, 2, 3}, .low = {0, 1, 2}, .high = {2, 3, 4}, .label = "curve"},
                 Markers{.x = {0, 1}, .y = {1, 1}, .error = {0.1, 0.2}, .label = "markers"}}};
}

TEST(Plot, DrawsEveryKindOfLayer) {
  const std::string text = svg(example());
  EXPECT_TRUE(text.starts_with("<?xml"));
  for (const char* label : {"steps", "curve", "markers"}) EXPECT_TRUE(contains(text, label)) << label;
  Figure map{.layers = {HeatMap{
                 .x_range = {0, 1}, .y_range = {0, 1}, .columns = 2, .rows = 1, .values = {1, nan_value}}}};
  EXPECT_TRUE(contains(svg(map), "<image"));
}

TEST(Plot, IsTheSameTextEveryTime) { EXPECT_EQ(svg(example()), svg(example())); }

TEST(Plot, DrawsDegenerateData) {
  for (const bool logarithmic : {false, true}) {
    for (const std::vector<double>& y :
         {std::vector<double>{}, std::vector<double>{0.0}, std::vector<double>{3.0, 3.0},
          std::vector<double>{nan_value, infinity}, std::vector<double>{-1.0, 1e-300},
          std::vector<double>{1e300, 5e-324}, std::vector<double>{1.0, 1.0 + 2e-16}}) {
      std::vector<double> x;
      for (std::size_t i = 0; i < y.size(); ++i) x.push_back(static_cast<double>(i));
      const Figure figure{.y = {.logarithmic = logarithmic},
                          .layers = {Curve{.x = x, .y = y, .low = y, .high = y}}};
      EXPECT_TRUE(contains(svg(figure), "</svg>"));
    }
  }
  EXPECT_TRUE(
      contains(svg({.layers = {HeatMap{
                        .x_range = {0, 1}, .y_range = {0, 1}, .columns = 1, .rows = 1, .values = {0.0}}}}),
               "</svg>"));
}

TEST(Plot, TakesTextLiterally) {
  const Scratch folder;
  const std::string trap = (folder.path() / "trap").string();
  Figure figure = example();
  figure.title = "a_b^c {x} 'q' \"d\" `touch \"" + trap + "\"` <b>&amp; ρ";
  figure.x.label = "'; system('touch \"" + trap + "\"') #";
  std::get<Curve>(figure.layers[1]).label = "line\nplot x; system 'touch \"" + trap + "\"'";
  const std::string text = svg(figure);
  EXPECT_FALSE(std::filesystem::exists(trap));
  EXPECT_TRUE(contains(text, "a_b^c {x} ’q’"));
  EXPECT_TRUE(contains(text, "&lt;b>&amp;amp; ρ"));
}

TEST(Plot, SaysSoWithoutGnuplot) {
  try {
    svg(example(), "/no/such/gnuplot");
    FAIL();
  } catch (const PlotError& error) {
    EXPECT_TRUE(contains(error.what(), "/no/such/gnuplot"));
    EXPECT_TRUE(contains(error.what(), "gnuplot-nox"));
  }
  EXPECT_THROW(svg(example(), "false"), PlotError);
}

}  // namespace
