#include "experiments/learning_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

#include "core/expects.hpp"
#include "core/noise.hpp"
#include "features/feature_map.hpp"
#include "io/csv.hpp"

namespace rieszflow::learning {
namespace {

// Blocks of random numbers of one data set, so that none is used twice.
enum Draw : std::uint64_t { Frequencies, Phases, TrainPoints, TestPoints, LabelFlips, TrainNoise, TestNoise };

std::vector<double> gaussians(std::uint64_t seed, Draw draw, std::size_t count) {
  std::vector<double> out(count);
  NoiseStream(seed, NoisePurpose::SyntheticData).gaussians(0, 0, draw, out);
  return out;
}

std::vector<double> uniforms(std::uint64_t seed, Draw draw, std::size_t count) {
  std::vector<double> out(count);
  NoiseStream(seed, NoisePurpose::SyntheticData).uniforms(0, 0, draw, out);
  return out;
}

std::vector<double> deviations(const Dataset& data, std::vector<double>& means) {
  const std::size_t n = data.count(), d = data.dimension;
  means.assign(d, 0.0);
  std::vector<double> squares(d, 0.0);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t k = 0; k < d; ++k) means[k] += data.points[a * d + k] / static_cast<double>(n);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t k = 0; k < d; ++k) {
      const double difference = data.points[a * d + k] - means[k];
      squares[k] += difference * difference / static_cast<double>(n);
    }
  for (std::size_t k = 0; k < d; ++k) {
    // A constant column leaves the rounding of its own mean.
    squares[k] = std::sqrt(squares[k]);
    if (squares[k] <= 1e-12 * std::abs(means[k])) squares[k] = 0.0;
  }
  return squares;
}

void add_input_noise(Dataset& data, const std::vector<double>& scales, double size, std::uint64_t seed,
                     Draw draw) {
  if (size == 0.0) return;
  const std::vector<double> noise = gaussians(seed, draw, data.points.size());
  for (std::size_t k = 0; k < noise.size(); ++k)
    data.points[k] += size * scales[k % data.dimension] * noise[k];
}

void flip_labels(Dataset& data, double probability, std::uint64_t seed) {
  if (probability == 0.0) return;
  const std::vector<double> draws = uniforms(seed, LabelFlips, 2 * data.count());
  for (std::size_t a = 0; a < data.count(); ++a) {
    if (draws[2 * a] >= probability) continue;
    const auto others = static_cast<int>(data.classes) - 1;  // one of the other classes, each equally likely
    data.labels[a] =
        (data.labels[a] + 1 + std::min(static_cast<int>(draws[2 * a + 1] * others), others - 1)) %
        static_cast<int>(data.classes);
  }
}

Split finished(Dataset train, Dataset test, const Noise& noise, std::uint64_t seed) {
  Split split{.train = std::move(train), .test = std::move(test)};
  const std::vector<double> clean_scales = deviations(split.train, split.means);
  add_input_noise(split.train, clean_scales, noise.input, seed, TrainNoise);
  add_input_noise(split.test, clean_scales, noise.input, seed, TestNoise);
  flip_labels(split.train, noise.label, seed);
  split.scales = deviations(split.train, split.means);
  const std::size_t d = split.train.dimension;
  for (std::size_t k = 0; k < d; ++k) {
    if (split.scales[k] > 0.0) continue;
    split.scales[k] = 1.0;
    split.constant_inputs.push_back(split.train.inputs[k]);
  }
  for (Dataset* data : {&split.train, &split.test})
    for (std::size_t k = 0; k < data->points.size(); ++k) {
      const std::size_t input = k % d;
      data->points[k] = (data->points[k] - split.means[input]) / split.scales[input];
    }
  return split;
}

}  // namespace

