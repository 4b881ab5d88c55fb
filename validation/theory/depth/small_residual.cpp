// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/small_residual.h"

namespace headlab {

double cubic_residual_energy(const Eigen::MatrixXd& tokens) {
  const Eigen::MatrixXd residual = tokens.rowwise() - tokens.colwise().mean();
  const Eigen::MatrixXd spread =
      residual.transpose() * residual / static_cast<double>(tokens.rows());
  const auto d = static_cast<double>(tokens.cols());
  return spread.trace() * spread.squaredNorm() / (d * d);
}

}  // namespace headlab
