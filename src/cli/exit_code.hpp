#pragma once
#include <stdexcept>

namespace rieszflow::cli {

/// What a script can rely on.
enum ExitCode : int {
  done = 0,
  verdict_failed = 1,  ///< verify: some limit was not met
  user_fault = 2,      ///< config, options, a folder that must not be touched
  mathematics = 3,     ///< blow-up, no convergence
  machine_fault = 4,   ///< disk, memory
  program_fault = 70,  ///< a broken precondition: please report
  interrupted = 130,   ///< SIGINT, SIGTERM, wall time
};

/// The user's fault outside a config: one sentence. Exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the other ranks know when the first one has refused: it says why.
struct RefusedByFirstRank {};

/// The machine cannot do it: one sentence. Exit code 4.
class ResourceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rieszflow::cli
