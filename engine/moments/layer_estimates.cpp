// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/layer_estimates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <variant>

#include "kernels/stack/metrics.h"

namespace headlab {
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

std::size_t layer_metric(const std::string& name) {
  const auto& all = layer_metric_descriptions();
  const auto at = std::ranges::find(all, name, &LayerMetricDescription::name);
  if (at == all.end()) throw std::out_of_range("no metric of layers is called " + name);
  return static_cast<std::size_t>(at - all.begin());
}

std::vector<std::size_t> metrics_of(const Stack& stack) {
  const auto* maps = std::get_if<GaussianMaps>(&stack.maps);
  const bool pruned = maps != nullptr && maps->samples > 0;
  const std::size_t count = layer_metric_descriptions().size();
  // The last one is a ratio of two others; before it come those of singular values.
  const std::size_t spectra = layer_metric("stable_rank");
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == layer_metric("collapsed")) continue;
    if (i == layer_metric("target_distance") && !pruned) continue;
    if (i >= spectra && i + 1 < count && !stack.spectra) continue;
    all.push_back(i);
  }
  return all;
}

namespace {

/// A metric that differs between replicates may have more than they showed; one that does not is
/// fixed by the model, as the size of tokens behind a norm.
void expect_unseen(Jackknifed& figure) {
  const double same = 64 * std::numeric_limits<double>::epsilon() * std::abs(figure.value);
  const bool varies = std::ranges::any_of(
      figure.leave_one_out, [&](double one) { return std::abs(one - figure.value) > same; });
  if (varies) figure.unseen = std::numeric_limits<double>::infinity();
}

}  // namespace

double float64_floor(double squared_size) {
  return std::log(std::numeric_limits<double>::epsilon()) + std::log(squared_size) / 2;
}

LayersOf<Jackknifed> jackknifed_layers(const MomentTree& tree, std::uint64_t n) {
  const MomentLayout& layout = tree.layout();
  const std::vector<Node> nodes = tree.jackknife_nodes();
  LayersOf<Jackknifed> out;
  if (nodes.empty()) return out;

  // after[j]: nodes j .. end merged; without[j]: all but node j.
  std::vector<Moments> after(nodes.size() + 1);
  for (std::size_t j = nodes.size(); j-- > 0;) {
    after[j] = nodes[j].moments;
    merge_moments(layout, after[j], after[j + 1]);
  }
  std::vector<Moments> without;
  Moments before;
  const bool with_error = tree.count() >= min_replicates_for_mcse && nodes.size() > 1;
  for (std::size_t j = 0; with_error && j < nodes.size(); ++j) {
    without.push_back(before);
    merge_moments(layout, without.back(), after[j + 1]);
    merge_moments(layout, before, nodes[j].moments);
  }

  const std::size_t residual = layer_metric("residual_squared");
  const std::size_t mean = layer_metric("mean_squared");
  const std::size_t collapsed = layer_metric("collapsed");
  const std::size_t metrics = layout.per_query();
  for (std::size_t l = 0; l < static_cast<std::size_t>(layout.queries); ++l) {
    LayerRowOf<Jackknifed>& row = out.rows.emplace_back();
    for (std::size_t i = 0; i < metrics; ++i) {
      Jackknifed figure(after[0].mean[l * metrics + i]);
      for (const Moments& rest : without) {
        figure.leave_one_out.push_back(rest.mean[l * metrics + i]);
      }
      expect_unseen(figure);
      row.metrics.push_back(std::move(figure));
    }
    const Jackknifed tokens = Jackknifed(static_cast<double>(n)) * row.metrics[mean];
    row.metrics.push_back(row.metrics[residual] / (row.metrics[residual] + tokens));
    row.collapsed = static_cast<std::uint64_t>(
        std::llround(row.metrics[collapsed].value * static_cast<double>(tree.count())));
  }
  return out;
}

LayerEstimates estimate_layers(const MomentTree& tree, std::uint64_t n) {
  const std::vector<double> counts = counts_of_layers(tree).node_counts;
  LayerEstimates out;
  for (const LayerRowOf<Jackknifed>& row : jackknifed_layers(tree, n).rows) {
    LayerRowOf<Estimate>& estimates = out.rows.emplace_back();
    estimates.collapsed = row.collapsed;
    for (const Jackknifed& figure : row.metrics) {
      const bool known = !figure.leave_one_out.empty() && !std::isnan(figure.value);
      estimates.metrics.push_back(known ? figure.figure(counts) : Estimate{figure.value});
    }
  }
  return out;
}

ConditionEstimates counts_of_layers(const MomentTree& tree) {
  ConditionEstimates counts;
  for (const Node& node : tree.jackknife_nodes()) {
    counts.replicates += node.moments.count;
    counts.node_counts.push_back(static_cast<double>(node.moments.count));
  }
  return counts;
}

}  // namespace headlab
