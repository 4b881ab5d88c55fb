// SPDX-License-Identifier: Apache-2.0
#include "kernels/decompositions.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>

#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Solver = Eigen::SelfAdjointEigenSolver<MatrixXd>;
// Nothing precedes the rotations of a square matrix. BDCSVD would be faster from n = 16 on, and
// takes 40 s to compile.
using Svd = Eigen::JacobiSVD<MatrixXd, Eigen::NoQRPreconditioner>;

/// Returns compute(), which takes about `operations` times the cube of the matrix's size. What may
/// take long is done by a thread of its own, which a stop leaves behind: Eigen cannot be
/// interrupted.
template <class Compute>
auto unless_stopped(double operations, const MatrixXd& a, Compute compute) {
  constexpr double long_work = 3e8;
  const auto rows = static_cast<double>(a.rows()), columns = static_cast<double>(a.cols());
  if (operations * rows * columns * std::min(rows, columns) < long_work || !stop_of_scope()) {
    return compute(a);
  }
  std::packaged_task<decltype(compute(a))()> task([compute, copy = a] { return compute(copy); });
  auto result = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error&) {
    return compute(a);  // there is no thread
  }
  do {
    stop_point();
  } while (result.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready);
  return result.get();
}

SymmetricEigen eigenvalues_of(const Solver& solver) {
  return {.values = solver.eigenvalues(), .converged = solver.info() == Eigen::Success};
}

SymmetricEigen eigen_of(const Solver& solver) {
  SymmetricEigen eigen = eigenvalues_of(solver);
  eigen.vectors = solver.eigenvectors();
  return eigen;
}

}  // namespace

Cholesky::Cholesky(const MatrixXd& a)
    : factor_(unless_stopped(
          1. / 3, a, [](const MatrixXd& m) { return std::make_shared<Eigen::LLT<MatrixXd>>(m); })) {
}

bool Cholesky::succeeded() const {
  return factor_->info() == Eigen::Success;
}

MatrixXd Cholesky::lower() const {
  return factor_->matrixL();
}

double Cholesky::log_determinant() const {
  return 2 * factor_->matrixLLT().diagonal().array().log().sum();
}

VectorXd Cholesky::solve(const VectorXd& right) const {
  return factor_->solve(right);
}

MatrixXd Cholesky::solve(const MatrixXd& right) const {
  return factor_->solve(right);
}

VectorXd solve_semidefinite(const MatrixXd& a, const VectorXd& b) {
  return a.ldlt().solve(b);
}

double log_abs_determinant(const MatrixXd& a) {
  return Eigen::PartialPivLU<MatrixXd>(a).matrixLU().diagonal().array().abs().log().sum();
}

HouseholderQr::HouseholderQr(const MatrixXd& a)
    : factor_(unless_stopped(2, a, [](const MatrixXd& m) {
        return std::make_shared<Eigen::HouseholderQR<MatrixXd>>(m);
      })) {}

MatrixXd HouseholderQr::upper() const {
  const MatrixXd& packed = factor_->matrixQR();
  return packed.topRows(packed.cols()).triangularView<Eigen::Upper>();
}

MatrixXd HouseholderQr::thin_q() const {
  return unless_stopped(2, factor_->matrixQR(), [factor = factor_](const MatrixXd& m) {
    return MatrixXd(factor->householderQ() * MatrixXd::Identity(m.rows(), m.cols()));
  });
}

MatrixXd HouseholderQr::q_times(const MatrixXd& x) const {
  return factor_->householderQ() * x;
}

SignedQr signed_qr(const MatrixXd& a) {
  const HouseholderQr qr(a);
  SignedQr out{.q = qr.thin_q(), .r = qr.upper().diagonal()};
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    if (out.r(j) < 0) {
      out.q.col(j) *= -1;
      out.r(j) *= -1;
    }
  }
  return out;
}

SymmetricEigen symmetric_eigen(const MatrixXd& a) {
  return unless_stopped(25, a, [](const MatrixXd& m) { return eigen_of(Solver(m)); });
}

SymmetricEigen symmetric_eigenvalues(const MatrixXd& a) {
  return unless_stopped(
      9, a, [](const MatrixXd& m) { return eigenvalues_of(Solver(m, Eigen::EigenvaluesOnly)); });
}

SymmetricEigen tridiagonal_eigen(const VectorXd& diagonal, const VectorXd& off_diagonal) {
  Solver solver;
  solver.computeFromTridiagonal(diagonal, off_diagonal);
  return eigen_of(solver);
}

VectorXd singular_values(const MatrixXd& a) {
  return unless_stopped(100, a,
                        [](const MatrixXd& m) { return VectorXd(Svd(m).singularValues()); });
}

double spectral_norm(const MatrixXd& a) {
  return singular_values(a)(0);
}

VectorXd shortest_solution(const MatrixXd& a, const VectorXd& b, double threshold) {
  Eigen::CompleteOrthogonalDecomposition<MatrixXd> decomposition;
  decomposition.setThreshold(threshold);
  decomposition.compute(a);
  return decomposition.solve(b);
}

double spectral_radius(const MatrixXd& a) {
  return unless_stopped(25, a,
                        [](const MatrixXd& m) { return m.eigenvalues().cwiseAbs().maxCoeff(); });
}

LeftSvd left_svd(const MatrixXd& a) {
  return unless_stopped(200, a, [](const MatrixXd& m) {
    const Svd svd(m, Eigen::ComputeFullU);
    return LeftSvd{.u = svd.matrixU(), .values = svd.singularValues()};
  });
}

}  // namespace headlab
