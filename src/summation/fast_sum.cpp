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
#include "summation/far_field.hpp"
#include "summation/simd/mesh_kernels.hpp"

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
  FarField::Split split;
  std::size_t margin;  ///< nodes in which the sampled kernel bends back
};

constexpr std::array<Accuracy, 8> accuracies = {{
    {1e-3, 5, 0.9, 2.5, {5.0, 8.0}, 12},
    {1e-4, 6, 0.8, 3.5, {7.5, 11.0}, 12},
    {1e-5, 7, 0.9, 4.5, {10.0, 13.0}, 16},
    {1e-6, 8, 0.9, 6.0, {12.5, 15.5}, 20},
    {1e-7, 10, 0.9, 7.5, {15.5, 18.0}, 24},
    {1e-8, 11, 0.9, 8.5, {18.0, 20.0}, 28},
    {1e-9, 12, 0.9, 9.5, {20.0, 22.5}, 32},
    {1e-10, 14, 0.9, 10.5, {22.5, 25.0}, 36},
}};

const Accuracy& accuracy_for(double tolerance) {
  const auto* const found =
      std::ranges::find_if(accuracies, [&](const Accuracy& a) { return a.tolerance <= tolerance; });
  return found != accuracies.end() ? *found : accuracies.back();
}

/// Unit costs in seconds, one thread of a Zen 5 core; the ratio to the direct sum is set so that the two
/// methods cross where `bench_fast_sum crossover` measures it. Ratios decide.
struct Costs {
  double near_pair = 1.2e-9;    ///< per pair of particles that the near sum looks at
  double direct_pair = 0.8e-9;  ///< per unordered pair of the direct sum
  double mesh_node = 5.0e-9;    ///< per node of the padded mesh: both transforms, multiplier, clearing
  double window_node = 1.0e-9;  ///< per particle and node of its window: spreading and interpolation
  double particle = 6e-8;       ///< per particle: sorting, copies, window weights
};
constexpr Costs costs;

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

/// Mesh width and near radius for a box.
struct Layout {
  double spacing = 0.0;
  double cutoff = 0.0;                        ///< r_c
  std::array<std::size_t, 3> nodes{1, 1, 1};  ///< that the cloud and its windows touch
  double seconds = std::numeric_limits<double>::infinity();

  bool operator==(const Layout&) const = default;
};

/// crowding: near pairs over those of a uniform cloud. radius: r_c in mesh widths.
Layout layout_of(const Accuracy& accuracy, double radius, std::span<const double> extents,
                 std::size_t particle_count, double crowding, double spacing) {
  const std::size_t d = extents.size();
  Layout layout;
  layout.spacing = spacing;
  layout.cutoff = radius * spacing;
  const std::size_t row = accuracy.width <= 8 ? 8 : 16;
  double mesh = 1.0, volume = 1.0;
  for (std::size_t k = 0; k < d; ++k) {
    layout.nodes[k] = static_cast<std::size_t>(std::ceil(extents[k] / spacing)) + row + 2;
    mesh *= 2.0 * static_cast<double>(layout.nodes[k]);
    volume *= std::max(extents[k], layout.cutoff);
  }
  const double n = static_cast<double>(particle_count);
  const double neighbours = n * std::min(1.0, 1.7 * crowding * ball_volume(d, layout.cutoff) / volume);
  layout.seconds =
      costs.near_pair * 0.5 * n * neighbours + costs.mesh_node * mesh +
      n * (costs.window_node * std::pow(accuracy.width, static_cast<double>(d)) + costs.particle);
  return layout;
}

/// The cheapest layout: spacings on a ladder of factors 1.06.
Layout best_layout(const Accuracy& accuracy, double radius, std::span<const double> extents,
                   std::size_t particle_count, double crowding) {
  const double longest = *std::ranges::max_element(extents);
  Layout best;
  const double most_nodes = extents.size() == 1 ? 3e7 : extents.size() == 2 ? 6000.0 : 320.0;
  for (double count = 2.0; count <= most_nodes; count *= 1.06) {
    const Layout layout = layout_of(accuracy, radius, extents, particle_count, crowding, longest / count);
    if (layout.seconds < best.seconds) best = layout;
  }
  return best;
}

