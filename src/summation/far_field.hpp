#pragma once
#include "summation/simd/direct_kernels.hpp"

namespace rieszflow {

/// The smooth part of a radial kernel at splitting parameter alpha, a function of q = r^2 that is analytic
/// everywhere: with W(r) = integral g(t) exp(-t r^2) dt it is the integral up to t = alpha^2. What remains of
/// W falls like exp(-alpha^2 r^2). Units of simd::RadialKernel; force_over_r = -2 d value / dq.
///
///   Riesz      value = alpha^s gamma*(s/2, z) / s,   force_over_r = alpha^(s+2) gamma*(s/2 + 1, z),  z =
///   alpha^2 R^2 log        value = -(log R^2 + E1(z)) / 2,       force_over_r = alpha^2 gamma*(1, z)
///   Gaussian   all of it when 1/(2 length^2) <= alpha^2, else nothing
///   Morse      exp(-k r) -> (exp(-kr) erfc(k/(2 alpha) - alpha r) + exp(kr) erfc(k/(2 alpha) + alpha r)) / 2
///
/// gamma*(a, z) = z^-a P(a, z) is the entire incomplete gamma function (DLMF 8.2.7).
class FarField {
 public:
  FarField(const simd::RadialKernel& kernel, double alpha) : kernel_(kernel), alpha_(alpha) {}

  struct Value {
    double value = 0.0;
    double force_over_r = 0.0;
  };
  Value at(double squared_distance) const;

 private:
  simd::RadialKernel kernel_;
  double alpha_;
};

}  // namespace rieszflow
