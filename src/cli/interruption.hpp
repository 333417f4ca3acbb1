#pragma once
#include <chrono>
#include <optional>

namespace rieszflow::cli {

/// Turns SIGINT, SIGTERM and SIGUSR1 (which mpirun passes on without a time limit) into a wish to stop, for
/// as long as it lives; a second signal ends the program at once. One object at a time.
class Interruption {
 public:
  explicit Interruption(std::optional<double> max_wall_seconds);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// True after a signal, or once the wall time is used up.
  bool wished() const;
  bool out_of_time() const;

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<double> max_wall_seconds_;
};

}  // namespace rieszflow::cli
