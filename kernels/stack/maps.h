// SPDX-License-Identifier: Apache-2.0
/// \file Draws of a stack: a draw is a function of (seed, purpose, replicate,
/// place), the place of an entry being point `layer H + head` and coordinate
/// `row columns + column`, layers from 0.
#pragma once

#include <cstdint>

#include <Eigen/Core>

#include "kernels/philox.h"
#include "kernels/stack/stack.h"

namespace headlab {

/// Normal entries [rows][columns] of a point, as every backend draws them
/// (float32), times sd.
Eigen::MatrixXd normal_matrix(const StackDraws& draws, Purpose purpose, std::uint64_t point,
                              Eigen::Index rows, Eigen::Index columns, double sd);

/// M_h [d][d] of a layer, from 0; 0 for layers with shared weights.
Eigen::MatrixXd query_key_map(const Stack& stack, const StackDraws& draws, int layer, int head,
                              Eigen::Index d);
/// V_h [d][d] of a layer; of head 0 with averaged values.
Eigen::MatrixXd value_map(const Stack& stack, const StackDraws& draws, int layer, int head,
                          Eigen::Index d);
/// The MLP of a layer, which the stack must have.
Mlp layer_mlp(const Stack& stack, const StackDraws& draws, int layer, Eigen::Index d);
/// Independent logits [n][n] of a layer. What correlated heads share are the
/// logits of head 0 in layer 4096 + layer, past the last one.
Eigen::MatrixXd independent_logits(const Stack& stack, const StackDraws& draws, int layer, int head,
                                   Eigen::Index n);

}  // namespace headlab
