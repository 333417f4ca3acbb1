#include "attention/simd/feature_kernels.hpp"
#include "core/processor.hpp"

namespace rieszflow::attention::simd {

extern const Kernels baseline;

#if defined(RIESZFLOW_X86_64_LEVELS)
extern const Kernels x86_64_v4, x86_64_v3;
#endif

std::size_t kernel_levels(const Kernels** out, std::size_t most) {
  std::size_t count = 0;
  const auto add = [&](const Kernels& level) {
    if (count < most) out[count++] = &level;
  };
#if defined(RIESZFLOW_X86_64_LEVELS)
  if (runs_x86_64_v4()) add(x86_64_v4);
  if (runs_x86_64_v3()) add(x86_64_v3);
#endif
  add(baseline);
  return count;
}

const Kernels& kernels() {
  static const Kernels& widest = []() -> const Kernels& {
    const Kernels* level = nullptr;
    kernel_levels(&level, 1);
    return *level;
  }();
  return widest;
}

}  // namespace rieszflow::attention::simd
