// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <Eigen/Core>

namespace headlab {

/// One matrix per head, [H] of d x k.
using Matrices = std::vector<Eigen::MatrixXd>;

}  // namespace headlab
