// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Dense>

namespace headlab {

/// A = Q R with orthonormal columns of Q and a diagonal of R that is not negative.
struct SignedQr {
  Eigen::MatrixXd q;  ///< [d][k]
  Eigen::VectorXd r;  ///< [k], diagonal of R
};

/// Householder QR of a [d][k] matrix, k <= d. The signs make Q unique at full rank: an orthonormal
/// A comes back as itself to rounding, and a matrix of independent normals gives Haar measure,
/// which the signs of the bare algorithm would not (Mezzadri, "How to generate random matrices from
/// the classical compact groups", Notices of the AMS, 2007).
inline SignedQr signed_qr(const Eigen::MatrixXd& a) {
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(a);
  SignedQr out{.q = qr.householderQ() * Eigen::MatrixXd::Identity(a.rows(), a.cols()),
               .r = qr.matrixQR().diagonal().head(a.cols())};
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    if (out.r(j) < 0) {
      out.q.col(j) *= -1;
      out.r(j) *= -1;
    }
  }
  return out;
}

}  // namespace headlab
