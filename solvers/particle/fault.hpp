#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace rieszflow::particle {

/// Why a step could not be taken: the first particle concerned and a sentence about it.
struct Fault {
  std::size_t replica = 0;
  std::size_t particle = 0;
  std::string what;
};

/// One step from `ensemble` to the next; nothing when it succeeded, else `ensemble` is untouched.
using StepOutcome = std::optional<Fault>;

}  // namespace rieszflow::particle
