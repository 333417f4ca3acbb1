#include "experiments/attention/bag_of_bigrams.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <set>

#include "analysis/classification.hpp"
#include "core/expects.hpp"

namespace rieszflow::text {
namespace {

using Vector = Eigen::VectorXd;

/// Words and bigrams of a sentence, each once, in order of first occurrence.
std::vector<std::string> grams(const std::string& sentence) {
  const std::vector<std::string> list = words(sentence);
  std::vector<std::string> out;
  std::set<std::string> seen;
  const auto add = [&](std::string gram) {
    if (seen.insert(gram).second) out.push_back(std::move(gram));
  };
  for (std::size_t k = 0; k < list.size(); ++k) {
    add(list[k]);
    if (k + 1 < list.size()) add(std::string(list[k]).append(" ").append(list[k + 1]));
  }
  return out;
}

/// A feature of one row: its name and value. Names with a leading '#' are numbers, not occurrences.
struct Feature {
  std::string name;
  double value = 1.0;
};

std::vector<Feature> features_of(const TextData& data, std::size_t row) {
  std::vector<Feature> out;
  const std::vector<std::string> first = grams(data.first[row]);
  if (!data.pairs) {
    for (const std::string& gram : first) out.push_back({gram});
    return out;
  }
  const std::vector<std::string> second = grams(data.second[row]);
  const std::set<std::string> in_first(first.begin(), first.end()), in_second(second.begin(), second.end());
  // Shares of words (order 0) and bigrams (order 1) that are common, and whether nothing differs.
  double common[2] = {}, either[2] = {};
  for (const auto& [list, others] : {std::pair(&first, &in_second), std::pair(&second, &in_first)}) {
    for (const std::string& gram : *list) {
      const int order = gram.find(' ') == std::string::npos ? 0 : 1;
      const bool shared = others->contains(gram);
      either[order] += shared ? 0.5 : 1.0;
      common[order] += shared ? 0.5 : 0.0;
      if (!shared) {
        out.push_back({"one " + gram});
      } else if (list == &first) {
        out.push_back({"both " + gram});
      }
    }
  }
  for (int order = 0; order < 2; ++order) {
    const double share = either[order] > 0.0 ? common[order] / either[order] : 1.0;
    const std::string name = order == 0 ? "#words" : "#bigrams";
    out.push_back({name, 4.0 * share});
    out.push_back({name + " squared", 4.0 * share * share});
    out.push_back({name + " all", either[order] == common[order] ? 1.0 : 0.0});
  }
  const double n = static_cast<double>(first.size()), m = static_cast<double>(second.size());
  out.push_back({"#lengths", 4.0 * std::min(n, m) / std::max({n, m, 1.0})});
  const auto lead = [](const std::vector<std::string>& list) {
    return list.empty() ? std::string() : list.front();
  };
  out.push_back({"#first word", lead(first) == lead(second) ? 1.0 : 0.0});
  return out;
}

/// Rows in compressed form.
struct SparseRows {
  std::vector<std::size_t> begin{0};
  std::vector<std::size_t> feature;
  std::vector<double> value;

  std::size_t count() const { return begin.size() - 1; }
};

/// Minimum of a smooth convex function by L-BFGS with ten pairs and a line search of Armijo. Source: Nocedal
/// and Wright, Numerical Optimization (2006), algorithm 7.4.
Vector minimum(const std::function<double(const Vector&, Vector&)>& function, Vector x) {
  constexpr std::size_t memory = 10;
  Vector gradient(x.size()), next_gradient(x.size());
  double value = function(x, gradient);
  std::deque<std::pair<Vector, Vector>> pairs;  // steps s and gradient differences y
  for (int iteration = 0; iteration < 500; ++iteration) {
    if (gradient.lpNorm<Eigen::Infinity>() < 1e-6) break;
    Vector direction = -gradient;
    std::vector<double> alphas;
    for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair) {
      const double alpha = pair->first.dot(direction) / pair->first.dot(pair->second);
      alphas.push_back(alpha);
      direction -= alpha * pair->second;
    }
    if (!pairs.empty()) {
      const auto& [s, y] = pairs.back();
      direction *= s.dot(y) / y.squaredNorm();
    } else {
      direction /= std::max(1.0, gradient.norm());
    }
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      const auto& [s, y] = pairs[k];
      direction += (alphas[pairs.size() - 1 - k] - y.dot(direction) / s.dot(y)) * s;
    }
    const double slope = direction.dot(gradient);
    double length = 1.0, next_value = value;
    Vector next;
    for (; length > 1e-10; length /= 2) {
      next = x + length * direction;
      next_value = function(next, next_gradient);
      if (next_value <= value + 1e-4 * length * slope) break;
    }
    if (!(next_value < value)) break;
    const bool settled = value - next_value < 1e-9 * (1.0 + std::abs(value));
    Vector s = next - x, y = next_gradient - gradient;
    if (s.dot(y) > 1e-12 * y.squaredNorm()) {
      pairs.emplace_back(std::move(s), std::move(y));
      if (pairs.size() > memory) pairs.pop_front();
    }
    x = std::move(next);
    std::swap(gradient, next_gradient);
    value = next_value;
    if (settled) break;
  }
  return x;
}

