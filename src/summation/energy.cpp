#include "summation/energy.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow {

void energies(const Model& model, const PairSum& pair_sum, const ParticleEnsemble& ensemble,
              std::span<double> potential_energies, std::span<double> interaction_energies) {
  expects(potential_energies.size() == ensemble.replica_count &&
              interaction_energies.size() == ensemble.replica_count,
          "one energy for each replica");
  std::vector<double> values(ensemble.particle_count);
  for (std::size_t r = 0; r < ensemble.replica_count; ++r) {
    potentials(model, ensemble.replica(r), values);
    CompensatedSum sum;
    for (const double value : values) sum.add(value);
    potential_energies[r] =
        ensemble.particle_count == 0 ? 0.0 : sum.value() / static_cast<double>(values.size());
  }
  std::vector<double> forces(ensemble.positions.size(), 0.0);
  pair_sum.add_forces(ensemble.positions, ensemble.replica_count, forces, interaction_energies);
}

namespace {

/// Sum of the functionals of one set of particles; forces: scratch of at least their size.
double functional_value(const Model& model, std::span<const double> positions, std::size_t dimension,
                        std::uint64_t replica, std::span<double> forces) {
  double sum = 0.0;
  for (const auto& functional : model.functionals)
    sum += functional->add_forces(positions, positions.size() / dimension, replica, 0,
                                  forces.first(positions.size()));
  return sum;
}

}  // namespace

void functional_values(const Model& model, const ParticleEnsemble& ensemble, std::span<double> values) {
  expects(values.size() == ensemble.replica_count, "one value for each replica");
  std::vector<double> forces(ensemble.particle_count * ensemble.dimension, 0.0);
  for (std::size_t r = 0; r < ensemble.replica_count; ++r)
    values[r] = functional_value(model, ensemble.replica(r), ensemble.dimension, r, forces);
}

void mean_field_functional_values(const Model& model, const ParticleEnsemble& ensemble,
                                  std::span<double> values) {
  functional_values(model, ensemble, values);
  const std::size_t replicas = ensemble.replica_count;
  if (model.functionals.empty() || replicas < 2) return;
  const std::vector<double> alone(values.begin(), values.end());
  std::vector<double> both(2 * ensemble.particle_count * ensemble.dimension), forces(both.size(), 0.0);
  for (std::size_t r = 0; r < replicas; ++r) {
    const std::size_t neighbour = (r + 1) % replicas;
    const auto middle = std::ranges::copy(ensemble.replica(r), both.begin()).out;
    std::ranges::copy(ensemble.replica(neighbour), middle);
    values[r] = 2.0 * functional_value(model, both, ensemble.dimension, r, forces) - alone[neighbour];
  }
}

}  // namespace rieszflow
