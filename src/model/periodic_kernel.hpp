#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "domain/domain.hpp"
#include "model/cell_kernel.hpp"
#include "potentials/interaction.hpp"

namespace rieszflow {

/// The pair interaction W of a torus with periods L_1 .. L_d, d = 1, 2, 3, made from a free-space kernel:
///
///     Riesz, log:       W_L(z) = sum_{k != 0} What(k) exp(i k.z) / |torus|, k in the dual lattice: the image
///                       sum with its mean removed (neutralising background), for all -2 < s < d;
///     Gaussian, Morse:  W_L(z) = sum_n W(z + nL), the mean kept.
///
/// Every one of them is a mixture of Gaussians, W(r) = integral g(t) exp(-t r^2) dt, and a periodised
/// Gaussian is a product of one-dimensional theta functions. The integral over t is split at
/// T = pi / max(L)^2: theta as a Fourier series below, as an image sum above (Ewald, Ann. Phys. 369 (1921)
/// 253; for every s: Borwein et al., Lattice Sums Then and Now (2013), chapter 2). What the nearest images do
/// not hold is analytic; it is fitted once:
///
///     W_L(z) = sum over images n of W(z + nL) + correction(z),   |z_k| <= range_k,
///
/// images: the nearest one and, for elongated tori, more along the short axes; correction: an even polynomial
/// in each z_k, its error about 1e-13 of its largest value, that of its force about 1e-11.
class PeriodicKernel {
 public:
  /// What the displacements are: those of pairs, |z_k| <= L_k / 2, or those within two cells' supports,
  /// |z_k| <= L_k, for which more images are kept explicit.
  enum class Range { Pairs, Cells };

  /// The pair must be legal: refusal(torus, interaction) is empty, and the kernel is Riesz, log, Gaussian or
  /// Morse.
  PeriodicKernel(const Torus& torus, const Interaction& interaction, Range range = Range::Pairs);

  /// W_L(z); displacement: (dimension), the nearest representative (domain.hpp).
  double value(std::span<const double> displacement) const;
  /// W_L(z), and force += -grad W_L(z): what y exerts on x = y + z.
  double add_force(std::span<const double> displacement, std::span<double> force) const;

  /// The smooth part; force, if not empty: += -grad correction.
  double correction(std::span<const double> displacement, std::span<double> force = {}) const;
  /// The same for a batch, vectorised; displacements: (dimension, pair); values: (pair), +=, or empty;
  /// forces: (dimension, pair), +=, or empty.
  void add_corrections(std::size_t pair_count, std::span<const double> displacements,
                       std::span<double> values, std::span<double> forces) const;

  /// Number of terms of the polynomial: what one evaluation costs.
  std::size_t term_count() const { return coefficients_.size(); }
  const Interaction& interaction() const { return interaction_; }
  std::size_t dimension() const { return range_.size(); }
  /// Shifts nL of the images whose free-space kernel is kept explicit; (image, dimension), the zero shift
  /// first.
  std::span<const double> images() const { return images_; }

  /// Means of the correction as cell_kernel.hpp defines them, exact for the polynomial; Range::Cells. cells:
  /// (dimension); result: offsets 0 .. cells/2 per axis, last axis fastest.
  std::vector<double> correction_weights(std::span<const std::size_t> cells, CellWeights kind) const;

 private:
  friend class PeriodicKernelFit;
  Range covers_;
  Interaction interaction_;
  std::vector<double> range_;   ///< (dimension) half-widths of the polynomial's domain
  std::vector<double> images_;  ///< (image, dimension)

  /// correction = sum c v_1^i v_2^j v_3^k, v = 2 (z / range)^2 - 1; axes missing for d < 3 come first, of
  /// degree 0. Row (i, j) holds its powers k from offset rows_[i][j] on; rows get shorter as i and j grow.
  std::size_t size_[3] = {1, 1, 1};
  std::vector<std::size_t> row_start_;  ///< (i, j) and one past the end
  std::vector<double> coefficients_;
};

/// Weights of W_L on a uniform grid of the torus (see cell_kernel.hpp): the exact free-space weights of the
/// images plus the means of the correction. cells: (dimension); result: offsets 0 .. cells/2 per axis, last
/// axis fastest; the other offsets follow from W_L(z) = W_L(-z).
std::vector<double> periodic_kernel_weights(const Torus& torus, const Interaction& interaction,
                                            std::span<const std::size_t> cells, CellWeights kind);

inline std::vector<double> periodic_galerkin_weights(const Torus& torus, const Interaction& interaction,
                                                     std::span<const std::size_t> cells) {
  return periodic_kernel_weights(torus, interaction, cells, CellWeights::Galerkin);
}

}  // namespace rieszflow
