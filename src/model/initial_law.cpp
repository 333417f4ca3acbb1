#include "model/initial_law.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <functional>
#include <numbers>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"
#include "core/match.hpp"
#include "core/noise.hpp"
#include "model/probe.hpp"

namespace rieszflow {
namespace {

// --- One axis of a truncated Gaussian
// ---------------------------------------------------------------------------------

/// Point of [a, b] next to 0, where the standard normal density is largest.
double mode_in(double a, double b) { return std::clamp(0.0, a, b); }

/// integral of exp(-(x^2 - c^2) / 2) over [a, b], 0 <= a: Gauss-Legendre with 8 nodes on pieces over which
/// the exponent changes by less than about 1/2, outwards until the rest is below round-off. All terms are
/// positive: no cancellation, and with c = a no underflow, however far the tail.
double tail_integral(double a, double b, double c) {
  constexpr std::array<double, 4> nodes = {0.1834346424956498049, 0.5255324099163289858,
                                           0.7966664774136267396, 0.9602898564975362317};
  constexpr std::array<double, 4> weights = {0.3626837833783619830, 0.3137066458778872873,
                                             0.2223810344533744705, 0.1012285362903762592};
  double sum = 0.0;
  for (double from = a; from < b;) {
    const double to = std::min(b, from + 0.5 / std::max(1.0, from));
    if (!(to > from)) break;  // beyond 1e16 the pieces are shorter than an ulp
    const double half = 0.5 * (to - from);
    double piece = 0.0;
    for (std::size_t k = 0; k < nodes.size(); ++k)
      for (const double x : {from + half * (1.0 - nodes[k]), from + half * (1.0 + nodes[k])})
        piece += weights[k] * half * std::exp(-0.5 * (x - c) * (x + c));
    sum += piece;
    if (piece < 1e-18 * sum || piece == 0.0) break;
    from = to;
  }
  return sum;
}

/// The same for any a < b.
double normal_integral(double a, double b, double c) {
  if (a >= 0.0) return tail_integral(a, b, c);
  if (b <= 0.0) return tail_integral(-b, -a, c);
  return tail_integral(0.0, -a, c) + tail_integral(0.0, b, c);
}

/// A number z of [a, a + width] with density proportional to exp(-z^2 / 2), returned as its distance from a;
/// nothing when this attempt was rejected (probability below 4 %). The middle of the interval must not be
/// negative. u, v: independent uniforms. Narrow intervals: rejection from the uniform law. Tails: G.
/// Marsaglia, Technometrics 6 (1964) 101. Else: inversion.
std::optional<double> truncated_normal(double a, double width, double u, double v) {
  if (std::isinf(a)) return 0.0;  // so far in the tail that the end of the interval is the law
  const double b = a + width;
  if (width * std::max(std::abs(a), b) < 0.01) {
    const double z = a + u * width;
    const double c = mode_in(a, b);
    if (v > std::exp(-0.5 * (z - c) * (z + c))) return {};
    return u * width;
  }
  if (a > 5.0) {
    const double energy = -std::log1p(u * std::expm1(-0.5 * width * (b + a)));
    const double distance = 2.0 * energy / (a + std::hypot(a, std::sqrt(2.0 * energy)));
    if (v * (a + distance) > a) return {};
    return distance;
  }
  const auto above = [](double x) { return 0.5 * std::erfc(x * std::numbers::sqrt2 / 2.0); };  // P(Z > x)
  const double p = above(-a) + u * (above(-b) - above(-a));                                    // P(Z < z)
  const double q = above(b) + (1.0 - u) * (above(a) - above(b));                               // P(Z > z)
  const double z = p < q ? -std::numbers::sqrt2 * boost::math::erfc_inv(2.0 * p)
                         : std::numbers::sqrt2 * boost::math::erfc_inv(2.0 * q);
  return z - a;
}

// --- Drawing
// ----------------------------------------------------------------------------------------------------------

/// The random numbers of one particle: every call takes fresh ones.
class Draws {
 public:
  Draws(const NoiseStream& stream, std::size_t replica, std::size_t particle)
      : stream_(stream), replica_(replica), particle_(particle) {}

