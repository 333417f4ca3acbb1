#include "analysis/density_estimate.hpp"

#include <cmath>
#include <numbers>
#include <variant>

#include "analysis/histogram.hpp"
#include "core/expects.hpp"

namespace rieszflow {
namespace {

constexpr int most_images = 3;  ///< on each side: enough for a bandwidth of half the domain

/// P(from + deviation xi in [lower, upper]).
double probability(double from, double deviation, double lower, double upper) {
  const double scale = 1.0 / (std::numbers::sqrt2 * deviation);
  return 0.5 * (std::erf((upper - from) * scale) - std::erf((lower - from) * scale));
}

/// (cell, cell): share of the mass in the second that the kernel puts into the first.
std::vector<double> smoothing(const Domain& domain, const Grid& grid, std::size_t axis, double bandwidth) {
  const std::size_t n = grid.cells[axis];
  const double h = grid.spacing(axis), length = h * static_cast<double>(n);
  const bool walls = std::holds_alternative<Box>(domain), periodic = std::holds_alternative<Torus>(domain);
  std::vector<double> matrix(n * n, 0.0);
  for (std::size_t j = 0; j < n; ++j) {
    const double x = (static_cast<double>(j) + 0.5) * h;
    for (int m = -most_images; m <= most_images; ++m) {
      if (m != 0 && !walls && !periodic) continue;
      const double shift = (walls ? 2.0 : 1.0) * static_cast<double>(m) * length;
      for (std::size_t i = 0; i < n; ++i) {
        const double from = static_cast<double>(i) * h;
        matrix[i * n + j] += probability(x + shift, bandwidth, from, from + h);
        if (walls) matrix[i * n + j] += probability(-x + shift, bandwidth, from, from + h);
      }
    }
  }
  return matrix;
}

}  // namespace

DensityEstimate kernel_density(const ParticleEnsemble& ensemble, const Domain& domain, const Grid& grid,
                               double bandwidth) {
  const std::size_t d = grid.dimension(), count = ensemble.replica_count * ensemble.particle_count;
  expects(!std::holds_alternative<Ball>(domain) && d <= 3 && d == ensemble.dimension, "a box of cells");
  expects(count > 1 && bandwidth >= 0.0, "particles");
  DensityEstimate result{histogram(ensemble, grid), {}};
  const double n = static_cast<double>(count), dimensions = static_cast<double>(d);
  std::vector<double>& values = result.density.averages;
  std::size_t before = 1, after = values.size();  // cells of the axes before this one, after it
  for (std::size_t k = 0; k < d; ++k) {
    double mean = 0.0, squares = 0.0;
    for (std::size_t i = 0; i < count; ++i) mean += ensemble.positions[i * d + k] / n;
    for (std::size_t i = 0; i < count; ++i)
      squares += std::pow(ensemble.positions[i * d + k] - mean, 2) / (n - 1.0);
    const double silverman =
        std::sqrt(squares) * std::pow(4.0 / ((dimensions + 2.0) * n), 1.0 / (dimensions + 4.0));
    result.bandwidths.push_back(bandwidth > 0.0 ? bandwidth : silverman);
    const std::size_t cells = grid.cells[k];
    after /= cells;
    expects(result.bandwidths[k] > 0.0, "particles that are not all at one coordinate");
    const std::vector<double> matrix = smoothing(domain, grid, k, result.bandwidths[k]);
    std::vector<double> line(cells);
    for (std::size_t a = 0; a < before; ++a) {
      for (std::size_t c = 0; c < after; ++c) {
        double* const first = values.data() + a * cells * after + c;
        for (std::size_t i = 0; i < cells; ++i) line[i] = first[i * after];
        for (std::size_t i = 0; i < cells; ++i) {
          double sum = 0.0;
          for (std::size_t j = 0; j < cells; ++j) sum += matrix[i * cells + j] * line[j];
          first[i * after] = sum;
        }
      }
    }
    before *= cells;
  }
  return result;
}

}  // namespace rieszflow
