// SPDX-License-Identifier: Apache-2.0
/// \file The constants that simple arguments predict for the growth of the best dimension of a
/// head.
#pragma once

#include "engine/scenario/scenario.h"

namespace headlab {

/// Constants C of k* ~ C log10 n, for one bandwidth at every k; NaN where there are none.
struct GrowthConstants {
  /// ln 10/ln Gamma: the mean over queries of the variance of a head is Gamma^k s^2/n to first
  /// order, Gamma = E Z(2a)/Z(a)^2 = (1+a)^(3/2)/(1+3a)^(1/2), a = 1/b^2. That mean is made by rare
  /// queries with |q|^2 far above k, whose windows are empty unless n is far larger still.
  double first_order = 0;
  /// ln 10/kappa_c, kappa_c = (log(1+a) - a/(1+a)^2)/2: k at which at a typical query (|q|^2 = k)
  /// the sum of kernels condenses to few keys, by the entropy of the keys that dominate it (the
  /// random energy model, Derrida 1981). A larger k pays the whole noise of single keys.
  double condensation = 0;
  /// ln 10/kappa*, where D and d are far larger than log n: MSE is then its value at k = 0 plus
  /// k F(log n/k)/D, and kappa* minimises F(kappa)/kappa over kappa <= kappa_c. With a' <= a the
  /// tilt at which kappa_c(a') = kappa, F = (1 - a'/a) N - G(a'), N = s^2 and the variance of the
  /// truth, G what a dimension that is seen explains.
  double asymptotic = 0;
};

/// The constants for a bandwidth or a temperature that is the same at every k.
GrowthConstants growth_constants(const Condition& condition, int budget);

}  // namespace headlab
