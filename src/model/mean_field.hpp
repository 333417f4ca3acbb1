#pragma once
#include <memory>
#include <span>
#include <vector>

#include "core/ranks.hpp"
#include "model/cell_kernel.hpp"
#include "model/density.hpp"
#include "model/model.hpp"

namespace rieszflow {

/// The mean-field operator of a model on a grid: V and W*rho on cells, with the kernel's transform
/// precomputed.
///
/// (W*rho)_i = sum_j w_{i-j} rho_j |C_j|, w = mean of W between cells (cell_kernel.hpp), by default over
/// both, so that the discrete energy is the exact energy of the piecewise constant density. theory.md (4),
/// (5). Radial W: FFT convolution. Quadratic and cosine W are sums over the axes of functions of one
/// coordinate: they act through the marginals, in closed form. Low-rank W: through its functions' cell
/// averages, with either weights. Functionals: by themselves. Bitwise the same in every run and for any
/// number of threads and ranks.
class MeanField {
 public:
  struct Options {
    int threads = 1;
    CellWeights weights = CellWeights::Galerkin;
    Ranks ranks{};  ///< share the convolution; all call the same functions with the same averages
  };
  /// Every interaction must be legal on the domain (see `refusal`), the grid be one of the domain, d = 1,
  /// 2, 3.
  MeanField(const Model& model, const Grid& grid, Options options);
  ~MeanField();
  MeanField(MeanField&&) noexcept;
  MeanField& operator=(MeanField&&) noexcept;

  const Model& model() const;
  const Grid& grid() const;
  int threads() const;
  const Ranks& ranks() const;
  /// Cell averages of V; (cell). Not finite where V is not.
  std::span<const double> external_potential() const;
  /// out = W*rho (plus the first variations of the functionals) on cells; (cell). Returns the interaction
  /// energy, (1/2) double-integral W rho rho plus the values of the functionals. Not thread-safe on one
  /// object (it owns the transform's work arrays).
  double interaction_potential(std::span<const double> averages, std::span<double> out) const;
  /// Energies, entropy and F of (5), given the interaction energy of the same averages (so the convolution is
  /// paid once).
  FreeEnergy free_energy(std::span<const double> averages, double interaction_energy) const;
  /// The same with its own convolution.
  FreeEnergy free_energy(const Density& density) const;
  /// Volume of each cell inside the domain; (cell), or empty when all are `grid().cell_volume()`.
  std::span<const double> volumes() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rieszflow
