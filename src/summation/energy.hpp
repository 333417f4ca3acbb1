#pragma once
#include <span>

#include "model/ensemble.hpp"
#include "model/model.hpp"
#include "summation/pair_sum.hpp"

namespace rieszflow {

/// The energies of theory.md (1) per replica, overwritten: potential = (1/N) sum_i V(x_i),
/// interaction = (1/(2 N^2)) sum_{i != j} W(x_i, x_j); without the functionals. Each: (replica).
void energies(const Model& model, const PairSum& pair_sum, const ParticleEnsemble& ensemble,
              std::span<double> potential_energies, std::span<double> interaction_energies);

/// A(mu_N), the sum of all functionals: their part of H_N; (replica), overwritten. A stochastic functional
/// gives the estimate of its first batch.
void functional_values(const Model& model, const ParticleEnsemble& ensemble, std::span<double> values);

/// Estimates of A[rho] for the law rho of one particle: 2 A(mu_r + mu_s) - A(mu_s), with the union of the
/// particles of replica r and of its neighbour s. E A(mu_N) = A[rho] + (a + b)/N + O(1/N^2): a from the
/// diagonal i = j, b from the correlation of particles of one replica. The union halves both, so they cancel;
/// for a quadratic A exactly. Halving the particles of one replica would cancel a alone. One replica:
/// A(mu_N) itself. (replica), overwritten. After M. Quenouille, Biometrika 43 (1956) 353-360.
void mean_field_functional_values(const Model& model, const ParticleEnsemble& ensemble,
                                  std::span<double> values);

}  // namespace rieszflow