  void uniforms(std::span<double> out) { stream_.uniforms(replica_, step_++, particle_, out); }
  void gaussians(std::span<double> out) { stream_.gaussians(replica_, step_++, particle_, out); }
  double uniform() {
    double u = 0.0;
    uniforms({&u, 1});
    return u;
  }

 private:
  const NoiseStream& stream_;
  std::uint64_t replica_;
  std::uint64_t particle_;
  std::uint64_t step_ = 0;
};

void draw_in_box(const GaussianLaw& law, const Box& box, Draws& draws, std::span<double> out) {
  const std::size_t d = out.size();
  std::vector<double> numbers(2 * d);
  std::vector<bool> done(d);
  for (std::size_t left = d; left > 0;) {
    draws.uniforms(numbers);
    for (std::size_t k = 0; k < d; ++k) {
      if (done[k]) continue;
      const double deviation = law.standard_deviation[k];
      const double width = (box.upper[k] - box.lower[k]) / deviation;
      const double below = law.mean[k] - box.lower[k];
      const double above = box.upper[k] - law.mean[k];
      // From the end next to the mean; by symmetry both are the lower end.
      const bool from_lower = below < above;
      const double start = (from_lower ? -below : -above) / deviation;
      const auto distance = truncated_normal(start, width, numbers[2 * k], numbers[2 * k + 1]);
      if (!distance) continue;
      const double x =
          from_lower ? box.lower[k] + deviation * *distance : box.upper[k] - deviation * *distance;
      out[k] = std::clamp(x, box.lower[k], box.upper[k]);  // rounding only
      done[k] = true;
      --left;
    }
  }
}

void draw_uniform(const Domain& domain, Draws& draws, std::span<double> out) {
  const std::size_t d = out.size();
  if (const auto* ball = std::get_if<Ball>(&domain)) {
    draws.gaussians(out);
    double norm = 0.0;
    for (const double x : out) norm = std::hypot(norm, x);
    const double radius = ball->radius * std::pow(draws.uniform(), 1.0 / static_cast<double>(d));
    for (std::size_t k = 0; k < d; ++k) out[k] = ball->center[k] + radius * out[k] / norm;
  } else {
    const Box box = bounding_box(domain);
    draws.uniforms(out);
    for (std::size_t k = 0; k < d; ++k) out[k] = box.lower[k] + out[k] * (box.upper[k] - box.lower[k]);
  }
  project(domain, out);  // rounding only
}

/// One attempt at a Gaussian in a ball, by two exact rejections in turn: from the Gaussian in the bounding
/// box (good when the law is narrow) and from the uniform law on the ball (good when it is wide).
bool attempt_in_ball(const GaussianLaw& law, const Ball& ball, std::size_t attempt, Draws& draws,
                     std::span<double> out) {
  const Box box = bounding_box(ball);
  if (attempt % 2 == 0) {
    draw_in_box(law, box, draws, out);
    return contains(ball, out);
  }
  draw_uniform(ball, draws, out);
  double energy = 0.0;
  for (std::size_t k = 0; k < out.size(); ++k) {
    const double deviation = law.standard_deviation[k];
    const double z = (out[k] - law.mean[k]) / deviation;
    const double c =
        mode_in((box.lower[k] - law.mean[k]) / deviation, (box.upper[k] - law.mean[k]) / deviation);
    energy += 0.5 * (z - c) * (z + c);
  }
  return draws.uniform() <= std::exp(-energy);
}

constexpr std::size_t most_attempts = 100000;

void draw(const GaussianLaw& law, const Domain& domain, Draws& draws, std::span<double> out) {
  if (const auto* box = std::get_if<Box>(&domain)) return draw_in_box(law, *box, draws, out);
  if (const auto* ball = std::get_if<Ball>(&domain)) {
    std::size_t attempt = 0;
    while (!attempt_in_ball(law, *ball, attempt, draws, out))
      expects(++attempt < most_attempts,
              "a law with a problem() was sampled: the ball holds too little of the Gaussian");
    return;
  }
  draws.gaussians(out);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = law.mean[k] + law.standard_deviation[k] * out[k];
  project(domain, out);
}

/// The same relative weights, the largest in [1/2, 1): scaled by a power of two, so no digit changes and no
/// sum of them overflows.
std::vector<double> scaled(std::span<const double> weights) {
  int exponent = 0;
  std::frexp(*std::max_element(weights.begin(), weights.end()), &exponent);
  std::vector<double> result;
  for (const double weight : weights) result.push_back(std::ldexp(weight, -exponent));
  return result;
}

/// Chooses an index with probability proportional to its weight.
class Chooser {
 public:
  explicit Chooser(std::span<const double> weights) {
    CompensatedSum sum;
    for (const double weight : scaled(weights)) {
      sum.add(weight);
      cumulative_.push_back(sum.value());
    }
  }
  double total() const { return cumulative_.back(); }
  std::size_t operator()(double u) const {
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), u * total());
    return static_cast<std::size_t>(std::min(found, cumulative_.end() - 1) - cumulative_.begin());
  }

