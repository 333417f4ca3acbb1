#include "summation/one_particle_sum.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/expects.hpp"
#include "potentials/expression.hpp"
#include "summation/terms.hpp"

namespace rieszflow {

struct OneParticleSum::Implementation {
  InteractionTerms terms;
  std::size_t particle_count, dimension, stride;
  std::vector<double> positions;  ///< columns, simd::Columns
  std::vector<double> center;     ///< (dimension) mean at the last load; the sums below are taken about it
  std::vector<double> first, second;    ///< sum of x - center; sum of (x - center)^2; (dimension)
  std::vector<double> cosines, sines;   ///< sums of cos x, sin x; (dimension)
  std::vector<double> functions;        ///< sums of g_k over particles; all low-rank terms in a row
  std::vector<double> function_values;  ///< (particle, function)
  std::vector<double> scratch, row_force, gradient, point_;

  Implementation(const Model& model, std::size_t count)
      : terms(model),
        particle_count(count),
        dimension(rieszflow::dimension(model.domain)),
        stride((count + simd::padding - 1) / simd::padding * simd::padding),
        positions(dimension * stride, 0.0),
        center(dimension),
        scratch(dimension > 3 ? 4 * simd::padding * dimension : 0),
        row_force(dimension),
        gradient(dimension),
        point_(dimension) {
    std::size_t count_functions = 0;
    for (const LowRankInteraction& term : terms.low_rank) count_functions += term.functions.size();
    functions.resize(count_functions);
    function_values.resize(count_functions * particle_count);
  }

  double& x(std::size_t particle, std::size_t k) {
    return positions[simd::Columns{.stride = stride, .dimension = dimension}.place(particle, k)];
  }

  /// The sums += sign * what particle i at its present place adds to them.
  void count_in(std::size_t i, double sign) {
    for (std::size_t k = 0; k < dimension; ++k) {
      const double c = x(i, k);
      first[k] += sign * (c - center[k]);
      second[k] += sign * (c - center[k]) * (c - center[k]);
      if (terms.cosine != 0.0) cosines[k] += sign * std::cos(c), sines[k] += sign * std::sin(c);
      point_[k] = c;
    }
    std::size_t index = 0;
    for (const LowRankInteraction& term : terms.low_rank) {
      for (const auto& g : term.functions) {
        double& value = function_values[i * functions.size() + index];
        if (sign > 0.0) value = (*g)(point_);
        functions[index++] += sign * value;
      }
    }
  }

  void load(std::span<const double> from) {
    expects(from.size() == particle_count * dimension, "positions are (particle, dimension)");
    std::ranges::fill(center, 0.0);
    for (std::size_t i = 0; i < particle_count; ++i) {
      for (std::size_t k = 0; k < dimension; ++k) {
        x(i, k) = from[i * dimension + k];
        center[k] += x(i, k) / static_cast<double>(particle_count);
      }
    }
    first.assign(dimension, 0.0);
    second.assign(dimension, 0.0);
    cosines.assign(dimension, 0.0);
    sines.assign(dimension, 0.0);
    std::ranges::fill(functions, 0.0);
    for (std::size_t i = 0; i < particle_count; ++i) count_in(i, 1.0);
  }

  double at(std::size_t i, std::span<const double> point, std::span<double> force) {
    std::ranges::fill(force, 0.0);
    double value = 0.0;
    const simd::Columns columns{positions.data(), nullptr, stride, dimension};
    for (const RadialTerm& term : terms.radial) {
      value += term.energy_scale * simd::direct_kernels().row(term.kernel, columns, particle_count, i,
                                                              point.data(), row_force.data(), scratch.data());
      for (std::size_t k = 0; k < dimension; ++k) force[k] += term.force_scale * row_force[k];
    }
    for (const PeriodicTerm& term : terms.periodic) {
      value += term.row(point.data(), columns, 0, i, force.data(), false);
      value += term.row(point.data(), columns, i + 1, particle_count, force.data(), false);
    }
    for (const ExpressionInteraction& term : terms.scalar) value += add_scalar(term, i, point, force);
    const double others = static_cast<double>(particle_count) - 1.0;
    for (std::size_t k = 0; k < dimension; ++k) {
      if (terms.quadratic != 0.0) {
        // Sums over the others about the centre: sum (p - x_j)^2 = n p^2 - 2 p S1 + S2.
        const double own = x(i, k) - center[k], p = point[k] - center[k];
        const double s1 = first[k] - own, s2 = second[k] - own * own;
        value += 0.5 * terms.quadratic * (others * p * p - 2.0 * p * s1 + s2);
        force[k] -= terms.quadratic * (others * p - s1);
      }
      if (terms.cosine != 0.0) {
        const double c = cosines[k] - std::cos(x(i, k)), s = sines[k] - std::sin(x(i, k));
        value -= terms.cosine * (std::cos(point[k]) * c + std::sin(point[k]) * s);
        force[k] += terms.cosine * (std::cos(point[k]) * s - std::sin(point[k]) * c);
      }
    }
    if (terms.ordered != 0.0) {
      double distance = 0.0, imbalance = 0.0;
      for (std::size_t j = 0; j < particle_count; ++j) {
        if (j == i) continue;
        const double difference = point[0] - positions[j];
        distance += std::abs(difference);
        imbalance += (difference > 0.0) - (difference < 0.0);
      }
      value -= terms.ordered * distance;
      force[0] += terms.ordered * imbalance;
    }
    std::size_t index = 0;
    for (const LowRankInteraction& term : terms.low_rank) {
      for (const auto& g : term.functions) {
        const double rest =
            term.strength * (functions[index] - function_values[i * functions.size() + index]);
        value += rest * g->value_and_gradient(point, gradient);
        for (std::size_t k = 0; k < dimension; ++k) force[k] -= rest * gradient[k];
        ++index;
      }
    }
    const double count = static_cast<double>(particle_count);
    for (double& component : force) component /= count;
    return value / count;
  }

  double add_scalar(const ExpressionInteraction& term, std::size_t i, std::span<const double> point,
                    std::span<double> force) {
    const Interaction w = term;
    double value = 0.0;
    for (std::size_t j = 0; j < particle_count; ++j) {
      if (j == i) continue;
      double squared = 0.0;
      for (std::size_t k = 0; k < dimension; ++k) squared += (point[k] - x(j, k)) * (point[k] - x(j, k));
      const RadialValue pair = radial(w, squared);
      value += pair.value;
      for (std::size_t k = 0; k < dimension; ++k) force[k] += pair.force_over_r * (point[k] - x(j, k));
    }
    return value;
  }
};

OneParticleSum::OneParticleSum(const Model& model, std::size_t particle_count)
    : implementation_(std::make_unique<Implementation>(model, particle_count)) {}
OneParticleSum::~OneParticleSum() = default;
OneParticleSum::OneParticleSum(OneParticleSum&&) noexcept = default;
OneParticleSum& OneParticleSum::operator=(OneParticleSum&&) noexcept = default;

void OneParticleSum::load(std::span<const double> positions) { implementation_->load(positions); }

double OneParticleSum::at(std::size_t particle, std::span<const double> point, std::span<double> force) {
  return implementation_->at(particle, point, force);
}

void OneParticleSum::move(std::size_t particle, std::span<const double> point) {
  Implementation& all = *implementation_;
  all.count_in(particle, -1.0);
  for (std::size_t k = 0; k < all.dimension; ++k) all.x(particle, k) = point[k];
  all.count_in(particle, 1.0);
}

void OneParticleSum::position(std::size_t particle, std::span<double> out) const {
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = implementation_->x(particle, k);
}

}  // namespace rieszflow
