#include "summation/fast_sum.hpp"

#include <fftw3.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <numbers>
#include <optional>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"
#include "model/convolution.hpp"
#include "summation/aligned_vector.hpp"
#include "summation/cell_grid.hpp"
#include "summation/far_field.hpp"
#include "summation/simd/mesh_kernels.hpp"
#include "summation/window.hpp"

namespace rieszflow {
namespace {

using simd::Columns;
using simd::Range;

/// What a tolerance asks for: found by scanning clouds in two dimensions, checked by benchmarks/fast_sum.cpp
/// and tests/summation/fast_sum_test.cpp for every kernel and dimension.
struct Accuracy {
  double tolerance;    ///< reached with a margin of about three
  int width;           ///< nodes of the window
  double window_band;  ///< wavenumber times mesh width up to which the window's aliases are at their floor
  double radius;       ///< r_c in mesh widths, for compact splits
  double uneven;       ///< added to it where parts of the cloud may look like one point to the mesh
  FarField::Split split;
  std::size_t margin;  ///< nodes in which the sampled kernel bends back
};

constexpr std::array<Accuracy, 8> accuracies = {{
    {1e-3, 5, 0.9, 2.5, 1.0, {5.0, 8.0}, 12},
    {1e-4, 6, 0.8, 3.5, 0.75, {7.5, 11.0}, 12},
    {1e-5, 7, 0.9, 4.5, 0.75, {10.0, 13.0}, 16},
    {1e-6, 8, 0.9, 6.0, 0.75, {12.5, 15.5}, 20},
    {1e-7, 10, 0.9, 7.5, 0.75, {15.5, 18.0}, 24},
    {1e-8, 11, 0.9, 8.5, 0.75, {18.0, 20.0}, 28},
    {1e-9, 12, 0.9, 9.5, 0.75, {20.0, 22.5}, 32},
    {1e-10, 14, 0.9, 10.5, 0.75, {22.5, 25.0}, 36},
}};

const Accuracy& accuracy_for(double tolerance) {
  const auto* const found =
      std::ranges::find_if(accuracies, [&](const Accuracy& a) { return a.tolerance <= tolerance; });
  return found != accuracies.end() ? *found : accuracies.back();
}

/// Unit costs in seconds by which meshes are planned. Ratios decide.
struct Costs {
  double near_pair = 0.8;  ///< per pair of particles that the near sum looks at, over one of the direct sum
  double mesh_node = 5.0e-9;    ///< per node of the padded mesh: both transforms, multiplier, clearing
  double window_node = 1.0e-9;  ///< per particle and node of its window: spreading and interpolation
  double particle = 6e-8;       ///< per particle: sorting, copies, window weights
};
constexpr Costs costs;

/// An unordered pair of the direct sum, seconds for d = 1, 2, 3, each axis beyond as the third; narrower
/// vectors take as many times longer. near: of a near pair of the fast sum, over that.
struct PairPrice {
  std::array<double, 3> direct{};
  double near = 1.14;
};

PairPrice pair_price(simd::RadialKind kind) {
  switch (kind) {
    case simd::RadialKind::Logarithm:
      return {{0.32e-9, 0.43e-9, 0.54e-9}};
    case simd::RadialKind::InverseFirst:
      return {{0.47e-9, 0.61e-9, 0.75e-9}};
    case simd::RadialKind::InverseSquare:
      return {{0.33e-9, 0.46e-9, 0.59e-9}};
    case simd::RadialKind::Distance:
      return {{0.38e-9, 0.52e-9, 0.66e-9}};
    case simd::RadialKind::Power:
      return {{0.82e-9, 0.98e-9, 1.14e-9}};
    case simd::RadialKind::Gaussian:
      return {{0.55e-9, 0.74e-9, 0.93e-9}};
    case simd::RadialKind::Morse:
      return {{1.70e-9, 1.84e-9, 2.47e-9}, 1.4};
  }
  return {};
}

double direct_pair_seconds(simd::RadialKind kind, std::size_t d) {
  constexpr double widest = 8.0;
  const auto price = pair_price(kind).direct;
  const double beyond = d > 3 ? static_cast<double>(d - 3) * (price[2] - price[1]) : 0.0;
  return (price[std::min<std::size_t>(d, 3) - 1] + beyond) * widest /
         static_cast<double>(simd::direct_kernels().lanes);
}

double direct_pair_seconds(const std::vector<RadialTerm>& terms, std::size_t d) {
  double sum = 0.0;
  for (const RadialTerm& term : terms) sum += direct_pair_seconds(term.kernel.kind, d);
  return sum;
}

double near_pair_seconds(const std::vector<RadialTerm>& terms, std::size_t d) {
  double sum = 0.0;
  for (const RadialTerm& term : terms)
    sum += pair_price(term.kernel.kind).near * direct_pair_seconds(term.kernel.kind, d);
  return sum;
}

/// Seconds by which the methods are compared, one thread of a Zen 4 core with AVX-512: least squares, by
/// relative error, over times within a factor of two of the crossovers of `bench_fast_sum crossover`.
struct Prices {
  double call, particle, window_node, mesh_node;
  double near_node;  ///< of the far polynomial: per near pair and node of the window's width
};
constexpr std::array<Prices, 3> prices_by_dimension = {{{7.0e-6, 9.4e-9, 4.1e-9, 8.0e-9, 0.35e-11},
                                                        {0.0, 1.28e-7, 5.0e-10, 3.1e-9, 5.4e-11},
                                                        {0.0, 4.4e-7, 4.0e-10, 5.2e-9, 7.6e-11}}};
constexpr double direct_coordinate = 1e-8;  ///< of the direct sum, per particle and axis

/// Volume of the ball of radius r over the volume of the cube of edge 1.
double ball_volume(std::size_t d, double r) {
  return d == 1 ? 2.0 * r : d == 2 ? std::numbers::pi * r * r : 4.0 / 3.0 * std::numbers::pi * r * r * r;
}

/// Smallest even 2^a 3^b 5^c 7^d >= n: what FFTW transforms fast.
std::size_t fast_length(std::size_t n) {
  for (std::size_t m = std::max<std::size_t>(2, n + n % 2);; m += 2) {
    std::size_t rest = m;
    for (const std::size_t p : {2, 3, 5, 7}) {
      while (rest % p == 0) rest /= p;
    }
    if (rest == 1) return m;
  }
}

/// What a tolerance and the kernels ask of every level.
struct Shape {
  Accuracy accuracy;
  double radius;     ///< r_c in mesh widths
  double near_pair;  ///< seconds

