#pragma once
#include <cstddef>

/// The inner loops of the direct pair sum, compiled once per processor level and chosen at run time.
namespace rieszflow::simd {

/// Radial kernels with unit strength; R^2 = r^2 + softening^2, force_over_r = -W'(r)/r.
enum class RadialKind {
  Logarithm,      ///< W = -log R,          force_over_r = R^-2
  InverseFirst,   ///< W = R^-1,            force_over_r = R^-3
  InverseSquare,  ///< W = R^-2 / 2,        force_over_r = R^-4
  Distance,       ///< W = -R,              force_over_r = R^-1
  Power,          ///< W = R^-s / s,        force_over_r = R^-(s+2)
  Gaussian,       ///< W = exp(-R^2/2),     force_over_r = exp(-R^2/2), lengths in units of `length`
  Morse,          ///< repulsion exp(-r/repulsion_length) - attraction exp(-r/attraction_length)
};

/// x^-a of any normal x without logarithm and exponential: x = 2^e m with m in [1, 2), k the top four bits of
/// m, t = m root[k] - 1 with |t| < 1/32, and
///     x^-a = polynomial(t) scale[k] low[e & 7] middle[(e >> 3) & 15] high[e >> 7],   e biased, 11 bits: the
///     whole range.
/// Each table fits vector registers. Relative error below 4e-15.
struct PowerTable {
  static constexpr int degree = 8;
  double root[16], scale[16], low[8], middle[16], high[16];
  double coefficients[degree + 1];  ///< of (1 + t)^-a, interpolated at Chebyshev nodes
  /// In floats, whose exponents need two tables: x^-a = polynomial(t) scale[k] low[e & 15] high[e >> 4].
  /// Relative error below 4e-7 where x^-a is a normal number.
  struct Single {
    float root[16], scale[16], low[16], high[16];
    float coefficients[5];
  } single;
  explicit PowerTable(double a);
};

struct RadialKernel {
  RadialKind kind = RadialKind::Logarithm;
  double softening_squared = 0.0;
  double exponent = 0.0;              ///< s of Power
  const PowerTable* power = nullptr;  ///< of x^-(s/2+1), for Power
  double length = 1.0;                ///< of Gaussian
  double repulsion = 0.0, repulsion_length = 1.0, attraction = 0.0, attraction_length = 1.0;  ///< of Morse
};

/// One replica, laid out for vectors of particles: up to three dimensions coordinate by coordinate, above in
/// blocks of `padding` particles, each coordinate by coordinate. `stride` is a multiple of `padding` and at
/// least the particle count; what lies past the count is finite and is never a particle.
constexpr std::size_t padding = 16;
template <class Real>
struct BasicColumns {
  const Real* positions = nullptr;  ///< (dimension * stride), ordered by place()
  Real* forces = nullptr;           ///< the same order
  std::size_t stride = 0;
  std::size_t dimension = 0;
  const Real* remainders = nullptr;  ///< floats only: what the positions lack, in the same order

  std::size_t place(std::size_t particle, std::size_t k) const {
    return dimension <= 3 ? k * stride + particle
                          : (particle / padding * dimension + k) * padding + particle % padding;
  }
};
using Columns = BasicColumns<double>;
using SingleColumns = BasicColumns<float>;

/// Particles [begin, end); begin is a multiple of `padding`.
struct Range {
  std::size_t begin = 0, end = 0;
};

/// What is read and what is changed after the tiles of a group of replicas, (particle, dimension, lane)
/// numbers each: tiles on the diagonal ask the memory for it, strip by strip.
struct Ahead {
  const double *read, *changed;
};

struct DirectKernels {
  /// forces of both ranges += force_over_r (x_i - x_j) for all i in `rows`, j in `columns`, i != j; the
  /// ranges are equal or disjoint. Returns sum of W over the unordered pairs when `with_energy`, else 0.
  /// scratch: 4 * padding * dimension doubles when dimension > 3.
  double (*tile)(const RadialKernel& kernel, const Columns& columns, Range rows, Range cols, bool with_energy,
                 double* scratch);
  /// force[k] = sum over j != skip of force_over_r (point_k - x_jk), overwritten; returns the sum of W.
  double (*row)(const RadialKernel& kernel, const Columns& columns, std::size_t count, std::size_t skip,
                const double* point, double* force, double* scratch);
  /// Kernel by kernel value: force_over_r and W (either may be null) of `count` squared distances r^2, count
  /// a multiple of `padding`. Zero distance: force_over_r 0, W its limit.
  void (*pointwise)(const RadialKernel& kernel, std::size_t count, const double* squared,
                    double* force_over_r, double* value);
  /// The tile of `lanes` replicas at once, one in each lane: coordinate k of particle i of replica r at
  /// (i dimension + k) lanes + r, dimension <= 3. No lane is idle, whatever the particle count. Additions in
  /// the order of `tile`, so that each replica has the bits that it has alone. energies: (lanes), overwritten
  /// by the sums of W unless null.
  void (*replica_tile)(const RadialKernel& kernel, const Columns& columns, Range rows, Range cols,
                       double* energies, const Ahead& ahead);
  /// `lanes` replicas of `size` numbers, one after the other, into lanes: number i of replica r at i lanes +
  /// r; and back: replicas += scale times them, product and sum rounded.
  void (*interleave)(const double* replicas, std::size_t size, double* in_lanes);
  void (*add_separated)(const double* in_lanes, std::size_t size, double scale, double* replicas);
  std::size_t lanes;
  const char* level;
};

/// The tile in floats, at twice the rate. A position is a pair of floats, so that differences of close
/// particles keep their digits; sums over pairs run in floats within a tile.
struct SingleKernels {
  double (*tile)(const RadialKernel& kernel, const SingleColumns& columns, Range rows, Range cols,
                 bool with_energy, float* scratch);
};

/// The widest that this processor can run.
const DirectKernels& direct_kernels();
const SingleKernels& single_kernels();

}  // namespace rieszflow::simd
