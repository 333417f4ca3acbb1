#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/noise.hpp"

namespace rieszflow {

/// dimension x dimension orthogonal matrix of Haar law, row-major: QR of a Gaussian matrix with the signs of
/// R's diagonal. The Gaussians are those of (replica, step, block). Source: Mezzadri, Notices AMS 54 (2007).
std::vector<double> haar_matrix(const NoiseStream& noise, std::uint64_t replica, std::uint64_t step,
                                std::uint64_t block, std::size_t dimension);

}  // namespace rieszflow
