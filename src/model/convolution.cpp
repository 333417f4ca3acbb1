#include "model/convolution.hpp"

#include <fftw3.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <mutex>
#include <numbers>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

using Complex = std::complex<double>;

std::mutex& planner() {  // FFTW's planner is the one part of it that threads must not share
  static std::mutex mutex;
  return mutex;
}

struct FreeArray {
  void operator()(void* memory) const { fftw_free(memory); }
};
template <class T>
using AlignedArray = std::unique_ptr<T[], FreeArray>;

template <class T>
AlignedArray<T> aligned_array(std::size_t size) {
  auto* memory = static_cast<T*>(fftw_malloc(std::max<std::size_t>(size, 1) * sizeof(T)));
  if (memory == nullptr) throw std::bad_alloc();
  std::fill_n(memory, size, T{});
  return AlignedArray<T>(memory);
}

struct DestroyPlan {
  void operator()(fftw_plan plan) const {
    const std::lock_guard lock(planner());
    fftw_destroy_plan(plan);
  }
};
using Plan = std::unique_ptr<std::remove_pointer_t<fftw_plan>, DestroyPlan>;

fftw_complex* raw(Complex* pointer) { return reinterpret_cast<fftw_complex*>(pointer); }

/// Smallest even number >= least with no prime factor above 7.
std::size_t fast_length(std::size_t least) {
  for (std::size_t length = std::max<std::size_t>(2, least + least % 2);; length += 2) {
    std::size_t rest = length;
    for (const std::size_t prime : {2, 3, 5, 7}) {
      while (rest % prime == 0) rest /= prime;
    }
    if (rest == 1) return length;
  }
}

constexpr std::size_t lanes = 8;  ///< columns transformed together: two cache lines

/// values *= weights.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void multiply(Complex* values, const double* weights, std::size_t count) {
  auto* parts = reinterpret_cast<double*>(values);
  for (std::size_t k = 0; k < count; ++k) {
    parts[2 * k] *= weights[k];
    parts[2 * k + 1] *= weights[k];
  }
}

/// Two real columns transformed as one complex, z = x0 + i x1: here `lanes` such pairs at the wavenumbers k
/// (z) and -k (y). out (pair, column) = twice the transforms of x0 and x1 at k, times the twiddle factors.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void split_and_twist(const double* z, const double* y, const double* __restrict twiddle, double* __restrict out) {
  for (std::size_t l = 0; l < lanes; ++l) {
    const double a = z[2 * l], b = z[2 * l + 1], c = y[2 * l], d = y[2 * l + 1];
    const double real0 = a + c, imaginary0 = b - d, real1 = b + d, imaginary1 = c - a;
    const double* t = twiddle + 4 * l;
    out[4 * l] = real0 * t[0] - imaginary0 * t[1];
    out[4 * l + 1] = real0 * t[1] + imaginary0 * t[0];
    out[4 * l + 2] = real1 * t[2] - imaginary1 * t[3];
    out[4 * l + 3] = real1 * t[3] + imaginary1 * t[2];
  }
}

/// The way back: z(k) and z(-k) from the transforms of x0 and x1 at k times the conjugate twiddle factors.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void untwist_and_merge(const double* __restrict in, const double* __restrict twiddle, double* __restrict y,
                       double* __restrict z) {
  for (std::size_t l = 0; l < lanes; ++l) {
    const double* v = in + 4 * l;
    const double* t = twiddle + 4 * l;
    const double real0 = v[0] * t[0] + v[1] * t[1], imaginary0 = v[1] * t[0] - v[0] * t[1];
    const double real1 = v[2] * t[2] + v[3] * t[3], imaginary1 = v[3] * t[2] - v[2] * t[3];
    y[2 * l] = real0 + imaginary1;
    y[2 * l + 1] = real1 - imaginary0;
    z[2 * l] = real0 - imaginary1;
    z[2 * l + 1] = imaginary0 + real1;
  }
}

/// Linear convolution of a long line of n cells as a matrix x[j1 * columns + j2], `rows` * columns >= 2n - 1,
/// of which the lower half of the rows is zero: transforms along j1 (two real columns as one complex),
/// twiddle factors, transforms along j2, the kernel, and back. Wavenumbers k1 <= rows/2 suffice: the input is
/// real. Each transform stays in cache.
class LongLine {
 public:
  static constexpr std::size_t width = 2 * lanes;  ///< real columns transformed together