Split hidden_frequency_split(const HiddenFrequencies& options, const Noise& noise, std::uint64_t seed) {
  const std::size_t d = options.dimension, waves = options.frequencies;
  std::vector<double> frequencies = gaussians(seed, Frequencies, waves * d);
  const std::vector<double> phases = uniforms(seed, Phases, waves);
  for (std::size_t wave = 0; wave < waves; ++wave) {
    double square = 0.0;
    for (std::size_t k = 0; k < d; ++k) square += frequencies[wave * d + k] * frequencies[wave * d + k];
    for (std::size_t k = 0; k < d; ++k) frequencies[wave * d + k] *= options.radius / std::sqrt(square);
  }
  const auto part = [&](Draw draw, std::size_t count) {
    Dataset data{
        .name = "synthetic", .dimension = d, .classes = 2, .points = gaussians(seed, draw, count * d)};
    data.class_names = {"0", "1"};
    for (std::size_t k = 0; k < d; ++k) data.inputs.push_back(fmt::format("x{}", k + 1));
    for (std::size_t a = 0; a < count; ++a) {
      double sum = 0.0;
      for (std::size_t wave = 0; wave < waves; ++wave) {
        double score = 2.0 * std::numbers::pi * phases[wave];
        for (std::size_t k = 0; k < d; ++k) score += frequencies[wave * d + k] * data.points[a * d + k];
        sum += std::cos(score);
      }
      data.labels.push_back(sum > 0.0 ? 1 : 0);
    }
    return data;
  };
  return finished(part(TrainPoints, options.train_rows), part(TestPoints, options.test_rows), noise, seed);
}

DatasetReading read_dataset(const std::filesystem::path& file, const std::string& label) {
  DatasetReading out;
  io::CsvReading reading = io::read_csv(file);
  out.problems = std::move(reading.problems);
  if (!out.problems.empty()) return out;
  const io::NumberTable& table = reading.table;
  const auto problem = [&](const std::string& what) { out.problems.push_back(file.string() + ": " + what); };

  const auto found = std::find(table.columns.begin(), table.columns.end(), label);
  if (found == table.columns.end()) {
    std::string names;
    for (std::size_t k = 0; k < std::min<std::size_t>(table.columns.size(), 12); ++k)
      names += (k > 0 ? ", " : "") + table.columns[k];
    problem(fmt::format("has no column \"{}\"; its columns are {}{}", label, names,
                        table.columns.size() > 12 ? ", ..." : ""));
    return out;
  }
  if (table.columns.size() < 2) {
    problem("has no column beside the label");
    return out;
  }
  const auto label_column = static_cast<std::size_t>(found - table.columns.begin());
  std::map<double, std::size_t> counts;
  for (std::size_t a = 0; a < table.rows; ++a)
    ++counts[table.values[a * table.columns.size() + label_column]];
  if (counts.size() == 1)
    problem(fmt::format("all {} rows have the label {}: there is nothing to tell apart", table.rows,
                        counts.begin()->first));
  if (counts.size() > most_classes)
    problem(fmt::format("column \"{}\" has {} different values, at most {} classes are possible", label,
                        counts.size(), most_classes));
  if (!out.problems.empty()) return out;
  for (const auto& [value, count] : counts)
    if (count < fewest_rows)
      problem(fmt::format("class {} has {} rows, must have at least {}", value, count, fewest_rows));

  Dataset& data = out.dataset;
  data.name = file.stem().string();
  data.dimension = table.columns.size() - 1;
  data.classes = counts.size();
  for (const auto& entry : counts) data.class_names.push_back(fmt::format("{}", entry.first));
  for (std::size_t k = 0; k < table.columns.size(); ++k)
    if (k != label_column) data.inputs.push_back(table.columns[k]);
  for (std::size_t a = 0; a < table.rows; ++a) {
    const double* row = table.values.data() + a * table.columns.size();
    for (std::size_t k = 0; k < table.columns.size(); ++k)
      if (k != label_column) data.points.push_back(row[k]);
    data.labels.push_back(static_cast<int>(std::distance(counts.begin(), counts.find(row[label_column]))));
  }
  std::vector<double> means;
  const std::vector<double> scales = deviations(data, means);
  for (std::size_t k = 0; k < scales.size(); ++k) {
    if (!std::isfinite(scales[k]))
      problem("the numbers of column \"" + data.inputs[k] +
              "\" are so large that their variance is no number");
  }
  if (std::all_of(scales.begin(), scales.end(), [](double scale) { return scale == 0.0; }))
    problem("every input column is constant: there is nothing to learn from");
  return out;
}

