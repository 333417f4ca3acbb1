#pragma once
#include <span>

#include "model/ensemble.hpp"
#include "model/model.hpp"
#include "summation/pair_sum.hpp"

namespace rieszflow {

/// The energies of theory.md (1) per replica, overwritten: potential = (1/N) sum_i V(x_i),
/// interaction = (1/(2 N^2)) sum_{i != j} W(x_i, x_j) plus the functionals A(mu_N), as in MeanField. Each:
/// (replica). A stochastic functional gives the estimate of its first batch.
void energies(const Model& model, const PairSum& pair_sum, const ParticleEnsemble& ensemble,
              std::span<double> potential_energies, std::span<double> interaction_energies);

}  // namespace rieszflow
