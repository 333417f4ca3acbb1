#include "experiments/attention/selection_task.hpp"

#include <algorithm>
#include <cmath>

#include "core/expects.hpp"
#include "core/noise.hpp"

namespace rieszflow::text {

TokenSet selection_rows(const SelectionTask& task, std::size_t first, std::size_t count, std::uint64_t seed,
                        std::uint64_t stream) {
  expects(task.keys >= 2 && task.values >= 2 && task.targets >= 1 && task.targets < task.length,
          "two keys, two values, a target among the tokens");
  const NoiseStream noise(seed, NoisePurpose::SelectionTask);
  const std::size_t L = task.length;
  TokenSet out;
  // label, query, noise yes or no, noisy label; two numbers for each other token; one for each place
  std::vector<double> draws(4 + 2 * L + L);
  for (std::size_t row = first; row < first + count; ++row) {
    noise.uniforms(stream, 0, row, draws);
    const auto choice = [&](std::size_t at, std::size_t options) {
      return std::min(static_cast<std::size_t>(draws[at] * static_cast<double>(options)), options - 1);
    };
    const std::size_t label = choice(0, task.values), query = choice(1, task.keys);
    std::vector<std::int32_t> tokens{static_cast<std::int32_t>(2 + query)};
    for (std::size_t t = 1; t < L; ++t) {
      const bool target = t <= task.targets;
      // any of the other keys: the last one stands in for the key that the query asks for
      std::size_t key = target ? query : choice(4 + 2 * t, task.keys - 1);
      if (!target && key == query) key = task.keys - 1;
      const std::size_t value = target ? label : choice(4 + 2 * t + 1, task.values);
      tokens.push_back(static_cast<std::int32_t>(2 + task.keys + key * task.values + value));
    }
    for (std::size_t t = L - 1; t > 0; --t) std::swap(tokens[t], tokens[choice(4 + 2 * L + t, t + 1)]);
    out.sequences.push_back(std::move(tokens));
    const bool noisy = draws[2] < task.label_noise;
    out.labels.push_back(static_cast<int>(noisy ? choice(3, task.values) : label));
  }
  return out;
}

}  // namespace rieszflow::text
