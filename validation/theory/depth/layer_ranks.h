// SPDX-License-Identifier: Apache-2.0
/// \file Ranks of tokens after a layer, and dimensions of what its weights leave undetermined, as
/// integers: true for almost all weights. Norm none or RMS, no MLP.
#pragma once

namespace headlab {

/// Sizes of a layer, all >= 1.
struct LayerSizes {
  int n = 1;          ///< tokens
  int d = 1;          ///< features
  int heads = 1;      ///< H; 1 where heads are averaged or alternate
  int dim = 1;        ///< d_k
  int value_dim = 1;  ///< d_v
};

/// Computes the rank after one layer of tokens of rank r, min(n, d, [s != 0] r + min(H r, H d_v)):
/// a bound for all weights, attained by almost all where A_h and V_h are drawn independently.
/// \param rank r in [0, min(n, d)]
/// Functions of this file throw InvalidInput where a number is out of its range.
int rank_after_layer(const LayerSizes& sizes, int rank, bool has_skip);

/// Computes the nullity of (Z_1..Z_H) -> sum_h Z_h W_O^h for generic W_O, n (H d_v - min(H d_v,
/// d)).
int generic_projection_nullity(const LayerSizes& sizes);

/// Computes it where all blocks W_O^h share one row space of dimension d_v, or where a
/// d_v-dimensional read-out of the sum is known: n (H-1) d_v.
int shared_projection_nullity(const LayerSizes& sizes);

/// Computes the dimension of the weights' gauge group, for generic weights and tokens and locally:
/// W_Q, W_K to W_Q G, W_K G^-T and W_V, W_O to W_V F, F^-1 W_O, H (d_k^2 + d_v^2). Under pre layer
/// norm 1_d is invisible to W_Q, W_K and W_V: H (2 d_k + d_v) more. Needs d_k, d_v <= d.
int gauge_dimension(const LayerSizes& sizes, bool pre_layer_norm);

}  // namespace headlab
