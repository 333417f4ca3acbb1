#pragma once
#include <vector>

#include "model/model.hpp"
#include "summation/simd/direct_kernels.hpp"

namespace rieszflow {

/// A kernel of the inner loops and what turns its sums into forces and energies per pair.
struct RadialTerm {
  simd::RadialKernel kernel;
  double force_scale = 1.0;
  double energy_scale = 1.0;
};

/// The interactions of a model, sorted by how they are summed.
struct InteractionTerms {
  std::vector<RadialTerm> radial;             ///< O(N^2), vectorised
  std::vector<ExpressionInteraction> scalar;  ///< O(N^2), one pair at a time
  double quadratic = 0.0;                     ///< J of J |x-y|^2 / 2: O(N) by the mean
  double cosine = 0.0;                        ///< J of -J sum_k cos(x_k - y_k): O(N) by sums of cos and sin
  double ordered = 0.0;                       ///< c of -c |x-y| in d = 1: O(N log N) by sorting
  std::vector<LowRankInteraction> low_rank;   ///< O(N K)

  explicit InteractionTerms(const Model& model);
  bool has_pairs() const { return !radial.empty() || !scalar.empty(); }
};

}  // namespace rieszflow
