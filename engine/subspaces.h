// SPDX-License-Identifier: Apache-2.0
/// \file The heads' subspaces as matrices, for what is computed from them besides a run.
#pragma once

#include <vector>

#include <Eigen/Core>

#include "engine/law/subspaces/head_frames.h"
#include "engine/scenario.h"

namespace headlab {

/// W_h, h = 1..H: d x k.
std::vector<Eigen::MatrixXd> to_matrices(const HeadFrames& frames);

/// W_h, h = 1..H, of a scenario: d x k with orthonormal columns.
std::vector<Eigen::MatrixXd> make_subspaces(const Scenario& scenario);

}  // namespace headlab
