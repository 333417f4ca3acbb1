#pragma once
#include <cstdint>

namespace rieszflow {

/// When a state is: the integer step and the time that belongs to it.
struct Clock {
  std::int64_t step = 0;
  double time = 0.0;
};

}  // namespace rieszflow
