#include "summation/pair_sum.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"
#include "potentials/expression.hpp"
#include "summation/aligned_vector.hpp"
#include "summation/fast_sum.hpp"
#include "summation/terms.hpp"

namespace rieszflow {
namespace {

using simd::Columns;
using simd::Range;

/// How the pairs of N particles are cut into tiles. A function of N alone, so that the order of every
/// addition is the same for each number of threads and ranks: blocks meet in rounds (the circle method of
/// round-robin tournaments), and no block appears twice in a round. From one round to the next each block but
/// one, which stays, moves to a neighbouring tile: ranks that have neighbouring tiles form a ring.
class Tiling {
 public:
  Tiling(std::size_t particle_count, std::size_t dimension) : particle_count_(particle_count) {
    // About eight blocks give two threads work; a tile's positions and forces stay within the second-level
    // cache.
    const std::size_t eighth = (particle_count + 8 * simd::padding - 1) / (8 * simd::padding) * simd::padding;
    const std::size_t largest =
        std::clamp<std::size_t>(32768 / dimension / simd::padding * simd::padding, 64, 1024);
    block_size_ = std::clamp<std::size_t>(eighth, std::min<std::size_t>(128, largest), largest);
    block_count_ = (particle_count + block_size_ - 1) / block_size_;
    seats_ = block_count_ + block_count_ % 2;
  }

  std::size_t block_count() const { return block_count_; }
  std::size_t seats() const { return seats_; }       ///< blocks, and an empty one that makes them even
  std::size_t tables() const { return seats_ / 2; }  ///< tiles of each round but the first
  std::size_t round_count() const { return seats_ == 0 ? 0 : seats_; }
  std::size_t tile_count(std::size_t round) const { return round == 0 ? block_count_ : seats_ / 2; }

  /// Blocks that meet in tile `index` of `round`; round 0: each block with itself. An empty range: no
  /// partner.
  std::pair<Range, Range> tile(std::size_t round, std::size_t index) const {
    const auto [a, b] = pair(round, index);
    return {block(std::min(a, b)), block(std::max(a, b))};
  }

  /// Numbers of the blocks of a tile. In a round > 0 the second moves to the next table, the first (but for
  /// the one at table 0) to the one before.
  std::pair<std::size_t, std::size_t> pair(std::size_t round, std::size_t index) const {
    if (round == 0) return {index, index};
    const std::size_t circle = seats_ - 1, r = round - 1;
    return {index == 0 ? circle : (r + index) % circle, (r + circle - index) % circle};
  }
  /// The table of a block in a round > 0.
  std::size_t table_of(std::size_t number, std::size_t round) const {
    const std::size_t circle = seats_ - 1, r = round - 1;
    if (number == circle) return 0;
    const std::size_t up = (number + circle - r % circle) % circle;
    return std::min(up, circle - up);
  }

  Range block(std::size_t index) const {
    return {std::min(index * block_size_, particle_count_),
            std::min((index + 1) * block_size_, particle_count_)};
  }

