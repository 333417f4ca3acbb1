#include <cmath>
#include <numbers>

#include "core/processor.hpp"
#include "summation/simd/direct_kernels.hpp"
#include "summation/simd/mesh_kernels.hpp"

namespace rieszflow::simd {

PowerTable::PowerTable(double a) {
  for (int k = 0; k < 16; ++k) {
    root[k] = 2.0 / (2.0 + (2.0 * k + 1.0) / 16.0);
    scale[k] = std::pow(root[k], a);
    middle[k] = std::exp2(-8.0 * k * a);
    high[k] = std::exp2((1023.0 - 128.0 * k) * a);
  }
  for (int k = 0; k < 8; ++k) low[k] = std::exp2(-k * a);
  // Newton's divided differences at Chebyshev nodes of |t| <= 1/33, expanded into powers of t.
  constexpr int n = degree + 1;
  long double node[n], difference[n], power[n] = {}, basis[n] = {1.0L};
  for (int i = 0; i < n; ++i) {
    node[i] = std::cos(std::numbers::pi_v<long double> * (2 * i + 1) / (2 * n)) / 33.0L;
    difference[i] = std::pow(1.0L + node[i], static_cast<long double>(-a));
  }
  for (int order = 1; order < n; ++order) {
    for (int i = n - 1; i >= order; --i) {
      difference[i] = (difference[i] - difference[i - 1]) / (node[i] - node[i - order]);
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k <= i; ++k) power[k] += difference[i] * basis[k];
    for (int k = i + 1; k > 0 && i + 1 < n; --k) basis[k] = basis[k - 1] - node[i] * basis[k];
    basis[0] *= -node[i];
  }
  for (int k = 0; k < n; ++k) coefficients[k] = static_cast<double>(power[k]);
  for (int k = 0; k < 16; ++k) {
    single.root[k] = static_cast<float>(root[k]);
    // t is measured from the rounded root.
    single.scale[k] = static_cast<float>(std::pow(static_cast<double>(single.root[k]), a));
    single.low[k] = static_cast<float>(std::exp2(-k * a));
    single.high[k] = static_cast<float>(std::exp2((127.0 - 16.0 * k) * a));
  }
  for (int k = 0; k < 5; ++k) single.coefficients[k] = static_cast<float>(power[k]);
}

extern const DirectKernels baseline;
extern const SingleKernels single_baseline;
extern const MeshKernels mesh_baseline;

#if defined(RIESZFLOW_X86_64_LEVELS)
extern const DirectKernels x86_64_v4, x86_64_v3;
extern const SingleKernels single_x86_64_v4, single_x86_64_v3;
extern const MeshKernels mesh_x86_64_v4, mesh_x86_64_v3;

const DirectKernels& direct_kernels() {
  static const DirectKernels& widest = runs_x86_64_v4() ? x86_64_v4 : runs_x86_64_v3() ? x86_64_v3 : baseline;
  return widest;
}

const SingleKernels& single_kernels() {
  static const SingleKernels& widest = runs_x86_64_v4()   ? single_x86_64_v4
                                       : runs_x86_64_v3() ? single_x86_64_v3
                                                          : single_baseline;
  return widest;
}

const MeshKernels& mesh_kernels() {
  static const MeshKernels& widest = runs_x86_64_v4()   ? mesh_x86_64_v4
                                     : runs_x86_64_v3() ? mesh_x86_64_v3
                                                        : mesh_baseline;
  return widest;
}
#else
const DirectKernels& direct_kernels() { return baseline; }
const SingleKernels& single_kernels() { return single_baseline; }
const MeshKernels& mesh_kernels() { return mesh_baseline; }
#endif

}  // namespace rieszflow::simd
