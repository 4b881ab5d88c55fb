// SPDX-License-Identifier: Apache-2.0
/// \file Metrics of a stack's layers from the moments of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/moments/estimates.h"
#include "engine/moments/jackknife.h"
#include "engine/moments/moment_tree.h"
#include "kernels/stack/stack.h"

namespace headlab {

/// A metric as a mean over replicates; NaN where it is undefined in any of them.
struct LayerMetricDescription {
  std::string name;
  std::string doc;
};

/// The metrics of moments, in their order, and `residual_share_of_means` behind them:
/// E|R|^2/E|X|^2, the ratio taken last.
const std::vector<LayerMetricDescription>& layer_metric_descriptions();

/// The number of a metric of this name; throws std::out_of_range where there is none.
std::size_t layer_metric(const std::string& name);

/// Numbers of the metrics that are shown of a stack: those of singular values only with `spectra`,
/// the distance from a target only with pruned maps; `collapsed` is a count besides.
std::vector<std::size_t> metrics_of(const Stack& stack);

/// Metrics of X_l and of the attention that made it.
template <class Number>
struct LayerRowOf {
  std::vector<Number> metrics;                  ///< as layer_metric_descriptions()
  std::optional<std::uint64_t> collapsed = {};  ///< replicates with R = 0, of a simulation
};

/// Metrics of one condition. A Number is an Estimate, a Remainder of a closed form, or a
/// Jackknifed.
template <class Number>
struct LayersOf {
  std::vector<LayerRowOf<Number>> rows;  ///< 0..L, or none where nothing was simulated
};
using LayerEstimates = LayersOf<Estimate>;

/// Below this log residual plain float64 cannot tell tokens of this |X|_F^2 apart: its rounding of
/// X is eps |X|_F.
double float64_floor(double squared_size);

/// \param tree moments of a plan with a stack
/// \param n tokens
LayersOf<Jackknifed> jackknifed_layers(const MomentTree& tree, std::uint64_t n);

/// The same with standard errors, which are NaN below 8 replicates.
LayerEstimates estimate_layers(const MomentTree& tree, std::uint64_t n);

/// What tables and files need of the moments besides their metrics: replicates and nodes.
ConditionEstimates counts_of_layers(const MomentTree& tree);

/// One row as a result that describes itself.
template <class Number>
struct LayerMetricsRecord {
  const LayerRowOf<Number>& row;
  const std::vector<std::size_t>& listed;  ///< numbers of metrics

  template <class Visitor>
  void fields(Visitor& visit) const {
    const auto& texts = layer_metric_descriptions();
    for (const std::size_t i : listed) {
      visit(texts[i].name.c_str(), row.metrics[i], texts[i].doc.c_str());
    }
    if (row.collapsed) visit("collapsed", *row.collapsed, "replicates with R = 0 exactly");
  }
};

}  // namespace headlab
