#include "summation/window.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "summation/far_field.hpp"

namespace rieszflow {
namespace {

/// sum c_k (2t - 1)^k in powers of t.
std::vector<double> shifted(const std::vector<double>& c) {
  std::vector<double> result(c.size(), 0.0);
  for (std::size_t k = c.size(); k-- > 0;) {
    // Horner: result <- result (2t - 1) + c_k.
    for (std::size_t i = result.size(); i-- > 0;) result[i] = (i > 0 ? 2.0 * result[i - 1] : 0.0) - result[i];
    result[0] += c[k];
  }
  return result;
}

}  // namespace

// The transform of phi falls to its floor where the aliases of |k| h <= band begin. Most of a far field lies
// well within the wavenumber where it ends: a lower floor for it is worth more than all of the range.
Window::Window(int width, double band)
    : width_(width),
      row_(width <= 8 ? 8 : 16),
      degree_(width + 5),
      shape_(std::numbers::pi * width * (1.0 - 0.5 * band / std::numbers::pi)),
      peak_(std::cyl_bessel_i(0.0, shape_)) {
  const auto columns = static_cast<std::size_t>(row_);
  values_.assign(static_cast<std::size_t>(degree_ + 1) * columns, 0.0);
  slopes_.assign(values_.size(), 0.0);
  const auto phi = [&](double x) {
    const double y = 2.0 * x / width;
    return std::cyl_bessel_i(0.0, shape_ * std::sqrt(std::max(0.0, 1.0 - y * y))) / peak_;
  };
  for (int j = 0; j < width; ++j) {
    // t in [0, 1] as y = 2 t - 1, then expanded: the powers of t have moderate coefficients at these degrees.
    const auto in_t = shifted(powers_of(chebyshev_coefficients(
        [&](double y) { return phi(0.5 * (y + 1.0) - 0.5 * width + j); }, degree_ + 1)));
    for (int k = 0; k <= degree_; ++k) {
      const auto at = static_cast<std::size_t>(k);
      values_[at * columns + static_cast<std::size_t>(j)] = in_t[at];
      // A node's offset t falls as the particle's coordinate grows.
      if (k > 0) slopes_[(at - 1) * columns + static_cast<std::size_t>(j)] = -k * in_t[at];
    }
  }
}

double Window::transform(double k) const {
  const double square = shape_ * shape_ - 0.25 * width_ * k * width_ * k, z = std::sqrt(std::abs(square));
  if (z < 1e-6) return width_ / peak_;
  return width_ * (square > 0.0 ? std::sinh(z) : std::sin(z)) / z / peak_;
}

}  // namespace rieszflow
