#include "summation/fast_sum.hpp"

#include <fftw3.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <mutex>
#include <numbers>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"
#include "summation/far_field.hpp"
#include "summation/simd/mesh_kernels.hpp"

namespace rieszflow {
namespace {

using simd::Columns;
using simd::Range;

/// What a tolerance asks for; measured on clouds and kernels of tests/summation/fast_sum_test.cpp.
struct Accuracy {
  double tolerance;    ///< reached with a margin of at least two
  int width;           ///< nodes of the window
  double decay;        ///< alpha^2 r_c^2 = log(1/eps)
  double kh;           ///< mesh width times the wavenumber 2 alpha sqrt(decay) where the far field ends
  std::size_t margin;  ///< nodes in which the sampled kernel bends back
};

constexpr std::array<Accuracy, 6> accuracies = {{
    {1e-3, 6, 8.0, 2.0, 8},
    {1e-4, 8, 11.0, 2.1, 8},
    {1e-5, 8, 13.0, 1.9, 10},
    {1e-6, 10, 15.5, 1.9, 12},
    {1e-8, 12, 20.0, 1.8, 20},
    {1e-10, 16, 25.0, 1.7, 28},
}};

const Accuracy& accuracy_for(double tolerance) {
  for (const Accuracy& a : accuracies) {
    if (a.tolerance <= tolerance) return a;
  }
  return accuracies.back();
}

/// Unit costs in seconds, one thread of a 3.7 GHz Zen 4 core.
struct Costs {
  double near_pair = 1.1e-9;    ///< per pair of particles within reach of each other's cells
  double direct_pair = 0.9e-9;  ///< per unordered pair of the direct sum
  double mesh_node = 4.0e-9;    ///< per node: both transforms, multiplier, clearing
  double window_node = 1.5e-9;  ///< per particle and node of its window: spreading and interpolation
  double particle = 6.0e-8;     ///< per particle: sorting, copies, window weights
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
  double cutoff = 0.0;  ///< r_c
  double alpha = 0.0;
  std::array<std::size_t, 3> nodes{1, 1, 1};    ///< that the cloud and its windows touch
  std::array<std::size_t, 3> lengths{1, 1, 1};  ///< of the transform
  double seconds = std::numeric_limits<double>::infinity();
};

Layout layout_of(const Accuracy& accuracy, std::span<const double> extents, std::size_t particle_count,
                 double spacing) {
  const std::size_t d = extents.size();
  Layout layout;
  layout.spacing = spacing;
  layout.cutoff = 2.0 * accuracy.decay * spacing / accuracy.kh;
  layout.alpha = std::sqrt(accuracy.decay) / layout.cutoff;
  const int row = accuracy.width <= 8 ? 8 : 16;
  double mesh = 1.0, volume = 1.0;
  for (std::size_t k = 0; k < d; ++k) {
    layout.nodes[k] =
        static_cast<std::size_t>(std::ceil(extents[k] / spacing)) + static_cast<std::size_t>(row) + 2;
    layout.lengths[k] = fast_length(2 * layout.nodes[k] + accuracy.margin);
    mesh *= static_cast<double>(layout.lengths[k]);
    volume *= std::max(extents[k], layout.cutoff);
  }
  const double n = static_cast<double>(particle_count);
  const double neighbours = n * std::min(1.0, 2.2 * ball_volume(d, layout.cutoff) / volume);
  layout.seconds =
      costs.near_pair * 0.5 * n * neighbours + costs.mesh_node * mesh +
      n * (costs.window_node * std::pow(accuracy.width, static_cast<double>(d)) + costs.particle);
  return layout;
}

/// The cheapest layout: spacings on a ladder of factors 1.06.
Layout best_layout(const Accuracy& accuracy, std::span<const double> extents, std::size_t particle_count) {
  const double longest = *std::ranges::max_element(extents);
  Layout best;
  const double most_nodes = extents.size() == 1 ? 3e7 : extents.size() == 2 ? 6000.0 : 400.0;
  for (double count = 2.0; count <= most_nodes; count *= 1.06) {
    const Layout layout = layout_of(accuracy, extents, particle_count, longest / count);
    if (layout.seconds < best.seconds) best = layout;
  }
  return best;
}

/// sum_k c_k y^k on [-1, 1] through f at Chebyshev nodes, the degree grown until the last coefficients are
/// below `accuracy` of the largest.
std::vector<double> fitted(const auto& f, int degree) {
  const int n = degree + 1;
  std::vector<double> samples(static_cast<std::size_t>(n)), chebyshev(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i)
    samples[static_cast<std::size_t>(i)] = f(std::cos(std::numbers::pi * (i + 0.5) / n));
  for (int k = 0; k < n; ++k) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i)
      sum += samples[static_cast<std::size_t>(i)] * std::cos(std::numbers::pi * k * (i + 0.5) / n);
    chebyshev[static_cast<std::size_t>(k)] = (k == 0 ? 1.0 : 2.0) / n * sum;
  }
  // T_{k+1} = 2 y T_k - T_{k-1}.
  std::vector<double> powers(static_cast<std::size_t>(n), 0.0), previous(powers), current(powers),
      next(powers);
  previous[0] = 1.0;
  if (n > 1) current[1] = 1.0;
  for (int k = 0; k < n; ++k) {
    const std::vector<double>& basis = k == 0 ? previous : current;
    for (int i = 0; i <= k; ++i)
      powers[static_cast<std::size_t>(i)] +=
          chebyshev[static_cast<std::size_t>(k)] * basis[static_cast<std::size_t>(i)];
    if (k == 0) continue;
    for (int i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      next[at] = (i > 0 ? 2.0 * current[at - 1] : 0.0) - previous[at];
    }
    previous.swap(current);
    current.swap(next);
  }
  return powers;
}

