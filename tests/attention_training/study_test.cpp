#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "experiments/attention/model_file.hpp"
#include "experiments/attention/training/attention_study.hpp"
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
