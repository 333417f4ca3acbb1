#include "solvers/rare_event/interaction_field.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>
#include <variant>

#include "core/expects.hpp"
#include "model/elementary.hpp"

namespace rieszflow::rare_event {
namespace {

constexpr std::size_t block = 64;  ///< particles whose squared distances are kept at a time
constexpr double infinity = std::numeric_limits<double>::infinity();

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RARE_EVENT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define RARE_EVENT_CLONES
#endif

/// out_j = softening^2 + |x_j - point|^2 for `count` columns of (dimension, stride) coordinates.
RARE_EVENT_CLONES
void squared_distances(const double* points, std::size_t stride, std::size_t dimension, std::size_t count,
                       const double* point, double* out) {
  for (std::size_t j = 0; j < count; ++j) {
    const double difference = points[j] - point[0];
    out[j] = difference * difference;
  }
  for (std::size_t k = 1; k < dimension; ++k) {
    const double* const coordinate = points + k * stride;
    for (std::size_t j = 0; j < count; ++j) {
      const double difference = coordinate[j] - point[k];
      out[j] += difference * difference;
    }
  }
}

/// log( prod_j (q_j + a) / prod_j (p_j + a) ) over a full block: mantissas are multiplied eight abreast,
/// exponents counted, so that one logarithm serves the block. -infinity where some q_j + a is zero.
RARE_EVENT_CLONES
double log_ratio_of_products(const double* q, const double* p, double a) {
  typedef double Lanes __attribute__((vector_size(64)));
  typedef std::int64_t Bits __attribute__((vector_size(64)));
  constexpr std::int64_t mantissa = 0x000fffffffffffff, one = 0x3ff0000000000000;
  Lanes above{}, below{};
  above += 1.0;
  below += 1.0;
  Bits exponents{}, vanished{};
  for (std::size_t j = 0; j < block; j += 8) {
    Lanes numerator, denominator;
    __builtin_memcpy(&numerator, q + j, sizeof numerator);
    __builtin_memcpy(&denominator, p + j, sizeof denominator);
    above *= numerator + a;
    below *= denominator + a;
    if (j % 16 == 8) {
      vanished |= above < std::numeric_limits<double>::min();
      Bits bits;
      __builtin_memcpy(&bits, &above, sizeof bits);
      exponents += bits >> 52;
      bits = (bits & mantissa) | one;
      __builtin_memcpy(&above, &bits, sizeof bits);
      __builtin_memcpy(&bits, &below, sizeof bits);
      exponents -= bits >> 52;
      bits = (bits & mantissa) | one;
      __builtin_memcpy(&below, &bits, sizeof bits);
    }
  }
  double ratio = 1.0;
  std::int64_t exponent = 0;
  for (int lane = 0; lane < 8; ++lane) {
    if (vanished[lane] != 0) return -std::numeric_limits<double>::infinity();
    ratio *= above[lane] / below[lane];
    exponent += exponents[lane];
  }
  return std::log(ratio) + static_cast<double>(exponent) * std::numbers::ln2;
}

/// sum_j (q_j + a)^h - (p_j + a)^h.
RARE_EVENT_CLONES
double difference_of_powers(const double* q, const double* p, std::size_t count, double a, double h) {
  double sum = 0.0;
  if (h == 0.5) {
    for (std::size_t j = 0; j < count; ++j) sum += std::sqrt(q[j] + a) - std::sqrt(p[j] + a);
  } else if (h == -0.5) {
    for (std::size_t j = 0; j < count; ++j) sum += 1.0 / std::sqrt(q[j] + a) - 1.0 / std::sqrt(p[j] + a);
  } else {
    double closest = std::numeric_limits<double>::infinity();
#pragma omp simd reduction(+ : sum) reduction(min : closest)
    for (std::size_t j = 0; j < count; ++j) {
      closest = q[j] + a < closest ? q[j] + a : closest;
      sum += elementary::exponential(h * elementary::logarithm(q[j] + a)) -
             elementary::exponential(h * elementary::logarithm(p[j] + a));
    }
    if (closest < std::numeric_limits<double>::min()) {  // coincident particles
      sum = 0.0;
      for (std::size_t j = 0; j < count; ++j) sum += std::pow(q[j] + a, h) - std::pow(p[j] + a, h);
    }
  }
  return sum;
}

}  // namespace

std::optional<std::string> InteractionField::refusal(const Model& model) {
  if (!std::isfinite(model.inverse_temperature)) {
    return "rare events of the Gibbs law need a finite inverse temperature";
  }
  for (const auto& functional : model.functionals) {
    if (functional->is_stochastic()) return "a functional on mini-batches has no Gibbs law: use all the data";
  }
  return {};
}

InteractionField::InteractionField(const Model& model, std::size_t particle_count)
    : domain_(model.domain),
      particle_count_(particle_count),
      dimension_(dimension(model.domain)),
      embedded_(dimension_),
      positions_(particle_count * dimension_),
      sum_x_(dimension_),
      sum_cos_(dimension_),
      sum_sin_(dimension_) {
  expects(!refusal(model), "a model that the Gibbs sampler can sample");
  const auto* torus = std::get_if<Torus>(&model.domain);
  const auto chord = [&](const Interaction& interaction) {
    const auto* w = std::get_if<LogarithmicInteraction>(&interaction);
    return torus != nullptr && dimension_ == 1 && w != nullptr && w->softening == 0.0;
  };
  for (const Interaction& interaction : model.interactions) {
    present_ = true;
    if (torus != nullptr && is_radial(interaction) && !chord(interaction)) {
      kernels_.push_back({.kind = Kernel::Kind::Periodic,
                          .periodic = std::make_shared<const PeriodicKernel>(*torus, interaction)});
      continue;
    }
    std::visit(
        [&]<class W>(const W& w) {
          if constexpr (std::is_same_v<W, QuadraticInteraction>) {
            quadratic_ += w.strength;
          } else if constexpr (std::is_same_v<W, CosineInteraction>) {
            cosine_ += w.strength;
          } else if constexpr (std::is_same_v<W, LowRankInteraction>) {
            low_rank_.push_back(w);
            low_rank_size_ += w.functions.size();
          } else if constexpr (std::is_same_v<W, LogarithmicInteraction>) {
            Kernel kernel{.kind = Kernel::Kind::Logarithm,
                          .strength = w.strength,
                          .softening_squared = w.softening * w.softening};
            kernels_.push_back(kernel);
            if (torus != nullptr) circle_length_ = torus->upper[0] - torus->lower[0];
          } else if constexpr (std::is_same_v<W, RieszInteraction>) {
            kernels_.push_back({.kind = Kernel::Kind::Power,
                                .strength = w.strength,
                                .exponent = w.exponent,
                                .softening_squared = w.softening * w.softening});
          } else {
            kernels_.push_back({.kind = Kernel::Kind::General, .interaction = w});
          }
        },
        interaction);
  }
  if (circle_length_ > 0.0) embedded_ = 2;
  if (!kernels_.empty()) points_.resize(embedded_ * particle_count_);
  sum_g_.resize(low_rank_size_);
  trial_g_.resize(low_rank_size_);
  values_g_.resize(low_rank_size_ * particle_count);
}

void InteractionField::embed(std::span<const double> point, std::span<double> out) const {
  if (circle_length_ > 0.0) {  // unit circle: |a - b| = 2 |sin(pi r / L)|
    const double angle = 2.0 * std::numbers::pi * point[0] / circle_length_;
    out[0] = std::cos(angle);
    out[1] = std::sin(angle);
  } else {
    std::copy(point.begin(), point.end(), out.begin());
  }
}

void InteractionField::low_rank_values(std::span<const double> point, std::span<double> out) const {
  std::size_t k = 0;
  for (const LowRankInteraction& term : low_rank_) {
    for (const auto& function : term.functions) out[k++] = (*function)(point);
  }
}

double InteractionField::periodic_value(const Kernel& kernel, std::size_t particle,
                                        std::span<const double> point) const {
  double difference[3];
  const std::span<double> displaced(difference, dimension_);
  displacement(domain_, point, {positions_.data() + particle * dimension_, dimension_}, displaced);
  return kernel.periodic->value(displaced);
}

void InteractionField::assign(std::span<const double> positions) {
  expects(positions.size() == positions_.size(), "positions: (particle, dimension)");
  std::copy(positions.begin(), positions.end(), positions_.begin());
  std::fill(sum_x_.begin(), sum_x_.end(), 0.0);
  std::fill(sum_cos_.begin(), sum_cos_.end(), 0.0);
  std::fill(sum_sin_.begin(), sum_sin_.end(), 0.0);
  std::fill(sum_g_.begin(), sum_g_.end(), 0.0);
  std::vector<double> embedded(embedded_);
  for (std::size_t i = 0; i < particle_count_; ++i) {
    const std::span<const double> x = positions.subspan(i * dimension_, dimension_);
    if (!kernels_.empty()) {
      embed(x, embedded);
      for (std::size_t k = 0; k < embedded_; ++k) points_[k * particle_count_ + i] = embedded[k];
    }
    for (std::size_t k = 0; k < dimension_; ++k) {
      sum_x_[k] += x[k];
      if (cosine_ != 0.0) {
        sum_cos_[k] += std::cos(x[k]);
        sum_sin_[k] += std::sin(x[k]);
      }
    }
    const std::span<double> g(values_g_.data() + i * low_rank_size_, low_rank_size_);
    low_rank_values(x, g);
    for (std::size_t k = 0; k < low_rank_size_; ++k) sum_g_[k] += g[k];
  }
}

double InteractionField::difference(std::size_t particle, std::span<const double> point) const {
  const std::span<const double> old(positions_.data() + particle * dimension_, dimension_);
  double sum = 0.0;
  if (!kernels_.empty()) {
    double coordinates[2][8];
    std::vector<double> large;
    double *from = coordinates[0], *to = coordinates[1];
    if (embedded_ > 8) {
      large.resize(2 * embedded_);
      from = large.data();
      to = from + embedded_;
    }
    for (std::size_t k = 0; k < embedded_; ++k) from[k] = points_[k * particle_count_ + particle];
    embed(point, {to, embedded_});
    alignas(64) double q[block], p[block];
    for (std::size_t first = 0; first < particle_count_; first += block) {
      const std::size_t count = std::min(block, particle_count_ - first);
      squared_distances(points_.data() + first, particle_count_, embedded_, count, to, q);
      squared_distances(points_.data() + first, particle_count_, embedded_, count, from, p);
      // The particle itself and the places after the last one give the same to both sides.
      if (particle >= first && particle < first + count) q[particle - first] = p[particle - first] = 1.0;
      std::fill(q + count, q + block, 1.0);
      std::fill(p + count, p + block, 1.0);
      for (const Kernel& kernel : kernels_) {
        const double a = kernel.softening_squared;
        switch (kernel.kind) {
          case Kernel::Kind::Logarithm:
            sum -= 0.5 * kernel.strength * log_ratio_of_products(q, p, a);
            break;
          case Kernel::Kind::Power:
            sum += kernel.strength / kernel.exponent *
                   difference_of_powers(q, p, count, a, -0.5 * kernel.exponent);
            break;
          case Kernel::Kind::Periodic:
            for (std::size_t j = first; j < first + count; ++j) {
              if (j != particle) sum += periodic_value(kernel, j, point) - periodic_value(kernel, j, old);
            }
            break;
          case Kernel::Kind::General:
            for (std::size_t j = 0; j < count; ++j) {
              sum += radial(kernel.interaction, q[j]).value - radial(kernel.interaction, p[j]).value;
            }
            break;
        }
      }
    }
  }
  // Sums over j != i of J|y - x_j|^2/2: the constant parts cancel in the difference.
  if (quadratic_ != 0.0) {
    const double others = static_cast<double>(particle_count_) - 1.0;
    for (std::size_t k = 0; k < dimension_; ++k) {
      const double sum_others = sum_x_[k] - old[k];
      sum += quadratic_ * (point[k] - old[k]) * (0.5 * others * (point[k] + old[k]) - sum_others);
    }
  }
  if (cosine_ != 0.0) {
    for (std::size_t k = 0; k < dimension_; ++k) {
      const double c = std::cos(old[k]), s = std::sin(old[k]);
      sum -= cosine_ *
             ((std::cos(point[k]) - c) * (sum_cos_[k] - c) + (std::sin(point[k]) - s) * (sum_sin_[k] - s));
    }
  }
  if (low_rank_size_ > 0) {
    const double* const before = values_g_.data() + particle * low_rank_size_;
    low_rank_values(point, trial_g_);
    std::size_t k = 0;
    for (const LowRankInteraction& term : low_rank_) {
      for (std::size_t f = 0; f < term.functions.size(); ++f, ++k) {
        sum += term.strength * (trial_g_[k] - before[k]) * (sum_g_[k] - before[k]);
      }
    }
  }
  return std::isnan(sum) ? infinity : sum;
}

void InteractionField::move(std::size_t particle, std::span<const double> point) {
  const std::span<double> x(positions_.data() + particle * dimension_, dimension_);
  if (low_rank_size_ > 0) {
    double* const g = values_g_.data() + particle * low_rank_size_;
    low_rank_values(point, trial_g_);
    for (std::size_t k = 0; k < low_rank_size_; ++k) {
      sum_g_[k] += trial_g_[k] - g[k];
      g[k] = trial_g_[k];
    }
  }
  for (std::size_t k = 0; k < dimension_; ++k) {
    sum_x_[k] += point[k] - x[k];
    if (cosine_ != 0.0) {
      sum_cos_[k] += std::cos(point[k]) - std::cos(x[k]);
      sum_sin_[k] += std::sin(point[k]) - std::sin(x[k]);
    }
    x[k] = point[k];
  }
  if (!kernels_.empty()) {
    double coordinates[8];
    std::vector<double> large;
    double* to = coordinates;
    if (embedded_ > 8) {
      large.resize(embedded_);
      to = large.data();
    }
    embed(point, {to, embedded_});
    for (std::size_t k = 0; k < embedded_; ++k) points_[k * particle_count_ + particle] = to[k];
  }
}

double InteractionField::energy() const {
  const double n = static_cast<double>(particle_count_);
  double sum = 0.0;  // over unordered pairs
  for (std::size_t i = 1; i < particle_count_; ++i) {
    for (const Kernel& kernel : kernels_) {
      const double a = kernel.softening_squared;
      double logarithm = 0.0;
      for (std::size_t j = 0; j < i; ++j) {
        double q = 0.0;
        for (std::size_t k = 0; k < embedded_; ++k) {
          const double difference = points_[k * particle_count_ + i] - points_[k * particle_count_ + j];
          q += difference * difference;
        }
        switch (kernel.kind) {
          case Kernel::Kind::Logarithm:
            logarithm += std::log(q + a);
            break;
          case Kernel::Kind::Power:
            sum += kernel.strength / kernel.exponent * std::pow(q + a, -0.5 * kernel.exponent);
            break;
          case Kernel::Kind::Periodic:
            sum += periodic_value(kernel, j, {positions_.data() + i * dimension_, dimension_});
            break;
          case Kernel::Kind::General:
            sum += radial(kernel.interaction, q).value;
            break;
        }
      }
      sum -= 0.5 * kernel.strength * logarithm;
    }
  }
  // Sums over all pairs from sums over particles: sum_{i != j} a_i a_j = (sum a)^2 - sum a^2.
  for (std::size_t k = 0; k < dimension_; ++k) {
    double squares = 0.0;
    for (std::size_t i = 0; i < particle_count_; ++i) {
      const double x = positions_[i * dimension_ + k];
      squares += x * x;
    }
    sum += 0.5 * quadratic_ * (n * squares - sum_x_[k] * sum_x_[k]);
    if (cosine_ != 0.0) sum -= 0.5 * cosine_ * (sum_cos_[k] * sum_cos_[k] + sum_sin_[k] * sum_sin_[k] - n);
  }
  if (low_rank_size_ > 0) {
    std::vector<double> squares(low_rank_size_, 0.0);
    for (std::size_t i = 0; i < values_g_.size(); ++i)
      squares[i % low_rank_size_] += values_g_[i] * values_g_[i];
    std::size_t k = 0;
    for (const LowRankInteraction& term : low_rank_) {
      for (std::size_t f = 0; f < term.functions.size(); ++f, ++k) {
        sum += 0.5 * term.strength * (sum_g_[k] * sum_g_[k] - squares[k]);
      }
    }
  }
  return sum / (n * n);
}

}  // namespace rieszflow::rare_event
