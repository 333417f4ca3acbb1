#include "solvers/stationary/landscape.hpp"

#include <algorithm>
#include <cmath>

namespace rieszflow::stationary {

Landscape::Landscape(const MeanField& field, const GridFunctional* extra)
    : Landscape(field, {.inverse_temperature = field.model().inverse_temperature}, extra) {}

Landscape::Landscape(const MeanField& field, Parameters parameters, const GridFunctional* extra)
    : field_(field), parameters_(parameters), extra_(extra) {
  const std::span<const double> volumes = field.volumes();
  volumes_.assign(volumes.begin(), volumes.end());
  if (volumes_.empty()) volumes_.assign(field.grid().cell_count(), field.grid().cell_volume());
}

double Landscape::effective_potential(std::span<const double> averages, std::span<double> out) const {
  double energy = parameters_.strength * field_.interaction_potential(averages, out);
  if (parameters_.strength != 1.0) {
    for (double& value : out) value *= parameters_.strength;
  }
  if (extra_ != nullptr) {
    variation_.resize(out.size());
    energy += extra_->value(averages, variation_);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += variation_[i];
  }
  const std::span<const double> external = field_.external_potential();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += external[i];
  return energy;
}

FreeEnergy Landscape::energy(std::span<const double> averages, double interaction_energy) const {
  FreeEnergy energy = field_.free_energy(averages, interaction_energy);
  energy.free_energy =
      energy.potential_energy + energy.interaction_energy - energy.entropy / parameters_.inverse_temperature;
  return energy;
}

void Landscape::potential_change(std::span<const double> averages, std::span<const double> direction,
                                 std::span<double> out) const {
  if (extra_ == nullptr && field_.model().functionals.empty()) {
    field_.interaction_potential(direction, out);
    if (parameters_.strength != 1.0) {
      for (double& value : out) value *= parameters_.strength;
    }
    return;
  }
  double largest = 0.0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (averages[i] > 0.0) largest = std::max(largest, std::abs(direction[i] / averages[i]));
  }
  if (largest == 0.0) {
    std::fill(out.begin(), out.end(), 0.0);
    return;
  }
  const double step = 1e-4 / largest;
  ahead_.resize(out.size());
  behind_.resize(out.size());
  const auto displaced = [&](double sign, std::span<double> potential) {
    for (std::size_t i = 0; i < out.size(); ++i) behind_[i] = averages[i] + sign * step * direction[i];
    effective_potential(behind_, potential);
  };
  displaced(1.0, ahead_);
  displaced(-1.0, out);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = (ahead_[i] - out[i]) / (2.0 * step);
}

}  // namespace rieszflow::stationary
