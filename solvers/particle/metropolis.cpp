#include "solvers/particle/metropolis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow::particle {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Standard deviations beyond which a Gaussian is below the rounding of its neighbours: exp(-40) = 4e-18.
constexpr double reach = 9.0;

/// sum_m exp(-(point + m period - mean)^2 / (2 deviation^2)), not normalised; relative to exp(shift).
struct LogSum {
  double largest = -infinity;
  double sum = 0.0;
  void add(double exponent) {
    if (exponent <= largest) {
      sum += std::exp(exponent - largest);
    } else {
      sum = sum * std::exp(largest - exponent) + 1.0;
      largest = exponent;
    }
  }
  double value() const { return largest + std::log(sum); }
};

/// Adds the logarithms of all terms point + m period that matter for a Gaussian about `mean`.
template <class Weight>
void add_images(LogSum& log_sum, double point, double mean, double period, double deviation,
                const Weight& log_weight) {
  const double nearest = std::round((mean - point) / period);
  const double count = std::ceil(reach * deviation / period) + 1.0;
  for (double m = nearest - count; m <= nearest + count; m += 1.0) {
    const double image = point + m * period, z = (image - mean) / deviation;
    log_sum.add(-0.5 * z * z + log_weight(image));
  }
}

const auto no_weight = [](double) { return 0.0; };

double log_normalisation(double deviation) {
  return -std::log(deviation * std::sqrt(2.0 * std::numbers::pi));
}

/// One axis of a box: images about both walls.
double log_folded_axis(double point, double mean, double lower, double upper, double deviation) {
  const double period = 2.0 * (upper - lower);
  // Beyond four lengths the folded Gaussian is uniform to exp(-2 pi^2 16 / 4) = 1e-34.
  if (deviation > 4.0 * (upper - lower)) return -std::log(upper - lower);
  LogSum sum;
  add_images(sum, point, mean, period, deviation, no_weight);
  add_images(sum, 2.0 * lower - point, mean, period, deviation, no_weight);
  return sum.value() + log_normalisation(deviation);
}

double log_wrapped_axis(double point, double mean, double lower, double upper, double deviation) {
  if (deviation > 4.0 * (upper - lower)) return -std::log(upper - lower);
  LogSum sum;
  add_images(sum, point, mean, upper - lower, deviation, no_weight);
  return sum.value() + log_normalisation(deviation);
}

/// A ball: the points c + t u with fold(t) = |point - c| on the line through the centre, each with Jacobian
/// (|t| / |point - c|)^(d-1).
double log_folded_ball(const Ball& ball, std::span<const double> point, std::span<const double> mean,
                       double deviation) {
  const std::size_t d = point.size();
  double radius = 0.0, along = 0.0, across = 0.0;
  for (std::size_t k = 0; k < d; ++k) radius += (point[k] - ball.center[k]) * (point[k] - ball.center[k]);
  radius = std::sqrt(radius);
  for (std::size_t k = 0; k < d; ++k) {
    const double direction = radius > 0.0 ? (point[k] - ball.center[k]) / radius : (k == 0 ? 1.0 : 0.0);
    along += direction * (mean[k] - ball.center[k]);
  }
  for (std::size_t k = 0; k < d; ++k) {
    const double direction = radius > 0.0 ? (point[k] - ball.center[k]) / radius : (k == 0 ? 1.0 : 0.0);
    const double rest = mean[k] - ball.center[k] - along * direction;
    across += rest * rest;
  }
  const auto log_jacobian = [&](double t) {
    return d == 1 || t == radius ? 0.0 : static_cast<double>(d - 1) * std::log(std::abs(t) / radius);
  };
  LogSum sum;
  add_images(sum, radius, along, 4.0 * ball.radius, deviation, log_jacobian);
  add_images(sum, 2.0 * ball.radius - radius, along, 4.0 * ball.radius, deviation, log_jacobian);
  return sum.value() - 0.5 * across / (deviation * deviation) +
         static_cast<double>(d) * log_normalisation(deviation);
}

}  // namespace