/// sum_k c_k T_k(y) in powers of y.
std::vector<double> powers_of(const std::vector<double>& chebyshev) {
  const std::size_t n = chebyshev.size();
  std::vector<double> powers(n, 0.0), previous(n, 0.0), current(n, 0.0), next(n, 0.0);
  previous[0] = 1.0;
  if (n > 1) current[1] = 1.0;
  for (std::size_t k = 0; k < n; ++k) {
    const std::vector<double>& basis = k == 0 ? previous : current;
    for (std::size_t i = 0; i <= k; ++i) powers[i] += chebyshev[k] * basis[i];
    if (k == 0) continue;
    for (std::size_t i = 0; i < n; ++i) next[i] = (i > 0 ? 2.0 * current[i - 1] : 0.0) - previous[i];
    previous.swap(current);  // T_{k+1} = 2 y T_k - T_{k-1}
    current.swap(next);
  }
  return powers;
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

/// Kaiser-Bessel window of `width` nodes: phi(x) = I_0(beta sqrt(1 - (2x/width)^2)), |x| <= width/2, as
/// polynomials in the offset of each node.
class Window {
 public:
  Window(int width, double band) : width_(width), row_(width <= 8 ? 8 : 16) {
    // The transform of phi falls to its floor where the aliases of |k| h <= band begin. Most of a far field
    // lies well within the wavenumber where it ends: a lower floor for it is worth more than all of the
    // range.
    shape_ = std::numbers::pi * width * (1.0 - 0.5 * band / std::numbers::pi);
    peak_ = std::cyl_bessel_i(0.0, shape_);
    degree_ = width + 5;
    const auto columns = static_cast<std::size_t>(row_);
    values_.assign(static_cast<std::size_t>(degree_ + 1) * columns, 0.0);
    slopes_.assign(values_.size(), 0.0);
    for (int j = 0; j < width; ++j) {
      // t in [0, 1] as y = 2 t - 1, then expanded: the powers of t have moderate coefficients at these
      // degrees.
      const auto in_y = powers_of(chebyshev_coefficients(
          [&](double y) { return phi(0.5 * (y + 1.0) - 0.5 * width + j); }, degree_ + 1));
      const auto in_t = shifted(in_y);
      for (int k = 0; k <= degree_; ++k) {
        const auto at = static_cast<std::size_t>(k);
        values_[at * columns + static_cast<std::size_t>(j)] = in_t[at];
        // A node's offset t falls as the particle's coordinate grows.
        if (k > 0) slopes_[(at - 1) * columns + static_cast<std::size_t>(j)] = -k * in_t[at];
      }
    }
  }

  simd::WindowTable table() const { return {width_, degree_, row_, values_.data(), slopes_.data()}; }

  /// integral phi(x) exp(-i k x) dx.
  double transform(double k) const {
    const double square = shape_ * shape_ - 0.25 * width_ * k * width_ * k, z = std::sqrt(std::abs(square));
    if (z < 1e-6) return width_ / peak_;
    return width_ * (square > 0.0 ? std::sinh(z) : std::sin(z)) / z / peak_;
  }

 private:
  int width_, row_, degree_ = 0;
  double shape_ = 0.0, peak_ = 1.0;
  std::vector<double> values_, slopes_;

  double phi(double x) const {
    const double y = 2.0 * x / width_;
    return std::cyl_bessel_i(0.0, shape_ * std::sqrt(std::max(0.0, 1.0 - y * y))) / peak_;
  }
  /// sum c_k (2t - 1)^k in powers of t.
  static std::vector<double> shifted(const std::vector<double>& c) {
    std::vector<double> result(c.size(), 0.0);
    for (std::size_t k = c.size(); k-- > 0;) {
      // Horner: result <- result (2t - 1) + c_k.
      for (std::size_t i = result.size(); i-- > 0;)
        result[i] = (i > 0 ? 2.0 * result[i - 1] : 0.0) - result[i];
      result[0] += c[k];
    }
    return result;
  }
};

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

}  // namespace