  LongLine(std::size_t count, std::span<const double> weights, int threads)
      : count_(count), threads_(threads) {
    // Columns of 128 numbers stay in the first cache, up to rows too long for the second.
    rows_ = count <= (std::size_t{1} << 18) ? 128 : 64;
    while (rows_ * rows_ < count && count > (std::size_t{1} << 18)) rows_ *= 2;
    half_ = rows_ / 2 + 1;
    for (columns_ = width; rows_ * columns_ < 2 * count - 1 || !is_smooth(columns_);) columns_ += width;
    stride_ = columns_ + lanes;  // a power of two would send a whole column to a few sets of the cache
    matrix_ = aligned_array<Complex>(half_ * stride_);
    twiddle_ = aligned_array<Complex>(half_ * columns_);
    const double unit = -2.0 * std::numbers::pi / static_cast<double>(rows_ * columns_);
    for (std::size_t k = 0; k < half_; ++k) {
      for (std::size_t j = 0; j < columns_; ++j) {
        twiddle_[(j / width * half_ + k) * width + j % width] =
            std::polar(1.0, unit * static_cast<double>(k * j));
      }
    }
    for (int t = 0; t < threads_; ++t) {
      buffers_.push_back(aligned_array<Complex>((rows_ + 1) * lanes));
      row_buffers_.push_back(aligned_array<Complex>(columns_));
    }
    {
      const std::lock_guard lock(planner());
      const int n = static_cast<int>(rows_), m = static_cast<int>(columns_), many = static_cast<int>(lanes);
      fftw_complex* buffer = raw(buffers_[0].get());
      const auto columns = [&](int sign) {
        return fftw_plan_many_dft(1, &n, many, buffer, nullptr, many, 1, buffer, nullptr, many, 1, sign,
                                  FFTW_ESTIMATE);
      };
      down_.reset(columns(FFTW_FORWARD));
      up_.reset(columns(FFTW_BACKWARD));
      fftw_complex *row = raw(matrix_.get()), *apart = raw(row_buffers_[0].get());  // in place costs copies
      across_.reset(fftw_plan_dft_1d(m, row, apart, FFTW_FORWARD, FFTW_ESTIMATE));
      back_.reset(fftw_plan_dft_1d(m, apart, row, FFTW_BACKWARD, FFTW_ESTIMATE));
    }
    // The kernel's transform by the same steps, from the even sequence of the whole length: real.
    std::vector<double> even(rows_ * columns_, 0.0);
    for (std::size_t k = 0; k < count; ++k) {
      even[k] = weights[k];
      if (k > 0) even[even.size() - k] = weights[k];
    }
    for (std::size_t block = 0; block < columns_ / width; ++block)
      transform_columns(even.data(), even.size(), block, 0);
    spectrum_.resize(half_ * stride_);
    const double scale = 0.25 / static_cast<double>(rows_ * columns_);  // two transforms carry a factor 2
    for (std::size_t k = 0; k < half_; ++k) {
      Complex* row = row_buffers_[0].get();
      fftw_execute_dft(across_.get(), raw(matrix_.get() + k * stride_), raw(row));
      for (std::size_t j = 0; j < columns_; ++j) spectrum_[k * stride_ + j] = row[j].real() * scale;
    }
  }

  static bool suits(std::size_t count) { return count >= 4096; }