  /// A Gaussian split reaches further for the same wavenumber.
  Shape(const std::vector<RadialTerm>& terms, std::size_t d, double tolerance)
      : accuracy(accuracy_for(tolerance)),
        radius(accuracy.radius),
        near_pair(costs.near_pair * direct_pair_seconds(terms, d)) {
    const bool compact = std::ranges::all_of(
        terms, [](const RadialTerm& term) { return FarField::is_compact(term.kernel.kind); });
    if (!compact) radius *= 2.0 * accuracy.split.decay / accuracy.split.band;
  }
};

/// A cloud as far as the choice of a mesh needs it.
struct Cloud {
  std::span<const double> extents;
  double particle_count;
  double crowding;  ///< near pairs over those of a uniform cloud
  bool uneven;      ///< parts of it may look like one point to the mesh
  double outer;     ///< where the kernel ends, 0 where it does not
};

/// Mesh width and near radius for a box.
struct Layout {
  double spacing = 0.0;
  double cutoff = 0.0;  ///< r_c
  std::array<std::size_t, 3> nodes{1, 1,
                                   1};  ///< of the mesh: what the cloud and its windows touch, or a period
  bool periodic = false;
  double padded_nodes = 0.0, near_pairs = 0.0;
  double mesh_seconds = 0.0;  ///< both transforms, spreading, interpolation
  double seconds = 0.0;

  bool operator==(const Layout&) const = default;

  /// In mesh widths. What is left of the spectrum beyond the mesh averages out over an even cloud, and adds
  /// up over many particles on few nodes.
  static double radius(const Shape& shape, const Cloud& cloud) {
    return cloud.uneven ? shape.radius + shape.accuracy.uneven : shape.radius;
  }

  Layout() = default;
  Layout(const Shape& shape, const Cloud& cloud, double mesh_width)
      : spacing(mesh_width), cutoff(radius(shape, cloud) * mesh_width) {
    const std::size_t d = cloud.extents.size();
    const double row = (shape.accuracy.width <= 8 ? 8 : 16) + 2.0;
    const double reach = cloud.outer > 0.0 ? std::ceil(cloud.outer / spacing) + 1.0 : 0.0;
    double open = 1.0, closed = cloud.outer > 0.0 ? 1.0 : std::numeric_limits<double>::infinity(),
           volume = 1.0;
    std::array<double, 3> count{1.0, 1.0, 1.0}, period{1.0, 1.0, 1.0};
    double window = 1.0;
    for (std::size_t k = 0; k < d; ++k) {
      count[k] = std::ceil(cloud.extents[k] / spacing) + row;
      period[k] = std::max(count[k], reach) + reach;
      open *= 2.0 * count[k];
      closed *= period[k];
      volume *= std::max(cloud.extents[k], cutoff);
      window *= shape.accuracy.width;
    }
    periodic = closed < open;
    for (std::size_t k = 0; k < d; ++k) nodes[k] = static_cast<std::size_t>(periodic ? period[k] : count[k]);
    const double n = cloud.particle_count;
    const double neighbours = n * std::min(1.0, 1.7 * cloud.crowding * ball_volume(d, cutoff) / volume);
    padded_nodes = std::min(open, closed);
    near_pairs = 0.5 * n * neighbours;
    mesh_seconds = costs.mesh_node * padded_nodes + n * (costs.window_node * window + costs.particle);
    seconds = mesh_seconds + shape.near_pair * near_pairs;
  }
};

/// The cheapest layout: spacings on a ladder of factors 1.06.
Layout best_layout(const Shape& shape, const Cloud& cloud) {
  const double longest = *std::ranges::max_element(cloud.extents);
  const std::size_t d = cloud.extents.size();
  const double most_nodes = d == 1 ? 3e7 : d == 2 ? 6000.0 : 320.0;
  Layout best;
  // A kernel that ends early needs a fine mesh, whatever that costs.
  for (double count = 2.0; count <= most_nodes || best.spacing == 0.0; count *= 1.06) {
    if (cloud.outer > 0.0 && Layout::radius(shape, cloud) * longest / count > 0.7 * cloud.outer) continue;
    const Layout layout(shape, cloud, longest / count);
    if (best.spacing == 0.0 || layout.seconds < best.seconds) best = layout;
  }
  if (best.periodic) {
    for (std::size_t k = 0; k < d; ++k) best.nodes[k] = fast_length(best.nodes[k]);
  }
  return best;
}

/// f on [-1, 1] in powers of y, of the lowest degree whose dropped Chebyshev terms are below `error` times
/// the largest.
template <class Function>
std::vector<double> fitted(const Function& f, double error) {
  std::vector<double> c = chebyshev_coefficients(f, 40);
  double largest = 0.0, dropped = 0.0;
  for (const double value : c) largest = std::max(largest, std::abs(value));
  while (c.size() > 1 && dropped + std::abs(c.back()) <= error * largest) {
    dropped += std::abs(c.back());
    c.pop_back();
  }
  return powers_of(c);
}

struct FftwFree {
  void operator()(double* p) const { fftw_free(p); }
};
using MeshArray = std::unique_ptr<double[], FftwFree>;

/// FFTW's planner is not thread-safe.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

/// Displacement at which the periodic kernel is sampled for `index` <= to nodes: the true one up to `nodes`,
/// then a smooth turn at `to`, half the period.
double bent(std::size_t index, std::size_t nodes, std::size_t half, double decay) {
  const double i = static_cast<double>(index);
  const double from = static_cast<double>(nodes), to = static_cast<double>(half);
  if (i <= from) return i;
  // A tent rounded by a Gaussian: the slope goes as erf from 1 at `from` to -1 at the other end of the
  // margin.
  const double sharpness = std::sqrt(decay) / (to - from), y = sharpness * std::abs(i - to);
  return to - (y * std::erf(y) + std::exp(-y * y) / std::sqrt(std::numbers::pi)) / sharpness;
}

/// One mesh and its near pairs: of the whole cloud, or of a crowded region of the level above.
class Level {
 public:
  /// What all levels share.
  struct Common {
    std::vector<RadialTerm> terms;
    Domain domain;
    std::size_t particle_count, d;
    Shape shape;
    Window window;
    int threads;

