// SPDX-License-Identifier: Apache-2.0
/// \file The little linear algebra that laws need to prepare their tables.
#pragma once

#include <string>
#include <vector>

namespace headlab {

using Rows = std::vector<std::vector<double>>;

/// Lower Cholesky factor of a symmetric positive definite matrix [d][d].
Rows cholesky(const Rows& matrix);

/// [d][d] with elements phi^|i-j|.
Rows ar1_covariance(int d, double phi);

/// Throws ParameterError(key, ...) unless `matrix` is d x d, symmetric to 1e-12 relative to its
/// largest element, and positive definite.
void require_covariance(const std::string& key, const Rows& matrix, int d);

}  // namespace headlab
