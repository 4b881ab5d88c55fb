// SPDX-License-Identifier: Apache-2.0
/// \file The heads' subspaces as matrices, for what is computed from them besides a run.
#pragma once

#include <vector>

#include <Eigen/Core>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "engine/scenario/preparation.h"

namespace headlab {

struct Condition;

/// W_h as they project the keys, [H] of d x k.
std::vector<Eigen::MatrixXd> to_projections(const Subspaces& subspaces);

/// Orthonormal bases of the column spaces of W_h, h = 1..H: d x k, or fewer columns where the rank
/// of W_h is below k.
std::vector<Eigen::MatrixXd> to_matrices(const Subspaces& subspaces);

/// The same of the heads of a scenario.
std::vector<Eigen::MatrixXd> subspace_bases(const Condition& condition,
                                            const Preparation& found = {});

/// What projects the queries, [H] of d x k; none where W_h does.
std::vector<Eigen::MatrixXd> to_query_matrices(const Subspaces& subspaces);

}  // namespace headlab
