// SPDX-License-Identifier: Apache-2.0
/// \file The energy that one layer leaves of small residuals, at Gaussian weights.
#pragma once

#include <Eigen/Core>

namespace headlab {

/// Computes the leading order of E|R'|_F^2/n after one layer of pure attention, tr S tr S^2/d^2
/// with S = R^T R/n: the residual R' = sum_h R M_h S V_h/t is cubic in R. Maps gaussian with
/// query_key = value = 1 and t = sqrt(d_k); any number of heads. \param tokens [n][d], n >= 1
inline double cubic_residual_energy(const Eigen::MatrixXd& tokens) {
  const Eigen::MatrixXd residual = tokens.rowwise() - tokens.colwise().mean();
  const Eigen::MatrixXd spread =
      residual.transpose() * residual / static_cast<double>(tokens.rows());
  const auto d = static_cast<double>(tokens.cols());
  return spread.trace() * spread.squaredNorm() / (d * d);
}

}  // namespace headlab
