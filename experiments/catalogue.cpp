#include "experiments/catalogue.hpp"

#include <algorithm>

#include "experiments/attention_schema.hpp"
#include "experiments/convergence.hpp"
#include "experiments/learning_config.hpp"
#include "experiments/verify_config.hpp"
#include "features/feature_map.hpp"
#include "solvers/pde/evolution.hpp"

namespace rieszflow::catalogue {
using config::Choice;

Choice feature_choice() {
  Choice choice;
  for (const FeatureMap map : feature_maps())
    choice.options.push_back({std::string(name(map)), std::string(formula(map))});
  return choice;
}

Choice alignment_choice() {
  return {{{"linear", "- E[y y' K]"},
           {"squared_loss", "E (y y' - K)^2 / 2"},
           {"normalised", "- <K, y y'> / (|K| |y y'|), centred"},
           {"ridge_loss", "min_f E (y - f)^2 + penalty |f|_K^2"}}};
}

namespace {

using config::defaulted;
using config::Integer;
using config::Key;
using config::List;
using config::Number;
using config::NumberOrWord;
using config::Occurrence;
using config::optional;
using config::Presence;
using config::required;
using config::Schema;
using config::Section;
using config::Text;
using config::Variant;

using Numbers = std::vector<double>;
using Integers = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

constexpr std::int64_t largest_count = 1'000'000'000'000;
constexpr std::int64_t most_cells_per_axis = 1'000'000'000;

Key lower() {
  return required("lower", List{Number::any()}, Numbers{-1.0}, "length", "lower corner; its length is d");
}
Key upper() { return required("upper", List{Number::any()}, Numbers{1.0}, "length", "upper corner"); }
Key strength() { return required("strength", Number::any(), 1.0, "energy", "repulsive when positive"); }
Key softening() {
  return defaulted("softening", Number::non_negative(), 0.0, "length", "r^2 becomes r^2 + softening^2");
}

Section top() {
  return {.path = "",
          .occurrence = Occurrence::Required,
          .meaning = "",
          .keys = {optional("name", Text{.is_name = true}, std::string("run"), "",
                            "of the run; absent: the name of this file")}};
}

Section model() {
  return {.path = "model",
          .occurrence = Occurrence::Required,
          .meaning = "H_N = (1/N) sum V(x_i) + (1/(2 N^2)) sum W(x_i, x_j)",
          .keys = {required("inverse_temperature",
                            Number{.lower = 0.0, .lower_included = false, .may_be_infinite = true}, 4.0,
                            "1/energy", "beta; inf: gradient flow without noise")}};
}

Section domain() {
  return {
      .path = "model.domain",
      .occurrence = Occurrence::Required,
      .meaning = "where particles and density live",
      .variants = {
          {"box", "product of intervals with reflecting walls; an interval when d = 1", {lower(), upper()}},
          {"ball",
           "closed Euclidean ball with a reflecting wall",
           {required("center", List{Number::any()}, Numbers{0.0}, "length", "its length is the dimension d"),
            required("radius", Number::positive(), 1.0, "length", "of the ball")}},
          {"torus", "periodic box: opposite faces are one", {lower(), upper()}},
          {"whole_space",
           "all of R^d, particles only",
           {required("dimension", Integer{.lower = 1, .upper = 1000}, std::int64_t{1}, "", "d")}},
      }};
}

Section potential() {
  return {
      .path = "model.potential",
      .occurrence = Occurrence::Repeated,
      .meaning = "external potential V, a sum over these tables",
      .variants = {
          {"quadratic",
           "V = stiffness |x - center|^2 / 2",
           {required("stiffness", Number::any(), 1.0, "energy/length^2", "confining when positive"),
            optional("center", List{Number::any()}, Numbers{0.0}, "length", "absent: the origin")}},
          {"double_well",
           "V = height sum_k ((x_k/width)^2 - 1)^2",
           {required("height", Number::any(), 1.0, "energy", "of the barrier between the wells"),
            required("width", Number::positive(), 0.5, "length", "distance of a minimum from the origin")}},
          {"polynomial",
           "V = sum_k sum_p coefficients[p] x_k^p",
           {required("coefficients", List{Number::any()}, Numbers{0.0, 0.0, -0.5, 0.0, 0.25},
                     "energy/length^p", "of the powers 0, 1, 2, ... of each coordinate")}},
          {"cosine",
           "V = amplitude sum_k cos(wavenumber x_k)",
           {required("amplitude", Number::any(), 1.0, "energy", "of each coordinate's wave"),
            required("wavenumber", Number::any(), 3.0, "1/length", "of each coordinate's wave")}},
          {"expression",
           "V given as text in x, y, z (d > 3: x1, x2, ...)",
           {required("value", Text{}, std::string("x^2/2 + 0.1*cos(3*x)"), "energy", "V(x)")}},
          {"alignment",
           "no V but A(mu), the alignment of the kernel of mu with labels; particles are feature parameters",
           {required("kind", alignment_choice(), std::string("squared_loss"), "", "alignment"),
            required("map", feature_choice(), std::string("circle"), "",
                     "feature map; its parameters are the coordinates"),
            defaulted("strength", Number::any(), 1.0, "energy", "factor of A"),
            defaulted("ridge_penalty", Number::positive(), 1e-3, "", "of the ridge loss"),
            optional("file", Text{}, std::string("data.csv"), "",
                     "CSV table, standardised and divided by its median distance; absent: sqrt(2) cos x on "
                     "the circle"),
            defaulted("label", Text{}, std::string("label"), "", "name of the label column"),
            defaulted("most_rows", Integer{.lower = 10}, std::int64_t{1000}, "",
                      "of the table, evenly spread")}},
          {"table",
           "V from a text file of rows x [y z] V on a uniform grid, last coordinate fastest",
           {required("file", Text{}, std::string("potential.txt"), "", "path, relative to this config")}},
      }};
}

Section interaction() {
  return {
      .path = "model.interaction",
      .occurrence = Occurrence::Repeated,
      .meaning = "pair interaction W, a sum over these tables; r = |x - y|",
      .variants = {
          {"riesz",
           "W = strength r^-s / s, s < d, s != 0; s = -1 is the 1-d Coulomb -r",
           {required("exponent", Number::any(), 0.5, "", "s"), strength(), softening()}},
          {"log", "W = -strength log r", {strength(), softening()}},
          {"coulomb", "riesz with s = d - 2, log when d = 2", {strength(), softening()}},
          {"gaussian",
           "W = strength exp(-r^2 / (2 length^2))",
           {strength(), required("length", Number::positive(), 0.5, "length", "range of W")}},
          {"morse",
           "W = repulsion_strength exp(-r/repulsion_length) - attraction_strength exp(-r/attraction_length)",
           {required("repulsion_strength", Number::any(), 1.0, "energy", "of the first term"),
            required("repulsion_length", Number::positive(), 0.25, "length", "of the first term"),
            required("attraction_strength", Number::any(), 0.5, "energy", "of the second term"),
            required("attraction_length", Number::positive(), 0.5, "length", "of the second term")}},
          {"quadratic",
           "W = strength |x - y|^2 / 2",
           {required("strength", Number::any(), 1.0, "energy/length^2", "attractive when positive")}},
          {"cosine",
           "W = -strength sum_k cos(x_k - y_k)",
           {required("strength", Number::any(), 1.0, "energy", "attractive when positive")}},
          {"expression",
           "W given as text in r",
           {required("value", Text{}, std::string("exp(-r)"), "energy", "W(r)")}},
          {"low_rank",
           "W = strength sum_k g_k(x) g_k(y)",
           {required("strength", Number::any(), 1.0, "energy", "positive definite when positive"),
            required("functions", List{Text{}}, Texts{"x", "x^2"}, "",
                     "g_k, each as text in the coordinates")}},
      }};
}

std::vector<Key> gaussian_keys() {
  return {
      required("mean", List{Number::any()}, Numbers{0.0}, "length", "one number for each coordinate"),
      required("std", List{Number::positive()}, Numbers{0.3}, "length", "one number for each coordinate")};
}

Section initial() {
  return {
      .path = "initial",
      .occurrence = Occurrence::Required,
      .meaning = "law of the particles and density at time 0",
      .variants = {
          {"gaussian", "normal, coordinates independent, truncated to the domain", gaussian_keys()},
          {"uniform", "uniform on a bounded domain", {}},
          {"mixture", "mixture of the Gaussians of [[initial.components]]", {}},
          {"expression",
           "unnormalised density given as text in the coordinates",
           {required("density", Text{}, std::string("1 + 0.5*cos(3*x)"), "", ">= 0 on the domain")}},
          {"file",
           "a snapshot of an earlier run",
           {required("file", Text{}, std::string("out/earlier/run.h5"), "",
                     "run file, relative to this config"),
            optional("time", Number::non_negative(), 1.0, "time", "of the snapshot; absent: the last one"),
            optional(
                "state",
                Choice{{{"density", "the density on its grid"}, {"particles", "the positions as they are"}}},
                std::string("density"), "", "absent: the density where the file has one")}},
      }};
}

Section initial_components() {
  std::vector<Key> keys = gaussian_keys();
  keys.insert(keys.begin(), defaulted("weight", Number::positive(), 1.0, "", "relative to the others"));
  return {.path = "initial.components",
          .occurrence = Occurrence::Repeated,
          .meaning = "one Gaussian of the mixture",
          .keys = keys,
          .only_for = "mixture"};
}

Section time() {
  return {
      .path = "time",
      .occurrence = Occurrence::Required,
      .meaning = "of the model; starts at 0",
      .keys = {
          required("end", Number::non_negative(), 2.0, "time", "when the run ends"),
          optional("output_every", Number::positive(), 0.1, "time", "interval of series; absent: end / 100"),
          optional("snapshots_every", Number::positive(), 0.1, "time",
                   "interval of positions and densities, a multiple of output_every; absent: output_every"),
      }};
}

Section particles() {
  return {.path = "particles",
          .occurrence = Occurrence::Optional,
          .meaning = "the finite-N side; leave out to run the density alone",
          .keys = {
              required("count", Integer{.lower = 1, .upper = largest_count}, std::int64_t{100}, "", "N"),
              defaulted("replicas", Integer{.lower = 1, .upper = largest_count}, std::int64_t{8}, "",
                        "independent copies, for standard errors"),
              required("timestep",
                       NumberOrWord{Number::positive(), {"auto", "found by a pilot run for `accuracy`"}},
                       1e-3, "time", "largest step"),
              defaulted("accuracy", Number{.lower = 1e-5, .upper = 0.5}, 0.005, "",
                        "relative bias of the second moment that timestep = \"auto\" aims at"),
              defaulted(
                  "scheme",
                  Choice{{{"projected",
                           "Euler-Maruyama, then the nearest point of the domain; weak order 1/2 at a wall"},
                          {"reflected", "Euler-Maruyama, then mirror reflection; weak order 1"},
                          {"mala", "Langevin proposals with a Metropolis test; no bias in equilibrium"}}},
                  std::string("reflected"), "", "Langevin scheme"),
              defaulted("summation",
                        Choice{{{"auto", "the cheaper of the two"},
                                {"direct", "all pairs, exact to round-off"},
                                {"fast", "near pairs and a grid, to a tolerance; d <= 3"},
                                {"random_batch", "batches of particles drawn at each step; biased, O(N)"}}},
                        std::string("auto"), "", "of the pair forces"),
              defaulted("precision",
                        Choice{{{"double", "relative error of a pair 1e-15"},
                                {"single", "relative error of the forces about 1e-6, twice as fast"}}},
                        std::string("double"), "", "of the direct pair forces"),
              defaulted("batch_size", Integer{.lower = 2, .upper = largest_count}, std::int64_t{16}, "",
                        "particles in a random batch"),
              defaulted("tolerance", Number{.lower = 1e-13, .upper = 0.1}, 1e-6, "",
                        "relative error of fast forces"),
              defaulted("seed", Integer{.lower = 0}, std::int64_t{1}, "", "of all random numbers"),
          }};
}

Choice density_schemes() {
  Choice choice{
      {{"auto",
        "upwind at inverse_temperature = inf, else semi_implicit, with limited fluxes in steps that begin "
        "with a mean cell Peclet number above 2"}}};
  for (const pde::Scheme scheme : pde::schemes())
    choice.options.push_back({std::string(pde::name(scheme)), std::string(pde::description(scheme))});
  return choice;
}

Key cell_weights() {
  return defaulted("weights",
                   Choice{{{"galerkin", "means over both cells: the exact energy of the cell averages"},
                           {"cell_average", "from the centre of one over the other"}}},
                   std::string("galerkin"), "", "of W between cells");
}

Section density() {
  return {.path = "density",
          .occurrence = Occurrence::Optional,
          .meaning = "the mean-field side; leave out to run the particles alone",
          .keys = {
              required("cells", List{Integer{.lower = 1, .upper = most_cells_per_axis}, 1, 3}, Integers{256},
                       "", "of the grid, one number for each coordinate"),
              defaulted("scheme", density_schemes(), std::string("auto"), "", "finite-volume scheme"),
              cell_weights(),
              optional("timestep", Number::positive(), 1e-3, "time", "fixed step; absent: adaptive"),
              defaulted("tolerance", Number{.lower = 1e-14, .upper = 0.1}, 1e-5, "1/time",
                        "L1 error that the adaptive step aims at, per unit time"),
          }};
}

Section compare() {
  return {.path = "compare",
          .occurrence = Occurrence::Defaulted,
          .meaning = "of particles and density, when both run",
          .keys = {
              defaulted("enabled", config::Boolean{}, true, "", "compare them"),
              defaulted("bins", Integer{.lower = 1, .upper = 100'000}, std::int64_t{64}, "",
                        "of histograms, per axis"),
          }};
}

// ---- study ----

using Words = std::vector<config::Named>;

config::Variant large_deviations() {
  return {
      "large_deviations",
      "probabilities of rare events under the Gibbs law, against the rate function of the density",
      {
          required("levels", List{Number::any()}, Numbers{0.7}, "",
                   "c of the event; each level is a question of its own"),
          defaulted("event",
                    Choice{Words{{"above", "the statistic exceeds the level"},
                                 {"below", "the statistic stays under the level"},
                                 {"within", "its absolute value stays under the level"}}},
                    std::string("above"), "", "which values are rare"),
          defaulted("counts", List{Integer{.lower = 2, .upper = 100'000}}, Integers{10, 20, 40, 80}, "",
                    "N: the fit across them gives the rate"),
          optional("inverse_temperatures", List{Number::positive()}, Numbers{1.0, 2.0, 4.0, 8.0}, "1/energy",
                   "beta; absent: that of the model"),
          defaulted("method",
                    Choice{Words{{"auto", "chosen by a pilot run"},
                                 {"direct", "fraction of an unbiased chain"},
                                 {"tilt", "exponential tilts, reweighted; convex rates"},
                                 {"umbrella", "harmonic windows, reweighted; rates of any shape"},
                                 {"splitting", "adaptive multilevel splitting; any statistic"}}},
                    std::string("auto"), "", "how the probability is measured"),
          defaulted("replicates", Integer{.lower = 2, .upper = 10'000}, std::int64_t{32}, "",
                    "independent repetitions: the standard error"),
          defaulted("sweeps", Integer{.lower = 10, .upper = 1'000'000'000}, std::int64_t{2000}, "",
                    "Monte Carlo sweeps per window and replicate"),
          defaulted(
              "target_error", Number::non_negative(), 0.0, "",
              "replicates are added until log P is known to this standard error; 0: no more than given"),
          defaulted("walkers", Integer{.lower = 10, .upper = 10'000'000}, std::int64_t{1000}, "",
                    "of splitting, per replicate"),
          defaulted("seed", Integer{.lower = 0}, std::int64_t{1}, "", "of all random numbers"),
          optional("cells", List{Integer{.lower = 2, .upper = most_cells_per_axis}, 1, 3}, Integers{400}, "",
                   "grid of the rate function; absent: 400 in d = 1, 96 per axis in d = 2, 24 in d = 3"),
      }};
}

config::Variant stationary() {
  return {"stationary",
          "stationary states: branches, stability, relaxation rates, zero temperature",
          {
              defaulted("parameter",
                        Choice{Words{{"inverse_temperature", "beta, in place of model.inverse_temperature"},
                                     {"strength", "a factor of all interactions"}}},
                        std::string("inverse_temperature"), "", "what continuation varies"),
              optional("values", List{Number{.lower = 0.0, .lower_included = false, .may_be_infinite = true}},
                       Numbers{1.0, 2.0, 3.0, 4.0}, "",
                       "of the parameter, in the order of the path; absent: the model alone"),
              optional("cells", List{Integer{.lower = 2, .upper = most_cells_per_axis}, 1, 3}, Integers{400},
                       "", "of the grid; absent: 400 in d = 1, 96 per axis in d = 2, 24 in d = 3"),
              cell_weights(),
              defaulted("random_starts", Integer{.lower = 0, .upper = 10'000}, std::int64_t{8}, "",
                        "of the search at each value, besides uniform and tilted starts"),
              defaulted("rates", Integer{.lower = 0, .upper = 100}, std::int64_t{4}, "",
                        "lowest relaxation rates of each state (finite beta)"),
              defaulted("tolerance", Number{.lower = 1e-14, .upper = 1e-3}, 1e-12, "", "of the residual"),
              defaulted("seed", Integer{.lower = 0}, std::int64_t{1}, "", "of the random starts"),
          }};
}

Key grid_of_the_density() {
  return optional("cells", List{Integer{.lower = 2, .upper = most_cells_per_axis}, 1, 3}, Integers{400}, "",
                  "grid of the density; absent: 400 in d = 1, 96 per axis in d = 2, 24 in d = 3");
}

config::Variant partition_function() {
  return {
      "partition_function",
      "(1/N) log Z_N of the Gibbs law, against -beta min F of the density",
      {
          required("counts", List{Integer{.lower = 1, .upper = 100'000}}, Integers{10, 20, 40, 80}, "", "N"),
          optional("inverse_temperatures", List{Number::positive()}, Numbers{1.0, 2.0, 10.0}, "1/energy",
                   "beta; absent: that of the model"),
          defaulted("method",
                    Choice{Words{{"reweighting", "overlapping couplings, multistate Bennett ratios"},
                                 {"thermodynamic", "integration over the coupling: an independent check"}}},
                    std::string("reweighting"), "", "how log Z is found along the coupling of W"),
          defaulted("replicates", Integer{.lower = 2, .upper = 10'000}, std::int64_t{32}, "",
                    "independent repetitions: the standard error"),
          defaulted("sweeps", Integer{.lower = 10, .upper = 1'000'000'000}, std::int64_t{2000}, "",
                    "Monte Carlo sweeps per window and replicate"),
          defaulted("seed", Integer{.lower = 0}, std::int64_t{1}, "", "of all random numbers"),
          grid_of_the_density(),
      }};
}

config::Variant path_probability() {
  return {
      "path_probability",
      "probability of a rare event at the end of the dynamics, by paths under a learnt control",
      {
          required("function", Text{}, std::string("x"), "", "f of the statistic (1/N) sum f(x_i), as text"),
          required("levels", List{Number::any()}, Numbers{1.0}, "", "c of the event"),
          defaulted("event",
                    Choice{Words{{"above", "the statistic exceeds the level"},
                                 {"below", "the statistic stays under the level"}}},
                    std::string("above"), "", "which values are rare"),
          required("counts", List{Integer{.lower = 1, .upper = 100'000}}, Integers{10, 20, 40}, "", "N"),
          required("end", Number::positive(), 1.0, "time", "when the statistic is read"),
          required("timestep", Number::positive(), 0.01, "time",
                   "of the Euler chain whose probability this is"),
          required("start", List{Number::any()}, Numbers{0.0}, "length", "where all particles start"),
          defaulted("spread", Number::non_negative(), 0.0, "length",
                    "they start equally spaced within it (d = 1), on a circle of this radius (d = 2)"),
          defaulted("paths", Integer{.lower = 2, .upper = 100'000'000}, std::int64_t{1000}, "",
                    "per replicate"),
          defaulted("replicates", Integer{.lower = 2, .upper = 10'000}, std::int64_t{32}, "",
                    "independent repetitions: the standard error"),
          defaulted("intervals", Integer{.lower = 1, .upper = 10'000}, std::int64_t{10}, "",
                    "of time, on which the control is constant"),
          defaulted("learning_paths", Integer{.lower = 20, .upper = 10'000'000}, std::int64_t{500}, "",
                    "per round of learning the control"),
          defaulted("seed", Integer{.lower = 0}, std::int64_t{1}, "", "of all random numbers"),
      }};
}

/// A sweep of a side-by-side run: one of its numbers takes each of `values`.
config::Variant convergence(std::string name, std::string meaning, Key values) {
  Choice statistics;
  for (const convergence::QuantityName& known : convergence::quantity_names())
    statistics.options.push_back({std::string(known.name), std::string(known.meaning)});
  const bool densities = name == "grid";
  return {
      std::move(name),
      std::move(meaning),
      {
          std::move(values),
          defaulted("statistic", std::move(statistics),
                    std::string(densities ? "second_moment" : "mmd_squared"), "",
                    "the quantity q whose error is measured"),
          optional("function", Text{}, std::string("cos(x)"), "",
                   "f of statistic = \"linear\", in the coordinates"),
          optional("length", Number::positive(), 1.0, "length",
                   "of the Gaussian kernel; absent: root mean square distance of two points of the density"),
          defaulted(
              "error",
              Choice{Words{{"auto", "mean_square for linear statistics in the particle number, else bias"},
                           {"bias", "|E q - reference|"},
                           {"mean_square", "E (q - reference)^2"}}},
              std::string("auto"), "", "over replicas"),
          defaulted("reference",
                    Choice{Words{{"auto", "exact where it is given, else density where both run"},
                                 {"density", "the density at the same times"},
                                 {"exact", "the number in the key exact"},
                                 {"zero_temperature", "the density at beta = inf (type inverse_temperature)"},
                                 {"refinement", "the next finer row (densities alone)"}}},
                    std::string("auto"), "", "what q is compared with"),
          optional("exact", Number::any(), 0.5, "", "exact value of q"),
          optional("average_from", Number::non_negative(), 1.0, "time",
                   "errors are averaged over the outputs from here on; absent: the end alone"),
          optional("expected", Number::any(), -1.0, "",
                   "exponent; absent: that of theory, where there is one"),
          defaulted("tolerance", Number::non_negative(), 0.05, "",
                    "how far the expected exponent may lie outside of the 95 % interval (higher orders)"),
      }};
}

Key counts(Numbers sample) {
  return required("values", List{Number::positive(), 1}, std::move(sample), "",
                  "N, in place of particles.count");
}
Key averaged() {
  return optional("average_from", Number::non_negative(), 1.0, "time",
                  "averages are over the outputs from here on; absent: after a fifth of the run");
}
Key linear_function(std::string sample) {
  return required("function", Text{}, std::move(sample), "", "f, as text in the coordinates");
}

Section study_section() {
  return {
      .path = "study",
      .occurrence = Occurrence::Required,
      .meaning = "the question; a config without it is one of `rieszflow run`",
      .variants = {
          large_deviations(),
          convergence("particle_number", "errors of N particles against the density",
                      required("values", List{Number::positive(), 2}, Numbers{10.0, 20.0, 40.0, 80.0, 160.0},
                               "", "N, in place of particles.count")),
          convergence("inverse_temperature",
                      "errors against the density, or the approach to zero temperature",
                      required("values", List{Number::positive(), 2}, Numbers{1.0, 2.0, 4.0, 8.0}, "1/energy",
                               "beta, in place of model.inverse_temperature")),
          convergence(
              "timestep", "weak error of the particles' scheme, or order of the density's in time",
              required("values", List{Number::positive(), 2}, Numbers{0.04, 0.02, 0.01, 0.005}, "time",
                       "in place of particles.timestep (without particles: density.timestep)")),
          convergence("grid", "order of the density in the cell width",
                      required("values", List{Number::positive(), 2}, Numbers{32.0, 64.0, 128.0, 256.0}, "",
                               "cells per axis, in place of density.cells")),
          {"chaos",
           "N particles against independent mean-field copies with the same noise: rates in N",
           {counts({10.0, 20.0, 40.0, 80.0}),
            optional(
                "length", Number::positive(), 1.0, "length",
                "of the Gaussian kernel; absent: root mean square distance of two points of the density")}},
          {"identities",
           "contact theorem and Schwinger-Dyson: exact at every N, zero within noise for an unbiased sampler",
           {counts({10.0, 40.0}), averaged()}},
          {"boundary",
           "bias of an average by timestep: projected 1/2 with its constant, reflected 1, mala none",
           {required("values", List{Number::positive(), 2}, Numbers{0.02, 0.01, 0.005}, "time",
                     "in place of particles.timestep"),
            linear_function("x"), averaged()}},
          {"fluctuations",
           "N times covariances of linear statistics against the inverse Hessian of F on a grid",
           {counts({10.0, 20.0, 40.0}), linear_function("x"),
            optional("second_function", Text{}, std::string("x^3"), "",
                     "g, as text: their covariance and the variance of g as well"),
            averaged(),
            optional("cells", List{Integer{.lower = 2, .upper = most_cells_per_axis}, 1, 3}, Integers{400},
                     "", "grid of the limit; absent: 400 in d = 1, 32 per axis in d = 2, 10 in d = 3"),
            optional("exact", Number::any(), 0.15, "",
                     "the limit of N Var(f) in closed form, where it is known")}},
          stationary(),
          partition_function(),
          path_probability(),
      }};
}

/// A section of `run` for a study: which type needs it is the study's affair; what the study sweeps may be
/// left out.
Section swept(Section section, std::vector<std::string> optional_keys) {
  section.occurrence = Occurrence::Optional;
  for (Key& key : section.keys) {
    if (std::find(optional_keys.begin(), optional_keys.end(), key.name) != optional_keys.end())
      key.presence = Presence::Optional;
  }
  return section;
}

Section study_statistic() {
  const auto map = [] {
    return defaulted("map",
                     Choice{Words{{"fourier", "(cos <omega, z>, sin <omega, z>)"},
                                  {"circle", "sqrt2 cos(z - omega)"},
                                  {"positive_exponential", "exp(<omega, z> - |z|^2/2)"},
                                  {"relu", "max(0, <omega, z>)"}}},
                     std::string("fourier"), "", "phi(z; omega) of a particle omega");
  };
  return {
      .path = "study.statistic",
      .occurrence = Occurrence::Required,
      .meaning = "the number g(mu_N) that is rarely large",
      .variants =
          {{"mean",
            "(1/N) sum of one coordinate",
            {defaulted("axis", Integer{.lower = 0, .upper = 999}, std::int64_t{0}, "", "0 is the first")}},
           {"moment",
            "(1/N) sum over particles and coordinates of x^power",
            {required("power", Integer{.lower = 1, .upper = 64}, std::int64_t{2}, "",
                      "2: the mean of |x|^2")}},
           {"linear",
            "(1/N) sum f(x_i)",
            {required("value", Text{}, std::string("log((1+x)/2)"), "", "f, as text in the coordinates")}},
           {"largest",
            "max f(x_i): below c, all particles are inside {f < c}",
            {required("value", Text{}, std::string("abs(x)"), "", "f, as text in the coordinates")}},
           {"kernel_entry",
            "K(z, z') = (1/N) sum <phi(z; x_i), phi(z'; x_i)>",
            {map(), required("first", List{Number::any()}, Numbers{1.0}, "", "z"),
             required("second", List{Number::any()}, Numbers{-1.0}, "", "z'")}},
           {"kernel_distance",
            "root mean square over pairs of data points of K_N - K*, K* that of the minimiser of F",
            {map(), required("points", List{Number::any()}, Numbers{-1.0, 0.0, 1.0}, "",
                             "data points z, coordinates one after the other")}}},
      .only_for = "large_deviations"};
}

}  // namespace

const Schema& run() {
  static const Schema schema{
      top(),  model(),     domain(),  potential(), interaction(), initial(), initial_components(),
      time(), particles(), density(), compare()};
  return schema;
}

const Schema& study() {
  static const Schema schema{top(),
                             model(),
                             domain(),
                             potential(),
                             interaction(),
                             swept(initial(), {}),
                             initial_components(),
                             swept(time(), {}),
                             swept(particles(), {"count", "timestep"}),
                             swept(density(), {"cells"}),
                             study_section(),
                             study_statistic()};
  return schema;
}

std::vector<std::string> study_types() {
  std::vector<std::string> names;
  for (const config::Variant& variant : study_section().variants) names.push_back(variant.name);
  return names;
}

bool asks_the_model_alone(std::string_view type) {
  return type == "large_deviations" || type == "stationary" || type == "partition_function" ||
         type == "path_probability";
}

std::string study_sample(const std::string& type) {
  const bool sampled = type == "identities" || type == "fluctuations" || type == "boundary";
  const bool by_count =
      type == "particle_number" || type == "chaos" || type == "identities" || type == "fluctuations";
  Schema schema{top(), model(), domain(), potential()};
  if (type != "boundary") schema.push_back(interaction());
  if (!asks_the_model_alone(type)) {
    schema.insert(schema.end(), {initial(), initial_components(), time()});
    if (type != "grid")
      schema.push_back(by_count                                   ? swept(particles(), {"count"})
                       : type == "timestep" || type == "boundary" ? swept(particles(), {"timestep"})
                                                                  : particles());
    if (!sampled) schema.push_back(type == "grid" ? swept(density(), {"cells"}) : density());
  }
  schema.push_back(study_section());
  if (type == "large_deviations") schema.push_back(study_statistic());
  std::vector<config::Sample> samples{{"study", type}};
  if (type == "chaos" || type == "path_probability")
    samples.push_back({"model.interaction", "gaussian"});  // they need a bounded one
  return config::sample_config(schema, samples);
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all{{"run", run()},
                                        {"study", study()},
                                        {"verify", verify()},
                                        {"learn", learn()},
                                        {"attention", attention()}};
  return all;
}

}  // namespace rieszflow::catalogue
