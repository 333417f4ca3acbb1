#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "analysis/plot.hpp"
#include "io/run_file.hpp"

/// What of a run is drawn, and the words beside it.
namespace rieszflow::report {

/// A quantity that both sides have as series: observables/density/NAME and observables/particles/NAME.
struct Quantity {
  const char* name;
  const char* title;
  const char* symbol;
};

inline constexpr std::array<Quantity, 6> shared_quantities{{
    {"free_energy", "Free energy", "F"},
    {"potential_energy", "Potential energy", "∫ V dρ"},
    {"interaction_energy", "Interaction energy", "½ ∬ W dρ dρ"},
    {"entropy", "Entropy", "S = −∫ ρ log ρ"},
    {"mean", "Mean", "∫ x dρ"},
    {"second_moment", "Second moment", "∫ |x|² dρ"},
}};

/// Title of a series below comparison/.
std::string distance_title(const std::string& name);
/// "F, axis 2" where the series has several columns, else "F".
std::string with_axis(const std::string& text, std::size_t column, std::size_t columns);
/// The series, if the run has it and it has rows.
std::optional<io::Series> find_series(const io::RunReader& run, const std::string& name);
/// Names below comparison/ without their references.
std::vector<std::string> distances(const io::RunReader& run);

struct CaptionedFigure {
  std::string name;  ///< of the file, without its ending
  plot::Figure figure;
  std::string caption;
};

struct Section {
  std::string title;
  std::string text;  ///< one sentence on what to look for
  std::vector<CaptionedFigure> figures;
};

/// Everything that this run has something to show for, in the order of the page.
std::vector<Section> sections(const io::RunReader& run);

}  // namespace rieszflow::report