    Common(std::vector<RadialTerm> wanted, const Domain& where, std::size_t count, double tolerance,
           int thread_count)
        : terms(std::move(wanted)),
          domain(where),
          particle_count(count),
          d(rieszflow::dimension(where)),
          shape(terms, d, tolerance),
          window(shape.accuracy.width, shape.accuracy.window_band),
          threads(thread_count) {
      expects(d <= 3, "the fast sum is for at most three dimensions");
      expects(count < std::numeric_limits<std::uint32_t>::max(),
              "the fast sum is for fewer than 2^32 particles");
    }
  };

  /// Arrays of the level at work; nothing in them is kept. Columns of its particles by cell, those of no
  /// region first; order: their numbers in the cloud.
  struct Workspace {
    AlignedVector<double> positions, forces, sums;
    std::vector<double> mesh;
    std::vector<std::uint32_t> order;
  };

  Level(const Common& common, int depth) : all(common), depth_(depth) {}

  /// Plans for the particles `members` of x, all when null, and the part of W within `outer`, of which the
  /// far kernels `above` are no part; outer = 0: all of W.
  void prepare(std::span<const double> x, const std::vector<std::uint32_t>* members, double outer,
               const std::vector<FarField>* above) {
    members_ = members;
    count_ = members ? members->size() : all.particle_count;
    outer_ = outer;
    above_ = above;
    const std::array<double, 3> extent = box_about(x);
    const auto size = std::span<const double>(extent).first(all.d);
    std::optional<Layout> planned;  // whose cells are counted
    const auto plan = [&](double crowding, bool uneven) {
      const Layout layout = best_layout(all.shape, {size, typical_count(), crowding, uneven, outer});
      if (planned == layout) return layout;
      planned = layout;
      set_layout(layout, extent);
      count_cells(x);
      pairs_ = near_pairs(nullptr);
      return layout;
    };
    child_count_ = 0;
    regions_ = {};
    Layout coarse = plan(1.0, depth_ > 0);
    double crowding = crowding_of(pairs_);
    if (crowding == 1.0) return;
    if (depth_ == 0) coarse = plan(1.0, true);
    // Either meshes of their own for the crowded regions, or smaller cells and a finer mesh for all.
    const double with_regions = coarse.mesh_seconds + all.shape.near_pair * pairs_ - plan_regions();
    for (;;) {
      const Layout finer = best_layout(all.shape, {size, typical_count(), crowding, true, outer});
      if (with_regions < finer.seconds) {
        plan(1.0, true);
        prepare_regions(x);
        return;
      }
      plan(crowding, true);
      const double found = crowding_of(pairs_);
      if (found <= crowding) break;
      crowding = found;
    }
    regions_ = {};
  }

  /// Pairs of particles that the near sums of this level and of those below look at.
  double pair_count() const {
    double pairs = pairs_;
    for (std::size_t c = 0; c < child_count_; ++c) pairs += children_[c]->pair_count();
    return pairs;
  }

  /// out: as FastSum::add. Returns the sum of its part of W over the unordered pairs of its particles.
  double add(std::span<const double> x, std::span<double> out, bool with_energy, Workspace& work) {
    prepare_mesh();
    sort(x, work);
    const std::vector<Range> parts = slabs();
    double energy = 0.0, near_scale = all.terms[0].force_scale;
    for (std::size_t t = 0; t < all.terms.size(); ++t) {
      if (t > 0) std::ranges::fill(work.forces, 0.0);
      energy += all.terms[t].energy_scale * add_near(t, parts, with_energy, work);
      if (all.terms.size() == 1) break;
      work.sums.resize(work.forces.size());
      for (std::size_t i = 0; i < work.forces.size(); ++i)
        work.sums[i] = (t > 0 ? work.sums[i] : 0.0) + all.terms[t].force_scale * work.forces[i];
    }
    if (all.terms.size() > 1) {
      work.forces.swap(work.sums);
      near_scale = 1.0;
    }
    energy += add_far(parts, near_scale, work);
    const auto n = static_cast<double>(all.particle_count);
    for (std::size_t at = 0; at < count_; ++at) {
      for (std::size_t k = 0; k < all.d; ++k)
        out[work.order[at] * all.d + k] += work.forces[k * stride() + at] / n;
    }
    forget_particles();
    for (std::size_t c = 0; c < child_count_; ++c) energy += children_[c]->add(x, out, with_energy, work);
    region_members_ = {};
    return energy;
  }

