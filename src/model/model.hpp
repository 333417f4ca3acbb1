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

/// One mean-field model, theory.md (1)-(5). Data; immutable after assembly. Potentials and interactions are added.
struct Model {
  Domain domain;
  std::vector<Potential> potentials;      ///< V is their sum
  std::vector<Interaction> interactions;  ///< W is their sum
  double inverse_temperature = 1.0;       ///< beta > 0; infinity: gradient flow without noise
  std::vector<std::shared_ptr<const Functional>> functionals{};  ///< terms A[mu] of the energy beyond V and W
};

/// Why this pair is not a legal model, as a sentence for the user; nothing when it is legal.
std::optional<std::string> refusal(const Domain& domain, const Interaction& interaction);

/// V(x), all terms.
double potential(const Model& model, std::span<const double> point);
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
