#include "solvers/stationary/linearisation.hpp"

#include <Eigen/Dense>
#include <Eigen/Sparse>
#include <Eigen/SparseCholesky>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "core/expects.hpp"
#include "solvers/pde/apertures.hpp"

namespace rieszflow::stationary {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Action = std::function<VectorXd(const VectorXd&)>;

/// Perturbations in the coordinates y = u sqrt(mass) of the cells that hold mass; y is orthogonal to
/// sqrt(mass).
class Perturbations {
 public:
  Perturbations(const Landscape& landscape, const Density& state) : landscape_(landscape), state_(state) {
    expects(state.averages.size() == landscape.size(), "the state lives on the grid of the landscape");
    const std::vector<double>& volumes = landscape.volumes();
    for (std::size_t i = 0; i < volumes.size(); ++i) {
      const double mass = state.averages[i] * volumes[i];
      if (mass > std::numeric_limits<double>::min()) cells_.push_back(i);
    }
    root_.resize(static_cast<Index>(cells_.size()));
    for (Index k = 0; k < root_.size(); ++k) {
      const std::size_t i = cells_[static_cast<std::size_t>(k)];
      root_(k) = std::sqrt(state.averages[i] * volumes[i]);
    }
    root_.normalize();
    direction_.assign(volumes.size(), 0.0);
    potential_.resize(volumes.size());
  }

  const std::vector<std::size_t>& cells() const { return cells_; }
  Index size() const { return root_.size(); }
  const VectorXd& root() const { return root_; }
  VectorXd projected(const VectorXd& y) const { return y - root_.dot(y) * root_; }

  std::vector<double> change(const VectorXd& y) const {
    std::vector<double> result(direction_.size(), 0.0);
    for (Index k = 0; k < y.size(); ++k) {
      const std::size_t i = cells_[static_cast<std::size_t>(k)];
      result[i] = root_(k) * y(k) / landscape_.volumes()[i];
    }
    return result;
  }

  /// (1/beta) y + P s W s P y.
  VectorXd second_variation(const VectorXd& y) const {
    direction_ = change(y);
    landscape_.potential_change(state_.averages, direction_, potential_);
    VectorXd result(y.size());
    for (Index k = 0; k < y.size(); ++k)
      result(k) = root_(k) * potential_[cells_[static_cast<std::size_t>(k)]];
    return projected(result) + y / landscape_.inverse_temperature();
  }

 private:
  const Landscape& landscape_;
  const Density& state_;
  std::vector<std::size_t> cells_;
  VectorXd root_;
  mutable std::vector<double> direction_, potential_;
};

/// K in these coordinates, without 1/beta: with z = log(rho_i / rho_j) the diagonal is the rate of leaving a
/// cell, B(z) aperture / (h^2 fraction), the rest -(z/2)/sinh(z/2) aperture / (h^2 sqrt(fractions)): nothing
/// of it is as small as rho. K y = b with y, b orthogonal to sqrt(mass), the kernel, by fixing y in the
/// fullest cell.
class Mobility {
 public:
  Mobility(const Landscape& landscape, const Density& state, const Perturbations& space) : space_(space) {
    const Grid& grid = landscape.grid();
    std::vector<Index> place(grid.cell_count(), -1);
    for (Index k = 0; k < space.size(); ++k) place[space.cells()[static_cast<std::size_t>(k)]] = k;
    space.root().maxCoeff(&fixed_);
    std::vector<Eigen::Triplet<double>> entries;
    VectorXd diagonal = VectorXd::Zero(space.size());
    const auto fraction = [&](std::size_t cell) {
      return grid.volume_fractions.empty() ? 1.0 : grid.volume_fractions[cell];
    };
    std::size_t stride = grid.cell_count();
    for (std::size_t axis = 0; axis < grid.dimension(); ++axis) {
      const std::size_t count = grid.cells[axis];
      stride /= count;
      const double h = grid.spacing(axis);
      const std::vector<double> apertures =
          grid.volume_fractions.empty() ? std::vector<double>{} : pde::face_apertures(grid, axis);
      for (std::size_t cell = 0; cell < grid.cell_count(); ++cell) {
        const bool last = cell / stride % count == count - 1;
        if (last && (!grid.periodic || count == 1)) continue;
        const std::size_t above = last ? cell - (count - 1) * stride : cell + stride;
        const double aperture = apertures.empty() ? 1.0 : apertures[cell];
        if (place[cell] < 0 || place[above] < 0 || aperture == 0.0) continue;
        const double z = std::log(state.averages[cell] / state.averages[above]);
        const double half = 0.5 * std::abs(z);
        const double middle =
            (half < 1e-4 ? 1.0 - half * half / 6.0 : half / std::sinh(half)) * aperture / (h * h);
        diagonal(place[cell]) += middle * std::exp(-0.5 * z) / fraction(cell);
        diagonal(place[above]) += middle * std::exp(0.5 * z) / fraction(above);
        const double off = -middle / std::sqrt(fraction(cell) * fraction(above));
        entries.emplace_back(place[cell], place[above], off);
        entries.emplace_back(place[above], place[cell], off);
      }
    }
    for (Index k = 0; k < space.size(); ++k) entries.emplace_back(k, k, diagonal(k));
    std::vector<Eigen::Triplet<double>> kept;
    for (const auto& entry : entries) {
      if (entry.row() == fixed_ || entry.col() == fixed_) continue;
      kept.emplace_back(reduced(entry.row()), reduced(entry.col()), entry.value());
    }
    const Index rest = std::max<Index>(space.size() - 1, 0);
    Eigen::SparseMatrix<double> matrix(rest, rest);
    matrix.setFromTriplets(kept.begin(), kept.end());
    if (rest > 0) factor_.compute(matrix);
    good_ = rest > 0 && factor_.info() == Eigen::Success && factor_.vectorD().minCoeff() > 0.0;
  }

