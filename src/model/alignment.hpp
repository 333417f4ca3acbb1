#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "features/feature_map.hpp"
#include "model/functional.hpp"

namespace rieszflow {

/// Which alignment with the labels is minimised; theory.md (8), (9), (10), and the loss of the kernel's own
/// ridge regression.
enum class AlignmentKind { Linear, SquaredLoss, Normalised, RidgeLoss };

std::string_view name(AlignmentKind kind);  ///< "linear", "squared_loss", "normalised", "ridge_loss"

/// Labelled data: one or more label columns. A row is one point, or a bag of points (a sentence made of
/// tokens) whose features are the mean of those of its points. Two classes: one column of +-1; more classes:
/// one-vs-rest +-1 columns or a centred one-hot code. The target kernel is <y_a, y_b>.
struct LabelledData {
  std::size_t count = 0;          ///< n
  std::size_t dimension = 0;      ///< of a data point
  std::size_t label_columns = 1;  ///< q
  std::vector<double> points;     ///< (point, dimension), row-major
  std::vector<double> labels;     ///< (row, label column), row-major
  /// (row + 1): row a is the bag of points starts[a]..starts[a+1]-1, at least one; empty: one point per row.
  std::vector<std::size_t> bag_starts{};
};

/// Alignment of the kernel of a particle set with labels, as a functional of the law mu of the particles.
/// With empirical means E over the data, u(omega) = E[y phi(.; omega)] and S(omega, omega') = E[phi(.; omega)
/// phi(.; omega')^T]:
///
///     linear       A = - integral |u|^2 dmu (8) squared loss A = (1/2) E E' (<y, y'> - K_mu)^2
///                    = (1/2) |E[y y^T]|_F^2 - integral |u|^2 dmu + (1/2) double-integral |S|_F^2 dmu dmu (9)
///     normalised   A = - <K^c, Y^c> / (|K^c| |Y^c|), everything centred over the data (10)
///
/// times `strength`. The diagonal i = j belongs to (9) and (10). Cost of a gradient: (8) O(n N p), (9) and
/// (10) O(n N^2); no n x n matrix is formed. Gradients: `-N grad_i` of (9) is 2 <u, E[y D_i]> - 2 E[M_i D_i]
/// with D = grad phi and M = Phi S / N; of (10) (1/|Y|)(2 <u, E[y D_i]> / sqrt b - 2 a E[M_i D_i] / b^(3/2))
/// with a = integral |u|^2 and b = double-integral |S|_F^2.
///
/// Mini-batches: each step draws two independent batches of `batch_rows` rows with replacement; the forces
/// pair u and S of one with D of the other, both ways round. So the forces of (8) and (9) are unbiased (one
/// batch alone would square its own mean); those of (10), a ratio, have a bias of order 1/batch_rows. The
/// value returned is estimated alike.
class Alignment final : public Functional {
 public:
  struct Options {
    AlignmentKind kind = AlignmentKind::SquaredLoss;
    double strength = 1.0;
    double ridge_penalty = 1e-3;  ///< > 0, used by the ridge loss only
    std::size_t batch_rows = 0;   ///< 0: all the data, exact forces
    std::uint64_t seed = 0;       ///< of the mini-batches
    int threads = 1;
  };
  Alignment(FeatureMap map, const LabelledData& data, Options options);
  ~Alignment() override;

  FeatureMap map() const;
  const Options& options() const;
  std::string description() const override;
  double add_forces(std::span<const double> positions, std::size_t particle_count, std::uint64_t replica,
                    std::uint64_t step, std::span<double> forces) const override;
  bool is_stochastic() const override;
  /// Features at the cell centres: second order in the spacing. Not for the softmax map, which is no function
  /// of one particle. Memory beyond (8): one number per pair of cells
  /// and components; the ridge loss also solves a linear system of that size at each evaluation.
  std::unique_ptr<GridFunctional> on_grid(const Grid& grid) const override;

  /// A(mu_N) on all the data; particles: (particle, p).
  double value(std::span<const double> particles) const;
  /// The same for weighted particles, K = sum_i w_i phi_i phi_i^T / N (importance sampling); weights:
  /// (particle).
  double value(std::span<const double> particles, std::span<const double> weights) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// tr(S)^2 / |S|_F^2 of the feature Gram matrix S = Phi^T Phi / n (or the covariance of the features,
/// `centred`): how many directions the features span, between 1 and the number of features. A smooth lower
/// bound of the rank.
double effective_rank(FeatureMap map, const LiftedData& data, std::span<const double> particles,
                      std::span<const std::size_t> bag_starts = {}, bool centred = false);

}  // namespace rieszflow
