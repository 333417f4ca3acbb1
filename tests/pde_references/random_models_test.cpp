#include "tests/pde_references/random_models.hpp"

#include <gtest/gtest.h>

namespace rieszflow::reference {
namespace {

// benchmarks/random_models.cpp runs a thousand of them.
TEST(RandomModels, KeepMassPositivityDecayAndTheirGibbsStates) {
  std::int64_t steps = 0, completed = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const RandomModel problem = random_model(seed);
    const Structure structure = structure_of(problem);
    EXPECT_FALSE(structure.failed()) << "model " << seed << ": " << description(problem.model) << ": "
                                     << name(structure.status) << ", mass " << structure.mass_error
                                     << ", lowest " << structure.lowest << ", rise of F "
                                     << structure.energy_rise << ", Gibbs " << structure.gibbs_change;
    steps += structure.steps;
    completed += structure.status == RunStatus::Completed ? 1 : 0;
  }
  EXPECT_GT(steps, 10000);
  EXPECT_GT(completed, 80);
}

}  // namespace
}  // namespace rieszflow::reference
