#include "solvers/particle/close_pairs.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <numbers>
#include <numeric>
#include <utility>

namespace rieszflow::particle {
namespace {

constexpr int kick_bisections = 24;

/// Riesz, log and whatever is unbounded at r = 0: their force may be large however smooth the density is.
bool is_stiff(const Interaction& interaction) {
  return std::holds_alternative<RieszInteraction>(interaction) ||
         std::holds_alternative<LogarithmicInteraction>(interaction) || is_singular(interaction);
}

/// -W'(r)/r alone: `radial` also pays for the energy, a logarithm that nobody reads here.
double force_over_r_of(const Interaction& interaction, double squared_distance) {
  if (const auto* w = std::get_if<LogarithmicInteraction>(&interaction)) {
    const double squared = squared_distance + w->softening * w->softening;
    return squared > 0.0 ? w->strength / squared : 0.0;
  }
  return radial(interaction, squared_distance).force_over_r;
}

}  // namespace

ClosePairs::ClosePairs(const Model& model, std::size_t particle_count, std::uint64_t seed)
    : domain_(model.domain),
      particle_count_(particle_count),
      dimension_(rieszflow::dimension(model.domain)),
      noise_variance_(2.0 / model.inverse_temperature),
      bridge_(seed, NoisePurpose::BrownianBridge) {
  std::ranges::copy_if(model.interactions, std::back_inserter(stiff_), is_stiff);
}

void ClosePairs::set_timestep(double timestep) {
  timestep_ = timestep;
  for (std::size_t level = 0; level < reach_.size(); ++level) {
    reach_[level] = reach(std::ldexp(timestep, -static_cast<int>(level)));
  }
}

double ClosePairs::force_over_r(double squared_distance) const {
  double sum = 0.0;
  for (const Interaction& term : stiff_) sum += force_over_r_of(term, squared_distance);
  return sum;
}

double ClosePairs::reach(double timestep) const {
  if (stiff_.empty() || particle_count_ < 2) return 0.0;
  const double noise = std::sqrt(2.0 * noise_variance_ * timestep);
  const auto close = [&](double r) {
    const double kick =
        2.0 * timestep * std::abs(force_over_r(r * r)) * r / static_cast<double>(particle_count_);
    return kick > resolution * std::max(r, noise);
  };
  // The force of a stiff term falls with r beyond its softening: look for the largest close distance on a
  // ladder of factors of two, then bisect.
  double far = 1e30;
  while (far > 1e-30 && !close(far)) far *= 0.5;
  if (far <= 1e-30) return 0.0;
  double near = far;
  far *= 2.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (near + far);
    (close(middle) ? near : far) = middle;
  }
  return near;
}

double ClosePairs::crowding(double timestep, double volume) const {
  const double d = static_cast<double>(dimension_), r = reach(timestep);
  return static_cast<double>(particle_count_) * std::pow(std::numbers::pi, 0.5 * d) /
         std::tgamma(0.5 * d + 1.0) * std::pow(r, d) / volume;
}

double ClosePairs::implicit_kick(double r, double timestep) const {
  const double rate = 2.0 * timestep / static_cast<double>(particle_count_);
  const auto kick = [&](double distance) { return rate * force_over_r(distance * distance) * distance; };
  if (!(kick(r) > 0.0))
    return std::max(kick(r), -r);  // attraction brings a pair together, not through each other
  double low = r, high = 2.0 * r;
  while (high - r < kick(high)) high *= 2.0;
  // To 1e-7 of the root: the step itself is no better.
  for (int i = 0; i < kick_bisections; ++i) {
    const double middle = 0.5 * (low + high);
    (middle - r < kick(middle) ? low : high) = middle;
  }
  return 0.5 * (low + high) - r;
}

/// The state of one replica while its clusters take their steps. Members of a cluster are numbered 0..n-1;
/// their forces and Gaussians are (member, dimension).
struct ClosePairs::Recursion {
  template <class T>
  using List = std::pmr::vector<T>;
  using Index = std::uint32_t;
  using Members = std::span<const Index>;
  using Numbers = std::span<const double>;

  const ClosePairs& all;
  std::uint64_t replica, step;
  std::span<double> x;  ///< (particle, dimension) of the replica
  std::pmr::memory_resource* memory;
  Work work{};
  std::size_t d = all.dimension_;
  const Torus* torus = std::get_if<Torus>(&all.domain_);

  std::span<double> position(std::size_t particle) const { return x.subspan(particle * d, d); }

