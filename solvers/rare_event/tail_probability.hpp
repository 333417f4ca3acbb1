#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.hpp"
#include "solvers/observer.hpp"
#include "solvers/rare_event/gibbs_chain.hpp"
#include "solvers/rare_event/statistic.hpp"

/// Probabilities of rare events under the Gibbs law theory.md (3), far below what direct sampling can see.
namespace rieszflow::rare_event {

enum class Method {
  Direct,     ///< fraction of an unbiased chain inside the event
  Tilt,       ///< laws exp(t N g) P_N with t from 0 past the saddle of the event, reweighted; convex rates
  Umbrella,   ///< laws exp(-N k (g-c)^2/2) P_N along all typical values and the event, reweighted; rates of
              ///< any shape
  Splitting,  ///< adaptive multilevel splitting; non-linear statistics and set events
};

std::string_view name(Method method);

struct Options {
  /// Independent repetitions of the whole measurement: the standard error. Few give a poor one: of 8, one in
  /// 50 is more than three "standard errors" off (Student's t with 7 degrees of freedom), of 32 one in 190.
  std::size_t replicates = 32;
  /// Of log P. Positive: replicates are added until the standard error is no larger, from what the present
  /// ones scatter; `most_replicates` at most.
  double target_error = 0.0;
  std::size_t most_replicates = 2048;  ///< fewer where the samples would not fit into half a gigabyte
  std::int64_t sweeps = 2500;          ///< per window and replicate
  double spacing = 1.75;               ///< of neighbouring windows, in standard deviations of the statistic
  std::size_t walkers = 1000;          ///< of Splitting, per replicate
  int mutation_sweeps = 2;             ///< of Splitting, for each new walker
  std::uint64_t seed = 0;
  int threads = 1;
  Ranks ranks{};  ///< share the windows; the other methods do the whole on each
  std::function<bool()> interrupted{};  ///< asked between pieces of work; may be empty
};

/// One sampled law.
struct Window {
  Bias bias;
  double mean = 0.0;                ///< of the statistic
  double standard_deviation = 0.0;  ///< of the statistic
  double acceptance = 0.0;
  double step = 0.0;
  std::vector<double> series;  ///< the statistic after each sweep, of the first replicate
};

struct TailProbability {
  RunStatus status = RunStatus::Completed;
  std::string message;  ///< one sentence when the status is not Completed
  Method method = Method::Direct;
  double log_probability = 0.0;          ///< of all samples together
  double standard_error = 0.0;           ///< of log_probability, from the scatter of the replicates
  std::vector<double> replicate_values;  ///< (replicate) log probability
  std::vector<Window> windows;
  double least_overlap = 1.0;  ///< of neighbouring windows, over the replicates; above 0.03 is sound
  double effective_samples =
      0.0;  ///< Kish's number for the event, summed over the replicates, before autocorrelation
  std::int64_t moves = 0;    ///< single-particle moves spent
  double seconds = 0.0;      ///< wall clock
  double cpu_seconds = 0.0;  ///< of this process meanwhile, all its threads
};

/// "All particles inside", a Largest below a level, is the linear event that the fraction of particles
/// outside is zero, and is treated as such unless Splitting is asked for: tilts on that fraction need windows
/// like sqrt(N), splitting needs walkers like |log P| / error^2.
///
/// The method that fits: Splitting for other statistics that are not linear; Direct where the event is
/// common; Umbrella when chains released from both ends of the statistic settle in different places, a tilt
/// jumps, or the event is bounded on both sides; Tilt otherwise. What is not seen: metastable states that the
/// statistic does not tell apart.
TailProbability tail_probability(const Model& model, std::size_t particle_count, const Statistic& statistic,
                                 const Event& event, const Options& options);
/// The same by a given method.
TailProbability tail_probability(const Model& model, std::size_t particle_count, const Statistic& statistic,
                                 const Event& event, const Options& options, Method method);

}  // namespace rieszflow::rare_event
