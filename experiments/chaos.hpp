#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "experiments/side_by_side.hpp"
#include "experiments/sweep.hpp"

/// Propagation of chaos, path by path and in law: theory.md section 3, item 1.
namespace rieszflow::chaos {

struct Question {
  std::string name;
  side_by_side::Question base;  ///< particles, density, times; counts replace particles.count
  std::vector<std::size_t> counts;
  std::optional<double> length{};  ///< of the Gaussian kernel; absent: typical distance of the density
};

/// Why a model has no such study, as a sentence for the user.
std::optional<std::string> refusal(const Model& model);

/// One unit a particle number: N particles and N independent mean-field copies with the same start and noise
/// (solvers/particle/coupled_copies.hpp), and at the end
///
///     path_squared      E |X_i - Y_i|^2                      expected exponent -1
///     path_largest      E max over outputs of |X_i - Y_i|^2  -1
///     mmd_squared, wasserstein_2_squared (d = 1)             -1
///     relative_entropy_k of k = 1, 2 particles against rho^(x k), where the law is Gaussian: from the pair
///     covariance tau of replicas, (k tau - log(1 + k tau))/2,           -2
///
/// beside the exact values where the model is exact::OrnsteinUhlenbeck.
sweep::Study study(const Question& question);

}  // namespace rieszflow::chaos
