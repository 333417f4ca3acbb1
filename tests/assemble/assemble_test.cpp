#include "experiments/assemble.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "experiments/catalogue.hpp"
#include "io/run_file.hpp"

namespace rieszflow {
namespace {

// A config of a Riesz gas in an interval, both sides; line 2 holds the temperature, see the line numbers
// below.
const std::string riesz_gas =
    "[model]\n"
    "inverse_temperature = 4.0\n"
    "[model.domain]\n"
    "type = \"box\"\n"
    "lower = [-1.0]\n"
    "upper = [1.0]\n"
    "[[model.potential]]\n"
    "type = \"quadratic\"\n"
    "stiffness = 1.0\n"
    "[[model.interaction]]\n"
    "type = \"riesz\"\n"
    "exponent = 0.5\n"
    "strength = 1.0\n"
    "[initial]\n"
    "type = \"gaussian\"\n"
    "mean = [0.0]\n"
    "std = [0.3]\n"
    "[time]\n"
    "end = 2.0\n"
    "output_every = 0.1\n"
    "[particles]\n"
    "count = 1000\n"
    "timestep = 1e-3\n"
    "[density]\n"
    "cells = [256]\n";

Assembly assembled(const std::string& text, std::vector<std::string> overrides = {}, int threads = 1) {
  const auto document = config::Document::parse(text, "c.toml", catalogue::run(), overrides);
  return assemble(*document, {.config = "c.toml", .threads = threads});
}

std::string problems(const std::string& text, std::vector<std::string> overrides = {}) {
  try {
    assembled(text, std::move(overrides));
    return "";
  } catch (const config::ConfigError& error) {
    return error.what();
  }
}

std::string with(std::string text, const std::string& old, const std::string& replacement) {
  const auto start = text.find(old);
  EXPECT_NE(start, std::string::npos) << old;
  return text.replace(start, old.size(), replacement);
}

std::filesystem::path scratch(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "rieszflow assemble";
  std::filesystem::create_directories(folder);
  return folder / name;
}

TEST(Assemble, MapsEveryKeyToItsOption) {
  const std::string text =
      "name = \"both\"\n"
      "[model]\ninverse_temperature = inf\n"
      "[model.domain]\ntype = \"ball\"\ncenter = [0.5, 0]\nradius = 2\n"
      "[[model.potential]]\ntype = \"double_well\"\nheight = 3\nwidth = 0.7\n"
      "[[model.potential]]\ntype = \"polynomial\"\ncoefficients = [1, 2, 3]\n"
      "[[model.potential]]\ntype = \"cosine\"\namplitude = 2\nwavenumber = 5\n"
      "[[model.potential]]\ntype = \"expression\"\nvalue = \"x*y\"\n"
      "[[model.interaction]]\ntype = \"log\"\nstrength = 2\nsoftening = 0.1\n"
      "[[model.interaction]]\ntype = \"gaussian\"\nstrength = 3\nlength = 0.4\n"
      "[[model.interaction]]\ntype = \"morse\"\nrepulsion_strength = 1\nrepulsion_length = "
      "2\nattraction_strength = "
      "3\nattraction_length = 4\n"
      "[[model.interaction]]\ntype = \"quadratic\"\nstrength = 5\n"
      "[[model.interaction]]\ntype = \"cosine\"\nstrength = 6\n"
      "[[model.interaction]]\ntype = \"expression\"\nvalue = \"exp(-r)\"\n"
      "[[model.interaction]]\ntype = \"low_rank\"\nstrength = 7\nfunctions = [\"x\", \"y\"]\n"
      "[initial]\ntype = \"mixture\"\n"
      "[[initial.components]]\nmean = [0, 0]\nstd = [1, 2]\n"
      "[[initial.components]]\nweight = 3\nmean = [1, 0]\nstd = [1, 1]\n"
      "[time]\nend = 1\noutput_every = 0.25\nsnapshots_every = 0.5\n"
      "[particles]\ncount = 12\nreplicas = 3\ntimestep = 0.01\nscheme = \"projected\"\nsummation = \"fast\"\n"
      "tolerance = 1e-4\nseed = 99\n"
      "[density]\ncells = [8, 9]\nscheme = \"method_of_lines\"\ntimestep = 0.02\ntolerance = 1e-3\n"
      "[compare]\nenabled = false\nbins = 32\n";
  const side_by_side::Question question = assembled(text, {}, 3).question;
  EXPECT_EQ(question.name, "both");
  EXPECT_TRUE(std::isinf(question.model.inverse_temperature));
  const auto& ball = std::get<Ball>(question.model.domain);
  EXPECT_EQ(ball.center, (std::vector<double>{0.5, 0.0}));
  EXPECT_EQ(ball.radius, 2.0);
  ASSERT_EQ(question.model.potentials.size(), 4u);
  EXPECT_EQ(std::get<DoubleWellPotential>(question.model.potentials[0]).height, 3.0);
  EXPECT_EQ(std::get<DoubleWellPotential>(question.model.potentials[0]).width, 0.7);
  EXPECT_EQ(std::get<PolynomialPotential>(question.model.potentials[1]).coefficients,
            (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(std::get<CosinePotential>(question.model.potentials[2]).amplitude, 2.0);
  EXPECT_EQ(std::get<CosinePotential>(question.model.potentials[2]).wavenumber, 5.0);
  const double point[] = {0.5, 3.0};
  EXPECT_EQ(value(question.model.potentials[3], point), 1.5);
  ASSERT_EQ(question.model.interactions.size(), 7u);
  EXPECT_EQ(std::get<LogarithmicInteraction>(question.model.interactions[0]).strength, 2.0);
  EXPECT_EQ(std::get<LogarithmicInteraction>(question.model.interactions[0]).softening, 0.1);
  EXPECT_EQ(std::get<GaussianInteraction>(question.model.interactions[1]).strength, 3.0);
  EXPECT_EQ(std::get<GaussianInteraction>(question.model.interactions[1]).length, 0.4);
  const auto& morse = std::get<MorseInteraction>(question.model.interactions[2]);
  EXPECT_EQ(morse.repulsion_strength, 1.0);
  EXPECT_EQ(morse.repulsion_length, 2.0);
  EXPECT_EQ(morse.attraction_strength, 3.0);
  EXPECT_EQ(morse.attraction_length, 4.0);
  EXPECT_EQ(std::get<QuadraticInteraction>(question.model.interactions[3]).strength, 5.0);
  EXPECT_EQ(std::get<CosineInteraction>(question.model.interactions[4]).strength, 6.0);
  const double origin[] = {0.0, 0.0}, unit[] = {1.0, 0.0};
  EXPECT_NEAR(value(question.model.interactions[5], origin, unit), std::exp(-1.0), 1e-15);
  const auto& low_rank = std::get<LowRankInteraction>(question.model.interactions[6]);
  EXPECT_EQ(low_rank.strength, 7.0);
  ASSERT_EQ(low_rank.functions.size(), 2u);
  EXPECT_EQ((*low_rank.functions[1])(point), 3.0);
  const auto& mixture = std::get<MixtureLaw>(question.initial);
  EXPECT_EQ(mixture.weights, (std::vector<double>{1.0, 3.0}));
  EXPECT_EQ(mixture.components[0].standard_deviation, (std::vector<double>{1.0, 2.0}));
  EXPECT_EQ(mixture.components[1].mean, (std::vector<double>{1.0, 0.0}));
  EXPECT_EQ(question.end, 1.0);
  EXPECT_EQ(question.output_every, 0.25);
  EXPECT_EQ(question.snapshots_every, 0.5);
  ASSERT_TRUE(question.particles);
  EXPECT_EQ(question.particles->count, 12u);
  EXPECT_EQ(question.particles->replicas, 3u);
  EXPECT_EQ(question.particles->options.timestep, 0.01);
  EXPECT_EQ(question.particles->options.scheme, particle::Scheme::Projected);
  EXPECT_EQ(question.particles->options.seed, 99u);
  EXPECT_EQ(question.seed, 99u);
  EXPECT_EQ(question.particles->options.summation.method, PairSum::Method::Fast);
  EXPECT_EQ(question.particles->options.summation.tolerance, 1e-4);
  EXPECT_EQ(question.particles->options.summation.threads, 3);
  EXPECT_EQ(question.threads, 3);
  ASSERT_TRUE(question.density);
  EXPECT_EQ(question.density->cells, (std::vector<std::size_t>{8, 9}));
  EXPECT_EQ(question.density->options.scheme, pde::Scheme::MethodOfLines);
  EXPECT_EQ(question.density->options.timestep, 0.02);
  EXPECT_EQ(question.density->options.tolerance, 1e-3);
  EXPECT_FALSE(question.compare);
  EXPECT_EQ(question.comparison_bins, 32u);
}

TEST(Assemble, NumericsHaveDefaultsAndPhysicsHasNone) {
  const Assembly assembly = assembled(with(riesz_gas, "output_every = 0.1\n", ""));
  EXPECT_EQ(assembly.question.name, "c");
  EXPECT_EQ(assembly.question.output_every, 0.02);
  EXPECT_EQ(assembly.question.snapshots_every, 0.02);
  EXPECT_EQ(assembly.question.particles->options.scheme, particle::Scheme::Reflected);
  EXPECT_FALSE(assembly.question.density->options.scheme);
  EXPECT_EQ(assembly.question.density->options.timestep, 0.0) << "adaptive";
  EXPECT_TRUE(assembly.question.compare);
  for (const char* line : {"inverse_temperature = 4.0\n", "lower = [-1.0]\n", "stiffness = 1.0\n",
                           "exponent = 0.5\n", "strength = 1.0\n", "mean = [0.0]\n", "std = [0.3]\n",
                           "end = 2.0\n", "count = 1000\n", "timestep = 1e-3\n", "cells = [256]\n"}) {
    const std::string text = problems(with(riesz_gas, line, ""));
    EXPECT_NE(text.find("is missing, must be"), std::string::npos) << line << ": " << text;
  }
}

TEST(Assemble, CoulombIsRieszOrLogByDimension) {
  const auto coulomb = [](const std::string& zeros, const std::string& ones) {
    return assembled(
               "[model]\ninverse_temperature = 1\n[model.domain]\ntype = 'box'\nlower = " + zeros +
               "\nupper = " + ones +
               "\n[[model.interaction]]\ntype = 'coulomb'\nstrength = 2\nsoftening = 0.5\n[initial]\ntype = "
               "'uniform'\n[time]\nend = 1\n[particles]\ncount = 2\ntimestep = 0.1\n")
        .question.model.interactions.at(0);
  };
  EXPECT_EQ(std::get<RieszInteraction>(coulomb("[0]", "[1]")).exponent, -1.0);
  EXPECT_EQ(std::get<LogarithmicInteraction>(coulomb("[0, 0]", "[1, 1]")).strength, 2.0);
  EXPECT_EQ(std::get<RieszInteraction>(coulomb("[0, 0, 0]", "[1, 1, 1]")).exponent, 1.0);
  EXPECT_EQ(std::get<RieszInteraction>(coulomb("[0, 0, 0]", "[1, 1, 1]")).softening, 0.5);
}

TEST(Assemble, EveryEntryOfTheCatalogueRuns) {
  const auto table = scratch("table.txt");
  std::ofstream(table) << "-1 1\n-0.5 0.25\n0 0\n0.5 0.25\n1 1\n";
  int assembled_count = 0;
  for (const config::Section& section : catalogue::run()) {
    for (const config::Variant& variant : section.variants) {
      if (section.path == "initial" && variant.name == "file") continue;  // below: it needs a run file
      std::vector<std::string> overrides;
      std::vector<config::Sample> samples{{section.path, variant.name}};
      if (variant.name == "table") overrides.push_back("model.potential.0.file=" + table.string());
      // A torus has periodic terms only.
      if (variant.name == "torus") {
        samples.push_back({"model.potential", "cosine"});
        overrides.push_back("model.potential.0.wavenumber=3.141592653589793");
      }
      std::string text = config::sample_config(catalogue::run(), samples);
      if (variant.name == "whole_space") text = text.substr(0, text.find("\n[density]"));
      EXPECT_EQ(problems(text, overrides), "") << section.path << " " << variant.name;
      ++assembled_count;
    }
  }
  EXPECT_EQ(assembled_count, 4 + 7 + 9 + 4);
}

TEST(Resolved, RepeatsTheRunAndIsAFixedPoint) {
  for (const config::Section& section : catalogue::run()) {
    for (const config::Variant& variant : section.variants) {
      if (variant.name == "file" || variant.name == "table" || variant.name == "torus" ||
          variant.name == "whole_space") {
        continue;
      }
      const Assembly first =
          assembled(config::sample_config(catalogue::run(), {{section.path, variant.name}}));
      const Assembly second = assembled(first.resolved);
      EXPECT_EQ(second.resolved, first.resolved) << variant.name;
      const side_by_side::Question &a = first.question, &b = second.question;
      EXPECT_EQ(a.name, b.name) << "the name of the file is part of the resolved config";
      EXPECT_EQ(a.model.inverse_temperature, b.model.inverse_temperature);
      EXPECT_EQ(a.model.domain.index(), b.model.domain.index());
      ASSERT_EQ(a.model.potentials.size(), b.model.potentials.size());
      ASSERT_EQ(a.model.interactions.size(), b.model.interactions.size());
      for (const double x : {-0.75, 0.1 + 0.2, 1.0}) {
        const double y = -0.25;
        EXPECT_EQ(potential(a.model, std::span(&x, 1)), potential(b.model, std::span(&x, 1)));
        for (std::size_t term = 0; term < a.model.interactions.size(); ++term) {
          EXPECT_EQ(value(a.model.interactions[term], std::span(&x, 1), std::span(&y, 1)),
                    value(b.model.interactions[term], std::span(&x, 1), std::span(&y, 1)));
        }
      }
      EXPECT_EQ(a.initial.index(), b.initial.index());
      EXPECT_EQ(a.end, b.end);
      EXPECT_EQ(a.output_every, b.output_every);
      EXPECT_EQ(a.snapshots_every, b.snapshots_every);
      EXPECT_EQ(a.particles->count, b.particles->count);
      EXPECT_EQ(a.particles->replicas, b.particles->replicas);
      EXPECT_EQ(a.particles->options.timestep, b.particles->options.timestep);
      EXPECT_EQ(a.particles->options.scheme, b.particles->options.scheme);
      EXPECT_EQ(a.particles->options.seed, b.particles->options.seed);
      EXPECT_EQ(a.particles->options.summation.method, b.particles->options.summation.method);
      EXPECT_EQ(a.particles->options.summation.tolerance, b.particles->options.summation.tolerance);
      EXPECT_EQ(a.density->cells, b.density->cells);
      EXPECT_EQ(a.density->options.scheme, b.density->options.scheme);
      EXPECT_EQ(a.density->options.timestep, b.density->options.timestep);
      EXPECT_EQ(a.density->options.tolerance, b.density->options.tolerance);
      EXPECT_EQ(a.comparison_bins, b.comparison_bins);
      EXPECT_EQ(a.compare, b.compare);
    }
  }
}

TEST(Resolved, DoesNotDependOnTheNumberOfThreads) {
  EXPECT_EQ(assembled(riesz_gas, {}, 1).resolved, assembled(riesz_gas, {}, 7).resolved);
}

TEST(Resolved, HoldsTheSeedOfTheCommandLine) {
  const auto document = config::Document::parse(riesz_gas, "c.toml", catalogue::run(), {});
  const Assembly assembly = assemble(*document, {.config = "c.toml", .seed = 1234});
  EXPECT_EQ(assembly.question.seed, 1234u);
  EXPECT_NE(assembly.resolved.find("seed = 1234"), std::string::npos);
}

struct Refused {
  const char* old_text;
  const char* new_text;
  const char* problem;
};

TEST(Assemble, RefusesCombinationsThatCanOnlyFail) {
  const Refused cases[] = {
      {"upper = [1.0]", "upper = [-1.0]",
       "c.toml:6: model.domain.upper: entry 1 is -1.0, must be > lower, which is -1.0"},
      {"upper = [1.0]", "upper = [-2.0]", "must be > lower"},
      {"upper = [1.0]", "upper = [1.0, 2.0]",
       "c.toml:6: model.domain.upper: has 2 entries, must have as many as lower: 1"},
      {"lower = [-1.0]\nupper = [1.0]", "lower = [-1e308]\nupper = [1e308]",
       "model.domain.upper: entry 1 is"},
      {"mean = [0.0]", "mean = [0.0, 1.0]", "c.toml:16: initial.mean: has 2 entries, must have 1"},
      {"std = [0.3]", "std = [0.3, 0.3]", "c.toml:17: initial.std: has 2 entries, must have 1"},
      {"cells = [256]", "cells = [16, 16]", "c.toml:25: density.cells: has 2 entries, must have 1"},
      {"exponent = 0.5", "exponent = 1.0",
       "c.toml:12: model.interaction[0].exponent: riesz: exponent 1 must be below"},
      {"exponent = 0.5", "exponent = 0",
       "c.toml:12: model.interaction[0].exponent: is 0, must not be 0: type = \"log\""},
      {"inverse_temperature = 4.0", "inverse_temperature = 0",
       "c.toml:2: model.inverse_temperature: is 0, must be"},
      {"inverse_temperature = 4.0", "inverse_temperature = -1", "is -1, must be a number > 0 or inf"},
      {"inverse_temperature = 4.0", "inverse_temperature = nan", "is nan, must be a number > 0 or inf"},
      {"timestep = 1e-3", "timestep = 1e-3\nscheme = \"projected\"",
       "c.toml:24: particles.scheme: is \"projected\", which puts particles on the same wall point"},
      {"timestep = 1e-3", "timestep = 1e-300",
       "c.toml:23: particles.timestep: is 1e-300, must be >= end / 1e+15"},
      {"timestep = 1e-3", "timestep = 1e-3\nreplicas = 0",
       "particles.replicas: is 0, must be an integer from 1"},
      {"count = 1000", "count = 0", "c.toml:22: particles.count: is 0, must be an integer from 1"},
      {"cells = [256]", "cells = [0]", "entry 1 of the list is 0, must be a list of 1 to 3 integers from 1"},
      {"cells = [256]", "cells = []", "is an empty list"},
      {"end = 2.0", "end = -1", "c.toml:19: time.end: is -1, must be a finite number >= 0"},
      {"output_every = 0.1", "output_every = 1e-9",
       "c.toml:20: time.output_every: is 1e-09, must be >= end / 1e+07"},
      {"output_every = 0.1", "output_every = 0.1\nsnapshots_every = 0.25",
       "c.toml:21: time.snapshots_every: is 0.25, must be a multiple of output_every, which is 0.1"},
      {"output_every = 0.1", "output_every = 0.1\nsnapshots_every = 0.01",
       "must be a multiple of output_every"},
      {"type = \"quadratic\"\nstiffness = 1.0", "type = \"quadratic\"\nstiffness = 1.0\ncenter = [0.0, 0.0]",
       "c.toml:10: model.potential[0].center: has 2 entries, must have 1"},
      {"type = \"quadratic\"\nstiffness = 1.0", "type = \"expression\"\nvalue = \"log(x)\"",
       "c.toml:9: model.potential[0].value: "},
      {"type = \"quadratic\"\nstiffness = 1.0", "type = \"expression\"\nvalue = \"x^2 +\"",
       "c.toml:9: model.potential[0].value: "},
      {"type = \"quadratic\"\nstiffness = 1.0", "type = \"expression\"\nvalue = \"x + y\"",
       "it is a formula in x"},
      {"type = \"riesz\"\nexponent = 0.5\nstrength = 1.0", "type = \"expression\"\nvalue = \"log(1 - r)\"",
       "c.toml:12: model.interaction[0].value: "},
      {"type = \"gaussian\"\nmean = [0.0]\nstd = [0.3]", "type = \"expression\"\ndensity = \"x\"",
       "c.toml:16: initial.density: expression initial law: the density \"x\" is negative at (-1)"},
      {"type = \"gaussian\"\nmean = [0.0]\nstd = [0.3]", "type = \"expression\"\ndensity = \"0*x\"",
       "initial.density: expression initial law: the density \"0*x\" is zero"},
      {"type = \"gaussian\"\nmean = [0.0]\nstd = [0.3]", "type = \"mixture\"",
       "initial.components: are missing, must be one or more tables [[initial.components]]"},
      {"type = \"gaussian\"\nmean = [0.0]\nstd = [0.3]", "type = \"file\"\nfile = \"none.h5\"",
       "none.h5: cannot open"},
  };
  for (const Refused& refused : cases) {
    const std::string text = problems(with(riesz_gas, refused.old_text, refused.new_text));
    EXPECT_NE(text.find(refused.problem), std::string::npos) << refused.new_text << "\ngave: " << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << "one mistake, one problem: " << refused.new_text << "\n"
                                                  << text;
  }
}

TEST(Assemble, RefusesANumberlessCellThatTheLatticeMisses) {
  // Not a number only on (0.1001, 0.1009), which holds the centre of one of 2000 cells.
  const std::string text =
      problems(with(riesz_gas, "type = \"quadratic\"\nstiffness = 1.0",
                    "type = \"expression\"\nvalue = \"abs(x - 0.1005) < 0.0004 ? sqrt(-1) : 0\""),
               {"density.cells=[2000]"});
  EXPECT_NE(text.find("model.potential[0].value: V is "), std::string::npos) << text;
}

TEST(Assemble, TheDensityIsUpwindedAtZeroTemperatureOnly) {
  const std::string cold = with(riesz_gas, "inverse_temperature = 4.0", "inverse_temperature = inf");
  ASSERT_NE(cold, riesz_gas);
  const auto scheme = [](const std::string& text) {
    const auto document = config::Document::parse(text, "c.toml", catalogue::run(), {});
    return assemble(*document, {.config = "c.toml"}).question.density->options.scheme;
  };
  EXPECT_EQ(scheme(riesz_gas), std::nullopt);  // chosen step by step
  for (const pde::Scheme each : pde::schemes()) {
    if (each == pde::Scheme::SecondOrderUpwind) continue;
    EXPECT_EQ(scheme(with(riesz_gas, "cells = [256]",
                          fmt::format("cells = [256]\nscheme = \"{}\"", pde::name(each)))),
              each);
  }
  EXPECT_EQ(scheme(cold), pde::Scheme::SecondOrderUpwind);
  EXPECT_NE(problems(with(riesz_gas, "cells = [256]", "cells = [256]\nscheme = \"upwind\""))
                .find("density.scheme: is \"upwind\", which has no diffusion"),
            std::string::npos);
}

TEST(Assemble, WholeSpaceIsForParticlesOnly) {
  const std::string whole = with(riesz_gas, "type = \"box\"\nlower = [-1.0]\nupper = [1.0]",
                                 "type = \"whole_space\"\ndimension = 1");
  EXPECT_NE(problems(whole).find("density.cells: whole_space is for particles only"), std::string::npos);
  const std::string particles_only = with(whole, "[density]\ncells = [256]\n", "");
  EXPECT_EQ(problems(particles_only), "");
  EXPECT_NE(
      problems(with(particles_only, "type = \"gaussian\"\nmean = [0.0]\nstd = [0.3]", "type = \"uniform\""))
          .find("initial.type: uniform initial law: it needs a bounded domain"),
      std::string::npos);
  EXPECT_NE(problems(with(particles_only, "type = \"gaussian\"\nmean = [0.0]\nstd = [0.3]",
                          "type = \"expression\"\ndensity = \"exp(-x^2)\""))
                .find("initial.density: expression initial law: "),
            std::string::npos);
}

TEST(Assemble, MetropolisNeedsATemperatureAndProjectionASoftening) {
  EXPECT_NE(problems(riesz_gas, {"particles.scheme=mala", "model.inverse_temperature=inf"})
                .find("--set: particles.scheme: is \"mala\", which needs a finite inverse_temperature"),
            std::string::npos);
  EXPECT_EQ(problems(riesz_gas, {"particles.scheme=mala"}), "");
  EXPECT_EQ(problems(riesz_gas, {"particles.scheme=projected", "model.interaction.0.softening=0.01"}), "");
}

TEST(Assemble, FourDimensionsAreForParticlesAndDirectSums) {
  const std::string text =
      "[model]\ninverse_temperature = 1\n[model.domain]\ntype = 'ball'\ncenter = [0, 0, 0, 0]\nradius = 1\n"
      "[[model.interaction]]\ntype = 'coulomb'\nstrength = 1\n[initial]\ntype = 'uniform'\n[time]\nend = 1\n"
      "[particles]\ncount = 2\ntimestep = 0.1\n";
  EXPECT_EQ(problems(text), "");
  EXPECT_NE(problems(text, {"particles.summation=fast"}).find("particles.summation: is \"fast\""),
            std::string::npos);
  EXPECT_NE(
      problems(text, {"density.cells=[4,4,4]"}).find("a density needs 1 to 3 dimensions, the domain has 4"),
      std::string::npos);
}

TEST(Assemble, LimitsThatMakeSenseAreAccepted) {
  for (const std::vector<std::string>& overrides :
       std::vector<std::vector<std::string>>{{"time.end=0"},
                                             {"time.output_every=10"},
                                             {"particles.count=1"},
                                             {"particles.count=2", "particles.replicas=1"},
                                             {"density.cells=[1]"},
                                             {"density.cells=[2]"},
                                             {"density.cells=[3]"},
                                             {"model.inverse_temperature=1e308"},
                                             {"model.inverse_temperature=inf"},
                                             {"particles.timestep=1e6"}}) {
    EXPECT_EQ(problems(riesz_gas, overrides), "") << overrides[0];
  }
}

// A run file of 3 particles in 2 replicas and 4 cells on [-1, 1] at the times 0, 0.5 and 1.
std::filesystem::path earlier_run() {
  const auto file = scratch("earlier.h5");
  std::filesystem::remove(file);
  io::RunFile run = io::RunFile::create(file, {{"version", "test"}});
  for (int step = 0; step <= 2; ++step) {
    const Clock clock{.step = step, .time = 0.5 * step};
    const double shift = 0.1 * step;
    Density density;
    density.grid = {.lower = {-1.0}, .upper = {1.0}, .cells = {4}};
    density.averages = {0.5, 0.5 + shift, 0.5 - shift, 0.5};
    run.append_density(clock, density);
    run.append_positions(clock, {2, 3, 1, {-0.5, 0.0, 0.5 + shift, -0.4, 0.1, 0.6 + shift}});
  }
  run.commit();
  return file;
}

TEST(Assemble, StartsFromASnapshotOfAnEarlierRun) {
  const std::string text = with(riesz_gas, "type = \"gaussian\"\nmean = [0.0]\nstd = [0.3]",
                                "type = \"file\"\nfile = \"" + earlier_run().string() + "\"");
  const Assembly last = assembled(text);
  EXPECT_EQ(std::get<GridLaw>(last.question.initial).density.averages,
            (std::vector<double>{0.5, 0.7, 0.3, 0.5}));
  EXPECT_NE(last.resolved.find("time = 1.0\nstate = \"density\""), std::string::npos) << last.resolved;
  EXPECT_EQ(assembled(last.resolved).resolved, last.resolved);
  const Assembly middle = assembled(
      text, {"initial.time=0.5", "initial.state=particles", "particles.count=3", "particles.replicas=2"});
  EXPECT_EQ(std::get<PositionsLaw>(middle.question.initial).ensemble.positions,
            (std::vector<double>{-0.5, 0.0, 0.6, -0.4, 0.1, 0.7}));
  EXPECT_NE(
      problems(text, {"initial.time=0.7"})
          .find(
              "--set: initial.time: is 0.7, must be the time of a snapshot: there are 3 from 0.0 to 1.0, the "
              "nearest is 0.5"),
      std::string::npos);
  EXPECT_NE(problems(text, {"initial.state=particles"})
                .find("holds 2 replicas of 3 particles, [particles] must ask"),
            std::string::npos);
  EXPECT_NE(problems(with(text, "upper = [1.0]", "upper = [0.5]")).find("must lie in the domain"),
            std::string::npos);
}

TEST(Assemble, RefusesAFileThatIsNoRunFile) {
  const auto file = scratch("no run.h5");
  std::ofstream(file) << "text";
  const std::string text = problems(with(riesz_gas, "type = \"gaussian\"\nmean = [0.0]\nstd = [0.3]",
                                         "type = \"file\"\nfile = \"" + file.string() + "\""));
  EXPECT_TRUE(text.starts_with("c.toml:16: initial.file: ")) << text;
  EXPECT_NE(text.find("must be a run file (run.h5)"), std::string::npos) << text;
}

TEST(Assemble, NothingToRunIsRefused) {
  const std::string text = riesz_gas.substr(0, riesz_gas.find("[particles]"));
  EXPECT_EQ(problems(text), "c.toml:1: particles: nothing to run: must have [particles], [density] or both");
}

TEST(Assemble, SinglePrecisionIsForDirectSums) {
  EXPECT_EQ(problems(riesz_gas, {"particles.precision=\"single\"", "particles.summation=\"direct\""}), "");
  for (const char* other : {"particles.summation=\"fast\"", "particles.scheme=\"mala\""}) {
    EXPECT_NE(problems(riesz_gas, {"particles.precision=\"single\"", other})
                  .find("precision: is \"single\", which is for"),
              std::string::npos)
        << other;
  }
}

TEST(Assemble, MistakesOfAllStagesAreReportedTogether) {
  const std::string text =
      problems(with(with(riesz_gas, "upper = [1.0]", "upper = [-1.0]"), "count = 1000", "cuont = 3"),
               {"time.snapshots_every=0.25"});
  EXPECT_EQ(text,
            "c.toml:6: model.domain.upper: entry 1 is -1.0, must be > lower, which is -1.0\n"
            "c.toml:22: particles.cuont: unknown key, did you mean \"count\"? Allowed: count, replicas, "
            "timestep, accuracy, scheme, "
            "summation, precision, batch_size, tolerance, seed\n"
            "--set: time.snapshots_every: is 0.25, must be a multiple of output_every, which is 0.1");
}

std::string table_problem(const std::string& content) {
  const auto file = scratch("faulty.txt");
  std::ofstream(file) << content;
  const std::string text = problems(with(riesz_gas, "type = \"quadratic\"\nstiffness = 1.0",
                                         "type = \"table\"\nfile = \"" + file.string() + "\""));
  return text;
}

TEST(TableFile, IsReadExactlyAtItsNodes) {
  const auto file = scratch("exact.txt");
  std::ofstream(file) << "# x V\n-1 0.5\n-0.5\t0.1 # a comment\n\n0, 0.30000000000000004\n0.5 -2e-3\n1 7\n";
  const Assembly assembly = assembled(with(riesz_gas, "type = \"quadratic\"\nstiffness = 1.0",
                                           "type = \"table\"\nfile = \"" + file.string() + "\""));
  const double nodes[] = {-1.0, -0.5, 0.0, 0.5, 1.0}, values[] = {0.5, 0.1, 0.1 + 0.2, -2e-3, 7.0};
  for (std::size_t node = 0; node < 5; ++node) {
    // A spline reproduces its nodes up to the rounding of its coefficients, which are of the size of the
    // largest value.
    EXPECT_NEAR(value(assembly.question.model.potentials[0], std::span(nodes + node, 1)), values[node],
                1e-13);
  }
  EXPECT_NE(assembly.resolved.find("file = \"" + std::filesystem::absolute(file).string() + "\""),
            std::string::npos);
}

TEST(TableFile, TheLastCoordinateRunsFastest) {
  const auto file = scratch("plane.txt");
  {
    std::ofstream stream(file);
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < 4; ++j) stream << i * 0.25 << ' ' << j << ' ' << 10 * i + j << '\n';
    }
  }
  const std::string text =
      "[model]\ninverse_temperature = 1\n[model.domain]\ntype = 'box'\nlower = [0, 0]\nupper = [1, 3]\n"
      "[[model.potential]]\ntype = 'table'\nfile = '" +
      file.string() +
      "'\n[initial]\ntype = 'uniform'\n[time]\nend = 1\n[particles]\ncount = 2\ntimestep = 0.1\n";
  const double point[] = {0.75, 2.0};
  EXPECT_NEAR(value(assembled(text).question.model.potentials[0], point), 32.0, 1e-12);
}

TEST(TableFile, RefusesFaultyFilesWithTheirLines) {
  const std::pair<const char*, const char*> cases[] = {
      {"-1 1\n-0.5 abc\n0 0\n0.5 1\n1 1\n", "faulty.txt:2: \"abc\" is no number"},
      {"-1 1\n-0.5 nan\n0 0\n0.5 1\n1 1\n", "faulty.txt:2: \"nan\" is not finite"},
      {"-1 1\n-0.5 1e999\n0 0\n0.5 1\n1 1\n", "faulty.txt:2: "},
      {"-1 1\n-0.5 1 3\n0 0\n0.5 1\n1 1\n", "faulty.txt:2: has 3 numbers, must be 2"},
      {"-1 1\n-0.5 1\n0.1 0\n0.5 1\n1 1\n",
       "faulty.txt:3: coordinate 1 is 0.1, must be 0: nodes are equally spaced"},
      {"-1 1\n0 1\n-0.5 0\n0.5 1\n1 1\n", "faulty.txt:3: 5 rows are no grid"},
      {"-1 1\n0 1\n1 0\n", "has 3 nodes along coordinate 1, must have at least 4"},
      {"# nothing\n", "has no rows"},
      {"-0.5 1\n-0.25 1\n0 0\n0.25 1\n0.5 1\n", "model.potential[0].file: "},
  };
  for (const auto& [content, problem] : cases) {
    const std::string text = table_problem(content);
    EXPECT_NE(text.find(problem), std::string::npos) << content << "\ngave: " << text;
    EXPECT_TRUE(text.starts_with("c.toml:9: model.potential[0].file: ")) << text;
  }
}

}  // namespace
}  // namespace rieszflow