  void operator()(const double* in, double* out) {
#pragma omp parallel num_threads(threads_) if (threads_ > 1)
    {
      int thread = 0;
#ifdef _OPENMP
      thread = threads_ > 1 ? omp_get_thread_num() : 0;
#endif
#pragma omp for schedule(static)
      for (std::size_t block = 0; block < columns_ / width; ++block)
        transform_columns(in, count_, block, thread);
#pragma omp for schedule(static)
      for (std::size_t k = 0; k < half_; ++k) {
        Complex *row = matrix_.get() + k * stride_, *apart = row_buffers_[thread].get();
        fftw_execute_dft(across_.get(), raw(row), raw(apart));
        multiply(apart, spectrum_.data() + k * stride_, columns_);
        fftw_execute_dft(back_.get(), raw(apart), raw(row));
      }
#pragma omp for schedule(static)
      for (std::size_t block = 0; block < columns_ / width; ++block) {
        const std::size_t first = block * width;
        Complex* buffer = buffers_[thread].get();
        for (std::size_t k = 0; k < half_; ++k) {
          // At k = 0 and rows/2 the mirror is the row itself: it goes to the spare row behind the buffer.
          const std::size_t mirror = k == 0 || 2 * k == rows_ ? rows_ : rows_ - k;
          untwist_and_merge(parts(matrix_.get() + k * stride_ + first),
                            parts(twiddle_.get() + (block * half_ + k) * width),
                            parts(buffer + mirror * lanes), parts(buffer + k * lanes));
        }
        fftw_execute_dft(up_.get(), raw(buffer), raw(buffer));
        const double* columns = parts(buffer);
        for (std::size_t start = first, j = 0; start < count_; start += columns_, ++j) {
          std::copy_n(columns + j * width, std::min(width, count_ - start), out + start);
        }
      }
    }
  }

 private:
  static bool is_smooth(std::size_t length) {
    for (const std::size_t prime : {2, 3, 5, 7}) {
      while (length % prime == 0) length /= prime;
    }
    return length == 1;
  }

  static double* parts(Complex* values) { return reinterpret_cast<double*>(values); }

  void transform_columns(const double* in, std::size_t size, std::size_t block, int thread) {
    const std::size_t first = block * width;
    Complex* buffer = buffers_[thread].get();
    double* columns = parts(buffer);
    std::size_t j = 0;
    for (std::size_t start = first; start < size; start += columns_, ++j) {
      const std::size_t present = std::min(width, size - start);
      std::copy_n(in + start, present, columns + j * width);
      std::fill(columns + j * width + present, columns + (j + 1) * width, 0.0);
    }
    std::fill(columns + j * width, columns + rows_ * width, 0.0);
    fftw_execute_dft(down_.get(), raw(buffer), raw(buffer));
    for (std::size_t k = 0; k < half_; ++k) {
      const std::size_t mirror = k == 0 ? 0 : rows_ - k;
      split_and_twist(parts(buffer + k * lanes), parts(buffer + mirror * lanes),
                      parts(twiddle_.get() + (block * half_ + k) * width),
                      parts(matrix_.get() + k * stride_ + first));
    }
  }

  std::size_t count_, rows_ = 0, half_ = 0, columns_ = 0;
  std::size_t stride_ = 0;  ///< of the rows of `matrix_` and `spectrum_`
  int threads_;
  AlignedArray<Complex> matrix_;   ///< (k1, column)
  AlignedArray<Complex> twiddle_;  ///< (block of `width` columns, k1, column of the block): as it is read
  std::vector<double> spectrum_;
  std::vector<AlignedArray<Complex>> buffers_;      ///< (thread)
  std::vector<AlignedArray<Complex>> row_buffers_;  ///< (thread)
  Plan down_, up_, across_, back_;
};

}  // namespace

/// The last axis is transformed row by row (real to complex); the others, for `lanes` columns at a time, in
/// buffers that stay in cache. Arrays hold no padded rows, only padded lines in the buffers.
struct EvenConvolution::Implementation {
  std::unique_ptr<LongLine> long_line;  ///< long one-dimensional arrays; nothing else is then used
  std::size_t dimension = 0;
  std::array<std::size_t, 3> count{1, 1,
                                   1};  ///< cells; axes are counted from the left, missing ones have length 1
  std::array<std::size_t, 3> length{1, 1, 1};  ///< of the transform
  std::array<std::size_t, 3> half{1, 1, 1};    ///< length / 2 + 1
  std::size_t row_count = 1;
  std::size_t row_stride = 0;  ///< complex numbers per row of `rows`, a multiple of `lanes`
  double scale = 1.0;
  int threads = 1;
  Ranks ranks;
  std::vector<double> spectrum;  ///< (half_0, half_1, row_stride), scaled by 1 / product of lengths
  mutable AlignedArray<Complex> rows;
  mutable std::vector<Complex> sent, received;                ///< between ranks
  mutable std::vector<AlignedArray<double>> row_buffers;      ///< (thread)
  mutable std::vector<AlignedArray<Complex>> column_buffers;  ///< (thread)
  mutable std::vector<AlignedArray<Complex>> plane_buffers;   ///< (thread), d = 3
  bool line_by_line = false;  ///< d = 2, long columns: each by itself, where `lanes` of them leave the first
                              ///< cache; the spectrum is then (column, half_1)
  Plan row_forward, row_backward;
  std::array<Plan, 2> column_forward, column_backward;

