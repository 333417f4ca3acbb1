#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "analysis/estimate.hpp"
#include "domain/domain.hpp"
#include "model/ensemble.hpp"

namespace rieszflow {

/// Differential entropy S = - integral rho log rho of the law that one particle has, estimated from an
/// ensemble.
struct EntropyEstimate {
  Estimate estimate;                   ///< of all replicas pooled; standard error over replicas, NaN for one
  std::vector<double> replica_values;  ///< (replica) what each replica says; their mean is estimate.value
  std::size_t coincident_particles = 0;  ///< particles that share their position with another one
};

struct EntropyOptions {
  std::size_t neighbours = 0;  ///< k; 0: the measured default of the dimension and n
};

/// Entropy by nearest neighbours, all replicas pooled: with epsilon_k(i) the distance from particle i to its
/// k-th neighbour among the n particles of all replicas,
///
///   S_k = psi(n) - psi(k) + (1/n) sum_i log |B(x_i, epsilon_k(i)) cut with the domain|
///
/// so that a uniform law has no bias up to its walls. B is a cube in a box, on the torus and in the whole
/// space (axes measured in units of their standard deviations), a Euclidean ball in a ball (d <= 3): for
/// those the intersection with the domain has a closed form. The bias of S_k is proportional to Gamma(k +
/// 2/d) / Gamma(k) n^(-2/d), inside and at walls alike, because an error of log |B| of relative size
/// epsilon^2 |Laplacian rho| / rho, or of size epsilon in a wall layer of thickness epsilon, is a power 2/d
/// of the mass in B, and that mass has a Gamma(k) law. The value returned is the combination of S_k and S_2k
/// without that term. Sources: L. Kozachenko, N. Leonenko, Probl. Inf. Transm. 23 (1987) 95-101; weighted
/// combinations: T. Berrett, R. Samworth, M. Yuan, Ann. Statist. 47 (2019) 288-318, theorem 1.
///
/// Particles of one replica depend on each other, replicas do not. The standard error is that of the mean of
/// the R entropies that the replicas have alone: their spread is that of the pooled value times sqrt(R)
/// (leaving out replicas one by one, the jackknife, overestimates it by 1.4 to 2: k-th neighbour distances
/// are not smooth functions of the sample). `replica_values` are those entropies, shifted so that their mean
/// is the pooled value, which has the smaller bias: with them the error of F = E - S / beta keeps the
/// correlation of energy and entropy.
///
/// Coincident particles: a law with atoms has S = -infinity, but a tie also comes from a scheme that puts
/// particles on one wall point. The distance then goes on to the first neighbour at a positive distance and
/// psi(k) to psi of the number of neighbours up to it: finite, the entropy at the resolution of the other
/// particles. Such particles are counted in `coincident_particles`. When all particles are at one point the
/// value is -infinity, and when there are fewer than two particles it is NaN with samples = 0; without a
/// finite entropy of each replica alone the standard error is NaN.
EntropyEstimate entropy(const ParticleEnsemble& ensemble, const Domain& domain, EntropyOptions options = {});

/// Unbiased estimate of the mean-field interaction energy (1/2) double-integral W rho rho from the pair sum
/// (1/(2N^2)) sum_{i != j} W(x_i, x_j) of N independent particles: the sum has only N(N-1) of the N^2 pairs,
/// so its mean is (1 - 1/N) of the integral. N >= 2.
double mean_field_interaction_energy(double pair_sum_energy, std::size_t particle_count);

}  // namespace rieszflow
