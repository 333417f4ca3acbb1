#include "experiments/side_by_side.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "io/checkpoint.hpp"
#include "io/run_file.hpp"

namespace rieszflow::side_by_side {
namespace {

using Json = nlohmann::json;

/// A new empty folder, removed at the end of the test.
class Folder {
 public:
  Folder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            ("rieszflow_" + std::string(test->name()) + "_" + std::to_string(::getpid()) + "_" +
             std::to_string(count_++));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::filesystem::path path_;
};

/// Quadratic V and W from a Gaussian start: every quantity is known for all times (theory.md section 5).
struct Gaussian {
  double stiffness = 1.0, attraction = 0.5, beta = 2.0, mean = 0.7, deviation = 0.4;

  double variance(double t) const {
    const double limit = 1.0 / (beta * (stiffness + attraction));
    return limit + (deviation * deviation - limit) * std::exp(-2.0 * (stiffness + attraction) * t);
  }
  double free_energy(double t) const {
    const double m = mean * std::exp(-stiffness * t), v = variance(t);
    return 0.5 * stiffness * (m * m + v) + 0.5 * attraction * v -
           0.5 / beta * std::log(2.0 * std::acos(-1.0) * std::exp(1.0) * v);
  }
};

Question gaussian_question(std::size_t count, std::size_t replicas) {
  const Gaussian exact;
  Question question;
  question.name = "gaussian";
  question.model = {.domain = Box{{-6.0}, {6.0}},
                    .potentials = {QuadraticPotential{.stiffness = exact.stiffness}},
                    .interactions = {QuadraticInteraction{exact.attraction}},
                    .inverse_temperature = exact.beta};
  question.initial = GaussianLaw{{exact.mean}, {exact.deviation}};
  question.end = 1.0;
  question.output_every = 0.25;
  question.snapshots_every = 0.5;
  question.particles =
      ParticleSide{.count = count, .replicas = replicas, .options = {.timestep = 2e-3, .seed = 3}};
  question.density = DensitySide{.cells = {512}, .options = {}};
  return question;
}

/// Logarithmic gas between walls: close pairs and adapted steps.
Question log_gas_question(particle::Scheme scheme) {
  Question question;
  question.name = "log_gas";
  question.model = {.domain = Box{{-1.0}, {1.0}},
                    .potentials = {},
                    .interactions = {LogarithmicInteraction{}},
                    .inverse_temperature = 2.0};
  question.initial = UniformLaw{};
  question.end = 0.4;
  question.output_every = 0.1;
  question.snapshots_every = 0.1;
  question.particles =
      ParticleSide{.count = 20, .replicas = 3, .options = {.scheme = scheme, .timestep = 5e-3, .seed = 7}};
  question.density = DensitySide{.cells = {64}, .options = {}};
  return question;
}

Outcome run_in(const Folder& folder, const Question& question, bool resume = false,
               std::function<bool()> interrupted = {}) {
  return run(question, {.directory = folder.path(),
                        .resolved_config = "# made by a test\n",
                        .provenance = {},
                        .resume = resume,
                        .progress = {},
                        .interrupted = std::move(interrupted)});
}

TEST(SideBySide, BothFreeEnergiesOfTheGaussianModelAreTheExactOnes) {
  const Folder folder;
  const Outcome outcome = run_in(folder, gaussian_question(500, 8));
  ASSERT_EQ(outcome.status, RunStatus::Completed) << outcome.message;
  const Json summary = Json::parse(outcome.summary);
  const Json& curve = summary["comparison"]["free_energy"];
  ASSERT_EQ(curve["time"].size(), 5u);
  for (std::size_t row = 0; row < 5; ++row) {
    const double exact = Gaussian{}.free_energy(curve["time"][row]);
    EXPECT_NEAR(curve["density"][row], exact, 1e-4) << "second order in the cell width: 6e-5 at 512 cells";
    EXPECT_NEAR(curve["particles"][row], exact, 5.0 * curve["standard_error"][row].get<double>());
  }
  EXPECT_NEAR(summary["density"]["final"]["mass"], 1.0, 1e-12);
  EXPECT_NEAR(summary["density"]["final"]["moments"][0], 0.257515608820, 1e-4);
  EXPECT_NEAR(summary["density"]["final"]["moments"][1], 0.324703574816 + 0.257515608820 * 0.257515608820,
              1e-4);
}

TEST(SideBySide, DistancesOfParticlesAreNearThoseOfIndependentSamples) {
  const Folder folder;
  const Json summary = Json::parse(run_in(folder, gaussian_question(500, 8)).summary);
  ASSERT_GE(summary["comparison"]["distances"].size(), 3u);
  EXPECT_EQ(summary["comparison"]["distance"]["name"], "wasserstein_1");
  for (const Json& distance : summary["comparison"]["distances"]) {
    ASSERT_EQ(distance["time"].size(), 3u);
    // At the start the particles are independent samples of rho.
    EXPECT_NEAR(distance["value"][0], distance["reference"][0],
                4.0 * distance["standard_error"][0].get<double>())
        << distance["name"];
    for (std::size_t row = 0; row < 3; ++row) {
      EXPECT_LT(distance["value"][row].get<double>(), 2.0 * distance["reference"][row].get<double>());
    }
  }
}

TEST(SideBySide, DissipationIsTheDecreaseOfTheFreeEnergy) {
  const Folder folder;
  Question question = gaussian_question(2, 1);
  question.particles.reset();
  question.output_every = question.snapshots_every = 0.01;
  ASSERT_EQ(run_in(folder, question).status, RunStatus::Completed);
  const io::RunReader reader(folder.path() / "run.h5");
  const io::Series energy = reader.series("density/free_energy");
  const io::Series dissipation = reader.series("density/dissipation");
  for (std::size_t row = 1; row + 1 < energy.time.size(); ++row) {
    const double slope = (energy.value[row + 1] - energy.value[row - 1]) / 0.02;
    EXPECT_NEAR(-slope, dissipation.value[row], 2e-3 * dissipation.value[0])
        << "centred difference over 0.02";
  }
}

/// Fingerprints of the final states: equal when the states are bitwise equal.
std::pair<std::string, std::string> fingerprints(const Outcome& outcome) {
  const Json summary = Json::parse(outcome.summary);
  return {summary["particles"]["final"]["fingerprint"], summary["density"]["final"]["fingerprint"]};
}

class EachScheme : public ::testing::TestWithParam<particle::Scheme> {};

TEST_P(EachScheme, AnInterruptedRunContinuesBitwiseWithStrictlyIncreasingTimes) {
  Question question = log_gas_question(GetParam());
  if (GetParam() == particle::Scheme::Projected) {
    question.model.interactions = {LogarithmicInteraction{.strength = 1.0, .softening = 0.05}};
  }
  const Folder whole;
  const Outcome expected = run_in(whole, question);
  ASSERT_EQ(expected.status, RunStatus::Completed) << expected.message;

  const Folder pieces;
  int runs = 0;
  for (RunStatus status = RunStatus::Interrupted; status == RunStatus::Interrupted; ++runs) {
    ASSERT_LT(runs, 100);
    int asked = 0;
    const Outcome outcome = run_in(pieces, question, runs > 0, [&asked] { return ++asked > 13; });
    status = outcome.status;
    if (status != RunStatus::Interrupted) {
      ASSERT_EQ(status, RunStatus::Completed) << outcome.message;
      EXPECT_EQ(fingerprints(outcome), fingerprints(expected));
    }
  }
  EXPECT_GT(runs, 3) << "the run was cut into pieces";
  const io::RunReader a(whole.path() / "run.h5"), b(pieces.path() / "run.h5");
  ASSERT_EQ(a.series_names(), b.series_names());
  for (const std::string& name : a.series_names()) {
    EXPECT_EQ(a.series(name).time, b.series(name).time) << name;
    EXPECT_EQ(a.series(name).value, b.series(name).value) << name;
  }
}

TEST(SideBySide, ARunKilledBeforeItsFirstStepIsResumedFromItsStart) {
  Question question = log_gas_question(particle::Scheme::Reflected);
  const Folder whole, killed;
  std::filesystem::remove(killed.path());
  int asked = 0;
  const Outcome expected = run_in(whole, question, false, [&] {
    // After the first step only the start has been committed: what a kill now would leave.
    if (++asked == 1) std::filesystem::copy(whole.path(), killed.path());
    return false;
  });
  ASSERT_TRUE(std::filesystem::exists(killed.path() / "checkpoint.h5"));
  ASSERT_EQ(io::load_checkpoint(killed.path())->integers.at("step"), 0);
  const Outcome resumed = run_in(killed, question, true);
  ASSERT_EQ(resumed.status, RunStatus::Completed) << resumed.message;
  EXPECT_EQ(fingerprints(resumed), fingerprints(expected));
}

TEST_P(EachScheme, ResultsAreBitwiseTheSameForOneAndTwoThreads) {
  Question question = log_gas_question(GetParam());
  if (GetParam() == particle::Scheme::Projected) {
    question.model.interactions = {LogarithmicInteraction{.strength = 1.0, .softening = 0.05}};
  }
  const Folder one, two;
  const auto single = fingerprints(run_in(one, question));
  question.threads = 2;
  question.particles->options.summation.threads = 2;
  EXPECT_EQ(fingerprints(run_in(two, question)), single);
}

INSTANTIATE_TEST_SUITE_P(Schemes, EachScheme,
                         ::testing::Values(particle::Scheme::Projected, particle::Scheme::Reflected,
                                           particle::Scheme::Mala),
                         [](const auto& scheme) { return std::string(particle::name(scheme.param)); });

TEST(SideBySide, TheReportDrawsAsManyBinsAsAskedFor) {
  const Folder folder;
  Question question = gaussian_question(50, 2);
  question.end = 0.25;
  question.comparison_bins = 17;
  ASSERT_EQ(run_in(folder, question).status, RunStatus::Completed);
  const io::RunReader reader(folder.path() / "run.h5");
  EXPECT_EQ(reader.manifest().at("histogram_bins"), "17");
  const std::string asked = io::read_text(folder.path() / "figures" / "state_0.svg");
  question.comparison_bins = 64;
  const Folder other;
  ASSERT_EQ(run_in(other, question).status, RunStatus::Completed);
  EXPECT_NE(asked, io::read_text(other.path() / "figures" / "state_0.svg"));
}

TEST(SideBySide, ExactIdentitiesOfEquilibriumAreADiagnosticOfTheParticles) {
  const Folder folder;
  Question question = gaussian_question(50, 40);
  question.end = 4.0;
  const Json last = Json::parse(run_in(folder, question).summary)["particles"]["final"];
  ASSERT_EQ(last["identities"].size(), 3u);  // two fields and the contact theorem
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_LT(std::abs(last["identities"][k].get<double>()),
              4.5 * last["identities_standard_error"][k].get<double>());
  const io::RunReader reader(folder.path() / "run.h5");
  EXPECT_NE(reader.series("particles/identities").description.meaning.find("contact theorem"), std::string::npos);
  EXPECT_NE(io::read_text(folder.path() / "report.html").find("Exact identities"), std::string::npos);
}

TEST(SideBySide, EachSideRunsAlone) {
  for (const bool particles : {true, false}) {
    const Folder folder;
    Question question = gaussian_question(50, 2);
    if (particles) {
      question.density.reset();
    } else {
      question.particles.reset();
    }
    const Json summary = Json::parse(run_in(folder, question).summary);
    EXPECT_EQ(summary["status"], "completed");
    EXPECT_EQ(summary.contains("particles"), particles);
    EXPECT_EQ(summary.contains("density"), !particles);
    EXPECT_FALSE(summary.contains("comparison"));
  }
}

TEST(SideBySide, OneParticleHasNoPairEnergyAndNoStandardErrorOfASingleReplica) {
  const Folder folder;
  const Json summary = Json::parse(run_in(folder, gaussian_question(1, 1)).summary);
  EXPECT_EQ(summary["status"], "completed");
  EXPECT_EQ(summary["particles"]["final"]["interaction_energy"], 0.0);
  EXPECT_TRUE(summary["particles"]["final"]["interaction_energy_standard_error"].is_null());
}

TEST(SideBySide, TwoDimensionsAreComparedBySlicedTransportAndDiscrepancy) {
  const Folder folder;
  Question question = gaussian_question(200, 4);
  question.model.domain = Box{{-4.0, -5.0}, {4.0, 5.0}};
  question.initial = GaussianLaw{{0.7, 0.0}, {0.4, 0.4}};
  question.density->cells = {32, 40};
  question.end = 0.5;
  const Json summary = Json::parse(run_in(folder, question).summary);
  ASSERT_EQ(summary["status"], "completed");
  EXPECT_EQ(summary["comparison"]["distance"]["name"], "sliced_wasserstein_2");
  EXPECT_EQ(summary["comparison"]["distances"][1]["name"], "mmd");
  EXPECT_EQ(summary["density"]["final"]["moments"][0].size(), 2u);
  for (const Json& distance : summary["comparison"]["distances"]) {
    EXPECT_LT(distance["value"].back().get<double>(), 2.0 * distance["reference"].back().get<double>());
  }
}

TEST(SideBySide, AFaultOfTheMathematicsIsAStatusAndKeepsWhatWasComputed) {
  const Folder folder;
  Question question =
      log_gas_question(particle::Scheme::Projected);  // unsoftened: particles meet on the wall
  question.end = 2.0;
  const Outcome outcome = run_in(folder, question);
  EXPECT_NE(outcome.status, RunStatus::Completed);
  EXPECT_NE(outcome.status, RunStatus::Interrupted);
  EXPECT_FALSE(outcome.message.empty());
  const io::RunReader reader(folder.path() / "run.h5");
  EXPECT_EQ(reader.density_clocks().back().time, 2.0) << "the density side is complete";
  for (const double x : reader.positions(reader.position_clocks().size() - 1).positions)
    EXPECT_TRUE(std::isfinite(x));
}

}  // namespace
}  // namespace rieszflow::side_by_side
