#pragma once
#include <cstddef>
#include <optional>

#include "experiments/large_deviations.hpp"

namespace rieszflow::large_deviations {

/// log P_N of the event in closed form (analysis/exact.hpp), where the question is one that has one:
/// Curie-Weiss on [-1,1], the log gas on [-1,1] with log((1+x)/2), on the circle with log|2 sin(x/2)|, in the
/// whole space with |x|^2, all its particles in a smaller interval, the learned kernel with cos 2x, the mean
/// of a harmonic flock. Recognised by the values of V, W and f at a few points.
std::optional<double> exact_log_probability(const Question& question, std::size_t count, double beta,
                                            double level);

}  // namespace rieszflow::large_deviations
