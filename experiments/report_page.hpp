#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/report_figures.hpp"

/// Parts of a report page: one self-contained HTML file without scripts. Cells and texts that are given as
/// HTML must be escaped by the caller.
namespace rieszflow::report {

/// Head, style and the opening of the body; `title` is plain text.
std::string page_start(std::string_view title);
std::string page_end();
/// The command that made what the page shows, plain text; nothing when it is not known.
std::string made_by(std::string_view command);
/// A sentence that readers must not miss, plain text without its full stop.
std::string warning(std::string_view sentence);

/// Plain text as HTML.
std::string escaped(std::string_view text);
/// A leading hyphen as a minus sign; none before a number that was rounded to zero.
std::string with_minus(std::string text);
/// Head and rows of HTML cells; all columns but the first are numbers.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);
/// One SVG document as a figure that is part of the page; texts are plain. A figure wider than a phone
/// scrolls there.
std::string image(std::string_view svg, std::string_view alternative, std::string_view caption, int width,
                  int height);
/// The figures of all sections: files in `folder`, which exists, and the same embedded in the page; each SVG
/// carries its title and the command that made it. Without gnuplot a sentence in their place.
std::string figures(const std::vector<Section>& sections, const std::filesystem::path& folder,
                    std::string_view command);

}  // namespace rieszflow::report