  void transform_kernel(std::span<const double> weights, std::span<const std::size_t> offsets);
  void convolve_columns(std::size_t block, Complex* column, Complex* plane) const;
  void convolve_lines(std::size_t block, Complex* lines) const;
  void exchange_slabs(bool rows_to_columns) const;
  std::size_t line_stride() const { return length[1] + lanes; }  ///< no power of two
};

void EvenConvolution::Implementation::transform_kernel(std::span<const double> weights,
                                                       std::span<const std::size_t> offsets) {
  // One axis after the other: an even real line of `length` values transforms into an even real line.
  std::array<std::size_t, 3> extent{1, 1, 1};
  for (std::size_t a = 0; a < dimension; ++a) extent[3 - dimension + a] = offsets[a];
  std::vector<double> data(weights.begin(), weights.end());
  for (std::size_t axis = 3 - dimension; axis < 3; ++axis) {
    std::array<std::size_t, 3> next_extent = extent;
    next_extent[axis] = half[axis];
    std::vector<double> next(next_extent[0] * next_extent[1] * next_extent[2]);
    std::size_t inner = 1, outer = 1;
    for (std::size_t a = axis + 1; a < 3; ++a) inner *= extent[a];
    for (std::size_t a = 0; a < axis; ++a) outer *= extent[a];
    auto samples = aligned_array<double>(length[axis]);
    auto transform = aligned_array<Complex>(half[axis]);
    Plan plan;
    {
      const std::lock_guard lock(planner());
      plan.reset(fftw_plan_dft_r2c_1d(static_cast<int>(length[axis]), samples.get(), raw(transform.get()),
                                      FFTW_ESTIMATE));
    }
    for (std::size_t o = 0; o < outer; ++o) {
      for (std::size_t i = 0; i < inner; ++i) {
        std::fill_n(samples.get(), length[axis], 0.0);
        for (std::size_t k = 0; k < std::min(extent[axis], half[axis]); ++k) {
          const double weight = data[(o * extent[axis] + k) * inner + i];
          samples[k] = weight;
          if (k > 0) samples[length[axis] - k] = weight;
        }
        fftw_execute(plan.get());
        for (std::size_t k = 0; k < half[axis]; ++k)
          next[(o * half[axis] + k) * inner + i] = transform[k].real();
      }
    }
    data = std::move(next);
    extent = next_extent;
  }
  spectrum.assign(half[0] * half[1] * (line_by_line ? half[2] : row_stride), 0.0);
  for (std::size_t row = 0; row < half[0] * half[1]; ++row) {
    for (std::size_t k = 0; k < half[2]; ++k)
      spectrum[line_by_line ? k * half[1] + row : row * row_stride + k] = scale * data[row * half[2] + k];
  }
}