 private:
  std::vector<double> cumulative_;
};

std::vector<double> cell_masses(const Grid& grid, std::span<const double> averages) {
  std::vector<double> masses(averages.begin(), averages.end());
  for (std::size_t cell = 0; cell < masses.size(); ++cell)
    masses[cell] *= grid.cell_volume() * (grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell]);
  return masses;
}

/// Uniform in the part of a cell that lies in the domain.
void draw_in_cell(const Grid& grid, std::size_t cell, const Domain& domain, Draws& draws,
                  std::span<double> out) {
  std::vector<double> center(out.size());
  grid.cell_center(cell, center);
  for (std::size_t attempt = 0; attempt < most_attempts; ++attempt) {
    draws.uniforms(out);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = center[k] + (out[k] - 0.5) * grid.spacing(k);
    if (contains(domain, out)) return;
  }
  project(domain, out);  // a sliver of less than about 1e-4 of its cell
}

// --- Quadrature
// -------------------------------------------------------------------------------------------------------

/// Averages of an expression over cells (ball: over the nodes inside), four Gauss-Legendre points per axis.
std::vector<double> averages_of(const ExpressionFunction& f, const Domain& domain, const Grid& grid) {
  constexpr std::array<double, 4> nodes = {-0.8611363115940525752, -0.3399810435848562648,
                                           0.3399810435848562648, 0.8611363115940525752};
  constexpr std::array<double, 4> weights = {0.1739274225687269287, 0.3260725774312730713,
                                             0.3260725774312730713, 0.1739274225687269287};
  const std::size_t d = grid.dimension();
  const std::size_t node_count = std::size_t{1} << (2 * d);
  const bool cut = !grid.volume_fractions.empty();
  std::vector<double> averages(grid.cell_count());
  std::vector<double> center(d);
  std::vector<double> points(node_count * d);
  std::vector<double> values(node_count);
  for (std::size_t cell = 0; cell < averages.size(); ++cell) {
    if (cut && grid.volume_fractions[cell] == 0.0) continue;
    grid.cell_center(cell, center);
    for (std::size_t node = 0; node < node_count; ++node)
      for (std::size_t k = 0; k < d; ++k)
        points[node * d + k] = center[k] + 0.5 * grid.spacing(k) * nodes[(node >> (2 * k)) & 3];
    f.values(points, values);
    double sum = 0.0;
    double weight_sum = 0.0;
    for (std::size_t node = 0; node < node_count; ++node) {
      if (cut && !contains(domain, std::span(points).subspan(node * d, d))) continue;
      double weight = 1.0;
      for (std::size_t k = 0; k < d; ++k) weight *= weights[(node >> (2 * k)) & 3];
      sum += weight * values[node];
      weight_sum += weight;
    }
    if (weight_sum > 0.0) {
      averages[cell] = sum / weight_sum;
    } else {  // a sliver between the nodes
      project(domain, center);
      averages[cell] = f(center);
    }
  }
  return averages;
}

/// Draws from a density known by its values: class of `sample` for expressions.
class ExpressionSampler {
 public:
  ExpressionSampler(const ExpressionFunction& f, const Domain& domain)
      : f_(f),
        domain_(domain),
        grid_(lattice(domain)),
        choose_(cell_masses(grid_, averages_of(f, domain, grid_))) {
    expects(choose_.total() > 0.0 && std::isfinite(choose_.total()), "a law with a problem() was sampled");
  }

