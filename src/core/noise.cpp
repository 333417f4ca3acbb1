#include "core/noise.hpp"

#include <Random123/philox.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "core/expects.hpp"

// This file is compiled without contraction of a*b + c, and uses only the exactly rounded operations + - * /
// sqrt: the numbers are the same bits on every processor and for every vector width.

namespace rieszflow {
namespace {

constexpr std::size_t words_per_block = 4;
constexpr std::size_t chunk_pairs = 256;  ///< Gaussian pairs drawn in one sweep; fits the first-level cache

/// Philox block `block` of the stream's (replica, step, particle).
std::array<std::uint64_t, words_per_block> philox(std::uint64_t seed, NoisePurpose purpose,
                                                  std::uint64_t replica, std::uint64_t step,
                                                  std::uint64_t particle, std::uint64_t block) {
  const philox4x64_ctr_t counter = {{block, particle, step, replica}};
  const philox4x64_key_t key = {{seed, static_cast<std::uint64_t>(purpose)}};
  const philox4x64_ctr_t words = philox4x64(counter, key);
  return {words.v[0], words.v[1], words.v[2], words.v[3]};
}

/// (k + 1/2) 2^-52 for the top 52 bits k: exact, symmetric about 1/2, never 0 or 1.
inline double open_uniform(std::uint64_t word) {
  const double in_one_two = std::bit_cast<double>((word >> 12) | 0x3ff0000000000000ULL);
  return (in_one_two - 1.0) + 0x1.0p-53;
}

/// log u for normal u in (0, 1): u = 2^e m, log m = 2 artanh((m-1)/(m+1)) with m in [1/sqrt 2, sqrt 2).
inline double log_of_uniform(double u) {
  constexpr std::uint64_t one = 0x3ff0000000000000ULL;
  constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcdULL;
  const std::uint64_t shifted = std::bit_cast<std::uint64_t>(u) + (one - root_half);
  const double exponent =
      std::bit_cast<double>((shifted >> 52) | 0x4330000000000000ULL) - (0x1.0p52 + 1023.0);
  const double m = std::bit_cast<double>((shifted & 0x000fffffffffffffULL) + root_half);
  const double s = (m - 1.0) / (m + 1.0), q = s * s;
  double series = 1.0 / 21.0;
  series = series * q + 1.0 / 19.0;
  series = series * q + 1.0 / 17.0;
  series = series * q + 1.0 / 15.0;
  series = series * q + 1.0 / 13.0;
  series = series * q + 1.0 / 11.0;
  series = series * q + 1.0 / 9.0;
  series = series * q + 1.0 / 7.0;
  series = series * q + 1.0 / 5.0;
  series = series * q + 1.0 / 3.0;
  return exponent * std::numbers::ln2 + (2.0 * s + 2.0 * s * q * series);
}

/// Box and Muller (1958): two uniform words -> two independent standard Gaussians. Clones: one per vector
/// width.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void box_muller(const std::uint64_t* radius_words, const std::uint64_t* angle_words, std::size_t count,
                double* first, double* second) {
  for (std::size_t i = 0; i < count; ++i) {
    const double radius = std::sqrt(-2.0 * log_of_uniform(open_uniform(radius_words[i])));
    // Angle 2 pi v = (pi/2)(quadrant + r) with |r| <= 1/2, both exact.
    const double quarters = 4.0 * open_uniform(angle_words[i]);
    const double rounder = quarters + 0x1.8p52;
    const std::uint64_t quadrant = std::bit_cast<std::uint64_t>(rounder);
    const double angle = (quarters - (rounder - 0x1.8p52)) * (std::numbers::pi / 2.0), q = angle * angle;
    double sine = -1.0 / 1307674368000.0;  // Taylor: the first term left out is below 5e-17 at pi/4
    sine = sine * q + 1.0 / 6227020800.0;
    sine = sine * q - 1.0 / 39916800.0;
    sine = sine * q + 1.0 / 362880.0;
    sine = sine * q - 1.0 / 5040.0;
    sine = sine * q + 1.0 / 120.0;
    sine = sine * q - 1.0 / 6.0;
    sine = angle + angle * (sine * q);
    double cosine = 1.0 / 20922789888000.0;
    cosine = cosine * q - 1.0 / 87178291200.0;
    cosine = cosine * q + 1.0 / 479001600.0;
    cosine = cosine * q - 1.0 / 3628800.0;
    cosine = cosine * q + 1.0 / 40320.0;
    cosine = cosine * q - 1.0 / 720.0;
    cosine = cosine * q + 1.0 / 24.0;
    cosine = cosine * q - 1.0 / 2.0;
    cosine = 1.0 + cosine * q;
    // Quadrant n turns (cos, sin) by n pi/2: swap when n is odd, then the signs.
    const std::uint64_t odd = 0 - (quadrant & 1);
    const std::uint64_t c = std::bit_cast<std::uint64_t>(cosine), s = std::bit_cast<std::uint64_t>(sine);
    const std::uint64_t x = ((c & ~odd) | (s & odd)) ^ (((quadrant + 1) & 2) << 62);
    const std::uint64_t y = ((s & ~odd) | (c & odd)) ^ ((quadrant & 2) << 62);
    first[i] = radius * std::bit_cast<double>(x);
    second[i] = radius * std::bit_cast<double>(y);
  }
}

}  // namespace

