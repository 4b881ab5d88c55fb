// SPDX-License-Identifier: Apache-2.0
/// \file Attention whose logits are i.i.d. N(0, sigma^2) over rows and keys, redrawn in each layer,
/// with fresh Gaussian values.
///
/// Layer X' = s X + b sum_h A_h X V_h as in fixed_attention.h; no mask, no memory. With weights w_h
/// of one row, V = E sum_j w_hj^2 and C = E sum_j w_hj w_lj (1/n for independent heads),
///
///     E|R'|^2 = (s^2 + b^2 v kappa) E|R|^2
///     E|m'|^2 = (s^2 + b^2 v) E|m|^2 + b^2 v kappa E|R|^2/(n (n-1))
///     kappa = V - 1/n                        a value map for each head
///     kappa = V/H + (1 - 1/H) C - 1/n        averaged heads behind one value map
#pragma once

#include <vector>

#include "validation/theory/depth/fixed_attention.h"

namespace headlab {

/// V and C of one row of n keys.
struct WeightMoments {
  double square = 0;   ///< V = E sum_j w_j^2, in [1/n, 1]
  double product = 0;  ///< C = E sum_j w_hj w_lj, in [1/n, V]
};

/// Computes V and C by quadrature, V to 1e-11 and C to 1e-9, both relative.
/// \param n keys, >= 1  \param sd sigma >= 0
/// \param correlation of two heads' logits at one key, in [0, 1]
/// Throws InvalidInput where a number is out of its range and where the quadrature does not
/// converge.
WeightMoments softmax_weight_moments(int n, double sd, double correlation = 0);

/// The stack.
struct IndependentLogitsStack {
  int n = 1;
  int heads = 1;
  double sd = 1;           ///< sigma
  double correlation = 0;  ///< of heads' logits at one row and key; matters with `averaged` alone
  bool averaged = false;
  double value = 1;  ///< v
  double skip = 0;
  double branch = 1;
  int layers = 1;
};

/// Computes kappa, what a layer without skip leaves of E|R|^2 at v = 1. Throws as
/// softmax_weight_moments.
double residual_kept(const IndependentLogitsStack& stack);

/// Computes layers 0 to L from E|R|^2 and E|m|^2 of the tokens. Throws InvalidInput where a number
/// is out of its range, and as softmax_weight_moments.
std::vector<ExpectedEnergies> independent_logits_energies(double residual_squared,
                                                          double mean_squared,
                                                          const IndependentLogitsStack& stack);

}  // namespace headlab
