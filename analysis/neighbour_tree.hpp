#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace rieszflow {

/// Nearest neighbours among points by a k-d tree: O(n log n) to build, O(log n + count) a query.
class NeighbourTree {
 public:
  enum class Norm {
    Euclidean,
    Maximum,  ///< max_a |x_a - y_a|: its balls are cubes
  };

  struct Neighbour {
    double distance = 0.0;
    std::size_t point = 0;
  };

  /// points: (point, dimension), row-major, finite. periods: (dimension); 0 where the axis is not periodic.
  NeighbourTree(std::vector<double> points, std::vector<double> periods, Norm norm);

  /// The `count` points nearest to point `index`, itself not among them, nearest first; equal distances in
  /// any order. All others when there are fewer than `count`.
  void nearest(std::size_t index, std::size_t count, std::vector<Neighbour>& out) const;

 private:
  struct Node {
    std::size_t begin = 0;  ///< points order_[begin..end) lie in the node
    std::size_t end = 0;
    std::size_t right = 0;  ///< second child; the first one is the next node; 0 for a leaf
  };

  std::size_t build(std::size_t begin, std::size_t end);
  double distance(const double* x, const double* y) const;
  double distance_to_node(const double* x, std::size_t node) const;
  void search(std::size_t node, std::size_t index, std::size_t count, std::vector<Neighbour>& heap) const;

  std::size_t dimension_;
  std::vector<double> points_;
  std::vector<double> periods_;
  Norm norm_;
  std::vector<std::size_t> order_;
  std::vector<double> sorted_;  ///< (place in order_, dimension): the points as the leaves see them
  std::vector<Node> nodes_;
  std::vector<double> bounds_;  ///< (node, lower and upper, dimension)
};

}  // namespace rieszflow