  /// Nearest representative of x_a - x_b along one axis.
  double difference(std::size_t a, std::size_t b, std::size_t k) const {
    const double along = x[a * d + k] - x[b * d + k];
    if (!torus) return along;
    const double length = torus->upper[k] - torus->lower[k];
    return along >= 0.5 * length ? along - length : along < -0.5 * length ? along + length : along;
  }
  double squared_distance(std::size_t a, std::size_t b) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < d; ++k) sum += difference(a, b, k) * difference(a, b, k);
    return sum;
  }

  /// Calls visit(a, b) for the pairs of `members` closer than `reach`: all of a few, a sweep along the first
  /// axis of many.
  template <class Visit>
  void for_close_pairs(Members members, double reach, const Visit& visit) const {
    const std::size_t n = members.size();
    const auto meet = [&](std::size_t a, std::size_t b) {
      if (squared_distance(members[a], members[b]) < reach * reach) visit(a, b);
    };
    if (n <= 24) {
      for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = 0; b < a; ++b) meet(a, b);
      }
      return;
    }
    const List<Index> order = along_first_axis(members);
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = a + 1; b < n + (torus ? a : 0); ++b) {
        const double along = x[members[order[b % n]] * d] - x[members[order[a]] * d] +
                             (b >= n ? torus->upper[0] - torus->lower[0] : 0.0);
        if (along >= reach) break;
        meet(order[a], order[b % n]);
      }
    }
  }

  /// Members by their first coordinate: into as many slabs, which are then sorted.
  List<Index> along_first_axis(Members members) const {
    const std::size_t n = members.size();
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const Index member : members) {
      low = std::min(low, x[member * d]);
      high = std::max(high, x[member * d]);
    }
    const double per_length = high > low ? static_cast<double>(n) / (high - low) : 0.0;
    const auto slab_of = [&](std::size_t a) {
      return std::min(n - 1, static_cast<std::size_t>((x[members[a] * d] - low) * per_length));
    };
    List<Index> start(n + 1, 0, memory), order(n, memory);
    for (std::size_t a = 0; a < n; ++a) ++start[slab_of(a)];
    for (std::size_t slab = 0, before = 0; slab <= n; ++slab)
      before += std::exchange(start[slab], static_cast<Index>(before));
    for (std::size_t a = 0; a < n; ++a) order[start[slab_of(a)]++] = static_cast<Index>(a);
    // start[s] has run to the end of its slab.
    for (std::size_t slab = 0, begin = 0; slab < n; begin = start[slab], ++slab) {
      std::sort(order.begin() + static_cast<std::ptrdiff_t>(begin),
                order.begin() + static_cast<std::ptrdiff_t>(start[slab]), [&](Index a, Index b) {
                  const double p = x[members[a] * d], q = x[members[b] * d];
                  return p < q || (p == q && a < b);
                });
    }
    return order;
  }

  /// Connected clusters of close pairs, by path halving: `order` lists the members cluster by cluster, each
  /// cluster and the clusters themselves by their smallest member; cluster c is order[start[c]] ..
  /// order[start[c+1] - 1].
  struct Clusters {
    List<Index> order, start;
    std::size_t count() const { return start.size() - 1; }
  };
  Clusters clusters_of(Members members, int level) const {
    const std::size_t n = members.size();
    List<Index> parent(n, memory);
    std::iota(parent.begin(), parent.end(), Index{0});
    const auto root = [&](Index i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    for_close_pairs(members, all.reach_[static_cast<std::size_t>(level)], [&](std::size_t a, std::size_t b) {
      const Index i = root(static_cast<Index>(a)), j = root(static_cast<Index>(b));
      parent[std::max(i, j)] = std::min(i, j);
    });
    std::size_t count = 0;
    List<Index> place(n, 0, memory);  // the size of each cluster, then where its next member goes
    for (Index a = 0; a < n; ++a) {
      count += parent[a] == a;
      ++place[root(a)];
    }
    Clusters result{List<Index>(n, memory), List<Index>(memory)};
    result.start.reserve(count + 1);
    Index total = 0;
    for (Index a = 0; a < n; ++a) {
      if (parent[a] != a) continue;
      result.start.push_back(total);
      total += std::exchange(place[a], total);
    }
    result.start.push_back(total);
    for (Index a = 0; a < n; ++a) result.order[place[root(a)]++] = a;
    return result;
  }

  void count_pairs(std::size_t members, std::int64_t evaluations) {
    work.pairs += evaluations * static_cast<std::int64_t>(members * (members - 1) / 2);
  }

  /// sum += sign (1/N) stiff force of each member on each other.
  void add_internal_forces(Members members, std::span<double> sum, double sign) {
    count_pairs(members.size(), 1);
    const double scale = sign / static_cast<double>(all.particle_count_);
    for (std::size_t a = 0; a < members.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const double factor = scale * all.force_over_r(squared_distance(members[a], members[b]));
        for (std::size_t k = 0; k < d; ++k) {
          const double pull = factor * difference(members[a], members[b], k);
          sum[a * d + k] += pull;
          sum[b * d + k] -= pull;
        }
      }
    }
  }

  /// x <- mirror(x + move + noise) for one particle.
  void move(std::size_t particle, Numbers displacement, Numbers gaussians, double timestep) {
    const double noise = std::sqrt(all.noise_variance_ * timestep);
    const auto point = position(particle);
    for (std::size_t k = 0; k < d; ++k) point[k] += displacement[k] + noise * gaussians[k];
    reflect(all.domain_, point);
    ++work.particle_steps;
  }

  /// One step at `level`: `forces` are those at its start, the stiff ones among the members included.
  /// node: the place of this step in the binary tree of the whole step, which keys the bridge; 1 is the root.
  void advance(Members members, Numbers forces, Numbers gaussians, int level, std::uint64_t node) {
    const double timestep = std::ldexp(all.timestep_, -level);
    const Clusters clusters = clusters_of(members, level);
    List<double> displacement(d, memory);
    for (std::size_t c = 0; c < clusters.count(); ++c) {
      const auto cluster =
          std::span(clusters.order).subspan(clusters.start[c], clusters.start[c + 1] - clusters.start[c]);
      if (cluster.size() == 1) {
        const std::size_t a = cluster[0];
        for (std::size_t k = 0; k < d; ++k) displacement[k] = timestep * forces[a * d + k];
        move(members[a], displacement, gaussians.subspan(a * d, d), timestep);
        continue;
      }
      List<Index> particles(memory);
      List<double> frozen(memory), noise(memory);
      for (const std::size_t a : cluster) {
        particles.push_back(members[a]);
        for (std::size_t k = 0; k < d; ++k) {
          frozen.push_back(forces[a * d + k]);
          noise.push_back(gaussians[a * d + k]);
        }
      }
      // No other cluster has moved one of these, so this takes away what `forces` holds of them.
      add_internal_forces(particles, frozen, -1.0);
      if (level == deepest_level) {
        implicit_step(particles, frozen, noise, timestep);
      } else {
        halve(particles, frozen, noise, level, node);
      }
    }
  }

  /// Two half steps. Bridge: xi_1 = (xi + zeta) / sqrt 2, xi_2 = (xi - zeta) / sqrt 2 have the sum of the
  /// whole step.
  void halve(Members members, Numbers frozen, Numbers gaussians, int level, std::uint64_t node) {
    List<double> first(gaussians.begin(), gaussians.end(), memory), second(first, memory), zeta(d, memory);
    if (all.noise_variance_ > 0.0) {
      for (std::size_t a = 0; a < members.size(); ++a) {
        all.bridge_.gaussians(replica, (step << (deepest_level + 1)) + node, members[a], zeta);
        for (std::size_t k = 0; k < d; ++k) {
          const double xi = gaussians[a * d + k];
          first[a * d + k] = (xi + zeta[k]) / std::numbers::sqrt2;
          second[a * d + k] = (xi - zeta[k]) / std::numbers::sqrt2;
        }
      }
    }
    List<double> forces(memory);
    for (std::uint64_t half = 0; half < 2; ++half) {
      forces.assign(frozen.begin(), frozen.end());
      add_internal_forces(members, forces, 1.0);
      advance(members, forces, half == 0 ? first : second, level + 1, 2 * node + half);
    }
  }

  /// The last resort: frozen forces explicitly, each pair's own kick implicitly along the line that joins it.
  void implicit_step(Members members, Numbers frozen, Numbers gaussians, double timestep) {
    List<double> moves(frozen.begin(), frozen.end(), memory);
    for (double& m : moves) m *= timestep;
    count_pairs(members.size(), kick_bisections);
    for (std::size_t a = 0; a < members.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const double r = std::sqrt(squared_distance(members[a], members[b]));
        if (r == 0.0) continue;  // no direction
        const double share = 0.5 * all.implicit_kick(r, timestep) / r;
        for (std::size_t k = 0; k < d; ++k) {
          const double kick = share * difference(members[a], members[b], k);
          moves[a * d + k] += kick;
          moves[b * d + k] -= kick;
        }
      }
    }
    for (std::size_t a = 0; a < members.size(); ++a) {
      move(members[a], std::span(moves).subspan(a * d, d), gaussians.subspan(a * d, d), timestep);
    }
  }
};

ClosePairs::Work ClosePairs::advance(std::uint64_t replica, std::uint64_t step,
                                     std::span<const double> positions, std::span<const double> forces,
                                     std::span<const double> gaussians, std::span<double> next) const {
  std::ranges::copy(positions, next.begin());
  std::array<std::byte, 16384> buffer;  // enough for the clusters of a few dozen particles
  std::pmr::monotonic_buffer_resource memory(buffer.data(), buffer.size());
  std::pmr::vector<std::uint32_t> members(particle_count_, &memory);
  std::iota(members.begin(), members.end(), std::uint32_t{0});
  Recursion recursion{*this, replica, step, next, &memory};
  recursion.advance(members, forces, gaussians, 0, 1);
  recursion.work.particle_steps -= static_cast<std::int64_t>(particle_count_);
  return recursion.work;
}

}  // namespace rieszflow::particle
