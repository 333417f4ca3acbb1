#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "experiments/attention/text_data.hpp"

namespace rieszflow::text {

struct BagOptions {
  double smoothing = 1.0;  ///< counts added to each feature in the naive-Bayes ratio
  /// Ridge penalties of the weights, per row; the one with the smallest log-loss on `dev` is taken.
  std::vector<double> penalties{3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3};
};

/// Logistic regression on which words and word pairs occur, each scaled by its naive-Bayes log-odds ratio of
/// the training set: a baseline that small Transformers trained from nothing rarely beat. Of sentence pairs,
/// the features are words and bigrams that both sentences have, that only one of them has, and the shares of
/// shared words. Sources: Wang and Manning, ACL 2012; fitted by L-BFGS (Liu and Nocedal 1989).
class BagOfBigrams {
 public:
  static BagOfBigrams fit(const TextData& train, const TextData& dev, const BagOptions& options = {});

  /// log(p_1 / p_0) of each row.
  std::vector<double> log_odds(const TextData& data) const;
  /// (row, class) logits (0, log-odds), as `metrics_from_logits` takes them.
  std::vector<double> logits(const TextData& data) const;

  double penalty() const { return penalty_; }
  std::size_t feature_count() const { return weights_.size(); }

 private:
  std::unordered_map<std::string, std::size_t> features_;
  std::vector<double> weights_;  ///< (feature), the naive-Bayes ratio included
  double intercept_ = 0.0;
  double penalty_ = 0.0;
};

}  // namespace rieszflow::text