/// Kaiser-Bessel window of `width` nodes: phi(x) = I_0(beta sqrt(1 - (2x/width)^2)), |x| <= width/2, as
/// polynomials in the offset of each node.
class Window {
 public:
  Window(int width, double kh) : width_(width), row_(width <= 8 ? 8 : 16) {
    // The transform of phi falls to its floor where the aliases of |k| h <= kh begin.
    shape_ = std::numbers::pi * width * (1.0 - 0.5 * kh / std::numbers::pi);
    degree_ = width + 5;
    const auto columns = static_cast<std::size_t>(row_);
    values_.assign(static_cast<std::size_t>(degree_ + 1) * columns, 0.0);
    slopes_.assign(values_.size(), 0.0);
    for (int j = 0; j < width; ++j) {
      // t in [0, 1] as y = 2 t - 1, then expanded: the powers of t have moderate coefficients at these
      // degrees.
      const auto in_y = fitted([&](double y) { return phi(0.5 * (y + 1.0) - 0.5 * width + j); }, degree_);
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
    if (z < 1e-6) return width_ / peak();
    return width_ * (square > 0.0 ? std::sinh(z) : std::sin(z)) / z / peak();
  }

 private:
  int width_, row_, degree_ = 0;
  double shape_ = 0.0;
  std::vector<double> values_, slopes_;

  double peak() const { return std::cyl_bessel_i(0.0, shape_); }
  double phi(double x) const {
    const double y = 2.0 * x / width_;
    return std::cyl_bessel_i(0.0, shape_ * std::sqrt(std::max(0.0, 1.0 - y * y))) / peak();
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

class Transform {
 public:
  Transform() = default;
  Transform(std::size_t d, const std::array<std::size_t, 3>& lengths, double* array) {
    std::array<int, 3> n{};
    for (std::size_t k = 0; k < d; ++k) n[k] = static_cast<int>(lengths[k]);
    const std::scoped_lock lock(planner());
    // In place; estimated plans are the same in every run, measured ones are not.
    auto* const complex = reinterpret_cast<fftw_complex*>(array);
    forward_ = fftw_plan_dft_r2c(static_cast<int>(d), n.data(), array, complex, FFTW_ESTIMATE);
    backward_ = fftw_plan_dft_c2r(static_cast<int>(d), n.data(), complex, array, FFTW_ESTIMATE);
  }
  ~Transform() {
    const std::scoped_lock lock(planner());
    if (forward_) fftw_destroy_plan(forward_);
    if (backward_) fftw_destroy_plan(backward_);
  }
  Transform(const Transform&) = delete;
  Transform& operator=(Transform&& other) noexcept {
    std::swap(forward_, other.forward_);
    std::swap(backward_, other.backward_);
    return *this;
  }
  void forward() const { fftw_execute(forward_); }
  void backward() const { fftw_execute(backward_); }

 private:
  fftw_plan forward_ = nullptr, backward_ = nullptr;
};

/// Displacement at which the periodic kernel is sampled for `index` nodes: the true one up to `nodes`, then a
/// smooth turn.
double bent(std::size_t index, std::size_t nodes, std::size_t length, double decay) {
  const double i = static_cast<double>(std::min(index, length - index));
  const double from = static_cast<double>(nodes), to = 0.5 * static_cast<double>(length);
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
  Accuracy accuracy;
  Window window;

  /// Everything that depends on the box alone.
  struct Plan {
    std::array<double, 3> lower{}, extent{};
    Layout layout;
    std::array<std::size_t, 3> cells{1, 1, 1};
    std::array<double, 3> cell_size{1.0, 1.0, 1.0};
    std::size_t mesh_size = 0,
                row_length = 0;  ///< doubles; of the last axis, padded for the transform in place
    MeshArray mesh;
    std::vector<double> multiplier;  ///< (wavenumber), last axis halved
    double self_potential = 0.0;     ///< far W at r = 0, all terms with their scales
    struct Far {
      std::vector<double> force_over_r, value;
    };
    std::vector<Far> far;  ///< (term)
    Transform transform;
  } plan;

  std::vector<double> positions, forces, coordinates, potential,
      slopes;  ///< columns, particles sorted by cell
  std::vector<std::size_t> order, cell_of, cell_start;

  Implementation(std::vector<RadialTerm> t, const Domain& where, std::size_t count, double tolerance)
      : terms(std::move(t)),
        domain(where),
        particle_count(count),
        d(rieszflow::dimension(where)),
        accuracy(accuracy_for(tolerance)),
        window(accuracy.width, accuracy.kh) {
    expects(d <= 3, "the fast sum is for at most three dimensions");
  }

  std::size_t stride() const {
    return (particle_count + 2 * simd::padding - 1) / simd::padding * simd::padding;
  }

  /// A box about the cloud that is a function of the cloud alone and seldom changes: edges are quarter powers
  /// of two, corners multiples of an eighth of the edge, cut to the bounding box of the domain.
  void box_about(std::span<const double> x, std::array<double, 3>& lower,
                 std::array<double, 3>& extent) const {
    const bool bounded = !std::holds_alternative<WholeSpace>(domain);
    const Box limits = bounded ? bounding_box(domain) : Box{};
    for (std::size_t k = 0; k < d; ++k) {
      double low = x[k], high = x[k];
      for (std::size_t i = 0; i < particle_count; ++i) {
        low = std::min(low, x[i * d + k]);
        high = std::max(high, x[i * d + k]);
      }
      // A cloud without extent along an axis still needs a box: relative to where it is.
      const double size = std::max(high - low, 1e-12 * std::max({std::abs(low), std::abs(high), 1e-280}));
      double quarter = std::floor(4.0 * std::log2(size));
      do {
        extent[k] = std::exp2(0.25 * quarter);
        lower[k] = std::floor(low / extent[k] * 8.0) * extent[k] / 8.0;
        quarter += 1.0;
      } while (lower[k] + extent[k] < high);
      if (bounded) {
        const double upper = std::min(lower[k] + extent[k], std::max(limits.upper[k], high));
        lower[k] = std::max(lower[k], std::min(limits.lower[k], low));
        extent[k] = upper - lower[k];
      }
    }
    // Axes much shorter than the longest add nothing to the near radius: keep cells and mesh of a sensible
    // shape.
    const double longest = *std::max_element(extent.begin(), extent.begin() + static_cast<std::ptrdiff_t>(d));
    for (std::size_t k = 0; k < d; ++k) extent[k] = std::max(extent[k], 1e-9 * longest);
  }

  void prepare(std::span<const double> x) {
    std::array<double, 3> lower{}, extent{};
    box_about(x, lower, extent);
    if (plan.mesh && lower == plan.lower && extent == plan.extent) return;
    plan.lower = lower;
    plan.extent = extent;
    plan.layout = best_layout(accuracy, std::span(extent).first(d), particle_count);
    const Layout& layout = plan.layout;
    const double cutoff = layout.cutoff;
    for (std::size_t k = 0; k < d; ++k) {
      const double count = std::floor(extent[k] / (cutoff / (d == 1 ? 8.0 : 3.0)));
      plan.cells[k] = static_cast<std::size_t>(std::clamp(count, 1.0, 1e6));
      plan.cell_size[k] = extent[k] / static_cast<double>(plan.cells[k]);
    }
    plan.row_length = 2 * (layout.lengths[d - 1] / 2 + 1);
    plan.mesh_size = plan.row_length;
    for (std::size_t k = 0; k + 1 < d; ++k) plan.mesh_size *= layout.lengths[k];
    plan.transform = Transform();
    plan.mesh.reset(fftw_alloc_real(plan.mesh_size));
    plan.transform = Transform(d, layout.lengths, plan.mesh.get());
    prepare_far();
    prepare_multiplier();
  }

  void prepare_far() {
    plan.far.clear();
    plan.self_potential = 0.0;
    const double cutoff2 = plan.layout.cutoff * plan.layout.cutoff;
    const int degree = static_cast<int>(std::ceil(accuracy.decay * 0.75)) + 6;
    for (const RadialTerm& term : terms) {
      const FarField far(term.kernel, plan.layout.alpha);
      const auto q = [&](double y) { return 0.5 * (y + 1.0) * cutoff2; };
      plan.far.push_back({fitted([&](double y) { return far.at(q(y)).force_over_r; }, degree),
                          fitted([&](double y) { return far.at(q(y)).value; }, degree)});
      plan.self_potential += term.energy_scale * far.at(0.0).value;
    }
  }

  /// Transform of the sampled far kernel, divided by the window's transform squared and by the number of
  /// nodes.
  void prepare_multiplier() {
    const Layout& layout = plan.layout;
    std::array<std::size_t, 3> n{1, 1, 1};
    for (std::size_t k = 0; k < d; ++k) n[3 - d + k] = layout.lengths[k];
    std::array<std::vector<double>, 3> squares, inverse;
    for (std::size_t k = 0; k < 3; ++k) {
      squares[k].assign(n[k], 0.0);
      inverse[k].assign(n[k], 1.0);
      if (k + d < 3) continue;
      for (std::size_t i = 0; i < n[k]; ++i) {
        const double r = layout.spacing * bent(i, layout.nodes[k + d - 3], n[k], accuracy.decay);
        squares[k][i] = r * r;
        const double wavenumber =
            2.0 * std::numbers::pi * static_cast<double>(std::min(i, n[k] - i)) / static_cast<double>(n[k]);
        const double transform = window.transform(wavenumber);
        // Once for spreading and once for interpolation, whose weights are divided by their sum, the
        // transform at zero.
        inverse[k][i] = window.transform(0.0) / (transform * transform * static_cast<double>(n[k]));
      }
    }
    std::vector<FarField> far;
    for (const RadialTerm& term : terms) far.emplace_back(term.kernel, layout.alpha);
    double* const mesh = plan.mesh.get();
    const std::size_t row = plan.row_length;
    for (std::size_t a = 0; a <= n[0] / 2; ++a) {
      for (std::size_t b = 0; b <= n[1] / 2; ++b) {
        for (std::size_t c = 0; c <= n[2] / 2; ++c) {
          double value = 0.0;
          const double q = squares[0][a] + squares[1][b] + squares[2][c];
          for (std::size_t t = 0; t < terms.size(); ++t) value += terms[t].energy_scale * far[t].at(q).value;
          for (const std::size_t aa : {a, (n[0] - a) % n[0]}) {
            for (const std::size_t bb : {b, (n[1] - b) % n[1]}) {
              for (const std::size_t cc : {c, (n[2] - c) % n[2]}) mesh[(aa * n[1] + bb) * row + cc] = value;
            }
          }
        }
      }
    }
    plan.transform.forward();
    const std::size_t half = row / 2;
    plan.multiplier.resize(n[0] * n[1] * half);
    for (std::size_t a = 0; a < n[0]; ++a) {
      for (std::size_t b = 0; b < n[1]; ++b) {
        for (std::size_t c = 0; c < half; ++c) {
          const std::size_t at = (a * n[1] + b) * half + c;
          plan.multiplier[at] = mesh[2 * at] * inverse[0][a] * inverse[1][b] * inverse[2][c];
        }
      }
    }
  }

  std::size_t cell_along(double x, std::size_t k) const {
    const double c = (x - plan.lower[k]) / plan.cell_size[k];
    return std::min(plan.cells[k] - 1, static_cast<std::size_t>(std::max(0.0, c)));
  }

  /// Particles into columns, cell by cell, the first axis slowest: a counting sort, stable in the particle
  /// number.
  void sort(std::span<const double> x) {
    const std::size_t cell_count = plan.cells[0] * plan.cells[1] * plan.cells[2];
    cell_of.resize(particle_count);
    cell_start.assign(cell_count + 1, 0);
    for (std::size_t i = 0; i < particle_count; ++i) {
      std::size_t cell = 0;
      for (std::size_t k = 0; k < d; ++k) cell = cell * plan.cells[k] + cell_along(x[i * d + k], k);
      cell_of[i] = cell;
      ++cell_start[cell + 1];
    }
    for (std::size_t c = 0; c < cell_count; ++c) cell_start[c + 1] += cell_start[c];
    order.resize(particle_count);
    std::vector<std::size_t> next(cell_start.begin(), cell_start.end() - 1);
    positions.assign(d * stride(), 0.0);
    coordinates.assign(d * stride(), 0.0);
    forces.assign(d * stride(), 0.0);
    potential.resize(stride());
    slopes.resize(d * stride());
    const double shift = 0.5 * accuracy.width + 1.0;
    for (std::size_t i = 0; i < particle_count; ++i) {
      const std::size_t at = next[cell_of[i]]++;
      order[at] = i;
      for (std::size_t k = 0; k < d; ++k) {
        positions[k * stride() + at] = x[i * d + k];  // not shifted: close pairs would lose digits
        coordinates[k * stride() + at] = (x[i * d + k] - plan.lower[k]) / plan.layout.spacing + shift;
      }
    }
  }

  /// Cells of the rows that lie ahead of a cell within the cutoff, and how far its own row reaches.
  void near_ranges(const std::array<std::size_t, 3>& cell, std::vector<Range>& ahead,
                   std::size_t& own_end) const {
    ahead.clear();
    const std::size_t last = d - 1;
    const double cutoff2 = plan.layout.cutoff * plan.layout.cutoff;
    const auto gap2 = [&](std::int64_t offset, std::size_t k) {
      const double gap =
          static_cast<double>(std::max<std::int64_t>(0, std::abs(offset) - 1)) * plan.cell_size[k];
      return gap * gap;
    };
    const auto reach = [&](double rest2, std::size_t k) {
      return static_cast<std::int64_t>(std::floor(std::sqrt(std::max(0.0, rest2)) / plan.cell_size[k])) + 1;
    };
    const auto row = [&](std::int64_t a, std::int64_t b, double used2, bool forward_only) {
      const std::int64_t span = reach(cutoff2 - used2, last), c = static_cast<std::int64_t>(cell[last]);
      const std::int64_t count = static_cast<std::int64_t>(plan.cells[last]);
      const std::int64_t low = forward_only ? c : std::max<std::int64_t>(0, c - span),
                         high = std::min(count - 1, c + span);
      std::size_t base = 0;
      if (d == 3)
        base = (static_cast<std::size_t>(a) * plan.cells[1] + static_cast<std::size_t>(b)) * plan.cells[2];
      if (d == 2) base = static_cast<std::size_t>(b) * plan.cells[1];
      return Range{cell_start[base + static_cast<std::size_t>(low)],
                   cell_start[base + static_cast<std::size_t>(high) + 1]};
    };
    // Rows are numbered (a, b): none in d = 1, b only in d = 2.
    const std::int64_t a0 = d == 3 ? static_cast<std::int64_t>(cell[0]) : 0,
                       b0 = d >= 2 ? static_cast<std::int64_t>(cell[d - 2]) : 0;
    own_end = row(a0, b0, 0.0, true).end;
    if (d == 1) return;
    const std::int64_t a_last =
        d == 3 ? std::min(static_cast<std::int64_t>(plan.cells[0]) - 1, a0 + reach(cutoff2, 0)) : a0;
    const std::int64_t b_count = static_cast<std::int64_t>(plan.cells[d - 2]);
    for (std::int64_t a = a0; a <= a_last; ++a) {
      const double a_gap = d == 3 ? gap2(a - a0, 0) : 0.0;
      if (a_gap >= cutoff2) break;
      const std::int64_t span = reach(cutoff2 - a_gap, d - 2);
      const std::int64_t low = a == a0 ? b0 + 1 : std::max<std::int64_t>(0, b0 - span),
                         high = std::min(b_count - 1, b0 + span);
      for (std::int64_t b = low; b <= high; ++b) {
        const double gap = a_gap + gap2(b - b0, d - 2);
        if (gap >= cutoff2) continue;
        const Range range = row(a, b, gap, false);
        if (range.begin < range.end) ahead.push_back(range);
      }
    }
  }

  std::array<std::size_t, 3> cell_at(std::size_t index) const {
    std::array<std::size_t, 3> cell{};
    for (std::size_t k = d; k-- > 0;) {
      cell[k] = index % plan.cells[k];
      index /= plan.cells[k];
    }
    return cell;
  }

  /// Slabs of whole cell layers along the first axis, thick enough that every second slab may be worked on at
  /// once: neither near pairs nor windows of two such slabs meet. A function of the plan alone.
  std::vector<Range> slabs() const {
    const double thick = std::max(plan.layout.cutoff + plan.cell_size[0], (16.0 + 1.0) * plan.layout.spacing);
    const auto layers = static_cast<std::size_t>(std::ceil(thick / plan.cell_size[0]));
    std::vector<Range> result;
    for (std::size_t first = 0; first < plan.cells[0]; first += layers) {
      result.push_back({first, std::min(first + layers, plan.cells[0])});
    }
    return result;
  }

  template <class Work>
  static void by_colours(const std::vector<Range>& slabs, int threads, const Work& work) {
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
    for (std::size_t c = 0; c + 1 < cell_start.size(); ++c) {
      const double count = static_cast<double>(cell_start[c + 1] - cell_start[c]);
      if (count == 0.0) continue;
      near_ranges(cell_at(c), ahead, own_end);
      double others = static_cast<double>(own_end - cell_start[c + 1]) + 0.5 * count;
      for (const Range& range : ahead) others += static_cast<double>(range.end - range.begin);
      pairs += count * others;
    }
    return pairs;
  }

  bool add(std::span<const double> x, std::span<double> out, double& energy, int threads) {
    energy = 0.0;
    if (particle_count < 2 || terms.empty()) return true;
    prepare(x);
    sort(x);
    const double n = static_cast<double>(particle_count);
    if (costs.near_pair * near_pairs() > costs.direct_pair * 0.5 * n * n) return false;
    const std::vector<Range> parts = slabs();
    const Columns near_columns{positions.data(), forces.data(), stride(), d};
    const Columns mesh_columns{coordinates.data(), nullptr, stride(), d};
    CompensatedSum near_energy;
    std::vector<double> part_energies(parts.size());
    // The near pair forces are in units of the kernel: one pass per term, scaled into the common sum.
    std::vector<double> scaled(d * stride(), 0.0);
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (t > 0) std::ranges::fill(forces, 0.0);
      const simd::FarPolynomials far{static_cast<int>(plan.far[t].value.size()) - 1,
                                     plan.far[t].force_over_r.data(), plan.far[t].value.data(),
                                     plan.layout.cutoff * plan.layout.cutoff};
      by_colours(parts, threads, [&](std::size_t s) {
        CompensatedSum sum;
        std::vector<Range> ahead;
        std::size_t own_end = 0;
        const std::size_t layer = (cell_start.size() - 1) / plan.cells[0];
        for (std::size_t c = parts[s].begin * layer; c < parts[s].end * layer; ++c) {
          const Range rows{cell_start[c], cell_start[c + 1]};
          if (rows.begin == rows.end) continue;
          near_ranges(cell_at(c), ahead, own_end);
          sum.add(simd::mesh_kernels().near(terms[t].kernel, far, near_columns, rows, own_end, ahead.data(),
                                            ahead.size(), true));
        }
        part_energies[s] = sum.value();
      });
      for (const double e : part_energies) near_energy.add(terms[t].energy_scale * e);
      for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] += terms[t].force_scale * forces[i];
    }
    far_field(parts, mesh_columns, threads);
    CompensatedSum far_energy;
    for (std::size_t i = 0; i < particle_count; ++i) far_energy.add(potential[i] - plan.self_potential);
    energy = near_energy.value() + 0.5 * far_energy.value();
    for (std::size_t at = 0; at < particle_count; ++at) {
      for (std::size_t k = 0; k < d; ++k) {
        const double force = scaled[k * stride() + at] - slopes[k * stride() + at] / plan.layout.spacing;
        out[order[at] * d + k] += force / n;
      }
    }
    return true;
  }

  void far_field(const std::vector<Range>& parts, const Columns& columns, int threads) {
    simd::Mesh mesh{d, {}};
    mesh.strides[d - 1] = 1;
    if (d >= 2) mesh.strides[d - 2] = plan.row_length;
    if (d == 3) mesh.strides[0] = plan.row_length * plan.layout.lengths[1];
    double* const grid = plan.mesh.get();
    std::fill_n(grid, plan.mesh_size, 0.0);
    const std::size_t layer = (cell_start.size() - 1) / plan.cells[0];
    const auto particles_of = [&](std::size_t s) {
      return Range{cell_start[parts[s].begin * layer], cell_start[parts[s].end * layer]};
    };
    by_colours(parts, threads, [&](std::size_t s) {
      simd::mesh_kernels().spread(window.table(), mesh, columns, particles_of(s), grid);
    });
    plan.transform.forward();
    auto* const modes = reinterpret_cast<std::complex<double>*>(grid);
    for (std::size_t m = 0; m < plan.multiplier.size(); ++m) modes[m] *= plan.multiplier[m];
    plan.transform.backward();
    by_colours(parts, threads, [&](std::size_t s) {
      simd::mesh_kernels().interpolate(window.table(), mesh, columns, particles_of(s), grid, potential.data(),
                                       slopes.data());
    });
  }
};

FastSum::FastSum(std::vector<RadialTerm> terms, const Domain& domain, std::size_t particle_count,
                 double tolerance)
    : implementation_(std::make_unique<Implementation>(std::move(terms), domain, particle_count, tolerance)) {
}
FastSum::~FastSum() = default;
FastSum::FastSum(FastSum&&) noexcept = default;
FastSum& FastSum::operator=(FastSum&&) noexcept = default;

bool FastSum::add(std::span<const double> positions, std::span<double> forces, double& energy, int threads) {
  return implementation_->add(positions, forces, energy, threads);
}

double FastSum::expected_seconds(std::size_t particle_count, std::size_t dimension, double tolerance) {
  const std::array<double, 3> extents{1.0, 1.0, 1.0};
  return best_layout(accuracy_for(tolerance), std::span(extents).first(dimension), particle_count).seconds;
}

double FastSum::expected_direct_seconds(std::size_t particle_count, std::size_t dimension) {
  const double pairs = 0.5 * static_cast<double>(particle_count) * static_cast<double>(particle_count);
  return pairs * costs.direct_pair * (dimension == 3 ? 1.0 : 0.45);
}

}  // namespace rieszflow
