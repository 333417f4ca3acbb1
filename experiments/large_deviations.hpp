#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/setting.hpp"
#include "features/feature_map.hpp"
#include "model/model.hpp"
#include "potentials/expression.hpp"
#include "solvers/observer.hpp"
#include "solvers/rare_event/tail_probability.hpp"

/// Probabilities of rare events at finite N beside the rate function of the density: theory.md section 3,
/// items 4 to 6.
namespace rieszflow::large_deviations {

/// The number g(mu_N), before a temperature is known (the target of a kernel distance depends on it).
struct StatisticChoice {
  enum class Kind { Mean, Moment, Linear, Largest, KernelEntry, KernelDistance };
  Kind kind = Kind::Mean;
  std::size_t axis = 0;                                  ///< Mean
  int power = 2;                                         ///< Moment
  std::shared_ptr<const ExpressionFunction> function{};  ///< Linear, Largest: f of the coordinates
  FeatureMap map = FeatureMap::Fourier;                  ///< KernelEntry, KernelDistance
  std::size_t data_dimension = 1;
  std::vector<double> points{};  ///< (point, data_dimension): z and z' of an entry, the data of a distance
};

enum class Side { Above, Below, Within };

struct Question {
  std::string name;
  Model model;  ///< its temperature is replaced by each of `inverse_temperatures`
  StatisticChoice statistic;
  Side side = Side::Above;
  std::vector<double> levels;
  std::vector<std::size_t> counts;
  std::vector<double> inverse_temperatures;
  std::optional<rare_event::Method> method{};  ///< empty: chosen
  rare_event::Options options{};
  std::vector<std::size_t> cells;  ///< (dimension); empty: no rate function (d > 3)
};

using study::Outcome;
using study::Setting;

/// The statistic as the sampler sees it. `target`: (component) of a kernel distance, else ignored.
rare_event::Statistic statistic_of(const StatisticChoice& choice, const std::vector<double>& target);

/// Measures every row (count, inverse temperature, level), each keyed by its own numbers: rows do not depend
/// on one another, on their order or on the number of threads. After each row DIR/rows.json is replaced as a
/// whole. At the end the fit
///
///     -log P = N I + L_N + a + c/N,   L_N = -log( integral_A exp(-N (I(x) - I)) dx / integral exp(-N I(x))
///     dx )
///
/// with the rate function's curve I(x) of the density for linear statistics in d = 1, elsewhere L_N = (1/2)
/// log N, its form for a steep edge (0 for `largest`); and with b log N, b free, as a diagnostic,
///
/// per temperature and level, compared with I of the mean-field side by z = (I_N - I)/error; `passed`: |z| <
/// 3 and one per cent. With four or more temperatures also, per count and level, -log P = beta N E + a log
/// beta + b, N E = N (inf_event H_N
/// - min H_N). Writes config.toml, summary.json, figures and report.html.
Outcome run(const Question& question, const Setting& setting);

}  // namespace rieszflow::large_deviations
