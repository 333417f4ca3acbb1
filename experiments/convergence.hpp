#pragma once
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/exact.hpp"
#include "experiments/side_by_side.hpp"
#include "experiments/sweep.hpp"
#include "potentials/expression.hpp"

/// Convergence of the quantities of a side-by-side run: in the particle number, the inverse temperature, the
/// timestep and the grid. theory.md section 3, items 1 and 2.
namespace rieszflow::convergence {

enum class Parameter { ParticleNumber, InverseTemperature, Timestep, Grid };

/// A number q read off one replica (or off the density) at one time.
enum class Quantity {
  Mean,                ///< (1/N) sum x_1
  SecondMoment,        ///< (1/N) sum |x|^2
  Linear,              ///< (1/N) sum f(x)
  PotentialEnergy,     ///< (1/N) sum V
  InteractionEnergy,   ///< unbiased for independent particles: N/(N-1) times the pair sum
  FreeEnergy,          ///< estimate of F, entropy from all replicas together
  Entropy,             ///< nearest-neighbour entropy of all replicas together
  ReplicaEntropy,      ///< the same of each replica alone: the estimator at n = N
  Discrepancy,         ///< MMD^2(mu_N, rho), Gaussian kernel
  EnergyDistance,      ///< energy distance, d = 1
  Wasserstein1,        ///< W_1(mu_N, rho), d = 1
  Wasserstein2,        ///< W_2^2(mu_N, rho), d = 1
  SlicedWasserstein2,  ///< its mean over directions, d = 2, 3
  Marginal             ///< MMD^2 of the law of one particle against rho: unbiased, from pairs of replicas
};

struct QuantityName {
  Quantity quantity;
  std::string_view name;
  std::string_view meaning;
  bool distance;  ///< of mu_N to rho: zero in the limit; needs the density
};
const std::vector<QuantityName>& quantity_names();

enum class ErrorKind {
  Bias,       ///< |E q - reference|
  MeanSquare  ///< E (q - reference)^2
};

enum class Reference {
  Density,          ///< the density of the same model, at the same times
  Exact,            ///< a number
  ZeroTemperature,  ///< the density at beta = infinity
  Refinement        ///< of a density: the next finer row
};

struct Question {
  std::string name;
  Parameter parameter = Parameter::ParticleNumber;
  side_by_side::Question base;  ///< `values` replace one of its numbers
  std::vector<double> values;
  Quantity quantity = Quantity::SecondMoment;
  std::shared_ptr<const ExpressionFunction> function{};  ///< of Linear
  std::optional<double> length{};                        ///< of the Gaussian kernel; absent: typical distance
  ErrorKind error = ErrorKind::Bias;
  Reference reference = Reference::Density;
  double exact = 0.0;                                          ///< of Reference::Exact
  double expected = std::numeric_limits<double>::quiet_NaN();  ///< exponent
  std::string expected_reference;
  double tolerance = 0.05;
  std::optional<double>
      average_from{};  ///< errors are averaged over the outputs from here on; absent: the end alone
};

/// The model as the one whose finite-N laws are Gaussian and known: quadratic V about 0, quadratic W or none,
/// Gaussian start, d = 1, walls at least six standard deviations away. Nothing for any other.
std::optional<exact::OrnsteinUhlenbeck> gaussian_model(const Model& model, const InitialLaw& initial);

/// Exponent of the finite-N correction of energies, with its source: -1 where W is square integrable (s <
/// d/2),
/// -(d/s - 1) for d/2 < s < d, NaN at s = d/2 (log N / N).
std::pair<double, std::string> correction_exponent(const Model& model);

/// The exponent that theory knows for this question, with its source; NaN where it knows none.
std::pair<double, std::string> theoretical_exponent(const Question& question);

/// The question of one value of the parameter.
side_by_side::Question base_at(const Question& question, double value);

/// One unit a value, its noise keyed by (seed, value). Particles where the base has them, else the density.
/// Where the model is the Gaussian one of exact::OrnsteinUhlenbeck and the error is known in closed form, the
/// rows carry it as `theory`, and `z`.
sweep::Study study(const Question& question);

/// Sizes and the estimated cost of each row, in words.
std::string plan(const Question& question);

}  // namespace rieszflow::convergence
