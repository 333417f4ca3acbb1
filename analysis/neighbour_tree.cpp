#include "analysis/neighbour_tree.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

constexpr std::size_t leaf_size = 8;

bool nearer(const NeighbourTree::Neighbour& a, const NeighbourTree::Neighbour& b) {
  return a.distance < b.distance;
}

}  // namespace

NeighbourTree::NeighbourTree(std::vector<double> points, std::vector<double> periods, Norm norm)
    : dimension_(periods.size()), points_(std::move(points)), periods_(std::move(periods)), norm_(norm) {
  expects(dimension_ > 0 && points_.size() % dimension_ == 0, "points are (point, dimension)");
  order_.resize(points_.size() / dimension_);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  if (order_.empty()) return;
  build(0, order_.size());
  sorted_.resize(points_.size());
  for (std::size_t place = 0; place < order_.size(); ++place)
    std::copy_n(&points_[order_[place] * dimension_], dimension_, &sorted_[place * dimension_]);
}

std::size_t NeighbourTree::build(std::size_t begin, std::size_t end) {
  const std::size_t node = nodes_.size();
  nodes_.push_back({begin, end, 0});
  bounds_.resize(bounds_.size() + 2 * dimension_);
  std::size_t widest = 0;
  double width = 0.0;
  for (std::size_t axis = 0; axis < dimension_; ++axis) {
    double lower = points_[order_[begin] * dimension_ + axis], upper = lower;
    for (std::size_t place = begin; place < end; ++place) {
      const double x = points_[order_[place] * dimension_ + axis];
      lower = std::min(lower, x);
      upper = std::max(upper, x);
    }
    bounds_[node * 2 * dimension_ + axis] = lower;
    bounds_[node * 2 * dimension_ + dimension_ + axis] = upper;
    if (upper - lower > width) {
      width = upper - lower;
      widest = axis;
    }
  }
  if (end - begin <= leaf_size || width == 0.0) return node;
  const std::size_t middle = begin + (end - begin) / 2;
  std::nth_element(order_.begin() + static_cast<std::ptrdiff_t>(begin),
                   order_.begin() + static_cast<std::ptrdiff_t>(middle),
                   order_.begin() + static_cast<std::ptrdiff_t>(end), [&](std::size_t a, std::size_t b) {
                     return points_[a * dimension_ + widest] < points_[b * dimension_ + widest];
                   });
  build(begin, middle);
  const std::size_t right = build(middle, end);
  nodes_[node].right = right;
  return node;
}

double NeighbourTree::distance(const double* x, const double* y) const {
  double result = 0.0;
  for (std::size_t axis = 0; axis < dimension_; ++axis) {
    double gap = std::abs(x[axis] - y[axis]);
    if (periods_[axis] > 0.0) gap = std::min(gap, periods_[axis] - gap);
    result = norm_ == Norm::Maximum ? std::max(result, gap) : result + gap * gap;
  }
  return norm_ == Norm::Maximum ? result : std::sqrt(result);
}

double NeighbourTree::distance_to_node(const double* x, std::size_t node) const {
  const double* lower = &bounds_[node * 2 * dimension_];
  const double* upper = lower + dimension_;
  double result = 0.0;
  for (std::size_t axis = 0; axis < dimension_; ++axis) {
    const double below = lower[axis] - x[axis], above = x[axis] - upper[axis];
    double gap = std::max(0.0, std::max(below, above));
    if (gap > 0.0 && periods_[axis] > 0.0)
      gap = std::max(0.0, std::min(gap, periods_[axis] + std::min(below, above)));
    result = norm_ == Norm::Maximum ? std::max(result, gap) : result + gap * gap;
  }
  return norm_ == Norm::Maximum ? result : std::sqrt(result);
}

void NeighbourTree::search(std::size_t node, std::size_t index, std::size_t count,
                           std::vector<Neighbour>& heap) const {
  const double* x = &points_[index * dimension_];
  if (nodes_[node].right == 0) {
    for (std::size_t place = nodes_[node].begin; place < nodes_[node].end; ++place) {
      if (order_[place] == index) continue;
      const Neighbour candidate{distance(x, &sorted_[place * dimension_]), order_[place]};
      if (heap.size() == count) {
        if (!nearer(candidate, heap.front())) continue;
        std::pop_heap(heap.begin(), heap.end(), nearer);
        heap.pop_back();
      }
      heap.push_back(candidate);
      std::push_heap(heap.begin(), heap.end(), nearer);
    }
    return;
  }
  std::size_t first = node + 1, second = nodes_[node].right;
  double first_distance = distance_to_node(x, first), second_distance = distance_to_node(x, second);
  if (second_distance < first_distance) {
    std::swap(first, second);
    std::swap(first_distance, second_distance);
  }
  if (heap.size() < count || first_distance < heap.front().distance) search(first, index, count, heap);
  if (heap.size() < count || second_distance < heap.front().distance) search(second, index, count, heap);
}

void NeighbourTree::nearest(std::size_t index, std::size_t count, std::vector<Neighbour>& out) const {
  out.clear();
  if (count == 0 || order_.empty()) return;
  search(0, index, count, out);
  std::sort_heap(out.begin(), out.end(), nearer);
}

}  // namespace rieszflow