struct FastSum::Implementation {
  std::vector<RadialTerm> terms;
  Domain domain;
  std::size_t particle_count, d;
  double tolerance;
  Accuracy accuracy;
  double radius;  ///< r_c in mesh widths
  Window window;
  int threads;

  /// Everything that depends on the extents of the cloud and its crowding, not on where it is.
  struct Plan {
    std::array<double, 3> extent{};
    Layout layout;
    std::array<std::size_t, 3> cells{1, 1, 1};
    std::array<double, 3> cell_size{1.0, 1.0, 1.0};
    /// Rows of cells along the last axis that lie ahead of a row within the near radius: their offsets, and
    /// how many cells to either side of its own a particle reaches there. The row itself comes first.
    struct Ahead {
      std::int64_t a, b, span;
    };
    std::vector<Ahead> ahead;
    std::optional<EvenConvolution> convolution;
    Layout mesh_layout;           ///< for which the rest was made
    double self_potential = 0.0;  ///< far W at r = 0, all terms with their scales
    struct Far {
      std::vector<double> force_over_r, value;
    };
    std::vector<Far> far;  ///< (term)
  } plan;

  std::array<double, 3> lower{};
  std::vector<double> positions, forces, sums;  ///< columns, particles sorted by cell
  std::vector<double> mesh;
  std::vector<std::uint32_t> order, cell_of, cell_start;

  Implementation(std::vector<RadialTerm> t, const Domain& where, std::size_t count, double wanted,
                 int thread_count)
      : terms(std::move(t)),
        domain(where),
        particle_count(count),
        d(rieszflow::dimension(where)),
        tolerance(wanted),
        accuracy(accuracy_for(wanted)),
        radius(radius_of(accuracy, terms)),
        window(accuracy.width, accuracy.window_band),
        threads(thread_count) {
    expects(d <= 3, "the fast sum is for at most three dimensions");
    expects(count < std::numeric_limits<std::uint32_t>::max(),
            "the fast sum is for fewer than 2^32 particles");
  }

  /// A Gaussian split reaches further for the same wavenumber.
  static double radius_of(const Accuracy& accuracy, const std::vector<RadialTerm>& terms) {
    const bool compact = std::ranges::all_of(
        terms, [](const RadialTerm& term) { return FarField::is_compact(term.kernel.kind); });
    return accuracy.radius * (compact ? 1.0 : 2.0 * accuracy.split.decay / accuracy.split.band);
  }

  std::size_t stride() const {
    return (particle_count + 2 * simd::padding - 1) / simd::padding * simd::padding;
  }
  std::size_t cell_count() const { return plan.cells[0] * plan.cells[1] * plan.cells[2]; }
  std::size_t row_count() const { return cell_count() / plan.cells[d - 1]; }

