#include "solvers/rare_event/gibbs_chain.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "core/expects.hpp"

namespace rieszflow::rare_event {
namespace {

constexpr std::uint64_t refresh_every = 64;  ///< sweeps between sums anew: running sums collect round-off
constexpr std::uint64_t local_every = 4;     ///< sweeps that move by steps, beside a proposal

/// A step that is uniform on all points: the extent of a box, whose walls fold it, half a period.
double largest_step_of(const Domain& domain) {
  if (std::holds_alternative<WholeSpace>(domain)) return std::numeric_limits<double>::infinity();
  const Box box = bounding_box(domain);
  double widest = 0.0;
  for (std::size_t k = 0; k < box.lower.size(); ++k) widest = std::max(widest, box.upper[k] - box.lower[k]);
  return std::holds_alternative<Box>(domain) ? widest : 0.5 * widest;
}

}  // namespace

GibbsChain::GibbsChain(const Model& model, std::size_t particle_count, const Statistic* statistic,
                       std::uint64_t seed, std::uint64_t stream)
    : model_(model),
      particle_count_(particle_count),
      dimension_(dimension(model.domain)),
      statistic_(statistic),
      noise_(seed, NoisePurpose::GibbsMove),
      stream_(stream),
      field_(model, particle_count),
      positions_(particle_count * dimension_),
      potential_(particle_count),
      uniforms_(dimension_ + 1),
      trial_(dimension_),
      largest_step_(largest_step_of(model.domain)) {
  expects(particle_count > 0, "at least one particle");
  if (statistic_ != nullptr) {
    components_.resize(particle_count * statistic_->component_count);
    sums_.resize(statistic_->component_count);
    trial_components_.resize(statistic_->component_count);
    trial_sums_.resize(statistic_->component_count);
  }
  if (!model_.functionals.empty()) forces_.resize(positions_.size());
  set_step(std::isfinite(largest_step_) ? largest_step_ : 1.0);
}

void GibbsChain::scatter() {
  const bool bounded = !std::holds_alternative<WholeSpace>(model_.domain);
  const Box box = bounded ? bounding_box(model_.domain) : Box{};
  const NoiseStream noise = noise_;
  std::vector<double> uniforms(dimension_);
  // Counters above 2^62 belong to the start, those below to the sweeps.
  constexpr std::uint64_t start = 1ULL << 62;
  for (std::size_t i = 0; i < particle_count_; ++i) {
    const std::span<double> x(positions_.data() + i * dimension_, dimension_);
    if (!bounded) {
      noise.gaussians(stream_, start, i, x);
      continue;
    }
    for (std::uint64_t attempt = 0;; ++attempt) {
      noise.uniforms(stream_, start + attempt, i, uniforms);
      for (std::size_t k = 0; k < dimension_; ++k) {
        x[k] = box.lower[k] + uniforms[k] * (box.upper[k] - box.lower[k]);
      }
      if (contains(model_.domain, x)) break;
    }
  }
  refresh();
}

void GibbsChain::assign(std::span<const double> positions) {
  expects(positions.size() == positions_.size(), "positions: (particle, dimension)");
  std::copy(positions.begin(), positions.end(), positions_.begin());
  refresh();
}

double GibbsChain::log_density(std::size_t particle) const {
  return proposal_->log_density({positions_.data() + particle * dimension_, dimension_});
}

void GibbsChain::set_proposal(std::shared_ptr<const Proposal> proposal) {
  proposal_ = std::move(proposal);
  log_densities_.resize(proposal_ ? particle_count_ : 0);
  for (std::size_t i = 0; i < log_densities_.size(); ++i) log_densities_[i] = log_density(i);
}

double GibbsChain::functional_energy(std::span<const double> positions) const {
  double sum = 0.0;
  for (const auto& functional : model_.functionals) {
    sum += functional->add_forces(positions, particle_count_, 0, 0, forces_);
  }
  return sum;
}

void GibbsChain::refresh() {
  field_.assign(positions_);
  for (std::size_t i = 0; i < log_densities_.size(); ++i) log_densities_[i] = log_density(i);
  for (std::size_t i = 0; i < particle_count_; ++i) {
    potential_[i] = potential(model_, {positions_.data() + i * dimension_, dimension_});
  }
  functional_ = functional_energy(positions_);
  energy_ = (field_.present() ? field_.energy() : 0.0) + functional_;
  if (statistic_ == nullptr) return;
  const std::size_t components = statistic_->component_count;
  std::fill(sums_.begin(), sums_.end(), 0.0);
  for (std::size_t i = 0; i < particle_count_; ++i) {
    const std::span<double> own(components_.data() + i * components, components);
    statistic_->components({positions_.data() + i * dimension_, dimension_}, own);
    for (std::size_t k = 0; k < components; ++k) sums_[k] += own[k];
  }
  g_ = value(*statistic_, sums_, components_, particle_count_);
}

void GibbsChain::sweep() {
  if (sweep_ % refresh_every == 0 && sweep_ > 0) refresh();
  const double n = static_cast<double>(particle_count_), beta = model_.inverse_temperature;
  const bool ball = std::holds_alternative<Ball>(model_.domain);
  const bool whole = std::holds_alternative<WholeSpace>(model_.domain);
  const std::size_t components = statistic_ == nullptr ? 0 : statistic_->component_count;
  const bool draws = proposal_ != nullptr && sweep_ % local_every != 0;
  for (std::size_t i = 0; i < particle_count_; ++i) {
    noise_.uniforms(stream_, sweep_, i, uniforms_);
    const std::span<double> x(positions_.data() + i * dimension_, dimension_);
    double trial_log_density = 0.0;
    if (draws) {
      trial_log_density = proposal_->draw({uniforms_.data(), dimension_}, trial_);
    } else {
      for (std::size_t k = 0; k < dimension_; ++k) trial_[k] = x[k] + step_ * (2.0 * uniforms_[k] - 1.0);
    }
    if (ball) {
      if (!contains(model_.domain, trial_)) continue;
    } else if (!whole && !draws) {
      reflect(model_.domain, trial_);
    }

    double g = g_;
    if (statistic_ != nullptr) {
      double* const own = components_.data() + i * components;
      statistic_->components(trial_, trial_components_);
      for (std::size_t k = 0; k < components; ++k)
        trial_sums_[k] = sums_[k] + (trial_components_[k] - own[k]);
      if (statistic_->kind == Statistic::Kind::Largest) {
        std::swap_ranges(own, own + components, trial_components_.begin());
        g = value(*statistic_, trial_sums_, components_, particle_count_);
        std::swap_ranges(own, own + components, trial_components_.begin());
      } else {
        g = value(*statistic_, trial_sums_, {}, particle_count_);
      }
      if (event && !(event->depth(g) > floor)) continue;
    }

    const double trial_potential = potential(model_, trial_);
    double exponent = beta * (trial_potential - potential_[i]);
    double pair_difference = 0.0, trial_functional = functional_;
    if (field_.present() && coupling != 0.0) {
      pair_difference = field_.difference(i, trial_);
      exponent += beta * coupling * pair_difference / n;
    }
    if (!model_.functionals.empty()) {
      std::swap_ranges(x.begin(), x.end(), trial_.begin());
      trial_functional = functional_energy(positions_);
      std::swap_ranges(x.begin(), x.end(), trial_.begin());
      exponent += beta * n * coupling * (trial_functional - functional_);
    }
    exponent += bias.energy(g, n) - bias.energy(g_, n);
    if (draws) exponent += trial_log_density - log_densities_[i];
    // A NaN (infinite V on both sides) is not accepted.
    if (!(exponent <= 0.0 || uniforms_[dimension_] < std::exp(-exponent))) continue;
    if (field_.present() && coupling == 0.0) pair_difference = field_.difference(i, trial_);

    if (field_.present()) field_.move(i, trial_);
    energy_ += pair_difference / (n * n) + (trial_functional - functional_);
    functional_ = trial_functional;
    potential_[i] = trial_potential;
    std::copy(trial_.begin(), trial_.end(), x.begin());
    if (proposal_ != nullptr) log_densities_[i] = draws ? trial_log_density : log_density(i);
    if (statistic_ != nullptr) {
      std::copy(trial_components_.begin(), trial_components_.end(),
                components_.begin() + static_cast<std::ptrdiff_t>(i * components));
      sums_ = trial_sums_;
      g_ = g;
    }
    ++accepted_;
  }
  attempted_ += static_cast<std::int64_t>(particle_count_);
  moves_ += static_cast<std::int64_t>(particle_count_);
  ++sweep_;
}

double GibbsChain::acceptance() const {
  return attempted_ == 0 ? 0.0 : static_cast<double>(accepted_) / static_cast<double>(attempted_);
}

void GibbsChain::tune() {
  set_step(step_ * std::clamp(std::exp(2.0 * (acceptance() - 0.5)), 0.5, 2.0));
  forget_acceptance();
}

bool GibbsChain::finite() const {
  return std::isfinite(energy_) && std::isfinite(g_) &&
         std::all_of(potential_.begin(), potential_.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace rieszflow::rare_event
