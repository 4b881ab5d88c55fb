// SPDX-License-Identifier: Apache-2.0
/// \file Error components of the ensemble with Monte Carlo standard errors, from moments.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/moment_tree.h"

namespace headlab {

/// A figure with its Monte Carlo standard error; NaN where it is undefined (null in the outputs).
struct Figure {
  double value = std::numeric_limits<double>::quiet_NaN();
  double mcse = std::numeric_limits<double>::quiet_NaN();
};

/// Estimates at one query x.
struct QueryEstimates {
  Figure mse;
  std::vector<Figure> head_bias;        ///< [H], E f_h - m(x)
  std::vector<Figure> head_covariance;  ///< [H][H], Cov(f_h, f_l); empty in aggregate mode
};

/// Estimates of one condition. All but `queries` are means over the queries; with a_h the head
/// weights, V_h variances and C_hl covariances over training sets,
///   mse = bias_squared + variance_term + covariance_term.
struct Estimates {
  std::uint64_t replicates = 0;
  int nodes = 0;  ///< of the jackknife; t quantiles have nodes - 1 degrees of freedom

  Figure mse;
  Figure bias_squared;          ///< corrected by the variance of the mean; may be negative
  Figure variance_term;         ///< sum_h a_h^2 V_h
  Figure covariance_term;       ///< sum_{h != l} a_h a_l C_hl
  Figure bias_squared_plugin;   ///< (mean of f - m(x))^2, too large by the variance of the mean
  Figure head_variance_mean;    ///< mean of V_h
  Figure head_covariance_mean;  ///< mean of C_hl over pairs; NaN for H = 1
  Figure output_correlation;    ///< head_covariance_mean / head_variance_mean
  Figure output_index;          ///< 1 - output_correlation
  Figure weights_index;         ///< 1 - mean cos(w_h, w_l); conditional and pairwise only

  double mse_query_se = std::numeric_limits<double>::quiet_NaN();  ///< of mse over the queries

  std::vector<QueryEstimates> queries;
  WindowCounts windows;
};

/// Estimates with jackknife standard errors (delete one node, weighted by count: Busing, Meijer and
/// van der Leeden 1999). `head_weights` is [H], `truth` m at the queries. MCSE are NaN below 8
/// replicates, values NaN below 2.
Estimates estimate(const MomentTree& tree, std::span<const double> head_weights,
                   std::span<const double> truth);

}  // namespace headlab