  /// A box about the cloud that is a function of the cloud alone. Its corner is the cloud's; its edges, on
  /// which the plan depends, are eighth powers of two and seldom change, or those of the domain.
  std::array<double, 3> box_about(std::span<const double> x) {
    const bool bounded = !std::holds_alternative<WholeSpace>(domain);
    const Box limits = bounded ? bounding_box(domain) : Box{};
    std::array<double, 3> extent{}, high{};
    for (std::size_t k = 0; k < d; ++k) lower[k] = high[k] = x[k];
    for (std::size_t i = 0; i < particle_count; ++i) {
      for (std::size_t k = 0; k < d; ++k) {
        lower[k] = std::min(lower[k], x[i * d + k]);
        high[k] = std::max(high[k], x[i * d + k]);
      }
    }
    for (std::size_t k = 0; k < d; ++k) {
      // A cloud without extent along an axis still needs a box: relative to where it is.
      const double size =
          std::max(high[k] - lower[k], 1e-12 * std::max({std::abs(lower[k]), std::abs(high[k]), 1e-280}));
      double eighth = std::floor(8.0 * std::log2(size));
      while (std::exp2(0.125 * eighth) < size) eighth += 1.0;
      extent[k] = std::exp2(0.125 * eighth);
      if (bounded) extent[k] = std::min(extent[k], std::max(limits.upper[k] - limits.lower[k], size));
    }
    // Axes much shorter than the longest add nothing to the near radius: keep cells and mesh of a sensible
    // shape.
    const double longest = *std::max_element(extent.begin(), extent.begin() + static_cast<std::ptrdiff_t>(d));
    for (std::size_t k = 0; k < d; ++k) extent[k] = std::max(extent[k], 1e-9 * longest);
    return extent;
  }

  /// The plan for a cloud, its particles sorted into cells. Crowding is counted on the cells of the uniform
  /// plan, then on those of the plan for that crowding, which are smaller: powers of two, seldom changing.
  /// Returns the number of near pairs.
  double prepare(std::span<const double> x) {
    const std::array<double, 3> extent = box_about(x);
    double crowding = 1.0, pairs = 0.0;
    for (int attempt = 0; attempt < 4; ++attempt) {
      const Layout layout =
          best_layout(accuracy, radius, std::span(extent).first(d), particle_count, crowding);
      set_cells(layout, extent);
      count_cells(x);
      pairs = near_pairs();
      const double found = std::exp2(std::max(0.0, std::round(std::log2(pairs / expected_pairs()))));
      if (found <= crowding) break;
      crowding = found;
    }
    return pairs;
  }

  /// Near pairs of a uniform cloud in the cells of the plan.
  double expected_pairs() const {
    const double per_cell = static_cast<double>(particle_count) / static_cast<double>(cell_count());
    double cells = 0.0;
    for (const auto& ahead : plan.ahead) cells += 2.0 * static_cast<double>(ahead.span) + 1.0;
    cells -= static_cast<double>(plan.ahead[0].span) + 0.5;
    return static_cast<double>(particle_count) * std::max(0.5, per_cell * cells);
  }

  void set_cells(const Layout& layout, const std::array<double, 3>& extent) {
    if (layout == plan.layout && extent == plan.extent) return;
    plan.layout = layout;
    plan.extent = extent;
    const double cutoff = layout.cutoff;
    for (std::size_t k = 0; k < d; ++k) {
      const double count = std::floor(extent[k] / (cutoff / (k + 1 == d ? 8.0 : 3.0)));
      plan.cells[k] = static_cast<std::size_t>(std::clamp(count, 1.0, k + 1 == d ? 4e6 : 4e3));
      plan.cell_size[k] = extent[k] / static_cast<double>(plan.cells[k]);
    }
    plan.ahead.clear();
    const auto gap = [&](std::int64_t offset, std::size_t k) {
      return static_cast<double>(std::max<std::int64_t>(0, std::abs(offset) - 1)) * plan.cell_size[k];
    };
    const auto reach = [&](double square, std::size_t k) {
      return static_cast<std::int64_t>(std::sqrt(std::max(0.0, square)) / plan.cell_size[k]) + 1;
    };
    const double square = cutoff * cutoff;
    const std::int64_t a_reach = d == 3 ? reach(square, 0) : 0, b_reach = d >= 2 ? reach(square, d - 2) : 0;
    for (std::int64_t a = 0; a <= a_reach; ++a) {
      for (std::int64_t b = a == 0 ? 0 : -b_reach; b <= b_reach; ++b) {
        const double rest =
            square - (d == 3 ? gap(a, 0) * gap(a, 0) : 0.0) - (d >= 2 ? gap(b, d - 2) * gap(b, d - 2) : 0.0);
        if (rest > 0.0) plan.ahead.push_back({a, b, reach(rest, d - 1)});
      }
    }
  }

