#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// Random-feature maps phi(z; omega), theory.md section 4.
///
/// Each is an elementary function of the score s = offset(z) + <lifted(z), omega> of a data point z and a
/// particle omega, with one or two components. The empirical kernel of N particles is K(z, z') = (1/N) sum_i
/// <phi(z; omega_i), phi(z'; omega_i)>; its limit for many particles of the reference law is `limit_kernel`.
///
/// * fourier: (cos <omega, z>, sin <omega, z>); law N(0, I/l^2); limit exp(-|z - z'|^2 / (2 l^2)).
/// * fourier_phase: sqrt2 cos(<omega, z> + b), particle (omega, b); law N(0, I/l^2), b uniform; the same
/// limit.
/// * circle: sqrt2 cos(z - omega), z and omega angles; law uniform; limit cos(z - z').
/// * positive_exponential: exp(<omega, z> - |z|^2/2), z divided by l; law N(0, I); limit exp <z, z'>.
/// * softplus: log(1 + exp <omega, z>); law N(0, I/l^2); limit by Gauss quadrature.
/// * relu: max(0, <omega, z>); law N(0, I/l^2); limit half the arc-cosine kernel of order 1.
/// * softmax: N exp <omega_i, z> / sum_j exp <omega_j, z>; law N(0, I/l^2); limit exp(<z, z'>/l^2).
/// * softmax_pair: sqrt2 N (exp s_i, exp -s_i) / sum_j (exp s_j + exp -s_j), s_i = <omega_i, z>; law N(0,
/// I/l^2); limit exp(<z, z'>/l^2).
///
/// Sources: Rahimi and Recht, NIPS 2007 (fourier, fourier_phase); Choromanski et al., ICLR 2021
/// (positive_exponential); Cho and Saul, NIPS 2009 (relu); Zhang et al., ICLR 2024 (softmax_pair). The
/// softmax maps couple the particles: they are functions of the whole particle set.
namespace rieszflow {

enum class FeatureMap {
  Fourier,
  FourierPhase,
  Circle,
  PositiveExponential,
  Softplus,
  Relu,
  Softmax,
  SoftmaxPair
};

/// All maps, in the order of the enumeration.
std::span<const FeatureMap> feature_maps();
std::string_view name(FeatureMap map);     ///< as in config files
std::string_view formula(FeatureMap map);  ///< one line of text for `rieszflow list`
std::optional<FeatureMap> feature_map_named(std::string_view name);

/// Components of phi per particle: 2 for fourier and softmax_pair, else 1.
std::size_t component_count(FeatureMap map);
/// Whether phi(.; omega_i) depends on the other particles: no function of one particle, no density.
bool couples_particles(FeatureMap map);
/// Dimension of a particle omega for data of dimension `data_dimension`: one more with a phase, 1 on the
/// circle.
std::size_t particle_dimension(FeatureMap map, std::size_t data_dimension);

/// Data points as the scores see them: score(a, i) = offsets[a] + <points_a, omega_i>.
struct LiftedData {
  std::size_t count = 0;        ///< n
  std::size_t dimension = 0;    ///< p, of a particle
  std::vector<double> points;   ///< (row, p), row-major
  std::vector<double> offsets;  ///< (row)
};

/// `points`: (row, data_dimension), row-major.
LiftedData lift(FeatureMap map, std::span<const double> points, std::size_t data_dimension);

/// phi of all rows; out: (row, component, particle), row-major. particles: (particle, p).
void feature_values(FeatureMap map, const LiftedData& data, std::span<const double> particles,
                    std::span<double> out);

/// gradient(i) += sum_a sum_c weights(a, c, i) grad_{omega_i} phi_c(z_a; omega_i), the softmax coupling of
/// all particles included. weights: (row, component, particle); gradient: (particle, p).
void add_pullback(FeatureMap map, const LiftedData& data, std::span<const double> particles,
                  std::span<const double> weights, std::span<double> gradient);

/// The weighted sums that linear alignment needs, without storing n x N numbers, in one sweep:
///     moments(i, c)       = sum_a weights[a] phi_c(z_a; omega_i),
///     derivatives(i, c, k) = its derivative in component k of omega_i.
/// Not for maps that couple the particles. O(n N p); the same bits for every number of threads.
void weighted_moments(FeatureMap map, const LiftedData& data, std::span<const double> weights,
                      std::span<const double> particles, std::span<double> moments,
                      std::span<double> derivatives, int threads);

/// Limit of K(z, z') for particles of the reference law with length scale l > 0.
double limit_kernel(FeatureMap map, std::span<const double> z, std::span<const double> other,
                    double length_scale);

/// Independent particles of the reference law, keyed by (seed, InitialPosition, replica, particle);
/// (particle, p). With `orthogonal` the directions come in blocks of p orthonormal ones (rows of Haar
/// matrices) with the radii of independent Gaussians: the same law of each particle, smaller variance of the
/// kernel (Yu et al., NIPS 2016).
std::vector<double> reference_particles(FeatureMap map, std::size_t particle_count,
                                        std::size_t data_dimension, double length_scale, bool orthogonal,
                                        std::uint64_t seed, std::uint64_t replica);

/// Median Euclidean distance of distinct pairs among at most `limit` rows (evenly spread over the data): the
/// median heuristic for the length scale. At least two different rows are needed; 0 if all are equal.
double median_distance(std::span<const double> points, std::size_t dimension, std::size_t limit = 1000);

}  // namespace rieszflow
