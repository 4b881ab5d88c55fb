// SPDX-License-Identifier: Apache-2.0
/// \file Keys at two scales, exactly at n independent points: blocks of two tokens are independent,
/// and a block counts as one point whose kernel value is the sum of its two. The moments of
/// filtered keys at any number of scales.
#pragma once

#include <cstdint>
#include <vector>

#include "validation/theory/exact/scalar_finite_n.h"
#include "validation/theory/model/model.h"

namespace headlab {

/// A head with model.levels = (l_0, l_1) that sees one scalar of a normal design.
/// \param tokens that it sees, a multiple of two
HeadMoments two_level_moments(const TheoryModel& model, std::uint64_t tokens, double truth,
                              const ScalarHead& head, const Resolution& resolution);

/// The filtered key kappa_i = sum_l lambda_l kbar^l_i of independent keys N(0, I) in complete
/// blocks: Var kappa = variance I, Cov(kappa_i, X_i) = covariance I.
struct FilteredKeyMoments {
  double variance;
  double covariance;
  /// Of a softmax head at equal leading bias, over |a|^2: its leading noise variance is
  /// exp(price_exponent |a|^2) times that of the plain head.
  double price_exponent;
};
FilteredKeyMoments filtered_key_moments(const std::vector<double>& levels);

}  // namespace headlab
