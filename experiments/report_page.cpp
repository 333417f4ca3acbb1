#include "experiments/report_page.hpp"

#include <fmt/format.h>

#include "io/files.hpp"

namespace rieszflow::report {
namespace {

/// Colours adapt to the reader's preference; in the dark the figures' white cards are inverted, hues kept.
constexpr std::string_view style = R"(
:root { color-scheme: light dark; --page: #fbfbfa; --card: #ffffff; --text: #1d1d1f; --soft: #62626a; --line: #dedee3;
  --accent: #0072b2; --good: #00724f; --warn: #a24a00; }
@media (prefers-color-scheme: dark) {
  :root { --page: #161618; --card: #1f1f22; --text: #ececf0; --soft: #a6a6b0; --line: #3a3a40; --accent: #6cb8ea;
    --good: #4fcf9f; --warn: #f0a060; }
  figure img { filter: invert(0.88) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.55 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 28px 18px 60px; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 1.25rem; margin: 44px 0 6px; padding-top: 14px; border-top: 1px solid var(--line); }
p { margin: 8px 0; max-width: 76ch; }
.soft { color: var(--soft); }
.symbol { display: block; color: var(--soft); font-size: 0.86rem; white-space: nowrap; }
.good { color: var(--good); font-weight: 600; }
.warn { color: var(--warn); font-weight: 600; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 18px; margin: 16px 0; }
.equations { overflow-x: auto; white-space: nowrap; font-family: "STIX Two Text", Cambria, Georgia, serif; font-size: 1.04rem; }
.equations dt { font: 0.8rem system-ui, sans-serif; color: var(--soft); }
.equations dd { margin: 0 0 6px; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 345px), 1fr)); gap: 16px; margin: 14px 0; align-items: start; }
.top { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 36px; }
@media (min-width: 1040px) { .top { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); } }
.top h2 { margin-top: 10px; padding-top: 0; border-top: 0; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 8px; }
figure img { display: block; width: 100%; height: auto; border-radius: 6px; }
@media (max-width: 600px) { figure.wide { overflow-x: auto; } figure.wide img { min-width: 720px; } }
figcaption { color: var(--soft); font-size: 0.86rem; line-height: 1.4; padding: 6px 6px 2px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 12px 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; font-size: 0.88rem; }
td.number { white-space: nowrap; }
code, pre { font: 0.88rem/1.5 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
summary { cursor: pointer; color: var(--accent); }
)";

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t begin = 0; begin < bytes.size(); begin += 3) {
    unsigned block = 0;
    for (std::size_t k = 0; k < 3; ++k)
      block = block << 8 | (begin + k < bytes.size() ? static_cast<unsigned char>(bytes[begin + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      text += begin + k <= bytes.size() ? digits[block >> (18 - 6 * k) & 63u] : '=';
  }
  return text;
}

/// gnuplot's own title and description replaced.
std::string described(std::string svg, std::string_view title, std::string_view command) {
  const auto replace = [&](std::string_view tag, std::string_view text) {
    const std::size_t begin = svg.find(fmt::format("<{}>", tag)), end = svg.find(fmt::format("</{}>", tag));
    if (begin == std::string::npos || end == std::string::npos || text.empty()) return;
    svg.replace(begin + tag.size() + 2, end - begin - tag.size() - 2, escaped(text));
  };
  replace("title", title);
  replace("desc", command);
  return svg;
}

}  // namespace

std::string page_start(std::string_view title) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n<title>" +
         escaped(title) + " – rieszflow</title>\n<style>" + std::string(style) +
         "</style>\n</head>\n<body>\n<main>\n";
}

std::string page_end() { return "</main>\n</body>\n</html>\n"; }

std::string warning(std::string_view sentence) {
  return "<p class=\"warn\">Warning: " + escaped(sentence) + ".</p>\n";
}

std::string made_by(std::string_view command) {
  return command.empty() ? "" : "<pre>" + escaped(command) + "</pre>\n";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Control characters are not allowed in HTML; a command line may hold them.
        out += static_cast<unsigned char>(letter) < 0x20 && letter != '\n' && letter != '\t' ? ' ' : letter;
    }
  }
  return out;
}

std::string with_minus(std::string text) {
  const bool zero = text.find_first_not_of("-0.") == std::string::npos;  // "-0.000" is what rounding left
  if (text.starts_with('-')) text.replace(0, 1, zero ? "" : "−");
  return text;
}

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::string text = "<div class=\"scroll\"><table>\n";
  if (!head.empty()) {
    text += "<thead><tr>";
    for (const std::string& cell : head) text += "<th scope=\"col\">" + cell + "</th>";
    text += "</tr></thead>\n";
  }
  text += "<tbody>\n";
  for (const auto& row : rows) {
    text += "<tr>";
    for (std::size_t column = 0; column < row.size(); ++column)
      text += (column == 0 ? "<td>" : "<td class=\"number\">") + row[column] + "</td>";
    text += "</tr>\n";
  }
  return text + "</tbody>\n</table></div>\n";
}

std::string image(std::string_view svg, std::string_view alternative, std::string_view caption, int width,
                  int height) {
  return fmt::format(
      "<figure{}><img alt=\"{}\" width=\"{}\" height=\"{}\" src=\"data:image/svg+xml;base64,{}\" "
      "/>{}</figure>\n",
      width > 600 ? " class=\"wide\"" : "", escaped(alternative), width, height, base64(svg),
      caption.empty() ? "" : "<figcaption>" + escaped(caption) + "</figcaption>");
}

std::string figures(const std::vector<Section>& sections, const std::filesystem::path& folder,
                    std::string_view command) {
  std::string text;
  try {
    for (const Section& section : sections) {
      text += "<h2>" + escaped(section.title) + "</h2>\n";
      if (!section.text.empty()) text += "<p>" + escaped(section.text) + "</p>\n";
      text += "<div class=\"grid\">\n";
      for (const CaptionedFigure& figure : section.figures) {
        const std::string svg = described(plot::svg(figure.figure), figure.figure.title, command);
        io::write_text(folder / (figure.name + ".svg"), svg);
        text += image(
            svg,
            fmt::format("{}: {} over {}", figure.figure.title, figure.figure.y.label, figure.figure.x.label),
            figure.caption, figure.figure.width, figure.figure.height);
      }
      text += "</div>\n";
    }
  } catch (const plot::PlotError& error) {
    text += fmt::format("</div>\n<p class=\"warn\">No figures: {}.</p>\n", escaped(error.what()));
  }
  return text;
}

}  // namespace rieszflow::report
