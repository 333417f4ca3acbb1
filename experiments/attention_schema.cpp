#include "experiments/attention_schema.hpp"

#include <limits>
#include <string>
#include <vector>

#include "attention/random_features.hpp"

namespace rieszflow::catalogue {
namespace {

using config::Boolean;
using config::Choice;
using config::defaulted;
using config::Integer;
using config::Key;
using config::List;
using config::Number;
using config::Occurrence;
using config::optional;
using config::Presence;
using config::required;
using config::Section;
using config::Text;
using Numbers = std::vector<double>;
using Integers = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

Integer at_least(std::int64_t lower) { return {.lower = lower, .upper = 100000000}; }
Number probability() { return {.lower = 0.0, .upper = 0.95}; }

Section top() {
  return {.path = "",
          .occurrence = Occurrence::Required,
          .meaning = "",
          .keys = {optional("name", Text{.is_name = true}, std::string("attention"), "",
                            "of the experiment; absent: the name of this file")}};
}

Section study() {
  return {
      .path = "study",
      .occurrence = Occurrence::Defaulted,
      .meaning = "which encoders are trained",
      .keys = {
          defaulted(
              "size",
              Choice{{{"full", "as written"},
                      {"quick",
                       "at most 2 seeds, 2000 training rows, 1000 test rows, 2 epochs, 20 steps of phase A"},
                      {"smoke", "1 seed, 400 training rows, 200 test rows, 1 epoch, 10 steps of phase A"}}},
              std::string("full"), "", "cuts the study down"),
          defaulted(
              "variants", List{Text{}},
              Texts{"uniform", "softmax", "favor", "favor/kernel", "favor/norm_matched", "softplus",
                    "softplus/kernel", "softplus/norm_matched", "softmaxfeat", "softmaxfeat/kernel",
                    "softmaxfeat/norm_matched"},
              "",
              "uniform, softmax, or favor | softplus | softmaxfeat, with -qk where queries are keys, and "
              "/kernel | /norm_matched | /shuffled_labels | /no_repulsion | /backprop; bag_of_bigrams"),
          defaulted("seeds", Integer{.lower = 1, .upper = 1000}, std::int64_t{5}, "", "repetitions"),
          defaulted("seed", Integer{.lower = 0}, std::int64_t{0}, "", "of the first repetition"),
          defaulted("corruption_rates", List{Number{.lower = 0.0, .upper = 1.0}, 0}, Numbers{0.05, 0.1, 0.2},
                    "", "of word dropout, swaps and typos in the test sentences; none: []"),
          defaulted("calibration_bins", Integer{.lower = 1, .upper = 1000}, std::int64_t{15}, "", ""),
          defaulted("phase_a_at_start", Boolean{}, false, "",
                    "phase A also at the random start of kernel variants, for its alignment alone"),
      }};
}

Section dataset() {
  return {
      .path = "dataset",
      .occurrence = Occurrence::Repeated,
      .meaning = "what is classified, one or more",
      .variants = {
          {"selection",
           "the label is held by the token that a query token points to, among distractors",
           {
               defaulted("lengths", List{at_least(2)}, Integers{16}, "tokens", "one experiment each"),
               defaulted("keys", Integer{.lower = 2, .upper = 10000}, std::int64_t{4}, "", "distinct keys"),
               defaulted("values", Integer{.lower = 2, .upper = 100}, std::int64_t{2}, "", "classes"),
               defaulted("targets", at_least(1), std::int64_t{1}, "", "tokens that hold the label"),
               defaulted("label_noise", Number{.lower = 0.0, .upper = 1.0}, 0.0, "",
                         "probability of a random label"),
               defaulted("train_rows", at_least(50), std::int64_t{6000}, "", ""),
               defaulted("test_rows", at_least(50), std::int64_t{1000}, "", "and as many of dev"),
               defaulted("epochs", Number::positive(), 4.0, "", "of phase B"),
               defaulted("learning_rate", Number::positive(), 1e-2, "", "largest"),
               defaulted("embedding_rate", Number::positive(), 3.0, "", "factor of it for embeddings"),
               defaulted("weight_decay", Number::non_negative(), 0.01, "",
                         "of matrices and embeddings per step, times the rate"),
               defaulted("dropout", probability(), 0.0, "", ""),
               defaulted("word_dropout", probability(), 0.0, "", ""),
               defaulted("common_scale", Number::non_negative(), 0.3, "",
                         "standard deviation of a vector that all positions have in common at the start"),
           }},
          {"text",
           "a folder with train.tsv, dev.tsv and test.tsv",
           {
               required("folder", Text{}, std::string("data/rt"), "", "relative to this config"),
               defaulted("epochs", Number::positive(), 4.0, "", "of phase B"),
               defaulted("dropout", probability(), 0.2, "", ""),
               defaulted("word_dropout", probability(), 0.1, "", "probability that a token becomes unknown"),
               defaulted("learning_rate", Number::positive(), 1e-3, "", "largest"),
               defaulted("embedding_rate", Number::positive(), 1.0, "", "factor of it for embeddings"),
               defaulted("weight_decay", Number::non_negative(), 0.01, "",
                         "of matrices and embeddings per step, times the rate"),
               defaulted("common_scale", Number::non_negative(), 0.3, "",
                         "standard deviation of a vector that all positions have in common at the start"),
               defaulted("log_odds_smoothing", Number::non_negative(), 5.0, "",
                         "counts added in the naive-Bayes start; 0: random start"),
               defaulted("longest", at_least(4), std::int64_t{64}, "tokens",
                         "of a sentence; the rest is cut off"),
               defaulted("fewest", at_least(1), std::int64_t{1}, "", "occurrences of a word with a token"),
               defaulted("fewest_bigrams", at_least(0), std::int64_t{0}, "",
                         "occurrences of two tokens in a row that have an embedding together; 0: none"),
               defaulted("most_train_rows", at_least(50), std::int64_t{1000000}, "", "the first ones"),
           }},
      }};
}

Section model() {
  return {.path = "model",
          .occurrence = Occurrence::Defaulted,
          .meaning = "the encoder; lists: one experiment for each combination",
          .keys = {
              defaulted("layers", Integer{.lower = 1, .upper = 100}, std::int64_t{1}, "", ""),
              defaulted("heads", Integer{.lower = 1, .upper = 1000}, std::int64_t{2}, "", ""),
              defaulted("width", Integer{.lower = 0, .upper = 65536}, std::int64_t{0}, "",
                        "of the encoder, of which each head takes its dimension; 0: heads of each dimension"),
              defaulted("head_dimensions", List{Integer{.lower = 2, .upper = 1024}}, Integers{16}, "",
                        "width of the encoder / heads"),
              defaulted("features", List{Integer{.lower = 1, .upper = 65536}}, Integers{64}, "",
                        "m of each head"),
              defaulted("feed_forward", Integer{.lower = 1, .upper = 65536}, std::int64_t{64}, "", ""),
          }};
}

Section training() {
  return {.path = "training",
          .occurrence = Occurrence::Defaulted,
          .meaning =
              "AdamW with warm-up and cosine; phase B starts from the warm start that all treatments share",
          .keys = {
              defaulted("warm_start_epochs", Number::non_negative(), 1.0, "", "before phase A; 0: none"),
              defaulted("embedding_scale", Number::positive(), 0.01, "",
                        "standard deviation of the embeddings at the start"),
              defaulted("batch_rows", at_least(1), std::int64_t{64}, "", ""),
              defaulted("warm_up", Number{.lower = 0.0, .upper = 0.9}, 0.1, "", "share of the steps"),
              defaulted("clip", Number::positive(), 1.0, "", "largest norm of the gradient"),
              defaulted("averaging", Number{.lower = 0.0, .upper = 0.9999}, 0.98, "",
                        "decay per step of the average of the weights that is checked and kept"),
              defaulted("checks_per_epoch", Integer{.lower = 1, .upper = 1000}, std::int64_t{2}, "",
                        "of the log-loss on dev, whose lowest chooses the checkpoint"),
          }};
}

Section phase_a() {
  return {
      .path = "phase_a",
      .occurrence = Occurrence::Defaulted,
      .meaning = "omega as particles: centred normalised alignment + repulsion; lists: one experiment each",
      .keys = {
          defaulted("steps", at_least(1), std::int64_t{60}, "", ""),
          defaulted("batch_rows", at_least(2), std::int64_t{256}, "",
                    "of each of two fresh batches per step"),
          defaulted("moves", List{Number::positive()}, Numbers{0.1}, "",
                    "root mean square move of the first step, in norms of the particles"),
          defaulted("first_inverse_temperatures",
                    List{Number{.lower = 0.0, .lower_included = false, .may_be_infinite = true}},
                    Numbers{1e4}, "1/energy", "beta at the start"),
          defaulted("last_inverse_temperature",
                    Number{.lower = 0.0, .lower_included = false, .may_be_infinite = true}, 1e6, "1/energy",
                    "beta at the end"),
          defaulted("repulsions", List{Number::non_negative()}, Numbers{0.01}, "energy", "lambda"),
          defaulted("exponents", List{Number::any()}, Numbers{0.0}, "", "s; 0: the logarithm"),
          defaulted("softening", Number::positive(), 0.1, "length", "of the repulsion"),
          defaulted("norms", List{Text{}}, Texts{"held"}, "",
                    "held: each particle stays on the sphere of its norm; free: in a ball"),
          defaulted("radius", Number{.lower = 1.0}, 1.5, "", "of the ball, in largest norms at the start"),
          defaulted("scheme", Choice{{{"projected", "Algorithm 1"}, {"reflected", "mirror reflection"}}},
                    std::string("reflected"), "", "at the wall of the ball"),
          defaulted("check_every", at_least(1), std::int64_t{10}, "steps", "of traces and of the timestep"),
          defaulted("most_rows", at_least(10), std::int64_t{8192}, "",
                    "of train that batches are drawn from"),
          defaulted("held_out_rows", at_least(10), std::int64_t{1000}, "", "of dev"),
      }};
}

Section regime() {
  return {
      .path = "regime",
      .occurrence = Occurrence::Repeated,
      .meaning =
          "one part of a map, all combinations of its lists; what it does not name has the first value "
          "of the lists above. Without any: all combinations of all lists",
      .keys = {
          optional("datasets", List{Text{}}, Texts{"selection-16"}, "",
                   "folders of text, or selection-LENGTH; absent: the first"),
          optional("variants", List{Text{}}, Texts{"favor", "favor/kernel"}, "", "absent: those of study"),
          optional("seeds", Integer{.lower = 1, .upper = 1000}, std::int64_t{5}, "",
                   "absent: those of study"),
          optional("head_dimensions", List{Integer{.lower = 2, .upper = 1024}}, Integers{8}, "",
                   "absent: the first"),
          optional("features", List{Integer{.lower = 1, .upper = 65536}}, Integers{16}, "",
                   "absent: the first"),
          optional("moves", List{Number::positive()}, Numbers{0.1}, "", "absent: the first"),
          optional("first_inverse_temperatures",
                   List{Number{.lower = 0.0, .lower_included = false, .may_be_infinite = true}}, Numbers{1e4},
                   "1/energy", "absent: the first"),
          optional("repulsions", List{Number::non_negative()}, Numbers{0.0, 0.01}, "energy",
                   "absent: the first"),
          optional("exponents", List{Number::any()}, Numbers{0.0}, "", "absent: the first"),
          optional("norms", List{Text{}}, Texts{"held", "free"}, "", "absent: the first"),
      }};
}

}  // namespace

const config::Schema& attention() {
  static const config::Schema schema{top(), study(), dataset(), model(), training(), phase_a(), regime()};
  return schema;
}

std::vector<std::pair<std::string, std::string>> attention_kinds() {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const rieszflow::attention::AttentionKind kind : rieszflow::attention::attention_kinds())
    lines.emplace_back(rieszflow::attention::name(kind), rieszflow::attention::meaning(kind));
  return lines;
}

}  // namespace rieszflow::catalogue
