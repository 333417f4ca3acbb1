#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>

#include "solvers/pde/evolution.hpp"
#include "tests/pde/references.hpp"

namespace {
std::atomic<long> allocations{0};
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace rieszflow::pde {
namespace {

TEST(Allocations, NoneIsMadeByAStepOnceARunIsUnderWay) {
  for (const Scheme scheme : schemes()) {
    for (const std::size_t dimension : {1U, 2U, 3U}) {
      const Grid grid{std::vector<double>(dimension, -1.0), std::vector<double>(dimension, 1.0),
                      std::vector<std::size_t>(dimension, dimension == 1 ? 100 : 10)};
      Model model{Box{grid.lower, grid.upper}, {QuadraticPotential{1.0}}, {LogarithmicInteraction{0.5}}, 3.0};
      if (scheme == Scheme::SecondOrderUpwind) model.inverse_temperature = INFINITY;
      const MeanField field(model, grid, {});
      State state{.density = reference::density_of(
                      grid, [](const std::vector<double>& x) { return 1.0 + 0.5 * std::sin(x[0]); })};
      long after_first = -1, after_last = -1;
      run(field, state, {.scheme = scheme, .tolerance = 1e-3}, Schedule::at({0.0, 1.0}), {},
          [&](const Clock& clock) -> std::optional<RunStatus> {
            if (clock.step == 3) after_first = allocations;
            after_last = allocations;
            if (clock.step == 12) return RunStatus::StoppedByRule;
            return {};
          });
      ASSERT_GE(after_first, 0) << name(scheme);
      EXPECT_EQ(after_last, after_first) << name(scheme) << ", d = " << dimension;
      EXPECT_GT(after_first, 0);
    }
  }
}

}  // namespace
}  // namespace rieszflow::pde
