#pragma once
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "domain/domain.hpp"
#include "model/density.hpp"
#include "model/ensemble.hpp"
#include "potentials/expression.hpp"

namespace rieszflow {

/// Normal law with independent coordinates, truncated to the domain (torus: wrapped).
struct GaussianLaw {
  std::vector<double> mean;                ///< (dimension)
  std::vector<double> standard_deviation;  ///< (dimension), > 0
};
/// Uniform on a bounded domain.
struct UniformLaw {};
/// Mixture of Gaussians, each truncated to the domain.
struct MixtureLaw {
  std::vector<double> weights;          ///< (component), > 0, normalised on use
  std::vector<GaussianLaw> components;  ///< (component)
};
/// Unnormalised density given as text in the coordinates; >= 0 on the domain.
struct ExpressionLaw {
  std::shared_ptr<const ExpressionFunction> density;
};
/// Piecewise constant density, for instance a snapshot of an earlier run.
struct GridLaw {
  Density density;
};
/// Given particle positions (an earlier run's snapshot), used as they are.
struct PositionsLaw {
  ParticleEnsemble ensemble;
};

using InitialLaw = std::variant<GaussianLaw, UniformLaw, MixtureLaw, ExpressionLaw, GridLaw, PositionsLaw>;

/// Independent samples of `law` restricted to the domain, keyed by (seed, InitialPosition, replica, particle).
ParticleEnsemble sample(const InitialLaw& law, const Domain& domain, std::size_t replica_count,
                        std::size_t particle_count, std::uint64_t seed);

/// Exact cell averages where a closed form exists (Gaussian in a box: error functions), else Gauss-Legendre per cell;
/// normalised to mass 1. PositionsLaw: the histogram.
Density cell_averages(const InitialLaw& law, const Domain& domain, const Grid& grid);

}  // namespace rieszflow
