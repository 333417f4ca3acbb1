#pragma once
#include <vector>

#include "summation/simd/mesh_kernels.hpp"

namespace rieszflow {

/// Kaiser-Bessel window of `width` nodes, phi(x) = I_0(shape sqrt(1 - (2x/width)^2)) / I_0(shape) for |x| <=
/// width/2, as polynomials in the offset of each node.
class Window {
 public:
  /// band: the wavenumber up to which the window's aliases stay at their floor.
  Window(int width, double band);
  simd::WindowTable table() const { return {width_, degree_, row_, values_.data(), slopes_.data()}; }
  /// integral phi(x) exp(-i k x) dx.
  double transform(double k) const;

 private:
  int width_, row_, degree_;
  double shape_, peak_;
  std::vector<double> values_, slopes_;
};

}  // namespace rieszflow
