#include "analysis/plot.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/expects.hpp"

extern char** environ;

namespace rieszflow::plot {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

const char* color(Ink ink) {
  switch (ink) {
    case Ink::Blue:
      return "#0072B2";
    case Ink::Vermillion:
      return "#D55E00";
    case Ink::Green:
      return "#009E73";
    case Ink::Orange:
      return "#E69F00";
    case Ink::Purple:
      return "#CC79A7";
    case Ink::Sky:
      return "#56B4E9";
    case Ink::Black:
      return "#000000";
    case Ink::Grey:
      return "#767676";
  }
  return "#000000";
}

/// Single-quoted strings take everything literally; a quote inside one becomes the apostrophe that typography
/// wants, because gnuplot's own way of writing it (twice) fails at the start of a string.
std::string literal(const std::string& text) {
  std::string out = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      out += "’";
    } else {
      out += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
  }
  return out + "'";
}

/// A number for gnuplot, in any locale; what cannot be drawn is NaN, which gnuplot leaves out.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "NaN"; }

double drawable(double value, const Axis& axis) {
  return std::isfinite(value) && (!axis.logarithmic || value >= std::numeric_limits<double>::min())
             ? value
             : nan_value;
}

struct Range {
  double lower = std::numeric_limits<double>::infinity();
  double upper = -std::numeric_limits<double>::infinity();

  void include(double value) {
    if (!std::isfinite(value)) return;
    lower = std::min(lower, value);
    upper = std::max(upper, value);
  }
  bool empty() const { return !(lower <= upper); }
};

/// Data of a layer along x and y, for the ranges of the axes. Bands reach what their curve shows.
struct Extent {
  const Figure& figure;
  Range x{};
  Range y{};

  void include(double x_value, double y_value) {
    x_value = drawable(x_value, figure.x);
    y_value = drawable(y_value, figure.y);
    if (std::isnan(x_value) || std::isnan(y_value)) return;
    x.include(x_value);
    y.include(y_value);
  }
  void operator()(const Curve& curve) {
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      include(curve.x[i], curve.y[i]);
      if (curve.low.empty()) continue;
      include(curve.x[i], curve.low[i]);
      include(curve.x[i], curve.high[i]);
    }
  }
  void operator()(const Markers& markers) {
    for (std::size_t i = 0; i < markers.x.size(); ++i) {
      include(markers.x[i], markers.y[i]);
      if (markers.error.empty()) continue;
      include(markers.x[i], markers.y[i] - markers.error[i]);
      include(markers.x[i], markers.y[i] + markers.error[i]);
    }
  }
  void operator()(const Steps& steps) {
    for (const double height : steps.heights) {
      include(steps.lower, height);
      include(steps.upper, height);
    }
    include(steps.lower, 0.0);
  }
  void operator()(const HeatMap& map) {
    include(map.x_range.first, map.y_range.first);
    include(map.x_range.second, map.y_range.second);
  }
};

/// The range of an axis: as asked for, else the data with a margin.
Range axis_range(const Axis& axis, Range data, double margin) {
  if (data.empty()) data = axis.logarithmic ? Range{0.1, 1.0} : Range{0.0, 1.0};
  if (axis.logarithmic) {
    const double low = std::log(data.lower), high = std::log(data.upper);
    const double pad = margin * std::max(high - low, 0.05);
    data = {std::exp(std::max(low - pad, -700.0)), std::exp(std::min(high + pad, 700.0))};
  } else {
    const double spread = data.upper - data.lower;
    const double scale = std::max(std::abs(data.lower), std::abs(data.upper));
    // A constant to round-off would otherwise fill the axis with its round-off.
    const double pad = spread > 1e-12 * scale ? margin * spread : (scale > 0.0 ? 0.1 * scale : 1.0);
    data = {data.lower - pad, data.upper + pad};
  }
  if (!std::isnan(axis.lower)) data.lower = axis.lower;
  if (!std::isnan(axis.upper)) data.upper = axis.upper;
  return data;
}

