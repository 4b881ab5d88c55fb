// SPDX-License-Identifier: Apache-2.0
/// \file Subset sums, from which pruning approximates a weight: strong lottery tickets
/// (arXiv:2511.04217). An entry of a d x d map is a subset sum of m = hidden/d samples, each a
/// uniform on (-1, 1) or a product of two.
#pragma once

#include <Eigen/Core>

namespace headlab {

enum class SampleLaw { uniform, product };

/// Computes the expected number of subsets of m uniforms within eps of z,
///
///     [|z| <= eps] + sum_k C(m, k) P(|S_k - z| <= eps),  S_k the sum of k
///
/// an upper bound on the probability of a hit: errors fall by a factor 2 per sample at most.
/// \param count m in [0, 30]  \param eps > 0
double expected_subset_hits(int count, double target, double eps);

/// The random-energy form of P(no subset of m samples is within eps of z),
///
///     E exp(-2 eps 2^m g_x(z)),  g_x the density of N(sum x_i/2, sum x_i^2/4)
///
/// on a grid of the joint law of sum x_i and sum x_i^2. An approximation: within 0.01 of the
/// probability from m = 10 on, not at z = 0.
class RandomEnergyForm {
 public:
  /// Throws InvalidInput unless m is in [1, 24].
  RandomEnergyForm(int count, SampleLaw law);

  /// \param eps >= 0
  double failure(double target, double eps) const;

 private:
  int count_;
  Eigen::ArrayXd sum_, square_, probability_;  ///< cells of the grid
};

/// Computes tanh(e/2), the most that a row of attention moves in total variation where logits are
/// off by at most e; sharp. An output moves by at most that times the diameter of the values, for
/// any number of keys and any mask. \param largest_logit_error e >= 0
double attention_shift_upper_bound(double largest_logit_error);

}  // namespace headlab
