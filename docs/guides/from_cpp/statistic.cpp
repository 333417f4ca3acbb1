// A statistic of one's own: how probable is it that the empirical measure mu_N of a Gibbs law puts its mean
// beyond a level? Without interaction the answer is known, which makes a test.
#include <cmath>
#include <cstdio>
#include <span>

#include "solvers/rare_event/tail_probability.hpp"

using namespace rieszflow;

int main() {
  const Model model{
      .domain = Box{{-6.0}, {6.0}}, .potentials = {QuadraticPotential{}}, .inverse_temperature = 2.0};
  const rare_event::Statistic mean =
      rare_event::mean_of("mean", [](std::span<const double> point) { return point[0]; });
  const rare_event::Event beyond{.lower = 0.75};

  constexpr std::size_t count = 20;
  rare_event::Options options{.replicates = 8, .sweeps = 1000, .seed = 1};
  const rare_event::TailProbability found = rare_event::tail_probability(model, count, mean, beyond, options);
  if (found.status != RunStatus::Completed) {
    std::fprintf(stderr, "%s\n", found.message.c_str());
    return 1;
  }
  // The mean of N independent N(0, 1/beta) is N(0, 1/(beta N)).
  const double exact =
      std::log(0.5 * std::erfc(beyond.lower * std::sqrt(model.inverse_temperature * count / 2.0)));
  std::printf("log P = %.3f(%.3f) by %s, exact %.3f\n", found.log_probability, found.standard_error,
              std::string(rare_event::name(found.method)).c_str(), exact);
  return std::abs(found.log_probability - exact) < 5.0 * found.standard_error ? 0 : 1;
}
