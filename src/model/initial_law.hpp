#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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
/// Unnormalised density given as text in the coordinates; >= 0 on the bounded domain, d <= 3.
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

/// Why `law` cannot start a run in `domain`, as a sentence for the user; nothing when no fault was found.
/// Expression: tried at many points (probe.hpp) for values that are negative, infinite or no number. Ball: a
/// Gaussian of which the ball holds too little to be drawn by rejection.
std::optional<std::string> problem(const InitialLaw& law, const Domain& domain);

/// Independent samples of `law` restricted to the domain, keyed by (seed, InitialPosition, replica,
/// particle): the same for any number of particles, replicas or threads. The law must have no `problem`.
///
/// Exact: Gaussians and mixtures (box: inverse distribution function per axis, tails by Marsaglia's method;
/// ball: rejection; torus: wrapped), uniform and grid laws. Expression: a cell of a lattice of 4096, 256^2 or
/// 64^3 cells by its mass, then rejection inside the cell against 1.25 times the largest value on the 3^d
/// lattice of the cell: exact but for the quadrature of the cell masses, as long as the density does not
/// exceed that bound within a cell.
ParticleEnsemble sample(const InitialLaw& law, const Domain& domain, std::size_t replica_count,
                        std::size_t particle_count, std::uint64_t seed);

/// Cell averages, normalised to mass 1. Exact to round-off for Gaussians, mixtures, uniform and grid laws
/// (the latter remapped by overlaps) in boxes and on tori; expression: four Gauss-Legendre points per axis
/// and cell; PositionsLaw: the histogram of all replicas. Cells cut by the sphere of a ball: the average over
/// the whole cell (expression: over the nodes inside), weighted with the volume fraction.
Density cell_averages(const InitialLaw& law, const Domain& domain, const Grid& grid);

}  // namespace rieszflow
