#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "core/ranks.hpp"
#include "model/model.hpp"

namespace rieszflow {

/// Mean-field pair sums of theory.md (1), (2) for a batch of replicas.
///
/// force_i = -(1/N) sum_{j != i} grad_1 W(x_i, x_j),   energy = (1/(2 N^2)) sum_{i != j} W(x_i, x_j)
///
/// Deterministic: bitwise the same for every number of threads and ranks. The object owns its work arrays:
/// not for concurrent calls on one object.
class PairSum {
 public:
  /// Direct: every pair. Fast: a mesh for what is far (fast_sum.hpp), for radial interactions in at most
  /// three dimensions outside of a torus; other terms stay direct. Automatic: the one that a cost model
  /// expects to be quicker.
  /// RandomBatch: what time steps take from random_batch_sum.hpp; this class sums all pairs, as Automatic.
  enum class Method { Automatic, Direct, Fast, RandomBatch };
  /// Of the direct sum of radial interactions. Single: pairs in floats, twice as fast; positions keep their
  /// digits and tiles are added up in doubles, so that forces have a relative L2 error of about 1e-6. A sum
  /// that leaves the range of floats is taken again in doubles.
  enum class Precision { Double, Single };
  struct Options {
    Method method = Method::Automatic;
    Precision precision = Precision::Double;
    double tolerance = 1e-6;  ///< relative L2 error of the forces of the fast sum, 1e-3 .. 1e-10
    int threads = 1;
    std::size_t batch_size = 2;  ///< of RandomBatch
    /// They share the tiles of the direct sum: every rank passes all positions, by the same calls, and has
    /// all forces after. The fast sum does the whole on each.
    Ranks ranks{};
  };
  PairSum(const Model& model, std::size_t particle_count, Options options);
  ~PairSum();
  PairSum(PairSum&&) noexcept;
  PairSum& operator=(PairSum&&) noexcept;

  /// forces += pair forces; positions and forces: (replica, particle, dimension), row-major. Coincident
  /// particles of a singular W exert no force on each other (no direction exists) and never spoil a third
  /// particle.
  void add_forces(std::span<const double> positions, std::size_t replica_count,
                  std::span<double> forces) const;
  /// The same with energies (replica), overwritten; +-infinity for coincident particles of a singular W.
  void add_forces(std::span<const double> positions, std::size_t replica_count, std::span<double> forces,
                  std::span<double> energies) const;
  /// Smallest pair distance of each replica, infinity for one particle. out: (replica)
  void closest_pairs(std::span<const double> positions, std::size_t replica_count,
                     std::span<double> out) const;

  /// What one evaluation for one replica is expected to take on one core, and what it holds: orders of
  /// magnitude, known before anything is made. RandomBatch: of a step of random_batch_sum.hpp.
  struct Cost {
    double seconds = 0.0;
    double bytes = 0.0;
  };
  static Cost expected_cost(const Model& model, std::size_t particle_count, const Options& options);

  /// "direct" or "fast": what Automatic chose.
  std::string_view method_name() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rieszflow
