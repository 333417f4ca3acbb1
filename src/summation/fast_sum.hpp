#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "domain/domain.hpp"
#include "summation/terms.hpp"

namespace rieszflow {

/// Pair sums of radial interactions in O(N log N), d = 1, 2, 3, without periodicity or neutrality: walls and
/// clouds of one sign are the normal case.
///
///   W = near + far (far_field.hpp). Near pairs, r < r_c: rows of cells, packs of neighbours against runs of
///   particles, the inner loops of the direct sum minus a polynomial in r^2. Far: particles are spread to a
///   mesh with a Kaiser-Bessel window, convolved with the far kernel, and potential and gradient
///   interpolated.
///
/// The far kernel on the mesh is made on a torus of more than twice the extent: sampled at true
/// displacements, bent smoothly back in a margin, which makes it periodic without a kink, and divided by the
/// window's transform squared; the convolution is then zero-padded, so no image is seen. The gradient is that
/// of the interpolant divided by the sum of its weights: a constant potential, large for a cloud of one sign,
/// has no gradient.
///
/// A crowded region, closed off by a margin of r_c about its densest cells, gets a mesh of its own: among its
/// particles the near part of W is split again at a smaller radius r', so that only far(r') - far(r_c) is
/// added, which ends at r_c and needs no padding; and so on within it. No pair is approximated at a region's
/// edge. Where crowding is mild a finer mesh for all is cheaper, and taken. Kernel splitting: Ewald (1921);
/// by bumps of compact support: Liang, Lu, Barnett, Greengard and Jiang, arXiv:2505.09727; level by level:
/// Jiang and Greengard, arXiv:2308.00292; mesh: Hockney and Eastwood
/// (1988); windows and non-equispaced transforms: Potts, Steidl and Nieslony, Numer. Math. 98 (2004) 329;
/// Barnett, Magland and af Klinteberg, SIAM J. Sci. Comput. 41 (2019) C479.
///
/// A result is a function of the positions alone: bitwise the same for every number of threads and after a
/// resume.
class FastSum {
 public:
  /// tolerance: relative L2 error of the forces, 1e-3 .. 1e-10. Dimension at most three.
  FastSum(std::vector<RadialTerm> terms, const Domain& domain, std::size_t particle_count, double tolerance,
          int threads);
  ~FastSum();
  FastSum(FastSum&&) noexcept;
  FastSum& operator=(FastSum&&) noexcept;

  /// False when the cloud is so clustered that near pairs alone cost what all pairs cost; then nothing is
  /// added. Else forces += (1/N) sum of pair forces, and *energy = sum of W over unordered pairs unless null.
  /// positions, forces: (particle, dimension).
  bool add(std::span<const double> positions, std::span<double> forces, double* energy);

  /// Seconds that one evaluation and one direct evaluation are expected to take for a uniform cloud on one
  /// thread: a fit to the times of one machine, whose ratio decides between the two.
  static double expected_seconds(const std::vector<RadialTerm>& terms, std::size_t particle_count,
                                 std::size_t dimension, double tolerance);
  /// At most held at one time, the mesh and its transforms above all.
  static double expected_bytes(const std::vector<RadialTerm>& terms, std::size_t particle_count,
                               std::size_t dimension, double tolerance);
  /// Any dimension.
  static double expected_direct_seconds(const std::vector<RadialTerm>& terms, std::size_t particle_count,
                                        std::size_t dimension);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rieszflow
