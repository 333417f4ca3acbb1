#include "solvers/particle/stepper.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rieszflow::particle {
namespace {

StepOutcome first_not_finite(const ParticleEnsemble& ensemble, const std::vector<double>& values,
                             const char* what) {
  // A sum of x - x is zero when all are finite, and vectorises.
  double check = 0.0;
  for (const double v : values) check += v - v;
  if (check == 0.0) return {};
  const auto bad = std::ranges::find_if(values, [](double v) { return !std::isfinite(v); });
  const auto index = static_cast<std::size_t>(bad - values.begin()) / ensemble.dimension;
  const std::size_t replica = index / ensemble.particle_count;
  const auto place = std::span(ensemble.positions).subspan(index * ensemble.dimension, ensemble.dimension);
  return Fault{replica, index % ensemble.particle_count,
               fmt::format("{} of the particle at ({:.6g}) is not finite", what, fmt::join(place, ", "))};
}

}  // namespace

Stepper::Stepper(const Model& model, const ParticleEnsemble& ensemble, const Options& options, int coarsening,
                 std::size_t first_replica)
    : model_(model),
      options_(options),
      coarsening_(coarsening),
      first_replica_(first_replica),
      noise_(options.seed, NoisePurpose::LangevinIncrement) {
  const PairSum::Options& summation = options.summation;
  if (options.scheme == Scheme::Mala) {
    for (int t = 0; t < summation.threads; ++t) {
      samplers_.emplace_back(model, ensemble.particle_count, options.seed);
    }
  } else {
    if (summation.method == PairSum::Method::RandomBatch && ensemble.particle_count > summation.batch_size) {
      batch_sum_.emplace(model, ensemble.particle_count, summation.batch_size, options.seed,
                         summation.threads);
    } else {
      pair_sum_ = options.pair_sum ? options.pair_sum
                                   : std::make_shared<PairSum>(model, ensemble.particle_count, summation);
    }
    forces_.resize(ensemble.positions.size());
    gaussians_.resize(ensemble.positions.size());
  }
  // A batch knows nothing of most close pairs.
  if (options.scheme == Scheme::Reflected && !batch_sum_)
    close_pairs_.emplace(model, ensemble.particle_count, options.seed);
  next_.resize(ensemble.positions.size());
}

void Stepper::set_timestep(double timestep) {
  if (timestep == timestep_) return;
  timestep_ = timestep;
  for (Metropolis& sampler : samplers_) sampler.set_timestep(timestep);
  if (close_pairs_) close_pairs_->set_timestep(timestep);
}

StepOutcome Stepper::advance(ParticleEnsemble& ensemble, std::uint64_t step, Statistics& statistics) {
  return options_.scheme == Scheme::Mala ? metropolis_step(ensemble, step, statistics)
                                         : euler_step(ensemble, step, statistics);
}

/// Gaussians of particles [begin, begin + count) at one step.
void Stepper::draw(std::uint64_t replica, std::uint64_t step, std::size_t begin, std::size_t count,
                   std::span<double> out) const {
  const std::size_t d = dimension(model_.domain);
  noise_.gaussian_block(first_replica_ + replica, step << coarsening_, begin, count, d, out);
  if (coarsening_ == 0) return;
  std::vector<double> more(out.size());
  const std::uint64_t parts = std::uint64_t{1} << coarsening_;
  for (std::uint64_t part = 1; part < parts; ++part) {
    noise_.gaussian_block(first_replica_ + replica, (step << coarsening_) + part, begin, count, d, more);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] += more[k];
  }
  const double scale = 1.0 / std::sqrt(static_cast<double>(parts));
  for (double& xi : out) xi *= scale;
}

/// forces_ = -N grad H_N of every replica, or its estimate by random batches.
void Stepper::evaluate_forces(const ParticleEnsemble& ensemble, std::uint64_t step) {
  const std::size_t d = ensemble.dimension, n = ensemble.particle_count;
  std::ranges::fill(forces_, 0.0);
  if (batch_sum_) {
    batch_sum_->add_forces(ensemble.positions, ensemble.replica_count, step, forces_, first_replica_);
  } else {
    pair_sum_->add_forces(ensemble.positions, ensemble.replica_count, forces_);
  }
  const auto count = static_cast<std::int64_t>(ensemble.replica_count * n);
#pragma omp parallel for schedule(static) num_threads(threads()) if (threads() > 1)
  for (std::int64_t i = 0; i < count; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * d;
    add_potential_force(model_, std::span(ensemble.positions).subspan(at, d),
                        std::span(forces_).subspan(at, d));
  }
  for (const auto& term : model_.functionals) {
    for (std::size_t r = 0; r < ensemble.replica_count; ++r) {
      term->add_forces(ensemble.replica(r), n, first_replica_ + r, step,
                       std::span(forces_).subspan(r * n * d, n * d));
    }
  }
}

