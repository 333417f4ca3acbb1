#pragma once
#include <memory>
#include <span>
#include <vector>

#include "model/mean_field.hpp"
#include "solvers/pde/evolution.hpp"
#include "solvers/pde/scharfetter_gummel.hpp"

/// What `run` and the time schemes share; inside this room only.
namespace rieszflow::pde {

/// Why a trial step was refused.
enum class Refusal { None, Error, Energy, NotFinite, Negative, Unsolved };

/// A trial step from the current density, which it does not change.
struct Trial {
  Refusal refusal = Refusal::None;
  double growth = 1.0;  ///< factor by which the next timestep may differ
};

/// The operator, the current effective potential, the trial state.
struct Workspace {
  explicit Workspace(const MeanField& mean_field);

  /// out = V + W*rho; returns the interaction energy.
  double effective_potential(std::span<const double> averages, std::span<double> out) const;

  const MeanField& field;
  ScharfetterGummel fluxes;
  std::vector<double> potential;        ///< Phi of the current density
  std::vector<double> trial;            ///< density of the trial step
  std::vector<double> trial_potential;  ///< its Phi
  bool trial_potential_known = false;  ///< a stepper sets it with the energy below when it needed them itself
  double trial_interaction_energy = 0.0;
  bool limited = false;  ///< the trial was made with limited fluxes
};

class Stepper {
 public:
  virtual ~Stepper() = default;
  /// Fills work.trial with the density a timestep later.
  virtual Trial attempt(Workspace& work, std::span<const double> averages, double timestep,
                        bool adaptive) = 0;
  /// - dF/dt of the semi-discretisation; `scratch` is one number per cell.
  virtual double dissipation(Workspace& work, std::span<const double> averages, std::span<double> scratch) {
    return work.fluxes.dissipation(work.potential, averages, scratch);
  }
};

std::unique_ptr<Stepper> implicit_stepper(const Workspace& work, const Options& options);
std::unique_ptr<Stepper> explicit_stepper(const Workspace& work, const Options& options);

bool all_finite(std::span<const double> values);
bool all_non_negative(std::span<const double> values);

/// The verdict on a step with this error estimate, proportional to timestep^growth_order.
Trial verdict(double error, double allowed, double growth_order);

}  // namespace rieszflow::pde
