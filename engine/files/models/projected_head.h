// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include "engine/files/models/head_file.h"

namespace headlab {

/// Appends a head to a layer: its projections and what follows from them, the singular values of
/// W_Q W_K^T unless positions are rotary. Returns the rank of the keys; below k the layer stays as
/// it is.
/// \param w_q,w_k [d][k]
int add_projected_head(HeadLayer& layer, const Eigen::MatrixXd& w_q, const Eigen::MatrixXd& w_k,
                       bool rotary);

/// Moves the matrices of `more` behind those of `layer`.
void append_heads(HeadLayer& layer, HeadLayer&& more);

}  // namespace headlab
