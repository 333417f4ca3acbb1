#pragma once
#include <memory>
#include <span>
#include <vector>

#include "model/density.hpp"
#include "model/model.hpp"

namespace rieszflow {

/// The mean-field operator of a model on a grid: V and W*rho on cells, with the kernel's transform precomputed.
///
/// (W*rho)_i = sum_j w_{i-j} rho_j |C_j| with Galerkin weights w = mean of W over both cells, so that the discrete
/// energy is the exact energy of the piecewise constant density. theory.md (4), (5).
class MeanField {
 public:
  struct Options {
    int threads = 1;
  };
  MeanField(const Model& model, const Grid& grid, Options options);
  ~MeanField();
  MeanField(MeanField&&) noexcept;
  MeanField& operator=(MeanField&&) noexcept;

  const Model& model() const;
  const Grid& grid() const;
  /// Cell averages of V; (cell).
  std::span<const double> external_potential() const;
  /// out = W*rho on cells; (cell). Not thread-safe on one object (it owns the transform's work arrays).
  void interaction_potential(std::span<const double> averages, std::span<double> out) const;
  /// Energies, entropy and F of (5), given W*rho for the same averages (so the convolution is paid once).
  FreeEnergy free_energy(std::span<const double> averages, std::span<const double> interaction_potential) const;
  /// The same with its own convolution.
  FreeEnergy free_energy(const Density& density) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rieszflow
