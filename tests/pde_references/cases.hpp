#pragma once
#include <boost/math/special_functions/beta.hpp>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/exact.hpp"
#include "model/quadrature.hpp"
#include "solvers/pde/evolution.hpp"
#include "solvers/stationary/linearisation.hpp"
#include "solvers/stationary/self_consistency.hpp"
#include "tests/pde/references.hpp"

/// Problems with exact solutions: each is solved on several grids and compared. The test of this room holds
/// them to their errors and orders; benchmarks/references.cpp prints them.
namespace rieszflow::reference {

/// One number of one solution. exact = 0: an L1 distance to the exact cell averages.
struct Quantity {
  std::string name;
  double value = 0.0, exact = 0.0;
  double error() const { return std::abs(value - exact); }
};

struct Solution {
  bool completed = false;
  std::vector<Quantity> quantities;  ///< the same ones on every grid
  double seconds = 0.0;              ///< the solution alone, not the kernel's set-up or the comparison
};

/// What must hold on the finest grid.
struct Claim {
  std::string quantity;
  double error = 0.0;         ///< largest
  double lowest_order = 0.0;  ///< between the two finest grids; 0: none is claimed
  double highest_order = std::numeric_limits<double>::infinity();
};

struct Case {
  std::string name;                ///< letters, digits and underscores
  std::string model;               ///< in words
  std::vector<std::size_t> cells;  ///< per axis, coarse to fine
  std::function<Solution(std::size_t cells)> solve;
  std::vector<Claim> claims;
};

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double pi = std::numbers::pi;

// Helpers
// -------------------------------------------------------------------------------------------------------

inline Grid box_grid(std::size_t dimension, double half, std::size_t cells) {
  return {std::vector<double>(dimension, -half), std::vector<double>(dimension, half),
          std::vector<std::size_t>(dimension, cells)};
}
inline Box box_of(const Grid& grid) { return {grid.lower, grid.upper}; }

/// Cell averages by a tensor Gauss rule of `points` points.
inline std::vector<double> averages_of(const Grid& grid,
                                       const std::function<double(const std::vector<double>&)>& density,
                                       std::size_t points) {
  const QuadratureRule rule = gauss_legendre(points);
  const std::size_t d = grid.dimension();
  std::size_t nodes = 1;
  for (std::size_t axis = 0; axis < d; ++axis) nodes *= points;
  std::vector<double> result(grid.cell_count(), 0.0), point(d), center(d);
  for (std::size_t cell = 0; cell < result.size(); ++cell) {
    grid.cell_center(cell, center);
    for (std::size_t q = 0; q < nodes; ++q) {
      double weight = 1.0;
      for (std::size_t axis = 0, rest = q; axis < d; ++axis, rest /= points) {
        weight *= rule.weights[rest % points];
        point[axis] = center[axis] + (rule.nodes[rest % points] - 0.5) * grid.spacing(axis);
      }
      result[cell] += weight * density(point);
    }
  }
  return result;
}

/// From the distribution function: exact however singular the density is.
inline std::vector<double> averages_from(const Grid& grid,
                                         const std::function<double(double)>& distribution) {
  std::vector<double> result(grid.cells[0]);
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = (distribution(grid.face(0, i + 1)) - distribution(grid.face(0, i))) / grid.spacing(0);
  return result;
}

/// Distribution function of a density proportional to (R^2 - x^2)^power on [-R, R].
inline double profile_distribution(double x, double radius, double power) {
  if (x <= -radius) return 0.0;
  if (x >= radius) return 1.0;
  return boost::math::ibeta(power + 1.0, power + 1.0, 0.5 * (1.0 + x / radius));
}

/// c (1 - r^2/R^2)^power of mass 1 in d dimensions.
inline double profile(double r2, double radius, double power, std::size_t dimension) {
  const double inside = 1.0 - r2 / (radius * radius), d = static_cast<double>(dimension);
  if (inside <= 0.0) return 0.0;
  const double log_constant = std::lgamma(power + 1.0 + 0.5 * d) - 0.5 * d * std::log(pi) -
                              std::lgamma(power + 1.0) - d * std::log(radius);
  return std::exp(log_constant) * std::pow(inside, power);
}

/// Radius of such a profile from its second moment: m2 = R^2 d / (2 power + 2 + d).
inline double radius_from(double second_moment, double power, std::size_t dimension) {
  const double d = static_cast<double>(dimension);
  return std::sqrt(second_moment * (2.0 * power + 2.0 + d) / d);
}

inline double squared(const std::vector<double>& x) {
  double sum = 0.0;
  for (const double value : x) sum += value * value;
  return sum;
}

inline double l1(const Density& density, const std::vector<double>& exact) {
  double sum = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double fraction = density.grid.volume_fractions.empty() ? 1.0 : density.grid.volume_fractions[i];
    sum += std::abs(density.averages[i] - exact[i]) * fraction;
  }
  return sum * density.grid.cell_volume();
}

