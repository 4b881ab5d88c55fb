// SPDX-License-Identifier: Apache-2.0
/// \file Error components of the ensemble with Monte Carlo standard errors, from moments.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/moments/jackknife.h"
#include "engine/moments/moment_tree.h"

namespace headlab {

/// Estimates at one query x. A Number is a Figure, which is what users read, or a Sampled, which
/// can be calculated with.
template <class Number>
struct QueryEstimatesOf {
  Number mse;
  std::vector<Number> head_bias;        ///< [H], E f_h - m(x)
  std::vector<Number> head_covariance;  ///< [H][H], Cov(f_h, f_l); empty in aggregate mode
};

/// Estimates of one condition. All but `queries` are means over the queries; with a_h the head
/// weights, V_h variances and C_hl covariances over training sets,
///   mse = bias_squared + variance_term + covariance_term.
template <class Number>
struct EstimatesOf {
  std::uint64_t replicates = 0;
  std::vector<double> node_counts;  ///< replicates of each node of the jackknife
  /// Nodes of the jackknife; t quantiles have one degree of freedom less.
  int nodes() const { return static_cast<int>(node_counts.size()); }

  Number mse;
  Number bias_squared;          ///< corrected by the variance of the mean; may be negative
  Number variance_term;         ///< sum_h a_h^2 V_h
  Number covariance_term;       ///< sum_{h != l} a_h a_l C_hl
  Number bias_squared_plugin;   ///< (mean of f - m(x))^2, too large by the variance of the mean
  Number head_variance_mean;    ///< mean of V_h
  Number head_covariance_mean;  ///< mean of C_hl over pairs; NaN for H = 1
  Number output_correlation;    ///< head_covariance_mean / head_variance_mean
  Number output_index;          ///< 1 - output_correlation
  Number weights_index;         ///< 1 - mean cos(w_h, w_l); conditional and pairwise only

  double mse_query_se = std::numeric_limits<double>::quiet_NaN();  ///< of mse over the queries

  std::vector<QueryEstimatesOf<Number>> queries;
  WindowCounts windows;
};

using QueryEstimates = QueryEstimatesOf<Figure>;
using Estimates = EstimatesOf<Figure>;
using SampledEstimates = EstimatesOf<Sampled>;

/// Estimates with jackknife standard errors (delete one node, weighted by count: Busing, Meijer and
/// van der Leeden 1999). `head_weights` is [H], `truth` m at the queries. MCSE are NaN below 8
/// replicates, values NaN below 2.
Estimates estimate(const MomentTree& tree, std::span<const double> head_weights,
                   std::span<const double> truth);

/// The same as samples, to be calculated with. They take nodes x queries x H^2 numbers.
SampledEstimates sampled_estimates(const MomentTree& tree, std::span<const double> head_weights,
                                   std::span<const double> truth);

}  // namespace headlab
