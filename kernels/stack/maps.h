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
RowMatrix normal_matrix(const StackDraws& draws, Purpose purpose, std::uint64_t point,
                        Eigen::Index rows, Eigen::Index columns, double sd);

/// Heads first .. first + count - 1.
struct HeadRange {
  int first = 0;
  int count = 1;
};

/// Maps of some heads of a layer one below the other: of head h M_h / t = query_h key_h^T and V_h =
/// value_h output_h. Factors have d_k and d_v columns, or d where a map is given or pruned: key and
/// value are then the identity, and empty.
struct LayerMaps {
  RowMatrix query;   ///< [heads d][d_k]
  RowMatrix key;     ///< [heads d][d_k], or empty
  RowMatrix value;   ///< [heads d][d_v], or empty
  RowMatrix output;  ///< [heads d_v][d]
};

/// Standard deviations of the entries of drawn maps, and of a drawn MLP, at dimension d.
struct MapScales {
  double query_key, value, output;
};
MapScales map_scales(const Stack& stack, Eigen::Index d);
struct MlpScales {
  double input, bias, output;
};
MlpScales mlp_scales(const GaussianMlp& mlp, Eigen::Index d);

/// Query and key of `scored`, value and output of `used`; of one value map with averaged values.
/// \param scored none: no query and key
void draw_maps(const Stack& stack, const StackDraws& draws, int layer, HeadRange scored,
               HeadRange used, Eigen::Index d, LayerMaps& out);

/// The MLP of a layer, which the stack must have.
Mlp layer_mlp(const Stack& stack, const StackDraws& draws, int layer, Eigen::Index d);
/// Independent logits [n][n] of a layer. What correlated heads share are the
/// logits of head 0 in layer 4096 + layer, past the last one.
RowMatrix independent_logits(const Stack& stack, const StackDraws& draws, int layer, int head,
                             Eigen::Index n);

}  // namespace headlab
