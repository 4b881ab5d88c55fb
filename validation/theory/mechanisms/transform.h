// SPDX-License-Identifier: Apache-2.0
/// \file Projections whose columns are not orthonormal, as a transformation leaves them.
#pragma once

#include <Eigen/Core>

namespace headlab {

/// A matrix with W W^T as given, and so the same Gaussian kernel, whose columns are orthogonal and
/// longest first: a c times orthogonal transformation gives columns of length c, one of rank r
/// gives r columns (one of zeros at rank 0). Orthonormal columns come back as they are.
/// \param w [d][k]
Eigen::MatrixXd orthogonal_columns(const Eigen::MatrixXd& w);

/// Computes the cosine of the principal angle of every pair of `heads` orthogonal heads of one
/// dimension after W_h -> W_h + mix sum of the others,
/// (2 mix + (H-2) mix^2)/(1 + (H-1) mix^2).
double mixed_cosine(int heads, double mix);

}  // namespace headlab
