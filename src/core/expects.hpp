#pragma once
#include <stdexcept>
#include <string>

namespace rieszflow {

/// The programmer's fault: a precondition that the caller broke. Never used for user input or for mathematics.
class PreconditionViolation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws PreconditionViolation with `why` unless `condition` holds.
inline void expects(bool condition, const char* why) {
  if (!condition) throw PreconditionViolation(std::string("precondition violated: ") + why);
}

}  // namespace rieszflow