  void draw(Draws& draws, std::span<double> out) const {
    const std::size_t cell = choose_(draws.uniform());
    const double bound = 1.25 * largest_on_lattice(cell);
    for (std::size_t attempt = 0; attempt < most_attempts; ++attempt) {
      draw_in_cell(grid_, cell, domain_, draws, out);
      if (draws.uniform() * bound <= f_(out)) return;
    }
  }

 private:
  static Grid lattice(const Domain& domain) {
    constexpr std::array<std::size_t, 4> cells = {0, 4096, 256, 64};
    const std::size_t d = dimension(domain);
    expects(d <= 3, "expression laws exist for d <= 3");
    return grid_on(domain, std::vector<std::size_t>(d, cells[d]));
  }

  /// Over corners, midpoints of edges and faces, and the centre that lie in the domain.
  double largest_on_lattice(std::size_t cell) const {
    const std::size_t d = grid_.dimension();
    std::vector<double> center(d);
    std::vector<double> point(d);
    grid_.cell_center(cell, center);
    double largest = 0.0;
    const std::size_t count = d == 1 ? 3 : (d == 2 ? 9 : 27);
    for (std::size_t node = 0; node < count; ++node) {
      std::size_t rest = node;
      for (std::size_t k = 0; k < d; ++k, rest /= 3)
        point[k] = center[k] + 0.5 * grid_.spacing(k) * (static_cast<double>(rest % 3) - 1.0);
      project(domain_, point);
      largest = std::max(largest, f_(point));
    }
    return largest;
  }

  const ExpressionFunction& f_;
  const Domain& domain_;
  Grid grid_;
  Chooser choose_;
};

// --- Cell averages
// ----------------------------------------------------------------------------------------------------

/// Masses of the cells of one axis under the truncated (periodic: wrapped) Gaussian; they add up to 1.
std::vector<double> axis_masses(const Grid& grid, std::size_t axis, double mean, double deviation) {
  std::vector<double> masses(grid.cells[axis]);
  const double length = grid.upper[axis] - grid.lower[axis];
  // A wrapped Gaussian with deviation above three periods is uniform to exp(-2 pi^2 9) < 1e-77.
  if (grid.periodic && deviation > 3.0 * length) {
    std::fill(masses.begin(), masses.end(), 1.0 / static_cast<double>(masses.size()));
    return masses;
  }
  double center = mean;
  int images = 0;
  if (grid.periodic) {
    center = mean - length * std::floor((mean - grid.lower[axis]) / length);
    images = 1 + static_cast<int>(std::ceil(9.0 * deviation / length));
  }
  double total = 0.0;
  for (std::size_t i = 0; i < masses.size(); ++i) {
    for (int n = -images; n <= images; ++n) {
      const double shift = center + n * length;
      const double c = grid.periodic ? 0.0
                                     : mode_in((grid.lower[axis] - mean) / deviation,
                                               (grid.upper[axis] - mean) / deviation);
      masses[i] += normal_integral((grid.face(axis, i) - shift) / deviation,
                                   (grid.face(axis, i + 1) - shift) / deviation, c);
    }
    total += masses[i];
  }
  for (double& mass : masses) mass /= total;
  return masses;
}

/// averages divided by their mass.
Density normalised(const Grid& grid, std::vector<double> averages) {
  Density density{grid, std::move(averages)};
  const double total = mass(density);
  expects(total > 0.0 && std::isfinite(total), "a law with a problem() was put on a grid");
  for (double& average : density.averages) average /= total;
  return density;
}

Density averages_of(const GaussianLaw& law, const Grid& grid) {
  const std::size_t d = grid.dimension();
  std::vector<std::vector<double>> masses;
  for (std::size_t k = 0; k < d; ++k)
    masses.push_back(axis_masses(grid, k, law.mean[k], law.standard_deviation[k]));
  std::vector<double> averages(grid.cell_count());
  for (std::size_t cell = 0; cell < averages.size(); ++cell) {
    double product = 1.0 / grid.cell_volume();
    std::size_t rest = cell;
    for (std::size_t k = d; k-- > 0; rest /= grid.cells[k]) product *= masses[k][rest % grid.cells[k]];
    if (grid.volume_fractions.empty() || grid.volume_fractions[cell] > 0.0) averages[cell] = product;
  }
  return normalised(grid, std::move(averages));
}

