#pragma once

#if defined(__x86_64__)
namespace rieszflow {

/// Whether this processor runs what is compiled with -march=x86-64-v3. The features are asked one by one
/// because
/// `__builtin_cpu_supports("x86-64-v3")` is known to GCC >= 12 and clang >= 17 only; every processor that has
/// these has the rest of the level.
inline bool runs_x86_64_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}

/// The same for -march=x86-64-v4.
inline bool runs_x86_64_v4() {
  return runs_x86_64_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

}  // namespace rieszflow
#endif
