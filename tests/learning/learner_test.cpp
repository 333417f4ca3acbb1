#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/noise.hpp"
#include "experiments/feature_learner.hpp"
#include "experiments/kernel_learning.hpp"
#include "experiments/learning_config.hpp"
#include "io/csv.hpp"
#include "io/files.hpp"
#include "io/run_file.hpp"

namespace rieszflow::learning {
namespace {

Question small_question() {
  Question question;
  question.name = "small";
  question.synthetic = {.dimension = 3, .frequencies = 2, .radius = 2.5, .train_rows = 300, .test_rows = 500};
  question.dimensions = {3};
  question.methods = {methods().begin(), methods().end()};
  question.feature_counts = {16};
  question.seeds = 2;
  question.learner.inverse_temperatures = {100.0};
  question.learner.repulsion = 0.01;
  question.learner.end = 30.0;
  question.learner.validation_splits = 1;
  return question;
}

Split scaled_split(const Question& question, std::uint64_t seed) {
  Split split = hidden_frequency_split(question.synthetic, {}, seed);
  const double length = median_distance(split.train.points, split.train.dimension);
  for (Dataset* data : {&split.train, &split.test})
    for (double& value : data->points) value /= length;
  return split;
}

TEST(Learner, LowersTheHamiltonianAndKeepsItsParticlesInTheDomain) {
  Question question = small_question();
  // Near data the curvature of the ridge loss makes explicit steps of 0.2 overshoot, with or without noise:
  // the Hamiltonian of the flow itself falls, and steps of 0.05 follow it.
  question.learner.timestep = 0.05;
  question.learner.check_every = 2.0;
  const Split split = scaled_split(question, 1);
  const auto start = reference_particles(question.learner.map, 16, 3, 1.0, false, 1, 0);
  const auto learned = move(question.learner, split.train, start, 1e4, 20.0, 1, {});
  ASSERT_EQ(learned.status, RunStatus::Completed);
  ASSERT_EQ(learned.trace.size(), 11u);  // 0, 2, ..., 20
  for (std::size_t k = 1; k < learned.trace.size(); ++k)
    EXPECT_LT(learned.trace[k].hamiltonian, learned.trace[k - 1].hamiltonian);
  EXPECT_LT(learned.trace.back().alignment, 0.7 * learned.trace.front().alignment);
  const Model model = learning_model(
      question.learner, 3, 1e4,
      std::make_shared<Alignment>(question.learner.map, labelled(split.train), Alignment::Options{}));
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_TRUE(contains(model.domain, {learned.particles.data() + 4 * i, 4}));
}

TEST(Learner, DependsOnTheSeedOnlyAndEverySchemeRuns) {
  Question question = small_question();
  const Split split = scaled_split(question, 1);
  const auto start = reference_particles(question.learner.map, 16, 3, 1.0, false, 1, 0);
  const auto first = learn(question.learner, question.classifier, split.train, start, 3, {});
  const auto again = learn(question.learner, question.classifier, split.train, start, 3, {});
  EXPECT_EQ(first.particles, again.particles);
  EXPECT_NE(first.particles,
            move(question.learner, split.train, start, 100.0, first.stop_time, 4, {}).particles);
  for (const auto scheme : {particle::Scheme::Projected, particle::Scheme::Mala}) {
    question.learner.scheme = scheme;
    const auto moved = move(question.learner, split.train, start, 100.0, 20.0, 3, {});
    EXPECT_EQ(moved.status, RunStatus::Completed) << moved.message;
    EXPECT_LT(moved.trace.back().alignment, moved.trace.front().alignment);
  }
}

TEST(Learner, WithoutDataPullItsParticlesKeepTheReferenceLaw) {
  // strength -> 0: the confinement alone, whose Gibbs law is N(0, I). 2000 particles in 4 dimensions: E |w|^2
  // = 4 up to sqrt(8 / 2000) = 0.063 and a step bias of h / beta = 1 %.
  Question question = small_question();
  question.learner.map = FeatureMap::Fourier;
  question.learner.strength = 1e-12;
  question.learner.repulsion = 0.0;
  question.learner.alignment = AlignmentKind::Linear;
  question.learner.end = 300.0;
  question.learner.timestep = 1.0;
  question.learner.check_every = 100.0;
  const Split split = scaled_split(question, 1);
  std::vector<double> start(3 * 2000, 0.3);
  const auto moved = move(question.learner, split.train, start, 50.0, 300.0, 5, {});
  double square = 0.0;
  for (const double w : moved.particles) square += w * w / 2000;
  EXPECT_NEAR(square, 3.0, 4 * std::sqrt(6.0 / 2000) + 0.03);
}

TEST(Learner, KeepsTheFixedFeaturesWhenNothingIsGained) {
  // Labels without any relation to the inputs: the first check of the first temperature wins unless noise
  // fits noise.
  Question question = small_question();
  Split split = scaled_split(question, 1);
  question.learner.end = 0.0;
  const auto start = reference_particles(question.learner.map, 16, 3, 1.0, false, 1, 0);
  const auto learned = learn(question.learner, question.classifier, split.train, start, 1, {});
  EXPECT_EQ(learned.particles, start);
  EXPECT_EQ(learned.stop_time, 0.0);
}

TEST(Learner, MiniBatchesWithDecayingStepsAndAnnealingLearnToo) {
  Question question = small_question();
  question.learner.alignment = AlignmentKind::SquaredLoss;
  question.learner.batch_rows = 64;
  question.learner.timestep_decay = 0.02;
  question.learner.annealing = 0.1;
  const Split split = scaled_split(question, 1);
  const auto start = reference_particles(question.learner.map, 16, 3, 1.0, false, 1, 0);
  const auto moved = move(question.learner, split.train, start, 1e4, 30.0, 1, {});
  ASSERT_EQ(moved.status, RunStatus::Completed);
  EXPECT_LT(moved.trace.back().alignment, moved.trace.front().alignment);
}

TEST(Methods, AllGiveClassifiersAndLearningFindsTheHiddenFrequencies) {
  const Question question = small_question();
  const auto trained = train_all(question, hidden_frequency_split(question.synthetic, {}, 2), 16, 2, {});
  ASSERT_EQ(trained.size(), methods().size());
  double fixed = 0.0, learned = 0.0, matched = 0.0;
  for (const Trained& one : trained) {
    EXPECT_EQ(one.row.status, "completed") << name(one.row.method);
    EXPECT_GT(one.row.metrics.accuracy, 0.45) << name(one.row.method);
    if (one.row.method == Method::Fixed) fixed = one.row.metrics.accuracy;
    if (one.row.method == Method::Learned) learned = one.row.metrics.accuracy;
    if (one.row.method == Method::NormMatched) matched = one.row.metrics.accuracy;
  }
  EXPECT_GT(learned, fixed + 0.05);
  EXPECT_GT(learned, matched + 0.05) << "it is directions that were learned, not norms";
}

TEST(Methods, TellThreeClassesApartOneAgainstTheRest) {
  // Classes by which of three plane waves is largest.
  Dataset data{.name = "waves", .dimension = 2, .classes = 3};
  data.inputs = {"x", "y"}, data.class_names = {"0", "1", "2"};
  data.points.resize(2 * 900);
  NoiseStream(3, NoisePurpose::SyntheticData).gaussians(0, 0, 0, data.points);
  for (std::size_t a = 0; a < 900; ++a) {
    const double x = 1.5 * data.points[2 * a], y = 1.5 * data.points[2 * a + 1];
    const std::array waves{std::cos(x + 2 * y), std::cos(2 * x - y), std::sin(2 * x + y)};
    data.labels.push_back(static_cast<int>(std::ranges::max_element(waves) - waves.begin()));
  }
  Question question = small_question();
  question.methods = {Method::Fixed, Method::Learned, Method::ImportanceLeverage};
  const auto trained = train_all(question, random_split(data, {}, {}, 1), 16, 1, {});
  const double chance = 1.0 / 3.0;
  EXPECT_GT(trained[0].row.metrics.accuracy, chance + 0.1);
  EXPECT_GT(trained[1].row.metrics.accuracy, trained[0].row.metrics.accuracy + 0.05);
  for (const Trained& one : trained)
    for (std::size_t a = 0; a < one.row.test_rows; ++a)
      EXPECT_NEAR(one.probabilities[3 * a] + one.probabilities[3 * a + 1] + one.probabilities[3 * a + 2], 1.0,
                  1e-12);
}

TEST(Intervals, AreStudentsAndPairedDifferencesUseEqualSeeds) {
  const Interval known = interval(std::vector<double>{1.0, 2.0, 3.0, 4.0});
  EXPECT_NEAR(known.mean, 2.5, 1e-15);
  EXPECT_NEAR(known.high - known.mean, 3.182446305 * std::sqrt(5.0 / 3 / 4), 1e-8);  // t_{0.975, 3}
  std::vector<Row> rows;
  for (const auto& [method, seed, accuracy] : {std::tuple{Method::Fixed, 1, 0.6},
                                               {Method::Learned, 1, 0.7},
                                               {Method::Fixed, 2, 0.8},
                                               {Method::Learned, 2, 0.9}}) {
    Row row;
    row.dataset = "x";
    row.method = method;
    row.features = 8;
    row.seed = static_cast<std::uint64_t>(seed);
    row.status = "completed";
    row.metrics.accuracy = accuracy;
    rows.push_back(row);
  }
  const auto result = table(rows, Method::Fixed);
  ASSERT_EQ(result.size(), 2u);
  EXPECT_NEAR(result[1].difference, 0.1, 1e-15);
  EXPECT_NEAR(result[1].difference_high - result[1].difference_low, 0.0, 1e-12)
      << "the spread between seeds cancels";
  const auto sentences = findings(rows, result, Method::Fixed);
  ASSERT_FALSE(sentences.empty());
  EXPECT_NE(sentences[0].find("learned is better than fixed"), std::string::npos);
}

TEST(Splits, AreStratifiedStandardisedAndNoisyWhereAsked) {
  const Split clean = hidden_frequency_split({.dimension = 2, .train_rows = 4000, .test_rows = 10}, {}, 3);
  const Split noisy =
      hidden_frequency_split({.dimension = 2, .train_rows = 4000, .test_rows = 10}, {.label = 0.25}, 3);
  int flips = 0;
  double mean = 0.0, square = 0.0;
  for (std::size_t a = 0; a < 4000; ++a) {
    flips += clean.train.labels[a] != noisy.train.labels[a];
    mean += clean.train.points[2 * a] / 4000;
    square += clean.train.points[2 * a] * clean.train.points[2 * a] / 4000;
  }
  EXPECT_NEAR(flips, 1000, 4 * std::sqrt(4000 * 0.25 * 0.75));
  EXPECT_EQ(clean.test.labels, noisy.test.labels);
  EXPECT_NEAR(mean, 0.0, 1e-12);
  EXPECT_NEAR(square, 1.0, 1e-12);
  const Split recorded = random_split(clean.train, {.train_fraction = 0.5, .most_train_rows = 300}, {}, 5);
  EXPECT_EQ(recorded.train_rows.size(), 300u);
  std::vector<std::size_t> both = recorded.train_rows;
  both.insert(both.end(), recorded.test_rows.begin(), recorded.test_rows.end());
  std::ranges::sort(both);
  EXPECT_TRUE(std::ranges::adjacent_find(both) == both.end()) << "no row is on both sides";
  for (std::size_t a = 0; a < 300; ++a) {
    EXPECT_EQ(recorded.train.labels[a], clean.train.labels[recorded.train_rows[a]]);
    EXPECT_NEAR(recorded.train.points[2 * a] * recorded.scales[0] + recorded.means[0],
                clean.train.points[2 * recorded.train_rows[a]], 1e-12);
  }
  std::vector<int> labels(100, 0);
  for (int k = 0; k < 10; ++k) labels[static_cast<std::size_t>(k)] = 1;
  const auto [large, small] = stratified_parts(labels, 2, 0.2, 1, 0);
  EXPECT_EQ(large.size(), 80u);
  EXPECT_EQ(std::count_if(small.begin(), small.end(), [](std::size_t row) { return row < 10; }), 2);
}

class Folder : public testing::Test {
 protected:
  std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("rieszflow_learn_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
  Folder() { std::filesystem::remove_all(path), std::filesystem::create_directories(path); }
  ~Folder() override { std::filesystem::remove_all(path); }
  std::string problems_of(const std::string& text) {
    io::write_text(path / "data.csv", text);
    std::string all;
    for (const std::string& what : read_dataset(path / "data.csv", "label").problems) all += what + "\n";
    return all;
  }
};

TEST_F(Folder, DataThatCannotBeLearnedFromAreRefusedWithASentence) {
  EXPECT_NE(problems_of("x,y\n1,2\n").find("has no column \"label\""), std::string::npos);
  EXPECT_NE(problems_of("x,label\n1,1\n2,1\n").find("all 2 rows have the label 1"), std::string::npos);
  EXPECT_NE(problems_of("label\n1\n0\n").find("no column beside the label"), std::string::npos);
  EXPECT_NE(problems_of("x,label\n1,0\n2,1\n").find("must have at least 5"), std::string::npos);
  std::string constant = "x,label\n";
  for (int k = 0; k < 12; ++k) constant += std::string("3,") + (k % 2 ? "1\n" : "0\n");
  EXPECT_NE(problems_of(constant).find("constant"), std::string::npos);
}

TEST_F(Folder, ARunWritesItsResultsAndIsTheSameForAnyNumberOfThreads) {
  Question question = small_question();
  question.methods = {Method::Fixed, Method::Learned};
  std::vector<std::string> tables;
  for (const int threads : {1, 3}) {
    question.threads = threads;
    const auto folder = path / std::to_string(threads);
    std::filesystem::create_directories(folder);
    const auto outcome = run(question, {.directory = folder,
                                        .resolved_config = "# test\n",
                                        .provenance = {},
                                        .progress = {},
                                        .interrupted = {}});
    ASSERT_EQ(outcome.status, RunStatus::Completed) << outcome.message;
    const auto summary = nlohmann::json::parse(io::read_text(folder / "summary.json"));
    EXPECT_EQ(summary["rows"].size(), 4u);
    for (const char* key : {"dataset", "method", "features", "noise", "seed", "accuracy", "mcc", "log_loss",
                            "brier", "ece", "ece_equal_mass", "train_seconds", "inference_seconds"})
      EXPECT_TRUE(summary["rows"][0].contains(key)) << key;
    tables.push_back(summary["table"].dump());
    EXPECT_TRUE(io::read_csv(folder / "predictions.csv").problems.empty());
    EXPECT_EQ(io::read_csv(folder / "features.csv").table.rows, 16u);
    EXPECT_EQ(io::read_csv(folder / "standardisation.csv").table.rows, 3u) << "means, scales, length";
    const io::RunReader reader(folder / "run.h5");
    EXPECT_FALSE(reader.position_clocks().empty());
    EXPECT_EQ(reader.series("validation/validation_loss").value.size(), 4u);
    EXPECT_EQ(reader.series("test/predicted").value.size(), 500u);
    EXPECT_TRUE(std::filesystem::exists(folder / "report.html"));
  }
  EXPECT_EQ(tables[0], tables[1]);
}

TEST_F(Folder, AnInterruptedRunContinuesWhereItStopped) {
  Question question = small_question();
  question.methods = {Method::Fixed, Method::ImportanceAlignment};
  question.seeds = 4;
  std::size_t asked = 0;
  const auto first =
      run(question,
          {.directory = path, .resolved_config = "", .provenance = {}, .progress = {}, .interrupted = [&] {
             return ++asked > 5;
           }});
  ASSERT_EQ(first.status, RunStatus::Interrupted);
  const auto second = run(question, {.directory = path,
                                     .resolved_config = "",
                                     .provenance = {},
                                     .resume = true,
                                     .progress = {},
                                     .interrupted = {}});
  ASSERT_EQ(second.status, RunStatus::Completed);
  const auto resumed = nlohmann::json::parse(second.summary);
  std::filesystem::remove_all(path), std::filesystem::create_directories(path);
  const auto whole =
      run(question,
          {.directory = path, .resolved_config = "", .provenance = {}, .progress = {}, .interrupted = {}});
  EXPECT_EQ(resumed["table"], nlohmann::json::parse(whole.summary)["table"]);
}

TEST(LearnConfig, DefaultsAreACompleteExperimentAndResolveToThemselves) {
  const Assembly assembly = learning::assemble(Request{.config = {}});
  EXPECT_TRUE(assembly.question.tables.empty());
  EXPECT_FALSE(assembly.question.methods.empty());
  EXPECT_EQ(assembly.question.learner.inverse_temperatures.size(), 2u);
  const auto file = std::filesystem::temp_directory_path() / "rieszflow_learn_resolved.toml";
  io::write_text(file, assembly.resolved);
  EXPECT_EQ(learning::assemble(Request{.config = file}).resolved, assembly.resolved);
  std::filesystem::remove(file);
}

TEST(LearnConfig, RefusesWhatCanOnlyFailAllAtOnce) {
  try {
    learning::assemble(Request{
        .config = {},
        .overrides = {"alignment.batch_rows=10", "experiment.methods=[\"fixd\"]", "data.file=/no/such.csv",
                      "dynamics.scheme=mala", "dynamics.inverse_temperatures=[inf]"}});
    FAIL();
  } catch (const config::ConfigError& error) {
    std::string all;
    for (const auto& problem : error.problems()) all += problem.text() + "\n";
    for (const char* part : {"batch_rows", "\"fixd\" is no method", "there is no such file",
                             "finite inverse temperature", "must be one of the methods"})
      EXPECT_NE(all.find(part), std::string::npos) << part << " in\n" << all;
  }
}

}  // namespace
}  // namespace rieszflow::learning
