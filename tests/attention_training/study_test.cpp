#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/attention/model_file.hpp"
#include "experiments/attention/training/attention_study.hpp"
#include "experiments/attention_report.hpp"
#include "io/files.hpp"
#include "io/run_file.hpp"

namespace rieszflow::attention {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

fs::path folder(const std::string& name) {
  const fs::path path = fs::temp_directory_path() / ("rieszflow_attention_" + name);
  fs::remove_all(path);
  fs::create_directories(path);
  return path;
}

Assembly smoke(const std::string& variants, std::vector<std::string> more = {}) {
  std::vector<std::string> overrides{
      "study.size=smoke",          "study.variants=" + variants, "model.layers=1",       "model.heads=2",
      "model.head_dimensions=[4]", "model.features=[8]",         "model.feed_forward=16"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return attention::assemble(Request{.config = {}, .overrides = overrides, .seed = {}, .threads = 1});
}

/// Rows without what time measured.
Json numbers(const std::string& summary) {
  Json rows = Json::parse(summary).at("rows");
  for (Json& row : rows) {
    row.erase("train_seconds");
    row.erase("inference_seconds");
    if (row.contains("phase_a")) row["phase_a"].erase("seconds");
  }
  return rows;
}

constexpr const char* few = R"(["uniform", "softplus", "softplus/kernel", "softplus/norm_matched"])";

TEST(AttentionStudy, OfOneSeedTwiceHasTheSameNumbersAlsoInPiecesAndSideBySide) {
  const Assembly assembly = smoke(few);
  const Json once = numbers(
      run(assembly.question, {.directory = folder("once"), .resolved_config = assembly.resolved}).summary);
  ASSERT_EQ(once.size(), 4u);
  Question side_by_side = assembly.question;
  side_by_side.threads = 2;
  EXPECT_EQ(
      once,
      numbers(
          run(side_by_side, {.directory = folder("twice"), .resolved_config = assembly.resolved}).summary));

  const fs::path pieces = folder("pieces");
  int asked = 0;
  const auto outcome =
      run(assembly.question, {.directory = pieces, .resolved_config = assembly.resolved, .interrupted = [&] {
                                return ++asked > 25;
                              }});
  ASSERT_EQ(outcome.status, RunStatus::Interrupted);
  const std::size_t done = Json::parse(outcome.summary).at("rows").size();
  EXPECT_LT(done, 4u);
  EXPECT_TRUE(Json::parse(outcome.summary).contains("table"));  // of what is there
  EXPECT_EQ(once, numbers(run(assembly.question,
                              {.directory = pieces, .resolved_config = assembly.resolved, .resume = true})
                              .summary));
}

TEST(AttentionStudy, WritesTableDifferencesTracesAndReport) {
  const Assembly assembly = smoke(few, {"study.seeds=3"});
  const fs::path place = folder("files");
  const Json summary =
      Json::parse(run(assembly.question, {.directory = place, .resolved_config = assembly.resolved}).summary);
  EXPECT_EQ(summary.at("status"), "completed");
  bool seen = false;
  for (const Json& line : summary.at("differences"))
    seen = seen || (line.at("variant") == "softplus/kernel" && line.at("minus") == "softplus/norm_matched");
  EXPECT_TRUE(seen);
  EXPECT_EQ(summary.at("table").size(), 4u);
  for (const Json& row : summary.at("rows")) EXPECT_LT(row.at("engine_difference").get<double>(), 1e-4);
  EXPECT_GT(fs::file_size(place / "report.html"), 2000u);
  const io::RunReader reader(place / "run.h5");
  EXPECT_GE(reader.series("phase_a/layer0/head1/held_out_alignment").value.size(), 2u);
}

Assembly map_of(const std::string& name, const std::string& regimes,
                std::vector<std::string> overrides = {}) {
  const fs::path file = folder(name) / "map.toml";
  io::write_text(file, R"([study]
variants = ["softplus", "softplus/kernel", "softplus/norm_matched"]
seeds = 2
size = "smoke"
[[dataset]]
type = "selection"
[model]
heads = 2
head_dimensions = [4, 2]
features = [8]
feed_forward = 16
[phase_a]
repulsions = [0.1, 1]
)" + regimes);
  return attention::assemble(Request{.config = file, .overrides = overrides, .seed = {}, .threads = 1});
}

TEST(AttentionMap, IsTheUnionOfItsRegimesAndDoesNothingTwice) {
  const auto rows = [](const std::string& regimes) {
    return row_count(map_of("union", regimes, {"study.size=full"}).question);
  };
  // two seeds, two dimensions: vanilla and norm-matched do not depend on lambda, the kernel takes two
  EXPECT_EQ(rows(""), 2u * 2u * (1u + 2u + 1u));
  // a regime has the first value of whatever it does not name
  EXPECT_EQ(rows("[[regime]]\n"), 2u * 3u);
  EXPECT_EQ(rows("[[regime]]\nhead_dimensions = [2]\nseeds = 3\n"), 3u * 3u);
  // the second adds free norms, for the kernel and its control, and one seed of everything
  EXPECT_EQ(rows("[[regime]]\n[[regime]]\nnorms = [\"held\", \"free\"]\nseeds = 3\n"), 3u * 5u);
  EXPECT_EQ(rows("[[regime]]\nvariants = [\"uniform\"]\n[[regime]]\n"), 2u * 4u);
}

TEST(AttentionMap, ComparesTheKernelWithTheControlOfItsOwnNorms) {
  const Assembly assembly = map_of("norms", "[[regime]]\nnorms = [\"held\", \"free\"]\n");
  const Json summary = Json::parse(
      run(assembly.question, {.directory = folder("map_norms"), .resolved_config = assembly.resolved})
          .summary);
  std::map<std::string, double> row, minus;
  for (const Json& one : summary.at("rows"))
    row[one.at("variant").get<std::string>() + one.at("norms").dump()] = one.at("log_loss");
  for (const Json& line : summary.at("differences")) {
    if (line.at("variant") != "softplus/kernel") continue;
    const std::string key = line.at("minus").get<std::string>() + line.at("norms").dump();
    EXPECT_FALSE(minus.contains(key)) << key;
    minus[key] = line.at("log_loss").at("mean");
  }
  for (const std::string norms : {"\"held\"", "\"free\""}) {
    EXPECT_DOUBLE_EQ(minus.at("softplus" + norms),
                     row.at("softplus/kernel" + norms) - row.at("softplusnull"));
    EXPECT_DOUBLE_EQ(minus.at("softplus/norm_matched" + norms),
                     row.at("softplus/kernel" + norms) - row.at("softplus/norm_matched" + norms));
  }
  EXPECT_NE(row.at("softplus/norm_matched\"held\""), row.at("softplus/norm_matched\"free\""));
}

TEST(AttentionStudy, WithoutAWarmStartLearnsAtTheRandomStart) {
  const Assembly assembly = smoke(R"(["softplus/kernel"])", {"training.warm_start_epochs=0"});
  const Json summary = Json::parse(
      run(assembly.question, {.directory = folder("no_warm"), .resolved_config = assembly.resolved}).summary);
  const Assembly both = smoke(R"(["softplus/kernel"])", {"study.phase_a_at_start=true"});
  const Json twice = Json::parse(
      run(both.question, {.directory = folder("with_warm"), .resolved_config = both.resolved}).summary);
  const auto alignments = [](const Json& row, const char* placed) {
    const Json& layer = row.at(placed).at("layers").at(0);
    return std::pair{layer.at("alignment_before").get<double>(), layer.at("alignment_after").get<double>()};
  };
  const Json &alone = summary.at("rows").at(0), &second = twice.at("rows").at(0);
  EXPECT_FALSE(alone.contains("phase_a"));
  EXPECT_EQ(alignments(alone, "phase_a_at_start"), alignments(second, "phase_a_at_start"));
  EXPECT_NE(alignments(second, "phase_a"), alignments(second, "phase_a_at_start"));
  EXPECT_EQ(summary.at("phase_a").at(0).at("placed"), "at initialisation");
}

/// A finished row with all that the report wants.
Json finished(const std::string& variant, int dimension, int seed, double accuracy) {
  Json row{{"status", "completed"}, {"dataset", "selection-16"},
           {"length", 16},          {"variant", variant},
           {"seed", seed},          {"head_dimension", dimension},
           {"features", 16},        {"noise", 0.0},
           {"accuracy", accuracy},  {"scaled", {{"log_loss", 0.5}, {"ece", 0.1}}}};
  for (const char* key : {"repulsion", "exponent", "inverse_temperature", "move", "norms"})
    row[key] = nullptr;
  for (const char* key : {"mcc", "log_loss", "brier", "ece", "ece_equal_mass", "class_ece", "ece_floor",
                          "temperature", "dev_log_loss", "train_seconds"})
    row[key] = 0.5;
  return row;
}

TEST(AttentionReport, NamesTheDifferencesThatAreSeenAndCountsTheOthers) {
  Json summary{{"name", "map"}, {"status", "completed"}, {"data", Json::array()}, {"rows", Json::array()}};
  const double gains[] = {0.09, 0.1, 0.11}, noise[] = {-0.1, 0.11, 0.01};
  for (int seed = 0; seed < 3; ++seed)
    for (const int dimension : {2, 4}) {
      const double vanilla = 0.7 + 0.05 * seed, gain = dimension == 4 ? gains[seed] : noise[seed];
      summary["rows"].push_back(finished("favor", dimension, seed, vanilla));
      summary["rows"].push_back(finished("favor/kernel", dimension, seed, vanilla + gain));
    }
  conclude(summary);
  ASSERT_EQ(summary.at("findings").size(), 2u) << summary.at("findings");
  // Student's 97.5 % point for three seeds is 4.303: 0.1 +- 4.303 * 0.01 / sqrt(3)
  EXPECT_EQ(summary.at("findings").at(0),
            "selection-16, d = 4, favor/kernel minus favor: accuracy +10.00 [+7.52, +12.48] points, log-loss "
            "+0.0000 [+0.0000, +0.0000] (3 seeds): better.");
  EXPECT_EQ(summary.at("findings").at(1),
            "Kernel minus vanilla: a difference in accuracy or log-loss is seen in 1 of 2 comparisons (95 % "
            "intervals; chance alone gives up to 1).");
  const fs::path place = folder("page");
  io::write_text(place / "summary.json", summary.dump());
  write_report(place);
  const std::string page = io::read_text(place / "report.html");
  EXPECT_NE(page.find("d = 4, favor: kernel − vanilla"), std::string::npos);
  EXPECT_NE(page.find("<b>+10.00 [7.52, 12.48]</b>"), std::string::npos);
  EXPECT_NE(page.find(">+0.67 [−"), std::string::npos) << "not bold";
}

TEST(AttentionConfig, NamesWhatIsWrongInARegime) {
  try {
    map_of("wrong",
           "[[regime]]\nnorms = [\"hold\"]\n[[regime]]\ndatasets = [\"selection-17\"]\n"
           "[[regime]]\nexponents = [4]\n[[regime]]\nvariants = [\"bag_of_bigrams\"]\n"
           "[[dataset]]\ntype = \"selection\"\n");
    FAIL();
  } catch (const config::ConfigError& error) {
    const std::string text = error.what();
    for (const char* part :
         {"\"hold\" is not allowed", "no [[dataset]] is \"selection-17\"", "dimension 4 of a head",
          "two of them are \"selection-16\"", "is bag_of_bigrams alone"})
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(AttentionConfig, NamesWhatIsWrong) {
  try {
    smoke(R"(["softplus/kernal", "uniform/kernel"])", {"phase_a.exponents=[7]"});
    FAIL();
  } catch (const config::ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("softplus/kernal"), std::string::npos);
    EXPECT_NE(text.find("uniform/kernel"), std::string::npos);
    EXPECT_NE(text.find("dimension 4 of a head"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace rieszflow::attention
