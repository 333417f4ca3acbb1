#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include "model/density.hpp"

/// What a sequence of refinements says about its limit: order, extrapolated value, error bars.
namespace rieszflow {

/// A quantity computed once, without noise.
struct RefinedValue {
  double scale = 0.0;  ///< cell width or timestep, > 0
  double value = 0.0;
};

struct Extrapolation {
  enum class Kind {
    Converging,   ///< differences shrink with one sign: the order is measured, or given
    RoundOff,     ///< the last difference is round-off: the finest value is the limit
    Oscillating,  ///< the differences change sign: no order; the error bars are the size of the differences
    Diverging     ///< the differences do not shrink: the error bars are infinite
  };
  Kind kind = Kind::Converging;
  double order = 0.0;  ///< p of value = limit + c scale^p at the three finest scales; NaN unless Converging
  double limit = 0.0;  ///< extrapolated; the finest value unless Converging
  double limit_error = 0.0;   ///< error bar of `limit`
  double finest_error = 0.0;  ///< error bar of the value at the finest scale
};

/// Richardson extrapolation of values at three or more different scales, in any order.
///
/// With the order p given: limit = f_1 + (f_1 - f_2) / ((h_2/h_1)^p - 1) from the two finest scales; without:
/// p solves (f_3 - f_2)/(f_2 - f_1) = (h_3^p - h_2^p)/(h_2^p - h_1^p) on the three finest, any ratios of
/// scales. `limit_error` is twice the change of `limit` when the finest scale is left out: with the next term
/// of order q > p and halved scales it covers the error where q > 0.6. When there are too few scales to leave
/// one out (three, order not given) it is the whole correction, |limit - f_1|. `finest_error` = |limit - f_1|
/// + limit_error. Source: L. F. Richardson, Phil. Trans. R. Soc. A 210 (1911) 307-357; P. J. Roache, J.
/// Fluids Eng. 116 (1994) 405-413. Values that have not reached their order yet are not recognised as such,
/// except through a large `limit_error`.
Extrapolation extrapolated(std::span<const RefinedValue> values, std::optional<double> order = {});

/// Limit of values at scales that are halved each time, coarsest first, whose error is a sum of powers of the
/// scale of unknown orders, c h^p + d h^q + ...: Aitken's process
///
///     f_k  <-  f_{k+2} + (f_{k+2} - f_{k+1}) r / (1 - r),   r = (f_{k+2} - f_{k+1}) / (f_{k+1} - f_k),
///
/// repeated while three values are left and 0 < r < 0.9; each pass removes one power. `limit_error` is the
/// change by the last pass. No pass (fewer than three values, or differences that do not shrink with one
/// sign): the last value, and the last difference as its error. Source: A. C. Aitken, Proc. R. Soc. Edinburgh
/// 46 (1926) 289-305.
struct Accelerated {
  double limit = 0.0;
  double limit_error = 0.0;
};
Accelerated accelerated(std::span<const double> values);

/// The density on the grid whose cells are blocks of factor^d cells; each count of cells is a multiple of
/// `factor`.
Density coarsened(const Density& density, std::size_t factor);

/// integral |a - b|: two densities on grids of one domain of which one is a refinement of the other; the
/// finer one is coarsened first. What a grid study reports where no exact solution is known.
double l1_difference(const Density& a, const Density& b);

}  // namespace rieszflow
