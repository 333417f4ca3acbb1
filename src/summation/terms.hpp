#pragma once
#include <memory>
#include <vector>

#include "model/model.hpp"
#include "model/periodic_kernel.hpp"
#include "summation/simd/direct_kernels.hpp"

namespace rieszflow {

/// A kernel of the inner loops and what turns its sums into forces and energies per pair.
struct RadialTerm {
  simd::RadialKernel kernel;
  double force_scale = 1.0;
  double energy_scale = 1.0;
  std::shared_ptr<const simd::PowerTable> power{};  ///< what kernel.power points to
};

/// A radial interaction on a torus: the nearest images by the inner loops, the rest by the model's
/// polynomial.
class PeriodicTerm {
 public:
  PeriodicTerm(const Torus& torus, const Interaction& interaction, const RadialTerm& term);

  /// own_force += what the particles [begin, end) exert on one at `point`; with `newton`, theirs,
  /// columns.forces, -= the same. Returns the sum of W. Positions lie in [lower, upper).
  double row(const double* point, const simd::Columns& columns, std::size_t begin, std::size_t end,
             double* own_force, bool newton) const;

 private:
  Torus torus_;
  PeriodicKernel kernel_;
  RadialTerm term_;
};

/// The interactions of a model, sorted by how they are summed.
struct InteractionTerms {
  std::vector<RadialTerm> radial;             ///< O(N^2), vectorised
  std::vector<PeriodicTerm> periodic;         ///< O(N^2), vectorised; radial interactions on a torus
  std::vector<ExpressionInteraction> scalar;  ///< O(N^2), one pair at a time
  double quadratic = 0.0;                     ///< J of J |x-y|^2 / 2: O(N) by the mean
  double cosine = 0.0;                        ///< J of -J sum_k cos(x_k - y_k): O(N) by sums of cos and sin
  double ordered = 0.0;                       ///< c of -c |x-y| in d = 1: O(N log N) by sorting
  std::vector<LowRankInteraction> low_rank;   ///< O(N K)

  explicit InteractionTerms(const Model& model);
  bool has_pairs() const { return !radial.empty() || !periodic.empty() || !scalar.empty(); }
};

}  // namespace rieszflow