 private:
  std::size_t particle_count_, block_size_ = 0, block_count_ = 0, seats_ = 0;
};

/// The tile of an interaction that is evaluated one pair at a time. Returns the sum of W.
double scalar_tile(const ExpressionInteraction& interaction, const Columns& c, Range rows, Range cols) {
  const Interaction w = interaction;
  CompensatedSum energy;
  for (std::size_t i = rows.begin; i < rows.end; ++i) {
    for (std::size_t j = rows.begin == cols.begin ? i + 1 : cols.begin; j < cols.end; ++j) {
      double squared = 0.0;
      for (std::size_t k = 0; k < c.dimension; ++k) {
        const double difference = c.positions[c.place(i, k)] - c.positions[c.place(j, k)];
        squared += difference * difference;
      }
      const RadialValue pair = radial(w, squared);
      energy.add(pair.value);
      for (std::size_t k = 0; k < c.dimension; ++k) {
        const double felt = pair.force_over_r * (c.positions[c.place(i, k)] - c.positions[c.place(j, k)]);
        c.forces[c.place(i, k)] += felt;
        c.forces[c.place(j, k)] -= felt;
      }
    }
  }
  return energy.value();
}

double periodic_tile(const PeriodicTerm& term, const Columns& c, Range rows, Range cols) {
  CompensatedSum energy;
  std::array<double, 3> point{}, force{};
  for (std::size_t i = rows.begin; i < rows.end; ++i) {
    for (std::size_t k = 0; k < c.dimension; ++k) point[k] = c.positions[c.place(i, k)], force[k] = 0.0;
    energy.add(term.row(point.data(), c, rows.begin == cols.begin ? i + 1 : cols.begin, cols.end,
                        force.data(), true));
    for (std::size_t k = 0; k < c.dimension; ++k) c.forces[c.place(i, k)] += force[k];
  }
  return energy.value();
}

/// work(index, thread) for all indices below `count`, each thread in rising order. One thread needs no team,
/// which would cost more than a small system.
template <class Work>
void in_parallel(std::int64_t count, int threads, const Work& work) {
  if (threads == 1) {
    for (std::int64_t index = 0; index < count; ++index) work(index, std::size_t{0});
    return;
  }
#pragma omp parallel for schedule(monotonic : dynamic) num_threads(threads)
  for (std::int64_t index = 0; index < count; ++index)
    work(index, static_cast<std::size_t>(omp_get_thread_num()));
}

/// Work arrays of one replica.
struct Workspace {
  AlignedVector<double> positions, forces;  ///< columns
  std::vector<double> tile_energies;
  std::vector<std::atomic<std::size_t>> next_round;  ///< (block) the one that it is ready for
  AlignedVector<double> scratch;                     ///< (thread) inner loops in d > 3
  AlignedVector<float> single_positions, single_remainders, single_forces,
      single_scratch;  ///< the same in floats
  std::vector<std::size_t> order;
  std::vector<double> means, sums;
  std::vector<std::vector<double>> sent,
      received;  ///< (neighbour) forces of blocks on their way between ranks
};

/// The tables of one rank, and the forces of the blocks that come and go between rounds: every block is
/// always with one rank, which adds to its forces in the order of the rounds. Positions are everywhere.
class Ring {
 public:
  /// Ranks beyond the number of tables have none.
  Ring(const Tiling& tiling, const Ranks& ranks) : tiling_(tiling), ranks_(ranks) {
    const std::size_t players = std::min(ranks.count(), tiling.tables());
    if (ranks.rank() >= players) return;
    begin_ = tiling.tables() * ranks.rank() / players;
    end_ = tiling.tables() * (ranks.rank() + 1) / players;
  }

  /// Whether tile `index` of a round is this rank's.
  bool has(std::size_t round, std::size_t index) const {
    const std::size_t table = round == 0 ? tiling_.table_of(index, 1) : index;
    return begin_ <= table && table < end_;
  }

  /// After a round > 0: blocks change tables, the first of a table towards the previous rank, the second
  /// towards the next.
  void turn(std::size_t round, Workspace& work, const Columns& columns) const {
    if (begin_ == end_) return;
    std::vector<Move> moves;
    if (begin_ > 0)
      moves.push_back(
          {ranks_.rank() - 1, tiling_.pair(round, begin_).first, tiling_.pair(round, begin_ - 1).second});
    if (end_ < tiling_.tables())
      moves.push_back(
          {ranks_.rank() + 1, tiling_.pair(round, end_ - 1).second, tiling_.pair(round, end_).first});
    work.sent.resize(moves.size());
    work.received.resize(moves.size());
    std::vector<Ranks::Parcel> parcels;
    for (std::size_t m = 0; m < moves.size(); ++m) {
      work.sent[m].clear();
      for_block(moves[m].leaves, columns, [&](const double* forces, std::size_t count) {
        work.sent[m].insert(work.sent[m].end(), forces, forces + count);
      });
      std::size_t size = 0;
      for_block(moves[m].comes, columns, [&](const double*, std::size_t count) { size += count; });
      work.received[m].resize(size);
      parcels.push_back({moves[m].rank, work.sent[m], work.received[m]});
    }
    ranks_.exchange(parcels);
    for (std::size_t m = 0; m < moves.size(); ++m) {
      const double* next = work.received[m].data();
      for_block(moves[m].comes, columns, [&](double* forces, std::size_t count) {
        std::copy_n(next, count, forces);
        next += count;
      });
    }
  }

