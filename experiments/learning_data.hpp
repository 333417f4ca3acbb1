#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

/// Labelled data sets for kernel learning: made by a formula or read from a table, split, standardised.
namespace rieszflow::learning {

struct Dataset {
  std::string name;
  std::size_t dimension = 0;
  std::size_t classes = 2;
  std::vector<double> points{};            ///< (row, dimension), row-major
  std::vector<int> labels{};               ///< (row), 0..classes-1
  std::vector<std::string> inputs{};       ///< (dimension) names
  std::vector<std::string> class_names{};  ///< (class)

  std::size_t count() const { return labels.size(); }
};

/// Points x ~ N(0, I), label 1 where sum_k cos(<w_k, x> + b_k) > 0: a few hidden frequencies w_k of equal
/// length in random directions, random phases b_k. What the label depends on is a mixture of plane waves; a
/// feature map that finds the w_k needs one feature each.
struct HiddenFrequencies {
  std::size_t dimension = 10;
  std::size_t frequencies = 3;
  double radius = 2.0;  ///< |w_k|
  std::size_t train_rows = 1000;
  std::size_t test_rows = 2000;
};

struct Noise {
  double label =
      0.0;  ///< probability that a training label is replaced by another class; test labels stay clean
  double input =
      0.0;  ///< standard deviation added to every input, train and test, in units of the input's own
};

/// Training and test part in standardised inputs: mean 0 and variance 1 over the training rows.
struct Split {
  Dataset train;
  Dataset test;
  std::vector<double> means{};  ///< (dimension) that were subtracted
  std::vector<double>
      scales{};  ///< (dimension) that were divided by; 1 for a constant input, which becomes 0
  std::vector<std::string> constant_inputs{};
  std::vector<std::size_t> train_rows{};  ///< (training row) its row in the table, from 0; synthetic: empty
  std::vector<std::size_t> test_rows{};   ///< (test row) the same
};

struct SplitOptions {
  double train_fraction = 0.7;
  std::size_t most_train_rows = 2000;
  std::size_t most_test_rows = 10000;
};

/// The frequencies, the data and the noise belong to the seed.
Split hidden_frequency_split(const HiddenFrequencies& options, const Noise& noise, std::uint64_t seed);

/// A data set read from a file, or what is wrong with it.
struct DatasetReading {
  Dataset dataset;
  std::vector<std::string> problems;  ///< "file:line: what"; empty when the data set is good
};

/// A CSV file (io/csv.hpp) with a label column; the distinct label values in increasing order are the
/// classes, all other columns are inputs. Problems: no such column, one class only, more than `most_classes`
/// values, a class of fewer than `fewest_rows` rows, no input that varies.
DatasetReading read_dataset(const std::filesystem::path& file, const std::string& label);

inline constexpr std::size_t most_classes = 100;
inline constexpr std::size_t fewest_rows =
    5;  ///< per class, so that training, validation and test can each have one

/// Random split, each class in proportion (at least one row of each class on both sides), then noise, then
/// standardisation; belongs to the seed. Rows come in random order.
Split random_split(const Dataset& dataset, const SplitOptions& options, const Noise& noise,
                   std::uint64_t seed);

/// The rows in two parts, each class in proportion: (1 - fraction, fraction), random order, at least one row
/// of each class in both. Keyed by (seed, repeat).
std::pair<std::vector<std::size_t>, std::vector<std::size_t>> stratified_parts(std::span<const int> labels,
                                                                               std::size_t classes,
                                                                               double fraction,
                                                                               std::uint64_t seed,
                                                                               std::uint64_t repeat);

/// At most `most_rows` rows, evenly spread over the file, standardised and divided by their median distance:
/// what fixed features of length scale 1 see.
Dataset standardised(const Dataset& dataset, std::size_t most_rows);

/// The given rows, in that order.
Dataset rows(const Dataset& dataset, std::span<const std::size_t> chosen);

}  // namespace rieszflow::learning