  /// Keeps the plan and the mesh's transform.
  void forget_particles() {
    for (auto* const list : {&cell_of_, &counts_, &outside_, &inside_, &regions_.region_of_cell}) *list = {};
  }

 private:
  static constexpr double crowded_share = 4.0;      ///< a crowded block holds so many times the mean
  static constexpr double polynomial_share = 0.01;  ///< of the tolerance

  const Common& all;
  int depth_;
  const std::vector<std::uint32_t>* members_ = nullptr;
  std::size_t count_ = 0;
  double outer_ = 0.0;
  const std::vector<FarField>* above_ = nullptr;

  std::array<double, 3> lower_{}, extent_{};
  Layout layout_;
  CellGrid grid_;
  double pairs_ = 0.0;  ///< near pairs of this level alone
  CellGrid::Regions regions_;
  std::vector<std::vector<std::uint32_t>> region_members_;
  std::vector<std::unique_ptr<Level>> children_;  ///< the first child_count_ are in use
  std::size_t child_count_ = 0;

  // What depends on the layout and the kernel alone.
  std::optional<EvenConvolution> convolution_;
  Layout mesh_layout_;
  double mesh_outer_ = 0.0;
  double far_cutoff_ = 0.0, far_outer_ = 0.0;
  std::vector<FarField> far_;  ///< (term)
  struct Polynomials {
    std::vector<double> force_over_r, value;
  };
  std::vector<Polynomials> polynomials_;  ///< (term)
  double self_potential_ = 0.0;           ///< W on the mesh at r = 0, all terms with their scales

  std::vector<std::uint32_t> cell_of_, counts_;
  std::vector<std::uint32_t> outside_, inside_;  ///< (cell + 1) first particles of each cell

  std::size_t stride() const { return (count_ + 2 * simd::padding - 1) / simd::padding * simd::padding; }
  std::size_t member(std::size_t i) const { return members_ ? (*members_)[i] : i; }
  bool has_regions() const { return child_count_ > 0; }
  /// Of which the plan is a function: the number of particles of a region changes with every step.
  double typical_count() const {
    const auto n = static_cast<double>(count_);
    return members_ ? eighth_power_above(n) : n;
  }
  static double eighth_power_above(double x) {
    double eighth = std::floor(8.0 * std::log2(x));
    while (std::exp2(0.125 * eighth) < x) eighth += 1.0;
    return std::exp2(0.125 * eighth);
  }

  /// A box about the cloud that is a function of the cloud alone. Its corner is the cloud's; its edges, on
  /// which the plan depends, are eighth powers of two and seldom change, or those of the domain.
  std::array<double, 3> box_about(std::span<const double> x) {
    const std::size_t d = all.d;
    const bool bounded = !std::holds_alternative<WholeSpace>(all.domain);
    const Box limits = bounded ? bounding_box(all.domain) : Box{};
    std::array<double, 3> extent{}, low{}, high{};
    for (std::size_t k = 0; k < d; ++k) low[k] = high[k] = x[member(0) * d + k];
    for (std::size_t i = 0; i < count_; ++i) {
      const double* const point = &x[member(i) * d];
      for (std::size_t k = 0; k < d; ++k) {
        low[k] = std::min(low[k], point[k]);
        high[k] = std::max(high[k], point[k]);
      }
    }
    lower_ = low;
    for (std::size_t k = 0; k < d; ++k) {
      // A cloud without extent along an axis still needs a box: relative to where it is, and large enough for
      // its volume and its inverse powers to be numbers.
      const double size =
          std::max(high[k] - lower_[k], 1e-12 * std::max({std::abs(lower_[k]), std::abs(high[k]), 1e-88}));
      extent[k] = eighth_power_above(size);
      if (bounded) extent[k] = std::min(extent[k], std::max(limits.upper[k] - limits.lower[k], size));
    }
    // Axes much shorter than the longest add nothing to the near radius: keep cells and mesh of a sensible
    // shape.
    const double longest = *std::max_element(extent.begin(), extent.begin() + static_cast<std::ptrdiff_t>(d));
    for (std::size_t k = 0; k < d; ++k) extent[k] = std::max(extent[k], 1e-9 * longest);
    return extent;
  }

  void set_layout(const Layout& layout, const std::array<double, 3>& extent) {
    const auto corner = std::span<const double>(lower_).first(all.d);
    if (layout == layout_ && extent == extent_) {
      grid_.move_to(corner);
      return;
    }
    layout_ = layout;
    extent_ = extent;
    grid_ = CellGrid(corner, std::span<const double>(extent).first(all.d), layout.cutoff);
  }

  void count_cells(std::span<const double> x) {
    cell_of_.resize(count_);
    counts_.assign(grid_.cell_count(), 0);
    for (std::size_t i = 0; i < count_; ++i) {
      cell_of_[i] = static_cast<std::uint32_t>(grid_.cell_of(&x[member(i) * all.d]));
      ++counts_[cell_of_[i]];
    }
    outside_.assign(counts_.size() + 1, 0);
    for (std::size_t c = 0; c < counts_.size(); ++c) outside_[c + 1] = outside_[c] + counts_[c];
  }

  /// Pairs that the near sum would look at, all in `outside_`; by region if not null, 0 for those of none.
  double near_pairs(std::vector<double>* by_region) const {
    double pairs = 0.0;
    const std::size_t length = grid_.row_length();
    for (std::size_t row = 0; row < grid_.row_count(); ++row) {
      if (outside_[row * length] == outside_[(row + 1) * length]) continue;
      for (std::size_t c = 0; c < length; ++c) {
        const std::size_t cell = row * length + c, count = counts_[cell];
        if (count == 0) continue;
        double others = -0.5 * static_cast<double>(count);
        grid_.for_rows_ahead(row, c, c, true, [&](std::size_t first, std::size_t last) {
          others += static_cast<double>(outside_[last + 1] - outside_[std::max(first, cell)]);
        });
        pairs += static_cast<double>(count) * others;
        if (by_region) (*by_region)[regions_.region_of_cell[cell]] += static_cast<double>(count) * others;
      }
    }
    return pairs;
  }

