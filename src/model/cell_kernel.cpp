#include "model/cell_kernel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <variant>

#include "core/expects.hpp"
#include "model/quadrature.hpp"
#include "potentials/expression.hpp"

namespace rieszflow {
namespace {

constexpr std::size_t max_dimension = 3;
using Point = std::array<double, max_dimension>;

/// Integral over u in (0, 1) of u^power W(u r): what a pyramid with its apex at the singularity needs.
/// Each kernel gives W as a function of r^2 and this radial moment.
struct RieszKernel {
  double exponent, strength;
  static constexpr std::size_t fewest_points = 1;
  double operator()(double r2) const { return strength / exponent * std::pow(r2, -0.5 * exponent); }
  double radial_moment(double r2, std::size_t power) const {
    return (*this)(r2) / (static_cast<double>(power) + 1.0 - exponent);
  }
};

struct CoulombKernel {  // s = 1 without pow
  double strength;
  static constexpr std::size_t fewest_points = 1;
  double operator()(double r2) const { return strength / std::sqrt(r2); }
  double radial_moment(double r2, std::size_t power) const {
    return (*this)(r2) / static_cast<double>(power);
  }
};

struct LogarithmicKernel {
  double strength;
  static constexpr std::size_t fewest_points = 1;
  double operator()(double r2) const { return -0.5 * strength * std::log(r2); }
  double radial_moment(double r2, std::size_t power) const {
    const double p = static_cast<double>(power) + 1.0;
    return (*this)(r2) / p + strength / (p * p);
  }
};

/// Any other radial function; `levels` halvings of (0, 1) resolve what happens near r = 0.
template <class Function>
struct GradedKernel {
  Function function;
  int levels;
  std::size_t fewest_points;
  QuadratureRule rule = gauss_legendre(10);
  double operator()(double r2) const { return function(r2); }
  double radial_moment(double r2, std::size_t power) const {
    double sum = 0.0, upper = 1.0;
    for (int level = 0; level <= levels; ++level) {
      const double lower = level == levels ? 0.0 : 0.5 * upper;
      for (std::size_t q = 0; q < rule.nodes.size(); ++q) {
        const double u = lower + (upper - lower) * rule.nodes[q];
        sum += (upper - lower) * rule.weights[q] * std::pow(u, static_cast<double>(power)) *
               function(u * u * r2);
      }
      upper = lower;
    }
    return sum;
  }
};

/// The Gauss rule of a weight around 0: the hat on [-1, 1], or 1 on [-1/2, 1/2].
QuadratureRule gauss_weight(CellWeights kind, std::size_t points) {
  if (kind == CellWeights::Galerkin) return gauss_hat(points);
  QuadratureRule rule = gauss_legendre(points);
  for (double& node : rule.nodes) node -= 0.5;
  return rule;
}

/// Weighted averages of one kernel on one grid. The weight of an axis is linear on each half of its support:
/// the hat 1 - |t|, |t| < 1, or the constant 1, |t| < 1/2.
template <class Kernel>
class WeightedAverage {
 public:
  WeightedAverage(const Kernel& kernel, std::span<const double> spacing, CellWeights kind)
      : kernel_(kernel),
        dimension_(spacing.size()),
        reach_(kind == CellWeights::Galerkin ? 1.0 : 0.5),
        decline_(kind == CellWeights::Galerkin ? 1.0 : 0.0),
        legendre_(gauss_legendre(12)) {
    std::copy(spacing.begin(), spacing.end(), spacing_.begin());
    largest_ = *std::max_element(spacing.begin(), spacing.end());
    for (std::size_t points = 2; points <= 16; ++points) rules_.push_back(gauss_weight(kind, points));
  }

  double operator()(std::span<const std::size_t> offset) const {
    double r2 = 0.0;
    for (std::size_t i = 0; i < dimension_; ++i) r2 += square(spacing_[i] * static_cast<double>(offset[i]));
    const double ratio = std::sqrt(r2) / largest_;
    return ratio < 3.0 ? near(offset) : far(offset, ratio);
  }

 private:
  static double square(double x) { return x * x; }