  /// After the last round: the forces of all blocks, at all ranks.
  void gather(Workspace& work, const Columns& columns) const {
    const std::size_t last = tiling_.round_count() - 1;
    for (std::size_t number = 0; number < tiling_.block_count(); ++number) {
      const std::size_t table = last == 0 ? 0 : tiling_.table_of(number, last);
      if (begin_ <= table && table < end_) continue;
      for_block(number, columns,
                [&](double* forces, std::size_t count) { std::fill_n(forces, count, nothing); });
    }
    ranks_.add(work.forces);
  }

  /// What adds nothing, not even a sign.
  static constexpr double nothing = -0.0;

 private:
  /// What leaves for another rank and what comes from it: numbers of blocks.
  struct Move {
    std::size_t rank, leaves, comes;
  };

  template <class Visit>
  void for_block(std::size_t number, const Columns& columns, const Visit& visit) const {
    const Range range = tiling_.block(number);
    if (columns.dimension > 3) {
      if (range.begin < range.end)
        visit(columns.forces + columns.place(range.begin, 0),
              ((range.end - range.begin + simd::padding - 1) / simd::padding) * simd::padding *
                  columns.dimension);
      return;
    }
    for (std::size_t k = 0; k < columns.dimension; ++k)
      visit(columns.forces + columns.place(range.begin, k), range.end - range.begin);
  }

  const Tiling& tiling_;
  const Ranks& ranks_;
  std::size_t begin_ = 0, end_ = 0;  ///< tables of this rank
};

}  // namespace

struct PairSum::Implementation {
  /// Above, vectors of one system are as full as those of many.
  static constexpr std::size_t most_in_lanes = 1024;

  InteractionTerms terms;
  Domain domain;
  std::size_t particle_count, dimension;
  Options options;
  Tiling tiling;
  std::vector<Workspace> workspaces;  ///< (thread)
  std::optional<FastSum> fast;        ///< of the radial terms

  Implementation(const Model& model, std::size_t count, Options wanted)
      : terms(model),
        domain(model.domain),
        particle_count(count),
        dimension(rieszflow::dimension(model.domain)),
        options(wanted),
        tiling(count, dimension),
        workspaces(static_cast<std::size_t>(wanted.threads)) {
    if (is_fast(terms, dimension, count, options))
      fast.emplace(terms.radial, model.domain, count, options.tolerance, options.threads);
  }

  static bool is_fast(const InteractionTerms& terms, std::size_t dimension, std::size_t count,
                      const Options& options) {
    if (dimension > 3 || terms.radial.empty() || count < 2 || options.method == Method::Direct) return false;
    if (options.method == Method::Fast) return true;
    const double share = options.precision == Precision::Single ? 0.5 : 1.0;
    return FastSum::expected_seconds(terms.radial, count, dimension, options.tolerance) <
           share * FastSum::expected_direct_seconds(terms.radial, count, dimension);
  }
  bool single() const { return options.precision == Precision::Single; }
  std::size_t stride() const { return (particle_count + simd::padding - 1) / simd::padding * simd::padding; }

