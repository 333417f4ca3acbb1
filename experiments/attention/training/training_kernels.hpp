#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

/// Element-wise loops of training that pay for being written as one sweep.
namespace rieszflow::attention {

/// AdamW, Loshchilov and Hutter, ICLR 2019, algorithm 2: with g the clipped gradient and t the number of the
/// step,
///
///     m <- b1 m + (1 - b1) g,  v <- b2 v + (1 - b2) g^2,
///     x <- x - rate (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + decay x),
///
/// and the moving average of the weights, average <- average + (1 - averaging) (x - average).
struct AdamW {
  double first_decay = 0.9;    ///< b1
  double second_decay = 0.98;  ///< b2
  double epsilon = 1e-8;
  double averaging = 0.0;  ///< of the weights; 0: the average is the weights
};

/// One step; all spans have one length. `decay` holds for the whole span. `gradient_scale` is the factor of
/// clipping.
void advance(const AdamW& method, std::int64_t step, double rate, double decay, double gradient_scale,
             std::span<const float> gradient, std::span<float> first, std::span<float> second,
             std::span<float> weights, std::span<float> average);

/// Sum of squares, in double.
double squared_norm(std::span<const float> values);

/// out_k = 0 with probability `rate`, else 1 / (1 - rate), independent for all k and all keys: bits of the
/// 32-bit finaliser of MurmurHash3 of (key, k). `key` comes from a NoiseStream.
void fill_dropout_mask(std::uint64_t key, double rate, std::span<float> out);

}  // namespace rieszflow::attention
