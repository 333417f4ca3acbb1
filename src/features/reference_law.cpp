#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/expects.hpp"
#include "core/noise.hpp"
#include "features/feature_map.hpp"
#include "features/haar.hpp"

namespace rieszflow {
namespace {

/// E f(a) f(b) of a centred Gaussian pair with the given second moments.
template <class Function>
double gaussian_pair_mean(double aa, double ab, double bb, Function f) {
  // a = sqrt(aa) u, b = (ab / sqrt(aa)) u + rest v; +-9 standard deviations leave out 2e-19 of the law.
  const double sa = std::sqrt(aa);
  const double slope = sa > 0.0 ? ab / sa : 0.0;
  const double rest = std::sqrt(std::max(bb - slope * slope, 0.0));
  using Rule = boost::math::quadrature::gauss<double, 60>;
  const auto density = [](double u) { return std::exp(-0.5 * u * u) / std::sqrt(2.0 * std::numbers::pi); };
  return Rule::integrate(
      [&](double u) {
        return density(u) * f(sa * u) *
               Rule::integrate([&](double v) { return density(v) * f(slope * u + rest * v); }, -9.0, 9.0);
      },
      -9.0, 9.0);
}

}  // namespace

std::vector<double> reference_particles(FeatureMap map, std::size_t particle_count,
                                        std::size_t data_dimension, double length_scale, bool orthogonal,
                                        std::uint64_t seed, std::uint64_t replica) {
  expects(length_scale > 0.0, "a positive length scale");
  const std::size_t p = particle_dimension(map, data_dimension);
  const NoiseStream noise(seed, NoisePurpose::InitialPosition);
  std::vector<double> particles(particle_count * p);
  if (map == FeatureMap::Circle) {
    for (std::size_t i = 0; i < particle_count; ++i) {
      noise.uniforms(replica, 0, i, {particles.data() + i, 1});
      particles[i] = (2.0 * particles[i] - 1.0) * std::numbers::pi;
    }
    return particles;
  }
  const double scale = map == FeatureMap::PositiveExponential ? 1.0 : 1.0 / length_scale;
  const NoiseStream directions(seed, NoisePurpose::ProjectionDirection);
  std::vector<double> rotation;
  for (std::size_t i = 0; i < particle_count; ++i) {
    const std::span<double> omega(particles.data() + i * p, p);
    noise.gaussians(replica, 0, i, omega.first(data_dimension));
    if (orthogonal) {
      if (i % data_dimension == 0)
        rotation = haar_matrix(directions, replica, 0, i / data_dimension, data_dimension);
      const double radius = std::sqrt(std::inner_product(
          omega.begin(), omega.begin() + static_cast<std::ptrdiff_t>(data_dimension), omega.begin(), 0.0));
      for (std::size_t k = 0; k < data_dimension; ++k)
        omega[k] = radius * rotation[(i % data_dimension) * data_dimension + k];
    }
    for (std::size_t k = 0; k < data_dimension; ++k) omega[k] *= scale;
    if (map == FeatureMap::FourierPhase) {
      noise.uniforms(replica, 1, i, omega.last(1));
      omega[data_dimension] = (2.0 * omega[data_dimension] - 1.0) * std::numbers::pi;
    }
  }
  return particles;
}

double limit_kernel(FeatureMap map, std::span<const double> z, std::span<const double> other,
                    double length_scale) {
  expects(z.size() == other.size() && length_scale > 0.0, "two points of one space");
  double zz = 0.0, zo = 0.0, oo = 0.0, distance = 0.0;
  for (std::size_t k = 0; k < z.size(); ++k) {
    zz += z[k] * z[k];
    zo += z[k] * other[k];
    oo += other[k] * other[k];
    distance += (z[k] - other[k]) * (z[k] - other[k]);
  }
  const double square = length_scale * length_scale;
  switch (map) {
    case FeatureMap::Fourier:
    case FeatureMap::FourierPhase:
      return std::exp(-0.5 * distance / square);
    case FeatureMap::Circle:
      return std::cos(z[0] - other[0]);
    case FeatureMap::PositiveExponential:
      return std::exp(zo);
    case FeatureMap::Softmax:
    case FeatureMap::SoftmaxPair:
      return std::exp(zo / square);
    case FeatureMap::Relu: {
      const double norms = std::sqrt(zz * oo);
      if (norms == 0.0) return 0.0;
      const double angle = std::acos(std::clamp(zo / norms, -1.0, 1.0));
      return norms / square * (std::sin(angle) + (std::numbers::pi - angle) * std::cos(angle)) /
             (2.0 * std::numbers::pi);
    }
    case FeatureMap::Softplus:
      return gaussian_pair_mean(zz / square, zo / square, oo / square, [](double s) {
        return std::max(s, 0.0) + std::log1p(std::exp(-std::abs(s)));
      });
  }
  return 0.0;
}

}  // namespace rieszflow
