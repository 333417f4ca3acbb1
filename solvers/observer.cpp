#include "solvers/observer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/expects.hpp"

namespace rieszflow {

std::string_view name(RunStatus status) {
  switch (status) {
    case RunStatus::Completed:
      return "completed";
    case RunStatus::StoppedByRule:
      return "stopped_by_rule";
    case RunStatus::Interrupted:
      return "interrupted";
    case RunStatus::NotFinite:
      return "not_finite";
    case RunStatus::LostPositivity:
      return "lost_positivity";
    case RunStatus::NotConverged:
      return "not_converged";
    case RunStatus::Concentrated:
      return "concentrated";
  }
  return "unknown";
}

Schedule Schedule::every(double interval, double start, double end) {
  expects(std::isfinite(start) && std::isfinite(end) && end >= start, "a schedule ends after it starts");
  expects(interval > 0.0, "the output interval is positive");
  // The last whole interval is dropped when round-off alone separates it from the end: 20 intervals of 0.1
  // end at 2.
  const double intervals = (end - start) / interval;
  const double whole = std::floor(intervals * (1.0 + 1e-12));
  const bool ends_on_an_interval = intervals - whole <= 1e-9 * std::max(1.0, intervals);
  std::vector<double> times;
  for (std::int64_t k = 0; static_cast<double>(k) <= whole; ++k) {
    times.push_back(start + static_cast<double>(k) * interval);
  }
  if (ends_on_an_interval && times.size() > 1) times.pop_back();
  if (end > start) times.push_back(end);
  return at(std::move(times));
}

Schedule Schedule::at(std::vector<double> times) {
  expects(!times.empty(), "a schedule has at least one time");
  expects(std::ranges::all_of(times, [](double time) { return std::isfinite(time); }),
          "scheduled times are finite");
  expects(std::ranges::adjacent_find(times, std::greater_equal<>()) == times.end(),
          "scheduled times increase strictly");
  Schedule schedule;
  schedule.times_ = std::move(times);
  return schedule;
}

std::optional<RunStatus> agreed(const Ranks& ranks, const StopRule& stop, const Clock& clock) {
  const std::optional<RunStatus> status = ranks.first() && stop ? stop(clock) : std::nullopt;
  std::int64_t code = status ? static_cast<std::int64_t>(*status) : -1;
  ranks.share(code);
  return code < 0 ? std::nullopt : std::optional(static_cast<RunStatus>(code));
}

}  // namespace rieszflow
