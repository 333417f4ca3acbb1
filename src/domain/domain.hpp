#pragma once
#include <cstddef>
#include <span>
#include <variant>
#include <vector>

namespace rieszflow {

/// Product of intervals [lower_k, upper_k]; an interval when its dimension is 1.
struct Box {
  std::vector<double> lower;  ///< (dimension)
  std::vector<double> upper;  ///< (dimension), upper > lower
};

/// Closed Euclidean ball.
struct Ball {
  std::vector<double> center;  ///< (dimension)
  double radius = 1.0;         ///< > 0
};

/// Periodic box: lower_k and upper_k are the same point.
struct Torus {
  std::vector<double> lower;  ///< (dimension)
  std::vector<double> upper;  ///< (dimension), upper > lower
};

/// All of R^d. Only particles live here; a confining potential makes the law well posed.
struct WholeSpace {
  std::size_t space_dimension = 1;
};

using Domain = std::variant<Box, Ball, Torus, WholeSpace>;

std::size_t dimension(const Domain& domain);

/// Lebesgue measure; infinity for the whole space.
double volume(const Domain& domain);

/// True for a finite point of the closed domain (torus: of [lower, upper)).
bool contains(const Domain& domain, std::span<const double> point);

/// point <- nearest point of the closed domain. Torus: wraps. Non-finite coordinates stay as they are.
void project(const Domain& domain, std::span<double> point);

/// Mirror reflection at the walls, folded in closed form: right for a displacement of any length (a triangle
/// wave per axis in a box; in a ball the radius is folded along the ray from the centre). Torus: wraps.
/// Non-finite coordinates stay as they are. theory.md section 1.
void reflect(const Domain& domain, std::span<double> point);

/// out = x - y; on the torus the representative with every coordinate in [-L/2, L/2).
void displacement(const Domain& domain, std::span<const double> x, std::span<const double> y,
                  std::span<double> out);

/// Smallest box that contains the domain (whole space: not allowed).
Box bounding_box(const Domain& domain);

}  // namespace rieszflow