  /// Sum of W over unordered pairs of all terms that are summed pair by pair; forces += their forces.
  double add_pairs(Workspace& work, std::span<const double> positions, std::span<double> forces,
                   bool with_energy, int threads) {
    double far_and_near = 0.0;
    const bool radial_done = fast && fast->add(positions, forces, with_energy ? &far_and_near : nullptr);
    if (radial_done && terms.periodic.empty() && terms.scalar.empty()) return far_and_near;
    const std::size_t n = particle_count, d = dimension;
    work.positions.assign(d * stride(), 0.0);
    work.forces.resize(d * stride());
    const Columns columns{work.positions.data(), work.forces.data(), stride(), d};
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < d; ++k) work.positions[columns.place(i, k)] = positions[i * d + k];
    }
    // work.forces = sums of the tiles; returns that of their energies.
    const auto sum_tiles = [&](const auto& tile) {
      std::ranges::fill(work.forces, 0.0);
      const Ring ring(tiling, options.ranks);
      const std::size_t diagonal = tiling.tile_count(0);
      work.tile_energies.assign(diagonal + (tiling.round_count() - 1) * tiling.tables(), Ring::nothing);
      // Threads meet at no round's end: a tile waits for what its own blocks have to do before.
      const auto sum_rounds = [&](std::size_t first, std::size_t last) {
        if (work.next_round.size() != tiling.seats())
          work.next_round = std::vector<std::atomic<std::size_t>>(tiling.seats());
        auto& next = work.next_round;
        for (std::size_t block = 0; block < next.size(); ++block)
          next[block] = block < diagonal ? first : std::max<std::size_t>(first, 1);
        const auto start = [&](std::size_t round) {
          return round == 0 ? 0 : diagonal + (round - 1) * tiling.tables();
        };
        in_parallel(
            static_cast<std::int64_t>(start(last) - start(first)), threads,
            [&](std::int64_t number, std::size_t thread) {
              const std::size_t place = start(first) + static_cast<std::size_t>(number);
              const std::size_t round = place < diagonal ? 0 : 1 + (place - diagonal) / tiling.tables();
              const std::size_t index = place - start(round);
              if (!ring.has(round, index)) return;
              const auto [a, b] = tiling.pair(round, index);
              for (const std::size_t block : {a, b}) {
                while (next[block].load(std::memory_order_acquire) < round) std::this_thread::yield();
              }
              const auto [rows, cols] = tiling.tile(round, index);
              work.tile_energies[place] = cols.begin < cols.end ? tile(columns, rows, cols, thread) : 0.0;
              for (const std::size_t block : {a, b}) next[block].store(round + 1, std::memory_order_release);
            });
      };
      const std::size_t rounds = tiling.round_count();
      if (options.ranks.alone()) {
        sum_rounds(0, rounds);
      } else {
        for (std::size_t round = 0; round < rounds; ++round) {
          sum_rounds(round, round + 1);
          if (round > 0 && round + 1 < rounds) ring.turn(round, work, columns);
        }
        ring.gather(work, columns);
        options.ranks.add(work.tile_energies);
      }
      CompensatedSum energy;
      for (const double e : work.tile_energies) energy.add(e);
      return energy.value();
    };
    const auto add_forces = [&](double force_scale) {
      const double scale = force_scale / static_cast<double>(n);
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < d; ++k) forces[i * d + k] += scale * work.forces[columns.place(i, k)];
      }
    };
    const std::size_t scratch_size = dimension > 3 ? 4 * simd::padding * d : 0;
    work.scratch.resize(static_cast<std::size_t>(threads) * scratch_size);
    double total = 0.0;
    if (single() && !radial_done) load_single(work, static_cast<std::size_t>(threads) * scratch_size);
    for (const RadialTerm& term :
         std::span<const RadialTerm>(terms.radial).first(radial_done ? 0 : terms.radial.size())) {
      double energy = 0.0;
      bool done = false;
      if (single()) {
        energy = sum_tiles([&](const Columns& c, Range rows, Range cols, std::size_t thread) {
          return single_tile(work, term, c, rows, cols, with_energy, thread * scratch_size);
        });
        double check = energy - energy;
        for (const double force : work.forces) check += force - force;
        done = check == 0.0;
      }
      if (!done) {
        energy = sum_tiles([&](const Columns& c, Range rows, Range cols, std::size_t thread) {
          return simd::direct_kernels().tile(term.kernel, c, rows, cols, with_energy,
                                             work.scratch.data() + thread * scratch_size);
        });
      }
      add_forces(term.force_scale);
      total += term.energy_scale * energy;
    }
    for (const PeriodicTerm& term : terms.periodic) {
      total += sum_tiles([&](const Columns& c, Range rows, Range cols, std::size_t) {
        return periodic_tile(term, c, rows, cols);
      });
      add_forces(1.0);
    }
    for (const ExpressionInteraction& term : terms.scalar) {
      total += sum_tiles([&](const Columns& c, Range rows, Range cols, std::size_t) {
        return scalar_tile(term, c, rows, cols);
      });
      add_forces(1.0);
    }
    return far_and_near + total;
  }

  /// True where systems are so small that several fill the lanes of vectors better than one does.
  bool in_lanes() const {
    return !fast && !single() && dimension <= 3 && particle_count > 1 && particle_count <= most_in_lanes &&
           !terms.radial.empty() && terms.periodic.empty() && terms.scalar.empty();
  }

  /// The 1/N^2 of theory.md (1).
  double mean_over_pairs(double sum) const {
    const auto particles = static_cast<double>(particle_count);
    return sum / (particles * particles);
  }

  /// As many replicas as there are lanes, each with the bits that add_replica gives it. next: positions that
  /// will be asked for after these. energies: may be empty.
  void add_lanes(Workspace& work, std::span<const double> positions, const double* next,
                 std::span<double> forces, std::span<double> energies) const {
    const simd::DirectKernels& kernels = simd::direct_kernels();
    const std::size_t n = particle_count, d = dimension, lanes = kernels.lanes, size = n * d;
    const auto particles = static_cast<double>(n);
    std::array<double, simd::padding> sums{}, tile_energies{};
    for (std::size_t r = 0; r < lanes; ++r)
      sums[r] = add_sums(work, positions.subspan(r * size, size), forces.subspan(r * size, size));
    work.positions.resize(lanes * size);
    work.forces.resize(lanes * size);
    const Columns columns{work.positions.data(), work.forces.data(), n, d};
    kernels.interleave(positions.data(), size, work.positions.data());
    std::array<double, simd::padding> totals{};
    for (const RadialTerm& term : terms.radial) {
      std::ranges::fill(work.forces, 0.0);
      std::array<CompensatedSum, simd::padding> energy;
      for (std::size_t round = 0; round < tiling.round_count(); ++round) {
        for (std::size_t index = 0; index < tiling.tile_count(round); ++index) {
          const auto [rows, cols] = tiling.tile(round, index);
          if (cols.begin == cols.end) continue;
          kernels.replica_tile(term.kernel, columns, rows, cols,
                               energies.empty() ? nullptr : tile_energies.data(), {next, forces.data()});
          for (std::size_t r = 0; r < lanes; ++r) energy[r].add(tile_energies[r]);
        }
      }
      kernels.add_separated(work.forces.data(), size, term.force_scale / particles, forces.data());
      for (std::size_t r = 0; r < lanes; ++r) totals[r] += term.energy_scale * energy[r].value();
    }
    for (std::size_t r = 0; r < energies.size(); ++r) energies[r] = sums[r] + mean_over_pairs(totals[r]);
  }

  /// The positions of `work` as pairs of floats.
  void load_single(Workspace& work, std::size_t scratch_size) const {
    work.single_positions.resize(work.positions.size());
    work.single_remainders.resize(work.positions.size());
    work.single_forces.resize(work.positions.size());
    work.single_scratch.resize(scratch_size);
    for (std::size_t i = 0; i < work.positions.size(); ++i) {
      work.single_positions[i] = static_cast<float>(work.positions[i]);
      work.single_remainders[i] =
          static_cast<float>(work.positions[i] - static_cast<double>(work.single_positions[i]));
    }
  }

  /// A tile in floats, its forces then added to those of `columns`.
  double single_tile(Workspace& work, const RadialTerm& term, const Columns& columns, Range rows, Range cols,
                     bool with_energy, std::size_t scratch) const {
    const simd::SingleColumns single{work.single_positions.data(), work.single_forces.data(), columns.stride,
                                     columns.dimension, work.single_remainders.data()};
    const auto for_forces = [&](const auto& visit) {
      for (const Range& range : {rows, cols}) {
        const std::size_t end = (range.end + simd::padding - 1) / simd::padding * simd::padding;
        for (std::size_t block = range.begin; block < end; block += simd::padding) {
          for (std::size_t k = 0; k < columns.dimension; ++k) visit(columns.place(block, k));
        }
        if (rows.begin == cols.begin) break;
      }
    };
    for_forces([&](std::size_t at) { std::fill_n(single.forces + at, simd::padding, 0.0F); });
    const double energy = simd::single_kernels().tile(term.kernel, single, rows, cols, with_energy,
                                                      work.single_scratch.data() + scratch);
    for_forces([&](std::size_t at) {
      for (std::size_t l = 0; l < simd::padding; ++l)
        columns.forces[at + l] += static_cast<double>(single.forces[at + l]);
    });
    return energy;
  }

  /// The terms that need no pairs. forces += their forces; returns their energy, theory.md (1).
  double add_sums(Workspace& work, std::span<const double> x, std::span<double> forces) const {
    double energy = 0.0;
    if (terms.quadratic != 0.0) energy += add_quadratic(work, x, forces);
    if (terms.cosine != 0.0) energy += add_cosine(work, x, forces);
    if (terms.ordered != 0.0) energy += add_ordered(work, x, forces);
    for (const LowRankInteraction& term : terms.low_rank) energy += add_low_rank(term, work, x, forces);
    return energy;
  }

  /// W = J |x-y|^2 / 2: force_i = -J (x_i - mean), energy = (J/2) (1/N) sum |x_i - mean|^2.
  double add_quadratic(Workspace& work, std::span<const double> x, std::span<double> forces) const {
    const std::size_t n = particle_count, d = dimension;
    const double strength = terms.quadratic;
    work.means.assign(d, 0.0);
    for (std::size_t k = 0; k < d; ++k) {
      CompensatedSum sum;
      for (std::size_t i = 0; i < n; ++i) sum.add(x[i * d + k]);
      work.means[k] = sum.value() / static_cast<double>(n);
    }
    CompensatedSum spread;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < d; ++k) {
        const double difference = x[i * d + k] - work.means[k];
        forces[i * d + k] -= strength * difference;
        spread.add(difference * difference);
      }
    }
    return 0.5 * strength * spread.value() / static_cast<double>(n);
  }

  /// W = -J sum_k cos(x_k - y_k): with C = mean of cos, S = mean of sin (per axis),
  /// force_i = J (S cos x_i - C sin x_i), energy = -(J/2) sum_k (C^2 + S^2 - 1/N).
  double add_cosine(Workspace& work, std::span<const double> x, std::span<double> forces) const {
    const std::size_t n = particle_count, d = dimension;
    const double strength = terms.cosine, count = static_cast<double>(n);
    work.sums.resize(2 * n);
    double energy = 0.0;
    for (std::size_t k = 0; k < d; ++k) {
      CompensatedSum cosines, sines;
      for (std::size_t i = 0; i < n; ++i) {
        cosines.add(work.sums[2 * i] = std::cos(x[i * d + k]));
        sines.add(work.sums[2 * i + 1] = std::sin(x[i * d + k]));
      }
      const double c = cosines.value() / count, s = sines.value() / count;
      for (std::size_t i = 0; i < n; ++i) {
        forces[i * d + k] += strength * (s * work.sums[2 * i] - c * work.sums[2 * i + 1]);
      }
      energy -= 0.5 * strength * (c * c + s * s - 1.0 / count);
    }
    return energy;
  }

  /// W = -c |x-y| in d = 1: with `less` and `greater` the numbers of particles on either side,
  /// force_i = (c/N) (less - greater), energy = -(c/N^2) sum_k (2k - N + 1) x_(k) over the sorted particles.
  double add_ordered(Workspace& work, std::span<const double> x, std::span<double> forces) const {
    const std::size_t n = particle_count;
    const double strength = terms.ordered, count = static_cast<double>(n);
    work.order.resize(n);
    std::iota(work.order.begin(), work.order.end(), std::size_t{0});
    std::ranges::sort(work.order,
                      [&](std::size_t a, std::size_t b) { return x[a] != x[b] ? x[a] < x[b] : a < b; });
    CompensatedSum distances;
    for (std::size_t first = 0; first < n;) {
      std::size_t last = first;
      while (last < n && x[work.order[last]] == x[work.order[first]]) ++last;
      const double imbalance = static_cast<double>(first) - static_cast<double>(n - last);
      for (std::size_t rank = first; rank < last; ++rank) {
        forces[work.order[rank]] += strength * imbalance / count;
        // Measured from the first particle, so that a far away cluster loses no digits.
        distances.add((2.0 * static_cast<double>(rank) - count + 1.0) *
                      (x[work.order[rank]] - x[work.order[0]]));
      }
      first = std::max(last, first + 1);
    }
    return -strength * distances.value() / (count * count);
  }

  /// W = strength sum_k g_k(x) g_k(y): with G_k the mean of g_k,
  /// force_i = -strength sum_k grad g_k(x_i) (G_k - g_k(x_i)/N), energy = (strength/2) sum_k (G_k^2 - mean of
  /// g_k^2 / N).
  double add_low_rank(const LowRankInteraction& term, Workspace& work, std::span<const double> x,
                      std::span<double> forces) const {
    const std::size_t n = particle_count, d = dimension;
    const double count = static_cast<double>(n);
    double energy = 0.0;
    work.sums.resize(n * (d + 1));
    for (const auto& g : term.functions) {
      CompensatedSum sum, squares;
      for (std::size_t i = 0; i < n; ++i) {
        const std::span<double> gradient(work.sums.data() + i * (d + 1) + 1, d);
        const double value = work.sums[i * (d + 1)] = g->value_and_gradient(x.subspan(i * d, d), gradient);
        sum.add(value);
        squares.add(value * value);
      }
      const double mean = sum.value() / count;
      for (std::size_t i = 0; i < n; ++i) {
        const double others = mean - work.sums[i * (d + 1)] / count;
        for (std::size_t k = 0; k < d; ++k) {
          forces[i * d + k] -= term.strength * others * work.sums[i * (d + 1) + 1 + k];
        }
      }
      energy += 0.5 * term.strength * (mean * mean - squares.value() / (count * count));
    }
    return energy;
  }

  /// One replica with `threads` threads.
  double add_replica(Workspace& work, std::span<const double> x, std::span<double> forces, bool with_energy,
                     int threads) {
    double energy = add_sums(work, x, forces);
    if (terms.has_pairs() && particle_count > 1) {
      const double pairs = add_pairs(work, x, forces, with_energy, threads);
      energy += mean_over_pairs(pairs);
    }
    return energy;
  }

  void add(std::span<const double> positions, std::size_t replica_count, std::span<double> forces,
           std::span<double> energies) {
    const std::size_t size = particle_count * dimension;
    expects(positions.size() == replica_count * size && forces.size() == positions.size(),
            "positions and forces are (replica, particle, dimension)");
    expects(energies.empty() || energies.size() == replica_count, "one energy for each replica");
    const std::size_t lanes = simd::direct_kernels().lanes;
    const std::size_t groups = in_lanes() ? replica_count / lanes : 0;
    in_parallel(static_cast<std::int64_t>(groups), options.threads,
                [&](std::int64_t index, std::size_t thread) {
                  const auto group = static_cast<std::size_t>(index), first = group * lanes;
                  const std::size_t next = std::min(group + workspaces.size(), groups - 1) * lanes;
                  add_lanes(workspaces[thread], positions.subspan(first * size, lanes * size),
                            positions.data() + next * size, forces.subspan(first * size, lanes * size),
                            energies.empty() ? energies : energies.subspan(first, lanes));
                });
    const std::size_t grouped = groups * lanes, rest = replica_count - grouped;
    if (rest == 0) return;
    // The fast sum owns one mesh: replicas follow one another there, and the threads share each.
    // Ranks that share pairs take the replicas in the same order.
    const bool over_replicas =
        !fast && options.ranks.alone() && rest >= static_cast<std::size_t>(options.threads);
    const int outer = over_replicas ? options.threads : 1, inner = over_replicas ? 1 : options.threads;
    in_parallel(static_cast<std::int64_t>(rest), outer, [&](std::int64_t index, std::size_t thread) {
      const std::size_t r = grouped + static_cast<std::size_t>(index);
      const double energy = add_replica(workspaces[thread], positions.subspan(r * size, size),
                                        forces.subspan(r * size, size), !energies.empty(), inner);
      if (!energies.empty()) energies[r] = energy;
    });
  }

  /// Smallest pair distance of one replica: a sweep along the first axis that looks no further than the best
  /// so far.
  double closest_pair(Workspace& work, std::span<const double> x) const {
    const std::size_t n = particle_count, d = dimension;
    const Torus* const torus = std::get_if<Torus>(&domain);
    work.order.resize(n);
    std::iota(work.order.begin(), work.order.end(), std::size_t{0});
    std::ranges::sort(work.order, {}, [&](std::size_t i) { return x[i * d]; });
    double best = std::numeric_limits<double>::infinity();
    work.means.resize(d);
    for (std::size_t a = 0; a < n; ++a) {
      const auto first = x.subspan(work.order[a] * d, d);
      // On the torus the sweep goes on past the end, for as long as the first axis may bring a pair closer.
      for (std::size_t step = 1; step < n; ++step) {
        const std::size_t b = a + step;
        if (b >= n && !torus) break;
        const auto second = x.subspan(work.order[b % n] * d, d);
        const double along = second[0] - first[0] + (b >= n ? torus->upper[0] - torus->lower[0] : 0.0);
        if (along >= best) break;
        displacement(domain, first, second, work.means);
        double squared = 0.0;
        for (const double c : work.means) squared += c * c;
        best = std::min(best, std::sqrt(squared));
      }
    }
    return best;
  }
};