/// The average of the cells nearest to a point: 2^d of them where it is a common corner.
inline double at_center(const Density& density) {
  const Grid& grid = density.grid;
  std::vector<double> point(grid.dimension());
  double sum = 0.0;
  const std::size_t corners = std::size_t{1} << grid.dimension();
  for (std::size_t corner = 0; corner < corners; ++corner) {
    for (std::size_t axis = 0; axis < point.size(); ++axis) {
      point[axis] = 0.5 * (grid.lower[axis] + grid.upper[axis]) +
                    ((corner >> axis & 1U) != 0U ? 0.4 : -0.4) * grid.spacing(axis);
    }
    sum += density.averages[grid.cell_of(point)];
  }
  return sum / static_cast<double>(corners);
}

inline Solution stationary_solution(
    const Model& model, const Grid& grid,
    const std::function<std::vector<Quantity>(const stationary::Result&)>& measure, const Density& start) {
  const MeanField field(model, grid, {});
  const auto begin = std::chrono::steady_clock::now();
  const stationary::Result found = stationary::solve(field, start, {});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {found.status == RunStatus::Completed, measure(found), seconds};
}
inline Solution stationary_solution(
    const Model& model, const Grid& grid,
    const std::function<std::vector<Quantity>(const stationary::Result&)>& measure) {
  return stationary_solution(model, grid, measure, uniform_on(grid));
}

inline Solution evolved(const Model& model, const Density& start, double end, double tolerance,
                        const std::function<std::vector<Quantity>(const pde::State&)>& measure,
                        double begin_time = 0.0) {
  const MeanField field(model, start.grid, {});
  pde::State state{.density = start};
  state.clock.time = begin_time;
  const auto begin = std::chrono::steady_clock::now();
  const pde::Result outcome =
      pde::run(field, state, {.tolerance = tolerance}, Schedule::at({begin_time, end}), {}, {});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {outcome.status == RunStatus::Completed, measure(state), seconds};
}

/// Free Dyson flow from (delta_1 + delta_-1)/2: G = (z - w)/t, w^3 - z w^2 + (t - 1) w + z = 0, rho = -Im G /
/// pi.
inline double dyson_density(double x, double t) {
  // The root in the upper half plane of w^3 - x w^2 + (t - 1) w + x, by Cardano: w = x/3 + u.
  const double p = (t - 1.0) - x * x / 3.0, q = x - 2.0 * x * x * x / 27.0 + (t - 1.0) * x / 3.0;
  const double discriminant = 0.25 * q * q + p * p * p / 27.0;
  if (discriminant <= 0.0) return 0.0;  // three real roots: outside the support
  const double root = std::sqrt(discriminant);
  const double u = std::cbrt(-0.5 * q + root), v = std::cbrt(-0.5 * q - root);
  return 0.5 * std::numbers::sqrt3 * std::abs(u - v) / (pi * t);
}

// The cases
// ------------------------------------------------------------------------------------------------------