EvenConvolution::EvenConvolution(std::span<const std::size_t> counts, std::span<const double> weights,
                                 Kind kind, int threads, const Ranks& ranks)
    : implementation_(std::make_unique<Implementation>()) {
  Implementation& self = *implementation_;
  expects(!counts.empty() && counts.size() <= 3, "convolution in one, two or three dimensions");
  self.dimension = counts.size();
  std::vector<std::size_t> offsets;
  std::size_t offset_product = 1;
  for (std::size_t a = 0; a < counts.size(); ++a) {
    const std::size_t axis = 3 - counts.size() + a;
    self.count[axis] = counts[a];
    self.length[axis] = kind == Kind::Circular ? counts[a] : fast_length(2 * counts[a] - 1);
    self.half[axis] = self.length[axis] / 2 + 1;
    self.scale /= static_cast<double>(self.length[axis]);
    offsets.push_back(offset_count(counts[a], kind));
    offset_product *= offsets.back();
  }
  expects(weights.size() == offset_product, "one weight per offset");
  if (counts.size() == 1 && kind == Kind::Linear && LongLine::suits(counts[0])) {
    self.long_line = std::make_unique<LongLine>(
        counts[0], weights, counts[0] >= (std::size_t{1} << 18) ? std::max(1, threads) : 1);
    return;
  }
  self.row_count = self.count[0] * self.count[1];
  if (counts.size() > 1) self.ranks = ranks;
  self.row_stride = (self.half[2] + lanes - 1) / lanes * lanes;
  self.threads = self.row_count * self.count[2] >= (std::size_t{1} << 18) ? std::max(1, threads) : 1;
  self.line_by_line = self.dimension == 2 && self.length[1] >= 256;
  self.transform_kernel(weights, offsets);

  self.rows = aligned_array<Complex>(self.row_count * self.row_stride);
  const bool has_columns = self.dimension >= 2;
  for (int t = 0; t < self.threads; ++t) {
    self.row_buffers.push_back(aligned_array<double>(self.length[2]));
    if (has_columns)
      self.column_buffers.push_back(
          aligned_array<Complex>(self.line_by_line ? (lanes + 1) * self.line_stride()
                                                   : std::max(self.length[0], self.length[1]) * lanes));
    if (self.dimension == 3)
      self.plane_buffers.push_back(aligned_array<Complex>(self.count[0] * self.length[1] * lanes));
  }
  const std::lock_guard lock(planner());
  self.row_forward.reset(fftw_plan_dft_r2c_1d(static_cast<int>(self.length[2]), self.row_buffers[0].get(),
                                              raw(self.rows.get()), FFTW_ESTIMATE));
  self.row_backward.reset(fftw_plan_dft_c2r_1d(static_cast<int>(self.length[2]), raw(self.rows.get()),
                                               self.row_buffers[0].get(), FFTW_ESTIMATE));
  for (std::size_t axis = 3 - self.dimension; axis < 2; ++axis) {
    const int n = static_cast<int>(self.length[axis]);
    fftw_complex* buffer = raw(self.column_buffers[0].get());
    const auto plan = [&](int sign) {
      if (self.line_by_line) {
        fftw_complex* apart = buffer + lanes * self.line_stride();
        return sign == FFTW_FORWARD ? fftw_plan_dft_1d(n, buffer, apart, sign, FFTW_ESTIMATE)
                                    : fftw_plan_dft_1d(n, apart, buffer, sign, FFTW_ESTIMATE);
      }
      return fftw_plan_many_dft(1, &n, lanes, buffer, nullptr, lanes, 1, buffer, nullptr, lanes, 1, sign,
                                FFTW_ESTIMATE);
    };
    self.column_forward[axis].reset(plan(FFTW_FORWARD));
    self.column_backward[axis].reset(plan(FFTW_BACKWARD));
  }
}

EvenConvolution::~EvenConvolution() = default;
EvenConvolution::EvenConvolution(EvenConvolution&&) noexcept = default;
EvenConvolution& EvenConvolution::operator=(EvenConvolution&&) noexcept = default;

std::size_t EvenConvolution::offset_count(std::size_t count, Kind kind) {
  return kind == Kind::Circular ? count / 2 + 1 : count;
}

/// Long columns of a plane, block * lanes .. + lanes - 1: turned into lines and back.
void EvenConvolution::Implementation::convolve_lines(std::size_t block, Complex* lines) const {
  const std::size_t first = block * lanes, stride = line_stride(), n = count[1], size = length[1];
  for (std::size_t i = 0; i < n; ++i) {
    const Complex* row = rows.get() + i * row_stride + first;
    for (std::size_t lane = 0; lane < lanes; ++lane) lines[lane * stride + i] = row[lane];
  }
  Complex* apart = lines + lanes * stride;
  for (std::size_t lane = 0; lane < std::min(lanes, half[2] - first); ++lane) {
    Complex* line = lines + lane * stride;
    std::fill(line + n, line + size, Complex{});
    fftw_execute_dft(column_forward[1].get(), raw(line), raw(apart));
    const double* weight = spectrum.data() + (first + lane) * half[1];
    for (std::size_t k = 0; k < half[1]; ++k) apart[k] *= weight[k];
    for (std::size_t k = half[1]; k < size; ++k) apart[k] *= weight[size - k];
    fftw_execute_dft(column_backward[1].get(), raw(apart), raw(line));
  }
  for (std::size_t i = 0; i < n; ++i) {
    Complex* row = rows.get() + i * row_stride + first;
    for (std::size_t lane = 0; lane < lanes; ++lane) row[lane] = lines[lane * stride + i];
  }
}