void NoiseStream::uniforms(std::uint64_t replica, std::uint64_t step, std::uint64_t particle,
                           std::span<double> out) const {
  for (std::size_t start = 0; start < out.size(); start += words_per_block) {
    const auto words = philox(seed_, purpose_, replica, step, particle, start / words_per_block);
    const std::size_t count = std::min(words_per_block, out.size() - start);
    for (std::size_t k = 0; k < count; ++k) out[start + k] = open_uniform(words[k]);
  }
}

void NoiseStream::gaussians(std::uint64_t replica, std::uint64_t step, std::uint64_t particle,
                            std::span<double> out) const {
  gaussian_block(replica, step, particle, 1, out.size(), out);
}

void NoiseStream::gaussian_block(std::uint64_t replica, std::uint64_t step, std::size_t particle_count,
                                 std::size_t dimension, std::span<double> out) const {
  gaussian_block(replica, step, 0, particle_count, dimension, out);
}

void NoiseStream::gaussian_block(std::uint64_t replica, std::uint64_t step, std::uint64_t first_particle,
                                 std::size_t particle_count, std::size_t dimension,
                                 std::span<double> out) const {
  expects(out.size() == particle_count * dimension, "one number for each particle and dimension");
  std::array<std::uint64_t, chunk_pairs> radius_words, angle_words;
  std::array<double, chunk_pairs> first, second;
  const std::size_t pairs_per_particle = (dimension + 1) / 2;
  const std::size_t pair_count = particle_count * pairs_per_particle;
  for (std::size_t start = 0; start < pair_count; start += chunk_pairs) {
    const std::size_t count = std::min(chunk_pairs, pair_count - start);
    // Pair `start + i` is pair `k` of particle `particle`; a Philox block holds the pairs 2 block and 2 block
    // + 1.
    std::size_t particle = start / pairs_per_particle, k = start % pairs_per_particle;
    std::array<std::uint64_t, words_per_block> words{};
    for (std::size_t i = 0; i < count; ++i) {
      if (i == 0 || k % 2 == 0)
        words = philox(seed_, purpose_, replica, step, first_particle + particle, k / 2);
      radius_words[i] = words[2 * (k % 2)];
      angle_words[i] = words[2 * (k % 2) + 1];
      if (++k == pairs_per_particle) k = 0, ++particle;
    }
    box_muller(radius_words.data(), angle_words.data(), count, first.data(), second.data());
    particle = start / pairs_per_particle, k = start % pairs_per_particle;
    for (std::size_t i = 0; i < count; ++i) {
      double* const target = out.data() + particle * dimension + 2 * k;
      target[0] = first[i];
      if (2 * k + 1 < dimension) target[1] = second[i];
      if (++k == pairs_per_particle) k = 0, ++particle;
    }
  }
}

}  // namespace rieszflow