  /// How many times the near pairs of a uniform cloud: a power of two, which seldom changes.
  double crowding_of(double pairs) const {
    const double per_cell = static_cast<double>(count_) / static_cast<double>(grid_.cell_count());
    double cells = 0.0;
    for (const auto& ahead : grid_.ahead()) cells += 2.0 * static_cast<double>(ahead.span) + 1.0;
    cells -= static_cast<double>(grid_.ahead()[0].span) + 0.5;
    const double uniform = static_cast<double>(count_) * std::max(0.5, per_cell * cells);
    return std::exp2(std::max(0.0, std::round(std::log2(pairs / uniform))));
  }

  /// The crowded regions for which a level of its own is expected to be worth it; returns the seconds they
  /// save.
  double plan_regions() {
    double blocks = 1.0;
    for (std::size_t k = 0; k < all.d; ++k) blocks *= std::max(1.0, extent_[k] / layout_.cutoff);
    regions_ = grid_.crowded(counts_, crowded_share * static_cast<double>(count_) / blocks);
    if (regions_.count == 0) return 0.0;
    std::vector<double> pairs(regions_.count + 1, 0.0), particles(pairs.size(), 0.0),
        squares(pairs.size(), 0.0);
    near_pairs(&pairs);
    for (std::size_t c = 0; c < counts_.size(); ++c) {
      const double n = counts_[c];
      particles[regions_.region_of_cell[c]] += n;
      squares[regions_.region_of_cell[c]] += n * (n - 1.0);
    }
    std::vector<std::uint32_t> number(pairs.size(), 0);
    double gain = 0.0;
    std::uint32_t kept = 0;
    for (std::size_t r = 1; r < pairs.size(); ++r) {
      if (all.shape.near_pair * pairs[r] < particles[r] * costs.particle) continue;
      const auto& extent = regions_.extents[r - 1];
      // Pairs in one cell tell how uneven the density is within the region.
      const double cells = volume(extent) / volume(extent_) * static_cast<double>(grid_.cell_count());
      const double crowding = std::max(1.0, squares[r] * cells / std::max(1.0, particles[r] * particles[r]));
      const Layout layout = best_layout(
          all.shape, {std::span(extent).first(all.d), particles[r], crowding, true, layout_.cutoff});
      const double saved = all.shape.near_pair * pairs[r] - layout.seconds;
      if (saved <= 0.0) continue;
      gain += saved;
      number[r] = ++kept;
    }
    for (std::uint32_t& region : regions_.region_of_cell) region = number[region];
    regions_.count = kept;
    return gain;
  }
  double volume(const std::array<double, 3>& extent) const {
    double product = 1.0;
    for (std::size_t k = 0; k < all.d; ++k) product *= extent[k];
    return product;
  }

  void prepare_regions(std::span<const double> x) {
    child_count_ = regions_.count;
    if (child_count_ == 0) {
      pairs_ = near_pairs(nullptr);
      return;
    }
    prepare_far();
    std::vector<double> pairs(child_count_ + 1, 0.0);
    near_pairs(&pairs);
    pairs_ = pairs[0];
    region_members_.resize(std::max(region_members_.size(), child_count_));
    for (auto& members : region_members_) members.clear();
    for (std::size_t i = 0; i < count_; ++i) {
      const std::uint32_t region = regions_.region_of_cell[cell_of_[i]];
      if (region > 0) region_members_[region - 1].push_back(static_cast<std::uint32_t>(member(i)));
    }
    for (std::size_t c = 0; c < child_count_; ++c) {
      if (c == children_.size()) children_.push_back(std::make_unique<Level>(all, depth_ + 1));
      children_[c]->prepare(x, &region_members_[c], layout_.cutoff, &far_);
    }
  }

  /// Particles into columns, cell by cell, those outside of all regions first: a counting sort, stable in the
  /// particle number.
  void sort(std::span<const double> x, Workspace& work) {
    const std::size_t d = all.d, cells = counts_.size();
    work.order.resize(count_);
    work.positions.resize(d * stride());
    work.forces.assign(d * stride(), 0.0);
    for (std::size_t k = 0; k < d; ++k) {
      std::fill(work.positions.begin() + static_cast<std::ptrdiff_t>(k * stride() + count_),
                work.positions.begin() + static_cast<std::ptrdiff_t>((k + 1) * stride()), 0.0);
    }
    if (has_regions()) {
      inside_.resize(cells + 1);
      std::uint32_t before = 0;
      for (std::size_t c = 0; c < cells; ++c) {
        outside_[c] = before;
        if (regions_.region_of_cell[c] == 0) before += counts_[c];
      }
      outside_[cells] = before;
      for (std::size_t c = 0; c < cells; ++c) {
        inside_[c] = before;
        if (regions_.region_of_cell[c] != 0) before += counts_[c];
      }
      inside_[cells] = before;
    }
    // The first places run to the ends of their cells and are put back afterwards.
    for (std::size_t i = 0; i < count_; ++i) {
      const std::uint32_t cell = cell_of_[i];
      const bool in_region = has_regions() && regions_.region_of_cell[cell] != 0;
      const std::size_t at = (in_region ? inside_ : outside_)[cell]++;
      work.order[at] = static_cast<std::uint32_t>(member(i));
      for (std::size_t k = 0; k < d; ++k) work.positions[k * stride() + at] = x[work.order[at] * d + k];
    }
    for (std::size_t c = 0; c < cells; ++c) {
      if (has_regions() && regions_.region_of_cell[c] != 0) {
        inside_[c] -= counts_[c];
      } else {
        outside_[c] -= counts_[c];
      }
    }
  }

