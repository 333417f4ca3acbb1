#pragma once
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace rieszflow::rare_event {

/// A number g(mu_N) read off an empirical measure through per-particle components f_k(x_i):
///
///     Mean      g = (1/N) sum_i f_0(x_i)                                            a linear statistic
///     Distance  g = sqrt( sum_k weights_k ((1/N) sum_i f_k(x_i) - target_k)^2 )     a distance of two
///     kernels Largest   g = max_i f_0(x_i)                                                  a set event,
///     "all particles inside"
///
/// One particle's move changes the component sums by O(K) operations: what a single-particle sampler needs.
struct Statistic {
  enum class Kind { Mean, Distance, Largest };
  std::string name;
  Kind kind = Kind::Mean;
  std::size_t component_count = 1;  ///< K; 1 unless Distance
  /// out_k = f_k(point); point: (dimension), out: (component). May be +-infinity on a null set.
  std::function<void(std::span<const double> point, std::span<double> out)> components;
  std::vector<double> target{};   ///< (component), Distance only
  std::vector<double> weights{};  ///< (component) >= 0, Distance only
};

/// g = (1/N) sum_i f(x_i).
Statistic mean_of(std::string name, std::function<double(std::span<const double> point)> function);
/// g = max_i f(x_i).
Statistic largest_of(std::string name, std::function<double(std::span<const double> point)> function);

/// g from its component sums over N particles; `values` (particle, component) is read by Largest only.
double value(const Statistic& statistic, std::span<const double> sums, std::span<const double> values,
             std::size_t particle_count);
/// g of positions (particle, dimension), row-major.
double value(const Statistic& statistic, std::span<const double> positions, std::size_t particle_count);

/// {lower < g < upper}, an end may be infinite.
struct Event {
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();

  bool contains(double g) const { return g > lower && g < upper; }
  /// Distance to the complement, signed: positive inside, increasing towards the event from both sides.
  double depth(double g) const { return g - lower < upper - g ? g - lower : upper - g; }
};

}  // namespace rieszflow::rare_event
