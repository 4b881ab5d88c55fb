// SPDX-License-Identifier: Apache-2.0
/// \file Retrieval by one step of a modern Hopfield network, x' = sum_i w_i x_i, w = softmax(beta
/// x_i.x): a row of attention with V = I. arXiv:2008.02217 has the network; the form at finite N is
/// the self-weight of exact/self_attention.h with the kernel exp(beta x_i.x).
#pragma once

namespace headlab {

/// A figure of retrieval from quadrature.
struct Retrieval {
  double self_weight = 0;          ///< E w_1, in [0, 1]
  double normalisation_error = 0;  ///< E sum_i w_i - 1, which is 0
};

/// Computes E w_1 of N patterns N(0, I_d) at the query x = x_1 of squared length q,
///
///     E w_1 = int e^-u phi(u)^(N-1) du,  phi(u) = E exp(-u e^(beta sqrt(q) g - beta q))
///
/// with g ~ N(0, 1); d enters through q alone.
/// \param patterns N >= 1  \param beta >= 0  \param query_squared q >= 0
/// Throws InvalidInput where a number is out of its range, and where weights do not sum to one
/// within 1e-7.
Retrieval retrieval_self_weight(int patterns, double beta, double query_squared);

}  // namespace headlab
