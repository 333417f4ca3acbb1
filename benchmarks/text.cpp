// What a folder of text tables holds, and how good a bag of bigrams is on it.
//
//   bench_text FOLDER ...       each with train.tsv, dev.tsv and, if labelled, test.tsv
#include <cstdio>
#include <ctime>

#include "analysis/classification.hpp"
#include "experiments/attention/bag_of_bigrams.hpp"
#include "experiments/attention/vocabulary.hpp"

int main(int argc, char** argv) {
  using namespace rieszflow;
  for (int k = 1; k < argc; ++k) {
    const text::Splits splits = text::read_splits(argv[k]);
    for (const auto* list : {&splits.problems, &splits.notes})
      for (const std::string& sentence : *list) std::printf("%s\n", sentence.c_str());
    if (!splits.problems.empty()) return 2;
    const text::Vocabulary vocabulary = text::Vocabulary::learn(splits.train);
    std::printf(
        "%s: %zu tokens, %zu of them words\n"
        "| part | rows | label 1 | words: mean | 99 %% | longest | unknown | repeated | both labels | in "
        "train |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n",
        argv[k], vocabulary.size(), vocabulary.word_count());
    for (const text::TextStatistics& s : text::statistics(splits, vocabulary))
      std::printf("| %s | %zu | %.3f | %.1f | %zu | %zu | %.4f | %zu | %zu | %zu |\n", s.name.c_str(), s.rows,
                  s.positive, s.mean_words, s.p99_words, s.longest, s.unknown_words, s.repeated,
                  s.contradicting, s.in_train);
    const std::clock_t start = std::clock();
    const text::BagOfBigrams bag = text::BagOfBigrams::fit(splits.train, splits.dev);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const Metrics m = metrics_from_logits(bag.logits(splits.test), splits.test.labels, 2);
    std::printf(
        "bag of bigrams: accuracy %.3f, MCC %.3f, log-loss %.3f, Brier %.3f, ECE %.3f (equal mass %.3f), "
        "class "
        "ECE %.3f; penalty %g, %zu features, %.1f s CPU\n",
        m.accuracy, m.mcc, m.log_loss, m.brier, m.ece, m.ece_equal_mass, m.class_ece, bag.penalty(),
        bag.feature_count(), seconds);
  }
  return argc > 1 ? 0 : 2;
}
