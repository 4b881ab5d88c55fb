// SPDX-License-Identifier: Apache-2.0
// What an ensemble of heads is to its noise, a layer of attention is to the differences of tokens.
// With V = E sum_j w_j^2 and C = E sum_j w_hj w_lj of independent rows, in units of s^2, a layer of
// H heads leaves of the energy of differences
//   V/H + (1 - 1/H) C - 1/n   behind one value map (averaged): the variance of the ensemble, and
//   V - 1/n                   behind a map for each head: what is between the two is
//   (1 - 1/H)(V - C)          the ambiguity, mean_h (f_h - f)^2, of the ensemble.
// Both sides are simulated: the ensemble in the study of regression of the scenario, the layer in a
// study of depth whose logits have the law of its heads at the query.
#include <cmath>
#include <memory>
#include <numeric>
#include <string>

#include "engine/scenario/condition.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

/// One layer whose rows weigh tokens as the heads of dimension 1 of the scenario weigh points.
Plan layer_of(const Experiment& experiment, int heads, bool averaged) {
  constexpr int features = 8;  // of tokens; any number would do
  const Plan& plan = experiment.plan();
  const auto d = static_cast<std::ptrdiff_t>(plan.d);
  const double* const first = plan.projections.data();
  const auto dot = [&](const double* a, const double* b) {
    return std::inner_product(a, a + d, b, 0.0);
  };
  const double square = dot(first, first);
  Stack stack;
  stack.heads = heads;
  stack.kernel = AttentionKernel::independent_logits;
  stack.logit_sd = std::abs(dot(first, plan.query_points.data())) * std::sqrt(square) /
                   std::get<SoftmaxKernel>(*plan.kernel).temperature;
  stack.logit_correlation = dot(first, first + d) / square;
  stack.maps = GaussianMaps{.k = features, .value_dim = features};
  stack.averaged = averaged;
  Plan layer;
  layer.n = plan.n;
  layer.d = features;
  layer.seed = plan.seed;
  NormalDesign design;
  design.dim = features;
  layer.design = design.sampler(layer.table);
  layer.stack = std::make_shared<const Stack>(stack);
  return layer;
}

/// E|R'|^2/E|R|^2 of that layer.
Jackknifed energy_left(Experiment& experiment, int heads, bool averaged) {
  const std::string key = std::to_string(heads) + (averaged ? " averaged" : " independent");
  const auto& rows = experiment.observed_layers(key, layer_of(experiment, heads, averaged)).rows;
  const std::size_t energy = layer_metric("residual_squared");
  return rows[1].metrics[energy] / rows[0].metrics[energy];
}

/// "a equals b", relative to b.
Comparison equal_figures(Experiment& experiment, const std::string& what, const Jackknifed& a,
                         const Jackknifed& b) {
  Comparison comparison =
      equal_to(what + " minus 1", a / b, 1, 1, experiment.margin(), experiment.node_counts());
  comparison.observed = a.value;
  comparison.expected = b.value;
  return comparison;
}

std::vector<Finding> floor_is_rate(Experiment& experiment) {
  constexpr int many = 8;
  const Condition& condition = experiment.condition();
  const double n = static_cast<double>(condition.n);
  const double noise = n * noise_floor(condition);
  const JackknifedEstimates& seen = experiment.observed();
  const Jackknifed variance = (seen.variance_term + seen.covariance_term) / noise;
  const Jackknifed of_many =
      (seen.head_variance_mean / many + seen.head_covariance_mean * (1 - 1.0 / many)) / noise;
  Finding finding;
  finding.comparisons.push_back(equal_figures(
      experiment, "energy left by a layer, plus 1/n, over the variance of the ensemble",
      energy_left(experiment, condition.heads, true) + 1 / n, variance));
  finding.comparisons.push_back(equal_figures(
      experiment, "the same with " + std::to_string(many) + " heads, over V/H + (1 - 1/H) C",
      energy_left(experiment, many, true) + 1 / n, of_many));
  return {std::move(finding)};
}

std::vector<Finding> separate_maps_keep_ambiguity(Experiment& experiment) {
  const Condition& condition = experiment.condition();
  const JackknifedEstimates& seen = experiment.observed();
  const double noise = static_cast<double>(condition.n) * noise_floor(condition);
  const Jackknifed ambiguity =
      (seen.head_variance_mean - seen.variance_term - seen.covariance_term) / noise;
  Finding finding;
  finding.comparisons.push_back(equal_figures(
      experiment, "energy that separate value maps keep, over the ambiguity of the ensemble",
      energy_left(experiment, condition.heads, false) -
          energy_left(experiment, condition.heads, true),
      ambiguity));
  return {std::move(finding)};
}

}  // namespace

Claim rank_links_claim() {
  return {.name = "rank_links",
          .forms = {{.name = "floor", .examine = floor_is_rate},
                    {.name = "ambiguity", .examine = separate_maps_keep_ambiguity}}};
}

}  // namespace headlab
