#include "summation/terms.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <variant>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

using simd::RadialKernel;
using simd::RadialKind;

RadialTerm radial_term(const RieszInteraction& w) {
  RadialTerm term{
      {.softening_squared = w.softening * w.softening, .exponent = w.exponent}, w.strength, w.strength};
  term.kernel.kind = w.exponent == 1.0    ? RadialKind::InverseFirst
                     : w.exponent == 2.0  ? RadialKind::InverseSquare
                     : w.exponent == -1.0 ? RadialKind::Distance
                                          : RadialKind::Power;
  if (term.kernel.kind == RadialKind::Power) {
    term.power = std::make_shared<simd::PowerTable>(0.5 * w.exponent + 1.0);
    term.kernel.power = term.power.get();
  }
  return term;
}

RadialTerm radial_term(const LogarithmicInteraction& w) {
  return {{.kind = RadialKind::Logarithm, .softening_squared = w.softening * w.softening},
          w.strength,
          w.strength};
}

RadialTerm radial_term(const GaussianInteraction& w) {
  return {{.kind = RadialKind::Gaussian, .length = w.length}, w.strength / (w.length * w.length), w.strength};
}

RadialTerm radial_term(const MorseInteraction& w) {
  return {{.kind = RadialKind::Morse,
           .repulsion = w.repulsion_strength,
           .repulsion_length = w.repulsion_length,
           .attraction = w.attraction_strength,
           .attraction_length = w.attraction_length},
          1.0,
          1.0};
}

}  // namespace

PeriodicTerm::PeriodicTerm(const Torus& torus, const Interaction& interaction, const RadialTerm& term)
    : torus_(torus), kernel_(torus, interaction), term_(term) {}

double PeriodicTerm::row(const double* point, const simd::Columns& columns, std::size_t begin,
                         std::size_t end, double* own_force, bool newton) const {
  constexpr std::size_t chunk = 128, most = 3;  // periodised kernels exist up to d = 3
  const std::size_t d = columns.dimension;
  std::array<double, most * chunk> displacements, forces;
  std::array<double, chunk> squared, force_over_r, values, image_values;
  double sum = 0.0;
  for (std::size_t start = begin; start < end; start += chunk) {
    const std::size_t count = std::min(chunk, end - start);
    const std::size_t padded = (count + simd::padding - 1) / simd::padding * simd::padding;
    for (std::size_t k = 0; k < d; ++k) {
      const double length = torus_.upper[k] - torus_.lower[k], half = 0.5 * length;
      double* const z = displacements.data() + k * count;
      const double* const x = columns.positions + k * columns.stride + start;
      for (std::size_t j = 0; j < count; ++j) {
        const double direct = point[k] - x[j];
        z[j] = direct >= half ? direct - length : (direct < -half ? direct + length : direct);
      }
    }
    std::fill_n(values.begin(), count, 0.0);
    std::fill_n(forces.begin(), d * count, 0.0);
    kernel_.add_corrections(count, std::span(displacements).first(d * count), std::span(values).first(count),
                            std::span(forces).first(d * count));
    const auto images = kernel_.images();
    for (std::size_t image = 0; image < images.size(); image += d) {
      std::fill_n(squared.begin(), padded, 1.0);
      for (std::size_t j = 0; j < count; ++j) squared[j] = 0.0;
      for (std::size_t k = 0; k < d; ++k) {
        for (std::size_t j = 0; j < count; ++j) {
          const double z = displacements[k * count + j] + images[image + k];
          squared[j] += z * z;
        }
      }
      simd::direct_kernels().pointwise(term_.kernel, padded, squared.data(), force_over_r.data(),
                                       image_values.data());
      for (std::size_t j = 0; j < count; ++j) values[j] += term_.energy_scale * image_values[j];
      for (std::size_t k = 0; k < d; ++k) {
        for (std::size_t j = 0; j < count; ++j) {
          forces[k * count + j] +=
              term_.force_scale * force_over_r[j] * (displacements[k * count + j] + images[image + k]);
        }
      }
    }
    for (std::size_t j = 0; j < count; ++j) sum += values[j];
    for (std::size_t k = 0; k < d; ++k) {
      for (std::size_t j = 0; j < count; ++j) own_force[k] += forces[k * count + j];
      if (!newton) continue;
      double* const theirs = columns.forces + k * columns.stride + start;
      for (std::size_t j = 0; j < count; ++j) theirs[j] -= forces[k * count + j];
    }
  }
  return sum;
}

InteractionTerms::InteractionTerms(const Model& model) {
  const std::size_t d = dimension(model.domain);
  const Torus* const torus = std::get_if<Torus>(&model.domain);
  for (const Interaction& interaction : model.interactions) {
    std::visit(
        [&]<class W>(const W& w) {
          if constexpr (std::is_same_v<W, CosineInteraction>) {
            cosine += w.strength;
          } else if constexpr (std::is_same_v<W, LowRankInteraction>) {
            low_rank.push_back(w);
          } else if constexpr (std::is_same_v<W, QuadraticInteraction>) {
            expects(!torus, "a quadratic interaction has no periodic meaning");
            quadratic += w.strength;
          } else if constexpr (std::is_same_v<W, ExpressionInteraction>) {
            expects(!torus, "a function of r has no periodic meaning");
            scalar.push_back(w);
          } else {
            if constexpr (std::is_same_v<W, RieszInteraction>) {
              if (!torus && d == 1 && w.exponent == -1.0 && w.softening == 0.0) {
                ordered += w.strength;
                return;
              }
            }
            if (torus) {
              periodic.emplace_back(*torus, interaction, radial_term(w));
            } else {
              radial.push_back(radial_term(w));
            }
          }
        },
        interaction);
  }
}

}  // namespace rieszflow