  /// What the mesh needs beyond the cells.
  void prepare_mesh() {
    if (convolution_ && mesh_layout_ == layout_ && mesh_outer_ == outer_) return;
    convolution_.reset();
    prepare_far();
    mesh_layout_ = layout_;
    mesh_outer_ = outer_;
    prepare_convolution();
  }

  void prepare_far() {
    if (far_cutoff_ == layout_.cutoff && far_outer_ == outer_) return;
    far_cutoff_ = layout_.cutoff;
    far_outer_ = outer_;
    far_.clear();
    polynomials_.clear();
    const double square = layout_.cutoff * layout_.cutoff,
                 error = polynomial_share * all.shape.accuracy.tolerance;
    for (const RadialTerm& term : all.terms) {
      const FarField& far = far_.emplace_back(term.kernel, layout_.cutoff, all.shape.accuracy.split);
      const auto q = [&](double y) { return 0.5 * (y + 1.0) * square; };
      polynomials_.push_back({fitted([&](double y) { return far.at(q(y)).force_over_r; }, error),
                              fitted([&](double y) { return far.at(q(y)).value; }, error)});
    }
    self_potential_ = mesh_kernel(0.0);
  }

  /// W on the mesh: what is far here and not already far on the level above.
  double mesh_kernel(double squared_distance) const {
    if (outer_ > 0.0 && squared_distance >= outer_ * outer_) return 0.0;
    double value = 0.0;
    for (std::size_t t = 0; t < far_.size(); ++t) {
      value += all.terms[t].energy_scale * (far_[t].at(squared_distance).value -
                                            (above_ ? (*above_)[t].at(squared_distance).value : 0.0));
    }
    return value;
  }

  /// The mesh kernel divided by the window's transform squared, on a torus: the period of the mesh, or more
  /// than twice the nodes, where the kernel bends smoothly back. Even along every axis, so cosine transforms
  /// of one octant do. Without a period only the displacements within the mesh are then used, whatever the
  /// convolution's padding.
  void prepare_convolution() {
    const std::size_t d = all.d;
    std::array<std::size_t, 3> half{0, 0, 0};  // periods are 2 half
    std::array<std::vector<double>, 3> squares, inverse;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t nodes = k + d >= 3 ? layout_.nodes[k + d - 3] : 1;
      if (k + d >= 3)
        half[k] = (layout_.periodic ? nodes : fast_length(2 * nodes + all.shape.accuracy.margin)) / 2;
      squares[k].assign(half[k] + 1, 0.0);
      inverse[k].assign(half[k] + 1, 1.0);
      if (k + d < 3) continue;
      for (std::size_t i = 0; i <= half[k]; ++i) {
        const double r =
            layout_.spacing * (layout_.periodic ? static_cast<double>(i)
                                                : bent(i, nodes, half[k], all.shape.accuracy.split.decay));
        squares[k][i] = r * r;
        const double transform =
            all.window.transform(std::numbers::pi * static_cast<double>(i) / static_cast<double>(half[k]));
        // Once for spreading and once for interpolation, whose weights are divided by their sum, the
        // transform at zero.
        inverse[k][i] =
            all.window.transform(0.0) / (transform * transform * 2.0 * static_cast<double>(half[k]));
      }
    }
    const std::size_t size = (half[0] + 1) * (half[1] + 1) * (half[2] + 1);
    MeshArray octant(fftw_alloc_real(size));
    const auto for_each = [&](const auto& visit) {
      std::size_t at = 0;
      for (std::size_t a = 0; a <= half[0]; ++a) {
        for (std::size_t b = 0; b <= half[1]; ++b) {
          for (std::size_t c = 0; c <= half[2]; ++c, ++at) visit(octant[at], a, b, c);
        }
      }
    };
    std::array<int, 3> counts{};
    std::array<fftw_r2r_kind, 3> kinds{};
    for (std::size_t k = 0; k < d; ++k) {
      counts[k] = static_cast<int>(half[3 - d + k] + 1);
      kinds[k] = FFTW_REDFT00;
    }
    fftw_plan transform = nullptr;
    {
      const std::scoped_lock lock(planner());
      transform = fftw_plan_r2r(static_cast<int>(d), counts.data(), octant.get(), octant.get(), kinds.data(),
                                FFTW_ESTIMATE);
    }
    for_each([&](double& value, std::size_t a, std::size_t b, std::size_t c) {
      value = mesh_kernel(squares[0][a] + squares[1][b] + squares[2][c]);
    });
    fftw_execute(transform);
    for_each([&](double& value, std::size_t a, std::size_t b, std::size_t c) {
      value *= inverse[0][a] * inverse[1][b] * inverse[2][c];
    });
    fftw_execute(transform);
    {
      const std::scoped_lock lock(planner());
      fftw_destroy_plan(transform);
    }
    const auto kind = layout_.periodic ? EvenConvolution::Kind::Circular : EvenConvolution::Kind::Linear;
    std::vector<double> weights;
    std::array<std::size_t, 3> offsets{1, 1, 1};
    for (std::size_t k = 0; k < d; ++k)
      offsets[3 - d + k] = EvenConvolution::offset_count(layout_.nodes[k], kind);
    weights.reserve(offsets[0] * offsets[1] * offsets[2]);
    for (std::size_t a = 0; a < offsets[0]; ++a) {
      for (std::size_t b = 0; b < offsets[1]; ++b) {
        const double* const row = octant.get() + (a * (half[1] + 1) + b) * (half[2] + 1);
        weights.insert(weights.end(), row, row + offsets[2]);
      }
    }
    octant.reset();
    convolution_.emplace(std::span(layout_.nodes).first(d), weights, kind, all.threads);
  }