/// About four round numbers in a range.
std::vector<double> round_numbers(const Range& range) {
  const double raw = (range.upper - range.lower) / 4.0;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double step = power * (raw > 5.0 * power ? 10.0 : raw > 2.0 * power ? 5.0 : raw > power ? 2.0 : 1.0);
  std::vector<double> numbers;
  for (double k = std::ceil(range.lower / step); k * step <= range.upper; ++k) numbers.push_back(k * step);
  return numbers;
}

/// Labels of a logarithmic axis: powers of ten over two decades and more, 1, 2, 5 times powers of ten over
/// one, round numbers below.
std::string logarithmic_tics(const char* axis, const Range& range) {
  const int first = static_cast<int>(std::floor(std::log10(range.lower)));
  const int last = static_cast<int>(std::ceil(std::log10(range.upper)));
  if (range.upper / range.lower > 100.0) {
    const int stride = std::max(1, (last - first) / 6);
    return fmt::format("set format {0} '10^{{%T}}'\nset {0}tics {1} enhanced\n", axis,
                       fmt::format("1e{},1e{}", first, stride));
  }
  std::vector<double> values;
  if (range.upper / range.lower < 10.0) {
    values = round_numbers(range);
  } else {
    for (int power = first; power <= last; ++power)
      for (const int digit : {1, 2, 5}) values.push_back(digit * std::pow(10.0, power));
  }
  std::string tics;
  for (const double value : values)
    if (value >= range.lower && value <= range.upper)
      tics += fmt::format("{}'{:.6g}' {}", tics.empty() ? "" : ", ", value, number(value));
  return fmt::format("set {}tics ({})\n", axis, tics);
}

std::string axis_commands(const char* name, const Axis& axis, const Range& range) {
  std::string text = fmt::format("set {}label {} noenhanced\nset {}range [{}:{}]\n", name,
                                 literal(axis.label), name, number(range.lower), number(range.upper));
  if (axis.logarithmic) text += fmt::format("set logscale {}\n", name) + logarithmic_tics(name, range);
  return text;
}

/// Makes the data block `name` of a layer and the elements of gnuplot's plot command that draw it.
struct Drawing {
  const Figure& figure;
  Range y_range;
  std::string data{};
  std::vector<std::string> elements{};
  std::size_t blocks = 0;

  std::string block(const std::string& rows) {
    const std::string name = fmt::format("$data{}", blocks++);
    data += name + " << END_OF_DATA\n" + rows + "END_OF_DATA\n";
    return name;
  }
  static std::string title(const std::string& label) {
    return label.empty() ? "notitle" : "title " + literal(label) + " noenhanced";
  }

