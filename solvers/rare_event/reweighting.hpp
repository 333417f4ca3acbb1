#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "solvers/observer.hpp"
#include "solvers/rare_event/gibbs_chain.hpp"

namespace rieszflow::rare_event {

/// log sum exp without overflow; -infinity of nothing.
double log_sum_exp(std::span<const double> values);

/// Samples of a statistic under one bias.
struct BiasedSamples {
  Bias bias;
  std::vector<double> values;  ///< g of each sample
};

/// Free energies f_k = -log E[exp(-u_k(g))], E over the law of bias zero up to a common constant (f_0 = 0),
/// and the weight of every pooled sample under the law of bias zero.
struct Reweighting {
  RunStatus status = RunStatus::Completed;
  std::string message;
  std::vector<double> free_energies;  ///< (window)
  std::vector<double> log_weights;    ///< (sample of window 0, of window 1, ...), normalised to sum one
  std::vector<double>
      overlaps;           ///< (window - 1) O_{k,k+1}: chance that a sample of k is told to be one of k+1
  double residual = 0.0;  ///< largest |1 - sum_n W_nk|
  int iterations = 0;
};

/// Multistate Bennett acceptance ratio: the f that minimise the convex function
///
///     A(f) = sum_n log sum_k n_k exp(f_k - u_k(g_n)) - sum_k n_k f_k,   W_nk = exp(f_k - u_k(g_n)) / sum_l
///     n_l exp(f_l - u_l(g_n)),
///
/// whose stationarity is sum_n W_nk = 1. Start: the chain of two-state ratios (BAR) between neighbours, each
/// a monotone scalar equation solved by bisection. Then Newton steps, halved until A falls. All sums are of
/// logarithms. A residual above 1e-9 is refused: NotConverged, without a number (an unsafeguarded solve
/// returns garbage without an error now and then). Sources: C. Bennett, J. Comput. Phys. 22 (1976) 245-268;
/// M. Shirts, J. Chodera, J. Chem. Phys. 129 (2008) 124105.
/// `start`: (window) f to start from instead, such as that of a part of the samples.
Reweighting reweight(std::span<const BiasedSamples> windows, double particle_count,
                     std::span<const double> start = {});

/// log of the probability, under the law of bias zero, that `inside` holds; -infinity when no sample is
/// inside.
double log_probability(const Reweighting& reweighting, std::span<const BiasedSamples> windows,
                       const std::function<bool(double g)>& inside);

/// Kish's number of equally weighted samples among those inside, (sum w)^2 / sum w^2.
double effective_sample_size(const Reweighting& reweighting, std::span<const BiasedSamples> windows,
                             const std::function<bool(double g)>& inside);

/// Two-state ratio f_b - f_a of laws with reduced energies u_a, u_b: forward = u_b - u_a on samples of a,
/// backward = u_a - u_b on samples of b. Bennett's equation, solved by bisection to round-off.
double bennett_ratio(std::span<const double> forward, std::span<const double> backward);

}  // namespace rieszflow::rare_event
