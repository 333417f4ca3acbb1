#include "experiments/learning_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rieszflow {
namespace {

using config::Boolean;
using config::Choice;
using config::defaulted;
using config::Integer;
using config::Key;
using config::List;
using config::Named;
using config::Number;
using config::Occurrence;
using config::optional;
using config::Presence;
using config::Section;
using config::Text;
using Numbers = std::vector<double>;
using Integers = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

Number share() { return {.lower = 0.01, .upper = 0.99}; }
Number noise_level() { return {.lower = 0.0, .upper = 10.0}; }
Number label_noise_level() { return {.lower = 0.0, .upper = 0.5}; }

using catalogue::alignment_choice;
using catalogue::feature_choice;

Section top() {
  return {.path = "",
          .occurrence = Occurrence::Required,
          .meaning = "",
          .keys = {optional("name", Text{.is_name = true}, std::string("learn"), "",
                            "of the experiment; absent: the name of this file")}};
}

Section data() {
  return {.path = "data",
          .occurrence = Occurrence::Defaulted,
          .meaning = "what is classified; without `file` and `files`: the synthetic data of [synthetic]",
          .keys = {
              optional("file", Text{}, std::string("data.csv"), "",
                       "CSV table with a header, relative to this config"),
              optional("files", List{Text{}}, Texts{"a.csv", "b.csv"}, "",
                       "several; those that do not exist are skipped, with a note"),
              defaulted("label", Text{}, std::string("label"), "", "name of the label column"),
              defaulted("train_fraction", share(), 0.7, "",
                        "of the rows of a file, at random, each class in proportion"),
              defaulted("most_train_rows", Integer{.lower = 20}, std::int64_t{2000}, "", "more are left out"),
              defaulted("most_test_rows", Integer{.lower = 20}, std::int64_t{10000}, "", "more are left out"),
              defaulted("label_noise", List{label_noise_level()}, Numbers{0.0}, "",
                        "probabilities that a training label is replaced; one experiment each"),
              defaulted("input_noise", List{noise_level()}, Numbers{0.0}, "",
                        "standard deviations added to every input, in units of its own; one experiment each"),
          }};
}

Section synthetic() {
  return {.path = "synthetic",
          .occurrence = Occurrence::Defaulted,
          .meaning = "x ~ N(0, I), label = sign of sum_k cos(<w_k, x> + b_k) with hidden w_k",
          .keys = {
              defaulted("dimensions", List{Integer{.lower = 1, .upper = 1000}}, Integers{10}, "",
                        "of x; one experiment each"),
              defaulted("frequencies", Integer{.lower = 1, .upper = 100}, std::int64_t{3}, "",
                        "number of hidden w_k"),
              defaulted("radius", Number::positive(), 2.0, "1/length", "|w_k|"),
              defaulted("train_rows", Integer{.lower = 20}, std::int64_t{1000}, "", "of training"),
              defaulted("test_rows", Integer{.lower = 20}, std::int64_t{2000}, "",
                        "of test, labels without noise"),
          }};
}

Section features() {
  return {.path = "features",
          .occurrence = Occurrence::Defaulted,
          .meaning = "phi(z; w) of standardised inputs z divided by the length scale",
          .keys = {
              defaulted("map", feature_choice(), std::string("fourier_phase"), "", "feature map"),
              defaulted("counts", List{Integer{.lower = 1, .upper = 65536}}, Integers{64}, "",
                        "numbers of particles N; one experiment each"),
              optional("length_scale", Number::positive(), 1.0, "length",
                       "of the fixed features; absent: median distance of the training rows"),
          }};
}

Section alignment() {
  return {.path = "alignment",
          .occurrence = Occurrence::Defaulted,
          .meaning = "the energy A(mu_N) of the particles",
          .keys = {
              defaulted("kind", alignment_choice(), std::string("ridge_loss"), "",
                        "alignment of the kernel with the labels"),
              defaulted("strength", Number::positive(), 1.0, "energy", "factor of A"),
              defaulted("ridge_penalty", Number::positive(), 1e-3, "", "of the ridge loss"),
              defaulted("batch_rows", Integer{.lower = 0}, std::int64_t{0}, "",
                        "rows of each of two mini-batches per step; 0: all rows"),
          }};
}

Section dynamics() {
  return {.path = "dynamics",
          .occurrence = Occurrence::Defaulted,
          .meaning = "Langevin dynamics of the particles from the fixed law",
          .keys = {
              defaulted("inverse_temperatures",
                        List{Number{.lower = 0.0, .lower_included = false, .may_be_infinite = true}},
                        Numbers{30.0, 300.0}, "1/energy",
                        "candidates for beta, chosen on held-out rows; inf: no noise"),
              defaulted("confinement", Boolean{}, true, "",
                        "|w|^2 / (2 beta): the fixed law is the Gibbs law of A = 0"),
              defaulted("repulsion", Number::non_negative(), 0.01, "energy", "lambda in lambda W_{N,s}"),
              defaulted("repulsion_exponent", Number::any(), 0.0, "",
                        "s < dimension of the particles; 0: the logarithm"),
              defaulted("softening", Number::positive(), 0.1, "1/length", "of the repulsion"),
              defaulted("domain", Choice{{{"ball", "a ball around 0"}, {"cube", "a cube around 0"}}},
                        std::string("ball"), "", "of the particles"),
              optional("radius", Number::positive(), 10.0, "1/length",
                       "of the domain; absent: 4 + 2 sqrt(dimension)"),
              defaulted("scheme",
                        Choice{{{"projected", "Euler-Maruyama, then the nearest point of the domain"},
                                {"reflected", "Euler-Maruyama, then mirror reflection"},
                                {"mala", "Langevin proposals with a Metropolis test"}}},
                        std::string("reflected"), "", "Langevin scheme"),
              defaulted("timestep", Number::positive(), 0.25, "time", "largest step"),
              defaulted("timestep_decay", Number::non_negative(), 0.0, "1/time",
                        "step = timestep / (1 + decay t)"),
              defaulted("annealing", Number{.lower = 1e-6, .upper = 1e6}, 1.0, "",
                        "beta starts at this times beta and ends at beta, geometrically"),
              defaulted("end", Number::non_negative(), 60.0, "time", "latest stopping time"),
              defaulted("check_every", Number::positive(), 10.0, "time", "interval of validation and traces"),
          }};
}

Section selection() {
  return {
      .path = "selection",
      .occurrence = Occurrence::Defaulted,
      .meaning = "of stopping time, beta and penalty on training rows that are held out",
      .keys = {
          defaulted("criterion",
                    Choice{{{"classifier_loss", "log-loss of the classifier"},
                            {"alignment", "A on the held-out rows"},
                            {"none", "the end, the first beta"}}},
                    std::string("classifier_loss"), "", "what is smallest at the choice"),
          defaulted("validation_fraction", share(), 0.25, "", "of the training rows"),
          defaulted("validation_splits", Integer{.lower = 1, .upper = 100}, std::int64_t{3}, "", "averaged"),
      }};
}

Section classifier() {
  return {.path = "classifier",
          .occurrence = Occurrence::Defaulted,
          .meaning = "linear in the features",
          .keys = {
              defaulted("kind",
                        Choice{{{"ridge", "least squares, leave-one-out, sigmoid of Platt"},
                                {"logistic", "penalised likelihood, 5 folds"}}},
                        std::string("ridge"), "", "classifier"),
              defaulted("penalties", List{Number::positive()},
                        Numbers{1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0}, "",
                        "candidates, in units of the mean diagonal of the features' Gram matrix"),
              defaulted("calibration_bins", Integer{.lower = 1, .upper = 1000}, std::int64_t{15}, "",
                        "of the calibration error and the reliability diagram"),
          }};
}

Section experiment() {
  Texts names;
  for (const learning::Method method : learning::methods()) names.emplace_back(learning::name(method));
  return {.path = "experiment",
          .occurrence = Occurrence::Defaulted,
          .meaning = "methods and repetitions",
          .keys = {
              defaulted("methods", List{Text{}},
                        Texts{"fixed", "orthogonal", "importance_alignment", "importance_leverage", "learned",
                              "learned_no_repulsion", "learned_no_noise", "gradient_descent"},
                        "", "any of " + fmt::format("{}", fmt::join(names, ", "))),
              defaulted("baseline", Text{}, std::string("fixed"), "",
                        "method that paired differences are taken against"),
              defaulted("seeds", Integer{.lower = 1, .upper = 100000}, std::int64_t{5}, "",
                        "repetitions: split, noise, features"),
              defaulted("seed", Integer{.lower = 0}, std::int64_t{1}, "", "of the first repetition"),
              defaulted("pool_factor", Integer{.lower = 2, .upper = 1000}, std::int64_t{10}, "",
                        "candidates per feature of importance sampling"),
          }};
}

}  // namespace

