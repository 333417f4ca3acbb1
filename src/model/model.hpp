#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "domain/domain.hpp"
#include "model/functional.hpp"
#include "potentials/interaction.hpp"
#include "potentials/potential.hpp"

namespace rieszflow {

/// One mean-field model, theory.md (1)-(5). Data; immutable after assembly. Potentials and interactions are
/// added.
struct Model {
  Domain domain;
  std::vector<Potential> potentials;      ///< V is their sum
  std::vector<Interaction> interactions;  ///< W is their sum
  double inverse_temperature = 1.0;       ///< beta > 0; infinity: gradient flow without noise
  /// Terms A[mu] of the energy beyond V and W.
  std::vector<std::shared_ptr<const Functional>> functionals{};
};

// clang-format off
/// Why this pair is not a legal model, as a sentence for the user; nothing when it is legal.
///
///                box, ball, whole space   torus
///   riesz        s < d, s != 0            also s > -2, d <= 3: periodised, mean removed (periodic_kernel.hpp)
///   log          legal                    d <= 3: periodised, mean removed
///   gaussian     legal                    d <= 3: sum over images
///   morse        legal                    d <= 3: sum over images
///   quadratic    legal                    refused: |x - y|^2 has no periodic meaning
///   cosine       legal                    legal when each period is a multiple of 2 pi
///   expression   legal                    refused: a function of r has no periodic meaning by itself
///   low_rank     legal                    legal when each g_k is periodic (tried numerically, to 1e-10)
// clang-format on
std::optional<std::string> refusal(const Domain& domain, const Interaction& interaction);

/// Why this model cannot run, as a sentence for the user; nothing when no fault was found. Besides the
/// refusals: V and W(r) are tried at many points (probe.hpp); V must be a number everywhere and may be
/// +infinity only on the boundary; on a torus V must be periodic; a table must cover the domain. A probe, no
/// proof: between its points a text can still fail.
std::optional<std::string> problem(const Model& model);

/// V(x), all terms.
double potential(const Model& model, std::span<const double> point);
/// out_p = V(points_p) for a batch; points: (point, dimension), row-major; out: (point).
void potentials(const Model& model, std::span<const double> points, std::span<double> out);
/// force += -grad V(x), all terms.
void add_potential_force(const Model& model, std::span<const double> point, std::span<double> force);
/// True when some W term is unbounded at r = 0.
bool has_singular_interaction(const Model& model);

/// Energies and free energy of a state, theory.md (5). Units: energy per particle.
struct FreeEnergy {
  double potential_energy = 0.0;    ///< integral V rho
  double interaction_energy = 0.0;  ///< (1/2) double-integral W rho rho
  double entropy = 0.0;             ///< S = - integral rho log rho
  double free_energy = 0.0;         ///< potential + interaction - entropy / beta
};

}  // namespace rieszflow
