// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/estimates.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headlab {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t least_replicates_for_mcse = 8;

/// What is estimated at one query, in this order; then [H] head biases, then [P] covariances.
enum Component : std::size_t {
  mse,
  bias_squared,
  variance_term,
  covariance_term,
  bias_squared_plugin,
  head_variance_mean,
  head_covariance_mean,
  alignment,
  component_count
};

/// Turns moments of one query into its components. Formulas: docs/theory.md.
class QueryComponents {
 public:
  QueryComponents(const MomentLayout& layout, std::span<const double> head_weights)
      : layout_(layout), a_(head_weights) {
    uniform_ = std::all_of(a_.begin(), a_.end(),
                           [&](double a) { return a == 1.0 / static_cast<double>(a_.size()); });
  }

  std::size_t size() const { return component_count + a_.size() + layout_.pairs(); }

  /// out [size()] from the moments of a single query (layout with queries = 1).
  void operator()(const Moments& moments, double truth, double* out) const {
    const std::size_t heads = a_.size();
    const auto replicates = static_cast<double>(moments.count);
    double* bias = out + component_count;
    double* covariance = bias + heads;
    const double* noise = moments.mean.data() + layout_.noise_offset();

    // between: the part that varies from replicate to replicate, which also makes the variance of
    // the mean; for the plain estimator it is all there is.
    const double per_pair = moments.count > 1 ? 1 / (replicates - 1) : undefined;
    for (std::size_t h = 0; h < heads; ++h) bias[h] = moments.mean[h] - truth;
    for (std::size_t p = 0; p < layout_.pairs(); ++p) {
      covariance[p] = moments.comoment[p] * per_pair + (layout_.conditional ? noise[p] : 0.0);
    }

    double ensemble = 0;
    double between = 0;
    double own = 0;
    double cross = 0;
    double variances = 0;
    double covariances = 0;
    if (layout_.pairwise()) {
      for (std::size_t h = 0; h < heads; ++h) {
        ensemble += a_[h] * moments.mean[h];
        const std::size_t diagonal = layout_.pair(h, h);
        own += a_[h] * a_[h] * covariance[diagonal];
        variances += covariance[diagonal];
        between += a_[h] * a_[h] * moments.comoment[diagonal];
        for (std::size_t l = h + 1; l < heads; ++l) {
          const std::size_t pair = layout_.pair(h, l);
          cross += 2 * a_[h] * a_[l] * covariance[pair];
          covariances += 2 * covariance[pair];
          between += 2 * a_[h] * a_[l] * moments.comoment[pair];
        }
      }
    } else {
      ensemble = moments.mean[heads];
      between = moments.comoment[heads];
      for (std::size_t h = 0; h < heads; ++h) {
        own += a_[h] * a_[h] * covariance[h];
        variances += covariance[h];
      }
      cross = heads > 1 ? covariance[heads] - own : 0.0;
      const auto count = static_cast<double>(heads);
      // The ensemble's variance gives the mean over pairs only where every pair weighs the same.
      covariances = uniform_ ? count * count * covariance[heads] - variances : undefined;
    }
    const auto pairs = static_cast<double>(heads * (heads - 1));
    out[bias_squared_plugin] = (ensemble - truth) * (ensemble - truth);
    out[bias_squared] = out[bias_squared_plugin] - between * per_pair / replicates;
    out[variance_term] = own;
    out[covariance_term] = cross;
    out[mse] = out[bias_squared] + out[variance_term] + out[covariance_term];
    out[head_variance_mean] = variances / static_cast<double>(heads);
    out[head_covariance_mean] = heads > 1 ? covariances / pairs : undefined;
    out[alignment] = layout_.has_alignment() ? moments.mean[layout_.alignment_offset()] : undefined;
  }

 private:
  MomentLayout layout_;
  std::span<const double> a_;
  bool uniform_ = false;
};

/// Part of a node that belongs to one query.
Moments query_moments(const MomentLayout& layout, const Moments& node, int query) {
  const auto q = static_cast<std::ptrdiff_t>(query);
  const auto statistics = static_cast<std::ptrdiff_t>(layout.per_query());
  const auto pairs = static_cast<std::ptrdiff_t>(layout.pairs());
  Moments part;
  part.count = node.count;
  part.mean.assign(node.mean.begin() + q * statistics, node.mean.begin() + (q + 1) * statistics);
  part.comoment.assign(node.comoment.begin() + q * pairs, node.comoment.begin() + (q + 1) * pairs);
  return part;
}

Figure one_minus(const Figure& figure) {
  return {1 - figure.value, figure.mcse};
}
Sampled one_minus(const Sampled& sample) {
  return 1 - sample;
}

