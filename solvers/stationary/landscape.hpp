#pragma once
#include <span>
#include <vector>

#include "model/functional.hpp"
#include "model/mean_field.hpp"

namespace rieszflow::stationary {

/// Where in the family of a model: what continuation varies without a new kernel.
struct Parameters {
  double inverse_temperature = 1.0;  ///< beta > 0; infinity: E alone
  double strength = 1.0;             ///< factor of W (and of the functionals)
};

/// F of theory.md (5) as a function of the cell averages of one grid, with its first and second variation;
/// plus, where given, a functional of the density (a tilt or a constraint). Not thread-safe on one object.
class Landscape {
 public:
  /// The model as it is.
  explicit Landscape(const MeanField& field, const GridFunctional* extra = nullptr);
  /// Its family. The field must outlive the landscape.
  Landscape(const MeanField& field, Parameters parameters, const GridFunctional* extra = nullptr);

  const Grid& grid() const { return field_.grid(); }
  double inverse_temperature() const { return parameters_.inverse_temperature; }
  std::size_t size() const { return volumes_.size(); }
  /// (cell) inside the domain; 0 for cells outside.
  const std::vector<double>& volumes() const { return volumes_; }

  /// out = Phi = V + W*rho, the first variation of F without its entropy; returns the interaction energy.
  double effective_potential(std::span<const double> averages, std::span<double> out) const;
  FreeEnergy energy(std::span<const double> averages, double interaction_energy) const;
  /// out = derivative of Phi at `averages` along `direction`: W*direction; with functionals, which may be
  /// nonlinear, by central differences (relative error about 1e-8).
  void potential_change(std::span<const double> averages, std::span<const double> direction,
                        std::span<double> out) const;

 private:
  const MeanField& field_;
  Parameters parameters_;
  const GridFunctional* extra_;
  std::vector<double> volumes_;
  mutable std::vector<double> variation_, ahead_, behind_;  ///< work
};

}  // namespace rieszflow::stationary
