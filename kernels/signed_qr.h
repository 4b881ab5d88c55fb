// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

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
SignedQr signed_qr(const Eigen::MatrixXd& a);

}  // namespace headlab
