// SPDX-License-Identifier: Apache-2.0
/// \file What every closed form says of the heads at one query.
#pragma once

#include <Eigen/Core>

namespace headlab {

/// Biases and covariances of the heads over training sets at one query, each with how far it may
/// be off: `remainder` is a size in the units of the figure, NaN where nothing is known of it.
struct HeadTheory {
  Eigen::VectorXd bias;                  ///< [H], E f_h - m(x)
  Eigen::VectorXd bias_remainder;        ///< [H]
  Eigen::MatrixXd covariance;            ///< [H][H], Cov(f_h, f_l)
  Eigen::MatrixXd covariance_remainder;  ///< [H][H]
};

}  // namespace headlab