StepOutcome Stepper::euler_step(ParticleEnsemble& ensemble, std::uint64_t step, Statistics& statistics) {
  const std::size_t d = ensemble.dimension, n = ensemble.particle_count, size = n * d;
  evaluate_forces(ensemble, step);
  ++statistics.force_evaluations;
  if (const auto fault = first_not_finite(ensemble, forces_, "the force")) return fault;
  const double noise = std::sqrt(2.0 * timestep_ / model_.inverse_temperature);
  const bool reflected = options_.scheme == Scheme::Reflected,
             local = close_pairs_ && close_pairs_->possible();
  // Work is cut into chunks of particles, or whole replicas where clusters of them move together.
  const std::size_t chunk = local ? std::max<std::size_t>(n, 1) : 512;
  const std::size_t chunks = (n + chunk - 1) / chunk;
  const auto count = static_cast<std::int64_t>(ensemble.replica_count * chunks);
  std::int64_t substeps = 0, close = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : substeps, close) num_threads(threads()) if (threads() > 1)
  for (std::int64_t index = 0; index < count; ++index) {
    const std::size_t r = static_cast<std::size_t>(index) / chunks;
    const std::size_t begin = static_cast<std::size_t>(index) % chunks * chunk,
                      end = std::min(begin + chunk, n);
    const std::size_t at = r * size + begin * d, length = (end - begin) * d;
    const auto xi = std::span(gaussians_).subspan(at, length), y = std::span(next_).subspan(at, length);
    const auto x = std::span(ensemble.positions).subspan(at, length),
               f = std::span(forces_).subspan(at, length);
    if (noise > 0.0) {
      draw(r, step, begin, end - begin, xi);
    } else {
      std::ranges::fill(xi, 0.0);
    }
    if (local) {
      const ClosePairs::Work work = close_pairs_->advance(first_replica_ + r, step, x, f, xi, y);
      substeps += work.particle_steps;
      close += work.pairs;
      continue;
    }
    for (std::size_t k = 0; k < length; ++k) y[k] = x[k] + timestep_ * f[k] + noise * xi[k];
    for (std::size_t i = 0; i < end - begin; ++i) {
      if (reflected) {
        reflect(model_.domain, y.subspan(i * d, d));
      } else {
        project(model_.domain, y.subspan(i * d, d));
      }
    }
  }
  if (const auto fault = first_not_finite(ensemble, next_, "the next position")) return fault;
  if (!reflected) {
    if (const auto fault = first_wall_collision(ensemble)) return fault;
  }
  statistics.substeps += substeps;
  statistics.close_pairs += close;
  ensemble.positions.swap(next_);
  return {};
}

StepOutcome Stepper::metropolis_step(ParticleEnsemble& ensemble, std::uint64_t step, Statistics& statistics) {
  const auto count = static_cast<std::int64_t>(ensemble.replica_count);
  std::vector<StepOutcome> faults(ensemble.replica_count);
  std::int64_t accepted_now = 0;
  next_ = ensemble.positions;
#pragma omp parallel for schedule(dynamic) reduction(+ : accepted_now) num_threads(threads()) if (threads() > 1)
  for (std::int64_t index = 0; index < count; ++index) {
    const auto r = static_cast<std::size_t>(index);
    const std::size_t size = ensemble.particle_count * ensemble.dimension;
    std::int64_t accepted_here = 0;
    faults[r] = samplers_[static_cast<std::size_t>(threads() > 1 ? omp_get_thread_num() : 0)].sweep(
        first_replica_ + r, step, std::span(next_).subspan(r * size, size), accepted_here);
    accepted_now += accepted_here;
  }
  statistics.force_evaluations += 2;
  for (const auto& fault : faults) {
    if (fault) return fault;
  }
  statistics.accepted += accepted_now;
  statistics.proposed += count * samplers_.front().moves();
  ensemble.positions.swap(next_);
  return {};
}

/// Two particles that were projected onto the same point of the wall, where W is infinite.
StepOutcome Stepper::first_wall_collision(const ParticleEnsemble& ensemble) const {
  if (!has_singular_interaction(model_)) return {};
  const std::size_t d = ensemble.dimension, n = ensemble.particle_count;
  for (std::size_t r = 0; r < ensemble.replica_count; ++r) {
    const auto x = std::span(next_).subspan(r * n * d, n * d);
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto less = [&](std::size_t a, std::size_t b) {
      return std::ranges::lexicographical_compare(x.subspan(a * d, d), x.subspan(b * d, d));
    };
    std::ranges::sort(order, less);
    for (std::size_t k = 1; k < n; ++k) {
      if (less(order[k - 1], order[k])) continue;
      const auto [first, second] = std::minmax(order[k - 1], order[k]);
      return Fault{
          r, first,
          fmt::format("projection put it on the same point ({:.6g}) as particle {}, where the interaction is "
                      "infinite: use the reflected or the mala scheme, or a softened interaction",
                      fmt::join(x.subspan(first * d, d), ", "), second)};
    }
  }
  return {};
}

}  // namespace rieszflow::particle
