// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/condition_indices.h"

#include <limits>
#include <optional>
#include <variant>

#include "engine/scenario/subspaces.h"
#include "validation/diversity/indices.h"
#include "validation/diversity/query_key.h"

namespace headlab::tools {

namespace {

/// Index qk of heads that project queries and keys apart: 1 less the mean over pairs of E rho.
std::optional<double> query_key_index(const HeadFrames& frames, const KernelLaw& kernel) {
  const auto* softmax = std::get_if<SoftmaxKernel>(&kernel);
  if (softmax == nullptr || frames.queries().empty() || frames.heads() < 2) return std::nullopt;
  double sum = 0;
  const auto pairs =
      query_key_correlations(to_query_matrices(frames), to_matrices(frames), softmax->temperature);
  for (const QueryKeyCorrelation& pair : pairs) sum += pair.mean;
  return 1 - sum / static_cast<double>(pairs.size());
}

}  // namespace

ConditionIndices condition_indices(const ConditionResult& condition) {
  constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> bandwidth, temperature;
  const HeadFrames frames = make_head_frames(condition.scenario);
  const bool alike = frames.orthonormal() && frames.queries().empty();
  if (const auto* gaussian = std::get_if<GaussianKernel>(&condition.plan.kernel);
      gaussian && alike) {
    bandwidth = gaussian->bandwidth;
  }
  if (const auto* softmax = std::get_if<SoftmaxKernel>(&condition.plan.kernel); softmax && alike) {
    temperature = softmax->temperature;
  }
  const std::optional<double> query_key = query_key_index(frames, condition.plan.kernel);
  // Heads that every replicate learns have no subspaces of the condition.
  const bool of_condition = !condition.plan.learning;
  ConditionIndices indices;
  for (Index& index : subspace_indices(to_matrices(frames), bandwidth, temperature)) {
    if (index.name == "qk" && query_key) index.value = query_key;
    indices.push_back(
        {.name = index.name,
         .figure = {.value = of_condition ? index.value.value_or(undefined) : undefined},
         .ceiling = index.ceiling.value_or(undefined)});
  }
  const int heads = condition.plan.heads;
  indices.push_back({.name = "output",
                     .figure = condition.estimates.output_index,
                     .ceiling = heads > 1 ? output_index_ceiling(heads) : undefined,
                     .simulated = true});
  // Weights are not negative, so no two vectors of them are more than at right angles.
  indices.push_back({.name = "weights",
                     .figure = condition.estimates.weights_index,
                     .ceiling = heads > 1 ? 1.0 : undefined,
                     .simulated = true});
  return indices;
}

std::vector<ConditionIndices> condition_indices(const RunResult& result) {
  std::vector<ConditionIndices> indices;
  for (const ConditionResult& condition : result.conditions) {
    indices.push_back(condition_indices(condition));
  }
  return indices;
}

}  // namespace headlab::tools
