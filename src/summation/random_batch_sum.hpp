#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/noise.hpp"
#include "model/model.hpp"
#include "summation/pair_sum.hpp"

namespace rieszflow {

/// Mini-batches of interactions: at each step the particles are shuffled into batches of p, and
///
///   force_i = -((N - 1) / N) (1 / (p - 1)) sum over the others j of its batch of grad_1 W(x_i, x_j),
///
/// whose mean over the shuffles is the force of all pairs; O(N p) a step. The batches add noise of variance
/// O(1/p) to the force, a step h thus heat of order h: averages have a bias of first order in h, (1/(p-1) -
/// 1/(N-1)) times the variance of the pair force. Jin, Li and Liu, J. Comput. Phys. 400 (2020) 108877, RBM-1.
///
/// The shuffle is a function of (seed, replica, step): the same for every number of threads and after a
/// resume.
class RandomBatchSum {
 public:
  /// batch_size p from 2 to N. What remains when p does not divide N joins the last batch.
  RandomBatchSum(const Model& model, std::size_t particle_count, std::size_t batch_size, std::uint64_t seed,
                 int threads);

  /// forces += batch forces; positions and forces: (replica, particle, dimension), row-major. `first_replica`:
  /// number of the first of them.
  void add_forces(std::span<const double> positions, std::size_t replica_count, std::uint64_t step,
                  std::span<double> forces, std::uint64_t first_replica = 0);

 private:
  std::size_t particle_count_, dimension_, batch_size_;
  NoiseStream shuffle_;
  std::optional<PairSum> batches_, last_;  ///< of p particles; of those of the last batch where they differ
  std::vector<std::size_t> order_;
  std::vector<double> uniforms_, positions_, forces_;

  std::size_t last_size() const { return batch_size_ + particle_count_ % batch_size_; }
  void shuffle(std::uint64_t replica, std::uint64_t step);
};

}  // namespace rieszflow
