// SPDX-License-Identifier: Apache-2.0
/// \file Metrics of a stack's layers from the moments of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/moments/jackknife.h"
#include "engine/moments/moment_tree.h"

namespace headlab {

/// A metric as a mean over replicates. NaN where it is undefined in any of them.
struct LayerMetricDescription {
  std::string name;
  std::string doc;
};

/// The metrics of moments, in their order, and `residual_share_of_means` behind them:
/// E|R|^2/E|X|^2, the ratio taken last.
const std::vector<LayerMetricDescription>& layer_metric_descriptions();

/// Estimates of a condition, rows 0..L.
struct LayerEstimates {
  std::uint64_t replicates = 0;
  std::vector<double> node_counts;  ///< [nodes], of standard errors

  struct Row {
    std::vector<Jackknifed> metrics;  ///< as layer_metric_descriptions()
    std::uint64_t collapsed = 0;      ///< replicates with R = 0
  };
  std::vector<Row> rows;

  /// A metric with its standard error, which is NaN with fewer than 2 nodes.
  Estimate estimate(std::size_t row, std::size_t metric) const;
};

/// \param tree moments of a plan with a stack
/// \param n tokens
LayerEstimates estimate_layers(const MomentTree& tree, std::uint64_t n);

}  // namespace headlab