  /// What the mesh needs beyond the cells.
  void prepare_mesh() {
    if (plan.convolution && plan.mesh_layout == plan.layout) return;
    plan.mesh_layout = plan.layout;
    plan.convolution.reset();
    prepare_far();
    prepare_convolution();
    std::size_t size = 1;
    for (std::size_t k = 0; k < d; ++k) size *= plan.layout.nodes[k];
    mesh.resize(size);
  }

  FarField far_field_of(const RadialTerm& term) const {
    return {term.kernel, plan.layout.cutoff, accuracy.split};
  }

  void prepare_far() {
    plan.far.clear();
    plan.self_potential = 0.0;
    const double cutoff2 = plan.layout.cutoff * plan.layout.cutoff;
    for (const RadialTerm& term : terms) {
      const FarField far = far_field_of(term);
      const auto q = [&](double y) { return 0.5 * (y + 1.0) * cutoff2; };
      plan.far.push_back(
          {fitted([&](double y) { return far.at(q(y)).force_over_r; }, polynomial_share * accuracy.tolerance),
           fitted([&](double y) { return far.at(q(y)).value; }, polynomial_share * accuracy.tolerance)});
      plan.self_potential += term.energy_scale * far.at(0.0).value;
    }
  }
  static constexpr double polynomial_share = 0.01;  ///< of the tolerance

  /// The far kernel on the mesh. It is sampled on a torus of more than twice the nodes, where it bends
  /// smoothly back, and there divided by the window's transform squared. Even along every axis, so cosine
  /// transforms of one octant do. Only the displacements within the mesh are then used, whatever the
  /// convolution's padding.
  void prepare_convolution() {
    const Layout& layout = plan.layout;
    std::array<std::size_t, 3> half{0, 0, 0};  // periods are 2 half
    std::array<std::vector<double>, 3> squares, inverse;
    for (std::size_t k = 0; k < 3; ++k) {
      if (k + d >= 3) half[k] = fast_length(2 * layout.nodes[k + d - 3] + accuracy.margin) / 2;
      squares[k].assign(half[k] + 1, 0.0);
      inverse[k].assign(half[k] + 1, 1.0);
      if (k + d < 3) continue;
      for (std::size_t i = 0; i <= half[k]; ++i) {
        const double r = layout.spacing * bent(i, layout.nodes[k + d - 3], half[k], accuracy.split.decay);
        squares[k][i] = r * r;
        const double transform =
            window.transform(std::numbers::pi * static_cast<double>(i) / static_cast<double>(half[k]));
        // Once for spreading and once for interpolation, whose weights are divided by their sum, the
        // transform at zero.
        inverse[k][i] = window.transform(0.0) / (transform * transform * 2.0 * static_cast<double>(half[k]));
      }
    }
    std::vector<FarField> far;
    for (const RadialTerm& term : terms) far.push_back(far_field_of(term));
    const std::size_t size = (half[0] + 1) * (half[1] + 1) * (half[2] + 1);
    const MeshArray octant(fftw_alloc_real(size));
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
      value = 0.0;
      const double q = squares[0][a] + squares[1][b] + squares[2][c];
      for (std::size_t t = 0; t < terms.size(); ++t) value += terms[t].energy_scale * far[t].at(q).value;
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
    std::vector<double> weights;
    std::array<std::size_t, 3> nodes{1, 1, 1};
    for (std::size_t k = 0; k < d; ++k) nodes[3 - d + k] = layout.nodes[k];
    weights.reserve(nodes[0] * nodes[1] * nodes[2]);
    for (std::size_t a = 0; a < nodes[0]; ++a) {
      for (std::size_t b = 0; b < nodes[1]; ++b) {
        const double* const row = octant.get() + (a * (half[1] + 1) + b) * (half[2] + 1);
        weights.insert(weights.end(), row, row + nodes[2]);
      }
    }
    plan.convolution.emplace(std::span(layout.nodes).first(d), weights, EvenConvolution::Kind::Linear,
                             threads);
  }

