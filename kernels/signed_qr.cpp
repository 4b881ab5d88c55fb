// SPDX-License-Identifier: Apache-2.0
#include "kernels/signed_qr.h"

#include <Eigen/QR>

namespace headlab {

SignedQr signed_qr(const Eigen::MatrixXd& a) {
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
