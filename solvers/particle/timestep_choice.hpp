#pragma once
#include <cstddef>
#include <cstdint>

#include "model/ensemble.hpp"
#include "model/model.hpp"
#include "solvers/particle/langevin.hpp"

namespace rieszflow::particle {

/// A timestep for a target, found by a pilot run on some of the initial particles. The run that follows has a
/// fixed step, so its law and its resume are those of that step.
struct TimestepChoice {
  double timestep = 0.0;
  double measured = 0.0;      ///< estimated relative bias plus twice its standard error; mala: acceptance
  std::int64_t sweeps = 0;    ///< steps of the pilot ensemble, all levels together
  bool reached = false;       ///< false: no step down to longest / 2^20 met the target
  bool extrapolated = false;  ///< the pilot's work ran out: the step follows from the last by the weak order
  double seconds = 0.0;       ///< what the pilot is expected to have taken of one core
};

/// Size of the pilot for N particles: enough for statistics, few enough to be quick.
struct PilotShape {
  std::size_t replicas = 0, count = 0;
};
PilotShape pilot_shape(std::size_t particle_count, std::size_t dimension);

/// `start`: what the run begins with, or other particles of the same law; as many of them as the pilot's
/// shape asks for are taken, again from the first where there are too few.
///
/// Projected and reflected: the ensemble is moved by steps h and h/2 of the same Brownian paths, h = longest,
/// longest/2, ..., until h/2 has an estimated bias of the mean of |x - c|^2 (c the mean of the start) of at
/// most `accuracy` times that mean. With the weak order p of the scheme the bias of h/2 is (E_h - E_h/2) /
/// (2^p - 1); the two averages are over the later half of the pilot's time, which is that of diffusion
/// through the domain, beta (L/pi)^2, at most `end` and 2048 steps. Talay and Tubaro, Stoch. Anal. Appl. 8
/// (1990) 483.
///
/// The work is bounded. The first step leaves a particle of a uniform cloud fewer than 2.5 close neighbours
/// (close_pairs.hpp): beyond, the whole cloud would be one cluster, whose substeps cost more than small steps
/// do. One step size takes at most a quarter of `most_pilot_seconds`, as PairSum::expected_cost counts them,
/// which cuts the time averaged over, and when they have all gone the step is the last one tried times
/// (accuracy / estimate)^(1/p). A function of the arguments and, where work is short, of the processor's
/// vector width.
///
/// Mala: stationary averages have no bias at any step, so the step is the one of a mean acceptance of 0.574
/// (Roberts and Rosenthal, J. R. Stat. Soc. B 60 (1998) 255), at most `longest` and that time of diffusion,
/// by a stochastic approximation over a warm-up of 200 sweeps, of as many replicas as half of
/// `most_pilot_seconds` allows; log h averages over its later half.
TimestepChoice choose_timestep(const Model& model, const ParticleEnsemble& start, const Options& options,
                               double longest, double end, double accuracy);

/// From which step on the linear forces of the model are unstable: one step h multiplies a displacement by
/// 1 - h stiffness, so 2 / stiffness. Where every V is quadratic the mean of all particles has the sum of
/// their stiffnesses (pair forces cancel in it); where every W is quadratic too, distances have that of V
/// plus W. Infinity where there are other terms, whose curvature nobody knows beforehand, and for mala, which
/// rejects.
double longest_stable_timestep(const Model& model, Scheme scheme);

constexpr double most_pilot_seconds = 3.0;
constexpr double mala_acceptance = 0.574;
constexpr std::int64_t mala_warm_up_sweeps = 200;

}  // namespace rieszflow::particle
