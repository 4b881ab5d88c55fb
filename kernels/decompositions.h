// SPDX-License-Identifier: Apache-2.0
/// \file Eigen's decompositions, compiled once. Other files include <Eigen/Core> only, which is
/// parsed in a tenth of the time.
#pragma once

#include <memory>

#include <Eigen/Core>

namespace headlab {

/// A = L L^T of a symmetric positive definite matrix [n][n]; reads the lower triangle.
class Cholesky {
 public:
  explicit Cholesky(const Eigen::MatrixXd& a);

  bool succeeded() const;          ///< false where A is not positive definite
  Eigen::MatrixXd lower() const;   ///< L [n][n]
  double log_determinant() const;  ///< log det A
  Eigen::VectorXd solve(const Eigen::VectorXd& right) const;  ///< A^-1 b
  Eigen::MatrixXd solve(const Eigen::MatrixXd& right) const;  ///< A^-1 B

 private:
  std::shared_ptr<const Eigen::LLT<Eigen::MatrixXd>> factor_;
};

/// A^-1 b of a symmetric, positive or negative semidefinite matrix [n][n], by A = L D L^T.
Eigen::VectorXd solve_semidefinite(const Eigen::MatrixXd& a, const Eigen::VectorXd& b);

/// log |det A| of a square matrix, by LU with partial pivoting.
double log_abs_determinant(const Eigen::MatrixXd& a);

/// A = Q R of a [d][k] matrix, k <= d, by Householder reflections.
class HouseholderQr {
 public:
  explicit HouseholderQr(const Eigen::MatrixXd& a);

  Eigen::MatrixXd upper() const;                            ///< R [k][k]
  Eigen::MatrixXd thin_q() const;                           ///< Q [d][k]
  Eigen::MatrixXd q_times(const Eigen::MatrixXd& x) const;  ///< Q x for x [d][m], with Q [d][d]

 private:
  std::shared_ptr<const Eigen::HouseholderQR<Eigen::MatrixXd>> factor_;
};

/// A = Q R with orthonormal columns of Q and a diagonal of R that is not negative.
struct SignedQr {
  Eigen::MatrixXd q;  ///< [d][k]
  Eigen::VectorXd r;  ///< [k], diagonal of R
};

/// Householder QR of a [d][k] matrix, k <= d. The signs make Q unique at full rank: an orthonormal
/// A comes back as itself to rounding, and a matrix of independent normals gives Haar measure,
/// which the signs of the bare algorithm would not (Mezzadri, "How to generate random matrices from
/// the classical compact groups", Notices of the AMS, 2007).
SignedQr signed_qr(const Eigen::MatrixXd& a);

/// Eigenvalues in increasing order, and eigenvectors as columns where they were asked for.
struct SymmetricEigen {
  Eigen::VectorXd values;   ///< [n]
  Eigen::MatrixXd vectors;  ///< [n][n]
  bool converged = false;
};

/// Of a symmetric matrix [n][n]; reads the lower triangle.
SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& a);
/// Leaves `vectors` empty.
SymmetricEigen symmetric_eigenvalues(const Eigen::MatrixXd& a);
/// Of a tridiagonal matrix. \param diagonal [n]  \param off_diagonal [n-1]
SymmetricEigen tridiagonal_eigen(const Eigen::VectorXd& diagonal,
                                 const Eigen::VectorXd& off_diagonal);

/// Singular values of a square matrix [n], largest first, by two-sided Jacobi rotations.
Eigen::VectorXd singular_values(const Eigen::MatrixXd& a);

/// The largest singular value of a square matrix.
double spectral_norm(const Eigen::MatrixXd& a);

/// The shortest x of least |A x - b|, A [m][n], by a complete orthogonal decomposition. Pivots
/// below `threshold` times the largest count as 0.
Eigen::VectorXd shortest_solution(const Eigen::MatrixXd& a, const Eigen::VectorXd& b,
                                  double threshold);

/// Largest |lambda| of a square matrix, by the real Schur form.
double spectral_radius(const Eigen::MatrixXd& a);

/// A = U diag(values) V^T of a square matrix, without V.
struct LeftSvd {
  Eigen::MatrixXd u;       ///< [n][n]
  Eigen::VectorXd values;  ///< [n], largest first
};
LeftSvd left_svd(const Eigen::MatrixXd& a);

}  // namespace headlab
