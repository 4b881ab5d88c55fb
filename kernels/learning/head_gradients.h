// SPDX-License-Identifier: Apache-2.0
/// \file ConditionEstimates and gradients of heads that are learned: the interface of the backends
/// for a fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/learning/learning.h"

namespace headlab {

/// A training set.
struct FitPoints {
  int d = 1;
  std::vector<float> x;   ///< [n][d]
  std::vector<double> y;  ///< [n]
};

/// Points at which heads are evaluated.
struct FitQueries {
  std::span<const float> x;           ///< [Q][d]
  std::span<const std::int64_t> own;  ///< [Q], the training point left out, or -1
  std::size_t size() const { return own.size(); }
};

/// Nadaraya-Watson estimates of heads on one training set, and their gradients in the matrices of
/// the heads. For kernel laws that have a `norm_coefficient`, see norm_coefficient_of().
class HeadGradients {
 public:
  virtual ~HeadGradients() = default;

  /// Takes the first `count` of `points` as training set, at least 2 and finite.
  virtual void load(const FitPoints& points, std::size_t count) = 0;

  /// f [Q][H], f_qh = sum_i w_qhi Y_i, of these heads at these queries. Separate matrices of the
  /// queries are for softmax.
  virtual void estimate(const HeadParameters& heads, const FitQueries& queries,
                        std::span<double> f) = 0;

  /// The gradient of sum_qh s_qh f_qh, for the heads and queries of the last estimate(), in
  /// out.keys, and out.queries where the heads have both [H][d][k]; s is [Q][H]. With
  /// c_i = w_i (Y_i - f), u = W_Q^T x and v_i = W_K^T X_i:
  ///     Gaussian   df/dW   = -(1/b^2) sum_i c_i (x - X_i) (x - X_i)^T W
  ///     softmax    df/dW_K = (1/t) sum_i c_i X_i u^T,  df/dW_Q = (1/t) sum_i c_i x v_i^T
  /// and the sum of the two where W_Q = W_K.
  virtual void gradient(std::span<const double> s, HeadParameters& out) = 0;
};

}  // namespace headlab
