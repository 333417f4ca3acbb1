// Random models with rough starts: how many keep mass, positivity, the decay of F and their Gibbs states.
//   bench_random_models [COUNT=1000] [FIRST=1]
#include "tests/pde_references/random_models.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <map>

int main(int count, char** arguments) {
  using namespace rieszflow;
  const long models = count > 1 ? std::atol(arguments[1]) : 1000,
             first = count > 2 ? std::atol(arguments[2]) : 1;
  std::map<std::string, long> endings;
  long mass_kept = 0, positive = 0, decaying = 0, gibbs_kept = 0, failed = 0;
  long long steps = 0;
  double mass_error = 0.0, energy_rise = 0.0, gibbs_change = 0.0;
  for (long k = first; k < first + models; ++k) {
    const auto problem = reference::random_model(static_cast<std::uint64_t>(k));
    const auto structure = reference::structure_of(problem);
    ++endings[std::string(name(structure.status))];
    mass_kept += structure.mass_error <= 1e-12 ? 1 : 0;
    positive += structure.lowest >= 0.0 ? 1 : 0;
    decaying += structure.energy_rise <= 1e-12 ? 1 : 0;
    gibbs_kept += structure.gibbs_change <= 1e-12 ? 1 : 0;
    mass_error = std::max(mass_error, structure.mass_error);
    energy_rise = std::max(energy_rise, structure.energy_rise);
    gibbs_change = std::max(gibbs_change, structure.gibbs_change);
    steps += structure.steps;
    if (structure.failed()) {
      ++failed;
      fmt::print("model {}: {}: {}, mass {:.1e}, lowest {:.1e}, rise of F {:.1e}, Gibbs {:.1e}\n", k,
                 description(problem.model), name(structure.status), structure.mass_error, structure.lowest,
                 structure.energy_rise, structure.gibbs_change);
      std::fflush(stdout);
    }
  }
  fmt::print("models                     {}\naccepted steps             {}\n", models, steps);
  for (const auto& [ending, number] : endings) fmt::print("{:<26} {}\n", ending, number);
  fmt::print("mass to 1e-12              {:<6} largest {:.1e}\n", mass_kept, mass_error);
  fmt::print("rho >= 0                   {}\n", positive);
  fmt::print("F not growing              {:<6} largest {:.1e} of its terms\n", decaying, energy_rise);
  fmt::print("Gibbs states kept to 1e-12 {:<6} largest {:.1e}\n", gibbs_kept, gibbs_change);
  fmt::print("failed                     {}\n", failed);
  return failed == 0 ? 0 : 1;
}
