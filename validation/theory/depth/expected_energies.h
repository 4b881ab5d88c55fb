// SPDX-License-Identifier: Apache-2.0
/// \file Expected squared lengths of the residual R = X - 1m^T and of the mean token m.
#pragma once

#include <cmath>
#include <limits>

namespace headlab {

/// E|R|_F^2 and E|m|^2 in one layer, as logarithms: -infinity for 0.
struct ExpectedEnergies {
  double log_residual_squared = -std::numeric_limits<double>::infinity();
  double log_mean_squared = -std::numeric_limits<double>::infinity();
  int n = 1;  ///< tokens

  double residual_squared() const { return std::exp(log_residual_squared); }
  double mean_squared() const { return std::exp(log_mean_squared); }
  /// E|R|^2/E|X|^2, |X|^2 = |R|^2 + n |m|^2; NaN where X = 0.
  double residual_share_of_means() const {
    return 1 / (1 + n * std::exp(log_mean_squared - log_residual_squared));
  }
};

}  // namespace headlab
