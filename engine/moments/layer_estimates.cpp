// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/layer_estimates.h"

#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "kernels/stack/metrics.h"

namespace headlab {
namespace {

std::size_t number_of_metric(std::string_view name) {
  const auto& all = layer_metric_descriptions();
  std::size_t i = 0;
  while (all[i].name != name) ++i;
  return i;
}

}  // namespace

const std::vector<LayerMetricDescription>& layer_metric_descriptions() {
  static const auto all = [] {
    struct Names {
      std::vector<LayerMetricDescription> all;
      void operator()(const char* name, double, const char* doc) { all.push_back({name, doc}); }
    } names;
    LayerMetrics().fields(names);
    names.all.push_back({"residual_share_of_means", "mean |R|_F^2 over mean |X|_F^2"});
    return std::move(names.all);
  }();
  return all;
}

Estimate LayerEstimates::estimate(std::size_t row, std::size_t metric) const {
  const Jackknifed& figure = rows.at(row).metrics.at(metric);
  if (figure.leave_one_out.size() < 2 || std::isnan(figure.value)) return {.value = figure.value};
  return figure.figure(node_counts);
}

LayerEstimates estimate_layers(const MomentTree& tree, std::uint64_t n) {
  const MomentLayout& layout = tree.layout();
  const std::vector<Node> nodes = tree.jackknife_nodes();
  LayerEstimates out;
  for (const Node& node : nodes) {
    out.replicates += node.moments.count;
    out.node_counts.push_back(static_cast<double>(node.moments.count));
  }
  if (nodes.empty()) return out;

  // after[j]: nodes j .. end merged; without[j]: all but node j.
  std::vector<Moments> after(nodes.size() + 1);
  for (std::size_t j = nodes.size(); j-- > 0;) {
    after[j] = nodes[j].moments;
    merge_moments(layout, after[j], after[j + 1]);
  }
  std::vector<Moments> without;
  Moments before;
  for (std::size_t j = 0; nodes.size() > 1 && j < nodes.size(); ++j) {
    without.push_back(before);
    merge_moments(layout, without.back(), after[j + 1]);
    merge_moments(layout, before, nodes[j].moments);
  }

  const std::size_t residual = number_of_metric("residual_squared");
  const std::size_t mean = number_of_metric("mean_squared");
  const std::size_t collapsed = number_of_metric("collapsed");
  const std::size_t metrics = layout.per_query();
  for (std::size_t l = 0; l < static_cast<std::size_t>(layout.queries); ++l) {
    LayerEstimates::Row& row = out.rows.emplace_back();
    for (std::size_t i = 0; i < metrics; ++i) {
      Jackknifed figure(after[0].mean[l * metrics + i]);
      for (const Moments& rest : without) {
        figure.leave_one_out.push_back(rest.mean[l * metrics + i]);
      }
      row.metrics.push_back(std::move(figure));
    }
    const Jackknifed tokens = Jackknifed(static_cast<double>(n)) * row.metrics[mean];
    row.metrics.push_back(row.metrics[residual] / (row.metrics[residual] + tokens));
    row.collapsed = static_cast<std::uint64_t>(
        std::llround(row.metrics[collapsed].value * static_cast<double>(out.replicates)));
  }
  return out;
}

}  // namespace headlab
