#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweep.hpp"
#include "model/model.hpp"
#include "solvers/rare_event/partition_function.hpp"

/// Equilibrium free energy of N particles against the minimum of F: theory.md section 3, items 2 and 3.
namespace rieszflow::free_energy {

struct Question {
  std::string name;
  Model model;
  std::vector<std::size_t> counts;
  std::vector<std::size_t> cells;  ///< (dimension) of the finest of three grids on which F is minimised
  std::optional<double> exact{};   ///< -beta min F, where it is known
  rare_event::PartitionOptions sampling{};
};

/// Why a model has no such study, as a sentence for the user.
std::optional<std::string> refusal(const Model& model);

/// (1/N) log Z_N + beta min F by particle number, one unit each: Z_N along the couplings of the interaction
/// (solvers/rare_event/partition_function.hpp), min F extrapolated over cells/4, cells/2, cells. Expected
/// exponent: -1 where W is square integrable, and then N times the error tends to c0 of the determinant
/// formula (stationary::partition_correction); -(d/s - 1) for d/2 < s < d, where the verdict states that it
/// is not -1.
sweep::Study study(const Question& question);

std::string plan(const Question& question);

}  // namespace rieszflow::free_energy