  double far(std::span<const std::size_t> offset, double ratio) const {
    // The nearest complex singularity of W along an axis is at `ratio` half-widths: the Gauss error falls as
    // (ratio + sqrt(ratio^2 + 1))^(-2 points).
    const double half_widths = ratio / reach_;
    const double decay = 2.0 * std::log10(half_widths + std::sqrt(half_widths * half_widths - 1.0));
    const auto needed = static_cast<std::size_t>(std::ceil(14.5 / decay));
    const QuadratureRule& rule =
        rules_[std::clamp(std::max(needed, kernel_.fewest_points), std::size_t{2}, std::size_t{16}) - 2];
    const std::size_t points = rule.nodes.size();
    double sum = 0.0;
    const std::size_t outer_count = dimension_ == 3 ? points : 1, middle_count = dimension_ >= 2 ? points : 1;
    for (std::size_t a = 0; a < outer_count; ++a) {
      const double ra =
          dimension_ == 3 ? square(spacing_[2] * (static_cast<double>(offset[2]) + rule.nodes[a])) : 0.0;
      const double wa = dimension_ == 3 ? rule.weights[a] : 1.0;
      for (std::size_t b = 0; b < middle_count; ++b) {
        const double rb =
            dimension_ >= 2 ? square(spacing_[1] * (static_cast<double>(offset[1]) + rule.nodes[b])) : 0.0;
        const double wb = dimension_ >= 2 ? rule.weights[b] : 1.0;
        double line = 0.0;
        for (std::size_t c = 0; c < points; ++c) {
          line += rule.weights[c] *
                  kernel_(square(spacing_[0] * (static_cast<double>(offset[0]) + rule.nodes[c])) + rb + ra);
        }
        sum += wa * wb * line;
      }
    }
    return sum;
  }

  /// 2^d boxes, the singularity at most in a corner of each.
  double near(std::span<const std::size_t> offset) const {
    double sum = 0.0;
    for (std::size_t octant = 0; octant < (std::size_t{1} << dimension_); ++octant) {
      Point low{}, high{}, slope{}, value{};  // weight = value + slope y on the box, y = k + t
      bool touches = true;
      for (std::size_t i = 0; i < dimension_; ++i) {
        const double k = static_cast<double>(offset[i]);
        const bool right = ((octant >> i) & 1U) != 0U;
        low[i] = right ? k : k - reach_;
        high[i] = low[i] + reach_;
        slope[i] = right ? -decline_ : decline_;
        value[i] = 1.0 - slope[i] * k;
        if (low[i] < 0.0) {  // W is even: mirror to the positive side
          low[i] = 0.0;
          high[i] = reach_;
          slope[i] = -slope[i];
        }
        touches = touches && low[i] == 0.0;
      }
      sum += touches ? corner(value, slope) : box(low, high, value, slope);
    }
    return sum;
  }

  /// Corners at which a box is cut in two.
  struct Bisection {
    Point inner_high, outer_low;
  };

  /// In the middle of its longest edge; nothing when no edge is longer than the distance from the
  /// singularity.
  std::optional<Bisection> bisection(const Point& low, const Point& high) const {
    double distance2 = 0.0, longest = 0.0;
    std::size_t axis = 0;
    for (std::size_t i = 0; i < dimension_; ++i) {
      distance2 += square(spacing_[i] * low[i]);
      const double edge = spacing_[i] * (high[i] - low[i]);
      if (edge > longest) {
        longest = edge;
        axis = i;
      }
    }
    if (longest * longest <= 1.0001 * distance2) return std::nullopt;
    Bisection cut{.inner_high = high, .outer_low = low};
    cut.inner_high[axis] = cut.outer_low[axis] = 0.5 * (low[axis] + high[axis]);
    return cut;
  }

  /// Box away from the singularity: bisected until no edge is longer than its distance.
  double box(const Point& low, const Point& high, const Point& value, const Point& slope) const {
    if (const auto cut = bisection(low, high)) {
      return box(low, cut->inner_high, value, slope) + box(cut->outer_low, high, value, slope);
    }
    return tensor(low, high, 0, 0.0, 1.0, value, slope);
  }

  double tensor(const Point& low, const Point& high, std::size_t axis, double r2, double factor,
                const Point& value, const Point& slope) const {
    if (axis >= dimension_ || axis >= max_dimension) return factor * kernel_(r2);
    double sum = 0.0;
    const double edge = high[axis] - low[axis];
    for (std::size_t q = 0; q < legendre_.nodes.size(); ++q) {
      const double y = low[axis] + edge * legendre_.nodes[q];
      sum += tensor(low, high, axis + 1, r2 + square(spacing_[axis] * y),
                    factor * edge * legendre_.weights[q] * (value[axis] + slope[axis] * y), value, slope);
    }
    return sum;
  }

