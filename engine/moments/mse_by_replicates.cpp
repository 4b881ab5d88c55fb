// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/mse_by_replicates.h"

#include <algorithm>
#include <cmath>

#include "engine/moments/estimates.h"

namespace headlab {
namespace {

constexpr std::size_t min_nodes = 8;

/// Moments of the ensemble, as of a single head of weight 1, from those of its heads: the mean is
/// linear in them, and a comoment is a sum over pairs.
Moments ensemble_moments(const MomentLayout& layout, const Moments& heads,
                         std::span<const double> head_weights, const ControlUse* use,
                         std::uint64_t replicates) {
  const std::size_t components = layout.components();
  std::vector<double> noise(layout.pairs());  // that is used
  const auto sum_pairs = [&](const double* of_pairs) {
    if (!layout.pairwise()) return of_pairs[components - 1];
    double sum = 0;
    for (std::size_t g = 0; g < components; ++g) {
      for (std::size_t l = g; l < components; ++l) {
        sum += (g == l ? 1 : 2) * head_weights[g] * head_weights[l] * of_pairs[layout.pair(g, l)];
      }
    }
    return sum;
  };
  Moments ensemble;
  ensemble.count = heads.count;
  for (std::size_t q = 0; q < static_cast<std::size_t>(layout.queries); ++q) {
    const double* mean = heads.mean.data() + q * layout.per_query();
    const double* comoment = heads.comoment.data() + q * layout.comoments_per_query();
    double value = 0;
    if (layout.pairwise()) {
      for (std::size_t h = 0; h < components; ++h) value += head_weights[h] * mean[h];
    } else {
      value = mean[components - 1];
    }
    ensemble.mean.push_back(value);
    if (layout.conditional) ensemble.mean.push_back(sum_pairs(mean + layout.noise_offset()));
    ensemble.comoment.push_back(sum_pairs(comoment));
    if (!layout.controlled()) continue;
    const bool uses_estimates = use == nullptr || use->has_estimates(q, replicates);
    for (std::size_t p = 0; p < noise.size(); ++p) {
      const bool uses_noise = use == nullptr || use->has_noise(q * noise.size() + p, replicates);
      noise[p] = mean[p + (uses_noise ? layout.controlled_noise_offset() : layout.noise_offset())];
    }
    const double controlled = uses_estimates ? mean[layout.controlled_ensemble()] : value;
    ensemble.mean.insert(ensemble.mean.end(), {controlled, sum_pairs(noise.data()), controlled});
    ensemble.comoment.push_back(uses_estimates ? comoment[layout.pairs()]
                                               : ensemble.comoment.back());
  }
  return ensemble;
}

/// The use of controls by the ensemble whose moments these are: what is not used was left out.
ControlUse ensemble_use(const MomentLayout& layout, std::span<const double> head_weights,
                        const ControlUse& use) {
  ControlUse of_ensemble;
  if (use.covariance_left.empty()) return of_ensemble;
  const double* left = use.covariance_left.data();
  for (int q = 0; q < layout.queries; ++q) {
    double sum = 0;
    for (std::size_t g = 0; g < head_weights.size(); ++g) {
      for (std::size_t l = g; l < head_weights.size(); ++l) {
        sum += (g == l ? 1 : 2) * head_weights[g] * head_weights[l] * *left++;
      }
    }
    of_ensemble.covariance_left.push_back(sum);
  }
  of_ensemble.estimates = use.estimates;
  return of_ensemble;
}

/// The mean squared error over the first `size` nodes.
MseAfter mse_of(const MomentLayout& layout, const std::vector<Moments>& nodes, std::size_t size,
                std::span<const double> head_weights, std::span<const double> truth,
                const ControlUse* use, std::uint64_t replicates) {
  const auto mse = [&](const Moments& moments) {
    return error_terms(layout, moments, head_weights, truth, use, replicates).mse;
  };
  std::vector<Moments> after(size + 1);  // after[j]: nodes j .. size - 1 merged
  std::vector<double> counts(size);
  for (std::size_t j = size; j-- > 0;) {
    after[j] = nodes[j];
    merge_moments(layout, after[j], after[j + 1]);
    counts[j] = static_cast<double>(nodes[j].count);
  }
  const double value = mse(after[0]);
  std::vector<double> leave_one_out(size);
  Moments before;
  for (std::size_t j = 0; j < size; ++j) {
    Moments rest = before;
    merge_moments(layout, rest, after[j + 1]);
    leave_one_out[j] = mse(rest);
    merge_moments(layout, before, nodes[j]);
  }
  return {after[0].count, size, Estimate{value, jackknife_error(value, leave_one_out, counts)}};
}

}  // namespace

std::vector<MseAfter> mse_by_replicates(const MomentTree& tree,
                                        std::span<const double> head_weights,
                                        std::span<const double> truth, const ControlUse* use,
                                        std::size_t most) {
  MomentLayout layout = tree.layout();
  const std::span<const double> of_heads = head_weights;
  std::vector<Moments> nodes;
  const double weight = 1;
  for (const Node& node : tree.jackknife_nodes()) {
    // Figures of draws are those of the ensemble already.
    nodes.push_back(layout.per_draw
                        ? node.moments
                        : ensemble_moments(layout, node.moments, head_weights, use, tree.count()));
  }
  if (!layout.per_draw) {
    layout.heads = 1;
    layout.mode = MomentMode::pairwise;
    head_weights = {&weight, 1};
  }
  ControlUse of_ensemble;
  if (use != nullptr && tree.layout().controlled()) {
    of_ensemble = ensemble_use(tree.layout(), of_heads, *use);
    use = &of_ensemble;
  }
  const std::size_t first = layout.per_draw ? min_draws_for_mcse : min_nodes;
  std::vector<MseAfter> all;
  if (nodes.size() < first) return all;
  const auto least = static_cast<double>(first);
  const auto last = static_cast<double>(nodes.size());
  const double factor = std::pow(last / least, 1 / std::max<double>(1, double(most) - 1));
  std::size_t done = 0;
  for (std::size_t i = 0; i < most; ++i) {
    const double size = least * std::pow(factor, static_cast<double>(i));
    const auto whole = i + 1 == most ? nodes.size() : static_cast<std::size_t>(std::lround(size));
    if (whole <= done || whole > nodes.size()) continue;
    done = whole;
    all.push_back(mse_of(layout, nodes, whole, head_weights, truth, use, tree.count()));
  }
  return all;
}

}  // namespace headlab