std::pair<std::vector<std::size_t>, std::vector<std::size_t>> stratified_parts(std::span<const int> labels,
                                                                               std::size_t classes,
                                                                               double fraction,
                                                                               std::uint64_t seed,
                                                                               std::uint64_t repeat) {
  std::vector<double> keys(labels.size());
  NoiseStream(seed, NoisePurpose::DataSplit).uniforms(repeat, 0, 0, keys);
  std::vector<std::size_t> order(labels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  std::vector<std::size_t> totals(classes, 0), taken(classes, 0);
  for (const int label : labels) ++totals[static_cast<std::size_t>(label)];
  std::pair<std::vector<std::size_t>, std::vector<std::size_t>> parts;
  for (const std::size_t row : order) {
    const auto c = static_cast<std::size_t>(labels[row]);
    const auto share = std::clamp<std::size_t>(
        static_cast<std::size_t>(std::lround(fraction * static_cast<double>(totals[c]))), 1,
        std::max<std::size_t>(totals[c], 2) - 1);
    (taken[c]++ < share ? parts.second : parts.first).push_back(row);
  }
  return parts;
}

Dataset rows(const Dataset& dataset, std::span<const std::size_t> chosen) {
  Dataset out = dataset;
  out.points.clear();
  out.labels.clear();
  for (const std::size_t row : chosen) {
    const auto begin = dataset.points.begin() + static_cast<std::ptrdiff_t>(row * dataset.dimension);
    out.points.insert(out.points.end(), begin, begin + static_cast<std::ptrdiff_t>(dataset.dimension));
    out.labels.push_back(dataset.labels[row]);
  }
  return out;
}

Dataset standardised(const Dataset& dataset, std::size_t most_rows) {
  const std::size_t used = std::min(most_rows, dataset.count());
  std::vector<std::size_t> chosen;
  for (std::size_t k = 0; k < used; ++k) chosen.push_back(k * dataset.count() / used);
  Dataset data = finished(rows(dataset, chosen), rows(dataset, chosen), {}, 0).train;
  const double length = median_distance(data.points, data.dimension);
  for (double& value : data.points) value /= length;
  return data;
}

Split random_split(const Dataset& dataset, const SplitOptions& options, const Noise& noise,
                   std::uint64_t seed) {
  expects(options.train_fraction > 0.0 && options.train_fraction < 1.0, "a part of the rows for training");
  const auto parts = stratified_parts(dataset.labels, dataset.classes, 1.0 - options.train_fraction, seed, 0);
  // A cap keeps the proportions too: the first rows of a random order of each class.
  const auto capped = [&](const std::vector<std::size_t>& part, std::size_t most) {
    if (part.size() <= most) return part;
    std::vector<int> labels;
    for (const std::size_t row : part) labels.push_back(dataset.labels[row]);
    const double fraction = static_cast<double>(most) / static_cast<double>(part.size());
    std::vector<std::size_t> out;
    for (const std::size_t place : stratified_parts(labels, dataset.classes, fraction, seed, 1).second)
      out.push_back(part[place]);
    return out;
  };
  const auto train = capped(parts.first, options.most_train_rows),
             test = capped(parts.second, options.most_test_rows);
  Split split = finished(rows(dataset, train), rows(dataset, test), noise, seed);
  split.train_rows = train;
  split.test_rows = test;
  return split;
}

}  // namespace rieszflow::learning