const config::Schema& catalogue::learn() {
  static const config::Schema schema{top(),      data(),      synthetic(),  features(),  alignment(),
                                     dynamics(), selection(), classifier(), experiment()};
  return schema;
}

namespace learning {
namespace {

using config::Document;
using config::Table;

std::vector<std::size_t> sizes(const Integers& values) { return {values.begin(), values.end()}; }

void read_tables(Table& data, const std::filesystem::path& folder, Question& question) {
  const std::string label = data.text("label");
  const auto read = [&](const std::string& key, const std::filesystem::path& path) {
    DatasetReading reading = read_dataset(path, label);
    for (const std::string& what : reading.problems) data.problem(key, what);
    if (reading.problems.empty()) question.tables.push_back(std::move(reading.dataset));
  };
  const auto absolute = [&](const std::string& path) {
    return std::filesystem::absolute(folder / path).lexically_normal();
  };
  if (data.has("file")) {
    data.fill("file", absolute(data.text("file")).string());
    read("file", data.text("file"));
  }
  if (!data.has("files")) return;
  Texts paths;
  for (const std::string& path : data.texts("files")) {
    paths.push_back(absolute(path).string());
    std::error_code error;
    if (std::filesystem::exists(paths.back(), error))
      read("files", paths.back());
    else
      question.skipped.push_back(fmt::format("{} is not there: skipped", paths.back()));
  }
  data.fill("files", paths);
  if (question.tables.empty() && data.good() && !data.has("file"))
    data.problem("files", "none of them exists");
}

Question question_of(Document& document, const Request& request) {
  Question question;
  question.name = name_of(document, request, "learn");
  question.threads = request.threads;

  if (Table* table = document.table("data"); table != nullptr && table->good()) {
    question.split = {.train_fraction = table->number("train_fraction"),
                      .most_train_rows = static_cast<std::size_t>(table->integer("most_train_rows")),
                      .most_test_rows = static_cast<std::size_t>(table->integer("most_test_rows"))};
    question.label_noise = table->numbers("label_noise");
    question.input_noise = table->numbers("input_noise");
    read_tables(*table, request.config.parent_path(), question);
  }
  if (Table* table = document.table("synthetic"); table != nullptr && table->good()) {
    question.dimensions = sizes(table->integers("dimensions"));
    question.synthetic = {.dimension = question.dimensions.front(),
                          .frequencies = static_cast<std::size_t>(table->integer("frequencies")),
                          .radius = table->number("radius"),
                          .train_rows = static_cast<std::size_t>(table->integer("train_rows")),
                          .test_rows = static_cast<std::size_t>(table->integer("test_rows"))};
  }
  LearnerOptions& learner = question.learner;
  if (Table* table = document.table("features"); table != nullptr && table->good()) {
    learner.map = *feature_map_named(table->text("map"));
    question.feature_counts = sizes(table->integers("counts"));
    question.length_scale = table->has("length_scale") ? table->number("length_scale") : 0.0;
    if (learner.map == FeatureMap::Circle)
      table->problem("map",
                     "\"circle\" needs one angle per point and no standardisation: it is for the potential "
                     "\"alignment\" of `run`");
  }
  Table* const alignment = document.table("alignment");
  if (alignment != nullptr && alignment->good()) {
    for (const AlignmentKind kind : {AlignmentKind::Linear, AlignmentKind::SquaredLoss,
                                     AlignmentKind::Normalised, AlignmentKind::RidgeLoss})
      if (alignment->text("kind") == name(kind)) learner.alignment = kind;
    learner.strength = alignment->number("strength");
    learner.ridge_penalty = alignment->number("ridge_penalty");
    learner.batch_rows = static_cast<std::size_t>(alignment->integer("batch_rows"));
    if (learner.batch_rows > 0 && learner.alignment == AlignmentKind::RidgeLoss)
      alignment->problem("batch_rows",
                         "must be 0 for the ridge loss: its inverse of a batch mean would be biased");
  }
  if (Table* table = document.table("dynamics"); table != nullptr && table->good()) {
    learner.inverse_temperatures = table->numbers("inverse_temperatures");
    learner.confinement = table->boolean("confinement");
    learner.repulsion = table->number("repulsion");
    learner.repulsion_exponent = table->number("repulsion_exponent");
    learner.repulsion_softening = table->number("softening");
    learner.ball = table->text("domain") == "ball";
    learner.radius = table->has("radius") ? table->number("radius") : 0.0;
    for (const auto scheme :
         {particle::Scheme::Projected, particle::Scheme::Reflected, particle::Scheme::Mala})
      if (table->text("scheme") == name(scheme)) learner.scheme = scheme;
    learner.timestep = table->number("timestep");
    learner.timestep_decay = table->number("timestep_decay");
    learner.annealing = table->number("annealing");
    learner.end = table->number("end");
    learner.check_every = table->number("check_every");
    const bool noiseless =
        std::any_of(learner.inverse_temperatures.begin(), learner.inverse_temperatures.end(),
                    [](double beta) { return std::isinf(beta); });
    if (learner.scheme == particle::Scheme::Mala && noiseless)
      table->problem("scheme", "\"mala\" needs a finite inverse temperature");
    if (learner.scheme == particle::Scheme::Mala && learner.batch_rows > 0)
      table->problem("scheme", "\"mala\" needs exact energies: batch_rows must be 0");
    if (learner.end / learner.check_every > 1e5)
      table->problem("check_every", "is too short: more than 1e5 checks until the end");
    std::size_t smallest = question.dimensions.front();
    for (const std::size_t d : question.dimensions) smallest = std::min(smallest, d);
    for (const Dataset& dataset : question.tables)
      smallest = std::min(question.tables.size() == 1 ? dataset.dimension : smallest, dataset.dimension);
    const double p = static_cast<double>(particle_dimension(learner.map, smallest));
    if (learner.repulsion > 0.0 && learner.repulsion_exponent >= p)
      table->problem("repulsion_exponent", fmt::format("is {}, must be < {}, the dimension of the particles",
                                                       learner.repulsion_exponent, p));
  }
  if (Table* table = document.table("selection"); table != nullptr && table->good()) {
    for (const Criterion criterion : {Criterion::ClassifierLoss, Criterion::Alignment, Criterion::None})
      if (table->text("criterion") == name(criterion)) learner.criterion = criterion;
    learner.validation_fraction = table->number("validation_fraction");
    learner.validation_splits = static_cast<std::size_t>(table->integer("validation_splits"));
  }
  if (Table* table = document.table("classifier"); table != nullptr && table->good()) {
    question.classifier.classifier =
        table->text("kind") == "ridge" ? Classifier::Ridge : Classifier::Logistic;
    question.classifier.penalties = table->numbers("penalties");
    question.calibration_bins = static_cast<std::size_t>(table->integer("calibration_bins"));
  }
  if (Table* table = document.table("experiment"); table != nullptr && table->good()) {
    const auto method = [&](const std::string& key, const std::string& word) {
      const auto found = method_named(word);
      if (!found) table->problem(key, fmt::format("\"{}\" is no method; `rieszflow list` names them", word));
      return found;
    };
    for (const std::string& word : table->texts("methods"))
      if (const auto found = method("methods", word)) question.methods.push_back(*found);
    if (const auto found = method("baseline", table->text("baseline"))) {
      question.baseline = *found;
      if (std::find(question.methods.begin(), question.methods.end(), *found) == question.methods.end())
        table->problem("baseline", fmt::format("\"{}\" must be one of the methods", table->text("baseline")));
    }
    question.seeds = static_cast<std::size_t>(table->integer("seeds"));
    if (request.seed) table->fill("seed", *request.seed);
    question.seed = static_cast<std::uint64_t>(table->integer("seed"));
    question.pool_factor = static_cast<std::size_t>(table->integer("pool_factor"));
  }
  return question;
}

}  // namespace

Assembly assemble(const Request& request) {
  const auto document = read_config(request, "learn", "name = \"learn\"\n");
  Question question = question_of(*document, request);
  document->throw_problems();
  return {std::move(question), document->resolved()};
}

}  // namespace learning
}  // namespace rieszflow