/// The axes other than the last, for the columns block * lanes .. + lanes - 1.
void EvenConvolution::Implementation::convolve_columns(std::size_t block, Complex* column,
                                                       Complex* plane) const {
  const std::size_t first = block * lanes;
  const auto multiply = [&](std::size_t axis, std::size_t other) {
    for (std::size_t k = 0; k < length[axis]; ++k) {
      const std::size_t even = std::min(k, length[axis] - k);
      const double* weight =
          spectrum.data() + (axis == 0 ? even * half[1] + other : even) * row_stride + first;
      Complex* value = column + k * lanes;
      for (std::size_t lane = 0; lane < lanes; ++lane) value[lane] *= weight[lane];
    }
  };
  if (dimension == 2) {
    for (std::size_t i = 0; i < count[1]; ++i) {
      std::memcpy(static_cast<void*>(column + i * lanes), rows.get() + i * row_stride + first,
                  lanes * sizeof(Complex));
    }
    std::fill(column + count[1] * lanes, column + length[1] * lanes, Complex{});
    fftw_execute_dft(column_forward[1].get(), raw(column), raw(column));
    multiply(1, 0);
    fftw_execute_dft(column_backward[1].get(), raw(column), raw(column));
    for (std::size_t i = 0; i < count[1]; ++i) {
      std::memcpy(static_cast<void*>(rows.get() + i * row_stride + first), column + i * lanes,
                  lanes * sizeof(Complex));
    }
    return;
  }
  const std::size_t sheet = length[1] * lanes;
  for (std::size_t i = 0; i < count[0]; ++i) {
    Complex* column_of_sheet = plane + i * sheet;
    for (std::size_t j = 0; j < count[1]; ++j) {
      std::memcpy(static_cast<void*>(column_of_sheet + j * lanes),
                  rows.get() + (i * count[1] + j) * row_stride + first, lanes * sizeof(Complex));
    }
    std::fill(column_of_sheet + count[1] * lanes, column_of_sheet + sheet, Complex{});
    fftw_execute_dft(column_forward[1].get(), raw(column_of_sheet), raw(column_of_sheet));
  }
  for (std::size_t k = 0; k < length[1]; ++k) {
    for (std::size_t i = 0; i < count[0]; ++i) {
      std::memcpy(static_cast<void*>(column + i * lanes), plane + i * sheet + k * lanes,
                  lanes * sizeof(Complex));
    }
    std::fill(column + count[0] * lanes, column + length[0] * lanes, Complex{});
    fftw_execute_dft(column_forward[0].get(), raw(column), raw(column));
    multiply(0, std::min(k, length[1] - k));
    fftw_execute_dft(column_backward[0].get(), raw(column), raw(column));
    for (std::size_t i = 0; i < count[0]; ++i) {
      std::memcpy(static_cast<void*>(plane + i * sheet + k * lanes), column + i * lanes,
                  lanes * sizeof(Complex));
    }
  }
  for (std::size_t i = 0; i < count[0]; ++i) {
    Complex* column_of_sheet = plane + i * sheet;
    fftw_execute_dft(column_backward[1].get(), raw(column_of_sheet), raw(column_of_sheet));
    for (std::size_t j = 0; j < count[1]; ++j) {
      std::memcpy(static_cast<void*>(rows.get() + (i * count[1] + j) * row_stride + first),
                  column_of_sheet + j * lanes, lanes * sizeof(Complex));
    }
  }
}

