#include "summation/terms.hpp"

#include <variant>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

using simd::RadialKernel;
using simd::RadialKind;

RadialTerm riesz_term(const RieszInteraction& w) {
  RadialTerm term{
      {.softening_squared = w.softening * w.softening, .exponent = w.exponent}, w.strength, w.strength};
  term.kernel.kind = w.exponent == 1.0    ? RadialKind::InverseFirst
                     : w.exponent == 2.0  ? RadialKind::InverseSquare
                     : w.exponent == -1.0 ? RadialKind::Distance
                                          : RadialKind::Power;
  return term;
}

}  // namespace

InteractionTerms::InteractionTerms(const Model& model) {
  const std::size_t d = dimension(model.domain);
  const bool periodic = std::holds_alternative<Torus>(model.domain);
  for (const Interaction& interaction : model.interactions) {
    std::visit(
        [&]<class W>(const W& w) {
          if constexpr (std::is_same_v<W, CosineInteraction>) {
            cosine += w.strength;
          } else if constexpr (std::is_same_v<W, LowRankInteraction>) {
            low_rank.push_back(w);
          } else {
            expects(!periodic, "radial interactions on a torus are periodised by the model");
            if constexpr (std::is_same_v<W, RieszInteraction>) {
              if (d == 1 && w.exponent == -1.0 && w.softening == 0.0) {
                ordered += w.strength;
              } else {
                radial.push_back(riesz_term(w));
              }
            } else if constexpr (std::is_same_v<W, LogarithmicInteraction>) {
              radial.push_back(
                  {{.kind = RadialKind::Logarithm, .softening_squared = w.softening * w.softening},
                   w.strength,
                   w.strength});
            } else if constexpr (std::is_same_v<W, GaussianInteraction>) {
              radial.push_back({{.kind = RadialKind::Gaussian, .length = w.length},
                                w.strength / (w.length * w.length),
                                w.strength});
            } else if constexpr (std::is_same_v<W, MorseInteraction>) {
              radial.push_back({{.kind = RadialKind::Morse,
                                 .repulsion = w.repulsion_strength,
                                 .repulsion_length = w.repulsion_length,
                                 .attraction = w.attraction_strength,
                                 .attraction_length = w.attraction_length},
                                1.0,
                                1.0});
            } else if constexpr (std::is_same_v<W, QuadraticInteraction>) {
              quadratic += w.strength;
            } else {
              static_assert(std::is_same_v<W, ExpressionInteraction>);
              scalar.push_back(w);
            }
          }
        },
        interaction);
  }
}

}  // namespace rieszflow
