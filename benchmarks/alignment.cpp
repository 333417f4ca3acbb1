// One gradient of each alignment against the matrix products that it cannot avoid, by Eigen in the same run.
// (8): scores Z Omega^T and the pullback T^T Z. (9), (10): also S = Phi^T Phi (half of it, it is symmetric)
// and Phi S; the ridge loss: S alone. n = 20,000 rows, N = 256 particles, d = 10, one thread.
#include "model/alignment.hpp"

#include <benchmark/benchmark.h>

#include <Eigen/Dense>
#include <vector>

#include "core/noise.hpp"

namespace {

using namespace rieszflow;

constexpr std::size_t rows = 20000, particle_count = 256, dimension = 10;

std::vector<double> gaussians(std::size_t count, std::uint64_t seed) {
  std::vector<double> out(count);
  NoiseStream(seed, NoisePurpose::ReferenceSample).gaussians(0, 0, 0, out);
  return out;
}

LabelledData data() {
  LabelledData out{.count = rows,
                   .dimension = dimension,
                   .label_columns = 1,
                   .points = gaussians(rows * dimension, 1),
                   .labels = gaussians(rows, 2)};
  for (double& y : out.labels) y = y > 0.0 ? 1.0 : -1.0;
  return out;
}

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void gram_products(benchmark::State& state) {
  const Matrix features = Matrix::Random(rows, particle_count);
  Matrix gram(particle_count, particle_count), product(rows, particle_count);
  for (auto _ : state) {
    gram.setZero();
    gram.selfadjointView<Eigen::Lower>().rankUpdate(features.transpose());
    if (state.range(0) > 0) product.noalias() = features * gram;
    benchmark::DoNotOptimize(gram.data());
    benchmark::DoNotOptimize(product.data());
  }
}

void products(benchmark::State& state) {
  const Matrix points = Matrix::Random(rows, dimension),
               particles = Matrix::Random(particle_count, dimension);
  Matrix scores(rows, particle_count), gradient(particle_count, dimension);
  for (auto _ : state) {
    scores.noalias() = points * particles.transpose();
    gradient.noalias() = scores.transpose() * points;
    benchmark::DoNotOptimize(gradient.data());
  }
}

void gradient(benchmark::State& state, FeatureMap map, AlignmentKind kind) {
  const Alignment alignment(map, data(), {.kind = kind});
  const auto particles = reference_particles(map, particle_count, dimension, 1.0, false, 1, 0);
  std::vector<double> forces(particles.size(), 0.0);
  for (auto _ : state) {
    benchmark::DoNotOptimize(alignment.add_forces(particles, particle_count, 0, 0, forces));
  }
}

BENCHMARK(products)->Unit(benchmark::kMillisecond);
BENCHMARK(gram_products)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(gradient, linear_fourier, FeatureMap::Fourier, AlignmentKind::Linear)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(gradient, linear_fourier_phase, FeatureMap::FourierPhase, AlignmentKind::Linear)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(gradient, squared_loss_fourier_phase, FeatureMap::FourierPhase, AlignmentKind::SquaredLoss)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(gradient, normalised_fourier_phase, FeatureMap::FourierPhase, AlignmentKind::Normalised)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(gradient, ridge_loss_fourier_phase, FeatureMap::FourierPhase, AlignmentKind::RidgeLoss)
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
