// SPDX-License-Identifier: Apache-2.0
/// \file Limits and prices of stages that have no other closed form, or of which a formula says
/// more.
#pragma once

#include <cstdint>
#include <vector>

namespace headlab {

/// A head that keeps the fraction p of n independent points, as n grows: what it sees of the
/// scalar U ~ N(0, 1).
struct FractionLimit {
  double mass = 0;      ///< share of the weight that is kept
  double n_sum_w2 = 0;  ///< n sum_i w_i^2
  double mean = 0;      ///< of U under the weights that are kept
};

/// Softmax with tilt a, U = a.X/|a| and z = Phi^-1(1 - p): mass Phi(|a| - z),
/// n sum w^2 = exp(|a|^2) Phi(2|a| - z)/mass^2, mean |a| + phi(z - |a|)/mass.
FractionLimit softmax_fraction_limit(double tilt, double fraction);

struct GaussianFractionLimit : FractionLimit {
  double radius = 0;  ///< P(|U - q| <= radius) = p
};
/// Gaussian kernel of one dimension at the query's projection q.
GaussianFractionLimit gaussian_fraction_limit(double q, double bandwidth, double fraction);

/// Computes the mean number of tokens that some of H orthogonal heads keeps of its `top`,
/// n (1 - (1 - top/n)^H).
double mean_union(std::uint64_t n, std::uint64_t top, int heads);

/// Computes what merging costs a softmax head at equal leading bias, a truth that is linear or
/// points that are independent: the factor exp((1/tau^2 - 1)|a|^2) of its leading noise variance,
/// tau^2 = block_mean_variance(stride, correlation).
/// \param tilt |a| of the plain head
double merge_price(std::uint64_t stride, double correlation, double tilt);

}  // namespace headlab