  void operator()(const Curve& curve) {
    expects(curve.x.size() == curve.y.size(), "a curve has as many x as y");
    expects(curve.low.size() == curve.high.size(), "a band has two sides");
    std::string rows;
    bool has_band = false, has_points = false;
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      const double x = drawable(curve.x[i], figure.x);
      const double y = drawable(curve.y[i], figure.y);
      has_points = has_points || (!std::isnan(x) && !std::isnan(y));
      double low = nan_value, high = nan_value;
      if (!curve.low.empty() && !std::isnan(y) && std::isfinite(curve.low[i]) &&
          std::isfinite(curve.high[i])) {
        has_band = true;
        high = drawable(curve.high[i], figure.y);
        // A band that reaches zero leaves a logarithmic figure at its lower edge.
        low = figure.y.logarithmic && curve.low[i] <= 0.0 ? y_range.lower : curve.low[i];
      }
      rows += fmt::format("{} {} {} {}\n", number(x), number(y), number(low), number(high));
    }
    if (!has_points) return;  // gnuplot takes a curve without points for an error
    const std::string name = block(rows);
    if (has_band)
      elements.push_back(fmt::format(
          "{} using 1:3:4 with filledcurves fs transparent solid 0.22 noborder lc rgb '{}' notitle", name,
          color(curve.ink)));
    elements.push_back(fmt::format("{} using 1:2 with lines lw {} {} lc rgb '{}' {}", name,
                                   curve.dashed ? 1.6 : 2.2, curve.dashed ? "dt (9,5)" : "dt 1",
                                   color(curve.ink), title(curve.label)));
  }

  void operator()(const Markers& markers) {
    expects(markers.x.size() == markers.y.size(), "markers have as many x as y");
    std::string rows;
    bool has_points = false;
    for (std::size_t i = 0; i < markers.x.size(); ++i) {
      has_points = has_points || (!std::isnan(drawable(markers.x[i], figure.x)) &&
                                  !std::isnan(drawable(markers.y[i], figure.y)));
      rows += fmt::format("{} {} {}\n", number(drawable(markers.x[i], figure.x)),
                          number(drawable(markers.y[i], figure.y)),
                          number(markers.error.empty() ? nan_value : markers.error[i]));
    }
    if (!has_points) return;
    const std::string name = block(rows);
    if (!markers.error.empty())
      elements.push_back(fmt::format("{} using 1:2:3 with yerrorbars pt -1 lw 1.4 lc rgb '{}' notitle", name,
                                     color(markers.ink)));
    const auto transparency = static_cast<int>(std::lround(255.0 * (1.0 - markers.opacity)));
    elements.push_back(fmt::format("{} using 1:2 with points pt 7 ps {} lc rgb '#{:02x}{}' {}", name,
                                   0.6 * markers.size, transparency, color(markers.ink) + 1,
                                   title(markers.label)));
  }

  void operator()(const Steps& steps) {
    std::string rows;
    const double width = (steps.upper - steps.lower) / static_cast<double>(steps.heights.size());
    for (std::size_t bin = 0; bin < steps.heights.size(); ++bin) {
      const double height = number(steps.heights[bin]) == "NaN" ? 0.0 : steps.heights[bin];
      const double left = steps.lower + width * static_cast<double>(bin);
      rows += fmt::format("{0} {2}\n{1} {2}\n", number(left), number(left + width), number(height));
    }
    elements.push_back(fmt::format("{} using 1:2 with filledcurves y1=0 fs solid 0.4 noborder lc rgb '{}' {}",
                                   block(rows), color(steps.ink), title(steps.label)));
  }

  void operator()(const HeatMap& map) {
    expects(map.values.size() == map.rows * map.columns && !map.values.empty(),
            "a heat map has a value for each cell");
    // gnuplot wants at least two cells along each axis: a single one is drawn as two halves.
    const std::size_t columns = std::max<std::size_t>(2, map.columns),
                      rows = std::max<std::size_t>(2, map.rows);
    std::string text;
    for (std::size_t j = 0; j < rows; ++j)
      for (std::size_t i = 0; i < columns; ++i)
        text += number(map.values[i * map.columns / columns * map.rows + j * map.rows / rows]) +
                (i + 1 == columns ? '\n' : ' ');
    const double dx = (map.x_range.second - map.x_range.first) / static_cast<double>(columns);
    const double dy = (map.y_range.second - map.y_range.first) / static_cast<double>(rows);
    elements.push_back(fmt::format("{} matrix using ({}+$1*{}):({}+$2*{}):3 with image notitle", block(text),
                                   number(map.x_range.first + dx / 2), number(dx),
                                   number(map.y_range.first + dy / 2), number(dy)));
  }
};

/// Height with room for a legend of more than three rows, which gnuplot takes from the plot.
int height_with_legend(const Figure& figure) {
  std::size_t entries = 0, longest = 0;
  for (const Layer& layer : figure.layers) {
    const std::string& label =
        std::visit([](const auto& any) -> const std::string& { return any.label; }, layer);
    if (label.empty() || std::holds_alternative<HeatMap>(layer)) continue;
    ++entries;
    longest = std::max(longest, label.size());
  }
  const auto columns = std::max<std::size_t>(1, static_cast<std::size_t>(figure.width) / (60 + 12 * longest));
  const std::size_t rows = (entries + columns - 1) / columns;
  return figure.height + (rows > 3 ? 19 * static_cast<int>(rows - 3) : 0);
}