PairSum::PairSum(const Model& model, std::size_t particle_count, Options options) : implementation_(nullptr) {
  expects(options.threads >= 1, "at least one thread");
  expects(options.tolerance > 0.0, "the tolerance is positive");
  implementation_ = std::make_unique<Implementation>(model, particle_count, options);
}
PairSum::~PairSum() = default;
PairSum::PairSum(PairSum&&) noexcept = default;
PairSum& PairSum::operator=(PairSum&&) noexcept = default;

void PairSum::add_forces(std::span<const double> positions, std::size_t replica_count,
                         std::span<double> forces) const {
  implementation_->add(positions, replica_count, forces, {});
}

void PairSum::add_forces(std::span<const double> positions, std::size_t replica_count,
                         std::span<double> forces, std::span<double> energies) const {
  expects(energies.size() == replica_count, "one energy for each replica");
  implementation_->add(positions, replica_count, forces, energies);
}

void PairSum::closest_pairs(std::span<const double> positions, std::size_t replica_count,
                            std::span<double> out) const {
  const std::size_t size = implementation_->particle_count * implementation_->dimension;
  expects(positions.size() == replica_count * size && out.size() == replica_count,
          "one distance for each replica");
  for (std::size_t r = 0; r < replica_count; ++r) {
    out[r] = implementation_->closest_pair(implementation_->workspaces[0], positions.subspan(r * size, size));
  }
}