  /// False where the mass sits in cells that do not touch.
  bool good() const { return good_; }

  VectorXd inverse(const VectorXd& b) const {
    const VectorXd right = space_.projected(b);
    VectorXd short_right(right.size() - 1);
    for (Index k = 0; k < right.size(); ++k) {
      if (k != fixed_) short_right(reduced(k)) = right(k);
    }
    const VectorXd solution = factor_.solve(short_right);
    VectorXd y = VectorXd::Zero(right.size());
    for (Index k = 0; k < right.size(); ++k) {
      if (k != fixed_) y(k) = solution(reduced(k));
    }
    return space_.projected(y);
  }

 private:
  Index reduced(Index k) const { return k < fixed_ ? k : k - 1; }

  const Perturbations& space_;
  Index fixed_ = 0;
  Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> factor_;
  bool good_ = false;
};

MatrixXd images(const Action& action, const MatrixXd& vectors) {
  MatrixXd result(vectors.rows(), vectors.cols());
  for (Index k = 0; k < vectors.cols(); ++k) result.col(k) = action(vectors.col(k));
  return result;
}

MatrixXd beside(const MatrixXd& x, const MatrixXd& w, const MatrixXd& p) {
  MatrixXd result(x.rows(), x.cols() + w.cols() + p.cols());
  result.leftCols(x.cols()) = x;
  result.middleCols(x.cols(), w.cols()) = w;
  result.rightCols(p.cols()) = p;
  return result;
}

/// The lowest eigenvalues of A y = lambda B y with B positive, orthogonal to the state's own direction, by
/// the locally optimal block method (A. Knyazev, SIAM J. Sci. Comput. 23 (2001) 517-541): Rayleigh-Ritz on
/// the block, its residuals and its last move. A is a multiple of the identity plus a compact part, so
/// residuals need no preconditioner, whatever the grid.
Spectrum lowest(const Perturbations& space, const Action& a, const Action& b,
                const SpectrumOptions& options) {
  const Index size = space.size();
  const Index wanted = std::min<Index>(options.count, size - 1);
  Spectrum result;
  if (wanted <= 0) return result;
  const Index block = std::min<Index>(wanted + 2, size - 1);  // the last ones converge slowly
  std::mt19937_64 engine(20240229);
  std::normal_distribution<double> normal;
  MatrixXd x(size, block);
  for (Index k = 0; k < block; ++k) {
    VectorXd start(size);
    for (double& value : start) value = normal(engine);
    x.col(k) = b(space.projected(start));  // B smooths
  }
  x = (Eigen::HouseholderQR<MatrixXd>(x).householderQ() * MatrixXd::Identity(size, block)).eval();
  for (Index k = 0; k < block; ++k) x.col(k) = space.projected(x.col(k));
  MatrixXd ax = images(a, x), bx = images(b, x), p(size, 0), ap(size, 0), bp(size, 0);
  VectorXd values;
  double size_of_a = 0.0;  // largest |A x| / |x| seen
  result.status = RunStatus::NotConverged;
  for (result.iterations = 0;; ++result.iterations) {
    MatrixXd w(size, 0), aw(size, 0), bw(size, 0);
    if (result.iterations > 0) {
      const MatrixXd residuals = ax - bx * values.asDiagonal();
      for (Index k = 0; k < x.cols(); ++k)
        size_of_a = std::max(size_of_a, ax.col(k).norm() / x.col(k).norm());
      result.residual = 0.0;
      std::vector<Index> active;  // a residual that is round-off would only bring noise into the basis
      for (Index k = 0; k < x.cols(); ++k) {
        // A zero mode has a residual of round-off over itself: it is measured against the size of A.
        const double scale =
            ax.col(k).norm() + std::abs(values(k)) * bx.col(k).norm() + 1e-4 * size_of_a * x.col(k).norm();
        const double relative = residuals.col(k).norm() / scale;
        if (k < wanted) result.residual = std::max(result.residual, relative);
        if (relative > 0.1 * options.tolerance) active.push_back(k);
      }
      if (!std::isfinite(result.residual)) break;
      if (result.residual <= options.tolerance) {
        result.status = RunStatus::Completed;
        break;
      }
      if (result.iterations > options.iterations) break;
      w = residuals(Eigen::all, active);
      if (p.cols() > 0) {
        p = p(Eigen::all, active).eval();
        ap = ap(Eigen::all, active).eval();
        bp = bp(Eigen::all, active).eval();
      }
      for (int repeat = 0; repeat < 2; ++repeat) {  // once leaves round-off that the small problem magnifies
        for (Index k = 0; k < w.cols(); ++k) w.col(k) = space.projected(w.col(k));
        w.colwise().normalize();
        w -= x * (bx.transpose() * w);
      }
      w.colwise().normalize();
      aw = images(a, w);
      bw = images(b, w);
      if (p.cols() > 0) {
        const MatrixXd along = bx.transpose() * p;
        const VectorXd before = p.colwise().norm();
        p -= x * along;
        ap -= ax * along;
        bp -= bx * along;
        std::vector<Index> independent;  // what is left of the others is round-off
        for (Index k = 0; k < p.cols(); ++k) {
          if (p.col(k).norm() > 1e-6 * before(k)) independent.push_back(k);
        }
        p = p(Eigen::all, independent).eval();
        ap = ap(Eigen::all, independent).eval();
        bp = bp(Eigen::all, independent).eval();
      }
    }
    const MatrixXd s = beside(x, w, p), as = beside(ax, aw, ap), bs = beside(bx, bw, bp);
    MatrixXd gram_b = s.transpose() * bs, gram_a = s.transpose() * as;
    gram_b = 0.5 * (gram_b + gram_b.transpose()).eval();
    gram_a = 0.5 * (gram_a + gram_a.transpose()).eval();
    const VectorXd scale = gram_b.diagonal().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
    gram_b = scale.asDiagonal() * gram_b * scale.asDiagonal();
    gram_a = scale.asDiagonal() * gram_a * scale.asDiagonal();
    const Eigen::SelfAdjointEigenSolver<MatrixXd> metric(gram_b);
    // Directions that the basis holds only to round-off are left out.
    Index first = 0;
    while (first < gram_b.cols() - 1 && metric.eigenvalues()(first) < 1e-10 * metric.eigenvalues().tail(1)(0))
      ++first;
    const MatrixXd white =
        metric.eigenvectors().rightCols(gram_b.cols() - first) *
        metric.eigenvalues().tail(gram_b.cols() - first).cwiseSqrt().cwiseInverse().asDiagonal();
    const Eigen::SelfAdjointEigenSolver<MatrixXd> small(white.transpose() * gram_a * white);
    const Index kept = std::min<Index>(block, white.cols());
    values = small.eigenvalues().head(kept);
    const MatrixXd coefficients = scale.asDiagonal() * white * small.eigenvectors().leftCols(kept);
    MatrixXd move = coefficients;
    move.topRows(x.cols()).setZero();
    if (result.iterations > 0) {
      p = s * move;
      ap = as * move;
      bp = bs * move;
    }
    x = s * coefficients;
    ax = as * coefficients;
    bx = bs * coefficients;
  }
  for (Index k = 0; k < std::min(wanted, x.cols()); ++k) {
    result.values.push_back(values(k));
    result.modes.push_back(space.change(x.col(k).normalized()));
  }
  return result;
}

}  // namespace

Spectrum second_variation(const Landscape& landscape, const Density& state, const SpectrumOptions& options) {
  const Perturbations space(landscape, state);
  return lowest(
      space, [&](const VectorXd& y) { return space.second_variation(y); },
      [](const VectorXd& y) { return y; }, options);
}

Spectrum relaxation_rates(const Landscape& landscape, const Density& state, const SpectrumOptions& options) {
  expects(std::isfinite(landscape.inverse_temperature()), "a finite inverse temperature");
  const Perturbations space(landscape, state);
  const Mobility mobility(landscape, state, space);
  if (space.size() > 1 && !mobility.good())
    return {.status = RunStatus::NotConverged, .values = {}, .modes = {}};
  return lowest(
      space, [&](const VectorXd& y) { return space.second_variation(y); },
      [&](const VectorXd& y) { return mobility.inverse(y); }, options);
}

}  // namespace rieszflow::stationary
