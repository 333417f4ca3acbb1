#include "domain/domain.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/expects.hpp"
#include "core/match.hpp"

namespace rieszflow {
namespace {

bool all_finite(std::span<const double> point) {
  return std::all_of(point.begin(), point.end(), [](double x) { return std::isfinite(x); });
}

/// Triangle wave of period 2 (upper - lower). A reflection that leaves one image is a single exact-to-the-ulp
/// mirror; only longer displacements pay the remainder, whose rounding is the last min and max.
double folded(double x, double lower, double upper) {
  if (!std::isfinite(x) || (lower <= x && x <= upper)) return x;
  const double mirrored = x > upper ? upper - (x - upper) : lower + (lower - x);
  if (lower <= mirrored && mirrored <= upper) return mirrored;
  const double length = upper - lower;
  double phase = std::fmod(x - lower, 2.0 * length);
  if (phase < 0.0) phase += 2.0 * length;
  return std::clamp(phase <= length ? lower + phase : upper - (phase - length), lower, upper);
}

/// The representative in [lower, upper); a point that rounds up to `upper` is the point `lower`.
double wrapped(double x, double lower, double upper) {
  if (!std::isfinite(x) || (lower <= x && x < upper)) return x;
  double phase = std::fmod(x - lower, upper - lower);
  if (phase < 0.0) phase += upper - lower;
  const double representative = lower + phase;
  return representative < upper ? representative : lower;
}

/// |x - center| without overflow or underflow of the squares.
double distance(std::span<const double> x, std::span<const double> center) {
  double scale = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) scale = std::max(scale, std::abs(x[k] - center[k]));
  if (scale == 0.0) return 0.0;
  double sum = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double ratio = (x[k] - center[k]) / scale;
    sum += ratio * ratio;
  }
  return scale * std::sqrt(sum);
}

bool inside(const Ball& ball, std::span<const double> point) {
  return distance(point, ball.center) <= ball.radius;
}

/// point <- center + factor (point - center), then towards the centre ulp by ulp (doubling) until rounding
/// leaves it in the closed ball: `contains` is true for whatever `project` and `reflect` return.
void scale_into(const Ball& ball, std::span<double> point, double factor) {
  const std::vector<double> start(point.begin(), point.end());
  double pull = 0.0;
  do {
    for (std::size_t k = 0; k < point.size(); ++k)
      point[k] = ball.center[k] + factor * (1.0 - pull) * (start[k] - ball.center[k]);
    pull = pull == 0.0 ? std::numeric_limits<double>::epsilon() : 2.0 * pull;
  } while (pull < 1.0 && !inside(ball, point));
}

void check_dimension(const Domain& domain, std::span<const double> point) {
  expects(dimension(domain) == point.size(), "a point has the dimension of its domain");
}

}  // namespace

std::size_t dimension(const Domain& domain) {
  return std::visit(Match{[](const Box& box) { return box.lower.size(); },
                          [](const Ball& ball) { return ball.center.size(); },
                          [](const Torus& torus) { return torus.lower.size(); },
                          [](const WholeSpace& space) { return space.space_dimension; }},
                    domain);
}

double volume(const Domain& domain) {
  const auto product = [](const auto& cuboid) {
    double result = 1.0;
    for (std::size_t k = 0; k < cuboid.lower.size(); ++k) result *= cuboid.upper[k] - cuboid.lower[k];
    return result;
  };
  return std::visit(Match{[&](const Box& box) { return product(box); },
                          [](const Ball& ball) {
                            const double half = 0.5 * static_cast<double>(ball.center.size());
                            return std::pow(std::numbers::pi, half) / std::tgamma(half + 1.0) *
                                   std::pow(ball.radius, 2.0 * half);
                          },
                          [&](const Torus& torus) { return product(torus); },
                          [](const WholeSpace&) { return std::numeric_limits<double>::infinity(); }},
                    domain);
}

bool contains(const Domain& domain, std::span<const double> point) {
  check_dimension(domain, point);
  if (!all_finite(point)) return false;
  return std::visit(Match{[&](const Box& box) {
                            for (std::size_t k = 0; k < point.size(); ++k)
                              if (point[k] < box.lower[k] || point[k] > box.upper[k]) return false;
                            return true;
                          },
                          [&](const Ball& ball) { return inside(ball, point); },
                          [&](const Torus& torus) {
                            for (std::size_t k = 0; k < point.size(); ++k)
                              if (point[k] < torus.lower[k] || point[k] >= torus.upper[k]) return false;
                            return true;
                          },
                          [](const WholeSpace&) { return true; }},
                    domain);
}

void project(const Domain& domain, std::span<double> point) {
  check_dimension(domain, point);
  std::visit(Match{[&](const Box& box) {
                     for (std::size_t k = 0; k < point.size(); ++k)
                       if (std::isfinite(point[k]))
                         point[k] = std::clamp(point[k], box.lower[k], box.upper[k]);
                   },
                   [&](const Ball& ball) {
                     if (!all_finite(point) || inside(ball, point)) return;
                     scale_into(ball, point, ball.radius / distance(point, ball.center));
                   },
                   [&](const Torus& torus) {
                     for (std::size_t k = 0; k < point.size(); ++k)
                       point[k] = wrapped(point[k], torus.lower[k], torus.upper[k]);
                   },
                   [](const WholeSpace&) {}},
             domain);
}

void reflect(const Domain& domain, std::span<double> point) {
  check_dimension(domain, point);
  std::visit(Match{[&](const Box& box) {
                     for (std::size_t k = 0; k < point.size(); ++k)
                       point[k] = folded(point[k], box.lower[k], box.upper[k]);
                   },
                   [&](const Ball& ball) {
                     if (!all_finite(point) || inside(ball, point)) return;
                     const double radius = distance(point, ball.center);
                     scale_into(ball, point, folded(radius, -ball.radius, ball.radius) / radius);
                   },
                   [&](const Torus& torus) {
                     for (std::size_t k = 0; k < point.size(); ++k)
                       point[k] = wrapped(point[k], torus.lower[k], torus.upper[k]);
                   },
                   [](const WholeSpace&) {}},
             domain);
}

void displacement(const Domain& domain, std::span<const double> x, std::span<const double> y,
                  std::span<double> out) {
  check_dimension(domain, x);
  expects(y.size() == x.size() && out.size() == x.size(), "a displacement joins points of one dimension");
  for (std::size_t k = 0; k < x.size(); ++k) out[k] = x[k] - y[k];
  if (const auto* torus = std::get_if<Torus>(&domain)) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double length = torus->upper[k] - torus->lower[k];
      out[k] -= length * std::floor(out[k] / length + 0.5);
      if (out[k] >= 0.5 * length) out[k] -= length;
      if (out[k] < -0.5 * length) out[k] += length;
    }
  }
}

Box bounding_box(const Domain& domain) {
  return std::visit(Match{[](const Box& box) { return box; },
                          [](const Ball& ball) {
                            Box box{ball.center, ball.center};
                            for (double& x : box.lower) x -= ball.radius;
                            for (double& x : box.upper) x += ball.radius;
                            return box;
                          },
                          [](const Torus& torus) {
                            return Box{torus.lower, torus.upper};
                          },
                          [](const WholeSpace&) -> Box {
                            expects(false, "the whole space has no bounding box");
                            return {};
                          }},
                    domain);
}

}  // namespace rieszflow
