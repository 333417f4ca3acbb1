#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "domain/domain.hpp"

namespace rieszflow::rare_event {

/// A density for one particle from which points are drawn whatever the present state: the product over the
/// axes of densities constant on bins of equal probability,
///
///     q(x) = prod_k 1 / (B_k width_k(x_k)),   B_k bins whose edges are quantiles of given samples.
///
/// Equal probability makes bins as narrow as the samples are dense: next to a point where the sampled law is
/// infinite, where no single step size fits, as well as at a wall where it piles up. In a mean-field system
/// the law of one particle given all others is its mean law up to O(N^(-1/2)), so that nearly every draw from
/// it is accepted.
class Proposal {
 public:
  /// samples: (sample, dimension), row-major, at least one. The outer bins end at the walls of a box or the
  /// ends of a period; elsewhere at the extreme samples, and the density is zero outside.
  Proposal(const Domain& domain, std::span<const double> samples);

  /// The point of these uniforms in (0, 1), (dimension); returns log q there. In a ball it may lie outside.
  double draw(std::span<const double> uniforms, std::span<double> point) const;
  /// log q; -infinity outside of the bins.
  double log_density(std::span<const double> point) const;

 private:
  struct Axis {
    std::vector<double> edges;          ///< increasing
    std::vector<double> log_densities;  ///< (bin)
  };
  std::vector<Axis> axes_;
};

}  // namespace rieszflow::rare_event