inline std::vector<Case> cases() {
  using std::string;
  std::vector<Case> all;
  const auto add = [&](Case c) { all.push_back(std::move(c)); };
  const auto riesz = [](double s) { return RieszInteraction{.exponent = s, .strength = s}; };  // r^-s
  const RieszInteraction line_coulomb{.exponent = -1.0, .strength = 1.0};                      // -r
  const auto text = [](double x) {
    string s = std::to_string(x);
    s.erase(s.find_last_not_of('0') + 1);
    if (s.back() == '.') s.pop_back();
    return s;
  };

  // A1, A2: V = 0 on [-1, 1], rho = C (1 - x^2)^((s-1)/2).
  for (const double s : {0.0, 0.25, 0.5}) {
    const double mu =
        s == 0.0 ? std::log(2.0) : pi / (std::cos(0.5 * pi * s) * boost::math::beta(0.5, 0.5 * (s + 1.0)));
    add({.name = s == 0.0    ? string("A1")
                 : s == 0.25 ? string("A2_s025")
                             : string("A2_s05"),
         .model = (s == 0.0 ? string("-log r") : "r^-" + text(s)) + " on [-1,1], beta = inf",
         .cells = {256, 512, 1024},
         .solve =
             [=](std::size_t n) {
               const Grid grid = box_grid(1, 1.0, n);
               const Interaction w = s == 0.0 ? Interaction(LogarithmicInteraction{}) : Interaction(riesz(s));
               return stationary_solution(
                   Model{box_of(grid), {}, {w}, infinity}, grid, [&](const auto& found) {
                     return std::vector<Quantity>{
                         {"L1", l1(found.density, averages_from(grid,
                                                                [=](double x) {
                                                                  return profile_distribution(
                                                                      x, 1.0, 0.5 * (s - 1.0));
                                                                }))},
                         {"mu", found.chemical_potential, mu},
                         {"F", found.energy.free_energy, 0.5 * mu}};
                   });
             },
         .claims = {{"F", 2e-4, 0.9}, {"L1", 6e-3, 0.45}, {"mu", 4e-4, 0.9}}});
  }

  // A3, A5, A13 (d = 1), A4, A11 (d = 2), A12 (d = 3): V = |x|^2/2, rho = c (1 - r^2/R^2)^((s+2-d)/2).
  struct Well {
    const char* name;
    std::size_t dimension;
    double exponent;  ///< 0: log; -1: -r
    double radius, center, energy, half;
    std::vector<std::size_t> cells;
    std::vector<Claim> claims;
  };
  const std::vector<Well> wells{{"A3_s025",
                                 1,
                                 0.25,
                                 0.8579663915316,
                                 0.7770577502992,
                                 0.7794067012917,
                                 1.5,
                                 {256, 512, 1024},
                                 {{"F", 1e-7}, {"R", 5e-6}, {"L1", 5e-5}, {"rho(0)", 5e-6}}},
                                {"A3_s05",
                                 1,
                                 0.5,
                                 1.399635322368,
                                 0.4969311340936,
                                 1.088321686455,
                                 2.0,
                                 {256, 512, 1024},
                                 {{"F", 1e-7}, {"R", 5e-6}, {"L1", 5e-5}, {"rho(0)", 5e-6}}},
                                {"A4_s05",
                                 2,
                                 0.5,
                                 0.8641595994127,
                                 0.5328098231162,
                                 0.829746459175,
                                 1.2,
                                 {48, 96, 192},
                                 {{"F", 2e-6}, {"R", 1e-5}, {"L1", 5e-3}, {"rho(0)", 2e-5}}},
                                {"A4_s1",
                                 2,
                                 1.0,
                                 1.330670039491,
                                 0.2696501268773,
                                 1.0624096524,
                                 1.8,
                                 {48, 96, 192},
                                 {{"F", 2e-6}, {"R", 1e-5}, {"L1", 5e-3}, {"rho(0)", 2e-5}}},
                                {"A5",
                                 1,
                                 0.0,
                                 std::numbers::sqrt2,
                                 std::numbers::sqrt2 / pi,
                                 0.375 + 0.25 * std::log(2.0),
                                 2.0,
                                 {256, 512, 1024},
                                 {{"F", 1e-7}, {"R", 5e-6}, {"L1", 5e-5}, {"rho(0)", 5e-6}}},
                                {"A11",
                                 2,
                                 0.0,
                                 1.0,
                                 1.0 / pi,
                                 0.375,
                                 1.3,
                                 {32, 64, 96},
                                 {{"F", 2e-6}, {"R", 5e-5}, {"L1", 3e-2}, {"rho(0)", 1e-9}}},
                                {"A12",
                                 3,
                                 1.0,
                                 1.0,
                                 0.75 / pi,
                                 0.9,
                                 1.3,
                                 {16, 24, 32},
                                 {{"F", 1e-4}, {"R", 1e-4}, {"L1", 0.1}, {"rho(0)", 1e-5}}},
                                {"A13",
                                 1,
                                 -1.0,
                                 1.0,
                                 0.5,
                                 -1.0 / 6.0,
                                 2.0,
                                 {128, 256, 512},
                                 {{"F", 1e-10}, {"R", 1e-8}, {"L1", 1e-7}, {"rho(0)", 1e-8}}}};
  for (const Well& well : wells) {
    const std::size_t d = well.dimension;
    const double s = well.exponent, power = 0.5 * (s + 2.0 - static_cast<double>(d));
    add({.name = well.name,
         .model = (s == 0.0    ? string("-log r")
                   : s == -1.0 ? string("-r")
                               : "r^-" + text(s)) +
                  ", |x|^2/2, d = " + std::to_string(d) + ", beta = inf",
         .cells = well.cells,
         .solve =
             [=](std::size_t n) {
               const Grid grid = box_grid(d, well.half, n);
               const Interaction w = s == 0.0    ? Interaction(LogarithmicInteraction{})
                                     : s == -1.0 ? Interaction(line_coulomb)
                                                 : Interaction(riesz(s));
               return stationary_solution(
                   Model{box_of(grid), {QuadraticPotential{1.0}}, {w}, infinity}, grid,
                   [&](const auto& found) {
                     const std::vector<double> exact =
                         d == 1
                             ? averages_from(
                                   grid,
                                   [&](double x) { return profile_distribution(x, well.radius, power); })
                             : averages_of(
                                   grid,
                                   [&](const auto& x) { return profile(squared(x), well.radius, power, d); },
                                   d == 2 ? 12 : 8);
                     return std::vector<Quantity>{
                         {"L1", l1(found.density, exact)},
                         {"R", radius_from(second_moment(found.density), power, d), well.radius},
                         {"rho(0)", at_center(found.density), well.center},
                         {"F", found.energy.free_energy, well.energy}};
                   });
             },
         .claims = well.claims});
  }

  // A6: log gas in a harmonic well on the line.
  struct Line {
    double beta, moment, center, energy;
  };
  for (const Line line :
       {Line{1.0, 1.5, 0.3042971194499, -0.833231051904}, Line{2.0, 1.0, 0.3591742442503, -0.0723649429247},
        Line{4.0, 0.75, 0.3989422804014, 0.262104323678}}) {
    add({.name = "A6_beta" + text(line.beta),
         .model = "-log r, x^2/2 on the line, beta = " + text(line.beta),
         .cells = {256, 512, 1024},
         .solve =
             [=](std::size_t n) {
               const Grid grid = box_grid(1, 10.0, n);
               return stationary_solution(
                   Model{box_of(grid), {QuadraticPotential{1.0}}, {LogarithmicInteraction{}}, line.beta},
                   grid, [&](const auto& found) {
                     return std::vector<Quantity>{
                         {"L1", l1(found.density, averages_of(
                                                      grid,
                                                      [&](const auto& x) {
                                                        return exact::log_gas_on_line_density(line.beta, 1.0,
                                                                                              x[0]);
                                                      },
                                                      5))},
                         {"m2", second_moment(found.density), line.moment},
                         {"F", found.energy.free_energy, line.energy}};
                   });
             },
         .claims = {{"L1", 2e-4, 1.9, 2.1}, {"m2", 2e-4, 1.8}, {"F", 1e-4, 1.9}}});
  }

  // A7: log gas on [-1, 1].
  struct Interval {
    double beta, moment, energy, l1, order;
  };
  for (const Interval i :
       {Interval{1.0, 0.375, -0.302820381313, 2e-7, 1.9}, Interval{2.0, 0.4, 0.0358327192375, 6e-7, 1.9},
        Interval{10.0, 6.0 / 13.0, 0.292546561068, 3e-5, 1.6}}) {
    add({.name = "A7_beta" + text(i.beta),
         .model = "-log r on [-1,1], beta = " + text(i.beta),
         .cells = {256, 512, 1024},
         .solve =
             [=](std::size_t n) {
               const Grid grid = box_grid(1, 1.0, n);
               return stationary_solution(
                   Model{box_of(grid), {}, {LogarithmicInteraction{}}, i.beta}, grid, [&](const auto& found) {
                     return std::vector<Quantity>{
                         {"L1", l1(found.density, averages_of(
                                                      grid,
                                                      [&](const auto& x) {
                                                        return exact::log_gas_on_interval_density(i.beta,
                                                                                                  x[0]);
                                                      },
                                                      12))},
                         {"m2", second_moment(found.density), i.moment},
                         {"F", found.energy.free_energy, i.energy}};
                   });
             },
         .claims = {
             {"L1", i.l1, i.order}, {"m2", 2e-5, i.order}, {"F", i.beta == 10.0 ? 1e-4 : 1e-6, i.order}}});
  }

  // A8, A9: W = -chi |x - y| on [-1, 1]: rho = k^2/(beta cos^2 kx), k tan k = beta/2; cosh, tanh for chi =
  // -1.
  struct Sheet {
    const char* name;
    double beta, chi, energy;
  };
  for (const Sheet sheet :
       {Sheet{"A8_beta1", 1.0, 1.0, -1.03690729307}, Sheet{"A8_beta5", 5.0, 1.0, -0.513079501791},
        Sheet{"A9", 5.0, -1.0, 0.12450561361}}) {
    add({.name = sheet.name,
         .model = string(sheet.chi > 0.0 ? "-" : "+") + "|x-y| on [-1,1], beta = " + text(sheet.beta),
         .cells = {32, 64, 128},
         .solve =
             [=](std::size_t n) {
               const Grid grid = box_grid(1, 1.0, n);
               const double k =
                   sheet.chi > 0.0
                       ? root([&](double x) { return x * std::sin(x) - 0.5 * sheet.beta * std::cos(x); }, 0.0,
                              0.5 * pi)
                       : root([&](double x) { return x * std::tanh(x) - 0.5 * sheet.beta; }, 0.0,
                              10.0 + sheet.beta);
               return stationary_solution(
                   Model{box_of(grid),
                         {},
                         {RieszInteraction{.exponent = -1.0, .strength = sheet.chi}},
                         sheet.beta},
                   grid, [&](const auto& found) {
                     return std::vector<Quantity>{
                         {"L1", l1(found.density, averages_from(grid,
                                                                [&](double x) {
                                                                  return k / sheet.beta *
                                                                         (sheet.chi > 0.0 ? std::tan(k * x)
                                                                                          : std::tanh(k * x));
                                                                }))},
                         {"F", found.energy.free_energy, sheet.energy}};
                   });
             },
         .claims = {{"L1", 1e-6, 1.9}, {"F", 1e-4, 1.9, 4.3}}});
  }

  // A10: W = -chi log r in the unit disc, beta = 1, g = -chi/4: rho = (1 - g)/(pi (1 - g + g r^2)^2).
  for (const double chi : {2.0, -1.0}) {
    add({.name = chi > 0.0 ? "A10_chi2" : "A10_chi_minus1",
         .model = string(chi > 0.0 ? "-2" : "+") + (chi > 0.0 ? " log r" : "log r") +
                  " in the unit disc, beta = 1",
         .cells = {48, 96, 192},
         .solve =
             [=](std::size_t n) {
               const Ball disc{{0.0, 0.0}, 1.0};
               const Grid grid = grid_on(disc, {n, n});
               const double g = -0.25 * chi;
               return stationary_solution(
                   Model{disc, {}, {LogarithmicInteraction{chi}}, 1.0}, grid, [&](const auto& found) {
                     std::vector<double> exact(grid.cell_count()), x(2);
                     for (std::size_t cell = 0; cell < exact.size(); ++cell) {
                       grid.cell_center(cell, x);
                       exact[cell] = (1.0 - g) / (pi * std::pow(1.0 - g + g * squared(x), 2.0));
                     }
                     return std::vector<Quantity>{
                         {"L1", l1(found.density, exact)},
                         {"rho(0)", at_center(found.density), chi > 0.0 ? 0.2122065907892 : 0.4244131815784},
                         {"F", found.energy.free_energy, chi > 0.0 ? -0.928334561525 : -1.28168366849}};
                   });
             },
         .claims = {{"L1", 4e-5, 1.85}, {"F", 6e-5, 1.85}, {"rho(0)", 3e-5}}});
  }

  // A14: rotators, W = -K cos(x - y), beta = 1: r = I_1(K r)/I_0(K r).
  struct Rotators {
    double strength, order, energy;
  };
  for (const Rotators rotators :
       {Rotators{3.0, 0.72415871762635, -1.997941067974}, Rotators{4.0, 0.83146202475426, -2.308092508741}}) {
    add({.name = "A14_K" + text(rotators.strength),
         .model = "-" + text(rotators.strength) + " cos(x-y) on the circle, beta = 1",
         .cells = {64, 128, 256},
         .solve =
             [=](std::size_t n) {
               const Torus circle{{-pi}, {pi}};
               const Grid grid = grid_on(circle, {n});
               return stationary_solution(
                   Model{circle, {}, {CosineInteraction{rotators.strength}}, 1.0}, grid,
                   [&](const auto& found) {
                     double order = 0.0;
                     for (std::size_t i = 0; i < n; ++i)
                       order += found.density.averages[i] *
                                (std::sin(grid.face(0, i + 1)) - std::sin(grid.face(0, i)));
                     return std::vector<Quantity>{{"r", order, rotators.order},
                                                  {"F", found.energy.free_energy, rotators.energy}};
                   },
                   density_of(grid, [](const auto& x) { return 1.0 + 0.3 * std::cos(x[0]); }));
             },
         .claims = {{"r", 1e-3, 1.9, 2.1}, {"F", 1e-3, 1.9, 2.1}}});
  }

  // A15: V = x^4/4 - x^2/2, W = |x - y|^2/2, beta = 4.
  add({.name = "A15",
       .model = "|x-y|^2/2, x^4/4 - x^2/2, beta = 4",
       .cells = {128, 256, 512},
       .solve =
           [](std::size_t n) {
             const Grid grid = box_grid(1, 3.0, n);
             const Model model{box_of(grid),
                               {PolynomialPotential{{0.0, 0.0, -0.5, 0.0, 0.25}}},
                               {QuadraticInteraction{1.0}},
                               4.0};
             const auto started = [&](double at) {
               return density_of(grid,
                                 [=](const auto& x) { return std::exp(-2.0 * (x[0] - at) * (x[0] - at)); });
             };
             Solution right = stationary_solution(
                 model, grid,
                 [](const auto& found) {
                   const double m = mean(found.density)[0];
                   return std::vector<Quantity>{
                       {"m", m, 0.78755040684382},
                       {"variance", second_moment(found.density) - m * m, 0.1465138093477},
                       {"F", found.energy.free_energy, -0.1935013190586}};
                 },
                 started(0.5));
             const Solution middle = stationary_solution(
                 model, grid,
                 [](const auto& found) {
                   return std::vector<Quantity>{{"F(m=0)", found.energy.free_energy, -0.1487188360345}};
                 },
                 started(0.0));
             right.completed = right.completed && middle.completed;
             right.seconds += middle.seconds;
             right.quantities.push_back(middle.quantities[0]);
             return right;
           },
       .claims = {{"m", 1e-4, 1.9, 2.1},
                  {"variance", 1e-4, 1.9, 2.1},
                  {"F", 1e-4, 1.9, 2.1},
                  {"F(m=0)", 1e-4, 1.9, 2.1}}});

  // B1: V = x^2/2, W = |x - y|^2/4, beta = 2, N(0.7, 0.4^2): m = 0.7 e^-t, s^2 = 1/3 + (0.16 - 1/3) e^-3t.
  add({.name = "B1",
       .model = "|x-y|^2/4, x^2/2, beta = 2, N(0.7, 0.16), t = 1",
       .cells = {128, 256, 512},
       .solve =
           [](std::size_t n) {
             const Grid grid = box_grid(1, 6.0, n);
             const double m = 0.7 * std::exp(-1.0),
                          variance = 1.0 / 3.0 + (0.16 - 1.0 / 3.0) * std::exp(-3.0);
             return evolved(Model{box_of(grid), {QuadraticPotential{1.0}}, {QuadraticInteraction{0.5}}, 2.0},
                            {grid, gaussian_averages(grid, 0.7, 0.4)}, 1.0, 1e-6,
                            [&](const pde::State& state) {
                              return std::vector<Quantity>{
                                  {"L1", l1(state.density, gaussian_averages(grid, m, std::sqrt(variance)))},
                                  {"m", mean(state.density)[0], m},
                                  {"F", state.diagnostics.energy.free_energy, -0.151573793513}};
                            });
           },
       .claims = {{"L1", 2e-4, 1.9, 2.1}, {"m", 1e-4, 1.9, 2.2}, {"F", 1e-4, 1.9, 2.1}}});

  // B2, B3: Cole-Hopf.
  struct Hopf {
    const char* name;
    double beta, chi, time;
    std::vector<std::size_t> cells;
    double error;
  };
  for (const Hopf& hopf : {Hopf{"B2_beta5_t02", 5.0, 1.0, 0.2, {64, 128, 256}, 1e-5},
                           Hopf{"B2_beta5_t1", 5.0, 1.0, 1.0, {64, 128, 256}, 1e-5},
                           Hopf{"B2_beta20_t1", 20.0, 1.0, 1.0, {128, 256, 512}, 2e-5},
                           Hopf{"B3_t02", 5.0, -1.0, 0.2, {64, 128, 256}, 1e-4},
                           Hopf{"B3_t1", 5.0, -1.0, 1.0, {64, 128, 256}, 1e-4}}) {
    add({.name = hopf.name,
         .model = string(hopf.chi > 0.0 ? "-" : "+") + "|x-y| on [-1,1], beta = " + text(hopf.beta) +
                  ", rho0 = 1/2, t = " + text(hopf.time),
         .cells = hopf.cells,
         .solve =
             [=](std::size_t n) {
               const Grid grid = box_grid(1, 1.0, n);
               const ColeHopf exact(hopf.beta, hopf.chi);
               return evolved(
                   Model{box_of(grid),
                         {},
                         {RieszInteraction{.exponent = -1.0, .strength = hopf.chi}},
                         hopf.beta},
                   uniform_on(grid), hopf.time, 3e-8, [&](const pde::State& state) {
                     return std::vector<Quantity>{{"L1", l1(state.density, exact.averages(grid, hopf.time))}};
                   });
             },
         .claims = {{"L1", hopf.error, 1.9, 2.1}}});
  }

  // B4: zero temperature, V = |x|^2/2, from the profile of radius 1/2: R^(s+2) = K + (R0^(s+2) - K) e^(-(s+2)
  // t).
  struct Similar {
    const char* name;
    std::size_t dimension;
    double exponent, time, half;
    std::vector<std::size_t> cells;
    double radius_error, l1_error;
  };
  for (const Similar& similar : {Similar{"B4_s05_d1", 1, 0.5, 0.5, 1.6, {256, 512, 1024}, 3e-5, 5e-5},
                                 Similar{"B4_log_d1", 1, 0.0, 1.0, 1.6, {256, 512, 1024}, 3e-5, 5e-5},
                                 Similar{"B4_log_d2", 2, 0.0, 1.0, 1.2, {32, 64, 96}, 2e-3, 4e-2},
                                 Similar{"B4_s1_d2", 2, 1.0, 1.0, 1.6, {32, 64, 96}, 5e-4, 5e-3},
                                 Similar{"B4_s1_d3", 3, 1.0, 1.0, 1.2, {12, 16, 24}, 5e-3, 0.1}}) {
    const std::size_t d = similar.dimension;
    const double s = similar.exponent, power = 0.5 * (s + 2.0 - static_cast<double>(d));
    const double half_d = 0.5 * static_cast<double>(d);
    // K = (2 s/d) Gamma((d-s)/2) Gamma(2+s/2)/Gamma(d/2); log: 2/d.
    const double k = s == 0.0 ? 1.0 / half_d
                              : s / half_d * std::tgamma(half_d - 0.5 * s) * std::tgamma(2.0 + 0.5 * s) /
                                    std::tgamma(half_d);
    const auto radius = [=](double t) {
      return std::pow(k + (std::pow(0.5, s + 2.0) - k) * std::exp(-(s + 2.0) * t), 1.0 / (s + 2.0));
    };
    add({.name = similar.name,
         .model = (s == 0.0 ? string("-log r") : "r^-" + text(s)) + ", |x|^2/2, d = " + std::to_string(d) +
                  ", beta = inf, R0 = 1/2, t = " + text(similar.time),
         .cells = similar.cells,
         .solve =
             [=](std::size_t n) {
               const Grid grid = box_grid(d, similar.half, n);
               const auto averages = [&](double r) {
                 return d == 1
                            ? averages_from(grid, [&](double x) { return profile_distribution(x, r, power); })
                            : averages_of(
                                  grid, [&](const auto& x) { return profile(squared(x), r, power, d); },
                                  d == 2 ? 12 : 6);
               };
               const Interaction w = s == 0.0 ? Interaction(LogarithmicInteraction{}) : Interaction(riesz(s));
               Density start{grid, averages(0.5)};
               const double total = mass(start);
               for (double& value : start.averages) value /= total;
               return evolved(
                   Model{box_of(grid), {QuadraticPotential{1.0}}, {w}, infinity}, start, similar.time, 1e-4,
                   [&](const pde::State& state) {
                     return std::vector<Quantity>{
                         {"L1", l1(state.density, averages(radius(similar.time)))},
                         {"R", radius_from(second_moment(state.density), power, d), radius(similar.time)}};
                   });
             },
         .claims = {{"R", similar.radius_error}, {"L1", similar.l1_error}}});
  }

  // B5: free Dyson flow, from its profile at t = 1/2 (the two pieces have not met).
  add({.name = "B5",
       .model = "-log r on the line, beta = inf, (delta_1 + delta_-1)/2, t = 1/2 to 2",
       .cells = {256, 512, 1024},
       .solve =
           [](std::size_t n) {
             const Grid grid = box_grid(1, 4.0, n);
             const auto averages = [&](double t) {
               return averages_of(
                   grid, [=](const auto& x) { return dyson_density(x[0], t); }, 32);
             };
             Density start{grid, averages(0.5)};
             const double total = mass(start);
             for (double& value : start.averages) value /= total;
             return evolved(
                 Model{box_of(grid), {}, {LogarithmicInteraction{}}, infinity}, start, 2.0, 1e-5,
                 [&](const pde::State& state) {
                   const auto at = [&](double x) {
                     const double h = grid.spacing(0);
                     return 0.5 * (state.density.averages[grid.cell_of(std::vector<double>{x - 0.5 * h})] +
                                   state.density.averages[grid.cell_of(std::vector<double>{x + 0.5 * h})]);
                   };
                   return std::vector<Quantity>{{"L1", l1(state.density, averages(2.0))},
                                                {"rho(0)", at(0.0), 0.15915494309},
                                                {"rho(1/2)", at(0.5), 0.16975215242},
                                                {"rho(1)", at(1.0), 0.17748044241},
                                                {"m2", second_moment(state.density), 3.0}};
                 },
                 0.5);
           },
       .claims = {{"L1", 5e-4}, {"m2", 5e-4}, {"rho(0)", 1e-5}, {"rho(1/2)", 1e-5}, {"rho(1)", 1e-5}}});

  // B6: d m2/dt = -2 kappa m2 + 2 d/beta + chi, whole space.
  struct Virial {
    const char* name;
    double chi, time;
  };
  for (const Virial virial : {Virial{"B6_attractive", -2.0, 0.2}, Virial{"B6_repulsive", 2.0, 0.2}}) {
    add({.name = virial.name,
         .model =
             string(virial.chi < 0.0 ? "+" : "-") + "2 log r in the plane, beta = 1, N(0, 0.5^2), t = 0.2",
         .cells = {32, 64, 128},
         .solve =
             [=](std::size_t n) {
               const Grid grid = box_grid(2, 6.0, n);
               const std::vector<double> line = gaussian_averages(box_grid(1, 6.0, n), 0.0, 0.5);
               Density start{grid, std::vector<double>(grid.cell_count())};
               for (std::size_t cell = 0; cell < start.averages.size(); ++cell)
                 start.averages[cell] = line[cell / n] * line[cell % n];
               return evolved(Model{box_of(grid), {}, {LogarithmicInteraction{virial.chi}}, 1.0}, start,
                              virial.time, 1e-5, [&](const pde::State& state) {
                                return std::vector<Quantity>{{"m2", second_moment(state.density),
                                                              0.5 + virial.time * (4.0 + virial.chi)}};
                              });
             },
         .claims = {{"m2", 5e-3, 1.9, 2.1}}});
  }

  // B7: lowest relaxation rates.
  struct Gap {
    const char* name;
    const char* model;
    Potential potential;
    double lower, upper, beta;
    std::vector<double> rates;
  };
  for (const Gap& gap : {Gap{"B7_heat",
                             "V = 0 on [-1,1], beta = 2",
                             PolynomialPotential{{0.0}},
                             -1.0,
                             1.0,
                             2.0,
                             {pi * pi / 8.0, pi * pi / 2.0}},
                         Gap{"B7_linear",
                             "V = 3x on [0,1], beta = 4",
                             PolynomialPotential{{0.0, 3.0}},
                             0.0,
                             1.0,
                             4.0,
                             {11.46740110027, 18.86960440109}},
                         Gap{"B7_well_1",
                             "V = x^2/2 on [-1,1], beta = 2",
                             QuadraticPotential{1.0},
                             -1.0,
                             1.0,
                             2.0,
                             {1.7984598320321}},
                         Gap{"B7_well_2",
                             "V = x^2/2 on [-2,2], beta = 2",
                             QuadraticPotential{1.0},
                             -2.0,
                             2.0,
                             2.0,
                             {1.0374612092817}}}) {
    add({.name = gap.name,
         .model = gap.model,
         .cells = {128, 256, 512},
         .solve =
             [=](std::size_t n) {
               const Grid grid{{gap.lower}, {gap.upper}, {n}};
               const MeanField field(Model{box_of(grid), {gap.potential}, {}, gap.beta}, grid, {});
               const auto begin = std::chrono::steady_clock::now();
               const stationary::Result state = stationary::solve(field, uniform_on(grid), {});
               const stationary::Spectrum spectrum =
                   stationary::relaxation_rates(stationary::Landscape(field), state.density, {.count = 2});
               Solution solution;
               solution.seconds =
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
               solution.completed = spectrum.status == RunStatus::Completed;
               for (std::size_t k = 0; k < gap.rates.size(); ++k)
                 solution.quantities.push_back(
                     {"rate " + std::to_string(k + 1), spectrum.values.at(k), gap.rates[k]});
               return solution;
             },
         .claims = {{"rate 1", 1e-3, 1.95, 2.05}}});
  }
  return all;
}

/// Googletest prints parameters.
inline void PrintTo(const Case& c, std::ostream* stream) { *stream << c.model; }

/// A case on all of its grids.
struct Table {
  std::vector<Solution> solutions;  ///< (grid)

  const Quantity& finest(const std::string& name) const {
    for (const Quantity& quantity : solutions.back().quantities) {
      if (quantity.name == name) return quantity;
    }
    std::abort();
  }
  /// Between the two finest grids.
  double order(const Case& c, std::size_t quantity) const {
    const double coarse = solutions[solutions.size() - 2].quantities[quantity].error();
    const double fine = solutions.back().quantities[quantity].error();
    return std::log(coarse / fine) /
           std::log(static_cast<double>(c.cells.back()) / static_cast<double>(c.cells[c.cells.size() - 2]));
  }
};

inline Table solved(const Case& c) {
  Table table;
  for (const std::size_t cells : c.cells) table.solutions.push_back(c.solve(cells));
  return table;
}

}  // namespace rieszflow::reference