  std::size_t cell_along(double x, std::size_t k) const {
    const double c = (x - lower[k]) / plan.cell_size[k];
    return std::min(plan.cells[k] - 1, static_cast<std::size_t>(std::max(0.0, c)));
  }

  /// Cells of the particles, the first axis slowest, and how many each holds.
  void count_cells(std::span<const double> x) {
    cell_of.resize(particle_count);
    cell_start.assign(cell_count() + 1, 0);
    for (std::size_t i = 0; i < particle_count; ++i) {
      std::size_t cell = 0;
      for (std::size_t k = 0; k < d; ++k) cell = cell * plan.cells[k] + cell_along(x[i * d + k], k);
      cell_of[i] = static_cast<std::uint32_t>(cell);
      ++cell_start[cell + 1];
    }
    for (std::size_t c = 0; c < cell_count(); ++c) cell_start[c + 1] += cell_start[c];
  }

  /// Particles into columns, cell by cell: a counting sort, stable in the particle number.
  void sort(std::span<const double> x) {
    order.resize(particle_count);
    positions.resize(d * stride());
    forces.assign(d * stride(), 0.0);
    for (std::size_t k = 0; k < d; ++k) {
      std::fill(positions.begin() + static_cast<std::ptrdiff_t>(k * stride() + particle_count),
                positions.begin() + static_cast<std::ptrdiff_t>((k + 1) * stride()), 0.0);
    }
    // cell_start[c] runs to the end of its cell and is put back by one place afterwards.
    for (std::size_t i = 0; i < particle_count; ++i) {
      const std::size_t at = cell_start[cell_of[i]]++;
      order[at] = static_cast<std::uint32_t>(i);
      for (std::size_t k = 0; k < d; ++k) positions[k * stride() + at] = x[i * d + k];
    }
    std::copy_backward(cell_start.begin(), cell_start.end() - 1, cell_start.end());
    cell_start[0] = 0;
  }

  /// Ranges of particles within reach of the cells [first, last] of a row, in rows ahead; and how far they
  /// reach in their own.
  void near_ranges(std::size_t row, std::size_t first, std::size_t last, std::vector<Range>& ahead,
                   std::size_t& own_end) const {
    ahead.clear();
    const std::size_t length = plan.cells[d - 1];
    const auto rows_b = static_cast<std::int64_t>(d >= 2 ? plan.cells[d - 2] : 1),
               rows_a = static_cast<std::int64_t>(d == 3 ? plan.cells[0] : 1);
    const auto at = static_cast<std::int64_t>(row);
    const std::int64_t a0 = at / rows_b, b0 = at % rows_b;
    const auto cells_to = [&](std::size_t base, std::int64_t span) {
      return cell_start[base + std::min(length, last + static_cast<std::size_t>(span) + 1)];
    };
    own_end = cells_to(row * length, plan.ahead[0].span);
    for (std::size_t k = 1; k < plan.ahead.size(); ++k) {
      const auto& offset = plan.ahead[k];
      const std::int64_t a = a0 + offset.a, b = b0 + offset.b;
      if (a >= rows_a || b < 0 || b >= rows_b) continue;
      const std::size_t base = static_cast<std::size_t>(a * rows_b + b) * length;
      const auto span = static_cast<std::size_t>(offset.span);
      const Range range{cell_start[base + (first > span ? first - span : 0)], cells_to(base, offset.span)};
      if (range.begin < range.end) ahead.push_back(range);
    }
  }