std::string script(const Figure& figure) {
  Extent extent{.figure = figure};
  double largest = nan_value;
  std::string scale_label;
  bool has_map = false;
  for (const Layer& layer : figure.layers) {
    std::visit(extent, layer);
    if (const auto* map = std::get_if<HeatMap>(&layer)) {
      has_map = true;
      scale_label = map->label;
      largest = map->largest;
      if (std::isnan(largest)) {
        Range values;
        for (const double value : map->values) values.include(value);
        largest = values.empty() ? 1.0 : values.upper;
      }
    }
  }
  const Range x = axis_range(figure.x, extent.x, has_map ? 0.0 : 0.02);
  const Range y = axis_range(figure.y, extent.y, has_map ? 0.0 : 0.06);

  std::string text = fmt::format(
      "set encoding utf8\n"
      "set terminal svg size {},{} dynamic enhanced rounded font 'sans-serif,15' background '#ffffff'\n"
      "set border {} lw 1 lc rgb '#555555'\n"
      "set tics nomirror out scale 0.6 textcolor rgb '#333333'\n"
      "set xlabel offset 0,0.7 textcolor rgb '#222222'\nset ylabel textcolor rgb '#222222'\n"
      "{}"
      "set key bmargin center horizontal Left reverse samplen 1.8 width 2 spacing 1.1 maxrows 3 textcolor rgb "
      "'#222222' noenhanced\n",
      figure.width, height_with_legend(figure), has_map ? 15 : 3,
      has_map ? "" : "set grid xtics ytics lw 0.6 lc rgb '#e3e3e3'\n");
  if (!figure.title.empty())
    text += fmt::format("set title {} noenhanced textcolor rgb '#222222' font ',17' offset 0,-0.4\n",
                        literal(figure.title));
  text += axis_commands("x", figure.x, x) + axis_commands("y", figure.y, y);
  if (figure.equal_scales) text += "set size ratio -1\n";
  if (has_map)
    text += fmt::format(
        "set palette defined (0 '#ffffff', 0.25 '#c6dbef', 0.5 '#6baed6', 0.75 '#2171b5', 1 '#08306b')\n"
        "set cbrange [0:{}]\nset cblabel {} noenhanced textcolor rgb '#222222'\nset cbtics scale 0.4\n"
        "set datafile missing 'NaN'\n",
        number(largest > 0.0 ? largest : 1.0), literal(scale_label));

  Drawing drawing{.figure = figure, .y_range = y};
  for (const Layer& layer : figure.layers) std::visit(drawing, layer);
  if (drawing.elements.empty()) drawing.elements.push_back("NaN notitle");
  text += drawing.data + "plot " + fmt::format("{}", fmt::join(drawing.elements, ", \\\n     ")) + "\n";
  return text;
}

using Stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

Stream temporary() { return {std::tmpfile(), std::fclose}; }

std::string content(std::FILE* stream) {
  std::string text;
  std::rewind(stream);
  std::array<char, 65536> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), stream))
    text.append(buffer.data(), count);
  return text;
}

}  // namespace

std::string svg(const Figure& figure, const std::string& gnuplot) {
  const std::string commands = script(figure);
  // Nameless files rather than pipes: no deadlock, whatever the order in which gnuplot reads and writes.
  const Stream input = temporary(), output = temporary(), errors = temporary();
  if (!input || !output || !errors ||
      std::fwrite(commands.data(), 1, commands.size(), input.get()) != commands.size() ||
      std::fflush(input.get()) != 0)
    throw PlotError(std::string("cannot make a temporary file for gnuplot: ") + std::strerror(errno));
  std::rewind(input.get());
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(input.get()), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(output.get()), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(errors.get()), STDERR_FILENO);
  std::string name = gnuplot, option = "-";
  std::array<char*, 3> arguments{name.data(), option.data(), nullptr};
  pid_t child = 0;
  const int problem = ::posix_spawnp(&child, name.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0)
    throw PlotError(fmt::format(
        "cannot run gnuplot ({}): {}; install it (Debian: gnuplot-nox) and build the report again", gnuplot,
        std::strerror(problem)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::string text = content(output.get());
  if (status != 0 || text.find("</svg>") == std::string::npos)
    throw PlotError("gnuplot cannot draw the figure: " + content(errors.get()));
  return text;
}

std::string svg(const Figure& figure) {
  const std::string configured = RIESZFLOW_GNUPLOT;
  return svg(figure, ::access(configured.c_str(), X_OK) == 0 ? configured : std::string("gnuplot"));
}

}  // namespace rieszflow::plot