/// Piecewise constant density on another grid, by the overlaps of cells along each axis: mass is kept where
/// both grids cover the same box.
Density remapped(const Density& source, const Grid& grid) {
  const std::size_t d = grid.dimension();
  expects(source.grid.dimension() == d, "a grid law has the dimension of its domain");
  std::vector<double> masses = cell_masses(source.grid, source.averages);
  std::vector<std::size_t> shape = source.grid.cells;
  for (std::size_t axis = 0; axis < d; ++axis) {
    std::size_t inner = 1;
    for (std::size_t k = axis + 1; k < d; ++k) inner *= shape[k];
    const std::size_t from = shape[axis];
    const std::size_t to = grid.cells[axis];
    const std::size_t outer = masses.size() / (from * inner);
    std::vector<double> moved(outer * to * inner);
    for (std::size_t j = 0; j < to; ++j)
      for (std::size_t i = 0; i < from; ++i) {
        const double overlap = std::min(grid.face(axis, j + 1), source.grid.face(axis, i + 1)) -
                               std::max(grid.face(axis, j), source.grid.face(axis, i));
        if (overlap <= 0.0) continue;
        const double share = std::min(1.0, overlap / source.grid.spacing(axis));
        for (std::size_t o = 0; o < outer; ++o)
          for (std::size_t k = 0; k < inner; ++k)
            moved[(o * to + j) * inner + k] += share * masses[(o * from + i) * inner + k];
      }
    masses = std::move(moved);
    shape[axis] = to;
  }
  for (std::size_t cell = 0; cell < masses.size(); ++cell) {
    const double fraction = grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell];
    masses[cell] = fraction > 0.0 ? masses[cell] / (fraction * grid.cell_volume()) : 0.0;
  }
  return normalised(grid, std::move(masses));
}

std::optional<std::string> problem_of(const GaussianLaw& law, const Domain& domain) {
  const std::size_t d = dimension(domain);
  if (law.mean.size() != d || law.standard_deviation.size() != d)
    return fmt::format("gaussian initial law: mean and std must have {} numbers each", d);
  for (std::size_t k = 0; k < d; ++k) {
    if (!std::isfinite(law.mean[k])) return "gaussian initial law: the mean must be finite";
    if (!(law.standard_deviation[k] > 0.0) || std::isinf(law.standard_deviation[k]))
      return "gaussian initial law: std must be positive and finite";
  }
  if (!std::holds_alternative<WholeSpace>(domain)) {
    // Beyond these neither the tails at a wall, the turns around a torus nor a peak between far walls keep
    // their digits.
    constexpr double most_deviations_outside = 1e6, most_lengths = 1e9, most_deviations_across = 1e12;
    const bool periodic = std::holds_alternative<Torus>(domain);
    const Box box = bounding_box(domain);
    for (std::size_t k = 0; k < d; ++k) {
      const double length = box.upper[k] - box.lower[k], deviation = law.standard_deviation[k];
      const double outside = std::max({box.lower[k] - law.mean[k], law.mean[k] - box.upper[k], 0.0});
      if (!periodic && outside / deviation > most_deviations_outside)
        return fmt::format(
            "gaussian initial law: the mean {:g} lies {:.2g} standard deviations outside of the domain, at "
            "most {:g} are allowed",
            law.mean[k], outside / deviation, most_deviations_outside);
      if (deviation / length > most_lengths || outside / length > most_lengths ||
          length / deviation > most_deviations_across)
        return fmt::format(
            "gaussian initial law: mean {:g} and std {:g} in a domain of length {:g}: the lengths differ by "
            "more than double precision resolves",
            law.mean[k], deviation, length);
    }
  }
  if (const auto* ball = std::get_if<Ball>(&domain)) {
    const NoiseStream stream(0, NoisePurpose::InitialPosition);
    Draws draws(stream, 0, 0);
    std::vector<double> point(d);
    int accepted = 0;
    for (std::size_t attempt = 0; attempt < 2000; ++attempt)
      accepted += attempt_in_ball(law, *ball, attempt, draws, point);
    // Ten of 2000 mean an acceptance above 1e-3: most_attempts are then exhausted with probability exp(-100).
    if (accepted < 10)
      return fmt::format(
          "gaussian initial law: almost nothing of it lies in the ball: move its mean ({}) inside",
          fmt::join(law.mean, ", "));
  }
  return {};
}

