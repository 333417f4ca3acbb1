#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/ranks.hpp"

namespace rieszflow {

/// out_i = sum_j w_{|i - j|} in_j on a d-dimensional array, w even in every axis, by real FFTs.
///
/// Linear (box): each axis is zero-padded to at least 2n - 1 (Hockney), the transforms of rows that are known
/// to be zero or are not needed are skipped. Circular (torus): no padding. The kernel's transform is real and
/// kept. Lines and blocks are transformed by the same plan whatever thread takes them, and plans are chosen
/// by FFTW's fixed cost model (never by timing): the result is bitwise the same in every run and for any
/// number of threads and ranks. In two and three dimensions ranks have slabs: rows of the last axis, then,
/// after a transposition, blocks of columns; in one, each does the whole. Reference: R. W. Hockney and J. W. Eastwood, Computer Simulation Using Particles
/// (1988), section 6-5-4.
class EvenConvolution {
 public:
  enum class Kind { Linear, Circular };

  /// counts: (dimension); weights: w at the offsets 0 .. offset_count(count) - 1 of each axis, last axis
  /// fastest.
  EvenConvolution(std::span<const std::size_t> counts, std::span<const double> weights, Kind kind,
                  int threads, const Ranks& ranks = {});
  ~EvenConvolution();
  EvenConvolution(EvenConvolution&&) noexcept;
  EvenConvolution& operator=(EvenConvolution&&) noexcept;

  /// Number of offsets that the weights need along an axis of `count` cells.
  static std::size_t offset_count(std::size_t count, Kind kind);

  /// in, out: (count_0, ..., count_{d-1}), last axis fastest; they may be the same array. With several
  /// ranks all pass the same `in` and get the same `out`. Not thread-safe on one object.
  void operator()(std::span<const double> in, std::span<double> out) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rieszflow
