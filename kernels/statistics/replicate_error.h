// SPDX-License-Identifier: Apache-2.0
/// \file Squared error of the ensemble in one replicate, from its statistics.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/statistics/moments.h"

namespace headlab {

/// With f = sum_h a_h f_h from the statistics of a replicate (kernels/statistics/moments.h), (f -
/// m(x))^2 plus, where the noise is integrated, the variance of f given the design points.
class ReplicateError {
 public:
  /// \param head_weights a_h [H]
  /// \param truth m at the queries [Q]
  ReplicateError(const MomentLayout& layout, std::span<const double> head_weights,
                 std::span<const double> truth);

  /// The ensemble at one query, whose statistics are [layout.per_query()].
  double ensemble(const double* statistics) const;
  /// Its variance given the design points; 0 for the plain estimator.
  double noise(const double* statistics) const;
  double at_query(std::size_t q, const double* statistics) const;
  /// The mean over the queries, of statistics [layout.statistics()].
  double operator()(std::span<const double> statistics) const;

 private:
  MomentLayout layout_;
  std::vector<double> head_weights_;
  std::vector<double> pair_weights_;  ///< [pairs], a_g a_l, twice that where g != l
  std::vector<double> truth_;
};

}  // namespace headlab
