// SPDX-License-Identifier: Apache-2.0
/// \file Closed forms quick enough to compare many thousands of head sets: the variance that noise
/// alone leaves in the mean of H heads, by their principal angles; with a signal, the first order.
///
/// Assumptions of the former: X ~ N(0, I), noise of constant variance s^2 independent of X, one
/// kernel and one bandwidth or temperature for all heads, uniform head weights, m = 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/moments/error_terms.h"
#include "engine/scenario/scenario.h"
#include "kernels/laws.h"
#include "validation/search/search.h"

namespace headlab {

/// Computes n C_hl / s^2 of two heads at the query x = 0, Gaussian kernel, to leading order
///
///     mu_11,  mu_ab = prod_j sqrt((1 + t)^(a+b) / ((1 + a t)(1 + b t) - a b t^2 cos^2 t_j)),
///     t = 1/b^2,   remainder (mu_20 + mu_02 + mu_11 - 1 - (mu_21 + mu_12)/mu_11)/n
///
/// Aligned heads (all cosines 1) give n V / s^2. Source: Gaussian tilting of E K_h^a K_l^b.
/// \param cosines [k], each in [0, 1]  \param bandwidth b > 0  \param n > 0, training points
Remainder gaussian_noise_factor(const std::vector<double>& cosines, double bandwidth,
                                std::uint64_t n);

/// Computes the mean of n C_hl / s^2 over queries x ~ N(0, I), softmax kernel with temperature t,
/// to leading order:
///
///     prod_j ((1 - cos^2 t_j / t^2)^2 - cos^2 t_j / t^4)^(-1/2)
///
/// Infinite for t^2 <= 2 and aligned heads: throws std::invalid_argument for t^2 <= 2. The
/// remainder is NaN: its mean over queries is ruled by far ones, where no first order holds. \param
/// cosines [k], each in [0, 1]
Remainder softmax_noise_factor(const std::vector<double>& cosines, double temperature);

/// Computes n Var(f) / s^2 of the uniform ensemble, the mean of the factors above over all H^2
/// pairs (h, l), at the query that they are closed for. Throws std::invalid_argument for kernels
/// other than Gaussian and softmax.
Remainder noise_factor(const Matrices& subspaces, const KernelLaw& kernel, std::uint64_t n);

/// Returns the value of an index by its name: chordal, spectral, overlap (Gaussian) or qk
/// (softmax). Throws std::invalid_argument for other names and where the index is undefined.
double index_of(const std::string& name, const Matrices& subspaces, const KernelLaw& kernel);

/// Scores by an index and by the noise of the ensemble, n MSE / s^2 with m = 0: at x = 0 for the
/// Gaussian kernel, averaged over queries x ~ N(0, I) for softmax.
Scorer score_noise(const std::string& index, const KernelLaw& kernel, std::uint64_t n);

/// Scores by an index and by the MSE to first order in 1/n, averaged over the queries, of `base`
/// with these heads instead of its own. Slower: use it where there is a signal. Throws InvalidInput
/// where the first order does not cover `base`, or head_sets_scenario() does not.
Scorer score_mse(const std::string& index, const Condition& base);

}  // namespace headlab