std::optional<std::string> problem_of(const ExpressionLaw& law, const Domain& domain) {
  const std::size_t d = dimension(domain);
  expects(law.density && law.density->variable_count() == d,
          "an expression law is a text in the coordinates");
  const std::string& text = law.density->text();
  if (std::holds_alternative<WholeSpace>(domain)) return "expression initial law: it needs a bounded domain";
  if (d > 3)
    return fmt::format("expression initial law: it exists for dimensions 1 to 3, the domain has {}", d);
  const std::vector<double> points = probe_points(domain);
  std::vector<double> values(points.size() / d);
  law.density->values(points, values);
  double largest = 0.0;
  for (std::size_t p = 0; p < values.size(); ++p) {
    const char* fault = std::isnan(values[p]) ? "not a number" : (values[p] < 0.0 ? "negative" : "infinite");
    if (!(values[p] >= 0.0) || std::isinf(values[p]))
      return fmt::format("expression initial law: the density \"{}\" is {} at ({})", text, fault,
                         fmt::join(std::span(points).subspan(p * d, d), ", "));
    largest = std::max(largest, values[p]);
  }
  if (largest == 0.0)
    return fmt::format("expression initial law: the density \"{}\" is zero wherever it was tried", text);
  return {};
}

}  // namespace

std::optional<std::string> problem(const InitialLaw& law, const Domain& domain) {
  using Sentence = std::optional<std::string>;
  const std::size_t d = dimension(domain);
  return std::visit(
      Match{[&](const GaussianLaw& gaussian) { return problem_of(gaussian, domain); },
            [&](const UniformLaw&) -> Sentence {
              if (std::holds_alternative<WholeSpace>(domain))
                return "uniform initial law: it needs a bounded domain";
              return {};
            },
            [&](const MixtureLaw& mixture) -> Sentence {
              if (mixture.components.empty()) return "mixture initial law: it needs at least one component";
              if (mixture.weights.size() != mixture.components.size())
                return "mixture initial law: one weight per component";
              for (const double weight : mixture.weights)
                if (!(weight > 0.0) || std::isinf(weight))
                  return "mixture initial law: weights must be positive and finite";
              for (const GaussianLaw& component : mixture.components)
                if (Sentence fault = problem_of(component, domain)) return fault;
              return {};
            },
            [&](const ExpressionLaw& expression) { return problem_of(expression, domain); },
            [&](const GridLaw& grid) -> Sentence {
              if (grid.density.grid.dimension() != d)
                return fmt::format("initial density: it has {} axes, the domain has dimension {}",
                                   grid.density.grid.dimension(), d);
              for (const double average : grid.density.averages)
                if (!(average >= 0.0) || std::isinf(average))
                  return "initial density: a cell average is negative or not finite";
              if (!(mass(grid.density) > 0.0)) return "initial density: its mass is zero";
              return {};
            },
            [&](const PositionsLaw& positions) -> Sentence {
              if (positions.ensemble.dimension != d)
                return fmt::format("initial positions: they have {} coordinates, the domain has dimension {}",
                                   positions.ensemble.dimension, d);
              const std::span<const double> all = positions.ensemble.positions;
              for (std::size_t p = 0; p < all.size(); p += d)
                if (!contains(domain, all.subspan(p, d)))
                  return fmt::format("initial positions: ({}) lies outside the domain",
                                     fmt::join(all.subspan(p, d), ", "));
              return {};
            }},
      law);
}

