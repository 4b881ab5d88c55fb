// SPDX-License-Identifier: Apache-2.0
/// \file Self-attention: the query is one of the keys.
///
/// The training set holds the query's own point X_0 = x, of kernel value 1, and n - 1 others. Noise
/// alone (m = 0, constant s2), X ~ N(0, I), Gaussian kernel. With phi(s) = E exp(-s K):
///
///     omega = E w_0         = int e^-s phi^(n-1) ds
///     E w_0^2               = int s e^-s phi^(n-1) ds
///     E w_i^2               = int s e^-s E[K^2 e^(-sK)] phi^(n-2) ds,  i = 1..n-1
///
/// Retrieval by one step of a modern Hopfield network, x' = sum_i w_i x_i, w = softmax(beta x_i.x)
/// (arXiv:2008.02217), is the same with the kernel exp(beta x_i.x).
#pragma once

#include <cstdint>

namespace headlab {

/// One head at a fixed query.
struct SelfAttentionHead {
  double self_weight = 0;          ///< omega in [1/n, 1]: what the query's own key gets, on average
  double variance_share = 0;       ///< Var f_h / s2 = E w_0^2 + (n-1) E w_i^2
  double normalisation_error = 0;  ///< E sum_i w_i - 1, which is 0
};

/// Computes omega and the variance of one head.
/// \param n points, the query's own among them, >= 1
/// \param k per-head dimension, >= 1
/// \param distance |W^T x| >= 0
/// \param bandwidth b > 0
/// Throws InvalidInput where weights do not sum to one within 1e-7.
SelfAttentionHead self_attention_head(std::uint64_t n, int k, double distance, double bandwidth);

/// Computes the weight of the pattern that is the query among `patterns` >= 1 of N(0, I), where the
/// query has squared length q >= 0:
///
///     E w_0 = int e^-u phi(u)^(n-1) du,  phi(u) = E exp(-u e^(beta sqrt(q) g - beta q))
///
/// with g ~ N(0, 1); the dimension enters through q alone. Throws as self_attention_head.
SelfAttentionHead retrieval_head(std::uint64_t patterns, double beta, double query_squared);

/// Computes Cov(f_h, f_l) / s2 of heads on orthogonal subspaces, whose projected keys are
/// independent:
///
///     omega_h omega_l + (1 - omega_h)(1 - omega_l)/(n - 1)
///
/// As omega tends to 1 it tends to 1: no diversity decorrelates heads that see only their own key.
double self_attention_covariance(std::uint64_t n, double self_weight_h, double self_weight_l);

}  // namespace headlab
