// Attention in float32: how its time grows with the length, against exact softmax, on threads, in memory; and
// how favor's error against exact softmax falls with the number of features.
//
//   bench_attention times | shapes | levels | kernel | threads | memory | error | encoder
//
// Milliseconds of CPU time of one call, minimum and median of many, one thread (threads: wall time). Four
// heads of dimension 32 with 64 features unless said.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "attention/encoder.hpp"
#include "attention/linear_attention.hpp"
#include "core/noise.hpp"

namespace {

using namespace rieszflow;
using namespace rieszflow::attention;

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Shape {
  std::size_t heads = 4, d = 32, m = 64;
};

std::vector<float> omega_of(const Shape& shape, double scale = 1.0) {
  std::vector<float> out;
  for (std::size_t h = 0; h < shape.heads; ++h)
    for (const double value : orthogonal_features(shape.m, shape.d, 1, h))
      out.push_back(static_cast<float>(scale * value));
  return out;
}

/// One sequence of Gaussian rows and the memory of its output.
struct Sequence {
  std::size_t length, width;
  std::vector<float> inputs, out;

  Sequence(std::size_t length_, const Shape& shape)
      : length(length_), width(shape.heads * shape.d), inputs(3 * length * width), out(length * width) {
    std::vector<double> row(width);
    for (std::size_t t = 0; t < 3 * length; ++t) {
      NoiseStream(1, NoisePurpose::ReferenceSample).gaussians(0, 0, t, row);
      std::copy(row.begin(), row.end(), inputs.begin() + static_cast<std::ptrdiff_t>(t * width));
    }
  }
  TokenRows rows() const {
    return {.length = length,
            .token_stride = width,
            .queries = inputs.data(),
            .keys = inputs.data() + length * width,
            .values = inputs.data() + 2 * length * width};
  }
};

FusedAttention engine(AttentionKind kind, const Shape& shape, const std::vector<float>& omega,
                      std::string_view level = {}) {
  return {kind, shape.heads, shape.d,
          has_features(kind) ? std::span<const float>(omega) : std::span<const float>{}, level};
}

struct Times {
  double least = 0.0, median = 0.0;  // ms
};

template <class Call>
Times times_of(Call call, clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  std::vector<double> samples;
  const double begin = seconds(CLOCK_MONOTONIC);
  do {
    const double start = seconds(clock);
    call();
    samples.push_back(1e3 * (seconds(clock) - start));
  } while (samples.size() < 5 || (samples.size() < 400 && seconds(CLOCK_MONOTONIC) - begin < 0.4));
  std::sort(samples.begin(), samples.end());
  return {samples.front(), samples[samples.size() / 2]};
}

Times times_of(const FusedAttention& attention, Sequence& sequence, int threads = 1,
               clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  return times_of([&] { attention.apply(sequence.rows(), sequence.out.data(), sequence.width, threads); },
                  clock);
}

double slope(const std::vector<double>& x, const std::vector<double>& y) {
  double mx = 0.0, my = 0.0, xy = 0.0, xx = 0.0;
  const auto n = static_cast<double>(x.size());
  for (std::size_t k = 0; k < x.size(); ++k) mx += std::log(x[k]) / n, my += std::log(y[k]) / n;
  for (std::size_t k = 0; k < x.size(); ++k) {
    xy += (std::log(x[k]) - mx) * (std::log(y[k]) - my);
    xx += (std::log(x[k]) - mx) * (std::log(x[k]) - mx);
  }
  return xy / xx;
}

void times() {
  const Shape shape;
  const std::vector<float> omega = omega_of(shape);
  std::printf("| L | favor | softplus | softmaxfeat | exact softmax |\n|---|---|---|---|---|\n");
  std::vector<double> lengths, least;
  for (std::size_t length = 128; length <= 65536; length *= 2) {
    Sequence sequence(length, shape);
    std::printf("| %zu |", length);
    for (const AttentionKind kind : {AttentionKind::Favor, AttentionKind::PorfSoftplus,
                                     AttentionKind::SoftmaxFeatures, AttentionKind::Softmax}) {
      if (kind == AttentionKind::Softmax && length > 4096) {
        std::printf(" |");
        continue;
      }
      const Times time = times_of(engine(kind, shape, omega), sequence);
      std::printf(" %.3f, %.3f |", time.least, time.median);
      if (kind == AttentionKind::Favor && length >= 1024) {
        lengths.push_back(static_cast<double>(length));
        least.push_back(time.least);
      }
    }
    std::printf("\n");
  }
  std::printf("exponent of favor over 1,024 ... 65,536 (minima): %.3f\n", slope(lengths, least));
  double before = 0.0;
  for (std::size_t length = 64; length <= 512; length += 8) {
    Sequence sequence(length, shape);
    const double difference = times_of(engine(AttentionKind::Softmax, shape, omega), sequence).least -
                              times_of(engine(AttentionKind::Favor, shape, omega), sequence).least;
    if (difference > 0.0) {
      const double there = static_cast<double>(length);
      std::printf("crossover of favor with exact softmax: L = %.0f\n",
                  length == 64 ? there : there - 8.0 * difference / (difference - before));
      break;
    }
    before = difference;
  }
}

void shapes() {
  std::printf("| H | d | m | L | favor | exact softmax |\n|---|---|---|---|---|---|\n");
  for (const Shape& shape : {Shape{4, 32, 64}, Shape{4, 32, 16}, Shape{4, 32, 256}, Shape{8, 64, 256}}) {
    const std::vector<float> omega = omega_of(shape);
    for (const std::size_t length : {256, 1024, 4096}) {
      Sequence sequence(length, shape);
      const Times favor = times_of(engine(AttentionKind::Favor, shape, omega), sequence);
      const Times exact = times_of(engine(AttentionKind::Softmax, shape, omega), sequence);
      std::printf("| %zu | %zu | %zu | %zu | %.3f, %.3f | %.3f, %.3f |\n", shape.heads, shape.d, shape.m,
                  length, favor.least, favor.median, exact.least, exact.median);
    }
  }
}

void levels() {
  const Shape shape;
  const std::vector<float> omega = omega_of(shape);
  std::printf("| level | L | favor | exact softmax |\n|---|---|---|---|\n");
  for (const std::string_view level : FusedAttention::levels()) {
    for (const std::size_t length : {1024, 4096}) {
      Sequence sequence(length, shape);
      const Times favor = times_of(engine(AttentionKind::Favor, shape, omega, level), sequence);
      const Times exact = times_of(engine(AttentionKind::Softmax, shape, omega, level), sequence);
      std::printf("| %s | %zu | %.3f, %.3f | %.3f, %.3f |\n", std::string(level).c_str(), length, favor.least,
                  favor.median, exact.least, exact.median);
    }
  }
}

/// Fixed omega against one of other numbers (norms 1.3 times as large, other directions), measured in turns.
void kernel() {
  const Shape shape;
  const std::vector<float> vanilla = omega_of(shape);
  std::vector<float> learned;
  for (std::size_t h = 0; h < shape.heads; ++h) {
    std::vector<double> norms(shape.m * shape.d);
    for (std::size_t i = 0; i < norms.size(); ++i) norms[i] = 1.3 * vanilla[h * shape.m * shape.d + i];
    for (const double value : norm_matched_features(norms, shape.d, 9, h))
      learned.push_back(static_cast<float>(value));
  }
  for (const std::size_t length : {1024, 4096}) {
    Sequence sequence(length, shape);
    std::vector<double> ratios;
    for (int round = 0; round < 9; ++round) {
      const double a = times_of(engine(AttentionKind::Favor, shape, vanilla), sequence).least;
      ratios.push_back(times_of(engine(AttentionKind::Favor, shape, learned), sequence).least / a);
    }
    std::sort(ratios.begin(), ratios.end());
    std::printf("L = %zu: kernel / vanilla %.3f (median of 9, %.3f ... %.3f)\n", length, ratios[4],
                ratios.front(), ratios.back());
  }
}

void threads() {
  const Shape shape;
  const std::vector<float> omega = omega_of(shape);
  std::printf("| L | one thread | two threads | ratio of minima |\n|---|---|---|---|\n");
  for (const std::size_t length : {512, 1024, 4096, 16384, 65536}) {
    Sequence sequence(length, shape);
    const FusedAttention attention = engine(AttentionKind::Favor, shape, omega);
    const Times one = times_of(attention, sequence, 1, CLOCK_MONOTONIC);
    const Times two = times_of(attention, sequence, 2, CLOCK_MONOTONIC);
    std::printf("| %zu | %.3f, %.3f | %.3f, %.3f | %.2f |\n", length, one.least, one.median, two.least,
                two.median, one.least / two.least);
  }
}

double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

void memory() {
  const Shape shape;
  const std::vector<float> omega = omega_of(shape);
  for (const std::size_t length : {std::size_t{4096}, std::size_t{65536}, std::size_t{1048576}}) {
    Sequence sequence(length, shape);
    std::fill(sequence.out.begin(), sequence.out.end(), 1.0F);
    const double before = peak_mebibytes(), start = seconds(CLOCK_PROCESS_CPUTIME_ID);
    engine(AttentionKind::Favor, shape, omega).apply(sequence.rows(), sequence.out.data(), sequence.width);
    std::printf("L = %zu: %.3f s CPU, peak memory %.2f MiB above the %.0f MiB of inputs and output\n", length,
                seconds(CLOCK_PROCESS_CPUTIME_ID) - start, peak_mebibytes() - before,
                4.0 * 4.0 * static_cast<double>(length * sequence.width) / 1048576.0);
  }
}

void error() {
  constexpr std::size_t L = 16, d = 32, draws = 6;
  std::printf(
      "relative error of favor against exact softmax, L = 16, d = 32, q, k = scale N(0, 1), root mean square "
      "of 6\n"
      "| scale | |q|^2 / sqrt(d) | m = 64 | 256 | 1024 | 4096 | 16384 | slope "
      "|\n|---|---|---|---|---|---|---|---|\n");
  for (const double scale : {0.3, 0.5, 1.0, 2.0}) {
    std::vector<double> numbers(3 * L * d);
    NoiseStream(1, NoisePurpose::ReferenceSample).gaussians(0, 0, 0, numbers);
    for (std::size_t i = 0; i < 2 * L * d; ++i) numbers[i] *= scale;
    const std::span<const double> all = numbers;
    const HeadInput input{.length = L,
                          .dimension = d,
                          .value_dimension = d,
                          .queries = all.first(L * d),
                          .keys = all.subspan(L * d, L * d),
                          .values = all.last(L * d)};
    std::vector<double> exact(L * d), estimate(L * d), sizes, errors;
    reference_attention(AttentionKind::Softmax, {}, input, exact);
    double square = 0.0;
    for (const double value : exact) square += value * value;
    std::printf("| %.1f | %.2f |", scale, mean_square_score(input.queries, d));
    for (const std::size_t m : {64, 256, 1024, 4096, 16384}) {
      double sum = 0.0;
      for (std::size_t draw = 0; draw < draws; ++draw) {
        reference_attention(AttentionKind::Favor, orthogonal_features(m, d, 11, draw), input, estimate);
        for (std::size_t i = 0; i < exact.size(); ++i)
          sum += (estimate[i] - exact[i]) * (estimate[i] - exact[i]) / square / draws;
      }
      sizes.push_back(static_cast<double>(m));
      errors.push_back(std::sqrt(sum));
      std::printf(" %.4f |", errors.back());
    }
    std::printf(" %.2f |\n", slope(sizes, errors));
  }
}

/// One sentence of 24 tokens through a whole encoder, as `rieszflow attention --predict` does it.
void encoder() {
  for (const auto& [layers, heads, dimension] : {std::array<std::size_t, 3>{1, 2, 64}, {2, 4, 128}}) {
    constexpr std::size_t tokens = 24;
    EncoderWeights weights;
    weights.shape = {.vocabulary = 1000,
                     .max_length = tokens,
                     .dimension = dimension,
                     .heads = heads,
                     .layers = layers,
                     .feed_forward = 2 * dimension,
                     .feature_count = 64,
                     .kind = AttentionKind::Favor};
    std::uint64_t array_number = 0;
    for (const WeightArray& array : weight_arrays(weights)) {
      std::size_t size = 1;
      for (const std::size_t extent : array.shape) size *= extent;
      std::vector<double> draws(size);
      NoiseStream(1, NoisePurpose::ReferenceSample).gaussians(1, 0, array_number++, draws);
      for (const double draw : draws)
        array.values->push_back(
            static_cast<float>(draw / std::sqrt(static_cast<double>(array.shape.back()))));
    }
    TokenBatch sentence{.sequences = 1, .length = tokens};
    for (std::size_t t = 0; t < tokens; ++t) sentence.tokens.push_back(static_cast<std::int32_t>(2 + 7 * t));
    sentence.valid.assign(tokens, 1);
    const Encoder ready(weights);
    const auto [least, median] = times_of([&] { ready.logits(sentence); });
    std::printf("%zu layers, %zu heads of %zu, favor, m = 64, %zu tokens: %.3f, %.3f ms\n", layers, heads,
                dimension / heads, tokens, least, median);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::pair<const char*, void (*)()> commands[] = {
      {"times", times},     {"shapes", shapes}, {"levels", levels}, {"kernel", kernel},
      {"threads", threads}, {"memory", memory}, {"error", error},   {"encoder", encoder}};
  for (const auto& [name, command] : commands)
    if (argc == 2 && std::strcmp(argv[1], name) == 0) return command(), 0;
  std::fprintf(stderr,
               "bench_attention times | shapes | levels | kernel | threads | memory | error | encoder\n");
  return 2;
}