  /// Slabs of whole cell layers along the first axis, thick enough that slabs of one colour may be worked on
  /// at once: neither near pairs nor windows of two such slabs meet. A function of the plan alone.
  std::vector<Range> slabs() const {
    const double thick = std::max(layout_.cutoff + grid_.layer_thickness(), (16.0 + 1.0) * layout_.spacing);
    // Thinner slabs than an eighth of the axis only cost.
    const auto layers = std::max(static_cast<std::size_t>(std::ceil(thick / grid_.layer_thickness())),
                                 (grid_.layer_count() + 7) / 8);
    std::vector<Range> result;
    for (std::size_t first = 0; first < grid_.layer_count(); first += layers) {
      result.push_back({first, std::min(first + layers, grid_.layer_count())});
    }
    return result;
  }
  /// Particles of a slab outside of all regions, and inside.
  std::array<Range, 2> particles_of(const Range& slab) const {
    const std::size_t layer = grid_.cell_count() / grid_.layer_count();
    const auto within = [&](const std::vector<std::uint32_t>& starts) {
      return Range{starts[slab.begin * layer], starts[slab.end * layer]};
    };
    return {within(outside_), has_regions() ? within(inside_) : Range{}};
  }

  /// In one dimension, where a slab is a part of the one row, particles outside of a region act on those
  /// inside ahead and behind: every third slab is free.
  template <class Work>
  void by_colours(const std::vector<Range>& slabs, const Work& work) const {
    const std::size_t colours = all.d == 1 && has_regions() ? 3 : 2;
    for (std::size_t colour = 0; colour < colours; ++colour) {
      const auto count = static_cast<std::int64_t>((slabs.size() + colours - 1 - colour) / colours);
#pragma omp parallel for schedule(dynamic) num_threads(all.threads) if (all.threads > 1)
      for (std::int64_t s = 0; s < count; ++s) work(colours * static_cast<std::size_t>(s) + colour);
    }
  }

  /// Near forces of one term, forces += them in units of its kernel; returns the energy likewise. Pairs of
  /// two particles in regions are those of the levels below: what is outside meets everything, what is inside
  /// meets what is outside.
  double add_near(std::size_t t, const std::vector<Range>& parts, bool with_energy, Workspace& work) {
    const Polynomials& smooth = polynomials_[t];
    const simd::FarPolynomials far{static_cast<int>(smooth.force_over_r.size()) - 1,
                                   static_cast<int>(smooth.value.size()) - 1, smooth.force_over_r.data(),
                                   smooth.value.data(), layout_.cutoff * layout_.cutoff};
    const Columns columns{work.positions.data(), work.forces.data(), stride(), all.d};
    std::vector<double> energies(parts.size());
    const std::size_t length = grid_.row_length();
    const auto near = simd::mesh_kernels().near;
    by_colours(parts, [&](std::size_t s) {
      CompensatedSum sum;
      std::vector<Range> others;
      const auto add_range = [&](const std::vector<std::uint32_t>& starts, std::size_t first,
                                 std::size_t last) {
        if (starts[first] < starts[last + 1]) others.push_back({starts[first], starts[last + 1]});
      };
      // In one dimension a slab is a part of the one row.
      const std::size_t rows_in_layer = grid_.row_count() / grid_.layer_count();
      const std::size_t first_row = all.d == 1 ? 0 : parts[s].begin * rows_in_layer,
                        last_row = all.d == 1 ? 1 : parts[s].end * rows_in_layer;
      const auto for_packs = [&](const std::vector<std::uint32_t>& starts, std::size_t row,
                                 const auto& partners) {
        const std::size_t begin_cell = all.d == 1 ? parts[s].begin : row * length,
                          end_cell = all.d == 1 ? parts[s].end : (row + 1) * length;
        std::size_t cell = begin_cell;
        const std::size_t end = starts[end_cell];
        for (std::size_t i = starts[begin_cell]; i < end; i += simd::pack_size) {
          const Range pack{i, std::min(i + simd::pack_size, end)};
          while (starts[cell + 1] <= pack.begin) ++cell;
          std::size_t last = cell;
          while (starts[last + 1] < pack.end) ++last;
          others.clear();
          const std::size_t own_end = partners(pack, cell - row * length, last - row * length);
          const double energy = near(all.terms[t].kernel, far, columns, pack, own_end, others.data(),
                                     others.size(), with_energy);
          if (with_energy) sum.add(energy);
        }
      };
      for (std::size_t row = first_row; row < last_row; ++row) {
        const auto span = static_cast<std::size_t>(grid_.ahead()[0].span);
        for_packs(outside_, row, [&](const Range& pack, std::size_t first, std::size_t last) {
          const std::size_t reach = row * length + std::min(length - 1, last + span);
          grid_.for_rows_ahead(row, first, last, false,
                               [&](std::size_t from, std::size_t to) { add_range(outside_, from, to); });
          if (has_regions()) {
            grid_.for_rows_ahead(row, first, last, true,
                                 [&](std::size_t from, std::size_t to) { add_range(inside_, from, to); });
          }
          return std::max<std::size_t>(outside_[reach + 1], pack.end);
        });
        if (!has_regions()) continue;
        for_packs(inside_, row, [&](const Range& pack, std::size_t first, std::size_t last) {
          grid_.for_rows_ahead(row, first, last, false,
                               [&](std::size_t from, std::size_t to) { add_range(outside_, from, to); });
          return pack.begin;  // no pairs among themselves
        });
      }
      energies[s] = sum.value();
    });
    CompensatedSum energy;
    for (const double e : energies) energy.add(e);
    return energy.value();
  }