  /// Box of edge `reach` with the singularity in its corner: pyramids y = u v, v on the face v_axis = reach
  /// (Duffy).
  double corner(const Point& value, const Point& slope) const {
    double sum = 0.0;
    for (std::size_t axis = 0; axis < dimension_; ++axis) {
      Point low{}, high{};
      for (std::size_t i = 0; i < dimension_; ++i) {
        low[i] = i == axis ? reach_ : 0.0;
        high[i] = reach_;
      }
      sum += face(low, high, axis, value, slope);
    }
    return sum;
  }

  double face(const Point& low, const Point& high, std::size_t apex_axis, const Point& value,
              const Point& slope) const {
    if (const auto cut = bisection(low, high)) {
      return face(low, cut->inner_high, apex_axis, value, slope) +
             face(cut->outer_low, high, apex_axis, value, slope);
    }
    return face_tensor(low, high, apex_axis, 0, 0.0, 1.0, Point{}, value, slope);
  }

  double face_tensor(const Point& low, const Point& high, std::size_t apex_axis, std::size_t axis, double r2,
                     double factor, Point v, const Point& value, const Point& slope) const {
    if (axis >= dimension_ || axis >= max_dimension) {
      // prod_i (value_i + slope_i v_i u) as a polynomial in u, times u^(d-1) W(u r).
      std::array<double, max_dimension + 1> coefficient{1.0, 0.0, 0.0, 0.0};
      for (std::size_t i = 0; i < dimension_; ++i) {
        for (std::size_t m = i + 1; m > 0; --m) {
          coefficient[m] = coefficient[m] * value[i] + coefficient[m - 1] * slope[i] * v[i];
        }
        coefficient[0] *= value[i];
      }
      double sum = 0.0;
      for (std::size_t m = 0; m <= dimension_; ++m) {
        if (coefficient[m] != 0.0) sum += coefficient[m] * kernel_.radial_moment(r2, dimension_ - 1 + m);
      }
      return factor * reach_ * sum;  // the Jacobian of y = u v is u^(d-1) times v_apex
    }
    if (axis == apex_axis) {
      v[axis] = reach_;
      return face_tensor(low, high, apex_axis, axis + 1, r2 + square(spacing_[axis] * reach_), factor, v,
                         value, slope);
    }
    double sum = 0.0;
    const double edge = high[axis] - low[axis];
    for (std::size_t q = 0; q < legendre_.nodes.size(); ++q) {
      v[axis] = low[axis] + edge * legendre_.nodes[q];
      sum += face_tensor(low, high, apex_axis, axis + 1, r2 + square(spacing_[axis] * v[axis]),
                         factor * edge * legendre_.weights[q], v, value, slope);
    }
    return sum;
  }

