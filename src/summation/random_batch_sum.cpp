#include "summation/random_batch_sum.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/expects.hpp"

namespace rieszflow {

RandomBatchSum::RandomBatchSum(const Model& model, std::size_t particle_count, std::size_t batch_size,
                               std::uint64_t seed, int threads)
    : particle_count_(particle_count),
      dimension_(dimension(model.domain)),
      batch_size_(batch_size),
      shuffle_(seed, NoisePurpose::MiniBatch) {
  expects(batch_size >= 2 && batch_size <= particle_count, "a batch has 2 to N particles");
  const PairSum::Options options{.method = PairSum::Method::Direct, .threads = threads};
  batches_.emplace(model, batch_size, options);
  if (particle_count % batch_size != 0) last_.emplace(model, last_size(), options);
  positions_.resize(particle_count * dimension_);
  forces_.resize(positions_.size());
  uniforms_.resize(particle_count);
}

/// Fisher and Yates.
void RandomBatchSum::shuffle(std::uint64_t replica, std::uint64_t step) {
  order_.resize(particle_count_);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  shuffle_.uniforms(replica, step, 0, uniforms_);
  for (std::size_t i = particle_count_; i-- > 1;) {
    const auto j = static_cast<std::size_t>(uniforms_[i] * static_cast<double>(i + 1));
    std::swap(order_[i], order_[std::min(i, j)]);
  }
}

void RandomBatchSum::add_forces(std::span<const double> positions, std::size_t replica_count,
                                std::uint64_t step, std::span<double> forces,
                                std::uint64_t first_replica) {
  const std::size_t n = particle_count_, d = dimension_, p = batch_size_;
  const std::size_t whole = last_ ? n / p - 1 : n / p;  // batches of p particles
  const auto count = static_cast<double>(n);
  for (std::size_t r = 0; r < replica_count; ++r) {
    const auto x = positions.subspan(r * n * d, n * d);
    const auto out = forces.subspan(r * n * d, n * d);
    shuffle(first_replica + r, step);
    for (std::size_t i = 0; i < n; ++i) std::copy_n(&x[order_[i] * d], d, &positions_[i * d]);
    std::ranges::fill(forces_, 0.0);
    const std::size_t split = whole * p * d;
    const std::span all(positions_), sums(forces_);
    batches_->add_forces(all.first(split), whole, sums.first(split));
    if (last_) last_->add_forces(all.subspan(split), 1, sums.subspan(split));
    // A sum over a system of b particles carries 1/b; a batch stands for all N.
    const auto scale = [&](double b) { return b / (b - 1.0) * (count - 1.0) / count; };
    const double whole_scale = scale(static_cast<double>(p)),
                 last_scale = scale(static_cast<double>(last_size()));
    for (std::size_t i = 0; i < n; ++i) {
      const double factor = i < whole * p ? whole_scale : last_scale;
      for (std::size_t k = 0; k < d; ++k) out[order_[i] * d + k] += factor * forces_[i * d + k];
    }
  }
}

}  // namespace rieszflow
