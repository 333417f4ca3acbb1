#pragma once
#include <string>

#include "model/model.hpp"

namespace rieszflow {

/// One line each, in words and formulas, for reports: "quadratic: 1 |x|^2 / 2", "riesz s = 0.5, strength 1",
/// ...
std::string description(const Domain& domain);
std::string description(const Potential& potential);
std::string description(const Interaction& interaction);
/// Domain, potentials, interactions and temperature of a model in one sentence.
std::string description(const Model& model);

}  // namespace rieszflow