  const Kernel& kernel_;
  std::size_t dimension_;
  double reach_;    ///< half width of the weight's support, in cells
  double decline_;  ///< of the weight, per cell
  Point spacing_{};
  double largest_ = 0.0;
  QuadratureRule legendre_;
  std::vector<QuadratureRule> rules_;  ///< of 2, 3, ... points
};

template <class Kernel>
std::vector<double> averages(const Kernel& kernel, std::span<const double> spacing,
                             std::span<const std::size_t> counts, CellWeights kind) {
  const WeightedAverage<Kernel> average(kernel, spacing, kind);
  std::size_t size = 1;
  for (const std::size_t count : counts) size *= count;
  std::vector<double> weights(size);
  std::array<std::size_t, max_dimension> offset{};
  for (double& weight : weights) {
    weight = average(std::span<const std::size_t>(offset.data(), counts.size()));
    for (std::size_t axis = counts.size(); axis-- > 0;) {
      if (++offset[axis] < counts[axis]) break;
      offset[axis] = 0;
    }
  }
  return weights;
}

/// How often (0, 1) must be halved so that the last piece is not longer than `scale`, in units of the cell.
int halvings(double diameter, double scale) {
  int levels = 0;
  while (diameter > scale && levels < 60) {
    diameter *= 0.5;
    ++levels;
  }
  return levels;
}

/// Tensor of one-dimensional weights: a Gaussian factorises.
std::vector<double> gaussian_weights(const GaussianInteraction& gaussian, std::span<const double> spacing,
                                     std::span<const std::size_t> counts, CellWeights kind) {
  const QuadratureRule rule = gauss_legendre(12);
  const bool hat = kind == CellWeights::Galerkin;
  std::vector<double> weights{gaussian.strength};
  for (std::size_t axis = 0; axis < counts.size(); ++axis) {
    const double h = spacing[axis] / gaussian.length;
    const auto panels = static_cast<std::size_t>(std::clamp(std::ceil(h), 1.0, 4096.0));
    const double width = (hat ? 1.0 : 0.5) / static_cast<double>(panels);
    std::vector<double> line(counts[axis]);
    for (std::size_t k = 0; k < counts[axis]; ++k) {
      for (std::size_t panel = 0; panel < panels; ++panel) {
        for (std::size_t q = 0; q < rule.nodes.size(); ++q) {
          const double t = width * (static_cast<double>(panel) + rule.nodes[q]);
          const double weight = width * rule.weights[q] * (hat ? 1.0 - t : 1.0);
          const double right = h * (static_cast<double>(k) + t), left = h * (static_cast<double>(k) - t);
          line[k] += weight * (std::exp(-0.5 * right * right) + std::exp(-0.5 * left * left));
        }
      }
    }
    std::vector<double> product;
    product.reserve(weights.size() * line.size());
    for (const double outer : weights) {
      for (const double inner : line) product.push_back(outer * inner);
    }
    weights = std::move(product);
  }
  return weights;
}

}  // namespace

std::vector<double> kernel_weights(const Interaction& interaction, std::span<const double> spacing,
                                   std::span<const std::size_t> counts, CellWeights kind) {
  expects(is_radial(interaction), "cell weights belong to radial interactions");
  expects(spacing.size() == counts.size() && !counts.empty() && counts.size() <= max_dimension,
          "cell weights in one, two or three dimensions");
  double diameter = 0.0;
  for (const double h : spacing) diameter += h * h;
  diameter = std::sqrt(diameter);
  const std::size_t dimension = spacing.size();
  const std::size_t fewest = dimension == 1 ? 8 : dimension == 2 ? 5 : 3;

  const auto graded = [&](auto function, double scale) {
    return averages(GradedKernel<decltype(function)>{function, halvings(diameter, scale), fewest}, spacing,
                    counts, kind);
  };
  return std::visit(
      [&](const auto& w) -> std::vector<double> {
        using W = std::decay_t<decltype(w)>;
        if constexpr (std::is_same_v<W, RieszInteraction>) {
          expects(w.exponent < static_cast<double>(dimension), "a Riesz exponent below the dimension");
          if (w.softening > 0.0) {
            const double e2 = w.softening * w.softening;
            return graded(
                [=](double r2) { return w.strength / w.exponent * std::pow(r2 + e2, -0.5 * w.exponent); },
                w.softening);
          }
          if (w.exponent == 1.0) return averages(CoulombKernel{w.strength}, spacing, counts, kind);
          return averages(RieszKernel{w.exponent, w.strength}, spacing, counts, kind);
        } else if constexpr (std::is_same_v<W, LogarithmicInteraction>) {
          if (w.softening > 0.0) {
            const double e2 = w.softening * w.softening;
            return graded([=](double r2) { return -0.5 * w.strength * std::log(r2 + e2); }, w.softening);
          }
          return averages(LogarithmicKernel{w.strength}, spacing, counts, kind);
        } else if constexpr (std::is_same_v<W, GaussianInteraction>) {
          return gaussian_weights(w, spacing, counts, kind);
        } else if constexpr (std::is_same_v<W, MorseInteraction>) {
          return graded(
              [=](double r2) {
                const double r = std::sqrt(r2);
                return w.repulsion_strength * std::exp(-r / w.repulsion_length) -
                       w.attraction_strength * std::exp(-r / w.attraction_length);
              },
              std::min(w.repulsion_length, w.attraction_length));
        } else if constexpr (std::is_same_v<W, ExpressionInteraction>) {
          return averages(
              [&] {
                auto function = [&w](double r2) {
                  const double r = std::sqrt(r2);
                  return (*w.function)(std::span<const double>(&r, 1));
                };
                // An integrable singularity at r = 0 may hide in the text.
                return GradedKernel<decltype(function)>{function, static_cast<int>(100 / dimension), fewest};
              }(),
              spacing, counts, kind);
        } else if constexpr (std::is_same_v<W, QuadraticInteraction>) {
          return graded([=](double r2) { return 0.5 * w.strength * r2; }, diameter);
        } else {
          expects(false, "radial");
          return {};
        }
      },
      interaction);
}

}  // namespace rieszflow
