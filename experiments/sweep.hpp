#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/verdict.hpp"
#include "experiments/report_figures.hpp"
#include "experiments/setting.hpp"
#include "solvers/observer.hpp"

/// What every study with a fitted rate shares: rows that are independent units, the fits across them, summary
/// and report.
namespace rieszflow::sweep {

using Json = nlohmann::ordered_json;

using study::Outcome;
using study::Setting;

/// What a unit may use, and whom it asks whether to stop.
struct Workplace {
  int threads = 1;
  std::function<bool()> interrupted{};
};

/// One independent piece of work: it depends on nothing but its own numbers, so units may run in any order,
/// side by side, and after a resume.
struct Unit {
  std::string name;   ///< unique; "N = 40"
  double cost = 1.0;  ///< relative: dear units start first
  /// Rows as JSON objects; none when interrupted. A row has at least `quantity`, `value` and `status`, those
  /// that were measured also `scale`, `error` and `standard_error`; optional: `theory` (the exact error) and
  /// whatever else the study tells.
  std::function<std::vector<Json>(const Workplace&)> measure;
  std::vector<std::string> warnings{};  ///< sentences: what is known beforehand to spoil its rows
};

/// One curve of errors and what is known about it.
struct Curve {
  std::string quantity;                                        ///< of its rows
  std::string description;                                     ///< in words, for the report
  std::string scale_label;                                     ///< of the abscissa
  double expected = std::numeric_limits<double>::quiet_NaN();  ///< exponent; NaN: not known
  std::string reference;                                       ///< of the expected exponent
  double tolerance = 0.05;  ///< how far the expected exponent may lie outside of the 95 % interval
  /// Exponents of the next terms, relative to the leading one, where they are known (`fit_corrected_rate`).
  std::vector<double> corrections{};
};

/// What a study says beyond its rates.
struct Conclusion {
  std::vector<Verdict> verdicts{};
  std::vector<report::CaptionedFigure> figures{};
};

struct Study {
  std::string type;
  std::string name;
  std::string model;     ///< in words
  std::string question;  ///< one sentence for the report
  std::vector<Unit> units;
  std::vector<Curve> curves;  ///< the first is the `fit` of the summary
  /// Looks at all rows of a finished study; may complete them, and add to the summary.
  std::function<Conclusion(std::vector<Json>& rows, Json& summary)> conclude{};
};

/// The warnings of all units, each sentence with the name of its unit.
std::vector<std::string> warnings(const Study& study);

/// Rows that DIR/rows.json keeps for a resumed study, read by the first rank and told to all; none for a new
/// one. FileError when it is damaged.
Json kept_rows(const Setting& setting);

/// A seed of its own for a unit: FNV-1a over the bits of its numbers, or over the letters of its name.
std::uint64_t seed_of(std::uint64_t seed, std::span<const std::uint64_t> words);
std::uint64_t seed_of(std::uint64_t seed, std::span<const double> numbers);
std::uint64_t seed_of(std::uint64_t seed, std::string_view name);

/// error = C scale^exponent by weighted least squares (analysis/rate_fit.hpp) over the rows of one curve, as
/// the `fit` object of the summary. Rows whose error is below three standard errors say nothing about a rate:
/// they are left out and counted. `warning` says why a fit is not to be trusted: too few rows, a plateau, a
/// rate that is not reached yet, scatter beyond the standard errors; such a fit has not passed. `passed` is
/// null where no exponent is expected. With corrections, and points enough, exponent and interval are those
/// of the leading term, without tolerance; the pure power law is `power_law`.
Json fit(const Curve& curve, std::span<const Json> rows);

/// Runs all units that DIR/rows.json does not have yet, dear ones first, `threads` of them at a time;
/// replaces rows.json as a whole after each. Then fits, summary.json, figures and report.html. Ranks take the
/// missing units in turn, dear ones first; until the end those of rank r > 0 are in `DIR/rows/r.json`, where
/// a resumed study finds them too.
Outcome run(const Study& study, const Setting& setting);

}  // namespace rieszflow::sweep