  /// forces = near_scale forces + far forces; returns the sum of the mesh kernel over unordered pairs.
  double add_far(const std::vector<Range>& parts, double near_scale, Workspace& work) {
    const std::size_t d = all.d;
    const Columns columns{work.positions.data(), work.forces.data(), stride(), d};
    simd::Mesh mesh{d, {}, {}, 1.0 / layout_.spacing};
    mesh.strides[d - 1] = 1;
    for (std::size_t k = d - 1; k > 0; --k) mesh.strides[k - 1] = mesh.strides[k] * layout_.nodes[k];
    for (std::size_t k = 0; k < d; ++k)
      mesh.origin[k] = lower_[k] - (0.5 * all.shape.accuracy.width + 1.0) * layout_.spacing;
    work.mesh.assign(layout_.nodes[0] * layout_.nodes[1] * layout_.nodes[2], 0.0);
    by_colours(parts, [&](std::size_t s) {
      for (const Range& particles : particles_of(parts[s]))
        simd::mesh_kernels().spread(all.window.table(), mesh, columns, particles, work.mesh.data());
    });
    (*convolution_)(work.mesh, work.mesh);
    std::vector<double> potentials(parts.size());
    by_colours(parts, [&](std::size_t s) {
      for (const Range& particles : particles_of(parts[s])) {
        potentials[s] += simd::mesh_kernels().interpolate(all.window.table(), mesh, columns, particles,
                                                          work.mesh.data(), near_scale) -
                         static_cast<double>(particles.end - particles.begin) * self_potential_;
      }
    });
    CompensatedSum energy;
    for (const double p : potentials) energy.add(p);
    return 0.5 * energy.value();
  }
};

}  // namespace

struct FastSum::Implementation {
  Level::Common common;
  Level whole;

  Implementation(std::vector<RadialTerm> terms, const Domain& domain, std::size_t count, double tolerance,
                 int threads)
      : common(std::move(terms), domain, count, tolerance, threads), whole(common, 0) {}

  bool add(std::span<const double> x, std::span<double> out, double* energy) {
    if (energy) *energy = 0.0;
    if (common.particle_count < 2 || common.terms.empty()) return true;
    whole.prepare(x, nullptr, 0.0, nullptr);
    const auto n = static_cast<double>(common.particle_count);
    // A near pair takes longer than one of the direct sum where few particles share a cell.
    if (whole.pair_count() > 2.0 / 3.0 * (0.5 * n * n)) return false;
    Level::Workspace work;
    const double sum = whole.add(x, out, energy != nullptr, work);
    if (energy) *energy = sum;
    return true;
  }
};

FastSum::FastSum(std::vector<RadialTerm> terms, const Domain& domain, std::size_t particle_count,
                 double tolerance, int threads)
    : implementation_(
          std::make_unique<Implementation>(std::move(terms), domain, particle_count, tolerance, threads)) {}
FastSum::~FastSum() = default;
FastSum::FastSum(FastSum&&) noexcept = default;
FastSum& FastSum::operator=(FastSum&&) noexcept = default;

bool FastSum::add(std::span<const double> positions, std::span<double> forces, double* energy) {
  return implementation_->add(positions, forces, energy);
}

namespace {
Layout uniform_layout(const std::vector<RadialTerm>& terms, std::size_t particle_count, std::size_t dimension,
                      double tolerance) {
  const std::array<double, 3> extents{1.0, 1.0, 1.0};
  return best_layout(
      Shape(terms, dimension, tolerance),
      {std::span(extents).first(dimension), static_cast<double>(particle_count), 1.0, false, 0.0});
}
}  // namespace

double FastSum::expected_seconds(const std::vector<RadialTerm>& terms, std::size_t particle_count,
                                 std::size_t dimension, double tolerance) {
  const Layout layout = uniform_layout(terms, particle_count, dimension, tolerance);
  const Prices& prices = prices_by_dimension[dimension - 1];
  // The last axis of a window is filled up to whole vectors.
  const int width = accuracy_for(tolerance).width;
  const double window = (width <= 8 ? 8.0 : 16.0) * std::pow(width, static_cast<double>(dimension) - 1.0);
  return prices.call + prices.mesh_node * layout.padded_nodes +
         static_cast<double>(particle_count) * (prices.window_node * window + prices.particle) +
         layout.near_pairs * (near_pair_seconds(terms, dimension) +
                              prices.near_node * width * static_cast<double>(terms.size()));
}

double FastSum::expected_bytes(const std::vector<RadialTerm>& terms, std::size_t particle_count,
                               std::size_t dimension, double tolerance) {
  const Layout layout = uniform_layout(terms, particle_count, dimension, tolerance);
  double nodes = 1.0;
  for (std::size_t k = 0; k < dimension; ++k) nodes *= static_cast<double>(layout.nodes[k]);
  // Of doubles: the mesh, its complex rows and the kernel's transform, or the same number while that is made.
  // Per particle: two columns, order, cell, and about three cells of two numbers.
  return nodes * 4.0 * sizeof(double) +
         static_cast<double>(particle_count) * (2.0 * static_cast<double>(dimension) * sizeof(double) + 32.0);
}

double FastSum::expected_direct_seconds(const std::vector<RadialTerm>& terms, std::size_t particle_count,
                                        std::size_t dimension) {
  const double n = static_cast<double>(particle_count);
  return 0.5 * n * n * direct_pair_seconds(terms, dimension) +
         direct_coordinate * n * static_cast<double>(dimension * terms.size());
}

}  // namespace rieszflow
