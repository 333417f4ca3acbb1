#include "solvers/stationary/zero_temperature.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/compensated_sum.hpp"
#include "core/expects.hpp"

namespace rieszflow::stationary {
namespace {

/// A density with its potential and energy.
struct Point {
  std::vector<double> averages, potential;
  FreeEnergy energy;
  double multiplier = 0.0;  ///< mu: rho-mean of Phi
  double violation = 0.0;   ///< of Frostman's conditions, over the largest |Phi| inside the domain
};

class Minimisation {
 public:
  explicit Minimisation(const Landscape& landscape)
      : landscape_(landscape), volumes_(landscape.volumes()), size_(landscape.size()) {}

  void evaluate(Point& point) const {
    point.potential.resize(size_);
    const double interaction_energy = landscape_.effective_potential(point.averages, point.potential);
    point.energy = landscape_.energy(point.averages, interaction_energy);
    CompensatedSum mean;
    for (std::size_t i = 0; i < size_; ++i) {
      if (point.averages[i] > 0.0) mean.add(point.averages[i] * volumes_[i] * point.potential[i]);
    }
    point.multiplier = mean.value();
    double scale = 0.0;
    point.violation = 0.0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (volumes_[i] == 0.0) continue;
      const double excess = point.potential[i] - point.multiplier;
      point.violation = std::max(point.violation, point.averages[i] > 0.0 ? std::abs(excess) : -excess);
      scale = std::max(scale, std::abs(point.potential[i]));
    }
    if (scale > 0.0) point.violation /= scale;
  }

  /// The nearest density in L2 with mass 1 that vanishes where `may_hold` is false: y - c cut at zero. c by
  /// removing what is cut until nothing is (Michelot 1986).
  void project(std::vector<double>& y, const std::vector<char>& may_hold) const {
    std::vector<char> holds = may_hold;
    for (bool changed = true; changed;) {
      CompensatedSum mass, volume;
      for (std::size_t i = 0; i < size_; ++i) {
        if (holds[i] == 0) continue;
        mass.add(volumes_[i] * y[i]);
        volume.add(volumes_[i]);
      }
      const double cut = (mass.value() - 1.0) / volume.value();
      changed = false;
      for (std::size_t i = 0; i < size_; ++i) {
        if (holds[i] != 0 && y[i] <= cut) {
          holds[i] = 0;
          changed = true;
        }
      }
      if (changed) continue;
      for (std::size_t i = 0; i < size_; ++i) y[i] = holds[i] != 0 ? y[i] - cut : 0.0;
    }
  }

  std::vector<char> inside() const {
    std::vector<char> cells(size_);
    for (std::size_t i = 0; i < size_; ++i) cells[i] = volumes_[i] > 0.0 ? 1 : 0;
    return cells;
  }
  std::vector<char> support(const Point& point) const {
    std::vector<char> cells(size_);
    for (std::size_t i = 0; i < size_; ++i) cells[i] = point.averages[i] > 0.0 ? 1 : 0;
    return cells;
  }

  /// -(Phi - mean) on the cells of `face`: steepest descent with the mass fixed.
  std::vector<double> descent(const Point& point, const std::vector<char>& face) const {
    std::vector<double> direction(size_, 0.0);
    for (std::size_t i = 0; i < size_; ++i) {
      if (face[i] != 0) direction[i] = -point.potential[i];
    }
    centre(direction, face);
    return direction;
  }

  /// Newton direction on the face: W d = -(Phi - mu) with the mass fixed, to `tolerance` relative, or a
  /// direction of negative curvature.
  std::vector<double> newton(const Point& point, const std::vector<char>& face, double tolerance) const {
    std::vector<double> r = descent(point, face), p = r, d(size_, 0.0), image(size_);
    const double first = dot(r, r);
    double squared = first;
    for (int k = 0; k < most_products && squared > tolerance * tolerance * first; ++k) {
      const double curvature = curvature_along(point, p, image);
      if (!(curvature > 1e-14 * dot(p, p) * largest_volume())) return k == 0 || curvature < 0.0 ? p : d;
      const double alpha = squared / curvature;
      centre(image, face);
      for (std::size_t i = 0; i < size_; ++i) {
        d[i] += alpha * p[i];
        r[i] -= alpha * image[i];
      }
      const double next = dot(r, r);
      for (std::size_t i = 0; i < size_; ++i) p[i] = r[i] + next / squared * p[i];
      squared = next;
    }
    return d;
  }