/// Estimates in which make(value, left_out) becomes of a figure and its values [nodes] with one
/// node left out, which are empty where there can be no standard error.
template <class Number, class Make>
EstimatesOf<Number> estimate_as(const MomentTree& tree, std::span<const double> head_weights,
                                std::span<const double> truth, const Make& make) {
  const MomentLayout layout = tree.layout();
  MomentLayout single = layout;
  single.queries = 1;
  const QueryComponents components(single, head_weights);
  const std::vector<Node> nodes = tree.jackknife_nodes();
  const std::size_t heads = head_weights.size();
  const std::size_t size = components.size();

  EstimatesOf<Number> estimates;
  estimates.replicates = tree.count();
  if (nodes.empty()) return estimates;
  for (const Node& node : nodes) {
    estimates.node_counts.push_back(static_cast<double>(node.moments.count));
    estimates.windows.add(node.moments.windows);
  }
  const bool with_error = tree.count() >= least_replicates_for_mcse && nodes.size() > 1;
  auto figure = [&](double value, std::span<const double> left_out) {
    return make(value, with_error ? left_out : std::span<const double>(), estimates.node_counts);
  };

  // Means over the queries, of all replicates and with each node left out.
  std::vector<double> mean(component_count, 0.0);
  std::vector<std::vector<double>> mean_left_out(component_count,
                                                 std::vector<double>(nodes.size(), 0.0));
  std::vector<double> mse_by_query;
  const double share = 1.0 / layout.queries;

  std::vector<double> full(size);
  std::vector<double> out(size);
  std::vector<std::vector<double>> left_out(size, std::vector<double>(nodes.size()));
  for (int q = 0; q < layout.queries; ++q) {
    const double m = truth[static_cast<std::size_t>(q)];
    // after[j]: nodes j .. end merged; before: nodes 0 .. j - 1.
    std::vector<Moments> after(nodes.size() + 1);
    for (std::size_t j = nodes.size(); j-- > 0;) {
      after[j] = query_moments(layout, nodes[j].moments, q);
      merge_moments(single, after[j], after[j + 1]);
    }
    components(after[0], m, full.data());
    if (with_error) {
      Moments before;
      for (std::size_t j = 0; j < nodes.size(); ++j) {
        Moments rest = before;
        merge_moments(single, rest, after[j + 1]);
        components(rest, m, out.data());
        for (std::size_t c = 0; c < size; ++c) left_out[c][j] = out[c];
        merge_moments(single, before, query_moments(layout, nodes[j].moments, q));
      }
    }

    for (std::size_t c = 0; c < component_count; ++c) {
      mean[c] += share * full[c];
      for (std::size_t j = 0; j < nodes.size(); ++j) mean_left_out[c][j] += share * left_out[c][j];
    }
    mse_by_query.push_back(full[mse]);
    QueryEstimatesOf<Number>& at = estimates.queries.emplace_back();
    at.mse = figure(full[mse], left_out[mse]);
    for (std::size_t h = 0; h < heads; ++h) {
      at.head_bias.push_back(figure(full[component_count + h], left_out[component_count + h]));
    }
    if (!layout.pairwise()) continue;
    at.head_covariance.resize(heads * heads);
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t l = h; l < heads; ++l) {
        const std::size_t c = component_count + heads + layout.pair(h, l);
        at.head_covariance[h * heads + l] = figure(full[c], left_out[c]);
        at.head_covariance[l * heads + h] = at.head_covariance[h * heads + l];
      }
    }
  }

  auto top = [&](Component c) { return figure(mean[c], mean_left_out[c]); };
  estimates.bias_squared = top(bias_squared);
  estimates.variance_term = top(variance_term);
  estimates.covariance_term = top(covariance_term);
  estimates.mse = top(mse);
  estimates.bias_squared_plugin = top(bias_squared_plugin);
  estimates.head_variance_mean = top(head_variance_mean);
  estimates.head_covariance_mean = top(head_covariance_mean);

  // Ratios of the means over the queries.
  auto ratio = [](double covariance, double variance) {
    return variance > 0 ? covariance / variance : undefined;
  };
  const double correlation = ratio(mean[head_covariance_mean], mean[head_variance_mean]);
  std::vector<double> correlations(nodes.size());
  for (std::size_t j = 0; j < nodes.size(); ++j) {
    correlations[j] =
        ratio(mean_left_out[head_covariance_mean][j], mean_left_out[head_variance_mean][j]);
  }
  estimates.output_correlation = figure(correlation, correlations);
  estimates.output_index = one_minus(estimates.output_correlation);
  estimates.weights_index = one_minus(top(alignment));

  if (layout.queries > 1) {
    double square = 0;
    for (const double value : mse_by_query) square += (value - mean[mse]) * (value - mean[mse]);
    estimates.mse_query_se = std::sqrt(square / (layout.queries - 1) / layout.queries);
  }
  return estimates;
}

}  // namespace

Estimates estimate(const MomentTree& tree, std::span<const double> head_weights,
                   std::span<const double> truth) {
  return estimate_as<Figure>(
      tree, head_weights, truth,
      [](double value, std::span<const double> left_out, std::span<const double> counts) {
        return Figure{value,
                      left_out.empty() ? undefined : jackknife_error(value, left_out, counts)};
      });
}

SampledEstimates sampled_estimates(const MomentTree& tree, std::span<const double> head_weights,
                                   std::span<const double> truth) {
  return estimate_as<Sampled>(
      tree, head_weights, truth,
      [](double value, std::span<const double> left_out, std::span<const double>) {
        return Sampled(value, {left_out.begin(), left_out.end()});
      });
}

}  // namespace headlab