PairSum::Cost PairSum::expected_cost(const Model& model, std::size_t particle_count, const Options& options) {
  const InteractionTerms terms(model);
  const std::size_t d = dimension(model.domain);
  const auto n = static_cast<double>(particle_count), coordinates = n * static_cast<double>(d);
  const bool few = options.method == Method::RandomBatch;
  const double pairs = 0.5 * n * (few ? static_cast<double>(options.batch_size) : n);
  const double share = options.precision == Precision::Single ? 0.5 : 1.0;
  constexpr double periodic_pair = 2e-8, scalar_pair = 1e-7, coordinate = 2e-8;  // seconds
  Cost cost{coordinate * coordinates, 0.0};
  cost.seconds += pairs * (periodic_pair * static_cast<double>(terms.periodic.size()) +
                           scalar_pair * static_cast<double>(terms.scalar.size()));
  if (!few && Implementation::is_fast(terms, d, particle_count, options)) {
    constexpr double uneven =
        2.0;  // what is known is an even cloud, whose regions need no meshes of their own
    cost.seconds += uneven * FastSum::expected_seconds(terms.radial, particle_count, d, options.tolerance);
    cost.bytes += uneven * FastSum::expected_bytes(terms.radial, particle_count, d, options.tolerance);
  } else if (terms.has_pairs()) {
    cost.seconds +=
        share * pairs / (0.5 * n * n) * FastSum::expected_direct_seconds(terms.radial, particle_count, d);
    if (!few) cost.bytes += coordinates * (2.0 * sizeof(double) + (share < 1.0 ? 3.0 * sizeof(float) : 0.0));
  }
  return cost;
}

std::string_view PairSum::method_name() const { return implementation_->fast ? "fast" : "direct"; }

}  // namespace rieszflow