double dot(const SparseRows& rows, std::size_t a, const Vector& weights) {
  double sum = 0.0;
  for (std::size_t k = rows.begin[a]; k < rows.begin[a + 1]; ++k)
    sum += rows.value[k] * weights[static_cast<Eigen::Index>(rows.feature[k])];
  return sum;
}

}  // namespace

BagOfBigrams BagOfBigrams::fit(const TextData& train, const TextData& dev, const BagOptions& options) {
  expects(train.labels.size() == train.count() && train.count() > 0 && dev.labels.size() == dev.count() &&
              dev.count() > 0 && !options.penalties.empty(),
          "labelled rows");
  BagOfBigrams out;
  SparseRows rows;
  std::vector<std::array<double, 2>> counts;  // (feature, class)
  std::vector<bool> is_number;
  for (std::size_t a = 0; a < train.count(); ++a) {
    for (const Feature& feature : features_of(train, a)) {
      const auto [found, fresh] = out.features_.emplace(feature.name, out.features_.size());
      if (fresh) {
        counts.push_back({});
        is_number.push_back(feature.name.front() == '#' && train.pairs);
      }
      counts[found->second][static_cast<std::size_t>(train.labels[a])] += 1.0;
      rows.feature.push_back(found->second);
      rows.value.push_back(feature.value);
    }
    rows.begin.push_back(rows.feature.size());
  }
  const std::size_t feature_count = counts.size();
  double totals[2] = {};
  for (std::size_t f = 0; f < feature_count; ++f)
    for (std::size_t c = 0; c < 2; ++c) totals[c] += is_number[f] ? 0.0 : counts[f][c] + options.smoothing;
  Vector ratios(static_cast<Eigen::Index>(feature_count));
  for (std::size_t f = 0; f < feature_count; ++f)
    ratios[static_cast<Eigen::Index>(f)] = is_number[f]
                                               ? 1.0
                                               : std::log((counts[f][1] + options.smoothing) / totals[1]) -
                                                     std::log((counts[f][0] + options.smoothing) / totals[0]);
  for (std::size_t k = 0; k < rows.value.size(); ++k)
    rows.value[k] *= ratios[static_cast<Eigen::Index>(rows.feature[k])];

  const auto n = static_cast<double>(rows.count());
  const auto m = static_cast<Eigen::Index>(feature_count);
  double penalty = 0.0;
  const auto loss = [&](const Vector& x, Vector& gradient) {
    gradient = penalty * x;
    gradient[m] = 0.0;
    double sum = 0.5 * penalty * x.head(m).squaredNorm();
    for (std::size_t a = 0; a < rows.count(); ++a) {
      const double sign = train.labels[a] == 1 ? 1.0 : -1.0, score = sign * (dot(rows, a, x) + x[m]);
      sum += (std::max(-score, 0.0) + std::log1p(std::exp(-std::abs(score)))) / n;
      const double slope = -sign / (1.0 + std::exp(score)) / n;
      for (std::size_t k = rows.begin[a]; k < rows.begin[a + 1]; ++k)
        gradient[static_cast<Eigen::Index>(rows.feature[k])] += slope * rows.value[k];
      gradient[m] += slope;
    }
    return sum;
  };
  std::vector<double> penalties = options.penalties;
  std::sort(penalties.rbegin(), penalties.rend());  // strongest first: each fit starts from the one before
  Vector x = Vector::Zero(m + 1);
  double best = std::numeric_limits<double>::infinity();
  int worse = 0;  // penalties since the best one: below it the loss on dev only grows
  for (const double candidate : penalties) {
    penalty = candidate;
    x = minimum(loss, x);
    BagOfBigrams now;
    now.features_.swap(out.features_);  // on loan
    const Vector weights = x.head(m).cwiseProduct(ratios);
    now.weights_.assign(weights.data(), weights.data() + m);
    now.intercept_ = x[m];
    now.penalty_ = candidate;
    const double dev_loss = log_loss_of_logits(now.logits(dev), dev.labels, 2);
    now.features_.swap(out.features_);
    if (!(dev_loss < best)) {
      if (++worse == 2) break;
      continue;
    }
    worse = 0;
    best = dev_loss;
    out.weights_ = now.weights_;
    out.intercept_ = now.intercept_;
    out.penalty_ = candidate;
  }
  return out;
}

std::vector<double> BagOfBigrams::log_odds(const TextData& data) const {
  std::vector<double> out(data.count(), intercept_);
  for (std::size_t a = 0; a < data.count(); ++a)
    for (const Feature& feature : features_of(data, a))
      if (const auto found = features_.find(feature.name); found != features_.end())
        out[a] += weights_[found->second] * feature.value;
  return out;
}

std::vector<double> BagOfBigrams::logits(const TextData& data) const {
  std::vector<double> out;
  for (const double odds : log_odds(data)) {
    out.push_back(0.0);
    out.push_back(odds);
  }
  return out;
}

}  // namespace rieszflow::text
