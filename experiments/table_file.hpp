#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "potentials/potential.hpp"

namespace rieszflow {

/// A potential read from text, or why it cannot be.
struct TableFile {
  std::optional<TablePotential> potential;
  std::string problem;  ///< "table.txt:12: what is wrong"; empty when there is a potential
};

/// Rows `x_1 ... x_d V` on a uniform grid of nodes, the last coordinate fastest; blanks or tabs between the
/// numbers, `#` starts a comment. At least `fewest_nodes` per axis; every number finite; nodes uniform to
/// 1e-6 of their spacing.
TableFile read_table_file(const std::filesystem::path& file, std::size_t dimension);

constexpr std::size_t fewest_nodes = 4;  ///< a cubic spline needs them

}  // namespace rieszflow
