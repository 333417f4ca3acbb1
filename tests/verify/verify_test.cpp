#include "experiments/verify.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "config/document.hpp"
#include "experiments/verify_tools.hpp"

namespace rieszflow::verify {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Folder {
  fs::path path =
      fs::temp_directory_path() / ("rieszflow_verify_" + std::to_string(::getpid()) + "_" +
                                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

std::string text_of(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

Outcome tried(std::vector<std::string> only, const fs::path& folder, int threads = 1, bool resume = false,
              std::function<bool()> interrupted = {}) {
  fs::create_directories(folder);
  return run({.quick = true, .only = std::move(only), .seed = 1, .threads = threads},
             {.directory = folder,
              .resolved_config = "[verify]\n",
              .resume = resume,
              .interrupted = std::move(interrupted)});
}

TEST(Catalogue, HoldsAtLeastFortyClaimsWithNamesOfTheirOwnAndReferences) {
  std::set<std::string> names;
  for (const Chapter& chapter : catalogue()) {
    for (const Claim& claim : chapter.claims) {
      EXPECT_TRUE(names.insert(claim.name).second) << claim.name;
      EXPECT_FALSE(claim.claim.empty()) << claim.name;
      EXPECT_FALSE(claim.reference.empty()) << claim.name;
      EXPECT_NE(claim.measure, nullptr) << claim.name;
    }
  }
  EXPECT_GE(names.size(), 40U);
}

TEST(Judgement, OfADeterministicClaimKnowsItsOrder) {
  const auto passes = [](const Finding& f) { return std::abs(f.measured.value - f.expected) <= f.tolerance; };
  const auto power = [](double order) {
    return [order](std::size_t n) { return 1.0 + std::pow(static_cast<double>(n), -order); };
  };
  EXPECT_TRUE(passes(by_resolution(power(2.0), 20, 2.0, 1.0)));
  EXPECT_FALSE(passes(by_resolution(power(1.0), 20, 2.0, 1.0))) << "first order is not second";
  EXPECT_FALSE(passes(by_resolution(power(2.0), 20, 2.0, 1.01))) << "converges to something else";
  EXPECT_FALSE(passes(by_resolution([](std::size_t) { return std::nan(""); }, 20, 2.0, 1.0)));
}

TEST(Judgement, OfARandomClaimIsFourStandardErrorsAndNeedsThem) {
  EXPECT_DOUBLE_EQ(by_chance({.value = 1.0, .standard_error = 0.1, .samples = 9}, 1.2).tolerance, 0.4);
  const Finding alone = by_chance({.value = 1.0, .standard_error = std::nan(""), .samples = 1}, 1.0);
  EXPECT_FALSE(verdict("", "", alone.measured, alone.expected, alone.tolerance, "").passed);
}

TEST(Verify, VerdictsDependNeitherOnOtherClaimsNorOnThreads) {
  const Folder folder;
  const Json two = Json::parse(tried({"interval_density", "flock_spread"}, folder.path / "two", 2).summary);
  const Json one = Json::parse(tried({"flock_spread"}, folder.path / "one", 1).summary);
  ASSERT_EQ(two.at("verdicts").size(), 2U);
  for (const char* key : {"name", "measured", "standard_error", "expected", "tolerance", "passed"})
    EXPECT_EQ(two.at("verdicts")[1].at(key), one.at("verdicts")[0].at(key)) << key;
  EXPECT_EQ(two.at("passed"), 2);
  const std::string page = text_of(folder.path / "two" / "report.html");
  EXPECT_NE(page.find("2 of 2 claims passed"), std::string::npos);
  EXPECT_NE(page.find("interval_density"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder.path / "two" / "figures" / "interval_density.svg"));
}

TEST(Verify, ResumesWithTheVerdictsThatAreThere) {
  const Folder folder;
  int asked = 0;
  const Outcome first =
      tried({"heat_mode", "flock_spread"}, folder.path, 1, false, [&] { return ++asked > 1; });
  EXPECT_EQ(first.status, RunStatus::Interrupted);
  EXPECT_EQ(first.message, "1 of 2 claims are done");
  const Json kept = Json::parse(text_of(folder.path / "rows.json"));
  const Outcome second = tried({"heat_mode", "flock_spread"}, folder.path, 1, true);
  const Json rows = Json::parse(second.summary).at("verdicts");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0], kept[0]) << "seconds included: it was not tried again";
  EXPECT_EQ(second.status, RunStatus::Completed);
}

TEST(Verify, AnUnknownClaimIsTheUsersFault) {
  try {
    assemble({.config = {}, .overrides = {"verify.only=[\"interval_densty\"]"}});
    FAIL() << "must refuse";
  } catch (const config::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("interval_density"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(assemble({.config = {}, .overrides = {"verify.quick=true"}}).question.quick);
}

}  // namespace
}  // namespace rieszflow::verify