  /// Slabs of whole cell layers along the first axis, thick enough that every second slab may be worked on at
  /// once: neither near pairs nor windows of two such slabs meet. A function of the plan alone.
  std::vector<Range> slabs() const {
    const double thick = std::max(plan.layout.cutoff + plan.cell_size[0], (16.0 + 1.0) * plan.layout.spacing);
    // Thinner slabs than an eighth of the axis only cost.
    const auto layers =
        std::max(static_cast<std::size_t>(std::ceil(thick / plan.cell_size[0])), (plan.cells[0] + 7) / 8);
    std::vector<Range> result;
    for (std::size_t first = 0; first < plan.cells[0]; first += layers) {
      result.push_back({first, std::min(first + layers, plan.cells[0])});
    }
    return result;
  }
  Range particles_of(const Range& slab) const {
    const std::size_t layer = cell_count() / plan.cells[0];
    return {cell_start[slab.begin * layer], cell_start[slab.end * layer]};
  }

  template <class Work>
  void by_colours(const std::vector<Range>& slabs, const Work& work) const {
    for (std::size_t colour = 0; colour < 2; ++colour) {
      const auto count = static_cast<std::int64_t>((slabs.size() + 1 - colour) / 2);
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
      for (std::int64_t s = 0; s < count; ++s) work(2 * static_cast<std::size_t>(s) + colour);
    }
  }

  /// Pairs that the near sum would look at.
  double near_pairs() const {
    double pairs = 0.0;
    std::vector<Range> ahead;
    std::size_t own_end = 0;
    const std::size_t length = plan.cells[d - 1];
    for (std::size_t row = 0; row < row_count(); ++row) {
      if (cell_start[row * length] == cell_start[(row + 1) * length]) continue;
      for (std::size_t c = 0; c < length; ++c) {
        const std::size_t begin = cell_start[row * length + c], end = cell_start[row * length + c + 1];
        if (begin == end) continue;
        near_ranges(row, c, c, ahead, own_end);
        const double count = static_cast<double>(end - begin);
        double others = static_cast<double>(own_end - end) + 0.5 * count;
        for (const Range& range : ahead) others += static_cast<double>(range.end - range.begin);
        pairs += count * others;
      }
    }
    return pairs;
  }

  /// Near forces of one term, forces += them in units of its kernel; returns the energy likewise.
  double add_near(std::size_t t, const std::vector<Range>& parts, const Columns& columns, bool with_energy) {
    const simd::FarPolynomials far{
        static_cast<int>(plan.far[t].force_over_r.size()) - 1, static_cast<int>(plan.far[t].value.size()) - 1,
        plan.far[t].force_over_r.data(), plan.far[t].value.data(), plan.layout.cutoff * plan.layout.cutoff};
    std::vector<double> energies(parts.size());
    const std::size_t length = plan.cells[d - 1];
    const auto near = simd::mesh_kernels().near;
    by_colours(parts, [&](std::size_t s) {
      CompensatedSum sum;
      std::vector<Range> ahead;
      std::size_t own_end = 0;
      // In one dimension a slab is a part of the one row.
      const std::size_t first_row = d == 1 ? 0 : parts[s].begin * (row_count() / plan.cells[0]),
                        last_row = d == 1 ? 1 : parts[s].end * (row_count() / plan.cells[0]);
      for (std::size_t row = first_row; row < last_row; ++row) {
        const std::size_t begin_cell = d == 1 ? parts[s].begin : row * length,
                          end_cell = d == 1 ? parts[s].end : (row + 1) * length;
        std::size_t cell = begin_cell;
        const std::size_t end = cell_start[end_cell];
        for (std::size_t i = cell_start[begin_cell]; i < end; i += simd::pack_size) {
          const Range pack{i, std::min(i + simd::pack_size, end)};
          while (cell_start[cell + 1] <= pack.begin) ++cell;
          std::size_t last = cell;
          while (cell_start[last + 1] < pack.end) ++last;
          near_ranges(row, cell - row * length, last - row * length, ahead, own_end);
          const double energy = near(terms[t].kernel, far, columns, pack, std::max(own_end, pack.end),
                                     ahead.data(), ahead.size(), with_energy);
          if (with_energy) sum.add(energy);
        }
      }
      energies[s] = sum.value();
    });
    CompensatedSum energy;
    for (const double e : energies) energy.add(e);
    return energy.value();
  }