  /// double-integral W p p; image = W*p.
  double curvature_along(const Point& point, const std::vector<double>& p, std::vector<double>& image) const {
    landscape_.potential_change(point.averages, p, image);
    return dot(p, image);
  }

  /// Projected line search; false when no step makes E fall.
  bool search(Point& point, const std::vector<double>& direction, const std::vector<char>& may_hold,
              double length, bool expand) const {
    const double round_off =
        1e-15 * (std::abs(point.energy.potential_energy) + std::abs(point.energy.interaction_energy));
    Point best;
    for (int k = 0; k < 40; ++k, length *= expand && !best.averages.empty() ? 4.0 : 0.25) {
      Point trial;
      trial.averages.resize(size_);
      for (std::size_t i = 0; i < size_; ++i) trial.averages[i] = point.averages[i] + length * direction[i];
      project(trial.averages, may_hold);
      evaluate(trial);
      CompensatedSum slope;  // of E along the projected step
      for (std::size_t i = 0; i < size_; ++i) {
        slope.add((trial.averages[i] - point.averages[i]) * volumes_[i] *
                  (point.potential[i] - point.multiplier));
      }
      if (trial.energy.free_energy <= point.energy.free_energy + 1e-4 * slope.value() + round_off &&
          slope.value() <= 0.0) {
        const bool better = best.averages.empty() || trial.energy.free_energy < best.energy.free_energy;
        if (better) std::swap(best, trial);
        if (!expand || !better) break;
      } else if (!best.averages.empty()) {
        break;
      }
    }
    if (best.averages.empty()) return false;
    std::swap(point, best);
    return true;
  }

  double dot(const std::vector<double>& a, const std::vector<double>& b) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < size_; ++i) sum += a[i] * b[i] * volumes_[i];
    return sum;
  }

 private:
  static constexpr int most_products = 3000;

  double largest_volume() const { return *std::max_element(volumes_.begin(), volumes_.end()); }
  /// Zero outside the face, mean zero on it.
  void centre(std::vector<double>& x, const std::vector<char>& face) const {
    CompensatedSum mass, volume;
    for (std::size_t i = 0; i < size_; ++i) {
      if (face[i] == 0) continue;
      mass.add(x[i] * volumes_[i]);
      volume.add(volumes_[i]);
    }
    const double mean = mass.value() / volume.value();
    for (std::size_t i = 0; i < size_; ++i) x[i] = face[i] != 0 ? x[i] - mean : 0.0;
  }

  const Landscape& landscape_;
  const std::vector<double>& volumes_;
  std::size_t size_;
};

}  // namespace

Result at_zero_temperature(const Landscape& landscape, const Density& start, const Options& options) {
  const Minimisation minimisation(landscape);
  Result result;
  result.status = RunStatus::NotConverged;
  result.density.grid = landscape.grid();
  Point point{.averages = start.averages, .potential = {}, .energy = {}};
  minimisation.evaluate(point);
  const auto reached = [&] {
    return point.violation <= std::max(options.tolerance, 16.0 * std::numeric_limits<double>::epsilon());
  };
  const std::vector<char> everywhere = minimisation.inside();
  int iteration = 0;
  for (; iteration < options.iterations; ++iteration) {
    if (!std::isfinite(point.energy.free_energy) || !std::isfinite(point.violation)) {
      result.status = RunStatus::NotFinite;
      break;
    }
    if (reached()) {
      result.status = RunStatus::Completed;
      break;
    }
    // Cells whose potential is below mu join; Cauchy's step along steepest descent.
    std::vector<char> face = minimisation.support(point);
    for (std::size_t i = 0; i < face.size(); ++i) {
      if (everywhere[i] != 0 && point.potential[i] < point.multiplier) face[i] = 1;
    }
    std::vector<double> direction = minimisation.descent(point, face), image(direction.size());
    const double squared = minimisation.dot(direction, direction);
    if (!(squared > 0.0)) break;
    const double curvature = minimisation.curvature_along(point, direction, image);
    const bool moved = minimisation.search(point, direction, everywhere,
                                           curvature > 0.0 ? squared / curvature : 1.0, !(curvature > 0.0));
    if (reached()) continue;
    face = minimisation.support(point);
    direction = minimisation.newton(point, face, 1e-3);
    const bool solved = minimisation.search(point, direction, face, 1.0, false);
    if (!moved && !solved) break;  // E is at its minimum to round-off; the violation says how well
  }
  result.density.averages = point.averages;
  result.energy = point.energy;
  result.residual = point.violation;
  result.chemical_potential = point.multiplier;
  result.iterations = iteration;
  return result;
}

}  // namespace rieszflow::stationary