ParticleEnsemble sample(const InitialLaw& law, const Domain& domain, std::size_t replica_count,
                        std::size_t particle_count, std::uint64_t seed) {
  const std::size_t d = dimension(domain);
  if (const auto* positions = std::get_if<PositionsLaw>(&law)) {
    expects(positions->ensemble.replica_count == replica_count &&
                positions->ensemble.particle_count == particle_count && positions->ensemble.dimension == d,
            "given positions have the replicas, particles and dimension that are asked for");
    return positions->ensemble;
  }
  using Draw = std::function<void(Draws&, std::span<double>)>;
  const Draw draw_one = std::visit(
      Match{[&](const GaussianLaw& gaussian) -> Draw {
              expects(gaussian.mean.size() == d && gaussian.standard_deviation.size() == d,
                      "a law of this dimension");
              return [&](Draws& draws, std::span<double> out) { draw(gaussian, domain, draws, out); };
            },
            [&](const UniformLaw&) -> Draw {
              return [&](Draws& draws, std::span<double> out) { draw_uniform(domain, draws, out); };
            },
            [&](const MixtureLaw& mixture) -> Draw {
              expects(!mixture.weights.empty() && mixture.weights.size() == mixture.components.size(),
                      "one weight per component of a mixture");
              return [&, choose = Chooser(mixture.weights)](Draws& draws, std::span<double> out) {
                draw(mixture.components[choose(draws.uniform())], domain, draws, out);
              };
            },
            [&](const ExpressionLaw& expression) -> Draw {
              return [sampler = ExpressionSampler(*expression.density, domain)](
                         Draws& draws, std::span<double> out) { sampler.draw(draws, out); };
            },
            [&](const GridLaw& grid) -> Draw {
              expects(grid.density.grid.dimension() == d, "a grid law of this dimension");
              return [&, choose = Chooser(cell_masses(grid.density.grid, grid.density.averages))](
                         Draws& draws, std::span<double> out) {
                draw_in_cell(grid.density.grid, choose(draws.uniform()), domain, draws, out);
              };
            },
            [&](const PositionsLaw&) -> Draw { return {}; }},
      law);
  ParticleEnsemble ensemble{replica_count, particle_count, d,
                            std::vector<double>(replica_count * particle_count * d)};
  const NoiseStream stream(seed, NoisePurpose::InitialPosition);
  for (std::size_t replica = 0; replica < replica_count; ++replica)
    for (std::size_t particle = 0; particle < particle_count; ++particle) {
      Draws draws(stream, replica, particle);
      draw_one(draws, ensemble.replica(replica).subspan(particle * d, d));
    }
  return ensemble;
}

Density cell_averages(const InitialLaw& law, const Domain& domain, const Grid& grid) {
  expects(grid.dimension() == dimension(domain), "a grid of this domain");
  return std::visit(Match{[&](const GaussianLaw& gaussian) { return averages_of(gaussian, grid); },
                          [&](const UniformLaw&) {
                            std::vector<double> averages(grid.cell_count(), 1.0);
                            for (std::size_t cell = 0; cell < grid.volume_fractions.size(); ++cell)
                              if (grid.volume_fractions[cell] == 0.0) averages[cell] = 0.0;
                            return normalised(grid, std::move(averages));
                          },
                          [&](const MixtureLaw& mixture) {
                            std::vector<double> averages(grid.cell_count());
                            const std::vector<double> weights = scaled(mixture.weights);
                            for (std::size_t c = 0; c < mixture.components.size(); ++c) {
                              const Density component = averages_of(mixture.components[c], grid);
                              for (std::size_t cell = 0; cell < averages.size(); ++cell)
                                averages[cell] += weights[c] * component.averages[cell];
                            }
                            return normalised(grid, std::move(averages));
                          },
                          [&](const ExpressionLaw& expression) {
                            return normalised(grid, averages_of(*expression.density, domain, grid));
                          },
                          [&](const GridLaw& source) { return remapped(source.density, grid); },
                          [&](const PositionsLaw& positions) {
                            std::vector<double> averages(grid.cell_count());
                            const std::span<const double> all = positions.ensemble.positions;
                            const std::size_t d = grid.dimension();
                            for (std::size_t p = 0; p < all.size(); p += d)
                              averages[grid.cell_of(all.subspan(p, d))] += 1.0;
                            for (std::size_t cell = 0; cell < grid.volume_fractions.size(); ++cell)
                              if (grid.volume_fractions[cell] > 0.0)
                                averages[cell] /= grid.volume_fractions[cell];
                            return normalised(grid, std::move(averages));
                          }},
                    law);
}

}  // namespace rieszflow
