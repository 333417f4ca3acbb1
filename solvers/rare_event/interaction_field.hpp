#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "model/periodic_kernel.hpp"

namespace rieszflow::rare_event {

/// The potential of all other particles, and how it changes when one of them moves: what a single-particle
/// Metropolis move needs. Cost of a move: O(N) for radial W, vectorised for the log and Riesz kernels; O(1)
/// for quadratic and cosine W, O(K) for low rank W, which act through running sums.
///
/// The log kernel multiplies squared distances and takes one logarithm per move. On a one-dimensional torus
/// it is -strength log(2 |sin(pi r / L)|), the chord of the circle on which the particles are put; other
/// kernels on a torus are those of PeriodicKernel, one pair at a time.
class InteractionField {
 public:
  /// Why this model cannot be sampled here, as a sentence for the user: a mini-batch functional; beta = inf.
  static std::optional<std::string> refusal(const Model& model);

  InteractionField(const Model& model, std::size_t particle_count);

  /// positions: (particle, dimension), row-major.
  void assign(std::span<const double> positions);
  /// sum_{j != i} [W(point, x_j) - W(x_i, x_j)]; +infinity where the new energy is.
  double difference(std::size_t particle, std::span<const double> point) const;
  /// x_i <- point.
  void move(std::size_t particle, std::span<const double> point);
  /// (1/(2 N^2)) sum_{i != j} W(x_i, x_j).
  double energy() const;
  /// True when W is not zero.
  bool present() const { return present_; }

 private:
  struct Kernel {
    enum class Kind { Logarithm, Power, General, Periodic } kind = Kind::General;
    double strength = 0.0;  ///< of log; of r^-s / s
    double exponent = 0.0;  ///< s
    double softening_squared = 0.0;
    Interaction interaction{};  ///< General
    std::shared_ptr<const PeriodicKernel> periodic{};
  };
  void embed(std::span<const double> point, std::span<double> out) const;
  void low_rank_values(std::span<const double> point, std::span<double> out) const;

  double periodic_value(const Kernel& kernel, std::size_t particle, std::span<const double> point) const;

  Domain domain_;
  std::size_t particle_count_;
  std::size_t dimension_;
  bool present_ = false;
  std::vector<Kernel> kernels_;
  double circle_length_ = 0.0;     ///< > 0: one-dimensional torus, points are embedded in the plane
  std::size_t embedded_;           ///< dimension of the embedded points
  std::vector<double> points_;     ///< (embedded dimension, particle)
  std::vector<double> positions_;  ///< (particle, dimension)
  double quadratic_ = 0.0;         ///< J of J |x-y|^2 / 2
  double cosine_ = 0.0;            ///< J of -J sum_k cos(x_k - y_k)
  std::vector<LowRankInteraction> low_rank_;
  std::size_t low_rank_size_ = 0;
  std::vector<double> sum_x_;              ///< (dimension)
  std::vector<double> sum_cos_, sum_sin_;  ///< (dimension)
  std::vector<double> sum_g_;              ///< (function of all low-rank terms)
  std::vector<double> values_g_;           ///< (particle, function)
  mutable std::vector<double> trial_g_;    ///< (function) scratch: a field belongs to one chain
};

}  // namespace rieszflow::rare_event
