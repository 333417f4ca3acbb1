#pragma once
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// Figures as data, drawn by gnuplot as SVG on a white card. All texts are plain UTF-8, not markup.
namespace rieszflow::plot {

/// gnuplot is missing or refuses the figure; says which.
class PlotError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The palette of Okabe and Ito, which colour-blind readers can tell apart
/// (https://jfly.uni-koeln.de/color/).
enum class Ink { Blue, Vermillion, Green, Orange, Purple, Sky, Black, Grey };

/// A curve, with a band around it where `low` and `high` are given. Points that are not finite leave a gap.
struct Curve {
  std::vector<double> x;       ///< (point)
  std::vector<double> y;       ///< (point)
  std::vector<double> low{};   ///< (point) or empty
  std::vector<double> high{};  ///< (point) or empty
  std::string label{};         ///< in the legend; none when empty
  Ink ink = Ink::Blue;
  bool dashed = false;
};

/// Points; with vertical bars where `error` is given.
struct Markers {
  std::vector<double> x;        ///< (point)
  std::vector<double> y;        ///< (point)
  std::vector<double> error{};  ///< (point) or empty
  std::string label{};
  Ink ink = Ink::Vermillion;
  double size = 1.0;  ///< of the symbol, in points of gnuplot
  double opacity = 1.0;
};

/// A histogram: filled steps over equal bins.
struct Steps {
  double lower = 0.0;
  double upper = 1.0;
  std::vector<double> heights;  ///< (bin)
  std::string label{};
  Ink ink = Ink::Vermillion;
};

/// Values on a rectangular grid of cells, dark where they are large; NaN cells stay white.
struct HeatMap {
  std::pair<double, double> x_range;
  std::pair<double, double> y_range;
  std::size_t columns = 0;                                    ///< cells along x
  std::size_t rows = 0;                                       ///< cells along y
  std::vector<double> values;                                 ///< (x cell, y cell), y fastest
  std::string label{};                                        ///< of the colour scale
  double largest = std::numeric_limits<double>::quiet_NaN();  ///< darkest value; NaN: that of `values`
};

using Layer = std::variant<Curve, Markers, Steps, HeatMap>;

struct Axis {
  std::string label{};       ///< with units
  bool logarithmic = false;  ///< values that are not positive leave a gap
  /// NaN: fitted to the data.
  double lower = std::numeric_limits<double>::quiet_NaN();
  double upper = std::numeric_limits<double>::quiet_NaN();
};

struct Figure {
  std::string title{};
  Axis x{};
  Axis y{};
  std::vector<Layer> layers{};  ///< drawn in this order
  bool equal_scales = false;    ///< one unit of x is as long as one of y
  int width = 480;              ///< nominal pixels; the SVG scales
  int height = 360;
};

/// The figure as a complete SVG document. Runs gnuplot: the one found when the project was configured, else
/// the one in PATH.
std::string svg(const Figure& figure);

/// The same with another executable.
std::string svg(const Figure& figure, const std::string& gnuplot);

}  // namespace rieszflow::plot
