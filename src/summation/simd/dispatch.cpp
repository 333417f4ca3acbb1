#include "summation/simd/direct_kernels.hpp"

namespace rieszflow::simd {

extern const DirectKernels x86_64_v4, x86_64_v3, baseline;

const DirectKernels& direct_kernels() {
#if defined(RIESZFLOW_X86_64_LEVELS)
  static const DirectKernels& best = __builtin_cpu_supports("x86-64-v4")   ? x86_64_v4
                                     : __builtin_cpu_supports("x86-64-v3") ? x86_64_v3
                                                                           : baseline;
  return best;
#else
  return baseline;
#endif
}

}  // namespace rieszflow::simd