double log_folded_gaussian(const Domain& domain, std::span<const double> point, std::span<const double> mean,
                           double deviation) {
  return std::visit(
      [&]<class D>(const D& shape) {
        double sum = 0.0;
        if constexpr (std::is_same_v<D, Ball>) {
          sum = log_folded_ball(shape, point, mean, deviation);
        } else {
          for (std::size_t k = 0; k < point.size(); ++k) {
            if constexpr (std::is_same_v<D, Box>) {
              sum += log_folded_axis(point[k], mean[k], shape.lower[k], shape.upper[k], deviation);
            } else if constexpr (std::is_same_v<D, Torus>) {
              sum += log_wrapped_axis(point[k], mean[k], shape.lower[k], shape.upper[k], deviation);
            } else {
              const double z = (point[k] - mean[k]) / deviation;
              sum += log_normalisation(deviation) - 0.5 * z * z;
            }
          }
        }
        return sum;
      },
      domain);
}

struct Metropolis::Implementation {
  const Model& model;
  std::size_t particle_count, dimension;
  double beta, timestep = 0.0, deviation = 0.0;
  NoiseStream noise, acceptance;
  OneParticleSum one;
  PairSum pairs;  ///< whole-system moves only
  std::vector<double> gaussians, uniforms, here, mean, proposal, force, reverse_mean, pair_force;
  std::vector<double> forces, proposed, proposed_forces;

  Implementation(const Model& m, std::size_t count, std::uint64_t seed)
      : model(m),
        particle_count(count),
        dimension(rieszflow::dimension(m.domain)),
        beta(m.inverse_temperature),
        noise(seed, NoisePurpose::LangevinIncrement),
        acceptance(seed, NoisePurpose::MetropolisAcceptance),
        one(m, count),
        pairs(m, count, {}),
        gaussians(count * dimension),
        uniforms(count),
        here(dimension),
        mean(dimension),
        proposal(dimension),
        force(dimension),
        reverse_mean(dimension),
        pair_force(dimension) {}

  bool moves_whole_system() const { return !model.functionals.empty(); }

  /// mean = x + h F / sqrt(1 + h beta |F|^2 / 2).
  void proposal_mean(std::span<const double> x, std::span<const double> f, std::span<double> out) const {
    double squared = 0.0;
    for (const double c : f) squared += c * c;
    const double factor = timestep / std::sqrt(1.0 + 0.5 * timestep * beta * squared);
    for (std::size_t k = 0; k < x.size(); ++k) out[k] = squared < infinity ? x[k] + factor * f[k] : x[k];
  }

  /// V(point) + (1/N) sum_j W(point, x_j), and its force into `force`.
  double energy_at(std::size_t particle, std::span<const double> point) {
    const double interaction = one.at(particle, point, force);
    add_potential_force(model, point, force);
    return potential(model, point) + interaction;
  }

  StepOutcome sweep_particles(std::uint64_t replica, std::uint64_t step, std::span<double> positions,
                              std::int64_t& accepted) {
    accepted = 0;
    one.load(positions);
    noise.gaussian_block(replica, step, particle_count, dimension, gaussians);
    for (std::size_t i = 0; i < particle_count; ++i) {
      one.position(i, here);
      const double energy = energy_at(i, here);
      proposal_mean(here, force, mean);
      for (std::size_t k = 0; k < dimension; ++k)
        proposal[k] = mean[k] + deviation * gaussians[i * dimension + k];
      reflect(model.domain, proposal);
      const double new_energy = energy_at(i, proposal);
      proposal_mean(proposal, force, reverse_mean);
      // A move between infinite energies keeps the particle; to or from one, the comparison decides.
      const double gain = new_energy == energy ? 0.0 : -beta * (new_energy - energy);
      const double log_ratio = gain + log_folded_gaussian(model.domain, here, reverse_mean, deviation) -
                               log_folded_gaussian(model.domain, proposal, mean, deviation);
      if (std::isnan(log_ratio))
        return Fault{replica, i, "the energy or the force of a proposed move is not a number"};
      double uniform = 0.0;
      acceptance.uniforms(replica, step, i, std::span(&uniform, 1));
      if (std::log(uniform) < log_ratio) {
        one.move(i, proposal);
        ++accepted;
      }
    }
    for (std::size_t i = 0; i < particle_count; ++i)
      one.position(i, positions.subspan(i * dimension, dimension));
    return {};
  }

