// SPDX-License-Identifier: Apache-2.0
/// \file What first order in 1/n leaves out of the means, variances and covariances of ratios of
/// averages, order by order.
///
/// With k = K_h/D_h, j = K_l/D_l, a = k (Y - r_h) and b = j (Y - r_l) of one token, a head is
///
///     f_h - r_h = A/(1 + delta) = A (1 - delta + delta^2 - ...),  A = mean of a, 1 + delta = mean
///     of k
///
/// and f_l - r_l = B/(1 + eta) likewise. A mean of a product of A, B, delta and eta is a sum over
/// partitions of its factors into blocks of two and more, each the product of the blocks' joint
/// cumulants; v factors in m blocks are of order n^-(v - m). To second order
///
///     E f_h - r_h = -kappa(A delta) + kappa(A delta delta) - 3 kappa(A delta) kappa(delta delta)
///     Cov(f_h, f_l) = kappa(AB) - kappa(AB delta) - kappa(AB eta)
///         + kappa(AB) [kappa(delta delta) + kappa(eta eta) + kappa(delta eta)]
///         + 2 kappa(A delta) kappa(B delta) + 2 kappa(A eta) kappa(B eta)
///         + kappa(A eta) kappa(B delta)
#pragma once

#include <array>

namespace headlab {

/// Means of one token under the weight k^p j^q.
struct WeightedMeans {
  double mass = 1;     ///< E[k^p j^q]
  double from_h = 0;   ///< E[m] - r_h
  double from_l = 0;   ///< E[m] - r_l
  double product = 0;  ///< E[(m - r_h)(m - r_l)]
  double noise = 0;    ///< E[s^2]
};

/// Two heads, or one and itself, and the tokens that they see.
struct PairOfHeads {
  static constexpr int largest_power = 4;
  /// [p][q], p + q <= largest_power
  std::array<std::array<WeightedMeans, largest_power + 1>, largest_power + 1> means;
  double n_h = 1;     ///< tokens of the first head
  double n_l = 1;     ///< of the second
  double shared = 1;  ///< of both
};

/// Terms of the first three orders, each with its power of 1/n.
struct OrderTerms {
  double first = 0;
  double second = 0;
  /// How far the first order may be off: the sizes of what noise and signal each add to the second
  /// order and to the third, and for later orders a tenth of the sizes of all terms of the third.
  /// It is 0 only where every one of these terms is.
  double remainder = 0;
};

/// Computes the terms of E f_h - r_h, from the means with q = 0.
OrderTerms bias_orders(const PairOfHeads& pair);

/// Computes the terms of Cov(f_h, f_l).
OrderTerms covariance_orders(const PairOfHeads& pair);

}  // namespace headlab