  /// forces = near_scale forces + far forces; returns the sum of far W over unordered pairs.
  double add_far(const std::vector<Range>& parts, const Columns& columns, double near_scale) {
    simd::Mesh shape{d, {}, {}, 1.0 / plan.layout.spacing};
    shape.strides[d - 1] = 1;
    for (std::size_t k = d - 1; k > 0; --k) shape.strides[k - 1] = shape.strides[k] * plan.layout.nodes[k];
    for (std::size_t k = 0; k < d; ++k)
      shape.origin[k] = lower[k] - (0.5 * accuracy.width + 1.0) * plan.layout.spacing;
    std::ranges::fill(mesh, 0.0);
    by_colours(parts, [&](std::size_t s) {
      simd::mesh_kernels().spread(window.table(), shape, columns, particles_of(parts[s]), mesh.data());
    });
    (*plan.convolution)(mesh, mesh);
    std::vector<double> potentials(parts.size());
    by_colours(parts, [&](std::size_t s) {
      const Range particles = particles_of(parts[s]);
      potentials[s] = simd::mesh_kernels().interpolate(window.table(), shape, columns, particles, mesh.data(),
                                                       near_scale) -
                      static_cast<double>(particles.end - particles.begin) * plan.self_potential;
    });
    CompensatedSum energy;
    for (const double p : potentials) energy.add(p);
    return 0.5 * energy.value();
  }

  bool add(std::span<const double> x, std::span<double> out, double* energy) {
    if (energy) *energy = 0.0;
    if (particle_count < 2 || terms.empty()) return true;
    const double pairs = prepare(x), n = static_cast<double>(particle_count);
    if (costs.near_pair * pairs > costs.direct_pair * 0.5 * n * n) return false;
    prepare_mesh();
    sort(x);
    const std::vector<Range> parts = slabs();
    const Columns columns{positions.data(), forces.data(), stride(), d};
    double near_energy = 0.0, near_scale = terms[0].force_scale;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (t > 0) std::ranges::fill(forces, 0.0);
      near_energy += terms[t].energy_scale * add_near(t, parts, columns, energy != nullptr);
      if (terms.size() == 1) break;
      sums.resize(forces.size());
      for (std::size_t i = 0; i < forces.size(); ++i)
        sums[i] = (t > 0 ? sums[i] : 0.0) + terms[t].force_scale * forces[i];
    }
    if (terms.size() > 1) {
      forces.swap(sums);
      near_scale = 1.0;
    }
    const Columns all{positions.data(), forces.data(), stride(), d};
    const double far_energy = add_far(parts, all, near_scale);
    if (energy) *energy = near_energy + far_energy;
    for (std::size_t at = 0; at < particle_count; ++at) {
      for (std::size_t k = 0; k < d; ++k) out[order[at] * d + k] += forces[k * stride() + at] / n;
    }
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

double FastSum::expected_seconds(const std::vector<RadialTerm>& terms, std::size_t particle_count,
                                 std::size_t dimension, double tolerance) {
  const std::array<double, 3> extents{1.0, 1.0, 1.0};
  const Accuracy& accuracy = accuracy_for(tolerance);
  return best_layout(accuracy, Implementation::radius_of(accuracy, terms),
                     std::span(extents).first(dimension), particle_count, 1.0)
      .seconds;
}

double FastSum::expected_direct_seconds(std::size_t particle_count, std::size_t dimension) {
  const double pairs = 0.5 * static_cast<double>(particle_count) * static_cast<double>(particle_count);
  return pairs * costs.direct_pair * (dimension == 3 ? 1.0 : 0.45);
}

}  // namespace rieszflow
