#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "solvers/observer.hpp"

namespace rieszflow::rare_event {

/// How log Z(1)/Z(0) is found.
enum class PartitionMethod {
  Reweighting,    ///< overlapping couplings, MBAR over a chain of BAR: no quadrature error
  Thermodynamic,  ///< -beta N integral of E_lambda over lambda by Gauss-Legendre in lambda^(1/3): an independent
                  ///< check
};

struct PartitionOptions {
  PartitionMethod method = PartitionMethod::Reweighting;
  std::size_t nodes = 8;  ///< of Thermodynamic
  std::size_t replicates = 32;
  std::int64_t sweeps = 1250;  ///< per window and replicate
  double spacing = 1.75;  ///< of neighbouring couplings, in standard deviations of beta N times the energy
  std::uint64_t seed = 0;
  int threads = 1;
  std::function<bool()> interrupted{};
};

struct PartitionFunction {
  RunStatus status = RunStatus::Completed;
  std::string message;
  double log_partition = 0.0;   ///< log Z_N of theory.md (3)
  double standard_error = 0.0;  ///< of log_partition
  std::vector<double> replicate_values;
  std::vector<double> couplings;      ///< (window) 0 .. 1
  std::vector<double> mean_energies;  ///< (window) of (1/(2N^2)) sum W + functionals
  double least_overlap = 1.0;
  std::int64_t moves = 0;
  double seconds = 0.0;
};

/// Box that holds exp(-beta V) up to exp(-60) along the axes through the origin, the minimum of V there
/// sought within 20 of it; empty when V does not confine.
Box essential_box(const Model& model);

/// The model where its density lives: on its domain, or on the essential box in the whole space; nothing when
/// V does not confine.
std::optional<Model> bounded(Model model);

/// log of the one-particle integral of exp(-beta V) over the domain: Gauss-Legendre panels, nested over the
/// axes, each axis of a ball within its chord. In the whole space: over the essential box. Relative error
/// about 1e-12 for smooth V; d <= 3 unless there is no potential. NaN when V does not confine.
double log_one_particle_integral(const Model& model);

/// log Z_N along the couplings lambda of the interaction, from independent particles to the model:
///
///     log Z_N = N log integral exp(-beta V) + log Z(1)/Z(0),   Z(lambda) = E_0 exp(-lambda beta N E),   E =
///     E_W + functionals.
///
/// Reweighting (reweighting.hpp): couplings spaced by the spread of beta N E, so that they crowd at zero
/// where that spread is large (for singular W it is infinite there when s >= d/2). Thermodynamic: lambda =
/// mu^3 because the integrand of a singular W is not smooth at zero.
PartitionFunction partition_function(const Model& model, std::size_t particle_count,
                                     const PartitionOptions& options);

}  // namespace rieszflow::rare_event
