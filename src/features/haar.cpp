#include "features/haar.hpp"

#include <Eigen/Dense>

namespace rieszflow {

std::vector<double> haar_matrix(const NoiseStream& noise, std::uint64_t replica, std::uint64_t step,
                                std::uint64_t block, std::size_t dimension) {
  const auto size = static_cast<Eigen::Index>(dimension);
  Eigen::MatrixXd gaussian(size, size);
  noise.gaussians(replica, step, block, {gaussian.data(), dimension * dimension});
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(gaussian);
  Eigen::MatrixXd q = qr.householderQ();
  for (Eigen::Index k = 0; k < size; ++k)
    if (qr.matrixQR()(k, k) < 0.0) q.col(k) *= -1.0;
  std::vector<double> out(dimension * dimension);
  Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(out.data(), size, size) =
      q;
  return out;
}

}  // namespace rieszflow