  /// N H_N of theory.md (1), functionals included, and -N grad H_N.
  double total_energy(std::uint64_t replica, std::uint64_t step, std::span<const double> x,
                      std::vector<double>& f) {
    f.assign(x.size(), 0.0);
    double interaction = 0.0;
    pairs.add_forces(x, 1, f, std::span(&interaction, 1));
    CompensatedSum potentials;
    for (std::size_t i = 0; i < particle_count; ++i) {
      const auto point = x.subspan(i * dimension, dimension);
      potentials.add(potential(model, point));
      add_potential_force(model, point, std::span(f).subspan(i * dimension, dimension));
    }
    double functional = 0.0;
    for (const auto& term : model.functionals)
      functional += term->add_forces(x, particle_count, replica, step, f);
    return potentials.value() + static_cast<double>(particle_count) * (interaction + functional);
  }

  StepOutcome sweep_whole(std::uint64_t replica, std::uint64_t step, std::span<double> positions,
                          std::int64_t& accepted) {
    accepted = 0;
    const std::size_t d = dimension;
    noise.gaussian_block(replica, step, particle_count, d, gaussians);
    const double energy = total_energy(replica, step, positions, forces);
    proposed.resize(positions.size());
    CompensatedSum log_density;
    for (std::size_t i = 0; i < particle_count; ++i) {
      const auto x = positions.subspan(i * d, d), y = std::span(proposed).subspan(i * d, d);
      proposal_mean(x, std::span(forces).subspan(i * d, d), mean);
      for (std::size_t k = 0; k < d; ++k) y[k] = mean[k] + deviation * gaussians[i * d + k];
      reflect(model.domain, y);
      log_density.add(-log_folded_gaussian(model.domain, y, mean, deviation));
    }
    const double new_energy = total_energy(replica, step, proposed, proposed_forces);
    for (std::size_t i = 0; i < particle_count; ++i) {
      proposal_mean(std::span(proposed).subspan(i * d, d), std::span(proposed_forces).subspan(i * d, d),
                    mean);
      log_density.add(log_folded_gaussian(model.domain, positions.subspan(i * d, d), mean, deviation));
    }
    const double gain = new_energy == energy ? 0.0 : -beta * (new_energy - energy);
    const double log_ratio = gain + log_density.value();
    if (std::isnan(log_ratio))
      return Fault{replica, 0, "the energy or a force of a proposed move is not a number"};
    double uniform = 0.0;
    acceptance.uniforms(replica, step, 0, std::span(&uniform, 1));
    if (std::log(uniform) < log_ratio) {
      std::ranges::copy(proposed, positions.begin());
      accepted = 1;
    }
    return {};
  }
};

Metropolis::Metropolis(const Model& model, std::size_t particle_count, std::uint64_t seed) {
  expects(std::isfinite(model.inverse_temperature), "Metropolis moves need a finite inverse temperature");
  for (const auto& term : model.functionals)
    expects(!term->is_stochastic(), "a stochastic term cannot be Metropolised");
  implementation_ = std::make_unique<Implementation>(model, particle_count, seed);
}
Metropolis::~Metropolis() = default;
Metropolis::Metropolis(Metropolis&&) noexcept = default;
Metropolis& Metropolis::operator=(Metropolis&&) noexcept = default;

void Metropolis::set_timestep(double timestep) {
  implementation_->timestep = timestep;
  implementation_->deviation = std::sqrt(2.0 * timestep / implementation_->beta);
}

StepOutcome Metropolis::sweep(std::uint64_t replica, std::uint64_t step, std::span<double> positions,
                              std::int64_t& accepted) {
  return implementation_->moves_whole_system()
             ? implementation_->sweep_whole(replica, step, positions, accepted)
             : implementation_->sweep_particles(replica, step, positions, accepted);
}

std::int64_t Metropolis::moves() const {
  return implementation_->moves_whole_system() ? 1
                                               : static_cast<std::int64_t>(implementation_->particle_count);
}

}  // namespace rieszflow::particle
