#include "summation/energy.hpp"

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
  for (const auto& functional : model.functionals)
    for (std::size_t r = 0; r < ensemble.replica_count; ++r)
      interaction_energies[r] +=
          functional->add_forces(ensemble.replica(r), ensemble.particle_count, r, 0,
                                 std::span(forces).first(ensemble.particle_count * ensemble.dimension));
}

}  // namespace rieszflow
