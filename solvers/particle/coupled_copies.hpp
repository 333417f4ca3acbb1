#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "domain/grid.hpp"
#include "model/density.hpp"
#include "model/ensemble.hpp"
#include "model/mean_field.hpp"
#include "model/model.hpp"
#include "solvers/observer.hpp"
#include "summation/pair_sum.hpp"

/// Propagation of chaos path by path: N interacting particles and N independent copies of the mean-field
/// particle, driven by the same noise.
namespace rieszflow::particle {

/// -grad (W*rho_t) along a path of densities: central differences of W*rho between cell centres, linear in
/// space between them (and beyond the outermost ones) and linear in time between the recorded times. Exact
/// for quadratic W.
class MeanFieldForce {
 public:
  /// Box or torus; `field` of the model. At least one density, times increasing.
  MeanFieldForce(const MeanField& field, const std::vector<double>& times,
                 const std::vector<Density>& densities);

  /// force += -grad (W*rho_time)(point).
  void add(double time, std::span<const double> point, std::span<double> force) const;

 private:
  Grid grid_;
  std::vector<double> times_;
  std::vector<std::vector<double>> gradients_;  ///< (time)(cell, axis) of W*rho at cell centres
};

struct CoupledState {
  ParticleEnsemble particles;
  ParticleEnsemble copies;  ///< same shape
  Clock clock;
};

struct CoupledOptions {
  double timestep = 0.0;  ///< largest step
  std::uint64_t seed = 0;
  PairSum::Options summation{};
};

/// Equations: X of theory.md (2); dY_i = -grad (V + W*rho_t)(Y_i) dt + sqrt(2/beta) dB_i with the same B_i.
/// Update: both x <- mirror(x + h F(x) + sqrt(2h/beta) xi) with the same xi. Order: weak and pathwise 1 where
/// no wall is reached, 1/2 pathwise at walls; E |X - Y|^2 = O(1/N) for smooth W (A.-S. Sznitman, Topics in
/// propagation of chaos, 1991). A singular W that is not softened would need the shorter steps of
/// close_pairs.hpp: not handled here. No functionals.
RunResult run_coupled(const Model& model, CoupledState& state, const MeanFieldForce& force,
                      const CoupledOptions& options, const Schedule& schedule,
                      const Observer<CoupledState>& observe, const StopRule& stop);

}  // namespace rieszflow::particle
