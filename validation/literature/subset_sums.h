// SPDX-License-Identifier: Apache-2.0
/// \file Subset sums, from which pruning approximates a weight: strong lottery tickets
/// (arXiv:2511.04217). An entry of a d x d map is a subset sum of m = hidden/d samples, each a
/// uniform on (-1, 1) or a product of two.
#pragma once

namespace headlab {

/// Computes the expected number of subsets of m uniforms within eps of z,
///
///     [|z| <= eps] + sum_k C(m, k) P(|S_k - z| <= eps),  S_k the sum of k
///
/// an upper bound on the probability of a hit: errors fall by a factor 2 per sample at most.
/// \param count m in [0, 30]  \param eps > 0
double expected_subset_hits(int count, double target, double eps);

}  // namespace headlab