/// `rows`: from each rank having its rows to each having its blocks of columns, or back.
void EvenConvolution::Implementation::exchange_slabs(bool rows_to_columns) const {
  const auto rows_of = [&](std::size_t rank) { return ranks.part(row_count, rank); };
  const auto columns_of = [&](std::size_t rank) {
    const auto [begin, end] = ranks.part(row_stride / lanes, rank);
    return std::pair(begin * lanes, end * lanes);
  };
  // The piece of `rows` that rank `from` has and rank `to` wants.
  const auto for_piece = [&](std::size_t from, std::size_t to, const auto& visit) {
    const auto [first_row, end_row] = rows_of(rows_to_columns ? from : to);
    const auto [first_column, end_column] = columns_of(rows_to_columns ? to : from);
    for (std::size_t row = first_row; row < end_row; ++row)
      visit(rows.get() + row * row_stride + first_column, end_column - first_column);
  };
  std::vector<std::size_t> sent_counts, received_counts;
  sent.clear();
  std::size_t arriving = 0;
  for (std::size_t rank = 0; rank < ranks.count(); ++rank) {
    const std::size_t before = sent.size();
    for_piece(ranks.rank(), rank, [&](const Complex* values, std::size_t size) {
      sent.insert(sent.end(), values, values + size);
    });
    sent_counts.push_back(sent.size() - before);
    const auto [first_row, end_row] = rows_of(rows_to_columns ? rank : ranks.rank());
    const auto [first_column, end_column] = columns_of(rows_to_columns ? ranks.rank() : rank);
    received_counts.push_back((end_row - first_row) * (end_column - first_column));
    arriving += received_counts.back();
  }
  received.resize(arriving);
  ranks.transpose(sent, sent_counts, received, received_counts);
  const Complex* next = received.data();
  for (std::size_t rank = 0; rank < ranks.count(); ++rank) {
    for_piece(rank, ranks.rank(), [&](Complex* values, std::size_t size) {
      std::copy_n(next, size, values);
      next += size;
    });
  }
}

void EvenConvolution::operator()(std::span<const double> in, std::span<double> out) const {
  const Implementation& self = *implementation_;
  if (self.long_line) {
    expects(in.size() == self.count[2] && out.size() == in.size(), "one value per cell");
    (*self.long_line)(in.data(), out.data());
    return;
  }
  const std::size_t n = self.count[2], rows = self.row_count, stride = self.row_stride;
  expects(in.size() == rows * n && out.size() == rows * n, "one value per cell");
  const auto my_rows = self.ranks.part(rows), my_blocks = self.ranks.part(stride / lanes);

#pragma omp parallel num_threads(self.threads) if (self.threads > 1)
  {
    int thread = 0;
#ifdef _OPENMP
    thread = self.threads > 1 ? omp_get_thread_num() : 0;
#endif
    double* buffer = self.row_buffers[thread].get();
    std::fill(buffer + n, buffer + self.length[2], 0.0);
#pragma omp for schedule(static)
    for (std::size_t row = my_rows.first; row < my_rows.second; ++row) {
      std::copy_n(in.data() + row * n, n, buffer);
      fftw_execute_dft_r2c(self.row_forward.get(), buffer, raw(self.rows.get() + row * stride));
    }
    if (self.dimension == 1) {
      Complex* values = self.rows.get();
#pragma omp for schedule(static)
      for (std::size_t k = 0; k < self.half[2]; ++k) values[k] *= self.spectrum[k];
    } else {
      Complex* column = self.column_buffers[thread].get();
      Complex* plane = self.dimension == 3 ? self.plane_buffers[thread].get() : nullptr;
      if (!self.ranks.alone()) {
#pragma omp master
        self.exchange_slabs(true);
#pragma omp barrier
      }
#pragma omp for schedule(static)
      for (std::size_t block = my_blocks.first; block < my_blocks.second; ++block) {
        if (self.line_by_line) {
          self.convolve_lines(block, column);
        } else {
          self.convolve_columns(block, column, plane);
        }
      }
      if (!self.ranks.alone()) {
#pragma omp master
        self.exchange_slabs(false);
#pragma omp barrier
      }
    }
#pragma omp for schedule(static)
    for (std::size_t row = my_rows.first; row < my_rows.second; ++row) {
      fftw_execute_dft_c2r(self.row_backward.get(), raw(self.rows.get() + row * stride), buffer);
      std::copy_n(buffer, n, out.data() + row * n);
    }
  }
  self.ranks.gather(out, n);
}

}  // namespace rieszflow
