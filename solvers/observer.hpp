#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ranks.hpp"
#include "model/clock.hpp"

namespace rieszflow {

/// How a run ended. Mathematics' faults are statuses, never exceptions; what was computed stays.
enum class RunStatus {
  Completed,
  StoppedByRule,
  Interrupted,
  NotFinite,
  LostPositivity,
  NotConverged,
  Concentrated
};

std::string_view name(RunStatus status);  ///< "completed", "stopped_by_rule", ...

/// Times at which observers are called, as a value: strictly increasing, the first is the start, the last the
/// end.
class Schedule {
 public:
  /// start, start + interval, start + 2 interval, ..., end (each a product, never accumulated).
  static Schedule every(double interval, double start, double end);
  /// Exactly these times.
  static Schedule at(std::vector<double> times);
  const std::vector<double>& times() const { return times_; }

 private:
  std::vector<double> times_;
};

/// Sees the state at a scheduled time; cannot change it.
template <class State>
using Observer = std::function<void(const Clock&, const State&)>;

/// Asked after every step; a status ends the run there with the state as it is (Interrupted, StoppedByRule).
using StopRule = std::function<std::optional<RunStatus>(const Clock&)>;

/// What the first rank's rule says, at all ranks; nothing without a rule.
std::optional<RunStatus> agreed(const Ranks& ranks, const StopRule& stop, const Clock& clock);

/// What a run returns.
struct RunResult {
  RunStatus status = RunStatus::Completed;
  Clock last_good;      ///< clock of the state that is left
  std::string message;  ///< one sentence when the status is not Completed
};

}  // namespace rieszflow
